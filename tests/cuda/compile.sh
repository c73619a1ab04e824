# nvcc compiles every .cu file of the CUDA backend, without a warning, for each architecture that it knows from 7.5 up and
# as PTX for those to come; with shared memory that every one of them has. In an empty folder; NVCC and SOURCE_DIR are set.
set -eu
[ -n "$NVCC" ] || { echo 'skipped: there is no nvcc (the CUDA toolkit)'; exit 77; }
files=$(ls "$SOURCE_DIR"/plugin/backend/cuda/*.cu 2> /dev/null) || { echo 'skipped: there are no .cu files'; exit 77; }

architectures=$("$NVCC" --list-gpu-code | sed -n 's/^sm_\([0-9]*\)$/\1/p' | sort -n | awk '$1 >= 75')
[ -n "$architectures" ] || { echo 'nvcc --list-gpu-code names no architecture from 7.5 up'; exit 1; }
flags=
for a in $architectures; do flags="$flags -gencode=arch=compute_$a,code=sm_$a"; last=$a; done
flags="$flags -gencode=arch=compute_$last,code=compute_$last"
echo "architectures:" $architectures

status=0
for file in $files; do
    name=$(basename "$file" .cu)
    if ! "$NVCC" $flags --threads 0 -std=c++17 -O2 -Xcompiler -Wall,-Wextra -Werror all-warnings -I "$SOURCE_DIR/plugin" \
            -I "$SOURCE_DIR/plugin/include" -c "$file" -o "$name.o" > "$name.log" 2>&1; then
        cat "$name.log"
        status=1
    elif [ -s "$name.log" ]; then
        cat "$name.log"
    fi
done
exit $status
