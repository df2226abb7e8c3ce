/*
 * Text that grows, for reports, tables and digest lists. A failed allocation is
 * remembered and told once, by lade_writer_take.
 */
#ifndef LADE_CHECK_WRITER_H
#define LADE_CHECK_WRITER_H

#include "base/mem.h"

struct lade_writer {
    struct lade_vec chars;
    lade_err err;
};

void lade_writer_init(struct lade_writer *writer, struct lade_mem *mem);
void lade_writer_print(struct lade_writer *writer, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void lade_writer_bytes(struct lade_writer *writer, const char *bytes,
                       size_t length);
/* `text` as a JSON string, with its quotes. */
void lade_writer_quote(struct lade_writer *writer, const char *text);
/* What was written so far, zero-terminated, as a text of the public API (free
 * with lade_text_free); *length may be NULL. */
int lade_writer_take(struct lade_writer *writer, char **text, size_t *length,
                     lade_err *err);
void lade_writer_fini(struct lade_writer *writer);

/* "1.25 GiB", "17 B". Returns out. */
const char *lade_size_text(uint64_t bytes, char *out, size_t size);

#endif
