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
