/*
 * Strict, bounded JSON over cJSON. cJSON alone accepts numbers like 01 and
 * 1e999, text after the end, NUL inside names and the same name twice; here
 * these are errors that say where (byte offset) and what.
 */
#ifndef LADE_BASE_JSON_H
#define LADE_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/mem.h"

#define LADE_JSON_MAX_DEPTH 64

/* Parses `length` bytes (no terminating zero needed). `what` names the source
 * in errors ("model.safetensors.index.json"). Errors have status `status`.
 * Duplicate names in any object are refused. The caller frees with
 * cJSON_Delete. *root is set only on success. */
int lade_json_parse(const char *text, size_t length, const char *what,
                    int status, cJSON **root, lade_err *err);

/* Reads and parses a whole file of at most `limit` bytes. A missing file is
 * LADE_E_CHECKPOINT, a refused one LADE_E_IO. */
int lade_json_read(const char *path, uint64_t limit, cJSON **root,
                   lade_err *err);

/* A whole number in 0 .. 2^53 (beyond, cJSON's double is not exact). Returns
 * false if item is NULL or not such a number. */
bool lade_json_u64(const cJSON *item, uint64_t *value);
/* A whole number of either sign within +-2^53. */
bool lade_json_i64(const cJSON *item, int64_t *value);

/* Writes text under a temporary name in the same folder, syncs, renames.
 * Refuses an existing path unless force. */
int lade_write_file(const char *path, const char *text, size_t length,
                    bool force, lade_err *err);

#endif
