# A softmax classifier that is sure of a wrong class: the probability of the true one is 0 in fp32, and
# stock's loss is inf, while all gradients are finite. Under AMP such a step is made, as in stock.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
two_kinds
layers > loud.cfg <<'END'
[net] batch=8 subdivisions=1 width=16 height=16 channels=3 min_crop=16 max_crop=16 learning_rate=1
    momentum=.8 decay=.0005 max_batches=400
[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=2 size=1 stride=1 activation=linear
[avgpool]
[softmax]
END

# A bias of 300 before the softmax: one step, which is made.
one_step() { # one_step <program> [option...]
    for dtype in fp32 bf16 fp16; do
        rm -f backup/*
        succeeds "$1" classifier train kinds.data one.cfg sure.weights -clear -amp $dtype -seed 1 "${@:2}"
        holds err '^amp: summary .* steps=1 skipped=0 '
        holds err '^amp: layer 3 \[softmax\]: the probability of an image.s class is 0 in fp32'
        grep -qE '^ ?1, [^:]*: [12][0-9][0-9]\.' out || fail "$1 $dtype: $(grep ' avg' out)"
    done
}
succeeds "$DARKNET" partial loud.cfg /dev/null sure.weights 100 # random ones
bias() { # bias <four bytes>: of the first class
    printf "$1" | dd of=sure.weights bs=1 seek=$((20 + 4 * (4 * 8 + 8 * 27))) conv=notrunc status=none
}
bias '\000\000\226\103'
sed 's/^max_batches=.*/max_batches=1/; /^batch=/ a init_scale=64' loud.cfg > one.cfg
one_step "$DARKNET"
[ -z "${ALEXEYAB:-}" ] || one_step "$ALEXEYAB" -dont_show

# A bias of 100000 is beyond fp16 in every step, whatever the learning rate: the message says so.
bias '\000\120\303\107'
sed 's/^max_batches=.*/max_batches=150/' loud.cfg > beyond.cfg
rm -f backup/*
ends_saying 'first .* output of layer 1 .*; try dtype=bf16, or amp=0 in layer 1, since fp16 holds no output' \
    "$DARKNET" classifier train kinds.data beyond.cfg sure.weights -clear -amp fp16 -seed 1
sed '/^activation=linear/ a amp=0' beyond.cfg > kept.cfg
for how in 'beyond.cfg bf16' 'kept.cfg fp16'; do
    succeeds "$DARKNET" classifier train kinds.data ${how% *} sure.weights -clear -amp ${how#* } -seed 1
done
