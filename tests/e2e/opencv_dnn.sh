# OpenCV's dnn reads a .cfg with AMP's keys in [net], and what `darknet amp clean` writes of one with [amp];
# it finds the boxes of `detector test`. Wants PyPI's opencv-python-headless, below version 5; PYTHON: the
# python3 that has it.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
[ -n "$ALEXEYAB" ] || skip 'no program of it was built, and pjreddie'\''s writes no boxes'
[ -z "$SANITIZERS" ] || skip 'the same as without sanitizers'
python=${PYTHON:-python3}
"$python" -c 'import cv2; cv2.dnn.readNetFromDarknet' 2> /dev/null ||
    skip "no python3 with OpenCV's dnn: pip install 'opencv-python-headless<5', and PYTHON=its/python3"
tiny_alexeyab
succeeds "$ALEXEYAB" detector train tiny.data tiny.cfg -dont_show -seed 1 -amp fp32
"$python" "$SOURCE_DIR/tests/e2e/lib/sure_heads.py" backup/tiny_final.weights sure.weights
{ printf 'P6\n32 32\n255\n'; seq 1000 2000 | tr -d '\n' | head -c 3072; } > image.ppm

sed -e '/^\[net\]/a amp=1\ndtype=bf16\nloss_scale=dynamic\ncheckpoint=auto\nmemory=1GB' \
    -e '/^\[convolutional\]/a amp=0\ncheckpoint=1' tiny.cfg > net.cfg
{ cat net.cfg; printf '[amp]\namp=1\nclip_norm=5\n'; } > section.cfg
"$ALEXEYAB" amp clean section.cfg clean.cfg
for cfg in net.cfg clean.cfg; do
    succeeds "$ALEXEYAB" detector test tiny.data $cfg sure.weights image.ppm -dont_show -amp fp32 -thresh .3 \
        -out boxes.json
    "$python" "$SOURCE_DIR/tests/e2e/lib/same_boxes.py" $cfg sure.weights image.ppm boxes.json .3 \
        > log 2>&1 || fail "$cfg: $(tail -1 log)"
    cat log
done
