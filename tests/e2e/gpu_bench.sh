# bench/gpu.sh from end to end where there is no GPU: nvidia-smi and the build's two programs are
# stand-ins, which print what bench/step.c prints on a GPU and note what they were asked for. No figure
# of theirs was measured. (e2e_gpu_rehearsal has all cases on the doubles of a GPU, where there is nvcc.)
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
command -v python3 > /dev/null || skip 'there is no python3, which makes the tables'
gpu_sh=$SOURCE_DIR/bench/gpu.sh
unset CUDNN_ROOT CUDA_VISIBLE_DEVICES

. "$SOURCE_DIR/tests/e2e/lib/gpu_stand_ins.bash"

# ---- where there is no GPU ----

mkdir none gpu
stand_in none/nvidia-smi <<< $'#!/bin/sh\necho "No devices were found"\nexit 6'
status=0
PATH=$PWD/none:$PATH bash "$gpu_sh" > said 2>&1 || status=$?
[ $status = 77 ] && [ "$(wc -l < said)" = 1 ] &&
    grep -q 'no GPU here: nvidia-smi says: No devices were found' said ||
    fail "without a GPU: status $status, $(cat said)"

# ---- a machine that looks as if ----

stand_in_nvidia_smi gpu
stand_in_python3 gpu
mkdir -p 'a build/bin'
stand_in_bench 'a build'
export CALLS=$PWD/calls
build='a build'
bench() { # bench <expected status> <arguments...>
    local expected=$1 status=0
    shift
    : > calls
    PATH=$PWD/gpu:$PATH bash "$gpu_sh" --no-build --build "$build" "$@" > said 2> err || status=$?
    [ $status = "$expected" ] || fail "gpu.sh $*: status $status, $(tail -n 3 err) $(tail -n 3 said)"
}
says() { grep -qE -- "$1" said || fail "the table has no '$1': $(cat said)"; }

# Every case, every side of Darknet's; PyTorch's say why they are not there. The roofline
# knows all .cfg files.
bench 0 --json 'the results.jsonl' --log log
[ "$(grep -c '^bench-step-stock .*MATH=fp32 TF32=0$' calls)" = 8 ] || fail "stock fp32: $(grep stock calls)"
[ "$(grep -c '^bench-step-stock .*MATH=tf32 TF32=$' calls)" = 8 ] || fail "stock TF32: $(grep stock calls)"
[ "$(grep -c '^bench-step .*--costs 5 -amp \(fp32\|fp16\|bf16\) MATH= TF32=$' calls)" = 24 ] ||
    fail "AMP: $(grep -v stock calls)"
holds calls '^bench-step .*/yolov3-tiny.cfg --batch 8 --size 416 --subdivisions 4 '
holds calls '^bench-step .*/darknet53.cfg --batch 128 --size 256 '
says '^NVIDIA H100 80GB HBM3 \(81559 MiB\), driver 570.1'
says "^roofline at \\(NVIDIA's data sheet, dense; not measured here\\): half 989.5 TFLOP/s"
says '^stock fp32 +40.00 +40.00 +39.50 +1600 +1.00 +1.00 +0.50 +3.00 +1.00 +5.00 +0.50 +4000 +1.00 +- '
says '^AMP bf16 +10.00 +10.00 +- +1600 ' # 4 times 4 images
says '^AMP fp16 +10.00 +10.00 +9.50 +6400 +4.00 +4.00 .* 1000 +0.25 +1.20 +2.00 +0.80 '
says '^PyTorch AMP fp16: no PyTorch with CUDA'
[ ! -e 'the results.jsonl.runs' ] || fail 'what was noted meanwhile is still there'
python3 - 'the results.jsonl' << 'END' || fail 'the JSON is not what was promised'
import json, sys
machine, *runs = [json.loads(line) for line in open(sys.argv[1])]
assert machine["machine"]["capability"] == "9.0" and machine["rates"]["bandwidth"] == 3.35, machine
assert len(runs) == 8 * 7 and sum("error" in r for r in runs) == 16, len(runs)
assert all(r["roof_percent"] > 0 for r in runs if "ms" in r)
END

# With graphs the .cfg is a copy that asks for them.
bench 0 --only yolov3-b4 --sides 'bf16 bf16-graphs torch-bf16-compiled'
holds calls '^bench-step [^ ]*/graphs.cfg .*-amp bf16 .*graphs=1'
! grep '^bench-step [^ ]*/yolov3.cfg .*graphs=1' calls || fail 'graphs where they were not asked for'

# An unknown GPU has no roofline.
GPU='NVIDIA Titan' bench 0 --only yolov3-tiny --sides 'fp16 bf16'
says '^roofline at \(none known of this GPU; not measured here\): half - TFLOP/s'
says '^AMP bf16 .* - +- +1 '
says "^where AMP bf16's step goes, 8.00 ms of operations on the GPU \\(of 10.00 ms a step\\)"
says '^convolutional: conv_forward +75 +6.00 +75.0 +3.00 +50 +300 +50$'
says '^between layers: cast +1 +2.00 +25.0 +1.00 +50 +0 +-$'

# One side fails: the others are there, and the line says why.
BROKEN=fp16 bench 0 --only darknet53 --sides 'stock-fp32 fp16 bf16' --json broken.jsonl
says '^AMP fp16: failed \(1\): amp: layer 3: out of memory'
says '^AMP bf16 +10.00'
# All fail, or the time is over: status 1, and a table that says so.
BROKEN=fp16 bench 1 --only darknet53 --sides fp16
bench 1 --only 'darknet53 yolov3' --limit 0
says '^stock fp32: left out: --limit was reached'
[ ! -s calls ] || fail "with no time left, it ran $(cat calls)"
# Killed half way, what was measured is on the disk.
(PATH=$PWD/gpu:$PATH SLOW=4 exec bash "$gpu_sh" --no-build --build 'a build' --only darknet53 \
    --json killed.jsonl > /dev/null 2>&1) &
until grep -qs '"name": "stock-fp32", "math"' killed.jsonl.runs; do
    kill -0 $! 2> /dev/null || fail 'until it was killed, it left nothing'
    sleep .1
done
kill $!
wait $! || true
[ ! -e killed.jsonl ] || fail 'it had ended before it was killed'

for wrong in '--colour' '--only yolov9' '--sides fp8' '--sides stock-half' '--seconds 0' '--limit x' \
    '--build nowhere'; do
    bench 1 $wrong
    [ "$(wc -l < err)" = 1 ] || fail "gpu.sh $wrong: $(cat err)"
done

# ---- AlexeyAB's Darknet ----

[ -n "$ALEXEYAB_TREE" ] || { echo "AlexeyAB's Darknet was left out: there is no tree of it"; exit 0; }
build='its build'
(DARKNET_TREE=$ALEXEYAB_TREE && stand_in_bench "$build")
bench 0 --only yolov4-tiny-b8
[ "$(grep -c '^bench-step-stock .*MATH=\(fp32 TF32=0\|tf32 TF32=\)$' calls)" = 2 ] ||
    fail "its stock: $(cat calls)"
[ "$(grep -c '^bench-step-stock-half .*--loss-scale 128 MATH=' calls)" = 1 ] ||
    fail "CUDNN_HALF: $(grep half calls)"
holds calls "^bench-step $ALEXEYAB_TREE/cfg/yolov4-tiny.cfg --batch 8 --size 416 --subdivisions 4 "
says '^stock CUDNN_HALF, loss_scale=128 +40.00 '
