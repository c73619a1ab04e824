#!/usr/bin/env bash
# Prepares the first fifteen minutes on a borrowed GPU, to which only this repository's working tree is
# copied: puts what that machine lacks into .dev, which git ignores and which must be copied too, and prints
# the two commands to run there, for the current commit. The machine has CMake, make or ninja, a compiler,
# patch or git, python3, the CUDA toolkit and cuDNN (also as a Python package), and no network.
#
#   scripts/gpu_rehearsed.sh [--darknet DIR]
#
#   --darknet DIR   Darknet's source, instead of what patches/fetch.sh gets
#
# The commands expect the environment's OUT to name the folder whose files come back.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
darknet=''
fail() { echo "gpu_rehearsed.sh: $*" >&2; exit 1; }
case $#,${1:-} in
    0,) ;;
    2,--darknet) darknet=$2 ;;
    *) sed -n '/^# Prepares/,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

cd "$root"
mkdir -p .dev/cmocka/include .dev/cmocka/lib
if [ -n "$darknet" ] || [ ! -f .dev/darknet/src/yolo_layer.c ]; then
    rm -rf .dev/darknet
    if [ -n "$darknet" ]; then
        [ -f "$darknet/src/yolo_layer.c" ] || fail "$darknet is not Darknet's source"
        cp -r "$darknet" .dev/darknet
    else
        patches/fetch.sh .dev/darknet >&2 || fail 'Darknet could not be fetched; --darknet names its source'
    fi
    rm -rf .dev/darknet/.git .dev/darknet/data/*.jpg
fi
header=$(echo '#include <cmocka.h>' | cc -x c -M -include stdarg.h -include stddef.h -include stdint.h \
    -include setjmp.h - 2> /dev/null | tr ' \\' '\n\n' | grep '/cmocka\.h$') || header=''
library=$(cc -print-file-name=libcmocka.so)
[ -n "$header" ] && [ -e "$library" ] || fail 'CMocka is missing; scripts/dependencies.sh --tests installs it'
cp "$header" .dev/cmocka/include/
name=$(basename "$(readlink -f "$library")" | grep -o '^libcmocka\.so\.[0-9]*')
cp -L "$library" ".dev/cmocka/lib/$name"

commit=$(git rev-parse HEAD 2> /dev/null) || fail 'this is not a git checkout, and results need a commit'
[ -z "$(git status --porcelain)" ] || echo 'Beware: the working tree differs from its commit.' >&2
run='tests/gpu/run.sh --darknet .dev/darknet --cmocka .dev/cmocka --out $OUT'
cat << END
# .dev: $(du -sm .dev | cut -f 1) MB, to be copied with the working tree.
# Command 1, 530 s at most: builds, then measures what decides. PyTorch's libraries, which take long to read
# the first time, are read while the build runs.
export DARKNET_AMP_COMMIT=$commit; uname -r; nvidia-smi -L; command -v make ninja patch git nvcc
(cd "\$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])')/.." &&
    cat nvidia/*/lib/*.so* torch/lib/*.so > /dev/null 2>&1 &)
$run --limit 490

# Command 2, 225 s at most, right after it on the same machine, with a fix if something failed: builds what
# the fix has changed, and goes on with what has not passed.
export DARKNET_AMP_COMMIT=\$(git rev-parse HEAD 2> /dev/null || echo $commit)
$run --continue --limit 200
END
