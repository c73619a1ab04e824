# apply.sh --adapt, on a Darknet that somebody has changed: each hook finds its place although lines have
# moved and functions begin otherwise; what has no place is named, with the line to add by hand. An
# unchanged Darknet gets the hooks of the plain patches.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
apply=$SOURCE_DIR/patches/apply.sh

command -v spatch > /dev/null || skip 'there is no spatch (Coccinelle)'
# Fields and statements of the user's own beside hooks, and a place that looks like that of a hook of data.c
# moved to the line where the hook stands in the original.
beside_hooks() { # beside_hooks <tree> <lines that data.c begins with>
    sed -i -e "s|^ *size_t workspace_size;$|&\n    int users_own;|" \
        -e "s|^} network;$|    int users_own;\n&|" "$1/include/darknet.h"
    sed -i 's/^ *constrain_[a-z]*(l.outputs.*/    (void)l;\n&\n    (void)l;/' "$1/src/connected_layer.c"
    sed -i "1s/^/$(printf '\\n%.0s' $(seq "$2"))/" "$1/src/data.c"
}
compiles() { # compiles <file of adapted>
    cc -fsyntax-only -w -DAMP -Iadapted/include -Iadapted/src -Iadapted/amp/include "adapted/$1" ||
        fail "$1 does not compile"
}
compiles_for_gpu() { # compiles_for_gpu <tree> <files...>: where there is a CUDA toolkit
    local tree=$1 file
    shift
    ! command -v nvcc > /dev/null || for file in "$@"; do
        nvcc -DAMP -DGPU -I"$tree/include" -I"$tree/src" -I"$tree/amp/include" -Xcompiler -fsyntax-only,-w \
            -c "$tree/$file" -o nothing.o || fail "$tree/$file does not compile with GPU=1"
    done
}

cp -R "$DARKNET_TREE" changed
chmod -R u+w changed
# Lines that move all others, functions that begin otherwise, another name of a parameter, a loop that was
# rewritten.
sed -i -e 's/^void forward_network(network \*netp)$/static int passes;\n&/' \
    -e 's/^    network net = \*netp;$/    ++passes;\n    network net = *netp;/' changed/src/network.c
sed -i '/^void free_network(network \*net)$/,/^}/s/\bnet\b/thrown/g' changed/src/network.c
sed -i -e 's/^list \*read_cfg(char \*filename)$/\/* Reads a .cfg. *\/\n\n&/' \
    -e 's/FILE \*file = fopen(filename, "r");/FILE *file = 0; file = fopen(filename, "r");/' \
    changed/src/parser.c
sed -i -e '/^box_label \*read_boxes/s/char \*filename,/char *labels_of,/' \
    -e '/^box_label \*read_boxes/,/^}/s/(filename/(labels_of/g' changed/src/data.c
sed -i 's/while(\(get_current_batch(net) < net->max_batches\)){/for(; \1; ){/' changed/examples/detector.c
sed -i '/^void train_classifier(/,/^}/s/\bavg_loss\b/mean/g' changed/examples/classifier.c
beside_hooks changed 15
# As git writes them with core.autocrlf.
find changed -name '*.[ch]' -o -name '*.cu' -o -name Makefile | xargs sed -i 's/$/\r/'

! "$apply" changed adapted 2> err || fail 'a Darknet that was changed is taken for a known one'
holds err '^darknet-amp: its lines end in CRLF.* --adapt'
status=0
"$apply" --adapt changed adapted > out 2> err || status=$?
[ $status = 1 ] || fail "a hook without a place: status $status; $(tail -3 err)"
[ "$(grep -c 'no place was found' err)" = 2 ] || fail "not 2 changes without a place: $(grep 'no place' err)"
holds err '^darknet-amp: lines of 1[0-9]* files end in CRLF; in .*/adapted they end in LF$'
grep -q 'examples/detector.c: no place was found for a change of training-log.patch .*darknet_amp_next_step' \
    err ||
    fail "it is not named: $(grep 'no place' err)"
holds err 'examples/classifier.c: no place was found .*by hand: darknet_step_printf(loss, avg_loss, "'
# A hook that has a place and names what is called otherwise there: its line is told, and all is well when
# both are mended.
classifier=examples/classifier.c
line=$(sed -n "s|^darknet-amp: $classifier:\([0-9]*\): 'avg_loss' undeclared.* by hand: a hook .*|\1|p" err)
[ -n "$line" ] && [ "$(grep -c ' undeclared' err)" = 1 ] || fail "what a hook names: $(grep undeclared err)"
tail -1 err | grep -q ': 3 changes must be made by hand in ' || fail "$(tail -1 err)"
sed -i -e "${line}s/avg_loss/mean/" \
    -e '/^void train_classifier(/,/^}/s/ printf("%ld, /darknet_step_printf(loss, mean, "%ld, /' \
    adapted/$classifier
compiles $classifier
grep -q 'darknet_step_printf(loss, mean, ' adapted/$classifier || fail 'the line of a step'

awk '/ of [0-9]+$/ && $2 != $4 && !($1 == "darknet_amp_next_step" && $2 == 1 && $4 == 2) { print; bad = 1 }
    END { exit bad }' err ||
    fail 'hooks are missing, or too many'
grep -q 'DARKNET_AMP(if(thrown->amp) darknet_amp_free(thrown);)' adapted/src/network.c ||
    fail 'the renamed parameter'
grep -q 'darknet_amp_read_boxes(labels_of, ' adapted/src/data.c || fail 'the renamed file'
for file in network parser data gemm utils; do compiles src/$file.c; done
compiles_for_gpu adapted src/connected_layer.c amp/host/pjreddie/gaps_gpu.c
sed -n '/^char \*\*get_random_paths(/,/^}/p' adapted/src/data.c | grep -q darknet_amp_paths ||
    fail 'a hook of get_random_paths stands elsewhere'
cmp changed/src/network.c adapted/src/network.c > /dev/null && fail 'nothing was changed'

"$apply" --adapt "$DARKNET_TREE" unchanged > out 2> err || fail "an unchanged Darknet: $(grep 'no place' err)"
"$apply" "$DARKNET_TREE" plain
for tree in unchanged plain; do
    (cd $tree && for file in src/*.c src/*.h examples/*.c include/*.h; do
        echo "$file"
        LC_ALL=C sort "$file"
    done) > $tree.lines
done
diff unchanged.lines plain.lines || fail 'an unchanged Darknet gets other lines'

# AlexeyAB's, without the parser, for which spatch takes 20 s.
[ -n "$ALEXEYAB_TREE" ] || exit 0
mkdir alexeyab
tar -C "$ALEXEYAB_TREE" --exclude=src/parser.c -cf - Makefile CMakeLists.txt 3rdparty include src |
    tar -xf - -C alexeyab
chmod -R u+w alexeyab
beside_hooks alexeyab 10
! "$apply" --adapt alexeyab alexeyab.adapted > out 2> err || fail 'without a parser: status 0'
! grep 'no place was found' err | grep -v 'src/parser.c: ' || fail "AlexeyAB's: a hook finds no place"
compiles_for_gpu alexeyab.adapted src/connected_layer.c src/shortcut_layer.c src/data.c \
    amp/host/family/gaps_gpu.c
