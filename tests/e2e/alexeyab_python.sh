# AlexeyAB's darknet.py and libdarknet.so: a .cfg with [amp] is loaded, and predicted with in half; the
# boxes are those of `detector test`. OpenCV's dnn, where python3 has it (PyPI's opencv-python-headless below
# version 5; PYTHON: that python3), reads a .cfg with AMP's keys in [net], and what `darknet amp clean` writes
# of one with [amp]; it finds the same boxes. darknet_images.py writes them.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
library=$BUILD_DIR/lib/libdarknet-alexeyab.so
[ -n "$ALEXEYAB" ] && [ -f "$library" ] || skip 'no program of it was built'
[ -z "$SANITIZERS" ] || skip 'python3 is not built with sanitizers'
python=${PYTHON:-python3}
command -v "$python" > /dev/null || skip 'there is no python3'
tiny_alexeyab
succeeds "$ALEXEYAB" detector train tiny.data tiny.cfg -dont_show -seed 1 -amp fp32
"$python" "$SOURCE_DIR/tests/e2e/lib/sure_heads.py" backup/tiny_final.weights sure.weights
{ printf 'P6\n32 32\n255\n'; seq 1000 2000 | tr -d '\n' | head -c 3072; } > image.png # a PPM

mkdir python
cp "$ALEXEYAB_TREE/darknet.py" "$ALEXEYAB_TREE/darknet_images.py" "$SOURCE_DIR/tests/e2e/lib/same_boxes.py" \
    python/
cp "$library" python/libdarknet.so
# darknet.py imports two modules that loading and predicting do not use.
for module in cv2 numpy; do
    "$python" -c "import $module" 2> /dev/null || touch python/$module.py
done
cat > python/predict.py <<'END'
import sys

import darknet
from same_boxes import check

cfg, image, found = sys.argv[1:]
network, names, _ = darknet.load_network(cfg, "tiny.data", "sure.weights")
pixels = open(image, "rb").read()[-3072:]
im = darknet.make_image(darknet.network_width(network), darknet.network_height(network), 3)
darknet.copy_image_from_bytes(im, pixels)
boxes = darknet.detect_image(network, names, im, thresh=.3)
check([(name, [x / 32 for x in box], float(score) / 100) for name, score, box in boxes], found, .3)
print("boxes:", boxes)
END

# boxes_of <name>: of name.cfg, from `detector test` to name.json
boxes_of() {
    succeeds "$ALEXEYAB" detector test tiny.data $1.cfg sure.weights image.png -dont_show -thresh .3 \
        -out $1.json
}
for dtype in off fp32 bf16 fp16; do
    cp tiny.cfg $dtype.cfg
    [ $dtype = off ] || printf '[amp]\namp=1\ndtype=%s\n' $dtype >> $dtype.cfg
    boxes_of $dtype
    succeeds "$python" python/predict.py $dtype.cfg image.png $dtype.json
    grep '^boxes: ' out > $dtype.boxes
    [ $dtype = off ] || holds err "^amp: $dtype" # which the library says
done
! cmp -s bf16.boxes fp32.boxes && ! cmp -s fp16.boxes fp32.boxes || fail 'half finds the very boxes of fp32'

"$python" -c 'import cv2; cv2.dnn.readNetFromDarknet' 2> /dev/null ||
    { echo "darknet_images.py and OpenCV's dnn were not tried: no python3 with OpenCV"; exit 0; }
succeeds "$python" python/darknet_images.py --input image.png --weights sure.weights --config_file bf16.cfg \
    --data_file tiny.data --thresh .3 --dont_show --ext_output --save_labels
boxes=$(grep -c '"class_id"' bf16.json)
[ "$(wc -l < image.txt)" = "$boxes" ] || fail "darknet_images.py finds $(wc -l < image.txt) boxes, not $boxes"

sed -e '/^\[net\]/a amp=1\ndtype=fp32\nloss_scale=dynamic\ncheckpoint=auto\nmemory=1GB' \
    -e '/^\[convolutional\]/a amp=0\ncheckpoint=1' tiny.cfg > net.cfg
{ cat net.cfg; printf '[amp]\namp=1\nclip_norm=5\n'; } > section.cfg
"$ALEXEYAB" amp clean section.cfg clean.cfg
for name in net clean; do
    boxes_of $name
    succeeds "$python" python/same_boxes.py $name.cfg sure.weights image.png $name.json .3
done
