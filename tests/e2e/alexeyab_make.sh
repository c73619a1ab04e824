# AlexeyAB's own builds in a patched copy: make AMP=1 and cmake -DAMP=ON have the plugin, and what they
# build trains; where libopencv-dev is here, with OpenCV too.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
. "$SOURCE_DIR/tests/e2e/lib/patches.bash"
needs_alexeyab
[ -z "$SANITIZERS" ] || skip 'the same as without sanitizers'
echo false > mine.sh # which is no script of the tree's
for what in 'patches were applied' 'already up to date'; do # which the second time finds nothing to do
    "$SOURCE_DIR/patches/apply.sh" "$ALEXEYAB_TREE" patched 2> log
    grep -q "patched is AlexeyAB's 59596d78 with Darknet AMP.*$what\$" log || fail "it does not say: $what"
    [ -e patched/net_cam_v4.sh ] || fail "the tree's scripts are not in the copy"
    grep -q ' next: make -C patched AMP=1, or cmake -S patched ' log || fail 'it does not say what is next'
done
tiny_alexeyab
unset DISPLAY WAYLAND_DISPLAY QT_QPA_PLATFORM
trains() { # trains <program> <what>
    rm -f backup/*
    succeeds "$1" detector train tiny.data tiny.cfg -seed 1 -amp bf16
    [ -s backup/tiny_final.weights ] && [ -s backup/tiny_final.weights.amp ] ||
        fail "$2, then train: no weights"
}
trains_with_opencv() {
    grep -q mosaic tiny.cfg || sed -i 's/^\[net\]/[net]\nmosaic=1/' tiny.cfg
    trains "$@"
    grep -q '^ OpenCV version' err && grep -q 'there is no display' err || fail "$2: OpenCV: $(head -5 err)"
}
ccache=$(command -v ccache || true)

cd patched
wants_onednn
wants_cudnn
! make -n | grep -q darknet_amp.h || fail 'AMP=0 builds the plugin'
# C files as C++, as USE_CPP=1 has it, leave the plugin in C.
links_without_ofast LIBSO=1
make -n AMP=1 USE_CPP=1 | grep 'c amp/' | grep -v '^ *gcc' && fail 'USE_CPP=1 compiles the plugin as C++'

settings=(LIBSO=1 AMP_OPTS=-Og CC="$ccache cc" CPP="$ccache c++ -std=c++11")
makes "${settings[@]}"
nm -D libdarknet.so | grep -q 'T darknet_amp_forward' || fail 'the library holds no plugin'
! nm -D --defined-only libdarknet.so | grep -v ' amp_scaler_' | grep ' amp_' ||
    fail 'the library exports what is inside the plugin'
cd ..
trains patched/darknet 'make AMP=1'
# Without -Ofast a maxpool window of NaN has no largest number, and stock's backward writes in front of an
# array, which free() notices at the end.
sed -e 's/^learning_rate=.*/learning_rate=1e20/' -e 's/^batch=8/batch=4/' tiny.cfg > diverging.cfg
succeeds patched/darknet detector train tiny.data diverging.cfg -amp off
grep -q nan out || fail 'no NaN in a training with a learning rate of 1e20'
opencv=OFF
if [ -n "$ALEXEYAB_OPENCV" ]; then
    opencv=ON
    (cd patched && touch_opencvs && makes "${settings[@]}" OPENCV=1)
    trains_with_opencv patched/darknet 'make AMP=1 OPENCV=1'
fi

# CMake compiles each file of Darknet's twice, for the library and for the program; the program is built here.
cmake -S patched -B build -DAMP=ON -DENABLE_OPENCV=$opencv -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_C_COMPILER_LAUNCHER="$ccache" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$ccache" > log 2>&1 ||
    fail "cmake -DAMP=ON: $(tail -5 log)"
cmake --build build --target darknet -- -j"$(nproc)" > log 2>&1 ||
    fail "cmake -DAMP=ON: $(grep -m 5 -i 'error\|undefined' log)"
if [ $opencv = ON ]; then trains_with_opencv build/darknet 'cmake -DAMP=ON -DENABLE_OPENCV=ON'
else trains build/darknet 'cmake -DAMP=ON'
fi
