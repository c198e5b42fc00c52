#!/bin/sh
# Run the README's two commands on a bare machine, as a user without root: Debian by debootstrap with
# make, git, python3, python3-venv and nothing else. `make test-bare` runs it, on what is committed.
#   SUITE=bookworm (Python 3.11) or bullseye (3.9)    TESTS= as for `make test`    MIRROR= debootstrap's
# Needs root on Linux, debootstrap, a network and 3 GB below build/, where the machine stays.
set -eu
suite=${SUITE:-bookworm}
root=$(cd "$(dirname "$0")/../.." && pwd)
machine=$root/build/bare-$suite
export TESTS="${TESTS:-}"

refuse() {
    echo "make test-bare: $1" >&2
    exit 2
}
[ "$(uname)" = Linux ] && [ "$(id -u)" = 0 ] || refuse "needs root on Linux"
PATH=$PATH:/usr/sbin:/sbin
command -v debootstrap >/dev/null || refuse "needs debootstrap: apt-get install debootstrap"

if [ ! -e "$machine" ]; then
    echo "Building $machine (a minute) ..."
    mkdir -p "$root/build"
    rm -rf "$machine.new"
    debootstrap --variant=minbase --include=make,git,python3,python3-venv "$suite" "$machine.new" \
        ${MIRROR:+"$MIRROR"} >"$machine.log" 2>&1 || refuse "debootstrap failed: see $machine.log"
    chroot "$machine.new" useradd --create-home --shell /bin/bash learner
    mv "$machine.new" "$machine"
fi
chroot "$machine" /sbin/ldconfig -p | grep -q -e libgomp -e libquadmath &&
    refuse "$machine has libgomp or libquadmath, so it is not bare any more: remove it"

# The network is this machine's: its names, certificates, proxy, and where its pip looks.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
    "${PIP_CERT:-}"; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$machine$file"
done
passed=TESTS
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_CERT PIP_DEFAULT_TIMEOUT \
    http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    ! printenv "$name" >/dev/null || passed=$passed,$name
done
project=$machine/home/learner/project
rm -rf "$project"
git clone --quiet --no-hardlinks "$root" "$project"
chroot "$machine" chown -R learner: /home/learner/project

# Processes and mounts end with this one.
as_learner() {
    unshare --mount --pid --fork --kill-child sh -euc '
        mount --rbind "$1" "$1" # a real machine has its / mounted
        mount -t proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount --rbind /dev "$1/dev"
        mount -t tmpfs tmpfs "$1/dev/shm"
        exec chroot "$1" su --login -w "$2" learner -c "cd project && $3"
    ' sh "$machine" "$passed" "$1"
}

status=0
report="== Debian $suite, $(chroot "$machine" python3 --version), a user without root"
for command in "make train" "make test"; do
    echo "== $command"
    begun=$(date +%s)
    { as_learner "$command" && echo 0 >"$machine/status" || echo $? >"$machine/status"; } 2>&1 |
        tee "$machine/output"
    ended=$(cat "$machine/status")
    [ "$ended" = 0 ] || status=1
    report="$report
$command: status $ended after $(($(date +%s) - begun)) s: $(tail -n 1 "$machine/output")"
done
echo "$report"
exit $status
