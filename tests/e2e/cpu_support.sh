# What the CPU computes natively is said, and a CPU that lacks the instructions gets fp32 and a message, not a
# crash and not a training that is slow without a word. oneDNN can be told to pretend.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
train() { # train <instruction set> <dtype>
    DNNL_MAX_CPU_ISA=$1 "$DARKNET" detector train tiny.data tiny.cfg -amp $2 -seed 1 > out 2> err ||
        fail "$2 on $1: $(tail -1 err)"
}
says() { # says <times> <expression> <what is missing or too much>
    [ "$(grep -c "$2" err)" = "$1" ] || fail "$3"
}

# No instructions at all: one line says so and what to set, and the summary tells fp32.
behaviour_34_a_dtype_the_cpu_lacks_is_said_and_runs_as_fp32() {
    local dtype
    for dtype in bf16 fp16; do
        train SSE41 $dtype
        says 1 "^amp: $dtype needs a CPU with AVX2 and F16C (this one: sse41): set dtype=fp32" \
            "no message that $dtype cannot run on sse41"
        says 1 '^amp: fp32 on .*sse41' "the first line does not say fp32 where $dtype was asked"
        says 1 '^amp: summary dtype=fp32 steps=5 ' 'training did not go on in fp32'
    done
}

# The library's instructions without those that casts need (AVX2, but no F16C) would train slowly:
# not in silence either.
behaviour_34_a_cpu_without_fast_casts_is_said_and_runs_as_fp32() {
    AMP_CPU_ISA=sse2 train DEFAULT bf16
    says 1 '^amp: bf16 needs a CPU with AVX2, FMA and F16C (this one: sse2): set dtype=fp32' \
        'no message that casts would be slow'
    says 1 '^amp: summary dtype=fp32 steps=5 ' 'training did not go on in fp32'
}

# Instructions to store halves, but not to compute: trains, and says that no time is saved.
behaviour_34_a_dtype_the_cpu_only_stores_is_said() {
    stored AVX2 bf16
    stored AVX2 fp16
    grep -q avx512_fp16 /proc/cpuinfo || stored DEFAULT fp16
}
stored() { # stored <instruction set> <dtype>
    train $1 $2
    says 1 "^amp: $2 saves memory but no time here" "no message that $1 only stores $2"
    says 1 "^amp: summary dtype=$2 steps=5 " "training in stored $2 did not finish"
}

# What runs at full speed has no such line.
behaviour_34_no_message_where_nothing_lacks() {
    train DEFAULT fp32
    says 0 'saves memory but no time\|needs a CPU' 'a message about fp32, which every CPU has'
    grep -q avx512_bf16 /proc/cpuinfo || return 0
    train DEFAULT bf16
    says 0 'saves memory but no time\|needs a CPU' 'a message about bf16, which this CPU computes'
}

# The same for a bug report, with what the program is.
version_says_what_a_bug_report_needs() {
    local version
    version=$(sed -n 's/.*AMP_VERSION "\(.*\)"/\1/p' "$SOURCE_DIR/plugin/commands/version.h")
    DNNL_MAX_CPU_ISA=SSE41 "$DARKNET" amp version > version || fail "amp version ends with status $?"
    for line in "Darknet AMP $version" "  Darknet   .*'s; patches for its commit [0-9a-f]*" \
        '  compiler  [a-zA-Z ]*[0-9.]\+.*' '  CPU       ..*' '  oneDNN [0-9.]*, sse41, 1 thread' \
        '  fp32     native *' '  bf16     \(none\|storage\) *bf16 .*'; do
        grep -qx "$line" version || fail "amp version: no line '$line' in: $(cat version)"
    done
    ! "$DARKNET" amp version x > version 2> err && [ ! -s version ] || fail 'amp version takes a file'
    [ "$(head -n 1 err)" = 'usage: darknet amp version' ] || fail "amp version x: $(cat err)"
}

behaviour_34_a_dtype_the_cpu_lacks_is_said_and_runs_as_fp32
behaviour_34_a_cpu_without_fast_casts_is_said_and_runs_as_fp32
! grep -q avx2 /proc/cpuinfo || behaviour_34_a_dtype_the_cpu_only_stores_is_said
behaviour_34_no_message_where_nothing_lacks
version_says_what_a_bug_report_needs
