/*
 * In: files and folders of seeds. Out: 0 if the target took them all.
 *
 * Stands in for libFuzzer where there is none, so that the seeds run as a plain
 * test. Small seeds are also run cut off at every length, and with every byte
 * changed in a few ways: cheap, and where parsers fail.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST (UINT64_C(64) << 20)
#define SMALL 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long seeds, runs;

/* A copy of exactly that size, so that a sanitizer sees reads beyond it. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    runs++;
}

static void vary(uint8_t *data, size_t size)
{
    static const uint8_t flips[] = {0x01, 0x20, 0x80, 0xff};

    for (size_t i = 0; i < size; i++)
        run(data, i);
    for (size_t i = 0; i < size; i++)
        for (size_t f = 0; f < sizeof(flips); f++) {
            data[i] ^= flips[f];
            run(data, size);
            data[i] ^= flips[f];
        }
}

static int replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = size <= MOST ? malloc(size ? size : 1) : NULL;
    int bad = file == NULL || data == NULL ||
              (size > 0 && fread(data, 1, size, file) != size);

    if (bad) {
        fprintf(stderr, "%s: cannot be read\n", path);
    } else {
        seeds++;
        run(data, size);
        if (size <= SMALL)
            vary(data, size);
    }
    if (file != NULL)
        fclose(file);
    free(data);
    return bad;
}

static int replay(const char *path, int depth)
{
    char inner[PATH_MAX];
    struct stat st;
    int bad = 0;

    if (stat(path, &st) != 0) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(st.st_mode))
        return replay_file(path, (size_t)st.st_size);
    DIR *dir = depth < 8 ? opendir(path) : NULL;
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_name[0] == '.')
            continue;
        int n = snprintf(inner, sizeof(inner), "%s/%s", path, e->d_name);
        bad |= n < 0 || (size_t)n >= sizeof(inner) || replay(inner, depth + 1);
    }
    if (dir != NULL)
        closedir(dir);
    return bad || dir == NULL;
}

int main(int argc, char **argv)
{
    int bad = 0;

    for (int i = 1; i < argc; i++)
        bad |= replay(argv[i], 0);
    printf("%lu seeds, %lu runs\n", seeds, runs);
    return bad || seeds == 0;
}
