#!/usr/bin/env bash
# scripts/bare-metal.sh CARGO-BUILD-ARGUMENTS...: builds for a target without an operating system,
# which shows that neither std nor an allocator crept in. Where rustup can't download the target,
# Debian's packages give a compiler with its matching library source, and core is built from that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
target=thumbv7em-none-eabi

has_target() { compgen -G "$(rustc --print target-libdir --target "$target")/libcore-*" >/dev/null; }
has_target || rustup target add "$target" 2>/dev/null || say "rustup can't download $target"
if has_target; then exec cargo build --target "$target" "$@"; fi

[[ -d /usr/lib/rustlib/src/rust/library/core && -x /usr/bin/rustc ]] ||
    apt_install rustc-web rust-web-src
# Its own folder, since these objects come from another version of the compiler.
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/bare-metal
# RUSTC_BOOTSTRAP lets a stable compiler take -Z flags; a release's core is built only by that release.
RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 cargo build -Zbuild-std=core --target "$target" "$@"
