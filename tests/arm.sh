#!/bin/bash
# Cross-compiles Darknet AMP for 64-bit ARM and runs it in qemu: the unit tests of conversion, loss scaler,
# autocast, plans and sidecars, three steps of a training in fp32, bf16 and fp16; and what either machine
# has saved is loaded and saved by the other, to the same bytes.
#
#   tests/arm.sh [--no-install] [--all]
#
#   --no-install   packages that lack are listed, and this ends, instead of being installed
#   --all          all unit tests instead of those above (hours on a busy machine; those that start themselves
#                  as another program take qemu as the system's interpreter of aarch64: qemu-user-binfmt)
#
# Takes Debian's cross compiler and qemu-user. oneDNN and CMocka for arm64 are unpacked into build/arm/sysroot
# by an apt with lists and settings of its own: the machine's apt knows of no other architecture afterwards.
# The build for this machine (build/cpu) is made where it lacks. Where it has CUDA's and cuDNN's headers, the
# CUDA backend is compiled too, for its doubles; --all runs its tests.
set -eu
cd "$(dirname "$0")/.."
sysroot=$PWD/build/arm/sysroot apt=$PWD/build/arm/apt
install=yes
tests='backend_cast cpu_rows scaler scaler_traces behaviours'
tests+=' node engine_plans sidecar sidecar_damage sidecar_save'
fail() { echo "FAILED: $*"; exit 1; }
quietly() {
    echo "$*"
    "$@" > build/arm/log 2>&1 || { tail -n 40 build/arm/log; exit 1; }
}
for argument; do
    case $argument in
        --no-install) install=no ;;
        --all) tests= ;;
        *) sed -n '2,/^set -eu/s/^# \{0,1\}//p' tests/arm.sh; [ "$argument" = --help ] && exit; exit 2 ;;
    esac
done

# ---- what it takes ----

mkdir -p build/arm

packages='gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user'
lacking=
for package in $packages; do
    dpkg-query -W -f '${Status}' $package 2> /dev/null | grep -q '^install ok' || lacking+=" $package"
done
if [ -n "$lacking" ]; then
    [ $install = yes ] || { echo "Install these packages:$lacking"; exit 1; }
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq \
        --no-install-recommends $lacking
fi

# The machine's own mirrors and keys, for another architecture.
apt_for_arm() {
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : > "$apt/status"
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Acquire::Languages=none "$@"
}
if [ ! -e "$sysroot/complete" ]; then
    apt_for_arm update
    mkdir -p build/arm/packages
    runtime=$(apt_for_arm -s --no-install-recommends install libdnnl-dev |
        sed -n 's/^Inst \(libdnnl[0-9.]*\) .*/\1/p')
    (cd build/arm/packages && apt_for_arm download libdnnl-dev $runtime libcmocka-dev libcmocka0)
    for package in build/arm/packages/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
    rm -r build/arm/packages "$apt"
    touch "$sysroot/complete"
fi

# ---- the builds ----

cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
[ -e build/cpu/CMakeCache.txt ] || quietly cmake --preset cpu
quietly cmake --build build/cpu --target darknet -- -j"$cores"
cuda=()
for header in CUDA_HEADERS CUDNN_INCLUDE_DIR; do # as the build for this machine found them
    folder=$(sed -n "s/^$header:PATH=//p" build/cpu/CMakeCache.txt)
    case $folder in /*) cuda+=(-D$header="$folder") ;; esac
done
quietly cmake -S . -B build/arm -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake \
    -DAMP_SYSROOT="$sysroot" -DDARKNET_AMP_BUILD_STOCK=OFF "${cuda[@]}"

# ---- unit tests ----

targets=
if [ -n "$tests" ]; then
    targets="darknet $(printf 'test_%s ' $tests)"
    [ ${#cuda[@]} != 2 ] || targets+='gpu_programs_compile cuda_double'
fi
quietly cmake --build build/arm ${targets:+--target} $targets -- -j"$cores"
ctest --test-dir build/arm -j"$cores" -R "^test_${tests:+(${tests// /|})\$}" --output-on-failure

# ---- trainings ----

. tests/e2e/lib/tiny_training.bash
here=$PWD
cpu=$here/build/cpu/bin/darknet
folder=$here/build/arm/training
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
tiny_training
sed -i 's/^max_batches=.*/max_batches=3/; s/^\[net\]$/[net]\nloss_scale=128/' tiny.cfg
export OMP_NUM_THREADS=1
arm() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$here/build/arm/bin/darknet" "$@"; }
cpu() { "$cpu" "$@"; }

trained() { # trained <machine> <dtype>: leaves <machine>.<dtype>.weights with its sidecar
    rm -f backup/*
    "$1" detector train tiny.data tiny.cfg -amp "$2" -seed 1 > out 2> err || fail "$2 on $1: $(tail -n 3 err)"
    grep -q "^amp: summary dtype=$2 steps=3 skipped=0 " err || fail "$2 on $1: $(grep '^amp: ' err)"
    sed -n 's/^[0-9]*: \([0-9.]*\), .* avg, .*/\1/p' out > "$1.$2.losses"
    [ "$(wc -l < "$1.$2.losses")" = 3 ] || fail "$2 on $1: $(cat out)"
    mv backup/tiny_final.weights "$1.$2.weights"
    mv backup/tiny_final.weights.amp "$1.$2.weights.amp"
}

# A training that is over saves what it has loaded.
loads() { # loads <machine> <dtype> <whose>
    rm -f backup/*
    "$1" detector train tiny.data tiny.cfg "$3.$2.weights" -amp "$2" -seed 1 > out 2> err ||
        fail "$1 does not load what $3 saved in $2: $(tail -n 3 err)"
    grep -q "^amp: resumed from $3.$2.weights.amp: step 3, " err || fail "$1, $3's $2: $(grep '^amp: ' err)"
    cmp "backup/tiny_final.weights" "$3.$2.weights" || fail "$1 makes other weights of $3's in $2"
    cmp "backup/tiny_final.weights.amp" "$3.$2.weights.amp" || fail "$1 makes another sidecar of $3's in $2"
}

# The first loss is a forward pass of the same weights: it differs by roundings, of which a training makes
# more and more. 32 of the dtype's epsilons: eight layers round their input, their weights and their output,
# and the logistic's slope and the squares of yolo's loss keep a relative error or double it.
close_at_first() { # close_at_first <dtype> <its epsilon>
    paste "arm.$1.losses" "cpu.$1.losses" | awk -v most="$2" 'NR == 1 {
        away = ($1 - $2) / $2; if (away < 0) away = -away
        print "first loss " $1 ", on this machine " $2
        exit !(away <= 32 * most) }' || fail "$1: losses differ"
}

for dtype in fp32 bf16 fp16; do
    for machine in arm cpu; do trained $machine $dtype; done
    loads cpu $dtype arm
    loads arm $dtype cpu
done
close_at_first fp32 1.2e-7
close_at_first bf16 7.8e-3
close_at_first fp16 9.8e-4
echo 'arm.sh: ok'
