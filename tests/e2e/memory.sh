# A training that does not fit into memory says so before it begins, with both numbers and with what fits, and
# makes nothing; what it proposes trains under the same limit. Under twenty limits between too little and
# enough each training either trains or ends with a line and status 1, never by a signal. What a training
# leaves is for decoded images (cache=ram).
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/memory_limit.bash"
[ -z "$SANITIZERS" ] || skip 'sanitizers take an address space of their own'
export OMP_NUM_THREADS=1

large_training
refusal='^amp: not enough memory: this training needs [0-9]* MiB, but there are [0-9]* MiB of address space '
refusal+='(ulimit -v); '

# Enough by far, and far too little.
train 16000 large.cfg -amp bf16 || fail "does not train: $(tail -n 3 out)"
! grep -q 'amp: warning' out || fail "a warning with 16 GB: $(grep 'amp: warning' out)"
[ -s backup/large_final.weights ] || fail 'no weights'
train 16000 large.cfg -amp bf16 -cache ram || fail "does not train: $(tail -n 3 out)"
grep -q '^amp: cache=ram: room for 8 of the 8 images' out || fail "$(grep cache out)"
sed 's/^batch=32/batch=512/; s/^subdivisions=2/subdivisions=1/' large.cfg > huge.cfg
status=0
train 1500 huge.cfg -amp fp32 || status=$?
[ $status = 1 ] && [ "$(grep -c "$refusal" out)" = 1 ] || fail "status $status: $(tail -n 3 out)"
[ "$(tail -n 1 out | grep -c "$refusal")" = 1 ] || fail "more is printed behind it: $(tail -n 3 out)"
[ -z "$(ls backup)" ] || fail "something was made: $(ls backup)"

# The least limit that trains, to 2 MiB.
least_limit 2

# Nothing of that is for decoded images.
train $high large.cfg -amp fp32 -cache ram || fail "does not train with a cache: $(tail -n 3 out)"
grep -q '^amp: cache=ram: room for 0 of the 8 images.*; 0 MiB' out || fail "$(grep cache out)"
grep -q '^amp: cache=ram: 0 of 8 images were kept, 0.0 MiB; of [0-9]* that were loaded, 0 were' out ||
    fail "$(grep cache out)"

# What is proposed under less than that trains.
status=0
train $((high - 40)) large.cfg -amp fp32 || status=$?
[ $status = 1 ] && grep -q "$refusal" out || fail "status $status: $(tail -n 3 out)"
proposed=$(sed -n 's/.*these fit: subdivisions=\([0-9]*\) .*/\1/p' out)
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
