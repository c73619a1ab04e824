# AlexeyAB's Darknet in several ranks: they train as one does, rolling statistics of frozen layers among the
# rest; sequences of images, which they cannot share, are refused.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
RANKS_PROGRAM=darknet-alexeyab-mpi
. "$SOURCE_DIR/tests/e2e/lib/ranks.bash"
tiny_alexeyab

sed -i -e '/^\[dropout\]/,/^probability/d' -e 's/^layers=-3/layers=-2/' tiny.cfg
awk '{ print } /^\[convolutional\]/ && ++n == 2 { print "stopbackward=1" }' tiny.cfg > frozen.cfg
# Layers 2 and 3 have the same weights and move the same rolling statistics.
block='[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n'
awk -v block="$block" '{ print } /^\[maxpool\]/ { maxpool = 1 }
    maxpool && /^$/ { printf "%s\n%sshare_index=2\n\n", block, block; maxpool = 0 }' tiny.cfg > shared.cfg
sed '1a amp=1\nsync_batchnorm=1
    s/^subdivisions=.*/subdivisions=1/' shared.cfg > synced.cfg

# trains <ranks> <.cfg>: its files are in backup
trains() {
    fresh
    succeeds ranks $1 detector train tiny.data $2.cfg -dont_show -amp fp32 -seed 7
}
for cfg in tiny frozen shared synced; do
    trains 0 $cfg
    rm -rf of_one && mv backup of_one
    trains 2 $cfg
    weights_near of_one/${cfg}_final.weights backup/${cfg}_final.weights
done

mkdir -p backup
sed 's/^batch=8/batch=8\ntrack=1/' tiny.cfg > track.cfg
status_of ranks 2 detector train tiny.data track.cfg -dont_show -amp fp32
[ $status != 0 ] && grep -aq 'amp: \[net\]: track loads sequences' err ||
    fail "track=1: status $status, $(tail -n 3 err)"

averages() { # averages <ranks> <weights to begin with> <last step>
    averaged_training tiny/tiny_final.weights $3
    ! ranks $1 detector train averaged.data averaged.cfg "$2" -dont_show -amp fp32 -seed 7 > out 2> err \
        < /dev/null || fail "averaged.cfg, $1 ranks: the training did not end"
    grep -aq "beyond 1e19.*last good step: $(($3 + 1))" err || fail "averaged.cfg, $1 ranks: $(tail -n 2 err)"
}
moved() { # moved <folder>: what was saved
    rm -rf $1 && mv backup $1 && mkdir backup
}
trains 0 tiny
moved tiny
averages 0 final.weights 1006
moved one
averages 2 final.weights 1006
moved two
averages 2 final.weights 1004
moved half
averages 2 half/averaged_last.weights 1006
for file in averaged_ema.weights averaged_last.weights; do
    weights_near one/$file two/$file
    cmp two/$file backup/$file || fail "2 ranks, continued: another $file"
    ! cmp -s half/$file two/$file || fail "$file does not change"
done
cmp two/averaged_last.weights.amp backup/averaged_last.weights.amp ||
    fail '2 ranks, continued: another sidecar'
