#!/bin/bash
# The CPU benchmark: whole training steps of one network in stock Darknet, Darknet AMP
# and PyTorch, in one run.
#
#   bench/cpu.sh [options]
#
#   --mode M      speed (default), memory, threads, or all:
#                   speed    ms per step, --threads threads, --batch images
#                   memory   peak resident memory at --memory-batch images
#                   threads  ms per step with one thread and with two, and the ratio
#   --threads N   1        --batch N  4         --size N   the .cfg's own width and height
#   --iters N     10       measured steps per process; stock Darknet, which is slow, does --stock-iters (3)
#   --warmup N    4        steps before them (stock: 1)
#   --rounds N    3        processes per side: A B C …, A B C …; medians over them are printed
#   --memory-batch N  8    --cfg FILE  yolov3-tiny; with AlexeyAB's Darknet its yolov4-tiny
#   --sides "…"   any of: stock fp32 bf16 fp16 torch-f32 torch-bf16 (all), and stock-avx: AlexeyAB's as its
#                 Makefile builds it with AVX=1
#   --darknet DIR a checkout of pjreddie's Darknet or of AlexeyAB's, which is built in build/alexeyab
#   --python P    the interpreter that has PyTorch (/usr/bin/python3, for Debian's python3-torch)
#   --build DIR   the build folder (build/cpu), which is brought up to date first; --no-build takes it
#                 as it is
#   --no-pin      let the system choose the CPUs (default: taskset, on the last ones)
#   --json FILE   everything measured, and the machine, as JSON
#   --log FILE    what the programs print on stderr
#
# Loading of images is in no side's time. Every side starts from the same weights, images and boxes,
# and the loss of the same step is printed for each. A busy machine is said; CPU time is printed beside
# wall time for that reason.
set -eu

bench=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$bench")
. "$root/scripts/gpu_machine.bash" # what holds without a GPU, too: is_alexeyabs, commit_of_tree

mode=speed threads=1 batch=4 size= iters=10 stock_iters=3 warmup=4 rounds=3 memory_batch=8 cfg=
sides= python=/usr/bin/python3 build= darknet= up_to_date= pin=1 json= log=

fail() { echo "bench/cpu.sh: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
    case $1 in
        -h|--help) sed -n '2,/^set -eu/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        --no-pin) pin=; shift; continue ;;
        --no-build) up_to_date=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
        --mode|--threads|--batch|--size|--iters|--stock-iters|--warmup|--rounds|--memory-batch|--cfg|--sides|\
        --python|--build|--darknet|--json|--log) name=${1#--}; printf -v "${name//-/_}" %s "$2" ;;
        *) fail "unknown option $1; --help lists them" ;;
    esac
    shift 2
done
case $mode in speed|memory|threads|all) ;;
    *) fail "--mode is speed, memory, threads or all, not $mode" ;; esac
command -v "$python" >/dev/null ||
    fail "$python is not here; --python names another (plain Python makes the table)"

is_alexeyabs "$darknet" && build=${build:-$root/build/alexeyab}
build=${build:-$root/build/cpu}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=${log:-$work/log}
: >"$log"

# ---- both sides ----

if [ -z "$up_to_date" ]; then
    [ -z "$darknet" ] || darknet=$(cd "$darknet" && pwd) || fail "--darknet is no folder: $darknet"
    echo "building the benchmark in $build" >&2
    { cmake -S "$root" -B "$build" -DDARKNET_AMP_BUILD_BENCH=ON -DDARKNET_AMP_BUILD_STOCK=ON \
          ${darknet:+-DDARKNET_SOURCE_DIR="$darknet" -DDARKNET_AMP_BUILD_TESTS=OFF} &&
      cmake --build "$build" --parallel "$(nproc)" --target bench-steps; } >"$work/build" 2>&1 ||
        { tail -n 20 "$work/build" >&2; fail "the build failed; its last lines are above"; }
fi
[ -x "$build/bin/bench-step" ] && [ -x "$build/bin/bench-step-stock" ] ||
    fail "$build has no bench-step and bench-step-stock"

source=$(sed -n 's/^DARKNET_SOURCE_DIR:[A-Z]*=//p' "$build/CMakeCache.txt")
avx= usual_cfg=$root/cfg/yolov3-tiny-amp.cfg rules=pjreddie
is_alexeyabs "$source" && avx=stock-avx usual_cfg=$source/cfg/yolov4-tiny.cfg rules=alexeyab
cfg=${cfg:-$usual_cfg}
sides=${sides:-stock $avx fp32 bf16 fp16 torch-f32 torch-bf16}
[ -r "$cfg" ] || fail "cannot read $cfg"

if [[ $sides == *torch* ]] && ! "$python" -c 'import torch' 2>/dev/null; then
    echo "no PyTorch for $python (Debian: apt-get install python3-torch libopenblas0-pthread):" \
        "its columns are left out" >&2
    sides=$(printf '%s\n' $sides | grep -v torch | tr '\n' ' ')
fi

# ---- running ----

export OMP_WAIT_POLICY=passive # two threads that spin for work take the time of the one that has it

# cpus N: the last N CPUs that this process may use, for taskset
cpus() {
    taskset -pc $$ | sed 's/.*: //' | tr , '\n' |
        awk -F- -v n="$1" '{ for (i = $1; i <= $NF; ++i) a[++c] = i }
             END { for (i = (c > n ? c - n + 1 : 1); i <= c; ++i) { printf "%s%d", s, a[i]; s = "," } }'
}

# run SIDE THREADS BATCH WARMUP ITERS DATA: one process; prints its JSON line
run() {
    local side=$1 n=$2 b=$3 w=$4 i=$5 data=$6 prefix=()
    local common=(--warmup "$w" --iters "$i" ${size:+--size "$size"})
    [ -n "$pin" ] && command -v taskset >/dev/null && prefix=(taskset -c "$(cpus "$n")")
    export OMP_NUM_THREADS=$n
    case $side in
        stock*) "${prefix[@]}" "$build/bin/bench-step-$side" "$cfg" --batch "$b" "${common[@]}" ;;
        torch-*) "${prefix[@]}" "$python" "$bench/peer_torch.py" "$cfg" --data "$data" --threads "$n" \
                     --rules $rules --dtype "${side#torch-}" "${common[@]}" ;;
        *) "${prefix[@]}" "$build/bin/bench-step" "$cfg" --batch "$b" "${common[@]}" -amp "$side" ;;
    esac 2>>"$log"
}

# measure NAME THREADS BATCH ROUNDS: all sides, interleaved; a JSON line per process in $work/runs
measure() {
    local name=$1 n=$2 b=$3 round side line data=$work/batch$3 i w
    if [[ $sides == *torch* && ! -e $data.truth ]]; then
        "$build/bin/bench-step-stock" "$cfg" --batch "$b" ${size:+--size "$size"} --dump "$data" 2>>"$log" ||
            { tail -n 3 "$log" >&2; fail "stock Darknet could not load $cfg"; }
    fi
    for ((round = 1; round <= $4; ++round)); do
        for side in $sides; do
            i=$iters w=$warmup
            [[ $side == stock* ]] && i=$stock_iters w=1
            [ "$name" = memory ] && i=2
            echo "$name: threads $n, batch $b, round $round of $4: $side" >&2
            if line=$(run "$side" "$n" "$b" "$w" "$i" "$data"); then
                printf '{"case": "%s", "name": "%s", "round": %d, %s\n' "$name$n" "$side" "$round" \
                    "${line#\{}"
            else
                printf '{"case": "%s", "name": "%s", "round": %d, "error": true}\n' "$name$n" "$side" "$round"
                echo "  failed: $(tail -n 1 "$log")" >&2
            fi >>"$work/runs"
        done
    done
}

version_of() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo unknown; }

dnnl=$(ldd "$build/bin/bench-step" "$build"/lib/libdarknet.so 2>/dev/null |
    sed -n 's/.*libdnnl[^ ]* => \([^ ]*\).*/\1/p' | head -n 1)
{
    echo "cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "cpus=$(nproc)"
    echo "isa=$(grep -m1 -ow avx512_bf16 /proc/cpuinfo || echo no avx512_bf16)" \
        "$(grep -m1 -ow avx512_fp16 /proc/cpuinfo || echo no avx512_fp16)"
    echo "load=$(cut -d' ' -f1-3 /proc/loadavg)"
    echo "memory=$(awk '/MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo)"
    echo "system=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), Linux $(uname -r)"
    echo "compiler=$(cc --version | head -n 1)"
    echo "onednn=$(readlink -f "${dnnl:-none}") (libdnnl-dev $(version_of libdnnl-dev))"
    echo "commit=$(commit_of_tree)"
    echo "date=$(date -u +%Y-%m-%dT%H:%MZ)"
    echo "cfg=$cfg"
    echo "stock_openmp=$(ldd "$build/bin/bench-step-stock" | grep -q libgomp && echo yes || echo no)"
    echo "pinned=${pin:-0}"
} >"$work/machine"

: >"$work/runs"
case $mode in
    speed|all) measure speed "$threads" "$batch" "$rounds" ;;&
    memory|all) measure memory "$threads" "$memory_batch" 1 ;;&
    threads|all) [ "$mode" = all ] && [ "$threads" = 1 ] || measure speed 1 "$batch" "$rounds"
                 measure speed 2 "$batch" "$rounds" ;;
esac
echo "load_end=$(cut -d' ' -f1-3 /proc/loadavg)" >>"$work/machine"

# ---- the tables ----

"$python" - "$work/machine" "$work/runs" "$json" <<'PYTHON'
import json
import statistics
import sys

machine = dict(line.rstrip("\n").split("=", 1) for line in open(sys.argv[1]))
runs = [json.loads(line) for line in open(sys.argv[2])]
TITLES = {"stock": "stock Darknet -Ofast", "stock-avx": "stock Darknet AVX=1", "fp32": "AMP fp32",
          "bf16": "AMP bf16", "fp16": "AMP fp16", "torch-f32": "PyTorch f32",
          "torch-bf16": "PyTorch bf16 autocast"}
PEER = {"fp32": "torch-f32", "bf16": "torch-bf16", "torch-f32": None, "torch-bf16": None}


def losses_by_update(run):
    """The losses without those of steps that a skipped update repeats: the batch is always the same, and so
    is the loss while the weights are."""
    losses = run["losses"]
    if run["applied"] == len(losses):
        return losses
    return losses[:1] + [b for a, b in zip(losses, losses[1:]) if b != a]


cases = {}
for run in runs:
    cases.setdefault(run["case"], {}).setdefault(run["name"], []).append(run)

tables = {}
for case, sides in cases.items():
    rows = tables[case] = {}
    steps = min((len(losses_by_update(r)) for rs in sides.values() for r in rs if "error" not in r),
                default=0)
    for name, processes in sides.items():
        good = [r for r in processes if "error" not in r]
        if not good:
            rows[name] = None
            continue
        middle = lambda key: statistics.median(r[key] for r in good) if good[0].get(key) is not None else None
        rows[name] = {
            "ms": middle("ms"), "ms_min": min(r["ms_min"] for r in good),
            "ms_max": max(r["ms_max"] for r in good),
            "cpu_ms": middle("cpu_ms"), "forward_ms": middle("forward_ms"),
            "backward_ms": middle("backward_ms"),
            "update_ms": middle("update_ms"), "first_ms": middle("first_ms"),
            "rss_mb": max(r["rss_mb"] for r in good), "processes": len(good),
            "failed": len(processes) - len(good),
            "threads": good[0]["threads"], "batch": good[0]["batch"],
            "size": [good[0]["width"], good[0]["height"]],
            "skipped": max(len(r["losses"]) - r["applied"] for r in good),
            "version": good[0].get("version"), "loss_step": steps,
            "loss_first": good[0]["losses"][0], "loss": losses_by_update(good[0])[steps - 1],
        }


def ratio(rows, base, name, key="ms"):
    """How many times less than `base` takes."""
    if not rows.get(base) or not rows.get(name):
        return None
    return rows[base][key] / rows[name][key]


def show(value, form="%.2f", missing="-"):
    return missing if value is None else form % value


def print_table(head, body):
    widths = [max(len(line[i]) for line in [head] + body) for i in range(len(head))]
    for n, line in enumerate([head] + body):
        print("  ".join([line[0].ljust(widths[0])]
                        + [c.rjust(w) for c, w in zip(line[1:], widths[1:])]).rstrip())
        if n == 0:
            print("  ".join("-" * w for w in widths))


load = float(machine["load"].split()[0])
print()
print(f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['isa']}, {machine['memory']}; {machine['system']}")
torch = next((r["version"] for r in runs if r.get("version")), "none")
print(f"compiler {machine['compiler']}; oneDNN {machine['onednn']}; PyTorch {torch}; "
      f"commit {machine['commit']}")
blas = sorted({f for r in runs for f in r.get("blas", [])})
if blas:
    print(f"PyTorch's BLAS: {', '.join(blas)}")
if any("/blas/libblas" in f for f in blas):
    print("That is the reference BLAS, far slower than what PyTorch users have: install libopenblas0-pthread "
          "for a fair f32.")
print(f"{machine['cfg']}; {machine['date']}; load average {machine['load']} at the start, "
      f"{machine['load_end']} at the end")
# A load of 1 may be what ran before; at the end it is our own threads.
ours = max((r.get("threads", 1) for r in runs), default=1)
busy = load > 0.5 or float(machine["load_end"].split()[0]) > ours + 0.5
if busy:
    print("BUSY MACHINE: other programs ran during this; read the CPU-time ratios in brackets, and measure "
          "again when idle.")

for case, rows in tables.items():
    first = next((r for r in rows.values() if r), None)
    if not first:
        print(f"\n{case}: every process failed; --log FILE keeps what they said")
        continue
    where = f"{first['threads']} thread{'s' if first['threads'] > 1 else ''}, batch {first['batch']}, " \
            f"{first['size'][0]}x{first['size'][1]}"
    memory = case.startswith("memory")
    print(f"\n{'Peak memory' if memory else 'Time per training step'}: {where}")
    both = lambda base, name: show(ratio(rows, base, name)) + (
        f" [{show(ratio(rows, base, name, 'cpu_ms'))}]"
        if base and rows.get(base) and first["threads"] == 1 else "")
    body = []
    for name, row in rows.items():
        if row is None:
            body.append([TITLES[name], "failed"] + ["-"] * (4 if memory else 9))
            continue
        losses = [show(row["loss_first"], "%.1f"), show(row["loss"], "%.1f")]
        rss = [show(row["rss_mb"], "%.0f"),
               show(row["rss_mb"] / rows["stock"]["rss_mb"] if rows.get("stock") else None)]
        if memory:
            body.append([TITLES[name]] + rss + losses + [str(row["skipped"])])
            continue
        own = ("fp32" if name in ("fp32", "bf16", "fp16")
               else "torch-f32" if name.startswith("torch") else None)
        body.append([TITLES[name], show(row["ms"], "%.1f"), show(row["ms_min"], "%.1f"),
                     show(row["cpu_ms"], "%.1f"),
                     both("stock", name), both(own, name), both(PEER.get(name), name)] + rss + losses)
    loss = f"loss {first['loss_step']}"
    if memory:
        print_table(["", "peak MB", "x stock's", "loss 1", loss, "skipped"], body)
    else:
        print_table(["", "ms/step", "min", "CPU ms", "x stock", "x own fp32", "x PyTorch", "peak MB",
                     "x stock's", "loss 1",
                     loss], body)
        print()
        print_table(["of which, ms (best of the last steps)", "forward", "backward", "update", "first step",
                     "skipped"],
                    [[TITLES[n]] + [show(r[k], "%.1f")
                                    for k in ("forward_ms", "backward_ms", "update_ms", "first_ms")]
                     + [str(r["skipped"])] for n, r in rows.items() if r])

if "speed1" in tables and "speed2" in tables:
    print("\nTwo threads against one"
          + ("" if machine["stock_openmp"] == "yes" else " (stock is built without OpenMP)"))
    print_table(["", "1 thread", "2 threads", "ratio"],
                [[TITLES[n], show(tables["speed1"][n]["ms"], "%.1f"), show(tables["speed2"][n]["ms"], "%.1f"),
                  show(tables["speed1"][n]["ms"] / tables["speed2"][n]["ms"])]
                 for n in tables["speed1"] if tables["speed1"][n] and tables["speed2"].get(n)])

print("\nx: how many times less time than stock Darknet, the same engine in fp32, PyTorch in the same "
      "precision; in brackets the same by CPU time.\nMemory is a fraction of stock's. "
      "PyTorch's memory includes its own libraries.")
if sys.argv[3]:
    with open(sys.argv[3], "w") as out:
        json.dump({"machine": machine, "busy": busy, "tables": tables, "runs": runs}, out, indent=1)
        out.write("\n")
if any(row is None for rows in tables.values() for row in rows.values()):
    sys.exit(1)
PYTHON
