/*
 * In: nothing. Out: the names of the phases, in the order of the report.
 */
#include "check/stats.h"

const char *lade_phase_name(enum lade_phase phase)
{
    static const char *const names[LADE_PHASES] = {
        "locate", "catalogue", "model", "route", "plan",
        "read",   "share",     "post",  "check", "total",
    };

    return names[phase];
}
