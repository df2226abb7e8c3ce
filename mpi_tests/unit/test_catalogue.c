/*
 * Gate 2: rows of all shards; which file counts when names repeat; the same
 * product for any number of parts.
 */
#include "unit.h"

#include "base/log.h"
#include "catalogue/gather.h"

#define INDEX "model.safetensors.index.json"

struct place {
    char dir[PATH_MAX];
    struct lade_mem *mem;
    struct lade_shards *shards;
    struct lade_index *index;
    struct lade_catalogue *catalogue;
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
    lade_free(p->mem, p->catalogue);
    p->shards = NULL;
    p->index = NULL;
    p->catalogue = NULL;
}

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

/* A shard of U8 vectors: "name bytes name bytes ...", one after the other. A
 * name that starts with '?' gets a dtype that nobody knows. */
static void put(struct place *p, const char *file, const char *tensors)
{
    static char text[1 << 16];
    char name[64], *end = text + sizeof(text);
    unsigned bytes, begin = 0;
    int used;
    char *at = text + 8;

    at += snprintf(at, (size_t)(end - at), "{\"__metadata__\":{}");
    for (; sscanf(tensors, " %63s %u%n", name, &bytes, &used) == 2;
         tensors += used, begin += bytes)
        at += snprintf(at, (size_t)(end - at),
                       ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%u],"
                       "\"data_offsets\":[%u,%u]}",
                       name + (name[0] == '?'), name[0] == '?' ? "F3" : "U8",
                       bytes, begin, begin + bytes);
    at += snprintf(at, (size_t)(end - at), "}");
    uint64_t length = (uint64_t)(at - text) - 8;
    memcpy(text, &length, 8);
    memset(at, 0, begin);
    unit_write(p->dir, file, text, 8 + length + begin);
}

static void put_index(struct place *p, const char *map)
{
    char text[4096];

    snprintf(text, sizeof(text), "{\"weight_map\":{%s}}", map);
    unit_write(p->dir, INDEX, text, strlen(text));
}

static void locate(struct place *p, bool ignore_index)
{
    const struct lade_locate_wish wish = {LADE_FORMAT_AUTO, ignore_index};

    forget(p);
    if (lade_locate(p->dir, &wish, p->mem, &p->shards, &p->index, &p->err) !=
        LADE_OK)
        fail_msg("%s", p->err.text);
}

/* Locate, scan in `count` parts, merge. */
static int build_in(struct place *p, int count, bool ignore_index)
{
    struct lade_catalogue *parts[8] = {NULL};
    int rc = LADE_OK;

    locate(p, ignore_index);
    for (int k = 0; k < count && rc == LADE_OK; k++)
        rc = lade_catalogue_scan(p->shards, (uint32_t)k, (uint32_t)count,
                                 p->mem, &parts[k], &p->err);
    if (rc == LADE_OK)
        rc = lade_catalogue_merge(p->shards, p->index,
                                  (const struct lade_catalogue *const *)parts,
                                  8, p->mem, &p->catalogue, &p->err);
    for (int k = 0; k < 8; k++)
        lade_free(p->mem, parts[k]);
    return rc;
}

static void build(struct place *p)
{
    if (build_in(p, 2, false) != LADE_OK)
        fail_msg("%s", p->err.text);
}

static void refused(struct place *p, const char *words)
{
    unit_failed(build_in(p, 2, false), &p->err, LADE_E_CHECKPOINT, words);
    assert_null(p->catalogue);
    assert_int_equal(lade_warn_count(), 0);
}

static const struct lade_row *row_of(struct place *p, const char *name)
{
    int64_t i = lade_catalogue_find(p->catalogue, name);

    assert_true(i >= 0);
    return &LADE_ITEMS(p->catalogue, rows, struct lade_row)[i];
}

/* All names, in the order of the rows. */
static void assert_names(struct place *p, const char *names)
{
    const struct lade_row *rows =
        LADE_ITEMS(p->catalogue, rows, struct lade_row);
    char found[1024] = "";

    for (uint64_t i = 0; i < p->catalogue->rows.count; i++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof(found) - used, "%s%s", i ? " " : "",
                 LADE_STRING(p->catalogue, pool, rows[i].name));
    }
    assert_string_equal(found, names);
}

/* ---- rows ---- */

static void test_rows(void **state)
{
    struct place *p = *state;

    put(p, "model-10.safetensors", "z 3 y 5");
    put(p, "model-9.safetensors", "b 4 e 0 d 0 ?a 7 c 1");
    put(p, "model-11.safetensors", "");
    build(p);
    /* an empty tensor stands before the one that begins at its place */
    assert_names(p, "b e d a c z y");
    const struct lade_row *a = row_of(p, "a");
    assert_int_equal(a->dtype, LADE_DTYPE_UNKNOWN);
    assert_string_equal(LADE_STRING(p->catalogue, pool, a->dtype_name), "F3");
    assert_int_equal(a->shard, 0);
    assert_int_equal(a->length, 7);
    assert_int_equal(row_of(p, "b")->dtype_name, 0);
    assert_int_equal(row_of(p, "y")->shard, 1);
    assert_int_equal(row_of(p, "y")->offset, row_of(p, "z")->offset + 3);
    assert_int_equal(lade_catalogue_find(p->catalogue, "x"), -1);
    const uint32_t *first = LADE_ITEMS(p->catalogue, first_row, uint32_t);
    assert_int_equal(p->catalogue->first_row.count, 4);
    assert_int_equal(first[0], 0);
    assert_int_equal(first[1], 5);
    assert_int_equal(first[2], 7);
    assert_int_equal(first[3], 7);
    assert_int_equal(p->catalogue->tensor_bytes, 20);
    assert_int_equal(p->catalogue->shadowed, 0);
    uint64_t sizes = 0;
    for (int i = 0; i < 3; i++)
        sizes += LADE_ITEMS(p->shards, shards, struct lade_shard)[i].size;
    assert_int_equal(p->catalogue->header_bytes, sizes - 20);
}

/* Header order means nothing: rows go by place. */
static void test_reverse_header(void **state)
{
    struct place *p = *state;
    const char *header =
        "{\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    char text[512] = "";
    uint64_t length = strlen(header);

    memcpy(text, &length, 8);
    memcpy(text + 8, header, length);
    unit_write(p->dir, "m.safetensors", text, 8 + length + 6);
    build(p);
    assert_names(p, "a b c");
}

/* The product does not depend on how many ranks parsed it. */
static void test_any_parts(void **state)
{
    struct place *p = *state;
    char name[64], tensors[128], map[2048] = "";

    for (int i = 1; i <= 7; i++) {
        snprintf(name, sizeof(name), "m-%d.safetensors", i);
        snprintf(tensors, sizeof(tensors), "a%d %d both 3 ?b%d 2", i, i, i);
        put(p, name, tensors);
        snprintf(map + strlen(map), sizeof(map) - strlen(map),
                 "\"a%d\":\"%s\",\"b%d\":\"%s\",", i, name, i, name);
    }
    snprintf(map + strlen(map), sizeof(map) - strlen(map),
             "\"both\":\"m-4.safetensors\"");
    put_index(p, map);
    assert_int_equal(build_in(p, 1, false), LADE_OK);
    struct lade_catalogue *one = p->catalogue;
    p->catalogue = NULL;
    assert_int_equal(one->rows.count, 15);
    assert_int_equal(one->shadowed, 6);
    assert_int_equal(one->shadowed_bytes, 18);
    for (int parts = 2; parts <= 8; parts++) {
        assert_int_equal(build_in(p, parts, false), LADE_OK);
        assert_int_equal(p->catalogue->blob.size, one->blob.size);
        assert_memory_equal(p->catalogue, one, one->blob.size);
    }
    lade_free(p->mem, one);
}

/* ---- names in two files ---- */

static void test_two_files(void **state)
{
    struct place *p = *state;

    put(p, "a.safetensors", "u 1 w 2");
    put(p, "b.safetensors", "w 4 v 1");
    refused(p, "tensor w is in two files, a.safetensors and b.safetensors, and "
               "no index says which one counts");
    /* C023 */
    put_index(p, "\"u\":\"a.safetensors\",\"v\":\"b.safetensors\","
                 "\"w\":\"a.safetensors\"");
    build(p);
    assert_names(p, "u w v");
    assert_int_equal(row_of(p, "w")->length, 2);
    assert_int_equal(p->catalogue->shadowed, 1);
    assert_int_equal(p->catalogue->shadowed_bytes, 4);
    assert_int_equal(p->catalogue->tensor_bytes, 4);
    put_index(p, "\"u\":\"a.safetensors\",\"v\":\"b.safetensors\","
                 "\"w\":\"b.safetensors\"");
    build(p);
    assert_int_equal(row_of(p, "w")->length, 4);
    assert_int_equal(row_of(p, "w")->shard, 1);
    assert_int_equal(lade_warn_count(), 0);
    unit_failed(build_in(p, 2, true), &p->err, LADE_E_CHECKPOINT,
                "tensor w is in two files, a.safetensors and b.safetensors");
}

static void test_index_promises(void **state)
{
    struct place *p = *state;

    put(p, "a.safetensors", "u 1");
    put(p, "b.safetensors", "v 1");
    put_index(p, "\"u\":\"a.safetensors\",\"v\":\"b.safetensors\","
                 "\"x\":\"b.safetensors\"");
    refused(p, INDEX " says that b.safetensors holds tensor x, but no file "
                     "does; 1 tensor like that (--ignore-index");
    put_index(p, "\"v\":\"a.safetensors\",\"u\":\"b.safetensors\","
                 "\"x\":\"b.safetensors\"");
    refused(p, INDEX " says that a.safetensors holds tensor v, but only "
                     "another file does; 3 tensors like that");
    assert_int_equal(build_in(p, 2, true), LADE_OK);
    assert_names(p, "u v");
}

static void test_strays(void **state)
{
    struct place *p = *state;

    put(p, "a.safetensors", "u 1 x 2 y 3");
    put(p, "b.safetensors", "z 4 v 1 empty 0");
    put_index(p, "\"u\":\"a.safetensors\",\"v\":\"b.safetensors\"");
    build(p);
    assert_names(p, "u v");
    assert_int_equal(p->catalogue->shadowed, 0);
    assert_int_equal(p->catalogue->tensor_bytes, 2);
    assert_int_equal(lade_warn_count(), 1);
    assert_string_equal(lade_warn_get(0),
                        "4 tensors in the files are not listed in " INDEX
                        ", such as x in a.safetensors; not loaded");
    lade_warn_reset();
    put_index(p, "\"u\":\"a.safetensors\",\"x\":\"a.safetensors\","
                 "\"y\":\"a.safetensors\",\"v\":\"b.safetensors\","
                 "\"empty\":\"b.safetensors\"");
    build(p);
    assert_string_equal(lade_warn_get(0),
                        "1 tensor in the files is not listed in " INDEX
                        ", such as z in b.safetensors; not loaded");
}

/* ---- files ---- */

static void test_damaged_shard(void **state)
{
    struct place *p = *state;
    char path[PATH_MAX + 32];

    put(p, "a.safetensors", "u 1");
    put(p, "b.safetensors", "v 10 w 10");
    snprintf(path, sizeof(path), "%s/b.safetensors", p->dir);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    refused(p, "(tensor w); the download is incomplete");
    assert_int_equal(truncate(path, st.st_size - 15), 0);
    refused(p, "b.safetensors: ends at ");
    refused(p, "(tensor v)");
    unit_write(p->dir, "b.safetensors", "", 0);
    refused(p, "b.safetensors: an empty file (0 bytes)");
    const char *pointer = "version https://git-lfs.github.com/spec/v1\noid "
                          "sha256:00\nsize 4976698672\n";
    unit_write(p->dir, "b.safetensors", pointer, strlen(pointer));
    refused(p, "b.safetensors: a large-file (Git LFS) pointer of ");
    refused(p, "a file of 4976698672 bytes");
}

/* Between the two gates: gone, forbidden, another size. */
static void test_file_changes(void **state)
{
    struct place *p = *state;
    struct lade_catalogue *part = NULL;
    char path[PATH_MAX + 32];
    bool root = geteuid() == 0;

    put(p, "a.safetensors", "u 1");
    snprintf(path, sizeof(path), "%s/a.safetensors", p->dir);
    locate(p, false);
    put(p, "a.safetensors", "u 2");
    unit_failed(lade_catalogue_scan(p->shards, 0, 1, p->mem, &part, &p->err),
                &p->err, LADE_E_CHECKPOINT,
                "a.safetensors: has 81 bytes, had 80 a moment ago; it changes "
                "while it is loaded");
    assert_int_equal(chmod(p->dir, 0755), 0);
    assert_int_equal(chmod(path, 0), 0);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    int rc = lade_catalogue_scan(p->shards, 0, 1, p->mem, &part, &p->err);
    if (root)
        assert_int_equal(seteuid(0), 0);
    unit_failed(rc, &p->err, LADE_E_IO,
                "a.safetensors: cannot open it: Permission denied");
    unlink(path);
    unit_failed(lade_catalogue_scan(p->shards, 0, 1, p->mem, &part, &p->err),
                &p->err, LADE_E_CHECKPOINT,
                "a.safetensors: cannot open it: No such file or directory");
    assert_null(part);
    /* more ranks than shards: an empty part */
    assert_int_equal(
        lade_catalogue_scan(p->shards, 5, 8, p->mem, &part, &p->err), LADE_OK);
    assert_int_equal(part->rows.count, 0);
    lade_free(p->mem, part);
}

/* Many rows: no square of them anywhere. */
static void test_many(void **state)
{
    struct place *p = *state;
    enum { ROWS = 50000 };
    size_t size = (size_t)ROWS * 100, at = 8;
    char *text = malloc(size);

    assert_non_null(text);
    for (int i = 0; i < ROWS; i++)
        at += (size_t)snprintf(text + at, size - at,
                               "%c\"w%d\":{\"dtype\":\"F32\",\"shape\":[1],"
                               "\"data_offsets\":[%d,%d]}",
                               i ? ',' : '{', i, 4 * (ROWS - 1 - i),
                               4 * (ROWS - i));
    text[at++] = '}';
    uint64_t length = at - 8;
    memcpy(text, &length, 8);
    unit_write(p->dir, "m.safetensors", text, at);
    free(text);
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/m.safetensors", p->dir);
    assert_int_equal(truncate(path, (off_t)at + 4 * ROWS), 0);
    build(p);
    assert_int_equal(p->catalogue->rows.count, ROWS);
    assert_int_equal(row_of(p, "w0")->offset, at + 4 * (ROWS - 1));
    assert_ptr_equal(row_of(p, "w49999"),
                     LADE_ITEMS(p->catalogue, rows, struct lade_row));
    assert_int_equal(p->catalogue->tensor_bytes, 4 * ROWS);
}

/* ---- together, on one rank ---- */

static void test_build_all(void **state)
{
    struct place *p = *state;
    struct lade_comm *self = lade_comm_self_new(&p->err);
    int zero = 0;
    const struct lade_node node = {
        .nodes = 1, .locals = 1, .node_of = &zero, .firsts = &zero};

    assert_non_null(self);
    put(p, "a.safetensors", "u 1");
    put(p, "b.safetensors", "v 1");
    locate(p, false);
    assert_int_equal(lade_catalogue_build_all(self, p->shards, p->index, p->mem,
                                              &node, &p->catalogue, &p->err),
                     LADE_OK);
    assert_names(p, "u v");
    put(p, "b.safetensors", "u 1");
    locate(p, false);
    unit_failed(lade_catalogue_build_all(self, p->shards, p->index, p->mem,
                                         &node, &p->catalogue, &p->err),
                &p->err, LADE_E_CHECKPOINT, "tensor u is in two files");
    assert_null(p->catalogue);
    lade_comm_free(self);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_rows),           CASE(test_reverse_header),
        CASE(test_any_parts),      CASE(test_two_files),
        CASE(test_index_promises), CASE(test_strays),
        CASE(test_damaged_shard),  CASE(test_file_changes),
        CASE(test_many),           CASE(test_build_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
