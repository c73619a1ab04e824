# AlexeyAB's Darknet under AMP: its own .cfg files pass the check, and AMP computes all layers of its
# detectors itself; a step's loss is stock's; a training continues to the bit, also with Adam, and a
# classifier's, which learns what pjreddie's Darknet does; layers that are not to learn do not; a skipped step
# is not counted, nor averaged; what AMP cannot follow ends with a line.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
[ -n "$ALEXEYAB" ] || skip 'no program of it was built'
export OMP_NUM_THREADS=2
case $SANITIZERS in *thread*) OMP_NUM_THREADS=1 ;; esac # it does not see the barriers of libgomp
opencv=$(ldd "$ALEXEYAB" | grep -c libopencv || true)
tiny_alexeyab
cfgs=$ALEXEYAB_TREE/cfg

small() { # small <name>: its .cfg with images of 64x64, as small.cfg; mosaic and cutmix want OpenCV
    tr -d '\r' < "$cfgs/$1.cfg" | sed -e 's/^\(width\|height\) *=.*/\1=64/' -e 's/^batch *=.*/batch=2/' \
        -e 's/^subdivisions *=.*/subdivisions=1/' -e 's/^max_batches *=.*/max_batches=1/' \
        -e 's/^burn_in *=.*/burn_in=0/' \
        -e 's/^random *=.*/random=0/' -e '/^mosaic\|^cutmix\|^ema_alpha/d' > small.cfg
}

# ---- where it looks for labels ----
mv images/[45].txt labels
! "$ALEXEYAB" amp check tiny.cfg tiny.data > out 2> err || fail 'labels in labels/ pass the check'
holds out "^error: $PWD/images/4.txt: .*looks for labels beside their image.* 2 of the 8 images"
mv labels/* images
succeeds "$ALEXEYAB" amp check tiny.cfg tiny.data
. "$SOURCE_DIR/tests/e2e/lib/options.bash"
TABLES='alexeyab/own.c family/types.h'
options_of run_detector "$ALEXEYAB_TREE/src/detector.c" 1
options_of run_classifier "$ALEXEYAB_TREE/src/classifier.c" 2
for words in '-chart c.png -mAP_epochs 2 train' 'train -iou_thresh .5 -points 101'; do
    succeeds "$ALEXEYAB" detector $words tiny.data tiny.cfg -dont_show -amp fp32
done
# It takes carriage returns off its lists.
sed -i 's/$/\r/' train.txt
succeeds "$ALEXEYAB" amp check tiny.cfg tiny.data
succeeds "$ALEXEYAB" detector train tiny.data tiny.cfg -dont_show -amp fp32
! grep 'cannot be read' err || fail 'with carriage returns images cannot be read'
sed -i 's/\r$//' train.txt

# ---- against stock ----
sed 's/classes=2/classes=80/' tiny.data > coco.data
loss_of() { sed -n 's/^ *1: \([0-9.]*\), .*/\1/p' "$1"; }
data=coco.data
for name in yolov3-tiny yolov4-tiny; do
    small $name
    for dtype in off fp32 bf16; do train $dtype small.cfg -amp $dtype; done
    awk -v stock="$(loss_of off.out)" -v full="$(loss_of fp32.out)" -v half="$(loss_of bf16.out)" 'BEGIN {
        if (!(stock > 0)) exit 1
        d = full / stock - 1; h = half / stock - 1
        exit !(d < 1e-5 && d > -1e-5 && h < 1e-2 && h > -1e-2) }' ||
        fail "$name: the first loss is $(loss_of off.out) in stock, under AMP $(loss_of fp32.out)," \
            "in bf16 $(loss_of bf16.out)"
done

# Where no layers branch, stock's CPU loses no gradient: the losses of several steps agree.
sed 's/classes=2/classes=20/' tiny.data > voc.data
small yolov2-tiny-voc
sed -i -e 's/^max_batches=.*/max_batches=4/' -e 's/^learning_rate *=.*/learning_rate=0.0001/' small.cfg
data=voc.data
for dtype in off fp32; do
    train $dtype small.cfg -amp $dtype
    sed -n 's/^ *\([0-9]\): \([0-9.]*\), .*/\1 \2/p' $dtype.out > $dtype.losses
done
data=tiny.data
[ "$(wc -l < off.losses)" = 4 ] || fail 'not 4 steps of yolov2-tiny-voc'
paste off.losses fp32.losses | awk '{ d = $4 / $2 - 1 } d > 1e-4 || d < -1e-4 { exit 1 }' ||
    fail "yolov2-tiny-voc: the losses are $(paste off.losses fp32.losses)"

# ---- a training, and its continuation (with a cache: e2e_seed) ----
goes_on tiny.cfg -amp bf16
cp whole/tiny_final.weights trained.weights
sed 's/^momentum=.*/adam=1\nadamw=1/' tiny.cfg > adam.cfg
goes_on adam.cfg -amp fp16
sed 's/^random=0/random=1/; s/^momentum=.*/&\nresize_step=8/; 0,/^filters=8/s//&\nxnor=1/' tiny.cfg \
    > sizes.cfg
goes_on sizes.cfg -amp bf16
holds half.out '^ 56 x 56'
sed 's/^random=0/random=1/; s/^width=.*/width=3072/' tiny.cfg > wide.cfg
goes_on wide.cfg -amp bf16
holds half.out '^ 4320 x 64'
awk '/^\[shortcut\]/ { print "[convolutional]\nfilters=16\nsize=1\nactivation=swish\nshare_index=3\n" }
    /^from=/ { $0 = "from=-2,-3\nweights_type=per_channel\nweights_normalization=relu" } 1' tiny.cfg \
    > weights.cfg
goes_on weights.cfg -amp bf16
sed '/^weights_normalization/d' weights.cfg > wrong.cfg
! "$ALEXEYAB" amp check wrong.cfg > out 2>&1 || fail 'weights that nothing normalizes pass the check'
holds out '^error: .*weights_type = per_channel: weights need weights_normalization'
# Averages that are never computed are reported, and only those.
for steps in 2000 2002; do
    sed "s/^max_batches=.*/max_batches=$steps\nema_alpha=.9/" tiny.cfg > averaged.cfg
    "$ALEXEYAB" amp check averaged.cfg > out 2>&1 || fail "amp check: $(cat out)"
    never='ema_alpha = .9: has no effect, since weights are averaged from step 1000 .* to step 1000 '
    said=$(grep -c "$never" out) || true
    [ $said = $((steps == 2000)) ] || fail "with max_batches=$steps and ema_alpha: $(cat out)"
done

# Its smallest box is a pixel of the network's input, and a step uses as many of an image as max= says.
sed 's/^jitter/max=3\njitter/' tiny.cfg > few.cfg
cp images/1.txt good.txt
for box in .2 .3 .4 .02; do echo "0 .5 .5 $box .5"; done > images/1.txt
succeeds "$ALEXEYAB" detector train tiny.data few.cfg -dont_show -amp bf16 -seed 3
file=$PWD/images/1.txt
small='this box takes 0.02 x 0.5 of its image; Darknet ignores boxes below 0.03125 x 0.03125'
for line in "$file:4: $small" "$file: 4 boxes, of which each step uses 3, chosen at random"; do
    grep -qF "amp: $line" err || fail "nothing says: $line"
done
mv good.txt images/1.txt

ends_saying '^command line: -patience counts measurements of -map; add -map \[N\]$' \
    "$ALEXEYAB" detector train tiny.data tiny.cfg -dont_show -amp bf16 -patience 3

. "$SOURCE_DIR/tests/e2e/lib/late_label.bash"
late_label "$ALEXEYAB" images -dont_show

# ---- a classifier ----
two_kinds
layers > class.cfg <<'END'
[net] batch=8 subdivisions=2 width=32 height=32 channels=3 min_crop=32 max_crop=40 hue=.1 saturation=1.5
    mixup=1 label_smooth_eps=.1 learning_rate=0.01 burn_in=3 max_batches=6
[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=leaky
[dropout] probability=.3
[convolutional] batch_normalize=1 filters=16 size=3 stride=2 pad=1 activation=mish
[convolutional] filters=2 size=1 activation=linear
[avgpool]
[softmax]
END
sed 's/^learning_rate=.*/learning_rate=0.001\nadam=1/' class.cfg > class_adam.cfg
kind=classifier data=kinds.data
goes_on class.cfg -amp bf16
train cached class.cfg -amp bf16 -cache ram
cmp whole/class_final.weights cached/class_final.weights || fail 'a classifier with -cache ram: other weights'
succeeds "$ALEXEYAB" amp compare kinds.data class.cfg -dtypes fp32 -seeds 1 -iters 2
goes_on class_adam.cfg -amp fp16
succeeds "$ALEXEYAB" classifier valid kinds.data class.cfg whole/class_adam_final.weights -amp bf16
# It gives one image to a network of several time steps (AddressSanitizer sees what is read after it).
layers > steps.cfg <<'END'
[net] batch=6 subdivisions=2 time_steps=3 width=32 height=32 channels=3
[convolutional] filters=8 size=3 stride=2 pad=1 activation=leaky
[crnn] hidden=4 output=4 size=3 pad=1 activation=leaky
[connected] output=2 activation=linear
[softmax]
END
succeeds "$ALEXEYAB" classifier valid kinds.data steps.cfg -amp bf16 -seed 3

# Where both Darknets have the same rules (no batch norm), and one image whose crops are all alike, both
# builds train to the same weights, with momentum and with Adam.
{ printf 'P6\n64 64\n255\n'; yes abc | tr -d '\n' | head -c 12288; } > images/flat.round.jpg
echo "$PWD/images/flat.round.jpg" > flat.txt
sed 's/=kinds.txt/=flat.txt/' kinds.data > flat.data
layers > flat.cfg <<'END'
[net] batch=4 subdivisions=2 width=32 height=32 channels=3 min_crop=32 max_crop=32 flip=0 momentum=.9
    decay=.0005 learning_rate=0.01 max_batches=6
[convolutional] filters=8 size=3 stride=2 pad=1 activation=leaky
[maxpool] size=2 stride=2
[convolutional] filters=16 size=3 stride=1 pad=1 activation=logistic
[route] layers=-1,-2
[connected] output=12 activation=tanh
[connected] output=2 activation=linear
[softmax]
END
sed 's/^learning_rate=.*/learning_rate=0.001\nadam=1\nB1=.8\nB2=.99\neps=1e-4/' flat.cfg > flat_adam.cfg
sed -e 's/^learning_rate=.*/learning_rate=0/' -e 's/^max_batches=.*/max_batches=1/' flat.cfg > flat_start.cfg
weights_of() { tail -c +21 "$1"; } # without the header
data=flat.data
train start flat_start.cfg -amp fp32
# Nearly the same: with an xnor layer, which is Darknet's own, and the two add up its products in another
# order; and with OpenCV, where a pixel's byte is divided by 255 in another precision. (Of an xnor layer
# stock's CPU takes all weights for one filter's, and writes beyond them.)
sed 's/^filters=16/&\nxnor=1/' flat.cfg > flat_xnor.cfg
for cfg in flat flat_adam flat_xnor; do
    rm -f backup/*
    succeeds "$DARKNET" classifier train flat.data $cfg.cfg start/flat_start_final.weights -clear -amp fp32 \
        -seed 5
    weights_of backup/$cfg.weights > expected
    ! weights_of start/flat_start_final.weights | cmp -s - expected || fail "$cfg: nothing is learnt"
    rm -f backup/*
    succeeds "$ALEXEYAB" classifier train flat.data $cfg.cfg start/flat_start_final.weights -clear -amp fp32 \
        -seed 5 -dont_show
    weights_of backup/${cfg}_final.weights > found
    for file in found expected; do { head -c 20 /dev/zero; cat $file; } > $file.weights; done
    if [ $cfg = flat_xnor ] || [ "$opencv" != 0 ]; then weights_near expected.weights found.weights
    else cmp found expected || fail "$cfg: other weights than pjreddie's Darknet"
    fi
done
kind=detector data=tiny.data

# ---- grey images ----
# Its detector's loader makes them as stock's does: the first step's loss is stock's, and the boxes are those
# of its own measuring.
sed 's/^channels=3/channels=1/; s/^burn_in=.*/burn_in=0/' tiny.cfg > grey.cfg
succeeds "$ALEXEYAB" amp check grey.cfg tiny.data
for dtype in off fp32; do train grey.$dtype grey.cfg -amp $dtype; done
awk -v stock="$(loss_of grey.off.out)" -v full="$(loss_of grey.fp32.out)" \
    'BEGIN { d = full / stock - 1; exit !(stock > 0 && d < 1e-5 && d > -1e-5) }' ||
    fail "channels=1: the first loss is $(loss_of grey.off.out), under AMP $(loss_of grey.fp32.out)"
train grey.map grey.cfg -amp fp32 -map 5 -cache ram
cmp grey.fp32/grey_final.weights grey.map/grey_final.weights || fail 'channels=1: other weights, cached'
last=$(sed -n 's/^ mean average precision (mAP@0.50) = \([0-9.]*\) .*/\1/p' grey.map.out | tail -n 1)
succeeds "$ALEXEYAB" detector map tiny.data grey.cfg grey.map/grey_final.weights
own=$(sed -n 's/.*detections_count = \([0-9]*\).*/\1/p' out)
succeeds "$ALEXEYAB" amp valid tiny.data grey.cfg grey.map/grey_final.weights
grep -q ", $own detections" out && grep -q "(mAP@0.50) = $last, or" out ||
    fail "channels=1: $own boxes and $last in -map, but: $(tail -n 3 out)"
succeeds "$ALEXEYAB" amp compare tiny.data grey.cfg -dtypes fp32,bf16 -seeds 1 -iters 2
sed 's/^channels=3/channels=4/' tiny.cfg > wrong.cfg
for cfg in wrong grey; do
    kind=$([ $cfg = grey ] && echo classifier || echo detector)
    ends_saying 'channels = [14]: `[a-z]* train` loads only images with [123, ]* channels; allowed: ' \
        "$ALEXEYAB" $kind train tiny.data $cfg.cfg -amp fp32 -dont_show
done
kind=detector

# ---- what is done with it ----
# Its commands for pictures load one at a time, which no hook of a batch may stumble over.
{ cat tiny.cfg; printf '[amp]\ndtype=bf16\n'; } > amp.cfg
works() { succeeds "$ALEXEYAB" "$@"; }
works detector map tiny.data amp.cfg trained.weights
works detector map tiny.data tiny.cfg trained.weights
works detector test tiny.data amp.cfg trained.weights images/1.jpg -dont_show
works amp valid tiny.data amp.cfg trained.weights
# -map has the options of its own -map, and refuses what it cannot follow.
maps() { # maps <options...>: the last mAP, as "0.10 0.304102", and the line that announces it
    fresh
    works detector train tiny.data trained.cfg trained.weights -clear -amp fp32 -dont_show -seed 1 "$@"
    sed -n 's/^ mean average precision (mAP@\([0-9.]*\)) = \([0-9.]*\) .*/\1 \2/p' out | tail -n 1 > map.txt
}
sed -e 's/^learning_rate=.*/learning_rate=0/' -e 's/^max_batches=.*/max_batches=1/' tiny.cfg > trained.cfg
maps -map 1 -thresh .001
read -r iou usual < map.txt
holds out '^ for conf_thresh = 0.00, precision'
[ "$iou" = 0.50 ] && grep -q '^iteration,map50,map50_95$' backup/trained_map.csv || fail "-map: $iou"
maps -map 1 -iou_thresh .1
read -r iou easier < map.txt
[ "$iou" = 0.10 ] && awk "BEGIN { exit !($easier > $usual) }" || fail "-iou_thresh .1: $iou $easier, $usual"
holds backup/trained_map.csv '^iteration,map10,map50_95$'
grep -q "^1,${easier:0:6}" backup/trained_map.csv || fail "-iou_thresh .1: the best is not by it"
maps -map -mAP_epochs 250
holds out '^-map: mAP of 8 images every 250 iterations; '
for wrong in '-map -points 0' '-map -iou_thresh 0' '-map -mAP_epochs x' '-map 5 -mAP_epochs 2'; do
    ends_saying '^command line: -' "$ALEXEYAB" detector train tiny.data tiny.cfg $wrong -amp fp32 -dont_show
done
# Boxes are suppressed as the .cfg says: as many are left as with its own measuring.
for suppression in default greedynms; do
    sed "s/^\[yolo\]/[yolo]\nnms_kind=$suppression/" tiny.cfg > nms.cfg
    works detector map tiny.data nms.cfg trained.weights
    sed -n 's/.*detections_count = \([0-9]*\).*/\1/p' out > own.$suppression
    works amp valid tiny.data nms.cfg trained.weights
    sed -n 's/.*, \([0-9]*\) detections.*/\1/p' out | diff own.$suppression - ||
        fail "nms_kind=$suppression leaves other boxes than in its own detector map"
done
! cmp own.default own.greedynms || fail 'both kinds of suppression leave as many boxes'
# Under AMP too, where it fuses no batch norm into weights; it says that it counts otherwise.
works detector map tiny.data nms.cfg trained.weights -amp bf16
sed -n 's/.*detections_count = \([0-9]*\).*/\1/p' out > own.bf16
holds err 'own .detector map. uses -points 0 by default'
works amp valid tiny.data nms.cfg trained.weights -amp bf16
sed -n 's/.*, \([0-9]*\) detections.*/\1/p' out | diff own.bf16 - ||
    fail 'amp valid finds other boxes in bf16 than detector map'
! grep 'own .detector map. uses' err || fail 'amp valid takes itself for detector map'
sed -e 's/^\[yolo\]/&\ndelta_normalizer=.5/' -e 's/^\[dropout\]/[empty]\n\n&/' tiny.cfg > empty.cfg
works amp probe tiny.data empty.cfg
works amp bench tiny.cfg -iters 2 -dtypes stock,fp32,bf16

# ---- layers that do not learn ----
start=20 biases=32 # bytes: the file's header, and the first convolution's 8 biases
first_biases() { # first_biases <weights>
    head -c $((start + biases)) "$1" | tail -c $biases | od -An -v -tx4 | tr -d ' \n'
}
gated() { # gated <key>: of the first convolution; its biases, which begin at 0
    awk -v key="$1" '{ print } /^\[convolutional\]/ && !done { print key; done = 1 }' tiny.cfg > gated.cfg
    train gate gated.cfg -amp fp32
    first_biases gate/gated_final.weights
}
none=$(printf '00000000%.0s' 1 2 3 4 5 6 7 8)
for key in dont_update=100 burnin_update=100 train_only_bn=1 stopbackward=100 stopbackward=1 onlyforward=1; do
    [ "$(gated $key)" = "$none" ] || fail "$key: the layer learns all the same"
done
for key in dont_update=2 stopbackward=2; do
    [ "$(gated $key)" != "$none" ] || fail "$key: the layer does not learn after step 2"
done

# With OpenCV only the loading of images is another.
[ "$opencv" = 0 ] || exit 0

# ---- its .cfg files ----
# Some have mosaic=1 with letter_box=1, which no build can load, and mosaic wants OpenCV. Many have batch=1,
# for testing.
count=0
for cfg in "$cfgs"/*.cfg; do
    name=$(basename "$cfg" .cfg)
    case $name in
        yolo9000) continue ;; # names files that are there where it is trained
        cspx-p7-mish) expected=1 ;; # masks name anchors beyond num, which stock reads from behind its array
        crnn.train | gru | lstm.train | rnn | rnn.train) expected=1 ;; # no images: stock divides by 0
        yolov4-tiny_contrastive) expected=1 ;;
        resnet50 | resnet101 | resnet152 | resnext152-32x4d) expected=1 ;; # shortcuts of two sizes
        *) expected=0 ;;
    esac
    status=0
    sed -e '/^mosaic\|^cutmix/d' -e 's/^\([ \t]*batch *= *\)1[ \r]*$/\12/' "$cfg" > whole.cfg
    "$ALEXEYAB" amp check whole.cfg > log 2>&1 || status=$?
    [ $status = $expected ] || fail "amp check of $name.cfg: status $status, $(grep -m 1 '^error' log)"
    count=$((count + 1))
done
[ $count -ge 80 ] || fail "only $count of its .cfg files were checked"

for name in yolov3-tiny yolov3 yolov4-tiny yolov4 yolov4-csp yolov7-tiny; do
    small $name
    "$ALEXEYAB" amp plan small.cfg -json plan.json > log 2>&1 || fail "amp plan of $name: $(tail -1 log)"
    ! grep -o '"why":"[^"]*\(own fp32\|fp32 loss\|is set\|does not know\)[^"]*"' plan.json > own ||
        fail "$name: a layer is not AMP's own: $(head -1 own)"
done

# ---- the fork's logistic function is NaN far below 0 ----
# Heads that say -100 of each object and class, and 0 of all else. Not all compilers make NaN of that. What is
# predicted becomes 0, as AMP computes it.
surely_nothing() { # surely_nothing <section> <filters> <numbers of a box>
    local box=$3
    layers > sure.cfg <<END
[net] batch=8 subdivisions=2 width=32 height=32 channels=3 momentum=.9 learning_rate=.0001 max_batches=2
[convolutional] filters=$2 size=1 stride=8 activation=linear
[$1] mask=0,1,2 anchors=4,5,8,8,12,14 num=3 classes=2 random=0
END
    { printf '\0\0\0\0\2\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0' # version 0.2.5, no image seen
      for anchor in 1 2 3; do
          head -c $((4 * box)) /dev/zero
          printf '\0\0\310\302\0\0\310\302\0\0\310\302'
      done
      head -c $((4 * 3 * $2)) /dev/zero; } > sure.weights
}
cause='without AMP this Darknet.s logistic function (layer 1 \[.*yolo\]).* NaN below -88.7.* use -amp fp32$'
for head in 'yolo 21 4' 'Gaussian_yolo 33 8'; do
    surely_nothing $head
    rm -rf backup/*
    succeeds "$ALEXEYAB" detector train tiny.data sure.cfg sure.weights -amp off -dont_show
    ! grep -q ' 1: -*nan' out || grep -q "^amp: the loss of step 1 is not finite: $cause" err ||
        fail "$head: a loss of NaN has no cause: $(grep ^amp err)"
    for dtype in off fp32 bf16; do
        succeeds "$ALEXEYAB" amp valid tiny.data sure.cfg sure.weights -amp $dtype
    done
    train sure sure.cfg sure.weights -amp fp32
    holds sure.err 'steps=2 skipped=0'
done

# ---- a skipped step is counted by nobody ----
sed 's/^max_batches=.*/max_batches=3/' tiny.cfg > skipping.cfg
printf '[amp]\ndtype=fp16\ninit_scale=1e30\nbackoff_factor=1e-9\n' >> skipping.cfg
train skipping skipping.cfg
holds skipping.err 'skipped=[1-9]'
holds skipping.err 'steps=3 '
[ "$(od -An -j12 -N8 -td8 skipping/skipping_final.weights | tr -d ' ')" = 24 ] ||
    fail 'seen is not 3 steps of 8 images'

# With the same picture in each step, a step more or less is a step of whatever averages go on in it: of the
# rolling statistics of a layer that does not learn, and of averaged weights.
overflows='loss_scale=dynamic init_scale=1 growth_interval=4 growth_factor=1267650600228229401496703205376
    backoff_factor=7.888609052210118e-31' # the fifth step, by 2^100
one_more() { # one_more <.cfg> <file> <bytes>: its first bytes are the same with a skipped step and without
    local cfg=$1 file=$2 bytes=$3
    train no_skip "$cfg" -amp fp16
    { cat "$cfg"; echo "[amp] $overflows" | tr -s ' ' '\n'; } > more.cfg
    mv more.cfg "$cfg"
    train a_skip "$cfg" -amp fp16
    holds a_skip.err 'steps=6 skipped=[1-9]'
    cmp -n "$bytes" "no_skip/$file" "a_skip/$file" || fail "$cfg: a skipped step changes $file"
}
echo "0 0.5 0.5 0.3 0.4" > images/flat.round.txt
sed 's/=train.txt/=flat.txt/' tiny.data > still.data
echo savelast=6 >> still.data
still() { # still <keys of [net]>: a detector whose second convolution is the first that learns
    layers <<END
[net] batch=4 subdivisions=2 width=32 height=32 channels=3 flip=0 momentum=.9 learning_rate=.0001
    max_batches=6 ${1:-}
[convolutional] batch_normalize=1 filters=8 size=3 stride=4 pad=1 activation=leaky
[convolutional] stopbackward=1 batch_normalize=1 filters=8 size=3 pad=1 activation=leaky
[convolutional] filters=21 size=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14 num=3 classes=2 jitter=0 random=0
END
}
data=still.data
still > frozen.cfg
one_more frozen.cfg frozen_final.weights $((start + 4 * 4 * 8)) # biases, scales, means and variances
still ema_alpha=.5 > averaged.cfg
one_more averaged.cfg averaged_ema.weights 99999
data=tiny.data

# ---- the loss scale cancels, whatever the loss ----
head_of() { # the last layers of a small network
    local boxes='anchors=4,5,8,8,12,14 num=3 classes=2 jitter=.2 random=0' filters=2 loss
    case $1 in
    yolo) filters=21 loss="[yolo] mask=0,1,2 $boxes" ;;
    Gaussian_yolo) filters=33 loss="[Gaussian_yolo] mask=0,1,2 $boxes" ;;
    region) filters=21 loss="[region] coords=4 softmax=1 $boxes" ;;
    softmax) loss='[avgpool] [softmax]' ;;
    cost) loss='[avgpool] [cost] type=sse' ;;
    esac
    echo "[convolutional] filters=$filters size=1 activation=linear $loss"
}
for head in yolo Gaussian_yolo region softmax cost; do
    case $head in softmax | cost) kind=classifier data=kinds.data ;; *) kind=detector data=tiny.data ;; esac
    for scale in 1 1024; do
        { echo '[net] batch=8 subdivisions=2 width=32 height=32 channels=3 momentum=.9 decay=.0005'
          echo "learning_rate=.001 max_batches=3 [amp] dtype=fp32 loss_scale=$scale"
          echo '[convolutional] batch_normalize=1 filters=8 size=3 stride=2 pad=1 activation=mish'
          head_of $head; } | tr -s ' ' '\n' > head.cfg
        train scale_$scale head.cfg
    done
    cmp scale_1/head_final.weights scale_1024/head_final.weights ||
        fail "the loss scale does not cancel under $head"
    case $head in *yolo) ;; *) continue ;; esac
    sed -i "s/^mask/delta_normalizer=0\n&/" head.cfg
    train normalized head.cfg
    [ "$(first_biases normalized/head_final.weights)" = "$none" ] &&
        [ "$(first_biases scale_1/head_final.weights)" != "$none" ] ||
        fail "$head: delta_normalizer does not act on what is learnt"
done
kind=detector data=tiny.data

# ---- weights are any Darknet's: AMP's without their sidecar, and those of a training without AMP ----
train without tiny.cfg trained.weights -clear -amp off
train with tiny.cfg without/tiny_final.weights -clear -amp bf16

# ---- options of its layers ----
known='
 type cost_type forward backward update batch inputs outputs nweights nbiases truths h w c out_h out_w
 out_c n bflops t receptive_w receptive_h receptive_w_scale receptive_h_scale cweights indexes
 input_layers input_sizes layers_output layers_delta counts sums rand cost cos_sim exp_cos_sim
 p_constrastive state prev_state forgot_state forgot_delta state_delta concat concat_delta binary_weights
 biases bias_updates scales scale_updates weights_ema biases_ema scales_ema weights weight_updates
 align_workspace_size align_bit_weights mean_arr align_bit_weights_size lda_align new_lda bit_align
 col_image delta output activation_input delta_pinned output_pinned loss squared norms spatial_mean mean
 variance mean_delta variance_delta rolling_mean rolling_variance x x_norm m v bias_m bias_v scale_m
 scale_v binary_input bin_re_packed_input t_bit_input workspace_size '
fields_have_rows 290 "$ALEXEYAB_TREE/include/darknet.h" family/layers.c "$known"

# ---- what cannot be followed ----
# What its parser ends by a signal for.
layers > mistake.cfg <<< '[net] batch=4 width=6 height=6 channels=3 max_batches=3
[connected] output=5 activation=linear
[cost]'
! "$ALEXEYAB" amp check mistake.cfg > out 2> err && grep -q "^error: .*no layer's input is an image" out ||
    fail "a network without images passes the check: $(cat out err)"
# The check of memory goes by the largest size: random=0.5 takes the same sizes as random=2.
sed -e 's/^batch=.*/batch=64/; s/^subdivisions=.*/subdivisions=1/; s/^\(width\|height\)=.*/\1=160/' tiny.cfg \
    > large.cfg
for random in 1.4 1 2 0.5; do
    sed "s/^random=0/random=$random/" large.cfg > resized.cfg
    [ -n "$SANITIZERS" ] || ! (ulimit -v 900000 &&
        exec "$ALEXEYAB" detector train tiny.data resized.cfg -dont_show -amp fp32) > out 2> err ||
        fail "random=$random: trains in 900 MB"
    sed -n 's/^amp: not enough memory: this training needs \([0-9]*\) MiB.*/\1/p' err > needs.$random
done
cmp needs.1 needs.1.4 || fail 'random=1 is not 1.4'
cmp needs.2 needs.0.5 || fail 'random=0.5 is not 2'
[ -n "$SANITIZERS" ] || [ "$(cat needs.2)" -gt "$(cat needs.1)" ] || fail "needs: $(cat needs.*)"
# Its local layer makes 0 of these.
last=$(grep -n '^\[convolutional\]' tiny.cfg | tail -n 1 | cut -d: -f1)
for activation in mish swish relu6; do
    sed "${last}i [local]\nfilters=8\nsize=3\npad=1\nactivation=$activation\n" tiny.cfg > local.cfg
    ends_saying "\[local\] activation = $activation: not supported under AMP.*-amp off" \
        "$ALEXEYAB" detector train tiny.data local.cfg -dont_show -amp bf16
done
