/*
 * Gate 1: which files make up a checkpoint; every refusal with its words.
 */
#include "unit.h"

#include "base/json.h"
#include "base/log.h"
#include "locate/locate.h"

#define INDEX "model.safetensors.index.json"

struct place {
    char dir[PATH_MAX];
    struct lade_mem *mem;
    struct lade_shards *shards;
    struct lade_index *index;
    lade_err err;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    unit_folder_new(p->dir);
    p->mem = lade_mem_new();
    p->err = (lade_err)LADE_ERR_INIT;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "");
    lade_warn_reset();
    *state = p;
    return 0;
}

static void forget(struct place *p)
{
    lade_free(p->mem, p->shards);
    lade_free(p->mem, p->index);
    p->shards = NULL;
    p->index = NULL;
    p->err = (lade_err)LADE_ERR_INIT;
}

/* Nothing may stay allocated, whatever happened. */
static int tear_down(void **state)
{
    struct place *p = *state;

    forget(p);
    for (int tag = 0; tag < LADE_TAGS; tag++)
        assert_int_equal(lade_mem_now(p->mem, (enum lade_tag)tag), 0);
    lade_mem_free(p->mem);
    unit_folder_free(p->dir);
    free(p);
    return 0;
}

static void put(struct place *p, const char *name, const char *text)
{
    unit_write(p->dir, name, text, strlen(text));
}

static void link_to(struct place *p, const char *target, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", p->dir, name);

    assert_in_range(n, 1, (int)sizeof(path) - 1);
    assert_int_equal(symlink(target, path), 0);
}

static int locate_as(struct place *p, const char *name, enum lade_format format,
                     bool ignore_index)
{
    const struct lade_locate_wish wish = {format, ignore_index};
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s%s", p->dir, name ? "/" : "",
                     name ? name : "");

    assert_in_range(n, 1, (int)sizeof(path) - 1);
    return lade_locate(path, &wish, p->mem, &p->shards, &p->index, &p->err);
}

static int locate(struct place *p)
{
    return locate_as(p, NULL, LADE_FORMAT_AUTO, false);
}

/* `names` joined by blanks are the shards, in this order. */
static void assert_shards(struct place *p, const char *names)
{
    char found[4096] = "";

    assert_non_null(p->shards);
    for (uint64_t i = 0; i < p->shards->shards.count; i++) {
        const struct lade_shard *s =
            &LADE_ITEMS(p->shards, shards, struct lade_shard)[i];
        size_t used = strlen(found);
        snprintf(found + used, sizeof(found) - used, "%s%s", i ? " " : "",
                 LADE_STRING(p->shards, pool, s->name));
    }
    assert_string_equal(found, names);
}

static void refused(struct place *p, int rc, const char *words)
{
    unit_failed(rc, &p->err, LADE_E_CHECKPOINT, words);
    assert_null(p->shards);
    assert_null(p->index);
}

static void refused_too(struct place *p, const char *first, const char *second)
{
    int rc = locate(p);

    if (!strstr(p->err.text, second))
        fail_msg("\"%s\" lacks \"%s\"", p->err.text, second);
    refused(p, rc, first);
}

/* ---- the engine's vectors ---- */

static void put_vector_files(struct place *p, const cJSON *files)
{
    for (const cJSON *f = files->child; f; f = f->next) {
        char *text = cJSON_IsString(f) ? NULL : cJSON_PrintUnformatted(f);
        put(p, f->string, text ? text : f->valuestring);
        cJSON_free(text);
    }
}

static void run_vector(struct place *p, const cJSON *vector)
{
    const cJSON *lade = cJSON_GetObjectItem(vector, "lade");
    const cJSON *error = cJSON_GetObjectItem(lade, "error");
    enum lade_format format = LADE_FORMAT_SAFETENSORS;
    char names[1024] = "";
    int rc;

    put_vector_files(p, cJSON_GetObjectItem(vector, "files"));
    assert_int_equal(
        lade_format_find(cJSON_GetObjectItem(vector, "format")->valuestring,
                         &format, &p->err),
        LADE_OK);
    rc = locate_as(p, NULL, format, false);
    if (error != NULL) {
        refused(p, rc, error->valuestring);
        return;
    }
    if (rc != LADE_OK)
        fail_msg("%s: %s", cJSON_GetObjectItem(vector, "id")->valuestring,
                 p->err.text);
    for (const cJSON *f = cJSON_GetObjectItem(lade, "files")->child; f;
         f = f->next) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", used ? " " : "",
                 f->valuestring);
    }
    assert_shards(p, names);
}

static cJSON *read_vectors(void)
{
    lade_err err = LADE_ERR_INIT;
    cJSON *vectors = NULL;

    assert_int_equal(lade_json_read(LADE_TEST_DATA "/data/locate_vectors.json",
                                    1 << 20, &vectors, &err),
                     LADE_OK);
    return vectors;
}

static bool in_group(const cJSON *vector, const char *group)
{
    return strcmp(cJSON_GetObjectItem(vector, "group")->valuestring, group) ==
           0;
}

/* "engine" is what the engine did; "lade" is what counts here. Where the two
 * differ, "decision" says why. */
static void test_vectors(void **state)
{
    cJSON *vectors = read_vectors();
    int run = 0;

    (void)state;
    for (const cJSON *v = vectors->child; v; v = v->next) {
        void *place = NULL;
        if (!in_group(v, "locate"))
            continue;
        set_up(&place);
        run_vector(place, v);
        tear_down(&place);
        run++;
    }
    assert_int_equal(run, 18);
    cJSON_Delete(vectors);
}

static int by_name(const void *a, const void *b)
{
    return lade_natural_compare(*(const char *const *)a,
                                *(const char *const *)b);
}

static void test_natural_vectors(void **state)
{
    cJSON *vectors = read_vectors();
    int run = 0;

    (void)state;
    for (const cJSON *v = vectors->child; v; v = v->next) {
        const char *names[8] = {NULL};
        size_t count = 0, i = 0;
        if (!in_group(v, "natural_sort"))
            continue;
        for (const cJSON *f = cJSON_GetObjectItem(v, "files")->child; f;
             f = f->next)
            names[count++] = f->valuestring;
        qsort(names, count, sizeof(*names), by_name);
        for (const cJSON *f = cJSON_GetObjectItem(v, "order")->child; f;
             f = f->next)
            assert_string_equal(names[i++], f->valuestring);
        run++;
    }
    assert_int_equal(run, 3);
    cJSON_Delete(vectors);
}

/* In rising order: as text, number, text, ... with texts that end early first.
 */
static void test_natural_order(void **state)
{
    static const char *const names[] = {"",
                                        "1",
                                        "1a",
                                        "x/2",
                                        "10",
                                        "a",
                                        "a1",
                                        "a1-",
                                        "a1.b",
                                        "a2",
                                        "a99999999999999999999999999998",
                                        "a99999999999999999999999999999",
                                        "a-1",
                                        "a.1",
                                        "ab",
                                        "consolidated-00001.safetensors",
                                        "consolidated.safetensors",
                                        "model2.safetensors",
                                        "model-1.safetensors",
                                        "\xc3\xa9"};
    const int count = (int)(sizeof(names) / sizeof(*names));

    (void)state;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            assert_int_equal(lade_natural_compare(names[i], names[k]),
                             (i > k) - (i < k));
    /* equal numbers: some order, the same both ways round */
    assert_int_equal(lade_natural_compare("m01", "m1"),
                     -lade_natural_compare("m1", "m01"));
    assert_int_not_equal(lade_natural_compare("m01", "m1"), 0);
}

/* ---- formats ---- */

static void test_formats(void **state)
{
    enum lade_format format = LADE_FORMAT_AUTO;
    lade_err err = LADE_ERR_INIT;
    static const char *const later[] = {"mistral", "PT",   "npcache",
                                        "dummy",   "hdf5", "sharded_state",
                                        "gguf",    "lade", "tensorizer"};

    (void)state;
    assert_int_equal(lade_format_find("SafeTensors", &format, &err), LADE_OK);
    assert_int_equal(format, LADE_FORMAT_SAFETENSORS);
    assert_string_equal(lade_format_name(format), "safetensors");
    for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++)
        unit_failed(lade_format_find(later[i], &format, &err), &err,
                    LADE_E_USAGE,
                    "not in this version; there are auto, hf, safetensors");
    unit_failed(lade_format_find("zip", &format, &err), &err, LADE_E_USAGE,
                "format zip: no such format; there are auto, hf, safetensors");
    assert_int_equal(format, LADE_FORMAT_SAFETENSORS);
}

static void test_resolved_format(void **state)
{
    struct place *p = *state;

    put(p, "model.safetensors", "");
    assert_int_equal(locate(p), LADE_OK);
    assert_int_equal(p->shards->format, LADE_FORMAT_HF);
    forget(p);
    assert_int_equal(locate_as(p, NULL, LADE_FORMAT_SAFETENSORS, false),
                     LADE_OK);
    assert_int_equal(p->shards->format, LADE_FORMAT_SAFETENSORS);
}

/* C019: auto means mistral when both marks are at the top level. */
static void test_mistral(void **state)
{
    struct place *p = *state;

    put(p, "consolidated.safetensors", "");
    assert_int_equal(locate(p), LADE_OK);
    assert_shards(p, "consolidated.safetensors");
    forget(p);
    put(p, "params.json", "{}");
    refused_too(p, "format auto means mistral, which is not in this version",
                "there are none");
    put(p, "model-00001-of-00002.safetensors", "");
    put(p, "model-00002-of-00002.safetensors", "");
    put(p, INDEX,
        "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
        "\"b\":\"model-00002-of-00002.safetensors\"}}");
    refused_too(p, "--format hf takes the Hugging Face files", "mistral");
    assert_int_equal(locate_as(p, NULL, LADE_FORMAT_HF, false), LADE_OK);
    assert_shards(p, "model-00001-of-00002.safetensors "
                     "model-00002-of-00002.safetensors");
    assert_int_equal(lade_warn_count(), 1);
    assert_non_null(strstr(lade_warn_get(0), "consolidated.safetensors"));
}

static void test_no_weights(void **state)
{
    struct place *p = *state;

    refused(p, locate(p), "no weights (*.safetensors); there are no files");
    put(p, "config.json", "{}");
    put(p, "tokenizer.json", "{}");
    put(p, "training_args.bin", "");
    put(p, ".model.safetensors", "");
    put(p, "sub/model.safetensors", "");
    refused(p, locate(p),
            "there are config.json, sub, tokenizer.json, training_args.bin");
    for (char name[] = "a.txt"; name[0] <= 'i'; name[0]++)
        put(p, name, "");
    refused(p, locate(p), "a.txt, b.txt, c.txt, config.json, d.txt and 8 more");
    put(p, "model.gguf", "");
    refused(p, locate(p),
            "only GGUF weights (model.gguf); reading GGUF is not "
            "in this version");
}

/* ---- the path ---- */

static void test_absent(void **state)
{
    struct place *p = *state;

    refused(p, locate_as(p, "none", LADE_FORMAT_AUTO, false),
            "/none: No such file or directory");
    put(p, "file.txt", "");
    refused(p, locate_as(p, "file.txt", LADE_FORMAT_AUTO, false),
            "a folder or a .safetensors file is needed");
    refused(p, locate_as(p, "file.txt/sub", LADE_FORMAT_AUTO, false),
            "Not a directory");
    put(p, "model.bin", "");
    refused(p, locate_as(p, "model.bin", LADE_FORMAT_AUTO, false),
            "reading PyTorch .bin is not in this version");
    char name[NAME_MAX + 10];
    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = 0;
    refused(p, locate_as(p, name, LADE_FORMAT_AUTO, false),
            "File name too long");
}

static void test_single_file(void **state)
{
    struct place *p = *state;
    char path[PATH_MAX];

    put(p, "my model.safetensors", "12345");
    put(p, "other.safetensors", "");
    put(p, INDEX, "not JSON: it is not looked at");
    assert_int_equal(
        locate_as(p, "my model.safetensors", LADE_FORMAT_AUTO, false), LADE_OK);
    assert_shards(p, "my model.safetensors");
    assert_int_equal(LADE_ITEMS(p->shards, shards, struct lade_shard)[0].size,
                     5);
    assert_null(p->index);
    assert_int_equal(p->shards->has_index, 0);
    assert_string_equal(LADE_STRING(p->shards, pool, p->shards->config), "");
    assert_int_equal(lade_shard_path(p->shards, 0, path, sizeof(path), &p->err),
                     LADE_OK);
    assert_int_equal(access(path, R_OK), 0);
    unit_failed(lade_shard_path(p->shards, 0, path, 20, &p->err), &p->err,
                LADE_E_CHECKPOINT, "the path is longer than 19 bytes");
    forget(p);
    put(p, "config.json", "{}");
    assert_int_equal(
        locate_as(p, "my model.safetensors", LADE_FORMAT_AUTO, false), LADE_OK);
    assert_non_null(
        strstr(LADE_STRING(p->shards, pool, p->shards->config), "config.json"));
}

static void test_single_file_here(void **state)
{
    struct place *p = *state;
    const struct lade_locate_wish wish = {LADE_FORMAT_AUTO, false};
    char before[PATH_MAX];

    put(p, "m.safetensors", "");
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(p->dir), 0);
    int rc = lade_locate("m.safetensors", &wish, p->mem, &p->shards, &p->index,
                         &p->err);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rc, LADE_OK);
    assert_string_equal(LADE_STRING(p->shards, pool, p->shards->dir), ".");
}

/* ---- files ---- */

static void test_odd_names(void **state)
{
    struct place *p = *state;

    put(p, "with blank.safetensors", "1");
    put(p, "gew\xc3\xb6lbe-\xe6\xa8\xa1\xe5\x9e\x8b.safetensors", "22");
    put(p, "model.SAFETENSORS", "no: capitals count");
    put(p, ".hidden.safetensors", "no");
    assert_int_equal(locate(p), LADE_OK);
    assert_shards(p, "gew\xc3\xb6lbe-\xe6\xa8\xa1\xe5\x9e\x8b.safetensors "
                     "with blank.safetensors");
}

/* C027, C028: links are the owner's own doing, wherever they lead. */
static void test_links(void **state)
{
    struct place *p = *state;
    char outside[PATH_MAX], target[PATH_MAX + 8];

    unit_folder_new(outside);
    unit_write(outside, "blob", "123", 3);
    put(p, "blobs/0123abcd", "12345");
    snprintf(target, sizeof(target), "%s/blob", outside);
    link_to(p, "blobs/0123abcd", "model-00001-of-00002.safetensors");
    link_to(p, target, "model-00002-of-00002.safetensors");
    link_to(p, "/nowhere/config.json", "config.json");
    put(p, INDEX,
        "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
        "\"b\":\"model-00002-of-00002.safetensors\"}}");
    assert_int_equal(locate(p), LADE_OK);
    const struct lade_shard *s =
        LADE_ITEMS(p->shards, shards, struct lade_shard);
    assert_int_equal(p->shards->shards.count, 2);
    assert_int_equal(s[0].size, 5);
    assert_int_equal(s[1].size, 3);
    assert_int_not_equal(s[0].ino, s[1].ino);
    assert_true(s[0].mtime_ns > 0);
    assert_non_null(
        strstr(LADE_STRING(p->shards, pool, p->shards->config), "config.json"));
    forget(p);
    unit_folder_free(outside);
    refused_too(p, "model-00002-of-00002.safetensors: link target missing",
                target);
}

static void test_dangling(void **state)
{
    struct place *p = *state;

    link_to(p, "../gone", "model.safetensors");
    refused(p, locate(p), "link target missing: it leads to ../gone");
    refused(p, locate_as(p, "model.safetensors", LADE_FORMAT_AUTO, false),
            "link target missing");
    link_to(p, "gone.json", INDEX);
    refused(p, locate(p), INDEX ": link target missing");
    link_to(p, "gone", "dir");
    refused(p, locate_as(p, "dir", LADE_FORMAT_AUTO, false),
            "dir: link target missing: it leads to gone");
    link_to(p, "loop", "loop");
    refused(p, locate_as(p, "loop", LADE_FORMAT_AUTO, false),
            "Too many levels of symbolic links");
}

static void test_not_files(void **state)
{
    struct place *p = *state;
    char path[PATH_MAX + 16];

    put(p, "model.safetensors/x", "");
    refused(p, locate(p), "a file is needed, this is a folder");
    snprintf(path, sizeof(path), "%s/model.safetensors/x", p->dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/model.safetensors", p->dir);
    rmdir(path);
    assert_int_equal(mkfifo(path, 0666), 0);
    refused(p, locate(p), "a file is needed, this is a special file");
    refused(p, locate_as(p, "model.safetensors", LADE_FORMAT_AUTO, false),
            "a file is needed, this is a special file");
}

/* The system refuses: IO. Root may do everything, so it becomes somebody. */
static void test_permission(void **state)
{
    struct place *p = *state;
    bool root = geteuid() == 0;

    put(p, "model.safetensors", "");
    put(p, INDEX, "{\"weight_map\":{\"a\":\"model.safetensors\"}}");
    char path[PATH_MAX + 40];
    snprintf(path, sizeof(path), "%s/" INDEX, p->dir);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(p->dir, 0755), 0);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    int rc = locate(p);
    if (root)
        assert_int_equal(seteuid(0), 0);
    unit_failed(rc, &p->err, LADE_E_IO, INDEX ": Permission denied");

    assert_int_equal(chmod(p->dir, 0), 0);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    rc = locate(p);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(p->dir, 0755), 0);
    unit_failed(rc, &p->err, LADE_E_IO,
                "cannot list the folder: Permission denied");
}

/* ---- the index ---- */

static void test_index(void **state)
{
    struct place *p = *state;

    for (int i = 12; i > 0; i--) {
        char name[64];
        snprintf(name, sizeof(name), "part-%d.safetensors", i);
        put(p, name, "");
    }
    put(p, INDEX,
        "{\"metadata\":{\"total_size\":1e3},\"weight_map\":{"
        "\"z\":\"part-10.safetensors\",\"y\":\"part-2.safetensors\","
        "\"x\":\"part-10.safetensors\"}}");
    assert_int_equal(locate(p), LADE_OK);
    assert_shards(p, "part-2.safetensors part-10.safetensors");
    assert_int_equal(p->shards->has_index, 1);
    assert_string_equal(LADE_STRING(p->shards, pool, p->shards->index_name),
                        INDEX);
    assert_non_null(p->index);
    assert_int_equal(p->index->rows.count, 3);
    const struct lade_index_row *rows =
        LADE_ITEMS(p->index, rows, struct lade_index_row);
    const char *names[] = {"z", "y", "x"};
    const uint32_t shards[] = {1, 0, 1};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(LADE_STRING(p->index, pool, rows[i].name),
                            names[i]);
        assert_int_equal(rows[i].shard, shards[i]);
    }
    /* C025: the rest is not looked at, one warning */
    assert_int_equal(lade_warn_count(), 1);
    assert_string_equal(
        lade_warn_get(0),
        "10 weight files are not named by the index: part-1.safetensors, "
        "part-3.safetensors, part-4.safetensors, part-5.safetensors, "
        "part-6.safetensors and 5 more; not read");
    forget(p);
    assert_int_equal(locate_as(p, NULL, LADE_FORMAT_AUTO, true), LADE_OK);
    assert_int_equal(p->shards->shards.count, 12);
    assert_int_equal(p->shards->has_index, 0);
    assert_null(p->index);
}

/* C025: a stray link that dangles is not even looked at. */
static void test_stray_is_left_alone(void **state)
{
    struct place *p = *state;

    put(p, "a.safetensors", "");
    link_to(p, "gone", "model.safetensors");
    put(p, INDEX, "{\"weight_map\":{\"w\":\"a.safetensors\"}}");
    assert_int_equal(locate(p), LADE_OK);
    assert_shards(p, "a.safetensors");
    assert_string_equal(lade_warn_get(0),
                        "1 weight file is not named by the index: "
                        "model.safetensors; not read");
}

/* C020 */
static void test_missing_shard(void **state)
{
    struct place *p = *state;

    put(p, "m-1.safetensors", "");
    put(p, "m-3.safetensors", "");
    put(p, INDEX,
        "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2."
        "safetensors\",\"c\":\"m-3.safetensors\"}}");
    refused(p, locate(p),
            INDEX " names 3 files, 1 of them absent: m-2.safetensors; the "
                  "folder has 2 *.safetensors; the download is incomplete");
    assert_int_equal(lade_warn_count(), 0);
}

/* C026: 30 named, 15 others there. */
static void test_left_over_index(void **state)
{
    struct place *p = *state;
    char text[4096] = "{\"weight_map\":{", name[64];

    for (int i = 1; i <= 30; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used,
                 "%s\"w%d\":\"model-%05d-of-00030.safetensors\"",
                 i > 1 ? "," : "", i, i);
        snprintf(name, sizeof(name), "model-%05d-of-00015.safetensors", i);
        if (i <= 15)
            put(p, name, "");
    }
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "}}");
    put(p, INDEX, text);
    refused_too(p,
                "names 30 files, 30 of them absent: "
                "model-00001-of-00030.safetensors, ",
                "model-00005-of-00030.safetensors and 25 more; the folder has "
                "15 *.safetensors; the index may be left over");
    assert_non_null(p);
    refused_too(p, "--ignore-index takes the files as they are", "15");
    assert_int_equal(locate_as(p, NULL, LADE_FORMAT_AUTO, true), LADE_OK);
    assert_int_equal(p->shards->shards.count, 15);
}

/* C027 and malformed indexes: each text and the words of its refusal. */
static void test_bad_indexes(void **state)
{
    struct place *p = *state;
    static const char *const cases[][2] = {
        {"", "the text ends too early"},
        {"{\"weight_map\":{\"a\":\"model.safetensors\"}", "comma or }"},
        {"{\"weight_map\":{\"a\":\"model.safetensors\"}} x",
         "text after the end"},
        {"[]", "it has no object weight_map"},
        {"{}", "it has no object weight_map"},
        {"{\"weight_map\":[]}", "it has no object weight_map"},
        {"{\"weight_map\":{}}", "its weight_map is empty"},
        {"{\"weight_map\":{\"a\":1}}", "tensor a: its file is not a text"},
        {"{\"weight_map\":{\"a\":null}}", "tensor a: its file is not a text"},
        {"{\"weight_map\":{\"a\":{\"b\":\"model.safetensors\"}}}",
         "tensor a: its file is not a text"},
        {"{\"weight_map\":{\"a\":\"model.safetensors\",\"a\":\"model."
         "safetensors\"}}",
         "a stands twice"},
        {"{\"weight_map\":{\"a\":\"\"}}", "an empty name"},
        {"{\"weight_map\":{\"a\":\"/etc/model.safetensors\"}}",
         "an absolute path"},
        {"{\"weight_map\":{\"a\":\"../other/model.safetensors\"}}",
         "a name with a separator"},
        {"{\"weight_map\":{\"a\":\"..\"}}", "a name with '..'"},
        {"{\"weight_map\":{\"a\":\"sub/model.safetensors\"}}",
         "a name with a separator"},
        {"{\"weight_map\":{\"a\":\"sub\\\\model.safetensors\"}}",
         "a name with a separator"},
        {"{\"weight_map\":{\"a\":\".model.safetensors\"}}", "a hidden file"},
        {"{\"weight_map\":{\"a\":\"pytorch_model.bin\"}}",
         "not a .safetensors file"},
        {"{\"weight_map\":{\"a\\u0000b\":\"model.safetensors\"}}", "NUL"},
    };

    put(p, "model.safetensors", "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        put(p, INDEX, cases[i][0]);
        refused_too(p, cases[i][1], INDEX);
        /* with the switch the index is not read at all */
        assert_int_equal(locate_as(p, NULL, LADE_FORMAT_AUTO, true), LADE_OK);
        forget(p);
    }
}

/* A hostile index of 100,000 files costs no square of them. */
static void test_wide_index(void **state)
{
    struct place *p = *state;
    enum { FILES = 100000 };
    size_t size = (size_t)FILES * 64, used = 0;
    char *text = malloc(size);

    assert_non_null(text);
    used += (size_t)snprintf(text, size, "{\"weight_map\":{");
    for (int i = 0; i < FILES; i++)
        used += (size_t)snprintf(text + used, size - used,
                                 "%s\"w%d\":\"f%d.safetensors\"", i ? "," : "",
                                 i, i);
    used += (size_t)snprintf(text + used, size - used, "}}");
    unit_write(p->dir, INDEX, text, used);
    free(text);
    for (int i = 0; i < 200; i++) {
        char name[64];
        snprintf(name, sizeof(name), "f%d.safetensors", i);
        put(p, name, "");
    }
    refused(p, locate(p),
            "names 100000 files, 99800 of them absent: f200.safetensors, ");
}

/* Without an index half a download shows by its names. */
static void test_series(void **state)
{
    struct place *p = *state;

    put(p, "model-00001-of-00003.safetensors", "");
    put(p, "model-00003-of-00003.safetensors", "");
    put(p, "x-of-2.safetensors", "");
    put(p, "8-of-9.safetensors", "");
    put(p, "a-1-of-99999999999999999999.safetensors", "");
    put(p, "b-1-of-1.safetensors", "");
    put(p, "b-2-of-3-of-1.safetensors", "");
    put(p, "c-1-of-2-x.safetensors", "");
    assert_int_equal(locate(p), LADE_OK);
    assert_int_equal(p->shards->shards.count, 8);
    assert_int_equal(lade_warn_count(), 1);
    assert_string_equal(lade_warn_get(0),
                        "model-*-of-00003.safetensors: 2 of 3 files are there; "
                        "what the others hold will be missing");
    lade_warn_reset();
    forget(p);
    put(p, "model-00002-of-00003.safetensors", "");
    assert_int_equal(locate(p), LADE_OK);
    assert_int_equal(lade_warn_count(), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_natural_vectors),
        cmocka_unit_test(test_natural_order),
        cmocka_unit_test(test_formats),
        CASE(test_resolved_format),
        CASE(test_mistral),
        CASE(test_no_weights),
        CASE(test_absent),
        CASE(test_single_file),
        CASE(test_single_file_here),
        CASE(test_odd_names),
        CASE(test_links),
        CASE(test_dangling),
        CASE(test_not_files),
        CASE(test_permission),
        CASE(test_index),
        CASE(test_stray_is_left_alone),
        CASE(test_missing_shard),
        CASE(test_left_over_index),
        CASE(test_bad_indexes),
        CASE(test_wide_index),
        CASE(test_series),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
