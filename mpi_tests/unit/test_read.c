/*
 * The read engines against files whose bytes follow from their offsets: every
 * alignment of offset, target and length, buffered and direct, cut files.
 */
#include "unit.h"

#include <sys/resource.h>
#include <time.h>

#include "read/read.h"

#define FILE_BYTES (3u << 20 | 1237u) /* ends inside a block */
#define GUARD 64

struct bench {
    struct lade_mem *mem;
    struct lade_shards *shards;
    char folder[PATH_MAX];
};

static unsigned char byte_at(uint32_t file, uint64_t offset)
{
    uint64_t z = (offset + 1) * 0x9e3779b97f4a7c15u + file;

    z ^= z >> 29;
    return (unsigned char)(z * 0xbf58476d1ce4e5b9u >> 56);
}

static void write_file(const struct bench *b, const char *name, uint32_t file,
                       uint64_t size)
{
    char path[PATH_MAX];
    unsigned char *bytes = malloc(size);

    for (uint64_t i = 0; i < size; i++)
        bytes[i] = byte_at(file, i);
    snprintf(path, sizeof(path), "%.3000s/%s", b->folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

static void bench_init(struct bench *b)
{
    struct lade_shards head = {.blob.kind = LADE_BLOB_SHARDS};
    struct lade_shard files[2] = {{.size = FILE_BYTES}, {.size = FILE_BYTES}};
    struct lade_pool pool;
    lade_err err = LADE_ERR_INIT;

    b->mem = lade_mem_new();
    unit_folder_new(b->folder);
    write_file(b, "a", 0, FILE_BYTES);
    write_file(b, "b", 1, FILE_BYTES);
    lade_pool_init(&pool, b->mem, LADE_TAG_TEMP, &err);
    lade_pool_add(&pool, "a", 1, &files[0].name, &err);
    lade_pool_add(&pool, "b", 1, &files[1].name, &err);
    lade_pool_add(&pool, b->folder, strlen(b->folder), &head.dir, &err);
    lade_pool_add(&pool, "ext4", 4, &head.filesystem, &err);
    b->shards =
        lade_blob_pack(b->mem, &head, sizeof(head),
                       (struct lade_section[]){
                           {&head.shards, files, 2, sizeof(files[0])},
                           {&head.pool, pool.chars.data, pool.chars.count, 1}},
                       2, &err);
    assert_non_null(b->shards);
    lade_pool_fini(&pool);
}

static void bench_fini(struct bench *b)
{
    lade_free(b->mem, b->shards);
    unit_folder_free(b->folder);
    for (int t = 0; t < LADE_TAGS; t++)
        assert_int_equal(lade_mem_now(b->mem, (enum lade_tag)t), 0);
    lade_mem_free(b->mem);
}

static void *open_engine(const struct bench *b, unsigned threads,
                         unsigned depth, bool direct)
{
    struct lade_read_options options = {threads, depth, direct};
    lade_err err = LADE_ERR_INIT;
    void *ctx = NULL;

    assert_int_equal(
        lade_read_pread.open(&ctx, b->shards, &options, b->mem, NULL, &err),
        LADE_OK);
    return ctx;
}

/* Waits for `count` completions, at most 20 s. */
static void collect(void *ctx, struct lade_read_done *done, unsigned count)
{
    uint64_t start = lade_now_ns();

    for (unsigned got = 0; got < count;) {
        got += lade_read_pread.reap(ctx, done + got, count - got);
        assert_true(lade_now_ns() - start < 20000000000u);
        if (got < count)
            lade_read_pread.wait(ctx, 1000);
    }
}

/* One read into a guarded target at address residue `shift`. */
static void one(void *ctx, uint32_t file, uint64_t offset, uint64_t length,
                unsigned shift)
{
    unsigned char *block;
    struct lade_read_done done;

    assert_int_equal(posix_memalign((void **)&block, 4096,
                                    length + 4096 + 2 * GUARD + shift),
                     0);
    unsigned char *to = block + 4096 + shift;
    memset(to - GUARD, 0xa5, length + 2 * GUARD);
    struct lade_read_job job = {offset, length, to, file, 42};
    assert_true(lade_read_pread.submit(ctx, &job));
    collect(ctx, &done, 1);
    assert_int_equal(done.status, LADE_OK);
    assert_int_equal(done.tag, 42);
    for (uint64_t i = 0; i < length; i++)
        if (to[i] != byte_at(file, offset + i))
            fail_msg("offset %llu length %llu shift %u: byte %llu differs",
                     (unsigned long long)offset, (unsigned long long)length,
                     shift, (unsigned long long)i);
    for (int g = 0; g < GUARD; g++) {
        assert_int_equal(to[-1 - g], 0xa5);
        assert_int_equal(to[length + (unsigned)g], 0xa5);
    }
    free(block);
}

static void every_alignment(void **state)
{
    const uint64_t offsets[] = {0,    1,    511,  512,    4095,
                                4096, 8191, 8192, 100001, FILE_BYTES - 9000};
    const uint64_t lengths[] = {1, 8, 511, 4096, 4097, 8999, 20000, 2000000};
    const unsigned shifts[] = {0, 1, 8, 512, 4095};
    struct bench b;

    (void)state;
    bench_init(&b);
    for (int direct = 0; direct < 2; direct++) {
        void *ctx = open_engine(&b, 2, 4, direct);
        for (size_t o = 0; o < 10; o++)
            for (size_t l = 0; l < 8; l++)
                for (size_t s = 0; s < 6; s++) {
                    /* the last shift is congruent to the offset */
                    unsigned shift =
                        s < 5 ? shifts[s] : (unsigned)(offsets[o] % 4096);
                    if (offsets[o] + lengths[l] <= FILE_BYTES)
                        one(ctx, (uint32_t)(s % 2), offsets[o], lengths[l],
                            shift);
                }
        one(ctx, 0, FILE_BYTES - 1, 1, 0); /* the file's last byte */
        one(ctx, 0, 0, FILE_BYTES, 0);
        lade_read_pread.close(ctx);
    }
    bench_fini(&b);
}

static void counts_what_was_asked(void **state)
{
    struct lade_read_counts counts;
    struct bench b;

    (void)state;
    bench_init(&b);
    void *ctx = open_engine(&b, 1, 1, false);
    one(ctx, 0, 100, 5000, 0);
    one(ctx, 1, 0, 70000, 0);
    lade_read_pread.counts(ctx, &counts);
    assert_int_equal(counts.bytes, 75000);
    assert_int_equal(counts.align_bytes, 0);
    assert_int_equal(counts.requests, 2);
    assert_int_equal(counts.opens, 2);
    lade_read_pread.close(ctx);
    ctx = open_engine(&b, 1, 1, true);
    one(ctx, 0, 100, 5000, 100);
    lade_read_pread.counts(ctx, &counts);
    if (counts.fallbacks == 0) {
        assert_int_equal(counts.bytes - counts.align_bytes, 5000);
        assert_true(counts.align_bytes > 0 && counts.align_bytes < 2 * 4096);
    }
    lade_read_pread.close(ctx);
    bench_fini(&b);
}

static void depth_bounds_what_flies(void **state)
{
    static unsigned char to[8][1000];
    struct lade_read_done done[8];
    struct bench b;
    unsigned taken = 0;

    (void)state;
    bench_init(&b);
    void *ctx = open_engine(&b, 2, 3, false);
    for (unsigned i = 0; i < 8; i++) {
        struct lade_read_job job = {i * 1000, 1000, to[i], 0, i};
        taken += lade_read_pread.submit(ctx, &job);
    }
    assert_int_equal(taken, 3); /* not reaped: still in flight */
    collect(ctx, done, 3);
    struct lade_read_job job = {0, 1000, to[0], 0, 9};
    assert_true(lade_read_pread.submit(ctx, &job));
    collect(ctx, done, 1);
    assert_int_equal(done[0].tag, 9);
    lade_read_pread.close(ctx);
    bench_fini(&b);
}

/* What no thread has begun ends at once; what has begun ends well. */
static void discarded_jobs_come_back(void **state)
{
    static unsigned char to[16][100000];
    struct lade_read_done done[16];
    struct bench b;
    unsigned read = 0;

    (void)state;
    bench_init(&b);
    void *ctx = open_engine(&b, 1, 16, false);
    for (uint32_t i = 0; i < 16; i++) {
        struct lade_read_job job = {i * 100000, 100000, to[i], 0, i};
        assert_true(lade_read_pread.submit(ctx, &job));
    }
    lade_read_pread.discard(ctx);
    collect(ctx, done, 16);
    for (uint32_t i = 0; i < 16; i++) {
        if (done[i].status == LADE_OK) {
            assert_int_equal(to[done[i].tag][0],
                             byte_at(0, done[i].tag * 100000ull));
            read++;
        } else {
            assert_int_equal(done[i].status, LADE_E_INTERRUPT);
        }
    }
    assert_true(read < 16);
    struct lade_read_job job = {0, 1000, to[0], 0, 77};
    assert_true(lade_read_pread.submit(ctx, &job)); /* still of use */
    collect(ctx, done, 1);
    assert_int_equal(done[0].status, LADE_OK);
    lade_read_pread.close(ctx);
    bench_fini(&b);
}

static void ten_thousand_small_jobs(void **state)
{
    enum { COUNT = 10000, SIZE = 100 };
    unsigned char *to = malloc(COUNT * SIZE);
    struct lade_read_done done[64];
    unsigned next = 0, got = 0;
    struct bench b;

    (void)state;
    bench_init(&b);
    void *ctx = open_engine(&b, 8, 32, false);
    while (got < COUNT) {
        while (next < COUNT) {
            struct lade_read_job job = {next * 37ull, SIZE, to + next * SIZE,
                                        next % 2, next};
            if (!lade_read_pread.submit(ctx, &job))
                break;
            next++;
        }
        unsigned n = lade_read_pread.reap(ctx, done, 64);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(done[i].status, LADE_OK);
        got += n;
        if (n == 0)
            lade_read_pread.wait(ctx, 1000);
    }
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned k = 0; k < SIZE; k++)
            assert_int_equal(to[i * SIZE + k], byte_at(i % 2, i * 37ull + k));
    lade_read_pread.close(ctx);
    free(to);
    bench_fini(&b);
}

/* Ranges of any place and length into one buffer with gaps; what lies between
 * them stays as it is. */
static void many_threads_any_range(void **state)
{
    enum { COUNT = 400, ROOM = 70000 };
    unsigned char *to = malloc(COUNT * (size_t)ROOM);
    struct lade_read_job jobs[COUNT];
    struct lade_read_done done;
    struct bench b;
    uint64_t z = 1;

    (void)state;
    bench_init(&b);
    for (int direct = 0; direct < 2; direct++) {
        void *ctx = open_engine(&b, 6, 24, direct);
        memset(to, 0xa5, COUNT * (size_t)ROOM);
        unsigned flying = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            z = z * 6364136223846793005u + 1442695040888963407u;
            uint64_t length = (z >> 33) % (i % 3 ? 60000 : 600) + 1;
            uint64_t offset = (z >> 13) % (FILE_BYTES - length + 1);
            unsigned char *at = to + i * (size_t)ROOM;
            at += i % 2 ? (offset - (uintptr_t)at) % 4096 : z % 4096;
            jobs[i] = (struct lade_read_job){offset, length, at, i % 2, i};
            for (; !lade_read_pread.submit(ctx, &jobs[i]); flying--) {
                collect(ctx, &done, 1);
                assert_int_equal(done.status, LADE_OK);
            }
            flying++;
        }
        for (; flying > 0; flying--)
            collect(ctx, &done, 1);
        lade_read_pread.close(ctx);
        uint64_t at = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint64_t start = (uint64_t)((unsigned char *)jobs[i].to - to);
            for (; at < start; at++)
                assert_int_equal(to[at], 0xa5);
            for (uint64_t k = 0; k < jobs[i].length; k++)
                assert_int_equal(to[at++], byte_at(i % 2, jobs[i].offset + k));
        }
        for (; at < COUNT * (uint64_t)ROOM; at++)
            assert_int_equal(to[at], 0xa5);
    }
    free(to);
    bench_fini(&b);
}

/* A file system that does not answer open() holds the thread that asked, not
 * the caller and not the other threads. */
static void a_slow_open_holds_nobody_else(void **state)
{
    static unsigned char to[2][1000];
    char path[PATH_MAX];
    struct lade_read_counts counts;
    struct lade_read_done done;
    struct bench b;

    (void)state;
    bench_init(&b);
    snprintf(path, sizeof(path), "%.3000s/b", b.folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* open waits for a writer */
    void *ctx = open_engine(&b, 2, 4, false);
    struct lade_read_job jobs[] = {{0, 1000, to[0], 1, 0},
                                   {0, 1000, to[1], 0, 1}};
    alarm(20);
    assert_true(lade_read_pread.submit(ctx, &jobs[0]));
    usleep(50000); /* a thread stands in open() by now */
    assert_true(lade_read_pread.submit(ctx, &jobs[1]));
    collect(ctx, &done, 1);
    assert_int_equal(done.tag, 1);
    assert_int_equal(done.status, LADE_OK);
    lade_read_pread.counts(ctx, &counts);
    assert_int_equal(counts.opens, 1);
    int writer = open(path, O_WRONLY);
    collect(ctx, &done, 1);
    alarm(0);
    close(writer);
    assert_int_equal(done.tag, 0);
    assert_int_equal(done.status, LADE_E_IO);
    assert_int_equal(done.system_errno, ESPIPE);
    lade_read_pread.close(ctx);
    bench_fini(&b);
}

/* Refused before anything is read, as what it is: too little memory. */
static void bounce_memory_is_part_of_open(void **state)
{
    struct lade_read_options options = {64, 4, true};
    struct rlimit before, small;
    lade_err err = LADE_ERR_INIT;
    unsigned long pages = 0;
    void *ctx = NULL;
    struct bench b;

    (void)state;
    bench_init(&b);
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    small = before;
    small.rlim_cur = pages * (rlim_t)getpagesize() + (rlim_t)(8u << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    int rc = lade_read_pread.open(&ctx, b.shards, &options, b.mem, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(rc, LADE_E_MEMORY);
    assert_non_null(strstr(err.text, "67108864 bytes for staging"));
    assert_null(ctx);
    bench_fini(&b);
}

/* What a failed read becomes: status and words. */
static void expect_failure(const struct bench *b, bool direct, int status,
                           const char *words)
{
    unsigned char to[4096];
    struct lade_read_job job = {FILE_BYTES - 2000, 1000, to, 1, 5};
    struct lade_read_done done;
    lade_err err = LADE_ERR_INIT;
    void *ctx = open_engine(b, 1, 1, direct);

    assert_true(lade_read_pread.submit(ctx, &job));
    collect(ctx, &done, 1);
    assert_int_equal(done.status, status);
    lade_read_error(b->shards, &job, &done, "the.tensor", &err);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.text, words));
    assert_non_null(strstr(err.text, "the.tensor"));
    assert_int_equal(err.text[0], 'b');
    lade_read_pread.close(ctx);
}

static void files_that_changed(void **state)
{
    char path[PATH_MAX];
    struct bench b;

    (void)state;
    bench_init(&b);
    snprintf(path, sizeof(path), "%.3000s/b", b.folder);
    for (int direct = 0; direct < 2; direct++) {
        assert_int_equal(truncate(path, FILE_BYTES - 1500), 0);
        expect_failure(&b, direct, LADE_E_CHECKPOINT, "the file changed");
    }
    assert_int_equal(unlink(path), 0);
    expect_failure(&b, false, LADE_E_IO, "No such file");
    write_file(&b, "b", 1, 1);
    bench_fini(&b);
}

static void a_file_that_may_not_be_read(void **state)
{
    char path[PATH_MAX];
    struct bench b;

    (void)state;
    if (geteuid() == 0)
        skip(); /* root may read anything */
    bench_init(&b);
    snprintf(path, sizeof(path), "%.3000s/b", b.folder);
    assert_int_equal(chmod(path, 0), 0);
    expect_failure(&b, false, LADE_E_IO, "Permission denied");
    bench_fini(&b);
}

/* The descriptor under which the engine holds the file. */
static int descriptor_of(const char *path)
{
    char link[64], real[PATH_MAX];

    for (int fd = 3; fd < 256; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, real, sizeof(real) - 1);
        if (n > 0 && (size_t)n == strlen(path) &&
            memcmp(real, path, (size_t)n) == 0)
            return fd;
    }
    return -1;
}

/* A handle that goes bad in the middle (as ESTALE does): all of the line. */
static void a_handle_that_goes_bad(void **state)
{
    static unsigned char to[1000];
    char path[PATH_MAX];
    struct lade_read_job job = {4096, 1000, to, 1, 5};
    struct lade_read_done done;
    lade_err err = LADE_ERR_INIT;
    struct bench b;

    (void)state;
    bench_init(&b);
    snprintf(path, sizeof(path), "%.3000s/b", b.folder);
    void *ctx = open_engine(&b, 1, 1, false);
    assert_true(lade_read_pread.submit(ctx, &job));
    collect(ctx, &done, 1);
    assert_int_equal(done.status, LADE_OK);
    int none = open("/dev/null", O_WRONLY), held = descriptor_of(path);
    assert_true(held >= 0);
    assert_int_equal(dup2(none, held), held);
    close(none);
    assert_true(lade_read_pread.submit(ctx, &job));
    collect(ctx, &done, 1);
    lade_read_error(b.shards, &job, &done, "norm.weight", &err);
    assert_int_equal(err.status, LADE_E_IO);
    assert_string_equal(err.text, "b at 4096: wanted 1000 bytes, got 0: Bad "
                                  "file descriptor (tensor norm.weight)");
    lade_read_pread.close(ctx);
    bench_fini(&b);
}

static void direct_is_a_reasoned_choice(void **state)
{
    struct lade_read_choice choice;
    lade_err err = LADE_ERR_INIT;
    struct bench b;

    (void)state;
    bench_init(&b);
    assert_int_equal(lade_read_direct_wanted(b.shards, "on", &choice, &err),
                     LADE_OK);
    assert_true(choice.direct);
    assert_int_equal(lade_read_direct_wanted(b.shards, "off", &choice, &err),
                     LADE_OK);
    assert_false(choice.direct);
    assert_int_equal(choice.opens, 0);
    assert_int_equal(lade_read_direct_wanted(b.shards, "auto", &choice, &err),
                     LADE_OK);
    assert_non_null(choice.reason);
    assert_false(choice.direct); /* just written: in the page cache */
    assert_in_range(choice.opens, 1, 2);
    assert_int_equal(
        lade_read_direct_wanted(b.shards, "perhaps", &choice, &err),
        LADE_E_USAGE);
    bench_fini(&b);
}

/* Out of the cache the same files are read directly, where the file system says
 * that it can. */
static void what_is_not_cached_is_read_directly(void **state)
{
    const char *names[] = {"a", "b"};
    struct lade_read_choice choice;
    lade_err err = LADE_ERR_INIT;
    char path[PATH_MAX];
    struct bench b;

    (void)state;
    bench_init(&b);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%.3000s/%s", b.folder, names[i]);
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(fsync(fd), 0);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        close(fd);
    }
    assert_int_equal(lade_read_direct_wanted(b.shards, "auto", &choice, &err),
                     LADE_OK);
    bool offered = strstr(choice.reason, "does not offer") == NULL;
    assert_int_equal(choice.direct, offered);
    assert_int_equal(choice.opens, offered ? 2 : 1);
    bench_fini(&b);
}

static void null_engine_reads_nothing(void **state)
{
    struct lade_read_options options = {1, 4, false};
    unsigned char to[16] = {7};
    struct lade_read_counts counts;
    struct lade_read_done done[8];
    lade_err err = LADE_ERR_INIT;
    struct bench b;
    void *ctx = NULL;

    (void)state;
    bench_init(&b);
    assert_int_equal(
        lade_read_null.open(&ctx, b.shards, &options, b.mem, NULL, &err),
        LADE_OK);
    for (uint32_t i = 0; i < 5; i++) {
        struct lade_read_job job = {0, 16, to, 0, i};
        assert_int_equal(lade_read_null.submit(ctx, &job), i < 4);
    }
    assert_int_equal(lade_read_null.reap(ctx, done, 3), 3);
    assert_int_equal(lade_read_null.reap(ctx, done + 3, 5), 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(done[i].tag, i);
    assert_int_equal(to[0], 7);
    lade_read_null.counts(ctx, &counts);
    assert_int_equal(counts.bytes + counts.requests + counts.opens, 0);
    lade_read_null.close(ctx);
    bench_fini(&b);
}

static void engines_by_name(void **state)
{
    const struct lade_read_ops *ops = NULL;
    const char *reason;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    assert_int_equal(lade_read_choose("auto", &ops, &reason, &err), LADE_OK);
    assert_ptr_equal(ops, &lade_read_pread);
    assert_int_equal(lade_read_choose("null", &ops, &reason, &err), LADE_OK);
    assert_ptr_equal(ops, &lade_read_null);
    assert_int_equal(lade_read_choose("uring", &ops, &reason, &err),
                     LADE_E_USAGE);
    assert_non_null(strstr(err.text, "uring"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_alignment),
        cmocka_unit_test(counts_what_was_asked),
        cmocka_unit_test(depth_bounds_what_flies),
        cmocka_unit_test(discarded_jobs_come_back),
        cmocka_unit_test(ten_thousand_small_jobs),
        cmocka_unit_test(many_threads_any_range),
        cmocka_unit_test(a_slow_open_holds_nobody_else),
        cmocka_unit_test(bounce_memory_is_part_of_open),
        cmocka_unit_test(files_that_changed),
        cmocka_unit_test(a_file_that_may_not_be_read),
        cmocka_unit_test(a_handle_that_goes_bad),
        cmocka_unit_test(direct_is_a_reasoned_choice),
        cmocka_unit_test(what_is_not_cached_is_read_directly),
        cmocka_unit_test(null_engine_reads_nothing),
        cmocka_unit_test(engines_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
