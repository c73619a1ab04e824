# tests/gpu/run.sh from end to end where there is no GPU: nvidia-smi, nvcc, CMake and the programs that it
# would build are stand-ins. What it looks for, in which order it runs what, and what it leaves, whatever
# happens. (e2e_gpu_rehearsal runs what it runs, on the doubles of a GPU, where there is nvcc.)
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/gpu_stand_ins.bash"
command -v python3 > /dev/null || skip 'there is no python3, which makes the tables'
run=$SOURCE_DIR/tests/gpu/run.sh
unset CUDNN_ROOT CUDA_VISIBLE_DEVICES DARKNET_SOURCE_DIR
export CALLS=$PWD/calls DARKNET_TREE
here=$PATH

mkdir gpu cmocka
stand_in_nvidia_smi gpu
stand_in_python3 gpu
# As nvcc -E: of a file that asks for three headers, what it says of those that LACKS names.
stand_in gpu/nvcc << 'END'
#!/bin/bash
[ "$1" != --version ] || { echo 'Cuda compilation tools, release 13.0, V13.0.1'; exit; }
for header in ${LACKS:-}; do grep "^lacks .*$header" "${@: -1}"; done
END
stand_in gpu/compute-sanitizer << 'END'
#!/bin/sh
echo "$*" >> "$CALLS"
echo '========= ERROR SUMMARY: 0 errors'
END
stand_in gpu/program << 'END'
#!/bin/bash
name=$(basename "$0")
echo "$name $* TUNE=${AMP_CUDA_TUNE:-} TF32=${NVIDIA_TF32_OVERRIDE:-}" >> "$CALLS"
case " ${HANGS:-} " in *" $name "*) sleep 60 ;; esac
case " ${FAILS:-} " in *" $name "*) echo '[  FAILED  ] one_of_its_tests'; exit 1 ;; esac
case "$name $1" in
    'gpu_host compare') echo "$3: 20 groups of numbers, 1e-07 apart at most" ;;
    gpu_host*) echo > "$4" ;;
    gpu_properties*) echo '{}' > "$1" ;;
    shapes*)
        mkdir -p "$2/labels" "$2/images"
        echo > "$2/labels/1.txt"
        echo 'classes = 3' > "$2/shapes.data" ;;
    'darknet detector') echo 'mean average precision (mAP@0.50) = 0.912, or 91.20 %' ;;
    *) echo '[  PASSED  ] 3 test(s).' ;;
esac
END
# Configured, and built: programs where run.sh looks for them.
stand_in gpu/cmake << 'END'
#!/bin/bash
echo "cmake $*" >> "$CALLS"
. "$SOURCE_DIR/tests/e2e/lib/gpu_stand_ins.bash"
if [ "$1" = --build ]; then
    mkdir -p "$2/tests" "$2/bin"
    for name in $(gpu_programs); do cp "$PROGRAM" "$2/tests/$name"; done
    cp "$PROGRAM" "$2/bin/darknet"
    cp "$PROGRAM" "$2/bin/shapes"
    stand_in_bench "$2"
elif [ "$1" = -S ]; then
    mkdir -p "$4"
    echo '-- Found cuDNN: /usr/lib/libcudnn.so (version 9.19.0)'
fi
END
export PROGRAM=$PWD/gpu/program SOURCE_DIR
: > cmocka/CMakeLists.txt
gpu_run() { # gpu_run <expected status> <options...>
    local expected=$1 status=0
    shift
    : > calls
    rm -rf out
    PATH=$PWD/gpu:$here "$run" --build built --out out --limit 36000 "$@" > said 2>&1 || status=$?
    [ $status = "$expected" ] || fail "run.sh $*: status $status, $(cat said)"
}
refused() { # refused <what the line must say> <arguments...>
    local word=$1
    shift
    gpu_run 2 "$@"
    grep -q "$word" said && [ ! -s calls ] || fail "run.sh $*: $(cat said calls)"
}
refused 'unknown option --colour' --colour
refused 'no folder nowhere' --cmocka nowhere

left() { # out has these two files alone, and the archive what the stages said
    [ "$(ls out | tr '\n' ' ')" = 'logs.tar.gz summary.txt ' ] || fail "there is $(ls out)"
    tar -tzf out/logs.tar.gz > archived || fail 'a broken archive'
}
of() { # of <stage>: its status
    sed -n "s/.*\"stage\":\"$1\",\"status\":\"\([a-z]*\)\".*/\1/p" built/logs/results.jsonl
}
all=(--darknet "$DARKNET_TREE" --cmocka cmocka)

# Everything that lacks is said at once, before anything is built.
mkdir empty
LACKS='curand.h cublas_v2.h' gpu_run 2 --darknet empty --cmocka empty
left
for what in curand.h cublas_v2.h "Darknet's source" CMocka; do
    grep -q "$what" said && grep -q "$what" out/summary.txt || fail "not a word about $what: $(cat said)"
done
[ "$(wc -l < said)" = 6 ] && [ ! -s calls ] || fail "lacking: $(cat said calls)"

# Of several GPUs it is the one that CUDA takes.
for number in 1,0 MIG-7; do
    LACKS=curand.h CUDA_VISIBLE_DEVICES=$number gpu_run 2 --darknet empty
    head -n 1 out/summary.txt
done > named
[ "$(cut -d, -f 1,2 < named | tr '\n' ';')" = \
    'NVIDIA RTX A1000, compute capability 8.6;NVIDIA H100 80GB HBM3, compute capability 9.0;' ] ||
    fail "the GPU is $(cat named)"

# All of it: one build, in the promised order.
gpu_run 0 "${all[@]}"
left
[ "$(grep -c '^cmake -S .*AMP_CUDA=ON.*ARCHITECTURES=90.*BENCH=ON.*STOCK=ON.*TESTS=ON' calls)" = 1 ] &&
    [ "$(grep -c '^cmake --build .*gpu_tests bench-steps' calls)" = 1 ] ||
    fail "builds: $(grep cmake calls)"
sed -n 's/.*"stage":"\([^"]*\)".*/\1/p' built/logs/results.jsonl > order
[ "$(sed 's/ .*//; 10q' order | uniq -c | awk '{ print $2, $1 }' | tr '\n' ' ')" = \
    'build 1 the 1 selftest 1 parity 2 benchmark 3 conformance 2 ' ] || fail "another order: $(cat order)"
! grep -v '"status":"passed"' built/logs/results.jsonl | grep '"kind":"stage"' || fail 'the lines above'
# every_network_has_its_parity <sed address of its fork's in cuda/host.c> [pattern of those that have none]
every_network_has_its_parity() {
    local network networks
    networks=$(sed -n '/ networks\[\]/,/^};/p' "$SOURCE_DIR/tests/cuda/host.c" |
        sed -n "$1"'s/^    { "\([a-z]*\)", NET.*/\1/p' | grep -vx "${2:-none}")
    [ "$(echo $networks | wc -w)" -ge 5 ] || fail "cuda/host.c has only $networks"
    for network in $networks; do
        [ "$(of "parity $network")" = passed ] || fail "no parity of $network: $(cat said)"
    done
}
every_network_has_its_parity '/^#else/,$'
for program in built/build/tests/gpu_*; do
    grep -q "^$(basename "$program") " calls || fail "$program was not run"
done
! grep '^gpu_host [st]' calls | grep -v 'TUNE=0 TF32=0$' || fail 'parity times engines, or rounds to TF32'

# AlexeyAB's Darknet: its networks, its YOLOv4 with CUDNN_HALF, labels beside the images. Its programs are
# others, so that nothing counts as passed before.
if [ -n "$ALEXEYAB_TREE" ]; then
    DARKNET_TREE=$ALEXEYAB_TREE gpu_run 0 --darknet "$ALEXEYAB_TREE" --cmocka cmocka --continue
    left
    ! grep -q 'passed before' said && grep -q '^The programs or scripts have changed' out/summary.txt ||
        fail "results of pjreddie's programs are kept: $(cat said)"
    every_network_has_its_parity '1,/^#else/' 'weighted\|crnn' # which are refused on a GPU
else
    echo "AlexeyAB's Darknet was left out: there is no tree of it"
fi

# A stage fails, the others run. The next time it alone is run, and whatever else has not passed.
FAILS=gpu_backend_gemm gpu_run 1 "${all[@]}"
left
[ "$(of 'conformance backend_gemm')" = failed ] && [ "$(of 'conformance backend_cast')" = passed ] ||
    fail "$(cat said)"
holds out/summary.txt 'conformance backend_gemm *failed .*one_of_its_tests'
gpu_run 0 "${all[@]}" --continue
[ "$(grep -v ^cmake calls | cut -d' ' -f1)" = gpu_backend_gemm ] && grep -q '^cmake --build' calls ||
    fail "run again: $(cat calls)"
holds out/summary.txt 'conformance backend_cast *passed before'

# A fix between the two is built, and what the programs before it passed is run again.
echo '# another program' >> gpu/program
gpu_run 0 "${all[@]}" --continue
grep -q '^gpu_backend_cast ' calls && ! grep -q 'passed before' out/summary.txt ||
    fail "results of other programs are kept: $(cat out/summary.txt)"

# A machine with ninja instead of make. (PATH has what run.sh needs, but for make.)
mkdir -p tools
(IFS=:; for folder in $here; do ln -sf "$folder"/* tools/ 2> links || true; done)
rm -f tools/make
[ -x tools/ninja ] || stand_in tools/ninja <<< '#!/bin/sh'
sed -i 's/^echo "cmake \$\*"/echo "cmake $* ${CMAKE_GENERATOR:-}"/' gpu/cmake
here=$PWD/tools gpu_run 0 "${all[@]}" --continue
holds calls '^cmake -S .* Ninja$'

# A borrowed GPU: .dev has what its machine lacks, and there are two commands for this commit.
if command -v git > /dev/null; then
    mkdir clone
    cp -r "$SOURCE_DIR"/{.gitignore,scripts,patches} clone/
    (cd clone && git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm one &&
        scripts/gpu_rehearsed.sh --darknet "$DARKNET_TREE") > commands 2> warnings ||
        fail "gpu_rehearsed.sh: $(cat warnings)"
    commit=$(git -C clone rev-parse HEAD)
    [ "$(grep -c "^export DARKNET_AMP_COMMIT=.*$commit" commands)" = 2 ] && [ ! -s warnings ] &&
        grep -q '^tests/gpu/run.sh --darknet .dev/darknet --cmocka .dev/cmocka .* --continue' commands &&
        [ "$(wc -c < commands)" -lt 2000 ] || fail "gpu_rehearsed.sh: $(cat commands warnings)"
    [ -f clone/.dev/darknet/cfg/yolov3.cfg ] && [ -f clone/.dev/cmocka/include/cmocka.h ] &&
        ls clone/.dev/cmocka/lib/libcmocka.so.[0-9]* > /dev/null || fail "$(find clone/.dev | head -n 30)"
    [ -z "$(git -C clone status --porcelain)" ] || fail '.dev is not ignored'
fi

# cuDNN as a Python package, libcudnn.so.9 alone, beside another version in the toolkit.
mkdir -p wheel/include wheel/lib toolkit/lib find
touch wheel/include/cudnn_backend.h wheel/lib/libcudnn.so.9 toolkit/lib/libcudnn.so
cat > find/CMakeLists.txt << END
cmake_minimum_required(VERSION 3.22)
project(find NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include($SOURCE_DIR/cmake/cuDNN.cmake)
message(STATUS "found: \${CUDNN_INCLUDE_DIR} \${CUDNN_LIBRARY}")
END
CUDNN_ROOT=$PWD/wheel cmake -S find -B find/build -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=TRUE \
    -DCUDAToolkit_LIBRARY_DIR="$PWD/toolkit/lib" > found
holds found "found: $PWD/wheel/include $PWD/wheel/lib/libcudnn.so.9$"

# What the time does not reach is skipped, and so is what it ends in the middle of.
gpu_run 0 "${all[@]}" --limit 0
left
[ "$(of build)" = skipped ] && [ ! -s calls ] || fail "with no time left: $(cat said calls)"
HANGS=gpu_backend_conv gpu_run 0 "${all[@]}" --limit 6
left
[ "$(of 'conformance backend_conv')" = skipped ] || fail "$(cat said)"
! grep -q '"status":"failed"' built/logs/results.jsonl || fail "$(cat said)"

# A build that fails is the end, and leaves its log.
stand_in gpu/cmake <<< $'#!/bin/sh\necho "CMake Error: no such thing"\nexit 1'
gpu_run 1 "${all[@]}"
left
[ "$(of build)" = failed ] && grep -q 'build .*CMake Error: no such thing' out/summary.txt &&
    grep -q '^logs/build.log' archived || fail "a failed build: $(cat said)"
