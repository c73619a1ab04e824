# darknet amp bench: every dtype of tiny networks; its numbers agree with each other (how they are printed is
# test_bench.c's); bad input is one line and status 1; whatever ends it leaves no program and no file behind.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
command -v python3 > /dev/null || skip 'no python3 to read JSON with'
export OMP_NUM_THREADS=1 TMPDIR=$PWD/tmp
mkdir tmp
tiny_training
layers > connected.cfg <<'EOF'
[net] batch=2 width=16 height=16 channels=3
[connected] output=10 activation=linear
[softmax]
EOF

nothing_left() { # nothing_left <of what>
    [ -z "$(ls -A tmp)" ] || fail "$1: left behind: $(ls -A tmp)"
    [ -z "$(programs)" ] || fail "$1: programs are still running"
}
# Its programs, which run in this folder.
programs() {
    local file
    for file in $(grep -lsz '^/proc/self/exe$' /proc/[0-9]*/cmdline); do
        [ "$(readlink "${file%/cmdline}/cwd")" != "$PWD" ] || cut -d / -f 3 <<< "$file"
    done
}
bench() { # bench <arguments>: succeeds
    succeeds timeout 600 "$DARKNET" amp bench "$@"
    nothing_left "amp bench $*"
}
refused() { # refused <expression> <arguments>: one line, perhaps after the usage, status 1, nothing else
    local what=$1 status=0
    shift
    timeout 600 "$DARKNET" amp bench "$@" > out 2> err || status=$?
    [ $status = 1 ] || fail "amp bench $*: status $status instead of 1: $(cat err)"
    sed -i '/^usage: /d; /^  /d; /^doubles: /d' err
    [ "$(wc -l < err)" = 1 ] && grep -q -e "$what" err ||
        fail "amp bench $*: not one line with '$what': $(cat err)"
    [ ! -s out ] && [ ! -e no.json ] || fail "amp bench $*: something was written"
    nothing_left "amp bench $*"
}

all_dtypes_are_measured_and_the_numbers_agree() {
    cp tiny.cfg before.cfg
    bench tiny.cfg -dtypes stock,fp32,bf16,fp16 -iters 12 -seed 3 -json all.json
    cmp -s tiny.cfg before.cfg || fail 'the .cfg was changed'
    python3 - all.json <<'EOF'
import json, sys
j = json.load(open(sys.argv[1]))
def check(holds, what):
    if not holds: sys.exit("FAILED: " + what)
def near(a, b): return abs(a - b) <= 1e-9 * abs(b)
shape = [j[k] for k in ("batch", "subdivisions", "width", "height", "channels", "seed")]
check(shape == [2, 2, 32, 32, 3, 3], "shape: %s" % j)
sides = {d["dtype"]: d for d in j["dtypes"]}
check(list(sides) == ["stock", "fp32", "bf16", "fp16"], "dtypes: %s" % list(sides))
for name, d in sides.items():
    ms = d["ms"]
    check(d["steps"] == 12 and not d["left_out"], name + ": steps")
    for phase in ("forward", "backward", "update", "step"):
        m = ms[phase]
        check(0 < m["min"] <= m["lower_quartile"] <= m["median"] <= m["upper_quartile"] <= m["max"],
              "%s %s: %s" % (name, phase, m))
    forward, backward, update, step = (ms[p]["typical"] for p in ("forward", "backward", "update", "step"))
    check(ms["step"]["min"] * (1 - 1e-9) <= step <= ms["step"]["max"] * (1 + 1e-9), name + ": the step")
    check(near(2 * (forward + backward) + update, step), name + ": the phases do not make the step")
    check(near(d["images_per_second"], 1000 * 4 / step), name + ": images per second")
    for other in ("fp32", "stock"):
        check(near(d["speedup_over_" + other], d["images_per_second"] / sides[other]["images_per_second"]),
              "%s over %s: not the quotient of the rows" % (name, other))
    check(1 < d["peak_memory_mb"] < 4000, name + ": memory")
    check(abs(d["first_loss"] / sides["stock"]["first_loss"] - 1) < (1e-4 if name == "fp32" else .02),
          name + ": another loss")
    layers = d["layers"]
    check([l["type"] for l in layers] ==
          "convolutional maxpool convolutional convolutional shortcut dropout convolutional yolo "
          "route upsample route convolutional yolo".split(), name + ": layers")
    made = sum(l["forward_ms"] + l["backward_ms"] for l in layers) + update
    check(near(made, step), "%s: layers and update take %g of %g" % (name, made, step))
    check(abs(sum(l["share"] for l in layers) + update / step - 1) < 1e-6, name + ": shares")
    loaded = 2 * 4 * (3 * 32 * 32 + 90 * 5) * 4 / 2 ** 20 # two batches of four images, each with 90 boxes
    check(abs(d["training_memory_mb"] - d["peak_memory_mb"] - loaded) < 1e-6, name + ": memory of a training")
    for l in layers:
        check(l["half"] == (name in ("bf16", "fp16")), "%s: %s" % (name, l))
        check(l["type"] != "convolutional" or (l["forward_ms"] > 0 and l["backward_ms"] > 0),
              "%s: %s" % (name, l))
        check(l["misaligned"] == (l["layer"] in (0, 6, 11)), "%s: %s" % (name, l))
    check(layers[0]["operations"] == 2 * 2 * 32 * 32 * 8 * 27, "operations: %s" % layers[0])
    check(layers[0]["bytes"] == 4 * (8 * 27 + 2 * 32 * 32 * (3 + 8)), "bytes: %s" % layers[0])
check(10 <= len(j["most_expensive_layers"]) <= 13, "most expensive: %s" % j["most_expensive_layers"])
check([v["dtype"] for v in j["verdicts"]] == ["bf16", "fp16"], "verdicts")
for v in j["verdicts"]:
    check(near(v["speedup"], sides[v["dtype"]]["speedup_over_fp32"]), "the verdict's speed-up")
    least, most = v["speedup_least"], v["speedup_most"] # none where the steps differed too much
    check(least is None and most is None or least <= v["speedup"] <= most, "the verdict's interval")
EOF
}

# With a .data file steps load their images meanwhile; the verdict says whether they wait.
loading_is_measured_next_to_the_step() {
    bench tiny.data tiny.cfg -dtypes stock,fp32,bf16 -iters 5 -seed 3 -json loading.json
    python3 - loading.json out <<'EOF'
import json, sys
j, table = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
def check(holds, what):
    if not holds: sys.exit("FAILED: " + what)
for d in j["dtypes"]:
    l = d["loading"]
    check(0 < l["load_images_per_second"] == l["images_per_second"] <= l["step_images_per_second"], "%s" % l)
    share = 1 - l["load_images_per_second"] / l["step_images_per_second"]
    check(abs(share - l["waiting"]) < 1e-9, "waiting: %s" % l)
    says = " %.4g images/s and the step could use %.4g:" % (l["images_per_second"],
                                                            l["step_images_per_second"])
    waits = d["dtype"] == "bf16" and l["waiting"] > .1
    check((says in j["verdicts"][0]["advice"]) == waits, "verdict: %s" % j["verdicts"])
check(" loading  peak MB" in table and "loading: images/s of steps" in table, table)
EOF
    bench tiny.cfg -dtypes fp32,bf16 -iters 5 -json no_loading.json
    ! grep loading out || fail 'a benchmark without images has their speed'
    python3 -c 'import json, sys
dtypes = json.load(open("no_loading.json"))["dtypes"]
sys.exit(any(v is not None for d in dtypes for v in d["loading"].values()))' ||
        fail "$(grep -A 5 loading no_loading.json)"
    grep -v ^train tiny.data > no_list.data
    refused 'no_list.data: `train = FILE` is missing' no_list.data tiny.cfg -iters 1 -json no.json
    refused 'none.data: cannot read the .data file' none.data tiny.cfg -json no.json
    refused 'tiny.data: -detect uses synthetic images' tiny.data tiny.cfg -detect -json no.json
}

# With -detect there are two parts, of one image and of a batch, and with a batch of 1 only one.
predictions_are_measured_of_an_image_and_of_a_batch() {
    bench tiny.cfg -detect -batch 3 -dtypes stock,fp32,bf16,fp16 -iters 6 -seed 3 -json detect.json
    python3 - detect.json out <<'EOF'
import json, sys
j, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
def check(holds, what):
    if not holds: sys.exit("FAILED: " + what)
def near(a, b): return abs(a - b) <= 1e-9 * abs(b)
check((j["width"], j["height"], j["channels"], j["seed"]) == (32, 32, 3, 3), "shape: %s" % j)
check([p["batch"] for p in j["batches"]] == [1, 3], "batches")
for p in j["batches"]:
    sides = {d["dtype"]: d for d in p["dtypes"]}
    check(list(sides) == ["stock", "fp32", "bf16", "fp16"], "dtypes: %s" % list(sides))
    check("\nimages a pass: %d\n" % p["batch"] in text, "the table")
    for name, d in sides.items():
        ms = d["ms"]
        check(d["passes"] == 6 and not d["left_out"] and "layers" not in d, name + ": passes")
        check(near(d["images_per_second"], 1000 * p["batch"] / ms["typical"]), name + ": images per second")
        for other in ("fp32", "stock"):
            check(near(d["speedup_over_" + other], sides[other]["ms"]["typical"] / ms["typical"]),
                  "%s: its ratio to %s" % (name, other))
        check(1 < d["peak_memory_mb"] < 4000, name + ": memory")
EOF
    bench connected.cfg -detect -batch 1 -dtypes fp32 -iters 3 -json -
    python3 -c 'import json; assert [p["batch"] for p in json.load(open("out"))["batches"]] == [1]'
}

# Without instructions that compute in half, that is the reason for a lack of gain (test_bench.c judges
# made-up times); without any, a dtype is left out, or refused if it was named.
the_machine_decides() {
    DNNL_MAX_CPU_ISA=AVX2 bench connected.cfg -iters 30 -dtypes fp32,bf16 -json avx2.json
    python3 - avx2.json <<'EOF'
import json, sys
j = json.load(open(sys.argv[1]))
side, v = j["dtypes"][1], j["verdicts"][0]
# Where the steps differ too much for bounds, nothing is said of the speed, nor of reasons.
slower = v["speedup"] < 1.1 and v["speedup_least"] is not None
if side["support"] != "storage" or ("no native half" in v["reasons"]) != slower:
    sys.exit("FAILED: %s" % j)
EOF
    local DARKNET=$BUILD_DIR/tests/darknet-on-doubles
    [ -x "$DARKNET" ] || return 0
    export AMP_DOUBLE_GPU=7.0
    bench connected.cfg -iters 3
    holds out '^bf16 is left out: bf16 needs a GPU of compute capability 8.0'
    refused '^amp bench: -dtypes: this machine cannot run bf16: bf16 needs a GPU' connected.cfg -iters 3 \
        -dtypes fp32,bf16 -json no.json
    unset AMP_DOUBLE_GPU
}

# With -json - the table gets out of the way.
json_to_standard_output() {
    bench connected.cfg -iters 3 -dtypes fp32 -batch 5 -size 8 -json -
    python3 -c 'import json
j = json.load(open("out"))
assert (j["batch"], j["width"], j["subdivisions"]) == (5, 8, 1), j'
    grep -q '^fp32 ' err || fail 'no table'
}

bad_input_is_one_line() {
    refused 'nowhere.cfg: No such file or directory' nowhere.cfg
    refused '-dtypes: unknown dtype fp8; allowed: stock,fp32,bf16,fp16' tiny.cfg -dtypes fp32,fp8
    refused 'nowhere/b.json' tiny.cfg -json nowhere/b.json
    { cat connected.cfg; printf '[amp]\ndtype=fp19\n'; } > bad.cfg
    refused 'bad.cfg:13: \[amp\] dtype = fp19' bad.cfg -json no.json
    sed 's/^batch=.*/batch=0/' connected.cfg > none.cfg
    refused 'batch' none.cfg -json no.json
    refused '^amp bench: .*/bccd.cfg with this .*multiple of 32): \[convolutional\]: needs' \
        "$SOURCE_DIR/cfg/bccd.cfg" \
        -dtypes fp32 -size 33 -json no.json
    refused '^amp bench: connected.cfg with this .*numbers of input for a batch' connected.cfg -dtypes bf16 \
        -batch 65536 -size 4096 -json no.json
}

# started <dtypes>: in the background, its programs at work; sets $parent
started() {
    set -m # a job of a script without it ignores SIGINT
    "$DARKNET" amp bench tiny.cfg -iters 100000 -dtypes "$1" -json no.json > out 2> err &
    parent=$!
    set +m
    until [ "$(programs | wc -l)" = "$(tr , '\n' <<< "$1" | wc -l)" ]; do
        kill -0 $parent 2> /dev/null || fail "the programs of $1 did not start: $(cat err)"
        sleep .1
    done
}
ends_with() { # ends_with <expression> <after what>
    local status=0
    wait $parent || status=$?
    [ $status = 1 ] && [ "$(wc -l < err)" = 1 ] && grep -q "$1" err || fail "$2: status $status: $(cat err)"
    [ ! -s out ] && [ ! -e no.json ] || fail "$2: something was written"
    nothing_left "$2"
}
interrupted_it_ends_cleanly() {
    started fp32,bf16
    kill -INT $parent
    ends_with '^amp bench: interrupted' 'after Ctrl-C'
}
a_program_that_is_killed_is_named() {
    started bf16
    kill -KILL $(programs)
    ends_with '^amp bench: the bf16 program was killed by signal 9 .*, try a smaller -batch' 'killed'
}

all_dtypes_are_measured_and_the_numbers_agree
loading_is_measured_next_to_the_step
predictions_are_measured_of_an_image_and_of_a_batch
the_machine_decides
json_to_standard_output
bad_input_is_one_line
interrupted_it_ends_cleanly
a_program_that_is_killed_is_named
