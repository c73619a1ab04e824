#!/bin/bash
# The GPU benchmark: whole training steps in stock Darknet, Darknet AMP and PyTorch, all on
# one device, in one run.
#
#   bench/gpu.sh [options]
#
#   --only NAME   one case, or several in quotes: yolov3 yolov3-b4 yolov3-b8, the same of yolov3-tiny,
#                 darknet53 resnet50 (yolov3 and yolov3-tiny: 416x416, 64 images; -b4, -b8: 4 passes of 4 or 8
#                 images to an update; classifiers: 256x256, 128 images). With AlexeyAB's Darknet: yolov4 and
#                 yolov4-tiny like these, and darknet53; the others can be named
#   --sides "…"   any of: stock-fp32 stock-tf32 fp32 fp16 bf16 torch-fp16 torch-bf16 (all), torch-f32
#                 torch-tf32, fp16-graphs bf16-graphs (graphs=1), torch-fp16-compiled torch-bf16-compiled
#                 (torch.compile, which takes minutes); of AlexeyAB's also stock-half, CUDNN_HALF=1 as
#                 shipped, and stock-half-scaled, the same with loss_scale=128 past its burn-in (all)
#   --seconds N   2        measured per process, after --warmup N (8) steps; medians over the steps
#   --phases N    5        steps after those, with waits, for the split into parts; --costs N (5) for casts
#                          and update
#   --limit N     510      seconds after which no further process is started; what is left out is said. The
#                          build counts
#   --build DIR   the build folder (build/cuda, build/cuda-alexeyab), which is brought up to date first;
#                 --no-build takes it as it is
#   --darknet DIR a checkout of pjreddie's Darknet or of AlexeyAB's, for its cfg folder, and for the build if
#                 that has none yet
#   --arch N      the architecture built for (the device's own: 90 for an H200)
#   --python P    the interpreter, with PyTorch if its columns are wanted (python3)
#   --half-tflops, --tf32-tflops, --fp32-tflops, --bandwidth (TB/s): the roofline's rates. An H200 and the
#                 H100s have defaults (gpu_table.py), and the table says where they are from
#   --json FILE   a line of JSON per process, the first one about the machine. Until the end they are in
#                 FILE.runs, which stays if the script is killed
#   --log FILE    what the programs print on stderr
#
# cuDNN is where CUDA is, in $CUDNN_ROOT, or the Python package nvidia.cudnn. Without a GPU: one line, and
# exit status 77. Loading of images is in no side's time; their copy to the device is.
# stock-fp32 is true fp32: DARKNET_MATH=fp32 (CUDNN_FMA_MATH), and NVIDIA_TF32_OVERRIDE=0, which
# cuDNN and cuBLAS obey.
set -eu

began=$SECONDS
bench=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$bench")
. "$root/scripts/gpu_machine.bash"

only= sides= seconds=2 warmup=8 phases=5 costs=5 limit=510 build= up_to_date= darknet= arch= \
    python=python3 json= log=
half_tflops= tf32_tflops= fp32_tflops= bandwidth=

fail() { echo "bench/gpu.sh: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
    case $1 in
        -h|--help) sed -n '2,/^set -eu/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        --no-build) up_to_date=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
        --only|--sides|--seconds|--warmup|--phases|--costs|--limit|--build|--darknet|--arch|--python|--json|\
        --log|--half-tflops|--tf32-tflops|--fp32-tflops|--bandwidth)
            name=${1#--}; printf -v "${name//-/_}" %s "$2" ;;
        *) fail "unknown option $1; --help lists them" ;;
    esac
    shift 2
done
for name in seconds warmup phases costs limit; do
    [[ ${!name} =~ ^[0-9]+$ ]] || fail "--$name needs a whole number, not ${!name}"
done
[ "$seconds" -gt 0 ] && [ "$warmup" -gt 0 ] || fail "--seconds and --warmup are 1 at least"

# case_of NAME: its .cfg, size, images of a pass, and passes of a step
case_of() {
    case $1 in
        yolov3|yolov3-tiny|yolov4|yolov4-tiny) echo "$1 416 64 1" ;;
        yolov[34]-b[48]|yolov[34]-tiny-b[48]) echo "${1%-b?} 416 ${1##*-b} 4" ;;
        darknet53|resnet50) echo "$1 256 128 1" ;;
        *) return 1 ;;
    esac
}
for name in $only; do case_of "$name" >/dev/null || fail "--only knows no case $name; --help lists them"; done
for side in $sides; do
    case $side in
        stock-fp32|stock-tf32|stock-half|stock-half-scaled|fp32|fp16|bf16) ;;
        torch-f32|torch-tf32|torch-fp16|torch-bf16|fp16-graphs|bf16-graphs) ;;
        torch-fp16-compiled|torch-bf16-compiled) ;;
        *) fail "--sides knows no $side; --help lists them" ;;
    esac
done
command -v "$python" >/dev/null ||
    fail "$python is not here; --python names another (plain Python makes the table)"

if ! find_gpu; then
    echo "bench/gpu.sh: nothing was measured: $gpu_lacks" >&2
    exit 77
fi
[ -z "$gpu_notes" ] || echo "bench/gpu.sh: $gpu_notes" >&2
architecture=${arch:-$architecture}

is_alexeyabs "$darknet" && build=${build:-$root/build/cuda-alexeyab}
build=${build:-$root/build/cuda}
source=${darknet:-$(sed -n 's/^DARKNET_SOURCE_DIR:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null || true)}
source=${source:-$build/darknet/source}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=${log:-$work/log}
: >"$log" || fail "cannot write $log"
runs=${json:+$json.runs}
runs=${runs:-$work/runs}
: >"$runs" || fail "cannot write $runs"

# ---- both sides ----

if [ -z "$up_to_date" ]; then
    [ -d "$source" ] || "$root/patches/fetch.sh" "$source" || fail "--darknet names a checkout of Darknet"
    lacks=$(lacking "$source")
    [ -z "$lacks" ] || fail "nothing was built, since this machine lacks: ${lacks//$'\n'/; }"
    echo "building the benchmark in $build" >&2
    { configure_for_gpu "$build" "$(cd "$source" && pwd)" -DDARKNET_AMP_BUILD_TESTS=OFF &&
      timeout "$limit" cmake --build "$build" --parallel "$cores" \
          --target bench-steps; } >"$work/build" 2>&1 ||
        { tail -n 20 "$work/build" >&2; fail "the build failed; its last lines are above"; }
fi
[ -x "$build/bin/bench-step" ] && [ -x "$build/bin/bench-step-stock" ] ||
    fail "$build has no bench-step and bench-step-stock"
grep -q '^DARKNET_AMP_CUDA:[A-Z]*=ON' "$build/CMakeCache.txt" ||
    fail "$build was not configured with DARKNET_AMP_CUDA=ON"

cfgs=$source/cfg
yolo=yolov3 classifiers="darknet53 resnet50" half= rules=pjreddie
is_alexeyabs "$source" &&
    yolo=yolov4 classifiers=darknet53 half="stock-half stock-half-scaled" rules=alexeyab
only=${only:-$yolo $yolo-tiny $yolo-b4 $yolo-b8 $yolo-tiny-b4 $yolo-tiny-b8 $classifiers}
sides=${sides:-stock-fp32 stock-tf32 $half fp32 fp16 bf16 torch-fp16 torch-bf16}
[[ $sides != *half* || -x $build/bin/bench-step-stock-half ]] ||
    fail "$build has no bench-step-stock-half: only AlexeyAB's Darknet knows CUDNN_HALF"
for name in $only; do
    read -r cfg size batch passes <<<"$(case_of "$name")"
    [ -r "$cfgs/$cfg.cfg" ] ||
        fail "cannot read $cfgs/$cfg.cfg; --darknet names a checkout of Darknet"
done

no_torch=
if [[ $sides == *torch* ]] && ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' \
    2>/dev/null; then
    no_torch="no PyTorch with CUDA for $python"
    echo "$no_torch: its columns say so" >&2
fi

# ---- running ----

export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$cores} CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export TMPDIR=${TMPDIR:-/tmp}
unset DARKNET_MATH NVIDIA_TF32_OVERRIDE

# time_left [MOST]: the seconds that a process started now may take
time_left() {
    local left=$((limit + 25 - (SECONDS - began))) most=${1:-90}
    echo $((left < most ? left : most))
}

# run SIDE CFG SIZE BATCH PASSES DATA: one process; prints its JSON line
run() {
    local side=$1 cfg=$2 data=$6 most=90 darknet_options
    local common=(--size "$3" --subdivisions "$5" --warmup "$warmup" --seconds "$seconds" --phases "$phases")
    darknet_options=("$cfg" --batch "$4" "${common[@]}")
    case $side in
        *-graphs)
            { cat "$cfg"; printf '\n[amp]\ngraphs=1\n'; } >"$work/graphs.cfg"
            darknet_options[0]=$work/graphs.cfg ;;
        *-compiled) common+=(--compile) most=200 ;;
    esac
    local bounded=(timeout -k 5 "$(time_left $most)") dtype=${side#torch-}
    dtype=${dtype%-*}
    case $side in
        stock-fp32) DARKNET_MATH=fp32 NVIDIA_TF32_OVERRIDE=0 "${bounded[@]}" "$build/bin/bench-step-stock" \
                        "${darknet_options[@]}" ;;
        stock-tf32) DARKNET_MATH=tf32 "${bounded[@]}" "$build/bin/bench-step-stock" "${darknet_options[@]}" ;;
        stock-half*) [ "$side" = stock-half ] || darknet_options+=(--loss-scale 128)
                     "${bounded[@]}" "$build/bin/bench-step-stock-half" "${darknet_options[@]}" ;;
        torch-*) "${bounded[@]}" "$python" "$bench/peer_torch.py" "$cfg" --device cuda --data "$data" \
                     --rules $rules --threads "$OMP_NUM_THREADS" --dtype "$dtype" "${common[@]}" ;;
        *) "${bounded[@]}" "$build/bin/bench-step" "${darknet_options[@]}" --costs "$costs" -amp "$dtype" ;;
    esac 2>"$work/stderr"
}

# math_of SIDE: which math this process said, or was told, that it uses
math_of() {
    case $1 in
        stock-half) echo "CUDNN_HALF=1 as shipped: loss_scale=1" ;;
        stock-half-scaled) echo "CUDNN_HALF=1, loss_scale=128" ;;
        stock-*) sed -n '/^DARKNET_MATH=/{s/"//g;p;q}' "$work/stderr" ;;
        torch-f32) echo "true fp32 (allow_tf32 off)" ;;
        torch-tf32) echo "fp32, TF32 allowed" ;;
        torch-*-compiled) echo "autocast ${1#torch-}, by torch.compile" ;;
        torch-*) echo "autocast ${1#torch-}" ;;
        fp32) echo "AMP fp32: true fp32" ;;
        *-graphs) echo "AMP ${1%-*}, graphs=1" ;;
        *) echo "AMP $1" ;;
    esac
}

# record CASE SIDE JSON-FIELDS
record() { printf '{"case": "%s", "name": "%s", %s}\n' "$1" "$2" "$3" >>"$runs"; }

measure() {
    local name=$1 cfg=$cfgs/$2.cfg size=$3 batch=$4 passes=$5 side line status data=$work/data
    local no_peer=$no_torch
    if [[ $sides == *torch* && -z $no_torch && $((SECONDS - began)) -lt $limit ]]; then
        timeout "$(time_left)" "$build/bin/bench-step-stock" "$cfg" --size "$size" --batch "$batch" \
            --dump "$data" 2>>"$log" ||
            no_peer="stock Darknet could not write its weights and images for it"
    fi
    for side in $sides; do
        if [[ $side == torch-* && -n $no_peer ]]; then
            record "$name" "$side" "\"error\": \"$no_peer\""
            continue
        fi
        if [ $((SECONDS - began)) -ge "$limit" ]; then
            record "$name" "$side" '"error": "left out: --limit was reached"'
            continue
        fi
        echo "$name, $side ($((SECONDS - began)) s)" >&2
        status=0
        line=$(run "$side" "$cfg" "$size" "$batch" "$passes" "$data") || status=$?
        { echo "== $name $side"; cat "$work/stderr"; } >>"$log"
        if [ "$status" = 0 ] && [ -n "$line" ]; then
            record "$name" "$side" "\"math\": \"$(math_of "$side")\", ${line:1:-1}"
        else
            local why=$(grep -v '^ *[0-9]* \|^$' "$work/stderr" | tail -n 1 | tr -cd '[:alnum:] .,:;()_=/-' |
                cut -c1-200)
            [ "$status" != 124 ] || why="stopped: it ran past its time"
            record "$name" "$side" "\"error\": \"failed ($status): $why\""
            echo "  failed: $why" >&2
        fi
    done
    rm -f "$data".*
}

{
    echo "gpu=$gpu_name"
    echo "driver=$driver"
    echo "capability=$capability"
    echo "memory=$gpu_memory"
    echo "cuda=$(cuda_version)"
    echo "cudnn=$(sed -n 's/^CUDNN_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt" | xargs -r readlink -f)"
    echo "cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cores CPUs"
    echo "load=$(cut -d' ' -f1-3 /proc/loadavg)"
    echo "clocks=$(nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader |
        head -n 1)"
    echo "others=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -c . || true)"
    echo "commit=$(commit_of_tree)"
    echo "date=$(date -u +%Y-%m-%dT%H:%MZ)"
    echo "cfgs=$cfgs"
    echo "half_tflops=$half_tflops"
    echo "tf32_tflops=$tf32_tflops"
    echo "fp32_tflops=$fp32_tflops"
    echo "bandwidth=$bandwidth"
} >"$work/machine"

for name in $only; do
    read -r cfg size batch passes <<<"$(case_of "$name")"
    echo "case_$name=$cfg $size $batch $passes" >>"$work/machine"
    measure "$name" "$cfg" "$size" "$batch" "$passes"
done
echo "took=$((SECONDS - began))" >>"$work/machine"

status=0
"$python" "$bench/gpu_table.py" "$work/machine" "$runs" ${json:+"$json"} || status=$?
[ -z "$json" ] || [ ! -s "$json" ] || rm -f "$runs"
exit $status
