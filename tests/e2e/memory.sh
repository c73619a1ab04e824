# A training that does not fit into memory says so before it begins, with both numbers and with what fits, and
# makes nothing; what it proposes trains under the same limit. Under twenty limits between too little and
# enough each training either trains or ends with a line and status 1, never by a signal. What a training
# leaves is for decoded images (cache=ram). With -fit it trains with more subdivisions or with activation
# checkpointing, whichever the planner takes for faster, and ends in the bytes of a training whose .cfg has
# what -fit has printed; what fits is left as it is, and what cannot fit at all is refused.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
[ -z "$SANITIZERS" ] || skip 'sanitizers take an address space of their own'
export OMP_NUM_THREADS=1

# A training that takes some 120 MiB.
tiny_training
sed -e 's/^batch=4/batch=32/; s/^width=32/width=160/; s/^height=32/height=160/; ' \
    -e 's/^max_batches=5/max_batches=1/' tiny.cfg > large.cfg

# train <MiB of address space> <cfg> [arguments]: its status; all it prints is in `out`.
train() {
    local limit=$1 cfg=$2 status=0
    shift 2
    rm -rf backup && mkdir backup
    (ulimit -v $((limit * 1024)) && exec "$DARKNET" detector train tiny.data "$cfg" -seed 1 "$@") \
        > out 2>&1 || status=$?
    return $status
}

# least_limit <to how many MiB> [.cfg]: sets `high` to a limit under which it (large.cfg) trains in fp32, so
# much at most above the least one.
least_limit() {
    local low=32 middle cfg=${2:-large.cfg}
    high=1024
    while [ $((high - low)) -gt "$1" ]; do
        middle=$(((low + high) / 2))
        if train $middle "$cfg" -amp fp32; then high=$middle; else low=$middle; fi
    done
}

refusal='^amp: not enough memory: this training needs [0-9]* MiB, but there are [0-9]* MiB of address space '
refusal+='(ulimit -v); '

# Enough by far, and far too little.
train 16000 large.cfg -amp bf16 || fail "does not train: $(tail -n 3 out)"
! grep -q 'amp: warning' out || fail "a warning with 16 GB: $(grep 'amp: warning' out)"
mv backup/large_final.weights without.weights
train 16000 large.cfg -amp bf16 -cache ram || fail "does not train: $(tail -n 3 out)"
holds out '^amp: cache=ram: room for 8 of the 8 images'
sed 's/^batch=32/batch=512/; s/^subdivisions=2/subdivisions=1/' large.cfg > huge.cfg
status=0
train 1500 huge.cfg -amp fp32 || status=$?
[ $status = 1 ] && [ "$(grep -c "$refusal" out)" = 1 ] || fail "status $status: $(tail -n 3 out)"
[ "$(tail -n 1 out | grep -c "$refusal")" = 1 ] || fail "more is printed behind it: $(tail -n 3 out)"
[ -z "$(ls backup)" ] || fail "something was made: $(ls backup)"

# The least limit that trains, to 2 MiB.
least_limit 2
least=$high

# Nothing of that is for decoded images.
train $high large.cfg -amp fp32 -cache ram || fail "does not train with a cache: $(tail -n 3 out)"
holds out '^amp: cache=ram: room for 0 of the 8 images.*; 0 MiB'
holds out '^amp: cache=ram: 0 of 8 images were kept, 0.0 MiB; of [0-9]* loaded images, 0 came'

# What is proposed under less than that trains.
status=0
train $((high - 40)) large.cfg -amp fp32 || status=$?
[ $status = 1 ] && grep -q "$refusal" out || fail "status $status: $(tail -n 3 out)"
proposed=$(sed -n 's/.* subdivisions=\([0-9]*\) fits .*/\1/p' out)
[ -n "$proposed" ] || fail "no subdivisions are proposed: $(tail -n 1 out)"
sed "s/^subdivisions=2/subdivisions=$proposed/" large.cfg > fewer.cfg
train $((high - 40)) fewer.cfg -amp fp32 || fail "what was proposed, $proposed subdivisions: $(tail -n 3 out)"

# Whatever the limit: it trains, or one line says why not.
trained=0
for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    limit=$((high * (40 + 4 * step) / 100))
    dtype=$([ $((step % 2)) = 0 ] && echo bf16 || echo fp32)
    (ulimit -v $((limit * 1024)) && exec "$DARKNET" amp check large.cfg) > /dev/null 2>&1 || continue
    status=0
    train $limit large.cfg -amp $dtype || status=$?
    [ $status -le 1 ] || fail "$limit MiB, $dtype: status $status: $(tail -n 3 out)"
    if [ $status = 0 ]; then
        [ -s backup/large_final.weights ] || fail "$limit MiB, $dtype: trained, and no weights"
        trained=$((trained + 1))
    else
        grep -qE '^(amp|darknet|layer [0-9]+).*(memory|started|threads)|^libgomp: ' out ||
            fail "$limit MiB, $dtype: no line says why: $(tail -n 3 out)"
        [ -z "$(ls backup)" ] || fail "$limit MiB, $dtype: something was made"
    fi
done
[ $trained -ge 2 ] || fail "$trained trained"

# What Winograd's filtering does without, two copies of the weights in fp32, is not asked for beforehand.
# (Each of the wide layers has 9 MiB of weights.)
copies_that_are_not_made_are_not_asked_for() {
    layers > wide.cfg <<'END'
[net] batch=2 subdivisions=1 width=64 height=64 channels=3 max_batches=1 learning_rate=.0001
[amp] winograd=1
[convolutional] filters=16 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=512 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=512 size=3 pad=1 activation=leaky
[convolutional] filters=512 size=3 pad=1 activation=leaky
[convolutional] filters=14 size=1 activation=linear
[yolo] mask=0,1 classes=2 num=2 anchors=2,3,4,4
END
    "$DARKNET" amp plan wide.cfg > plan || fail "amp plan: $(tail -n 2 plan)"
    grep -q winograd plan || return 0 # this processor has none
    local with_copies
    sed 's/^winograd=1/winograd=0/' wide.cfg > direct.cfg
    least_limit 4 direct.cfg
    with_copies=$high
    least_limit 4 wide.cfg
    echo "least limit: $with_copies MiB with copies of the weights, $high without"
    [ $((with_copies - high)) -ge 30 ] || fail "$with_copies MiB with copies of the weights, $high without"
}
copies_that_are_not_made_are_not_asked_for

# ---- -fit ----

# by_hand <cfg>: the .cfg with what `out` says that -fit has chosen.
by_hand() {
    local subdivisions
    subdivisions=$(sed -n 's/^amp: -fit: subdivisions=\([0-9]*\) in \[net\].*/\1/p' out)
    sed "s/^subdivisions=.*/subdivisions=${subdivisions:-$(sed -n 's/^subdivisions=//p' "$1")}/" "$1"
    ! grep -q '^amp: -fit: checkpoint=auto in \[amp\]' out || printf '[amp]\namp=1\ncheckpoint=auto\n'
}

what_fits_is_left_as_it_is() {
    train 16000 large.cfg -amp bf16 -fit || fail "does not train: $(tail -n 3 out)"
    holds out "^amp: -fit: the training fits with the .cfg's settings: "
    cmp without.weights backup/large_final.weights || fail '-fit changes what fits'
}

what_does_not_fit_is_made_to_fit() {
    # Below the least limit with which it trains without -fit, -fit has something to do.
    trained=0
    for less in 5 30 60 75 90; do
        limit=$((least - less))
        if train $limit large.cfg -amp fp32 -fit; then
            holds out "^amp: -fit: with the .cfg's settings the training needs "
            by_hand large.cfg > hand.cfg
            ! cmp -s large.cfg hand.cfg || fail "$limit MiB: nothing was changed: $(grep -e -fit out)"
            mv backup/large_final.weights fitted.weights
            train 16000 hand.cfg -amp fp32 || fail "$limit MiB, by hand: $(tail -n 3 out)"
            cmp fitted.weights backup/hand_final.weights ||
                fail "$limit MiB: not what the printed settings train"
            trained=$((trained + 1))
        else
            # Nor does it with one image a pass and all that can be computed again.
            sed 's/^subdivisions=2/subdivisions=32/' large.cfg > least.cfg
            printf '[amp]\namp=1\ncheckpoint=auto\n' >> least.cfg
            holds out '^amp: not enough memory: '
            ! train $limit least.cfg -amp fp32 || fail "$limit MiB are enough with subdivisions=32"
        fi
    done
    [ $trained -ge 2 ] || fail "only $trained of five limits trained"
}

what_no_pass_uses_of_a_batch_changes_nothing() {
    # Two passes of 16 images are a step of batch=33 as of batch=32: -fit chooses the same for both.
    local batch
    for batch in 32 33; do
        sed "s/^batch=.*/batch=$batch/" large.cfg > odd.cfg
        train $((least - 60)) odd.cfg -amp fp32 -fit || fail "batch=$batch: $(tail -n 3 out)"
        holds out "^amp: -fit: with the .cfg's settings the training needs "
        by_hand odd.cfg | sed '/^batch=/d' > chosen.$batch
        mv backup/odd_final.weights odd.$batch
    done
    cmp chosen.32 chosen.33 && cmp odd.32 odd.33 || fail 'another training with batch=33'
}

the_largest_size_has_to_fit() {
    # With random=1 the largest size has to fit: 608 x 608, 14 times the pixels.
    sed 's/random=0/random=1/' large.cfg > random.cfg
    train 1000 random.cfg -amp fp32 -fit || fail "random=1: $(tail -n 3 out)"
    grep -qE '^amp: -fit: (subdivisions=|checkpoint=auto)' out || fail "random=1: $(grep -e -fit out)"
}

# What is no training under AMP is not planned.
train=(detector train tiny.data large.cfg)
ends_saying 'command line: -fit works only in a training under AMP' "$DARKNET" "${train[@]}" -fit
ends_saying 'command line: -fit is given twice' "$DARKNET" "${train[@]}" -amp bf16 -fit -fit

what_fits_is_left_as_it_is
what_does_not_fit_is_made_to_fit
what_no_pass_uses_of_a_batch_changes_nothing
the_largest_size_has_to_fit
