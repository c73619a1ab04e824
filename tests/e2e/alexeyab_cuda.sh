# AlexeyAB's Darknet with GPU=1 CUDNN=1 AMP=1, without and with CUDNN_HALF=1, compiles and links with the
# CUDA toolkit of this machine; running it takes a GPU.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
. "$SOURCE_DIR/tests/e2e/lib/patches.bash"
has_cuda_toolkit

"$SOURCE_DIR/patches/apply.sh" "$ALEXEYAB_TREE" patched
cd patched
gpu_flags CUDNN_HALF=1
ccache=$(command -v ccache || true)
build() { # build <options...>
    makes GPU=1 CUDNN=1 AMP_OPTS=-O1 ARCH="$quickly" CC="$ccache cc" CPP="$ccache c++ -std=c++11" "$@"
    nm darknet | grep -q ' [tT] amp_cuda_backend_create' || fail "$*: the program holds no CUDA backend"
    nm darknet | grep -q forward_network_gpu || fail "$*: the program holds no GPU code"
}
build
# Only the files that name CUDNN_HALF are others, as no header does.
! grep -w CUDNN_HALF include/*.h src/*.h || fail 'a header asks about CUDNN_HALF: what includes it is another'
others=$(grep -lrw CUDNN_HALF src amp --include='*.c' --include='*.cu') ||
    fail 'no file asks about CUDNN_HALF'
rm darknet $(echo "$others" | sed 's|^src/||; s|\.cu*$|.o|; s|^|obj/|')
build CUDNN_HALF=1
nm darknet | grep -q cuda_convert_f32_to_f16 || fail 'CUDNN_HALF=1 is not built'
