# AlexeyAB's `detector train -gpus 0,0` and `classifier train` under AMP, on doubles of CUDA and NCCL: two
# GPUs train what one does, each goes on from the other's checkpoint, and a training on two goes on to the
# same bytes.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
on_gpus=$BUILD_DIR/tests/alexeyab_train_on_gpus
[ -x "$on_gpus" ] || skip 'there is no alexeyab_train_on_gpus: it takes the headers of CUDA and cuDNN'
. "$SOURCE_DIR/tests/e2e/lib/on_gpus.bash"
tiny_alexeyab
sed -i -e '/^\[dropout\]/,/^probability/d' -e 's/^layers=-3/layers=-2/' tiny.cfg

# ---- two against one ----
block='[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n'
awk -v block="$block" '{ print } /^\[maxpool\]/ { maxpool = 1 }
    maxpool && /^$/ { printf "%s\n%sshare_index=2\n\n", block, block; maxpool = 0 }' tiny.cfg |
    sed -e '1a amp=1\nsync_batchnorm=1' -e 's/^subdivisions=.*/subdivisions=1/' > synced.cfg
awk '{ print } /^\[convolutional\]/ && ++n == 2 { print "stopbackward=2" }' tiny.cfg |
    sed -e 's/^random=0/random=1/' -e 's/^max_batches=.*/max_batches=3/' > resized.cfg
printf '%s\n' '[net]' batch=8 subdivisions=2 width=32 height=32 channels=3 max_batches=4 learning_rate=.01 \
    '[convolutional]' filters=8 size=3 stride=2 activation=leaky batch_normalize=1 \
    '[convolutional]' filters=2 size=1 activation=linear '[avgpool]' '[softmax]' > class.cfg
two_kinds
compare detector tiny.data synced.cfg
compare detector tiny.data resized.cfg
compare classifier kinds.data class.cfg
sed 's/classes=2/classes=80/' tiny.data > coco.data
tr -d '\r' < "$ALEXEYAB_TREE/cfg/yolov4-tiny.cfg" | sed -e 's/^\(width\|height\) *=.*/\1=32/' \
    -e 's/^batch *=.*/batch=8/' -e 's/^subdivisions *=.*/subdivisions=2/' -e 's/^burn_in *=.*/burn_in=0/' \
    -e 's/^max_batches *=.*/max_batches=1/' -e '/^mosaic\|^cutmix/d' > yolov4.cfg
compare detector coco.data yolov4.cfg

same_skips detector tiny.data tiny.cfg
goes_on detector tiny.data tiny.cfg

# Averaged weights (ema_alpha), as in alexeyab_ranks.sh: a rate beyond all bounds ends such a training when
# its files were saved.
averages() { # averages <gpus> <folder> <weights to begin with> <last step, where it saves>
    sed -e 's/^max_batches=.*/max_batches=2006\nema_alpha=.5/' -e 's/^scales=.*/scales=1e30/' \
        -e "s/^steps=.*/steps=$(($4 + 1))/" tiny.cfg > averaged.cfg
    { cat tiny.data; echo savelast=$(($4 / 2)); } > averaged.data
    on $1 $2 detector averaged.data averaged.cfg $3
    [ $status = 1 ] && grep -a "beyond 1e19.*last good step: $(($4 + 1));" err |
        grep -q 'last saved: backup/averaged_last.weights' || fail "averages on $1: $(tail -n 2 err)"
}
cp whole/tiny_final.weights final.weights
printf '\120\037\0\0\0\0\0\0' | dd of=final.weights bs=1 seek=12 conv=notrunc 2> dd # 8016 images: 1002 steps
averages 0 one final.weights 1006
averages 0,0 two final.weights 1006
averages 0,0 half final.weights 1004
averages 0,0 went_on half/averaged_last.weights 1006
for file in averaged_ema.weights averaged_last.weights; do
    near one/$file two/$file
    cmp two/$file went_on/$file || fail "two GPUs, continued: another $file"
    ! cmp -s half/$file two/$file || fail "$file does not change"
done

# ---- refused ----
sed 's/^batch=8/batch=8\ntrack=1/' tiny.cfg > track.cfg
on 0,0 two detector tiny.data track.cfg
[ $status = 1 ] && tail -n 1 err | grep -q '^amp: \[net\]: track loads sequences of .* 2 ranks cannot' ||
    fail "track: status $status, $(tail -n 1 err)"
