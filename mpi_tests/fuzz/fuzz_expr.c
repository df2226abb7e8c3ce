/*
 * Any text as an expression over a config, and as a name pattern.
 */
#include <stdlib.h>
#include <string.h>

#include "model/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static cJSON *parsed(const char *text)
{
    cJSON *root = cJSON_Parse(text);

    must(root != NULL);
    return root;
}

static struct lade_expr_scope the_scope(void)
{
    static const struct lade_expr_bound e = {"e", 9, NULL};
    static const struct lade_expr_bound l = {"l", 5, &e};
    static cJSON *config, *fallback, *let;

    if (config == NULL) {
        config = parsed("{\"h\":4096,\"n\":null,\"t\":true,\"r\":1.5,"
                        "\"s\":\"text\",\"a\":[0,3],\"o\":{\"d\":27},"
                        "\"big\":9007199254740992}");
        fallback = parsed("{\"layers\":61,\"n\":12}");
        let = parsed("{\"H\":\"h\",\"moe(l)\":\"l >= 3 && (l+1) % 2 == 0\","
                     "\"loop\":\"loop+1\",\"f(x)\":\"f(x-1)\"}");
    }
    return (struct lade_expr_scope){.config = config,
                                    .fallback = fallback,
                                    .let = let,
                                    .bound = &l,
                                    .what = "fuzz"};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lade_expr_scope scope = the_scope();
    lade_err check = LADE_ERR_INIT, eval = LADE_ERR_INIT;
    char *text = malloc(size + 1), name[128];
    int64_t value = 0;

    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    int syntax = lade_expr_check(text, &check);
    int rc = lade_expr_eval(&scope, text, &value, &eval);
    must(syntax == LADE_OK || rc != LADE_OK); /* no value without syntax */
    must((rc == LADE_OK) == (eval.text[0] == 0));
    if (lade_expr_format(&scope, text, name, sizeof(name), NULL) == LADE_OK)
        must(strlen(name) < sizeof(name));
    free(text);
    return 0;
}
