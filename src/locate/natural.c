/*
 * Natural order of file names. Mirrors vLLM: weight_utils.py,
 * _natural_sort_key.
 */
#include <ctype.h>
#include <string.h>

#include "locate/locate.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_digit(char c)
{
    return isdigit((unsigned char)c) != 0;
}

/* Compares two runs of digits as numbers and steps behind them. */
static int compare_numbers(const char **a, const char **b)
{
    const char *x = *a, *y = *b;

    while (*x == '0')
        x++;
    while (*y == '0')
        y++;
    size_t m = 0, n = 0;
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
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        x++;
        y++;
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b) < 0 ? -1 : strcmp(a, b) > 0;
}
