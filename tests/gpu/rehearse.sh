#!/usr/bin/env bash
# Rehearses the first minutes on a GPU where there is none: run.sh, which runs `darknet amp selftest` and
# bench/gpu.sh too, as they are, over the doubles of tests/doubles. What it leaves is what it would leave
# there.
#
# usage: tests/gpu/rehearse.sh FOLDER [--from BUILD] [--compile] [options of run.sh]
#   FOLDER        is made; all that is built and left is in it: out/summary.txt, out/logs.tar.gz
#   --from BUILD  takes the programs of this build (cmake --preset cpu, with its tests) instead of building
#   --compile     first builds what a GPU would run, with nvcc, as on such a machine: stage "build" takes as
#                 long as that. These programs are linked but not run
#
# AMP_DOUBLE_GPU in the environment makes the GPU another one, or one that something is the matter with
# (tests/doubles/cuda_doubles.h). Its status is run.sh's.
#
# Stand-ins, of which no figure says anything: nvidia-smi describes the double. CMake builds for the CPU, and
# Python is without PyTorch.
# Trainings on shapes run on the CPU's backend, since on doubles they take hours. The benchmark's networks
# are all cfg/shapes.cfg with one image, and its stock is the CPU's; in parity AMP's fp32 is stock's, whose
# kernels have no doubles. Tests of large tensors and of cuDNN's engines are their small forms. cuDNN does not
# describe the double, so there are no plans for it. QUICK=1 leaves out shapes, and the conformance tests,
# which CTest runs by themselves.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/e2e/lib/gpu_stand_ins.bash"
[ $# -gt 0 ] && [ "${1#-}" = "$1" ] || { sed -n '/^# usage/,/^# *long as/s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$1/machine" "$1/out"
folder=$(cd "$1" && pwd) from='' options=() COMPILE=''
shift
while [ $# -gt 0 ]; do
    case $1 in
        --from) from=$(cd "$2" && pwd); shift ;;
        --compile) COMPILE=$folder/compiled ;;
        *) options+=("$1") ;;
    esac
    shift
done
export SOURCE_DIR=$root DOUBLES=${from:-$folder/doubles} FROM=$from COMPILE REAL_CMAKE
REAL_CMAKE=$(command -v cmake)

stand_in_python3 "$folder/machine"
stand_in "$folder/machine/nvidia-smi" << 'END'
#!/bin/sh
capability=9.0 free=8192 total=8192 mig=Disabled
case ${AMP_DOUBLE_GPU:-} in
    no-gpu) echo 'No devices were found'; exit 6 ;;
    no-nvml) echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18 ;;
    full) free=2048 total=81920 ;;
    mig) mig=Enabled ;;
    *.*) capability=$AMP_DOUBLE_GPU ;;
esac
case $* in
    *name,driver*) echo "double of a GPU, 0.0, $capability, $total MiB, $free MiB, $mig" ;;
    '') echo "| NVIDIA-SMI 0.0  Driver Version: 0.0  CUDA Version: ${DRIVER_CUDA:-99.0} |" ;;
    *clocks*) echo '0 MHz, 0 MHz, 0' ;;
    *compute-apps*) ;;
    *) exit 1 ;;
esac
END

# As run.sh asks for it: -S ROOT -B FOLDER ..., and --build FOLDER --target gpu_tests bench-steps ...
stand_in "$folder/machine/cmake" << 'END'
#!/bin/bash
set -e
. "$SOURCE_DIR/tests/e2e/lib/gpu_stand_ins.bash"
of_double() { # of_double <program of tests/gpu/gpu.cmake>: what takes its place
    case $1 in
        gpu_backend_*) echo "test_cuda_double_${1#gpu_backend_}" ;;
        gpu_unlisted) echo test_cuda_double_unlisted ;;
        gpu_host) echo cuda_host_double ;;
        gpu_properties | gpu_plans) ;; # which ask cuDNN for a device
        gpu_*) echo "test_cuda_${1#gpu_}" ;;
    esac
}
programs=$(gpu_programs)
if [ "$1" = -S ]; then
    [ -z "$COMPILE" ] || "$REAL_CMAKE" -S "$2" -B "$COMPILE" "${@:5}"
    mkdir -p "$4"
    printf '%s\n' DARKNET_AMP_CUDA:BOOL=ON CUDNN_LIBRARY:FILEPATH=/doubles "$@" |
        sed 's/^-DDARKNET_SOURCE_DIR=/DARKNET_SOURCE_DIR:PATH=/' > "$4/CMakeCache.txt"
    [ -n "$FROM" ] || "$REAL_CMAKE" -S "$2" -B "$DOUBLES" "${@:5}" -DDARKNET_AMP_CUDA=OFF \
        -DDARKNET_AMP_BUILD_BENCH=OFF
    echo '-- Found cuDNN: doubles (version of the headers)'
    exit
fi
[ "$1" = --build ] || exec "$REAL_CMAKE" "$@"
[ -z "$COMPILE" ] || "$REAL_CMAKE" --build "$COMPILE" "${@:3}"
targets=(darknet shapes darknet-on-doubles bench-step-on-doubles)
for name in $programs; do targets+=($(of_double $name)); done
[ -n "$FROM" ] || "$REAL_CMAKE" --build "$DOUBLES" --target "${targets[@]}" -j "${@: -1}"
mkdir -p "$2/tests" "$2/bin"
for name in $programs; do
    double=$(of_double $name)
    if [ -z "$double" ]; then
        said="echo 'skipped: the doubles of cuDNN do not describe a device'; exit 77"
    elif [ -n "${QUICK:-}" ] && [[ $double == test_* ]]; then
        said="echo '[  PASSED  ] left to CTest: $double'"
    else
        said="AMP_TEST_SMALL=1 exec '$DOUBLES/tests/$double' \"\$@\""
    fi
    [ "$name" != gpu_host ] ||
        said="[ \"\$1 \$3\" != 'start off' ] || set -- start \"\$2\" fp32 \"\$4\"; $said"
    stand_in "$2/tests/$name" <<< $'#!/bin/sh\n'"$said"
done
stand_in "$2/bin/darknet" << TO
#!/bin/sh
case \$1 in detector) exec '$DOUBLES/bin/darknet' "\$@" ;; esac
exec '$DOUBLES/tests/darknet-on-doubles' "\$@"
TO
said="exec '$DOUBLES/bin/shapes' \"\$@\""
[ -z "${QUICK:-}" ] || said="echo 'result: left out'; exit 77"
stand_in "$2/bin/shapes" <<< $'#!/bin/sh\n'"$said"
for dtype in '' '-amp off'; do
    stand_in "$2/bin/bench-step${dtype:+-stock}" << TO
#!/bin/bash
cfg='$SOURCE_DIR/cfg/shapes.cfg' keep=()
if grep -q '^graphs=1' "\$1"; then
    sed 's/^\[amp\]$/&\ngraphs=1/' "\$cfg" > graphs.cfg
    cfg=graphs.cfg
fi
shift
while [ \$# -gt 0 ]; do
    case \$1 in
        --size | --batch | --subdivisions | --warmup | --seconds | --phases | --costs) shift ;;
        *) keep+=("\$1") ;;
    esac
    shift
done
exec '$DOUBLES/tests/bench-step-on-doubles' "\$cfg" --size 32 --batch 1 --warmup 1 \
    --iters 1 --phases 1 --costs 1 "\${keep[@]}" $dtype
TO
done
END
export PATIENCE=30 PATH=$folder/machine:$PATH
exec "$root/tests/gpu/run.sh" --build "$folder/gpu" --out "$folder/out" ${options[@]+"${options[@]}"}
