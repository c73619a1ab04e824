# A tree of the user's is never written to, and one that is not a supported revision is refused by the name of the file
# that differs.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"

cp -R "$DARKNET_TREE" tree
fingerprint() {
    (cd tree && find . -type f -printf '%p %T@ ' -exec sha256sum {} \; | LC_ALL=C sort | sha256sum)
}
configure() {
    cmake -S "$SOURCE_DIR" -B build -DDARKNET_SOURCE_DIR="$PWD/tree" -DDARKNET_AMP_BUILD_TESTS=OFF > log 2>&1
}

before=$(fingerprint)
configure || fail "a genuine tree is refused: $(cat log)"
[ "$before" = "$(fingerprint)" ] || fail 'the build wrote to the tree'
grep -q "$PWD/build/darknet/patched/src/network.c" build/compile_commands.json || fail 'the copy is not what is compiled'
! grep -q "\"file\": \"$PWD/tree/" build/compile_commands.json || fail 'the build compiles files of the tree'

echo '/* edited */' >> tree/src/network.c
rm tree/src/yolo_layer.c
before=$(fingerprint)
! configure || fail 'an edited tree is accepted'
grep -q 'src/network.c differs' log || fail "the message does not name the edited file: $(cat log)"
grep -q 'src/yolo_layer.c is missing' log || fail "the message does not name the missing file: $(cat log)"
! grep -q 'src/parser.c' log || fail "the message names an unchanged file: $(cat log)"
[ "$before" = "$(fingerprint)" ] || fail 'the refused build wrote to the tree'

mkdir empty
! "$SOURCE_DIR/patches/apply.sh" empty copy 2> log || fail 'an empty folder is accepted'
grep -q 'Makefile is missing' log || fail "$(cat log)"
! "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" tree 2> log || fail 'a folder that is there is overwritten'
grep -q 'not made by apply.sh' log || fail "$(cat log)"

# A machine without patch, but with git, also inside a repository: the same copy.
if command -v git > /dev/null; then
    mkdir repository no_patch
    git init -q repository
    IFS=:
    for folder in $PATH; do [ ! -d "$folder" ] || ln -s "$folder"/* no_patch/ 2> /dev/null || true; done
    unset IFS
    rm -f no_patch/patch
    "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" by_patch || fail 'patched by patch'
    PATH=$PWD/no_patch "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" repository/by_git || fail 'patched by git'
    diff -r by_patch repository/by_git || fail 'patch and git make different copies'
fi
