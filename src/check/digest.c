/*
 * In: the parameters of a rank. Out: its entry of the digest file; and the file
 * from all entries.
 *
 * XXH3, 128 bits, over the C-contiguous little-endian bytes, as the golden
 * records of the engine have it.
 */
#include "check/digest.h"

#include <inttypes.h>

static void write_param(struct lade_writer *out,
                        const struct lade_digest_param *param)
{
    char digest[33];

    lade_digest_text(lade_digest_of(param->data, param->bytes), digest);
    lade_writer_print(out, "[");
    lade_writer_quote(out, param->name);
    lade_writer_print(out, ",\"%s\",[", lade_dtype_name(param->dtype));
    for (int d = 0; d < param->ndim; d++)
        lade_writer_print(out, "%s%" PRIu64, d ? "," : "", param->shape[d]);
    lade_writer_print(out, "],\"%s\"]", digest);
}

void lade_digest_rank_write(struct lade_writer *out,
                            const struct lade_digest_rank *rank)
{
    lade_writer_print(out, "{\"rank\":%" PRIu32 ",\"params\":[", rank->rank);
    for (uint64_t i = 0; i < rank->count; i++) {
        lade_writer_print(out, "%s\n", i ? "," : "");
        write_param(out, &rank->params[i]);
    }
    lade_writer_print(out, "],\n\"aliases\":{");
    for (uint64_t i = 0; i < rank->aliases; i++) {
        lade_writer_print(out, "%s", i ? "," : "");
        lade_writer_quote(out, rank->alias_names[i]);
        lade_writer_print(out, ":");
        lade_writer_quote(out, rank->alias_params[i]);
    }
    lade_writer_print(out, "}}");
}

void lade_digest_file_write(struct lade_writer *out, const char *until,
                            const struct lade_layout *layout, uint32_t ep,
                            const char *entries, size_t length)
{
    lade_writer_print(
        out,
        "{\"schema\":1,\"until\":\"%s\",\"world\":{\"tp\":%" PRIu32
        ",\"pp\":%" PRIu32 ",\"dp\":%" PRIu32 ",\"ep\":%" PRIu32
        "},\n\"ranks\":[",
        until, layout->tp, layout->pp, layout->dp, ep);
    lade_writer_bytes(out, entries, length);
    lade_writer_print(out, "]}\n");
}
