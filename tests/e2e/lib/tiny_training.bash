# A training that takes a second: tiny_training makes, in the current folder, tiny.data and tiny.cfg with
# eight images, labels and all; its weights end up in backup/tiny_final.weights.

fail() {
    echo "FAILED: $*"
    exit 1
}

skip() {
    echo "SKIPPED: $*"
    exit 77
}

# status_of <command...>: its exit status in $status; output in out, err. In a function that it calls no
# `set -e` holds: the last command decides.
status_of() {
    status=0
    "$@" > out 2> err < /dev/null || status=$?
}

# succeeds <command...>: as status_of, with status 0
succeeds() {
    status_of "$@"
    [ $status = 0 ] || # behind what it says itself a launcher may say more
        fail "${name:+$name: }$*: status $status: $(
            grep -a 'amp: \|ranks: \|ERROR: \|runtime error' err | tail -n 3; tail -n 2 err)"
}

# ends_saying <expression> <command...>: as status_of, with status 1, and the last line of err is such a one
ends_saying() {
    status_of "${@:2}"
    [ $status = 1 ] && tail -n 1 err | grep -q -e "$1" ||
        fail "${name:+$name: }${*:2}: status $status, and no '$1' in: $(tail -n 3 err)"
}

# holds <file> <expression>...: a line of the file for each
holds() {
    local expression
    for expression in "${@:2}"; do
        grep -aq -e "$expression" "$1" || fail "${name:+$name: }no '$expression' in $1: $(tail -n 9 "$1")"
    done
}

# fresh [file...]: an empty backup/, and these files are gone
fresh() {
    rm -rf backup "$@"
    mkdir backup
}

# preloaded <library of this folder> [NAME=value...] <command...>
preloaded() {
    env LD_PRELOAD="$PWD/$1" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "${@:2}"
}

# A compiler on a machine without oneDNN, in the current folder.
without_onednn() {
    printf '#!/bin/sh\ncase "$*" in *-ldnnl*) exit 1 ;; esac\nexec cc "$@"\n' > without_onednn
    chmod +x without_onednn
}

# A .cfg file from sections that each stand in a line: [shortcut] from=-2 activation=leaky
layers() { awk 'NR > 1 && /^\[/ { print "" } { for (i = 1; i <= NF; i++) print $i }'; }

tiny_training() {
    mkdir -p images labels backup
    local i
    : > train.txt
    for i in 1 2 3 4 5 6 7 8; do
        # Darknet knows an image by its content: this is a PPM, and the name makes it look for labels/N.txt.
        { printf 'P6\n40 30\n255\n'; yes "${i}pattern" | head -c 3600; } > images/$i.jpg
        echo "$((i % 2)) 0.$((i + 1)) 0.5 0.3 0.4" > labels/$i.txt
        echo "0 0.5 0.$((i + 1)) 0.2 0.2" >> labels/$i.txt
        echo "$PWD/images/$i.jpg" >> train.txt
    done
    printf '%s\n' round square > tiny.names
    printf '%s\n' 'classes=2' 'train=train.txt' 'valid=train.txt' 'names=tiny.names' 'backup=backup' \
        > tiny.data
    layers > tiny.cfg <<'END'
[net] batch=4 subdivisions=2 width=32 height=32 channels=3 momentum=0.9 decay=0.0005 angle=5 saturation=1.5
    exposure=1.5 hue=.1 learning_rate=0.01 burn_in=2 max_batches=5 policy=steps steps=3 scales=.5
[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=leaky
[maxpool] size=2 stride=2
[convolutional] batch_normalize=1 filters=16 size=3 stride=2 pad=1 activation=leaky
[convolutional] filters=16 size=1 stride=1 activation=linear
[shortcut] from=-2 activation=leaky
[dropout] probability=.2
[convolutional] filters=21 size=1 stride=1 activation=linear
[yolo] mask=3,4,5 anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 jitter=.3 ignore_thresh=.7
    truth_thresh=1 random=0
[route] layers=-3
[upsample] stride=2
[route] layers=-1,1
[convolutional] filters=21 size=3 stride=1 pad=1 activation=linear
[yolo] mask=0,1,2 anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 jitter=.3 ignore_thresh=.7
    truth_thresh=1 random=0
END
}

edit() { sed "$2" tiny.cfg > $1.cfg; } # edit <name> <sed script>: line 1 of tiny.cfg is its [net]

# weights_near <weights> <others>: but for the rounding of sums
weights_near() {
    local said
    [ -e weights_distance ] ||
        cc -O1 "$SOURCE_DIR/tests/e2e/lib/weights_distance.c" -o weights_distance -lm
    said=$(./weights_distance "$1" "$2" 1e-6 1e-4) || fail "${name:+$name: }$2 against $1: $said"
    echo "${name:+$name: }$2 against $1: $said"
}

# Its images as photos of 640x480, in the list photos.txt, which tiny.data names from now on.
large_photos() {
    local i
    mkdir photos
    for i in 1 2 3 4 5 6 7 8; do
        { printf 'P6\n640 480\n255\n'; yes "${i}pattern" | head -c 921600; } > photos/$i.jpg
        [ ! -e images/$i.txt ] || cp images/$i.txt photos/
        [ ! -e labels/$i.txt ] || cp labels/$i.txt photos/
        echo "$PWD/photos/$i.jpg" >> photos.txt
    done
    sed -i 's/^train=.*/train=photos.txt/' tiny.data
}

# Its images as a classifier's, of two kinds that lie in two folders: kinds.data.
two_kinds() { # two_kinds [how many times the list holds them]
    local i
    mkdir round square
    for i in 1 2 3 4 5 6 7 8; do cp images/$i.jpg $([ $((i % 2)) = 0 ] && echo round || echo square)/; done
    for ((i = 0; i < ${1:-1}; i++)); do ls -d "$PWD"/round/*.jpg "$PWD"/square/*.jpg; done > kinds.txt
    sed 's/=train.txt/=kinds.txt/; s/^names=.*/&\nlabels=tiny.names/' tiny.data > kinds.data
}
