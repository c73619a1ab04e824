# -fit: what does not fit into memory as the .cfg has it trains with more subdivisions or with activation
# checkpointing, whichever the planner takes for faster, and ends in the bytes of a training whose .cfg has
# what -fit has printed. What fits is left as it is; what cannot fit at all is refused.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/memory_limit.bash"
[ -z "$SANITIZERS" ] || skip 'sanitizers take an address space of their own'
export OMP_NUM_THREADS=1

large_training

# by_hand <cfg>: the .cfg with what `out` says that -fit has chosen.
by_hand() {
    local subdivisions
    subdivisions=$(sed -n 's/^amp: -fit: subdivisions=\([0-9]*\) in \[net\].*/\1/p' out)
    sed "s/^subdivisions=.*/subdivisions=${subdivisions:-$(sed -n 's/^subdivisions=//p' "$1")}/" "$1"
    ! grep -q '^amp: -fit: checkpoint=auto in \[amp\]' out || printf '[amp]\namp=1\ncheckpoint=auto\n'
}

what_fits_is_left_as_it_is() {
    # What fits is left as it is, to the byte.
    train 16000 large.cfg -amp bf16 || fail "does not train: $(tail -n 3 out)"
    mv backup/large_final.weights without.weights
    train 16000 large.cfg -amp bf16 -fit || fail "does not train: $(tail -n 3 out)"
    grep -q '^amp: -fit: the training fits as the .cfg has it: ' out || fail "$(grep -e -fit out)"
    cmp without.weights backup/large_final.weights || fail '-fit changes what fits'
}

what_does_not_fit_is_made_to_fit() {
    # The least limit with which it trains without -fit, to 4 MiB: below, -fit has something to do.
    least_limit 4
    trained=0
    for less in 5 30 60 75 90; do
        limit=$((high - less))
        if train $limit large.cfg -amp fp32 -fit; then
            grep -q '^amp: -fit: as the .cfg has it the training needs ' out ||
                fail "$limit MiB: $(grep -e -fit out)"
            by_hand large.cfg > hand.cfg
            ! cmp -s large.cfg hand.cfg || fail "$limit MiB: nothing was changed: $(grep -e -fit out)"
            mv backup/large_final.weights fitted.weights
            train 16000 hand.cfg -amp fp32 || fail "$limit MiB, by hand: $(tail -n 3 out)"
            cmp fitted.weights backup/hand_final.weights ||
                fail "$limit MiB: not what the printed settings train"
            trained=$((trained + 1))
        else
            # Nor does it with one image a pass and all that can be computed again.
            sed 's/^subdivisions=2/subdivisions=32/' large.cfg > least.cfg
            printf '[amp]\namp=1\ncheckpoint=auto\n' >> least.cfg
            grep -q '^amp: not enough memory: ' out || fail "$limit MiB: $(tail -n 3 out)"
            ! train $limit least.cfg -amp fp32 || fail "$limit MiB are enough with subdivisions=32"
        fi
    done
    [ $trained -ge 2 ] || fail "only $trained of five limits trained"
}

the_largest_size_has_to_fit() {
    # With random=1 the largest size has to fit: 608 x 608, 14 times the pixels.
    train 1000 large.cfg -amp fp32 -fit || fail "$(tail -n 3 out)"
    grep -q '^amp: -fit: the training fits as the .cfg has it: ' out || fail "$(grep -e -fit out)"
    sed 's/random=0/random=1/' large.cfg > random.cfg
    train 1000 random.cfg -amp fp32 -fit || fail "random=1: $(tail -n 3 out)"
    grep -qE '^amp: -fit: (subdivisions=|checkpoint=auto)' out || fail "random=1: $(grep -e -fit out)"
}

# What is no training under AMP is not planned.
train=(detector train tiny.data large.cfg)
ends_saying 'command line: -fit: it only plans trainings under AMP' "$DARKNET" "${train[@]}" -fit
ends_saying 'command line: -fit is given twice' "$DARKNET" "${train[@]}" -amp bf16 -fit -fit

what_fits_is_left_as_it_is
what_does_not_fit_is_made_to_fit
the_largest_size_has_to_fit
