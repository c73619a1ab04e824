#!/bin/sh
# Makes a patched copy of a Darknet tree. The tree itself is not changed.
#
# usage: patches/apply.sh <Darknet tree> <destination>
#
# In the copy, Darknet's own Makefile builds Darknet AMP: `make AMP=1` (and GPU=1 CUDNN=1, ... as always);
# hank-ai's has no Makefile, and is built with CMake and -DDARKNET_AMP=ON. The last line says how.
#
# Three options are for the CMake build, which does not need a copy of the plugin:
#   --sources-only   leave out the plugin and what only users of the tree need (cfg/, data/, ...)
#   --only <patches> apply these patches of the series, one name or several in quotes
#   --check          only check that the tree is a supported revision
#
# For a Darknet that you have changed yourself:  patches/apply.sh --adapt <your tree> <destination>
# It needs Coccinelle, and names each change that it cannot place, with what to add by hand.
set -eu

usage() { sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; }
say() { echo "darknet-amp: $*" >&2; }

patches=$(cd "$(dirname "$0")" && pwd)
plugin=$patches/../plugin
license=$patches/../LICENSE # the plugin's; the copy has Darknet's own licence too
sources_only=no only= check=no adapt=no
while [ $# -gt 0 ]; do
    case $1 in
        --sources-only) sources_only=yes ;;
        --only) [ $# -gt 1 ] || { usage >&2; exit 2; }; only=$2; shift ;;
        --check) check=yes ;;
        --adapt) adapt=yes ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; exit 2 ;;
        *) break ;;
    esac
    shift
done
[ $# -eq 2 ] || { [ $# -eq 1 ] && [ $check = yes ]; } || { usage >&2; exit 2; }
if [ ! -d "$1" ]; then
    say "no directory $1"
    exit 1
fi
tree=$(cd "$1" && pwd)

# Which Darknet it is: hank-ai's is C++, AlexeyAB's passes have a state.
if [ -e "$tree/src-lib/darknet_layers.hpp" ]; then
    fork=hank_ai
    revision="hank-ai's f684e1d7"
    extras='CM_package.cmake cfg doc src-examples src-onnx src-other src-test other'
    unchecked=
    if [ $adapt = yes ]; then
        say "--adapt works only with C, but hank-ai's Darknet is C++: name an unchanged checkout"
        exit 1
    fi
elif grep -qs "struct network_state" "$tree/include/darknet.h"; then
    fork=alexeyab
    revision="AlexeyAB's 59596d78"
    extras="cfg scripts cmake DarknetConfig.cmake.in vcpkg.json 3rdparty *.sh *.py data/labels data/*.names
        data/*.list
        data/*.jpg data/*.tree data/*.map src/version.h.in src/csharp"
    unchecked=src/version.h # which CMake writes
elif [ -e "$tree/include/darknet.h" ] && [ -e "$tree/examples/detector.c" ]; then
    fork=pjreddie
    revision="pjreddie's 61c9d02e"
    extras='cfg python scripts data/labels data/*.names data/*.jpg data/*.list data/*.map'
    unchecked=
else
    say "$tree is not a known Darknet: neither pjreddie's, which has include/darknet.h" \
        "and examples/detector.c," \
        "nor AlexeyAB's, whose include/darknet.h has a struct network_state," \
        "nor hank-ai's, which has src-lib/darknet_layers.hpp"
    exit 1
fi
series=$patches/$fork
files=$(awk '!/^#/ && !seen[$2]++ { print $2 }' "$series/sha256sums") # which are compiled or patched

# Each file must be one of those that the patches were made for.
differing=$(cd "$tree" && sha256sum $files 2>/dev/null |
    awk 'NR == FNR { if (!/^#/) { known[$0]; file[$2] } next }
         { found[$2] } !($0 in known) { print $2 " differs" }
         END { for (f in file) if (!(f in found)) print f " is missing" }' \
        "$series/sha256sums" - | LC_ALL=C sort)
if [ -n "$differing" ] && [ $adapt = no ]; then
    count=$(echo "$differing" | wc -l)
    say "$tree is not a supported revision of Darknet ($revision):"
    echo "$differing" | sed -n '1,10s/^/  /p' >&2
    [ "$count" -le 10 ] || echo "  and $((count - 10)) more" >&2
    if grep -qs "$(printf '\r')" "$tree/include/darknet.h"; then
        say "its lines end in CRLF (git's core.autocrlf does that): use --adapt, which copies them with LF"
    elif [ $fork = pjreddie ]; then
        say 'name an unchanged checkout of that commit, or build without DARKNET_SOURCE_DIR, which fetches it'
    elif [ $fork = hank_ai ]; then
        say "name an unchanged checkout of that commit, of its branch v5.1 (v6-dev is not supported):" \
            "git -C $tree worktree add FOLDER f684e1d7"
    else say 'name an unchanged checkout of that commit, or use --adapt'
    fi
    exit 1
fi
[ $check = no ] || exit 0

# The copy records what it was made from, and is made again when that changes.
mark=.darknet-amp
list=${only:-$(cat "$series/series")}
made_of() {
    echo "$sources_only $adapt $list"
    cat "$0"
    [ $adapt = no ] || cat "$patches/adapt.sh" "$patches"/semantic/*
    (cd "$series" && cat $list)
    (cd "$tree" && sha256sum $files 2>/dev/null) || true
    [ $sources_only = yes ] || {
        cat "$license" "$patches"/../cmake/*.cmake
        (cd "$plugin" && find . -type f | LC_ALL=C sort | xargs sha256sum)
    }
}
if [ -e "$2" ] && [ -n "$(ls -A "$2")" ] && [ ! -e "$2/$mark" ]; then
    say "$2 exists and was not made by apply.sh; name a new destination"
    exit 1
fi
for other in pjreddie alexeyab hank_ai; do
    [ $sources_only = yes ] || [ $other = $fork ] || [ ! -d "$2/amp/host/$other" ] || {
        say "$2 is a copy of another Darknet; name a new destination"
        exit 1
    }
done
# Prints what the user does next; CMake's build continues by itself.
tell_next() { # tell_next <the copy> <its Darknet> <what was done>
    [ $sources_only = no ] || return 0
    say "$1 is $2 with Darknet AMP, whose plugin is in $1/amp; $3"
    cmake="cmake -S $1 -B build -DAMP=ON && cmake --build build"
    case $fork in
        pjreddie) say "next: make -C $1 AMP=1" ;;
        alexeyab) say "next: make -C $1 AMP=1, or $cmake" ;;
        *) say "next: cmake -S $1 -B $1/build -DDARKNET_AMP=ON -DDARKNET_TRY_ROCM=OFF" \
            "-DDARKNET_TRY_OPENBLAS=OFF && cmake --build $1/build (-DDARKNET_TRY_CUDA=OFF: for the CPU)" ;;
    esac
}
made_of=$(made_of | sha256sum)
if [ "$(cat "$2/$mark" 2>/dev/null)" = "$made_of" ]; then
    tell_next "$2" "$revision" 'already up to date'
    exit 0
fi

mkdir -p "$2"
copy=$(cd "$2" && pwd)
case $copy/ in
    "$tree"/*)
        rmdir "$copy"
        say "$copy is inside the tree to be copied; name a destination outside it"
        exit 1 ;;
esac
rm -f "$copy/$mark"
(cd "$copy" && rm -rf Makefile include src src-lib src-cli examples amp)
if [ $adapt = yes ]; then (cd "$tree" && tar -cf - --exclude=./.git --exclude=./obj .) | tar -xf - -C "$copy"
else (cd "$tree" && tar -cf - $files $unchecked) | tar -xf - -C "$copy"
fi
if [ $sources_only = no ]; then
    (cd "$tree" && { ls -d LICENSE* README.md $extras 2>/dev/null || true; } | tar -cf - -T -) |
        tar -xf - -C "$copy"
    mkdir "$copy/amp"
    (cd "$plugin" && tar -cf - .) | tar -xf - -C "$copy/amp"
    for other in "$patches"/*/series; do # a build has one fork
        other=$(basename "${other%/series}")
        [ "$other" = $fork ] || rm -rf "$copy/amp/host/$other"
    done
    [ $fork != pjreddie ] || rm -rf "$copy/amp/host/family"
    cp "$license" "$copy/amp/LICENSE"
    if [ $fork != pjreddie ]; then # their own CMake build includes amp/CMakeLists.txt
        mkdir "$copy/amp/cmake"
        cp "$patches"/../cmake/Plugin.cmake "$patches"/../cmake/oneDNN.cmake "$patches"/../cmake/cuDNN.cmake \
            "$copy/amp/cmake"
    fi
fi
chmod -R u+w "$copy"
# Without the program patch, git applies the patches, and must ignore a repository that contains the copy.
apply() {
    if command -v patch >/dev/null 2>&1; then patch -d "$copy" -p1 -s -f --no-backup-if-mismatch
    else (cd "$copy" &&
          GIT_CEILING_DIRECTORIES=$(dirname "$copy") git apply -p1 --unidiff-zero --whitespace=nowarn)
    fi
}
if [ $adapt = yes ]; then
    "$patches/adapt.sh" $fork "$copy"
    list=
fi
for patch in $list; do
    apply < "$series/$patch" || {
        say "$patch does not apply to $tree"
        exit 1
    }
done
echo "$made_of" > "$copy/$mark"
[ $adapt = no ] || revision="the Darknet of $tree"
tell_next "$2" "$revision" "$(echo $(cat "$series/series") | wc -w) patches were applied"
