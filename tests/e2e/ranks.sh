# N ranks train as one does: the same images in the same order, the same weights to the rounding of a sum, one
# log, one mAP; and a training continues with another number of ranks.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/ranks.bash"
tiny_training
sed -i 's/^batch=4/batch=12/; s/^subdivisions=2/subdivisions=12/
    s/^learning_rate=.*/learning_rate=0.001/' tiny.cfg

# train <ranks> <.cfg> <options...>: the files that it saved are in backup; what it said in out and err
train() {
    local number=$1 cfg=$2 command="detector train tiny.data"
    shift 2
    if grep -q '^\[softmax\]' $cfg; then command="classifier train kinds.data"; fi
    fresh
    succeeds ranks $number $command $cfg "$@" -seed 7
}
weights_of() { ls backup/${1%.cfg}_final.weights backup/${1%.cfg}.weights 2> /dev/null; } # of a .cfg

near() { weights_near $1 "$(weights_of $2)"; } # near <kept weights> <.cfg>

# same <kept folder> <.cfg> <what>: this training ended with the same bytes
same() {
    local file
    for file in "$(weights_of $2)" "$(weights_of $2).amp"; do
        cmp $1/"$(basename "$file")" "$file" || fail "$name: $3"
    done
}
keep() { # keep <folder>: this training's backup
    rm -rf $1
    mv backup $1
}

# ---- several_ranks_train_as_one_does ----

# like_one <.cfg> <options...>
like_one() {
    local cfg=$1 n
    shift
    name="$cfg $*"
    train 0 $cfg "$@"
    mv "$(weights_of $cfg)" one.weights
    for n in $ranks; do
        name="$cfg $*, $n ranks"
        train $n $cfg "$@"
        near one.weights $cfg
    done
}

edit one_step 's/^max_batches=.*/max_batches=1/; s/^burn_in=.*/burn_in=0/'
edit sizes 's/^random=0/random=1/; s/^max_batches=.*/max_batches=2/; s/^burn_in=.*/burn_in=0/
    0,/stride=1/s//stride=8/; /^\[dropout\]/,/^$/d' # Darknet cannot resize a dropout
# 48 images loaded by 32 threads, so that 3 ranks share what one of them loads
layers > softmax.cfg <<'END'
[net] batch=48 subdivisions=12 width=16 height=16 channels=3 min_crop=16 max_crop=18 learning_rate=0.01
    momentum=0.9 decay=0.0005 max_batches=5
[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=leaky
[dropout] probability=.3
[connected] output=8 activation=linear
[softmax]
END
sed 's/^batch=48/batch=12\ntime_steps=2/; /^\[dropout\]/,/^$/d
    s/^\[connected\]/[crnn]\nbatch_normalize=1\noutput=4\nhidden=4\nactivation=leaky\n\n&/
    ' softmax.cfg > crnn.cfg
printf '%s\n' 1.jpg 2.jpg 3.jpg 4.jpg 5.jpg 6.jpg 7.jpg 8.jpg > kinds.names
printf '%s\n' classes=8 train=train.txt labels=kinds.names backup=backup > kinds.data
sed '1a random=1
    s/^max_batches=.*/max_batches=2/; /^\[dropout\]/,/^$/d; s/^\[connected\]/[avgpool]\n\n&/
    ' softmax.cfg > class_sizes.cfg
ranks="2 3 4"
like_one tiny.cfg -amp fp32
ranks=3
like_one sizes.cfg -amp fp32
like_one softmax.cfg -amp fp32
like_one crnn.cfg -amp fp32

name="sync_batchnorm that not all can have"
sed '1a amp=1\nsync_batchnorm=1' crnn.cfg > synced_crnn.cfg
train 2 synced_crnn.cfg -amp fp32
line="layer 1 \[crnn\] runs in Darknet's own code, whose batch norm sees each rank's images separately"
holds err "^amp: sync_batchnorm=1: $line$"
line="amp: 2 ranks share a step as if subdivisions were 6, not 12: batch norm sees 2 images at a time, not 1"
holds err "^$line"

cp train.txt good.txt
echo "no image" > images/9.jpg
for copy in 1 2 3 4; do echo "$PWD/images/9.jpg" >> train.txt; done # so that the one step draws it
like_one one_step.cfg -amp fp32
holds err '^rank [12]: amp: .*images/9.jpg'
mv good.txt train.txt

name="a mini-batch that is cut"
edit cut 's/^subdivisions=.*/subdivisions=2/'
edit as_cut 's/^subdivisions=.*/subdivisions=6/'
train 0 as_cut.cfg -amp fp32
mv "$(weights_of as_cut.cfg)" one.weights
train 3 cut.cfg -amp fp32
near one.weights cut.cfg
line="amp: 3 ranks share a step as if subdivisions were 6, not 2: batch norm sees 2 images at a time, not 6"
grep -qx "$line" err ||
    fail "$name: $(grep -a 'subdivisions' err)"
sed '/^subdivisions/d' cut.cfg > uncut.cfg # which is 1
train 3 uncut.cfg -amp fp32
! grep -qi 'unused' err || fail "$name: $(grep -ai unused err)"
name="a batch that cannot be shared"
for n in 5 7; do
    status_of ranks $n detector train tiny.data cut.cfg -amp fp32
    [ $status = 1 ] || fail "$name: status $status"
    wanted="$n ranks cannot share batch=12 with subdivisions=2 evenly; the next batch that works is"
    holds err "amp: cut.cfg: \[net\]: $wanted $((n == 5 ? 20 : 14))$"
done

# ---- the same bytes ----

name="one rank under MPI" # which it does not start: that would end it
train 0 tiny.cfg -amp fp32
keep alone
echo 'void MPI_Init_thread(void) { __builtin_trap(); }' | cc -shared -fPIC -x c - -o no_mpi.so
trapped=(env LD_PRELOAD="$PWD/no_mpi.so" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" \
    "$RANKS_DARKNET" detector train tiny.data tiny.cfg -amp fp32 -seed 7)
status_of mpirun $mpirun_options -np 2 "${trapped[@]}"
[ $status != 0 ] || fail "$name: the trap is broken"
fresh
succeeds mpirun $mpirun_options -np 1 "${trapped[@]}"
same alone tiny.cfg "other files than without MPI"
name="the same ranks twice"
OMPI_MCA_mpi_show_mca_params=enviro train 2 tiny.cfg -amp fp32
keep first
if mpirun --version | grep -q '(Open MPI) 4'; then # half a megabyte goes without a question before it
    holds err 'btl_tcp_eager_limit=528384'
fi
train 2 tiny.cfg -amp fp32
same first tiny.cfg "other files the second time"

# ---- ranks_without_seed_take_a_clock ----

name="no -seed"
edit two_steps 's/^max_batches=.*/max_batches=2/'
rm -r backup
mkdir backup
for run in one_step.cfg "two_steps.cfg backup/one_step_final.weights"; do
    succeeds ranks 2 detector train tiny.data $run -amp fp32
done # it is 0 where the clock was not asked
grep -q 'resumed from .*, data order .*-seed [1-9]' err || # within one second both have the same seed
    fail "$name: $(grep -a resumed err)"

# ---- what rank 0 writes of all ----

# Whether two logs say the same but for times: the loss, its average and the gradient's norm as nearly as sums
# in another order allow, all else to the letter.
logs_agree() {
    [ "$(wc -l < $1)" = "$(wc -l < $2)" ] && paste -d, $1 $2 | awk -F, 'NR > 1 {
        n = NF / 2
        if ($1 != $(n + 1) || $4 != $(n + 4) || $5 != $(n + 5) || $6 != $(n + 6)) exit 1
        for (k = 2; k <= 7; k += k == 3 ? 4 : 1) {
            apart = $k - $(n + k)
            if ($k != $(n + k) && (apart < 0 ? -apart : apart) > .01 * $k) exit 1
        }
    }'
}
name="the log"
edit overflows '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=2\ngrowth_factor=64
    s/^max_batches=.*/max_batches=12/'
rm -f log.csv
train 0 overflows.cfg -log log.csv
mv log.csv alone.csv
keep alone
train 3 overflows.cfg -log log.csv
logs_agree log.csv alone.csv || fail "$name: $(cut -d, -f1-7 log.csv; echo; cut -d, -f1-7 alone.csv)"
[ "$(cut -d, -f13 alone.csv log.csv | sort -u | tr '\n' ' ')" = " fp32 wire " ] ||
    fail "$name: the wire: $(cut -d, -f13 alone.csv log.csv)"
cut -d, -f6,7 log.csv | grep -qx 1, || fail "$name: no step was skipped: $(cut -d, -f1-7 log.csv)"
cmp -n 20 alone/overflows_final.weights backup/overflows_final.weights ||
    fail "$name: another number of images"

name="-map"
edit learns 's/^max_batches=.*/max_batches=150/; s/^learning_rate=.*/learning_rate=0.0003/
    s/^burn_in=.*/burn_in=20/; s/^steps=.*/steps=300/; s/^jitter=.*/jitter=.05/; /^\[dropout\]/,/^$/d
    s/^batch=.*/batch=4/; s/^subdivisions=.*/subdivisions=4/; /^angle\|^saturation\|^exposure\|^hue/d'
train 0 learns.cfg -amp fp32
keep learnt
sed 's/max_batches=.*/max_batches=154/' learns.cfg > measured.cfg
{ cat train.txt; echo "$PWD/images/9.jpg"; } > valid.txt # which rank 3 cannot read
sed -i 's/^valid=.*/valid=valid.txt/' tiny.data
train 4 measured.cfg learnt/learns_final.weights -amp fp32 -map 2
holds err '^rank 3: .*/images/9.jpg.*; it is left out'
ranks 0 detector map tiny.data measured.cfg backup/measured_final.weights -amp fp32 > map.out 2> map.err
of_all=$(sed -n 's/^ mean average precision (mAP@0.50) = \([0-9.]*\) at iteration 154.*/\1/p' out)
of_one=$(sed -n 's/^ mean average precision (mAP@0.50) = \([0-9.]*\),.*/\1/p' map.out)
[ -n "$of_all" ] && [ "$of_all" = "$of_one" ] && [ "$of_all" != 0.000000 ] ||
    fail "$name: 4 ranks measured '$of_all', one '$of_one'"
[ "$(wc -l < backup/measured_map.csv)" = 3 ] || fail "$name: $(cat backup/measured_map.csv)"
[ -f backup/measured_best.weights ] || fail "$name: the best weights were not saved"

name="a save that fails"
rm -rf backup
mkdir -p backup/one_step_final.weights
status_of ranks 2 detector train tiny.data one_step.cfg -amp fp32 -seed 7
[ $status = 1 ] || fail "$name: status $status"
[ "$(grep -c 'could not be written' err)" = 1 ] || fail "$name: $(grep -a 'amp:' err)"

# ---- going on ----

# goes_on <.cfg of 5 steps> <options...>: two steps by `from` ranks, the others by `to`
goes_on() {
    local cfg=$1 half=half_$1 from to n saved
    shift
    sed 's/^max_batches=.*/max_batches=2/' $cfg > $half
    for n in 0 2; do
        train $n $cfg "$@"
        keep whole_$n
        train $n $half "$@"
        saved=$(basename "$(weights_of $half)")
        keep half_$n
    done
    for from in 0 2; do
        for to in 0 2 4; do
            [ $from$to != 00 ] || continue
            name="going on, $cfg: $from ranks and then $to"
            train $to $cfg half_$from/$saved "$@"
            if [ $from$to = 22 ]; then same whole_2 $cfg "other files than in one go"; fi
            check_going_on $from $to $cfg
        done
    done
}
check_going_on() {
    holds err 'resumed from .*, data order continues (-seed 7)'
    near whole_0/"$(basename "$(weights_of $3)")" $3
}
goes_on tiny.cfg -amp fp32

name="going on with another wire"
edit halves '1a amp=1\nwire=bf16\nsync_batchnorm=1'
train 2 halves.cfg half_2/half_tiny_final.weights -amp fp32
holds err 'gradients were exchanged in fp32 and are exchanged in bf16 now (wire=)'
holds err 'sync_batchnorm was 0 and is 1 now'
train 0 halves.cfg half_2/half_tiny_final.weights -amp fp32
! grep -a 'exchanged in\|sync_batchnorm' err || fail "$name: one program alone exchanges nothing"

name="a save that was killed between its renames"
mkdir killed
cp first/tiny_final.weights killed/w.weights
touch -d yesterday killed/w.weights
cp half_2/half_tiny_final.weights killed/w.weights.new
cp half_2/half_tiny_final.weights.amp killed/w.weights.amp
train 2 tiny.cfg killed/w.weights -amp fp32
[ "$(grep -c 'completed a save that was killed' err)" = 1 ] || fail "$name: $(grep -a amp: err)"
same whole_2 tiny.cfg "a rank has begun from older weights"

sed 's/^\[crnn\]/[lstm]/; /^batch_normalize=1/{x;s/^/x/;/^xx$/{x;s/1/0/;x};x}; /^hidden/d' crnn.cfg > lstm.cfg
check_going_on() { # a state is carried on in each rank by itself
    local wanted=1
    [ $1 != $2 ] || wanted=0
    [ "$(grep -c 'recurrent layers start from an empty state' err)" = $wanted ] ||
        fail "$name: $1 $2: $(grep -a amp: err)"
}
goes_on lstm.cfg -amp fp32

# ---- ranks_measure_steps_as_a_training_makes_them (amp bench) ----

name="amp bench"
command -v python3 > /dev/null || skip 'no python3 to read JSON with'
export TMPDIR=$PWD/temporary
mkdir temporary
edit of_ten 's/^batch=.*/batch=10/; s/^subdivisions=.*/subdivisions=5/; s/^width=.*/width=64/'
succeeds ranks 3 amp bench of_ten.cfg -size 32 -iters 6 -amp bf16 -seed 3 -json bench.json
[ "$(find temporary -name 'amp-bench*')" = '' ] || fail "$name: left behind: $(ls temporary)"
[ "$(grep -c '^ *[123] ' out)" = 3 ] && grep -q '^ *3 .*cannot share the batch' out ||
    fail "$name: $(cat out)"
python3 - bench.json <<'EOF' || fail "$name: $(cat bench.json)"
import json, sys
j = json.load(open(sys.argv[1]))
def near(a, b): return abs(a - b) <= 1e-9 * abs(b)
assert (j["dtype"], j["batch"], j["width"], j["seed"]) == ("bf16", 10, 32, 3)
one, two, three = j["rows"]
assert [(r["ranks"], r["passes"], r["images"], r["steps"]) for r in j["rows"]] == \
    [(1, 5, 2, 6), (2, 5, 1, 6), (3, None, None, 0)]
assert three["step_ms"] is None and three["efficiency"] is None
assert one["waited_ms"] == 0 and one["efficiency"] == 100 and two["waited_ms"] > 0
for r in one, two: assert near(r["images_per_second"], 1000 * 10 / r["step_ms"])
assert near(two["efficiency"], 100 * one["step_ms"] / 2 / two["step_ms"])
EOF
bench_refused() { # bench_refused <text> <arguments...>
    status_of ranks 2 amp bench "${@:2}"
    [ $status = 1 ] && [ "$(grep -c -- "$1" err)" = 1 ] && [ ! -s out ] ||
        fail "$name ${*:2}: status $status: $(cat err out)"
}
bench_refused '-dtypes does not work with several ranks' of_ten.cfg -dtypes bf16
bench_refused 'of_ten.cfg with this -batch and -size' of_ten.cfg -size 33
[ -z "$(ls -d temporary/amp-bench* 2> /dev/null)" ] || fail "$name: left behind: $(ls temporary)"
ranks 2 amp bench -h > out 2> err < /dev/null || fail "$name -h: $(cat err)"
