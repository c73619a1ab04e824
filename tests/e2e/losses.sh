# A softmax classifier whose learning rate is 1: probabilities of true classes are 0 in fp32, and stock's loss
# is inf, while all gradients are finite. Under AMP it learns what it learns in stock.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
mkdir images backup
python3 - <<'END'
import os
import random
random.seed(7)
kinds = "red", "green", "blue"
with open("train.txt", "w") as train, open("valid.txt", "w") as valid:
    for i in range(150):
        name = f"images/{i}_{kinds[i % 3]}.jpg"
        with open(name, "wb") as image:
            image.write(b"P6\n16 16\n255\n")
            image.write(bytes(random.randrange(120) + (90 if k % 3 == i % 3 else 20) for k in range(768)))
        (train if i < 90 else valid).write(f"{os.getcwd()}/{name}\n")
END
printf '%s\n' red green blue > kinds.names
printf '%s\n' classes=3 train=train.txt valid=valid.txt labels=kinds.names names=kinds.names backup=backup \
    top=1 > kinds.data
layers > loud.cfg <<'END'
[net] batch=16 subdivisions=1 width=16 height=16 channels=3 min_crop=16 max_crop=16 learning_rate=1
    momentum=.8 decay=.0005 max_batches=400 policy=steps steps=100,300 scales=.03,.1
[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=3 size=1 stride=1 activation=linear
[avgpool]
[softmax]
END
newest() { ls -t backup/*.weights | head -n 1; }
for seed in 1 2 3; do
    for dtype in off fp32 bf16 fp16; do
        rm -f backup/*
        succeeds "$DARKNET" classifier train kinds.data loud.cfg -amp $dtype -seed $seed
        succeeds "$DARKNET" amp valid kinds.data loud.cfg "$(newest)" -amp $dtype
        top1=$(sed -n 's/.*top-1 accuracy = .* \([0-9.]*\) %$/\1/p' out)
        [ $dtype != off ] || stock=$top1
        awk "BEGIN { exit !($top1 >= $stock - 2) }" ||
            fail "seed $seed, $dtype: top-1 $top1 %, stock's $stock %"
    done
done

# A bias of 300 before the softmax of ready weights: one step, which is made.
one_step() { # one_step <program> [option...]
    for dtype in fp32 bf16 fp16; do
        rm -f backup/*
        succeeds "$1" classifier train kinds.data one.cfg sure.weights -clear -amp $dtype -seed 1 "${@:2}"
        grep -q '^amp: summary .* steps=1 skipped=0 ' err || fail "$1 $dtype: $(grep '^amp: [st]' err)"
        grep -q '^amp: layer 3 \[softmax\]: the probability of an image.s class is 0 in fp32' err ||
            fail "$1 $dtype: $(grep '^amp: layer' err)"
        grep -qE '^ ?1, [^:]*: [12][0-9][0-9]\.' out || fail "$1 $dtype: $(grep ' avg' out)"
    done
}
cp "$(newest)" sure.weights
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
ends_saying 'first in output of layer 1 .*; try dtype=bf16, or amp=0 in layer 1, since fp16 holds no output' \
    "$DARKNET" classifier train kinds.data beyond.cfg sure.weights -clear -amp fp16 -seed 1
sed '/^activation=linear/ a amp=0' beyond.cfg > kept.cfg
for how in 'beyond.cfg bf16' 'kept.cfg fp16'; do
    succeeds "$DARKNET" classifier train kinds.data ${how% *} sure.weights -clear -amp ${how#* } -seed 1
done
