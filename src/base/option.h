/*
 * One table of options: command line, LADE_* environment, settings file,
 * --help, man page and the echo in the report all come from it. The table
 * itself (names, help, verbs) is src/cli/options.c; this is the mechanism.
 */
#ifndef LADE_BASE_OPTION_H
#define LADE_BASE_OPTION_H

#include "base/mem.h"

enum lade_option_kind {
    LADE_OPT_FLAG,    /* bool */
    LADE_OPT_U32,     /* uint32_t, within min .. max */
    LADE_OPT_SIZE,    /* uint64_t bytes; suffix K M G T (1024) */
    LADE_OPT_SECONDS, /* double, decimal */
    LADE_OPT_TEXT,    /* const char * */
    LADE_OPT_CHOICE,  /* int: index in `choices` */
    LADE_OPT_LIST /* const char *: repeated options joined by '\n' (--set) */
};

struct lade_option {
    const char *
        name; /* "expert-placement"; LADE_EXPERT_PLACEMENT in the environment */
    char letter;         /* 'v', or 0 */
    const char *metavar; /* "N", "SIZE", NULL for a flag */
    const char *help;    /* one line */
    enum lade_option_kind kind;
    unsigned verbs; /* bits: which verbs take it */
    size_t at;      /* offsetof the value in the caller's struct */
    uint64_t min, max;
    const char *const *choices; /* NULL-terminated */
    const char *initial;        /* default as text; NULL: zero / NULL */
};

struct lade_option_set {
    const struct lade_option *table;
    int count;
    unsigned verb;   /* the bit of the verb at hand */
    void *values;    /* the caller's struct */
    bool given[128]; /* set by command line, environment or settings file */
    const char *source[128];  /* "command line", "environment", "settings", or
                                 NULL = default */
    struct lade_arena *arena; /* text values live here */
};

/* Fills defaults, then the environment, then (if the table has an option
 * "settings" and it was given) that JSON file, then argv: later wins, but a
 * settings file does not override environment or command line. argv holds
 * options and positional words in any order; "--name=value" and "--name value";
 * "--" ends options. Positional words are stored in `words` (at most max).
 * LADE_E_USAGE names the option and the nearest valid one. A LADE_ variable
 * that is no option of any verb is a warning; variables and settings of other
 * verbs' options are left to these. Flags take 0, 1, true, false there. */
int lade_option_parse(struct lade_option_set *set, int argc, char **argv,
                      const char **words, int max_words, int *word_count,
                      lade_err *err);

/* Parses "64M", "1.5G" is refused, "4096". */
int lade_option_size(const char *text, uint64_t *bytes, lade_err *err);

/* Help text of the options of one verb, two columns, to `out` (FILE *). */
void lade_option_help(const struct lade_option *table, int count, unsigned verb,
                      void *out_file);

/* The word of `words` (NULL-terminated) nearest to `word`, or NULL if nothing
 * is near. */
const char *lade_nearest(const char *word, const char *const *words);
/* Levenshtein distance, capped at 255; for near-miss hints. */
unsigned lade_edit_distance(const char *a, const char *b);

/* A new cJSON object: option name -> value, for those that were given. */
struct cJSON;
struct cJSON *lade_option_echo(const struct lade_option_set *set);

#endif
