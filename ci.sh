#!/usr/bin/env bash
# Every check of this repository. `./ci.sh --help` lists the stages; CONTRIBUTING.md tells more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/tools.sh
exec </dev/null

usage() {
    cat <<'HELP'
usage: ./ci.sh [STAGE...]     no stage means all of them; 'quick' means fmt lint test

  fmt          formatting of the workspace and of the fuzz targets
  lint         clippy, package by package, with all features and with none
  doc          rustdoc without warnings, doc tests, links between the Markdown files
  test         cargo test of the workspace
  sim          the simulator, optimised, over SIM_RUNS seeds (100000) from SIM_SEED
  fuzz         each fuzz target for FUZZ_SECONDS (20); the corpora are replayed by `test`
  no_std       what core depends on, and core built for a bare-metal target
  interop      tests and examples against an OpenSSH server started for them
  sizes        size of the release binary, with a bound
  deny         licences, sources, bans and (with the network) advisories of the dependencies
  bench-smoke  each benchmark once, unmeasured

Builds go to CARGO_TARGET_DIR (~/.cache/longhaul/target), installed tools to ~/.cache/longhaul.
HELP
}

ALL=(fmt lint doc test sim fuzz no_std interop sizes deny bench-smoke)

stage_fmt() {
    rust_component rustfmt
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check
}

stage_lint() {
    rust_component clippy
    local package
    # Singly, or the features that one package asks for would hide what another one lacks.
    for package in $(cargo tree --workspace --depth 0 --prefix none | cut -d' ' -f1 | sort -u); do
        say "clippy: $package"
        cargo clippy --quiet -p "$package" --all-targets --all-features -- -D warnings
        cargo clippy --quiet -p "$package" --all-targets --no-default-features -- -D warnings
    done
}

stage_doc() {
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --all-features
    cargo test --doc --workspace --all-features
    scripts/check-links.sh
}

stage_test() {
    cargo test --workspace --all-features --all-targets
}

stage_sim() {
    SIM_RUNS=${SIM_RUNS:-100000} cargo test --profile sim -p longhaul-tests
}

stage_fuzz() {
    need c++ g++
    cargo_tool cargo-fuzz 0.13.2
    local target found
    # Nothing here is unsafe, so no sanitizer is needed; without one the stable toolchain will do.
    cargo fuzz build --sanitizer none
    for target in $(cargo fuzz list); do
        # libFuzzer writes what it discovers to the first folder: not into the clone.
        found=$(mktemp -d)
        cargo fuzz run --sanitizer none "$target" "$found" "fuzz/corpus/$target" -- \
            -max_total_time="${FUZZ_SECONDS:-20}" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
            -print_final_stats=1
        rm -r "$found"
    done
}

stage_no_std() {
    local extra
    extra=$(cargo tree -p longhaul-core -e normal --no-default-features --prefix none --format '{lib}' |
        sort -u | grep -vxE 'longhaul_core|heapless|hash32|byteorder|stable_deref_trait' || true)
    [[ -z $extra ]] || { say "error: core depends on more than heapless:" "$extra"; return 1; }
    scripts/bare-metal.sh -p longhaul-core --no-default-features
    scripts/bare-metal.sh -p longhaul-core --no-default-features --features driver,server
}

stage_interop() {
    # Built first: the server is up only while it's used.
    cargo test -p longhaul-tests --test interop --no-run
    cargo build -p longhaul --bins --examples
    scripts/sshd.sh scripts/interop.sh
}

stage_sizes() {
    local size bound=$((8 * 1024 * 1024))
    cargo build --release -p longhaul
    size=$(stat -c %s "$CARGO_TARGET_DIR/release/longhaul")
    say "longhaul: $size bytes (at most $bound)"
    ((size <= bound))
}

stage_deny() {
    need git git # fetches the advisories
    cargo_tool cargo-deny 0.20.2
    cargo deny check bans licenses sources
    cargo deny --manifest-path fuzz/Cargo.toml --config deny.toml check bans licenses sources
    if timeout 120 cargo deny fetch db; then
        cargo deny check advisories
    else
        say "NOTE: advisories were not checked: their database needs the network"
    fi
}

stage_bench_smoke() {
    compgen -G 'benches/benches/*.rs' >/dev/null || { say "error: there are no benchmarks"; return 1; }
    cargo bench -p longhaul-benches -- --test
}

stages=()
for stage in "${@:-all}"; do
    case $stage in
    -h | --help) usage; exit 0 ;;
    all) stages+=("${ALL[@]}") ;;
    quick) stages+=(fmt lint test) ;;
    *)
        [[ " ${ALL[*]} " == *" $stage "* ]] || { say "no such stage: $stage"; usage >&2; exit 2; }
        stages+=("$stage")
        ;;
    esac
done

need cc gcc libc6-dev # rustc links with it

passed=0 failed=0 summary=
for stage in "${stages[@]}"; do
    printf '\n=== %s\n' "$stage"
    start=$SECONDS
    # `set -e` is without effect inside the condition of an `if`: so the subshell stands alone.
    set +e
    (set -e; "stage_${stage//-/_}")
    code=$?
    set -e
    if ((code == 0)); then word=ok passed=$((passed + 1)); else word=FAILED failed=$((failed + 1)); fi
    line=$(printf '%-12s %-6s %5d s' "$stage" "$word" $((SECONDS - start)))
    printf '=== %s\n' "$line"
    summary+="$line"$'\n'
done
printf '\n%s%d passed, %d failed\n' "$summary" "$passed" "$failed"
((failed == 0))
