# -seed N, with the program of each fork: two runs give the same weights, loader threads and augmentation
# included; another seed gives others. A cache changes nothing but where images come from; photos that it
# reduces are reduced whether they come from it or not.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"

train() { # train <name> <arguments...>
    local name=$1
    shift
    "$program" detector train tiny.data tiny.cfg "$@" "${options[@]}" > $name.out 2> $name.err ||
        fail "$fork: $*: $(tail -3 $name.err)"
    mv backup/tiny_final.weights $name.weights
}
same() { # same <name> <others...>: the weights
    local name=$1 other
    shift
    for other; do cmp $name.weights $other.weights || fail "$fork: $other: other weights than $name"; done
}

# kept <stderr> <images>: that run kept images, and most came from there. pjreddie's program kept all eight
# and loaded exactly <images>: after the last step no batch is loaded.
kept() {
    holds $1 '^amp: cache=ram: room for 8 of the 8 images of the training list, '
    local asked found all='[1-8]'
    [ $fork != pjreddie ] || all=8
    local counts='of 8 images were kept, .*; of \([0-9]*\) loaded images, \([0-9]*\) came from the cache'
    read -r asked found <<< "$(sed -n "s/^amp: cache=ram: $all $counts/\1 \2/p" $1)"
    [ "$found" -gt 8 ] && [ "$found" -lt "$asked" ] || fail "$fork: $1: $(grep cache $1)"
    [ $fork != pjreddie ] || [ "$asked" = $2 ] || fail "$1: $(grep cache $1)"
}

seeds() { # seeds <-amp...>
    local amp
    for amp; do
        train $amp.first -amp $amp -seed 7
        train $amp.second -amp $amp -seed 7
        train $amp.other -amp $amp -seed 8
        same $amp.first $amp.second
        ! cmp -s $amp.first.weights $amp.other.weights ||
            fail "$fork: -amp $amp: -seed 7 and -seed 8 give the same weights"
    done
}

images_in_memory() {
    sed -i 's/^max_batches=5/max_batches=12/; s/^learning_rate=0.01/learning_rate=0.001/' tiny.cfg
    train plain -amp bf16 -seed 7
    train ram -amp bf16 -seed 7 -cache ram
    kept ram.err $((12 * 4))
    echo 'cache = ram' >> tiny.data
    train data -amp bf16 -seed 7
    kept data.err $((12 * 4))
    train over -amp bf16 -seed 7 -cache off
    ! grep -q '^amp: cache' over.err || fail "$fork: -cache off: $(grep cache over.err)"
    same plain ram data over
    sed -i '/^cache/d' tiny.data
}

# Photos of 640x480, reduced by 4. Cold, warm, in memory, resumed, beside another training: the same bytes.
photos_are_reduced() {
    local held='^amp: cache=disk: backup/photos.txt.images holds'
    large_photos
    train photos -amp bf16 -seed 7
    train cold -amp bf16 -seed 7 -cache disk
    train warm -amp bf16 -seed 7 -cache disk
    train memory -amp bf16 -seed 7 -cache ram
    grep -q "$held 0 images for this network; the other 8 of the training list take about" cold.err &&
        grep -q '^amp: cache=disk: 8 of 8 images were kept, [01].[48] MiB' cold.err &&
        grep -q "$held 8 images for this network; the other 0" warm.err &&
        grep -q '^amp: cache=disk: 0 of 8 .*; of \([0-9]*\) loaded images, \1 came' warm.err ||
        fail "$fork: $(grep cache= cold.err warm.err)"
    kept memory.err $((12 * 4))
    mkdir half
    sed 's/^max_batches=12/max_batches=6/' tiny.cfg > half/tiny.cfg
    succeeds "$program" detector train tiny.data half/tiny.cfg -amp bf16 -seed 7 -cache disk "${options[@]}"
    mv backup/tiny_final.weights* half
    train resumed half/tiny_final.weights -amp bf16 -seed 7 -cache disk
    holds resumed.err 'amp: resumed from .*: step 6,'
    rm backup/photos.txt.images
    cp tiny.cfg beside.cfg
    "$program" detector train tiny.data beside.cfg -amp bf16 -seed 7 -cache disk "${options[@]}" \
        > beside.out 2> beside.err &
    train shared -amp bf16 -seed 7 -cache disk
    wait $! || fail "$fork: $(tail -n 3 beside.err)"
    mv backup/beside_final.weights beside.weights
    same cold warm memory resumed shared beside
    ! cmp -s cold.weights photos.weights || fail "$fork: photos were not reduced"
}

of() { # of <fork> <program> <-amp of seeds> [option...]
    fork=$1 program=$2 options=("${@:4}")
    mkdir $fork && cd $fork
    if [ $fork = pjreddie ]; then tiny_training; else tiny_alexeyab; fi
    seeds $3
    images_in_memory
    photos_are_reduced
}
(of pjreddie "$DARKNET" 'off bf16')
[ -z "$ALEXEYAB" ] || (of alexeyab "$ALEXEYAB" bf16 -dont_show)
[ -z "$HANK_AI" ] || (of hank_ai "$HANK_AI" bf16 -dont_show)

cd pjreddie
succeeds "$DARKNET" amp plan tiny.cfg tiny.data -json plan.json
grep -q 'A cache of the 8 training images, at cache_scale=2: about 0.4 MiB more, of RAM' out &&
    grep -q '"bytes": 460800' plan.json || fail "amp plan: $(grep -A 1 cache out)"
program=$DARKNET options=() fork=pjreddie
train none -amp off -seed 7 -cache ram
[ "$(grep cache none.err)" = 'amp: -cache ram has no effect, since AMP is off' ] ||
    fail "-amp off: $(grep cache none.err)"
echo 'cache_scale = 0' >> tiny.data
train whole -amp bf16 -seed 7 -cache disk
same photos whole

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
