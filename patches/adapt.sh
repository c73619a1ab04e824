#!/bin/sh
# Places the hooks in a copy of a Darknet that somebody has changed: called by apply.sh --adapt.
#
# usage: patches/adapt.sh <fork> <copy>
#
# It first places hooks by the meaning of the code (semantic/hooks.cocci, which needs Coccinelle's spatch),
# then each other change of the plain patches by itself, wherever its lines are. It names changes that it
# cannot place, with the lines to add by hand, and then returns status 1.
set -eu

fork=$1
copy=$2
patches=$(cd "$(dirname "$0")" && pwd)
series=$patches/$fork
say() { printf 'darknet-amp: %s\n' "$*" >&2; }
command -v spatch >/dev/null 2>&1 || {
    say '--adapt needs spatch: install the package coccinelle'
    exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

cd "$copy"
# The patches' lines end in LF, and make does not read a Makefile with CRLF.
crlf=$(grep -ls "$(printf '\r')\$" $(awk '!/^#/ && !seen[$2]++ { print $2 }' "$series/sha256sums") || true)
[ -z "$crlf" ] || {
    sed -i 's/\r$//' $crlf
    say "lines of $(echo $crlf | wc -w) files end in CRLF; in $copy they end in LF"
}
for file in src/network.c src/network_kernels.cu src/parser.c src/gemm.c src/data.c; do
    [ -e "$file" ] || continue
    spatch --sp-file "$patches/semantic/hooks.cocci" --in-place --very-quiet "$file" >/dev/null \
        2>"$scratch/log" || {
        say "spatch: $(tail -n 1 "$scratch/log") ($file)"
        exit 1
    }
    sed -f "$patches/semantic/$fork.sed" "$file" > "$scratch/file"
    cat "$scratch/file" > "$file"
done

# try <hunk> <file, or none>: applies the hunk wherever its context is. Lines that the file has already
# become context. There is as much context before the change as after it, because patch would treat a hunk
# with less after it as the end of the file. Of several places, patch chooses the one nearest to the change's
# line in the known revision. If that revision itself has several, the hunk names the function, and only this
# function is searched.
try() {
    place=$(awk -v name="$(sed -n '3s/^@@.*@@ *//p' "$1")" '
        name && !first && $0 ~ "^[a-zA-Z_].*[ *]" name "\\(" && !/;[ \r]*$/ { first = NR }
        first && /^}/ { print first, NR; done = 1; exit }
        END { if (!name) print 1, NR; else if (!done) exit 1 }' "$file") || return 1
    from=${place% *} to=${place#* }
    awk -v file="$2" -v from="$from" '
        BEGIN { if (file != "none") while ((getline old_line < file) > 0) {
            sub(/^[ \t]+/, "", old_line); there[old_line] }
        }
        FNR < 3 { next }
        FNR == 3 { start = substr($3, 2) - from + 1; next } # its line after the earlier changes
        { line[++n] = $0 == "" ? " " : $0 }
        END {
            for (i = 1; i <= n; i++) {
                text = substr(line[i], 2)
                sub(/^[ \t]+/, "", text)
                if (substr(line[i], 1, 1) == "+" && text != "" && text in there)
                    line[i] = " " substr(line[i], 2)
            }
            for (first = 1; first <= n && line[first] ~ /^ /; first++);
            for (last = n; last >= 1 && line[last] ~ /^ /; last--);
            if (last < first) exit 1
            around = first - 1 < n - last ? first - 1 : n - last
            for (i = first - around; i <= last + around; i++) {
                old += line[i] ~ /^[- ]/; new += line[i] ~ /^[+ ]/
            }
            start += first - around - 1
            if (start < 1) start = 1
            printf "--- part\n+++ part\n@@ -%d,%d +%d,%d @@\n", start, old, start, new
            for (i = first - around; i <= last + around; i++) print line[i]
        }' "$1" > "$scratch/normal" || return 1
    sed -n "$from,${to}p" "$file" > "$scratch/part"
    patch -s -l -F0 --no-backup-if-mismatch -r - "$scratch/part" < "$scratch/normal" >/dev/null 2>&1 ||
        return 1
    { head -n $((from - 1)) "$file"; cat "$scratch/part"; tail -n +$((to + 1)) "$file"; } > "$scratch/whole"
    cat "$scratch/whole" > "$file"
}

# has_lines <file>: whether it has the lines that the current change adds, each as often as all changes of
# this file so far add it.
has_lines() {
    [ -s "$scratch/these" ] && awk -v these="$scratch/these" -v all="$all" '
        BEGIN { while ((getline line < these) > 0) mine[substr(line, 2)]
                while ((getline line < all) > 0) needed[substr(line, 2)]++ }
        { sub(/^[ \t]+/, ""); sub(/[ \t]+$/, ""); found[$0]++ }
        END { for (line in mine) if (found[line] < needed[line]) exit 1 }' "$1"
}

# has_hooks <file>: whether it names the hooks of the current change as often as all changes of this file so
# far do. Their lines may differ from the plain patches', because hooks.cocci placed them.
hooks_of() { grep -o 'darknet_amp_[a-z_]*[a-z](\|DARKNET_OPEN_CFG(' "$1"; }
has_hooks() {
    hooks_of "$scratch/these" > "$scratch/names" || return 1
    for name in $(LC_ALL=C sort -u "$scratch/names"); do
        [ "$(hooks_of "$1" | grep -c -x -F "$name")" -ge "$(hooks_of "$all" | grep -c -x -F "$name")" ] ||
            return 1
    done
}

missing=0
number=0
for patch in $(cat "$series/series"); do
    awk -v to="$scratch/hunk." -v first=$((number + 1)) '
        /^--- a\// { file = substr($0, 7); name = ""; next }
        /^\+\+\+ b\// { next }
        file && /^@@/ { close(name); name = sprintf("%s%04d", to, first++)
            print "--- a/" file "\n+++ b/" file > name }
        name { print > name }' "$series/$patch"
    for hunk in "$scratch"/hunk.*; do
        [ -e "$hunk" ] || continue
        number=$((number + 1))
        file=$(sed -n '1s/^--- a\///p' "$hunk")
        added=$(sed 1,3d "$hunk" | sed -n 's/^+[ \t]*\(..*\)/\1/p' | head -n 1)
        all=$scratch/lines.$(echo "$file" | tr / _)
        sed 1,2d "$hunk" | sed -n 's/^+[ \t]*\(..*\)/:\1/p' > "$scratch/these"
        cat "$scratch/these" >> "$all"
        { [ -e "$file" ] &&
            { has_lines "$file" || try "$hunk" none || try "$hunk" "$file" || has_hooks "$file"; }; } || {
            line=$(sed -n '3s/^@@ -\([0-9]*\).*/\1/p' "$hunk")
            say "$file: no place was found for a change of $patch (line $line of the original);" \
                "add by hand: $added"
            missing=$((missing + 1))
        }
        rm "$hunk"
    done
done

# Prints how often each hook is named in the copy and in the plain patches.
for patch in $(cat "$series/series"); do cat "$series/$patch"; done |
    grep '^[-+][^-+]' | grep -o '^[-+]\|darknet_amp_[a-z_]*[a-z]' |
    awk '/^[-+]$/ { sign = $0 == "+" ? 1 : -1; next } { count[$0] += sign }
        END { for (name in count) print name, count[name] }' |
    LC_ALL=C sort > "$scratch/expected"
find include src examples -type f 2>/dev/null -exec cat {} + | grep -a -o 'darknet_amp_[a-z_]*[a-z]' |
    awk '{ count[$0]++ } END { for (name in count) print name, count[name] }' > "$scratch/found"
awk 'FILENAME == ARGV[1] { found[$1] = $2; next } { printf "  %-28s %d of %d\n", $1, found[$1], $2 }' \
    "$scratch/found" "$scratch/expected" >&2

# A hook uses variables of the function that it is in, which may have other names here: a file that compiles
# without AMP must compile with it. (Code that only GPU builds compile is not checked.)
compiles() { # compiles <file> <flags...>
    LC_ALL=C ${CC:-cc} -w -fsyntax-only -Iinclude -Isrc -I3rdparty/stb/include \
        -I"$patches/../plugin/include" "$@" 2> "$scratch/log"
}
for file in $(grep -ls DARKNET_AMP src/*.c examples/*.c); do
    ! compiles "$file" || compiles "$file" -DAMP || {
        say "$(sed -n 's/^\(.*:[0-9]*\):[0-9]*: error: /\1: /p' "$scratch/log" | head -n 1):" \
            "change by hand: a hook uses a name that this file does not have"
        missing=$((missing + 1))
    }
done
[ $missing = 0 ] || {
    say "$missing changes must be made by hand in $copy; all others are made"
    exit 1
}
