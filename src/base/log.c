/*
 * In: what happened. Out: whole lines on stderr, each by one write, so that
 * lines of several ranks and threads do not mix; and the list of warnings.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define MOST_WARNINGS 1000
#define LINE 1536
#define TEXT 1024

static struct {
    _Atomic int level, rank, ranks;
    pthread_mutex_t lock; /* node and warnings */
    char node[64];
    char *warnings[MOST_WARNINGS];
    int count;
} state = {LADE_LOG_WARN, 0, 1, PTHREAD_MUTEX_INITIALIZER, "", {NULL}, 0};

void lade_log_setup(enum lade_level level, int rank, int ranks,
                    const char *node)
{
    atomic_store(&state.level, (int)level);
    atomic_store(&state.rank, rank);
    atomic_store(&state.ranks, ranks);
    pthread_mutex_lock(&state.lock);
    snprintf(state.node, sizeof(state.node), "%s", node ? node : "");
    pthread_mutex_unlock(&state.lock);
}

/* Does this rank speak at all at that level? */
static bool speaks(enum lade_level level)
{
    return atomic_load(&state.rank) == 0 || level == LADE_LOG_ERROR ||
           level >= LADE_LOG_DEBUG;
}

bool lade_log_on(enum lade_level level)
{
    return (int)level <= atomic_load(&state.level) && speaks(level);
}

/* A log that cannot be written has nobody to tell. */
static void put_line(char *line, int length)
{
    size_t size = length < 0 ? 0 : (size_t)length;

    if (size > LINE - 2)
        size = LINE - 2;
    line[size++] = '\n';
    for (size_t done = 0; done < size;) {
        ssize_t n = write(STDERR_FILENO, line + done, size - done);
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

void lade_log(enum lade_level level, const char *gate, const char *fmt, ...)
{
    char text[TEXT], line[LINE], node[64];
    va_list args;

    if (!lade_log_on(level))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    lade_text_clean(text);
    pthread_mutex_lock(&state.lock);
    memcpy(node, state.node, sizeof(node));
    pthread_mutex_unlock(&state.lock);
    put_line(line, snprintf(line, sizeof(line), "lade %s rank %d/%d%s%s %s: %s",
                            LADE_VERSION, atomic_load(&state.rank),
                            atomic_load(&state.ranks), node[0] ? " " : "", node,
                            gate, text));
}

static bool known(const char *text)
{
    for (int i = 0; i < state.count; i++)
        if (strcmp(state.warnings[i], text) == 0)
            return true;
    return false;
}

/* With the lock held. Returns the text if it is new, else NULL. The last place
 * in the list tells that there were more. */
static const char *keep(const char *text)
{
    if (state.count == MOST_WARNINGS || known(text))
        return NULL;
    if (state.count == MOST_WARNINGS - 1)
        text = "there are more warnings than 1000; the rest is not shown";
    char *copy = lade_alloc(NULL, LADE_TAG_TEMP, strlen(text) + 1, NULL);
    if (copy == NULL)
        return text; /* shown at least */
    memcpy(copy, text, strlen(text) + 1);
    state.warnings[state.count++] = copy;
    return copy;
}

void lade_warn(const char *fmt, ...)
{
    char text[TEXT], line[LINE];
    va_list args;
    int length = -1;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    lade_text_clean(text);
    pthread_mutex_lock(&state.lock);
    const char *fresh = keep(text);
    if (fresh != NULL)
        length = snprintf(line, sizeof(line), "lade: warning: %s", fresh);
    pthread_mutex_unlock(&state.lock);
    if (length >= 0 && lade_log_on(LADE_LOG_WARN))
        put_line(line, length);
}

int lade_warn_count(void)
{
    pthread_mutex_lock(&state.lock);
    int count = state.count;
    pthread_mutex_unlock(&state.lock);
    return count;
}

const char *lade_warn_get(int index)
{
    const char *text = NULL;

    pthread_mutex_lock(&state.lock);
    if (index >= 0 && index < state.count)
        text = state.warnings[index];
    pthread_mutex_unlock(&state.lock);
    return text;
}

void lade_warn_reset(void)
{
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < state.count; i++)
        lade_free(NULL, state.warnings[i]);
    state.count = 0;
    pthread_mutex_unlock(&state.lock);
}
