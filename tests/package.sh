#!/bin/bash
# Makes the Debian package on a bare Debian and tries it on another one, as root:
#
#   tests/package.sh SUITE      bookworm (Debian 12) or trixie (Debian 13)
#
# lintian finds no error in it; it shares no file with Debian's own package darknet; installed where nothing
# else is, it trains by the README's lines; removed, it leaves nothing behind; programs are built against its
# library. Ends with status 0 if all that holds. Takes debootstrap, root, 4 GiB of disk and a mirror of Debian
# in apt's sources.
set -eu
cd "$(dirname "$0")/.."
[ $# = 1 ] || { sed -n '2,/^set -eu/s/^# \{0,1\}//p' tests/package.sh; exit 2; }
. tests/debian/chroot.bash

make_chroot "$1"
maker=$chroot
git clone -q --no-hardlinks . "$maker/root/darknet-amp"
make_chroot "$1"
user=$chroot

say() { echo "== $*"; }
at() { chroot=$1 in_chroot sh -ec "$2"; } # at <system> <commands in sh>

say 'the package is made and looked at'
at "$maker" '
    cd darknet-amp
    scripts/dependencies.sh
    apt-get install -qq --no-install-recommends dpkg-dev file lintian > log
    cmake --preset package > log && cmake --build --preset package -- -j"$(nproc)" > log 2>&1 ||
        { tail -n 20 log; exit 1; }
    lintian --fail-on error build/package/*.deb
    apt-get download -qq darknet
    for deb in build/package/*.deb darknet_*.deb; do
        dpkg-deb --fsys-tarfile $deb | tar -t | grep -v "/$" | sort > ${deb##*/}.files
    done
    ! comm -12 *.files | grep . || { echo "the package darknet of Debian has these files too"; exit 1; }'
mv "$maker"/root/darknet-amp/build/package/darknet-amp_*.deb "$user/root/"

# Everything but what apt, dpkg and the linker keep for themselves.
list_files() {
    find "$user" -xdev \( -path "$user/var/lib/apt" -o -path "$user/var/lib/dpkg" -o -path "$user/var/cache" \
        -o -path "$user/var/log" -o -path "$user/etc/ld.so.cache" -o -path "$user/tmp" \) -prune \
        -o -printf '%P\n' | sort
}
list_files > "$user/tmp/before"

say 'it is installed and used'
cp tests/e2e/lib/tiny_training.bash "$user/tmp"
at "$user" '
    apt-get install -qq --no-install-recommends ./darknet-amp_*.deb > log 2>&1 || { cat log; exit 1; }
    rm log
    darknet-amp amp version
    mkdir training && cd training
    bash -ec ". /tmp/tiny_training.bash; tiny_training"
    sed -i "s/max_batches=5/max_batches=3/" tiny.cfg
    printf "[amp]\namp=1\ndtype=bf16\n" >> tiny.cfg
    darknet-amp detector train tiny.data tiny.cfg > out 2>&1 || { tail -n 5 out; exit 1; }
    grep "^amp:" out
    grep -q "^3: " out && [ -s backup/tiny_final.weights ] && [ -s backup/tiny_final.weights.amp ] ||
        { echo "three steps are not what it trained:"; tail out; exit 1; }
    cd .. && rm -r training'

say 'it is removed'
at "$user" 'apt-get purge -qq --autoremove darknet-amp > log 2>&1 || { cat log; exit 1; }; rm log'
list_files | diff "$user/tmp/before" - || die 'these files came (>) or went (<) with the package'

say 'programs are built against its library'
mv "$user"/root/darknet-amp_*.deb "$maker/root/"
at "$maker" '
    apt-get install -qq --no-install-recommends ./darknet-amp_*.deb pkg-config > log 2>&1 ||
        { cat log; exit 1; }
    printf "%s\n" "#include <darknet.h>" "int main(void) { return !load_network; }" > client.c
    cc client.c -o client $(pkg-config --cflags --libs darknet-amp) && ./client
    printf "%s\n" "cmake_minimum_required(VERSION 3.22)" "project(client C)" \
        "find_package(darknet-amp REQUIRED)" "add_executable(client client.c)" \
        "target_link_libraries(client darknet-amp::darknet)" > CMakeLists.txt
    cmake -S . -B made > log && cmake --build made > log && made/client'
say "all is well with the package on $1"
