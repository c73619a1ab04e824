# For tests of AlexeyAB's Darknet, whose tree no script of ours gets: needs_alexeyab skips them without it.
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"

needs_alexeyab() {
    [ -n "$ALEXEYAB_TREE" ] ||
        skip "no tree of AlexeyAB's Darknet in alexeyab/ of the folders that DARKNET_AMP_TREES lists"
}

# As tiny_training, for this Darknet and hank-ai's: they look for labels beside the images, want 8 images a
# step, and train with their own rules of yolo, which diverge sooner.
tiny_alexeyab() {
    tiny_training
    mv labels/* images/
    sed -i -e 's/^batch=4/batch=8/' -e 's/^learning_rate=.*/learning_rate=0.0005/' tiny.cfg
}

# class_training <keys of [net]...>: class.cfg and kinds.data, a classifier
class_training() {
    two_kinds
    layers > class.cfg <<END
[net] batch=8 subdivisions=2 width=32 height=32 channels=3 learning_rate=0.01 max_batches=4 $*
[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=2 size=1 activation=linear
[avgpool]
[softmax]
END
}

# same_as_stock <name> <arguments...>: stock, stock again and patched, without AMP, save the same weights
same_as_stock() {
    local name=$1 file
    shift
    [ -e one_order.so ] ||
        cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/one_order.c" -o one_order.so -ldl
    train_in_one_order "$ALEXEYAB_STOCK" "$name/stock" "$@"
    train_in_one_order "$ALEXEYAB_STOCK" "$name/again" "$@"
    train_in_one_order "$ALEXEYAB" "$name/patched" "$@"
    ls "$name"/stock/*.weights > /dev/null || fail "$name: no weights"
    for file in "$name"/stock/*.weights; do
        cmp "$file" "$name/again/$(basename "$file")" ||
            fail "$name: stock Darknet differs from itself: the test is broken"
        cmp "$file" "$name/patched/$(basename "$file")" ||
            fail "$name: the patched Darknet trains to other weights"
    done
}
train_in_one_order() { # train_in_one_order <program> <folder> <arguments...>
    local program=$1 folder=$2
    shift 2
    mkdir -p "$folder" && rm -f backup/*
    preloaded one_order.so OMP_NUM_THREADS=1 "$program" "$@" > "$folder/out" 2> "$folder/err" ||
        fail "$program $*: $(tail -3 "$folder/err")"
    ! grep -q nan "$folder/out" || fail "$*: NaN, so that the bytes say nothing"
    mv backup/* "$folder"
}

# averaged_training <weights> <last step, where it saves>: averaged.cfg and averaged.data, and final.weights
# of these to begin with. Averaged weights (ema_alpha) are made from step 1003 of 2006 on, and 1000 before the
# end they become the weights. A rate beyond all bounds ends such a training when its files were saved.
averaged_training() {
    sed -e 's/^max_batches=.*/max_batches=2006\nema_alpha=.5/' -e 's/^scales=.*/scales=1e30/' \
        -e "s/^steps=.*/steps=$(($2 + 1))/" tiny.cfg > averaged.cfg
    { cat tiny.data; echo savelast=$(($2 / 2)); } > averaged.data
    cp "$1" final.weights
    printf '\120\037\0\0\0\0\0\0' | dd of=final.weights bs=1 seek=12 conv=notrunc 2> dd # of 1002 steps
}

# averages_go_on <training> <weights of tiny.cfg>: with averaged weights two ranks train what one does, and
# continue to the same files. training <1 or 2 ranks> <folder for its files> <weights to begin with>: of
# averaged.cfg, which ends as above
averages_go_on() {
    local run file last name ranks first
    for run in 'one 1 final 1006' 'two 2 final 1006' 'half 2 final 1004' \
        'went_on 2 half/averaged_last 1006'; do
        read -r name ranks first last <<< "$run"
        averaged_training "$2" $last
        $1 $ranks $name $first.weights
        holds err "beyond 1e19.*last good step: $((last + 1));"
    done
    for file in averaged_ema.weights averaged_last.weights; do
        weights_near one/$file two/$file
        cmp two/$file went_on/$file || fail "2 ranks, continued: another $file"
        ! cmp -s half/$file two/$file || fail "$file does not change"
    done
    cmp two/averaged_last.weights.amp went_on/averaged_last.weights.amp ||
        fail '2 ranks, continued: another sidecar'
}

# tiny.cfg for ranks, without the dropout, whose numbers they draw otherwise; shared.cfg, in which layers
# 2 and 3 have the same weights and move the same rolling statistics; synced.cfg, with sync_batchnorm; and
# track.cfg.
rank_networks() {
    local block='[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\npad=1\nactivation=leaky\n'
    sed -i -e '/^\[dropout\]/,/^probability/d' -e 's/^layers=-3/layers=-2/' tiny.cfg
    awk -v block="$block" '{ print } /^\[maxpool\]/ { maxpool = 1 }
        maxpool && /^$/ { printf "%s\n%sshare_index=2\n\n", block, block; maxpool = 0 }' tiny.cfg > shared.cfg
    sed -e '1a amp=1\nsync_batchnorm=1' -e 's/^subdivisions=.*/subdivisions=1/' shared.cfg > synced.cfg
    sed 's/^batch=8/batch=8\ntrack=1/' tiny.cfg > track.cfg
}

# Trainings under AMP by $program (AlexeyAB's unless it is set), of a $kind (detector or classifier) on $data.
kind=detector data=tiny.data
train() { # train <folder> <.cfg> <arguments...>
    local folder=$1 cfg=$2
    shift 2
    rm -rf "$folder" backup/*
    mkdir "$folder"
    "${program:-$ALEXEYAB}" $kind train $data "$cfg" "$@" -dont_show -seed 3 > "$folder.out" \
        2> "$folder.err" < /dev/null || fail "train $cfg $*: $(tail -2 "$folder.err" "$folder.out")"
    mv backup/* "$folder"
}
goes_on() { # goes_on <.cfg> <arguments...>: a training of 4 steps, and one that goes on after 2, end alike
    local cfg=$1 name=${1%.cfg} file
    shift
    mkdir -p short
    sed -i 's/^max_batches=.*/max_batches=4/' "$cfg"
    sed 's/^max_batches=.*/max_batches=2/' "$cfg" > "short/$cfg"
    train whole "$cfg" "$@"
    train half "short/$cfg" "$@"
    train later "$cfg" "half/${name}_final.weights" "$@"
    for file in "${name}_final.weights" "${name}_final.weights.amp"; do
        cmp "whole/$file" "later/$file" || fail "$kind $cfg $*: a continued training ends with another $file"
    done
}
