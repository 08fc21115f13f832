#!/usr/bin/env bash
# Checks that the relative links of the Markdown files lead to something.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

broken=0
while IFS= read -r -d '' file; do
    while IFS= read -r link; do
        [[ -e $(dirname "$file")/${link%%#*} ]] || { echo "$file: broken link: $link"; broken=1; }
    done < <(grep -oE '\]\([^)# ][^) ]*' "$file" | cut -c3- | grep -vE '^[a-z]+:' || true)
done < <(find . -name '*.md' -not -path '*/target/*' -not -path './.git/*' -print0)
exit "$broken"
