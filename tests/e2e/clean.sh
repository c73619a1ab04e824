# `darknet amp clean` writes a .cfg without anything of AMP's, and every other byte as it was: line ends,
# comments, blanks, a last line without an end. A mistake is one line, and leaves the file as it was.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training

# clean <program> <cfg>: to out.cfg, which is what standard output gets
clean() {
    succeeds "$1" amp clean "$2" out.cfg
    [ ! -s out ] && [ ! -s err ] || fail "$2: it says: $(cat out err)"
    "$1" amp clean "$2" | cmp - out.cfg || fail "$2: standard output gets something else"
    "$1" amp clean "$2" - | cmp - out.cfg || fail "$2: - is not standard output"
}

# Each line that begins with - goes.
cat > marked <<'END'
 # a comment with amp=1

 [net]
- a m p = 1
 batch=1
-dtype=bf16
 width = 8  
 ;dtype=fp16
 height=8
 channels=3
-init_scale= 1024

 # what follows is AMP's
- [ amp ]
-# of AMP
-growth_interval=100
-
-clip_norm=5
 
 # the first layer
 [convolutional]
-amp=0
 filters=3
 debug=1
-checkpoint = 1
 [convolutional]
 filters=3
 # the end
END
sed 's/^.//' marked > plain.cfg
sed -n '/^$/p; s/^ //p' marked > plain.expected
for name in plain crlf unended both; do
    case $name in
        crlf) sed -i 's/$/\r/' plain.cfg plain.expected ;;
        both) head -c -2 plain.cfg > cut.cfg && head -c -2 plain.expected > cut.expected ;;
        unended) sed 's/\r$//' plain.cfg | head -c -1 > cut.cfg
            sed 's/\r$//' plain.expected | head -c -1 > cut.expected ;;
    esac
    case $name in unended | both) file=cut ;; *) file=plain ;; esac
    clean "$DARKNET" $file.cfg
    cmp out.cfg $file.expected || fail "$name: $(diff $file.expected out.cfg | head -5)"
done
[ "$(tail -c 1 out.cfg)" = d ] || fail 'the last line was ended'

# The section at the end, and the file itself.
{ cat tiny.cfg; printf '[amp]\namp=1\ndtype=bf16'; } > own.cfg
"$DARKNET" amp clean own.cfg own.cfg
cmp own.cfg tiny.cfg || fail 'a section at the end'
# Without anything of AMP's every byte stays.
for cfg in "$DARKNET_TREE"/cfg/*.cfg; do
    "$DARKNET" amp clean "$cfg" | cmp - "$cfg" || fail "$cfg is another"
done
# Stock programs pass over AMP's keys in [net] and in layers, not over the section; they find the same boxes
# with what was cleaned, and no key that they do not know.
sed -e '/^\[net\]/a amp=1\ndtype=bf16' -e '/^\[convolutional\]/a amp=0\ncheckpoint=1' tiny.cfg > net.cfg
{ cat net.cfg; printf '[amp]\namp=1\n'; } > section.cfg
"$DARKNET" amp clean section.cfg clean.cfg
ln -s "$DARKNET_TREE/data" data # letters, without which pjreddie's draws no box
reads() { # reads <program> <option...>
    local cfg
    for cfg in tiny net clean; do
        "$@" detector test tiny.data $cfg.cfg start.weights images/1.jpg -dont_show -thresh .05 \
            < /dev/null 2> $cfg.err | sed 's/: Predicted in.*//' > $cfg.boxes
        cmp $cfg.boxes tiny.boxes || fail "$1: $cfg.cfg: $(tail -1 $cfg.err)"
    done
    [ "$(grep -c '%' tiny.boxes)" -gt 3 ] || fail "$1 finds no box: $(tail -2 tiny.err)"
    grep -q '^Unused field:.*amp = ' net.err || fail "$1 says nothing of amp=: the guide says that it does"
    ! grep 'Unused field' clean.err || fail "$1: unknown keys in what was cleaned"
}
if [ -n "$DARKNET_STOCK" ]; then
    sed 's/^max_batches=.*/max_batches=1/' tiny.cfg > start.cfg
    succeeds "$DARKNET" detector train tiny.data start.cfg -amp fp32 -seed 1
    mv backup/start_final.weights start.weights
    reads "$DARKNET_STOCK"
    [ -z "$ALEXEYAB_STOCK" ] || reads "$ALEXEYAB_STOCK"
fi
# loss_scale is AlexeyAB's too, where AMP is off.
if [ -n "$ALEXEYAB" ]; then
    sed '/^\[net\]/a loss_scale=128' tiny.cfg > scale.cfg
    clean "$ALEXEYAB" scale.cfg
    cmp scale.cfg out.cfg || fail "AlexeyAB's own loss_scale goes"
    sed '/^\[net\]/a amp=1\nloss_scale=dynamic' tiny.cfg > scale.cfg
    clean "$ALEXEYAB" scale.cfg
    cmp tiny.cfg out.cfg || fail "AMP's loss_scale stays"
fi

# ---- mistakes ----
refused() { # refused <what the line says> <arguments...>
    ends_saying "$1" "$DARKNET" amp clean "${@:2}"
    [ ! -s out ] && cmp -s kept.cfg tiny.cfg && [ -z "$(find . -name '*.new')" ] ||
        fail "${*:2}: something was written"
}
cp tiny.cfg kept.cfg
refused 'there.cfg: No such file' there.cfg kept.cfg
refused "images: Is a directory" images kept.cfg
refused 'cannot write there/x.cfg' tiny.cfg there/x.cfg
{ cat tiny.cfg; printf '[amp]\ndtpye=bf16\n'; } > bad.cfg
refused 'bad.cfg:[0-9]*: ' bad.cfg kept.cfg
[ ! -e /dev/full ] || ! "$DARKNET" amp clean tiny.cfg > /dev/full 2> err || fail 'a full disk is a success'

# ---- one reading ----
# A program opens its .cfg once, whatever reads it; the .data file likewise, and stock's training once more.
# Each image is opened once.
cc -shared -fPIC -x c - -o opens.so -ldl <<'END_OF_C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static FILE *counted(const char *function, const char *name, const char *mode)
{
    FILE *(*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, function);
    int counts = !strncmp(name, "tiny.", 5) || strstr(name, "images/1.jpg");
    FILE *file = counts ? real("opens", "a") : NULL;
    if (file) fprintf(file, "%s\n", name), fclose(file);
    return real(name, mode);
}
FILE *fopen(const char *name, const char *mode) { return counted("fopen", name, mode); }
FILE *fopen64(const char *name, const char *mode) { return counted("fopen64", name, mode); }
END_OF_C
opened() { # opened <times the .cfg> <times the .data file> <command...>
    rm -f opens
    OMP_WAIT_POLICY=passive succeeds preloaded opens.so "$DARKNET" "${@:3}"
    [ "$(grep -c 'tiny\.cfg' opens) $(grep -c 'tiny\.data' opens)" = "$1 $2" ] ||
        fail "${*:3}: the .cfg and the .data file are opened $(sort opens | uniq -c | tr -s '\n ' ' ')"
}
a_program_reads_its_files_once() {
    opened 1 2 detector train tiny.data tiny.cfg -amp fp32
    opened 1 0 amp plan tiny.cfg
    opened 1 1 amp plan tiny.cfg tiny.data -batch 2
    opened 1 1 amp check tiny.cfg tiny.data
    opened 1 0 amp clean tiny.cfg -
    opened 1 1 amp valid tiny.data tiny.cfg backup/tiny_final.weights
    [ "$(grep -c 'images/1.jpg$' opens)" = 1 ] || fail "an image is opened more than once: $(cat opens)"
}
a_program_reads_its_files_once
