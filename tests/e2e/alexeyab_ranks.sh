# AlexeyAB's Darknet in several ranks: they train as one does, rolling statistics of frozen layers among the
# rest; sequences of images, which they cannot share, are refused.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
RANKS_PROGRAM=darknet-alexeyab-mpi
. "$SOURCE_DIR/tests/e2e/lib/ranks.bash"
tiny_alexeyab

rank_networks
awk '{ print } /^\[convolutional\]/ && ++n == 2 { print "stopbackward=1" }' tiny.cfg > frozen.cfg

# trains <ranks> <.cfg>: its files are in backup
trains() {
    fresh
    succeeds ranks $1 detector train tiny.data $2.cfg -dont_show -amp fp32 -seed 7
}
for cfg in tiny frozen shared synced; do
    trains 0 $cfg
    rm -rf of_one && mv backup of_one
    [ $cfg != tiny ] || cp of_one/tiny_final.weights start.weights
    trains 2 $cfg
    weights_near of_one/${cfg}_final.weights backup/${cfg}_final.weights
done

mkdir -p backup
status_of ranks 2 detector train tiny.data track.cfg -dont_show -amp fp32
[ $status != 0 ] && grep -aq 'amp: track=1 in \[net\] loads images' err ||
    fail "track=1: status $status, $(tail -n 3 err)"

averaged() { # averaged <ranks> <folder> <weights>
    local number=$(($1 == 1 ? 0 : $1))
    fresh $2
    ! ranks $number detector train averaged.data averaged.cfg $3 -dont_show -amp fp32 -seed 7 > out 2> err \
        < /dev/null || fail "averaged.cfg, $1 ranks: the training did not end"
    mv backup $2
}
averages_go_on averaged start.weights
