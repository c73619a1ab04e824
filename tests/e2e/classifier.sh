# A classifier on photographs of clothes, ten kinds, so that chance is right one time in ten: trains
# and validates through Darknet's own `classifier` commands.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/data.bash"
unpack fmnist
cd fmnist
head -400 valid.txt > few.txt
sed -i 's/^valid.*/valid = few.txt/' fmnist.data
layers > fm.cfg <<'END'
[net] batch=32 subdivisions=2 width=28 height=28 channels=3 min_crop=28 max_crop=30 learning_rate=0.05
    momentum=0.9 decay=0.0005 max_batches=4
[amp] dtype=bf16
[convolutional] batch_normalize=1 filters=16 size=3 stride=2 pad=1 activation=leaky
[convolutional] batch_normalize=1 filters=32 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=10 size=1 stride=1 activation=linear
[avgpool]
[softmax]
END
steps=200
[ -z "${SANITIZERS:-}" ] || steps=5 # they are slow: there it only has to run
# Stock's loop ends when max_batches * batch images were seen; 12000 training images make 375 steps an epoch.
sed -i "s/max_batches=4/max_batches=$steps/" fm.cfg
for dtype in bf16 fp16; do
    succeeds "$DARKNET" classifier train fmnist.data fm.cfg -amp $dtype -seed 5
    weights=$(ls backup/fm*.weights backup/fm.backup 2> /dev/null | tail -1)
    [ -n "$weights" ] || fail "$dtype: no weights were saved"
    succeeds "$DARKNET" classifier valid fmnist.data fm.cfg $weights -amp $dtype
    top1=$(tr '\r' '\n' < out | sed -n 's/.*top 1: \([0-9.]*\).*/\1/p' | tail -1)
    echo "$dtype: top-1 $top1"
    [ $steps -lt 200 ] || awk -v a="$top1" 'BEGIN { exit !(a > .3) }' || fail "$dtype: top-1 $top1"
    rm -f backup/fm*
done
