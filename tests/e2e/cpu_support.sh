# What the CPU computes natively is said, and a CPU that lacks the instructions gets fp32 and a message, not a crash.
# oneDNN can be told to pretend.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
train() { # train <instruction set> <dtype>
    DNNL_MAX_CPU_ISA=$1 "$DARKNET" detector train tiny.data tiny.cfg -amp $2 -seed 1 > out 2> err || fail "$2 on $1: $(tail -1 err)"
}
train SSE41 bf16
grep -q '^amp: bf16 needs a CPU with AVX2 and F16C (this one: sse41)' err || fail 'no message that bf16 cannot run on sse41'
grep -q '^amp: summary dtype=fp32 steps=5 ' err || fail 'training did not go on in fp32'
if grep -q avx2 /proc/cpuinfo; then
    train AVX2 bf16
    grep -q '^amp: bf16 saves memory but no time here' err || fail 'no message that AVX2 only stores bf16'
    grep -q '^amp: summary dtype=bf16 steps=5 ' err || fail 'training in stored bf16 did not finish'
fi
