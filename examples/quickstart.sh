#!/usr/bin/env bash
# From a fresh clone to a detector trained in three precisions, with one command and one table at the end.
#
# usage: examples/quickstart.sh [options]
#   --no-install     install nothing: list the Debian packages that lack, and stop if any does
#   --dtypes LIST    what to train with, of fp32, bf16, fp16 (default fp32,bf16,fp16)
#   --seed N         initial weights and order of the pictures, the same for every dtype (default 1)
#   --retrain        train again what an earlier run has trained with the same cfg, seed, data and program
#   --work DIR       where pictures, weights and logs go (default build/quickstart in the repository)
#   --help           this text
#
# It gets and builds Darknet with the plugin, draws the shapes data set, trains cfg/shapes.cfg once per dtype
# from the same initial weights on the same pictures, and measures each on the validation pictures. A second
# run fetches, builds and trains nothing that is there already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cfg=$root/cfg/shapes.cfg
build=$root/build/cpu
darknet=$build/bin/darknet

work=$root/build/quickstart
dtypes=fp32,bf16,fp16
seed=1
install=yes
retrain=no
trainer= # process id of the training under way

usage() { sed -n '/^# usage/,/^# *--help/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

die() {
    echo "quickstart: $*" >&2
    exit 1
}

read_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --no-install) install=no ;;
            --retrain) retrain=yes ;;
            --help | -h) usage; exit 0 ;;
            --dtypes | --seed | --work)
                [ $# -gt 1 ] || die "$1 needs a value; --help shows the options"
                case $1 in
                    --dtypes) dtypes=$2 ;;
                    --seed) seed=$2 ;;
                    --work) work=$2 ;;
                esac
                shift ;;
            *) die "unknown option $1; --help lists the options" ;;
        esac
        shift
    done
    [[ $seed =~ ^[0-9]{1,9}$ ]] || die "--seed $seed: expected a whole number"
    [[ $dtypes =~ ^(fp32|bf16|fp16)(,(fp32|bf16|fp16))*$ ]] ||
        die "--dtypes $dtypes: expected fp32, bf16 and fp16, with commas between"
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

# What a result depends on; it is reused only while this is the same.
fingerprint() { # fingerprint <dtype>
    echo "$1 seed $seed $(cat "$cfg" "$work/shapes/shapes.data" "$darknet" "$build"/lib/libdarknet.so |
        cksum)"
}

# One line that moves on a terminal; a line now and then in a log.
show_progress() { # show_progress <dtype> <training log> <steps in all>
    local line step loss started=$SECONDS shown=0
    while kill -0 "$trainer" 2> /dev/null; do
        sleep 0.5
        line=$(tail -c 8192 "$2" | grep -aE '^[0-9]+: .* avg, ' | tail -n 1) || continue
        step=${line%%:*}
        loss=${line%% avg,*}
        loss=${loss##*, }
        if [ -t 1 ]; then
            printf '\r  %s: step %d of %d, loss %s, %d s \033[K' "$1" "$step" "$3" \
                "$loss" $((SECONDS - started))
        elif [ $((step * 4 / $3)) -gt $shown ]; then
            shown=$((step * 4 / $3))
            printf '  %s: step %d of %d, loss %s, %d s\n' "$1" "$step" "$3" "$loss" $((SECONDS - started))
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
}

train() { # train <dtype> <folder>: leaves shapes_final.weights, train.out and train.err
    local steps
    steps=$(sed -n 's/^max_batches *= *//p' "$cfg")
    rm -rf "$2"
    mkdir -p "$2"
    { grep -v '^backup' "$work/shapes/shapes.data"; echo "backup = $2"; } > "$2/shapes.data"
    "$darknet" detector train "$2/shapes.data" "$cfg" -amp "$1" -seed "$seed" \
        > "$2/train.out" 2> "$2/train.err" &
    trainer=$!
    show_progress "$1" "$2/train.out" "$steps"
    if ! wait "$trainer"; then
        trainer=
        tail -n 5 "$2/train.err" >&2
        die "training with $1 failed; full output: $2/train.out and $2/train.err"
    fi
    trainer=
    [ -f "$2/shapes_final.weights" ] || die "training with $1 left no weights; see $2/train.err"
    rm -f "$2"/shapes_[0-9]*.weights* "$2"/shapes.backup* # Darknet's snapshots on the way
}

measure() { # measure <dtype> <folder>: writes the line of the table to result
    local loss map summary
    "$darknet" detector map "$2/shapes.data" "$cfg" "$2/shapes_final.weights" -amp "$1" \
        > "$2/map.out" 2> "$2/map.err" || {
        tail -n 3 "$2/map.err" >&2
        die "measuring $1 failed; full output: $2/map.err"
    }
    loss=$(grep -aE '^[0-9]+: .* avg, ' "$2/train.out" | tail -n 1 | sed 's/ avg,.*//; s/.*, //')
    map=$(sed -n 's/.*(mAP@0.50) = .*, or \([0-9.]*\) %.*/\1/p' "$2/map.out")
    summary=$(grep -a '^amp: summary ' "$2/train.err" | tail -n 1) || true
    [ -n "$loss" ] && [ -n "$map" ] && [ -n "$summary" ] ||
        die "cannot find loss, mAP and summary in the logs in $2; please report it"
    value() { sed -n "s/.* $1=\([^ ]*\).*/\1/p" <<< "$summary"; }
    printf '%-6s %10.3f %9s %% %10s %12s MB %8s %8s\n' "$1" "$loss" "$map" "$(value images_per_second)" \
        "$(value peak_rss_mb)" "$(value scale)" "$(value skipped)" > "$2/result"
    fingerprint "$1" > "$2/fingerprint"
}

train_and_measure() { # train_and_measure <dtype>
    local folder=$work/$1-seed$seed
    if [ "$retrain" = no ] && [ -f "$folder/result" ] &&
        [ "$(cat "$folder/fingerprint" 2> /dev/null)" = "$(fingerprint "$1")" ]; then
        echo "  $1: trained by an earlier run (--retrain trains again)"
        return
    fi
    train "$1" "$folder"
    measure "$1" "$folder"
    grep -ahE '^amp: (fp32|bf16|fp16) on ' "$folder/train.err" | head -n 1 | sed 's/^amp:/ /' || true
}

show_table() {
    printf '%-6s %10s %11s %10s %15s %8s %8s\n' dtype 'final loss' mAP@0.5 images/s 'peak memory' \
        scale skipped
    for dtype in ${dtypes//,/ }; do
        cat "$work/$dtype-seed$seed/result"
    done
}

stop_trainer() { [ -z "$trainer" ] || kill "$trainer" 2> /dev/null || true; }

read_arguments "$@"
trap stop_trainer EXIT
trap 'exit 130' INT TERM

say '1 of 5: packages'
if [ $install = no ]; then
    "$root/scripts/dependencies.sh" --no-install || exit 1
else
    "$root/scripts/dependencies.sh" || exit 1
fi
echo 'nothing lacks'

say '2 of 5: Darknet, patched and built with the plugin (a minute or two the first time)'
build_darknet

say '3 of 5: the shapes data set'
draw_shapes

say "4 of 5: training cfg/shapes.cfg with ${dtypes//,/, }, seed $seed"
for dtype in ${dtypes//,/ }; do
    train_and_measure "$dtype"
done

say '5 of 5: the results, on the 200 validation pictures'
show_table
echo
echo "Weights and logs: $work, a folder per dtype. All in all: $SECONDS s."
