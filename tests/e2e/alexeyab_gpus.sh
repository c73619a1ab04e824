# AlexeyAB's `detector train -gpus 0,0` and `classifier train` under AMP, on doubles of CUDA and NCCL: two
# GPUs train what one does, each goes on from the other's checkpoint, and a training on two goes on to the
# same bytes.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
on_gpus=$BUILD_DIR/tests/alexeyab_train_on_gpus
[ -x "$on_gpus" ] || skip 'there is no alexeyab_train_on_gpus: it takes the headers of CUDA and cuDNN'
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
tiny_alexeyab
rank_networks

dtype=fp32
# on <gpus> <folder for its files> <command> <its arguments...>
on() {
    local gpus=$1 folder=$2
    shift 2
    fresh "$folder"
    status=0
    "$on_gpus" "$1" train "${@:2}" -amp $dtype -seed 7 -gpus $gpus > out 2> err < /dev/null || status=$?
    cp err backup
    mv backup "$folder"
}
trained() { # trained <gpus> <folder> <command> <arguments...>: to its end
    on "$@"
    [ $status = 0 ] || fail "$*: status $status: $(grep -a 'amp: \|ranks: \|doubles: ' err | tail -n 3)"
    [ $1 = 0 ] || grep -q '^ranks: GPUs sum gradients with NCCL .*, threads$' err || fail "$*: not two GPUs"
}
compare() { # compare <command> <.data> <.cfg>
    local name=${3%.cfg}
    trained 0 one "$@"
    trained 0,0 two "$@"
    weights_near one/${name}_final.weights two/${name}_final.weights
}

# ---- two against one ----
awk '{ print } /^\[convolutional\]/ && ++n == 2 { print "stopbackward=2" }' tiny.cfg |
    sed -e 's/^random=0/random=1/' -e 's/^max_batches=.*/max_batches=3/' > resized.cfg
class_training
compare detector tiny.data synced.cfg
compare detector tiny.data resized.cfg
compare classifier kinds.data class.cfg
sed 's/classes=2/classes=80/' tiny.data > coco.data
tr -d '\r' < "$ALEXEYAB_TREE/cfg/yolov4-tiny.cfg" | sed -e 's/^\(width\|height\) *=.*/\1=32/' \
    -e 's/^batch *=.*/batch=8/' -e 's/^subdivisions *=.*/subdivisions=2/' -e 's/^burn_in *=.*/burn_in=0/' \
    -e 's/^max_batches *=.*/max_batches=1/' -e '/^mosaic\|^cutmix/d' > yolov4.cfg
compare detector coco.data yolov4.cfg

# A step that overflows is skipped on both, with one loss scale.
dtype=fp16
trained 0 one detector tiny.data tiny.cfg
trained 0,0 two detector tiny.data tiny.cfg
cmp <(sed -n 's/.*\(; loss scale .*\)/\1/p' err) <(sed -n 's/.*\(; loss scale .*\)/\1/p' one/err) &&
    grep -q 'loss scale 65536 -> 32768' err || fail "two GPUs skip other steps: $(grep -a skipped err)"
# So is one of layers that share weights and rolling statistics, which are restored once.
trained 0,0 shared detector tiny.data shared.cfg
holds err 'skipped the step .*; loss scale 65536 -> 32768'
# Anomaly detection allocates memory in each pass, between the sums of the other GPU.
sed 's/^sync_batchnorm=1/&\ndebug=1/' synced.cfg > watched.cfg
grep -q '^debug=1' watched.cfg
trained 0,0 watched detector tiny.data watched.cfg
dtype=fp32

# ---- going on ----
sed 's/^max_batches=.*/max_batches=2/' tiny.cfg > half.cfg
trained 0 whole detector tiny.data tiny.cfg
trained 0 half_of_one detector tiny.data half.cfg
trained 0,0 half_of_two detector tiny.data half.cfg
trained 0,0 went_on detector tiny.data tiny.cfg half_of_one/half_final.weights
holds err 'resumed from .*, data order continues (-seed 7)'
weights_near whole/tiny_final.weights went_on/tiny_final.weights
trained 0 went_on detector tiny.data tiny.cfg half_of_two/half_final.weights
weights_near whole/tiny_final.weights went_on/tiny_final.weights

# Another batch than was saved scales momentum and moments, which the CPU must not touch. (By how much:
# test_resume_changed.)
for solver in momentum=0.9 adam=1; do
    sed "s/^momentum=.*/$solver/" half.cfg > saved.cfg
    sed "s/^momentum=.*/$solver/; s/^batch=.*/batch=16/" tiny.cfg > twice.cfg
    trained 0 saved detector tiny.data saved.cfg
    trained 0 went_on detector tiny.data twice.cfg saved/saved_final.weights
    holds err 'the batch was 8 images and is 16 now: mom.* scaled to match'
done

averaged() { # averaged <GPUs> <folder> <weights>
    on $([ $1 = 1 ] && echo 0 || echo 0,0) $2 detector averaged.data averaged.cfg $3
    [ $status = 1 ] && grep -aq 'last saved: backup/averaged_last.weights' err ||
        fail "averages on $1: $(tail -n 2 err)"
}
averages_go_on averaged whole/tiny_final.weights

# ---- refused ----
on 0,0 two detector tiny.data track.cfg
[ $status = 1 ] && tail -n 1 err | grep -q '^amp: track=1 in \[net\] .* divided among 2 ranks' ||
    fail "track: status $status, $(tail -n 1 err)"
