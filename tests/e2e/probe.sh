# `darknet amp probe`: AMP's fp32 is found to be Darknet's own, in both forks and with the CUDA
# backend on the doubles; a backend that computes one thing wrong is refused, by the layer's name (each
# operation's fault is e2e_selftest's, which has the same engine and verdict); what layers in fp32 bring is
# what a training then shows; bad input is a line each.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
. "$SOURCE_DIR/tests/e2e/lib/noise_images.bash"
. "$SOURCE_DIR/tests/e2e/lib/rigged.bash"
export OMP_NUM_THREADS=1
tiny_training
noise_images
cp labels/* images/ # where AlexeyAB's looks

# Numbers of channels tell the layers apart. 12 runs in fp32 always, so that 2 is read in two forms.
layers > kinds.cfg <<'END'
[net] batch=4 subdivisions=2 width=64 height=64 channels=3 momentum=0.9 decay=0.0005 angle=5 saturation=1.5
    exposure=1.5 hue=.1 learning_rate=0.002 burn_in=2 max_batches=40 policy=steps steps=300 scales=.5
[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=leaky
[maxpool] size=2 stride=2
[convolutional] batch_normalize=1 filters=12 size=3 stride=2 pad=1 activation=leaky
[convolutional] batch_normalize=1 filters=16 size=3 stride=2 pad=1 activation=leaky
[convolutional] batch_normalize=1 filters=20 size=1 stride=1 activation=leaky
[convolutional] batch_normalize=1 filters=16 size=3 stride=1 pad=1 activation=leaky
[shortcut] from=-3 activation=linear
[dropout] probability=.2
[convolutional] batch_normalize=1 filters=24 size=3 stride=1 pad=1 activation=leaky
[convolutional] filters=21 size=1 stride=1 activation=linear
[yolo] mask=3,4,5 anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 jitter=.3 ignore_thresh=.7
    truth_thresh=1 random=0
[route] layers=-3
[convolutional] batch_normalize=1 filters=10 size=1 stride=1 activation=leaky amp=0
[upsample] stride=2
[route] layers=-1,2
[convolutional] batch_normalize=1 filters=28 size=3 stride=1 pad=1 activation=leaky
[convolutional] filters=21 size=1 stride=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 jitter=.3 ignore_thresh=.7
    truth_thresh=1 random=0
END

compare() { # compare <name> <program> <arguments...>: <name>.json, .out, .err and .html; $status
    local name=$1 program=$2
    shift 2
    status=0
    timeout 600 "$program" amp probe "$@" -seed 3 -json $name.json -report $name.html > $name.out \
        2> $name.err || status=$?
}
says() { # says <name> <a basic regular expression>: the verdict, whose lines are broken
    tr -s '\n ' ' ' < $1.out | grep -q -- "$2" || fail "$1: no '$2' in: $(sed -n '/^  dtype/,$p' $1.out)"
}
is() { # is <name> <word> <dtypes...>
    local name=$1 word=$2 dtype
    shift 2
    for dtype; do
        holds $name.out "^  $dtype  *$word "
    done
}
good() { # good <name> <program> <data> <weights> [<layers of which stock loses a part of the delta>]
    compare "$1" "$2" "$3" kinds.cfg "$4"
    [ $status = 0 ] || fail "$1: status $status: $(tail -1 $1.err)"
    holds $1.json '"fp32_is_stocks": true'
    # Half precision is nowhere further off than rounding explains, and nowhere as near as fp32.
    is $1 same fp32 bf16 fp16
    says $1 "(and $((${5:-2} - 1)) more) overwrites the delta of the layer before it"
    for dtype in fp32 bf16 fp16; do
        [ "$(sed -n "/^$dtype against/,/^$/p" $1.out | grep -c '^ *[0-9][0-9]* [a-z]* *|')" = 18 ] ||
            fail "$1: $dtype: not a row for each layer: $(cat $1.out)"
    done
    [ "$(grep -c '<svg' $1.html) $(grep -c '</svg>' $1.html)" = '3 3' ] && grep -q '</html>' $1.html ||
        fail "$1: the page is not whole"
}

# Weights whose biases are not 0.
"$DARKNET" detector train tiny.data kinds.cfg -amp fp32 -seed 4 > train.out 2> train.err ||
    fail "training: $(tail -1 train.err)"
mv backup/kinds_final.weights learnt.weights
rm -f backup/*
fp32_is_darknets_own_and_half_is_near() { good pjreddie "$DARKNET" tiny.data learnt.weights; }
fp32_is_darknets_own_and_half_is_near

# One seed, one result; standard output has the JSON alone; without weights it is said.
compare again "$DARKNET" tiny.data kinds.cfg learnt.weights
for name in pjreddie again; do sed '/"seconds"/d; /processor time/d' $name.json > $name.same; done
cmp pjreddie.same again.same || fail 'two comparisons with one seed differ'
timeout 600 "$DARKNET" amp probe -compare tiny.data kinds.cfg learnt.weights -seed 3 -json - 2> err |
    sed '/"seconds"/d; /processor time/d' | cmp - again.same || fail '-json -: not the JSON alone'
compare random "$DARKNET" tiny.data kinds.cfg -images 1
[ $status = 0 ] || fail "without weights: status $status: $(tail -1 random.err)"
says random 'in one pass: 1x64x64'
says random 'These are random weights'
[ -z "$(ls backup)" ] || fail 'a comparison saves something'

# Of one image Darknet's own batch norm behind an avgpool has one number for each channel, and gives NaN.
darknets_own_nan_is_no_fault() {
    layers > one_number.cfg <<'END'
[net] batch=4 subdivisions=2 width=64 height=64 channels=3 learning_rate=.002 max_batches=40
[convolutional] filters=8 size=3 stride=1 pad=1 activation=leaky
[avgpool]
[convolutional] batch_normalize=1 filters=8 size=1 stride=1 activation=leaky
[upsample] stride=4
[convolutional] filters=21 size=1 stride=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14 classes=2 num=3 jitter=.3 ignore_thresh=.7 truth_thresh=1
END
    compare one_number "$DARKNET" tiny.data one_number.cfg -images 1
    [ $status = 0 ] || fail "one number for each channel: status $status: $(tail -1 one_number.err)"
    says one_number "has a batch norm of one number for each channel"
    says one_number "reads or writes inf or NaN"
    is one_number same fp32 bf16 fp16
}
darknets_own_nan_is_no_fault

# In 15 x 15 numbers near 1 bf16 finds another largest one than fp32: the delta is far off, and no fault.
a_pool_that_chooses_other_pixels_has_no_fault() {
    layers > pool.cfg <<'END'
[net] batch=4 subdivisions=2 width=64 height=64 channels=3 learning_rate=.002 max_batches=40
[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=logistic
[maxpool] size=15 stride=2
[convolutional] batch_normalize=1 filters=16 size=3 stride=1 pad=1 activation=leaky
[convolutional] filters=21 size=1 stride=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14 classes=2 num=3 jitter=.3 ignore_thresh=.7 truth_thresh=1
END
    compare pool "$DARKNET" tiny.data pool.cfg
    [ $status = 0 ] || fail "a large pool: status $status: $(tail -1 pool.err)"
    is pool same bf16 fp16
    sed -n '/^bf16 against/,/^$/p' pool.out | awk -F'|' '$1 ~ /^ *0 conv/ { split($3, of, " "); e = of[3] }
        END { exit !(e > .25) }' || fail "its delta is no further off than rounding explains: $(cat pool.out)"
}
a_pool_that_chooses_other_pixels_has_no_fault

# ---- a backend with a fault ----

# faulty <program> <data> <fault> <channels> <what is named, as a pattern>
faulty() {
    export AMP_FAULT="$3 $4"
    compare faulty "$1" "$2" kinds.cfg learnt.weights
    unset AMP_FAULT
    [ $status = 1 ] || fail "$3 in $4 channels: status $status: $(tail -1 faulty.err)"
    # the doubles have the last line
    grep -v '^doubles: ' faulty.err | tail -1 |
        grep -q "^amp probe: AMP's fp32 differs from Darknet's: $5: off by " ||
        fail "$3 in $4 channels: not $5: $(tail -2 faulty.err)"
    grep -q '"fp32_is_stocks": false' faulty.json || fail "$3: the JSON says nothing"
}
# In fp32 all forms are one and nothing is cast: it is half precision's fault. The route reads 2 several
# times, so that the part that is dropped is far more than rounding may take.
sed 's/^layers=-1,2$/layers=-1,2,2,2,2,2,2/' kinds.cfg > casts.cfg
drops_a_cast() { # drops_a_cast <program> <data>
    AMP_FAULT='cast 12' compare faulty "$1" "$2" casts.cfg
    for dtype in bf16 fp16; do
        is faulty off $dtype
        sed -n "/^  $dtype /,/^  fp16/p" faulty.out > $dtype.out
        says $dtype 'layer 3 .convolutional. or layer 14 .route., the delta that it passes to layer 2'
    done
}
with_fault=$BUILD_DIR/tests/darknet-with-fault
a_fault_is_named_by_its_layer() {
    good no_fault "$with_fault" tiny.data learnt.weights
    faulty "$with_fault" tiny.data bias 24 'layer 8 \[convolutional\], output'
    # The scale is missing in forward and backward: both are off by 0.2, and rounding decides which is first.
    faulty "$with_fault" tiny.data dropout 16 \
        'layer 7 \[dropout\], \(output\|the delta that it passes to layer 6\)'
    is faulty wrong fp32
    says faulty ' 0.2 [0-9.e-]* layer 7 .dropout., output'
    says faulty ' 0.2 [0-9.e-]* layer 7 .dropout., the delta that it passes to layer 6'
    drops_a_cast "$with_fault" tiny.data
}
a_fault_is_named_by_its_layer

on_doubles=$BUILD_DIR/tests/darknet-on-doubles
if [ -x "$on_doubles" ]; then
    good doubles "$on_doubles" tiny.data learnt.weights
    holds doubles.err '^doubles: [1-9][0-9]* kernels, [1-9][0-9]* convolutions, .* 0 faults$'
    faulty "$on_doubles" tiny.data choice 8 'layer 1 \[maxpool\], the delta that it passes to layer 0'
    drops_a_cast "$on_doubles" tiny.data
fi

if [ -x "$ALEXEYAB" ]; then
    sed 's/^batch=4/batch=8/' kinds.cfg > kept && mv kept kinds.cfg
    cp learnt.weights kept.weights
    good alexeyab "$ALEXEYAB" tiny.data learnt.weights 3
    says alexeyab '(and 7 more) computes no gradient for its biases after batch norm on the CPU'
    faulty "$BUILD_DIR/tests/darknet-alexeyab-with-fault" tiny.data slope 12 'layer 2 \[[a-z]*\], .*'
    cmp learnt.weights kept.weights || fail 'weights were written to'
fi

# ---- what layers in fp32 bring ----
# 2's outputs are beyond fp16, and 3 reads them; a training without these two in fp32 skips steps.
rigged_network
rigged_weights '\000\000\200\076' # .25
number_row() { # number_row <name> <a row of what is said of the numbers' sizes, as a pattern>
    sed -n '/^numbers of/,/^$/p' $1.out | grep -q "^ *$2\$" ||
        fail "$1: not '$2' in: $(sed -n '/^numbers of/,/^$/p' $1.out)"
}
pins_bring_what_a_training_shows() {
    compare rigged "$DARKNET" tiny.data rigged.cfg rigged.weights
    [ $status = 0 ] || fail "rigged: status $status: $(tail -1 rigged.err)"
    is rigged same fp32 bf16
    is rigged range fp16
    says rigged 'fp16: layer 2 .convolutional. has numbers beyond 65504 (its largest output is 9.1e+05)'
    number_row rigged '2 convolutional | 9.1e+05            0 | 3.1e-05            0'
    says rigged 'fp16: keep in fp32 with amp=0: 2 .convolutional., 3 .convolutional.\.'
    [ "$(skipped rigged.cfg '')" -gt 0 ] || fail 'fp16 without pins skipped no step'
    [ "$(skipped rigged.cfg '2 3')" = 0 ] || fail "fp16 with 2 and 3 in fp32 skips steps"
    # The deltas that layer 1 gives to 0 are 1e-21 times its own.
    rigged_weights '\311\034\227\034' vanishing.weights
    compare vanishing "$DARKNET" tiny.data rigged.cfg vanishing.weights
    number_row vanishing '0 convolutional | .*            0 | [0-9.]*e-2[0-9]     100.00 %'
}
pins_bring_what_a_training_shows

# Each pass begins with the same state, which a recurrent layer carries from one to the next.
layers > recurrent.cfg < <(grep -v '^#' "$SOURCE_DIR/tests/cfg/rnn.layers")
succeeds "$DARKNET" amp selftest recurrent.cfg

# ---- a classifier ----
two_kinds
{ sed -n '1,/^$/p' tiny.cfg; printf \
    '[convolutional]\nfilters=2\nsize=1\nactivation=linear\n\n[avgpool]\n\n[softmax]\n'; } > classes.cfg
succeeds "$DARKNET" amp probe kinds.data classes.cfg
succeeds "$DARKNET" amp probe kinds.data classes.cfg -report - # a page, and no tables
[ "$(head -c 9 out) $(tail -n 1 out)" = '<!DOCTYPE </body></html>' ] ||
    fail "-report -: $(head -n 1 out; tail -n 3 out)"

# ---- bad input: one line, status 1, nothing written ----
refuses() { # refuses <expression> <arguments...>
    ends_saying "$1" timeout 600 "$DARKNET" amp probe "${@:2}" -json bad.json -report bad.html
    [ ! -s out ] && [ ! -e bad.json ] && [ ! -e bad.html ] || fail "${*:2}: something was written"
}
refuses 'there.data: cannot read the .data file' there.data tiny.cfg
refuses 'there.weights: cannot read the weights' tiny.data tiny.cfg there.weights
sed '/^\[yolo\]/,$d' tiny.cfg > headless.cfg
refuses 'no layer has a loss' tiny.data headless.cfg
sed 's/^channels=3/channels=1/' tiny.cfg > grey.cfg
refuses 'channels = 1: `detector train` loads only images with 3 channels' tiny.data grey.cfg
sed 's/^classes=.*/classes=3/' kinds.data > bad.data
refuses 'bad.data: classes=3, but the network has 2' bad.data classes.cfg
ends_saying there/x.html timeout 600 "$DARKNET" amp probe tiny.data tiny.cfg -report there/x.html
echo 'probe: ok'
