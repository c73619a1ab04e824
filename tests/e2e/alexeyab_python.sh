# AlexeyAB's darknet.py and libdarknet.so: a .cfg with [amp] is loaded, and predicted with in half; the
# boxes are those of `detector test`. Where python3 has OpenCV (PYTHON: that python3), darknet_images.py
# writes them.
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
cp "$ALEXEYAB_TREE/darknet.py" "$ALEXEYAB_TREE/darknet_images.py" python/
cp "$library" python/libdarknet.so
# darknet.py imports two modules that loading and predicting do not use.
for module in cv2 numpy; do
    "$python" -c "import $module" 2> /dev/null || touch python/$module.py
done
cat > python/predict.py <<'END'
import sys

import darknet

cfg, image = sys.argv[1:]
network, names, _ = darknet.load_network(cfg, "tiny.data", "sure.weights")
pixels = open(image, "rb").read()[-3072:]
im = darknet.make_image(darknet.network_width(network), darknet.network_height(network), 3)
darknet.copy_image_from_bytes(im, pixels)
for name, confidence, box in darknet.detect_image(network, names, im, thresh=.3):
    print(name, confidence, *["%.4f" % (x / 32) for x in box])
END
cat > python/as_python.py <<'END'
import json
import sys

for o in sorted(json.load(open(sys.argv[1]))[0]["objects"], key=lambda o: o["confidence"]):
    place = [o["relative_coordinates"][k] for k in ("center_x", "center_y", "width", "height")]
    print(o["name"], round(o["confidence"] * 100, 2), *["%.4f" % x for x in place])
END

for dtype in off fp32 bf16 fp16; do
    cp tiny.cfg $dtype.cfg
    [ $dtype = off ] || printf '[amp]\namp=1\ndtype=%s\n' $dtype >> $dtype.cfg
    "$python" python/predict.py $dtype.cfg image.png > $dtype.out 2> $dtype.err ||
        fail "darknet.py with $dtype: $(tail -1 $dtype.err)"
    grep '^\(round\|square\) ' $dtype.out > $dtype.python || fail "$dtype: darknet.py finds no box"
    succeeds "$ALEXEYAB" detector test tiny.data $dtype.cfg sure.weights image.png -dont_show -thresh .3 \
        -out $dtype.json
    "$python" python/as_python.py $dtype.json > $dtype.program
    # rounded to four digits: a box lies off by a unit at most
    "$python" - $dtype.python $dtype.program <<'END' || fail "$dtype: darknet.py finds other boxes"
import sys
a, b = ([line.split() for line in open(name)] for name in sys.argv[1:])
assert len(a) == len(b) >= 10, (len(a), len(b))
for box in a:
    assert any(box[0] == other[0] and abs(float(box[1]) - float(other[1])) < .02
               and max(abs(float(x) - float(y)) for x, y in zip(box[2:], other[2:])) < 2e-4
               for other in b), box
END
done
for dtype in fp32 bf16 fp16; do
    grep -q "^amp: $dtype" $dtype.err || fail "the library does not say that it computes in $dtype"
done
! cmp -s bf16.python fp32.python && ! cmp -s fp16.python fp32.python ||
    fail 'half finds the very boxes of fp32'

"$python" -c 'import cv2, numpy; cv2.imread' 2> /dev/null ||
    { echo "darknet_images.py was not tried: no python3 with OpenCV"; exit 0; }
succeeds "$python" python/darknet_images.py --input image.png --weights sure.weights --config_file bf16.cfg \
    --data_file tiny.data --thresh .3 --dont_show --ext_output --save_labels
[ "$(wc -l < image.txt)" = "$(wc -l < bf16.python)" ] ||
    fail "darknet_images.py finds $(wc -l < image.txt) boxes, and not $(wc -l < bf16.python)"
