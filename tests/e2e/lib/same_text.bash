# Without AMP, what the compiler is given of a patched Darknet is stock's text, but for assertions, which hold
# lines' numbers, and for spaces. In a GPU build stock is what compiles with today's CUDA, whose headers say
# nothing here: they are empty.
same_text() { # same_text <stock> <patched>
    local only=$(basename "$1").gpu empty=$PWD/cuda_headers
    mkdir -p "$empty"
    (cd "$empty" && touch cuda.h cuda_runtime.h cuda_runtime_api.h cublas_v2.h curand.h cudnn.h)
    "$SOURCE_DIR/patches/apply.sh" --sources-only --only "cuda-toolkit.patch cuda-math.patch" "$1" "$only"
    same_preprocessed "$1" "$2"
    same_preprocessed "$only" "$2" -DGPU -DCUDNN -DCUDNN_HALF -DCUDNN_MAJOR=9
}
same_preprocessed() { # same_preprocessed <stock> <patched> <options of the compiler...>
    local stock=$1 patched=$2 file
    shift 2
    for file in $(cd "$stock" && ls src/*.c src/*.cu examples/*.c 2> /dev/null); do
        preprocessed "$stock" "$file" "$@" > stock.i
        preprocessed "$patched" "$file" "$@" > patched.i
        cmp -s stock.i patched.i || fail "without AMP, $file is not stock Darknet's ($*)"
    done
}
preprocessed() { # preprocessed <tree> <file> <options of the compiler...>
    local tree=$1 file=$2 language=c
    shift 2
    case $file in *.cu) language=c++ ;; esac
    cc -E -P -x $language -DNDEBUG -D__LINE__=0 -D__FILE__=0 "$@" -I"$tree/include" \
        -I"$tree/src" -I"$tree/3rdparty/stb/include" -I"$PWD/cuda_headers" "$tree/$file" \
        2> log > with_spaces.i ||
        fail "$file cannot be preprocessed ($*): $(grep -m 1 error log)" >&2
    tr -d ' \t\n' < with_spaces.i
}
