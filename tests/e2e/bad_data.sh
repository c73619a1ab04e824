# Bad input of a training under AMP: files, lists, images, labels and weights. Either one line that says what
# and where, status 1 and no file changed; or the training continues, and what was left out is named once and
# counted. Never a signal. What lines of labels, lists, .data files and .weights files are refused for, and in
# which words, is test_bad_data.c's, and what a .cfg is refused for test_cfg_check.c's; here is the program
# that must end properly.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
shopt -s nullglob
export OMP_NUM_THREADS=1

# ---- pristine sets: one for a detector, one for a classifier, each case works on a copy ----

mkdir detector classifier case
( cd detector && tiny_training && : > train.txt &&
    for i in 1 2 3 4 5 6 7 8; do echo "images/$i.jpg" >> train.txt; done )
( cd classifier && mkdir images backup && for i in 1 2 3 4 5 6 7 8; do
    kind=$([ $((i % 2)) = 0 ] && echo round || echo square)
    cp "../detector/images/$i.jpg" "images/$i.$kind.jpg"
    echo "images/$i.$kind.jpg" >> train.txt
done
printf '%s\n' round square > tiny.labels
printf '%s\n' 'classes=2' 'train=train.txt' 'valid=train.txt' 'labels=tiny.labels' 'backup=backup' > tiny.data
layers > tiny.cfg <<'END'
[net] batch=4 subdivisions=2 width=16 height=16 channels=3 min_crop=16 max_crop=20 learning_rate=0.01
    momentum=0.9 max_batches=5
[convolutional] batch_normalize=1 filters=4 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=2 size=1 activation=linear
[avgpool]
[softmax]
END
)
train() { # train <detector|classifier> <arguments...>: out, err and status of a training in the folder case
    local kind=$1
    shift
    status=0
    ( cd case; ulimit -c 0; exec timeout 600 "$DARKNET" $kind train tiny.data tiny.cfg "$@" ) > out 2> err \
        < /dev/null || status=$?
}
listing() { ( cd case; find . -type f -printf '%p %s ' -exec cksum {} \; | LC_ALL=C sort; ); }

failures=0 tests=0
complain() {
    echo "FAILED: $name: $*"
    grep -a -v '^layer \|^ *[0-9]* [a-z]' err | cut -c1-300 | tail -n 5 | sed 's/^/    /'
    failures=$((failures + 1))
}
fresh() { # fresh <detector|classifier> <name>
    kind=$1 name="$1, $2" last=case/backup/tiny.weights
    [ $kind = classifier ] || last=case/backup/tiny_final.weights
    rm -rf case
    cp -r $kind case
    tests=$((tests + 1))
}
# refused <what the last line says> <arguments...>
refused() {
    local expected=$1 before
    shift
    before=$(listing)
    train $kind -amp bf16 -seed 3 "$@"
    [ $status = 1 ] || complain "status $status instead of 1"
    tail -n 1 err | grep -aqF -- "$expected" || complain "the last line does not say: $expected"
    [ "$(listing)" = "$before" ] || complain "files were written"
}
# goes_on <how often> <line of err> <arguments...>
goes_on() {
    local count=$1 expected=$2
    shift 2
    train $kind -amp bf16 -seed 3 "$@"
    [ $status = 0 ] || complain "status $status instead of 0"
    [ "$(grep -acF -- "$expected" err)" = "$count" ] || complain "not $count times: $expected"
    grep -aq '^amp: summary .*steps=5 ' err || complain 'did not train to the end'
    [ -s $last ] || complain 'no weights'
}

# ---- the .data file and its lists ----

for kind in detector classifier; do
    fresh $kind 'no .data file'
    rm case/tiny.data
    refused 'tiny.data: '
    fresh $kind 'no list'
    rm case/train.txt
    refused 'train.txt: '
done
fresh detector 'a key given twice'
echo 'train = other.txt' >> case/tiny.data
goes_on 1 'amp: tiny.data:6: train is given twice'
fresh classifier 'no labels key'
sed -i /labels/d case/tiny.data
refused 'data/labels.list: cannot read the list of labels'
fresh classifier 'a path without label, one with both'
cp case/images/2.round.jpg case/images/2.plain.jpg
cp case/images/2.round.jpg case/images/2.round.square.jpg
sed -i 's/2.round/2.plain/; s/4.round/2.round.square/' case/train.txt
goes_on 1 'amp: images whose path does not hold exactly one label: 2'
grep -aqF "amp: image 'images/2.plain.jpg': the path contains 0 of the labels" err ||
    complain 'not named'

# ---- images ----

png=$BUILD_DIR/bin/shapes
[ ! -x "$png" ] || "$png" --out shapes --train 1 --valid 1 --size 64 --seed 5 > shapes.log 2>&1 ||
    fail "$(cat shapes.log)"
. "$SOURCE_DIR/tests/e2e/lib/turned_photos.bash"
small_jpeg > small.jpg
huge_png() { printf '\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\x01\0\0\0\x01\0\0\0\x08\x02\0\0\0\0\0\0\0'; }

# Half of the images are made bad by the function $put, so that a short training meets them.
bad_images() {
    local i
    for i in 1 3 5 7; do
        set -- case/images/$i.*
        rm -rf "$1"
        "$put" "$1"
    done
}
nothing() { :; }
empty() { : > "$1"; }
text() { echo 'this is no image' > "$1"; }
folder() { mkdir "$1"; }
half_png() { head -c $(($(stat -c %s shapes/images/train_00000.png) / 2)) shapes/images/train_00000.png \
    > "$1"; }
huge() { huge_png > "$1"; }
no_pixels() { printf 'P6\n0 0\n255\n' > "$1"; }
no_rows() {
    { printf '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 100000 +X 255\n'; head -c 1300 /dev/zero; } > "$1"
}
header() { head -c 200 small.jpg > "$1"; }
noise() { { head -c 160 small.jpg; head -c 2000 "$DARKNET"; } > "$1"; }
half_jpeg() { head -c -20 small.jpg > "$1"; }
gif() {
    { printf 'GIF89a\x02\xff\x02\xdb\x91\0\0\0\0\0\xff\xff\xff\xff\0\0\0\xff\0'
      printf '\x2c\0\0\0\0\x02\0\x02\0\0\x02\x03\x44\x02\x05\0\x3b'; } > "$1"
}
pic() { { printf 'S\x80\xf64'; head -c 84 /dev/zero; printf 'PICT\0\x06\0\x05'; head -c 100 /dev/zero; } \
    > "$1"; }
# The first Huffman table of small.jpg: its sixteen sizes, and behind them its values.
table=$(($(LC_ALL=C grep -obUaP '\xff\xc4' small.jpg | head -n 1 | cut -d: -f1) + 5))
bad_bytes() { # bad_bytes <from> <count> <file>: small.jpg with 255 there
    { head -c $1 small.jpg
      head -c $2 /dev/zero | tr '\0' '\377'
      tail -c +$(($1 + $2 + 1)) small.jpg; } > "$3"
}
sizes() { bad_bytes $table 16 "$1"; }
codes() { bad_bytes $((table + 16)) 3 "$1"; }
link() { ln -s "$(basename "$1")" "$1"; }
fifo() { mkfifo "$1"; }
device() { ln -s /dev/zero "$1"; }
for kind in detector classifier; do
    puts='nothing empty text folder half_png huge no_pixels no_rows header noise half_jpeg codes sizes gif'
    puts="$puts pic link fifo device"
    [ $kind = detector ] || puts='text half_png fifo' # the same loader reads both's
    for put in $puts; do
        [ $put != half_png ] || [ -e shapes/images/train_00000.png ] || continue
        fresh $kind "images: $put"
        bad_images
        goes_on 1 'amp: unreadable images: 4; replaced by others'
        [ "$(grep -ac 'cannot be read (.*); another is used instead$' err)" = 4 ] ||
            complain 'not named once each'
    done
    cp $last again.weights
    rm -r case/backup && mkdir case/backup
    goes_on 1 'amp: unreadable images: 4; replaced by others'
    cmp -s again.weights $last || complain '-seed 3 twice, and other weights'
    fresh $kind 'all images bad'
    for image in case/images/*; do text "$image"; done
    refused "amp: none of the 8 images of the training list can be read; the first is 'images/1."
    fresh $kind 'one image good'
    for image in case/images/[1-7].*; do text "$image"; done
    goes_on 1 'amp: unreadable images: 7; replaced by others'
    fresh $kind 'a blank line in the list'
    sed -i '2s/.*//; 4s/.*//; 6s/.*//' case/train.txt
    goes_on 1 "amp: image '' cannot be read (the list has a blank line); another is used instead"
    fresh $kind 'names with blanks, quotes, control characters'
    printf 'images/no such %%s file\001 "of ours".jpg\n' > case/train.txt
    ls case/images/* | sed -n 's#^case/##; 2p' >> case/train.txt
    goes_on 1 \
        "amp: image 'images/no such %s file? \"of ours\".jpg' cannot be read (No such file or directory)"
    fresh $kind 'a good image with blanks in its name'
    good=$(ls case/images/* | sed -n 2p)
    cp "$good" "case/images/two  words $(basename "$good")"
    [ $kind = classifier ] || cp case/labels/2.txt "case/labels/two  words 2.txt"
    echo "images/two  words $(basename "$good")" > case/train.txt
    goes_on 0 'cannot be read'
done

# ---- labels ----

fresh detector 'nothing wrong'
goes_on 0 'left out'
fresh detector 'a class too high'
for i in 1 2 3 4 5 6 7 8; do printf '0 .5 .5 .2 .2\r\n\n2 .5 .5 .2 .2\n' > case/labels/$i.txt; done
refused ".txt:3: label '2 .5 .5 .2 .2' "
fresh detector 'no label files'
rm case/labels/*
no_label='.txt: cannot read this label file: No such file or directory'
refused "$no_label; this Darknet looks for"
fresh detector 'images whose labels Darknet does not find'
for i in 1 2 3 4 5 6 7 8; do mv case/images/$i.jpg case/images/$i.bmp; done
sed -i s/jpg/bmp/ case/train.txt
refused "${no_label/txt/bmp}; Darknet replaces only these image endings"
fresh detector 'images that Darknet takes for their labels'
mv case/images case/pictures
for i in 1 2 3 4 5 6 7 8; do mv case/labels/$i.txt case/pictures/; done
sed -i s/images/pictures/ case/train.txt
goes_on 0 'label file'
fresh detector 'images with .jpg within their names'
for i in 1 2 3 4 5 6 7 8; do mv case/images/$i.jpg case/images/$i.jpg_e09.jpg; done
sed -i 's/jpg/jpg_e09.jpg/' case/train.txt
refused "${no_label/.txt/.txt_e09.jpg}; Darknet replaces only the first .jpg or .png in an image's path by "
fresh detector 'images without objects'
for i in 1 2 3 4 5 6 7; do : > case/labels/$i.txt; done
goes_on 0 'left out'
fresh detector 'boxes that are none'
for i in 1 2 3 4 5 6 7 8; do
    printf '0 0 0 0 0\n1 1.6 .5 .2 .2\n0 .5 .5 .2 -.1\n1 .5 .5 .2 .2\n' > case/labels/$i.txt
done
goes_on 1 'amp: labels ignored, outside the image or with their centre at 0 0: 24'
grep -aqF 'amp: labels/3.txt:2: this box lies outside the image and is ignored' err ||
    complain 'not named'
grep -aqF 'amp: labels/3.txt:1: Darknet ignores a box whose centre is 0 0' err ||
    complain 'not named'

fresh detector 'boxes that are too small, and too many'
for i in 1 2 3 4 5 6 7 8; do
    printf '0 .5 .5 .0005 .2\n1 .5 .5 .2 .2\n' > case/labels/$i.txt
    for ((n = 0; n < 89; n++)); do echo "0 .5 .5 .0$((i + 1)) .$((n + 10))"; done >> case/labels/$i.txt
done
goes_on 1 "amp: labels ignored, smaller than Darknet's minimum: 8"
small='this box takes 0.0005 x 0.2 of its image; Darknet ignores boxes below 0.001 x 0.001'
for line in "labels/3.txt:1: $small" \
    'labels/3.txt: 91 boxes, of which each step uses 90, chosen at random' \
    'label files with more boxes than a step uses: 8'; do
    grep -aqF "amp: $line" err || complain "nothing says: $line"
done
( cd case && "$DARKNET" amp check tiny.cfg tiny.data ) > out 2> err || complain 'amp check'
small="8 of 728 labels are smaller than Darknet's minimum, and are ignored"
for line in "$small; the first is 'labels/1.txt:1'" \
    "8 of 8 images have more boxes than a step uses; the first is 'labels/1.txt'"; do
    grep -aqF "amp: training images: $line" err || complain "amp check does not say: $line"
done
for i in 1 2 3 4 5 6 7 8; do echo '0 .5 .5 .0005 .2' > case/labels/$i.txt; done
train detector -amp bf16 -seed 3 -map 1
grep -aq 'none of the 8 .* object to find: their 8 labels are thinner than 0.001' err || complain 'with -map'

fresh detector 'a bad label in a later batch'
. "$SOURCE_DIR/tests/e2e/lib/late_label.bash"
( cd case && tiny_training && late_label "$DARKNET" labels ) || complain 'see above'

# ---- limits ----

if [ -z "${SANITIZERS:-}" ]; then # they take more of the stack
    fresh detector 'ulimit -s 128'
    status=0
    ( cd case; ulimit -s 128; exec "$DARKNET" detector train tiny.data tiny.cfg -amp bf16 ) > out 2> err \
        < /dev/null || status=$?
    [ $status = 0 ] && [ -s $last.amp ] || complain "status $status"
fi
fresh detector 'a folder instead of the lock'
mkdir case/backup/.tiny.lock
goes_on 1 'amp: backup/.tiny.lock cannot be locked: Is a directory; make sure that no other training saves'
for command in 'check tiny.cfg' version; do
    status=0
    ( cd case && "$DARKNET" amp $command > /dev/full 2> ../err ) || status=$?
    [ $status = 1 ] && tail -n 1 err | grep -q '^amp: cannot write what this command prints: ' ||
        complain "amp $command on a full disk: status $status"
done

# ---- networks ----

fresh detector 'network: other classes than the .data file'
sed -i 's/classes=2/classes=80/' case/tiny.data
goes_on 1 'amp: the .data file has classes = 80, but the network has 2'

# ---- weights ----

fresh detector 'nothing wrong'
goes_on 0 'random'
cp case/backup/tiny_final.weights good.weights
( cd case && "$DARKNET" partial tiny.cfg ../good.weights ../first.weights 2 &&
    "$DARKNET" partial tiny.cfg ../good.weights ../most.weights 7 ) \
    > out 2> err < /dev/null || fail "partial: $(tail -n 2 err)"
for kind in detector classifier; do # ... that have seen all steps
    fresh $kind 'nothing is left to train'
    train $kind -amp fp32 -seed 3
    cp $last case/seen.weights
    train $kind seen.weights -amp fp32 -seed 3
    said=$(grep -ac 'amp: nothing is left.* of iteration 5, .* max_batches=5; .* -clear$' err) || true
    [ $status = 0 ] && [ "$said" = 1 ] || complain 'nothing is said of it'
    train $kind seen.weights -amp fp32 -seed 3 -clear
    grep -aq '^1[:,] ' out && ! grep -aq 'nothing is left' err || complain 'with -clear'
done
fresh detector 'weights that are cut'
head -c -4 good.weights > case/bad.weights
refused 'amp: bad.weights: ' bad.weights
refused 'amp: bad.weights: ' bad.weights -clear
for first in first:2 most:7; do # darknet53.conv.74 and its like
    fresh detector "weights of the first layers: $first"
    cp ${first%:*}.weights case/some.weights
    goes_on 1 "amp: some.weights holds the weights of layers 0 to" some.weights
    goes_on 1 "amp: some.weights holds the weights of layers 0 to" some.weights -clear
done

# ---- where to write ----

for kind in detector classifier; do
    fresh $kind 'no backup folder'
    rm -r case/backup
    refused 'tiny.data: backup = backup: '
    fresh $kind 'no backup key'
    sed -i /^backup=/d case/tiny.data
    [ -d /backup ] || refused "tiny.data: backup = /backup/, Darknet's default: "
    fresh $kind 'a .cfg whose name leaves no room'
    long=$(printf 'n%.0s' {1..240})
    mv case/tiny.cfg "case/$long.cfg"
    before=$(listing)
    status=0
    (cd case; exec timeout 600 "$DARKNET" $kind train tiny.data $long.cfg -amp bf16) > out 2> err || status=$?
    [ $status = 1 ] && [ "$(listing)" = "$before" ] || complain "status $status"
    tail -n 1 err | grep -q 'amp: nnn.*: names of saved files are .* the limit of 255 bytes' ||
        complain 'no line about it'
done

# Twice what Darknet's buffers of 256 bytes hold, and more than find_replace's 4096 with a deep folder.
deep=$(printf '%080d/' 1 2 3 4 5 6)
for kind in detector classifier; do
    for amp in bf16 off; do
        fresh $kind "a backup path of ${#deep} bytes, -amp $amp"
        mkdir -p case/$deep
        sed -i "s|^backup=.*|backup=$deep|" case/tiny.data
        sed -i 's/max_batches=5/max_batches=100/; s/^learning_rate=.*/learning_rate=0.0001/' case/tiny.cfg
        train $kind -amp $amp -seed 3
        [ $status = 0 ] || complain "status $status"
        [ -s case/$deep$(basename $last) ] || complain "no weights"
        [ $kind = classifier ] || [ -s case/${deep}tiny_100.weights ] || complain 'no snapshot'
    done
done

# ---- other commands: nothing can take an image's place ----

fresh classifier 'valid, an image missing'
goes_on 0 'amp: unreadable'
rm case/images/5.*
status=0
( cd case; exec timeout 600 "$DARKNET" classifier valid tiny.data tiny.cfg backup/tiny.weights -amp bf16 ) \
    > out 2> err < /dev/null || status=$?
[ $status = 1 ] || complain "status $status instead of 1"
tail -n 1 err | grep -aqF "amp: image 'images/5.square.jpg' cannot be read (No such file or directory)" ||
    complain 'not named'

# ---- without AMP: stock, whatever it does ----

fresh detector 'stock: an unreadable image'
for image in case/images/*; do text "$image"; done
train detector -amp off
! grep -aq '^amp:' err || complain 'a line of AMP'
grep -aq '^Cannot load image' err || complain 'not what stock says'
fresh detector 'stock: no list'
rm case/train.txt
train detector -amp off
[ $status = 1 ] && grep -aq "^Couldn't open file: train.txt" err ||
    complain 'not what stock says, or not status 1'

[ $failures = 0 ] || fail "$failures complaints over $tests cases"
echo "$tests cases"
