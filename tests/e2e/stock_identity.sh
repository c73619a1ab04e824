# Without AMP, the patched Darknet trains to the very bytes of stock Darknet built with the same flags.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
[ -n "$DARKNET_STOCK" ] || skip 'built without DARKNET_AMP_BUILD_STOCK'

cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/one_order.c" -o one_order.so -ldl
tiny_training
sed -i 's/^policy=.*/policy=random\npower=2/' tiny.cfg # a rate that is drawn from rand() at each look
train() { # train <program> <folder> [options]
    local program=$1 folder=$2
    shift 2
    mkdir "$folder"
    preloaded one_order.so OMP_NUM_THREADS=1 ONE_ORDER_LOG="$folder/threads" \
        "$program" detector train tiny.data tiny.cfg "$@" > "$folder/out" 2> "$folder/err" ||
        [ "$program" = "$DARKNET_STOCK" ] || # may crash at its end, with its loader at work, having saved
        fail "$program: $(tail -3 "$folder/err")"
    mv backup/tiny_final.weights "$folder"
}
train "$DARKNET_STOCK" stock
train "$DARKNET_STOCK" stock_again
train "$DARKNET" patched
train "$DARKNET" logged -log steps.csv
cmp stock/tiny_final.weights stock_again/tiny_final.weights ||
    fail 'stock Darknet differs from itself: the test is broken'
for folder in patched logged; do
    cmp stock/tiny_final.weights $folder/tiny_final.weights || fail "$folder: trains to other weights"
done
# Subnormal numbers are 0 in all threads, as in stock's program, though the library does not ask for it.
case $(uname -m)$SANITIZERS in
    x86_64)
        for log in $(find stock/threads -size +0 2> /dev/null) patched/threads; do # see train
            [ "$(cat $log)" = 'threads that keep subnormal numbers: 0' ] || fail "$log: $(cat $log)"
        done ;;
esac
