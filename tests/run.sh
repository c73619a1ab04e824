#!/bin/bash
# Builds Darknet AMP and runs every test, as many at a time as there are processors:
#
#   tests/run.sh [--no-install] [--quick] [--isa LEVEL] [arguments for ctest]
#
#   --no-install   packages that lack are listed, and this ends, instead of being installed
#                  (scripts/dependencies.sh)
#   --quick        the tests that take a second or two: a minute in all, once it is built
#   --isa LEVEL    as on a processor that has no more than LEVEL: SSE41, AVX, AVX2, AVX2_VNNI, AVX512_CORE,
#                  AVX512_CORE_VNNI, AVX512_CORE_BF16, AVX512_CORE_FP16 or AVX512_CORE_AMX; caps oneDNN and
#                  the plugin's own loops
#
# Ends with CTest's summary and its exit status. PRESET=asan tests/run.sh builds with AddressSanitizer and
# UndefinedBehaviorSanitizer; PRESET=tsan builds with ThreadSanitizer and passes the tests that start threads;
# PRESET=races runs the tests of CUDA kernels on their doubles in more orders of threads and blocks.
set -eu
cd "$(dirname "$0")/.."
preset=${PRESET:-cpu}
install=
chosen=()
usage() { sed -n '2,/^set -eu/s/^# \{0,1\}//p' "tests/run.sh"; }
while [ $# -gt 0 ]; do
    case $1 in
        --no-install) install=--no-install ;;
        --quick) chosen=(-L quick) ;;
        --isa)
            case ${2:-} in
                SSE41 | AVX | AVX2 | AVX2_VNNI | AVX512_CORE | AVX512_CORE_VNNI | AVX512_CORE_BF16) ;;
                AVX512_CORE_FP16 | AVX512_CORE_AMX) ;;
                *) echo "run.sh: --isa '${2:-}': there is no such level" >&2; usage >&2; exit 2 ;;
            esac
            export DNNL_MAX_CPU_ISA=$2
            shift
            ;;
        --help) usage; exit ;;
        *) break ;; # CTest's
    esac
    shift
done
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc alone obeys these

# quietly <command...>: shows what it says only if it fails
quietly() {
    local log
    log=$(mktemp)
    echo "$*"
    "$@" > "$log" 2>&1 || {
        cat "$log"
        rm -f "$log"
        return 1
    }
    rm -f "$log"
}

scripts/dependencies.sh --tests $install
# Named, because examples/quickstart.sh configures the same folder without tests.
quietly cmake --preset "$preset" -DDARKNET_AMP_BUILD_TESTS=ON -DDARKNET_AMP_BUILD_STOCK=ON
quietly cmake --build "build/$preset" -- -j"$cores"
exec ctest --preset "$preset" -j"$cores" ${chosen[@]+"${chosen[@]}"} "$@"
