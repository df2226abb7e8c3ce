/*
 * In: bytes done and bytes in all. Out: a bar on a terminal, or a line every so
 * many seconds, on stderr; nothing else ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check/writer.h"
#include "cli/cli.h"

#define REDRAW_NS UINT64_C(100000000)
#define WIDTH 30

int cli_progress_init(struct cli_progress *progress, const struct cli *cli,
                      lade_err *err)
{
    const char *wish = cli->values.progress;
    char *end = NULL;

    *progress = (struct cli_progress){.start_ns = lade_now_ns()};
    if (!wish || strcmp(wish, "auto") == 0) {
        progress->on = isatty(STDERR_FILENO) && !cli->values.quiet;
        return LADE_OK;
    }
    if (strcmp(wish, "off") == 0)
        return LADE_OK;
    progress->every_s = strtod(wish, &end);
    if (*end || !(progress->every_s > 0) || progress->every_s > 86400)
        return cli_usage(
            err, "--progress %s: auto, off, or a number of seconds", wish);
    progress->on = true;
    progress->last_ns = progress->start_ns;
    return LADE_OK;
}

static void draw(struct cli_progress *progress, double part, const char *text)
{
    int filled = (int)(part * WIDTH);

    fprintf(stderr, "\rlade [");
    for (int i = 0; i < WIDTH; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3.0f %%  %s\033[K", part * 100, text);
    fflush(stderr);
    progress->drawn = true;
}

void cli_progress_show(void *ctx, uint64_t done, uint64_t total)
{
    struct cli_progress *progress = ctx;
    uint64_t now = lade_now_ns();
    uint64_t every = (uint64_t)(progress->every_s * 1e9);
    double part = total ? (double)done / (double)total : 1;
    double seconds = (double)(now - progress->start_ns) / 1e9;
    char a[24], b[24], c[24], text[128];

    if (!progress->on ||
        (now - progress->last_ns < (every ? every : REDRAW_NS) && done < total))
        return;
    progress->last_ns = now;
    uint64_t rate = seconds > 0 ? (uint64_t)((double)done / seconds) : 0;
    snprintf(
        text, sizeof text, "%s of %s, %s/s", lade_size_text(done, a, sizeof a),
        lade_size_text(total, b, sizeof b), lade_size_text(rate, c, sizeof c));
    if (every)
        fprintf(stderr, "lade: progress %.0f %% after %.1f s: %s\n", part * 100,
                seconds, text);
    else
        draw(progress, part, text);
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (progress->drawn)
        fprintf(stderr, "\r\033[K");
    progress->drawn = false;
}
