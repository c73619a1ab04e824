#!/bin/bash
# Runs the tests on a bare Debian, as root: makes a system by debootstrap, clones what is committed here into
# it and runs tests/run.sh there, which installs what it needs.
#
#   tests/debian.sh SUITE [arguments for tests/run.sh]
#
#   SUITE   bookworm (Debian 12: gcc 12, oneDNN 2.6) or trixie (Debian 13: gcc 14, oneDNN 3.7)
#
# Ends with the status of tests/run.sh. Takes debootstrap, root, 4 GiB of disk and a mirror of Debian in apt's
# sources.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
    '' | -*) sed -n '2,/^set -eu/s/^# \{0,1\}//p' tests/debian.sh; exit 2 ;;
esac
. tests/debian/chroot.bash
make_chroot "$1"
git clone -q --no-hardlinks . "$chroot/root/darknet-amp"
shift
in_chroot darknet-amp/tests/run.sh "$@"
