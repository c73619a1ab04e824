#!/bin/sh
# What Darknet AMP needs on a Debian or Ubuntu machine: looks for each thing, installs the
# packages of what lacks.
#
# usage: scripts/dependencies.sh [--no-install] [--tests] [--opencv]
#   --no-install  installs nothing: lists what lacks and ends with status 1 if something does
#   --tests       also what only the tests need
#   --opencv      also OpenCV, for OPENCV=1; it is large, and tests that need it skip themselves without
#
# A thing counts as there when it can be used, whoever installed it; so a machine
# without apt can pass as well.
set -eu

usage() { sed -n 's/^# \{0,1\}//; 5,8p' "$0"; }

install=yes tests=no opencv=no
for argument in "$@"; do
    case $argument in
        --no-install) install=no ;;
        --tests) tests=yes ;;
        --opencv) opencv=yes ;;
        -h|--help) usage; exit 0 ;;
        *) echo "dependencies.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
    esac
done

has_command() { command -v "$1" >/dev/null 2>&1; }
# has_headers <header...>: all of them, included in this order, can be compiled against
has_headers() { has_command gcc && printf '#include <%s>\n' "$@" | gcc -E -x c - >/dev/null 2>&1; }

has_patch() { has_command patch || has_command git; }
has_opencv() { pkg-config --exists opencv4 2>/dev/null || pkg-config --exists opencv 2>/dev/null; }
has_browser() { has_command chromium || has_command chromium-browser || has_command google-chrome; }

missing=
# needs <Debian package> <what it is for> <test that says it is there...>
needs() {
    package=$1 purpose=$2
    shift 2
    "$@" && return
    echo "  $package: $purpose"
    missing="$missing $package"
}

look() {
    missing=
    needs gcc 'the C compiler' has_command gcc
    needs libc6-dev "the C library's headers" has_headers stdlib.h
    needs g++ 'the C++ compiler' has_command g++
    needs make 'runs the build' has_command make
    needs cmake 'configures the build' has_command cmake
    needs patch "applies patches/ to Darknet's source (git would do)" has_patch
    needs xz-utils "unpacks Debian's source of Darknet" has_command xz
    needs libdnnl-dev 'oneDNN, which the CPU backend computes with' has_headers dnnl.h
    needs libjpeg-dev 'libjpeg-turbo, which decodes JPEGs in half the time' \
        has_headers stdio.h jpeglib.h
    if [ $opencv = yes ]; then
        needs libopencv-dev 'OpenCV, which Darknet reads and changes images with (OPENCV=1)' has_opencv
        needs pkg-config "tells Darknet's Makefile where OpenCV is" has_command pkg-config
    fi
    if [ $tests = yes ]; then
        needs libcmocka-dev 'CMocka, which the unit tests are written with' \
            has_headers stdarg.h stddef.h stdint.h setjmp.h cmocka.h
        needs chromium 'a test looks at the HTML report in a browser' has_browser
        needs python3 'tests read JSON with it' has_command python3
        needs coccinelle 'a test places hooks in a changed Darknet (apply.sh --adapt)' has_command spatch
        needs libopenmpi-dev 'tests train with several ranks, and compile what joins them' has_command mpicc
        needs openmpi-bin 'tests train with several ranks, which mpirun starts' has_command mpirun
        needs pkg-config 'a test compiles against an installed Darknet AMP' has_command pkg-config
        if has_command dpkg; then
            needs dpkg-dev 'a test makes the Debian package' has_command dpkg-shlibdeps
            needs file 'tells the programs in the Debian package' has_command file
        fi
    fi
}

report=$(mktemp)
trap 'rm -f "$report"' EXIT
look > "$report"
[ -n "$missing" ] || exit 0

echo 'Darknet AMP lacks these Debian packages:'
cat "$report"
by_hand="apt-get install --no-install-recommends$missing"
if [ $install = no ]; then
    echo "Install them with: $by_hand"
    exit 1
fi
if ! has_command apt-get; then
    echo "dependencies.sh: apt-get is missing; install the listed packages by other means" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
    if ! has_command sudo; then
        echo "dependencies.sh: neither root nor sudo; ask an administrator for: $by_hand" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "Installing:$missing"
$as_root env DEBIAN_FRONTEND=noninteractive sh -c '
    set -e
    # A missing or outdated package index is the usual reason for the first attempt to fail.
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 || {
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    }' sh $missing || {
    echo "dependencies.sh: apt-get could not install them; try: $by_hand" >&2
    exit 1
}
look > "$report"
if [ -n "$missing" ]; then
    echo "dependencies.sh: installed, but these cannot be used:$missing" >&2
    exit 1
fi
