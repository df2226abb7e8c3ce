/*
 * In: pieces of text. Out: one zero-terminated text.
 *
 * Texts of the public API are allocated by cJSON's allocator, because printed
 * JSON comes from there and the caller has one function to free them all.
 */
#include "check/writer.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

void lade_writer_init(struct lade_writer *writer, struct lade_mem *mem)
{
    *writer = (struct lade_writer){.err = LADE_ERR_INIT};
    lade_vec_init(&writer->chars, mem, LADE_TAG_TEMP, 1);
}

void lade_writer_bytes(struct lade_writer *writer, const char *bytes,
                       size_t length)
{
    if (writer->err.status == LADE_OK && length > 0)
        lade_vec_append(&writer->chars, bytes, length, &writer->err);
}

void lade_writer_print(struct lade_writer *writer, const char *fmt, ...)
{
    char line[2048];
    va_list args;

    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (length < 0)
        return;
    size_t size = (size_t)length;
    lade_writer_bytes(writer, line,
                      size < sizeof line ? size : sizeof line - 1);
}

void lade_writer_quote(struct lade_writer *writer, const char *text)
{
    lade_writer_bytes(writer, "\"", 1);
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            lade_writer_print(writer, "\\%c", c);
        else if (c < 0x20)
            lade_writer_print(writer, "\\u%04x", c);
        else
            lade_writer_bytes(writer, at, 1);
    }
    lade_writer_bytes(writer, "\"", 1);
}

int lade_writer_take(struct lade_writer *writer, char **text, size_t *length,
                     lade_err *err)
{
    if (writer->err.status != LADE_OK)
        return lade_err_set(err, writer->err.status, "%s", writer->err.text);
    size_t size = (size_t)writer->chars.count;
    char *copy = cJSON_malloc(size + 1);
    if (!copy)
        return lade_err_set(err, LADE_E_MEMORY,
                            "no memory for a text of %zu bytes", size + 1);
    if (size > 0)
        memcpy(copy, writer->chars.data, size);
    copy[size] = '\0';
    *text = copy;
    if (length)
        *length = size;
    return LADE_OK;
}

void lade_writer_fini(struct lade_writer *writer)
{
    lade_vec_fini(&writer->chars);
}

const char *lade_size_text(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(out, size, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return out;
}

void lade_text_free(char *text)
{
    cJSON_free(text);
}
