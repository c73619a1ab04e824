# N ranks train as one does: the same images in the same order, the same weights to the rounding of a sum, one
# log, one mAP; and a training goes on with another number of ranks.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/ranks.bash"
cc -O1 "$SOURCE_DIR/tests/e2e/lib/weights_distance.c" -o weights_distance -lm
tiny_training
sed -i 's/^batch=4/batch=12/; s/^subdivisions=2/subdivisions=12/; s/^learning_rate=.*/learning_rate=0.001/' \
    tiny.cfg
edit() { sed "$2" tiny.cfg > $1.cfg; }

# train <ranks> <.cfg> <options...>: the files that it saved are in backup; what it said in out and err
train() {
    local number=$1 cfg=$2 command=detector
    shift 2
    grep -q '^\[softmax\]' $cfg && command=classifier
    rm -rf backup
    mkdir backup
    ranks $number $command train tiny.data $cfg "$@" -seed 7 > out 2> err < /dev/null ||
        fail "$name: $number ranks: $(grep -a 'amp: \|ranks: ' err | tail -n 3)"
}
weights_of() { ls backup/${1%.cfg}_final.weights backup/${1%.cfg}.weights 2> /dev/null; } # of a .cfg

# near <kept weights> <.cfg> <what>
near() {
    [ -z "${TALK:-}" ] || ./weights_distance $1 "$(weights_of $2)" 1e-6 1e-4 || :
    local said
    said=$(./weights_distance $1 "$(weights_of $2)" 1e-6 1e-4) || fail "$name: $3: $said"
}

# ---- one rank against 2, 3 and 4 ----

# like_one <.cfg> <options...>
like_one() {
    local cfg=$1 n
    shift
    name="$cfg $*"
    train 0 $cfg "$@"
    mv "$(weights_of $cfg)" one.weights
    for n in $ranks; do
        train $n $cfg "$@"
        near one.weights $cfg "$n ranks against one"
    done
}

edit one_step 's/^max_batches=.*/max_batches=1/; s/^burn_in=.*/burn_in=0/'
edit adam '1a adam=1'
edit clip_norm '1a clip_norm=1'
edit sizes 's/^random=0/random=1/; s/^max_batches=.*/max_batches=2/; s/^burn_in=.*/burn_in=0/
    0,/stride=1/s//stride=8/; /^\[dropout\]/,/^$/d' # Darknet cannot resize a dropout
layers > softmax.cfg <<'END'
[net] batch=12 subdivisions=12 width=16 height=16 channels=3 min_crop=16 max_crop=18 learning_rate=0.01
    momentum=0.9 decay=0.0005 max_batches=5
[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=leaky
[dropout] probability=.3
[connected] output=2 activation=linear
[softmax]
END
sed 's/^batch=12/batch=12\ntime_steps=2/; /^\[dropout\]/,/^$/d
    s/^\[connected\]/[crnn]\nbatch_normalize=1\noutput=4\nhidden=4\nactivation=leaky\n\n&/' softmax.cfg > crnn.cfg
printf '%s\n' 1.jpg 2.jpg > labels.txt
sed 's/^names/labels=labels.txt\n&/' tiny.data > both.data
mv both.data tiny.data
sed '1a random=1' crnn.cfg |
    sed '/^\[crnn\]/,/^$/d; s/^\[connected\]/[avgpool]\n\n[connected]/' > class_sizes.cfg
sed -i 's/^max_batches=.*/max_batches=2/' class_sizes.cfg
ranks="2 3 4"
like_one one_step.cfg -amp fp32
like_one tiny.cfg -amp fp32
like_one adam.cfg -amp fp32
like_one clip_norm.cfg -amp fp32
like_one sizes.cfg -amp fp32
like_one softmax.cfg -amp fp32
like_one crnn.cfg -amp fp32
