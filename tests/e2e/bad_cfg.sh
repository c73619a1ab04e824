# A broken .cfg or -amp gives exactly one line on stderr, with file and line, and exit status 1:
# never a signal, never a file written. The exact words, and all other mistakes, are test_config.c's and
# test_cfg_check.c's; here it is the program that must end properly.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
. "$SOURCE_DIR/tests/e2e/lib/options.bash"
tiny_training
mkdir cases

listing() { find . -path ./cases -prune -o -type f -printf '%p %s\n' | sort; }

# run <cfg> <arguments...>: its status in $status, stderr in cases/err
run() {
    status=0
    ( ulimit -c 0; exec timeout 600 "$DARKNET" detector train tiny.data "$@" ) > cases/out 2> cases/err \
        < /dev/null \
        || status=$?
}

failures=0
complain() {
    echo "FAILED: $name: $*"
    sed 's/^/    /' cases/err | cut -c1-300 | head -5
    failures=$((failures + 1))
}

# refused <name> <how the one line begins> <arguments after the .cfg...>: with cases/<name>.cfg as it lies
refused() {
    name=$1
    local start=$2 cfg=cases/$1.cfg
    shift 2
    run "$cfg" "$@"
    [ $status = 1 ] || complain "status $status instead of 1"
    [ "$(wc -l < cases/err)" = 1 ] || complain "$(wc -l < cases/err) lines on stderr instead of 1"
    case $(head -c 2000 cases/err) in
        "$start"*) ;;
        *) complain "does not begin with: $start" ;;
    esac
    [ "$(listing)" = "$untouched" ] || complain "files were written"
    tests=$((tests + 1))
}

# edit <name> <sed script>: cases/<name>.cfg is tiny.cfg, edited. Line 1 of tiny.cfg is its [net].
edit() { sed "$2" tiny.cfg > "cases/$1.cfg"; }

lines=$(wc -l < tiny.cfg)
untouched=$(listing)
tests=0

{ cat tiny.cfg; printf '[amp]\n%%s%%n=%%n%%n\n'; } > cases/printf_directives.cfg
refused printf_directives "cases/printf_directives.cfg:$((lines + 2)): [amp] %s%n = %n%n: "
edit by_option 's/^\[maxpool\]/[maxpol]/'
refused by_option "cases/by_option.cfg:$(grep -n maxpol cases/by_option.cfg | cut -d: -f1): [maxpol]: " \
    -amp bf16
edit batch 's/^batch=4/batch=0/; $a [amp]'
refused batch 'cases/batch.cfg:2: [net] batch = 0: '
head -c 65536 "$DARKNET" > cases/program.cfg
refused program 'cases/program.cfg:1: '
refused missing 'cases/missing.cfg: '
mkdir cases/folder.cfg
refused folder 'cases/folder.cfg: '

# The check by itself tells all of them.
sed 's/^batch=4/batch=0/; s/^jitter=.3/jitter=5/; s/^filters=16/filter=16/' tiny.cfg > cases/many.cfg
printf '[amp]\ndtype=fp64\n' >> cases/many.cfg
status=0
"$DARKNET" amp check cases/many.cfg > cases/out 2> cases/err || status=$?
name=many
[ $status = 1 ] && [ "$(cat cases/err)" = 'amp check: cases/many.cfg: mistakes: 4' ] ||
    complain 'not four mistakes'
[ "$(grep -c '^error: cases/many.cfg:[0-9]*: \[' cases/out)" = 4 ] || complain 'not four errors'
[ "$(grep -c '^warning: cases/many.cfg:[0-9]*: .*did you mean filters?$' cases/out)" = 2 ] ||
    complain 'not two warnings'

# With a .data file, its lists and labels too.
name='check of data'
"$DARKNET" amp check tiny.cfg tiny.data > cases/out 2> cases/err || complain 'a mistake in a good one'
[ "$(grep -c 'no mistakes found' cases/out)" = 2 ] && [ ! -s cases/err ] || complain 'not that there is none'
cp -r labels cases/labels
rm labels/[124].txt
echo '9 .5 .5 .2 .2' > labels/3.txt
echo '0 .5 .5 .2' > labels/5.txt
sed 's/^valid=.*/valid=nowhere.txt/' tiny.data > cases/bad.data
! "$DARKNET" amp check tiny.cfg cases/bad.data > cases/out 2> cases/err || complain 'status 0 for bad labels'
[ "$(cat cases/err)" = 'amp check: cases/bad.data: mistakes: 4' ] || complain 'not four mistakes'
for line in 'labels/[35].txt:1: label ' 'nowhere.txt: cannot read' \
        'labels/1.txt: .*this Darknet looks for .*; this applies to 3 of the 8 images of train.txt$'; do
    grep -q "^error: .*$line" cases/out || complain "no line about $line"
done
rm -r labels && mv cases/labels labels

# Every .cfg of Darknet itself passes; keys that it does not read are told of.
for cfg in "$DARKNET_TREE"/cfg/*.cfg; do
    name=$(basename "$cfg")
    ( cd "$DARKNET_TREE" && exec "$DARKNET" amp check "cfg/$name" ) > cases/out 2> cases/err ||
        complain 'a mistake in it'
    grep -v 'unknown key, which Darknet\|set twice in this section' cases/out | grep -q '^warning' &&
        complain 'a warning'
    tests=$((tests + 1))
done
for cfg in "$SOURCE_DIR"/cfg/*.cfg; do
    name=$(basename "$cfg")
    "$DARKNET" amp check "$cfg" > cases/out 2> cases/err || complain 'a mistake in it'
    ! grep '^warning' cases/out || complain 'a warning'
done

# the command line
refused_line() { # what a missing argument says
    status=0
    "$DARKNET" "${@:2}" > cases/out 2> cases/err < /dev/null || status=$?
    [ $status = 1 ] && tail -n 1 cases/err | grep -qF "$1" || complain "status $status for ${*:2}"
}
name='missing arguments'
refused_line 'command line: a .cfg file is missing; use `darknet detector train my.data my.cfg' \
    detector train tiny.data
refused_line 'command line: a .cfg file is missing; use `darknet classifier train my.data my.cfg' \
    classifier train tiny.data
refused_line 'command line: a .cfg file is missing' detector valid tiny.data
refused_line "Couldn't open file: nowhere.weights" detector valid tiny.data tiny.cfg nowhere.weights -amp off
refused_line 'command line: -gpus: this program was built without GPU=1' \
    detector train tiny.data tiny.cfg -amp fp32 -gpus 0,1
TABLES=pjreddie/own.c
options_of run_detector "$DARKNET_TREE/examples/detector.c" 1
options_of run_classifier "$DARKNET_TREE/examples/classifier.c" 2
options_of main "$DARKNET_TREE/examples/darknet.c" 1
edit fine ''
name='options'
"$DARKNET" detector train tiny.data cases/fine.cfg -amp fp32 > cases/out 2> cases/err ||
    complain "status $?: the cases to come would prove nothing"
untouched=$(listing)
refused fine 'command line: -amp is given twice' -amp bf16 -amp fp16
refused fine 'command line: -thresh needs a value' -amp bf16 -thresh
# Where it would be the weights, and where it would be overlooked.
for before in '' backup/fine_final.weights; do
    refused fine 'command line: -sed: unknown option of detector train, did you mean -seed?' \
        -amp bf16 $before -sed 3
    refused fine 'command line: --clear: unknown option of detector train, did you mean -clear?' \
        $before --clear -amp bf16
done
goes_on() { # goes_on <warning> <arguments...>: status 0
    name="options ${*:2}"
    run cases/fine.cfg "${@:2}"
    [ $status = 0 ] || complain "status $status"
    [ "$(sed -n 's/^warning: command line: //p' cases/err)" = "$1" ] || complain 'not what it warns of'
}
mv backup/fine_final.weights ./-fine.weights
goes_on '' -amp bf16 -fine.weights -thresh -.5 -1 -gpus 0 -.5
unknown='unknown option of detector train'
goes_on "-dont_show: $unknown" -fine.weights -amp bf16 -dont_show
goes_on "-sed: $unknown, did you mean -seed?" -fine.weights -amp off -sed 3
rm ./-fine.weights
rm -r backup/*
untouched=$(listing)
refused fine 'command line: -amp banana: unknown dtype; allowed: off, fp32, fp16, bf16' -amp banana
refused fine "command line: -seed=3: write a space instead of '=', as in '-seed 3'" -amp bf16 -seed=3
edit off_is_no_excuse '$a [amp]\ndtype=fp64'
refused off_is_no_excuse "cases/off_is_no_excuse.cfg:$((lines + 2)): [amp] dtype = fp64" -amp off

# These are fine: Darknet makes the network, and ends where its weights are missing.
accepted() {
    name=$1
    shift
    run "cases/$name.cfg" nowhere.weights "$@"
    [ $status -lt 124 ] || complain "status $status"
    tail -n 1 cases/err | grep -q "open file: nowhere.weights\|nowhere.weights: cannot read" ||
        complain "did not get as far as the weights"
    ! grep -q "^cases/" cases/err || complain "a complaint"
    ! grep -q 'Unused field\|not recognized' cases/err || complain "AMP's keys reached Darknet"
    tests=$((tests + 1))
}
edit section_last '$a [amp]\ndtype=bf16'
accepted section_last
edit net_keys '1a amp=1\ndtype=fp16\ngrowth_interval=10
    /^\[maxpool\]/a amp=0'
accepted net_keys
{ printf '\n# from another system\n'; cat tiny.cfg; printf '[amp]\ndtype=bf16\n'; } |
    sed 's/$/\r/' > cases/crlf.cfg
accepted crlf
accepted fine
accepted fine -amp off

[ $failures = 0 ] || fail "$failures complaints over $tests cases"
echo "$tests cases"
