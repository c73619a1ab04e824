# The first minutes on a GPU, rehearsed on the doubles (tests/gpu/rehearse.sh): all of run.sh, selftest and
# the benchmark but what CTest runs by itself, and what they leave. Then machines that something is the matter
# with: each ends with one line that says what, where, and what to do, or goes on and says what does not
# hold.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
on_doubles=$BUILD_DIR/tests/darknet-on-doubles gpu_double=$BUILD_DIR/tests/darknet-gpu-double
[ -x "$on_doubles" ] && [ -x "$gpu_double" ] ||
    skip 'there are no doubles: they take the headers of CUDA and cuDNN'
command -v nvcc > /dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || skip 'there is no nvcc'
unset CUDNN_ROOT CUDA_VISIBLE_DEVICES DARKNET_SOURCE_DIR
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$PWD/cache AMP_DOUBLE_GPU_TAKES=20

rehearse() { # rehearse <expected status> <options...>
    local expected=$1 status=0
    shift
    rm -rf here
    QUICK=1 "$SOURCE_DIR/tests/gpu/rehearse.sh" here --from "$BUILD_DIR" --darknet "$DARKNET_TREE" "$@" \
        > said 2>&1 || status=$?
    [ $status = "$expected" ] || fail "rehearse.sh $*: status $status: $(tail -n 40 said)"
}

# ---- all of it ----
rehearse 0 --limit 36000
results=here/gpu/logs/results.jsonl summary=here/out/summary.txt
! grep '"kind":"stage"' $results | grep -v '"status":"passed"' |
    grep -v '"stage":"\(plans\|shapes\|compute-sanitizer\)","status":"skipped"' || fail 'the stages above'
[ "$(grep -c '"status":"passed"' $results)" -ge 28 ] || fail "$(cat $summary)"
holds $summary '^selftest  *passed'
[ "$(grep -c '^AMP \(fp32\|fp16\|bf16\)  .*[0-9]$' $summary)" = 22 ] || fail "tables: $(cat $summary)"
holds $summary '^convolutional: conv_forward  *[0-9]'
tar -xzf here/out/logs.tar.gz
[ "$(grep -c '^  \(fp32\|bf16\|fp16\)  *same ' logs/selftest.log)" = 9 ] || fail "$(cat logs/selftest.log)"
! grep -L '"losses"' logs/bench_*.jsonl | grep . || fail 'no losses in those'

# ---- machines that no program computes on ----
# ends <machine> <what is said, a pattern>: Darknet built for a GPU, and run.sh after its build
ends() {
    local machine=$1 said=$2 command
    for command in 'amp selftest' 'amp version' 'detector train tiny.data tiny.cfg' 'imtest dog.jpg'; do
        AMP_DOUBLE_GPU=$machine status_of "$gpu_double" $command
        [ $status = 1 ] && [ "$(cat out err | wc -l)" = 1 ] && grep -q "$said" err ||
            fail "$machine: $command: status $status: $(cat out err)"
    done
}
tiny_training
ends no-gpu 'cudaErrorNoDevice.*: check that nvidia-smi lists a GPU'
ends old-driver 'cudaErrorInsufficientDriver.*: install a newer driver (.*), or build with an older CUDA'
ends taken 'cudaErrorDevicesUnavailable.*: another program has exclusive use of the GPU; nvidia-smi shows it'
ends other-gpus 'cudaErrorNoKernelImageForDevice.*: this program was built for other GPUs'
# In run.sh, once.
AMP_DOUBLE_GPU=taken rehearse 1
grep -q '^the GPU  *failed .*cudaErrorDevicesUnavailable' $summary && [ "$(grep -c failed $summary)" = 2 ] &&
    ! grep -q '^selftest' $summary || fail "taken: $(cat $summary)"
for gpus in '-i 3' '-gpus 0,3'; do
    status_of "$gpu_double" amp selftest $gpus
    [ $status = 1 ] && grep -q 'cudaErrorInvalidDevice.*: -i and -gpus count from 0' err ||
        fail "$gpus: status $status: $(cat err)"
done
AMP_DOUBLE_GPU=no-gpu succeeds "$gpu_double" amp check tiny.cfg -i -1

# The scripts, before they build anything.
for case in 'no-gpu/No devices were found' \
    'no-nvml/Failed to initialize NVML: Driver/library version mismatch'; do
    AMP_DOUBLE_GPU=${case%%/*} rehearse 77
    [ "$(wc -l < said)" = 1 ] && grep -q "no GPU here: nvidia-smi says: ${case#*/}" said ||
        fail "$case: $(cat said)"
done
if ! command -v nvidia-smi > /dev/null; then
    status=0
    "$SOURCE_DIR/tests/gpu/run.sh" --build none > said 2>&1 || status=$?
    [ $status = 77 ] && [ "$(wc -l < said)" = 1 ] &&
        grep -q 'no GPU here: nvidia-smi, .*was not found' said ||
        fail "no nvidia-smi: status $status: $(cat said)"
fi
DRIVER_CUDA=9.2 rehearse 2
holds said "^  a driver for CUDA [0-9.]*, nvcc's version (driver 0.0 is for CUDA 9.2)"
AMP_DOUBLE_GPU=1.3 rehearse 2
holds said '^  an nvcc for compute capability 1.3'

# ---- machines that it computes on, with something to say ----
AMP_DOUBLE_GPU=full rehearse 0 --limit 0
holds $summary '^Note: another program is on this GPU .*: 2048 MiB of 81920 MiB are free'
AMP_DOUBLE_GPU=mig rehearse 0 --limit 0
holds $summary '^Note: MIG is enabled: CUDA computes on a part of this GPU'
AMP_DOUBLE_GPU=mig "$on_doubles" amp version > out 2> err
holds out 'MIG 1g.10gb (compute capability 9.0, 9984 MiB)'
AMP_DOUBLE_GPU=6.1 "$on_doubles" amp version > out 2> err
tr -s ' \n' ' ' < out | grep -q 'bf16 needs a GPU of compute capability 8.0 .*: set dtype=fp16 or dtype=' ||
    fail "6.1: $(cat out)"
AMP_DOUBLE_GPU=7.5 succeeds "$on_doubles" amp selftest
[ "$(grep -c '^  bf16   not compared  *bf16 needs a GPU of compute capability 8.0' out)" = 3 ] &&
    [ "$(grep -c '^  fp16   same ' out)" = 3 ] || fail "7.5: $(cat out)"
# What needs more than the 2 GB that others leave is refused before anything is trained, and leaves nothing.
layers > large.cfg << 'END'
[net] batch=64 subdivisions=1 width=128 height=128 channels=3 max_batches=2
[convolutional] batch_normalize=1 filters=512 size=1 stride=1 activation=leaky
[convolutional] batch_normalize=1 filters=512 size=1 stride=1 activation=leaky
[convolutional] filters=30 size=1 stride=1 activation=linear
[yolo] anchors=4,5,8,8,12,14 mask=0,1,2 classes=5 num=3
END
AMP_DOUBLE_GPU=full AMP_SELF_CHECK=0 AMP_CUDA_TUNE=0 \
    status_of timeout 300 "$on_doubles" detector train tiny.data large.cfg -amp fp16
[ $status = 1 ] && grep -v '^doubles: ' err | tail -n 1 |
    grep -q 'no memory for [0-9]* MiB of .*: [0-9]* of 81920 MiB of GPU 0 are free; use about [0-9]* times' &&
    [ -z "$(ls backup)" ] || fail "full: status $status: $(tail -n 3 err)"
echo 'gpu_rehearsal: ok'
