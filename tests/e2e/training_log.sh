# What a training says of its steps, in its lines and with -log; and how it is stopped: by those it takes turns with, by Ctrl-C.
# A training that was stopped and gone on with ends in the very bytes of one that was not, and its log in the same rows.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
small_training 60
edit() { sed "$2" tiny.cfg > $1.cfg; } # edit <name> <sed script>: line 1 of tiny.cfg is its [net]
edit overflows '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=7\ngrowth_factor=64'
header=iteration,loss,avg_loss,learning_rate,scale,found_inf,grad_norm,images_per_second,load_seconds,train_seconds,peak_memory_mb

# Columns 1 to 7 are of the training; the rest are of the machine.
steps_of() { cut -d, -f1-7 "$1"; }

# turns <n> <command...>: answers "go on" to "ready" and to n - 1 steps, then "stop"; what was said is in turns.out
turns() {
    local n=$1
    shift
    { head -c "$n" /dev/zero | tr '\0' g; printf s; } > turns.in
    status=0
    "$@" -turns 7,8 > out 2> err 7< turns.in 8> turns.out || status=$?
}

# Every printed step has its row, with the numbers that are printed.
check_rows() { # check_rows <log>, of the training in out
    [ "$(head -n 1 "$1")" = "$header" ] || fail "$name: the header is $(head -n 1 "$1")"
    sed -n 's/^\([0-9]*\)\(, [0-9.]*\)\?: \(.*\), \(.*\) avg, \(.*\) rate, .*/\1,\3,\4,\5/p' out | sed 's/-nan/nan/g' > lines.txt
    [ -s lines.txt ] || fail "$name: no steps in: $(tail -n 3 out)"
    [ "$(wc -l < lines.txt)" = $(($(wc -l < "$1") - 1)) ] || fail "$name: $(wc -l < lines.txt) lines, $(wc -l < "$1") rows and header"
    # Lines have six decimals, rows all that a float has.
    tail -n +2 "$1" | paste -d, - lines.txt | awk -F, '
        function same(a, b) { return a == b || (a - b) ^ 2 <= (6e-7 + 2e-7 * (a < 0 ? -a : a)) ^ 2 }
        $1 != $12 || !same($2, $13) || !same($3, $14) || !same($4, $15) { print; bad = 1 }
        END { exit bad }' > differ.txt || fail "$name: row and line differ: $(head -n 3 differ.txt)"
}

rows_tell_what_lines_say() {
    name='rows'
    rm -f log.csv
    status_of "$DARKNET" detector train tiny.data overflows.cfg -seed 3 -log log.csv
    [ $status = 0 ] || fail "$name: status $status: $(tail -n 3 err)"
    check_rows log.csv
    # What is appended: the scale of the step, all skipped so far, images a second.
    sed -n 's/^[0-9]*: .* images, //p' out | sed 's/scale \([^ ]*\), \([0-9]*\) skipped, .* images\/s/\1 \2/' > said.txt
    tail -n +2 log.csv | awk -F, '{ skipped += $6; printf "%g %d\n", $5, skipped }' > logged.txt
    cmp said.txt logged.txt || fail "$name: $(diff said.txt logged.txt | head -n 5)"
    [ "$(tail -n 1 said.txt | cut -d' ' -f2)" -gt 3 ] || fail "$name: hardly a step was skipped: the test is broken"
    # images/s is what the row says, and what its seconds give; those are the printed ones.
    sed -n 's/^[0-9]*: .* skipped, \(.*\) images\/s$/\1/p' out > speed.txt
    tail -n +2 log.csv | awk -F, '{ printf "%.1f\n", $8 }' | paste -d' ' - speed.txt |
        awk '$1 - $2 > .11 || $2 - $1 > .11 { bad = 1 } END { exit bad || !NR }' || fail "$name: images/s"
    tail -n +2 log.csv | awk -F, '{ x = 4 / ($9 + $10); if ($8 > x * 1.01 || $8 < x * .99) bad = 1 } END { exit bad || !NR }' ||
        fail "$name: images/s is not 4 images by its seconds"
    paste -d, <(tail -n +2 log.csv) <(sed -n 's/^Loaded: \(.*\) seconds/\1/p' out) <(sed -n 's/^[0-9]*: .* rate, \(.*\) seconds, .*/\1/p' out) |
        awk -F, '{ sum += $9 - $12; both += $10 - $13 } END { exit NR < 60 || sum / NR > .01 || sum < -.01 || both / NR > .01 || both / NR < -.01 }' ||
        fail "$name: seconds are not those printed"
    # A norm for each step that was taken, none for a skipped one; memory as large as the process's peak at the end.
    awk -F, 'NR > 1 && ($6 == 1) != ($7 == "") { bad = 1 } END { exit bad }' log.csv || fail "$name: grad_norm"
    local peak logged
    peak=$(sed -n 's/.* peak_rss_mb=\([0-9]*\).*/\1/p' err)
    logged=$(tail -n 1 log.csv | cut -d, -f11 | cut -d. -f1)
    [ "$logged" -ge "$((peak - 1))" ] && [ "$logged" -le "$((peak + 8))" ] || fail "$name: peak memory $logged MB, summary $peak MB"
    [ "$(tail -n +2 log.csv | cut -d, -f6 | grep -c 1)" = "$(sed -n 's/.* skipped=\([0-9]*\).*/\1/p' err)" ] || fail "$name: skipped"
}

# Without AMP: the same rows, the same lines as ever.
log_without_amp() {
    name='-amp off'
    rm -f log.csv
    status_of "$DARKNET" detector train tiny.data tiny.cfg -amp off -seed 3 -log log.csv
    [ $status = 0 ] || fail "$name: status $status"
    check_rows log.csv
    [ "$(wc -l < log.csv)" = 61 ] || fail "$name: $(wc -l < log.csv) lines"
    [ "$(tail -n +2 log.csv | cut -d, -f5-7 | sort -u)" = 1,0, ] || fail "$name: $(tail -n 1 log.csv)"
    ! grep -q 'skipped\|images/s' out || fail "$name: $(grep 'skipped\|images/s' out | head -n 1)"
    grep -q '^60: .* seconds, 240 images$' out || fail "$name: $(tail -n 1 out)"
    ! grep -q 'amp:' err || fail "$name: $(grep amp: err)"
}

# same_end <what> <.cfg> <n>: told to stop after step n of the run, in turns; then to the end.
same_end() {
    name="$1, stopped after $3"
    local cfg=$2 n=$3 base=${2%.cfg}
    rm -rf backup whole
    mkdir backup
    turns 1000 "$DARKNET" detector train tiny.data $cfg -seed 3 -log whole.csv
    [ $status = 0 ] || fail "$name: the whole training ended with status $status: $(tail -n 3 err)"
    { echo ready; tail -n +2 whole.csv; } | cmp - turns.out || fail "$name: what it said in turns is not its log"
    mv backup whole
    mkdir backup
    rm -f part.csv
    turns "$n" "$DARKNET" detector train tiny.data $cfg -seed 3 -log part.csv
    [ $status = 0 ] || fail "$name: stopped with status $status: $(tail -n 3 err)"
    [ "$(wc -l < part.csv)" = $((n + 1)) ] || fail "$name: $(wc -l < part.csv) lines in the log of $n steps"
    [ -f backup/$base.backup ] && [ -f backup/$base.backup.amp ] || fail "$name: no backup: $(ls backup)"
    [ ! -e backup/${base}_final.weights ] || fail "$name: final weights of a training that was stopped"
    [ "${4:-}" != skipped ] || [ "$(tail -n 1 part.csv | cut -d, -f6)" = 1 ] || fail "$name: not skipped: the test is broken"
    status_of "$DARKNET" detector train tiny.data $cfg backup/$base.backup -seed 3 -log part.csv
    [ $status = 0 ] || fail "$name: the resumed training ended with status $status: $(tail -n 3 err)"
    cmp whole/${base}_final.weights backup/${base}_final.weights || fail "$name: other weights than without the stop"
    cmp whole/${base}_final.weights.amp backup/${base}_final.weights.amp || fail "$name: another sidecar than without the stop"
    cmp <(steps_of whole.csv) <(steps_of part.csv) || fail "$name: another log: $(diff <(steps_of whole.csv) <(steps_of part.csv) | head -n 4)"
    no_leftovers
    echo "same end: $name"
}

stopped_in_turns() {
    local first
    same_end bf16 tiny.cfg 17
    grep -q '^log: part.csv goes on behind iteration 17; 0 rows' err || fail "$name: $(grep log: err)"
    same_end overflows overflows.cfg 1 skipped
    first=$(awk -F, 'NR > 20 && $6 == 1 { print NR - 1; exit }' whole.csv)
    same_end overflows overflows.cfg $first skipped
    same_end overflows overflows.cfg $((first + 1))
    sed 's/batch=4/batch=1/; s/subdivisions=2/subdivisions=1/; s/^random=0/random=1/; s/max_batches=.*/max_batches=26/
        0,/stride=1/s//stride=8/
        /^\[dropout\]/,/^$/d' tiny.cfg > random.cfg # Darknet cannot resize a dropout
    same_end random=1 random.cfg 14
}

sed -i '1a amp=1' tiny.cfg
rows_tell_what_lines_say
log_without_amp
stopped_in_turns
