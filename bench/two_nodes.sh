#!/bin/bash
# Training over two nodes with a slow link between them: what overlap and 16 bits on the wire gain.
#
#   bench/two_nodes.sh [--rates "100 250"] [--rounds 5] [--iters 3] CFG DARKNET DARKNET_WITHOUT_OVERLAP
#                      [arguments of `amp bench`...]
#
# The nodes are two network namespaces of this machine, joined by a veth pair whose ends send at so many
# Mbit/s (tc tbf). One rank on each runs `darknet amp bench`, in turns: both programs, gradients in fp32 and
# in bf16. The second program sums when backward is over; it is built from a copy of the tree with
#   sed -i '/AMP_TRY(amp_parallel_layer_done/d' plugin/amp/engine.c
# Both are built with DARKNET_AMP_MPI=ON and Open MPI. Takes root, iproute2 and python3. Prints medians over
# the rounds, with the least and the most, beside what the link alone would take. The processors are shared by
# both nodes, and by whatever else runs here.
set -eu
rates="100 250" rounds=5 iters=3
while [ $# -gt 1 ]; do
    case $1 in
    --rates) rates=$2 ;;
    --rounds) rounds=$2 ;;
    --iters) iters=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -ge 3 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 1; }
cfg=$1 with=$(realpath "$2") without=$(realpath "$3")
shift 3
work=$(mktemp -d)
a=amp-a-$$ b=amp-b-$$
finish() {
    ip netns del $a 2> /dev/null || true
    ip netns del $b 2> /dev/null || true
    rm -r "$work"
}
trap finish EXIT
sed '/^ *wire *=/d' "$cfg" > "$work/fp32.cfg"
grep -q '^\[amp\]' "$work/fp32.cfg" || printf '\n[amp]\n' >> "$work/fp32.cfg"
sed 's/^\[amp\]/&\nwire=bf16/' "$work/fp32.cfg" > "$work/bf16.cfg"

ip netns add $a
ip netns add $b
ip -n $a link add link0 type veth peer name link0 netns $b
for node in "$a 1" "$b 2"; do
    set_up=($node)
    ip -n ${set_up[0]} addr add 10.77.0.${set_up[1]}/24 dev link0
    ip -n ${set_up[0]} link set link0 up
    ip -n ${set_up[0]} link set lo up
done
limit() { # limit <Mbit/s>
    for node in $a $b; do
        ip netns exec $node tc qdisc replace dev link0 root tbf rate "$1"mbit burst 256kb limit 8mb
    done
}
# What mpirun takes for ssh: a host and a command. Open MPI tells nodes by their names too.
cat > "$work/agent" <<END
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c 'hostname node-b; exec sh -c "\$*"' sh "\$@"
END
chmod +x "$work/agent"

run() { # run <file> <program> <cfg> <arguments...>
    local file=$1
    shift
    ip netns exec $a unshare --uts sh -c 'hostname node-a; exec "$@"' sh \
        mpirun --allow-run-as-root --bind-to none -np 2 -H 10.77.0.1:1,10.77.0.2:1 \
        --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca oob_tcp_if_include 10.77.0.0/24 -x OMP_NUM_THREADS \
        "$1" amp bench "$2" -iters $iters -seed 1 -json "$file" "${@:3}" \
        > "$work/out" 2> "$work/err" < /dev/null || { tail -n 5 "$work/err" >&2; exit 1; }
}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
for round in $(seq "$rounds"); do
    for rate in $rates; do
        limit "$rate"
        for wire in fp32 bf16; do
            run "$work/$rate-$wire-overlapped-$round" "$with" "$work/$wire.cfg" "$@"
            run "$work/$rate-$wire-after-$round" "$without" "$work/$wire.cfg" "$@"
            echo "round $round of $rounds: $rate Mbit/s, $wire; load $(cut -d' ' -f1 /proc/loadavg)" >&2
        done
    done
done
"$with" amp plan "$work/fp32.cfg" -ranks 2 -json "$work/plan" > "$work/out" 2>&1
python3 - "$work" "$rounds" $rates <<'END'
import json, statistics, sys
work, rounds, rates = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
bytes_sent = json.load(open(work + "/plan"))["ranks"][0]["megabytes"] * 1e6
def rows(rate, wire, how): # of all rounds: one rank's step, two ranks' step, waited; ms
    for i in range(rounds):
        one, two = json.load(open("%s/%s-%s-%s-%d" % (work, rate, wire, how, i + 1)))["rows"]
        yield one["step_ms"], two["step_ms"], two["waited_ms"]
def text(values):
    values = sorted(values)
    return "%.0f (%.0f-%.0f)" % (statistics.median(values), values[0], values[-1])
print("| link, Mbit/s | wire | sums | one rank, ms | two ranks, ms | waited, ms | the wire alone, ms |")
print("|---|---|---|---|---|---|---|")
for rate in rates:
    for wire in "fp32", "bf16":
        alone = bytes_sent * 8 / float(rate) / 1e3 / (1 if wire == "fp32" else 2)
        for how in "after", "overlapped":
            r = list(zip(*rows(rate, wire, how)))
            print("| %s | %s | %s | %s | %s | %s | %.0f |"
                  % (rate, wire, how, text(r[0]), text(r[1]), text(r[2]), alone))
END
