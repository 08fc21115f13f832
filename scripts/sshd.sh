#!/usr/bin/env bash
# scripts/sshd.sh COMMAND...: runs a command beside an OpenSSH server on 127.0.0.1 that has keys and
# configuration of its own, and ends the server afterwards. The command finds in its environment:
#   LONGHAUL_SSHD_PORT    where the server listens
#   LONGHAUL_SSHD_USER    who may log in (whoever runs this script)
#   LONGHAUL_SSHD_KEY     private key that the server accepts
#   LONGHAUL_KNOWN_HOSTS  known_hosts file with the server's key
#   LONGHAUL_SSH_CONFIG   with `ssh -F`, makes the server known as host longhaul-test
#   LONGHAUL_SSHD_PID     process of the server
#   LONGHAUL_SSHD_LOG     what the server has to say
#   LONGHAUL_SFTP_SERVER  path of sftp-server, for use without SSH
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
(($#)) || { say "usage: scripts/sshd.sh COMMAND..."; exit 2; }

need sshd openssh-server
need ssh openssh-client
sshd=$(PATH="$PATH:/usr/sbin" command -v sshd) # it insists on being called by its full path
LONGHAUL_SFTP_SERVER=
for path in /usr/lib/openssh /usr/lib/ssh /usr/libexec/openssh /usr/libexec; do
    [[ ! -x $path/sftp-server ]] || { LONGHAUL_SFTP_SERVER=$path/sftp-server; break; }
done
[[ -n $LONGHAUL_SFTP_SERVER ]] || { say "error: sftp-server is not where it was looked for"; exit 1; }
((EUID != 0)) || mkdir -p /run/sshd # where a server run by root drops its privileges

dir=$(mktemp -d)
pid=
clean_up() {
    if [[ -n $pid ]]; then kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; fi
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

ssh-keygen -q -t ed25519 -N '' -C longhaul-host -f "$dir/host_key"
ssh-keygen -q -t ed25519 -N '' -C longhaul-user -f "$dir/user_key"
cat >"$dir/sshd_config" <<CONFIG
ListenAddress 127.0.0.1
HostKey $dir/host_key
PidFile none
AuthorizedKeysFile $dir/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
MaxStartups 100
MaxSessions 100
Subsystem sftp $LONGHAUL_SFTP_SERVER
CONFIG

log=$dir/sshd.log
for _ in {1..20}; do
    port=$((20000 + RANDOM % 12000)) # below the ports that Linux gives to outgoing connections
    "$sshd" -D -f "$dir/sshd_config" -p "$port" -E "$log" &
    pid=$!
    for _ in {1..100}; do
        grep -q "^Server listening" "$log" 2>/dev/null && break 2
        kill -0 "$pid" 2>/dev/null || break # the port is taken: try another one
        sleep 0.1
    done
    kill "$pid" 2>/dev/null || true
    pid=
done
[[ -n $pid ]] || { say "error: sshd does not start:"; tail -n 20 "$log" >&2; exit 1; }
echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$dir/host_key.pub")" >"$dir/known_hosts"
cat >"$dir/ssh_config" <<CONFIG
Host longhaul-test
    HostName 127.0.0.1
    HostKeyAlias [127.0.0.1]:$port
    Port $port
    User $(id -un)
    IdentityFile $dir/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $dir/known_hosts
    BatchMode yes
CONFIG

export LONGHAUL_SFTP_SERVER
export LONGHAUL_SSHD_PORT=$port
export LONGHAUL_SSHD_USER=$(id -un)
export LONGHAUL_SSHD_KEY=$dir/user_key
export LONGHAUL_KNOWN_HOSTS=$dir/known_hosts
export LONGHAUL_SSH_CONFIG=$dir/ssh_config
export LONGHAUL_SSHD_PID=$pid
export LONGHAUL_SSHD_LOG=$log
code=0
"$@" || code=$?
((code == 0)) || { say "the server's log ends with:"; tail -n 20 "$log" >&2; }
exit "$code"
