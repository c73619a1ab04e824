# Stand-ins for what a machine with a GPU has, for gpu_run.sh and gpu_bench.sh: they print what the real
# ones print, and no figure of theirs was measured. Each call of a program is a line in the file CALLS.

stand_in() { # stand_in <file>: a script from stdin
    cat > "$1"
    chmod +x "$1"
}

# stand_in_python3 <folder>: without PyTorch, which is long in finding no GPU where it is installed
stand_in_python3() {
    stand_in "$1/python3" << END
#!/bin/sh
case \$2 in *torch*) exit 1 ;; esac
exec "$(command -v python3)" "\$@"
END
}

stand_in_nvidia_smi() { # stand_in_nvidia_smi <folder>
    stand_in "$1/nvidia-smi" << 'END'
#!/bin/sh
case $* in
    *'-i MIG'*) echo 'No devices were found'; exit 6 ;;
    *name,driver*'-i 1'*) echo 'NVIDIA RTX A1000, 570.1, 8.6, 8188 MiB' ;;
    *name,driver*) echo "${GPU:-NVIDIA H100 80GB HBM3}, 570.1, 9.0, 81559 MiB" ;;
    *clocks*) echo '1980 MHz, 2619 MHz, 30' ;;
    *compute-apps*) ;;
    *) exit 1 ;;
esac
END
}

# The programs of tests/gpu/gpu.cmake.
gpu_programs() {
    grep -o '^gpu_program([a-z_]*' "$SOURCE_DIR/tests/gpu/gpu.cmake" | sed 's/.*(//'
    sed -n '/^set(conformance_tests/,/)/p' "$SOURCE_DIR/tests/CMakeLists.txt" | grep -o 'test_[a-z_]*' |
        sed 's/test_/gpu_/'
}

# stand_in_bench <build folder>: the programs of bench/step.c in its bin, and its cache, for DARKNET_TREE
stand_in_bench() {
    mkdir -p "$1/bin"
    printf '%s\n' 'DARKNET_AMP_CUDA:BOOL=ON' "DARKNET_SOURCE_DIR:PATH=$DARKNET_TREE" \
        'CUDNN_LIBRARY:FILEPATH=/nowhere/libcudnn.so' > "$1/CMakeCache.txt"
    stand_in "$1/bin/bench-step" << 'END'
#!/bin/bash
echo "$(basename "$0") $* $(grep ^graphs= "$1" | head -n 1) MATH=${DARKNET_MATH:-}" \
    "TF32=${NVIDIA_TF32_OVERRIDE:-}" | tr -s ' ' >> "$CALLS"
[ -z "${SLOW:-}" ] || sleep "$SLOW"
[[ " $* " != *" --dump "* ]] || exit 0
cfg=$1 batch= size= dtype=stock costs=
while [ $# -gt 0 ]; do
    case $1 in --batch) batch=$2 ;; --size) size=$2 ;; -amp) dtype=$2 ;; esac
    shift
done
[ $dtype != "${BROKEN:-}" ] || { printf 'amp: "layer" 3: out of memory\n' >&2; exit 1; }
[ $dtype = stock ] && echo "DARKNET_MATH=\"$DARKNET_MATH\": what it means" >&2
ms=10; [ $dtype = stock ] && ms=40
[ $dtype = stock ] || costs='"check_update_ms": 0.250, "half_copies_ms": 0.100, "casts_ms": 0.150, '$(
    )'"costs_step_ms": 12.50, "costs_percent": 4.000, "limits": [1000.0, 100000.0, 10000.0], "operations": '$(
    )'[["convolutional", "conv_forward", 75, 6.0, 3000.0, 300.0, 1], ["", "cast", 1, 2.0, 1000.0, 0.0, 0]], '
echo '{"side": "darknet", "config": "'"$cfg"'", "dtype": "'$dtype'", "threads": 1, "batch": '$batch',' \
    '"width": '$size', "height": '$size', "iters": 9, "ms": '$ms.00', "ms_min": '$ms.00', ' \
    '"ms_max": '$ms.00', "cpu_ms": 1.00, "first_ms": 99.00, "load_ms": 1.00, "rss_mb": 7.1, ' \
    '"device_mb": '${ms}00.0', "applied": 3, "input_ms": 0.500, "forward_ms": 3.000, ' \
    '"loss_ms": 1.000, "backward_ms": 5.000, "update_ms": 0.500,' \
    "$costs"'"losses": [9.5, 9.5, 8.5, null]}'
END
    cp "$1/bin/bench-step" "$1/bin/bench-step-stock"
    [ ! -f "$DARKNET_TREE/src/darknet.c" ] || cp "$1/bin/bench-step" "$1/bin/bench-step-stock-half"
}
