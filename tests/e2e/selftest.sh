# `darknet amp selftest`: good on the CPU in both forks and with the CUDA backend on the doubles, and with a
# fault it names the layer and ends with status 1. And the comparison that a training on a GPU begins with:
# once for a machine, not where AMP_SELF_CHECK=0 or on the CPU; a training on a GPU with a fault does not
# start.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$PWD/cache
export AMP_SELF_CHECK=600 # seconds: the machine may be busy
tiny_training
rm -rf cache

selftest() { # selftest <program> [<.cfg>]
    status_of timeout 600 "$@"
}
good() { # good <networks> <program>
    selftest "$2" amp selftest
    [ $status = 0 ] || fail "$2: status $status: $(tail -1 err)"
    for dtype in fp32 bf16 fp16; do
        [ "$(grep -c "^  $dtype  *same " out)" = "$1" ] || fail "$2: $dtype: $(cat out)"
    done
    [ "$(tail -1 out)" = 'All layers compute correct results.' ] && grep -q '^Darknet AMP' out ||
        fail "$2: $(cat out)"
}
all_kinds_are_good() {
    good 3 "$DARKNET"
    if [ -x "$ALEXEYAB" ]; then good 3 "$ALEXEYAB"; fi
}
all_kinds_are_good
[ ! -e cache ] || fail 'a selftest leaves a note'

# Labels larger, or smaller, than two anchors of equal area fit both equally well, and rounding would decide.
turned_anchors_are_good() { # turned_anchors_are_good <width> <height> <anchors>
    local program number=$(($(tr -cd , <<< $3 | wc -c) / 2 + 1))
    layers > turned.cfg <<END
[net] batch=2 width=$1 height=$2 channels=3
[convolutional] filters=8 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=$((7 * number)) size=1 activation=linear
[yolo] classes=2 num=$number anchors=$3
END
    for program in "$DARKNET" "$ALEXEYAB"; do
        [ -x "$program" ] || continue
        selftest "$program" amp selftest turned.cfg
        [ $status = 0 ] || fail "$program, anchors $3: status $status: $(tail -1 err)"
    done
}
turned_anchors_are_good 64 96 4,5,8,8,12,14,14,12,20,20,28,30
turned_anchors_are_good 416 224 6,7,7,6
turned_anchors_are_good 64 96 150,160,160,150

# wrong <program> <fault> <channels> <what is named, as a pattern>
wrong() {
    AMP_FAULT="$2 $3" selftest "$1" amp selftest
    [ $status = 1 ] || fail "$2 $3: status $status"
    grep -v '^doubles: ' err | tail -1 | grep -q "^amp selftest: $4" || fail "$2 $3: not $4: $(tail -2 err)"
    # what a report needs: the versions, and all figures of that network
    grep -q '^Darknet AMP' out && grep -q '^fp32 against Darknet' out || fail "$2 $3: $(head -20 out)"
}
# A fault in each operation: only this command's networks show that they have it. And those that only a pass
# after others shows.
faults_are_named() { # faults_are_named <program>
    wrong "$1" bias 24 'fp32, layer 7 \[convolutional\], output'
    wrong "$1" minus 20 'fp32, layer 3 \[convolutional\], output'
    wrong "$1" variance 20 'fp32, layer 3 \[convolutional\], variances of the batch'
    wrong "$1" statistics 28 'fp32, layer 14 \[convolutional\], means of the batch'
    wrong "$1" biases 21 'fp32, layer [0-9]* \[convolutional\], biases. gradient'
    wrong "$1" slope 20 'fp32, layer 3 \[convolutional\]'
    wrong "$1" scales 24 'fp32, layer 7 \[convolutional\], scales. gradient'
    wrong "$1" upsample 10 'fp32, layer 12 \[upsample\], the delta'
    wrong "$1" shortcut 12 'fp32, layer 5 \[shortcut\], output'
    wrong "$1" choice 8 'fp32, layer 1 \[maxpool\], the delta'
    wrong "$1" dropout 12 'fp32, layer 6 \[dropout\], '
    wrong "$1" yolo 21 'fp32, layer [0-9]* \[yolo\], delta'
    late_faults_are_named "$1"
}
late_faults_are_named() {
    wrong "$1" copies 24 'fp32, layer 7 \[convolutional\], \(output\|the delta that it passes to layer 6\):'
    wrong "$1" early 24 'fp32, layer 7 \[convolutional\], '
}
faults_are_named "$BUILD_DIR/tests/darknet-with-fault"

# ---- what is wrong in Darknet's own code ----

# spared <program> <what is said of Darknet's own code, or nothing> <good dtypes> <sections...>
spared() { spared_in '[net] batch=2 width=12 height=12 channels=3' '[cost] type=sse' "$@"; }
spared_in() { # spared_in <first section> <last section> <what spared takes...>
    local net=$1 cost=$2 program=$3 text=$4 good=$5
    shift 5
    printf '%s\n' "$net" "$@" "$cost" | layers > own.cfg
    selftest "$program" amp selftest own.cfg
    [ $status = 0 ] || fail "$*: status $status: $(tail -1 err)"
    for dtype in $good; do grep -q "^  $dtype  *same " out || fail "$*: $dtype is not good: $(cat out)"; done
    tr -s '\n ' ' ' < out | grep -qF -- "$text" || fail "$*: no '$text' in: $(cat out)"
}
CONVOLUTION='[convolutional] filters=6 size=3 pad=1 activation=leaky'
spared_in_all_forks() { # spared_in_all_forks <program>
    spared "$1" 'computes the slope of its activation from its output after dropout' 'fp32 bf16 fp16' \
        '[convolutional] filters=6 size=3 pad=1 activation=tanh' '[dropout] probability=.5' \
        '[connected] output=10 activation=elu' '[dropout]' '[connected] output=9 activation=leaky'
    spared "$1" 'a batch norm of one number for each channel' '' "$CONVOLUTION" \
        '[connected] batch_normalize=1 output=8 activation=leaky' '[connected] output=8 activation=leaky'
    spared "$1" '' 'fp32 bf16 fp16' '[batchnorm]' "$CONVOLUTION"
    spared "$1" 'that code cannot run this network and is not compared' 'bf16 fp16' \
        '[crop] crop_height=10 crop_width=10 flip=0 angle=0 saturation=1 exposure=1 shift=0' "$CONVOLUTION" \
        '[route] layers=0,1' "$CONVOLUTION"
    spared "$1" 'which reads and writes beyond its image; that code cannot run this network' 'bf16 fp16' \
        "$CONVOLUTION" '[convolutional] filters=8 size=1 padding=2 activation=leaky'
    [ "$(tail -1 out)" = 'All results that were compared are correct. Not compared: fp32' ] ||
        fail "the last line: $(tail -1 out)"
}
faults_of_darknets_own_are_named_and_spared() {
    spared_in_all_forks "$DARKNET"
    spared "$DARKNET" 'ignores its stride and padding' 'fp32 bf16 fp16' "$CONVOLUTION" \
        '[convolutional] batch_normalize=1 filters=8 size=1 stride=2 activation=leaky'
    if [ ! -x "$ALEXEYAB" ]; then return; fi
    spared_in_all_forks "$ALEXEYAB"
    # An [empty] layer is the layer before it: who names that one has the same delta, and a dropout's output.
    spared "$ALEXEYAB" '' 'fp32 bf16 fp16' "$CONVOLUTION" '[empty]' "$CONVOLUTION" '[shortcut] from=-3'
    spared "$ALEXEYAB" 'computes the slope of its activation from its output after dropout' 'fp32 bf16 fp16' \
        '[convolutional] filters=6 size=3 pad=1 activation=tanh' '[empty]' '[dropout] probability=.5' \
        "$CONVOLUTION" '[shortcut] from=-4'
    spared "$ALEXEYAB" 'an activation that its CPU code does not know' 'fp32 bf16 fp16' \
        '[convolutional] filters=6 size=3 pad=1 activation=relu6' "$CONVOLUTION"
    # What lies behind it is compared on its right output: on zeros, batch norm would divide by next to 0.
    sed -i 's/^width=12/width=96/; s/^height=12/height=96/' own.cfg
    printf '%s\n' '[convolutional] filters=32 size=3 pad=1 activation=selu' \
        '[convolutional] batch_normalize=1 filters=16 size=3 pad=1 activation=relie' "$CONVOLUTION" \
        '[cost] type=sse' | layers | sed -i -e '/^\[cost\]/,$d' -e '$r /dev/stdin' own.cfg
    succeeds "$ALEXEYAB" amp selftest own.cfg
    # Near 0 stock's tanh and loggy lose digits in fp32.
    for activation in tanh loggy; do
        spared "$ALEXEYAB" '' 'fp32 bf16 fp16' '[convolutional] filters=60 size=3 pad=1 activation=linear' \
            '[softmax]' "[activation] activation=$activation"
    done
    # Deltas that grow 316 times in each batch norm fit into fp16 at a scale that is too low for a training.
    local grows='[connected] batch_normalize=1 output=8 activation=leaky'
    spared "$ALEXEYAB" 'deltas overflow even at the smallest loss scale' 'fp32 bf16' "$CONVOLUTION" \
        "$grows" "$grows" "$grows" '[connected] output=5'
    spared "$ALEXEYAB" 'smaller than it assumes' 'bf16 fp16' "$CONVOLUTION" \
        '[convolutional] filters=4 size=3 pad=1 activation=leaky' "$CONVOLUTION" '[shortcut] from=1'
    spared "$ALEXEYAB" 'adds a larger input in the wrong place from the second image on' '' "$CONVOLUTION" \
        '[convolutional] filters=8 size=3 pad=1 activation=leaky' "$CONVOLUTION" '[shortcut] from=1'
    spared "$ALEXEYAB" 'ignores its stride_y' 'fp32 bf16 fp16' "$CONVOLUTION" \
        '[convolutional] batch_normalize=1 filters=8 size=1 stride_x=1 stride_y=2 activation=leaky'
    spared "$ALEXEYAB" 'adds up the delta of its multipliers in several threads' 'fp32 bf16 fp16' \
        "$CONVOLUTION" '[avgpool]' '[scale_channels] from=0' "$CONVOLUTION"
    local normed='[convolutional] batch_normalize=1 filters=6 size=3 pad=1 activation=leaky'
    spared "$ALEXEYAB" 'layer 1 [convolutional] shares its batch' '' "$normed" "$normed" \
        "$normed share_index=1"
    spared "$ALEXEYAB" 'overwrites the delta of the layer that it multiplies with' 'fp32 bf16 fp16' \
        "$CONVOLUTION" "$CONVOLUTION" '[sam] from=0 activation=logistic' '[route] layers=-1,0' "$CONVOLUTION"
}
faults_of_darknets_own_are_named_and_spared
# A GPU's: with a loss of 50 times its size stock would clip the deltas of connected layers.
gpu_double=$BUILD_DIR/tests/darknet-gpu-double
faults_of_darknets_gpu_code_are_spared() {
    local flat='[net] inputs=12 batch=2 time_steps=2' kind
    for kind in connected rnn gru lstm; do
        spared_in "$flat" '[cost] type=sse scale=50' "$gpu_double" '' 'fp32 bf16 fp16' \
            "[$kind] output=10 batch_normalize=0" '[connected] output=9 activation=linear'
    done
    spared_in "$flat" '[cost] type=sse' "$gpu_double" 'adds a number that is no gradient' 'fp32 bf16 fp16' \
        '[connected] output=10 activation=leaky' '[l2norm]'
}
if [ -x "$gpu_double" ]; then faults_of_darknets_gpu_code_are_spared; fi
# Where Darknet's own code is exempted in one layer, a fault of AMP's in another is found.
wrong_beside_an_exempted_layer() {
    spared "$DARKNET" 'ignores its stride' fp32 '[convolutional] filters=6 size=1 stride=2 activation=leaky' \
        '[convolutional] batch_normalize=1 filters=24 size=3 pad=1 activation=leaky' '[connected] output=5'
    for fault in 'bias 24' 'variance 24' 'slope 24' 'scales 24'; do
        AMP_FAULT=$fault selftest "$BUILD_DIR/tests/darknet-with-fault" amp selftest own.cfg
        [ $status -gt 2 ] && tail -1 err | grep -q 'fp32, layer 1 \[convolutional\]' ||
            fail "$fault beside an exempted layer: status $status: $(tail -1 err)"
    done
}
wrong_beside_an_exempted_layer

# ---- a training's beginning ----
sed -i 's/^max_batches=.*/max_batches=2/' tiny.cfg
train() { # train <program>
    status=0
    timeout 600 "$1" detector train tiny.data tiny.cfg -amp fp16 -seed 3 > train.out 2> train.err || status=$?
}
compares() { grep -q '^amp: this is the first training on this GPU' train.err; }

train "$DARKNET"
[ $status = 0 ] && ! compares && [ ! -e cache ] || fail "on the CPU: status $status: $(grep '^amp' train.err)"

on_doubles=$BUILD_DIR/tests/darknet-on-doubles
if [ -x "$on_doubles" ]; then
    good 3 "$on_doubles"
    late_faults_are_named "$on_doubles"
    spared_in_all_forks "$on_doubles"

    AMP_SELF_CHECK=0 train "$on_doubles"
    [ $status = 0 ] && ! compares && [ ! -e cache ] || fail "AMP_SELF_CHECK=0: status $status"
    train "$on_doubles"
    [ $status = 0 ] && compares || fail "the first training: status $status: $(grep '^amp' train.err)"
    ! grep -qE '^amp: (warning|the pass could not)' train.err || fail "the first: $(grep '^amp' train.err)"
    notes=$(ls cache/darknet-amp)
    [ "$(echo "$notes" | wc -l)" = 1 ] && grep -q '^All layers compute' "cache/darknet-amp/$notes" ||
        fail "the note: $notes"
    train "$on_doubles"
    [ $status = 0 ] && ! compares || fail "the second training compares again, status $status"
    AMP_DOUBLE_GPU=8.0 train "$on_doubles"
    [ $status = 0 ] && compares || fail "another GPU: status $status"

    # One that must not train, and the next time neither; and one that is off by little.
    rm -r cache backup && mkdir backup
    for time in first second; do
        AMP_FAULT='slope 16' train "$on_doubles"
        [ $status = 1 ] && compares || fail "a GPU with a fault, the $time time: status $status"
        grep -v '^doubles: ' train.err | tail -1 |
            grep -q "AMP's results differ from Darknet's: fp32, layer [24] " || # 16 channels each
            fail "a GPU with a fault: $(tail -2 train.err)"
    done
    report=$(sed -n 's/.* with the file \([^,]*\), or train.*/\1/p' train.err)
    grep -q '^fp32 against Darknet' "$report" || fail "the report: $report"
    [ -z "$(ls backup)" ] || fail 'a training that does not start saves something'
    AMP_FAULT='yolo 21' train "$on_doubles"
    [ $status = 0 ] && grep -q '^amp: warning: .*fp32, layer [0-9]* \[yolo\], delta: off by 0.01' train.err ||
        fail "off by little: status $status: $(grep '^amp' train.err)"
    # No folder for a note: nothing is compared, and the training continues.
    XDG_CACHE_HOME=/dev/null train "$on_doubles"
    [ $status = 0 ] && ! compares || fail "no cache: status $status: $(grep '^amp' train.err)"
fi

# In a network with larger images rounding moves some numbers across leaky's kink.
kinks_are_no_fault() {
    selftest "$DARKNET" amp selftest "$SOURCE_DIR/cfg/bccd.cfg"
    [ $status = 0 ] || fail "bccd.cfg: status $status: $(tail -1 err)"
}
kinks_are_no_fault

# ---- long sums, and results that are small beside their terms ----
rounding_is_no_fault() {
    spared "$DARKNET" '' 'fp32 bf16 fp16' '[maxpool] size=5 stride=2' \
        '[convolutional] batch_normalize=1 filters=12 size=5 activation=relie' '[maxpool] size=5 stride=2'
    # All of logistic's outputs are so near 1 that Darknet's slope, computed from them, is rounding or 0.
    local doubled='[shortcut] from=-1 activation=linear' twice times
    for times in 9 11; do
        twice=() && for ((; times > 0; times--)); do twice+=("$doubled"); done
        spared "$DARKNET" '' fp32 '[convolutional] filters=8 size=3 pad=1 activation=relu' '[avgpool]' \
            "${twice[@]}" '[activation] activation=logistic' '[connected] output=4'
    done
    spared "$DARKNET" '' 'fp32 bf16 fp16' '[connected] output=9000 activation=leaky' \
        '[connected] output=24 activation=leaky' '[connected] output=7'
    for fault in 'minus 24' 'slope 24'; do
        AMP_FAULT=$fault selftest "$BUILD_DIR/tests/darknet-with-fault" amp selftest own.cfg
        [ $status -gt 2 ] && tail -1 err | grep -q 'fp32, layer [01] \[connected\]' ||
            fail "$fault behind long sums: status $status: $(tail -1 err)"
    done
}
rounding_is_no_fault

# ---- bad input ----
refuses() { # refuses <text> <arguments...>
    local text=$1
    shift
    selftest "$DARKNET" amp selftest "$@"
    [ $status = 1 ] && tail -1 err | grep -qF -- "$text" || fail "$*: status $status: $(tail -1 err)"
}
refuses 'there.cfg' there.cfg
refuses 'unknown option' -fast
selftest "$DARKNET" amp selftest tiny.cfg
[ $status = 0 ] || fail "tiny.cfg: status $status: $(tail -1 err)"
echo 'selftest: ok'
