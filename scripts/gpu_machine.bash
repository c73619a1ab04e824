# What tests/gpu/run.sh and bench/gpu.sh share: which GPU there is, what the build takes, and its
# configuration. To be sourced, with root (the repository) set.

# Sets gpu_name, driver, capability (9.0), gpu_memory, architecture (90) and cores, CUDNN_ROOT where cuDNN
# is Python's package, and the path to nvcc; gpu_notes: why what is measured may not be this GPU's own, or
# empty. 1: there is no GPU, and gpu_lacks says why. Of several it is the one that CUDA takes first:
# CUDA_VISIBLE_DEVICES', by nvidia-smi's numbers, which CUDA by itself does not go by. python: the interpreter
# to ask, python3 by itself.
find_gpu() {
    local line mig free first=${CUDA_VISIBLE_DEVICES:-0} ask=(nvidia-smi --format=csv,noheader
        --query-gpu=name,driver_version,compute_cap,memory.total,memory.free,mig.mode.current)
    export CUDA_DEVICE_ORDER=PCI_BUS_ID
    cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc alone obeys these
    gpu_notes= gpu_lacks="no GPU here: nvidia-smi, which comes with NVIDIA's driver, was not found (in a "
    gpu_lacks+='container: --gpus all)'
    command -v nvidia-smi > /dev/null || return 1
    # The name of a part of a GPU (MIG) is none to nvidia-smi.
    line=$("${ask[@]}" -i "${first%%,*}" 2> /dev/null) || line=$("${ask[@]}" 2>&1) || {
        gpu_lacks="no GPU here: nvidia-smi says: ${line%%$'\n'*}"
        return 1
    }
    line=${line%%$'\n'*}
    IFS=, read -r gpu_name driver capability gpu_memory free mig <<< "$line"
    driver=${driver# } capability=${capability// /} gpu_memory=${gpu_memory# } free=${free# }
    gpu_lacks="nvidia-smi does not report the GPU's compute capability; it says: $line"
    [[ $capability =~ ^[0-9]+\.[0-9]$ ]] || return 1
    architecture=${capability/./}
    if [[ $mig == *Enabled* || $first == MIG-* ]]; then
        gpu_notes='MIG is enabled: CUDA computes on a part of this GPU, and figures of the whole GPU '
        gpu_notes+='do not apply'
    elif [[ $free =~ ^[0-9]+ && $gpu_memory =~ ^[0-9]+ && ${free%% *} -lt $((${gpu_memory%% *} / 2)) ]]; then
        gpu_notes="another program is on this GPU (nvidia-smi names it): $free of $gpu_memory are free, "
        gpu_notes+='so tests may run out of memory, and times are disturbed'
    fi
    PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
    command -v make > /dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    if [ -z "${CUDNN_ROOT:-}" ]; then
        CUDNN_ROOT=$("${python:-python3}" -c 'import nvidia.cudnn as c; print(list(c.__path__)[0])' \
            2> /dev/null) || CUDNN_ROOT=
    fi
    [ -n "$CUDNN_ROOT" ] || return 0
    export CUDNN_ROOT
    export LD_LIBRARY_PATH=$CUDNN_ROOT/lib:$CUDNN_ROOT/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

cuda_version() { nvcc --version 2> /dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'; }

commit_of_tree() {
    local commit=${DARKNET_AMP_COMMIT:-}
    [ -n "$commit" ] || commit=$(git -C "$root" describe --always --dirty --abbrev=12 2> /dev/null) ||
        commit=unknown
    echo "$commit"
}

is_alexeyabs() { [ -f "$1/src/darknet.c" ]; } # <Darknet's source>: whether it is AlexeyAB's

# What the build takes and this machine lacks, a line each. <Darknet's source>
lacking() {
    local program text had known
    for program in cmake cc c++ nvcc "${python:-python3}"; do
        command -v "$program" > /dev/null || echo "$program"
    done
    command -v make > /dev/null || command -v ninja > /dev/null || echo 'make or ninja'
    command -v patch > /dev/null || command -v git > /dev/null || echo 'patch or git'
    [ -f "$1/src/yolo_layer.c" ] ||
        echo "Darknet's source: pjreddie's 61c9d02e or AlexeyAB's 59596d78 (--darknet DIR)"
    command -v nvcc > /dev/null || return 0
    had=$(nvidia-smi 2> /dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1)
    text=$(cuda_version)
    [ -z "$had" ] || [ -z "$text" ] || [ "${had%%.*}" -ge "${text%%.*}" ] ||
        echo "a driver for CUDA $text, nvcc's version (driver $driver is for CUDA $had), or an older toolkit"
    known=$(nvcc --list-gpu-arch 2> /dev/null)
    [ -z "$known" ] || grep -qx "compute_$architecture" <<< "$known" ||
        echo "an nvcc for compute capability $capability (that of CUDA $text does not support it)"
    text=$(mktemp --suffix=.cu)
    printf '#if !__has_include(<%s>)\nlacks the header %s, of %s\n#endif\n' cublas_v2.h cublas_v2.h cuBLAS \
        curand.h curand.h cuRAND cudnn.h cudnn.h 'cuDNN (--cudnn DIR or CUDNN_ROOT)' > "$text"
    nvcc -E ${CUDNN_ROOT:+-I"$CUDNN_ROOT/include"} "$text" | sed -n 's/^lacks //p'
    rm -f "$text"
}

# <build folder> <Darknet's source> <more of CMake's options...>: for tests and benchmark alike, for this
# GPU's architecture alone. MPI is not looked for, since one that is installed by half ends CMake.
configure_for_gpu() {
    cmake -S "$root" -B "$1" -DDARKNET_AMP_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$architecture" \
        -DDARKNET_SOURCE_DIR="$2" -DDARKNET_AMP_BUILD_BENCH=ON -DDARKNET_AMP_BUILD_STOCK=ON \
        -DCMAKE_DISABLE_FIND_PACKAGE_MPI=TRUE "${@:3}"
}
