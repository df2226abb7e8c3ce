/*
 * lade synth: tiny checkpoints have the sha256 of the golden records; true-size
 * ones have the published files; model files, overrides and directories that
 * do not fit are refused with the cause.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "synth/synth.h"
#include "synth/synth_write.h"

/* ---- sha256 -------------------------------------------------------------- */

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static const uint32_t sha_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void sha_block(uint32_t h[8], const unsigned char *block)
{
    uint32_t w[64], s[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, h, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t one =
            s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
            ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_words[i] + w[i];
        const uint32_t two =
            (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
            ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] += s[i];
}

static void sha256(unsigned char *data, size_t size, char out[65])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char last[128] = {0};
    const size_t rest = size % 64, end = rest < 56 ? 64 : 128;
    for (size_t at = 0; at + 64 <= size; at += 64)
        sha_block(h, data + at);
    memcpy(last, data + size - rest, rest);
    last[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[end - 1 - i] = (unsigned char)((uint64_t)size * 8 >> (8 * i));
    sha_block(h, last);
    if (end == 128)
        sha_block(h, last + 64);
    for (unsigned i = 0; i < 8; i++)
        snprintf(out + 8 * (size_t)i, 9, "%08x", h[i]);
}

/* ---- helpers ------------------------------------------------------------- */

static char folder[64];
static struct lade_mem *mem;

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lade-synth-XXXXXX");
    mem = lade_mem_new();
    return mem == NULL || mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    uint64_t left = 0;
    for (int tag = 0; tag < LADE_TAGS; tag++)
        left += lade_mem_now(mem, (enum lade_tag)tag);
    lade_mem_free(mem);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || left != 0;
}

static const char *path_of(const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s is not there", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    data[*size] = '\0';
    fclose(file);
    return data;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct lade_synth_report made(const struct lade_synth_wish *wish)
{
    struct lade_synth_report report = {0};
    lade_err err = LADE_ERR_INIT;
    if (lade_synth_write(wish, mem, &report, &err) != LADE_OK)
        fail_msg("%s", err.text);
    return report;
}

static void refused(const struct lade_synth_wish *wish, int status,
                    const char *words)
{
    struct lade_synth_report report = {0};
    lade_err err = LADE_ERR_INIT;
    const int rc = lade_synth_write(wish, mem, &report, &err);
    if (rc != status || err.status != status || strstr(err.text, words) == NULL)
        fail_msg("want %d with \"%s\", got %d: %s", status, words, rc,
                 err.text);
}

/* ---- tiny ---------------------------------------------------------------- */

static const struct golden {
    const char *preset, *set;
    struct {
        const char *name;
        uint64_t size;
        const char *sha256;
    } files[3];
} goldens[] = {
    {"llama-3-8b",
     NULL,
     {
         {"model-00001-of-00003.safetensors", 128728,
          "6d373fbb7e1ddf50ebb51ee9ba3f966a23ff4db75a10a75d1cbbb4b69e751e17"},
         {"model-00002-of-00003.safetensors", 217288,
          "1d583339b89a7e9a01d9bc6d02f490790acbad0dd7bab4455cb01b2c1c10351b"},
         {"model-00003-of-00003.safetensors", 197456,
          "0145d1b8520670863daaea6e99201cff17cecf2a965ad6051fae119bf3222ed8"},
     }},
    {"llama-3.2-1b",
     NULL,
     {
         {"model.safetensors", 476376,
          "dcd7c3544fcfb03eacb9682e4a77b347acef2b382b1be82b9995f28aee7c6263"},
     }},
    {"mixtral-8x7b",
     NULL,
     {
         {"model-00001-of-00003.safetensors", 644960,
          "711253625346692adbc9ca6210fe629f49e022632a5f70e8ff05f1afd18299ef"},
         {"model-00002-of-00003.safetensors", 642104,
          "c4896bef53770ae989b150444bdafad8635edb31edbebea73c0edaa39361ba9e"},
         {"model-00003-of-00003.safetensors", 370456,
          "786e3aa0bf1fdce913842312eb528c80f5817f6e2e251024a9b5c24162e7d28e"},
     }},
    {"qwen2.5-7b",
     NULL,
     {
         {"model-00001-of-00003.safetensors", 128728,
          "6d373fbb7e1ddf50ebb51ee9ba3f966a23ff4db75a10a75d1cbbb4b69e751e17"},
         {"model-00002-of-00003.safetensors", 218760,
          "430ca59656c396ca685d6c7a4a2885640866c50a76bff2d3c8fd582e58f721ac"},
         {"model-00003-of-00003.safetensors", 197456,
          "0145d1b8520670863daaea6e99201cff17cecf2a965ad6051fae119bf3222ed8"},
     }},
    {"qwen3-0.6b",
     NULL,
     {
         {"model.safetensors", 605648,
          "c48249738a137ddc7367c7fa804171eb050bcc23f875c2f8a23f49563180380a"},
     }},
    {"qwen3-30b-a3b",
     "num_experts=20",
     {
         {"model-00001-of-00003.safetensors", 748608,
          "47cc1a2a4f1adb2dc514201acb98ca6bed6aa9287db05e67bab6c38879055ae6"},
         {"model-00002-of-00003.safetensors", 747392,
          "1fb234b1242d5e5de116286d384ef269294e6cde9421643ed6c6f55c83ec88fa"},
         {"model-00003-of-00003.safetensors", 390232,
          "4b9164ef9b74dc6c293da071503c4a1f77070f6d35a4d303324fb51a368d1c20"},
     }},
    {"qwen3-30b-a3b",
     NULL,
     {
         {"model-00001-of-00003.safetensors", 504704,
          "9230be9d77380dd26437bc401bbd877c7e85f57a486ba4286357b83f63931e14"},
         {"model-00002-of-00003.safetensors", 514864,
          "472419f4d3d866829305c2ecb90e230e84b5de5ec139d592d7b923f2964eaf51"},
         {"model-00003-of-00003.safetensors", 265680,
          "57a40d36ee9e5b0552b7619b32e2fbbc26929f1d06644592bfe2df6a42683e35"},
     }},
    {"qwen3-8b",
     NULL,
     {
         {"model-00001-of-00003.safetensors", 128728,
          "6d373fbb7e1ddf50ebb51ee9ba3f966a23ff4db75a10a75d1cbbb4b69e751e17"},
         {"model-00002-of-00003.safetensors", 237560,
          "b40fe867066730e087e3115cdabcbd12347e3d4db0e1ef07008b8b72ae082de6"},
         {"model-00003-of-00003.safetensors", 239416,
          "c943a087d5d9e99e0813405d1e75f0ffd74506597adc443ef4aa61010d140a12"},
     }},
};

static void test_tiny(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof goldens / sizeof *goldens; g++) {
        const struct golden *want = &goldens[g];
        const struct lade_synth_wish wish = {
            .preset = want->preset,
            .out = path_of("tiny"),
            .sets = &want->set,
            .set_count = want->set != NULL,
            .fill = LADE_SYNTH_FILL_1,
            .tiny = true,
            .force = g > 0,
        };
        const struct lade_synth_report report = made(&wish);
        const bool one = want->files[1].name == NULL;
        assert_int_equal(report.files, one ? 1 : 3);
        assert_string_equal(report.model, want->preset);
        for (unsigned f = 0; f < report.files; f++) {
            char name[80], sum[65];
            size_t size;
            snprintf(name, sizeof name, "tiny/%s", want->files[f].name);
            unsigned char *data = read_file(path_of(name), &size);
            sha256(data, size, sum);
            free(data);
            assert_int_equal(size, want->files[f].size);
            if (strcmp(sum, want->files[f].sha256) != 0)
                fail_msg("%s %s: sha256 %s, want %s", want->preset, name, sum,
                         want->files[f].sha256);
        }
        // --force leaves no index of the checkpoint before
        assert_int_equal(
            access(path_of("tiny/model.safetensors.index.json"), F_OK),
            one ? -1 : 0);
        assert_int_equal(access(path_of("tiny/model.safetensors"), F_OK),
                         one ? 0 : -1);
    }
}

static cJSON *parse(const char *path)
{
    cJSON *root = NULL;
    lade_err err = LADE_ERR_INIT;
    if (lade_json_read(path, UINT64_C(1) << 24, &root, &err) != LADE_OK)
        fail_msg("%s", err.text);
    return root;
}

static void test_config_and_index(void **state)
{
    (void)state;
    const char *const sets[] = {"num_experts=20", "new_key={\"a\":[1,null]}",
                                "torch_dtype=\"float16\""};
    const struct lade_synth_wish wish = {.preset = "qwen3-30b-a3b",
                                         .out = path_of("config"),
                                         .sets = sets,
                                         .set_count = 3,
                                         .fill = LADE_SYNTH_FILL_1,
                                         .tiny = true};
    const struct lade_synth_report report = made(&wish);
    assert_int_equal(report.tensors, 210);
    assert_int_equal(report.bytes, 1862976);

    cJSON *config = parse(path_of("config/config.json"));
    uint64_t value = 0;
    static const struct {
        const char *key;
        uint64_t value;
    } keys[] = {{"num_experts", 20},   {"hidden_size", 64},
                {"vocab_size", 1003},  {"max_position_embeddings", 128},
                {"rope_theta", 10000}, {"eos_token_id", 2}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_true(lade_json_u64(
            cJSON_GetObjectItemCaseSensitive(config, keys[i].key), &value));
        assert_int_equal(value, keys[i].value);
    }
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
                            config, "torch_dtype")),
                        "float16");
    assert_non_null(cJSON_GetObjectItemCaseSensitive(config, "new_key"));
    cJSON_Delete(config);

    cJSON *index = parse(path_of("config/model.safetensors.index.json"));
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(index, "weight_map");
    assert_int_equal(cJSON_GetArraySize(map), 210);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
                            map, "model.embed_tokens.weight")),
                        "model-00001-of-00003.safetensors");
    assert_true(lade_json_u64(
        cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(index, "metadata"), "total_size"),
        &value));
    assert_int_equal(value, 1862976);
    cJSON_Delete(index);
}

/* ---- true size ----------------------------------------------------------- */

/* Published counts, and sizes where the first file's is known. */
static void test_true_size(void **state)
{
    (void)state;
    static const struct {
        const char *preset, *first;
        unsigned files;
        uint64_t tensors, bytes;
        uint64_t first_size; /* 0: not known */
    } cases[] = {
        {"llama-3.2-1b", "model.safetensors", 1, 146, 2471628800, 2471645608},
        {"llama-3.2-3b", "model-00001-of-00002.safetensors", 2, 254, 6425499648,
         4965799096},
        {"llama-3-8b", "model-00001-of-00004.safetensors", 4, 291, 16060522496,
         4976698672},
        {"llama-3-70b", "model-00001-of-00030.safetensors", 30, 723,
         141107412992, 0},
        {"mistral-7b-v0.3", "model-00001-of-00003.safetensors", 3, 291,
         14496047104, 4949453792},
        {"qwen2.5-7b", "model-00001-of-00004.safetensors", 4, 339, 15231233024,
         0},
        {"qwen3-0.6b", "model.safetensors", 1, 311, 1503264768, 1503300328},
        {"qwen3-8b", "model-00001-of-00005.safetensors", 5, 399, 16381470720,
         3996250744},
        {"qwen3-30b-a3b", "model-00001-of-00016.safetensors", 16, 18867,
         61064245248, 0},
        {"qwen3-235b-a22b", "model-00001-of-00118.safetensors", 118, 36945,
         470187269120, 0},
        {"mixtral-8x7b", "model-00001-of-00019.safetensors", 19, 995,
         93405585408, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64], first[128];
        struct stat info;
        snprintf(out, sizeof out, "true-%zu", i);
        const struct lade_synth_wish wish = {.preset = cases[i].preset,
                                             .out = path_of(out),
                                             .fill = LADE_SYNTH_ZERO_SPARSE};
        const struct lade_synth_report report = made(&wish);
        assert_int_equal(report.files, cases[i].files);
        assert_int_equal(report.tensors, cases[i].tensors);
        assert_int_equal(report.bytes, cases[i].bytes);
        snprintf(first, sizeof first, "%s/%s", out, cases[i].first);
        assert_int_equal(stat(path_of(first), &info), 0);
        if (cases[i].first_size != 0)
            assert_int_equal(info.st_size, cases[i].first_size);
        // the header has disk blocks, the data none
        assert_true((uint64_t)info.st_blocks * 512 < UINT64_C(1) << 20);
    }
}

/* A file of several blocks, made by several threads, equals its parts. */
static void test_blocks(void **state)
{
    (void)state;
    const char *const sets[] = {"vocab_size=70001", "hidden_size=130",
                                "num_hidden_layers=1"};
    struct lade_synth_wish wish = {.preset = "llama-3.2-1b",
                                   .out = path_of("blocks"),
                                   .sets = sets,
                                   .set_count = 3,
                                   .fill = LADE_SYNTH_FILL_1,
                                   .seed = UINT64_MAX,
                                   .threads = 3};
    const struct lade_synth_report many = made(&wish);
    size_t size, again;
    unsigned char *data = read_file(path_of("blocks/model.safetensors"), &size);
    assert_int_equal(size, many.file_bytes);
    assert_true(size > 3 * (UINT64_C(8) << 20) && size % 4096 != 0);
    wish.out = path_of("blocks-1");
    wish.threads = 1;
    made(&wish);
    unsigned char *other =
        read_file(path_of("blocks-1/model.safetensors"), &again);
    assert_int_equal(size, again);
    assert_memory_equal(data, other, size);
    // another seed, other values, the same header
    wish.seed = 1;
    wish.force = true;
    made(&wish);
    free(other);
    other = read_file(path_of("blocks-1/model.safetensors"), &again);
    assert_memory_equal(data, other, 256);
    assert_memory_not_equal(data + size - 4096, other + size - 4096, 4096);
    free(data);
    free(other);
}

/* ---- refusals ------------------------------------------------------------ */

static void test_bad_wishes(void **state)
{
    (void)state;
    struct lade_synth_wish wish = {
        .preset = "llama-3-8c", .out = path_of("wish"), .tiny = true};
    refused(&wish, LADE_E_USAGE, "nearest: llama-3-8b");
    wish.preset = NULL;
    refused(&wish, LADE_E_USAGE, "--preset NAME or --model FILE");
    wish.preset = wish.model_file = "x";
    refused(&wish, LADE_E_USAGE, "not both");
    wish.preset = NULL;
    wish.model_file = path_of("absent.json");
    refused(&wish, LADE_E_CHECKPOINT, "absent.json");
    wish = (struct lade_synth_wish){.preset = "llama-3-8b"};
    refused(&wish, LADE_E_USAGE, "--out");

    static const struct {
        const char *set;
        int status;
        const char *words;
    } sets[] = {
        {"vocab_size", LADE_E_USAGE, "needs KEY=VALUE"},
        {"=1", LADE_E_USAGE, "needs KEY=VALUE"},
        {"torch_dtype=float16", LADE_E_USAGE, "a text needs quotes"},
        {"vocab_size=01", LADE_E_USAGE, "not JSON"},
        {"vocab_size.x=1", LADE_E_USAGE, "no object"},
        {"a.b=1", LADE_E_USAGE, "no object"},
        {"a..b=1", LADE_E_USAGE, "no object"},
        {"vocab_size=\"many\"", LADE_E_CHECKPOINT, "whole number"},
        {"vocab_size=-1", LADE_E_CHECKPOINT, "negative"},
        {"vocab_size=9007199254740992", LADE_E_CHECKPOINT, "64 bits"},
        {"vocab_size=1125899906842624", LADE_E_CHECKPOINT, "2^63"},
        {"num_hidden_layers=99999999", LADE_E_CHECKPOINT, "4194304"},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        wish = (struct lade_synth_wish){.preset = "llama-3-8b",
                                        .out = path_of("wish"),
                                        .sets = &sets[i].set,
                                        .set_count = 1};
        refused(&wish, sets[i].status, sets[i].words);
    }
    assert_int_equal(access(path_of("wish"), F_OK), -1); // nothing was made
}

#define MODEL(rest)                                                            \
    "{\"name\":\"m\",\"config\":{\"n\":2},\"let\":{},\"tiny\":{}," rest "}"
#define ONE(rest) MODEL("\"tensors\":[{" rest "}]")

static void test_bad_models(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } models[] = {
        {"[]", "the key name"},
        {"{\"name\":3}", "the key name"},
        {"{\"name\":\"m\",\"config\":[]}", "the key config"},
        {"{\"name\":\"m\",\"config\":{}}", "the key let"},
        {MODEL("\"tensors\":{}"), "the key tensors"},
        {MODEL("\"tensors\":[]"), "names no tensors"},
        {"{\"name\":\"m\",\"name\":\"m\"}", "name"},
        {ONE("\"shape\":[1]"), "tensors[0] has no name"},
        {ONE("\"name\":\"a\",\"shape\":[1]"), "dtype (none)"},
        {ONE("\"name\":\"a\",\"shape\":[1],\"dtype\":\"F17\""), "dtype F17"},
        {ONE("\"name\":\"a\",\"shape\":3,\"dtype\":\"F16\""), "shape"},
        {ONE("\"name\":\"a\",\"shape\":[1,1,1,1,1,1,1,1,1],\"dtype\":\"F16\""),
         "at most 8"},
        {ONE("\"name\":\"a\",\"shape\":[9007199254740991,9007199254740991],"
             "\"dtype\":\"F16\""),
         "64 bits"},
        {ONE("\"name\":\"a\\\"b\",\"shape\":[1],\"dtype\":\"F16\""), "quotes"},
        {ONE("\"name\":\"a\\n\",\"shape\":[1],\"dtype\":\"F16\""), "quotes"},
        {ONE("\"name\":\"a.{Q}\",\"shape\":[1],\"dtype\":\"F16\""), "Q"},
        {ONE("\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\",\"layers\":[[0]]"),
         "list of two"},
        {ONE("\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\",\"layers\":[[0,2]"
             "]"),
         "two tensors are named a"},
        {ONE("\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\",\"layers\":7"),
         "not a list"},
        {ONE("\"name\":\"a{E}\",\"shape\":[1],\"dtype\":\"F16\",\"experts\":"
             "[-1,2]"),
         "leaves 0"},
        {ONE("\"name\":\"a{E}\",\"shape\":[1],\"dtype\":\"F16\",\"experts\":"
             "[0,99999999]"),
         "4194304"},
        {ONE("\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\",\"fill\":1"),
         "not a text"},
        {ONE("\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\",\"fill\":\"z\""),
         "does not fit"},
        {MODEL("\"tensors\":[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\"}],"
               "\"files\":{\"rule\":{\"kind\":\"magic\"}}"),
         "magic is unknown"},
        {MODEL("\"tensors\":[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"F16\"}],"
               "\"files\":{\"rule\":{\"kind\":\"greedy\",\"max_bytes\":0}}"),
         "max_bytes"},
        {MODEL(
             "\"tensors\":[{\"name\":\"a{E}\",\"shape\":[1],\"dtype\":\"F16\","
             "\"experts\":[0,2]}],\"files\":{\"name_format\":"
             "\"../%s%n-%05d.safetensors\",\"rule\":{\"kind\":\"greedy\","
             "\"max_bytes\":1}}"),
         "name_format"},
        {"{\"name\":\"m\",\"config\":{\"quantization_config_file\":"
         "\"../x.json\"},\"let\":{},\"tensors\":[{\"name\":\"a\",\"shape\":[1],"
         "\"dtype\":\"F16\"}]}",
         "beside config.json"},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        write_text(path_of("bad.json"), models[i].text);
        const struct lade_synth_wish wish = {.model_file = path_of("bad.json"),
                                             .out = path_of("bad"),
                                             .fill = LADE_SYNTH_FILL_1};
        struct lade_synth_report report = {0};
        lade_err err = LADE_ERR_INIT;
        const int rc = lade_synth_write(&wish, mem, &report, &err);
        if (rc == LADE_OK || strstr(err.text, models[i].words) == NULL)
            fail_msg("%s: want \"%s\", got %d: %s", models[i].text,
                     models[i].words, rc, err.text);
        assert_true(rc == LADE_E_CHECKPOINT || rc == LADE_E_USAGE);
    }
    assert_int_equal(access(path_of("bad"), F_OK), -1);
}

/* Layers in their files, halves, names counted from 0, odd dtypes, a scalar. */
static void test_layer_files(void **state)
{
    (void)state;
    write_text(
        path_of("layers.json"),
        MODEL("\"files\":{\"count\":5,\"name_format\":"
              "\"w-%d-of-%03d.safetensors\",\"first_index\":0,"
              "\"denominator_in_name\":9,\"rule\":{\"kind\":"
              "\"per_layer_halves\",\"files_per_layer\":2}},\"tensors\":["
              "{\"name\":\"embed\",\"shape\":[\"n\"],\"dtype\":\"U8\"},"
              "{\"name\":\"l.{L}.a\",\"shape\":[3],\"dtype\":\"I64\","
              "\"layers\":[[0,\"n\"]]},"
              "{\"name\":\"l.{L}.b\",\"shape\":[],\"dtype\":\"I32\","
              "\"layers\":[[0,\"n\"]]},"
              "{\"name\":\"l.{L}.c\",\"shape\":[20],\"dtype\":\"BOOL\","
              "\"layers\":[[0,\"n\"]]}]"));
    const struct lade_synth_wish wish = {.model_file = path_of("layers.json"),
                                         .out = path_of("layers"),
                                         .fill = LADE_SYNTH_FILL_1};
    const struct lade_synth_report report = made(&wish);
    assert_int_equal(report.files, 5);
    cJSON *index = parse(path_of("layers/model.safetensors.index.json"));
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(index, "weight_map");
    static const struct {
        const char *tensor, *file;
    } places[] = {{"l.0.a", "w-0-of-009.safetensors"},
                  {"l.0.b", "w-0-of-009.safetensors"},
                  {"l.0.c", "w-1-of-009.safetensors"},
                  {"l.1.a", "w-2-of-009.safetensors"},
                  {"l.1.c", "w-3-of-009.safetensors"},
                  {"embed", "w-4-of-009.safetensors"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        assert_string_equal(
            cJSON_GetStringValue(
                cJSON_GetObjectItemCaseSensitive(map, places[i].tensor)),
            places[i].file);
    cJSON_Delete(index);
}

static void test_existing_output(void **state)
{
    (void)state;
    struct lade_synth_wish wish = {
        .preset = "llama-3-8b", .out = path_of("there"), .tiny = true};
    assert_int_equal(mkdir(path_of("there"), 0777), 0);
    write_text(path_of("there/notes.txt"), "kept");
    made(&wish);
    refused(&wish, LADE_E_USAGE, "holds a checkpoint already");
    wish.force = true;
    wish.preset = "llama-3.2-1b";
    made(&wish);
    assert_int_equal(
        access(path_of("there/model-00001-of-00003.safetensors"), F_OK), -1);
    assert_int_equal(access(path_of("there/notes.txt"), F_OK), 0);

    write_text(path_of("file"), "");
    wish.out = path_of("file");
    refused(&wish, LADE_E_IO, "directory");
    wish.out = path_of("file/below");
    refused(&wish, LADE_E_IO, "directory");
    // what fails half way leaves nothing behind
    wish.out = path_of("half");
    assert_int_equal(mkdir(path_of("half"), 0777), 0);
    assert_int_equal(mkdir(path_of("half/config.json"), 0777), 0);
    refused(&wish, LADE_E_IO, "config.json");
    assert_int_equal(access(path_of("half/.config.json.tmp"), F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tiny, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_config_and_index, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_true_size, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_blocks, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_bad_wishes, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_bad_models, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_layer_files, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_existing_output, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
