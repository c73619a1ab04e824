# A tree of the user's is never written to, and one that is not a supported revision is refused by the name of
# the file that differs. Every field of Darknet's struct layer is either an option with a row in
# layers.c (or in layer_tables.h, for both forks), or known to be none.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/options.bash"

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
grep -q "$PWD/build/darknet/patched/src/network.c" build/compile_commands.json ||
    fail 'the copy is not what is compiled'
! grep -q "\"file\": \"$PWD/tree/" build/compile_commands.json || fail 'the build compiles files of the tree'

echo '/* edited */' >> tree/src/network.c
rm tree/src/yolo_layer.c
before=$(fingerprint)
! configure || fail 'an edited tree is accepted'
holds log 'src/network.c differs'
holds log 'src/yolo_layer.c is missing'
! grep -q 'src/parser.c' log || fail "the message names an unchanged file: $(cat log)"
[ "$before" = "$(fingerprint)" ] || fail 'the refused build wrote to the tree'

mkdir empty
"$SOURCE_DIR/patches/apply.sh" --help | grep -q 'make AMP=1' ||
    fail 'apply.sh --help does not say how to build the copy'
! "$SOURCE_DIR/patches/apply.sh" empty copy 2> log || fail 'an empty folder is accepted'
neither="neither pjreddie's, which has include/darknet.h and examples/detector.c, nor AlexeyAB's"
holds log "is not a known Darknet: $neither"
! "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" tree 2> log || fail 'a folder that is there is overwritten'
holds log 'not made by apply.sh'

# The copy is the same wherever it is made, whatever lies there.
mkdir elsewhere
touch elsewhere/LICENSE.mine
mkdir elsewhere/data
touch elsewhere/data/my.names elsewhere/data/my.jpg
"$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" here || fail 'a copy'
(cd elsewhere && "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" there) || fail 'a copy made elsewhere'
ls here/data/*.names here/LICENSE* > log || fail "a copy without Darknet's data or licence"
diff -r here elsewhere/there || fail 'the copy depends on the folder that it is made in'
(cd elsewhere && "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" ../here) 2> log || fail 'a second call'
holds log 'already up to date'
mv here/amp/host/pjreddie here/amp/host/alexeyab
! "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" here 2> log || fail "another Darknet's copy is overwritten"
holds log 'here is a copy of another Darknet'

# A machine without patch, but with git, also inside a repository: the same copy.
if command -v git > /dev/null; then
    mkdir repository no_patch
    git init -q repository
    IFS=:
    for folder in $PATH; do [ ! -d "$folder" ] || ln -s "$folder"/* no_patch/ 2> /dev/null || true; done
    unset IFS
    rm -f no_patch/patch
    "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" by_patch || fail 'patched by patch'
    PATH=$PWD/no_patch "$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" repository/by_git ||
        fail 'patched by git'
    cmp by_patch/amp/LICENSE "$SOURCE_DIR/LICENSE" || fail 'a copy goes without our licence'
    diff -r by_patch repository/by_git || fail 'patch and git make different copies'
fi

known=' type forward backward update batch inputs outputs nweights nbiases truths h w c out_h out_w out_c n
 workspace_size cweights indexes input_layers input_sizes counts sums rand cost state prev_state forgot_state
 forgot_delta state_delta concat concat_delta binary_weights binary_input biases bias_updates scales
 scale_updates weights weight_updates delta output loss squared norms spatial_mean mean variance mean_delta
 variance_delta rolling_mean rolling_variance x x_norm m v bias_m bias_v scale_m scale_v '
fields_have_rows 180 "$DARKNET_TREE/include/darknet.h" pjreddie/layers.c "$known"

nowhere() { # nowhere <expression> <what it is>: in the C files
    local found
    found=$(cd "$SOURCE_DIR" && grep -rnE "$1" plugin bench examples tests \
        --include='*.c' --include='*.h' --include='*.cu' --include='*.cuh' --include='*.cc') || true
    [ -z "$found" ] || fail "$2: $found"
}
nowhere '\b(if|for|while|switch)\(' 'no blank before the parenthesis'
nowhere '\bfor \([^;]*;[^;]*; [^()]*\+\+[A-Za-z_]' 'a counting loop ends in ++i'

# Lines of at most 110 characters. What follows the first byte of a UTF-8 character is left out before they
# are counted as bytes, so that the locale does not matter. Tables of Markdown, golden data and mutants have
# lines as long as they come.
long=$(cd "$SOURCE_DIR" && find plugin cmake scripts examples bench tests cfg CMakeLists.txt patches/*.sh \
    -type f ! -name '*.md' ! -path 'tests/golden/*' ! -path 'tests/mutants/*.txt' ! -path '*/__pycache__/*' |
    LC_ALL=C sort |
    while read -r file; do
        LC_ALL=C tr -d '\200-\277' < "$file" | LC_ALL=C awk -v file="$file" \
            'length > 110 { print file ":" FNR " has " length " characters" }'
    done)
[ -z "$long" ] || fail "$long"
