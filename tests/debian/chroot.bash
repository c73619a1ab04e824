# A bare Debian in a folder, for scripts that try Darknet AMP on a system that holds nothing yet. Source it,
# as root; then
#
#     make_chroot trixie    a new system in the folder $chroot; all of them are gone when the script ends
#     in_chroot COMMAND...  runs it there as root, in the folder /root; $chroot/root is that folder
#
# Packages come from the mirror that this machine's own apt sources name first.

chroots=()

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

make_chroot() {
    local mirror proxy
    [ "$(id -u)" = 0 ] || die 'debootstrap and chroot take root: run this as root'
    command -v debootstrap > /dev/null || die "there is no debootstrap: install Debian's package debootstrap"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || die "apt's sources name no mirror of Debian: add one and run apt-get update"
    chroot=$(mktemp -d)
    chmod 755 "$chroot" # apt downloads as another user than root
    chroots+=("$chroot")
    trap 'rm -rf --one-file-system "${chroots[@]}"' EXIT
    trap 'exit 130' INT TERM
    echo "debootstrap $1"
    debootstrap --variant=minbase "$1" "$chroot" "$mirror" > "$chroot.log" 2>&1 || {
        tail -n 5 "$chroot.log" >&2
        die "debootstrap cannot make $1; full output: $chroot.log"
    }
    rm "$chroot.log"
    proxy=$(apt-config dump Acquire::http::Proxy)
    [ -z "$proxy" ] || echo "$proxy" > "$chroot/etc/apt/apt.conf.d/90proxy"
    cp /etc/resolv.conf "$chroot/etc/resolv.conf"
}

# What is mounted and started is gone when the command ends: both are in namespaces of their own.
in_chroot() {
    unshare --mount --pid --fork --kill-child sh -ec '
        mount -t proc proc "$0/proc"
        mount --rbind /dev "$0/dev"
        mount --rbind /sys "$0/sys"
        exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive sh -c "cd && exec \"\$@\"" sh "$@"' "$chroot" "$@"
}
