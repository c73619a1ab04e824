# AlexeyAB's Darknet built with OPENCV=1. Whatever it does to images: without AMP training gives the very
# bytes of the stock program; under AMP with -seed it goes on to the bit, and gives the same with cache=ram.
# So it is with images that OpenCV reads in a way of its own. Bad ones are replaced, the chart has the last
# mAP, loss scale and skipped steps, and no display is needed.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
. "$SOURCE_DIR/tests/e2e/lib/turned_photos.bash"
needs_alexeyab
[ -n "$ALEXEYAB_OPENCV" ] || skip 'no program with OpenCV was built (scripts/dependencies.sh --opencv)'
ALEXEYAB=$ALEXEYAB_OPENCV ALEXEYAB_STOCK=$ALEXEYAB_OPENCV_STOCK
unset DISPLAY WAYLAND_DISPLAY QT_QPA_PLATFORM
tiny_alexeyab
sed -i -e '/^random=/d' -e 's/^learning_rate=.*/learning_rate=0.0001/' tiny.cfg
class_training min_crop=32 max_crop=40 hue=.1 saturation=1.5

# ---- crops and colours, as OpenCV makes them ----
c++ -std=c++11 -O1 -I"$SOURCE_DIR/plugin/include" "$SOURCE_DIR/tests/e2e/lib/opencv_crops.cpp" \
    -o opencv_crops $(pkg-config --cflags opencv4) -lopencv_core -lopencv_imgproc -lopencv_imgcodecs
./opencv_crops > out || fail "crops: $(cat out)"

# ---- what is done to images ----
take() { # take <kind> <name> <keys...>: makes name.cfg of them; those of all [yolo] begin with yolo:
    local name=$2
    kind=$1 data=tiny.data
    [ $kind = detector ] || data=kinds.data
    shift 2
    awk -v keys="$*" '{ print }
        $0 == "[net]" || $0 == "[yolo]" {
            for (i = split(keys, key, " "); i > 0; i--)
                if (sub(/^yolo:/, "", key[i]) == ($0 == "[yolo]")) print key[i]
        }' $([ $kind = detector ] && echo tiny.cfg || echo class.cfg) > "$name.cfg"
}
promised() { # promised <kind> <name> <dtypes> <keys...>
    local name=$2 dtypes=$3 dtype steps=4 middle=3
    take "$1" "$name" "${@:4}"
    [ -z "$ALEXEYAB_STOCK" ] || same_as_stock "$name" $kind train $data "$name.cfg" -dont_show
    case $* in *random=*) steps=111 middle=11 ;; esac # the last 100 steps have the largest size
    sed -i "s/^max_batches=.*/max_batches=$steps/" "$name.cfg"
    { grep -v ^saveweights= $data; echo saveweights=$middle; } > more.data
    mv more.data $data
    for dtype in ${dtypes//,/ }; do
        if [ $kind = detector ]; then # which saves where it is told to
            train whole "$name.cfg" -amp $dtype
            train later "$name.cfg" "whole/${name}_$middle.weights" -amp $dtype
            same_files whole later "${name}_final.weights" "${name}_final.weights.amp"
        else goes_on "$name.cfg" -amp $dtype
        fi
        train cached "$name.cfg" -amp $dtype -cache ram
        same_files whole cached "${name}_final.weights"
        holds cached.err 'cache=ram: [1-8] of 8 images were kept, .* [1-9][0-9]* came from the cache'
    done
}
same_files() { # same_files <folder> <folder> <files...>
    local file
    for file in "${@:3}"; do cmp "$1/$file" "$2/$file" || fail "$kind, $2: another $file"; done
}
promised detector joined bf16 mosaic=1 mosaic_bound=1 blur=1 gaussian_noise=20 ema_alpha=.9 \
    yolo:label_smooth_eps=.1 yolo:resize=1.5
promised detector shaped fp16 mixup=1 letter_box=1 blur=5 yolo:random=1
promised classifier classed bf16 mosaic=1 cutmix=1 blur=1 label_smooth_eps=.1

# ---- images that OpenCV reads in a way of its own ----
# 16 bits, grey with alpha, colour with alpha, turned by its EXIF, CMYK.
python3 - <<'END'
import struct, zlib
def png(name, kind, bits, samples):
    def chunk(what, data):
        return struct.pack('>I', len(data)) + what + data + struct.pack('>I', zlib.crc32(what + data))
    row = lambda y: b'\0' + bytes((7 * i + 3 * y) % 256 for i in range(24 * samples * bits // 8))
    with open(name, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 24, 16, bits, kind, 0, 0, 0))
                   + chunk(b'IDAT', zlib.compress(b''.join(map(row, range(16))))) + chunk(b'IEND', b''))
png('images/deep.png', 2, 16, 3)
png('images/grey.png', 4, 8, 2)
png('images/clear.png', 6, 16, 4)
END
turned_photos
cp images/turned6.jpg images/exif.jpg
base64 -d > images/cmyk.jpg <<'END'
/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAbEhQXFBEbFxYXHhwbIChCKyglJShROj0wQmBVZWRfVV1baniZgWpxkHNbXYW1hpCeo6utq2eA
vMm6pseZqKuk/8AAFAgAEAAYBEMRAE0RAFkRAEsRAP/EABcAAQEBAQAAAAAAAAAAAAAAAAAFBgL/xAAYEAEAAwEAAAAAAAAAAAAAAAAA
BBRBYf/aAA4EQwBNAFkASwAAPwC3K1WvddNAkStL3QR5Wl7oNfK1nL3QSJWl7oI8rS90H//Z
END
for name in deep grey clear exif cmyk; do
    cp images/1.txt images/$name.txt
    ls "$PWD"/images/$name.[jp][pn]g
done > odd.txt
cp train.txt all.txt
head -n 3 all.txt | cat odd.txt - > train.txt
promised detector odd bf16 mosaic=1

# ---- what is measured is read as what is trained on ----
finds_turned "$ALEXEYAB"

# ---- images that cannot be read ----
: > images/empty.round.jpg
echo text > images/text.square.jpg
printf 'P6\n2000000 1\n255\n' > images/wide.round.jpg # OpenCV throws an exception
ls "$PWD"/images/empty.round.jpg "$PWD"/images/text.square.jpg "$PWD"/images/wide.round.jpg > bad.txt
head -n 2 all.txt | cat bad.txt - > train.txt
head -n 2 kinds.txt | cat bad.txt - > more.txt
mv more.txt kinds.txt
for which in detector classifier; do
    take $which bad mosaic=1
    train whole bad.cfg -amp bf16
    grep -q "^amp: image '$PWD/images/empty.round.jpg' cannot be read (it is empty); another" whole.err &&
        grep -q "wide.round.jpg' cannot be read (OpenCV requires .*WIDTH); another" whole.err &&
        grep -q '^amp: unreadable images: 3; replaced by others [1-9][0-9]* times' whole.err ||
        fail "$which: bad images: $(grep amp: whole.err)"
done
cp all.txt train.txt

# ---- charts and windows ----
take detector charted
rm -f chart.png
train without charted.cfg -amp bf16
mv chart.png without.png || fail 'no chart.png'
train with charted.cfg -amp bf16 -map 4
holds with.out 'mean average precision'
! cmp -s chart.png without.png || fail 'the chart lacks the mAP of the last iteration'
rm -f chart*.png
succeeds "$ALEXEYAB" amp compare tiny.data charted.cfg -iters 1 -seeds 1 -dtypes fp32
! ls chart*.png 2> /dev/null || fail 'a training of amp compare saved a chart'

# What is written on it: to each step's line AMP's words, as on the terminal; the last mAP.
cc -shared -fPIC -O1 "$SOURCE_DIR/tests/e2e/lib/chart_words.c" -o chart_words.so
words() { # words <folder> <.cfg> <arguments...>: a training, whose chart's words are in chart.words
    rm -f chart.words
    LD_PRELOAD=$PWD/chart_words.so CHART_WORDS=chart.words \
        ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 train "$@"
}
sed -i 's/^max_batches=.*/max_batches=4/' charted.cfg
{ cat charted.cfg; printf '[amp]\ninit_scale=1e30\nbackoff_factor=1e-9\n'; } > skipping.cfg
words written skipping.cfg -amp fp16 -map 4
sed -n 's/^current avg loss .* hours\(.*\)/\1/p' chart.words > found
sed -n 's/.* hours left\(, scale .* skipped\).*/\1/p' written.out | diff - found ||
    fail "the chart's words of AMP are: $(cat found)"
grep -q ', scale .*, [1-9][0-9]* skipped$' found || fail 'no step was skipped'
map=$(sed -n 's/.*mean average precision .* = \([0-9.]*\).*/\1/p' written.out | tail -1)
last=$(grep '^[0-9.]*% $' chart.words | head -1)
[ "$last" = "$(awk -v map="$map" 'BEGIN { printf "%2.1f%% ", map * 100 }')" ] ||
    fail "the chart has mAP '$last', the last iteration $map"
words written charted.cfg -amp off
! grep 'scale\|skipped' chart.words || fail 'without AMP the chart has its words'
# A loss of more digits than the fork's array has room for, which stock writes beyond.
sed -e 's/^learning_rate=.*/learning_rate=1e-30/' \
    -e 's/^\[yolo\]/&\ncls_normalizer=1e15\niou_normalizer=1e15/' charted.cfg > large.cfg
for dtype in off fp32; do
    words written large.cfg -amp $dtype
    holds chart.words '^current avg loss = [0-9]\{25,\}\.[0-9]*    iteration = 4    approx'
done

# Who asks for the chart at -mjpeg_port gets it, and the training continues when he leaves.
sed 's/^max_batches=.*/max_batches=1000000/' charted.cfg > shown.cfg
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$ALEXEYAB" detector train tiny.data shown.cfg -amp bf16 -dont_show -mjpeg_port $port > out 2> err &
trainer=$!
python3 - $port <<'END' || { kill -KILL $trainer; fail 'no chart at -mjpeg_port'; }
import socket, sys, time
while True:
    try:
        server = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 600)
        break
    except ConnectionRefusedError:
        time.sleep(.1)
server.sendall(b'GET / HTTP/1.0\r\n\r\n')
got = b''
while b'\xff\xd8\xff' not in got or b'\xff\xd9' not in got[got.index(b'\xff\xd8\xff'):]:
    more = server.recv(65536)
    if not more: sys.exit('the server hangs up')
    got += more
END
steps=$(grep -c 'avg loss' out) || true
until [ "$(grep -c 'avg loss' out)" -gt $((steps + 20)) ]; do
    kill -0 $trainer 2> /dev/null || fail "the training ends when nobody looks any more: $(tail -1 err)"
    sleep .1
done
kill -TERM $trainer
status=0
wait $trainer || status=$?
[ $status = 143 ] && [ -s backup/shown.backup ] || fail "after SIGTERM: status $status, $(tail -1 err)"
rm -f backup/*

succeeds "$ALEXEYAB" detector train -chart without.png tiny.data charted.cfg -amp bf16
grep -q '^darknet: there is no display: no window is opened, as with -dont_show' err || fail 'not a word'
# With a display that is named and not there: who opens a window is ended.
for command in "train tiny.data charted.cfg -amp bf16" "train tiny.data charted.cfg" \
    "test tiny.data charted.cfg backup/charted_final.weights images/1.jpg"; do
    DISPLAY=:4095 succeeds "$ALEXEYAB" detector $command
    grep -q '^darknet: the display cannot be opened: no window is opened, as with -dont_show' err ||
        fail "$command: not a word"
done
