#!/usr/bin/env bash
# Tests on a GPU: builds for this machine's device alone, runs, prints a table; in all less than 9 minutes on 16 cores.
#
# usage: tests/gpu/run.sh [options]
#   --darknet DIR    Darknet's source, commit 61c9d02e (default: what the environment's DARKNET_SOURCE_DIR names; else fetched)
#   --cmocka DIR     CMocka's source, or the folder with its include/ and lib/ (default: where the system has it)
#   --cudnn DIR      the folder with cuDNN's include/ and lib/ (default: where CUDA is, or the Python package nvidia.cudnn)
#   --out DIR        build, logs and results (default build/gpu in the repository)
#   --help           this text
#
# It takes CMake 3.22, a C and C++ compiler, the CUDA toolkit and cuDNN; oneDNN is not needed, nor a network once --darknet and
# --cmocka are given. OUT/results.jsonl: a line on the machine, then one per stage. OUT/logs: all that the stages said.
#
# Exit status: 0 all passed or could not be run here, 1 a stage failed, 2 wrong options, 77 no GPU.
# DARKNET_AMP_COMMIT: the commit, for results of a copy without .git.
# AMP_GPU_DRY_RUN=1 prints the commands instead of running them, and takes no GPU.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
darknet=${DARKNET_SOURCE_DIR:-}
cmocka=
cudnn=${CUDNN_ROOT:-}
out=$root/build/gpu
dry=${AMP_GPU_DRY_RUN:-}
deadline=525 # seconds for all
failures=0
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc alone obeys these

usage() { sed -n '/^# usage/,/^# *--help/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

wrong() {
    echo "run.sh: $*; --help shows the options" >&2
    exit 2
}

read_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --darknet | --cmocka | --cudnn | --out) [ -n "${2:-}" ] || wrong "$1 needs a folder" ;;
            *) wrong "unknown option $1" ;;
        esac
        case $1 in
            --darknet) darknet=$2 ;;
            --cmocka) cmocka=$2 ;;
            --cudnn) cudnn=$2 ;;
            --out) out=$2 ;;
        esac
        shift 2
    done
    local folder
    for folder in "$darknet" "$cmocka" "$cudnn"; do
        [ -z "$folder" ] || [ -d "$folder" ] || wrong "there is no folder $folder"
    done
    mkdir -p "$out/logs" || wrong "cannot make the folder $out"
    out=$(cd "$out" && pwd)
    [ -z "$darknet" ] || darknet=$(cd "$darknet" && pwd)
    [ -z "$cmocka" ] || cmocka=$(cd "$cmocka" && pwd)
    [ -z "$cudnn" ] || cudnn=$(cd "$cudnn" && pwd)
}

# ---- the machine ----

ask() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2> /dev/null | head -n 1; }

find_machine() {
    if [ -n "$dry" ]; then
        gpu='no GPU (dry run)' driver=none capability=9.0
    else
        gpu=$(ask name) driver=$(ask driver_version) capability=$(ask compute_cap)
        case $gpu in '' | *'No devices'* | *fail*)
            echo 'skipped: no GPU here (nvidia-smi finds none)'
            exit 77 ;;
        esac
    fi
    [[ $capability =~ ^[0-9]+\.[0-9]$ ]] || wrong "the driver does not tell the GPU's compute capability (it says '$capability')"
    PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
    architecture=${capability/./}
    dtypes=(fp16)
    [ "$architecture" -lt 80 ] || dtypes+=(bf16)
    cuda=$(nvcc --version 2> /dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
    if [ -z "$cudnn" ]; then
        cudnn=$(python3 -c 'import nvidia.cudnn as c; print(list(c.__path__)[0])' 2> /dev/null) || cudnn=
    fi
    if [ -n "$cudnn" ]; then
        export CUDNN_ROOT=$cudnn LD_LIBRARY_PATH=$cudnn/lib:$cudnn/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
    local header
    cudnn_version=
    for header in "$cudnn/include" "${CUDA_HOME:-/usr/local/cuda}/include" /usr/local/include /usr/include; do
        [ -f "$header/cudnn_version.h" ] || continue
        cudnn_version=$(awk '/#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) / { printf "%s%s", dot, $3; dot = "." }' \
            "$header/cudnn_version.h")
        break
    done
    commit=${DARKNET_AMP_COMMIT:-$(git -C "$root" describe --always --dirty --abbrev=12 2> /dev/null)} || commit=
}

json() { # json <text>: as a JSON string
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "$(printf '%s' "$text" | tr '\n\t\r' '   ' | tr -cd '[:print:]')"
}

describe_machine() {
    printf '{"kind":"machine","date":%s,"gpu":%s,"capability":%s,"driver":%s,"cuda":%s,"cudnn":%s,"cores":%d,"commit":%s}\n' \
        "$(json "$(date -u +%Y-%m-%dT%H:%M:%SZ)")" "$(json "$gpu")" "$(json "$capability")" "$(json "$driver")" \
        "$(json "${cuda:-unknown}")" "$(json "${cudnn_version:-unknown}")" "$cores" "$(json "${commit:-unknown}")" \
        > "$out/${dry:+dry-}results.jsonl"
    echo "$gpu, compute capability $capability, driver $driver, CUDA ${cuda:-unknown}, cuDNN ${cudnn_version:-unknown}," \
        "commit ${commit:-unknown}"
}

# ---- running ----

record() { # record <stage> <passed, failed or skipped> <seconds> <a line on it>
    printf '{"kind":"stage","stage":%s,"status":"%s","seconds":%d,"detail":%s}\n' "$(json "$1")" "$2" "$3" "$(json "$4")" \
        >> "$out/results.jsonl"
    printf '%-44s %-8s %4d s  %.110s\n' "$1" "$2" "$3" "$4"
    [ "$2" != failed ] || failures=$((failures + 1))
}

# bounded <seconds> <command...>: its status; 124 if time ran out, its own or that of all.
bounded() {
    local limit=$1 left=$((deadline - SECONDS))
    shift
    if [ -n "$dry" ]; then
        # On the terminal: a stage's output is its log.
        printf '  timeout %d' "$limit" >&3
        printf ' %q' "$@" >&3
        echo >&3
        return 0
    fi
    [ "$left" -gt 0 ] || { echo 'the time for all stages is over'; return 124; }
    [ "$limit" -lt "$left" ] || limit=$left
    timeout -k 5 "$limit" "$@"
}

# What a log ends with, or what went wrong in it.
last_words() {
    local line
    line=$(grep -aE '\[  FAILED  \]|: error|rror:|CMake Error' "$1" | head -n 1)
    [ -n "$line" ] || line=$(grep -av '^ *$' "$1" | tail -n 1)
    echo "$line"
}

# stage <name> <function or command...>: runs it with a log of its own, and records what came of it. What a stage wrote to its
# log with "result: " before it is the line on it.
stage() {
    local name=$1 log start=$SECONDS status state=passed detail
    [ -z "$dry" ] || echo "$1:"
    shift
    log=$out/logs/${name//[^a-z0-9]/_}.log
    "$@" > "$log" 2>&1
    status=$?
    [ -z "$dry" ] || return "$status"
    detail=$(sed -n 's/^result: //p' "$log" | tail -n 1)
    case $status in
        0) [ -n "$detail" ] || detail=$(grep -a 'PASSED' "$log" | tail -n 1) ;;
        77) state=skipped ;;
        124 | 137) state=failed detail="ran out of time${detail:+; $detail}" ;;
        *) state=failed ;;
    esac
    [ -n "$detail" ] || detail=$(last_words "$log")
    record "$name" "$state" $((SECONDS - start)) "$detail"
    return "$status"
}

# ---- building ----

get_cmocka() {
    cmocka_flags=()
    [ -n "$cmocka" ] || return 0
    local at=$cmocka library
    if [ -f "$cmocka/CMakeLists.txt" ]; then
        at=$out/cmocka
        bounded 60 cmake -S "$cmocka" -B "$out/cmocka-build" -DBUILD_SHARED_LIBS=OFF -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF \
            -DCMAKE_INSTALL_PREFIX="$at" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POLICY_VERSION_MINIMUM=3.5 &&
            bounded 60 cmake --build "$out/cmocka-build" -j "$cores" &&
            bounded 20 cmake --install "$out/cmocka-build" || return
    fi
    library=$(find "$at" \( -name 'libcmocka*.a' -o -name 'libcmocka.so*' \) 2> /dev/null | sort | head -n 1)
    [ -n "$library" ] || [ -n "$dry" ] || { echo "result: no libcmocka in $at"; return 1; }
    cmocka_flags=("-DCMOCKA_INCLUDE_DIR=$at/include" "-DCMOCKA_LIBRARY=$library")
}

configure_and_build() {
    get_cmocka || return
    bounded 90 cmake -S "$root" --preset cuda -B "$out/build" -DCMAKE_CUDA_ARCHITECTURES="$architecture" \
        -DDARKNET_AMP_BUILD_STOCK=OFF -DDARKNET_AMP_BUILD_TESTS=ON ${darknet:+"-DDARKNET_SOURCE_DIR=$darknet"} \
        ${cmocka_flags[@]+"${cmocka_flags[@]}"} || return
    bounded 240 cmake --build "$out/build" --target gpu_tests -j "$cores"
}

# ---- what is run; each has an empty folder of its own as the current one ----

in_folder() { # in_folder <name> <command...>
    local folder=$out/work/$1
    shift
    rm -rf "$folder" && mkdir -p "$folder" || return
    (cd "$folder" && "$@")
}

ops() { bounded 60 env AMP_TEST_GUARD=1 "$out/build/tests/$1"; }

# Plans for this device out of its description alone; the description is a result too.
plans() {
    bounded 20 "$out/build/tests/gpu_properties" "$out/device_properties.json" || return
    local bf16=()
    [ ${#dtypes[@]} -lt 2 ] || bf16=(DARKNET_AMP_DEVICE_BF16=1)
    bounded 60 env DARKNET_AMP_DEVICE_PROPERTIES="$out/device_properties.json" ${bf16[@]+"${bf16[@]}"} "$out/build/tests/gpu_plans"
}

# parity <network>: a short training in each precision. Losses, predictions and weights in half may be 2.5 times as far from
# fp32's as the CPU backend's were measured to be; AMP's fp32 differs from Darknet's own GPU code in the order of sums.
parity() {
    local network=$1 program=$out/build/tests/gpu_host dtype bound failed=0
    export NVIDIA_TF32_OVERRIDE=0 # or Darknet's fp32 would be rounded to 10 bits
    if [ "$network" = plain ]; then # without what plugin/host/pjreddie_gaps*.h list, and without chance
        for dtype in off fp32; do
            bounded 20 "$program" start plain "$dtype" "start.$dtype" || return
        done
        compared start.off start.fp32 0.001 || failed=1
    fi
    for dtype in fp32 "${dtypes[@]}"; do
        bounded 20 "$program" train "$network" "$dtype" "train.$dtype" || return
    done
    for dtype in "${dtypes[@]}"; do
        case $network-$dtype in
            yolo-fp16 | plain-fp16) bound=0.06 ;;
            yolo-bf16 | plain-bf16) bound=0.15 ;;
            classifier-fp16) bound=0.01 ;;
            classifier-bf16) bound=0.06 ;;
            *-fp16) bound=0.001 ;;
            *) bound=0.006 ;;
        esac
        compared train.fp32 "train.$dtype" $bound || failed=1
    done
    echo "result: ${comparisons:-}"
    return $failed
}

compared() { # compared <file> <file> <bound>
    local line status=0
    line=$(bounded 10 "$out/build/tests/gpu_host" compare "$1" "$2" "$3") || status=1
    echo "$line"
    comparisons="${comparisons:+$comparisons; }$1 and $2: $(sed -n 's/.*numbers, \([^ ]*\) apart.*/\1/p' <<< "$line") of $3"
    return $status
}

train_shapes() { # train_shapes <dtype>: leaves its mAP@0.5 in <dtype>/map
    mkdir -p "$1/backup" || return
    { grep -v '^backup' data/shapes.data; echo "backup = $PWD/$1/backup"; } > "$1/shapes.data"
    bounded 150 "$out/build/bin/darknet" detector train "$1/shapes.data" "$root/cfg/shapes.cfg" -amp "$1" -seed 1 \
        > "$1/train.log" 2>&1 || return
    bounded 40 "$out/build/bin/darknet" detector map "$1/shapes.data" "$root/cfg/shapes.cfg" "$1/backup/shapes_final.weights" \
        -amp "$1" > "$1/map.log" 2>&1 || return
    sed -n 's/.*(mAP@0.50) = .*, or \([0-9.]*\) %.*/\1/p' "$1/map.log" > "$1/map"
}

# All at the same time: what is compared is the figures that they find.
shapes() {
    local dtype stock map result='' failed=0
    local -A trainers=()
    bounded 30 "$out/build/bin/shapes" --out "$PWD/data" --train 800 --valid 200 --size 96 --seed 1 || return
    [ -z "$dry" ] || { mkdir -p data; : > data/shapes.data; }
    for dtype in off fp32 "${dtypes[@]}"; do
        train_shapes "$dtype" &
        trainers[$dtype]=$!
    done
    for dtype in off fp32 "${dtypes[@]}"; do
        wait "${trainers[$dtype]}" || { failed=1; echo "$dtype: failed"; tail -n 5 "$dtype"/*.log; }
    done
    [ -z "$dry" ] || return 0
    stock=$(cat off/map 2> /dev/null)
    for dtype in off fp32 "${dtypes[@]}"; do
        map=$(cat "$dtype/map" 2> /dev/null)
        result+="$dtype ${map:-none}; "
        # A stock that has not learnt would let everything pass.
        awk -v map="${map:-nan}" -v stock="${stock:-nan}" \
            'BEGIN { exit !(map ~ /^[0-9]/ && stock ~ /^[0-9]/ && stock > 85 && map > stock - 3) }' || failed=1
    done
    echo "result: mAP@0.5 in %: $result"
    return $failed
}

# sanitized <tool> <program> <seconds>
sanitized() {
    # cuDNN's engines are not timed: of what is ours nothing would run more often for it.
    local options=(--tool "$1" --error-exitcode 9)
    [ "$1" != memcheck ] || options+=(--report-api-errors no) # a test asks for more memory than there is
    bounded "$3" env AMP_CUDA_TUNE=0 compute-sanitizer "${options[@]}" "$out/build/tests/$2"
}

# A machine can have the tool and not let it work.
sanitizer_works() {
    [ -n "$dry" ] || command -v compute-sanitizer > /dev/null || { echo 'result: there is no compute-sanitizer'; return 77; }
    bounded 30 compute-sanitizer --tool memcheck "$out/build/tests/gpu_properties" /dev/null > works 2>&1
    cat works
    [ -n "$dry" ] || grep -q 'ERROR SUMMARY' works || {
        echo "result: it does not work here: $(grep -aiE 'error|support|fail' works | head -n 1)"
        return 77
    }
}

run_sanitizers() {
    local program
    stage 'compute-sanitizer' in_folder sanitizer sanitizer_works || return
    for program in gpu_backend_cast gpu_backend_kernels_update gpu_backend_kernels_norm gpu_backend_kernels_move gpu_backend_yolo \
        gpu_backend_step gpu_backend_gemm gpu_backend_local gpu_update gpu_unlisted; do
        stage "racecheck $program" in_folder sanitizer sanitized racecheck $program 60
        stage "memcheck $program" in_folder sanitizer sanitized memcheck $program 60
    done
    for program in gpu_backend_cast gpu_backend_kernels_norm; do # where threads wait for each other
        stage "synccheck $program" in_folder sanitizer sanitized synccheck $program 60
    done
    # Races in cuDNN's kernels would not be ours.
    stage 'memcheck gpu_backend_conv' in_folder sanitizer sanitized memcheck gpu_backend_conv 90
}

show_table() {
    [ -z "$dry" ] || { echo 'Nothing was run.'; return; }
    local passed
    passed=$(grep -c '"status":"passed"' "$out/results.jsonl")
    echo
    echo "$passed passed, $failures failed, $(grep -c '"status":"skipped"' "$out/results.jsonl") skipped, in $SECONDS s."
    echo "Results: $out/results.jsonl; logs: $out/logs"
}

read_arguments "$@"
find_machine
exec 3>&1
rm -f "$out"/logs/*.log
describe_machine
if stage 'build' configure_and_build; then
    for program in gpu_backend_cast gpu_backend_conv gpu_backend_gemm gpu_backend_local gpu_backend_kernels_move \
        gpu_backend_kernels_norm gpu_backend_kernels_update gpu_backend_step gpu_backend_yolo gpu_update gpu_unlisted; do
        stage "conformance $program" in_folder ops ops $program
    done
    stage 'tensors of more than 2^31 elements' in_folder ops ops gpu_large
    for network in plain yolo classifier masked rnn gru lstm; do
        stage "parity $network" in_folder "parity_$network" parity $network
    done
    stage 'shapes' in_folder shapes shapes
    stage 'plans' in_folder plans plans
    run_sanitizers
fi
show_table
[ $failures -eq 0 ]
