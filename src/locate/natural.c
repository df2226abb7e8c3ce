/*
 * Natural order of file names: a name is text, number, text, number, ...; runs
 * compare in turn, numbers as numbers, text by byte (which is by code point in
 * UTF-8). A text that ends before the other comes first, so a digit comes
 * before any other character, and the end of a name before a digit.
 *
 * Mirrors vLLM: weight_utils.py, _natural_sort_key.
 */
#include <string.h>

#include "locate/locate.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares two runs of digits as numbers of any size and steps behind them. */
static int compare_numbers(const char **a, const char **b)
{
    const char *x = *a, *y = *b;
    size_t m = 0, n = 0;

    while (*x == '0')
        x++;
    while (*y == '0')
        y++;
    while (is_digit(x[m]))
        m++;
    while (is_digit(y[n]))
        n++;
    *a = x + m;
    *b = y + n;
    if (m != n)
        return m < n ? -1 : 1;
    return memcmp(x, y, m);
}

/* Rank of a character that is not equal to the other's. */
static int weight(char c)
{
    if (c == 0)
        return 0;
    return is_digit(c) ? 1 : 2 + (unsigned char)c;
}

int lade_natural_compare(const char *a, const char *b)
{
    const char *x = base_name(a), *y = base_name(b);

    while (*x && *y) {
        if (is_digit(*x) && is_digit(*y)) {
            int order = compare_numbers(&x, &y);
            if (order != 0)
                return order < 0 ? -1 : 1;
            continue;
        }
        if (*x != *y)
            break;
        x++;
        y++;
    }
    int order = weight(*x) - weight(*y);
    if (order == 0)
        order = strcmp(a, b); /* m1 and m01: any fixed order */
    return order < 0 ? -1 : order > 0;
}
