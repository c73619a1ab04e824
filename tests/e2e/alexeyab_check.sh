# What AlexeyAB's Darknet cannot train on, under AMP or without OpenCV, is refused by `darknet amp check` and
# at the start of a training: a line with file, line, section, key and what to do, status 1, and no file.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/alexeyab.bash"
needs_alexeyab
[ -n "$ALEXEYAB" ] || skip 'no program of it was built'
tiny_alexeyab
opencv=$(ldd "$ALEXEYAB" | grep -c libopencv || true)
untouched=$(find backup -type f)

# with <cfg> <section> <line...>: x.cfg is the .cfg with these lines behind the first such section
with() {
    awk -v section="$2" -v lines="$(shift 2; printf '%s\n' "$@")" '{ print }
        $0 == section && !done { print lines; done = 1 }' "$1" > x.cfg
}
check() { # check <what is expected> <data>: errors and warnings to found
    local status=0
    "$ALEXEYAB" amp check x.cfg "$2" > found 2> err || status=$?
    [ $status = "$1" ] || fail "amp check: status $status: $(cat found err)"
}
place() { # place <key>: where its first line is, as messages say it; a section's where there is none
    grep -n "^$1" x.cfg | head -1 | cut -d: -f1
}
# refused <data> <section> <key> <why> <key=value...>: the line and key that the message begins with
refused() {
    local data=$1 section=$2 key=$3 why=$4 status=0 kind=detector
    shift 4
    [ "$data" != kinds.data ] || kind=classifier
    with "${data%.data}.cfg" "$section" "$@"
    check 1 "$data"
    [ "$(place "$key")" ] || fail "$*: the test has no $key"
    local start="x.cfg:$(place "$key"): $section $(grep -m1 "^$key" x.cfg | sed 's/=/ = /'): $why"
    grep -qF "error: $start" found || fail "$*: amp check does not say: $start
$(cat found)"
    "$ALEXEYAB" "$kind" train "$data" x.cfg -dont_show -amp bf16 > out 2> err || status=$?
    [ $status = 1 ] && [ "$(grep -c -v '^warning: ' err)" = 1 ] && tail -1 err | grep -qF "$start" ||
        fail "$*: $kind train: status $status: $(cat err)"
    [ "$(find backup -type f)" = "$untouched" ] || fail "$*: files were written"
}
# passes <data> <key=value...>: without a word
passes() {
    local data=$1
    shift
    with "${data%.data}.cfg" '[net]' "$@"
    check 0 "$data"
    ! grep '^warning' found || fail "$*: a warning"
}

two_kinds
printf '%s\n' '[net]' batch=8 width=32 height=32 channels=3 max_batches=2 '[convolutional]' filters=2 size=1 \
    activation=linear '[avgpool]' '[softmax]' > kinds.cfg

# ---- what AMP does not train ----
never='not supported under AMP: '
for line in adversarial_lr=.1 attention=1 contrastive=1 dynamic_minibatch=1 unsupervised=1 \
    equidistant_point=1 badlabels_rejection_percentage=.1 num_sigmas_reject_badlabels=1; do
    refused tiny.data '[net]' "${line%=*}" "$never" $line
done
refused kinds.data '[net]' contrastive \
    "${never}it has not been tested yet; allowed: without this key, or with -amp off" contrastive=1
for line in antialiasing=1 coordconv=1 grad_centr=1 assisted_excitation=1 cbn=1 reverse=1 sway=1; do
    refused tiny.data '[convolutional]' "${line%=*}" "$never" $line
done
sed '0,/^activation=/{/^activation=/d}' tiny.cfg > gelu.cfg
cp tiny.data gelu.data
for activation in gelu normalize_channels normalize_channels_softmax normalize_channels_softmax_maxval; do
    refused gelu.data '[convolutional]' activation=$activation "$never" activation=$activation
done
refused tiny.data '[convolutional]' dilation \
    'the output would be 34x34, but Darknet has room for 33x33; use an odd size with pad=1' size=4 dilation=2
own="with this key Darknet's own code runs the layer, and ignores padding and stride if size=1; remove"
refused tiny.data '[convolutional]' xnor "$own" size=1 pad=0 padding=8 xnor=1
# Darknet's parser ignores dilation= of 1x1 windows.
refused tiny.data '[convolutional]' xnor "$own" size=1 pad=0 stride_x=1 stride_y=2 dilation=2 xnor=1
with kinds.cfg '[convolutional]' padding=1 dilation=2
check 0 kinds.data
with tiny.cfg '[net]' try_fix_nan=1
check 0 tiny.data
line='warning: x.cfg:2: [net] try_fix_nan = 1: has no effect under AMP, which skips steps with inf or NaN'
[ "$(grep '^warning' found)" = "$line" ] || fail "try_fix_nan: $(cat found)"
for line in antialiasing=1 maxpool_zero_nonmax=1; do
    refused tiny.data '[maxpool]' "${line%=*}" "$never" $line
done
for rest in '[crnn] xnor=1 hidden=8 output=16 pad=1' '[avgpool] [scale_channels] from=2 activation=revleaky' \
    '[sam] from=-1 activation=revleaky' '[convolutional] filters=16 activation=relu6 xnor=1' \
    '[convolutional] filters=8 share_index=1' '[maxpool] [convolutional] filters=16 share_index=3' \
    '[shortcut] from=-2,-3 activation=relu6 weights_type=per_channel weights_normalization=relu'; do
    printf '%s\n' '[net]' batch=8 width=32 height=32 channels=3 max_batches=1 '[convolutional]' filters=16 \
        '[convolutional]' filters=16 '[convolutional]' filters=16 $rest '[convolutional]' filters=21 \
        '[yolo]' classes=2 num=3 anchors=1,2,3,4,5,6 > x.cfg
    check 1 tiny.data
    ! "$ALEXEYAB" detector train tiny.data x.cfg -dont_show -amp fp32 > out 2> err || fail "$rest: is trained"
    [ "$(grep '^error: ' found)" = "error: $(tail -n 1 err)" ] || fail "$rest: $(cat found err)"
done
refused tiny.data '[convolutional]' batch_normalize 'above 1; allowed: ' batch_normalize=2
# Heads that do not fit each other, or what is loaded.
sed '0,/^filters=21/s//filters=24/' tiny.cfg > heads.cfg
cp tiny.data heads.data
refused heads.data '[yolo]' classes 'the last layer has classes=2, but this one has 3' classes=3
refused tiny.data '[yolo]' counters_per_class 'has 3 numbers, but classes=2 needs' counters_per_class=1,2,3
refused tiny.data '[yolo]' max=30 'has room for 30 boxes per image, but the last layer has room' max=30
sed 's/^\[yolo\]/&\nmax=30/' tiny.cfg > x.cfg
check 0 tiny.data
succeeds "$ALEXEYAB" detector train tiny.data x.cfg -dont_show -amp bf16
rm -f backup/*
passes tiny.data adversarial_lr=0 contrastive=0 mosaic=0 cutmix=0 letter_box=1 mixup=1
for kind in rnn gru lstm conv_lstm; do
    printf '%s\n' '[net]' inputs=8 '[connected]' output=8 "[$kind]" output=8 > x.cfg
    ! "$ALEXEYAB" amp check x.cfg > found || fail "[$kind] is let through"
    grep -qF "error: x.cfg:5: [$kind]: ${never}Darknet's CPU code has no correct backward pass" found ||
        fail "[$kind]: $(cat found)"
done
# Without AMP nothing of it is looked at.
with tiny.cfg '[net]' adversarial_lr=.1 attention=1
succeeds "$ALEXEYAB" detector train tiny.data x.cfg -dont_show -amp off
rm -f backup/*
! "$ALEXEYAB" amp probe tiny.data x.cfg > out 2> err || fail 'amp probe does not look'
grep -qF 'x.cfg:2: [net] adversarial_lr = .1: ' err || fail "amp probe: $(cat err)"

# One image a step ends detector train; a classifier's training continues.
sed 's/^\(batch\|subdivisions\)=.*/\1=1/' tiny.cfg > one.cfg
cp tiny.data one.data
refused one.data '[net]' batch 'makes a step of one image, which `detector train` rejects; allowed: 2' \
    hue=.1
sed -i 's/^batch=.*/batch=2/' one.cfg
passes one.data saturation=1.5

# The guide lists all that the table refuses.
sed -n 's/^ *{ \(0\|"\[[a-z_]*\]"\), "\([a-zA-Z_]*\)", .*/\2/p' "$SOURCE_DIR/plugin/host/family/cfg_keys.c" |
    grep -v '^\(max\|min\)_crop\|show_details' | sort -u > keys
[ "$(wc -l < keys)" -gt 20 ] || fail "the table of what is refused: $(cat keys)"
while read -r key; do
    sed -n '/Refused, each in one line/,/^\* /p' "$SOURCE_DIR/docs/guide.md" | grep -q "\`$key[\`=]" ||
        fail "the guide does not say that $key is refused"
done < keys

# ---- images ----
needs_opencv='needs OpenCV to join images, but this Darknet was built without it; allowed: 0, or a build'
no_borders='cannot be combined with mosaic in `detector train`; allowed: 0, or no mosaic'
passes kinds.data mosaic=1 cutmix=1 letter_box=1 gaussian_noise=10
if [ "$opencv" = 0 ]; then
    with tiny.cfg '[net]' letter_box=1 mosaic=1
    check 1 tiny.data
    grep -qF "error: x.cfg:2: [net] letter_box = 1: $no_borders" found &&
        grep -qF "error: x.cfg:3: [net] mosaic = 1: $needs_opencv" found || fail "letter_box: $(cat found)"
    refused tiny.data '[net]' mixup "$needs_opencv" mixup=3
    refused tiny.data '[net]' mosaic "$needs_opencv" cutmix=1 mosaic=1
    refused tiny.data '[net]' cutmix \
        'is for `classifier train` only; it would end `detector train`; allowed: 0' cutmix=1
    for key in blur gaussian_noise; do
        refused tiny.data '[net]' $key 'needs OpenCV, but this Darknet was built without it; allowed' \
            $key=1
    done
    refused kinds.data '[net]' blur 'needs OpenCV' blur=1
else
    refused tiny.data '[net]' letter_box "$no_borders" letter_box=1 mosaic=1
    refused tiny.data '[net]' letter_box "$no_borders" letter_box=1 mixup=3
    passes tiny.data mosaic=1 blur=1 gaussian_noise=10
    passes kinds.data blur=1
    with tiny.cfg '[net]' cutmix=1 mosaic=1
    check 0 tiny.data
    line='warning: x.cfg:2: [net] cutmix = 1: is for `classifier train` only; `detector train` ignores it'
    [ "$(grep -c '^warning' found)" = 1 ] && grep -qF "$line" found ||
        fail "cutmix: not one warning of it: $(cat found)"
fi
