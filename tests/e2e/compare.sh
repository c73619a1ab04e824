# `darknet amp compare`: each of its trainings is the very one that its command line makes by hand; whatever
# interrupts it, the same call goes on and ends in the same bytes; a dtype that fails does not take the others
# with it; bad input is one line, and nothing is left behind.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
export OMP_NUM_THREADS=1
iterations=20 long=100
cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/hold_trap.c" -o hold_trap.so

tiny_training
sed -i 's/^learning_rate=.*/learning_rate=0.0001/; s/^steps=.*/steps=150/' tiny.cfg

# compare <status> <arguments...>: output in out, err
compare() {
    local expected=$1 status=0
    shift
    "$DARKNET" amp compare "$@" > out 2> err || status=$?
    [ $status = "$expected" ] || fail "$name: status $status, not $expected: $(tail -n 3 err)"
}

# Of the training, not of the machine.
steps_of() { cut -d, -f1-7 "$1"; }

same_runs() { # same_runs <report> <report> <run...>
    local a=$1 b=$2 run
    shift 2
    for run; do
        for file in $(cd $a/runs/$run/backup && ls *.weights *.weights.amp 2> /dev/null |
            grep -v '_[0-9]*\.weights'); do
            cmp $a/runs/$run/backup/$file $b/runs/$run/backup/$file || fail "$name: $run: $file"
        done
        cmp <(steps_of $a/runs/$run/steps.csv) <(steps_of $b/runs/$run/steps.csv) ||
            fail "$name: $run: other steps"
    done
}

# check_report <folder>: all of it is there
check_report() {
    for file in comparison.txt report.html report.json report.csv; do
        [ -s $1/$file ] || fail "$name: no $1/$file"
    done
}

# By hand: the command with the options that a user would give, in another folder.
trainings_are_those_of_their_commands() { # <report> <kind> <what to begin with> <run...>
    local report=$1 kind=$2 begin=$3 run dtype here
    shift 3
    for run; do
        name="$report: $run by hand"
        dtype=${run%-seed*} here=$report/runs/$run
        rm -rf hand
        mkdir hand
        cp -r $report hand/
        (cd hand && rm -r $here/backup/* $here/steps.csv &&
            cp -r ../backup ../*.txt ../*.names ../images ../labels . &&
            "$DARKNET" $kind train $here/run.data $here/*.cfg $begin -amp ${dtype/stock/off} \
                -seed ${run#*-seed} -log $here/steps.csv > hand.out 2>&1) ||
            fail "$name: $(tail -n 3 hand/hand.out)"
        same_runs hand/$report $report $run
    done
}

a_detector() {
    name='a detector'
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -seeds 2 -iters $iterations -report two
    check_report two
    holds out '^bf16  *\(as good\|worse\|cannot tell\|–\)  .*  cannot tell  '
    [ "$(grep -c '^fp32 .* %\|^bf16 .* %' out)" = 2 ] || fail "$name: no table: $(cat out)"
    all_begin_alike two 1 fp32 bf16
    all_begin_alike two 2 fp32 bf16
    trainings_are_those_of_their_commands two detector '' fp32-seed1 bf16-seed1 fp32-seed2 bf16-seed2
    # and of the command without what compare adds
    edit plain "s/^max_batches=.*/max_batches=$iterations/"
    succeeds "$DARKNET" detector train tiny.data plain.cfg -amp bf16 -seed 2
    cmp backup/plain_final.weights two/runs/bf16-seed2/backup/tiny_final.weights ||
        fail "$name: not what a plain training gives"
    [ "$(cksum two/runs/*/backup/tiny_final.weights | cut -d ' ' -f 1 | sort -u | wc -l)" = 4 ] ||
        fail "$name: dtypes or seeds are all one"
    local run=two/runs/fp32-seed1 mine
    succeeds "$DARKNET" detector map $run/run.data tiny.cfg $run/backup/tiny_final.weights -amp fp32
    mine=$(printf %.6f "$(sed -n 's/^score mAP@0.5 //p' $run/result.txt)")
    holds out "(mAP@0.50) = $mine,"
}

# Same weights, same images: the first loss is the same but for rounding.
all_begin_alike() { # all_begin_alike <report> <seed> <dtype...>
    local report=$1 seed=$2 first loss dtype
    shift 2
    first=$(sed -n 2p $report/runs/$1-seed$seed/steps.csv | cut -d, -f2)
    for dtype; do
        loss=$(sed -n 2p $report/runs/$dtype-seed$seed/steps.csv | cut -d, -f2)
        awk -v a="$first" -v b="$loss" 'BEGIN { d = (a - b) / a; exit !(d * d < .02 ^ 2) }' ||
            fail "$name: first losses $first and $loss ($dtype)"
    done
}

# Weights that were trained on: their counter and their sidecar are no part of what begins here.
from_weights_that_were_trained() {
    name='from trained weights'
    compare 0 tiny.data tiny.cfg backup/plain_final.weights -dtypes stock,fp32,bf16 -seeds 1 \
        -iters $iterations -report from
    for dtype in stock fp32 bf16; do
        [ "$(wc -l < from/runs/$dtype-seed1/steps.csv)" = $((iterations + 1)) ] ||
            fail "$name: $dtype did not train $iterations steps"
    done
    all_begin_alike from 1 stock fp32 bf16
    trainings_are_those_of_their_commands from detector 'backup/plain_final.weights -clear' \
        bf16-seed1 stock-seed1
}

more_of_the_same_keeps_what_is_there() {
    name='more seeds and dtypes'
    local before=$(cd two/runs && find . -name '*.weights' -printf '%p %i %T@\n' | sort)
    compare 0 tiny.data tiny.cfg -dtypes stock,bf16,fp32 -seeds 3 -iters $iterations -report two
    [ "$(cd two/runs && find . -path './[bf]*-seed[12]/*' -name '*.weights' -printf '%p %i %T@\n' | sort)" = \
        "$before" ] ||
        fail "$name: what was there was trained again"
    holds err '; already trained: 4$'
    [ -s two/runs/stock-seed3/backup/tiny_final.weights ] || fail "$name: stock was not trained"
    trainings_are_those_of_their_commands two detector '' stock-seed3
    name='all is there'
    compare 0 tiny.data tiny.cfg -dtypes stock,bf16,fp32 -seeds 3 -iters $iterations -report two
    ! grep -q 'validating' err || fail "$name: validated again"
}

# Scores that are given: the same in both dtypes settle it with three seeds; differences of +40,
# -40 and 0 points do not.
seeds_are_added_until_a_loss_is_settled() {
    name='-until'
    score() { sed -i "s/^\(score [^ ]*\) .*/\1 $2/" two/runs/$1/result.txt; } # score <run> <both scores>
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -iters $iterations -report two
    for run in fp32-seed1 fp32-seed2 fp32-seed3 bf16-seed1 bf16-seed2 bf16-seed3; do score $run 0.5; done
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -iters $iterations -report two -until 1 -seeds 4
    [ ! -e two/runs/fp32-seed4 ] || fail "$name: it went on though nothing is lost"
    grep -q ' 97.5 % intervals of the differences ' out && grep -q '^bf16  *as good  *+0.00 to +0.00 ' out ||
        fail "$name: $(cat out)"
    score bf16-seed1 0.9
    score bf16-seed2 0.1
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -iters $iterations -report two -until 1 -seeds 4
    holds err '^amp: the result is inconclusive after 3 seeds (-until 1); adding seeds, to a total of 4'
    [ -s two/runs/bf16-seed4/backup/tiny_final.weights ] || fail "$name: no fourth seed"
    [ ! -e two/runs/bf16-seed5 ] || fail "$name: more than were allowed"
    grep -q '^bf16  *cannot tell  ' out && grep -q ' 97.5 % intervals of the differences ' out ||
        fail "$name: $(cat out)"
    [ "$(grep -c '"seed": ' two/report.json)" = 8 ] || fail "$name: $(grep '"seed": ' two/report.json)"
}

validation_alone_is_repeated() {
    name='validation failed'
    local before i
    for i in 3 4; do
        printf 'no image' > images/v$i.jpg
        cp labels/$i.txt labels/v$i.txt
    done
    sed 's/^valid=.*/valid=two.txt/' tiny.data > two.data
    printf '%s\n' "$PWD"/images/v3.jpg "$PWD"/images/v4.jpg > two.txt
    compare 1 two.data tiny.cfg -dtypes bf16 -seeds 1 -iters $iterations -report unseen
    tail -n 1 err | grep -q 'failed; the first was bf16, seed 1: ' || fail "$name: $(tail -n 1 err)"
    before=$(stat -c %i unseen/runs/bf16-seed1/backup/tiny_final.weights)
    for i in 3 4; do cp images/$i.jpg images/v$i.jpg; done
    compare 0 two.data tiny.cfg -dtypes bf16 -seeds 1 -iters $iterations -report unseen
    [ "$(stat -c %i unseen/runs/bf16-seed1/backup/tiny_final.weights)" = $before ] ||
        fail "$name: trained again"
    grep -q '^state done' unseen/runs/bf16-seed1/result.txt ||
        fail "$name: $(cat unseen/runs/bf16-seed1/result.txt)"
}

one_after_the_other_trains_the_same() {
    name='-sequential'
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -seeds 1 -iters $iterations -report sequence -sequential
    holds out '^Speeds: not all dtypes of a seed trained at the same time'
    same_runs two sequence fp32-seed1 bf16-seed1
}

# Those of this test, which are started here: other copies of it may run beside it.
trainings() {
    for process in $(grep -ls broken/runs /proc/[0-9]*/cmdline); do
        [ "$(readlink "${process%/cmdline}/cwd")" != "$PWD" ] || echo "$process"
    done
}

# end_it <signal>: begins, or goes on with, a comparison in `broken` and ends it in the middle of bf16's
# training; its status in $status
end_it() {
    local pid
    rm -f held
    : > hold
    # set -m: a job of a script without it ignores SIGINT
    set -m
    LD_PRELOAD=$PWD/hold_trap.so ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
        "$DARKNET" amp compare tiny.data tiny.cfg -dtypes fp32,bf16 -seeds 1 -iters $long -report broken \
        > out 2> err &
    pid=$!
    set +m
    until [ -e held ]; do
        kill -0 $pid 2> /dev/null || fail "$name: it was over before it could be ended: $(tail -n 3 err)"
        sleep .01
    done
    kill -$1 $pid
    rm hold
    status=0
    wait $pid 2> /dev/null || status=$?
}

interrupted_and_gone_on_with_it_is_the_same() {
    name='whole'
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -seeds 1 -iters $long -report whole
    name='SIGINT'
    end_it INT
    [ $status = 130 ] || fail "$name: status $status: $(tail -n 3 err)"
    check_report broken
    holds err 'interrupted; to continue'
    holds out '^Interrupted: '
    [ ! -e broken/runs/bf16-seed1/backup/tiny_final.weights ] || fail "$name: nothing was interrupted"
    [ -e broken/runs/bf16-seed1/backup/tiny.backup ] || fail "$name: no backup to go on from"
    name='SIGKILL'
    end_it KILL
    [ $status = 137 ] || fail "$name: status $status"
    for i in $(seq 6000); do # its trainings end with it
        [ -n "$(trainings)" ] || break
        sleep .1
    done
    [ -z "$(trainings)" ] || fail "$name: trainings go on without it"
    name='SIGTERM'
    end_it TERM
    [ $status = 130 ] || fail "$name: status $status: $(tail -n 3 err)"
    name='gone on with'
    compare 0 tiny.data tiny.cfg -dtypes fp32,bf16 -seeds 1 -iters $long -report broken
    same_runs whole broken fp32-seed1 bf16-seed1
    cmp whole/runs/bf16-seed1/result.txt broken/runs/bf16-seed1/result.txt || fail "$name: other scores"
    grep -q '^amp: resumed from' broken/runs/bf16-seed1/train.log || fail "$name: it began anew"
}

one_of_two_fails() { # one_of_two_fails <dtype> <why> <.data> <.cfg>: the other one is fp32
    name="$1 fails"
    rm -rf failed
    compare 1 $3 $4 -dtypes fp32,$1 -seeds 1 -iters 120 -report failed
    check_report failed
    tail -n 1 err | grep -q "^amp compare: 1 of 2 trainings failed; the first was $1, seed 1: $2" ||
        fail "$name: $(tail -n 2 err)"
    local result=failed/runs/$1-seed1/result.txt
    holds $result '^state failed'
    grep -q '^state done' failed/runs/fp32-seed1/result.txt || fail "$name: fp32 is not done"
    holds out "^$1: seed 1 failed: $2"
}

# A static loss scale that fp16 cannot hold: each of its steps is skipped, and its training ends. An image
# that cannot be read: AMP leaves it out, stock Darknet ends there with status 0: no trained network.
a_dtype_that_fails_leaves_the_others() {
    { cat tiny.cfg; printf '\n[amp]\nloss_scale=1e20\n'; } > high.cfg
    one_of_two_fails fp16 '.*collapsed' tiny.data high.cfg
    printf 'no image' > images/broken.jpg
    : > labels/broken.txt
    { for i in $(seq 24); do cat train.txt; done; echo "$PWD/images/broken.jpg"; } > broken.txt
    sed 's/^train=.*/train=broken.txt/' tiny.data > broken.data
    one_of_two_fails stock 'Cannot load image ".*/broken.jpg"' broken.data tiny.cfg
}

a_classifier() {
    name='a classifier'
    two_kinds
    layers > kind.cfg <<'CFG'
[net] batch=4 subdivisions=2 width=16 height=16 channels=3 learning_rate=0.02 max_batches=60
[convolutional] filters=8 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=2 size=1 stride=1 activation=linear
[avgpool]
[softmax]
CFG
    compare 0 kinds.data kind.cfg -dtypes fp32,bf16 -seeds 2 -iters $iterations -report kinds
    check_report kinds
    trainings_are_those_of_their_commands kinds classifier '' bf16-seed1 fp32-seed2
    holds out 'top-1'
}

# With cache=disk: one cache file for all trainings, which the later ones find filled.
trainings_share_one_cache() {
    name='a cache on disk'
    { cat tiny.data; echo cache=disk; } > cached.data
    for dtypes in fp32 fp32,bf16; do
        compare 0 cached.data tiny.cfg -dtypes $dtypes -seeds 1 -iters 2 -report cached
    done
    [ "$(find cached -type f -name '*.images')" = cached/runs/train.txt.images ] ||
        fail "$name: $(find cached -name '*.images')"
    grep -q 'images were kept.*; of [1-9]' cached/runs/fp32-seed1/train.log || fail "$name: it keeps nothing"
    grep -q ' 0 of [0-9]* images were kept.*; of \([0-9]*\) loaded images, \1 came' \
        cached/runs/bf16-seed1/train.log || fail "$name: $(tail -n 3 cached/runs/bf16-seed1/train.log)"
}

refused() { # refused <what its line says> <arguments...>
    local text=$1
    name="$text"
    shift
    rm -rf none
    compare 1 "$@" -report none
    sed -i '/^doubles: /d' err
    [ "$(grep -c '^amp compare: ' err)" = 1 ] && tail -n 1 err | grep -q -- "^amp compare: .*$text" ||
        fail "$name: $(tail -n 3 err)"
    [ ! -s out ] || fail "$name: printed $(head -n 1 out)"
    [ ! -e none ] || fail "$name: left behind $(find none | tr '\n' ' ')"
}

bad_input_is_one_line_and_leaves_nothing() {
    edit broken 's/^filters=21/filters=20/'
    refused 'nowhere.data' nowhere.data tiny.cfg
    refused 'nowhere.cfg' tiny.data nowhere.cfg
    refused '-amp: .*-dtypes' tiny.data tiny.cfg -amp bf16
    sed '/^max_batches/d' tiny.cfg > nobatches.cfg
    refused 'no max_batches' tiny.data nobatches.cfg
    # What no step of one iteration meets: a label of the list of validation.
    cp images/8.jpg images/far.jpg
    echo '7 0.5 0.5 0.2 0.2' > labels/far.txt
    { cat train.txt; echo "$PWD/images/far.jpg"; } > many.txt
    sed 's/^valid=.*/valid=many.txt/' tiny.data > many.data
    refused 'labels/far.txt:1: ' many.data tiny.cfg -iters 1
    edit middle '/^\[upsample\]/,$d'
    refused 'last section is \[route\]' tiny.data middle.cfg
    if [ -x "$BUILD_DIR/tests/darknet-on-doubles" ]; then
        local DARKNET=$BUILD_DIR/tests/darknet-on-doubles
        AMP_DOUBLE_GPU=7.0 refused 'this machine cannot run bf16' tiny.data tiny.cfg \
            -dtypes fp32,bf16 -iters 5
    fi
    # What only a training finds: it says so before its first step.
    refused '.' tiny.data broken.cfg -iters 5
    printf 'no weights at all' > text.weights
    refused 'text.weights' tiny.data tiny.cfg text.weights -iters 5
}

bad_folders_are_one_line() {
    : > file
    name='a file in the place of the folder'
    compare 1 tiny.data tiny.cfg -report file
    holds err '^amp compare: file: '
    name='a folder in none'
    compare 1 tiny.data tiny.cfg -report no/such/folder
    holds err '^amp compare: no/such/folder: '
    name='a blank'
    compare 1 tiny.data tiny.cfg -report 'my report'
    [ ! -e 'my report' ] && grep -q 'blank' err || fail "$name: $(tail -n 1 err)"
    name='a folder of somebody else'
    mkdir -p theirs/runs
    compare 1 tiny.data tiny.cfg -report theirs
    grep -q 'theirs/runs' err && [ -z "$(ls theirs/runs)" ] || fail "$name: $(tail -n 1 err)"
    if [ "$(id -u)" != 0 ]; then
        name='a folder that is write-protected'
        mkdir -m 555 protected
        compare 1 tiny.data tiny.cfg -report protected
        holds err '^amp compare: protected.*ermission'
    fi
}

other_settings_are_one_line_that_names_them() {
    other() { # other <setting> <arguments...>
        name="another $1"
        local text=$1 before=$(find two | sort)
        shift
        compare 1 "$@" -report two
        holds err "^amp compare: two: .*$text"
        [ "$(find two | sort)" = "$before" ] || fail "$name: something was changed"
    }
    other 'not made with -iters 9;' tiny.data tiny.cfg -iters 9
    sed 's/^decay=.*/decay=0.0006/' tiny.cfg > other.cfg
    other 'not made with the .cfg file: checksum' tiny.data other.cfg -iters $iterations
    other 'not made with the weights to start from: ' tiny.data tiny.cfg backup/plain_final.weights \
        -iters $iterations
    head -n 4 train.txt > few.txt
    sed 's/^train=.*/train=few.txt/' tiny.data > few.data
    other 'not made with the .data file: ' few.data tiny.cfg -iters $iterations
    OMP_NUM_THREADS=2 other 'not made with the machine: ' tiny.data tiny.cfg -iters $iterations
}

a_detector
from_weights_that_were_trained
more_of_the_same_keeps_what_is_there
one_after_the_other_trains_the_same
seeds_are_added_until_a_loss_is_settled
validation_alone_is_repeated
other_settings_are_one_line_that_names_them
a_classifier
trainings_share_one_cache
a_dtype_that_fails_leaves_the_others
bad_input_is_one_line_and_leaves_nothing
bad_folders_are_one_line
interrupted_and_gone_on_with_it_is_the_same
