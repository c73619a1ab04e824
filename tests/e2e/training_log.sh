# What a training says of its steps, in its lines and with -log; and how it is stopped: by those it takes
# turns with, by Ctrl-C. A training that was stopped and gone on with ends in the very bytes of one that was
# not, and its log in the same rows.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
small_training 60
train=("$DARKNET" detector train tiny.data tiny.cfg -amp bf16 -seed 3)
edit overflows '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=7\ngrowth_factor=64'
header=iteration,loss,avg_loss,learning_rate,scale,found_inf,grad_norm,images_per_second
header+=,load_seconds,train_seconds,peak_memory_mb,time,wire,spike

# Columns 1 to 7 are of the training; the rest are of the machine.
steps_of() { cut -d, -f1-7 "$1"; }

# turns <n> <command...>: answers "go on" to "ready" and to n - 1 steps, then "stop"; what
# was said is in turns.out
turns() {
    local n=$1
    shift
    rm -f turns.in
    { head -c "$n" /dev/zero | tr '\0' g; printf s; } > turns.in
    status=0
    DARKNET_AMP_TURNS=7,8 "$@" > out 2> err 7< turns.in 8> turns.out || status=$?
}

# Every printed step has its row, with the numbers that are printed.
check_rows() { # check_rows <log>, of the training in out
    [ "$(head -n 1 "$1")" = "$header" ] || fail "$name: the header is $(head -n 1 "$1")"
    sed -n 's/^\([0-9]*\)\(, [0-9.]*\)\?: \(.*\), \(.*\) avg, \(.*\) rate, .*/\1,\3,\4,\5/p' out |
        sed 's/-nan/nan/g' > lines.txt
    [ -s lines.txt ] || fail "$name: no steps in: $(tail -n 3 out)"
    [ "$(wc -l < lines.txt)" = $(($(wc -l < "$1") - 1)) ] ||
        fail "$name: $(wc -l < lines.txt) lines, $(wc -l < "$1") rows and header"
    # Lines have six decimals, rows all that a float has.
    tail -n +2 "$1" | paste -d, - lines.txt | awk -F, '
        function same(a, b) { return a == b || (a - b) ^ 2 <= (6e-7 + 2e-7 * (a < 0 ? -a : a)) ^ 2 }
        $1 != $15 || !same($2, $16) || !same($3, $17) || !same($4, $18) { print; bad = 1 }
        END { exit bad }' > differ.txt || fail "$name: row and line differ: $(head -n 3 differ.txt)"
}

rows_tell_what_lines_say() {
    name='rows'
    rm -f log.csv
    succeeds "$DARKNET" detector train tiny.data overflows.cfg -seed 3 -log log.csv
    check_rows log.csv
    # What is appended: the scale of the step, all skipped so far, images a second.
    sed -n 's/^[0-9]*: .* images, //p' out |
        sed 's/scale \([^ ]*\), \([0-9]*\) skipped, .* images\/s/\1 \2/' > said.txt
    tail -n +2 log.csv | awk -F, '{ skipped += $6; printf "%g %d\n", $5, skipped }' > logged.txt
    cmp said.txt logged.txt || fail "$name: $(diff said.txt logged.txt | head -n 5)"
    [ "$(tail -n 1 said.txt | cut -d' ' -f2)" -gt 3 ] ||
        fail "$name: hardly a step was skipped: the test is broken"
    # images/s is what the row says; those are the printed ones.
    sed -n 's/^[0-9]*: .* skipped, \(.*\) images\/s$/\1/p' out > speed.txt
    tail -n +2 log.csv | awk -F, '{ printf "%.1f\n", $8 }' | paste -d' ' - speed.txt |
        awk '$1 - $2 > .11 || $2 - $1 > .11 { bad = 1 } END { exit bad || !NR }' || fail "$name: images/s"
    # A norm for each step that was taken, none for a skipped one.
    awk -F, 'NR > 1 && ($6 == 1) != ($7 == "") { bad = 1 } END { exit bad }' log.csv ||
        fail "$name: grad_norm"
    [ "$(tail -n +2 log.csv | cut -d, -f6 | grep -c 1)" = \
        "$(sed -n 's/.* skipped=\([0-9]*\).*/\1/p' err)" ] || fail "$name: skipped"
}

# `amp log` counts what the log of the training before holds, and draws it.
amp_log_counts_what_is_there() {
    name='amp log'
    local steps skipped
    steps=$(tail -n +2 log.csv | wc -l)
    skipped=$(tail -n +2 log.csv | cut -d, -f6 | grep -c 1)
    succeeds "$DARKNET" amp log log.csv -svg log.svg
    holds out "^log.csv: $steps steps, iterations 0 to "
    holds out "^  skipped steps   $skipped of $steps "
    holds log.svg '<polyline'
}

# Without AMP: the same rows, the same lines as ever.
log_without_amp() {
    name='-amp off'
    rm -f log.csv
    succeeds "$DARKNET" detector train tiny.data tiny.cfg -amp off -seed 3 -log log.csv
    check_rows log.csv
    [ "$(wc -l < log.csv)" = 61 ] || fail "$name: $(wc -l < log.csv) lines"
    [ "$(tail -n +2 log.csv | cut -d, -f5-7 | sort -u)" = 1,0, ] || fail "$name: $(tail -n 1 log.csv)"
    ! grep -q 'skipped\|images/s' out || fail "$name: $(grep 'skipped\|images/s' out | head -n 1)"
    holds out '^60: .* seconds, 240 images$'
    ! grep -q 'amp:' err || fail "$name: $(grep amp: err)"
}

# same_end <what> <.cfg> <n>: a training by $command is stopped after step n of the run, in turns; then to the
# end.
command='detector train tiny.data'
same_end() {
    name="$1, stopped after $3"
    local cfg=$2 n=$3 base=${2%.cfg} final=${2%.cfg}_final.weights file
    case $command in classifier*) final=$base.weights ;; esac
    fresh whole whole.csv
    turns 1000 "$DARKNET" $command $cfg -seed 3 -log whole.csv
    [ $status = 0 ] || fail "$name: the whole training ended with status $status: $(tail -n 3 err)"
    { echo ready; tail -n +2 whole.csv; } | cmp - turns.out ||
        fail "$name: what it said in turns is not its log"
    check_rows whole.csv
    mv backup whole
    mkdir backup
    rm -f part.csv
    turns "$n" "$DARKNET" $command $cfg -seed 3 -log part.csv
    [ $status = 0 ] || fail "$name: stopped with status $status: $(tail -n 3 err)"
    [ "$(wc -l < part.csv)" = $((n + 1)) ] || fail "$name: $(wc -l < part.csv) lines in the log of $n steps"
    [ -f backup/$base.backup ] && [ -f backup/$base.backup.amp ] || fail "$name: no backup: $(ls backup)"
    [ ! -e backup/$final ] || fail "$name: final weights of a training that was stopped"
    [ "${4:-}" != skipped ] || [ "$(tail -n 1 part.csv | cut -d, -f6)" = 1 ] ||
        fail "$name: not skipped: the test is broken"
    cp backup/$base.backup stop.backup
    cp backup/$base.backup.amp stop.backup.amp
    succeeds "$DARKNET" $command $cfg backup/$base.backup -seed 3 -log part.csv
    for file in $final $final.amp; do
        cmp whole/$file backup/$file || fail "$name: another $file than without the stop"
    done
    cmp <(steps_of whole.csv) <(steps_of part.csv) ||
        fail "$name: another log: $(diff <(steps_of whole.csv) <(steps_of part.csv) | head -n 4)"
    no_leftovers
    # Once more from there, as if killed in between.
    succeeds "$DARKNET" $command $cfg stop.backup -seed 3 -log part.csv
    cmp <(steps_of whole.csv) <(steps_of part.csv) || fail "$name: another log, resumed again"
    echo "same end: $name"
}

stopped_in_turns() {
    local first
    edit half "1a amp=1"
    same_end bf16 half.cfg 17
    holds err '^log: part.csv continues after iteration 17; 43 rows'
    same_end overflows overflows.cfg 1 skipped
    first=$(awk -F, 'NR > 20 && $6 == 1 { print NR - 1; exit }' whole.csv)
    same_end overflows overflows.cfg $first skipped
    same_end overflows overflows.cfg $((first + 1))
    random_sizes 26 half.cfg | sed '0,/stride=1/s//stride=8/' > random.cfg
    same_end random=1 random.cfg 14
}

# A kill at any moment: rows that the backup does not know of are dropped, a torn last one too.
killed_and_resumed() {
    name=killed
    edit long '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=1\ngrowth_factor=4
        s/max_batches=.*/max_batches=210/' # hardly a step without skipped ones behind it
    fresh whole.csv part.csv
    succeeds "$DARKNET" detector train tiny.data long.cfg -seed 3 -log whole.csv
    [ "$(grep -c '^100,' whole.csv)" -gt 1 ] ||
        fail "$name: no steps skipped right behind the backup: the test is broken"
    fresh
    status_of trapped TRAP_SAVE=3 "$DARKNET" detector train tiny.data long.cfg -seed 3 -log part.csv
    [ $status = 137 ] || fail "$name: not killed but status $status"
    cmp <(steps_of whole.csv | head -n "$(wc -l < part.csv)") <(steps_of part.csv) ||
        fail "$name: the log of a killed training is another"
    printf '201,4.5,7.' >> part.csv
    succeeds "$DARKNET" detector train tiny.data long.cfg backup/long.backup -seed 3 -log part.csv
    says 'log: part.csv continues after iteration 100; '
    cmp <(steps_of whole.csv) <(steps_of part.csv) ||
        fail "$name: another log: $(diff <(steps_of whole.csv) <(steps_of part.csv) | head -n 4)"
    # A training from the start replaces the log of the one before.
    status_of "$DARKNET" detector train tiny.data long.cfg -seed 3 -log part.csv
    cmp <(steps_of whole.csv) <(steps_of part.csv) || fail "$name: another log from the start"
}

# in_background <command...>: the program's id in $program; answers to it go to descriptor 7
in_background() {
    rm -f turns.in turns.out err
    mkfifo turns.in
    exec 7<> turns.in
    env --default-signal=INT,TERM,HUP DARKNET_AMP_TURNS=7,8 "$@" > out 2> err < /dev/null 8> turns.out &
    program=$!
    patiently says_in turns.out ready
}
says_in() { grep -qs -- "$2" "$1"; }
patiently() { # patiently <command...>: until it succeeds, ten minutes at most
    for _ in {1..12000}; do
        if "$@"; then return; fi
        sleep .05
    done
    kill -s KILL $program
    fail "$name: waited in vain for: $*"
}
steps_are() { [ "$(wc -l < turns.out)" -gt "$1" ]; } # steps_are <n>: so many were told
status_of_it() {
    status=0
    wait $program || status=$?
    exec 7>&-
}

interrupted() { # interrupted <signal> <status>
    name="interrupted by $1"
    fresh part.csv
    in_background "${train[@]}" -log part.csv
    printf ggggg >&7
    patiently steps_are 5
    kill -s $1 $program # it waits for its turn: the first goes to a program that is in the middle of a loop
    sleep .2
    printf g >&7
    status_of_it
    [ $status = $2 ] || fail "$name: status $status: $(tail -n 3 err)"
    says 'amp: stopping after this step, with a backup' \
        'amp: stopped after step 5; to continue, give backup/tiny.backup to the same command'
    [ "$(wc -l < part.csv)" = 6 ] && [ ! -e backup/tiny_final.weights ] || fail "$name: $(cat part.csv)"
    status_of "${train[@]}" backup/tiny.backup -log part.csv
    cmp backup/tiny_final.weights whole.weights || fail "$name: other weights than without the stop"
    cmp <(steps_of whole.csv) <(steps_of part.csv) || fail "$name: another log"
    no_leftovers
}

# A training from the start, where NAME.backup is of a later step: stopped, it leaves that file alone.
stopped_it_keeps_a_later_backup() {
    name='a later backup'
    fresh part.csv
    turns 4 "${train[@]}"
    cp backup/tiny.backup later.backup
    in_background "${train[@]}" -log part.csv
    printf gg >&7
    patiently steps_are 2
    kill -s INT $program
    sleep .2
    printf g >&7
    status_of_it
    says 'amp: this training begins at step 0, but backup/tiny.backup is from a later step; to continue' \
        'amp: stopped after step 2; to continue, give backup/tiny_2.weights to the same command'
    cmp backup/tiny.backup later.backup || fail "$name: it was replaced"
    succeeds "${train[@]}" backup/tiny_2.weights -log part.csv
    cmp backup/tiny_final.weights whole.weights || fail "$name: other weights than without the stop"
    cmp <(steps_of whole.csv) <(steps_of part.csv) || fail "$name: another log"
}

by_hand() {
    fresh whole.csv
    status_of "${train[@]}" -log whole.csv
    mv backup/tiny_final.weights whole.weights
    interrupted INT 130
    interrupted TERM 143
    interrupted HUP 129
    stopped_it_keeps_a_later_backup
    name='interrupted twice'
    fresh part.csv
    in_background "${train[@]}" -log part.csv
    printf gg >&7
    patiently steps_are 2
    kill -s INT $program
    patiently says_in err 'stopping after this step'
    kill -s TERM $program
    status_of_it
    [ $status = 143 ] && [ -z "$(ls backup)" ] && ! grep -q 'stopped after' err ||
        fail "$name: status $status: $(ls backup) $(tail -n 1 err)"
    name='interrupted without AMP'
    in_background "$DARKNET" detector train tiny.data tiny.cfg -amp off -seed 3
    printf g >&7
    patiently steps_are 1
    kill -s INT $program
    status_of_it
    [ $status = 130 ] && [ -z "$(ls backup)" ] && ! grep -q 'stopping' err ||
        fail "$name: status $status: $(ls backup) $(tail -n 1 err)"
    name='started with signals ignored'
    rm part.csv
    (trap '' INT TERM HUP
     exec "${train[@]}" -log part.csv) > out 2> err &
    program=$!
    patiently test -s part.csv
    kill -s INT $program || true # it may have ended by now
    status_of_it
    [ $status = 0 ] && cmp -s backup/tiny_final.weights whole.weights ||
        fail "$name: status $status: $(tail -n 1 err)"
}

# As behind `| head -1`: a pipe that nobody reads any more is stdout, and then stderr as well.
nobody_reads() {
    local stream
    mkfifo unread
    exec 6<> unread 5> unread 6>&- 7> err
    for stream in 7 5; do
        name="nobody reads what is printed; stderr: $stream"
        fresh part.csv
        status=0
        env --default-signal=PIPE "${train[@]}" -log part.csv < /dev/null >&5 2>&$stream || status=$?
        [ $status = 0 ] && cmp backup/tiny_final.weights whole.weights || fail "$name: status $status"
        cmp <(steps_of whole.csv) <(steps_of part.csv) || fail "$name: another log"
    done
    exec 5>&- 7>&-
}

# Told to stop before the first step, and after the last; without AMP; by the other side's end.
other_stops() {
    name='stopped before the first step'
    fresh
    turns 0 "${train[@]}"
    [ $status = 0 ] && [ -z "$(ls backup)" ] && [ "$(cat turns.out)" = ready ] ||
        fail "$name: status $status: $(ls backup)"
    name='stopped after the last step'
    turns 60 "${train[@]}"
    [ $status = 0 ] && cmp backup/tiny_final.weights whole.weights ||
        fail "$name: status $status: $(ls backup)"
    [ ! -e backup/tiny.backup ] || fail "$name: it was over, and stopped"
    name='stopped without AMP'
    fresh
    turns 7 "$DARKNET" detector train tiny.data tiny.cfg -amp off -seed 3
    [ $status = 0 ] && [ "$(ls backup)" = tiny.backup ] || fail "$name: status $status: $(ls backup)"
    [ "$(wc -l < turns.out)" = 8 ] || fail "$name: $(cat turns.out)"
    name='nobody answers'
    fresh
    status=0
    printf gggg > turns.in
    DARKNET_AMP_TURNS=7,8 "${train[@]}" > out 2> err 7< turns.in 8> turns.out || status=$?
    [ $status = 0 ] && [ -f backup/tiny.backup.amp ] || fail "$name: status $status: $(ls backup)"
    name='the backup cannot be written'
    fresh
    turns 7 trapped TRAP_GONE=1 "${train[@]}"
    [ $status = 1 ] || fail "$name: status $status"
    says 'could not be written' 'training ends here'
    mv gone backup
}

# A classifier: its own loop, and files of epochs.
a_classifier() {
    name=classifier
    two_kinds 3
    printf '%s\n' '[net]' batch=4 subdivisions=2 width=16 height=16 channels=3 min_crop=16 max_crop=20 \
        learning_rate=0.001 momentum=0.9 \
        max_batches=50 '[amp]' dtype=fp16 init_scale=16777216 growth_interval=7 growth_factor=1024 \
        '[convolutional]' batch_normalize=1 filters=6 size=3 stride=2 pad=1 activation=leaky \
        '[connected]' output=2 activation=linear '[softmax]' > kinds.cfg
    command='classifier train kinds.data'
    same_end classifier kinds.cfg 1
    same_end classifier kinds.cfg 29
    holds out ' skipped, .* images/s$'
}

refused() { # refused <expression> <arguments...>: status 1, a line, nothing trained or changed
    fresh
    ends_saying "$1" "$DARKNET" detector train tiny.data tiny.cfg -amp bf16 "${@:2}"
    ! grep -q '^1: ' out && [ -z "$(ls backup)" ] || fail "$name: $1: trained"
}

# The line of the second names the first; a kill lets go, and what it left does not hold anybody.
one_training_of_a_name() {
    local first second
    sed 's/backup=.*/backup=held/' tiny.data > held.data
    mkdir held
    for first in bf16 off; do
        name="a training with -amp $first holds its backup folder"
        in_background "$DARKNET" detector train held.data tiny.cfg -amp $first -seed 3
        [ "$(ls -A held)" = .tiny.lock ] || fail "$name: $(ls -A held)"
        for second in bf16 off; do
            status_of "$DARKNET" detector train held.data tiny.cfg -amp $second -seed 3
            [ $status = 1 ] && ! grep -q '^1: ' out || fail "$name: $second: status $status"
            says "amp: process $program on $(uname -n) is saving to held/tiny; "
        done
        edit other ''
        succeeds "$DARKNET" detector train held.data other.cfg -amp $second -seed 3
        kill -s KILL $program
        status_of_it
        [ -e held/.tiny.lock ] || fail "$name: the test is broken: $(ls -A held)"
        succeeds "$DARKNET" detector train held.data tiny.cfg -amp $first -seed 3
        status_of "$DARKNET" detector train held.data tiny.cfg gone.weights -amp bf16
        [ $status = 1 ] && [ ! -e held/.tiny.lock ] || fail "$name: left behind: $(ls -A held)"
        rm held/*
    done
}

# Seconds are not measured by the machine's date; and where no clock goes on, no rate is printed.
clocks_run_back() {
    cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/clocks.c" -o clocks.so -ldl
    name='the date runs backwards'
    status_of preloaded clocks.so CLOCKS=back "${train[@]}"
    [ $status = 0 ] && ! grep -a -e '-[0-9.]* seconds' out || fail "$name: status $status"
    name='all clocks run backwards'
    rm -f back.csv
    status_of preloaded clocks.so CLOCKS=back,monotonic "${train[@]}" -log back.csv
    [ $status = 0 ] && ! grep -a images/s out || fail "$name: status $status"
    [ "$(tail -n +2 back.csv | cut -d, -f8-10 | sort -u)" = ,0,0 ] || fail "$name: $(tail -n 1 back.csv)"
    says 'images_per_second=nan compute_images_per_second=nan'
}

# A training whose steps wait for their images says so once; one whose steps do not says nothing.
slow_loading_is_told() {
    local rates='the loaders (cores: [0-9]*) load [0-9.]* images\/s and the step could use [0-9.]*'
    local help='what helps: cache=disk in the .data file, more cores, smaller photos'
    for waits in 0 1; do
        name="waiting $waits seconds for images"
        rm -f waits.csv
        succeeds preloaded clocks.so CLOCKS="waits $waits" "$DARKNET" detector train tiny.data tiny.cfg \
            -amp bf16 -seed 3 -log waits.csv
        [ "$(grep -c "^amp: loading is slower than computing: $rates; $help$" err)" = $waits ] ||
            fail "$name: $(grep loading err)"
    done
    "$DARKNET" amp log waits.csv > out
    holds out '^  images/s .* 9[0-9.]* % of the time was spent waiting for images$'
}

# (What a row may not be is test_training_log.c's.)
bad_files() {
    name='bad files'
    refused 'log: cannot write no/folder.csv: ' -log no/folder.csv
    cp tiny.data notes.csv
    { head -n 3 whole.csv; echo '3,not a number'; } > torn.csv
    cksum notes.csv torn.csv > before
    refused 'log: notes.csv exists and is not a training log' -log notes.csv
    refused 'log: torn.csv:4: ' -log torn.csv
    cksum notes.csv torn.csv | cmp - before || fail "$name: they were changed"
    exec 9>> held.csv
    flock 9
    refused 'log: cannot write held.csv: another training is writing it' -log held.csv
    exec 9>&-
    [ ! -s held.csv ] || fail "$name: a file that another holds was written"
    : > empty.csv
    status_of "${train[@]}" -log empty.csv
    [ $status = 0 ] && [ "$(wc -l < empty.csv)" = 61 ] ||
        fail "$name: an empty file: status $status, $(wc -l < empty.csv) lines"
}

# The disk fills: one line, no torn row, and training continues.
full_disk() {
    name='full disk'
    edit many 's/max_batches=.*/max_batches=700/'
    fresh whole
    status_of "$DARKNET" detector train tiny.data many.cfg -amp bf16 -seed 3
    mv backup whole
    mkdir backup
    # Files may grow to 40 kB: more than the weights are, less than 700 rows.
    status=0
    ( ulimit -f 40
      "$DARKNET" detector train tiny.data many.cfg -amp bf16 -seed 3 -log full.csv < /dev/null 2>&1 \
          > /dev/null | cat
      exit ${PIPESTATUS[0]} ) > pipe || status=$?
    mv pipe err
    [ $status = 0 ] || fail "$name: status $status: $(tail -n 3 err)"
    [ "$(stat -c %s whole/many_final.weights.amp)" -lt 40960 ] ||
        fail "$name: the sidecar is too large: the test is broken"
    [ "$(grep -c '^log: cannot write full.csv: ' err)" = 1 ] || fail "$name: $(grep '^log' err)"
    says '; training continues' 'steps=700 '
    cmp whole/many_final.weights backup/many_final.weights || fail "$name: a full disk changes the training"
    [ "$(stat -c %s full.csv)" -le 40960 ] && [ "$(stat -c %s full.csv)" -gt 40000 ] ||
        fail "$name: $(stat -c %s full.csv) bytes"
    [ "$(tail -c 1 full.csv | od -An -c | tr -d ' ')" = '\n' ] ||
        fail "$name: a torn row: $(tail -n 1 full.csv)"
    tail -n +2 full.csv | awk -F, 'NF != 14 || $1 <= last { exit 1 } { last = $1 }' ||
        fail "$name: rows are damaged"
}

# Options stand anywhere, also before the command; other commands keep theirs.
command_line() {
    name='command line'
    fresh log.csv
    status_of "$DARKNET" -nogpu detector -thresh .3 -log log.csv train tiny.data tiny.cfg -amp bf16 -seed 3
    [ $status = 0 ] && [ "$(wc -l < log.csv)" = 61 ] || fail "$name: status $status: $(tail -n 3 err)"
    status_of "$DARKNET" detector map tiny.data tiny.cfg backup/tiny_final.weights -log other.csv
    [ $status = 1 ] && [ ! -e other.csv ] || fail "$name: detector map: status $status"
    says 'detector map: -log: unknown option'
}

rows_tell_what_lines_say
amp_log_counts_what_is_there
log_without_amp
stopped_in_turns
killed_and_resumed
by_hand
nobody_reads
other_stops
command_line
full_disk
one_training_of_a_name
clocks_run_back
slow_loading_is_told
bad_files
a_classifier
