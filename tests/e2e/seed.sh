# -seed N: two runs give the same weights, loader threads and augmentation included;
# another seed gives others. cache=ram changes nothing but where images come from.
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
status_of "$DARKNET" detector train tiny.data tiny.cfg -cache disk
[ $status = 1 ] && [ "$(cat err)" = 'command line: -cache disk: not known; allowed: ram, off' ] ||
    fail "status $status: $(cat err)"

# If the last step is skipped, its batch is followed by others.
sed 's/^max_batches=.*/max_batches=1/' tiny.cfg > skips.cfg
printf '[amp]\namp=1\ndtype=fp16\ninit_scale=1e9\n' >> skips.cfg
succeeds "$DARKNET" detector train tiny.data skips.cfg -seed 7
skipped=$(sed -n 's/.* steps=1 skipped=\([1-9][0-9]*\) .*/\1/p' out err)
[ -n "$skipped" ] || fail "no step was skipped: $(tail -n 3 err)"
kept err $(((1 + skipped) * 4))
