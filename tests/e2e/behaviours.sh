# docs/behaviours.md tells the truth: each of the 34 behaviours has a row, tests that exist and are run, and
# patches in tests/mutants that break it and still apply. That the tests then fail is what
# tests/mutants/run.sh shows, in minutes.
set -u
table=$SOURCE_DIR/docs/behaviours.md
mutants=$SOURCE_DIR/tests/mutants
wrong=0
complain() {
    echo "FAILED: $*"
    wrong=1
}
[ -f "$table" ] || { complain "there is no $table"; exit 1; }

# Rows of the form | 17 | words | `file` `test` `test` | `patch` `patch` |, as lines "17 test file name" and
# "17 patch name".
awk -F'|' '$2 ~ /^ *[0-9]+ *$/ {
    number = sprintf("%02d", $2)
    print number, "row"
    file = "-"
    for (cell = 4; cell <= 5; cell++) {
        count = split($cell, words, "`")
        for (i = 2; i <= count; i += 2) {
            if (cell == 5) print number, "patch", words[i]
            else if (words[i] ~ /\.(c|sh)$/) file = words[i]
            else print number, "test", file, words[i]
        }
    }
}' "$table" > items

for i in $(seq 34); do
    number=$(printf %02d "$i")
    for kind in row test patch; do
        grep -q "^$number $kind" items || complain "behaviour $i has no $kind in docs/behaviours.md"
    done
    [ "$(grep -c "^$number row" items)" -le 1 ] || complain "behaviour $i has several rows"
done

# A CMocka test is a TEST(name) of its file (tests/testing.h); in a script a function or
# a comment is its mark.
while read -r number _ file name; do
    case $name in behaviour_${number}_*) ;; *) complain "row $number names the test $name" ;; esac
    mark=$name
    case $file in *.c) mark="^TEST(_WITH)?\\($name[,)]" ;; esac
    grep -qE "$mark" "$SOURCE_DIR/tests/$file" 2> /dev/null ||
        complain "row $number: tests/$file has no test $name"
done < <(grep '^.. test ' items)
(cd "$SOURCE_DIR/tests" && grep -ohwE 'behaviour_[0-9]{2}_[a-z0-9_]+' test_*.c e2e/*.sh | sort -u) |
    while read -r name; do
    grep -q " $name\$" items || echo "$name"
done > forgotten
[ ! -s forgotten ] || complain "not in docs/behaviours.md: $(tr '\n' ' ' < forgotten)"

while read -r number _ name; do
    case $name in "$number"-*) ;; *) complain "row $number names the patch $name" ;; esac
    [ -f "$mutants/$name.patch" ] || complain "row $number: there is no tests/mutants/$name.patch"
done < <(grep '^.. patch ' items)
for patch in "$mutants"/*.patch; do
    name=$(basename "$patch" .patch)
    case $name in
    [0-9][0-9]-*) grep -q "^${name%%-*} patch $name\$" items ||
        complain "$name.patch is not in docs/behaviours.md" ;;
    *)
        test=$(sed -n '1s/^# test: *//p' "$patch")
        [ -n "$test" ] && grep -qw "$test" "$SOURCE_DIR"/tests/test_*.c "$SOURCE_DIR"/tests/e2e/*.sh ||
            complain "$name.patch has no first line '# test: NAME' with the name of a test"
        ;;
    esac
    patch -d "$SOURCE_DIR" -p1 -F0 -N -s --dry-run < "$patch" > out 2>&1 ||
        complain "$name.patch does not apply: $(head -1 out)"
done
exit $wrong
