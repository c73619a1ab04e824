# A fork's patches, and its own builds in a patched copy: include after tiny_training.bash.

# patches_apply <fork> <tree> <names in the copy's host room>: they apply to an unchanged tree without fuzz or
# offset, into the folder `exactly`; apply.sh makes the same, into `patched`, with the fork's rooms of the
# plugin; and nothing of the tree stands in them but what a patch needs to find its place.
patches_apply() {
    local folder=$SOURCE_DIR/patches/$1 tree=$2 rooms=$3 patch file
    mkdir exactly
    awk '!/^#/ { print $2 }' "$folder/sha256sums" | tar -C "$tree" -cf - -T - | tar -xf - -C exactly
    for patch in $(cat "$folder/series"); do
        patch -d exactly -p1 -F0 --no-backup-if-mismatch < "$folder/$patch" > log 2>&1 ||
            fail "$patch: $(cat log)"
        ! grep -i 'fuzz\|offset' log || fail "$patch applies elsewhere"
        awk -v name="$patch" '/^@@/ { hunk++; around = 0 }
            hunk && /^ / && ++around > 4 { print name ": " $0; bad = 1 }
            END { exit bad }' "$folder/$patch" ||
            fail "$patch has more context than one line on each side of a change"
    done
    "$SOURCE_DIR/patches/apply.sh" "$tree" patched
    for file in $(cd exactly && find . -type f); do
        cmp -s "exactly/$file" "patched/$file" || fail "apply.sh makes another $file"
    done
    [ "$(ls patched/amp/host | tr '\n' ' ')" = "$rooms " ] ||
        fail "the copy's host room: $(ls patched/amp/host)"
}

# has_cuda_toolkit: or skips the test
has_cuda_toolkit() {
    command -v nvcc > /dev/null || skip 'there is no nvcc (the CUDA toolkit)'
    echo '#include <cudnn.h>' | nvcc -E -x cu - > /dev/null 2>&1 || skip 'nvcc finds no cudnn.h'
    [ -z "$SANITIZERS" ] || skip 'the same as without sanitizers'
}

# makes <settings of make...>: make AMP=1 in a patched copy
makes() {
    make -j"$(nproc)" AMP=1 OPTS=-O0 "$@" > ../log 2>&1 ||
        fail "make AMP=1 $*: $(grep -m 5 -i 'error\|undefined' ../log)"
}

# touch_opencvs: the files that name OpenCV, which make does not know to be others with it
touch_opencvs() {
    grep -rlE --include='*.c' --include='*.cpp' OPENCV src examples amp 2> /dev/null | xargs touch
}

# gpu_flags <settings of make...>: in a patched copy. The Makefile's default is every major architecture that
# nvcc knows: its flags are checked; `quickly` compiles for one, to PTX, as nothing runs it.
gpu_flags() {
    local flags one
    flags=$(make -n GPU=1 CUDNN=1 "$@" | grep -m 1 -o '\-gencode.*code=[^ ]*') ||
        fail 'the Makefile finds no architecture in nvcc --list-gpu-code'
    echo '__global__ void nothing() {}' > nothing.cu
    nvcc $flags -c nothing.cu || fail "nvcc does not take $flags"
    one=$(nvcc --list-gpu-code | sed -n '1s/sm_/compute_/p')
    quickly="-gencode=arch=$one,code=$one -Xcicc -O0"
}

# wants_cudnn: make GPU=1 AMP=1 says what to add
wants_cudnn() {
    ! make -n GPU=1 AMP=1 > ../log 2>&1 || fail 'make GPU=1 AMP=1 goes without cuDNN'
    holds ../log 'add CUDNN=1'
}

# wants_onednn: a compiler on a machine without it, in the current folder; make AMP=1 does not begin
wants_onednn() {
    without_onednn
    ! make -n AMP=1 CC=./without_onednn > ../log 2>&1 || fail 'make AMP=1 without oneDNN begins'
    holds ../log 'oneDNN was not found'
}

# links_without_ofast <settings of make...>: -Ofast links start-up code that sets flush-to-zero: into the
# program alone, not into the library
links_without_ofast() {
    make -n AMP=1 "$@" > ../log
    grep -q -- ' -Ofast .* -o darknet ' ../log || fail 'make AMP=1 links the program without -Ofast'
    [ "$(grep -c -- '-shared .* -o libdarknet.so' ../log)" = 1 ] &&
        ! grep -q -- '-Ofast.* -shared \|-shared .*-Ofast' ../log ||
        fail "make AMP=1 $* links the library with -Ofast: $(grep -- -shared ../log)"
}
