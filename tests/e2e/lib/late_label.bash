# late_label <program> <folder of the labels> [option...]: the loaders of tiny_training's detector meet a bad
# label in a later batch. The training ends when it comes to that batch, has saved the step before, and with
# the label put right goes on to the weights of a training that never met it. Where no step uses the batch,
# nothing ends.
late_label() {
    local program=$1 label=$2/late.txt seed step=
    shift 2
    cp images/1.jpg images/late.jpg
    { for seed in 1 2 3 4 5 6 7; do cat train.txt; done; echo "$PWD/images/late.jpg"; } > late.txt
    sed 's/=train.txt/=late.txt/' tiny.data > late.data
    echo '7 .5 .5 .2 .2' > "$label"
    for seed in {1..20}; do
        rm -rf backup && mkdir backup
        status_of "$program" detector train late.data tiny.cfg "$@" -amp bf16 -seed $seed
        step=$(sed -n "s|.*late.txt:1: label '7 .*; step \([0-9]*\) is saved: .*tiny.backup .*|\1|p" err)
        [ -z "$step" ] || break
    done
    [ -n "$step" ] && [ $status = 1 ] && [ ! -e backup/tiny_final.weights ] ||
        fail "a late label: $(tail -n 1 err)"
    mv backup/tiny.backup* .

    sed "s/^max_batches=.*/max_batches=$step/" tiny.cfg > unused.cfg
    succeeds "$program" detector train late.data unused.cfg "$@" -amp bf16 -seed $seed
    [ -s backup/unused_final.weights ] || fail 'no weights because of a batch that no step uses'

    echo '1 .5 .5 .2 .2' > "$label"
    succeeds "$program" detector train late.data tiny.cfg tiny.backup "$@" -amp bf16 -seed $seed
    cp backup/tiny_final.weights corrected.weights
    succeeds "$program" detector train late.data tiny.cfg "$@" -amp bf16 -seed $seed
    cmp backup/tiny_final.weights corrected.weights || fail 'the training continues to other weights'
}
