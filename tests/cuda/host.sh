# Trainings on doubles of a GPU give the numbers of the same trainings on the CPU (cuda_host.c).
set -eu
compare() { # <network> <dtype> <bound>
    "$ON_CPU" train "$1" "$2" "$1.$2.cpu" > log 2>&1 || { cat log; exit 1; }
    "$ON_DOUBLES" train "$1" "$2" "$1.$2.gpu" > log 2>&1 || { cat log; exit 1; }
    tail -1 log
    "$ON_DOUBLES" compare "$1.$2.cpu" "$1.$2.gpu" "$3"
}
for network in ${NETWORKS:-yolo classifier masked rnn gru lstm}; do
    compare $network fp32 0.0005
done
