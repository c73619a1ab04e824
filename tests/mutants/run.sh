#!/bin/bash
# Proof that the tests of docs/behaviours.md can fail: each patch here breaks one behaviour of the plugin, and
# the test named after that behaviour must then fail, having passed without the patch.
#
#   tests/mutants/run.sh [NN | NAME ...]     all patches, or those whose name begins so
#
# NN-few-words.patch belongs to the tests whose names begin with behaviour_NN_; a patch of another name says
# in its first line `# test: NAME`, the name of a test, and may name a program of CTest's in its second,
# `# program: NAME`, where the test's file does not tell it: that of another backend. Works on a copy of the
# tree in build/mutants (MUTANTS_DIR), with Darknet's source from DARKNET_SOURCE_DIR or from a build that is
# there; what the copy has built is kept for the next time. Exit status 1: a mutant survived, a patch does not
# apply, or a test fails without any patch.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
work=${MUTANTS_DIR:-$source/build/mutants}
tree=$work/tree
build=$work/build
log=$work/log
jobs=${JOBS:-$(nproc)}

die() {
    echo "mutants: $*" >&2
    exit 1
}

# The source of pjreddie's Darknet: given, or what another build of this tree was made from.
darknet_source() {
    local cache found
    [ -z "${DARKNET_SOURCE_DIR:-}" ] || { echo "$DARKNET_SOURCE_DIR"; return; }
    for cache in "$source"/build/*/CMakeCache.txt; do
        found=$(sed -n 's/^DARKNET_SOURCE_DIR:PATH=//p' "$cache" 2> /dev/null)
        [ -n "$found" ] || found=${cache%/*}/darknet/source
        [ ! -f "$found/examples/detector.c" ] || { echo "$found"; return; } # AlexeyAB's has none there
    done
}

# Only files that differ are written, so that only they are compiled again.
copy_tree() {
    local file
    (cd "$source" && find . \( -path ./build -o -path ./.git \) -prune -o -type f -print) |
        while IFS= read -r file; do
        cmp -s "$source/$file" "$tree/$file" || { mkdir -p "$tree/${file%/*}" &&
            cp "$source/$file" "$tree/$file"; }
    done
    (cd "$tree" && find . -type f -print) | while IFS= read -r file; do
        [ -e "$source/$file" ] || rm "$tree/$file"
    done
}

configure() {
    local launcher=() darknet
    darknet=$(darknet_source)
    if command -v ccache > /dev/null; then
        launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    cmake -S "$tree" -B "$build" -DDARKNET_SOURCE_DIR="$darknet" -DDARKNET_AMP_BUILD_STOCK=OFF \
        "${launcher[@]}" > "$log" 2>&1 ||
        die "the copy could not be configured: $log"
}

# The files that hold a test whose name begins so.
files_of() {
    (cd "$tree/tests" && grep -lE "(^|[^a-z_0-9])$1" test_*.c e2e/*.sh 2> /dev/null)
}

# What ctest calls the test of that file, and the targets it needs.
ctest_name() { case $1 in e2e/*) basename "$1" .sh | sed 's/^/e2e_/' ;; *) basename "$1" .c ;; esac; }
target() {
    case $1 in
    e2e/ranks*) echo darknet darknet-mpi ;;
    e2e/*) echo darknet ;;
    *) basename "$1" .c ;;
    esac
}

# judge <prefix> <file>: builds and runs. 0: all tests of that prefix passed; 1: one
# failed; 2: it does not build.
judge() {
    local prefix=$1 file=$2 name status
    name=$(ctest_name "$file")
    cmake --build "$build" -j "$jobs" --target $(target "$file") > "$log" 2>&1 || return 2
    (cd "$build" && timeout 600 ctest -R "^$name\$" -V --timeout 590) > "$log" 2>&1
    status=$?
    case $file in e2e/*) return $((status != 0)) ;; esac
    grep -q "\[ RUN      \] $prefix" "$log" || return 1 # it died before
    # CMocka says of each test that it ran and that it is OK; one that kills the program is never OK.
    [ "$(grep -c "\[ RUN      \] $prefix" "$log")" = "$(grep -c "\[       OK \] $prefix" "$log")" ] &&
        return 0
    return 1
}

passes_unpatched=" "
fails=0
killed=0

# The tests of that prefix pass as things are; asked once of each, and once of a script,
# which runs as a whole.
baseline() {
    local file key
    for file in $2; do
        key=$1$file
        case $file in e2e/*) key=$file ;; esac
        case $passes_unpatched in *" $key "*) continue ;; esac
        judge "$1" "$file" || { cp "$log" "$work/$1.log"; return 1; }
        passes_unpatched="$passes_unpatched$key "
    done
}

mutate() {
    local patch=$1 name prefix files file verdict=survived
    name=$(basename "$patch" .patch)
    case $name in
    [0-9][0-9]-*) prefix=behaviour_${name%%-*}_ ;;
    *) prefix=$(sed -n '1s/^# test: *//p' "$patch") ;;
    esac
    files=$(sed -n '2s/^# program: *//p' "$patch")
    [ -n "$files" ] || [ -z "$prefix" ] || files=$(files_of "$prefix")
    if [ -z "$files" ]; then
        verdict='has no test'
    elif ! baseline "$prefix" "$files"; then
        verdict="has a test that fails without it: $work/$prefix.log"
    elif ! patch -d "$tree" -p1 -F0 -N -s --dry-run < "$patch" > "$log" 2>&1; then
        verdict='does not apply'
    else
        patch -d "$tree" -p1 -F0 -N -s --no-backup-if-mismatch < "$patch"
        for file in $files; do
            judge "$prefix" "$file"
            case $? in
            1) verdict="killed by ${prefix}... in $file" && break ;;
            2) verdict="does not compile: $work/$name.log" && cp "$log" "$work/$name.log" && break ;;
            esac
        done
        copy_tree # which takes the patch back
    fi
    case $verdict in killed*) killed=$((killed + 1)) ;; *) fails=$((fails + 1)) ;; esac
    printf '%-50s %s\n' "$name" "$verdict"
}

chosen=()
if [ $# = 0 ]; then
    chosen=("$source"/tests/mutants/*.patch)
else
    for wish; do
        for patch in "$source"/tests/mutants/"$wish"*.patch; do
            [ -f "$patch" ] || die "no patch begins with $wish"
            chosen+=("$patch")
        done
    done
fi
mkdir -p "$tree" || die "cannot write $work"
copy_tree
configure
for patch in "${chosen[@]}"; do mutate "$patch"; done
echo "mutants: $killed of ${#chosen[@]} killed"
[ $fails = 0 ]
