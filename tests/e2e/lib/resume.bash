# Trainings that are stopped and gone on with. Include tiny_training.bash first.

export OMP_NUM_THREADS=1

cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/save_trap.c" -o save_trap.so -ldl

# trapped <TRAP_...=value>... <program> <arguments...>: with save_trap.c preloaded
trapped() { preloaded save_trap.so "$@"; }

says() { # says <text>...: each on some line of err
    for text in "$@"; do
        grep -qF -- "$text" err ||
            fail "$name: no '$text' in: $(grep -a '^amp\|amp:' err | tail -n 8; tail -n 3 err)"
    done
}

# A detector that takes milliseconds a step and does not diverge in a few hundred, on no CPU.
small_training() { # small_training <batches>
    tiny_training
    sed -i -e "s/max_batches=.*/max_batches=$1/" -e 's/learning_rate=.*/learning_rate=0.0001/' \
        -e 's/steps=3/steps=150/' tiny.cfg
}

# random_sizes <batches> <.cfg>: it with random=1, an image a pass, and without dropout, which Darknet cannot
# resize; on stdout
random_sizes() {
    sed "s/batch=4/batch=1/; s/subdivisions=2/subdivisions=1/; s/^random=0/random=1/; /^\[dropout\]/,/^$/d
        s/max_batches=.*/max_batches=$1/" "$2"
}

no_leftovers() {
    [ -z "$(find . -name '*.new')" ] || fail "$name: left behind: $(find . -name '*.new' | tr '\n' ' ')"
}
