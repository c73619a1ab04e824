# A training that overflows for ever ends with one line that says where it began, since when, and what is
# left: status 1, and the checkpoint on disk is one from before.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
sed -e 's/^max_batches=.*/max_batches=400/' -e 's/^learning_rate=.*/learning_rate=0.0005/' tiny.cfg > good.cfg
explode() { sed -e "s/^steps=.*/steps=$1/" -e "s/^scales=.*/scales=$2/" good.cfg; }

train=(timeout 600 "$DARKNET" detector train tiny.data)

# All 32-bit numbers behind a file's header are finite: no exponent is all ones.
finite() {
    local words
    words=$(od -An -v -tx4 -j20 -w4 "$1" | tr -d ' ')
    [ -n "$words" ] || fail "$1 is empty"
    ! echo "$words" | grep -qi '^[7f][f][89abcdef]' || fail "$1 holds inf or NaN"
}

explode 120 1e10 > boom.cfg
for amp in fp16 bf16; do
    rm -f backup/*
    ends_saying 'training has collapsed: .*; last good step: 120; last saved: backup/boom_100.weights;' \
        "${train[@]}" boom.cfg -amp $amp -seed 3
    case $amp in # what to try depends on the dtype of the layer that overflowed
        fp16) holds err '; try dtype=bf16, or amp=0 in layer [0-9]*, since fp16' ;;
        *) holds err '; try a lower learning_rate' ;;
    esac
    [ "$(grep -c 'training has collapsed' err)" = 1 ] || fail "$amp: not one line of it: $(tail -3 err)"
    [ ! -e backup/boom_final.weights ] || fail "$amp: the weights were saved as final"
    finite backup/boom.backup
    finite backup/boom_100.weights
    cmp backup/boom.backup backup/boom_100.weights
    # and it is one to go on with
    cp backup/boom.backup before
    sed 's/^max_batches=.*/max_batches=104/' good.cfg > on.cfg
    succeeds "${train[@]}" on.cfg backup/boom.backup -amp $amp -seed 3
    holds err '^amp: resumed from backup/boom.backup.amp: step 100,'
    holds err '^amp: summary .* steps=104 '
    finite backup/on_final.weights
    cmp before backup/boom.backup
done

# weights_beyond_use_replace_no_checkpoint: the step that is to be saved makes the weights absurd: the file
# stays away, and the next step ends it.
explode 100 1e30 > boom.cfg
rm -f backup/*
ends_saying '^amp: training has collapsed: weights .*; last good step: 100; last saved: none yet' \
    "${train[@]}" boom.cfg -amp bf16 -seed 3
[ -z "$(ls backup)" ] || fail "weights beyond use were saved: $(ls backup)"
holds err '^amp: backup/boom.backup could not be written: .* after step 100; training continues'
