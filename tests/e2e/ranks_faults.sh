# What may go wrong with several ranks: a rank that is killed or stopped, signals, ranks that were not given
# the same, a disk that is full. No job hangs, leaves a process or half a file behind, or ends without a line;
# the last save is complete.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/ranks.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
small_training 1000000
train=(detector train tiny.data tiny.cfg -amp fp32 -seed 3)

# Each rank notes its process and then does as rank.N says, if there is such a file: a part of a shell script.
cat > rank <<'END'
#!/bin/sh
number=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
echo $$ > process.$number
if [ -e rank.$number ]; then . ./rank.$number; fi
exec "$@"
END
chmod +x rank
trap="export LD_PRELOAD=$PWD/save_trap.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0"
killed_status=137 # what the launcher ends with
mpirun --version 2>&1 | grep -q 'Open MPI' || killed_status=9
launch=(timeout -k 10 600 mpirun $mpirun_options -np 2 ./rank "$RANKS_DARKNET")

# start <name> <arguments...>: two ranks that train until something ends them; the launcher is $job
start() {
    name=$1
    shift
    fresh process.*
    : > out
    "${launch[@]}" "$@" > out 2> err < /dev/null &
    job=$!
}

# until_is <command...>: waits until it is so, or the job has ended
until_is() {
    while ! "$@"; do
        kill -0 $job 2> /dev/null || fail "$name: the job has ended: $(tail -n 5 err)"
        sleep .05
    done
}
has_steps() { [ "$(grep -ac images/s out)" -ge 20 ]; }

# A rank that was killed is gone a moment after its launcher.
wait_for_processes() {
    local file
    for file in process.*; do
        while grep -q '^State:.[^Z]' "/proc/$(cat $file)/status" 2> /dev/null; do sleep .05; done
    done
}

# ends <status>: the job does, and leaves nothing
ends() {
    status=0
    wait $job || status=$?
    [ $status = "$1" ] || fail "$name: status $status, not $1: $(tail -n 5 err)"
    wait_for_processes
    rm -f rank.?
}

# refused <text>: a job that the two ranks cannot begin; one line says so
refused() {
    start "$1" "${train[@]}"
    ends 1
    no_leftovers
    [ "$(tr -d '\0' < err | grep -ac "$1")" = 1 ] || fail "no line, or more than one, with '$1': $(cat err)"
    ! grep -q images/s out || fail "'$1': a step was made"
}

# What is saved can be gone on with, by one rank.
goes_on() {
    sed "s/max_batches=.*/max_batches=$1/" tiny.cfg > last.cfg
    sed 's/backup=.*/backup=last/' tiny.data > last.data
    mkdir -p last
    succeeds "$RANKS_DARKNET" detector train last.data last.cfg -amp fp32 -seed 3 backup/tiny.backup
    says 'amp: resumed from backup/tiny.backup.amp: step '
    rm -r last
}

# ---- the sums ----

# mpi_sums_are_made_in_the_order_of_ranks

${MPICC:-mpicc} -std=c11 -O1 -D_POSIX_C_SOURCE=200809L -I"$SOURCE_DIR/plugin" \
    "$SOURCE_DIR/tests/e2e/lib/sums_check.c" "$SOURCE_DIR"/plugin/comm/{mpi/mpi,watchdog,launched}.c \
    -lm -lpthread -o sums_check
[ "$(timeout -k 10 600 mpirun $mpirun_options -np 3 ./sums_check 2> err)" = '21 sums of 3 ranks' ] ||
    fail "sums: $(cat err)"

# ---- refusals ----

sed 's/momentum=.*/momentum=0.8/' tiny.cfg > other.cfg
tail -n 7 train.txt > other.txt
sed 's/train=.*/train=other.txt/' tiny.data > list.data
sed 's/classes=.*/classes=3/' tiny.data > classes.data
sed 's/names=.*/names=train.txt/' tiny.data > names.data
while IFS='|' read -r command said; do # rank 1's, instead of tiny.data tiny.cfg -amp fp32 -seed 3
    echo "set -- \"\$1\" detector train $command" > rank.1
    refused "$said"
done <<'END'
tiny.data other.cfg -amp fp32 -seed 3|rank 0 has a .cfg with checksum [0-9a-f]*, but rank 1 has a .cfg with
tiny.data tiny.cfg -amp fp32 -seed 4|rank 0 has -seed 3, but rank 1 has -seed 4;
list.data tiny.cfg -amp fp32 -seed 3|rank 0 has a list of training images with checksum .*, but rank 1
tiny.data tiny.cfg -amp bf16 -seed 3|has the options -amp fp32 -seed 3, but rank 1 has the options -amp bf16
tiny.data tiny.cfg -amp fp32 -seed 3 -map 2|, but rank 1 has the options -amp fp32 -seed 3 -map 2;
tiny.data tiny.cfg -amp fp32 -seed 3 -log mine.csv|, but rank 1 has the options -amp fp32 -seed 3 -log;
classes.data tiny.cfg -amp fp32 -seed 3|rank 0 has classes = 2 and tag = 0 in the .data file, but rank 1 has
names.data tiny.cfg -amp fp32 -seed 3|rank 0 has names with checksum [0-9a-f]*, but rank 1 has names
tiny.data tiny.cfg -seed 3|rank 0 has detector train under AMP, but rank 1 has detector train without AMP;
gone.data tiny.cfg -amp fp32 -seed 3|^rank 1: gone.data: cannot read the .data file
END
sed 's/valid=.*/valid=other.txt/' tiny.data > valid.data
echo 'set -- "$1" detector train valid.data tiny.cfg -amp fp32 -seed 3 -map 1' > rank.1
echo 'set -- "$@" -map 1' > rank.0
refused 'rank 0 has a list of validation images with checksum .*, but rank 1 has a list of'
echo 'set -- "$1" amp bench tiny.cfg' > rank.0
sed 's/$/ -iters 5/' rank.0 > rank.1
refused 'rank 0 has the options tiny.cfg, but rank 1 has the options tiny.cfg -iters 5;'
echo "set -- $BUILD_DIR/bin/darknet"' detector train tiny.data tiny.cfg -amp fp32 -seed 3' > rank.1
if ! ldd "$BUILD_DIR/bin/darknet" | grep -q libmpi; then
    refused '^rank 1: command line: a launcher started several copies of this program, which was built'
fi
rm -f rank.1
name='a rank that does not join'
echo 'until [ -e told ]; do sleep .05; done; export AMP_COMM_TIMEOUT=1' > rank.0
echo '"$1" amp check tiny.cfg; : > told; exec sleep 1000' > rank.1
start "$name" "${train[@]}"
ends 1
says 'ranks: rank 1 runs `amp check` by itself' \
    'ranks: joining (a rank that was started with another command, or without MPI, never joins): '
name='programs that do not join say each why they end'
# Open MPI ends all once one has ended with an error: each awaits the other.
cat > awaits_the_other << 'END'
"$@"
status=$?
: > said.$number
until [ -e said.0 ] && [ -e said.1 ]; do sleep .05; done
exit $status
END
tee rank.0 < awaits_the_other > rank.1
start "$name" amp check gone.cfg
ends 1
[ "$(grep -ac 'gone.cfg: No such file' err)" = 2 ] || fail "$name: $(cat err)"
for program in "$RANKS_DARKNET" "$BUILD_DIR/bin/darknet"; do # with MPI and without
    name="amp compare of several copies of $program"
    rm said.?
    { echo "set -- $program amp compare tiny.cfg tiny.data"; cat awaits_the_other; } | tee rank.0 > rank.1
    start "$name"
    ends 1
    [ "$(grep -ac '`amp compare` starts its trainings itself; start it without' err)" = 2 ] && [ ! -s out ] &&
        [ ! -e tiny-compare ] || fail "$name: $(cat out err)"
done
name='without AMP'
start "$name" detector train tiny.data tiny.cfg -seed 3
ends 1
[ "$(grep -c 'a launcher started 2 copies of this program' err)" = 1 ] || fail "$name: $(cat err)"
echo 'set -- "$@" -gpus 0,1' | tee rank.0 > rank.1
refused 'command line: -gpus 0,1: a launcher started 2 copies of this program, and each trains'

# ---- ranks_share_the_memory_of_a_machine ----

cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/memory_told.c" -o memory_told.so -ldl
sed 's/^batch=.*/batch=64/; s/^subdivisions=.*/subdivisions=2/; s/max_batches=.*/max_batches=1/
    s/^width=.*/width=256/; s/^height=.*/height=256/' tiny.cfg > large.cfg
told() { # told <MiB>: the next ranks find so much in /proc/meminfo
    printf 'MemTotal: 99999999 kB\nMemAvailable: %s kB\n' $(($1 * 1024)) > meminfo
    { echo "${trap/save_trap/memory_told}"
      echo 'set -- "$1" detector train tiny.data large.cfg -amp fp32 -seed 3'; } | tee rank.0 > rank.1
}
told 1
refused 'not enough memory: this training needs [0-9]* MiB, but there are [0-9]* MiB of RAM for each rank on'
needed=$(sed -n 's/.*training needs \([0-9]*\) MiB.*/\1/p' err)
[ $needed -gt 500 ] || fail "$name: a rank takes $needed MiB, which is no more than its program"
told $needed # enough for one of them
refused 'not enough memory'
told $((2 * needed))
start 'memory for both'
ends 0

# ---- a launcher that binds ----

name='one core for two threads'
sed 's/max_batches=.*/max_batches=1/' tiny.cfg > one.cfg
succeeds env OMP_NUM_THREADS=2 taskset -c "$(taskset -pc $$ | sed 's/.*[ ]\([0-9]*\).*/\1/')" \
    "${launch[@]}" detector train tiny.data one.cfg -amp fp32 -seed 3
says 'ranks: rank 0 may use only 1 processors, for 2 OpenMP threads' '--bind-to none, or --map-by slot:PE='
mv backup/one_final.weights one.weights
mv backup/one_final.weights.amp with.weights.amp

# ---- other weights ----

sed 's/learning_rate=.*/learning_rate=0.1/' one.cfg > two.cfg
status_of "$RANKS_DARKNET" detector train tiny.data two.cfg -amp fp32 -seed 3
mv backup/two_final.weights two.weights
echo 'set -- "$@" one.weights' > rank.0
sed 's/one/two/' rank.0 > rank.1
refused 'rank 0 has weights with checksum [0-9a-f]\{16\}, but rank 1 has weights with'
cp one.weights with.weights # the same, and momentum beside them for one rank only
echo 'set -- "$@" with.weights' > rank.0
echo 'set -- "$@" one.weights' > rank.1
refused 'rank 0 has a sidecar of 1 steps, but rank 1 has a sidecar of 0 steps;'

# ---- signals ----

# kill -USR1 of the launcher reaches all ranks; kill -TERM of one rank is agreed upon.
start 'SIGUSR1 to the launcher' "${train[@]}"
until_is has_steps
kill -USR1 "$(pgrep -P $job)"
ends 138
no_leftovers
says 'amp: stopped after step ' 'to continue, give backup/tiny.backup'
goes_on "$(($(sed -n 's/.*stopped after step \([0-9]*\).*/\1/p' err) + 1))"
# ... at the worst moment: it is agreed upon in the next step
${MPICC:-mpicc} -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/signal_trap.c" -o signal_trap.so
signal_trap=${trap/save_trap/signal_trap}
echo "$signal_trap TRAP_STEP=7 TRAP_SIGNAL=15" > rank.1
start 'SIGTERM to rank 1' "${train[@]}"
ends 143
no_leftovers
says 'amp: stopped after step 8; '
[ -s backup/tiny.backup.amp ] || fail "$name: nothing was saved"

# ---- a rank is gone, or stands still ----

echo 'kill -KILL $$' > rank.1
start 'rank 1 is killed before it joins' "${train[@]}"
ends $killed_status
for killed in 0 1; do # where no save is under way on any rank: the last one was in step 100
    echo "$signal_trap TRAP_STEP=105 TRAP_SIGNAL=9" > rank.$killed
    start "rank $killed is killed in a step" "${train[@]}"
    ends $killed_status
    no_leftovers
    goes_on 101
done
# ... while rank 0 is in the middle of its second save, of the snapshot that follows the backup
echo "$trap TRAP_SAVE=2" > rank.0
start 'rank 0 is killed in a save' "${train[@]}"
ends $killed_status
[ ! -e backup/tiny_100.weights ] || fail "$name: the trap is broken"
goes_on 101
# a_rank_that_is_stopped_does_not_hang_the_others
cc -shared -fPIC -O1 -D_GNU_SOURCE "$SOURCE_DIR/tests/e2e/lib/time_trap.c" -o time_trap.so
export AMP_COMM_TIMEOUT=1000000
for stopped in 0 1; do
    echo "${trap/save_trap/time_trap}" | tee rank.0 > rank.1
    rm -f stopped
    start "rank $stopped is stopped" "${train[@]}"
    until_is has_steps
    kill -STOP "$(cat process.$stopped)"
    : > stopped
    ends 1
    says "rank $((1 - stopped)) got no answer from another rank within the time limit"
done
unset AMP_COMM_TIMEOUT

# ---- files that rank 0 cannot write ----

sed 's/max_batches=.*/max_batches=101/' tiny.cfg > full.cfg
echo "$trap TRAP_FULL=1" > rank.0
start 'the disk is full' detector train tiny.data full.cfg -amp fp32 -seed 3
ends 0
says 'amp: backup/full.backup could not be written: ' 'No space left on device; training continues'
no_leftovers
[ -s backup/full_final.weights ] || fail "$name: $(ls backup)"
sed 's/backup=.*/backup=gone/' tiny.data > gone.data
echo 'set -- "$1" detector train gone.data tiny.cfg -amp fp32 -seed 3' > rank.0
cp rank.0 rank.1
refused 'gone'

# A bad label that one of two ranks loads in a later batch ends both.
. "$SOURCE_DIR/tests/e2e/lib/late_label.bash"
two_ranks() { ranks 2 "$@"; }
mkdir late
( cd late && tiny_training && late_label two_ranks labels )
