/*
 * In: what happens. Out: lines on stderr, one write each; warnings are kept.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define MAX_WARNINGS 1000
#define LINE 1200

static struct {
    pthread_mutex_t lock;
    enum lade_level level;
    int rank, ranks, warnings;
    char node[64];
    char *kept[MAX_WARNINGS];
} self = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .level = LADE_LOG_WARN, .ranks = 1};

void lade_log_setup(enum lade_level level, int rank, int ranks,
                    const char *node)
{
    self.level = level;
    self.rank = rank;
    self.ranks = ranks;
    snprintf(self.node, sizeof(self.node), "%s", node ? node : "");
}

bool lade_log_on(enum lade_level level)
{
    return level <= self.level && (self.rank == 0 || level >= LADE_LOG_DEBUG);
}

/* Ends the line and writes it in one piece. */
static void put(char line[LINE])
{
    size_t length = strlen(line);

    if (length > LINE - 2)
        length = LINE - 2;
    line[length++] = '\n';
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, line, length);
        if (n <= 0)
            return;
        line += n;
        length -= (size_t)n;
    }
}

void lade_log(enum lade_level level, const char *gate, const char *fmt, ...)
{
    char line[LINE];
    va_list args;

    if (!lade_log_on(level))
        return;
    int n = snprintf(line, sizeof(line),
                     "lade %s rank %d/%d %s%s%s: ", LADE_VERSION, self.rank,
                     self.ranks, self.node, self.node[0] ? " " : "", gate);
    size_t used = n > 0 && n < LINE ? (size_t)n : 0;
    va_start(args, fmt);
    vsnprintf(line + used, sizeof(line) - used, fmt, args);
    va_end(args);
    put(line);
}

void lade_warn(const char *fmt, ...)
{
    char line[LINE], text[LINE - 32];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    pthread_mutex_lock(&self.lock);
    if (self.warnings < MAX_WARNINGS) {
        size_t size = strlen(text) + 1;
        char *copy = lade_alloc(NULL, LADE_TAG_TEMP, size, NULL);
        if (copy != NULL) {
            memcpy(copy, text, size);
            self.kept[self.warnings++] = copy;
        }
    }
    pthread_mutex_unlock(&self.lock);
    if (!lade_log_on(LADE_LOG_WARN))
        return;
    snprintf(line, sizeof(line), "lade: warning: %s", text);
    put(line);
}

int lade_warn_count(void)
{
    return self.warnings;
}

const char *lade_warn_get(int index)
{
    return index >= 0 && index < self.warnings ? self.kept[index] : NULL;
}

void lade_warn_reset(void)
{
    pthread_mutex_lock(&self.lock);
    while (self.warnings > 0)
        lade_free(NULL, self.kept[--self.warnings]);
    pthread_mutex_unlock(&self.lock);
}
