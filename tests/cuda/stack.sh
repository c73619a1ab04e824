# With the CUDA toolkit and cuDNN in the folder STACK, nvcc takes the CUDA backend's kernels for every
# generation of GPUs (compile.sh), and Darknet, the plugin and the programs of tests/gpu compile and link, for
# the oldest one from 7.0 up. Nothing is run. In an empty folder; STACK, SOURCE_DIR and DARKNET_TREE are set.
set -eu
fail() { echo "$STACK: $*"; exit 1; }
[ -x "$STACK/bin/nvcc" ] || fail 'there is no bin/nvcc in it'
# A host compiler that is later than what this nvcc knows: nothing is run, so it will do where it can.
echo > nothing.cu
"$STACK/bin/nvcc" -c nothing.cu > /dev/null 2>&1 || export NVCC_PREPEND_FLAGS=-allow-unsupported-compiler
mkdir kernels
(cd kernels && NVCC=$STACK/bin/nvcc bash "$SOURCE_DIR/tests/cuda/compile.sh")

# DARKNET_AMP_CPU=OFF: what knows no CUDA is compiled elsewhere. The runtime's static library is in
# no package of Python's.
oldest=$(sed -n 1p kernels/chosen)
env CUDNN_ROOT="$STACK" CUDACXX="$STACK/bin/nvcc" \
    cmake -S "$SOURCE_DIR" -B build -DDARKNET_AMP_CUDA=ON -DDARKNET_AMP_CPU=OFF \
    -DCUDAToolkit_ROOT="$STACK" -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared -DCMAKE_CUDA_ARCHITECTURES="$oldest" \
    -DDARKNET_SOURCE_DIR="$DARKNET_TREE" -DDARKNET_AMP_BUILD_STOCK=OFF > configured 2>&1 ||
    fail "$(tail -n 20 configured)"
grep -q "^-- Found cuDNN: $STACK/" configured || fail "another cuDNN was found: $(grep cuDNN configured)"
cmake --build build --target gpu_tests --parallel "$(nproc)" > built 2>&1 ||
    fail "$(grep -m 20 -E 'error|undefined' built)"
! grep -E "plugin/.*warning|warning.*(libcu|undefined)" built || fail 'the lines above are warnings'
cuda=$(sed -n 's/^-- The CUDA compiler identification is NVIDIA /CUDA /p' configured)
cudnn=$(sed -n 's/^-- Found cuDNN:.*version \(.*\))/cuDNN \1/p' configured)
echo "$cuda, $cudnn: kernels for $(tr '\n' ' ' < kernels/chosen); all compiled and linked for $oldest"
