# shapes: one seed draws one data set, byte for byte, that Darknet can train on; bad
# arguments are refused by name.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
shapes=$BUILD_DIR/bin/shapes
[ -x "$shapes" ] || fail "no $shapes: build the target shapes"

draw() { # draw <folder> <arguments...>
    "$shapes" --out "$@" > out 2> err || fail "shapes --out $*: $(cat err)"
}
# The files as such: the lists and shapes.data hold the folder's own name.
contents() { (export LC_ALL=C; cd "$1" && find images labels -type f | sort | xargs cat && cat shapes.names &&
    sed "s#$PWD##" train.txt valid.txt); }

draw one --train 6 --valid 3 --size 64 --seed 5
draw again --train 6 --valid 3 --size 64 --seed 5
draw other --train 6 --valid 3 --size 64 --seed 6
draw more --train 8 --valid 3 --size 64 --seed 5
[ "$(contents one | cksum)" = "$(contents again | cksum)" ] || fail 'the same seed draws different files'
[ "$(contents one | cksum)" != "$(contents other | cksum)" ] || fail 'another seed draws the same files'
cmp one/images/train_00005.png more/images/train_00005.png ||
    fail 'a larger set changes the pictures of the smaller one'

# What seed 5 draws, on every machine; a change of the drawing changes this number, and all
# results measured with it.
known='1693265908 109742'
[ "$(contents one | cksum)" = "$known" ] ||
    fail "seed 5 draws $(contents one | cksum) here, and elsewhere $known"

[ "$(wc -l < one/train.txt)" = 6 ] && [ "$(wc -l < one/valid.txt)" = 3 ] ||
    fail 'wrong number of pictures in the lists'
[ -d one/backup ] || fail 'no backup folder'
while read -r picture; do
    [ -f "$picture" ] || fail "$picture is listed and not there"
    label=${picture/images/labels}
    [ -s "${label%.png}.txt" ] || fail "$picture has no label"
done < one/train.txt
awk '{ inside = $2 - $4 / 2 >= 0 && $2 + $4 / 2 <= 1 && $3 - $5 / 2 >= 0 && $3 + $5 / 2 <= 1 }
    NF != 5 || $1 !~ /^[012]$/ || $4 <= 0 || $5 <= 0 || !inside { print FILENAME ": " $0; bad = 1 }
    END { exit bad }' more/labels/*.txt || fail 'labels outside the picture'

refused() { # refused <what the line must say> <arguments...>
    ends_saying "^shapes: .*$1" "$shapes" "${@:2}"
    [ "$(wc -l < err)" = 1 ] || fail "shapes ${*:2}: not one line: $(cat err)"
}
refused '--out DIR is missing'
refused 'needs the name' --out
refused 'unknown option --colour' --colour 3
refused 'whole number from 1 to' --out x --train 0
refused 'whole number from 1 to' --out x --train -4
refused 'whole number from 32 to' --out x --size 31
refused 'whole number from 32 to' --out x --size 96px
refused 'whole number' --out x --seed
refused '"raw"' --out x/drawings
refused 'drops the blanks' --out 'x y'
[ ! -e x ] || fail 'a refused set left a folder'
: > file
refused 'in the way' --out file/set

# A set that cannot be finished has no shapes.data, also where there was one.
rm -r one/labels
: > one/labels
refused 'in the way' --out one --train 6 --valid 3 --size 64
[ ! -e one/shapes.data ] || fail 'an unfinished set kept its shapes.data'
"$shapes" --help | grep -q '^usage: shapes' || fail 'no help'
