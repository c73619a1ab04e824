# Darknet with GPU=1 CUDNN=1 AMP=1 compiles and links with the CUDA toolkit of this machine;
# running it takes a GPU.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/patches.bash"
has_cuda_toolkit

"$SOURCE_DIR/patches/apply.sh" "$DARKNET_TREE" patched
cd patched
gpu_flags
wants_cudnn
makes GPU=1 CUDNN=1 AMP_OPTS=-O1 ARCH="$quickly"
nm darknet | grep -q forward_network_gpu || fail 'the program holds no GPU code'
nm libdarknet.so | grep -q ' [tT] amp_cuda_backend_create' || fail 'the library holds no CUDA backend'
missing=$(nm -u libdarknet.so | grep -o 'amp_.*' || true)
[ -z "$missing" ] || fail "the library lacks $missing"
# All of it, and not only what the program asks for, finds what it needs.
echo 'void darknet_amp_forward(void *); int main(void) { return !darknet_amp_forward; }' > all.c
cc all.c ./libdarknet.so -o all 2> ../log || fail "the CUDA backend does not link: $(tail -3 ../log)"

# A machine without oneDNN: only the host room's choice among backends, and the link, are others.
without_onednn
# which make would make its own goal of
rm -r obj/amp/host/darknet/backend_choice.o obj/amp/backend/cpu libdarknet.* darknet all.c
makes GPU=1 CUDNN=1 AMP_OPTS=-O1 ARCH="$quickly" CC=./without_onednn
! grep -q 'ldnnl\|backend/cpu' ../log || fail 'without oneDNN, it is asked for'
! readelf -d libdarknet.so darknet | grep -q dnnl || fail 'without oneDNN, the program wants it'

# Training with -nogpu, on a machine without a driver (whose library the toolkit has a stub of): a line and
# status 1, no assertion.
cd ..
tiny_training
libraries=$(dirname "$(readlink -f "$(command -v nvcc)")")/../lib64
stub=$libraries/stubs/libcuda.so
[ -e "$stub" ] || { echo "there is no $stub: -nogpu is not tried"; exit 0; }
mkdir driver
ln -s "$stub" driver/libcuda.so.1
# Loops that are not shared by ranks do not learn of several GPUs.
status=0
LD_LIBRARY_PATH=driver:$libraries:${LD_LIBRARY_PATH:-} patched/darknet regressor train tiny.data tiny.cfg \
    -amp bf16 -gpus 0,1 > out 2> err || status=$?
[ $status = 1 ] && [ "$(wc -l < err)" = 1 ] &&
    grep -q '^command line: -gpus: under AMP only `detector train`' err ||
    fail "regressor train -gpus 0,1: status $status, $(tail -n 1 err)"
nogpu() { # nogpu <arguments...>
    local status=0
    LD_LIBRARY_PATH=driver:$libraries:${LD_LIBRARY_PATH:-} patched/darknet "$@" -nogpu > out 2> err ||
        status=$?
    [ $status = 1 ] && tail -n 1 err | grep -q '^darknet: -nogpu: this command runs on a GPU alone' ||
        fail "$* -nogpu: status $status, $(tail -n 1 err)"
}
nogpu detector train tiny.data tiny.cfg -amp bf16
nogpu detector train tiny.data tiny.cfg
