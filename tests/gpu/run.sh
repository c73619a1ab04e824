#!/usr/bin/env bash
# Tests and measures on a GPU: builds once, for this machine's device alone, and runs what decides first.
#
# usage: tests/gpu/run.sh [options]
#   --darknet DIR    Darknet's source, pjreddie's 61c9d02e or AlexeyAB's 59596d78, which is what is tested
#                    (default: the environment's DARKNET_SOURCE_DIR)
#   --cmocka DIR     CMocka's source, or the folder with its include/ and lib/ (default: where the system has
#                    it)
#   --cudnn DIR      the folder with cuDNN's include/ and lib/ (default: where CUDA is, or the Python package
#                    nvidia.cudnn)
#   --build DIR      the build and the logs, kept for the next time (default build/gpu in the repository)
#   --out DIR        where summary.txt and logs.tar.gz are left (default: the folder of the build)
#   --limit N        seconds for all, the build included; what they do not reach is skipped (default 525)
#   --continue       leaves out what passed in this build folder before, unless the build makes other programs
#   --help           this text
#
# It takes CMake 3.22, make or ninja, a C and C++ compiler, patch or git, python3, the CUDA toolkit with
# cuBLAS and cuRAND, cuDNN and CMocka, and says at once which of them lack. oneDNN is not needed, nor a
# network; PyTorch is measured where python3 has it.
#
# A stage that no time is left for is skipped. So what the next decision hangs on comes first: whether the
# program can compute on this GPU at all, or all ends there; `darknet amp selftest`, parity, the speed of
# yolov3 and yolov3-tiny (AlexeyAB's: of yolov4 and yolov4-tiny, with CUDNN_HALF), with 64 images a pass, and
# with 4 and 8, with and without CUDA graphs. Then conformance of the operations and all other tests, the
# compiled PyTorch, compute-sanitizer, and last the benchmark's other cases and sides.
#
# Exit status: 0 nothing failed, 1 a stage failed, 2 wrong options or something lacks, 77 no GPU.
# DARKNET_AMP_COMMIT: the commit, for results of a copy without .git.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/scripts/gpu_machine.bash"
darknet=${DARKNET_SOURCE_DIR:-} cmocka='' cudnn='' build=$root/build/gpu out='' limit=525 go_on=''
failures=0

usage() { sed -n '/^# usage/,/^# *--help/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

wrong() {
    echo "run.sh: $*" >&2
    exit 2
}

read_arguments() {
    local name
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --continue) go_on=1; shift; continue ;;
            --darknet | --cmocka | --cudnn | --build | --out | --limit) ;;
            *) wrong "unknown option $1; --help shows them" ;;
        esac
        [ -n "${2:-}" ] || wrong "$1 needs a value; --help shows which"
        printf -v "${1#--}" %s "$2"
        shift 2
    done
    [[ $limit =~ ^[0-9]+$ ]] || wrong "--limit needs a whole number, not $limit"
    out=${out:-$build}
    logs=$build/logs
    mkdir -p "$logs" "$out" || wrong "cannot make the folders $logs and $out"
    for name in darknet cmocka cudnn build out logs; do
        [ -z "${!name}" ] && continue
        [ -d "${!name}" ] || wrong "there is no folder ${!name}"
        printf -v "$name" %s "$(cd "${!name}" && pwd)"
    done
    [ -z "$cudnn" ] || CUDNN_ROOT=$cudnn
}

# ---- results: summary.txt as it grows, logs.tar.gz at the end, whatever that is ----

json() { # json <text>: as a JSON string
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "$(printf '%s' "$text" | tr '\n\t\r' '   ' | tr -cd '[:print:]')"
}

say() { tee -a "$out/summary.txt"; }

begin_results() {
    local passed=
    if [ -n "$go_on" ]; then # the build is brought up to date every time
        passed=$(grep '"status":"passed"' "$logs/results.jsonl" 2> /dev/null | grep -v '"stage":"build"')
    else
        rm -f "$logs"/*
    fi
    : > "$out/summary.txt" || wrong "cannot write $out/summary.txt"
    trap 'tar -czf "$out/logs.tar.gz" -C "$build" logs' EXIT
    trap 'exit 143' INT TERM HUP
    cuda=$(cuda_version) commit=$(commit_of_tree)
    {
        printf '{"kind":"machine","date":"%s",' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        printf '"gpu":%s,"capability":"%s",' "$(json "$gpu_name")" "$capability"
        printf '"driver":%s,"cuda":%s,' "$(json "$driver")" "$(json "$cuda")"
        printf '"cores":%d,"commit":%s}\n' "$cores" "$(json "$commit")"
        [ -z "$passed" ] || echo "$passed"
    } > "$logs/results.jsonl"
    echo "$gpu_name, compute capability $capability, driver $driver, CUDA $cuda, commit $commit" | say
    [ -z "$gpu_notes" ] || echo "Note: $gpu_notes." | say
}

record() { # record <stage> <passed, failed or skipped> <seconds> <a line on it>
    printf '{"kind":"stage","stage":%s,"status":"%s","seconds":%d,"detail":%s}\n' "$(json "$1")" "$2" "$3" \
        "$(json "$4")" >> "$logs/results.jsonl"
    printf '%-44s %-8s %4d s  %.110s\n' "$1" "$2" "$3" "$4" | say
    [ "$2" != failed ] || failures=$((failures + 1))
}

# ---- running ----

time_left() { echo $((limit - SECONDS)); }

# bounded <seconds> <command...>: its status; 124 if time ran out, its own (PATIENCE times as much as a GPU
# takes, for rehearse.sh) or that of all.
bounded() {
    local most=$(($1 * ${PATIENCE:-1})) left
    left=$(time_left)
    shift
    [ "$left" -gt 0 ] || return 124
    timeout -k 5 $((most < left ? most : left)) "$@"
}

# What a log ends with, or what went wrong in it.
last_words() {
    local line
    line=$(grep -aE '\[  FAILED  \]|: error|rror:|CMake Error' "$1" | head -n 1)
    [ -n "$line" ] || line=$(grep -av '^ *$' "$1" | tail -n 1)
    echo "$line"
}

# stage <name> <function or command...>: runs it in an empty folder, with a log of its own, and records what
# came of it. What a stage wrote to its log with "result: " before it is the line on it.
stage() {
    local name=$1 log start=$SECONDS status state=passed detail folder
    shift
    if grep -qF "\"stage\":$(json "$name"),\"status\":\"passed\"" "$logs/results.jsonl"; then
        printf '%-44s passed before\n' "$name" | say
        return 0
    fi
    if [ "$(time_left)" -lt 5 ]; then
        record "$name" skipped 0 'the time was over'
        return 124
    fi
    log=$logs/${name//[^a-z0-9]/_}.log folder=$build/work/${name//[^a-z0-9]/_}
    rm -rf "$folder" && mkdir -p "$folder"
    (cd "$folder" && "$@") > "$log" 2>&1
    status=$?
    detail=$(sed -n 's/^result: //p' "$log" | tail -n 1)
    case $status in
        0) [ -n "$detail" ] || detail=$(grep -a 'PASSED' "$log" | tail -n 1) ;;
        77) state=skipped ;;
        124 | 137)
            state=failed detail="ran out of time${detail:+; $detail}"
            [ "$(time_left)" -gt 0 ] || state=skipped detail="the time for all was over; $detail" ;;
        *) state=failed ;;
    esac
    [ -n "$detail" ] || detail=$(last_words "$log")
    record "$name" "$state" $((SECONDS - start)) "$detail"
    return "$status"
}

# ---- building ----

check_prerequisites() {
    local lacks
    lacks=$(lacking "$darknet")
    if [ -n "$cmocka" ]; then
        [ -f "$cmocka/CMakeLists.txt" ] || [ -n "$(cmocka_library "$cmocka")" ] ||
            lacks+=$'\n'"CMocka: neither its source nor its library is in $cmocka"
    elif ! printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h |
        cc -x c -E - > /dev/null 2>&1; then
        lacks+=$'\n'"CMocka (--cmocka DIR: its source, or the folder with its include/ and lib/)"
    fi
    [ -n "${lacks//$'\n'/}" ] || return 0
    { echo 'Nothing was built or run. This machine lacks:' && sed '/^$/d; s/^/  /' <<< "$lacks"; } | say >&2
    exit 2
}

cmocka_library() {
    find "$1" \( -name 'libcmocka*.a' -o -name 'libcmocka.so*' \) 2> /dev/null | sort | head -n 1
}

configure_and_build() {
    local flags=() at=$cmocka
    if [ -f "$cmocka/CMakeLists.txt" ]; then
        at=$build/cmocka
        bounded 60 cmake -S "$cmocka" -B "$build/cmocka-build" -DBUILD_SHARED_LIBS=OFF -DWITH_EXAMPLES=OFF \
            -DUNIT_TESTING=OFF -DCMAKE_INSTALL_PREFIX="$at" -DCMAKE_INSTALL_LIBDIR=lib \
            -DCMAKE_POLICY_VERSION_MINIMUM=3.5 &&
            bounded 60 cmake --build "$build/cmocka-build" -j "$cores" &&
            bounded 20 cmake --install "$build/cmocka-build" || return
    fi
    [ -z "$cmocka" ] || flags=("-DCMOCKA_INCLUDE_DIR=$at/include" "-DCMOCKA_LIBRARY=$(cmocka_library "$at")")
    export -f configure_for_gpu
    export root architecture
    bounded 90 bash -c 'configure_for_gpu "$@"' - "$build/build" "$darknet" -DDARKNET_AMP_BUILD_TESTS=ON \
        "${flags[@]}" || return
    bounded 300 cmake --build "$build/build" --target gpu_tests bench-steps -j "$cores" ||
        return
    echo "result: $(sed -n 's/^-- Found \(cuDNN:.*version\)/\1/p' "$logs/build.log")"
}

# All that results depend on: the programs, and the scripts around them.
checksum() {
    local scripts=("$root/tests/gpu/run.sh" "$root"/bench/*.sh "$root"/bench/*.py)
    (cd "$build/build" && find . -name CMakeFiles -prune -o -type f \( -perm -u+x -o -name '*.so*' \) \
        -print0 | sort -z | xargs -0 cat "${scripts[@]}" | cksum)
}

# With --continue: what other programs have passed is run again.
discard_other_results() {
    local now
    now=$(checksum)
    if [ -n "$go_on" ] && [ "$now" != "$(cat "$logs/checksum" 2> /dev/null)" ]; then
        sed -i '/"stage":"build"/!{/"kind":"stage"/d}' "$logs/results.jsonl"
        echo 'The programs or scripts have changed: everything is run again.' | say
    fi
    echo "$now" > "$logs/checksum"
}

# ---- what is run ----

# Whether the program can compute here: else all that follows would fail, and say the same.
device() {
    local status=0
    bounded 60 "$build/build/bin/darknet" amp version > said 2>&1 || status=$?
    cat said
    ! grep -q '^  none: ' said || status=1
    [ $status = 0 ] || echo "result: $({ grep '^  none: ' said || tail -n 1 said; } | sed 's/^  none: //')"
    return $status
}

ops() { bounded 120 env AMP_TEST_GUARD=1 "$build/build/tests/$1" "${@:2}"; }

# engines <networks...>: of all their convolutions, at the benchmark's size
engines() {
    python3 "$root/bench/roofline.py" --convolutions 416 "${@/#/$darknet/cfg/}" > shapes || return
    ops gpu_engines shapes
}

conformance() {
    local name
    for name in "$@"; do stage "conformance $name" ops "gpu_$name"; done
}

# Plans for this device out of its description alone; the description is a result too.
plans() {
    bounded 20 "$build/build/tests/gpu_properties" "$logs/device_properties.json" || return
    local bf16=()
    [ ${#dtypes[@]} -lt 2 ] || bf16=(DARKNET_AMP_DEVICE_BF16=1)
    bounded 60 env DARKNET_AMP_DEVICE_PROPERTIES="$logs/device_properties.json" ${bf16[@]+"${bf16[@]}"} \
        "$build/build/tests/gpu_plans"
}

# parity <network>: a short training in each precision. Losses, predictions and weights in half may be 2.5
# times as far from fp32's as the CPU backend's were measured to be by the GPU's rule of batch norm
# (cuda_host_cpu; AlexeyAB's: in five trainings on doubles); AMP's fp32 differs from Darknet's own GPU code in
# the order of sums.
parity() {
    local network=$1 program=$build/build/tests/gpu_host dtype bound failed=0
    # Or Darknet's fp32 would be rounded to 10 bits; and timing cuDNN's engines would take longest.
    export NVIDIA_TF32_OVERRIDE=0 AMP_CUDA_TUNE=0
    if [ "$network" = plain ]; then # without what plugin/host/gaps*.h list, and without chance
        for dtype in off fp32; do
            bounded 20 "$program" start plain "$dtype" "start.$dtype" || return
        done
        compared start.off start.fp32 0.001 || failed=1
    fi
    for dtype in fp32 "${dtypes[@]}"; do
        bounded 20 "$program" train "$network" "$dtype" "train.$dtype" || return
    done
    for dtype in "${dtypes[@]}"; do
        case $fork$network-$dtype in
            yolo-fp16 | alexeyab-yolo-fp16) bound=0.084 ;;
            yolo-bf16) bound=0.276 ;;
            plain-fp16) bound=0.065 ;;
            plain-bf16) bound=0.111 ;;
            deconvolutional-fp16) bound=0.0071 ;;
            deconvolutional-bf16) bound=0.024 ;;
            classifier-fp16) bound=0.01 ;;
            classifier-bf16) bound=0.06 ;;
            alexeyab-yolo-bf16) bound=0.092 ;;
            alexeyab-gaussian-fp16) bound=0.071 ;;
            alexeyab-gaussian-bf16) bound=0.5 ;;
            alexeyab-region-fp16) bound=0.0018 ;;
            alexeyab-region-bf16) bound=0.027 ;;
            alexeyab-classifier-fp16) bound=0.0054 ;;
            alexeyab-classifier-bf16) bound=0.019 ;;
            alexeyab-masked-fp16) bound=0.0012 ;;
            alexeyab-masked-bf16) bound=0.0087 ;;
            alexeyab-averaged-fp16) bound=0.0014 ;; # in one training
            *-fp16) bound=0.001 ;;
            *) bound=0.006 ;;
        esac
        compared train.fp32 "train.$dtype" $bound || failed=1
    done
    echo "result: ${comparisons:-}"
    return $failed
}

compared() { # compared <file> <file> <bound>
    local line apart status=0
    line=$(bounded 10 "$build/build/tests/gpu_host" compare "$1" "$2" "$3") || status=1
    echo "$line"
    apart=$(sed -n 's/.*numbers, \([^ ]*\) apart.*/\1/p' <<< "$line")
    comparisons="${comparisons:+$comparisons; }$1 and $2: $apart of $3"
    return $status
}

train_shapes() { # train_shapes <dtype>: leaves its mAP@0.5 in <dtype>/map
    mkdir -p "$1/backup" || return
    { grep -v '^backup' data/shapes.data; echo "backup = $PWD/$1/backup"; } > "$1/shapes.data"
    local program=$build/build/bin/darknet cfg=$root/cfg/shapes.cfg
    bounded 150 "$program" detector train "$1/shapes.data" "$cfg" ${fork:+-dont_show} -amp "$1" -seed 1 \
        > "$1/train.log" 2>&1 || return
    bounded 40 "$program" detector map "$1/shapes.data" "$cfg" "$1/backup/shapes_final.weights" -amp "$1" \
        > "$1/map.log" 2>&1 || return
    sed -n 's/.*(mAP@0.50) = .*, or \([0-9.]*\) %.*/\1/p' "$1/map.log" > "$1/map"
}

# All at the same time: what is compared is the figures that they find.
shapes() {
    local dtype stock map result='' failed=0
    local -A trainers=()
    bounded 30 "$build/build/bin/shapes" --out "$PWD/data" --train 800 --valid 200 --size 96 --seed 1 ||
        return
    [ -z "$fork" ] || mv data/labels/* data/images/ || return # where AlexeyAB's looks for them
    for dtype in off fp32 "${dtypes[@]}"; do
        train_shapes "$dtype" &
        trainers[$dtype]=$!
    done
    for dtype in off fp32 "${dtypes[@]}"; do
        wait "${trainers[$dtype]}" || { failed=$?; echo "$dtype: failed"; tail -n 5 "$dtype"/*.log; }
    done
    [ $failed = 0 ] || return $failed
    stock=$(cat off/map 2> /dev/null)
    for dtype in off fp32 "${dtypes[@]}"; do
        map=$(cat "$dtype/map" 2> /dev/null)
        result+="$dtype ${map:-none}; "
        # A stock that has not learnt would let everything pass.
        awk -v map="${map:-nan}" -v stock="${stock:-nan}" \
            'BEGIN { exit !(map ~ /^[0-9]/ && stock ~ /^[0-9]/ && stock > 85 && map > stock - 3) }' ||
            failed=1
    done
    echo "result: mAP@0.5 in %: $result"
    return $failed
}

# measured <seconds> <cases> <sides>: bench/gpu.sh, whose tables become a part of the summary.
measured() {
    local most=$(($1 * ${PATIENCE:-1})) left
    left=$(($(time_left) - 30))
    [ $left -gt 0 ] || { echo 'result: too little time was left'; return 77; }
    bounded $((most + 30)) bash "$root/bench/gpu.sh" --no-build --build "$build/build" --darknet "$darknet" \
        --limit $((most < left ? most : left)) --only "$2" --sides "$3" \
        --json "$logs/bench_${2// /_}_${3// /_}.jsonl" --log bench.log > tables
    local status=$?
    cat bench.log tables
    echo 'result: the tables are below'
    return $status
}

benchmark() { # benchmark <seconds> <cases> <sides>
    stage "benchmark $2: $3" measured "$@"
    cat "$build/work/benchmark_${2//[^a-z0-9]/_}__${3//[^a-z0-9]/_}/tables" 2> /dev/null | say
}

# sanitized <tool> <program> <seconds>
sanitized() {
    # cuDNN's engines are not timed: of what is ours nothing would run more often for it.
    local options=(--tool "$1" --error-exitcode 9)
    [ "$1" != memcheck ] || options+=(--report-api-errors no) # a test asks for more memory than there is
    bounded "$3" env AMP_CUDA_TUNE=0 compute-sanitizer "${options[@]}" "$build/build/tests/$2"
}

# A machine can have the tool and not let it work.
sanitizer_works() {
    command -v compute-sanitizer > /dev/null || { echo 'result: there is no compute-sanitizer'; return 77; }
    bounded 30 compute-sanitizer --tool memcheck "$build/build/tests/gpu_properties" /dev/null > works 2>&1
    cat works
    grep -q 'ERROR SUMMARY' works || {
        echo "result: it does not work here: $(grep -aiE 'error|support|fail' works | head -n 1)"
        return 77
    }
}

run_sanitizers() {
    local program
    stage 'compute-sanitizer' sanitizer_works || return
    for program in gpu_backend_cast gpu_backend_kernels_update gpu_backend_kernels_norm \
        gpu_backend_kernels_move gpu_backend_yolo \
        gpu_backend_step gpu_backend_gemm gpu_update gpu_unlisted; do
        stage "racecheck $program" sanitized racecheck $program 60
        stage "memcheck $program" sanitized memcheck $program 60
    done
    for program in gpu_backend_cast gpu_backend_kernels_norm; do # where threads wait for each other
        stage "synccheck $program" sanitized synccheck $program 60
    done
    # Races in cuDNN's kernels would not be ours.
    stage 'memcheck gpu_backend_conv' sanitized memcheck gpu_backend_conv 90
}

run_all() {
    local network half="${dtypes[*]}" torch graphs compiled yolo=yolov3 own='' few='plain yolo' \
        classifiers='darknet53 resnet50' more='classifier deconvolutional masked rnn gru lstm'
    torch=torch-${half// / torch-} graphs="${half// /-graphs }-graphs"
    compiled="${torch// /-compiled }-compiled"
    [ -z "$fork" ] || yolo=yolov4 own='stock-half stock-half-scaled ' few=yolo classifiers=darknet53 \
        more='gaussian region classifier masked averaged'
    stage 'build' configure_and_build || return
    discard_other_results
    stage 'the GPU' device || [ "$(time_left)" -lt 5 ] || return
    stage 'selftest' bounded 120 "$build/build/bin/darknet" amp selftest
    for network in $few; do stage "parity $network" parity $network; done
    benchmark 120 $yolo "stock-tf32 $own$half $torch"
    benchmark 60 $yolo-tiny "stock-tf32 $own$half $torch"
    benchmark 120 "$yolo-b4 $yolo-b8" "stock-tf32 $half $graphs $torch"
    conformance backend_conv backend_kernels_norm backend_yolo backend_step backend_cast backend_gemm \
        backend_kernels_move backend_kernels_update backend_yolo_alexeyab update unlisted
    stage "cuDNN's engines agree" engines $yolo.cfg $yolo-tiny.cfg
    stage 'tensors of more than 2^31 elements' ops gpu_large
    for network in $more; do stage "parity $network" parity $network; done
    stage 'shapes' shapes
    stage 'plans' plans
    benchmark 90 "$yolo-tiny-b4 $yolo-tiny-b8" "stock-tf32 $own$half $graphs $torch"
    benchmark 240 "$yolo $yolo-tiny" "$half $compiled"
    run_sanitizers
    benchmark 100 "$classifiers" "stock-tf32 $half $torch"
    benchmark 200 "$yolo $yolo-tiny" 'stock-fp32 fp32'
}

counted() { grep -c "\"status\":\"$1\"" "$logs/results.jsonl"; }

read_arguments "$@"
find_gpu || { echo "skipped: $gpu_lacks"; exit 77; }
dtypes=(fp16)
[ "$architecture" -lt 80 ] || dtypes+=(bf16)
begin_results
check_prerequisites
fork=
! is_alexeyabs "$darknet" || fork=alexeyab-
run_all
{
    echo
    echo "$(counted passed) passed, $(counted failed) failed, $(counted skipped) skipped, in $SECONDS s."
    echo "Summary: $out/summary.txt; all that the stages said: $out/logs.tar.gz"
} | say
[ $failures -eq 0 ]
