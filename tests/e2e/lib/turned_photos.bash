# Photos as phones save them, turned by their EXIF, and one that only OpenCV reads: include after
# tiny_training.bash.

small_jpeg() { # 64x64, dark, with a red square of 16x16 at 16 48
    base64 -d <<'END_OF_JPEG'
/9j/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESUM8SDc9Pjv/2wBDAQoLC
w4NDhwQEBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/wAARCABAAEADASIAAhEBAx
EB/8QAFgABAQEAAAAAAAAAAAAAAAAAAAYH/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/EABgBAQADAQAAAAAAAAAAAAAAAAACBgcE/8QAFBE
BAAAAAAAAAAAAAAAAAAAAAP/aAAwDAQACEQMRAD8AzQBJzgAAAAAAAAAAAAAAAAAAAAAAAKEBW23J4BZGIgAP/9k=
END_OF_JPEG
}

# turned_photos: images/turned1.jpg to turned8.jpg of the eight orientations and images/turned.tiff, with
# labels as they are seen, in turned.data; and turned.cfg and turned.weights, a detector that finds the red
# square of each, whatever it is trained, if it sees them turned. Without, it finds those of two or three.
turned_photos() {
    mkdir -p images backup
    small_jpeg > turned.jpg
    python3 - <<'END_OF_SCRIPT'
import os, struct
jpeg = open('turned.jpg', 'rb').read()
x, y = 24 / 64, 56 / 64
seen = {1: (x, y), 2: (1 - x, y), 3: (1 - x, 1 - y), 4: (x, 1 - y),
        5: (y, x), 6: (1 - y, x), 7: (1 - y, 1 - x), 8: (y, 1 - x)}
def put(name, data, place):
    open(f'images/{name}', 'wb').write(data)
    open(f'images/{name.split(".")[0]}.txt', 'w').write('0 %g %g .25 .25\n' % place)
for turn, place in seen.items():
    tag = b'Exif\0\0MM\0\x2a\0\0\0\x08\0\x01' + struct.pack('>HHIHHI', 0x112, 3, 1, turn, 0, 0)
    put(f'turned{turn}.jpg', jpeg[:2] + b'\xff\xe1' + struct.pack('>H', len(tag) + 2) + tag + jpeg[2:], place)
tags = [(256, 3, 1, 64), (257, 3, 1, 64), (258, 3, 3, 146), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 152),
        (277, 3, 1, 3), (278, 3, 1, 64), (279, 4, 1, 64 * 64 * 3)]
def entry(tag, kind, count, value):
    return struct.pack('<HHI', tag, kind, count) + struct.pack('<HH' if kind == 3 and count == 1 else '<I', *(
        [value, 0] if kind == 3 and count == 1 else [value]))
pixels = b''.join(b'\xfe\0\0' if 16 <= i < 32 and j >= 48 else b'\x14\x28\x28'
                  for j in range(64) for i in range(64))
head = b'II\x2a\0\x08\0\0\0' + struct.pack('<H', len(tags)) + b''.join(entry(*t) for t in tags) + bytes(4)
put('turned.tiff', head.ljust(146, b'\0') + struct.pack('<HHH', 8, 8, 8) + pixels, (x, y))
names = [f'turned{turn}.jpg' for turn in seen] + ['turned.tiff']
open('turned.txt', 'w').writelines(f'{os.getcwd()}/images/{name}\n' for name in names)
open('turned.names', 'w').write('red\n')
open('turned.data', 'w').write('classes=1\ntrain=turned.txt\nvalid=turned.txt\nnames=turned.names\n'
                               'backup=backup\n')
# objectness is 26 times red, less 20; the class is sure
open('turned.weights', 'wb').write(struct.pack('<iiiq', 0, 2, 0, 0) + struct.pack('<6f', 0, 0, 0, 0, -20, 6)
                                   + struct.pack('<18f', *[0] * 12, 26, *[0] * 5))
END_OF_SCRIPT
    layers > turned.cfg <<'END_OF_CFG'
[net] batch=8 subdivisions=1 width=64 height=64 channels=3 policy=constant max_batches=2
    learning_rate=0.000000000000000000000000000001
[maxpool] size=16 stride=16 padding=0
[convolutional] filters=6 size=1 stride=1 activation=linear
[yolo] mask=0 anchors=16,16 classes=1 num=1 ignore_thresh=.7 jitter=0 random=0
END_OF_CFG
}

# finds_turned <program>: training's -map, `amp valid` and `detector map`, the fork's own where it has one,
# find all nine; cache=ram counts and keeps photos that only OpenCV reads.
finds_turned() {
    local program=$1 files='turned.data turned.cfg turned.weights' amp i
    succeeds "$program" amp valid $files
    grep -q '(mAP@0.50) = 1.000000' out && grep -q '^ *9 images, 9 objects' out ||
        fail "amp valid finds not all that is turned: $(tail -3 out) $(tail -1 err)"
    for amp in '' '-amp bf16'; do
        succeeds "$program" detector map $files -points 101 -dont_show $amp
        sed 's/\x1b\[[0-9;]*m//g' out | # hank-ai's colours
            grep -qi '(mAP@0*.50*) *= *\(1.0000\|100.00\)' || fail "detector map $amp: $(grep -i map@ out)"
    done
    rm -f backup/*
    succeeds "$program" detector train $files -clear -dont_show -amp fp32 -map 1 -seed 1 -cache ram
    [ "$(grep -c '(mAP@0.50) = 1.000000 at iteration' out)" = 2 ] || fail "-map: $(grep mAP@ out err)"
    ! grep 'cannot be read\|cannot read' err || fail 'TIFF is not read'
    holds err 'cache=ram: [1-9] of 9 images were kept'
    sed 's/\.txt/s.txt/' turned.data > tiffs.data
    for i in 1 2 3 4 5 6 7 8; do echo "$PWD/images/turned.tiff"; done > turneds.txt
    "$program" detector train tiffs.data turned.cfg -dont_show -amp fp32 -seed 1 -cache ram > out 2> err \
        < /dev/null || fail "TIFF alone: $(tail -1 err)"
    holds err 'room for 8 of the 8 images of the training list, which take about 0.1 MiB decoded'
    holds err 'cache=ram: 1 of 8 images were kept'
}
