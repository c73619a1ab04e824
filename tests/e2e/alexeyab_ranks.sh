# AlexeyAB's Darknet in several ranks: they train as one does, running statistics of frozen layers among the
# rest; sequences of images, which they cannot share, are refused.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
RANKS_PROGRAM=darknet-alexeyab-mpi
. "$SOURCE_DIR/tests/e2e/lib/ranks.bash"
cc -O1 "$SOURCE_DIR/tests/e2e/lib/weights_distance.c" -o weights_distance -lm
tiny_alexeyab

sed -i -e '/^\[dropout\]/,/^probability/d' -e 's/^layers=-3/layers=-2/' tiny.cfg
awk '{ print } /^\[convolutional\]/ && ++n == 2 { print "stopbackward=1" }' tiny.cfg > frozen.cfg
for cfg in tiny frozen; do
    for count in 0 2; do
        rm -rf backup of_$count && mkdir backup
        ranks $count detector train tiny.data $cfg.cfg -dont_show -amp fp32 -seed 7 > out 2> err \
            < /dev/null ||
            fail "$cfg.cfg, $count ranks: $(grep -a 'amp: \|ranks: ' err | tail -n 3)"
        mv backup of_$count
    done
    said=$(./weights_distance of_0/${cfg}_final.weights of_2/${cfg}_final.weights 1e-6 1e-4) ||
        fail "$cfg.cfg: 2 ranks against one: $said"
    echo "$cfg.cfg: 2 ranks against one: $said"
done

mkdir backup
sed 's/^batch=8/batch=8\ntrack=1/' tiny.cfg > track.cfg
status=0
ranks 2 detector train tiny.data track.cfg -dont_show -amp fp32 > out 2> err < /dev/null || status=$?
[ $status != 0 ] && grep -aq 'amp: \[net\]: track loads sequences' err ||
    fail "track=1: status $status, $(tail -n 3 err)"
