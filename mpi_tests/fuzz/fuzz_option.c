/*
 * Lines of a text as the words of a command line; the whole text as a size, as
 * a word to be found, and as a settings file's worth of values.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/option.h"

#define MOST_WORDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct values {
    bool flag;
    uint32_t number;
    uint64_t bytes;
    double seconds;
    const char *text, *list;
    int choice;
};

static const char *const choices[] = {"auto", "world", "node", NULL};

#define ROW(name, letter, kind, member, min, max, words)                       \
    {                                                                          \
        name, letter, "X", "help", kind, 1, offsetof(struct values, member),   \
            min, max, words, NULL                                              \
    }
static const struct lade_option table[] = {
    ROW("flag", 'f', LADE_OPT_FLAG, flag, 0, 0, NULL),
    ROW("number", 'n', LADE_OPT_U32, number, 1, 64, NULL),
    ROW("bytes", 0, LADE_OPT_SIZE, bytes, 0, 0, NULL),
    ROW("seconds", 's', LADE_OPT_SECONDS, seconds, 0, 0, NULL),
    ROW("text", 't', LADE_OPT_TEXT, text, 0, 0, NULL),
    ROW("list", 'l', LADE_OPT_LIST, list, 0, 0, NULL),
    ROW("choice", 'c', LADE_OPT_CHOICE, choice, 0, 0, choices),
};
enum { ROWS = sizeof(table) / sizeof(*table) };

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void parse(char *lines, struct lade_arena *arena)
{
    struct values values;
    struct lade_option_set set = {
        .table = table, .count = ROWS, .verb = 1, .values = &values};
    char *argv[MOST_WORDS];
    const char *words[4];
    int argc = 0, count = 0;
    lade_err err = LADE_ERR_INIT;

    set.arena = arena;
    while (*lines && argc < MOST_WORDS) {
        argv[argc++] = lines;
        lines += strcspn(lines, "\n");
        if (*lines)
            *lines++ = 0;
    }
    if (lade_option_parse(&set, argc, argv, words, 4, &count, &err) !=
        LADE_OK) {
        must(err.status == LADE_E_USAGE && err.text[0]);
        return;
    }
    must(values.choice >= 0 && values.choice < 3 && count <= 4);
    must(!set.given[1] || (values.number >= 1 && values.number <= 64));
    must(values.seconds >= 0 && values.seconds < 1e9);
    cJSON *echo = lade_option_echo(&set);
    must(echo != NULL);
    cJSON_Delete(echo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct lade_arena arena;
    uint64_t bytes;

    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "");
    lade_option_size(text, &bytes, NULL);
    const char *near = lade_nearest(text, choices);
    must(near == NULL || lade_edit_distance(text, near) < 255);
    lade_text_clean(text);
    must(strlen(text) <= size);
    memcpy(text, data, size); /* as it was, with its line ends */
    lade_arena_init(&arena, NULL, LADE_TAG_TEMP);
    parse(text, &arena);
    lade_arena_fini(&arena);
    free(text);
    return 0;
}
