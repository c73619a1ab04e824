# detector map: right numbers for a network whose boxes are known, and one clear line for
# whatever can be wrong.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/known_outputs.bash"

# Class 0 in the middle of the input, 16 x 12 of 32 x 32: of x, y, w, h, objectness, class 0, class 1.
layers > constant.cfg <<'END'
[net] batch=4 subdivisions=1 width=32 height=32 channels=3
[maxpool] size=32 stride=32
[convolutional] filters=7 size=1 stride=1 activation=linear
[yolo] mask=0 anchors=16,12 classes=2 num=1
END
weights "$zero$zero$zero$zero$six$six$minus_twenty" > constant.weights
weights "$zero$zero$zero$zero$nan$six$minus_twenty" > nan.weights

# Every picture gets one detection of class 0 with the same score: false, true, true,
# false in the list's order.
picture nothing valid.txt 40 30 # no label file: no object
picture wide valid.txt 40 30 # letter-boxed to 32 x 24
echo '0 0.5 0.5 0.5 0.5' > labels/wide.txt         # 16 / 32, 12 / 24
picture tall valid.txt 20 40 # letter-boxed to 16 x 32
echo '0 0.5 0.5 1.0 0.375' > labels/tall.txt       # 16 / 16, 12 / 32
picture other valid.txt 32 32
echo '1 0.5 0.5 0.5 0.375' > labels/other.txt
echo '0 0.1 0.1 0.0001 0.2' >> labels/other.txt    # too thin for training, and so for this
printf '%s\n' round square > names.txt
printf '%s\n' 'classes = 2' 'valid = valid.txt' 'names = names.txt' > my.data

measure() { succeeds "$DARKNET" detector map "$@"; }

for amp in off bf16; do
    measure my.data constant.cfg constant.weights -amp $amp
    # Class 0: precision 0, 1/2, 2/3, 1/2; the envelope is 2/3 all along. Class 1: its
    # one object was not found.
    expect out 'class_id = 0, name = round, ap = 66.67 % (TP = 2, FP = 2)' \
        'class_id = 1, name = square, ap = 0.00 % (TP = 0, FP = 0)' \
        'for conf_thresh = 0.25, precision = 0.5000, recall = 0.6667, F1-score = 0.5714' \
        'TP = 2, FP = 2, FN = 1, average IoU = 100.00 %' \
        'IoU threshold = 50 %, used 101 recall points' \
        'mean average precision (mAP@0.50) = 0.333333, or 33.33 %' \
        'mean average precision (mAP@0.50:0.95) = 0.333333, or 33.33 %' \
        '4 images, 3 objects, 4 detections' '1 labels thinner than 0.001 of the image'
done
measure my.data constant.cfg constant.weights -thresh 0.999
expect out 'for conf_thresh = 1.00, precision = 0.0000, recall = 0.0000, F1-score = 0.0000' \
    '(mAP@0.50) = 0.333333'
measure -points 11 my.data constant.cfg constant.weights
expect out 'used 11 recall points' '(mAP@0.50) = 0.333333'
measure my.data constant.cfg constant.weights -points 0
expect out 'used the area under the curve' '(mAP@0.50) = 0.333333'
# A file that is no image is named and left out, labels and all; the rest is measured.
{ cat valid.txt; echo images/broken.jpg; echo images/gone.jpg; } > holes.txt
echo 'no image' > images/broken.jpg
echo '0 0.5 0.5 0.5 0.5' | tee labels/broken.txt > labels/gone.txt
sed 's/valid.txt/holes.txt/' my.data > holes.data
measure holes.data constant.cfg constant.weights
expect out '(mAP@0.50) = 0.333333' '4 images, 3 objects, 4 detections' \
    '2 images could not be read and are left out'
grep -q '^images/broken.jpg: cannot read the image: unknown image type; it is left out' err ||
    fail "broken.jpg is not named"
grep -q '^images/gone.jpg: cannot read the image: No such file.*; it is left out' err ||
    fail "gone.jpg is not named"

# Difficult objects, as AlexeyAB's .data files name them. In `nothing` there is one where the network sees it:
# a miss less, so that precision is 1, 1, 2/3 and recall 1/2, 1, 1. In `other` there is one that nobody finds.
mkdir difficult
printf 'difficult/%s.txt\n' nothing wide tall other > difficult.txt
sed '$adifficult = difficult.txt' my.data > difficult.data
measure difficult.data constant.cfg constant.weights # no label file, no difficult object
expect out '(mAP@0.50) = 0.333333' '(TP = 2, FP = 2)'
echo '0 0.5 0.5 0.5 0.5' > difficult/nothing.txt
echo '1 0.2 0.2 0.2 0.2' > difficult/other.txt
for points in 0 11 101; do
    measure difficult.data constant.cfg constant.weights -points $points
    expect out 'ap = 100.00 % (TP = 2, FP = 1)' 'TP = 2, FP = 1, FN = 1' '(mAP@0.50) = 0.500000' \
        '4 images, 3 objects' \
        '2 difficult objects'
done

sed 's/^names.*//' my.data > nameless.data
measure nameless.data constant.cfg constant.weights
expect out 'class_id = 1, name = (unnamed), ap = 0.00 %'

refused() { # refused <what the last line must say> <arguments...>
    ends_saying "^detector map: .*$1" "$DARKNET" detector map "${@:2}"
    ! grep -q 'mean average' out || fail "detector map ${*:2}: a score in spite of the error"
}
good='constant.cfg constant.weights'
refused 'missing.cfg: No such file' my.data missing.cfg constant.weights
# Weights are the whole network's, or none: with AMP and without. (Which files are none is test_bad_data.c's.)
of="my.data constant.cfg"
head -c 60 constant.weights > cut.weights
for amp in off bf16; do
    refused 'cut.weights: ends in the middle' $of cut.weights -amp $amp
    refused "outputs inf or NaN; the weights belong to another network" $of nan.weights -amp $amp
done
refused 'outputs inf or NaN.*too short for fp16' my.data constant.cfg nan.weights
sed '/yolo/,$d' constant.cfg > classifier.cfg
refused 'classifier.cfg: not a detector' my.data classifier.cfg constant.weights

with 'names = names.txt'
refused 'with.data: .valid = FILE. is missing' with.data $good
with 'valid = valid.txt' 'names = missing.names'
refused 'missing.names: ' with.data $good
echo images/nothing.jpg > list
with 'valid = list'
refused 'has a labelled object; this Darknet looks for' with.data $good
printf '%s\n' images/broken.jpg images/gone.jpg > list
refused 'none of the 2 validation images can be read; the first: images/broken.jpg' with.data $good
mkfifo images/fifo.jpg
echo images/fifo.jpg > list
refused 'images/fifo.jpg: cannot read the image: it is not a regular file' with.data $good
rm images/fifo.jpg
echo difficult/nothing.txt > short.txt
with 'valid = valid.txt' 'difficult = short.txt'
refused 'short.txt: 1 lines, but .valid. lists 4 images' with.data $good
with 'valid = valid.txt' 'difficult = missing.txt'
refused 'missing.txt: cannot read the list of difficult objects' with.data $good
