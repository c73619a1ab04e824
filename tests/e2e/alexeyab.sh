# AlexeyAB's Darknet: the patches apply exactly; without AMP the compiler sees the same text, and training
# gives the very bytes of the stock program.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
. "$SOURCE_DIR/tests/e2e/lib/patches.bash"
. "$SOURCE_DIR/tests/e2e/lib/same_text.bash"
needs_alexeyab
stock=$ALEXEYAB_TREE

# ---- patches ----
patches_apply alexeyab "$stock" \
    'README.md alexeyab darknet data family fork.h fork_commands.h network program training'
# Without these hooks it would only leak, or load more slowly.
for hook in 'free(&net)' 'job(&a, AMP_PART_BEGINS)' 'job(&a, AMP_PART_ENDS)' 'fill('; do
    [ "$(grep -rhoF "darknet_amp_$hook" patched/src | wc -l)" = 1 ] || fail "a patch has lost its $hook"
done

# ---- without AMP ----
same_text "$stock" patched

[ -n "$ALEXEYAB" ] && [ -n "$ALEXEYAB_STOCK" ] ||
    { echo 'only the patches were looked at: no program was built'; exit 0; }
tiny_alexeyab
same_as_stock yolo detector train tiny.data tiny.cfg -dont_show
cp yolo/stock/tiny_final.weights start.weights
same_as_stock resumed detector train tiny.data tiny.cfg start.weights -dont_show -clear

# What is this fork's alone: mish and swish, parts of a route, squeeze and excite, sam, ciou, averaged
# weights, mixup.
layers > modern.cfg <<'END'
[net] batch=8 subdivisions=2 width=32 height=32 channels=3 momentum=0.9 decay=0.0005 saturation=1.5
    exposure=1.5 hue=.1 mixup=1 learning_rate=0.0005 max_batches=8 ema_alpha=0.9 policy=sgdr
[convolutional] batch_normalize=1 filters=16 size=3 stride=2 pad=1 activation=mish
[route] layers=-1 groups=2 group_id=1
[convolutional] batch_normalize=1 filters=16 size=3 pad=1 dilation=2 activation=swish
[avgpool]
[convolutional] filters=16 size=1 activation=logistic
[scale_channels] from=-3
[convolutional] filters=16 size=1 activation=logistic
[sam] from=-2
[convolutional] filters=21 size=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14 classes=2 num=3 jitter=.3 ignore_thresh=.7 truth_thresh=1
    iou_loss=ciou scale_x_y=1.05 iou_normalizer=0.07 max_delta=5 random=0
END
sed 's/tiny/modern/' tiny.data > modern.data
cp tiny.names modern.names
same_as_stock modern detector train modern.data modern.cfg -dont_show

class_training min_crop=32 max_crop=40 hue=.1 label_smooth_eps=.1
same_as_stock class classifier train kinds.data class.cfg -dont_show

# ---- its own validation, where each image is a loading job of its own ----
mkdir results
for program in "$ALEXEYAB_STOCK" "$ALEXEYAB" "$ALEXEYAB -amp bf16"; do
    for verb in map valid; do
        $program detector $verb tiny.data tiny.cfg start.weights > "out_$verb" 2> err < /dev/null ||
            fail "$program detector $verb: $(tail -n 1 err)"
    done
    grep '(mAP@0.50) =' out_map >> measured || fail "$program detector map: $(tail -n 1 out_map)"
done
[ "$(sed -n 1p measured)" = "$(sed -n 2p measured)" ] || fail "another mAP: $(cat measured)"
