# The plugin's rooms lie in one order: each includes headers of its own and of those below it, and calls what
# is defined there; none of those above. Within a room no files use each other in a circle.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"

# From the lowest to the highest; those of one line are one. host is its headers alone: the door to a Darknet,
# which host/darknet and the fork's folder implement.
order='tensor include
files
image
backend backend/cpu backend/cuda
comm comm/mpi comm/nccl comm/none
layers
amp
host
host/program
host/data
host/network
host/training
host/darknet host/pjreddie host/family host/alexeyab host/hank_ai
commands commands/*'

# includes <plugin's folder>: lines `file header`, as paths in that folder; libraries' headers are left out.
includes() {
    (cd "$1" && grep -rE '^ *# *include "' --include='*.[ch]' --include='*.cu' --include='*.cuh' .) |
        sed -E -e 's|^\./(([^:]*)/[^/:]*):.*include "([^"]*)".*|\1 \2/\3|' \
            -e ':up' -e 's|[^/ .]+/\.\./||' -e 't up' |
        while read -r file header; do [ ! -f "$1/$header" ] || echo "$file $header"; done
}

# upwards: of the lines that `includes` prints, those that go up: nothing_includes_what_lies_above_it.
upwards() {
    awk -v order="$order" '
        function height(file,    room) {
            room = file
            sub(/\/[^\/]*$/, "", room)
            if (room ~ /^commands\//) room = "commands/*"
            if (!(room in line)) { print file " lies in a room that has no place in the order"; exit }
            return line[room]
        }
        BEGIN {
            lines = split(order, rooms, "\n")
            for (i = 1; i <= lines; i++) {
                count = split(rooms[i], names, " ")
                for (k = 1; k <= count; k++) line[names[k]] = i
            }
        }
        height($1) < height($2) { print $1 " includes " $2 ", which lies above it" }'
}

plugin=$SOURCE_DIR/plugin
includes "$plugin" > all
[ "$(wc -l < all)" -gt 500 ] || fail "only $(wc -l < all) includes were found"
[ "$(echo 'host/data/a.c host/network/state.h' | upwards)" = \
    'host/data/a.c includes host/network/state.h, which lies above it' ] ||
    fail 'an include that goes up passes'
upwards < all > up
[ ! -s up ] || fail "$(cat up)"

# A kind of layer is named in its own file and in the forks' tables of native kinds: who else wants to know of
# one asks its amp_layer_ops. What the host runs has no file.
! grep -rnE 'AMP_LAYER_[A-Z]+|&amp_[a-z]+_ops' "$plugin" |
    grep -vE '/layers/|/(layers\.c|layer_tables\.h):|AMP_LAYER_HOST' ||
    fail 'a kind is named outside of its file'

tsort all > /dev/null 2> circle || fail "files include each other in a circle: $(cat circle)"

# Nor in what they call: what one needs of others needs nothing of it in turn. The folders that implement
# fork.h are left out, since the others call them by that door.
objects=$(dirname "$DARKNET")/../CMakeFiles
find "$objects" -path '*/amp_room_*/plugin/*.c.o' ! -path '*/host/darknet/*' ! -path '*/host/pjreddie/*' |
    while IFS= read -r object; do
        file=${object##*/plugin/}
        [ ! -f "$plugin/${file%.o}" ] || nm "$object" | sed "s|^|${file%.o} |"
    done > symbols
[ "$(cut -d' ' -f1 symbols | sort -u | wc -l)" -gt 100 ] || fail "few objects were found in $objects"
awk '$2 == "U" { user[NR] = $1; symbol[NR] = $3 }
     $3 ~ /^[TDBR]$/ { file[$4] = $1 }
     END { for (i in user) if (symbol[i] in file) print user[i], file[symbol[i]] }' symbols | sort -u > calls
[ "$(wc -l < calls)" -gt 200 ] || fail "only $(wc -l < calls) uses were found"
tsort calls > /dev/null 2> circle || fail "files use each other in a circle: $(cat circle)"
upwards < calls | sed 's/ includes / calls /' > up
[ ! -s up ] || fail "$(cat up)"

# Each hook is defined in a file that its section's title in darknet_amp.h names.
hooks_by_section() { # lines `hook file...`
    awk '/^\/\* ---- / { title = ""; reading = 1 }
         reading { title = title " " $0; if (/---- \*\//) { reading = 0; sub(/.*: /, "", title)
                   gsub(/ \* |----|\*\/|,/, " ", title) }; next }
         match($0, /darknet_amp_[a-z_]+(\(|;)/) && !/^( \*|\/\*)/ && title {
             print substr($0, RSTART, RLENGTH - 1), title }' "$1"
}
hooks_by_section "$plugin/include/darknet_amp.h" > hooks
[ "$(wc -l < hooks)" -gt 50 ] || fail "only $(wc -l < hooks) hooks were found"
while read -r hook files; do
    found=
    for file in $files; do ! grep -qE "^[A-Za-z].*\b$hook\b" "$plugin/$file" || found=$file; done
    [ "$found" ] || fail "$hook is in none of $files"
done < hooks

# Lines of .cfg and .data files are read by the document alone.
! grep -rnE 'cfg_document_read *\(' "$plugin" --include='*.c' | grep -vE '/(cfg_document|cfg)\.c:' ||
    fail 'a .cfg or .data file is read beside the documents of this program'

# Variables of the program, which outlive its networks, are those of the table in docs/design.md, and no
# others: variables_of_the_program_are_listed. Read-only tables that hold addresses (.data.rel.ro) are none,
# and NVTX has its own. A fork whose tree is not here is not built.
named='(\.hidden +)?([a-z]\w*)(\.[0-9]+)?'
find "$objects" "$objects/../tests/CMakeFiles" -path '*_room_*/plugin/*.c.o' | while IFS= read -r object; do
    file=${object##*/plugin/}
    [ -f "$plugin/${file%.o}" ] || continue
    echo "${file%/*}" >&3
    objdump -t "$object" | expand |
        sed -nE "s/^.* \.t?(bss|data(\.rel(\.local)?)?) +[0-9a-f]+ +$named$/\5/p" |
        sed "s|^|${file%.o} |; / nvtx/d"
done 3> rooms | LC_ALL=C sort -u > variables
[ "$(wc -l < variables)" -gt 20 ] || fail "only $(wc -l < variables) variables were found"
awk -F'|' 'NR == FNR { built[$1]; next }
/^## / { here = /^## State of the program/ }
here && $2 ~ /`/ {
    split($2, file, "`")
    room = file[2]
    sub(/\/[^\/]*$/, "", room)
    if (room ~ /^host\/(family|alexeyab|hank_ai)$/ && !(room in built)) next
    count = split($3, names, "`")
    for (i = 2; i <= count; i += 2) print file[2], names[i]
}' rooms "$SOURCE_DIR/docs/design.md" | LC_ALL=C sort -u > listed
diff variables listed > differ ||
    fail "variables of the program (<), docs/design.md's table of them (>): $(grep '^[<>]' differ)"
