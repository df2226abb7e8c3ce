/*
 * Family files: the ones compiled in, broken ones with their texts, and a file
 * of the user's own with kinds that the compiled-in ones do not use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/embed.h"
#include "base/log.h"
#include "model/family.h"

static struct lade_mem *mem;

static int set_up(void **state)
{
    (void)state;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "n0");
    mem = lade_mem_new();
    return !mem;
}

static int tear_down(void **state)
{
    (void)state;
    int left = (int)lade_mem_now(mem, LADE_TAG_CATALOGUE);
    lade_mem_free(mem);
    return left;
}

static void compiled_in(void **state)
{
    static const char *const names[] = {"llama", "mixtral", "qwen2", "qwen3",
                                        "qwen3_moe"};
    int count = 0;

    (void)state;
    for (const struct lade_embedded *d = lade_families; d->name; d++) {
        struct lade_family family = {0};
        lade_err err = LADE_ERR_INIT;
        int rc = lade_family_parse(d->text, d->length, d->name, &family, &err);
        if (rc != LADE_OK)
            print_error("%s\n", err.text);
        assert_int_equal(rc, LADE_OK);
        assert_string_equal(family.name, d->name);
        lade_family_close(&family);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            count += strcmp(names[i], d->name) == 0;
    }
    assert_int_equal(count, sizeof names / sizeof names[0]);
}

/* ---- broken files -------------------------------------------------------- */

#define HEAD "{\"family\":\"x\",\"architectures\":[\"X\"],"
#define NORM                                                                   \
    "{\"at\":\"norm\",\"kind\":\"vector\",\"n\":\"h\",\"stage\":\"last\"}"

static void refuses(const char *text, const char *says)
{
    struct lade_family family = {0};
    lade_err err = LADE_ERR_INIT;
    int rc = lade_family_parse(text, strlen(text), "family file x.json",
                               &family, &err);

    if (rc != LADE_E_USAGE || !strstr(err.text, says))
        print_error("%d \"%s\" for %s\n", rc, err.text, text);
    assert_int_equal(rc, LADE_E_USAGE);
    assert_non_null(strstr(err.text, "family file x.json"));
    assert_non_null(strstr(err.text, says));
    assert_null(family.root);
}

static void broken_top_level(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "byte 0"},
        {"[]", "an object is needed"},
        {"{}", "family: this key is needed"},
        {"{\"family\":3}", "family: a text is needed"},
        {"{\"family\":\"x\"}", "architectures: this key is needed"},
        {"{\"family\":\"x\",\"architectures\":[],\"modules\":[" NORM "]}",
         "architectures: a list of 1 to 8"},
        {"{\"family\":\"x\",\"architectures\":[\"a b\"],\"modules\":[" NORM
         "]}",
         "architectures: not a plain name: a b"},
        {HEAD "\"moduls\":[]}", "moduls: unknown key (nearest: modules)"},
        {HEAD "\"modules\":[]}", "modules: a list of modules is needed"},
        {HEAD "\"modules\":{}}", "modules: a list of modules is needed"},
        {HEAD "\"modules\":[" NORM "],\"let\":[]}", "let: an object"},
        {HEAD "\"modules\":[" NORM "],\"let\":{\"H\":\"1 +\"}}",
         "let: H: expression: expression \"1 +\": a value expected"},
        {HEAD "\"modules\":[" NORM "],\"let\":{\"H\":[]}}",
         "let: H: an expression is needed"},
        {HEAD "\"modules\":[" NORM "],\"let\":{\"a b\":1}}",
         "let: a b: NAME or NAME(ARGUMENTS)"},
        {HEAD "\"modules\":[" NORM "],\"let\":{\"f(\":1}}", "let: f(: NAME"},
        {HEAD "\"modules\":[" NORM "],\"text_config\":\"yes\"}",
         "text_config: true or false"},
        {HEAD "\"modules\":[" NORM "],\"names\":{}}", "names: a list of at"},
        {HEAD "\"modules\":[" NORM
              "],\"names\":[{\"kind\":\"middle\",\"from\":\"a\",\"to\":\"\"}]}",
         "names: kind: regex, substring, prefix or suffix, not middle"},
        {HEAD "\"modules\":[" NORM
              "],\"names\":[{\"kind\":\"prefix\",\"from\":\"\",\"to\":\"\"}]}",
         "names: from: a text is needed"},
        {HEAD "\"modules\":[" NORM
              "],\"names\":[{\"kind\":\"regex\",\"from\":\"(a\",\"to\":\"\"}]}",
         "names: from: not a regular expression: (a"},
        {HEAD "\"modules\":[" NORM
              "],\"drop\":[{\"kind\":\"prefix\",\"from\":\"a\"}]}",
         "drop: why: this key is needed"},
        {HEAD "\"modules\":[" NORM
              "],\"refuse\":[{\"if\":\"tp > 1\",\"why\":\"{q}\"}]}",
         "refuse: why: no variable of this place is named {q}"},
        {HEAD "\"modules\":[" NORM "],\"refuse\":[{\"if\":\"tp >\",\"why\":"
              "\"x\"}]}",
         "refuse: if: expression"},
        {HEAD "\"modules\":[" NORM "],\"modules\":[]}", "modules"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuses(bad[i].text, bad[i].says);
}

static const struct {
    const char *module, *says;
} bad_modules[] = {
    {"3", "a module without at: kind"},
    {"{\"at\":\"a\"}", "x.json, a: kind: this key is needed"},
    {"{\"at\":\"a\",\"kind\":\"vektor\",\"n\":1,\"stage\":\"last\"}",
     "a: unknown kind vektor (nearest: vector)"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"stage\":\"last\"}",
     "a: n: this key is needed"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1}",
     "a: stage: this key is needed"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"end\"}",
     "a: stage: first, last or layer EXPRESSION, not end"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"layer (\"}",
     "a: stage: first, last or layer"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\","
     "\"rows\":2}",
     "a: rows: unknown key"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":\"1 2\",\"stage\":\"last\"}",
     "a: n: expression"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1.5,\"stage\":\"last\"}",
     "a: n: an expression is needed"},
    {"{\"at\":\"a.{l}\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\"}",
     "a.{l}: at: no variable of this place is named {l}"},
    {"{\"at\":\"a.{l\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\"}",
     "at: { without } in a.{l"},
    {"{\"at\":\"a}\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\"}",
     "at: } without { in a}"},
    {"{\"at\":\"a{{}\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\"}",
     "at: { without } in"},
    {"{\"at\":\"\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\"}",
     "at: a name of 1 to 255 characters"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\","
     "\"dtype\":\"I8\"}",
     "a: dtype: unknown type I8"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\","
     "\"also\":\"b\"}",
     "a: also: a list of 1 to 8"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\","
     "\"optional\":\"b\"}",
     "a: optional: true or false"},
    {"{\"at\":\"a\",\"kind\":\"merged\",\"parts\":[\"b\",\"c\"],"
     "\"out\":[1],\"in\":1,\"stage\":\"last\"}",
     "a: parts: as many names as sizes in out"},
    {"{\"at\":\"a\",\"kind\":\"merged\",\"parts\":[],\"out\":[],\"in\":1,"
     "\"stage\":\"last\"}",
     "a list of 1 to 8"},
    {"{\"at\":\"a\",\"kind\":\"qkv\",\"parts\":[\"q\",\"k\"],\"heads\":1,"
     "\"kv_heads\":1,\"head_dim\":1,\"in\":1,\"stage\":\"last\"}",
     "a: parts: three names are needed"},
    {"{\"at\":\"a\",\"kind\":\"experts\",\"parts\":[\"g\",\"u\",\"d\"],"
     "\"count\":1,\"inter\":1,\"hidden\":1,\"stage\":\"last\"}",
     "a: disk: the name of an expert with {e} is needed"},
    {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"last\","
     "\"disk\":\"b.{e}\"}",
     "a: disk: no variable of this place is named {e}"},
    {"{\"at\":\"a\",\"kind\":\"head\",\"rows\":1,\"cols\":1,\"stage\":"
     "\"last\",\"tied_if\":true}",
     "a: tied_if: tied_to is needed with it"},
    {NORM "," NORM, "norm: two modules are at this path"},
    {"{\"for\":\"l in 0\",\"stage\":\"layer l\",\"modules\":[" NORM "]}",
     "l in 0: for: NAME in FROM..TO"},
    {"{\"for\":3,\"modules\":[" NORM "]}", "for: NAME in FROM..TO"},
    {"{\"for\":\"1 in 0..2\",\"modules\":[" NORM "]}", "for: NAME in"},
    {"{\"for\":\"l in 0..(\",\"modules\":[" NORM "]}", "for: NAME in"},
    {"{\"for\":\"l in 0..2\",\"modules\":[]}", "a list of modules"},
    {"{\"for\":\"l in 0..2\",\"modules\":[" NORM "],\"x\":1}",
     "l in 0..2: x: unknown key"},
    {"{\"for\":\"a in 0..2\",\"modules\":[{\"for\":\"b in 0..2\","
     "\"modules\":[{\"for\":\"c in 0..2\",\"modules\":[{\"for\":"
     "\"d in 0..2\",\"modules\":[" NORM "]}]}]}]}",
     "nested too deep"},
};

static void broken_modules(void **state)
{
    char text[2048];

    (void)state;
    for (size_t i = 0; i < sizeof bad_modules / sizeof bad_modules[0]; i++) {
        snprintf(text, sizeof text, HEAD "\"modules\":[%s]}",
                 bad_modules[i].module);
        refuses(text, bad_modules[i].says);
    }
    char *longer = calloc(1, 2048);
    assert_non_null(longer);
    memset(longer, 'a', 300);
    snprintf(text, sizeof text,
             HEAD "\"modules\":[{\"at\":\"%s\",\"kind\":\"vector\"}]}", longer);
    refuses(text, "at: a name of 1 to 255 characters");
    free(longer);
}

/* ---- a file of the user's own ---------------------------------------------
 */

static const char own[] =
    "{\"family\":\"own\",\"architectures\":[\"OwnForCausalLM\"],"
    "\"text_config\":true,"
    "\"let\":{\"H\":\"heads\",\"wide(l)\":\"l in wide\"},"
    "\"names\":[{\"kind\":\"suffix\",\"from\":\".w\",\"to\":\".weight\"},"
    "{\"kind\":\"prefix\",\"from\":\"top.\",\"to\":\"\"}],"
    "\"drop\":[{\"kind\":\"regex\",\"from\":\"^junk\",\"why\":\"junk\"}],"
    "\"modules\":["
    "{\"at\":\"emb\",\"kind\":\"embedding\",\"stage\":\"first\",\"rows\":10,"
    "\"cols\":\"size\",\"disk\":\"wte\"},"
    "{\"for\":\"l in 0..layers\",\"stage\":\"layer l\",\"modules\":["
    "{\"at\":\"h.{l}.qkv\",\"kind\":\"qkv\",\"parts\":[\"q\",\"k\",\"v\"],"
    "\"heads\":\"H\",\"kv_heads\":1,\"head_dim\":4,\"v_head_dim\":2,"
    "\"in\":\"size\",\"disk\":\"blocks.{l}.attn\"},"
    "{\"at\":\"h.{l}.a\",\"kind\":\"merged\",\"parts\":[\"x\",\"y\"],"
    "\"out\":[3,5],\"in\":\"size\",\"tp\":false,\"bias\":true},"
    "{\"at\":\"h.{l}.fc\",\"kind\":\"column\",\"out\":\"wide(l) ? 1\"},"
    "{\"at\":\"h.{l}.gate\",\"kind\":\"replicated\",\"out\":4,\"in\":\"size\","
    "\"dtype\":\"F32\",\"bias\":true,\"also\":[\"h.{l}.router\"]},"
    "{\"if\":\"wide(l)\",\"at\":\"h.{l}.moe\",\"kind\":\"experts\","
    "\"parts\":[\"w1\",\"w3\",\"w2\"],\"disk\":\"h.{l}.e.{e}\",\"count\":3,"
    "\"groups\":3,\"inter\":8,\"hidden\":\"size\",\"bias\":true}]},"
    "{\"at\":\"norm\",\"kind\":\"vector\",\"n\":\"size\",\"stage\":\"last\","
    "\"optional\":true}]}";
static const char own_config[] =
    "{\"architectures\":[\"OwnForCausalLM\"],\"torch_dtype\":\"float16\","
    "\"text_config\":{\"heads\":4,\"size\":6,\"layers\":2,\"wide\":[1]}}";

/* Writes a family file with `from` replaced by `to`. */
static void write_own(char path[64], const char *from, const char *to)
{
    const char *at = strstr(own, from);
    FILE *file;

    snprintf(path, 64, "/tmp/lade_family_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    assert_non_null(file);
    assert_non_null(at);
    fprintf(file, "%.*s%s%s", (int)(at - own), own, to, at + strlen(from));
    fclose(file);
}

static int build(const char *file, const char *config_text, uint32_t tp,
                 bool ep, struct lade_shell **shell, lade_err *err)
{
    cJSON *config = cJSON_Parse(config_text);
    struct lade_model_wish wish = {.family_file = file};
    struct lade_layout layout = {
        .world = tp, .tp = tp, .pp = 1, .dp = 1, .ep = ep};
    int rc = lade_model_build(config, &wish, &layout, NULL, mem, shell, err);

    cJSON_Delete(config);
    return rc;
}

static const struct lade_shell_param *find(const struct lade_shell *shell,
                                           const char *name)
{
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);

    for (uint64_t i = 0; i < shell->params.count; i++)
        if (strcmp(LADE_STRING(shell, pool, params[i].name), name) == 0)
            return &params[i];
    return NULL;
}

#define COLUMN "\"out\":\"wide(l) ? 1\"}"
#define FIXED "\"out\":8,\"in\":\"size\",\"bias\":\"l == 0\"}"

static void own_family(void **state)
{
    struct lade_shell *shell = NULL;
    lade_err err = LADE_ERR_INIT;
    char path[64];

    (void)state;
    write_own(path, COLUMN, FIXED);
    if (build(path, own_config, 4, false, &shell, &err) != LADE_OK)
        print_error("%s\n", err.text);
    assert_non_null(shell);
    const struct lade_shell_part *parts =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    const struct lade_shell_param *p = find(shell, "h.1.qkv.weight");
    assert_non_null(p);
    assert_int_equal(p->dtype, LADE_DTYPE_F16);
    assert_int_equal(p->layer, 2);
    assert_int_equal(p->shape[0], 4 + 4 + 2);
    assert_string_equal(LADE_STRING(shell, pool, parts[p->first_part + 2].name),
                        "blocks.1.attn.v.weight");
    assert_int_equal(parts[p->first_part + 2].start, 8);
    assert_int_equal(parts[p->first_part + 2].copies, 4);
    assert_int_equal(parts[p->first_part + 2].piece, 2);

    p = find(shell, "h.0.a.weight"); /* not split although tp is 4 */
    assert_int_equal(p->shape[0], 8);
    assert_int_equal(parts[p->first_part + 1].axis, LADE_AXIS_NONE);
    assert_int_equal(parts[p->first_part + 1].piece, 5);
    assert_int_equal(parts[p->first_part + 1].start, 3);
    assert_int_equal(find(shell, "h.0.a.bias")->parts, 2);

    p = find(shell, "h.1.gate.weight");
    assert_int_equal(p->dtype, LADE_DTYPE_F32);
    assert_int_equal(shell->aliases.count, 4);
    assert_int_equal(find(shell, "h.0.fc.weight")->shape[0], 2);
    assert_non_null(find(shell, "h.0.fc.bias"));
    assert_null(find(shell, "h.1.fc.bias"));

    p = find(shell, "emb.weight"); /* 10 rows padded to 64 */
    assert_int_equal(p->shape[0], 16);
    assert_int_equal(parts[p->first_part].extent, 10);
    assert_string_equal(LADE_STRING(shell, pool, parts[p->first_part].name),
                        "wte.weight");

    assert_null(find(shell, "h.0.moe.w13_weight"));
    p = find(shell, "h.1.moe.w13_bias");
    assert_int_equal(p->flags, LADE_PARAM_EXPERTS);
    assert_int_equal(p->ndim, 2);
    assert_int_equal(p->shape[1], 4);
    assert_int_equal(parts[p->first_part].axis, LADE_AXIS_MOE_TP);
    p = find(shell, "h.1.moe.w2_bias");
    assert_int_equal(p->shape[1], 6);
    assert_int_equal(parts[p->first_part].axis, LADE_AXIS_NONE);
    assert_int_equal(parts[p->first_part].experts, 3);
    assert_int_equal(shell->groups, 3);
    assert_int_equal(parts[find(shell, "norm.weight")->first_part].optional, 1);
    assert_int_equal(find(shell, "norm.weight")->layer, 3);

    const struct lade_shell_rule *rules =
        LADE_ITEMS(shell, rules, struct lade_shell_rule);
    assert_int_equal(shell->rules.count, 7);
    assert_int_equal(rules[4].kind, 0); /* regex, prefix, suffix in order */
    assert_int_equal(rules[4].to, UINT32_MAX);
    assert_int_equal(rules[5].kind, 2);
    assert_string_equal(LADE_STRING(shell, pool, rules[5].to), "");
    assert_int_equal(rules[6].kind, 3);
    lade_free(mem, shell);
    unlink(path);
}

static void own_family_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
        int status;
    } bad[] = {
        {COLUMN, COLUMN, "h.{l}.fc: out: expression", LADE_E_USAGE},
        {COLUMN, FIXED "}", "byte", LADE_E_USAGE},
        {"\"at\":\"h.{l}.fc\",", "\"at\":\"h.{l}.gate\",", "out", LADE_E_USAGE},
    };
    struct lade_shell *shell = NULL;
    char path[64];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lade_err err = LADE_ERR_INIT;
        write_own(path, bad[i].from, bad[i].to);
        assert_int_equal(build(path, own_config, 1, false, &shell, &err),
                         bad[i].status);
        assert_non_null(strstr(err.text, bad[i].says));
        unlink(path);
    }
    lade_err err = LADE_ERR_INIT;
    assert_int_equal(
        build("/tmp/none.such", own_config, 1, false, &shell, &err),
        LADE_E_USAGE);
    assert_non_null(strstr(err.text, "--family: /tmp/none.such"));

    lade_err other = LADE_ERR_INIT;
    write_own(path, COLUMN, FIXED);
    assert_int_equal(
        build(path, "{\"architectures\":[\"Y\"]}", 1, false, &shell, &other),
        LADE_E_USAGE);
    assert_non_null(strstr(other.text, "is for the architecture OwnForCausalLM,"
                                       " but config.json says Y"));
    unlink(path);
    assert_null(shell);
}

/* One text with a fault that only the config brings to light. */
static void faults_with_a_config(void **state)
{
    static const struct {
        const char *modules, *says;
        int status;
    } bad[] = {
        {"{\"for\":\"l in 0..2\",\"stage\":\"last\",\"modules\":[{\"at\":\"a\","
         "\"kind\":\"vector\",\"n\":1}]}",
         "a.weight is declared by two modules", LADE_E_USAGE},
        {"{\"if\":true,\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":"
         "\"last\",\"disk\":\"b\"},{\"at\":\"c\",\"kind\":\"vector\",\"n\":1,"
         "\"stage\":\"last\",\"disk\":\"b\"}",
         "b.weight on disk is wanted by two modules", LADE_E_USAGE},
        {"{\"at\":\"a\",\"kind\":\"head\",\"rows\":1,\"cols\":1,\"stage\":"
         "\"last\",\"tied_to\":\"b\"}",
         "tied to b.weight, which no module declares", LADE_E_USAGE},
        {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":1,\"stage\":\"layer 0-1\"}",
         "stage layer 0-1 is layer -1", LADE_E_USAGE},
        {"{\"for\":\"l in 2..layers\",\"stage\":\"layer l\",\"modules\":[{"
         "\"at\":\"a.{l}\",\"kind\":\"vector\",\"n\":1}]}",
         "layers is 2, but from 3 to 100000 is needed", LADE_E_CHECKPOINT},
        {"{\"for\":\"l in 0..2\",\"stage\":\"last\",\"modules\":[{\"at\":"
         "\"a{l}\",\"kind\":\"experts\",\"parts\":[\"x\",\"y\",\"z\"],\"disk\":"
         "\"a{l}.{e}\",\"count\":\"l + 1\",\"inter\":1,\"hidden\":1}]}",
         "layers with 1 and with 2 experts", LADE_E_CHECKPOINT},
        {"{\"at\":\"a\",\"kind\":\"experts\",\"parts\":[\"x\",\"y\",\"z\"],"
         "\"disk\":\"a.{e}\",\"count\":2,\"groups\":3,\"inter\":1,\"hidden\":1,"
         "\"stage\":\"last\"}",
         "in 3 groups", LADE_E_CHECKPOINT},
        {"{\"for\":\"a in 0..100000\",\"modules\":[{\"for\":"
         "\"b in 0..100000\",\"modules\":[{\"if\":false,\"at\":\"a\","
         "\"kind\":\"vector\",\"n\":1,\"stage\":\"last\"}]}]}",
         "its loops visit more than 4000000 modules", LADE_E_USAGE},
        {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":\"nothing()\",\"stage\":"
         "\"last\"}",
         "a value expected", LADE_E_USAGE},
        {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":\"f(1)\",\"stage\":\"last\"}",
         "unknown function", LADE_E_USAGE},
        {"{\"at\":\"a\",\"kind\":\"vector\",\"n\":\"size\",\"stage\":\"last\","
         "\"if\":\"absent\"}",
         "key absent is absent", LADE_E_CHECKPOINT},
    };
    struct lade_shell *shell = NULL;
    char path[64];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lade_err err = LADE_ERR_INIT;
        snprintf(path, sizeof path, "/tmp/lade_family_XXXXXX");
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        FILE *file = fdopen(fd, "w");
        assert_non_null(file);
        fprintf(file,
                "{\"family\":\"own\",\"architectures\":[\"OwnForCausalLM\"],"
                "\"text_config\":true,\"modules\":[%s]}",
                bad[i].modules);
        fclose(file);
        int rc = build(path, own_config, 1, false, &shell, &err);
        if (rc != bad[i].status || !strstr(err.text, bad[i].says))
            print_error("%d %s\n", rc, err.text);
        assert_int_equal(rc, bad[i].status);
        assert_non_null(strstr(err.text, bad[i].says));
        unlink(path);
    }
    assert_null(shell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_in),
        cmocka_unit_test(broken_top_level),
        cmocka_unit_test(broken_modules),
        cmocka_unit_test(own_family),
        cmocka_unit_test(own_family_refused),
        cmocka_unit_test(faults_with_a_config),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
