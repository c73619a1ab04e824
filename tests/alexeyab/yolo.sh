#!/bin/sh
# yolo.sh LIBRARY: compiles AlexeyAB's yolo layer into a library. Its tree is alexeyab/ in one of the folders
# of DARKNET_AMP_TREES (default: darknet-amp/trees in the user's cache folder); without one there is no
# library, and status 77. Without -Ofast, which takes its tests for inf and NaN away.
set -eu
rm -f "$1"
trees=${DARKNET_AMP_TREES:-${XDG_CACHE_HOME:-${HOME:-/}/.cache}/darknet-amp/trees}
IFS=:
for folder in $trees; do
    tree=$folder/alexeyab
    [ -f "$tree/src/yolo_layer.c" ] || continue
    ${CC:-cc} -shared -fPIC -w -O1 -ffp-contract=off -fvisibility=hidden -ffunction-sections \
        -Wl,--gc-sections,--no-undefined -I"$tree/include" -I"$tree/src" -I"$tree/3rdparty/stb/include" \
        -I"$SOURCE_DIR/plugin" \
        "$SOURCE_DIR/tests/alexeyab/yolo.c" "$tree/src/box.c" "$tree/src/activations.c" "$tree/src/blas.c" \
        "$tree/src/utils.c" -o "$1" -lm -lpthread
    exit 0
done
echo "skipped: AlexeyAB's tree is in none of these folders: $trees" # DARKNET_AMP_TREES
exit 77
