#!/bin/bash
# Builds Darknet AMP and runs every test: tests/run.sh [--no-install] [arguments for ctest]
#
# Packages that lack are installed first (by name, see scripts/dependencies.sh; with --no-install they are listed and
# this ends). Ends with CTest's summary and its exit status. PRESET=asan tests/run.sh builds with AddressSanitizer and
# UndefinedBehaviorSanitizer; PRESET=tsan builds with ThreadSanitizer and passes the tests that start threads.
set -eu
cd "$(dirname "$0")/.."
preset=${PRESET:-cpu}
install=
if [ "${1:-}" = --no-install ]; then
    install=--no-install
    shift
fi

# quietly <command...>: shows what it says only if it fails
quietly() {
    local log
    log=$(mktemp)
    echo "$*"
    "$@" > "$log" 2>&1 || {
        cat "$log"
        rm -f "$log"
        return 1
    }
    rm -f "$log"
}

scripts/dependencies.sh --tests $install
# Named, because examples/quickstart.sh configures the same folder without tests.
quietly cmake --preset "$preset" -DDARKNET_AMP_BUILD_TESTS=ON -DDARKNET_AMP_BUILD_STOCK=ON
quietly cmake --build "build/$preset" -- -j"$(nproc)"
exec ctest --preset "$preset" "$@"
