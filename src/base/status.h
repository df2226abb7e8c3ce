/*
 * Status codes and error text.
 *
 * The function that decides what the error is fills a lade_err, once, with the
 * exact cause, the file, the tensor and the numbers; callers only forward.
 * Fallible functions return an enum lade_status (0 or negative) and take a
 * `struct lade_err *` as their last parameter.
 */
#ifndef LADE_BASE_STATUS_H
#define LADE_BASE_STATUS_H

#include <lade.h>
#include <stdarg.h>
#include <stdbool.h>

/* Fills *err (printf format, one line, without a final stop or newline) and
 * returns `status`. A second call on an err that already holds an error changes
 * nothing: the first cause wins. err may be NULL. Line breaks and control
 * characters that came in with file names are replaced by '?'. */
int lade_err_set(lade_err *err, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes text fit for one line of a terminal, a log and a JSON file: control
 * characters and what is not UTF-8 become '?'. In place, same length. */
void lade_text_clean(char *text);

/* Writes "lade: error[NAME] rank 3 (node n1) gate: text" into out. */
void lade_err_line(const lade_err *err, char *out, size_t size);

/* The exit code of the program for a status. */
static inline int lade_exit_code(int status)
{
    return -status;
}

/* Runs `call`; on failure stores its status in `rc` and jumps to `out`. */
#define LADE_TRY(call)                                                         \
    do {                                                                       \
        rc = (call);                                                           \
        if (rc != LADE_OK)                                                     \
            goto out;                                                          \
    } while (0)

#endif
