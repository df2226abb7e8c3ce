/*
 * In: untrusted text. Out: a cJSON tree that is what the text says, or an
 * error with its place. A strict scan comes first, since cJSON accepts 01,
 * NUL in names and more; the tree is then searched for repeated names.
 */
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

#define EXACT 9007199254740992.0   /* 2^53 */
#define TOP 9223372036854775808ULL /* 2^63 */

struct scan {
    const char *text;
    size_t length, at;
    const char *what;
    int status;
    lade_err *err;
};

static int bad(const struct scan *s, const char *why)
{
    return lade_err_set(s->err, s->status, "%s: byte %zu: %s", s->what, s->at,
                        why);
}

static int peek(const struct scan *s)
{
    return s->at < s->length ? (unsigned char)s->text[s->at] : -1;
}

static void blanks(struct scan *s)
{
    for (int c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r';
         c = peek(s))
        s->at++;
}

static int hex4(struct scan *s, unsigned *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(s);
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (unsigned)((c | 32) - 'a' + 10);
        else
            return bad(s, "\\u needs four hex digits");
        *value = *value * 16 + digit;
        s->at++;
    }
    return LADE_OK;
}

static int escape(struct scan *s)
{
    unsigned value, low;

    s->at++; /* the backslash */
    int c = peek(s);
    if (c < 0 || strchr("\"\\/bfnrtu", c) == NULL || c == 0)
        return bad(s, "unknown escape in a string");
    s->at++;
    if (c != 'u')
        return LADE_OK;
    if (hex4(s, &value) != LADE_OK)
        return s->status;
    if (value == 0)
        return bad(s, "NUL in a string");
    if (value >= 0xdc00 && value <= 0xdfff)
        return bad(s, "unpaired surrogate in a string");
    if (value < 0xd800 || value > 0xdbff)
        return LADE_OK;
    if (s->length - s->at < 6 || memcmp(s->text + s->at, "\\u", 2) != 0)
        return bad(s, "unpaired surrogate in a string");
    s->at += 2;
    if (hex4(s, &low) != LADE_OK)
        return s->status;
    return low >= 0xdc00 && low <= 0xdfff
               ? LADE_OK
               : bad(s, "unpaired surrogate in a string");
}

/* One character beyond ASCII: well-formed, shortest, no surrogate. */
static int utf8(struct scan *s)
{
    const unsigned char *p = (const unsigned char *)s->text + s->at;
    size_t left = s->length - s->at;
    size_t more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    uint32_t value = p[0] & (more == 3 ? 0x07u : more == 2 ? 0x0fu : 0x1fu);
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

    if (p[0] < 0xc2 || p[0] > 0xf4 || left <= more)
        return bad(s, "not UTF-8");
    for (size_t i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return bad(s, "not UTF-8");
        value = value << 6 | (p[i] & 0x3fu);
    }
    if (value < least[more] || value > 0x10ffff ||
        (value >= 0xd800 && value <= 0xdfff))
        return bad(s, "not UTF-8");
    s->at += more + 1;
    return LADE_OK;
}

static int string(struct scan *s)
{
    s->at++; /* the quote */
    for (;;) {
        int c = peek(s), rc = LADE_OK;
        if (c < 0)
            return bad(s, "the text ends inside a string");
        if (c < 0x20)
            return bad(s, "control character in a string");
        if (c == '"') {
            s->at++;
            return LADE_OK;
        }
        if (c == '\\')
            rc = escape(s);
        else if (c >= 0x80)
            rc = utf8(s);
        else
            s->at++;
        if (rc != LADE_OK)
            return rc;
    }
}

static bool digits(struct scan *s)
{
    size_t before = s->at;

    while (peek(s) >= '0' && peek(s) <= '9')
        s->at++;
    return s->at > before;
}

static int number(struct scan *s)
{
    size_t start = s->at;
    bool whole = true;
    char copy[64];

    if (peek(s) == '-')
        s->at++;
    if (peek(s) == '0')
        s->at++;
    else if (!digits(s))
        return bad(s, "not a value");
    if (peek(s) >= '0' && peek(s) <= '9')
        return bad(s, "a number with a leading zero");
    if (peek(s) == '.') {
        whole = false;
        s->at++;
        if (!digits(s))
            return bad(s, "no digit after the point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        whole = false;
        s->at++;
        if (peek(s) == '+' || peek(s) == '-')
            s->at++;
        if (!digits(s))
            return bad(s, "no digit in the exponent");
    }
    size_t length = s->at - start;
    if (length >= sizeof(copy))
        return bad(s, "a number of more than 63 characters");
    memcpy(copy, s->text + start, length);
    copy[length] = 0;
    errno = 0;
    bool fits =
        whole ? strtoull(copy + (copy[0] == '-'), NULL, 10) <= TOP && errno == 0
              : isfinite(strtod(copy, NULL));
    s->at = fits ? s->at : start;
    return fits ? LADE_OK : bad(s, "a number out of range");
}

static int word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};

    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (s->length - s->at >= length &&
            memcmp(s->text + s->at, words[i], length) == 0) {
            s->at += length;
            return LADE_OK;
        }
    }
    return bad(s, "not a value");
}

/* After a name: the colon. */
static int name(struct scan *s)
{
    blanks(s);
    if (peek(s) != '"')
        return bad(s, "a name in quotes is missing");
    int rc = string(s);
    blanks(s);
    if (rc == LADE_OK && peek(s) != ':')
        rc = bad(s, "a colon is missing");
    s->at++;
    return rc;
}

/* Opens an object or array; *empty if it closes at once. */
static int open_level(struct scan *s, char *stack, int *depth, bool *empty)
{
    char open = s->text[s->at++];

    if (*depth == LADE_JSON_MAX_DEPTH)
        return bad(s, "nested deeper than 64 levels");
    stack[(*depth)++] = open;
    blanks(s);
    *empty = peek(s) == (open == '{' ? '}' : ']');
    if (!*empty && open == '{')
        return name(s);
    return LADE_OK;
}

static int scalar(struct scan *s)
{
    int c = peek(s);

    if (c == '"')
        return string(s);
    if (c == '-' || (c >= '0' && c <= '9'))
        return number(s);
    return c < 0 ? bad(s, "the text ends too early") : word(s);
}

/* After a value: closing brackets, then a comma or the end. */
static int after_value(struct scan *s, char *stack, int *depth)
{
    while (*depth > 0) {
        char open = stack[*depth - 1];
        blanks(s);
        int c = peek(s);
        if (c == ',') {
            s->at++;
            return open == '{' ? name(s) : LADE_OK;
        }
        if (c != (open == '{' ? '}' : ']'))
            return bad(s, open == '{' ? "a comma or } is missing"
                                      : "a comma or ] is missing");
        s->at++;
        (*depth)--;
    }
    return LADE_OK;
}

static int scan(struct scan *s)
{
    char stack[LADE_JSON_MAX_DEPTH];
    int depth = 0, rc;

    do {
        bool empty = false;
        blanks(s);
        if (peek(s) == '{' || peek(s) == '[') {
            rc = open_level(s, stack, &depth, &empty);
            if (rc != LADE_OK)
                return rc;
            if (!empty)
                continue;
        } else {
            rc = scalar(s);
            if (rc != LADE_OK)
                return rc;
        }
        rc = after_value(s, stack, &depth);
        if (rc != LADE_OK)
            return rc;
    } while (depth > 0);
    blanks(s);
    return s->at == s->length ? LADE_OK : bad(s, "text after the end");
}

static int unique_in(const cJSON *object, const char *what, int status,
                     lade_err *err)
{
    struct lade_map map;
    int rc = LADE_OK;

    lade_map_init(&map, NULL);
    for (const cJSON *item = object->child; item && rc == LADE_OK;
         item = item->next) {
        bool added;
        rc = lade_map_put(&map, item->string, strlen(item->string), 0, NULL,
                          &added, err);
        if (rc == LADE_OK && !added)
            rc = lade_err_set(err, status, "%s: the name %.200s stands twice",
                              what, item->string);
    }
    lade_map_fini(&map);
    return rc;
}

/* A handful of members needs no map. */
static int unique_in_small(const cJSON *object, const char *what, int status,
                           lade_err *err)
{
    if (cJSON_GetArraySize(object) > 8)
        return unique_in(object, what, status, err);
    for (const cJSON *a = object->child; a; a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->string, b->string) == 0)
                return lade_err_set(err, status,
                                    "%s: the name %.200s stands twice", what,
                                    a->string);
    return LADE_OK;
}

/* Depth is bounded by the scan. */
static int unique(const cJSON *item, const char *what, int status,
                  lade_err *err)
{
    int rc = LADE_OK;

    if (cJSON_IsObject(item))
        rc = unique_in_small(item, what, status, err);
    if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
        return rc;
    for (const cJSON *child = item->child; child && rc == LADE_OK;
         child = child->next)
        rc = unique(child, what, status, err);
    return rc;
}

int lade_json_parse(const char *text, size_t length, const char *what,
                    int status, cJSON **root, lade_err *err)
{
    struct scan s = {text, length, 0, what, status, err};
    int rc = scan(&s);

    if (rc != LADE_OK)
        return rc;
    cJSON *tree = cJSON_ParseWithLength(text, length);
    if (tree == NULL)
        return lade_err_set(err, LADE_E_MEMORY, "%s: no memory to parse it",
                            what);
    rc = unique(tree, what, status, err);
    if (rc == LADE_OK)
        *root = tree;
    else
        cJSON_Delete(tree);
    return rc;
}

static int read_whole(int fd, const char *path, char *text, size_t size,
                      lade_err *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, text + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lade_err_set(err, LADE_E_IO, "%s: %s", path,
                                strerror(errno));
        if (n == 0)
            return lade_err_set(err, LADE_E_CHECKPOINT,
                                "%s: ends at %zu of %zu bytes", path, done,
                                size);
        done += (size_t)n;
    }
    return LADE_OK;
}

int lade_json_read(const char *path, uint64_t limit, cJSON **root,
                   lade_err *err)
{
    char *text = NULL;
    struct stat st;
    int rc;
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe: no wait */

    if (fd < 0 || fstat(fd, &st) != 0) {
        int missing = errno == ENOENT || errno == ENOTDIR;
        rc = lade_err_set(err, missing ? LADE_E_CHECKPOINT : LADE_E_IO,
                          "%s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT, "%s: not a file", path));
    if ((uint64_t)st.st_size > limit)
        LADE_TRY(lade_err_set(
            err, LADE_E_CHECKPOINT, "%s: %llu bytes, at most %llu are accepted",
            path, (unsigned long long)st.st_size, (unsigned long long)limit));
    text = lade_alloc(NULL, LADE_TAG_TEMP, (size_t)st.st_size, err);
    if (text == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(read_whole(fd, path, text, (size_t)st.st_size, err));
    LADE_TRY(lade_json_parse(text, (size_t)st.st_size, path, LADE_E_CHECKPOINT,
                             root, err));
out:
    lade_free(NULL, text);
    if (fd >= 0)
        close(fd);
    return rc;
}

bool lade_json_i64(const cJSON *item, int64_t *value)
{
    if (!cJSON_IsNumber(item) || fabs(item->valuedouble) > EXACT ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *value = (int64_t)item->valuedouble;
    return true;
}

bool lade_json_u64(const cJSON *item, uint64_t *value)
{
    int64_t number;

    if (!lade_json_i64(item, &number) || number < 0)
        return false;
    *value = (uint64_t)number;
    return true;
}
