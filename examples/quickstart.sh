#!/usr/bin/env bash
# From a fresh clone to a detector trained in three precisions, with one command and one report at the end.
#
# usage: examples/quickstart.sh [options]
#   --no-install     install nothing: list the missing Debian packages, and stop if there are any
#   --dtypes LIST    precisions to train in, of stock, fp32, bf16, fp16 (default fp32,bf16,fp16)
#   --seeds K        trainings in each precision (default 1)
#   --work DIR       where pictures, weights and the report go (default build/quickstart in the repository)
#   --help           this text
#
# It downloads Darknet, builds it with the plugin, draws the shapes data set, and lets `darknet amp compare`
# train cfg/shapes.cfg in each precision from the same weights on the same pictures. A second run downloads,
# builds and trains only what is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cfg=$root/cfg/shapes.cfg
build=$root/build/cpu
darknet=$build/bin/darknet

work=$root/build/quickstart
dtypes=fp32,bf16,fp16
seeds=1
install=yes

usage() { sed -n '/^# usage/,/^# *--help/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

die() {
    echo "quickstart: $*" >&2
    exit 1
}

read_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --no-install) install=no ;;
            --help | -h) usage; exit 0 ;;
            --dtypes | --seeds | --work)
                [ $# -gt 1 ] || die "$1 needs a value; --help shows the options"
                case $1 in
                    --dtypes) dtypes=$2 ;;
                    --seeds) seeds=$2 ;;
                    --work) work=$2 ;;
                esac
                shift ;;
            *) die "unknown option $1; --help lists the options" ;;
        esac
        shift
    done
    mkdir -p "$work" || die "cannot make the folder $work"
    work=$(cd "$work" && pwd)
}

say() { printf '\n== %s\n' "$*"; }

# logged <log> <command...>: runs it quietly; on failure shows the end of what it said
logged() {
    local log=$1
    shift
    "$@" > "$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die "failed: $*
  full output: $log"
    }
}

build_darknet() {
    local configured=()
    # The tests need CMocka, and this does not: a build folder made here is made without them.
    [ -f "$build/Makefile" ] || [ -f "$build/build.ninja" ] || configured=(-DDARKNET_AMP_BUILD_TESTS=OFF)
    cd "$root"
    logged "$work/configure.log" cmake --preset cpu ${configured[@]+"${configured[@]}"}
    logged "$work/build.log" cmake --build "$build" --target darknet shapes -- -j"$(nproc)"
    echo "$darknet"
}

draw_shapes() {
    local wanted='# shapes --train 800 --valid 200 --size 96 --seed 1'
    if [ "$(head -n 1 "$work/shapes/shapes.data" 2> /dev/null)" = "$wanted" ] &&
        grep -qxF "valid = $work/shapes/valid.txt" "$work/shapes/shapes.data"; then
        echo "$work/shapes is there already"
    else
        "$build/bin/shapes" --out "$work/shapes" --train 800 --valid 200 --size 96 --seed 1 ||
            die 'no data set: see above; --work names another folder'
    fi
}

read_arguments "$@"

say '1 of 4: packages'
if [ $install = no ]; then
    "$root/scripts/dependencies.sh" --no-install || exit 1
else
    "$root/scripts/dependencies.sh" || exit 1
fi
echo 'nothing is missing'

say '2 of 4: Darknet, patched and built with the plugin (a minute or two the first time)'
build_darknet

say '3 of 4: the shapes data set'
draw_shapes

say "4 of 4: training cfg/shapes.cfg in $dtypes"
exec "$darknet" amp compare "$work/shapes/shapes.data" "$cfg" -dtypes "$dtypes" -seeds "$seeds" \
    -report "$work/report"
