#!/bin/sh
# Gets the source of pjreddie's Darknet, commit 61c9d02e, from the Debian source package `darknet`, or else
# from its git repository.
#
# usage: patches/fetch.sh <directory>     leaves the tree in <directory>, which must not exist or be empty
#
# Downloads are kept in ${DARKNET_AMP_CACHE:-${XDG_CACHE_HOME:-~/.cache}/darknet-amp} and reused.
# Without a network: put the tarball named below there, or give a tree of your own to cmake with
# -DDARKNET_SOURCE_DIR=<tree>.
set -eu

tarball=darknet_0.0.0+git20180914.61c9d02e.orig.tar.xz
tarball_sha256=ec536ae11853846aab96183d8ec18730a46cce71f7d935768d235029329f9e93
repository=https://github.com/pjreddie/darknet
commit=61c9d02ec461e30d55762ec7669d6a1d3c356fb2

say() { echo "darknet-amp: $*" >&2; }

if [ $# -ne 1 ]; then
    sed -n 's/^# \{0,1\}//; 5p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
directory=$(cd "$1" && pwd)
if [ -n "$(ls -A "$directory")" ]; then
    say "$directory is not empty; name a new directory for Darknet's source"
    exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

cache=${DARKNET_AMP_CACHE:-${XDG_CACHE_HOME:-${HOME:-$scratch}/.cache}/darknet-amp}
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$scratch

is_genuine() { echo "$tarball_sha256  $1" | sha256sum --check --status 2>/dev/null; }

# Turns the machine's own package sources into sources of source packages, in a temporary folder, with the
# same mirrors and keys (Signed-By).
derive_sources() {
    mkdir -p "$scratch/parts"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -r "$list" ] || continue
        sed -n -E 's/^[[:space:]]*deb(-src)?[[:space:]]+/deb-src /p' "$list" | sort -u \
            > "$scratch/parts/$(basename "$list" .list).list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ -r "$list" ] || continue
        sed -E 's/^[Tt][Yy][Pp][Ee][Ss]:.*/Types: deb-src/' "$list" > "$scratch/parts/$(basename "$list")"
    done
    [ -n "$(ls -A "$scratch/parts")" ]
}

# Needs no root: lists, cache and sources are all in $scratch. The machine's apt is not changed.
from_debian() {
    command -v apt-get >/dev/null 2>&1 && derive_sources || return 1
    say 'getting the Debian source package darknet'
    mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
    set -- -qq -o Dir::State::Lists="$scratch/lists" -o Dir::Cache="$scratch/cache" \
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$scratch/parts" \
        -o Debug::NoLocking=1 -o Acquire::Languages=none -o Acquire::Retries=2
    [ "$(id -u)" != 0 ] || set -- "$@" -o APT::Sandbox::User=root
    # A third party's repository may fail here without harm: what counts is whether the tarball arrives.
    apt-get "$@" update >"$scratch/log" 2>&1 || true
    (cd "$scratch" && apt-get "$@" source --download-only --tar-only darknet) >>"$scratch/log" 2>&1 || {
        sed 's/^/  /' "$scratch/log" >&2
        say "this machine's package sources do not have it"
        return 1
    }
    if ! is_genuine "$scratch/$tarball"; then
        say "the source package has another version of Darknet: no $tarball with sha256 $tarball_sha256"
        return 1
    fi
    [ "$cache" = "$scratch" ] || mv "$scratch/$tarball" "$cache/$tarball"
}

from_git() {
    command -v git >/dev/null 2>&1 || return 1
    say "cloning $repository"
    git init -q "$scratch/clone" &&
    git -C "$scratch/clone" fetch -q --depth 1 "$repository" "$commit" &&
    git -C "$scratch/clone" -c core.autocrlf=false checkout -q FETCH_HEAD &&
    rm -rf "$scratch/clone/.git" || return 1
    cp -R "$scratch/clone/." "$directory"
}

if is_genuine "$cache/$tarball" || from_debian; then
    tar -xJf "$cache/$tarball" -C "$directory" --strip-components=1
elif ! from_git; then
    rmdir "$directory"
    say "cannot get Darknet's source, neither as Debian's source package nor from $repository.
  Either connect this machine, or put $tarball into $cache,
  or get pjreddie's Darknet 61c9d02e in some other way and run cmake with
  -DDARKNET_SOURCE_DIR=<its directory>"
    exit 1
fi
