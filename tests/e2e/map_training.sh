# detector train -map: mAP during training. The training's weights are those of one without -map,
# bit for bit; what is measured is what `detector map` says of the same weights; the best weights
# stay the best over a stop.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
tiny_training
# Learns its eight images by heart within 400 steps, and not steadily: the best is not the last.
sed -i 's/max_batches=.*/max_batches=400/; s/^learning_rate=.*/learning_rate=0.0003/
    s/^burn_in=.*/burn_in=50/; s/^steps=.*/steps=300/; s/^jitter=.*/jitter=.05/
    s/^probability=.*/probability=.01/; /^angle\|^saturation\|^exposure\|^hue/d' tiny.cfg
edit short 's/max_batches=.*/max_batches=60/; s/^burn_in=.*/burn_in=10/'
edit overflows '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=7\ngrowth_factor=64
    s/max_batches=.*/max_batches=60/; s/^burn_in=.*/burn_in=0/'
random_sizes 26 tiny.cfg | sed 's/^burn_in=.*/burn_in=0/; 0,/stride=1/s//stride=8/' > random.cfg

train() { succeeds "$DARKNET" detector train tiny.data "$@" -seed 4; }
measured() { # lines of: <iteration> <mAP>
    sed -n 's/^ mean average precision (mAP@0.50) = \([0-9.]*\) at iteration \([0-9]*\), .*/\2 \1/p' out
}
map_of() { # map_of <.cfg> <weights> <options...>
    "$DARKNET" detector map tiny.data "$@" 2> map_err |
        sed -n 's/^ mean average precision (mAP@0.50) = \([0-9.]*\),.*/\1/p'
}

# same_weights <what> <.cfg> <every> <options...>
same_weights() {
    name="same weights: $1"
    local cfg=$2 every=$3 base=${2%.cfg}
    shift 3
    fresh without log.csv
    train $cfg "$@" -log log.csv
    ! grep -q 'mAP' out && [ ! -e backup/${base}_map.csv ] || fail "$name: measured without -map"
    mv backup without
    mv log.csv without
    fresh
    train $cfg "$@" -log log.csv -map $every
    [ "$(measured | wc -l)" -gt 2 ] || fail "$name: measured $(measured | wc -l) times: the test is broken"
    cmp without/${base}_final.weights backup/${base}_final.weights || fail "$name: other weights with -map"
    [ ! -e without/${base}_final.weights.amp ] ||
        cmp without/${base}_final.weights.amp backup/${base}_final.weights.amp ||
        fail "$name: another sidecar with -map"
    cmp <(cut -d, -f1-7 without/log.csv) <(cut -d, -f1-7 log.csv) || fail "$name: other losses with -map"
    local map
    map=$(map_of $cfg backup/${base}_final.weights "$@")
    [ "$(measured | tail -n 1 | cut -d' ' -f2)" = "$map" ] ||
        fail "$name: the last mAP is $(measured | tail -n 1), detector map says $map"
    echo "$name"
}

training_is_not_touched() {
    same_weights bf16 short.cfg 4 -amp bf16
    same_weights 'fp16, with skipped steps' overflows.cfg 4
    grep -q '^amp: skipped the step after step [1-9]' err || fail "$name: no step was skipped"
    same_weights 'without AMP' short.cfg 4 -amp off
    same_weights 'random=1' random.cfg 4 -amp bf16
    [ "$(grep -c '^Resizing' out)" -gt 2 ] || fail "$name: hardly resized: the test is broken"
}

# Multiples of N from burn_in on, and the end; each as detector map measures the weights
# of that step; the best.
schedule_and_best() {
    name=schedule
    fresh
    train tiny.cfg -amp bf16 -map 20
    { seq 60 20 400; } | cmp - <(measured | cut -d' ' -f1) ||
        fail "$name: measured at $(measured | cut -d' ' -f1 | tr '\n' ' ')"
    holds out '^-map: mAP of 8 images every 20 iterations; next at iteration 60$'
    measured | while read -r iteration value; do
        case $iteration in 100 | 200 | 300 | 400) ;; *) continue ;; esac
        file=backup/tiny_$iteration.weights
        [ $iteration != 400 ] || file=backup/tiny_final.weights
        [ "$value" = "$(map_of tiny.cfg $file -amp bf16)" ] ||
            fail "$name: $iteration: $value, but detector map says $(map_of tiny.cfg $file -amp bf16)"
    done
    # Lines name the best so far, rows hold what lines say, and the file is of the best.
    sed -n 's/^ mean .* best = \([0-9.]*\) at iteration \([0-9]*\).*/\2 \1/p' out > best.txt
    measured | awk 'NR == 1 || $2 > best { best = $2; at = $1 } { print at, best }' | cmp - best.txt ||
        fail "$name: the best: $(tail -n 1 best.txt)"
    { echo iteration,map50,map50_95; measured | tr ' ' ,; } |
        cmp - <(awk -F, 'NR == 1 { print } NR > 1 { printf "%d,%.6f\n", $1, $2 }' backup/tiny_map.csv) ||
        fail "$name: rows: $(cat backup/tiny_map.csv)"
    read -r at best <<< "$(tail -n 1 best.txt)"
    [ $at -lt 400 ] && [ "$(sort -u -k2,2 best.txt | wc -l)" -gt 1 ] ||
        fail "$name: the best is at $at, of $(cat best.txt): the test is broken"
    [ "$(map_of tiny.cfg backup/tiny_best.weights -amp bf16)" = "$best" ] ||
        fail "$name: tiny_best.weights are not the best"
    [ -f backup/tiny_best.weights.amp ] || fail "$name: the best weights have no sidecar"
    no_leftovers
}

# After schedule_and_best: stopped behind its best and gone on with, in the same rows and files.
best_outlives_a_stop() {
    name='stop and go on'
    mv backup whole
    mkdir backup
    { head -c $((at + 10)) /dev/zero | tr '\0' g; printf s; } > turns.in
    DARKNET_AMP_TURNS=7,8 train tiny.cfg -amp bf16 -map 20 7< turns.in 8> turns.out
    cp backup/tiny_best.weights before.weights
    train tiny.cfg backup/tiny.backup -amp bf16 -map 20
    local every='mAP of 8 images every 20 iterations' next=$(((at + 10) / 20 * 20 + 20))
    holds out "^-map: $every, best = $best at iteration $at; next at iteration $next$"
    cmp before.weights backup/tiny_best.weights || fail "$name: the best weights were replaced"
    for file in tiny_map.csv tiny_best.weights tiny_final.weights tiny_final.weights.amp; do
        cmp whole/$file backup/$file || fail "$name: another $file"
    done
    # Gone on with from an older backup: what was measured behind it is forgotten. From nothing: all is.
    train tiny.cfg backup/tiny_200.weights -amp bf16 -map 20
    cmp whole/tiny_map.csv backup/tiny_map.csv || fail "$name: from 200: $(cat backup/tiny_map.csv)"
    edit start 's/max_batches=.*/max_batches=60/'
    mv start.cfg tiny_start.cfg
    train tiny_start.cfg -amp bf16 -map 30
    train tiny_start.cfg -amp bf16 -map 40
    [ "$(cut -d, -f1 backup/tiny_start_map.csv | tr '\n' ' ')" = 'iteration 60 ' ] ||
        fail "$name: anew: $(cat backup/tiny_start_map.csv)"
}

# After schedule_and_best, whose best is not the last: the training ends when the best is so many
# measurements old; a stop in between changes nothing; a training that would go on with it ends at once.
patience_ends_a_training() {
    name=patience
    local patience end
    # As many measurements as the best was ever old before the end, and when it first was.
    read -r end patience <<< "$(awk -F, 'NR == 1 || $1 == 400 { next }
        !n || $2 > best { best = $2; since = -1; n = 1 }
        { if (++since > longest) { longest = since; at = $1 } }
        END { print at, longest }' whole/tiny_map.csv)"
    [ "$patience" -gt 1 ] && [ "$end" -lt 400 ] || fail "$name: $end $patience: the test is broken"
    fresh
    train tiny.cfg -amp bf16 -map 20 -patience "$patience"
    [ "$(measured | tail -n 1 | cut -d' ' -f1)" = "$end" ] || fail "$name: ended at $(measured | tail -n 1)"
    holds err "^-patience $patience: .* is $patience measurements old: .* backup/tiny_best.weights$"
    [ ! -e backup/tiny_final.weights ] && [ -f backup/tiny.backup.amp ] || fail "$name: $(ls backup)"
    cmp <(head -n "$(wc -l < backup/tiny_map.csv)" whole/tiny_map.csv) backup/tiny_map.csv ||
        fail "$name: measured otherwise than without"
    cp -R backup ended
    train tiny.cfg backup/tiny.backup -amp bf16 -map 20 -patience "$patience"
    ! grep -q Loaded: out && grep -q '^-patience' err || fail "$name: went on: $(tail -n 2 err)"
    diff -r ended backup || fail "$name: other files after a start without a step"
    fresh
    { head -c $((end - 10)) /dev/zero | tr '\0' g; printf s; } > turns.in
    DARKNET_AMP_TURNS=7,8 train tiny.cfg -amp bf16 -map 20 -patience "$patience" 7< turns.in 8> turns.out
    train tiny.cfg backup/tiny.backup -amp bf16 -map 20 -patience "$patience"
    diff -r ended backup || fail "$name: other files with a stop in between"
}

# After schedule_and_best. A training that changes its size is measured at the .cfg's all the same.
size_of_the_cfg() {
    name='size of the .cfg'
    random_sizes 1 tiny.cfg |
        sed 's/^learning_rate=.*/learning_rate=0.000001/; s/^burn_in=.*/burn_in=0/' > sizes.cfg
    cp whole/tiny_best.weights start.weights
    fresh
    train sizes.cfg start.weights -clear -amp fp32 -map 1
    grep -q '^608$' out || fail "$name: not resized: the test is broken"
    local now
    now=$(map_of sizes.cfg backup/sizes_final.weights -amp fp32)
    [ "$now" != 0.000000 ] || fail "$name: nothing is found: the test is broken"
    [ "$(measured | tail -n 1)" = "1 $now" ] ||
        fail "$name: $(measured | tail -n 1), but detector map says $now"
}

without_a_number() {
    name='-map alone'
    fresh
    train tiny.cfg -amp bf16 -map
    [ "$(measured | cut -d' ' -f1 | tr '\n' ' ')" = '100 200 300 400 ' ] || fail "$name: $(measured)"
    # 4 epochs of 128 images, 4 a step
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat train.txt; done > many.txt
    sed 's/^train=.*/train=many.txt/' tiny.data > many.data
    fresh
    succeeds "$DARKNET" detector train many.data -map tiny.cfg -amp bf16 -seed 4 # the option stands anywhere
    [ "$(measured | cut -d' ' -f1 | tr '\n' ' ')" = '128 256 384 400 ' ] ||
        fail "$name: 4 epochs: $(measured)"
}

# refused <expression> <kind> <.data> <options...>: status 1, a line that says so, nothing trained
refused() {
    fresh
    ! [ -e foreign ] || cp foreign backup/short_map.csv
    ends_saying "$1" "$DARKNET" $2 train $3 short.cfg "${@:4}"
    ! grep -q 'Loaded:' out || fail "$name: $1: trained"
    [ -z "$(ls backup | grep -v _map.csv)" ] || fail "$name: $1: wrote $(ls backup)"
}

bad_input() {
    name='bad input'
    refused '-map: its value, if given, is a number of iterations' detector tiny.data -map 0
    refused '-patience x: expected a number of measurements' detector tiny.data -map 5 -patience x
    refused '-patience counts measurements of -map' detector tiny.data -patience 5
    refused 'measures only detectors' classifier tiny.data -map
    sed 's/^valid=.*/valid=nowhere.txt/' tiny.data > nowhere.data
    refused nowhere.txt detector nowhere.data -amp bf16 -map 5
    printf 'my notes\n' > foreign
    refused 'backup/short_map.csv exists and is not a list of -map measurements' \
        detector tiny.data -amp bf16 -map 5
    cmp foreign backup/short_map.csv || fail "$name: a foreign file was changed"
    printf 'iteration,map50,map50_95\n10,0.5,0.25\n10,0.5,0.25\n' > foreign
    refused 'short_map.csv:3:' detector tiny.data -amp bf16 -map 5
    rm foreign
    # Found out while measuring: said, and training continues.
    mkdir -p other/images other/labels
    cp images/1.jpg other/images
    echo '7 0.5 0.5 0.2 0.2' > other/labels/1.txt
    echo other/images/1.jpg > other.txt
    sed 's/^valid=.*/valid=other.txt/' tiny.data > other.data
    fresh
    succeeds "$DARKNET" detector train other.data short.cfg -amp bf16 -seed 4 -map 30
    [ "$(grep -c '^-map: not measured at iteration [36]0: .*1.txt.*; training continues$' err)" = 2 ] ||
        fail "$name: $(grep -a '^-map' err)"
    grep -q 'amp: summary .* steps=60 ' err || fail "$name: training ended early"
}

training_is_not_touched
schedule_and_best
best_outlives_a_stop
patience_ends_a_training
size_of_the_cfg
without_a_number
bad_input
