# A training under a limit of its address space: include after tiny_training.bash.

# large_training: makes large.cfg, whose training takes some 120 MiB, beside tiny_training's files.
large_training() {
    tiny_training
    sed -e 's/^batch=4/batch=32/; s/^width=32/width=160/; s/^height=32/height=160/; ' \
        -e 's/^max_batches=5/max_batches=1/' tiny.cfg > large.cfg
}

# train <MiB of address space> <cfg> [arguments]: its status; all it prints is in `out`.
train() {
    local limit=$1 cfg=$2 status=0
    shift 2
    rm -rf backup && mkdir backup
    (ulimit -v $((limit * 1024)) && exec "$DARKNET" detector train tiny.data "$cfg" -seed 1 "$@") \
        > out 2>&1 || status=$?
    return $status
}

# least_limit <to how many MiB> [.cfg]: sets `high` to a limit under which it (large.cfg) trains in fp32, so
# much at most above the least one.
least_limit() {
    local low=32 middle cfg=${2:-large.cfg}
    high=1024
    while [ $((high - low)) -gt "$1" ]; do
        middle=$(((low + high) / 2))
        if train $middle "$cfg" -amp fp32; then high=$middle; else low=$middle; fi
    done
}
