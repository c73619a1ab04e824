# amp valid: what detector map says of a detector, what stock's classifier valid says of a classifier, and one
# clear line for whatever can be wrong.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/known_outputs.bash"

head='[net] batch=4 subdivisions=2 width=32 height=32 channels=3 [maxpool] size=32 stride=32 [convolutional]'
layers > box.cfg <<< "$head filters=6 size=1 activation=linear [yolo] mask=0 anchors=16,12 classes=1 num=1"
layers > kind.cfg <<< "$head filters=4 size=1 activation=linear [softmax]"
weights "$zero$zero$zero$zero$six$six" > box.weights
weights "$one$two$one$zero" > kind.weights # ranks: 1, 0, 2, 3; of equal ones the lower first

for name in a b c; do picture $name boxes.txt; done
echo '0 0.5 0.5 0.5 0.5' | tee labels/b.txt > labels/c.txt
printf '%s\n' 'valid = boxes.txt' > box.data
for name in ant_1 ant_2 bee_1 cow_1 cow_2 cow_3 dog_1 other; do picture $name kinds.txt; done
printf '%s\n' ant bee cow dog > kinds
printf '%s\n' 'classes = 4' 'valid = kinds.txt' 'labels = kinds' > kind.data

valid() { succeeds "$DARKNET" amp valid "$@"; }
# A detector: a miss, two hits.
for options in '' '-points 0' '-points 11 -thresh .9999' '-amp bf16'; do
    valid box.data box.cfg box.weights $options -json box.json
    grep -v seconds out > expected
    succeeds "$DARKNET" detector map box.data box.cfg box.weights $options
    grep -v seconds out | diff - expected || fail "amp valid $options prints other scores than detector map"
    expect out '(mAP@0.50) = 0.666667' '3 images, 2 objects, 3 detections'
done
expect box.json '"kind": "detector"' '"images": 3' '"unreadable": 0' '"points": 101' '"true_positives": 2' \
    '"objects": 2'
grep -q '"map50": 0.66666666666' box.json && grep -q '"map50_95": 0.66666666666' box.json ||
    fail "box.json: $(cat box.json)"

# A classifier, in all precisions: ranks 1, 0, 2, 3; the image without a label counts as wrong.
for amp in off fp32 bf16 fp16; do
    valid kind.data kind.cfg kind.weights -amp $amp
    expect out 'top-1 accuracy = 0.125000, or 12.50 %' 'top-5 accuracy = 0.875000' '8 images' \
        '1 images have no label in their path and count as wrong'
done
# As stock's classifier valid counts: of two equals its list of the best drops the first when a better one
# comes, so that it has 2 and 1, not 2 and 0.
weights "$one$one$two$zero" > equal.weights
while read -r name top first share; do
    valid kind.data kind.cfg $name.weights -top $top -json kind.json
    expect out "top-1 accuracy = $first," "top-$top accuracy = $share,"
    [ -n "$DARKNET_STOCK" ] || continue
    sed "\$atop = $top" kind.data > top.data
    succeeds "$DARKNET_STOCK" classifier valid top.data kind.cfg $name.weights
    tail -n 1 out | grep -qF "7: top 1: $first, top $top: $share" || fail "stock counts: $(tail -n 1 out)"
done << 'END'
equal 2 0.375000 0.500000
kind 2 0.125000 0.375000
kind 3 0.125000 0.750000
kind 4 0.125000 0.875000
END
expect kind.json '"kind": "classifier"' '"top1": 0.125' '"k": 4' '"topk": 0.875' '"unlabelled": 1'
valid kind.data kind.cfg kind.weights -json -
[ "$(head -c 1 out)" = '{' ] && ! grep -q accuracy out || fail "-json - prints more than JSON: $(cat out)"

# It sees each image's own middle square, as stock's does: its class is the colour there,
# not that of the sides.
layers > colour.cfg <<'END_OF_CFG'
[net] batch=1 width=32 height=32 channels=3
[convolutional] filters=2 size=1 stride=1 activation=linear
[avgpool]
[softmax]
END_OF_CFG
{
    header
    printf "$zero$zero" # biases
    printf "$one$zero$zero$zero$one$zero" # red, green
} > colour.weights
stripes() { # stripes <name> <colour of the sides> <of the middle>: 60 x 20
    local side middle row
    side=$(printf "$2%.0s" {1..20})
    middle=$(printf "$3%.0s" {1..20})
    { printf 'P6\n60 20\n255\n'; for row in {1..20}; do printf '%s' "$side$middle$side"; done; } \
        > "images/$1.jpg"
    echo "images/$1.jpg" >> colours.txt
}
for i in {1..24}; do
    if [ $((i % 3)) = 0 ]; then stripes red_$i '!z!' 'z!!'; else stripes green_$i 'z!!' '!z!'; fi
done
printf '%s\n' red green > colours
printf '%s\n' 'classes = 2' 'valid = colours.txt' 'labels = colours' > colour.data
valid colour.data colour.cfg colour.weights
expect out 'top-1 accuracy = 1.000000' 'top-5 accuracy = 1.000000' '24 images'

# A detector sees the whole image, sides and all: its objectness is 26 times the strongest red, less 20.
{
    header
    printf "$zero$zero$zero$zero$minus_twenty$six"
    head -c 48 /dev/zero
    printf '\x00\x00\xd0\x41'
    head -c 20 /dev/zero
} > red.weights
stripes sides "$(printf '\376!!')" '!z!'
echo '0 0.5 0.5 0.5 0.5' > labels/sides.txt
echo images/sides.jpg > sides.txt
echo 'valid = sides.txt' > sides.data
valid sides.data box.cfg red.weights
expect out '1 images, 1 objects, 1 detections'

# Images that cannot be read are named, counted and left out.
echo 'no image' > images/bee_2.jpg
printf 'P6\n0 0\n255\n' > images/bee_3.jpg
printf '\xff\xd8\xff\xdb\0\20' > images/bee_4.jpg
{ cat kinds.txt; printf 'images/%s.jpg\n' bee_2 ant_9 bee_3 bee_4; } > holes.txt
sed 's/kinds.txt/holes.txt/' kind.data > holes.data
valid holes.data kind.cfg kind.weights -json kind.json
expect out 'top-1 accuracy = 0.125000' '8 images' '4 images could not be read and are left out'
expect err 'images/bee_2.jpg: cannot read the image: unknown image type; it is left out' \
    'images/ant_9.jpg: cannot read the image: No such' \
    'images/bee_3.jpg: cannot read the image: it has no pixels: its size is 0 x 0; it is left out' \
    'images/bee_4.jpg: cannot read the image: bad DQT len; it is left out'
expect kind.json '"unreadable": 4' '"images/bee_2.jpg: cannot read the image: unknown image type"'

# Several threads read the images, and each tells its own image's reason: 60 files of each of two kinds.
unknown_chunk() { # unknown_chunk <name>: a PNG of a pixel whose second chunk decoders must know, and do not
    printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\2\0\0\0CRC.\0\0\0\0%sCRC.' "$1"
}
for i in {1..60}; do
    for name in OWLS GNUS; do
        unknown_chunk $name > images/$name$i.png
        echo images/$name$i.png
    done
done > many.txt
unknown_chunk $'A\n\e[' > images/ill.png
{ echo images/ill.png; cat kinds.txt; } >> many.txt
sed 's/kinds.txt/many.txt/' kind.data > many.data
valid many.data kind.cfg kind.weights
for name in OWLS GNUS; do
    [ "$(grep -c "$name.*: cannot read the image: $name PNG chunk not known; it is left out" err)" = 60 ] ||
        fail "not each image with its own reason: $(cat err)"
done
expect err 'images/ill.png: cannot read the image: A??[ PNG chunk not known; it is left out'

# In turns with others: waits for its turn, gives it on while it works, then tells its scores.
mkfifo answers
turns() { # turns <bytes> <arguments...>
    local bytes=$1
    shift
    printf "$bytes" > answers &
    DARKNET_AMP_TURNS=3,4 timeout 600 "$DARKNET" amp valid "$@" 3< answers 4> told > out 2> err
}
told() { # told <line>...
    printf '%s\n' "$@" > expected
    sed 's/0\.66666666666666[0-9]*/two thirds/; /^image /d' told | diff - expected ||
        fail "it tells: $(cat told)"
}
goes_on=$(printf 'g%.0s' {1..100})
turns $goes_on box.data box.cfg box.weights || fail "in turns: $(tail -n 1 err)"
told ready ' score two thirds' ' score two thirds'
holds told '^image 1 of 3$'
turns $goes_on holes.data kind.cfg kind.weights || fail "in turns: $(tail -n 1 err)"
told ready ' score 0.125' ' score 0.875'
for bytes in s gs; do
    ! turns $bytes box.data box.cfg box.weights || fail "went on though it was told to stop"
    ! grep -q score told || fail "told a score though it was told to stop"
    ! turns $bytes kind.data kind.cfg kind.weights || fail "went on though it was told to stop"
    tail -n 1 err | grep -q '^amp valid: stopped' || fail "told to stop, it says: $(tail -n 1 err)"
done

refused() { # refused <what the last line must say> <arguments...>
    ends_saying "^amp valid: .*$1" "$DARKNET" amp valid "${@:2}" -json never.json
    ! grep -q 'accuracy =\|mean average' out || fail "amp valid ${*:2}: a score in spite of the error"
    [ ! -e never.json ] || fail "amp valid ${*:2}: JSON in spite of the error"
}
# What detector map refuses too is e2e_map's.
good='kind.cfg kind.weights'
# Weights are the whole network's, or none, with AMP and without.
head -c 20 kind.weights > first.weights
for amp in off bf16; do
    refused 'first.weights: ends before the weights of layer' kind.data kind.cfg first.weights -amp $amp
done
weights "$nan$two$one$zero" > nan.weights
refused 'images/ant_1.jpg: .*inf or NaN.*too short for fp16' kind.data kind.cfg nan.weights
# Nor do Darknet's own commands find nothing in such numbers without a word; in fp16 100000 is one.
hundred_thousand='\x00\x50\xc3\x47'
weights "$nan$nan$nan$nan$nan$nan" > nan_box.weights
weights "$zero$zero$hundred_thousand$zero$six$six" > large_box.weights
weights "$one$hundred_thousand$one$zero" > large.weights
mkdir results
ln -s "$DARKNET_TREE/data" data # letters, without which detector test does not begin
printf '%s\n' 'valid = boxes.txt' 'names = kinds' 'results = results' > named.data
for case in 'nan off' 'nan bf16' 'large fp16'; do
    weights=${case% *} amp=${case#* }
    says='^amp: a prediction: the network outputs inf or NaN; the weights'
    for command in 'classifier predict' 'classifier valid'; do
        ends_saying "$says" "$DARKNET" $command kind.data kind.cfg $weights.weights images/ant_1.jpg -amp $amp
    done
    says='^amp: a prediction: layer 2 outputs inf or NaN; the weights'
    for command in 'detector test' 'detector valid'; do
        ends_saying "$says" "$DARKNET" $command named.data box.cfg ${weights}_box.weights images/a.jpg \
            -amp $amp
    done
done
for amp in off fp32 bf16; do
    succeeds "$DARKNET" classifier predict kind.data kind.cfg large.weights images/ant_1.jpg -amp $amp
done
rm data
with 'valid = kinds.txt' 'labels = kinds'
refused '4 outputs, but the .data file has classes = 2' with.data $good
with 'classes = 4' 'valid = kinds.txt' 'labels = kinds' 'leaves = kinds'
refused "with.data: leaves = kinds: .*cannot tell a tree's leaves" with.data $good
printf '%s\n' eel fox gnu hen > others
with 'classes = 4' 'valid = kinds.txt' 'labels = others'
refused 'none of the 8 validation images .* has a label' with.data $good
printf '%s\n' images/bee_2.jpg images/ant_9.jpg > list
with 'classes = 4' 'valid = list' 'labels = kinds'
refused 'none of the 2 validation images can be read; the first: images/bee_2.jpg' with.data $good
if [ "$(id -u)" != 0 ]; then
    mkdir closed && chmod 555 closed
    ends_saying '^amp valid: .*closed/x.json' "$DARKNET" amp valid kind.data $good -json closed/x.json
fi
ends_saying '^amp valid: .*nowhere/x.json' "$DARKNET" amp valid kind.data $good -json nowhere/x.json
! grep -q accuracy out || fail "measured, though the JSON cannot be written"
