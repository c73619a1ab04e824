# A disk that is full, a file that may not grow, a folder that is not there: one clear line, training
# continues, the last good file stays and can be resumed from; status 1 if the training's last save failed.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
small_training 220
sed -i '1a adam=1' tiny.cfg # two moments: the sidecar is larger than the weights
train=(detector train tiny.data tiny.cfg)

succeeds "$DARKNET" "${train[@]}" -amp bf16 -seed 3
mv backup whole
weights=$(stat -c %s whole/tiny.backup)
sidecar=$(stat -c %s whole/tiny.backup.amp)
[ $weights -lt $((sidecar - 1024)) ] || fail "the sidecar is no larger than the weights: the test is broken"

came_to_its_end() { grep -q 'amp: summary .* steps=220 ' err ||
    fail "$name: training ended early: $(tail -n 3 err)"; }

# Saves: backup, 100, backup, 200, final.
enospc() { # enospc <trap> <what failed> <what is left>
    name=$1
    fresh
    succeeds trapped $1 "$DARKNET" "${train[@]}" -amp bf16 -seed 3
    came_to_its_end
    says "amp: $2 could not be written: " 'No space left on device' "training continues, $3"
    [ "$(grep -c 'could not be written' err)" = 1 ] || fail "$name: $(grep 'could not be written' err)"
    cmp whole/tiny_final.weights backup/tiny_final.weights || fail "$name: a failed save changes the training"
    cmp whole/tiny_final.weights.amp backup/tiny_final.weights.amp ||
        fail "$name: a failed save changes the training"
    no_leftovers
}
enospc TRAP_FULL=1 backup/tiny.backup 'nothing has been saved so far'
enospc TRAP_FULL_AMP=3 backup/tiny.backup 'the last good file is kept: backup/tiny_100.weights'
enospc TRAP_FULL=3 backup/tiny.backup 'the last good file is kept: backup/tiny_100.weights'
# The backup at 200 failed: that of 100 is as it was.
cmp backup/tiny.backup backup/tiny_100.weights || fail "$name: it was changed"
status_of "$DARKNET" "${train[@]}" backup/tiny.backup -amp bf16 -seed 3
says 'amp: resumed from backup/tiny.backup.amp: step 100,'
cmp whole/tiny_final.weights backup/tiny_final.weights || fail "$name: it does not go on as the training did"

# file_too_large <blocks of 1024 bytes>: no file may grow beyond
file_too_large() {
    name="ulimit -f $1"
    fresh
    cp whole/tiny_100.weights backup/tiny.backup
    cp whole/tiny_100.weights.amp backup/tiny.backup.amp
    ls -l --time-style=full-iso backup > before
    status=0
    ( ulimit -f $1
      status=0
      "$DARKNET" "${train[@]}" backup/tiny.backup -amp bf16 -seed 3 < /dev/null 2>&1 > /dev/null | cat
      exit ${PIPESTATUS[0]} ) > pipe || status=$?
    mv pipe err
    [ $status = 1 ] || fail "$name: status $status: $(tail -n 3 err)"
    came_to_its_end
    says 'amp: backup/tiny.backup could not be written: ' 'File too large' \
        'training continues, the last good file is kept: backup/tiny.backup' \
        'amp: backup/tiny_final.weights could not be written: ' \
        'training is over, the last good file is kept: backup/tiny.backup'
    ls -l --time-style=full-iso backup | cmp - before || fail "$name: $(ls -l backup)"
    succeeds "$DARKNET" "${train[@]}" backup/tiny.backup -amp bf16 -seed 3
    cmp whole/tiny_final.weights backup/tiny_final.weights ||
        fail "$name: what was kept does not go on as the training did"
}
# The signal that would kill is not sent to who ignores it, and is as much as ignored by darknet.
file_too_large $((weights / 2048))        # not even the weights fit
file_too_large $(((weights + 1023) / 1024)) # the sidecar does not


# gone <first save that finds no folder> <what is left> <the file that is not written>
gone() {
    name="the folder is gone at save $1"
    fresh gone
    status_of trapped TRAP_GONE=$1 "$DARKNET" "${train[@]}" -amp bf16 -seed 3
    [ $status = 1 ] || fail "$name: status $status: $(tail -n 3 err)"
    came_to_its_end
    says "amp: backup/$3 could not be written: " 'No such file or directory' \
        "training continues, $2" 'amp: backup/tiny_final.weights could not be written: '
    [ "$(grep -c 'Saving weights' err)" = $(($1 - 1)) ] || fail "$name: says that it saves"
}
gone 1 'nothing has been saved so far' tiny.backup
gone 3 'the last good file is gone as well: backup/tiny_100.weights' tiny.backup
# Without standard streams: what would be printed does not end up in files.
for amp in bf16 off; do
    name="all streams closed, -amp $amp"
    fresh
    status_of "$DARKNET" "${train[@]}" -amp $amp -seed 3
    mv backup open
    mkdir backup
    status=0
    ( exec <&- >&- 2>&-; exec "$DARKNET" "${train[@]}" -amp $amp -seed 3 -log log.csv ) || status=$?
    [ $status = 0 ] || fail "$name: status $status"
    diff -r open backup || fail "$name: other files"
    head -n 1 log.csv | grep -q '^iteration,' || fail "$name: the log begins with $(head -c 100 log.csv)"
    rm -r open log.csv
done
# A folder where the file should be: found out only at the rename.
rm -rf backup
mkdir -p backup/tiny.backup/inside
name='a folder where the file should be'
succeeds "$DARKNET" "${train[@]}" -amp bf16 -seed 3
says 'amp: backup/tiny.backup could not be written: '
cmp whole/tiny_final.weights backup/tiny_final.weights || fail "$name: other weights"
no_leftovers
