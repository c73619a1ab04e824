# ThreadSanitizer over the OpenMP loops of the CPU backend. gcc's libgomp hides its barriers from it; clang's
# OpenMP tells them to it through Archer. So the kernels and their tests, which need no other library, are
# compiled once more with clang, with every loop shared out however small it is.
set -eu
. "$SOURCE_DIR/tests/e2e/lib/tiny_training.bash"
case $SANITIZERS in *thread*) ;; *) skip 'only in a build with ThreadSanitizer (the preset tsan)' ;; esac
command -v clang > /dev/null || skip 'there is no clang (Debian: clang, libomp-dev)'
# Without this, code that is not instrumented, libomp's own, is reported.
export TSAN_OPTIONS=ignore_noninstrumented_modules=1 OMP_NUM_THREADS=4
flags='-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -g -fsanitize=thread -fno-omit-frame-pointer -fopenmp'
flags+=' -Wall -Wextra -Wno-unused-parameter -Werror'

# The tools first: silent over a sum that is reduced, loud over one that is not.
control() { # control <name> <clause>
    cat > $1.c <<EOF
int main(void)
{
    int sum = 0;
#pragma omp parallel for $2
    for (int i = 0; i < 1000; i++) sum += i;
    return sum < 0;
}
EOF
    clang $flags $1.c -o $1 > $1.log 2>&1 ||
        skip "clang has no OpenMP or no ThreadSanitizer: $(tail -1 $1.log)"
    ./$1 > $1.log 2>&1
}
control reduced 'reduction(+ : sum)' ||
    skip 'libarcher is not beside libomp, or ThreadSanitizer does not start here'
! control raced '' || fail 'a race is not reported'

cp -r "$SOURCE_DIR/plugin" .
sed -i '/#pragma omp/s/ if (\(.*\))$/ if (1 || (\1))/' plugin/backend/cpu/*.c
objects=
for source in plugin/backend/cpu/*.c; do
    name=$(basename $source .c)
    more=
    case $name in
        onednn*) continue ;;
        *_avx2) more='-mavx2 -mfma -mf16c' ;;
        *_avx512) more='-march=x86-64-v4 -mprefer-vector-width=512' ;;
    esac
    clang $flags $more -c $source -o $name.o
    objects="$objects $name.o"
done
loops=$(cat plugin/backend/cpu/*.c | grep -c 'pragma omp parallel')
compiled=$(for o in $objects; do cat plugin/backend/cpu/${o%.o}.c; done | grep -c 'pragma omp parallel')
[ "$loops" = "$compiled" ] || fail "$compiled of $loops parallel loops were compiled"

tests="-I$SOURCE_DIR/tests -I$SOURCE_DIR/tests/helpers"
for source in machine_cpu no_onednn; do
    clang $flags -Iplugin $tests -c "$SOURCE_DIR/tests/conformance/$source.c" -o $source.o
    objects="$objects $source.o"
done

for test in "$SOURCE_DIR"/tests/backend/test_backend_{kernels_*,cast,step,yolo}.c; do
    name=$(basename "$test" .c)
    clang $flags -Iplugin $tests "$test" $objects -o $name -lcmocka -lm -no-pie \
        -Wl,--unresolved-symbols=ignore-all
    ./$name > $name.log 2>&1 || fail "$name: $(grep -m 3 'SUMMARY\|FAILED' $name.log; tail -3 $name.log)"
    echo "$name: $(grep -c '       OK' $name.log) tests, no race"
done
