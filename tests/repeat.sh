#!/bin/bash
# Repeats tests where luck is bad: beside twice as many busy loops as there are processors.
#
#   tests/repeat.sh [-n TIMES] NAME...     50 times each: tests/repeat.sh -n 20 e2e_valid test_turns
#
# They are those of build/PRESET (PRESET: cpu), which is built already. Prints how often each passed, and
# where its failures are; status 1 if there are any.
set -eu
cd "$(dirname "$0")/.."
build=build/${PRESET:-cpu} times=50 failed=0
if [ "${1:-}" = -n ]; then
    times=${2:-}
    shift 2
fi
[ $# -gt 0 ] || { sed -n '2,/^set -eu/s/^# \{0,1\}//p' tests/repeat.sh >&2; exit 2; }
logs=$build/tests/repeat
mkdir -p "$logs"
busy=()
trap 'kill "${busy[@]}"' EXIT
for _ in $(seq $((2 * $(nproc)))); do
    while :; do :; done &
    busy+=($!)
done
for name; do
    passed=0
    for i in $(seq "$times"); do
        if ctest --test-dir "$build" -R "^$name\$" --no-tests=error --output-on-failure &> "$logs/log"; then
            passed=$((passed + 1))
        else
            mv "$logs/log" "$logs/$name.$i.failed"
            failed=1
        fi
    done
    echo "$name: $passed of $times passed$([ "$passed" = "$times" ] || echo "; $logs/$name.*.failed")"
done
exit $failed
