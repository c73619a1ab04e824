# debug=1 names the layer, the tensor, the pass, the step and the image files behind the
# first inf or NaN of a step.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/rigged.bash"
tiny_training

# the_images_named_are_those_of_the_batch: one white image among dark ones, and weights of 3000 in the first
# layer: 27 * 3000 is more than fp16's 65504.
{ printf 'P6\n40 30\n255\n'; bytes '\377' 3600; } > images/5.jpg
layers > bright.cfg <<'END'
[net] batch=8 subdivisions=4 width=32 height=32 channels=3 learning_rate=1e-12 max_batches=12
[amp] dtype=fp16 loss_scale=1 debug=1
[convolutional] filters=8 size=3 stride=2 activation=linear
[convolutional] filters=21 size=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14 classes=2 num=3 jitter=.3 ignore_thresh=.7 truth_thresh=1 random=0
END
{ printf '\0\0\0\0\2\0\0\0\0\0\0\0'; bytes '\0' 8                    # version 0.2.0, no images seen
  bytes '\0' 32; bytes '\000\200\073\105' 216; bytes '\0' $((4 * (21 + 8 * 21))); } > bright.weights
train() { # train <name> <arguments...>
    local name=$1
    shift
    timeout 600 "$DARKNET" "$@" > $name.out 2> $name.err || fail "$*: status $?: $(tail -3 $name.err)"
}
found='^amp: debug: step after [0-9]*: the first inf or NaN was in the output of layer 0 '
found+='\[convolutional\] (forward pass), subdivision [1-4] of 4; '
for seed in '' '-seed 3'; do
    train bright detector train tiny.data bright.cfg bright.weights -clear $seed
    grep '^amp: debug' bright.err > lines || fail "debug=1 $seed: nothing was found: $(tail -3 bright.err)"
    ! grep -v "$found" lines || fail "debug=1 $seed: the lines above name something else"
    holds lines "; images: $PWD/images/5.jpg$"
    # a subdivision of two that holds it twice is listed as a whole
    ! grep -v -e "; images: $PWD/images/5.jpg$" -e "; images: $PWD/images/5.jpg, $PWD/images/5.jpg$" lines ||
        fail "debug=1 $seed: the lines above name another image"
    skipped=$(grep -c '^amp: skipped the step after .* output of layer 0 ' bright.err)
    [ "$skipped" = "$(wc -l < lines)" ] ||
        fail "debug=1 $seed: $skipped steps skipped, but $(wc -l < lines) explained"
done

# Off, nothing is found before the loss.
sed '/^debug=/d' bright.cfg > quiet.cfg
train quiet detector train tiny.data quiet.cfg bright.weights -clear -seed 3
! grep '^amp: debug' quiet.err || fail 'without debug=1 there is a line of it'

# A label that is no number; -Ofast lets Darknet clamp those of boxes away, but not a regressor's.
sed -e '/^\[yolo\]/,$d' -e 's/fp16/bf16/' -e 's/^max_batches.*/max_batches=6/' bright.cfg > regress.cfg
layers >> regress.cfg <<'END'
[connected] output=1 activation=linear
[cost] type=sse
END
for i in 1 2 3 4 6 7 8; do echo 0.$i > labels/$i.txt; done
echo nan > labels/5.txt
sed 's/^classes=.*/classes=1/' tiny.data > regress.data
# its loader thread is still running when it ends, as in the original, and may end it with a signal
timeout 600 "$DARKNET" regressor train regress.data regress.cfg -seed 3 > regress.out 2> regress.err || true
grep '^amp: debug' regress.err > lines || fail "a label of nan: nothing was found: $(tail -3 regress.err)"
grep -q "in the labels (forward pass), subdivision [1-4] of 4; images: $PWD/images/5.jpg$" \
    lines || fail "a label of nan: $(cat lines)"
! grep -v 'images/5.jpg' lines || fail 'a label of nan: the lines above name another image'
holds regress.err '^amp: summary dtype=bf16 steps=6 skipped=[1-9]'

# Ten images a subdivision, and all of them are concerned: eight are listed.
for i in 1 2 3 4 5 6 7 8; do echo 0 .5 .5 .3 .4 > labels/$i.txt; done
sed -e 's/^batch=.*/batch=20/' -e 's/^subdivisions=.*/subdivisions=2/' -e 's/^max_batches=.*/max_batches=1/' \
    bright.cfg > many.cfg
# All of the first layer's weights are 48000.
{ head -c 20 bright.weights; bytes '\0' 32; bytes '\000\200\073\107' 216
  bytes '\0' $((4 * (21 + 8 * 21))); } > many.weights
timeout 600 "$DARKNET" detector train tiny.data many.cfg many.weights -clear > many.out 2> many.err &&
    fail 'weights of 48000 in fp16 trained'
grep -q "subdivision 1 of 2; images: \($PWD/images/[1-8].jpg, \)\{7\}$PWD/images/[1-8].jpg and 2 more$" \
    many.err || fail "$(grep -m1 '^amp: debug' many.err)"
