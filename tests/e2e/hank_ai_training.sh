# hank-ai's Darknet, in a program that the user has built (DARKNET_AMP_HANK_AI): training under AMP in each
# dtype, what a command line may look like, the same bytes again and after a stop, bad data; and without AMP
# the bytes of the unpatched program.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
. "$SOURCE_DIR/tests/e2e/lib/turned_photos.bash"
[ -n "$HANK_AI" ] || skip "no program of hank-ai's Darknet: give cmake -DDARKNET_AMP_HANK_AI=PATH"
tiny_alexeyab
printf '\n[amp]\ndtype=bf16\n' | cat tiny.cfg - > amp.cfg

program=$HANK_AI
same() { cmp "$1" "$2" || fail "$3"; }
last_loss() { tail -1 "$1" | cut -d, -f2; }

# ---- commands ----
succeeds "$HANK_AI" amp version
holds out "hank-ai's"
succeeds "$HANK_AI" amp check amp.cfg tiny.data
succeeds "$HANK_AI" amp plan amp.cfg
[ "$(grep -c '^ *[0-9]* *convolutional .* bf16' out)" = 5 ] || fail "amp plan: $(cat out)"
sed 's/^\[upsample\]/[gru]\noutput=4\n\n&/' amp.cfg > gone.cfg
! "$HANK_AI" amp check gone.cfg > out 2> err || fail 'a layer that is gone is taken'
grep -q 'this Darknet no longer has it' out err || fail "a layer that is gone: $(cat out err)"

# ---- its .cfg reader: what it takes is taken, and what ends it is told beforehand ----
sed 's/^\[net\]/& # all/; s/^batch=8/& # images/; s/^activation=leaky/& # its slope/' amp.cfg > comments.cfg
echo '; a note' >> comments.cfg
succeeds "$HANK_AI" amp check comments.cfg tiny.data
! grep -q 'warning' out err || fail "comments: $(cat out err)"
while IFS='|' read -r change text; do
    sed "$change" amp.cfg > bad.cfg
    ! cmp -s bad.cfg amp.cfg || fail "$change finds no place"
    ! "$HANK_AI" amp check bad.cfg tiny.data > out 2> err || fail "amp check takes $change"
    grep -q "bad.cfg:[0-9]*: .*$text" out err || fail "$change: $(cat out err)"
    sed "$change" tiny.cfg > own.cfg # which nothing has checked before the reader comes to it
    ends_saying "^$PWD/own.cfg: .*; amp check: $PWD/own.cfg:[0-9]*: .*$text" \
        "$HANK_AI" amp valid tiny.data own.cfg tiny.names
done <<'END'
s/^batch=8/&\n;batch=4/|unknown key
s/^batch=8/&;4/|not a whole number
s/^width=32/width=48/|needs multiples of 32
s/^policy=steps/policy=constant/|is not used with this policy=
s/^batch=8/&\nB1=.8/|is not used with this adam=
END

# ---- what is measured is read as what is trained on ----
turned_photos
finds_turned "$HANK_AI"
succeeds "$HANK_AI" detector train turned.data turned.cfg turned.weights -clear -dont_show -amp fp32 -map 1
holds out 'Last accuracy.* at iteration #1\.'

# ---- probe -compare ----
succeeds "$HANK_AI" amp probe -compare tiny.data tiny.cfg -seed 3 -json compared.json
holds compared.json '"fp32_is_stocks": true'

# ---- in each dtype; the words in any order ----
train bf16 amp.cfg -step_log bf16.csv
! grep -q 'Are you certain' bf16.out || fail 'under AMP it asks whether a CPU is meant'
rm -f backup/*
succeeds "$HANK_AI" detector -dontshow -Seed 3 train amp.cfg tiny.data
same bf16/amp_final.weights backup/amp_final.weights 'the same seed gives other weights'
train comments comments.cfg
same bf16/amp_final.weights comments/comments_final.weights 'comments change the weights'
for dtype in fp32 fp16; do
    train $dtype tiny.cfg -amp $dtype -step_log $dtype.csv
done
for dtype in bf16 fp16; do
    awk -v a="$(last_loss fp32.csv)" -v b="$(last_loss $dtype.csv)" \
        'BEGIN { exit !(a > 0 && b > a * .8 && b < a * 1.2) }' ||
        fail "$dtype ends with a loss of $(last_loss $dtype.csv), fp32 with $(last_loss fp32.csv)"
done

# ---- fp32 against its own code, where no layers branch and there is no batch norm: on a CPU its own code
# loses gradients there, and learns no biases here ----
layers > straight.cfg <<'END'
[net] batch=8 subdivisions=2 width=32 height=32 channels=3 momentum=0.9 decay=0.0005 learning_rate=0.0005
    max_batches=6
[convolutional] filters=8 size=3 stride=1 pad=1 activation=leaky
[maxpool] size=2 stride=2
[convolutional] filters=16 size=3 stride=2 pad=1 activation=mish
[convolutional] filters=21 size=1 stride=1 activation=linear
[yolo] mask=3,4,5 anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 jitter=.3 ignore_thresh=.7
    truth_thresh=1 random=0 iou_loss=ciou iou_normalizer=.07
END
for channels in 1 3; do # of grey images the unpatched code writes behind the end
    sed -i "s/channels=[13]/channels=$channels/" straight.cfg
    train straight straight.cfg -amp fp32 -step_log under.csv
    echo yes | "$HANK_AI" detector train tiny.data straight.cfg -amp off -seed 3 -dont_show \
        -step_log own.csv > out 2> err || fail "-amp off: $(tail -2 err out)"
    paste -d, under.csv own.csv | awk -F, -v OFS=, 'NR == 1 { half = NF / 2; next }
        { a = $2; b = $(half + 2); d = a > b ? a - b : b - a }
        !(d <= 1e-5 * b) { print $1, a, b; bad = 1 }
        END { exit bad || NR != 7 }' > differ || fail "channels=$channels, AMP and its own: $(cat differ)"
    succeeds "$HANK_AI" amp valid tiny.data straight.cfg straight/straight_final.weights
done

# ---- crnn, whose own code moves the pointers of its layers ----
awk '/^\[yolo/ { exit } /^max_batches/ { print "time_steps=2\ntrack=1" } { print }' straight.cfg > crnn.cfg
crnn='[crnn]\nbatch_normalize=1\nsize=3\npad=1\noutput=16\nhidden=8\nactivation=leaky\n\n'
sed -i "s/^\[maxpool\]/$crnn&/" crnn.cfg
sed -n '/^\[yolo/,$p' straight.cfg >> crnn.cfg
for dtype in fp32 bf16; do
    train crnn crnn.cfg -amp $dtype -step_log crnn.$dtype.csv
done
awk -F, 'NR == 2 { first = $2 } END { exit !($2 > 0 && $2 < first * .8) }' crnn.fp32.csv ||
    fail "a crnn does not learn: $(cut -d, -f2 crnn.fp32.csv | tr '\n' ' ')"
awk -v a="$(last_loss crnn.fp32.csv)" -v b="$(last_loss crnn.bf16.csv)" \
    'BEGIN { exit !(b > a * .9 && b < a * 1.1) }' || fail "a crnn in bf16: $(last_loss crnn.bf16.csv)"

# ---- stopped, and gone on with (a kill at any moment is e2e_kill's: the files are the plugin's) ----
sed 's/^max_batches=.*/max_batches=4000/' amp.cfg > long.cfg
cp amp.cfg four.cfg
goes_on four.cfg
sed 's/^max_batches=.*/max_batches=2/' amp.cfg > two.cfg
rm -rf backup/*
"$HANK_AI" detector train tiny.data long.cfg -seed 3 -dont_show > out 2> err &
job=$!
until grep -aq '2/4000\|^2: loss' out; do
    kill -0 $job 2> /dev/null || fail "a long training ends: $(tail -3 err)"
    sleep .1
done
kill -TERM $job
status=0
wait $job || status=$?
[ $status = 143 ] || fail "stopped by SIGTERM: status $status; $(tail -3 err)"
[ -e backup/long.backup.amp ] || fail 'no sidecar after SIGTERM'
steps=$(sed -n 's/.*stopped after step \([0-9]*\);.*/\1/p' err)
cp backup/long.backup stopped.backup && cp backup/long.backup.amp stopped.backup.amp
sed "s/^max_batches=.*/max_batches=$((steps + 2))/" amp.cfg > rest.cfg
train rest rest.cfg stopped.backup
train straight rest.cfg
same rest/rest_final.weights straight/rest_final.weights 'NAME.backup goes on to other weights'

# ---- its own log of all that is printed ----
train logged two.cfg -log all.log
grep -q '^amp: bf16' all.log logged.err || fail '-log: no line of AMP'
grep -q 'loss' all.log && ! grep -q 'loss' logged.out || fail '-log: the steps are not there'

# ---- two ranks, where the program was built with -DDARKNET_AMP_MPI=ON ----
if ldd "$HANK_AI" | grep -q libmpi && command -v mpirun > /dev/null; then
    sed '/^\[dropout\]/,/^probability/d; s/^layers=-3/layers=-2/' four.cfg > ranks.cfg
    sed -i 's/^dtype=.*/dtype=fp32/' ranks.cfg
    train of_one ranks.cfg
    as_root=$([ "$(id -u)" != 0 ] || echo --allow-run-as-root)
    rm -rf backup/*
    for rank in 0 1; do # each in a folder of its own, where it would draw its chart
        mkdir rank$rank
        ln -s "$PWD"/{images,backup,train.txt,tiny.data,tiny.names,ranks.cfg} rank$rank
    done
    OMP_NUM_THREADS=1 mpirun --oversubscribe --bind-to none $as_root -np 2 bash -c \
        'cd rank$OMPI_COMM_WORLD_RANK && exec "$0" detector train tiny.data ranks.cfg -seed 3 -dont_show' \
        "$HANK_AI" > out 2> err < /dev/null || fail "two ranks: $(tail -3 err)"
    [ -e rank0/chart.png ] && ! [ -e rank1/chart.png ] || fail 'not rank 0 alone draws the chart'
    weights_near of_one/ranks_final.weights backup/ranks_final.weights
fi

# ---- mAP: the number behind -map, what a step's line says of it; detector map is the fork's own ----
train map amp.cfg -map 3
cut -d, -f1 map/amp_map.csv | tr '\n' ' ' | grep -q '^iteration 3 5 $' ||
    fail "-map 3 measures at: $(cat map/amp_map.csv)"
sed 's/\x1b\][^\x07]*\x07//; s/\x1b\[[0-9;]*m//g' map.out |
    sed -n 's/^\([0-9]*\): loss.* mAP=\([^,]*\),.*/\1 \2/p' | tr '\n' ' ' > lines
[ "$(cat lines)" = '1 3 2 3 3 3 4 5 5 5 ' ] || fail "the steps' lines and the next measurement: $(cat lines)"
! grep -q '\[yolo\]: loss' map.out map.err || fail "a line for each yolo layer: $(tail -3 map.err)"
train told two.cfg -verbose
[ "$(grep -c '\[yolo\]: loss' told.err)" = 8 ] || fail "-verbose: no line for each yolo layer"
for cfg in four tiny; do # under AMP and without
    succeeds "$HANK_AI" detector map -dont_show tiny.data $cfg.cfg whole/four_final.weights
    holds out 'mAP@0.5.*)='
done
sed 's/^width=32/width=96/; s/^height=32/height=96/' four.cfg > large.cfg # to which images are resized
for command in 'amp valid' 'detector map -dont_show'; do
    succeeds "$HANK_AI" $command tiny.data large.cfg whole/four_final.weights -thresh .2
    sed 's/\x1b\[[0-9;]*m//g' out | sed -n 's/.*, TP *= *\([0-9]*\), FP *= *\([0-9]*\), FN.*/\1 \2/p'
done > positives
uniq -c positives | grep -q '^ *2 .*[1-9]' ||
    fail "amp valid and detector map count right and wrong boxes: $(cat positives)"

# ---- bad data ----
cp images/3.jpg good.jpg
echo text > images/3.jpg
printf 'P6\n99999 99999\n255\n' > images/5.jpg # more pixels than OpenCV reads
cp train.txt good.txt
printf '\nimages/missing.jpg\n' >> train.txt
sed 's/^max_batches=.*/max_batches=8/' amp.cfg > eight.cfg
train text eight.cfg
for image in 3.jpg 5.jpg missing.jpg "''"; do
    holds text.err "image .*$image.* cannot be read"
done
mv good.txt train.txt
mv good.jpg images/3.jpg
cp images/3.jpg images/5.jpg

# class names, of which its own code wants one for each class
for names in 'round\nsquare\n\n' 'round\n' ''; do
    [ -z "$names" ] || printf "$names" > bad.names
    [ -n "$names" ] || rm bad.names
    sed 's/=tiny.names/=bad.names/' tiny.data > names.data
    ends_saying 'bad.names: .*\(2 classes\|No such file\)' \
        "$HANK_AI" detector train names.data four.cfg -dont_show
    status_of "$HANK_AI" amp check four.cfg names.data
    [ $status = 1 ] && grep -q '^error: bad.names: ' out || fail "amp check of bad names: $(cat out err)"
done

# weights of the first layers, under any name
succeeds "$HANK_AI" partial tiny.cfg whole/four_final.weights first.conv.6 6
succeeds "$HANK_AI" partial two.cfg whole/four_final.weights first.weights 6 # the same, under AMP
same first.conv.6 first.weights 'partial: under AMP it writes other weights'
for name in first.conv.6 first.weights; do
    train from_$name two.cfg $name
    holds from_$name.err "$name holds the weights of layers 0 to 5"
done
same from_first.conv.6/two_final.weights from_first.weights/two_final.weights 'a name matters'
train random two.cfg
! cmp -s random/two_final.weights from_first.weights/two_final.weights || fail 'first.weights are not loaded'
ends_saying 'first.conv.7: this weights file does not exist' "$HANK_AI" detector train tiny.data two.cfg \
    first.conv.7
ends_saying 'none.weights: this weights file does not exist' "$HANK_AI" detector test tiny.data two.cfg \
    none.weights images/1.jpg -dont_show
ends_saying 'one weights file' "$HANK_AI" detector train tiny.data two.cfg first.conv.6 first.weights

# an exception that a thread of its own throws
g++ -shared -fPIC -x c++ - -o throws.so <<'END'
#include <stdexcept>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" unsigned _ZNSt13random_device9_M_getvalEv()
{
    return syscall(SYS_gettid) == getpid() ? 1 : throw std::runtime_error("nothing is random");
}
END
ends_saying '^nothing is random' env LD_PRELOAD=$PWD/throws.so \
    "$HANK_AI" detector train tiny.data two.cfg -dont_show

# a .data file as its own code reads it
mkdir 'my #sets'
cp train.txt 'my #sets/train.txt'
sed 's/=/ : /; s,^train.*,train = my #sets/train.txt,' tiny.data > blanks.data
data=blanks.data train blanks two.cfg
same random/two_final.weights blanks/two_final.weights 'blanks in the .data file change the weights'

# no memory for Darknet's own arrays
sed 's/^batch=8/batch=64/; s/^width=32/width=608/; s/^height=32/height=608/' two.cfg > huge.cfg
status_of bash -c 'ulimit -v 1000000; "$0" detector train tiny.data huge.cfg -dont_show' "$HANK_AI"
[ $status = 1 ] && tail -n 1 err | grep -q 'memory' || fail "no memory: status $status; $(tail -3 err)"

# ---- without AMP ----
[ -n "$HANK_AI_STOCK" ] || { echo 'no unpatched program: DARKNET_AMP_HANK_AI_STOCK is not given'; exit 0; }
echo 'extern "C" unsigned _ZNSt13random_device9_M_getvalEv() { return 1; }' |
    g++ -shared -fPIC -x c++ - -o alike.so
stock_run() { # stock_run <program> <folder>
    rm -rf "$2" backup/*
    mkdir "$2"
    echo yes | OMP_NUM_THREADS=1 LD_PRELOAD=$PWD/alike.so "$1" detector train tiny.data tiny.cfg -dont_show \
        > "$2/out" 2>&1 || fail "$1: $(tail -3 "$2/out")"
    mv backup/* "$2"
}
stock_run "$HANK_AI_STOCK" stock
stock_run "$HANK_AI_STOCK" twice
stock_run "$HANK_AI" patched
same stock/tiny_final.weights twice/tiny_final.weights 'stock differs from itself: the test is broken'
same stock/tiny_final.weights patched/tiny_final.weights 'the patched Darknet trains to other weights'
