# tests/gpu/run.sh where there is no GPU: it says so and leaves; its commands are well-formed, and name programs that the build has.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
run=$SOURCE_DIR/tests/gpu/run.sh

mkdir none
printf '#!/bin/sh\necho "No devices were found"\nexit 6\n' > none/nvidia-smi
chmod +x none/nvidia-smi
status=0
PATH=$PWD/none:$PATH "$run" --out out > said 2>&1 || status=$?
[ $status = 77 ] && [ "$(wc -l < said)" = 1 ] && grep -q 'no GPU' said || fail "without a GPU: status $status, $(cat said)"

refused() { # refused <what the line must say> <arguments...>
    local word=$1
    shift
    status=0
    "$run" "$@" > said 2>&1 || status=$?
    [ $status = 2 ] && grep -q "$word" said || fail "run.sh $*: status $status, $(cat said)"
}
refused 'unknown option --colour' --colour
refused 'needs a folder' --darknet
refused 'no folder nowhere' --cmocka nowhere
"$run" --help | grep -q -- '--cmocka DIR' || fail 'no help'

AMP_GPU_DRY_RUN=1 "$run" --darknet "$DARKNET_TREE" --out dry > said 2>&1 || fail "dry run: $(cat said)"
[ ! -e dry/results.jsonl ] || fail 'a dry run left results'
programs=$(grep -o 'build/tests/gpu_[a-z_]*' said | sed 's#.*/##' | sort -u)
[ "$(wc -w <<< "$programs")" = 15 ] || fail "other programs than known: $programs"
for program in $programs; do
    # Conformance programs are named after their source.
    grep -q "gpu_program($program " "$SOURCE_DIR/tests/gpu/gpu.cmake" || [ -f "$SOURCE_DIR/tests/test_${program#gpu_}.c" ] ||
        fail "the build has no $program"
done
for tool in memcheck racecheck synccheck; do
    grep -q -- "--tool $tool .*gpu_backend_kernels_norm" said || fail "no $tool of the operations"
done
