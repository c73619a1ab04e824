# Darknet's own Makefile in a patched copy: AMP=0 is stock Darknet, AMP=1 has the plugin. (Here and in the
# other tests that build Darknet by its own Makefile, the plugin is compiled by -Og or -O1, which takes half
# the time that -O0 takes: its vector operations are functions that are inlined in any case.)
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/patches.bash"
. "$SOURCE_DIR/tests/e2e/lib/same_text.bash"
"$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" patched

same_text "$DARKNET_TREE" patched

# The same text, compiled and linked by the same commands.
(cd "$DARKNET_TREE" && make -n) > commands
[ "$(grep -c -- ' -c ' commands)" -gt 40 ] || fail "make in stock Darknet: $(tail -5 commands)"
cd patched
make -n | diff ../commands - || fail 'AMP=0 is not built as stock Darknet is'
wants_onednn
links_without_ofast
[ "$(grep -c -- ' -Ofast .*-c ' ../log)" -gt 40 ] || fail 'make AMP=1 compiles without -Ofast'
makes AMP_OPTS=-Og
cd ..
tiny_training
succeeds patched/darknet detector train tiny.data tiny.cfg -seed 1
[ -s backup/tiny_final.weights ] || fail 'make AMP=1, then train: no weights'

# With OpenCV, where libopencv-dev is here.
pkg-config --exists opencv4 || exit 0
(cd patched && touch_opencvs && makes AMP_OPTS=-Og OPENCV=1)
[ "$(ldd patched/darknet | grep -c opencv_imgcodecs)" = 1 ] || fail 'make OPENCV=1 without OpenCV'
for cache in off ram; do
    rm -f backup/*
    succeeds patched/darknet detector train tiny.data tiny.cfg -seed 1 -amp bf16 -cache $cache
    mv backup/tiny_final.weights $cache.weights
done
holds err 'cache=ram: 8 of 8 images were kept'
cmp off.weights ram.weights || fail 'with OpenCV -cache ram changes the weights'
