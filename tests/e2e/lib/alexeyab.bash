# For the tests of AlexeyAB's Darknet, whose tree no script of ours gets: they skip themselves where it is
# not.
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"

needs_alexeyab() {
    [ -n "$ALEXEYAB_TREE" ] ||
        skip "no tree of AlexeyAB's Darknet in alexeyab/ of the folders that DARKNET_AMP_TREES lists"
}

# As tiny_training, for this Darknet: it looks for labels beside the images, wants 8 images a step, and trains
# with its own rules of yolo, which diverge sooner.
tiny_alexeyab() {
    tiny_training
    mv labels/* images/
    sed -i -e 's/^batch=4/batch=8/' -e 's/^learning_rate=.*/learning_rate=0.0005/' tiny.cfg
}
