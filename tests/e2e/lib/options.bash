# options_of <function> <file> <1|2>: the options that Darknet's function reads have their rows in $TABLES,
# files of plugin/host, as options of detector (1) or classifier (2), with a value or without.
options_of() {
    local found=0 call name value row digits
    while IFS= read -r call; do
        name=${call#*\"} value=1
        name=${name%\"*}
        case $call in find_arg*) value=0 ;; esac
        row=$(cd "$SOURCE_DIR/plugin/host" && grep -oh "{ \"$name\", [01], [01], [01] }" $TABLES) ||
            fail "$1 reads $name: no row in $TABLES"
        digits=$(echo "$row" | tr -dc 01)
        [ "${digits:0:1}${digits:$3:1}" = "${value}1" ] || fail "$1 reads $name: its row is $row"
        found=$((found + 1))
    done < <(sed -n "/^[a-z]* $1(/,/^}/p" "$2" | grep -v '^ *//' |
        grep -o 'find_[a-z_]*(argc, argv, "-[A-Za-z_]*"')
    [ $found -ge 2 ] || fail "$1: only $found options were found in $2"
}

# fields_have_rows <at least> <darknet.h> <table> <known fields>: each field of struct layer is either an
# option with a row in this table of plugin/host or in layer_tables.h, or is known to be none.
fields_have_rows() {
    local least=$1 header=$2 table=$3 known=$4 fields field
    fields=$(sed -n '/^struct layer *{/,/^\(\/\/\)\?#ifdef GPU/p' "$header" |
        sed -n -e 's/(\*\([a-z_]*\)) *(.*/ \1;/' -e 's/struct //' \
            -e 's/^ *[a-zA-Z_0-9]\+ *\(.*\);.*/\1/p' | tr ',*' '  ')
    [ "$(echo $fields | wc -w)" -gt $least ] || fail "$header: only $(echo $fields | wc -w) fields were found"
    for field in $fields; do
        case $field in *_cpu | *_gpu) continue ;; esac
        case $(echo " $known ") in *[[:space:]]"$field"[[:space:]]*) continue ;; esac
        grep -qE "\\b(OPTION|F)\\($field[,)]" "$SOURCE_DIR/plugin/host/$table" \
            "$SOURCE_DIR/plugin/host/darknet/layer_tables.h" || fail "$table has no row for layer.$field"
    done
}
