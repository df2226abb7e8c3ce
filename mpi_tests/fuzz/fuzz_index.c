/*
 * Any bytes as an index file. What is accepted names plain files only, each
 * row one of them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "locate/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check(const struct lade_index_file *index)
{
    must(index->rows.count > 0 && index->files.count > 0);
    for (uint64_t i = 0; i < index->rows.count; i++) {
        const struct lade_index_row *row =
            LADE_VEC_AT(&index->rows, struct lade_index_row, i);
        must(row->shard < index->files.count);
        must(row->name < index->tensors.chars.count);
    }
    for (uint64_t i = 0; i < index->files.count; i++) {
        const char *name = lade_index_name(index, i);
        must(name[0] != 0 && name[0] != '.' && !strchr(name, '/'));
        must(!strchr(name, '\\') && !strstr(name, ".."));
        must(lade_index_names(index, name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lade_index_file index;
    lade_err err = LADE_ERR_INIT;
    char path[64];
    struct lade_mem *mem = lade_mem_new();
    int fd = memfd_create("index", MFD_CLOEXEC);

    must(mem != NULL && fd >= 0);
    must(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (lade_index_read(path, &index, mem, &err) == LADE_OK)
        check(&index);
    else
        must(err.status == LADE_E_CHECKPOINT && strstr(err.text, path));
    lade_index_fini(&index);
    close(fd);
    for (int tag = 0; tag < LADE_TAGS; tag++)
        must(lade_mem_now(mem, (enum lade_tag)tag) == 0);
    lade_mem_free(mem);
    return 0;
}
