# cmake --install gives a folder that works after it was moved: the program, the libraries, the headers, files
# for pkg-config and CMake; and the GradScaler for programs that are no Darknet's. cpack makes a package of
# the same files.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"

cmake --install "$BUILD_DIR" --prefix "$PWD/first" > log || fail "$(cat log)"
mv first moved
lib=$(cd moved && find lib* -name darknet-amp.pc) # in lib, lib64 or lib/x86_64-linux-gnu
lib=${lib%/pkgconfig/*}
doc=share/doc/darknet-amp
{
    printf '%s\n' bin/darknet-amp include/darknet-amp/{darknet.h,darknet_amp.h} \
        include/darknet-amp/darknet_amp/{amp/scaler.h,tensor/status.h} \
        $lib/cmake/darknet-amp/darknet-amp-config{-version,}.cmake $lib/pkgconfig/darknet-amp.pc \
        $lib/darknet-amp/{darknet,libdarknet.a,libdarknet.so} share/man/man1/darknet-amp.1.gz \
        share/bash-completion/completions/darknet-amp $doc/{README.md,copyright}
    [ ! -f "$BUILD_DIR/CPackConfig.cmake" ] || printf '%s\n' $doc/changelog{,.Debian}.gz
    cd "$SOURCE_DIR"
    find docs -type f | sed "s:^:$doc/:"
    find cfg -type f | sed "s:^cfg:$doc/examples:"
} | sort > promised
files_of() { (cd "$1" && find . ! -type d) | sed 's:^\./::' | sort; } # files_of <folder>
files_of moved | diff promised - || fail 'other files are installed than promised (<)'
tiny_training
ldd moved/bin/darknet-amp | grep -q "$PWD/moved/.*libdarknet" ||
    fail "the program finds another library: $(ldd moved/bin/darknet-amp)"
# Of the plugin's functions it exports those of the installed headers alone.
nm -D --defined-only moved/$lib/darknet-amp/libdarknet.so | awk '{ print $3 }' |
    grep '^amp_\|^darknet_amp_' | sort > exported
grep -rhoE '(darknet_)?amp_[a-z_]*' moved/include/darknet-amp | sort -u | comm -13 - exported > others
[ ! -s others ] || fail "libdarknet.so exports $(wc -l < others) more than its headers: $(head -3 others)"
[ "$(wc -l < exported)" -ge 40 ] || fail "libdarknet.so exports $(wc -l < exported) of its hooks"
moved/bin/darknet-amp detector train tiny.data tiny.cfg > out 2> err ||
    fail "the installed program does not train: $(tail -3 err)"

# The manual and bash's completion know the verbs.
verbs=$(moved/bin/darknet-amp amp help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for verb in $verbs; do
    zcat moved/share/man/man1/darknet-amp.1.gz | grep -qx "\.B $verb" || fail "the manual lacks amp $verb"
done
completes() { # completes <expected> <words...>: the last one is being typed
    local expected=$1
    shift
    COMP_WORDS=(moved/bin/darknet-amp "$@") COMP_CWORD=$# COMPREPLY=()
    _darknet_amp "${COMP_WORDS[0]}"
    [ "${COMPREPLY[*]}" = "$expected" ] || fail "bash completes '$*' by: ${COMPREPLY[*]}, not by: $expected"
}
. moved/share/bash-completion/completions/darknet-amp
completes "$(echo $verbs)" amp ''
completes -json amp plan my.cfg -js
completes 'fp16 bf16 fp32' amp plan -dtype ''
completes '' detector train ''

command -v pkg-config > /dev/null || skip 'there is no pkg-config for the second half of this test'
cat > client.c <<'END'
#include <darknet.h>
#ifdef sprintf
#error "what is for Darknet's own files meets users of the library"
#endif
int main(void)
{
    network *net = parse_network_cfg("tiny.cfg");
    if(!net || net->n != 13 || net->amp) return 1;
    load_weights(net, "backup/tiny_final.weights");
    load_args args = get_base_args(net);
    if(args.w != 32 || args.job) return 2;
    network_predict(net, net->input);
    free_network(net);
    volatile float subnormal = 1e-40f;
    if(subnormal * 2 == 0) return 3;
    return 0;
}
END
export PKG_CONFIG_PATH=$(dirname "$(find "$PWD/moved" -name darknet-amp.pc)")
case $(pkg-config --cflags --libs darknet-amp) in
    *"$PWD"/moved/*) ;;
    *) fail "pkg-config names another folder: $(pkg-config --cflags --libs darknet-amp)" ;;
esac
[ -z "$SANITIZERS" ] || export LSAN_OPTIONS=detect_leaks=0 # of Darknet's own
cc $SANITIZERS client.c -o client $(pkg-config --cflags --libs darknet-amp) -lm
./client 2> err || fail "linked against libdarknet.so: $(tail -3 err)"
cc $SANITIZERS client.c -o client $(pkg-config --cflags darknet-amp) \
    $(pkg-config --static --libs darknet-amp | sed 's/-ldarknet/-l:libdarknet.a/')
./client 2> err || fail "linked against libdarknet.a: $(tail -3 err)"

cat > CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(client LANGUAGES C)
find_package(darknet-amp 0.1 REQUIRED)
add_executable(by_cmake client.c)
target_link_libraries(by_cmake darknet-amp::darknet)
END
cmake -S . -B client_build -DCMAKE_PREFIX_PATH="$PWD/moved" -DCMAKE_C_FLAGS="$SANITIZERS" > log 2>&1 &&
    cmake --build client_build >> log 2>&1 || fail "by CMake: $(tail -5 log)"
client_build/by_cmake 2> err || fail "built by CMake: $(tail -3 err)"

# The scaler alone, from C and from C++: a training with one overflow in it.
cat > scaler.c <<'END'
#include <darknet_amp/amp/scaler.h>
int main(void)
{
    const int found_inf[] = { 0, 1, 0, 0 };
    const float expected[] = { 256, 128, 256, 512 };
    amp_scaler params = amp_scaler_defaults();
    amp_scaler scaler;
    amp_error error;
    params.scale = 128;
    params.growth_interval = 1;
    if (amp_scaler_init(&scaler, &params, &error) != AMP_OK) return 1;
    for (int step = 0; step < 4; step++) {
        if (amp_scaler_update(&scaler, found_inf[step]) != AMP_OK || scaler.scale != expected[step]) return 2;
        if (amp_scaler_inverse(&scaler) * expected[step] != 1) return 3;
    }
    volatile float subnormal = 1e-40f; /* the library leaves the processor's settings to the program */
    if (subnormal * 2 == 0) return 4;
    return amp_scaler_problem(&scaler) || amp_scaler_would_diverge(&scaler) ? 5 : 0;
}
END
cp scaler.c scaler.cpp
for compiler in 'cc -std=c11 scaler.c' 'c++ -std=c++11 scaler.cpp'; do
    $compiler $SANITIZERS -Wall -Wextra -Wpedantic -Wconversion -Werror -o scaler \
        $(pkg-config --cflags --libs darknet-amp) 2> log || fail "$compiler: $(cat log)"
    ./scaler || fail "$compiler: the scaler alone ends with status $?"
done

# The package. (If cpack knew that the build is made by make, it would have it build all first.)
[ -f "$BUILD_DIR/CPackConfig.cmake" ] && [ -z "$SANITIZERS" ] || exit 0
for tool in dpkg-shlibdeps dpkg-deb file; do
    command -v $tool > /dev/null || skip "there is no $tool for the last part of this test, the package"
done
cpack --config "$BUILD_DIR/CPackConfig.cmake" -B "$PWD/package" -D CPACK_CMAKE_GENERATOR=Ninja > log 2>&1 ||
    fail "cpack: $(tail -3 log)"
dpkg-deb -x package/darknet-amp_*.deb unpacked
files_of unpacked/usr | diff promised - || fail 'other files are in the package than promised (<)'
unpacked/usr/bin/darknet-amp amp version > out || fail "the program of the package: status $?"
needs=$(dpkg-deb -f package/darknet-amp_*.deb Depends)
openmp=libgomp1 # gcc's; clang's is libomp5
! readelf -d unpacked/usr/bin/darknet-amp | grep -q 'NEEDED.*libomp' || openmp=libomp5
for library in libc6 libdnnl $openmp; do
    case $needs in *$library*) ;; *) fail "the package does not depend on $library, but on: $needs" ;; esac
done
