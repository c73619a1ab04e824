# Trainings on doubles of a GPU give the numbers of the same trainings on the CPU (cuda_host.c). In fp32 they differ in the order of
# sums alone; in half also in where is rounded, which yolo's steep first steps make more of.
set -eu
compare() { # <network> <dtype> <bound>
    "$ON_CPU" train "$1" "$2" "$1.$2.cpu" > log 2>&1 || { cat log; exit 1; }
    "$ON_DOUBLES" train "$1" "$2" "$1.$2.gpu" > log 2>&1 || { cat log; exit 1; }
    tail -n 1 log
    "$ON_DOUBLES" compare "$1.$2.cpu" "$1.$2.gpu" "$3"
}
for network in yolo classifier deconvolutional masked rnn gru lstm; do compare $network fp32 0.00002; done
for network in masked rnn gru lstm; do compare $network fp16 0.001; done
compare classifier fp16 0.01
compare deconvolutional fp16 0.003
compare yolo fp16 0.06
compare yolo bf16 0.06
