# darknet amp plan: the table and the JSON tell the same, come without data or weights, for every .cfg that
# Darknet ships, and whatever can be wrong is one clear line. (That the rows are those worked out by hand is
# test_plan_command.c's.)
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
python=$(command -v python3) || skip 'python3 is not here'
export OMP_NUM_THREADS=1

layers > known.cfg <<'END'
[net] batch=8 subdivisions=2 width=16 height=16 channels=3
[amp] dtype=bf16
[convolutional] filters=12 size=3 pad=1 activation=leaky
[convolutional] amp=0 filters=16 size=3 pad=1 activation=leaky
[route] layers=-1,0
[convolutional] filters=24 size=1 activation=linear
[cost] type=sse
END

plan() { "$DARKNET" amp plan "$@" > out 2> err || fail "amp plan $*: $(tail -n 2 err)"; }
says() { grep -qF -- "$1" out || fail "'$1' is not in: $(cat out)"; }

plan known.cfg -json known.json
says 'bf16, training, images a pass: 4 (batch=8 subdivisions=2), input 16 x 16 x 3'

# What one says the other says.
cat > agree.py <<'END'
import json, sys
plan, table = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
assert max(len(line) for line in table.split('\n')) <= 110, max(table.split('\n'), key=len)
words = ' '.join(table.split())
MiB = 1 << 20
for layer in plan['layers']:
    o, b, channels = layer['output'], layer['activation_bytes'], ''
    if 'channels' in layer:
        c = layer['channels']
        mark = lambda aligned: '' if aligned else '!'
        channels = '%d%s -> %d%s ' % (c['in'], mark(c['in_aligned']), c['out'], mark(c['out_aligned']))
    row = '%d %s %d x %d x %d %s ' % (layer['index'], layer['type'], o['w'], o['h'], o['c'], layer['dtype'])
    row += channels + '%.2f %.2f %s' % (b['stock'] / MiB, b['amp'] / MiB, layer['why'])
    if channels and (c['padded_in'], c['padded_out']) != (c['in'], c['out']):
        row += '; padded to %d -> %d' % (c['padded_in'], c['padded_out'])
    for cast in plan['casts']:
        reader, producer = cast['reader'], cast['producer']
        if layer['index'] != (producer if reader is None else reader): continue
        row += '; its output' if reader is None else '; image' if producer < 0 else '; layer %d' % producer
        row += ' cast to %s' % cast['to'] + (' nchw' if cast['to_layout'] == 'NCHW' else '')
        row += ' and back' if cast['backward'] else ''
    assert words.count(' %s ' % row) == 1, row
    in_half = layer['class'] == 'lower' and layer['form'] != 'fp32' or 'its matrix products' in layer['why']
    says_so = 'matrix products' in layer['why'] and layer['form'] != 'fp32'
    assert in_half == says_so, layer # nothing else has any
    if layer['type'] == 'yolo': assert (layer['dtype'], layer['computes']) == ('fp32', 'fp32'), layer
t = plan['totals']['activation_bytes']
for name, key in (('in stock', 'stock'), ('engine in fp32', 'engine_fp32'), ('under AMP', 'amp'),
                  ('arena as planned', 'amp_arena')):
    assert ' %s %.1f MiB ' % (name, t[key] / MiB) in words, name
assert t['amp'] == t['amp_arena'] + t['amp_host_buffers'] + t['amp_input']
back = sum(c['backward'] for c in plan['casts'])
assert ' casts of a pass %d and of deltas back %d ' % (len(plan['casts']), back) in words
for a in plan['advice']:
    at = '' if a['layer'] is None else '%d [%s] ' % (a['layer'], plan['layers'][a['layer']]['type'])
    share = '%.1f %% ' % a['percent_of_products'] if a['percent_of_products'] else ''
    assert ' %s%s %s%s' % (at, a['kind'], share, a['text']) in words, a
for dtype in plan['device']['dtypes']: assert '%s     %s' % (dtype['dtype'], dtype['support']) in table
for m in plan['memory']:
    figures = m['images_per_pass'], m['amp_arena'] / 2**30, m['amp'] / 2**30
    assert '%d %.2f GiB %.2f GiB' % figures in words.replace('*', ''), m
    is_asked_for = m['images_per_pass'] == plan['network']['images_per_pass']
    assert is_asked_for or m['amp'] <= plan['device']['free_memory_bytes'], m
END
"$python" agree.py known.json out || fail 'table and JSON differ for known.cfg'

# Ranks: 2,776 gradients of 4 bytes go around a ring over 125,000 bytes a second. They are less than a bucket,
# and wait for the first layer.
plan known.cfg -ranks 4 -link .001 -step 600 -json ranks.json
says 'Ranks with links of 0.001 Gbit/s'
"$python" - ranks.json <<'END' || fail 'the table of ranks is not what was worked out by hand'
import json, sys
for row, ranks, images in zip(json.load(open(sys.argv[1]))['ranks'], (2, 4), (4, 2)):
    sent = 2776 * 4 * 2 * (ranks - 1) / ranks
    want = dict(ranks=ranks, passes=1, images=images, megabytes=sent / 1e6, wire_seconds=sent / 125e3)
    want['blocking'] = want['overlapped'] = 100 * (.6 / ranks) / (.6 / ranks + sent / 125e3)
    assert all(abs(row[key] - want[key]) <= 1e-4 * want[key] for key in want), (row, want)
END
sed 's/^\[net\]/&\ntime_steps=3/' known.cfg > sequence.cfg # whole images are shared, whatever their steps
plan sequence.cfg -ranks 4 -json ranks.json
grep -q '"images": 2' ranks.json || fail "time_steps: $(cat ranks.json)"
plan known.cfg -ranks 3
says 'cannot share'

sed 's/^dtype=bf16/&\nsync_batchnorm=1/' known.cfg > synced.cfg
plan synced.cfg -ranks 2
says 'Not counted: the sums of sync_batchnorm=1'

# JSON alone, and valid, where it goes to stdout.
"$DARKNET" amp plan known.cfg -json - 2> /dev/null > alone.json
"$python" -m json.tool < alone.json > /dev/null || fail '-json - is not JSON alone'

# The batch of the command line, without a trace of the copy that Darknet read.
mkdir temporary
TMPDIR=$PWD/temporary plan known.cfg -batch 12 -subdivisions 4
says 'images a pass: 3 (batch=12 subdivisions=4)'
[ -z "$(ls temporary)" ] || fail "left behind: $(ls temporary)"

# Where the .cfg does not ask for AMP it is said, and -dtype and -amp choose.
sed '/^\[amp\]/,/^$/d' known.cfg > off.cfg
plan off.cfg
says 'The .cfg does not turn AMP on; this is the plan of `-amp bf16`.'
plan off.cfg -dtype fp32
says 'dtype=fp32'
plan known.cfg -dtype fp32
says 'fp32, training'
plan off.cfg -amp fp32
says 'fp32, training'
plan known.cfg -amp off
says 'The .cfg does not turn AMP on'

# The memory that is compared with is what a limit leaves; a batch that does not fit is listed only
# if the .cfg asks for it.
if [ -z "${SANITIZERS:-}" ]; then
    for asked in 100000 131072; do # the second is a power of two, as all that are listed anyway
        (ulimit -v 1000000; "$DARKNET" amp plan known.cfg -batch $asked -subdivisions 1 -json limited.json \
            > out 2> err) || fail "under ulimit -v: $(tail -n 2 err)"
        says ' GiB of 0.95 GiB of address space (ulimit -v)'
        "$python" agree.py limited.json out || fail 'table and JSON differ under ulimit -v'
        grep -q '^ *65536 ' out && fail "65536 images a pass are listed, which do not fit: $(cat out)"
        holds out "^ *$asked .*\*"
    done
fi

# On a GPU, which a double plays: nothing is run there either, and the JSON names the engines.
on_doubles=$BUILD_DIR/tests/darknet-on-doubles
if [ -x "$on_doubles" ]; then
    succeeds "$on_doubles" amp plan known.cfg -json gpu.json
    holds err '^doubles: 0 kernels, 0 convolutions, 0 products, 0 faults$'
    holds gpu.json '"kernel": .*, Tensor Cores'
    "$python" agree.py gpu.json out || fail 'table and JSON differ on the doubles'
    ! AMP_DOUBLE_GPU=7.5 "$on_doubles" amp plan known.cfg > out 2> err || fail 'planned without bf16'
    holds err 'bf16 needs a GPU of compute capability 8.0 .*: set dtype=fp16$'
fi

# A machine that only stores the dtype, and (on the doubles above) one that lacks it.
DNNL_MAX_CPU_ISA=SSE41 plan known.cfg
holds out '^  *not native  *nothing: bf16 saves memory here, not time$'

# Every network that Darknet ships, from its own folder, where they look for their trees. darknet53
# and its like in a moment.
here=$PWD
cd "$DARKNET_TREE"
for cfg in cfg/*.cfg; do
    [ -z "${SANITIZERS:-}" ] || case $cfg in *tiny*|*voc*|cfg/gru*) ;; *) continue ;; esac # they are slow
    "$DARKNET" amp plan $cfg -json "$here/each.json" > "$here/each.out" 2> "$here/each.err" ||
        fail "$cfg: $(tail -n 1 "$here/each.err")"
    "$python" "$here/agree.py" "$here/each.json" "$here/each.out" || fail "table and JSON differ for $cfg"
done
cd "$here"

# What each command takes, a line for every option: asked for on stdout; before the line that says
# what is wrong on stderr.
for verb in 'amp check' 'amp plan' 'amp bench' 'amp compare' 'amp probe' 'amp log' 'amp valid' 'amp clean' \
    'detector map'; do
    "$DARKNET" $verb -h > help 2> err || fail "$verb -h: status $?"
    "$DARKNET" $verb --help 2> err | cmp - help || fail "$verb --help says something else than -h"
    options=$(sed -n '0,/^  -/s/^  -.*/ \\[options]/p' help)
    head -n 1 help | grep -q "^usage: darknet $verb [^a-z]*C[FS][GV][^a-z]*$options$" ||
        fail "$verb -h: $(cat help)"
    cp help all && sed -i '/^The keys of /,$d' help # amp check's go on with those of [amp]
    ! sed 1d help | grep -v '^  [A-Z-][a-zA-Z]*\( [^ ]*\)\? \+[a-z][a-z0-9]* .*[a-z)]$' ||
        fail "$verb -h: these lines explain nothing"
    ! grep -n '.\{111\}' all || fail "$verb -h: these lines are too wide"
    ! "$DARKNET" $verb > out 2> err && [ ! -s out ] || fail "$verb alone: status 0, or $(cat out)"
    head -n -1 err | cmp - help && tail -n 1 err | grep -q "^$verb: [A-Z]* is missing$" ||
        fail "$verb alone: $(cat err)"
done
for key in 'amp  *.1]' 'growth_interval  *.2000]' 'checkpoint  *.off]' 'memory  *.what is free]'; do
    "$DARKNET" amp check -h | grep -q "^  $key [a-z0]" || fail "amp check -h: no $key"
done
"$DARKNET" amp check known.cfg > out && grep -q '^\[amp\]: ' out || fail "amp check: $(cat out)"
"$DARKNET" amp -h > help && grep -q '^  plan  *which layers' help || fail "amp -h: $(cat help)"

refused() { # refused <expression for the last line> <arguments>
    ends_saying "$1" "$DARKNET" amp plan "${@:2}"
    [ ! -s out ] || fail "amp plan ${*:2} printed half a result: $(head -n 3 out)"
}
refused 'needs -ranks N' known.cfg -link 3
refused 'missing.cfg: No such file' missing.cfg
refused 'known.cfg with this -batch and -subdivisions: \[net\] subdivisions = 2: batch = 1' known.cfg -batch 1
mkdir -p folder
# Large libraries count, as those of OpenCV: here one of 64 MiB, of which every page is read.
head -c 67108864 /dev/zero > zeros
cc -shared -fPIC -x c - -o large.so <<'END'
__asm__(".section .rodata\nlarge:\n.incbin \"zeros\"\n.text");
extern const char large[];
__attribute__((constructor)) static void read_it(void)
{
    for (long i = 0; i < 67108864; i += 4096) (void)*(const volatile char *)(large + i);
}
END
memory_of() { sed -n '/"images_per_pass": 1,/,/}/s/.*"amp": \([0-9]*\).*/\1/p' "$1"; }
plan known.cfg -json small.json
succeeds preloaded large.so "$DARKNET" amp plan known.cfg -json large.json
[ $(($(memory_of large.json) - $(memory_of small.json))) -ge 67108864 ] ||
    fail "a library of 64 MiB makes $(memory_of large.json) bytes of $(memory_of small.json)"
rm zeros large.so

refused 'folder' known.cfg -json folder
[ -z "$(ls folder)" ] || fail 'something was written although the JSON could not be'
echo before > kept.json
printf '[net]\nbatch=1\nwidth=8\nheight=8\nchannels=3\n[amp]\ndtype=int4\n[maxpool]\n' > bad.cfg
refused 'bad.cfg:7: ' bad.cfg -json kept.json
[ "$(cat kept.json)" = before ] || fail 'a plan that failed wrote its JSON'
