/*
 * In: a name that fits nothing. Out: the nearest name that would.
 */
#include "route/hints.h"

#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/option.h"

#define COMPARED 4000u

/* "layers.12." inside a name: start and length; 0 if there is none. */
static size_t layer_of(const char *name, const char **start)
{
    static const char *const words[] = {"layers.", "h.", "blocks.", NULL};

    for (int i = 0; words[i] != NULL; i++) {
        const char *at = strstr(name, words[i]);
        if (at == NULL)
            continue;
        const char *digit = at + strlen(words[i]);
        const char *end = digit;
        while (isdigit((unsigned char)*end))
            end++;
        if (end > digit && *end == '.') {
            *start = at;
            return (size_t)(end + 1 - at);
        }
    }
    return 0;
}

static bool same_layer(const char *a, const char *b)
{
    const char *x, *y;
    size_t m = layer_of(a, &x), n = layer_of(b, &y);

    return m == n && (m == 0 || memcmp(x, y, m) == 0);
}

static unsigned search(const char *name, uint64_t count,
                       const char *(*get)(void *, uint64_t), void *ctx,
                       bool in_layer, const char **best)
{
    unsigned least = 255, compared = 0;

    for (uint64_t i = 0; i < count && compared < COMPARED; i++) {
        const char *other = get(ctx, i);
        if (other == NULL || (in_layer && !same_layer(name, other)))
            continue;
        compared++;
        unsigned distance = lade_edit_distance(name, other);
        if (distance < least) {
            least = distance;
            *best = other;
        }
    }
    return least;
}

const char *lade_hint_nearest(const char *name, uint64_t count,
                              const char *(*get)(void *ctx, uint64_t i),
                              void *ctx)
{
    const char *best = NULL;
    unsigned far = (unsigned)lade_min_u64(strlen(name) / 2, 254);

    if (search(name, count, get, ctx, true, &best) <= far)
        return best;
    best = NULL;
    return search(name, count, get, ctx, false, &best) <= far ? best : NULL;
}

bool lade_hint_is_quantised(const char *name)
{
    static const char *const ends[] = {"weight_scale",
                                       "weight_scale_inv",
                                       "input_scale",
                                       "weight_scale_2",
                                       "qweight",
                                       "qzeros",
                                       "scales",
                                       "weight_packed",
                                       "weight_shape",
                                       "weight_global_scale",
                                       "g_idx",
                                       ".absmax",
                                       "_blocks",
                                       "weight_zero_point",
                                       "input_global_scale",
                                       NULL};
    size_t n = strlen(name);

    for (int i = 0; ends[i] != NULL; i++) {
        size_t m = strlen(ends[i]);
        if (n >= m && strcmp(name + n - m, ends[i]) == 0)
            return true;
    }
    return false;
}
