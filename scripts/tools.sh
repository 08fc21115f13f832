# Sourced by the other scripts: where what they install is kept, and how it gets there.
# Everything is kept outside the clone, so that a fresh clone finds it again.
# shellcheck shell=bash

LONGHAUL_CACHE=${LONGHAUL_CACHE:-$HOME/.cache/longhaul}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$LONGHAUL_CACHE/target}
export PATH="$LONGHAUL_CACHE/tools/bin:$PATH"

say() { printf '%s\n' "$*" >&2; }

# apt_install PACKAGE...: installs Debian packages without starting the services they bring.
apt_install() {
    local as_root=() policy=/usr/sbin/policy-rc.d made_policy=0
    command -v apt-get >/dev/null || { say "error: please install $*"; return 1; }
    ((EUID == 0)) || as_root=(sudo -n)
    say "installing $*"
    # Exit code 101 of this file is how a package's script learns that it may not start a daemon.
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
        made_policy=1
    fi
    local rc=0
    {
        "${as_root[@]}" apt-get update -qq &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
                --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
    } >&2 || rc=$?
    if ((made_policy)); then "${as_root[@]}" rm -f "$policy"; fi
    return "$rc"
}

# need COMMAND PACKAGE...: installs the packages unless the command is there.
need() {
    local command=$1
    shift
    PATH="$PATH:/usr/sbin" command -v "$command" >/dev/null || apt_install "$@"
}

# cargo_tool NAME VERSION: installs a cargo subcommand once.
cargo_tool() {
    local root=$LONGHAUL_CACHE/tools
    ! cargo install --root "$root" --list | grep -qx "$1 v$2:" || return 0
    say "installing $1 $2 (once, some minutes)"
    # A debug build is quicker to make, and fast enough to run. Without CARGO_TARGET_DIR, cargo
    # builds in a folder that it removes afterwards. The lock file that a tool was published with
    # may name versions that a registry no longer serves: then resolve afresh.
    env -u CARGO_TARGET_DIR cargo install --quiet --debug --locked --root "$root" "$1" --version "$2" ||
        env -u CARGO_TARGET_DIR cargo install --quiet --debug --root "$root" "$1" --version "$2"
}

# rust_component NAME: makes sure that the toolchain has rustfmt or clippy.
rust_component() {
    cargo "${1/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$1" ||
        { say "error: install $1 with: rustup component add $1"; return 1; }
}
