# Photographs of blood cells: in every precision a short training starts from the same loss, learns, and gives
# weights that stock Darknet reads. (The whole trainings are in docs/results.)
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/data.bash"
unpack bccd
cd bccd
steps=48
[ -z "${SANITIZERS:-}" ] || steps=4 # they are slow: there it only has to run
sed "s/^max_batches=.*/max_batches=$steps/" "$SOURCE_DIR/cfg/bccd.cfg" > short.cfg
losses() { grep -aE '^[0-9]+: .* avg' $1.out | sed 's/^[0-9]*: \([^,]*\),.*/\1/'; }
for dtype in fp32 bf16 fp16; do
    "$DARKNET" detector train bccd.data short.cfg -amp $dtype -seed 3 > $dtype.out 2> $dtype.err ||
        fail "$dtype: $(tail -1 $dtype.err)"
    mv backup/short_final.weights $dtype.weights
    first=$(losses $dtype | head -1)
    last=$(losses $dtype | tail -10 | awk '{ sum += $1 } END { print sum / NR }')
    echo "$dtype: loss $first -> $last, $(grep -o 'skipped=.*' $dtype.err)"
    [ $steps -lt 48 ] || awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a / 10) }' ||
        fail "$dtype: loss $first -> $last in $steps steps"
    awk -v a="$first" -v b="$(losses fp32 | head -1)" 'BEGIN { exit !(a / b > .98 && a / b < 1.02) }' ||
        fail "$dtype starts at loss $first, fp32 at $(losses fp32 | head -1): not the same weights and images"
done
[ -z "$DARKNET_STOCK" ] || [ $steps -lt 48 ] || {
    # Where a new training begins at a loss some 30 times as high. (What boxes are found says less: rolling
    # statistics are young.)
    sed -e '/^\[amp\]/,/^dtype/d' -e "s/^max_batches=.*/max_batches=$((steps + 1))/" short.cfg > stock.cfg
    "$DARKNET_STOCK" detector train bccd.data stock.cfg bf16.weights > stock.out 2> stock.err ||
        true # it ends with its loader thread still at work, and may crash
    next=$(losses stock)
    [ -n "$next" ] || fail "stock Darknet cannot use the weights: $(tail -1 stock.err)"
    awk -v a="$(losses bf16 | head -1)" -v b="$next" 'BEGIN { exit !(b > 0 && b < a / 5) }' ||
        fail "stock Darknet goes on with the weights at a loss of '$next', behind $(losses bf16 | tail -1)"
}
