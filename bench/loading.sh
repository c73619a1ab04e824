#!/bin/bash
# The benchmark of loading: processor time (user and system) for an image that `detector train` loads, for
# photos of 0.3, 2 and 12 million pixels.
#
#   bench/loading.sh [--rounds N] [--images N] [--build DIR] [--python PYTHON] [NAME=PROGRAM ...]
#
#   --rounds N    measurements of each side, in turns (5); medians are printed
#   --images N    photos of a size (24)
#   --build DIR   the build folder (build/cpu), which is brought up to date first, with the benchmarks
#   --python PYTHON  an interpreter that has numpy, and cv2 or PIL (packages opencv-python-headless, pillow):
#                 they load the same photos with the same changes (load_image.py), without a network
#   NAME=PROGRAM  another darknet to measure beside this one, with -amp fp32
#
# Each side trains a network that takes next to nothing, 416x416 with all augmentations of colour and place,
# for one step and for five. The difference, divided by the images of four steps, has no start of the program
# in it; it has that small network's arithmetic, in stock Darknet's code on stock's side. "cached" is AMP with
# cache=disk, filled by an earlier training.
#
# Then, as beside a fast GPU: images a second of a training of that network, on 1, 2, 4, ... cores. This is
# the one part that other programs disturb: begin it with `chrt -r 1` on a busy machine.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
rounds=5 images=24 build=$root/build/cpu python= others=()
fail() { echo "bench/loading.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) sed -n '2,/^set -eu/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        --rounds | --images | --build | --python)
            [ $# -gt 1 ] || fail "$1 needs a value"
            declare "${1#--}=$2"
            shift ;;
        *=*) others+=("$1") ;;
        *) fail "unknown option $1; --help lists them" ;;
    esac
    shift
done
cmake -S "$root" -B "$build" -DDARKNET_AMP_BUILD_BENCH=ON -DDARKNET_AMP_BUILD_STOCK=ON > /dev/null
cmake --build "$build" -- -j"$(nproc)" darknet darknet-stock bench-photos > /dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir backup
echo disc > names
network() { # network <steps>
    printf '[net]\nbatch=%d\nwidth=416\nheight=416\nchannels=3\nlearning_rate=.0001\nmax_batches=%d\n' \
        "$images" "$1"
    printf 'saturation=1.5\nexposure=1.5\nhue=.1\n[convolutional]\nfilters=2\nsize=3\nstride=2\npad=1\n'
    printf 'activation=leaky\n[maxpool]\nsize=8\nstride=8\n[convolutional]\nfilters=18\nsize=1\nstride=1\n'
    printf 'activation=linear\n[yolo]\nmask=0,1,2\nanchors=10,10,20,20,30,30\nclasses=1\nnum=3\njitter=.3\n'
}
network 1 > one.cfg
network 5 > five.cfg
network 10 > many.cfg
for size in 640x480 1920x1080 4000x3000; do
    mkdir $size
    "$build/bin/bench-photos" $size "${size%x*}" "${size#*x}" "$images"
    for i in $(seq 0 $((images - 1))); do echo "$work/$size/$i.jpg"; done > $size.txt
    printf 'classes=1\ntrain=%s.txt\nvalid=%s.txt\nnames=names\nbackup=backup\n' $size $size > $size.data
done

seconds() { # seconds <program> <.cfg> <.data> [options]
    local program=$1
    shift
    { TIMEFORMAT='%U %S'; time "$program" detector train "$2" "$1" "${@:3}" > log 2>&1; } 2>&1 |
        awk '{ print $1 + $2 }'
    grep -q 'Saving weights' log || fail "$program did not train: $(tail -n 3 log)"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
side() { # side <program> <size> [options]: milliseconds an image, in one more measurement
    local one five
    one=$(seconds "$1" one.cfg "$2.data" "${@:3}")
    five=$(seconds "$1" five.cfg "$2.data" "${@:3}")
    awk -v a="$one" -v b="$five" -v n="$images" 'BEGIN { print (b - a) / (4 * n) * 1000 }'
}
python_side() { # python_side <module> <size>: as side
    [ -z "$python" ] || ! "$python" -c "import $1" 2> /dev/null || "$python" "$root/bench/load_image.py" \
        $1 $2.txt
}
speed() { # speed <cores> <size>: images a second
    rm -f steps.csv
    taskset -c "$(taskset -cp $$ | sed 's/.*: //' | expand_cores | head -n "$1" | paste -sd,)" \
        "$build/bin/darknet" detector train "$2.data" many.cfg -seed 3 -amp fp32 -log steps.csv > log 2>&1 ||
        fail "the program did not train: $(tail -n 3 log)"
    awk -F, -v n="$images" 'NR > 3 { images += n; seconds += $9 + $10 } END { print images / seconds }' \
        steps.csv
}
expand_cores() { # 0-2,4: a line for each
    tr , '\n' | awk -F- '{ for (i = $1; i <= $NF; i++) print i }'
}
"$build/bin/darknet" amp version | grep -E 'CPU|JPEGs'
echo "milliseconds of processor time an image: stock, Darknet AMP, cached${others[*]:+, ${others[*]%%=*}}" \
    "${python:+and cv2, PIL}"
network 12 > twelve.cfg
for size in 640x480 1920x1080 4000x3000; do
    seconds "$build/bin/darknet" twelve.cfg $size.data -seed 3 -amp fp32 -cache disk > filled
    for round in $(seq "$rounds"); do
        side "$build/bin/darknet-stock" $size >> $size.stock
        side "$build/bin/darknet" $size -seed 3 -amp fp32 >> $size.amp
        side "$build/bin/darknet" $size -seed 3 -amp fp32 -cache disk >> $size.cached
        for other in ${others[@]+"${others[@]}"}; do
            side "${other#*=}" $size -seed 3 -amp fp32 >> "$size.${other%%=*}"
        done
        for module in cv2 PIL; do python_side $module $size >> $size.$module; done
    done
    for name in stock amp cached ${others[@]+"${others[@]%%=*}"} cv2 PIL; do
        printf '%s ' "$(median < "$size.$name")"
    done |
        awk -v size=$size '{ printf "%s:", size; for (i = 1; i <= NF; i++) printf "  %.1f", $i; print "" }'
done
echo 'images a second of a network that does almost nothing, by cores'
for size in 640x480 1920x1080 4000x3000; do
    printf '%s:' $size
    for ((cores = 1; cores <= $(nproc); cores *= 2)); do
        for round in $(seq "$rounds"); do speed $cores $size; done | median |
            awk -v cores=$cores '{ printf "  %d: %.0f", cores, $1 }'
    done
    echo
done
