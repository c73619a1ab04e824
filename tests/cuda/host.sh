# Trainings on doubles of a GPU give the numbers of the same trainings on the CPU (host.c). In fp32 they
# differ in the order of sums alone; in half also in where is rounded. The recurrent networks round little
# more than their factors: they may differ by twice fp16's rounding. What deeper ones make of a rounding is
# not known beforehand, and depends on the CPU: three trainings on it, whose images differ by a rounding, show
# how much.
set -eu
on_cpu() { "$ON_CPU" train "$@" > log 2>&1 || { cat log; exit 1; }; } # <network> <dtype> <file> [<twin>]
compare() { # <network> <dtype> <bound> [<twin>...]
    local network=$1 dtype=$2 bound=$3 twin twins=
    shift 3
    on_cpu "$network" "$dtype" "$network.$dtype.cpu"
    for twin; do
        on_cpu "$network" "$dtype" "$network.$dtype.$twin" "$twin"
        twins="$twins $network.$dtype.$twin"
    done
    "$ON_DOUBLES" train "$network" "$dtype" "$network.$dtype.gpu" > log 2>&1 || { cat log; exit 1; }
    tail -n 1 log
    "$ON_DOUBLES" compare "$network.$dtype.cpu" "$network.$dtype.gpu" "$bound" $twins
}
"$ON_DOUBLES" faults > log 2>&1 || { cat log; exit 1; }
if [ -n "${ALEXEYAB:-}" ]; then
    for network in yolo gaussian region classifier masked averaged weighted crnn; do
        compare $network fp32 0.00002
    done
    for network in masked crnn; do compare $network fp16 0.001; done
    for network in gaussian classifier weighted yolo; do compare $network fp16 0.001 1 2 3; done
    compare yolo bf16 0.008 1 2 3
    # Images that come early, to a second block, change nothing.
    EARLY=1 "$ON_DOUBLES" train yolo fp16 yolo.fp16.early > log 2>&1 || { cat log; exit 1; }
    cmp yolo.fp16.gpu yolo.fp16.early
    # What it refuses on a GPU, in a line.
    status=0
    AMP_DOUBLE_GPU=7.5 "$ON_DOUBLES" train yolo bf16 none > log 2>&1 || status=$?
    [ $status = 1 ] && grep -q '^amp: bf16 needs a GPU of compute capability 8.0 (Ampere) or later' log ||
        { echo "bf16 on Turing: status $status"; cat log; exit 1; }
    exit
fi
for network in yolo classifier deconvolutional masked rnn gru lstm; do compare $network fp32 0.00002; done
for network in masked rnn gru lstm; do compare $network fp16 0.001; done
for network in classifier deconvolutional yolo; do compare $network fp16 0.001 1 2 3; done
compare yolo bf16 0.008 1 2 3
