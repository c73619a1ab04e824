# docs/behaviours.md tells the truth: each of the 34 behaviours has a row, tests that exist and are run, and
# mutants in tests/mutants/table.txt that break it and still apply. That the tests then fail is what
# tests/mutants/run.py shows, in minutes.
set -u
table=$SOURCE_DIR/docs/behaviours.md
mutants=$SOURCE_DIR/tests/mutants
wrong=0
complain() {
    echo "FAILED: $*"
    wrong=1
}
[ -f "$table" ] || { complain "there is no $table"; exit 1; }

# Rows of the form | 17 | words | `file` `test` `test` | `mutant` `mutant` |, as lines "17 test file name" and
# "17 mutant name".
awk -F'|' '$2 ~ /^ *[0-9]+ *$/ {
    number = sprintf("%02d", $2)
    print number, "row"
    file = "-"
    for (cell = 4; cell <= 5; cell++) {
        count = split($cell, words, "`")
        for (i = 2; i <= count; i += 2) {
            if (cell == 5) print number, "mutant", words[i]
            else if (words[i] ~ /\.(c|sh)$/) file = words[i]
            else print number, "test", file, words[i]
        }
    }
}' "$table" > items

for i in $(seq 34); do
    number=$(printf %02d "$i")
    for kind in row test mutant; do
        grep -q "^$number $kind" items || complain "behaviour $i has no $kind in docs/behaviours.md"
    done
    [ "$(grep -c "^$number row" items)" -le 1 ] || complain "behaviour $i has several rows"
done

# A CMocka test is a TEST(name) of its file (tests/helpers/testing.h); in a script a function or
# a comment is its mark.
while read -r number _ file name; do
    case $name in behaviour_${number}_*) ;; *) complain "row $number names the test $name" ;; esac
    mark=$name
    case $file in *.c) mark="^TEST(_WITH)?\\($name[,)]" ;; esac
    # test_NAME.c lies in the folder of its room
    file=$(cd "$SOURCE_DIR/tests" && ls "$file" ./*/"$file" 2> /dev/null) || true
    (cd "$SOURCE_DIR/tests" && grep -qE "$mark" $file /dev/null) ||
        complain "row $number: $file below tests/ has no test $name"
done < <(grep '^.. test ' items)
(cd "$SOURCE_DIR/tests" && grep -ohwE 'behaviour_[0-9]{2}_[a-z0-9_]+' */test_*.c e2e/*.sh | sort -u) |
    while read -r name; do
    grep -q " $name\$" items || echo "$name"
done > forgotten
[ ! -s forgotten ] || complain "not in docs/behaviours.md: $(tr '\n' ' ' < forgotten)"

sed -n 's/^\[\(.*\)\]$/\1/p' "$mutants/table.txt" > entries
while read -r number _ name; do
    case $name in "$number"-*) ;; *) complain "row $number names the mutant $name" ;; esac
    grep -qx "$name" entries || complain "row $number: tests/mutants/table.txt has no entry [$name]"
done < <(grep '^.. mutant ' items)
while read -r name; do
    grep -q "^${name%%-*} mutant $name\$" items || complain "[$name] is not in docs/behaviours.md"
done < <(grep '^[0-9][0-9]-' entries)
python3 "$mutants/run.py" --check || wrong=1
exit $wrong
