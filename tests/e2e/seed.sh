# -seed N: two runs give the same weights, loader threads and augmentation included;
# another seed gives others. A cache changes nothing but where images come from; photos that it reduces are
# reduced whether they come from it or not.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
train() { # train <name> <arguments...>
    local name=$1
    shift
    "$DARKNET" detector train tiny.data tiny.cfg "$@" > $name.out 2> $name.err ||
        fail "$*: $(tail -3 $name.err)"
    mv backup/tiny_final.weights $name.weights
}
for amp in off bf16; do
    train $amp.first -amp $amp -seed 7
    train $amp.second -amp $amp -seed 7
    train $amp.other -amp $amp -seed 8
    cmp $amp.first.weights $amp.second.weights || fail "-amp $amp: two runs with -seed 7 differ"
    ! cmp -s $amp.first.weights $amp.other.weights ||
        fail "-amp $amp: -seed 7 and -seed 8 give the same weights"
done

# kept <stderr> <images>: that run kept all images, loaded so many, and most came from there. After the last
# step no batch is loaded.
kept() {
    grep -q '^amp: cache=ram: room for 8 of the 8 images of the training list, decoded about ' $1 ||
        fail "$1: no room: $(grep cache $1)"
    local asked found
    local counts='of 8 images were kept, .*; of \([0-9]*\) that were loaded, \([0-9]*\) were there already'
    read -r asked found <<< "$(sed -n "s/^amp: cache=ram: 8 $counts/\1 \2/p" $1)"
    [ "$found" -gt 8 ] && [ "$found" -lt "$asked" ] && [ "$asked" = $2 ] || fail "$1: $(grep cache $1)"
}
sed -i 's/^max_batches=5/max_batches=12/; s/^learning_rate=0.01/learning_rate=0.001/' tiny.cfg
train plain -amp bf16 -seed 7
train ram -amp bf16 -seed 7 -cache ram
kept ram.err $((12 * 4))
echo 'cache = ram' >> tiny.data
train data -amp bf16 -seed 7
kept data.err $((12 * 4))
train over -amp bf16 -seed 7 -cache off
! grep -q cache over.err || fail "-cache off: $(grep cache over.err)"
train none -amp off -seed 7 -cache ram
[ "$(grep cache none.err)" = 'amp: -cache ram has no effect, since AMP is off' ] ||
    fail "-amp off: $(grep cache none.err)"
for name in ram data over; do cmp plain.weights $name.weights || fail "$name: other weights"; done
sed -i '/^cache/d' tiny.data

# Photos of 640x480, reduced by 4. Cold, warm, in memory, resumed, beside another training: the same bytes.
large_photos
train photos -amp bf16 -seed 7
train cold -amp bf16 -seed 7 -cache disk
train warm -amp bf16 -seed 7 -cache disk
train memory -amp bf16 -seed 7 -cache ram
held='^amp: cache=disk: backup/photos.txt.images holds'
grep -q "$held 0 images for this network; the other 8 of the training list take about 0.4 of " cold.err &&
    grep -q "$held 8 images for this network; the other 0" warm.err || fail "$(grep cache= cold.err warm.err)"
grep -q '^amp: cache=disk: 8 of 8 images were kept, 0.4 MiB' cold.err &&
    grep -q '^amp: cache=disk: 0 of 8 .*; of \([0-9]*\) that were loaded, \1 were there already' warm.err &&
    kept memory.err $((12 * 4)) || fail "$(grep cache= cold.err warm.err)"
succeeds "$DARKNET" amp plan tiny.cfg tiny.data -json plan.json
grep -q 'A cache of the 8 training images, at cache_scale=2: about 0.4 MiB more, of RAM' out &&
    grep -q '"bytes": 460800' plan.json || fail "amp plan: $(grep -A 1 cache out)"
mkdir half
sed 's/^max_batches=12/max_batches=6/' tiny.cfg > half/tiny.cfg
succeeds "$DARKNET" detector train tiny.data half/tiny.cfg -amp bf16 -seed 7 -cache disk
mv backup/tiny_final.weights* half
train resumed half/tiny_final.weights -amp bf16 -seed 7 -cache disk
grep -q 'amp: resumed from .*: step 6,' resumed.err || fail "$(grep resumed resumed.err)"
rm backup/photos.txt.images
cp tiny.cfg beside.cfg
"$DARKNET" detector train tiny.data beside.cfg -amp bf16 -seed 7 -cache disk > beside.out 2> beside.err &
train shared -amp bf16 -seed 7 -cache disk
wait $! || fail "$(tail -n 3 beside.err)"
mv backup/beside_final.weights beside.weights
for name in warm memory resumed shared beside; do
    cmp cold.weights $name.weights || fail "$name: other weights"
done
! cmp -s cold.weights photos.weights || fail 'photos were not reduced'
echo 'cache_scale = 0' >> tiny.data
train whole -amp bf16 -seed 7 -cache disk
cmp photos.weights whole.weights || fail 'cache_scale=0: other weights'

status_of "$DARKNET" detector train tiny.data tiny.cfg -cache disc
[ $status = 1 ] && [ "$(cat err)" = 'command line: -cache disc: unknown; allowed: ram, disk, off' ] ||
    fail "status $status: $(cat err)"

# If the last step is skipped, its batch is followed by others.
sed 's/^max_batches=.*/max_batches=1/' tiny.cfg > skips.cfg
printf '[amp]\namp=1\ndtype=fp16\ninit_scale=1e9\n' >> skips.cfg
succeeds "$DARKNET" detector train tiny.data skips.cfg -seed 7 -cache ram
skipped=$(sed -n 's/.* steps=1 skipped=\([1-9][0-9]*\) .*/\1/p' out err)
[ -n "$skipped" ] || fail "no step was skipped: $(tail -n 3 err)"
kept err $(((1 + skipped) * 4))
