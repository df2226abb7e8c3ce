/*
 * safetensors headers: what is accepted, and every refusal with its words.
 */
#include "unit.h"

#include "catalogue/catalogue.h"

#define DATA(begin, end) "\"data_offsets\":[" #begin "," #end "]"
#define ENTRY(dtype, shape, begin, end)                                        \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape "," DATA(begin, end) "}"

struct seen {
    int count;
    char names[16][64];
    char dtypes[16][32];
    struct lade_row rows[16];
};

struct room {
    struct lade_mem *mem;
    struct seen seen;
    struct lade_row_sink sink;
    lade_err err;
    char dir[PATH_MAX];
    uint64_t header_bytes;
};

static int take(void *ctx, const char *name, size_t length,
                const struct lade_row *row, const char *dtype, lade_err *err)
{
    struct seen *s = ctx;

    (void)err;
    if (s->count < 16) {
        assert_int_equal(strlen(name), length);
        snprintf(s->names[s->count], sizeof(s->names[0]), "%s", name);
        snprintf(s->dtypes[s->count], sizeof(s->dtypes[0]), "%s", dtype);
        s->rows[s->count] = *row;
    }
    s->count++;
    return LADE_OK;
}

static int set_up(void **state)
{
    struct room *r = calloc(1, sizeof(*r));

    assert_non_null(r);
    r->mem = lade_mem_new();
    r->err = (lade_err)LADE_ERR_INIT;
    r->sink = (struct lade_row_sink){take, &r->seen};
    unit_folder_new(r->dir);
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    struct room *r = *state;

    for (int tag = 0; tag < LADE_TAGS; tag++)
        assert_int_equal(lade_mem_now(r->mem, (enum lade_tag)tag), 0);
    lade_mem_free(r->mem);
    unit_folder_free(r->dir);
    free(r);
    return 0;
}

static int parse_sized(struct room *r, const char *header, uint64_t file_size)
{
    memset(&r->seen, 0, sizeof(r->seen));
    return lade_safetensors_parse(header, strlen(header), file_size, "m.st",
                                  r->mem, &r->sink, &r->err);
}

/* The header, and `data` bytes behind it. */
static int parse(struct room *r, const char *header, uint64_t data)
{
    return parse_sized(r, header, 8 + strlen(header) + data);
}

static void accepted(struct room *r, const char *header, uint64_t data,
                     int count)
{
    if (parse(r, header, data) != LADE_OK)
        fail_msg("%s: %s", header, r->err.text);
    assert_int_equal(r->seen.count, count);
}

/* Every refusal names the file. */
static void refused(struct room *r, const char *header, uint64_t data,
                    const char *words)
{
    int rc = parse(r, header, data);

    if (strncmp(r->err.text, "m.st", 4) != 0)
        fail_msg("\"%s\" (%s) does not name the file", r->err.text, header);
    unit_failed(rc, &r->err, LADE_E_CHECKPOINT, words);
}

/* ---- headers ---- */

static void test_rows(void **state)
{
    struct room *r = *state;
    const char *header =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":" ENTRY("BF16", "[4,3]", 4, 28) ","
                                               "\"a\":" ENTRY("F32", "[]", 0,
                                                              4) "}  \n";

    accepted(r, header, 28, 2);
    assert_string_equal(r->seen.names[0], "b");
    assert_string_equal(r->seen.dtypes[0], "BF16");
    const struct lade_row *row = &r->seen.rows[0];
    assert_int_equal(row->offset, 8 + strlen(header) + 4);
    assert_int_equal(row->length, 24);
    assert_int_equal(row->dtype, LADE_DTYPE_BF16);
    assert_int_equal(row->ndim, 2);
    assert_int_equal(row->shape[0], 4);
    assert_int_equal(row->shape[1], 3);
    assert_int_equal(row->shape[2], 0);
    assert_int_equal(r->seen.rows[1].ndim, 0);
    accepted(r, "{}", 0, 0);
    accepted(r, "{\"1e2\\\"-.\":" ENTRY("U8", "[4]", 0, 4) "}", 4, 1);
    assert_string_equal(r->seen.names[0], "1e2\"-.");
    accepted(r, "{\"__metadata__\":{}}", 0, 0);
    accepted(r, "{\"a\":" ENTRY("U8", "[1,1,1,1,1,1,1,2]", 0, 2) "}", 2, 1);
}

/* C014: scalars of each type hold one element. */
static void test_scalars(void **state)
{
    struct room *r = *state;
    char header[256];

    for (int t = LADE_DTYPE_BOOL; t < LADE_DTYPE_F4; t++) {
        unsigned bytes = lade_dtype_bits((enum lade_dtype)t) / 8;
        snprintf(header, sizeof(header),
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[],\"data_offsets\":"
                 "[0,%u]}}",
                 lade_dtype_name((enum lade_dtype)t), bytes);
        accepted(r, header, bytes, 1);
        assert_int_equal(r->seen.rows[0].dtype, t);
        snprintf(header, sizeof(header),
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[],\"data_offsets\":"
                 "[0,0]}}",
                 lade_dtype_name((enum lade_dtype)t));
        refused(r, header, 0, "[] needs ");
    }
}

/* C014: empty tensors at the start, in the middle, at the end, and twice. */
static void test_empty(void **state)
{
    struct room *r = *state;

    accepted(
        r,
        "{\"e\":" ENTRY("F8_E4M3", "[0]", 0, 0) ",\"f\":" ENTRY("F16", "[2,0]", 0, 0) ",\"a\":" ENTRY(
            "U8", "[4]", 0,
            4) ","
               "\"g\":" ENTRY("F16", "[0,7]", 4, 4) ",\"h\":" ENTRY(
                   "F16", "[0]", 4,
                   4) ",\"b\":" ENTRY("U8", "[4]", 4,
                                      8) ","
                                         "\"i\":" ENTRY(
                                             "F32", "[2,0]", 8,
                                             8) ",\"j\":" ENTRY("F32", "[0]", 8,
                                                                8) "}",
        8, 8);
    assert_int_equal(r->seen.rows[1].length, 0);
    assert_int_equal(r->seen.rows[1].shape[0], 2);
    refused(r, "{\"a\":" ENTRY("F32", "[1]", 0, 0) "}", 0,
            "tensor a: F32 [1] needs 4 bytes, its data_offsets give 0");
    refused(r, "{\"a\":" ENTRY("F32", "[0]", 8, 8) "}", 0,
            "tensor a: it begins at 8, but the tensors before it end at 0");
}

/* C016 */
static void test_small_types(void **state)
{
    struct room *r = *state;

    accepted(r, "{\"a\":" ENTRY("F8_E8M0", "[4,2]", 0, 8) "}", 8, 1);
    accepted(r, "{\"a\":" ENTRY("F4", "[2,8]", 0, 8) "}", 8, 1);
    assert_int_equal(r->seen.rows[0].shape[1], 8);
    assert_int_equal(r->seen.rows[0].length, 8);
    refused(r, "{\"a\":" ENTRY("F4", "[2,7]", 0, 7) "}", 7,
            "tensor a: F4 [2,7]: a row ends inside a byte");
    refused(r, "{\"a\":" ENTRY("F4", "[]", 0, 0) "}", 0,
            "a row ends inside a byte");
    accepted(r, "{\"a\":" ENTRY("F4", "[7,0]", 0, 0) "}", 0, 1);
}

/* Kept with its spelling; nobody can know its size. */
static void test_unknown_dtype(void **state)
{
    struct room *r = *state;

    accepted(r, "{\"a\":" ENTRY("F6_E2M3", "[3]", 0, 5) "}", 5, 1);
    assert_int_equal(r->seen.rows[0].dtype, LADE_DTYPE_UNKNOWN);
    assert_string_equal(r->seen.dtypes[0], "F6_E2M3");
    accepted(r, "{\"a\":" ENTRY("bf16", "[3]", 0, 6) "}", 6, 1);
    assert_int_equal(r->seen.rows[0].dtype, LADE_DTYPE_UNKNOWN);
    refused(r, "{\"a\":" ENTRY("F6_E2M3", "[3]", 0, 5) "}", 4,
            "the download is incomplete");
}

/* C004, C005: found from the header and the size alone. */
static void test_short_files(void **state)
{
    struct room *r = *state;
    const char *two = "{\"a\":" ENTRY("U8", "[4]", 0, 4) ",\"b\":" ENTRY(
        "U8", "[8]", 4, 12) "}";
    const char *million =
        "{\"model.norm.weight\":" ENTRY("F32", "[1000,1000]", 0, 4000000) "}";
    char words[256];
    unsigned long long data = 8 + strlen(two);

    accepted(r, two, 12, 2);
    snprintf(words, sizeof(words),
             "m.st: ends at %llu but the header needs %llu (tensor b); the "
             "download is incomplete",
             data + 11, data + 12);
    refused(r, two, 11, words);
    snprintf(words, sizeof(words),
             "ends at %llu but the header needs %llu "
             "(tensor a)",
             data + 3, data + 12);
    refused(r, two, 3, words);
    refused(r, two, 4, "(tensor b)");
    data = 8 + strlen(million);
    snprintf(words, sizeof(words),
             "m.st: ends at %llu but the header needs %llu (tensor "
             "model.norm.weight); the download is incomplete",
             data + 4, data + 4000000);
    refused(r, million, 4, words);
    snprintf(words, sizeof(words),
             "ends at %llu but its last tensor ends at %llu; bytes that belong "
             "to no tensor",
             8ULL + strlen(two) + 13, 8ULL + strlen(two) + 12);
    refused(r, two, 13, words);
    refused(r, "{}", 1, "bytes that belong to no tensor");
    unit_failed(parse_sized(r, two, 20), &r->err, LADE_E_CHECKPOINT,
                "in a file of 20");
    unit_failed(parse_sized(r, two, 0), &r->err, LADE_E_CHECKPOINT,
                "in a file of 0");
}

/* C007, C008, C010 and the rest about ranges. */
static void test_ranges(void **state)
{
    struct room *r = *state;

    refused(r,
            "{\"k\":" ENTRY("F16", "[4,4]", 0,
                            32) ",\"v\":" ENTRY("F16", "[4,4]", 0, 32) "}",
            32, "tensors k [0,32] and v [0,32] overlap");
    refused(r,
            "{\"k\":" ENTRY("U8", "[8]", 0, 8) ",\"e\":" ENTRY(
                "U8", "[0]", 4, 4) ",\"v\":" ENTRY("U8", "[8]", 6, 14) "}",
            14, "tensors k [0,8] and v [6,14] overlap");
    refused(r,
            "{\"k\":" ENTRY("U8", "[8]", 0, 8) ",\"v\":" ENTRY(
                "U8", "[2]", 4, 6) ",\"w\":" ENTRY("U8", "[4]", 8, 12) "}",
            12, "tensors k [0,8] and v [4,6] overlap");
    accepted(r,
             "{\"c\":" ENTRY("U8", "[4]", 8, 12) ",\"b\":" ENTRY(
                 "U8", "[4]", 4, 8) ",\"a\":" ENTRY("U8", "[4]", 0, 4) "}",
             12, 3);
    refused(r, "{\"a\":" ENTRY("F32", "[1000,1000]", 0, 4) "}", 4,
            "tensor a: F32 [1000,1000] needs 4000000 bytes, its data_offsets "
            "give 4");
    refused(r, "{\"a\":" ENTRY("U8", "[32]", 32, 0) "}", 32,
            "its data_offsets [32,0] run backwards");
    refused(r, "{\"a\":" ENTRY("U8", "[32]", -16, 16) "}", 32,
            "its data_offsets are not two whole numbers");
    refused(r, "{\"a\":" ENTRY("U8", "[4]", 4, 8) "}", 8,
            "tensor a: it begins at 4, but the tensors before it end at 0");
    refused(r,
            "{\"a\":" ENTRY("U8", "[4]", 0, 4) ",\"b\":" ENTRY("U8", "[4]", 5,
                                                               9) "}",
            9, "tensor b: it begins at 5, but the tensors before it end at 4");
    refused(r, "{\"a\":" ENTRY("U8", "[4]", 0, 9223372036854775807) "}", 4,
            "its data_offsets are not two whole numbers");
    refused(r, "{\"a\":" ENTRY("U8", "[4]", 0, 9007199254740991) "}", 4,
            "needs 4 bytes");
    refused(r, "{\"a\":" ENTRY("X", "[4]", 0, 9007199254740991) "}", 4,
            "the download is incomplete");
}

static void test_shapes(void **state)
{
    struct room *r = *state;
    static const char *const cases[][2] = {
        {ENTRY("U8", "[4294967296,4294967296]", 0, 4),
         "U8 [4294967296,4294967296]: its size exceeds 64 bits"},
        {ENTRY("F64", "[4503599627370496,4096]", 0, 4),
         "its size exceeds 64 bits"},
        {ENTRY("new", "[4294967296,4294967296]", 0, 4),
         "new [4294967296,4294967296]: its size exceeds 64 bits"},
        {ENTRY("U8", "[1,1,1,1,1,1,1,1,1]", 0, 1), "more than 8 dimensions"},
        {ENTRY("U8", "4", 0, 4), "its shape is not a list"},
        {ENTRY("U8", "[-4]", 0, 4), "no whole number"},
        {ENTRY("U8", "[1.5]", 0, 4), "no whole number"},
        {ENTRY("U8", "[\"4\"]", 0, 4), "no whole number"},
        {ENTRY("U8", "[null]", 0, 4), "no whole number"},
        {ENTRY("U8", "[[4]]", 0, 4), "no whole number"},
        {ENTRY("U8", "[18446744073709551616]", 0, 4), "out of range"},
        {ENTRY("U8", "[04]", 0, 4), "leading zero"},
        {ENTRY("U8", "[4.0]", 0, 4), "byte 29 of its header: a size must be "
                                     "written with digits only"},
        {ENTRY("U8", "[4e0]", 0, 4), "digits only"},
        {ENTRY("U8", "[0.4E1]", 0, 4), "digits only"},
        {ENTRY("U8", "[4]", -0, 4), "digits only"},
        {ENTRY("U8", "[9007199254740993,0]", 0, 0),
         "no whole number below 2^53"},
    };
    char header[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(header, sizeof(header), "{\"a\":%s}", cases[i][0]);
        refused(r, header, 4, cases[i][1]);
    }
}

static void test_entries(void **state)
{
    struct room *r = *state;
    static const char *const cases[][2] = {
        {"", "the text ends too early"},
        {"[]", "its header is not a JSON object"},
        {"7", "its header is not a JSON object"},
        {"{\"a\":1}", "tensor a: its entry is not an object"},
        {"{\"a\":[]}", "tensor a: its entry is not an object"},
        {"{\"a\":{}}", "tensor a: it has no dtype"},
        {"{\"a\":{\"dtype\":\"U8\"," DATA(0, 4) "}}", "it has no shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", "it has no data_offsets"},
        {"{\"a\":{\"dtype\":8,\"shape\":[4]," DATA(0, 4) "}}",
         "its dtype is not a text"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]," DATA(0, 4) ",\"x\":1}}",
         "unknown key x"},
        {"{\"a\":{\"Dtype\":\"U8\",\"shape\":[4]," DATA(0, 4) "}}",
         "unknown key Dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}",
         "not two whole numbers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]}}",
         "not two whole numbers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":{}}}",
         "not two whole numbers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,3.5]}}",
         "not two whole numbers"},
        {"{\"\":" ENTRY("U8", "[4]", 0, 4) "}", "its name is empty"},
        {"{\"a\\u0000b\":" ENTRY("U8", "[4]", 0, 4) "}", "NUL"},
        /* C012 */
        {"{\"a\":" ENTRY("U8", "[4]", 0, 4) ",\"a\":" ENTRY("U8", "[4]", 0,
                                                            4) "}",
         "the name a stands twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4]," DATA(
             0, 4) "}}",
         "the name dtype stands twice"},
        {"{\"__metadata__\":1}", "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"k\":1}}",
         "__metadata__: the value of k is not a text"},
        {"{\"a\":" ENTRY("U8", "[4]", 0, 4) "}x", "text after the end"},
        {"{\"a\":" ENTRY("U8", "[4]", 0, 4), "comma or }"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        refused(r, cases[i][0], 4, cases[i][1]);
}

static void test_long_names(void **state)
{
    struct room *r = *state;
    enum { LIMIT = 65536 };
    static char header[LIMIT + 256];

    for (int length = LIMIT; length <= LIMIT + 1; length++) {
        int n = snprintf(header, sizeof(header), "{\"%0*d\":%s}", length, 7,
                         ENTRY("U8", "[4]", 0, 4));
        assert_in_range(n, LIMIT, (int)sizeof(header) - 1);
        if (length == LIMIT)
            accepted(r, header, 4, 1);
        else
            refused(r, header, 4,
                    "its name has 65537 bytes; at most 65536 are accepted");
    }
}

static int refuse(void *ctx, const char *name, size_t length,
                  const struct lade_row *row, const char *dtype, lade_err *err)
{
    (void)ctx, (void)name, (void)length, (void)row, (void)dtype;
    return lade_err_set(err, LADE_E_MEMORY, "full");
}

static void test_sink_fails(void **state)
{
    const struct lade_row_sink refusing = {refuse, NULL};
    struct room *r = *state;
    const char *header = "{\"a\":" ENTRY("U8", "[4]", 0, 4) "}";

    unit_failed(lade_safetensors_parse(header, strlen(header),
                                       8 + strlen(header) + 4, "m.st", r->mem,
                                       &refusing, &r->err),
                &r->err, LADE_E_MEMORY, "full");
}

/* ---- files ---- */

/* Writes a length field, a header and data; the file is `size` bytes long. */
static void put(struct room *r, uint64_t length, const char *header,
                uint64_t size)
{
    char path[PATH_MAX + 8];
    FILE *f;

    snprintf(path, sizeof(path), "%s/m.st", r->dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(&length, 1, 8, f), 8);
    assert_int_equal(fwrite(header, 1, strlen(header), f), strlen(header));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(truncate(path, (off_t)size), 0);
}

static int scan_sized(struct room *r, uint64_t size)
{
    char path[PATH_MAX + 8];

    snprintf(path, sizeof(path), "%s/m.st", r->dir);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    memset(&r->seen, 0, sizeof(r->seen));
    int rc = lade_format_safetensors.scan(fd, size, "m.st", r->mem, &r->sink,
                                          &r->header_bytes, &r->err);
    close(fd);
    return rc;
}

static int scan(struct room *r)
{
    char path[PATH_MAX + 8];
    struct stat st;

    snprintf(path, sizeof(path), "%s/m.st", r->dir);
    assert_int_equal(stat(path, &st), 0);
    return scan_sized(r, (uint64_t)st.st_size);
}

static void test_file(void **state)
{
    struct room *r = *state;
    const char *header = "{\"a\":" ENTRY("U8", "[4]", 0, 4) "}";
    uint64_t size = 8 + strlen(header) + 4;

    put(r, strlen(header), header, size);
    assert_int_equal(scan(r), LADE_OK);
    assert_int_equal(r->seen.count, 1);
    assert_int_equal(r->header_bytes, 8 + strlen(header));
    assert_string_equal(lade_format_safetensors.name, "safetensors");
    /* another size than the gate before saw */
    unit_failed(scan_sized(r, size + 1), &r->err, LADE_E_CHECKPOINT,
                "it changes while it is loaded");
    put(r, strlen(header), header, size - 1);
    unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT,
                "(tensor a); the download is incomplete");
}

/* Sizes 0 to 8, and fields that promise more than there is: nothing large may
 * be allocated. C002, C012. */
static void test_length_fields(void **state)
{
    struct room *r = *state;
    static const uint64_t lengths[] = {
        3,          100000001,     UINT64_C(1) << 62, UINT64_C(1) << 63,
        UINT64_MAX, UINT64_MAX - 7};

    for (uint64_t size = 0; size < 8; size++) {
        put(r, 2, "{}", size);
        unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT,
                    size ? "shorter than the 8 bytes of a header length"
                         : "an empty file (0 bytes); the download is "
                           "incomplete");
    }
    put(r, 0, "", 8);
    unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT, "ends too early");
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        char words[128];
        put(r, lengths[i], "{}", 10);
        snprintf(words, sizeof(words),
                 "promise a header of %llu bytes, but the file has 10",
                 (unsigned long long)lengths[i]);
        unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT, words);
    }
    put(r, (UINT64_C(1) << 30) + 1, "{}", UINT64_C(1) << 31);
    unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT,
                "a header of 1073741825 bytes; at most 1073741824");
    assert_true(lade_mem_peak_total(r->mem) < 4096);
}

/* C002: beyond the 100 MB that others stop at. */
static void test_large_header(void **state)
{
    struct room *r = *state;
    enum { LENGTH = 100000001 };
    const char *header = "{\"a\":" ENTRY("U8", "[4]", 0, 4) "}";
    char *text = malloc(LENGTH);

    assert_non_null(text);
    memset(text, ' ', LENGTH);
    memcpy(text, header, strlen(header));
    if (lade_safetensors_parse(text, LENGTH, 8 + LENGTH + 4, "m.st", r->mem,
                               &r->sink, &r->err) != LADE_OK)
        fail_msg("%s", r->err.text);
    assert_int_equal(r->seen.count, 1);
    assert_int_equal(r->seen.rows[0].offset, 8 + LENGTH);
    free(text);
}

/* C001 */
static void test_pointers(void **state)
{
    struct room *r = *state;
    const char *pointer =
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:"
        "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
        "size 4976698672\n";

    unit_write(r->dir, "m.st", pointer, strlen(pointer));
    int rc = scan(r);
    if (!strstr(r->err.text, "135 bytes, not weights"))
        fail_msg("%s", r->err.text);
    unit_failed(rc, &r->err, LADE_E_CHECKPOINT,
                "it stands for a file of 4976698672 bytes: fetch that with git "
                "lfs pull");
    unit_write(r->dir, "m.st", pointer, 8);
    unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT,
                "promise a header of 2336927755350992246 bytes, but the file "
                "has 8");
    unit_write(r->dir, "m.st", pointer, 30);
    unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT, "a file of 0 bytes");
    const char *page = "<!DOCTYPE html><html>login</html>";
    unit_write(r->dir, "m.st", page, strlen(page));
    unit_failed(scan(r), &r->err, LADE_E_CHECKPOINT,
                "not safetensors, or the download is incomplete");
}

/* The system fails: a closed descriptor. */
static void test_system_fails(void **state)
{
    struct room *r = *state;

    unit_failed(lade_format_safetensors.scan(-1, 100, "m.st", r->mem, &r->sink,
                                             &r->header_bytes, &r->err),
                &r->err, LADE_E_IO, "m.st: Bad file descriptor");
    const char *header = "{\"a\":" ENTRY("U8", "[4]", 0, 4) "}";
    char path[PATH_MAX + 8];
    put(r, strlen(header), header, 8 + strlen(header) + 4);
    snprintf(path, sizeof(path), "%s/m.st", r->dir);
    int fd = open(path, O_WRONLY);
    unit_failed(lade_format_safetensors.scan(fd, 8 + strlen(header) + 4, "m.st",
                                             r->mem, &r->sink, &r->header_bytes,
                                             &r->err),
                &r->err, LADE_E_IO, "m.st at 0: wanted 8 bytes, got 0");
    close(fd);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_rows),          CASE(test_scalars),
        CASE(test_empty),         CASE(test_small_types),
        CASE(test_unknown_dtype), CASE(test_short_files),
        CASE(test_ranges),        CASE(test_shapes),
        CASE(test_entries),       CASE(test_long_names),
        CASE(test_sink_fails),    CASE(test_file),
        CASE(test_length_fields), CASE(test_large_header),
        CASE(test_pointers),      CASE(test_system_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
