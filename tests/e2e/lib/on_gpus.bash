# Trainings with -gpus, of the program $on_gpus over doubles of CUDA and NCCL, in $dtype.
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
cc -O1 "$SOURCE_DIR/tests/e2e/lib/weights_distance.c" -o weights_distance -lm

dtype=fp32
# on <gpus> <folder for its files> <command> <its arguments...>
on() {
    local gpus=$1 folder=$2
    shift 2
    rm -rf backup "$folder"
    mkdir backup
    status=0
    "$on_gpus" "$1" train "${@:2}" -amp $dtype -seed 7 -gpus $gpus > out 2> err < /dev/null || status=$?
    cp err backup
    mv backup "$folder"
}
trained() { # trained <gpus> <folder> <command> <arguments...>: to its end
    on "$@"
    [ $status = 0 ] || fail "$*: status $status: $(grep -a 'amp: \|ranks: \|doubles: ' err | tail -n 3)"
    [ $1 = 0 ] || grep -q '^ranks: their GPUs sum by NCCL .*, threads$' err || fail "$*: not two GPUs"
}
near() { # near <weights of one GPU> <of two>
    local said
    said=$(./weights_distance $1 $2 1e-6 1e-4) || fail "$2 against $1: $said"
    echo "$2 against $1: $said"
}
compare() { # compare <command> <.data> <.cfg>
    local name=${3%.cfg}
    trained 0 one "$@"
    trained 0,0 two "$@"
    near one/${name}_final.weights two/${name}_final.weights
}
same_skips() { # same_skips <command> <arguments...>: a step that overflows is skipped on both, with one scale
    dtype=fp16
    trained 0 one "$@"
    trained 0,0 two "$@"
    cmp <(sed -n 's/.*\(; loss scale .*\)/\1/p' err) <(sed -n 's/.*\(; loss scale .*\)/\1/p' one/err) &&
        grep -q 'loss scale 65536 -> 32768' err || fail "two GPUs skip other steps: $(grep -a skipped err)"
    dtype=fp32
}
# goes_on <command> <.data> <.cfg, of at least 4 steps>: each goes on from the other's checkpoint, and two
# GPUs to the same bytes
goes_on() {
    local name=${3%.cfg} file
    sed 's/^max_batches=.*/max_batches=2/' $3 > half.cfg
    trained 0 whole "$@"
    trained 0 half_of_one "$1" "$2" half.cfg
    trained 0,0 half_of_two "$1" "$2" half.cfg
    trained 0,0 two "$@"
    trained 0,0 went_on "$@" half_of_two/half_final.weights
    for file in ${name}_final.weights ${name}_final.weights.amp; do
        cmp two/$file went_on/$file || fail "two GPUs, continued: another $file"
    done
    trained 0,0 went_on "$@" half_of_one/half_final.weights
    grep -q 'resumed from .*, data order continues (-seed 7)' err || fail "$(grep -a resumed err)"
    near whole/${name}_final.weights went_on/${name}_final.weights
    trained 0 went_on "$@" half_of_two/half_final.weights
    near whole/${name}_final.weights went_on/${name}_final.weights
}
