/*
 * The report of a load or of a plan: one JSON tree (contract: schema 1), and
 * the table that people read, made from that tree.
 */
#ifndef LADE_CHECK_REPORT_H
#define LADE_CHECK_REPORT_H

#include "check/stats.h"
#include "device/device.h"

/* Everything that the report tells. Products that do not exist yet (the load
 * failed before) are NULL; their keys are then there with zeros. */
struct lade_report_facts {
    const char *verb; /* load, plan */
    const char *command, *launcher, *started;
    const lade_err *err; /* status 0: verdict ok */
    const struct lade_layout *layout;
    uint32_t ranks, nodes, ep;
    const char *mpi;

    const struct lade_shards *shards;
    const struct lade_catalogue *catalogue;
    const struct lade_shell *shell;
    const struct lade_routes *routes;
    const struct lade_copies *copies;

    const struct lade_rank_stats *stats; /* [ranks] */
    const char *engine, *scope, *transport, *device;
    bool direct;
    bool predicted; /* plan: counts are forecasts, not measurements */
    struct {
        const char *read, *direct, *scope, *device, *transport;
    } why;
};

/* A tree that the caller frees with cJSON_Delete, or NULL without memory. */
struct cJSON *lade_report_build(const struct lade_report_facts *facts);

struct lade_writer;
/* The table: context lines that begin with #, ranks, phases, verdict. */
void lade_table_write(struct lade_writer *out, const struct cJSON *report);

#endif
