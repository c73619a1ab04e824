# What the device computes natively is not remarked on; what it only stores, and what it lacks, is said in one
# line. oneDNN can be told to pretend.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
tiny_training
cp labels/* images/ # where AlexeyAB's Darknet looks for them
train() { # train <instruction set> <dtype>
    succeeds env DNNL_MAX_CPU_ISA=$1 "$DARKNET" detector train tiny.data tiny.cfg -amp $2 -seed 1
}
says() { # says <times> <expression> <what is missing or too much>
    [ "$(grep -c "$2" err)" = "$1" ] || fail "$3"
}

has() { # has <expression>: the processor, by what it says of itself
    grep -q "$1" /proc/cpuinfo
}
# As oneDNN sees it: a virtual machine may show AMX, and not let programs use it.
level=$(DNNL_MAX_CPU_ISA=DEFAULT "$DARKNET" amp version | sed -n 's/^ *oneDNN [0-9.]*, \([^,]*\),.*/\1/p')
bf16_is_faster() {
    case $level in
        *amx*) return 0 ;;
        avx512_core_bf16 | avx512_core_fp16) ! has GenuineIntel ;;
        *) return 1 ;;
    esac
}

# Any CPU stores halves. Where it does not compute in them, or is slower so, it trains, and says that no time
# is saved, and why.
behaviour_34_a_dtype_the_cpu_only_stores_is_said() {
    local dtype
    for dtype in bf16 fp16; do
        stored SSE41 $dtype
        ! has avx2 || stored AVX2 $dtype
    done
    has amx_fp16 || stored DEFAULT fp16
    bf16_is_faster || stored DEFAULT bf16
}
stored() { # stored <instruction set> <dtype>
    train $1 $2
    says 1 "^amp: $2 saves memory but no time here: stored in $2, computed in fp32 (oneDNN .*: .*)$" \
        "no message that $1 only stores $2"
    says 1 "^amp: summary dtype=$2 steps=5 " "training in stored $2 did not finish"
}

# What runs at full speed has no such line.
behaviour_34_no_message_where_nothing_lacks() {
    train DEFAULT fp32
    says 0 'saves memory but no time' 'a message about fp32, which every CPU has'
    bf16_is_faster || return 0
    train DEFAULT bf16
    says 0 'saves memory but no time' 'a message about bf16, which this CPU computes'
}

# A GPU older than Ampere has no bf16 (the doubles play one): one line says what to set,
# and nothing is trained.
behaviour_34_a_dtype_the_device_lacks_is_refused_with_a_line() {
    local on_doubles=$BUILD_DIR/tests/darknet-on-doubles
    [ -x "$on_doubles" ] || return 0
    rm -f backup/*
    if AMP_DOUBLE_GPU=7.5 "$on_doubles" detector train tiny.data tiny.cfg -amp bf16 > out 2> err; then
        fail 'trained in a dtype that the device lacks'
    fi
    says 1 \
        '^amp: bf16 needs a GPU of compute capability 8.0 (Ampere) or later (this one: 7.5): set dtype=fp16' \
        "no message that the device lacks bf16: $(cat err)"
    [ -z "$(ls backup)" ] || fail 'files were written'
}

# The same for a bug report, with what the program is.
version_says_what_a_bug_report_needs() {
    local version
    version=$(sed -n 's/.*AMP_VERSION "\(.*\)"/\1/p' "$SOURCE_DIR/plugin/host/program/version.h")
    DNNL_MAX_CPU_ISA=SSE41 "$DARKNET" amp version > version || fail "amp version ends with status $?"
    for line in "Darknet AMP $version" "  Darknet   .*'s; patches for its commit [0-9a-f]*" \
        '  compiler  [a-zA-Z ]*[0-9.]\+.*' '  JPEGs     [a-z].*' '  CPU       ..*' \
        '  oneDNN [0-9.]*, sse41, threads: 1' \
        '  fp32     native *' '  bf16     storage *bf16 .*'; do
        grep -qx "$line" version || fail "amp version: no line '$line' in: $(cat version)"
    done
    ! "$DARKNET" amp version x > version 2> err && [ ! -s version ] || fail 'amp version takes a file'
    [ "$(head -n 1 err)" = 'usage: darknet amp version' ] || fail "amp version x: $(cat err)"
}

behaviour_34_a_dtype_the_device_lacks_is_refused_with_a_line
version_says_what_a_bug_report_needs
for DARKNET in "$DARKNET" ${ALEXEYAB:+"$ALEXEYAB"}; do
    behaviour_34_a_dtype_the_cpu_only_stores_is_said
    behaviour_34_no_message_where_nothing_lacks
done
