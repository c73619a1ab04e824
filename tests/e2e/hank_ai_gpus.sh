# hank-ai's program with CUDA under AMP, on doubles of CUDA and NCCL: its own main and words, its commands,
# and `detector train -gpus 0,0`: two GPUs train what one does, each goes on from the other's checkpoint, and
# a training on two goes on to the same bytes.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
on_gpus=$BUILD_DIR/tests/hank_ai_on_gpus
[ -x "$on_gpus" ] || skip 'there is no hank_ai_on_gpus: it takes the headers of CUDA and cuDNN, and cmake
-DDARKNET_AMP_HANK_AI=PATH with a program of hank-ai'"'"'s Darknet'
. "$SOURCE_DIR/tests/e2e/lib/on_gpus.bash"
tiny_training
mv labels/* images/
sed -i -e 's/^batch=4/batch=8/' -e 's/^learning_rate=.*/learning_rate=0.0005/' -e 's/^layers=-3/layers=-2/' \
    -e '/^\[dropout\]/,/^probability/d' tiny.cfg

# ---- its commands ----
"$on_gpus" amp version -i 0 > out 2> err || fail "amp version: $(tail -n 2 err)"
grep -q "hank-ai's" out && grep -q 'GPU 0: ' out || fail "amp version: $(cat out)"
"$on_gpus" amp plan tiny.cfg -amp fp16 > out 2> err || fail "amp plan: $(tail -n 2 err)"
[ "$(grep -c '^ *[0-9]* *convolutional .* fp16' out)" = 5 ] || fail "amp plan: $(cat out)"
status=0
"$on_gpus" -i 1 detector train tiny.cfg tiny.data -amp fp16 > out 2> err || status=$?
[ $status = 1 ] && tail -n 1 err | grep -q 'invalid device ordinal: -i and -gpus' || fail "-i 1: status $status, $(tail -n 1 err)"

# ---- two against one; there is no burn-in on one GPU ----
block='[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n'
awk -v block="$block" '{ print } /^\[maxpool\]/ { maxpool = 1 }
    maxpool && /^$/ { printf "%s\n%sshare_index=2\n\n", block, block; maxpool = 0 }' tiny.cfg |
    sed -e '1a amp=1\nsync_batchnorm=1' -e 's/^subdivisions=.*/subdivisions=1/' > synced.cfg
sed -e 's/^random=0/random=1/' -e 's/^max_batches=.*/max_batches=3/' tiny.cfg > resized.cfg
compare detector tiny.data synced.cfg
! grep -q 'down to 1 until burn-in' out || fail 'AMP begins on one GPU'
compare detector tiny.data resized.cfg
same_skips detector tiny.data tiny.cfg
goes_on detector tiny.data tiny.cfg
