# -seed N: two runs give the same weights, loader threads and augmentation included;
# another seed gives others.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
train() { # train <name> <arguments...>
    local name=$1
    shift
    "$DARKNET" detector train tiny.data tiny.cfg "$@" > $name.out 2> $name.err ||
        fail "$*: $(tail -3 $name.err)"
    mv backup/tiny_final.weights $name.weights
}
for amp in off bf16; do
    train $amp.first -amp $amp -seed 7
    train $amp.second -amp $amp -seed 7
    train $amp.other -amp $amp -seed 8
    cmp $amp.first.weights $amp.second.weights || fail "-amp $amp: two runs with -seed 7 differ"
    ! cmp -s $amp.first.weights $amp.other.weights ||
        fail "-amp $amp: -seed 7 and -seed 8 give the same weights"
done
