#!/usr/bin/env bash
# An older CUDA toolkit with an older cuDNN, in a folder, to compile and link against
# (tests/cuda/stack.sh). For developers: nothing of the build or the tests calls it, and it fetches more
# than a gigabyte a stack. amd64 only.
#
# usage: scripts/cuda_stack.sh <folder> <stack>...
#   cuda11-cudnn8   CUDA 11.8 and cuDNN 8.9.6
#   cuda12-cudnn8   CUDA 12.4 and cuDNN 8.9.7
#   cuda12-cudnn9   CUDA 12.4 and cuDNN 9.1
#
# Each becomes <folder>/<stack>, with bin/, nvvm/, include/ and lib64/ as a toolkit's, cuDNN's files among
# them: nvcc is from Debian's package nvidia-cuda-toolkit (non-free, of the release that has that version),
# all else from PyPI's packages of NVIDIA. Libraries for linking, not for running: libcudadevrt.a is empty,
# and nothing of it is for a machine with a GPU.
set -euo pipefail

fail() { echo "cuda_stack.sh: $*" >&2; exit 1; }

[ $# -ge 2 ] || { sed -n '/^# usage/,/cudnn9/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
for tool in apt-get dpkg-deb python3 ar; do
    command -v $tool > /dev/null || fail "$tool was not found: install it"
done
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The machine's own mirror of Debian and its keys, with lists and settings of ours: nothing of the
# machine's apt is changed.
apt_of() { # apt_of <release> <apt-get's arguments...>
    local release=$1 mirror apt=$scratch/apt
    shift
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' |
        awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
    [ -n "$mirror" ] || fail 'apt knows no mirror of Debian: run apt-get update first'
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release non-free" \
        > "$apt/sources"
    : > "$apt/status"
    apt-get -qq -o Dir::State::Lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::SourceList="$apt/sources" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root \
        -o Acquire::Languages=none "$@"
}

# nvcc and what it calls. Debian splits it over /usr/bin and a folder of its own; here it
# lies as NVIDIA ships it.
get_nvcc() { # get_nvcc <Debian release> <stack's folder>
    local from=$scratch/nvcc
    apt_of "$1" update
    (cd "$scratch" && apt_of "$1" download nvidia-cuda-toolkit)
    dpkg-deb -x "$scratch"/nvidia-cuda-toolkit_*.deb "$from"
    rm "$scratch"/nvidia-cuda-toolkit_*.deb
    mkdir -p "$2/bin/crt" "$2/nvvm/bin"
    cp "$from/usr/lib/nvidia-cuda-toolkit/bin/nvcc" "$from"/usr/bin/{cudafe++,ptxas,fatbinary,nvlink,bin2c} \
        "$2/bin/"
    cp "$from"/usr/lib/nvidia-cuda-toolkit/bin/crt/*.stub "$2/bin/crt/"
    cp "$from/usr/lib/nvidia-cuda-toolkit/bin/cicc" "$2/nvvm/bin/"
    cp -r "$from/usr/lib/nvidia-cuda-toolkit/libdevice" "$2/nvvm/"
    rm -rf "$from"
    cat > "$2/bin/nvcc.profile" << 'PROFILE'
TOP              = $(_HERE_)/..
CICC_PATH        = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH            += $(CICC_PATH):$(_HERE_):
INCLUDES        +=  "-I$(TOP)/include" $(_SPACE_)
LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/lib64"
CUDAFE_FLAGS    +=
PTXAS_FLAGS     +=
PROFILE
}

# Headers and libraries. A wheel holds nvidia/<part>/include and lib; libraries in it have the name that
# programs ask for alone.
get_wheels() { # get_wheels <stack's folder> <package==version...>
    local to=$1 library
    shift
    python3 -m pip download -q --no-deps --only-binary :all: -d "$scratch/wheels" "$@"
    mkdir -p "$to/include" "$to/lib64"
    for wheel in "$scratch"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$scratch/unpacked"
        rm "$wheel"
    done
    cp -r "$scratch"/unpacked/nvidia/*/include/. "$to/include/"
    mv "$scratch"/unpacked/nvidia/*/lib/*.so* "$to/lib64/"
    rm -rf "$scratch/unpacked"
    for library in "$to"/lib64/*.so.*; do ln -sf "$(basename "$library")" "${library%.so.*}.so"; done
    ar rc "$to/lib64/libcudadevrt.a" # nvcc names it in every link
}

for stack in "$@"; do
    to=$folder/$stack
    [ ! -e "$to" ] || { echo "$to exists already"; continue; }
    case $stack in
        cuda11-cudnn8) release=bookworm \
            parts=(nvidia-cuda-{runtime,nvcc}-cu11==11.8.89 nvidia-curand-cu11==10.3.0.86
            nvidia-cublas-cu11==11.11.3.6 nvidia-cudnn-cu11==8.9.6.50) ;;
        cuda12-*) release=trixie \
            parts=(nvidia-cuda-{runtime,cccl}-cu12==12.4.127 nvidia-cuda-nvcc-cu12==12.4.131
            nvidia-curand-cu12==10.3.5.147 nvidia-cublas-cu12==12.4.5.8) ;;
        *) fail "unknown stack: $stack" ;;
    esac
    case $stack in
        cuda12-cudnn8) parts+=(nvidia-cudnn-cu12==8.9.7.29) ;;
        cuda12-cudnn9) parts+=(nvidia-cudnn-cu12==9.1.0.70) ;;
    esac
    rm -rf "$to.part"
    mkdir "$to.part"
    get_nvcc $release "$to.part"
    get_wheels "$to.part" "${parts[@]}"
    mv "$to.part" "$to"
    "$to/bin/nvcc" --version | tail -n 2
done
