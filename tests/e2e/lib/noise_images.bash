# Images for tiny_training that repeat in no way, so that no two places of a layer's output are equal.
noise_images() {
    local i
    for i in 1 2 3 4 5 6 7 8; do
        { printf 'P6\n40 30\n255\n'; LC_ALL=C awk -v i=$i 'BEGIN {
            s = i
            for (y = 0; y < 30; y++) for (x = 0; x < 40; x++) for (c = 0; c < 3; c++) {
                s = (s * 1103 + 12345) % 65536
                printf "%c", 1 + int(100 + 60 * sin((x + c) / (2 + i)) + 40 * cos(y / 3) + 50 * s / 65536)
            } }'; } > images/$i.jpg
    done
}
