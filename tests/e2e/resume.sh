# A training that was killed and gone on with from its backup ends in the very bytes of one that was
# not: weights, momentum or moments, loss scale, counters, order of the data. And .weights files go from
# AMP to stock and back.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
batches=130
small_training $batches
sed -i 's/steps=150/steps=115/' tiny.cfg # the rate changes after the stop

# same_end <what> <save to be killed before> <backup> <final> <command up to the .cfg...> -- <options...>
same_end() {
    name=$1
    local nth=$2 backup=$3 final=$4
    local command=() options=()
    shift 4
    while [ "$1" != -- ]; do command+=("$1"); shift; done
    shift
    options=("$@" -seed 3)
    fresh whole
    succeeds "$DARKNET" "${command[@]}" "${options[@]}"
    mv backup whole
    mv err whole/err
    mkdir backup
    status_of trapped TRAP_SAVE=$nth "$DARKNET" "${command[@]}" "${options[@]}"
    [ $status = 137 ] || fail "$name: not killed before save $nth but status $status: $(tail -n 3 err)"
    [ -f "backup/$backup" ] || fail "$name: no backup/$backup after the kill: $(ls backup)"
    ! cmp -s "backup/$backup" "whole/$final" ||
        fail "$name: the backup is the end already: the test is broken"
    succeeds "$DARKNET" "${command[@]}" "backup/$backup" "${options[@]}"
    says "amp: resumed from backup/$backup.amp: step " ', data order continues (-seed 3)'
    cmp "whole/$final" "backup/$final" || fail "$name: other weights than without the stop"
    cmp "whole/$final.amp" "backup/$final.amp" || fail "$name: another sidecar than without the stop"
    no_leftovers
    echo "same end: $name"
}

# Detector: saves are backup, 100, final (random=1: backup, 100, backup, 200, ..., final).
detector() { # detector <what> <.cfg> <options...>
    local what=$1 cfg=$2
    shift 2
    same_end "$what" 3 ${cfg%.cfg}.backup ${cfg%.cfg}_final.weights detector train tiny.data $cfg -- "$@"
}

# Skipped steps before and after the stop, and the stop in the middle of a growth interval.
steps_were_skipped() {
    local all before
    all=$(sed -n 's/^amp: summary .* skipped=\([0-9]*\) .*/\1/p' whole/err)
    before=$(sed -n 's/^amp: resumed from .* \([0-9]*\) skipped,.*/\1/p' err)
    [ "${before:-0}" -gt 0 ] && [ "${all:-0}" -gt "$before" ] ||
        fail "$name: $before of $all steps skipped before the stop: the test is broken"
}

behaviour_25_resume_is_bitwise_the_uninterrupted_run() {
    detector 'SGD, bf16' tiny.cfg -amp bf16
    edit overflows '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=17\ngrowth_factor=64'
    detector 'SGD, fp16, overflows' overflows.cfg
    steps_were_skipped
    edit adam '1a adam=1'
    detector 'Adam, bf16' adam.cfg -amp bf16
    edit adam16 \
        '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=17\ngrowth_factor=64\nadam=1\nadamw=1'
    detector 'AdamW, fp16, overflows' adam16.cfg
    steps_were_skipped
    edit four 's/subdivisions=2/subdivisions=4/'
    detector 'four subdivisions' four.cfg -amp bf16
    # Sizes from 320 to 608, a new one every tenth time (608 alone in the last 200 batches); skipped steps see
    # to it that the stop is in the middle of ten.
    random_sizes 330 tiny.cfg | sed -e '0,/stride=1/s//stride=8/' -e '0,/^filters=16/s//&\nxnor=1/' \
        -e '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=37\ngrowth_factor=64' > random.cfg
    detector 'random=1' random.cfg
    steps_were_skipped
    [ "$(grep -c '^Resizing' out)" -gt 10 ] || fail 'random=1: hardly resized'
    edit luck 's/policy=.*/policy=random\npower=2/'
    detector 'policy=random' luck.cfg -amp fp32
}

# A classifier of every kind of layer with state or parameters that a .weights file leaves out or that
# Darknet itself computes.
classifier_training() {
    two_kinds 24
    layers > kinds.cfg <<'CFG'
[net] batch=4 subdivisions=2 width=16 height=16 channels=3 min_crop=16 max_crop=20 learning_rate=0.001
    momentum=0.9 decay=0.0005 policy=poly power=2 max_batches=150
[convolutional] filters=6 size=3 stride=2 pad=1 activation=leaky
[batchnorm]
[deconvolutional] filters=4 size=2 stride=2 activation=leaky
[local] filters=3 size=3 stride=2 pad=1 activation=leaky
[crnn] batch_normalize=1 output_filters=4 hidden_filters=4 activation=leaky
[connected] output=12 batch_normalize=1 activation=leaky
[rnn] output=10 activation=leaky
[gru] output=10
[lstm] output=10
[connected] output=2 activation=linear
[softmax]
[cost] type=sse
CFG
}

behaviour_25_resume_of_a_classifier_with_recurrent_layers() {
    classifier_training
    # It saves after each epoch of 48 batches, and its last.
    same_end 'classifier, bf16' 3 kinds_2.weights kinds.weights classifier train kinds.data kinds.cfg -- \
        -amp bf16
    sed '1a adam=1' kinds.cfg > kinds_adam.cfg
    # Sizes from 128 to 448.
    layers > sizes.cfg <<'CFG'
[net] batch=4 subdivisions=1 width=128 height=128 channels=3 random=1 learning_rate=0.001 momentum=0.9
    max_batches=150
[convolutional] batch_normalize=1 filters=4 size=3 stride=8 pad=1 activation=leaky
[convolutional] filters=2 size=1 stride=1 activation=linear
[avgpool]
[softmax]
CFG
    same_end 'classifier, random=1' 3 sizes_2.weights sizes.weights classifier train kinds.data sizes.cfg -- \
        -amp bf16
    [ "$(grep -c '^Resizing' out)" = 1 ] || fail 'random=1: not resized after the stop'
    same_end 'classifier, Adam, fp16' 3 kinds_adam_2.weights kinds_adam.weights classifier train kinds.data \
        kinds_adam.cfg -- \
        -amp fp16
}

# A .weights file of any Darknet, without a sidecar.
behaviour_26_old_weights_load_with_defaults() {
    name='old weights'
    fresh
    # Stock ends with its loader thread still at work, and may crash or, under a sanitizer, stop there: its
    # weights are saved by then.
    status_of timeout -s KILL 600 "${DARKNET_STOCK:-$DARKNET}" detector train tiny.data short.cfg
    [ -s backup/short_final.weights ] || fail "$name: status $status: $(tail -n 3 err)"
    mv backup/short_final.weights old.weights
    [ "$(ls old.weights* | wc -l)" = 1 ] || fail "$name: $(ls old.weights*)"
    succeeds "$DARKNET" detector train tiny.data short.cfg old.weights -clear -amp fp16
    succeeds "$DARKNET" detector train tiny.data tiny.cfg old.weights -amp fp16
    says 'amp: no old.weights.amp: momentum and loss scale are reset'
    local first
    first=$(sed -n -e 's/^amp: skipped the step after .* loss scale \(.*\) -> .*/\1/p' \
        -e 's/^amp: summary .* scale=\([^ ]*\) .*/\1/p' err | head -n 1)
    [ "$first" = 65536 ] || fail "$name: the loss scale starts at $first"
}

# read_whole <program> <weights> <options...>: as the training is over, it saves what it read; that
# must be the same bytes.
read_whole() {
    local program=$1 weights=$2 options=${ASAN_OPTIONS:-}
    shift 2
    rm -f backup/short_final.weights*
    # Stock's loader writes over the main thread's frames at the end: a sanitizer that reads them to report
    # that may fault itself, and then waits for ever. With handle_segv=0 that fault ends the program.
    [ "$program" != "$DARKNET_STOCK" ] || options=${options:+$options:}handle_segv=0
    status_of env ASAN_OPTIONS="$options" timeout -s KILL 600 "$program" detector train tiny.data short.cfg \
        "$weights" "$@"
    [ $status = 0 ] || [ "$program" = "$DARKNET_STOCK" ] || # which may crash at its end: see above
        fail "$name: $weights: status $status: $(tail -n 3 err)"
    cmp "$weights" backup/short_final.weights ||
        fail "$name: $program $* reads something else than what is in $weights"
}

behaviour_27_amp_and_other_files_are_interchangeable() {
    name=interchangeable
    fresh
    for amp in fp16 off bf16; do
        rm -f backup/*
        succeeds "$DARKNET" detector train tiny.data short.cfg -amp $amp -seed 3
        rm -f $amp.weights*
        for file in backup/short_final.weights*; do mv $file $amp${file#backup/short_final}; done
    done
    [ -f fp16.weights.amp ] && [ ! -e off.weights.amp ] || fail "$name: sidecars: $(ls *.amp)"
    [ "$(stat -c %s fp16.weights)" = "$(stat -c %s off.weights)" ] || fail "$name: files of another size"
    for weights in fp16 off bf16; do
        if [ -n "$DARKNET_STOCK" ]; then read_whole "$DARKNET_STOCK" $weights.weights; fi
        for amp in off fp32 fp16 bf16; do
            read_whole "$DARKNET" $weights.weights -amp $amp
            [ $amp != off ] || ! grep -q 'amp:' err || fail "$name: -amp off says $(grep amp: err)"
        done
    done
    # AMP, off, AMP on one name: the sidecar is of other weights by then, and says so; without it all is well.
    cp fp16.weights chain.weights
    cp fp16.weights.amp chain.weights.amp
    cp off.weights chain.weights
    status_of "$DARKNET" detector train tiny.data tiny.cfg chain.weights -amp fp16
    [ $status = 1 ] || fail "$name: a sidecar of other weights: status $status"
    says 'chain.weights.amp: ' 'chain.weights' 'remove the sidecar'
    rm chain.weights.amp
    succeeds "$DARKNET" detector train tiny.data tiny.cfg chain.weights -amp fp16
}

# What is restored when the sidecar may not say it all.
other_seeds_and_clear() {
    name='other seeds'
    fresh
    status_of trapped TRAP_SAVE=3 "$DARKNET" detector train tiny.data tiny.cfg -amp bf16 -seed 3
    mv backup/tiny.backup start.weights
    mv backup/tiny.backup.amp start.weights.amp
    succeeds "$DARKNET" detector train tiny.data tiny.cfg start.weights -amp bf16 -seed 4
    says 'step 100, loss scale 1, 0 skipped, data order restarts (it was saved with -seed 3)'
    status_of "$DARKNET" detector train tiny.data tiny.cfg start.weights -amp bf16
    says 'data order restarts (it was saved with -seed 3)'
    succeeds "$DARKNET" detector train tiny.data tiny.cfg start.weights -amp bf16 -clear
    says 'amp: -clear: start.weights.amp is not read; momentum and loss scale are reset' "steps=$batches "
    ! grep -q 'resumed' err || fail '-clear: resumed'
    for key in dontsave flipped; do
        edit sided "0,/^filters=8/s//&\n$key=1/"
        succeeds "$DARKNET" detector train tiny.data sided.cfg start.weights -amp bf16 -seed 3
        says 'amp: start.weights.amp is not read, and momentum and loss scale are reset, because ' \
            "$key" 'layer 0 does not load the same weights from start.weights'
    done
    # With the wrong dtype's scale: a note, and the training continues.
    succeeds "$DARKNET" detector train tiny.data tiny.cfg start.weights -amp fp16 -seed 3
    says 'loss scaling was static and is dynamic now' 'data order continues (-seed 3)'
}

sed 's/max_batches=.*/max_batches=6/' tiny.cfg > short.cfg
behaviour_26_old_weights_load_with_defaults
behaviour_27_amp_and_other_files_are_interchangeable
other_seeds_and_clear
behaviour_25_resume_is_bitwise_the_uninterrupted_run
behaviour_25_resume_of_a_classifier_with_recurrent_layers
