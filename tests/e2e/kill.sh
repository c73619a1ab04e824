# One training killed (SIGKILL) KILLS times (default 30), half of them at any moment and half within a
# save, at each of its calls in turn; each time it goes on from its newest whole backup, and ends in the
# very bytes of a training that was left alone. After each kill every file that is there is whole. SEED
# makes the moments other ones.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
kills=${KILLS:-30}
[ -z "${SANITIZERS:-}" ] || kills=${KILLS:-6}
RANDOM=${SEED:-$((kills * 7 + 11))}
echo "kills: $kills, SEED=${SEED:-$((kills * 7 + 11))}"
name=kill
small_training 320
sed -i '1a amp=1\ndtype=fp16\ninit_scale=16777216\ngrowth_interval=40' tiny.cfg
train=(detector train tiny.data tiny.cfg)

start=$(date +%s%N)
succeeds trapped TRAP_LOG="$PWD/calls" "$DARKNET" "${train[@]}" -seed 3
whole_ms=$((($(date +%s%N) - start) / 1000000))
mv backup whole
grep -q 'skipped the step after step .* inf' err || fail 'no step was skipped: the test is broken'

# One save, call by call (in which order is test_sidecar_kill.c's).
awk '/^after rename/ { print; exit } { print }' calls > save.calls
per_save=$(wc -l < save.calls)
echo "a training of $whole_ms ms; a save is $per_save calls: $(tr '\n' ' ' < save.calls)"

# The first save of all, and that of a snapshot, have no older file: killed when both files are whole, they
# are put into place by the training that goes on; killed before, nothing of a snapshot
# stays, and a line says so. Of a snapshot the training that goes on from NAME.backup, which was saved just
# before it, saves it then.
before_rename=$(grep -n '^rename sidecar' save.calls | cut -d: -f1)
name='killed before the first rename'
mkdir backup
status_of trapped TRAP_KILL=$before_rename "$DARKNET" "${train[@]}" -seed 3
[ $status = 137 ] && [ "$(ls backup | tr '\n' ' ')" = 'tiny.backup.amp.new tiny.backup.new ' ] ||
    fail "$name: status $status, $(ls backup)"
mv backup first_save
mkdir backup
status_of trapped TRAP_KILL=$((per_save + before_rename)) "$DARKNET" "${train[@]}" -seed 3
[ -e backup/tiny_100.weights.new ] && [ ! -e backup/tiny_100.weights ] || fail "$name: $(ls backup)"
status_of "$DARKNET" "${train[@]}" backup/tiny.backup -seed 3
says 'amp: resumed from backup/tiny.backup.amp: step 100,' \
    'amp: backup/tiny_100.weights.amp.new: completed a save that was killed'
diff -r whole backup || fail "$name: other files than those of a training left alone"
rm -r backup
cp -r first_save backup
status_of "$DARKNET" "${train[@]}" backup/tiny.backup -seed 3
says 'amp: backup/tiny.backup.amp.new: completed a save that was killed' \
    'amp: resumed from backup/tiny.backup.amp: step 100,'
name='killed while a snapshot is written'
rm -r backup
mkdir backup
before_flush=$(grep -n '^fsync' save.calls | head -n 1 | cut -d: -f1)
status_of trapped TRAP_KILL=$((per_save + before_flush)) "$DARKNET" "${train[@]}" -seed 3
for file in tiny_200 tiny_last tiny_ema; do : > backup/$file.weights.amp.new; done
: > backup/tiny_mine.weights.new # nothing of a training's
status_of "$DARKNET" "${train[@]}" backup/tiny.backup -seed 3
says 'amp: backup/tiny_100.weights.new: removed, since a training was killed'
rm backup/tiny_mine.weights.new || fail "$name: it removes files that are not its own"
says 'amp: backup/tiny_100.weights, which belongs to the same step as backup/tiny.backup, is missing'
diff -r whole backup || fail "$name: other files than those of a training left alone"
for before in none older; do
    name="killed between a backup and its snapshot, of which there is $before"
    rm -r backup
    mkdir backup
    if [ $before = older ]; then touch -d '1 hour ago' backup/tiny_100.weights; fi
    status_of trapped TRAP_KILL=$per_save "$DARKNET" "${train[@]}" -seed 3
    [ $status = 137 ] && [ -e backup/tiny.backup ] || fail "$name: status $status, $(ls backup)"
    rm -rf moved
    cp -r backup moved
    status_of "$DARKNET" "${train[@]}" backup/tiny.backup -seed 3
    diff -r whole backup || fail "$name: other files than those of a training left alone"
done
name='another file of the same step'
rm backup/tiny_100.weights backup/tiny_100.weights.amp
status_of "$DARKNET" "${train[@]}" moved/tiny.backup -seed 3
[ $status = 0 ] && [ ! -e backup/tiny_100.weights ] || fail "$name: status $status, $(ls backup)"
rm -r backup moved

# The program itself says whether the pair FILE is whole: it reads it, saves what it read, and would refuse a
# sidecar that is not FILE's. What a killed save left goes with it.
sed 's/max_batches=.*/max_batches=1/' tiny.cfg > check.cfg
sed 's/backup=.*/backup=checked/' tiny.data > check.data
is_whole() {
    rm -rf checked
    mkdir checked
    local file=$1 part
    for part in "$file" "$file.amp" "$file.new" "$file.amp.new"; do
        if [ -e "$part" ]; then cp "$part" checked/it"${part#"$file"}"; fi
    done
    name="after kill $kill, $file"
    succeeds "$DARKNET" detector train check.data check.cfg checked/it -seed 3
    says 'amp: resumed from checked/it.amp: step '
    cmp checked/it checked/check_final.weights || fail "after kill $kill $file is not whole"
}

# Whether all of the first save is on the disk, and none of it renamed.
is_new_pair() {
    local part
    for part in tiny.backup.new tiny.backup.amp.new; do cmp -s backup/$part first_save/$part || return 1; done
}
newest() {
    local b=backup/tiny.backup
    if [ -e $b ] || { [ -e $b.new ] && [ -e $b.amp ]; } || is_new_pair; then echo $b; fi
}

finish() { # the end of a training: as the one left alone
    local file
    for file in tiny_final.weights tiny_final.weights.amp tiny.backup tiny.backup.amp; do
        cmp "whole/$file" "backup/$file" ||
            fail "$file after $killed kills is not that of a training left alone"
    done
    if [ -e backup/tiny_final.weights.new ] || [ -e backup/tiny.backup.new ]; then
        fail "left behind: $(ls backup)"
    fi
    finished=$((finished + 1))
    fresh
}

mkdir backup
killed=0 in_save=0 finished=0 point=0
while [ $killed -lt $kills ]; do
    kill=$((killed + 1))
    from=$(newest)
    if [ $((killed % 2)) = 0 ]; then
        # at the next call of a save, in the first or the second file that is saved
        point=$((point % per_save + 1))
        status_of trapped TRAP_KILL=$((point + RANDOM % 2 * per_save)) "$DARKNET" "${train[@]}" $from -seed 3
    else
        "$DARKNET" "${train[@]}" $from -seed 3 > out 2> err < /dev/null &
        job=$!
        moment=$RANDOM # not inside $( ), where bash seeds it anew
        sleep "$(awk -v r=$moment -v t=$whole_ms 'BEGIN { print t * .7 * r / 32768 / 1000 }')"
        kill -9 $job 2> /dev/null || true
        status=0
        { wait $job || status=$?; } 2> /dev/null
    fi
    if [ $status = 0 ]; then
        finish
        continue
    fi
    [ $status = 137 ] || fail "kill $kill: status $status: $(tail -n 3 err)"
    killed=$((killed + 1))
    [ $((killed % 2)) = 0 ] || in_save=$((in_save + 1))
    for file in backup/*.weights backup/*.backup; do
        if [ -e "$file" ]; then is_whole "$file"; fi
    done
done
succeeds "$DARKNET" "${train[@]}" $(newest) -seed 3
finish
echo "$killed kills, $in_save of them within a save; $finished trainings ended as the one left alone"
