/*
 * In: a word that is not known and those that are. Out: the one that was
 * probably meant.
 */
#include <string.h>

#include "base/option.h"

#define TOO_FAR 255

unsigned lade_edit_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned char row[256];

    if (m > 254 || n > 254)
        return strcmp(a, b) == 0 ? 0 : TOO_FAR;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned char)j;
    for (size_t i = 1; i <= m; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1u < best)
                best = row[j] + 1u;
            if (row[j - 1] + 1u < best)
                best = row[j - 1] + 1u;
            diagonal = row[j];
            row[j] = (unsigned char)best;
        }
    }
    return row[n];
}

const char *lade_nearest(const char *word, const char *const *words)
{
    size_t length = strlen(word);
    const char *best = NULL;
    unsigned least = length <= 3 ? 1 : length < 9 ? 2 : (unsigned)length / 3;

    for (; *words; words++) {
        unsigned distance = lade_edit_distance(word, *words);
        bool starts = length >= 3 && strncmp(word, *words, length) == 0;
        if (starts && distance > 1)
            distance = 1;
        if (distance < TOO_FAR && distance <= least &&
            (best == NULL || distance < least)) {
            best = *words;
            least = distance;
        }
    }
    return best;
}
