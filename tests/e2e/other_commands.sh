# Commands that look into a network rather than at its last output: under AMP they show what stock shows, or
# end with one line that says why not.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training

cfg() { # cfg <file>: a small network whose sections after [net] come from stdin, and weights for it
    { printf '[net]\nwidth=32\nheight=32\nchannels=3\nbatch=1\n'; cat; } > $1.cfg
    "$DARKNET" partial $1.cfg /dev/null $1.weights 100 > /dev/null 2>&1 || fail "no weights for $1.cfg"
}
conv() { printf '[convolutional]\nfilters=%s\nsize=3\nstride=1\npad=1\nactivation=leaky\n' "$@"; }
cost='[cost]\ntype=sse\n'
{ conv 8; conv 3; printf '[logistic]\n'; } | cfg image
{ conv 3; printf "[upsample]\nstride=2\n$cost"; } | cfg large
{ conv 8; conv 3; printf "$cost"; } | cfg made
{ conv 3; conv 8; conv 4; printf "$cost"; } | cfg inner
{ conv 2; printf '[avgpool]\n[softmax]\n'; } | cfg class
echo 'labels=tiny.names' >> tiny.data

shows() { # shows <picture> <arguments...>: the same in fp32 as without AMP, and something in bf16
    local picture=$1 dtype
    shift
    for dtype in off fp32 bf16; do
        rm -f "$picture"
        succeeds "$DARKNET" "$@" -amp $dtype
        [ -s "$picture" ] || fail "$* -amp $dtype made no $picture"
        mv "$picture" $dtype.jpg
    done
    cmp off.jpg fp32.jpg || fail "$*: another picture"
}
shows pred.jpg segmenter test tiny.data image.cfg image.weights images/1.jpg
shows pred.jpg isegmenter test tiny.data image.cfg image.weights images/1.jpg
shows out.jpg super test large.cfg large.weights images/1.jpg
shows out.jpg lsd test made.cfg made.weights images/1.jpg

# Each image is a loading job of its own.
mkdir results
"$DARKNET" partial tiny.cfg /dev/null tiny.weights 100 > /dev/null 2>&1 || fail 'no weights for tiny.cfg'
for dtype in off bf16; do
    rm -f results/*
    succeeds "$DARKNET" detector valid tiny.data tiny.cfg tiny.weights -amp $dtype
    [ -e results/comp4_det_test_round.txt ] || fail "detector valid -amp $dtype: no results"
done

refused() { # refused <why> <arguments...>: under AMP, and not without
    succeeds "$DARKNET" "${@:2}" -amp off
    ends_saying "amp: .*$1.*-amp off" "$DARKNET" "${@:2}" -amp bf16
}
refused "shows layers' fp32 outputs" visualize inner.cfg inner.weights
refused "an inner layer's fp32 output is wanted" lsd test inner.cfg inner.weights images/1.jpg
refused "an inner layer's fp32 output is wanted" lsd inter inner.cfg inner.weights
refused '`classifier try` prints' classifier try tiny.data class.cfg class.weights images/1.jpg 0
refused 'cuts the network to 2 of its' nightmare inner.cfg inner.weights images/1.jpg 1 -iters 1 -octaves 1

# gcc's OpenMP, which oneDNN uses whatever has compiled the rest, reads its environment when it is loaded, and
# says so each time. Only a command that computes for long is started again, for its threads.
starts() { # starts <times> <arguments...>
    status_of env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose "$DARKNET" "${@:2}"
    [ "$(grep -c 'GOMP_SPINCOUNT =' err)" = $1 ] || fail "${*:2}: not started $1 times: $(cat err)"
}
for command in version 'clean tiny.cfg -' 'log none.csv' 'check tiny.cfg' 'plan tiny.cfg'; do
    starts 1 amp $command
done
starts 1 detector train no.data tiny.cfg -amp off
starts 2 detector train -clear no.data tiny.cfg -amp bf16
holds err '^no.data: cannot read the .data file'
starts 2 amp bench -h
