# A fork's patches: include after tiny_training.bash.

# patches_apply <fork> <tree> <names in the copy's host room>: they apply to an unchanged tree without fuzz or
# offset, into the folder `exactly`; apply.sh makes the same, into `patched`, with the fork's rooms of the
# plugin; and nothing of the tree stands in them but what a patch needs to find its place.
patches_apply() {
    local folder=$SOURCE_DIR/patches/$1 tree=$2 rooms=$3 patch file
    mkdir exactly
    awk '!/^#/ { print $2 }' "$folder/sha256sums" | tar -C "$tree" -cf - -T - | tar -xf - -C exactly
    for patch in $(cat "$folder/series"); do
        patch -d exactly -p1 -F0 --no-backup-if-mismatch < "$folder/$patch" > log 2>&1 ||
            fail "$patch: $(cat log)"
        ! grep -i 'fuzz\|offset' log || fail "$patch applies elsewhere"
        awk -v name="$patch" '/^@@/ { hunk++; around = 0 }
            hunk && /^ / && ++around > 4 { print name ": " $0; bad = 1 }
            END { exit bad }' "$folder/$patch" ||
            fail "$patch has more context than one line on each side of a change"
    done
    "$SOURCE_DIR/patches/apply.sh" "$tree" patched
    for file in $(cd exactly && find . -type f); do
        cmp -s "exactly/$file" "patched/$file" || fail "apply.sh makes another $file"
    done
    [ "$(ls patched/amp/host | tr '\n' ' ')" = "$rooms " ] ||
        fail "the copy's host room: $(ls patched/amp/host)"
}
