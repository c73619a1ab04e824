#!/usr/bin/env python3
"""The tables of gpu.sh:  gpu_table.py MACHINE RUNS [JSON]

MACHINE has a line name=value each, RUNS a line of JSON per process. JSON receives the first as an object on
one line, and then the second's lines with the roofline and the shares added. What was not measured is printed
as a dash, never as a number."""
import json
import sys

from roofline import roofline

# By a part of the name that nvidia-smi gives, the first that fits: TFLOP/s by kind and TB/s,
# and where they are from.
SHEET = "NVIDIA's data sheet, dense"
KNOWN = [("H200", {"half": 790.0, "tf32": 400.0, "fp32": 67.0, "bandwidth": 4.3},
          "assumed; fp32 NVIDIA's data sheet"),
         ("H100 PCIe", {"half": 756.5, "tf32": 378.0, "fp32": 51.0, "bandwidth": 2.0}, SHEET),
         ("H100 NVL", {"half": 835.5, "tf32": 417.5, "fp32": 60.0, "bandwidth": 3.9}, SHEET),
         ("H100", {"half": 989.5, "tf32": 494.5, "fp32": 67.0, "bandwidth": 3.35}, SHEET)]
KIND = {"stock-fp32": "fp32", "fp32": "fp32", "torch-f32": "fp32", "stock-tf32": "tf32", "torch-tf32": "tf32",
        "stock-half": "tf32"}
TITLES = {"stock-fp32": "stock fp32", "stock-tf32": "stock TF32", "stock-half": "stock CUDNN_HALF",
          "stock-half-scaled": "stock CUDNN_HALF, loss_scale=128", "fp32": "AMP fp32", "fp16": "AMP fp16",
          "bf16": "AMP bf16",
          "fp16-graphs": "AMP fp16, graphs", "bf16-graphs": "AMP bf16, graphs",
          "torch-f32": "PyTorch fp32", "torch-tf32": "PyTorch TF32", "torch-fp16": "PyTorch AMP fp16",
          "torch-bf16": "PyTorch AMP bf16", "torch-fp16-compiled": "PyTorch AMP fp16, compiled",
          "torch-bf16-compiled": "PyTorch AMP bf16, compiled"}


def rates(machine):
    """TFLOP/s by kind and TB/s, and where they are from: as given, else what is known of this GPU, else
    none."""
    known, source = next(((r, s) for name, r, s in KNOWN if name in machine["gpu"]),
                         ({}, "none known of this GPU"))
    given = {"half": "half_tflops", "tf32": "tf32_tflops", "fp32": "fp32_tflops", "bandwidth": "bandwidth"}
    if any(machine.get(key) for key in given.values()):
        source = "as given, else " + source
    return {name: float(machine[key]) if machine.get(key) else known.get(name)
            for name, key in given.items()}, source


def add_derived(run, case, machine, rate):
    kind = KIND.get(run["name"], "half")
    if run.get("costs_step_ms"):
        run["casts_percent"] = round(100 * run["casts_ms"] / run["costs_step_ms"], 2)
        run["check_update_percent"] = round(100 * run["check_update_ms"] / run["costs_step_ms"], 2)
        run["half_copies_percent"] = round(100 * run["half_copies_ms"] / run["costs_step_ms"], 2)
    if rate[kind] and rate["bandwidth"]:
        cfg, size, batch, passes = case
        roof = roofline(f"{machine['cfgs']}/{cfg}.cfg", batch, size, rate[kind] * 1e9,
                        rate["bandwidth"] * 1e9,
                        2 if kind == "half" else 4)
        ms = passes * (roof["roof_ms"] - roof["update_ms"]) + roof["update_ms"]
        run["roof_ms"] = round(ms, 3)
        run["roof_percent"] = round(100 * ms / run["ms"], 1)


def losses_by_update(run):
    """Without the losses of steps that a skipped update repeats: batch and weights are then the same."""
    losses = run["losses"]
    return losses[:1] + [b for a, b in zip(losses, losses[1:]) if b != a]


def show(value, form="%.2f"):
    return "-" if value is None else form % value


def ratio(rows, base, name, key):
    if rows.get(base, {}).get(key) and rows[name].get(key):
        return rows[base][key] / rows[name][key]
    return None


def print_table(head, body):
    widths = [max(len(line[i]) for line in [head] + body) for i in range(len(head))]
    for n, line in enumerate([head] + body):
        print("  ".join([line[0].ljust(widths[0])]
                        + [c.rjust(w) for c, w in zip(line[1:], widths[1:])]).rstrip())
        if n == 0:
            print("  ".join("-" * w for w in widths))


def print_operations(title, run, rate):
    """Where a step's time goes: each operation by kind of layer, and what it reaches of the GPU's rates."""
    gb_per_s, *gflops = run["limits"]
    gb_per_s = 1e3 * rate["bandwidth"] if rate["bandwidth"] else gb_per_s
    gflops = [1e3 * rate[k] if rate[k] else g for k, g in zip(("half", "fp32"), gflops)]
    body, total = [], sum(row[3] for row in run["operations"])
    for layer, operation, calls, ms, mb, gflop, in_half in run["operations"]:
        if not total or ms < .005 * total:
            continue
        peak = gflops[not in_half] if gflop else None
        body.append([f"{layer or 'between layers'}: {operation}", "%g" % calls, show(ms),
                     show(100 * ms / total, "%.1f"), show(mb / 1e3),
                     show(100 * mb / ms / gb_per_s if gb_per_s else None, "%.0f"), show(gflop, "%.0f"),
                     show(100 * gflop / ms * 1e3 / peak if peak else None, "%.0f")])
    print(f"\nwhere {title}'s step goes, {total:.2f} ms of operations on the GPU "
          f"(of {run['ms']:.2f} ms a step):")
    print_table(["", "calls", "ms", "%", "GB", "% of bandwidth", "GFLOP", "% of arithmetic"], body)


def print_case(name, case, rows, rate):
    cfg, size, batch, passes = case
    good = {side: run for side, run in rows.items() if "error" not in run}
    print(f"\n{name}: {cfg}.cfg, {size}x{size}, {batch} images a "
          + ("step" if passes == 1 else f"pass, {passes} passes a step"))
    steps = min((len(losses_by_update(r)) for r in good.values()), default=0)
    head = ["", "ms", "min", "no input", "images/s", "x fp32", "x TF32", "input", "forward", "loss",
            "backward", "update", "MB", "/fp32",
            "casts %", "chk+upd %", "copies %", "roof ms", "% of roof", "skipped", "loss 1", f"loss {steps}"]
    body = []
    for side, r in rows.items():
        if "error" in r:
            continue
        memory = ratio(rows, side, "stock-fp32", "device_mb") if "stock-fp32" in good else None
        values = losses_by_update(r)
        # With several passes a part of the copies is hidden behind computing.
        without = r["ms"] - r["input_ms"] if passes == 1 and "input_ms" in r else None
        body.append([TITLES[side], show(r["ms"]), show(r["ms_min"]), show(without),
                     show(1e3 * r["batch"] * passes / r["ms"], "%.0f"),
                     show(ratio(good, "stock-fp32", side, "ms")), show(ratio(good, "stock-tf32", side, "ms"))]
                    + [show(r.get(p + "_ms")) for p in ("input", "forward", "loss", "backward", "update")]
                    + [show(r.get("device_mb"), "%.0f"), show(memory)]
                    + [show(r.get(k + "_percent")) for k in ("casts", "check_update", "half_copies")]
                    + [show(r.get("roof_ms")), show(r.get("roof_percent"), "%.1f"),
                       "?" if side == "torch-fp16" else "%d" % (r["steps"] - r["applied"]),
                       show(values[0], "%.5g"), show(values[steps - 1], "%.5g")])
    if body:
        print_table(head, body)
    for side, r in rows.items():
        print(f"{TITLES[side]}: {r['error'] if 'error' in r else 'math: ' + r['math']}")
    for half in ("fp16", "bf16", "fp16-graphs", "bf16-graphs"):
        for how in ("", "-compiled"):
            other = "torch-" + half.split("-")[0] + how
            faster = ratio(good, other, half, "ms") if half in good else None
            if faster:
                print(f"{TITLES[half]}: {faster:.2f} x as fast as {TITLES[other]}")
    for side, r in good.items():
        if r.get("operations"):
            print_operations(TITLES[side], r, rate)


def main():
    machine = dict(line.rstrip("\n").split("=", 1) for line in open(sys.argv[1]))
    runs = [json.loads(line) for line in open(sys.argv[2])]
    rate, source = rates(machine)
    cases = {}
    for key, value in machine.items():
        if key.startswith("case_"):
            cfg, *numbers = value.split()
            cases[key[5:]] = (cfg, *map(int, numbers))
    for run in runs:
        if "error" not in run:
            run["steps"] = len(run["losses"])
            add_derived(run, cases[run["case"]], machine, rate)
    print(f"{machine['gpu']} ({machine['memory']}), driver {machine['driver']}, CUDA {machine['cuda']}, "
          f"{machine['cudnn']}; {machine['cpu']}; commit {machine['commit']}, {machine['date']}; "
          f"the run took {machine['took']} s")
    print(f"PyTorch {next((r['version'] for r in runs if r.get('version')), 'not measured')}; "
          f"clocks at the start {machine['clocks']}; "
          f"other programs on the GPU at the start: {machine['others']}")
    print(f"roofline at ({source}; not measured here): "
          + ", ".join(f"{k} {show(v, '%g')} {'TB/s' if k == 'bandwidth' else 'TFLOP/s'}"
                      for k, v in rate.items()))
    for name, case in cases.items():
        print_case(name, case, {r["name"]: r for r in runs if r["case"] == name}, rate)
    print("\nms: median of whole steps; no input: without the copy of the images. The parts are medians of "
          "other steps, with waits around\neach part; casts, check + update and half copies too, so that "
          "small operations look dearer than they are. "
          "MB: device memory beyond an empty context.")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as out:
            for line in [{"machine": machine, "rates": rate, "rates_from": source}] + runs:
                out.write(json.dumps(line) + "\n")
    return 0 if any("error" not in r for r in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
