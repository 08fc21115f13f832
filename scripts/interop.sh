#!/usr/bin/env bash
# Run by scripts/sshd.sh, which sets the LONGHAUL_* variables: the tests and the examples that need
# a real server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cargo test -p longhaul-tests --test interop -- --ignored --test-threads=1 | tee "$dir/out"
! grep -qx 'running 0 tests' "$dir/out" || { say "error: no interop test ran"; exit 1; }

# The examples name only the host, as their readers would: this `ssh` knows where that is.
printf '#!/bin/sh\nexec ssh -F "%s" "$@"\n' "$LONGHAUL_SSH_CONFIG" >"$dir/ssh"
chmod +x "$dir/ssh"
export LONGHAUL_SSH=$dir/ssh
head -c 3000000 /dev/urandom >"$dir/remote"

example() {
    say "example: $*"
    "$CARGO_TARGET_DIR/debug/examples/$1" "${@:2}"
}

for path in runtime-std/examples/*.rs; do
    [[ -e $path ]] || { say "error: there are no examples"; exit 1; }
    name=$(basename "$path" .rs)
    grep -q "^example $name\b" "$0" || { say "error: add example $name to $0"; exit 1; }
done

example fetch "longhaul-test:$dir/remote" "$dir/fetched"
cmp "$dir/remote" "$dir/fetched"
example read_range "longhaul-test:$dir/remote" 1000000 70000 | cmp - <(tail -c +1000001 "$dir/remote" | head -c 70000)
example by_hand "$dir/remote" "$dir/by_hand" "$LONGHAUL_SSH" -s longhaul-test sftp
cmp "$dir/remote" "$dir/by_hand"
