# hank-ai's Darknet, where a tree of the user's is: the patches apply exactly, and a struct that has changed
# in its headers stops the build. (The build of these tests compiles the plugin against them.)
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/patches.bash"
[ -n "$HANK_AI_TREE" ] || skip "no tree of hank-ai's Darknet in hank_ai/ of the folders of DARKNET_AMP_TREES"

# ---- patches ----
patches_apply hank_ai "$HANK_AI_TREE" \
    'README.md darknet data family fork.h fork_commands.h hank_ai network program training'
! "$SOURCE_DIR/patches/apply.sh" --adapt "$HANK_AI_TREE" adapted 2> log || fail '--adapt takes a C++ tree'
holds log 'name an unchanged checkout'
! "$SOURCE_DIR/patches/apply.sh" exactly again 2> log || fail 'another revision is taken'
grep -q 'src-lib/connected_layer.cpp differs' log && grep -q 'worktree add FOLDER f684e1d7' log &&
    ! [ -e again ] || fail "another revision: $(cat log)"

# ---- OpenBLAS, which its CMake takes by itself where it is there, is refused ----
opencv=yes
[ -e /usr/include/opencv4/opencv2/opencv.hpp ] || opencv=no
if [ $opencv = yes ]; then
    echo 'void sgemm_(void) {}' | cc -shared -x c - -o libopenblas64.so
    ! cmake -S patched -B build -DDARKNET_AMP=ON -DDARKNET_TRY_CUDA=OFF -DDARKNET_TRY_ROCM=OFF \
        -DCMAKE_LIBRARY_PATH="$PWD" > log 2>&1 || fail 'a build with OpenBLAS is taken'
    grep -q 'DARKNET_TRY_OPENBLAS=OFF\|or higher is required' log || # its own CMake is older
        fail "OpenBLAS: $(tail -5 log)"
fi

# ---- structs ----
cp -R patched/src-lib changed
sed 's/${DARKNET_VERSION_STRING}/v5.1-104-gf684e1d7/' changed/darknet_version.h.in > version
mv version changed/darknet_version.h
ln -s patched/amp amp
print_structs() {
    (cd changed && awk -f ../amp/host/hank_ai/structs.awk darknet.h darknet_internal.hpp darknet_enums.hpp \
        darknet_layers.hpp darknet_network.hpp)
}
known=$(sed -n 's/.*sum STREQUAL "\([0-9a-f]*\)".*/\1/p' "$SOURCE_DIR/cmake/Plugin.cmake")
is_known() { [ "$(print_structs | sha256sum | cut -d' ' -f1)" = "$known" ]; }
is_known || fail 'the structs are not those that the build wants'
mkdir seen
print_structs > seen/structs.h
compiles() {
    g++ -std=c++17 -fsyntax-only -DAMP -Iseen -Ichanged -isystem /usr/include/opencv4 \
        amp/host/hank_ai/layout.cpp > log 2>&1
}
[ $opencv = no ] || compiles || fail "layout.cpp: $(cat log)"
changes='s/^\t\tint out_channels;/&\n\t\tint added[4];/
s/^\t\tfloat scale_x_y;/\t\tfloat scale_of_x_y;/
/^\t\tint flatten;/d; s/^\t\tint spatial;/&\n\t\tint flatten;/'
echo "$changes" | while IFS= read -r change; do
    cp patched/src-lib/darknet_layers.hpp changed
    sed -i "$change" changed/darknet_layers.hpp
    ! cmp -s changed/darknet_layers.hpp patched/src-lib/darknet_layers.hpp || fail "$change finds no place"
    ! is_known || fail "the build takes structs that are changed: $change"
    case $change in *added*) [ $opencv = no ] || ! compiles || fail "layout.cpp does not see: $change" ;; esac
done
