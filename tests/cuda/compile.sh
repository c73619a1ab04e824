# nvcc compiles every .cu file of the CUDA backend, without a warning, and within the shared memory that a
# block may have: for the first architecture of each generation that it knows from 7.0 up, 7.5, and as PTX for
# those to come. The others of a generation differ in nothing that these files use. Nor do the files ask for
# an architecture; CUDA's headers of half do, for 8.0 and 9.0: the oldest, 8.0 and the newest are compiled
# from the source, the others assembled from the PTX of the one before.
# The assembler does not optimise, nor does the compiler more than makes its work less: nothing is run, and
# shared memory is the same.
# Then the kernels whose results are promised to equal two operations to the bit are looked at as PTX: nothing
# joins these operations to one fma. Nor does the sum of partial results move single bytes.
# ARCHITECTURES=all compiles each that nvcc knows from the source, optimised (minutes).
# In an empty folder; NVCC and SOURCE_DIR are set.
set -eu
[ -n "$NVCC" ] || { echo 'skipped: there is no nvcc (the CUDA toolkit)'; exit 77; }
ls "$SOURCE_DIR"/plugin/backend/cuda/*.cu > files 2> /dev/null ||
    { echo 'skipped: there are no .cu files'; exit 77; }

"$NVCC" --list-gpu-code | sed -n 's/^sm_\([0-9]*\)$/\1/p' | sort -n | awk '$1 >= 70' > known
[ -s known ] || { echo 'nvcc --list-gpu-code names no architecture from 7.0 up'; exit 1; }
if [ "${ARCHITECTURES:-}" = all ]; then awk '{ print $1, $1 }' known > chosen
else
    awk '!seen[int($1 / 10)]++ || $1 == 75' known > some
    awk -v newest="$(tail -n 1 some)" '
        NR == 1 || $1 == 80 || $1 == newest { source = $1 }
        { print source, $1 }' some > chosen
fi
flags='-Xcicc -O1 -Xptxas -O0'
[ "${ARCHITECTURES:-}" != all ] || flags=
for source in $(awk '{ print $1 }' chosen | uniq); do
    codes=$(awk -v source="$source" '$1 == source { printf "%ssm_%s", n++ ? "," : "", $2 }' chosen)
    flags="$flags -gencode=arch=compute_$source,code=[$codes]"
done
flags="$flags -gencode=arch=compute_$source,code=compute_$source"
echo "nvcc$flags"

# Each file's result is in its .log, and in its .failed if that is what it is.
export NVCC SOURCE_DIR flags
xargs -P "$(nproc)" -I FILE sh -c 'name=$(basename "FILE" .cu)
    $NVCC $flags -std=c++17 -Xcompiler -Wall,-Wextra -Werror all-warnings -I "$SOURCE_DIR/plugin" \
        -I "$SOURCE_DIR/plugin/include" -c "FILE" -o "$name.o" > "$name.log" 2>&1 ||
        touch "$name.failed"' < files
for log in *.log; do [ ! -s "$log" ] || { echo "$log:"; cat "$log"; }; done
for failed in *.failed; do [ ! -e "$failed" ] || exit 1; done

# rounds_between <file> <kernels> <instruction> <most> <least>: in each kernel whose mangled name matches, the
# instruction stands from `least` to `most` times.
rounds_between() {
    "$NVCC" -ptx -arch="compute_$source" -std=c++17 -I "$SOURCE_DIR/plugin" -I "$SOURCE_DIR/plugin/include" \
        "$SOURCE_DIR/plugin/backend/cuda/$1.cu" -o "$1.ptx"
    awk -v kernels="$2" -v instruction="$3" -v most="$4" -v least="$5" '
        function close_kernel() {
            if (name != "" && (found > most || found < least)) {
                print name " has " found " times " instruction
                bad = 1
            }
            name = ""
        }
        /\.entry / { close_kernel(); if ($0 ~ kernels) { name = $0; found = 0; seen++ } }
        name != "" && index($1, instruction) == 1 { found++ }
        END { close_kernel(); if (!seen) print "no kernel matches " kernels; exit bad || !seen }
    ' "$1.ptx" || { echo "$1.cu: its PTX is not what is promised"; exit 1; }
}
rounds_between norm 'normalize.*Lb1E' add.rn.f32 999 1 # a shortcut is added to what was rounded
rounds_between update move_chunks fma.rn.f32 0 0       # the fused update is the separate operations
rounds_between yolo add_results ld.global.f64 999 10   # a structure's doubles move as such,
rounds_between yolo add_results ld.global.u8 0 0       # not byte by byte
