/* weights_distance A B MOST MOST_OF_BLOCK: fails unless two .weights files hold as many numbers, and the L2
 * norm of their difference is at most MOST times that of the first; in each block of 8 numbers, as a layer's
 * 8 rolling means are one, at most MOST_OF_BLOCK times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 20, BLOCK = 8 }; /* bytes of three ints and `seen`, which must be equal */

static unsigned char *read_all(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    unsigned char *bytes = malloc(1 << 24);
    *size = file && bytes ? fread(bytes, 1, 1 << 24, file) : 0;
    if (file) fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    size_t sizes[2];
    unsigned char *files[2] = { argc == 5 ? read_all(argv[1], &sizes[0]) : NULL,
                                argc == 5 ? read_all(argv[2], &sizes[1]) : NULL };
    if (!files[0] || !files[1] || sizes[0] <= HEAD || sizes[0] != sizes[1]
        || memcmp(files[0], files[1], HEAD)) {
        printf("not two files of one training\n");
        return 1;
    }
    double norm = 0, distance = 0, block_norm = 0, block_distance = 0, worst = 0;
    size_t count = (sizes[0] - HEAD) / sizeof(float), at = 0;
    for (size_t i = 0; i < count; i++) {
        float a, b;
        memcpy(&a, files[0] + HEAD + i * sizeof a, sizeof a);
        memcpy(&b, files[1] + HEAD + i * sizeof b, sizeof b);
        norm += (double)a * a;
        distance += ((double)a - b) * ((double)a - b);
        block_norm += (double)a * a;
        block_distance += ((double)a - b) * ((double)a - b);
        if ((i + 1) % BLOCK && i + 1 < count) continue;
        if (block_norm > 0 && block_distance / block_norm > worst * worst) {
            worst = sqrt(block_distance / block_norm);
            at = i / BLOCK * BLOCK;
        }
        block_norm = block_distance = 0;
    }
    distance = sqrt(distance / norm);
    printf("distance %.2g; %.2g in the block at number %zu\n", distance, worst, at);
    return !(distance <= atof(argv[3]) && worst <= atof(argv[4]));
}
