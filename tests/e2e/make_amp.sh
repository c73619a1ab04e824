# Darknet's own Makefile in a patched copy: AMP=0 is stock Darknet, AMP=1 has the plugin.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/same_text.bash"
"$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" patched

same_text "$DARKNET_TREE" patched

cd patched
make -j"$(nproc)" OPTS=-O0 > ../log 2>&1 || fail "make: $(tail -20 ../log)"
! nm darknet | grep -q darknet_amp || fail 'AMP=0 holds a part of the plugin'
make clean > /dev/null
without_onednn
! make -n AMP=1 CC=./without_onednn > ../log 2>&1 || fail 'make AMP=1 without oneDNN begins'
grep -q 'oneDNN was not found' ../log || fail "make AMP=1 without oneDNN: $(tail -1 ../log)"
# -Ofast links start-up code that sets flush-to-zero: into the program alone.
make -n AMP=1 > ../log
grep -q -- ' -Ofast .* -o darknet ' ../log || fail 'make AMP=1 links the program without -Ofast'
[ "$(grep -c -- '-shared .* -o libdarknet.so' ../log)" = 1 ] && ! grep -q -- '-Ofast.* -shared ' ../log ||
    fail "make AMP=1 links the library with -Ofast: $(grep -- -shared ../log)"
[ "$(grep -c -- ' -Ofast .*-c ' ../log)" -gt 40 ] || fail 'make AMP=1 compiles without -Ofast'
make -j"$(nproc)" OPTS=-O0 AMP_OPTS=-O0 AMP=1 > ../log 2>&1 || fail "make AMP=1: $(tail -20 ../log)"
cd ..
tiny_training
patched/darknet detector train tiny.data tiny.cfg -seed 1 > out 2> err ||
    fail "make AMP=1, then train: $(tail -3 err)"
[ -s backup/tiny_final.weights ] || fail 'make AMP=1, then train: no weights'
