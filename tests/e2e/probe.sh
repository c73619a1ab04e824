# `darknet amp probe`: finds the layer whose outputs overflow fp16 and the one whose deltas vanish, and no
# other; training in fp16 as it advises works, where it does not without. Its numbers are those of the
# training; bad input is a line each.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/rigged.bash"
export OMP_NUM_THREADS=1
tiny_training

# Our JSON has a value a line: "layers[2].type "convolutional"" and so on.
flat() {
    awk '{ sub(/^ */, ""); sub(/,$/, ""); key = "" }
         /^[]}]$/ { depth--; next }
         match($0, /^"[a-z0-9_]*": /) { key = "." substr($0, 2, RLENGTH - 4); $0 = substr($0, RLENGTH + 1) }
         key == "" && depth { key = "[" count[depth]++ "]" }
         /^[[{]$/ { name[depth + 1] = name[depth] key; count[++depth] = 0; next }
         { print name[depth] key " " $0 }' "$1"
}
value() { flat $1.json | sed -n "s/^\.$2 //p" | tr -d '"'; } # value <name> <path, as a pattern>
list() { value $1 "$2\[[0-9]*\]" | tr '\n' ' '; }
is() { [ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'; $(list ${1%% *} advice)"; }
says() { value $1 "advice\[$2\]" | grep -q -- "$3" || fail "$1: no '$3' in: $(value $1 "advice\[$2\]")"; }

probe() { # probe <name> <arguments...>: <name>.json
    local name=$1
    shift
    timeout 600 "$DARKNET" amp probe "$@" -seed 3 -json $name.json > $name.out 2> $name.err ||
        fail "$*: status $?: $(tail -1 $name.err)"
    grep -q '^Deltas' $name.out || fail "$name: no table: $(head -3 $name.out)"
}

# ---- rigged: 0's deltas are 8 * 2e-10 of 1's, and 2's outputs are 8 * 48000 ----
rigged_network
sed 's/^loss_scale=.*/loss_scale=dynamic/' rigged.cfg > moving.cfg
rigged_weights '\377\346\133\057' # 2e-10
rigged_weights '\311\034\227\034' hopeless.weights # 1e-21

probe rigged tiny.data rigged.cfg rigged.weights -iters 3
is rigged "$(list rigged keep_layers)" '2 3 '
is rigged "$(list rigged advice | grep -o 'layer [0-9]* \[[a-z]*\]: ' | tr '\n' ' ')" \
    'layer 0 [convolutional]:  layer 2 [convolutional]:  '
says rigged 0 '[0-9.]* % of its deltas become 0.* at the present loss scale of 1: set loss_scale from '
says rigged 1 "100.0 % of its outputs exceed fp16's 65504 (the largest is 3.84e+05): keep it in fp32 with \
amp=0, and layer 3, which reads them, or use"
is rigged "$(value rigged loss_scale_from)" cfg

# The counts are those of 3 steps of 8 images; sizes and shares are the rigged ones.
for layer in '0 8' '1 8' '2 8' '3 21'; do
    numbers=$(value rigged "layers\[${layer% *}\].outputs.numbers")
    zeros=$(value rigged "layers\[${layer% *}\].outputs.zeros")
    is "rigged outputs of layer $layer" $((numbers + zeros)) $((3 * 8 * ${layer#* } * 32 * 32))
done
is rigged "$(value rigged 'layers\[2\].outputs.largest')" 384000
is rigged "$(value rigged 'layers\[2\].outputs.fp16.overflow')" 1
is rigged "$(value rigged 'layers\[2\].outputs.bf16.overflow')" 0
is rigged "$(value rigged 'layers\[1\].weight_gradients.numbers')" $((3 * 8 * 8)) # of one subdivision a step

# Where the scale may move, only what no scale helps is left; and with 1e-21 none suits 0 and the others.
probe moving tiny.data moving.cfg rigged.weights -iters 3
is moving "$(list moving keep_layers)" '2 3 '
is moving "$(value moving 'advice\[1\]')" ''
probe hopeless tiny.data moving.cfg hopeless.weights -iters 3
is hopeless "$(list hopeless keep_layers)" '0 1 2 3 '
says hopeless 0 "^layer 0 \[convolutional\]: 100.0 % of its deltas become 0 .* beyond which other layers' \
overflow: keep it in fp32 with amp=0, and layer 1,"

# fp16 as advised trains; as it is, or with half the advice, it cannot.
[ "$(skipped moving.cfg '')" -gt 0 ] || fail 'fp16 without pins skipped no step'
[ "$(skipped moving.cfg 2)" -gt 0 ] || fail 'pinning layer 2 alone was enough' # 3 makes fp16 of what it reads
is 'rigged skipped' "$(skipped moving.cfg '2 3')" 0
settled() { sed -n 's/^amp: summary dtype=fp16 .* scale=\([0-9.e+]*\) .*/\1/p' $1; }
probe pinned tiny.data trained.cfg rigged.weights -iters 2
is pinned "$(list pinned keep_layers)" ''

# The scale in the sidecar is taken, and no file is written to.
before=$(cksum backup/trained_final.weights backup/trained_final.weights.amp)
probe sidecar tiny.data trained.cfg backup/trained_final.weights -iters 2
is sidecar "$(value sidecar loss_scale_from) $(value sidecar loss_scale)" "sidecar $(settled trained.err)"
is sidecar "$(cksum backup/trained_final.weights backup/trained_final.weights.amp)" "$before"

# ---- healthy ----
sed -i 's/^learning_rate=.*/learning_rate=0.0001/' tiny.cfg
probe healthy tiny.data tiny.cfg
is healthy "$(list healthy keep_layers)" ''
is healthy "$(value healthy 'advice\[1\]')" ''
says healthy 0 '^nothing needs to be kept in fp32: '
is healthy "$(value healthy loss_scale_from)" 'highest without overflow'
is healthy "$(value healthy loss_scale)" "$(value healthy loss_scales.most)"
# fp16 training from 65536 goes down to a scale in the range, give or take the images of a batch.
sed 's/^max_batches=.*/max_batches=20/' tiny.cfg > twenty.cfg
timeout 600 "$DARKNET" detector train tiny.data twenty.cfg -amp fp16 -seed 3 > twenty.out 2> twenty.err ||
    fail "fp16: $(tail -1 twenty.err)"
least=$(value healthy loss_scales.least) most=$(value healthy loss_scales.most)
awk -v at="$(settled twenty.err)" -v least="$least" -v most="$most" \
    'BEGIN { exit !(at >= least && (at <= 2 * most || at == 65536 && most > at)) }' ||
    fail "fp16 settled at $(settled twenty.err), the probe says $least to $most"

# One seed, one result; the text has a row for each layer, and nothing of what Darknet prints while it trains.
probe again tiny.data tiny.cfg
for name in healthy again; do sed '/"seconds"/d' $name.json > $name.same; done
cmp healthy.same again.same || fail 'two probes with one seed differ'
timeout 600 "$DARKNET" amp probe tiny.data tiny.cfg -seed 3 > text.out 2> text.err ||
    fail "text: $(tail -1 text.err)"
sed 1d healthy.out > a; sed 1d text.out | cmp - a || fail 'the text is another without -json'
timeout 600 "$DARKNET" amp probe tiny.data tiny.cfg -seed 3 -json - 2> text.err | sed '/"seconds"/d' |
    cmp - healthy.same || fail "-json -: not the JSON alone"
# The yolo layers write no outputs in training.
outputs=$(($(grep -c '^\[' tiny.cfg) - 1 - $(grep -c '^\[yolo' tiny.cfg)))
[ "$(sed -n '/^Outputs/,/^Deltas/p' text.out | grep -c '^ *[0-9]* [a-z]* *|')" = $outputs ] ||
    fail "text: rows of outputs: $(cat text.out)"
grep -q '^nothing needs to be kept in fp32: ' text.out || fail "text: $(tail -2 text.out)"
! grep 'Avg IOU' text.out || fail 'text: what Darknet prints while it trains is in the way'

# ---- a classifier ----
two_kinds
{ sed -n '1,/^$/p' tiny.cfg; printf \
    '[convolutional]\nfilters=2\nsize=1\nactivation=linear\n\n[avgpool]\n\n[softmax]\n'; } > kinds.cfg
probe kinds kinds.data kinds.cfg -iters 2
is kinds "$(list kinds keep_layers)" ''
is kinds "$(value kinds 'layers\[[0-9]*\].type' | tr '\n' ' ')" 'convolutional avgpool softmax '

# ---- bad input: one line, status 1, nothing written ----
refuses() { # refuses <expression> <arguments...>
    ends_saying "$1" timeout 600 "$DARKNET" amp probe "${@:2}" -json bad.json
    [ ! -s out ] && [ ! -e bad.json ] || fail "${*:2}: something was written"
}
refuses 'there.data: cannot read the .data file' there.data tiny.cfg
refuses 'there.cfg' tiny.data there.cfg
refuses 'there.weights: cannot read the weights' tiny.data tiny.cfg there.weights
refuses '-iters' tiny.data tiny.cfg -iters 0
refuses 'CFG is missing' tiny.data
refuses 'there is no such option' tiny.data tiny.cfg -dtype fp16
sed 's/^classes=.*/classes=3/' kinds.data > bad.data
refuses 'bad.data: classes=3, but the network has 2' bad.data kinds.cfg
sed '/^\[softmax\]/,$d' kinds.cfg > headless.cfg
refuses 'a network must end in yolo or region' tiny.data headless.cfg
sed 's/^channels=3/channels=1/' tiny.cfg > grey.cfg
refuses 'channels = 1: detector train makes images of 3 channels' tiny.data grey.cfg
cp backup/trained_final.weights half.weights
head -c 100 backup/trained_final.weights.amp > half.weights.amp
refuses 'half.weights.amp: ' tiny.data moving.cfg half.weights
cp backup/trained_final.weights.amp half.weights.amp
cp rigged.weights half.weights # and that sidecar is of others
probe others tiny.data moving.cfg half.weights -iters 1
grep -q '^amp probe: half.weights.amp belongs to other weights: its loss scale is not taken$' others.err ||
    fail "others: $(cat others.err)"
is others "$(value others loss_scale_from)" cfg
ends_saying there/x.json timeout 600 "$DARKNET" amp probe tiny.data tiny.cfg -iters 1 -json there/x.json
