/*
 * In: a wish (preset or model file, overrides, fill). Out: a checkpoint
 * directory and what was written. The rest of the room, put together.
 */
#include "synth/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "synth/recipe.h"
#include "synth/synth_fill.h"
#include "synth/synth_write.h"

#define HEADER_LIMIT (UINT64_C(1) << 30) /* readers refuse more */

struct job {
    const struct lade_synth_wish *wish;
    const struct lade_recipe *recipe;
    const struct lade_split *split;
    struct lade_synth_dir *dir;
    struct lade_synth_report report;
    unsigned threads;
};

static const char *name_of(const struct job *job, uint64_t place)
{
    return lade_pool_get(
        &job->recipe->names,
        lade_recipe_at(job->recipe, job->split->order[place])->name);
}

static int add_text(struct lade_vec *text, const char *more, lade_err *err)
{
    return lade_vec_append(text, more, strlen(more), err) == NULL
               ? LADE_E_MEMORY
               : LADE_OK;
}

/* ,"name":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]} */
static int add_entry(struct lade_vec *text, const char *name,
                     const struct lade_recipe_tensor *t, uint64_t start,
                     lade_err *err)
{
    int rc = LADE_OK;
    char shape[256], tail[512];
    lade_shape_text(t->shape, t->ndim, shape, sizeof shape);
    snprintf(tail, sizeof tail,
             "\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}",
             lade_dtype_name(t->dtype), shape, (unsigned long long)start,
             (unsigned long long)(start + t->bytes));
    LADE_TRY(add_text(text, ",\"", err));
    LADE_TRY(add_text(text, name, err));
    LADE_TRY(add_text(text, tail, err));
out:
    return rc;
}

/* Length, JSON and blanks: what stands before the data. starts receives the
 * offset of each tensor, and the end. */
static int make_head(const struct job *job, const struct lade_split_file *file,
                     struct lade_vec *text, uint64_t *starts, lade_err *err)
{
    int rc = LADE_OK;
    uint64_t at = 0;
    LADE_TRY(
        add_text(text, "????????{\"__metadata__\":{\"format\":\"pt\"}", err));
    for (uint64_t i = 0; i < file->count; i++) {
        const struct lade_recipe_tensor *t =
            lade_recipe_at(job->recipe, job->split->order[file->first + i]);
        starts[i] = at;
        LADE_TRY(add_entry(text, name_of(job, file->first + i), t, at, err));
        at += t->bytes;
    }
    starts[file->count] = at;
    LADE_TRY(add_text(text, "}", err));
    while (text->count % 8 != 0)
        LADE_TRY(add_text(text, " ", err));
    const uint64_t length = text->count - 8;
    if (length > HEADER_LIMIT)
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: the header would have %llu bytes; readers "
                              "take at most %llu",
                              file->name, (unsigned long long)length,
                              (unsigned long long)HEADER_LIMIT));
    for (unsigned i = 0; i < 8; i++)
        ((unsigned char *)text->data)[i] = (unsigned char)(length >> (8 * i));
out:
    return rc;
}

static int put_weights(struct job *job, const struct lade_split_file *file,
                       lade_err *err)
{
    int rc = LADE_OK;
    struct lade_mem *mem = job->recipe->mem;
    struct lade_vec head;
    lade_vec_init(&head, mem, LADE_TAG_TEMP, 1);
    uint64_t *starts = lade_alloc_array(mem, LADE_TAG_TEMP, file->count + 1,
                                        sizeof *starts, err);
    if (starts == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(make_head(job, file, &head, starts, err));
    const struct lade_synth_stream stream = {
        .head = head.data,
        .head_size = head.count,
        .recipe = job->recipe,
        .order = job->split->order + file->first,
        .starts = starts,
        .count = file->count,
        .size = head.count + starts[file->count],
        .seed = job->wish->seed,
        .sparse = job->wish->fill == LADE_SYNTH_ZERO_SPARSE,
    };
    LADE_TRY(lade_synth_put(job->dir, file->name, &stream, job->threads, err));
    job->report.files++;
    job->report.file_bytes += stream.size;
out:
    lade_vec_fini(&head);
    lade_free(mem, starts);
    return rc;
}

static int put_text(struct job *job, const char *name, const char *text,
                    size_t length, lade_err *err)
{
    const struct lade_synth_stream stream = {
        .head = text, .head_size = length, .size = length, .sparse = true};
    return lade_synth_put(job->dir, name, &stream, 1, err);
}

static int put_json(struct job *job, const char *name, const cJSON *json,
                    lade_err *err)
{
    char *text = cJSON_Print(json);
    size_t length = text == NULL ? 0 : strlen(text);
    if (text == NULL)
        return lade_err_set(err, LADE_E_MEMORY, "%s: out of memory", name);
    text[length++] = '\n'; // over the zero: the length is known
    const int rc = put_text(job, name, text, length, err);
    cJSON_free(text);
    return rc;
}

/* weight_map in the order of files; the golden rule writes listed order, which
 * is the same for tiny checkpoints. */
static int put_index(struct job *job, lade_err *err)
{
    int rc = LADE_OK;
    char number[96];
    const struct lade_vec *files = &job->split->files;
    struct lade_vec text;
    lade_vec_init(&text, job->recipe->mem, LADE_TAG_TEMP, 1);
    snprintf(number, sizeof number,
             "{\"metadata\":{\"total_size\":%llu},\"weight_map\":{",
             (unsigned long long)job->recipe->bytes);
    LADE_TRY(add_text(&text, number, err));
    for (uint64_t f = 0; f < files->count; f++) {
        const struct lade_split_file *file =
            LADE_VEC_AT(files, struct lade_split_file, f);
        for (uint64_t i = 0; i < file->count; i++) {
            LADE_TRY(add_text(&text, f + i == 0 ? "\"" : ",\"", err));
            LADE_TRY(add_text(&text, name_of(job, file->first + i), err));
            LADE_TRY(add_text(&text, "\":\"", err));
            LADE_TRY(add_text(&text, file->name, err));
            LADE_TRY(add_text(&text, "\"", err));
        }
    }
    LADE_TRY(add_text(&text, "}}\n", err));
    LADE_TRY(put_text(job, job->split->index, text.data, text.count, err));
out:
    lade_vec_fini(&text);
    return rc;
}

/* Every tensor must have values before the first file is touched. */
static int check_fill(const struct job *job, lade_err *err)
{
    int rc = LADE_OK;
    for (uint64_t i = 0;
         job->wish->fill == LADE_SYNTH_FILL_1 && i < job->recipe->tensors.count;
         i++) {
        const struct lade_recipe_tensor *t = lade_recipe_at(job->recipe, i);
        struct lade_fill fill;
        LADE_TRY(lade_fill_init(
            &fill, lade_pool_get(&job->recipe->names, t->name), t->dtype,
            t->elements, t->fill, job->wish->seed, err));
    }
out:
    return rc;
}

/* A full disk should be known before hours of writing, not after. Headers are
 * left out: the margin is for them. */
static int check_room(const struct job *job, lade_err *err)
{
    struct statvfs disk;
    const uint64_t margin = UINT64_C(16) << 20;
    uint64_t room;
    if (job->wish->fill != LADE_SYNTH_FILL_1 || job->recipe->bytes < margin ||
        fstatvfs(job->dir->fd, &disk) != 0 ||
        !lade_mul_u64(disk.f_bavail, disk.f_frsize, &room) ||
        room >= job->recipe->bytes)
        return LADE_OK;
    return lade_err_set(err, LADE_E_IO,
                        "%s: no room: the tensors have %llu bytes, the file "
                        "system has %llu free",
                        job->dir->path, (unsigned long long)job->recipe->bytes,
                        (unsigned long long)room);
}

/* Two for each processor: one makes a block while the other waits for the
 * disk. */
static unsigned choose_threads(const struct lade_synth_wish *wish)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (wish->threads > 0)
        return wish->threads;
    return cpus < 1 ? 2 : cpus > 8 ? 16 : 2 * (unsigned)cpus;
}

static int put_checkpoint(struct job *job, const cJSON *config,
                          const cJSON *other, const char *other_name,
                          lade_err *err)
{
    int rc = LADE_OK;
    const struct lade_vec *files = &job->split->files;
    LADE_TRY(check_room(job, err));
    for (uint64_t i = 0; i < files->count; i++)
        LADE_TRY(put_weights(job, LADE_VEC_AT(files, struct lade_split_file, i),
                             err));
    if (job->split->index[0] != '\0')
        LADE_TRY(put_index(job, err));
    if (other != NULL)
        LADE_TRY(put_json(job, other_name, other, err));
    LADE_TRY(put_json(job, "config.json", config, err));
    LADE_TRY(lade_synth_publish(job->dir, err));
out:
    return rc;
}

int lade_synth_write(const struct lade_synth_wish *wish, struct lade_mem *mem,
                     struct lade_synth_report *report, lade_err *err)
{
    int rc = LADE_OK;
    char other_name[96] = "";
    cJSON *config = NULL, *other = NULL;
    struct lade_recipe recipe = {.mem = mem};
    struct lade_split split = {.mem = mem};
    struct lade_synth_dir dir = {.fd = -1, .mem = mem};
    struct job job = {wish, &recipe, &split, &dir, {0}, choose_threads(wish)};
    const uint64_t start = lade_now_ns();
    if (wish->out == NULL)
        return lade_err_set(err, LADE_E_USAGE, "synth needs --out DIR");
    LADE_TRY(lade_recipe_init(&recipe, wish, mem, err));
    LADE_TRY(check_fill(&job, err));
    LADE_TRY(lade_recipe_config(&recipe, &config, &other, other_name,
                                sizeof other_name, err));
    LADE_TRY(lade_split_init(&split, &recipe, wish->tiny, err));
    LADE_TRY(lade_synth_dir_open(&dir, wish->out, wish->force, mem, err));
    LADE_TRY(put_checkpoint(&job, config, other, other_name, err));
    job.report.tensors = recipe.tensors.count;
    job.report.bytes = recipe.bytes;
    job.report.seconds = (double)(lade_now_ns() - start) * 1e-9;
    snprintf(job.report.model, sizeof job.report.model, "%s", recipe.name);
    *report = job.report;
out:
    lade_synth_dir_close(&dir);
    lade_split_fini(&split);
    cJSON_Delete(config);
    cJSON_Delete(other);
    lade_recipe_fini(&recipe);
    return rc;
}
