# A detector whose outputs in layer 2 are 8 * 48000, more than fp16 holds, and which 3 reads. Include
# tiny_training.bash first, and call tiny_training.

# bytes <as printf has them> <how often>
bytes() { local i; for ((i = 0; i < $2; i++)); do printf "$1"; done; }

rigged_network() { # rigged.cfg
    layers > rigged.cfg <<'END'
[net] batch=8 subdivisions=2 width=32 height=32 channels=3 learning_rate=1e-20 max_batches=6
[amp] dtype=fp16 loss_scale=1 init_scale=2048
[convolutional] filters=8 size=1 activation=leaky
[convolutional] filters=8 size=1 activation=linear
[convolutional] filters=8 size=1 activation=linear
[convolutional] filters=21 size=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 jitter=.3 ignore_thresh=.7
    truth_thresh=1 random=0
END
}

# rigged_weights <a weight of layer 1> [file]: to rigged.weights; version 0.2.0, no images seen; then biases
# and weights of the four layers
rigged_weights() {
    {
        bytes '\0\0\0\0' 1; bytes '\2\0\0\0' 1; bytes '\0\0\0\0' 1; bytes '\0' 8
        bytes '\0' 32; bytes '\000\000\200\076' 24     # 0: .25
        bytes '\000\000\200\077' 8; bytes "$1" 64      # 1: biases of 1
        bytes '\0' 32; bytes '\000\200\073\107' 64     # 2: 48000
        bytes '\0' 84; bytes '\275\067\206\065' 168    # 3: 1e-6
    } > "${2:-rigged.weights}"
}

# skipped <.cfg> <layers>: steps of six that a training with these layers in fp32 (amp=0) skips; it is of
# trained.cfg
skipped() {
    awk -v kept=" $2 " '{ print }
        /^\[/ && !/^\[net/ && !/^\[amp/ { if (index(kept, " " n++ " ")) print "amp=0" }' $1 > trained.cfg
    timeout 600 "$DARKNET" detector train tiny.data trained.cfg rigged.weights -clear -seed 3 > trained.out \
        2> trained.err || true
    holds trained.err '^amp: summary\|^amp: training has collapsed'
    sed -n 's/^amp: summary dtype=fp16 .* skipped=\([0-9]*\) .*/\1/p' trained.err | grep . ||
        grep -c 'skipped the step after .*inf or NaN' trained.err
}
