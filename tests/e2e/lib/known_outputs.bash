# Networks whose output is known, for commands that measure: include after tiny_training.bash. They see the
# same everywhere: their weights are nought, so that their biases are their output.
zero='\x00\x00\x00\x00' one='\x00\x00\x80\x3f' two='\x00\x00\x00\x40' six='\x00\x00\xc0\x40'
minus_twenty='\x00\x00\xa0\xc1' nan='\x00\x00\xc0\x7f'
header() {
    printf '\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00' # version 0.2.0
    head -c 8 /dev/zero                                       # images seen
}
weights() { # weights <biases>: of as many filters with three weights each
    header
    printf "$1"
    head -c $((3 * ${#1} / 4)) /dev/zero
}

picture() { # picture <name> <list> [<width> <height>]
    local w=${3:-40} h=${4:-30}
    mkdir -p images labels
    { printf 'P6\n%d %d\n255\n' $w $h; yes dark | head -c $((w * h * 3)); } > "images/$1.jpg"
    echo "images/$1.jpg" >> "$2"
}

expect() { # expect <file> <text>...: blanks in the file count once
    local file=$1
    shift
    for text in "$@"; do
        tr -s ' \t' ' ' < "$file" | grep -qF -- "$text" || fail "no '$text' in $file: $(cat "$file")"
    done
}

# with <line>...: the .data file with.data
with() { printf '%s\n' "$@" > with.data; }
