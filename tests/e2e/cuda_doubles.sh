# All of `darknet detector train` through the CUDA backend's own sources, on the CPU, over the doubles
# of CUDA, cuDNN and cuBLAS: the losses are those of the CPU's backend, up to rounding, and the
# doubles saw nothing wrong.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
on_doubles=$BUILD_DIR/tests/darknet-on-doubles
[ -x "$on_doubles" ] || skip 'there is no darknet-on-doubles: it takes the headers of CUDA and cuDNN'
export OMP_NUM_THREADS=1
tiny_training
# As it stands, a rounding error grows by more than ten at each of its steps.
sed -i 's/^learning_rate=.*/learning_rate=0.001/; s/^burn_in=.*/burn_in=1/' tiny.cfg
sed -i 's/^steps=.*/steps=100/; s/^max_batches=.*/max_batches=8/' tiny.cfg

train() { # train <name> <program> <arguments...>
    local name=$1
    shift
    "$@" > $name.out 2> $name.err || fail "$*: $(tail -n 3 $name.err)"
    sed -n 's/^[0-9]*: \([0-9.]*\), .* avg, .*/\1/p' $name.out > $name.losses
}

on_both() { # on_both <dtype> <how far losses may differ, as a part of them>
    train $1.cuda "$on_doubles" detector train tiny.data tiny.cfg -amp $1 -seed 7
    train $1.cpu "$DARKNET" detector train tiny.data tiny.cfg -amp $1 -seed 7
    holds $1.cuda.err "^amp: $1 on GPU 0: "
    holds $1.cuda.err '^doubles: [1-9][0-9]* kernels, [1-9][0-9]* convolutions, .* 0 faults$'
    [ "$(wc -l < $1.cuda.losses)" = 8 ] || fail "$1: 8 steps gave $(wc -l < $1.cuda.losses) losses"
    paste $1.cuda.losses $1.cpu.losses | awk -v most=$2 '
        { away = ($1 - $2) / $2; if (away < 0) away = -away }
        !(away <= most) { print "step " NR ": " $1 ", on the CPU " $2; bad = 1 }
        END { exit bad }' || fail "$1: the losses differ"
}

sed 's/^\[net\]$/[net]\nloss_scale=128/' tiny.cfg > scaled.cfg
cp tiny.cfg dynamic.cfg
mv scaled.cfg tiny.cfg
on_both fp32 1e-5
on_both fp16 0.01
on_both bf16 0.02

# The scale is too high at first: the steps that overflow are skipped, and those after are good.
train dynamic "$on_doubles" detector train tiny.data dynamic.cfg -amp fp16 -seed 7
holds dynamic.err '^amp: summary dtype=fp16 steps=8 skipped=[1-9]'

# -fit first makes a network for which no convolution is timed. The training's own are timed as without it.
convolutions() { sed -n 's/^doubles: .* \([0-9]*\) convolutions, .*/\1/p' $1.err; }
train fit "$on_doubles" detector train tiny.data dynamic.cfg -amp fp16 -seed 7 -fit
holds fit.err "^amp: -fit: the training fits with the .cfg's settings"
[ "$(convolutions fit)" = "$(convolutions dynamic)" ] ||
    fail "-fit: $(convolutions fit) convolutions instead of $(convolutions dynamic)"

# A bug report names the GPU, CUDA, its driver and the libraries.
succeeds "$on_doubles" amp version
tr '\n' ' ' < out | grep -q 'GPU 0: .* CUDA [0-9.]* (driver for [0-9.]*), cuDNN [0-9.]*, cuBLAS' ||
    fail "amp version does not describe the GPU: $(cat out)"

# On a GPU `amp bench` tells where the time goes there.
if command -v python3 > /dev/null; then
    AMP_DOUBLE_GPU_TAKES=20 succeeds "$on_doubles" amp bench tiny.cfg -dtypes bf16 -iters 1 -json bench.json
    grep -q "^where bf16's time goes on the GPU: " out &&
        grep -q '^convolutional  *conv_forward  *[0-9]' out ||
        fail "amp bench says not where the time goes: $(cat out)"
    python3 - << 'END' || fail 'the operations in the JSON are not what was promised'
import json
rows = json.load(open("bench.json"))["dtypes"][0]["operations"]
by = {(r["layer"], r["operation"]): r for r in rows}
forward = by["convolutional", "conv_forward"]
assert forward["half"] and forward["operations"] > 0 and forward["percent_of_arithmetic"] > 0, forward
assert by["convolutional", "batchnorm_backward"]["operations"] == 0, rows
assert by["-", "finish_step"]["calls"] == 1, rows
END
fi
echo 'cuda_doubles: ok'
