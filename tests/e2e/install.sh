# cmake --install gives a folder that works after it was moved: the program, the libraries, the headers,
# pkg-config; and the GradScaler for programs that are no Darknet's.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"

cmake --install "$BUILD_DIR" --prefix "$PWD/first" > log || fail "$(cat log)"
mv first moved
[ -n "$(find moved -name LICENSE)" ] || fail 'the licence is not installed'
tiny_training
ldd moved/bin/darknet | grep -q "$PWD/moved/.*libdarknet" ||
    fail "the program finds another library: $(ldd moved/bin/darknet)"
moved/bin/darknet detector train tiny.data tiny.cfg > out 2> err ||
    fail "the installed program does not train: $(tail -3 err)"

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
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") ./client 2> err ||
    fail "linked against libdarknet.so: $(tail -3 err)"
cc $SANITIZERS client.c -o client $(pkg-config --cflags darknet-amp) \
    $(pkg-config --static --libs darknet-amp | sed 's/-ldarknet/-l:libdarknet.a/')
./client 2> err || fail "linked against libdarknet.a: $(tail -3 err)"

# The scaler alone, from C and from C++: a training with one overflow in it.
cat > scaler.c <<'END'
#include <darknet_amp/amp/scaler.h>
int main(void)
{
    const int found_inf[] = { 0, 1, 0, 0 };
    const float expected[] = { 256, 128, 256, 512 };
    amp_scaler_params params = amp_scaler_defaults();
    amp_scaler scaler;
    amp_error error;
    params.scale = 128;
    params.growth_interval = 1;
    if (amp_scaler_init(&scaler, &params, &error) != AMP_OK) return 1;
    for (int step = 0; step < 4; step++) {
        if (amp_scaler_update(&scaler, found_inf[step]) != AMP_OK || scaler.scale != expected[step]) return 2;
        if (amp_scaler_inverse(&scaler) * expected[step] != 1) return 3;
    }
    params.backoff_factor = 2;
    if (amp_scaler_init(&scaler, &params, &error) != AMP_BAD_CONFIG || scaler.skipped != 1) return 4;
    puts(error.message);
    volatile float subnormal = 1e-40f; /* the library leaves the processor's settings to the program */
    if (subnormal * 2 == 0) return 6;
    return amp_scaler_problem(&scaler) || amp_scaler_would_diverge(&scaler) ? 5 : 0;
}
END
cp scaler.c scaler.cpp
includes=$(pkg-config --variable=includedir darknet-amp)
for compiler in 'cc -std=c11 scaler.c' 'c++ -std=c++11 scaler.cpp'; do
    $compiler $SANITIZERS -Wall -Wextra -Wpedantic -Wconversion -Werror -o scaler -I"$includes" \
        $(pkg-config --libs darknet-amp) 2> log || fail "$compiler: $(cat log)"
    said=$(LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") ./scaler) ||
        fail "$compiler: the scaler alone ends with status $?"
    [ "$said" = 'GradScaler: backoff_factor is not between 0 and 1' ] || fail "$compiler: says $said"
done
