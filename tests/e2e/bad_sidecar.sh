# A sidecar that is damaged, no file, of another network or of other weights: one line that names it, exit
# status 1, and no file touched. Which damage is found, and in which words, is test_sidecar_damage.c's and
# test_sidecar.c's.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/resume.bash"
small_training 230

train() { # train <.cfg> <name>: leaves NAME.backup and NAME.200 with their sidecars
    status_of trapped TRAP_SAVE=5 "$DARKNET" detector train tiny.data $1 -amp fp16 -seed 3
    [ -e backup/${1%.cfg}_200.weights.amp ] || fail "$1: no backup at 200: $(tail -n 3 err)"
}
sed -i 's/max_batches=230/max_batches=330/' tiny.cfg
train tiny.cfg
# A layer of another kind, with as many weights.
awk '/^\[/ && was == "[maxpool]" { print "[dropout]\nprobability=.1\n" } /^\[/ { was = $0 } { print }' \
    tiny.cfg > other.cfg
train other.cfg
good=backup/tiny_100.weights
size=$(stat -c %s $good.amp)
tests=0

listing() { find . -type f ! -name out ! -name err -printf '%p %s %T@ ' -exec sha256sum {} \; |
    LC_ALL=C sort; }

# refused <what the line says> <weights>: <weights> and its sidecar lie there
refused() {
    local before
    before=$(listing)
    status_of timeout 600 "$DARKNET" detector train tiny.data tiny.cfg "$2" -amp fp16 -seed 3
    [ $status = 1 ] || fail "$name: status $status instead of 1: $(tail -n 3 err)"
    [ "$(grep -c "$2.amp" err)" = 1 ] || fail "$name: not one line about $2.amp: $(cat err)"
    case $(tail -n 1 err) in
        "$2.amp: "*"$1"*) ;;
        *) fail "$name: not '$2.amp: ... $1' but: $(tail -n 1 err)" ;;
    esac
    tail -n 1 err | grep -q 'remove the sidecar\|newer\|update' ||
        fail "$name: does not say what to do: $(tail -n 1 err)"
    [ "$(listing)" = "$before" ] || fail "$name: files were touched"
    tests=$((tests + 1))
}

pair() { # pair <name>: the good pair, to be spoilt
    name=$1
    cp $good case.weights
    cp $good.amp case.weights.amp
}
put() { printf "$2" | dd of=case.weights.amp bs=1 seek="$1" conv=notrunc status=none; } # put <offset> <bytes>

# The pair as it is: good, or the rest would prove nothing.
pair good
succeeds "$DARKNET" detector train tiny.data tiny.cfg case.weights -amp fp16 -seed 3
says 'amp: resumed from case.weights.amp: step 100,'

pair 'damaged'
put $((size / 2)) "\\x$(printf %02x $(($(od -An -tu1 -j$((size / 2)) -N1 case.weights.amp) ^ 16)))"
refused '' case.weights
# None of these is taken for no sidecar.
for file in mkfifo 'ln -s nowhere' 'ln -s case.weights.amp'; do
    pair "$file"
    rm case.weights.amp
    $file case.weights.amp
    ends_saying '^cannot read case.weights.amp: .*; remove the sidecar to start with a fresh loss scale ' \
        timeout -s KILL 600 "$DARKNET" detector train tiny.data tiny.cfg case.weights -amp fp16 -seed 3
    rm case.weights.amp
    tests=$((tests + 1))
done
# Saved to, a FIFO would wait for a reader for ever, and a device would keep nothing.
name='a FIFO where a sidecar is saved'
mv backup/tiny_100.weights.amp good.amp
mkfifo backup/tiny_100.weights.amp
succeeds timeout -s KILL 600 "$DARKNET" detector train tiny.data tiny.cfg -amp fp16 -seed 3
says "cannot write backup/tiny_100.weights.amp: it is not a regular file; remove it; training continues"
rm backup/tiny_100.weights.amp
mv good.amp backup/tiny_100.weights.amp
pair 'another network'
cp backup/other_100.weights case.weights
cp backup/other_100.weights.amp case.weights.amp
refused '' case.weights
pair 'weights with another last byte'
printf '\x55' | dd of=case.weights bs=1 seek=$(($(stat -c %s case.weights) - 4)) conv=notrunc status=none
refused 'does not belong to case.weights' case.weights

# Nobody asks the sidecar where there is no training, or no AMP.
pair 'not read'
put 100 '\xff\xff\xff\xff'
given='tiny.data tiny.cfg case.weights'
for command in "detector map $given -amp fp16" "detector train $given -amp off"; do
    succeeds "$DARKNET" $command
    ! grep -q 'case.weights.amp' err || fail "$command: $(grep case.weights.amp err)"
done
succeeds "$DARKNET" detector train tiny.data tiny.cfg case.weights -amp fp16 -clear
echo "$tests sidecars refused"
