/*
 * The node's board: a page or two of shared memory where every rank of a node
 * says how far it is and reads what it is told; and the health channel that
 * joins the boards of all nodes.
 *
 * Each node's first rank sends its node's state to rank 0 when it changes and
 * every 100 ms; rank 0 sends commands when they change and every second. Ranks
 * that share no stripe share no round, so this is the only place where a fault
 * or a silence becomes known to all.
 */
#ifndef LADE_SHARE_BOARD_H
#define LADE_SHARE_BOARD_H

#include <stdatomic.h>

#include "comm/comm.h"

enum lade_board_flag {
    LADE_BOARD_FAILED = 1,
    LADE_BOARD_FROZEN = 2,   /* issues nothing beyond `issued` */
    LADE_BOARD_FINISHED = 4, /* all its work is done */
};

struct lade_board_rank {
    _Atomic uint64_t beat_ns;     /* last turn of its loop */
    _Atomic uint64_t progress;    /* bytes read, received, taken */
    _Atomic uint64_t read_bytes;  /* bytes read so far, and */
    _Atomic uint64_t read_total;  /* to be read */
    _Atomic uint32_t done_rounds; /* all rounds below are finished here */
    _Atomic uint32_t issued;      /* rounds begun */
    _Atomic uint32_t flags;
    uint32_t pad[5];
};

enum lade_command {
    LADE_COMMAND_GO,
    LADE_COMMAND_FREEZE, /* begin no new round; say which was the last */
    LADE_COMMAND_STOP,   /* finish the rounds below stop_rounds, then leave */
    LADE_COMMAND_LEAVE,  /* everybody has finished */
    LADE_COMMAND_LOST,   /* somebody is silent: leave at once */
};

struct lade_board {
    _Atomic uint32_t command;
    _Atomic uint32_t stop_rounds;
    _Atomic int32_t lost_rank; /* with LOST: who is silent, -1: nobody moves */
    uint32_t pad[13];
    struct lade_board_rank ranks[]; /* of this node, by local rank */
};

struct lade_health_note; /* what travels */

struct lade_health {
    struct lade_comm *comm;
    const struct lade_node *node;
    struct lade_board *board;
    struct lade_mem *mem;
    double timeout_s;
    uint64_t next_ns, told_ns;    /* last message of ours */
    uint64_t moved_ns, moved;     /* last progress anywhere, rank 0 */
    uint64_t heard_ns;            /* last word of rank 0 (first ranks) */
    struct lade_health_note *out; /* first ranks: 1; rank 0: one per node */
    struct lade_health_note *in;
    struct lade_health_note *state; /* rank 0: last note per node */
    uint64_t *state_ns;
    struct lade_request *sends, *recvs;
    bool *closed;                    /* rank 0: that node said good-bye */
    bool goodbye;                    /* ours is sent */
    uint64_t read_bytes, read_total; /* of all nodes, on rank 0 */
};

int lade_health_init(struct lade_health *health, struct lade_comm *comm,
                     const struct lade_node *node, struct lade_board *board,
                     struct lade_mem *mem, double timeout_s, lade_err *err);
/* Once per turn of every rank's loop; cheap. TIMEOUT names who is silent. */
int lade_health_step(struct lade_health *health, lade_err *err);
/* Nothing of ours is under way any more. */
bool lade_health_over(const struct lade_health *health);
/* Waits for the last notes to leave. */
int lade_health_close(struct lade_health *health, lade_err *err);
void lade_health_fini(struct lade_health *health);

static inline size_t lade_board_bytes(int locals)
{
    return sizeof(struct lade_board) +
           (size_t)locals * sizeof(struct lade_board_rank);
}

#endif
