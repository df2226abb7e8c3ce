/*
 * Headers dealt over ranks, rows brought together: the same catalogue at any
 * number of ranks and nodes, and one error for all when a single rank fails.
 */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "catalogue/gather.h"
#include "lade_mpi.h"

#define SHARDS 5

static int failures;

#define CHECK(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", comm->rank,        \
                    __FILE__, __LINE__, #what);                                \
            failures++;                                                        \
        }                                                                      \
    } while (0)

static void shard_path(const char *dir, int i, char *path, size_t size)
{
    snprintf(path, size, "%s/m-%d.safetensors", dir, i);
}

/* Shard i holds "w<i>" with i + 1 bytes, and "again" if asked. */
static void write_shard(const char *dir, int i, bool again)
{
    char path[PATH_MAX], text[512] = "";
    int bytes = i + 1;
    int n = snprintf(text + 8, sizeof(text) - 8,
                     "{\"%s%d\":{\"dtype\":\"U8\",\"shape\":[%d],"
                     "\"data_offsets\":[0,%d]}}",
                     again ? "again" : "w", again ? 0 : i, bytes, bytes);
    uint64_t length = (uint64_t)n;

    memcpy(text, &length, 8);
    shard_path(dir, i, path, sizeof(path));
    FILE *f = fopen(path, "w");
    if (f == NULL || fwrite(text, 1, 8 + length + (uint64_t)bytes, f) == 0 ||
        fclose(f) != 0)
        failures++;
}

/* Rank 0 makes the folder; all know its name and its shard list. */
static struct lade_shards *share(struct lade_comm *comm, struct lade_mem *mem,
                                 const char *dir)
{
    const struct lade_locate_wish wish = {LADE_FORMAT_AUTO, false};
    struct lade_shards *shards = NULL;
    struct lade_index *index = NULL;
    lade_err err = LADE_ERR_INIT;
    uint64_t size = 0;

    if (comm->rank == 0) {
        CHECK(lade_locate(dir, &wish, mem, &shards, &index, &err) == LADE_OK);
        size = shards ? shards->blob.size : 0;
    }
    lade_comm_bcast_all(comm, &size, sizeof(size), 0, "t", &err);
    if (shards == NULL)
        shards = lade_alloc(mem, LADE_TAG_CATALOGUE, size, &err);
    CHECK(lade_comm_bcast_all(comm, shards, size, 0, "t", &err) == LADE_OK);
    return shards;
}

/* The first rank of every node, nodes of `per` ranks. */
static int find_firsts(const struct lade_comm *comm, int per, int firsts[64])
{
    int nodes = 0;

    for (int r = 0; r < comm->size; r += per)
        firsts[nodes++] = r;
    return nodes;
}

static void check_rows(struct lade_comm *comm,
                       const struct lade_catalogue *catalogue)
{
    char name[16];

    CHECK(catalogue->rows.count == SHARDS);
    CHECK(catalogue->tensor_bytes == SHARDS * (SHARDS + 1) / 2);
    for (int i = 0; i < SHARDS && catalogue->rows.count == SHARDS; i++) {
        const struct lade_row *row =
            &LADE_ITEMS(catalogue, rows, struct lade_row)[i];
        snprintf(name, sizeof(name), "w%d", i);
        CHECK(strcmp(LADE_STRING(catalogue, pool, row->name), name) == 0);
        CHECK(row->shard == (uint32_t)i && row->length == (uint64_t)i + 1);
    }
}

static void builds(struct lade_comm *comm, struct lade_mem *mem,
                   const struct lade_shards *shards)
{
    lade_err err = LADE_ERR_INIT;
    int firsts[64];

    for (int per = 1; per <= comm->size; per = per * 2 + 1) {
        struct lade_node node = {.firsts = firsts,
                                 .nodes = find_firsts(comm, per, firsts)};
        struct lade_catalogue *catalogue = NULL;
        CHECK(lade_catalogue_build_all(comm, shards, NULL, mem, &node,
                                       &catalogue, &err) == LADE_OK);
        CHECK((catalogue != NULL) == (comm->rank % per == 0));
        if (catalogue != NULL)
            check_rows(comm, catalogue);
        lade_free(mem, catalogue);
    }
}

/* All ranks hold the one error. */
static void fails(struct lade_comm *comm, struct lade_mem *mem,
                  const struct lade_shards *shards, int status, int rank,
                  const char *words)
{
    struct lade_catalogue *catalogue = NULL;
    lade_err err = LADE_ERR_INIT;
    int firsts[64];
    struct lade_node node = {.firsts = firsts,
                             .nodes = find_firsts(comm, 2, firsts)};

    CHECK(lade_catalogue_build_all(comm, shards, NULL, mem, &node, &catalogue,
                                   &err) == status);
    CHECK(err.status == status && err.rank == rank);
    CHECK(strcmp(err.gate, "catalogue") == 0);
    if (strstr(err.text, words) == NULL)
        fprintf(stderr, "%s\n", err.text);
    CHECK(strstr(err.text, words) != NULL);
    CHECK(catalogue == NULL);
}

static void all_cases(struct lade_comm *comm, struct lade_mem *mem,
                      const char *dir)
{
    struct lade_shards *shards = share(comm, mem, dir);
    char path[PATH_MAX];
    int bad = 1 % comm->size; /* who gets shard 1 */

    builds(comm, mem, shards);
    /* the system refuses one file to the one rank that opens it */
    shard_path(dir, 1, path, sizeof(path));
    if (comm->rank == 0)
        CHECK(chmod(path, 0) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (getuid() == 0)
        CHECK(seteuid(65534) == 0);
    fails(comm, mem, shards, LADE_E_IO, bad,
          "m-1.safetensors: cannot open it: Permission denied");
    if (getuid() == 0)
        CHECK(seteuid(0) == 0);
    /* only the merge finds this: rank 0 has the cause */
    MPI_Barrier(MPI_COMM_WORLD);
    if (comm->rank == 0) {
        chmod(path, 0644);
        write_shard(dir, 1, true);
        write_shard(dir, 2, true);
    }
    lade_free(mem, shards);
    shards = share(comm, mem, dir);
    fails(comm, mem, shards, LADE_E_CHECKPOINT, 0,
          "tensor again0 is in two files, m-1.safetensors and m-2.safetensors");
    lade_free(mem, shards);
}

int main(int argc, char **argv)
{
    char dir[PATH_MAX] = "/tmp/lade-gather-XXXXXX", path[PATH_MAX];
    lade_err err = LADE_ERR_INIT;
    int given, total = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    struct lade_comm *comm = lade_comm_mpi_new(MPI_COMM_WORLD, &err);
    struct lade_mem *mem = lade_mem_new();
    if (comm == NULL || mem == NULL)
        return 1;
    comm->timeout_s = 50;
    if (comm->rank == 0) {
        const char *parent = getenv("TMPDIR");
        if (parent != NULL)
            snprintf(dir, sizeof(dir), "%s/lade-gather-XXXXXX", parent);
        CHECK(mkdtemp(dir) != NULL && chmod(dir, 0755) == 0);
        for (int i = 0; i < SHARDS; i++)
            write_shard(dir, i, false);
    }
    MPI_Bcast(dir, sizeof(dir), MPI_CHAR, 0, MPI_COMM_WORLD);
    all_cases(comm, mem, dir);
    for (int tag = 0; tag < LADE_TAGS; tag++)
        CHECK(lade_mem_now(mem, (enum lade_tag)tag) == 0);
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; comm->rank == 0 && i < SHARDS; i++) {
        shard_path(dir, i, path, sizeof(path));
        unlink(path);
    }
    if (comm->rank == 0)
        rmdir(dir);
    lade_mem_free(mem);
    lade_comm_free(comm);
    MPI_Finalize();
    return total != 0;
}
