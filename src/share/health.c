/*
 * In: the boards of the nodes. Out: one command for all, and the names of
 * those that are silent. Point-to-point notes only; nothing here blocks.
 */
#include <string.h>

#include "base/clock.h"
#include "share/board.h"

#define STEP_NS UINT64_C(1000000)     /* look at the board every 1 ms */
#define UPDATE_NS UINT64_C(100000000) /* first ranks speak every 100 ms */
#define BEAT_NS UINT64_C(1000000000)  /* rank 0 speaks every second */

struct lade_health_note {
    uint32_t command; /* to first ranks */
    uint32_t stop_rounds;
    uint32_t flags; /* to rank 0: FAILED if any, others if all */
    uint32_t issued;
    uint32_t late_local; /* the rank of the node that is silent, or ~0 */
    uint32_t goodbye;
    uint64_t progress, read_bytes, read_total;
};

static bool is_first(const struct lade_health *health)
{
    return health->node->local == 0;
}

static bool is_root(const struct lade_health *health)
{
    return health->comm->rank == 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

int lade_health_init(struct lade_health *health, struct lade_comm *comm,
                     const struct lade_node *node, struct lade_board *board,
                     struct lade_mem *mem, double timeout_s, lade_err *err)
{
    size_t count = comm->rank == 0 ? (size_t)node->nodes : 1;
    uint64_t now = lade_now_ns();

    memset(health, 0, sizeof(*health));
    health->comm = comm;
    health->node = node;
    health->board = board;
    health->mem = mem;
    health->timeout_s = timeout_s;
    health->moved_ns = health->heard_ns = now;
    if (!is_first(health))
        return LADE_OK;
    health->out =
        lade_alloc_array(mem, LADE_TAG_TEMP, count, sizeof(*health->out), err);
    health->in =
        lade_alloc_array(mem, LADE_TAG_TEMP, count, sizeof(*health->in), err);
    health->state = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                     sizeof(*health->state), err);
    health->state_ns = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                        sizeof(*health->state_ns), err);
    health->sends = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                     sizeof(*health->sends), err);
    health->recvs = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                     sizeof(*health->recvs), err);
    health->closed = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                      sizeof(*health->closed), err);
    if (!health->out || !health->in || !health->state || !health->state_ns ||
        !health->sends || !health->recvs || !health->closed)
        return LADE_E_MEMORY;
    for (size_t n = 0; n < count; n++) {
        health->state_ns[n] = now;
        health->state[n].late_local = UINT32_MAX; /* until its first note */
    }
    return LADE_OK;
}

int lade_health_close(struct lade_health *health, lade_err *err)
{
    int count = is_root(health) ? health->node->nodes : 1, rc = LADE_OK;

    for (int n = 0; is_first(health) && n < count && rc == LADE_OK; n++)
        if (health->sends[n].active)
            rc = lade_comm_wait(health->comm, &health->sends[n], "read", err);
    return rc;
}

void lade_health_fini(struct lade_health *health)
{
    lade_free(health->mem, health->out);
    lade_free(health->mem, health->in);
    lade_free(health->mem, health->state);
    lade_free(health->mem, health->state_ns);
    lade_free(health->mem, health->sends);
    lade_free(health->mem, health->recvs);
    lade_free(health->mem, health->closed);
}

/* This node's state, from its board. */
static struct lade_health_note look(const struct lade_health *health,
                                    uint64_t now)
{
    uint32_t all = LADE_BOARD_FROZEN | LADE_BOARD_FINISHED, any = 0;
    struct lade_health_note note = {.late_local = UINT32_MAX};

    for (int i = 0; i < health->node->locals; i++) {
        struct lade_board_rank *rank = &health->board->ranks[i];
        uint32_t flags = atomic_load(&rank->flags);
        uint32_t issued = atomic_load(&rank->issued);
        uint64_t beat = atomic_load(&rank->beat_ns);
        any |= flags & LADE_BOARD_FAILED;
        /* who has finished issues nothing either */
        all &= flags & LADE_BOARD_FINISHED ? flags | LADE_BOARD_FROZEN : flags;
        if (issued > note.issued)
            note.issued = issued;
        note.progress += atomic_load(&rank->progress);
        note.read_bytes += atomic_load(&rank->read_bytes);
        note.read_total += atomic_load(&rank->read_total);
        if (beat != 0 && now > beat && seconds(now - beat) > health->timeout_s)
            note.late_local = (uint32_t)i;
    }
    note.flags = any | all;
    return note;
}

static void command(struct lade_health *health, uint32_t word,
                    uint32_t stop_rounds)
{
    atomic_store(&health->board->stop_rounds, stop_rounds);
    atomic_store(&health->board->command, word);
}

static bool is_last_word(uint32_t word)
{
    return word == LADE_COMMAND_STOP || word == LADE_COMMAND_LEAVE ||
           word == LADE_COMMAND_LOST;
}

/* Says who is lost, to the neighbours too. */
static int lost(struct lade_health *health, int rank, lade_err *err)
{
    atomic_store(&health->board->lost_rank, rank);
    command(health, LADE_COMMAND_LOST, 0);
    health->comm->dead = true;
    if (rank < 0)
        return lade_err_set(err, LADE_E_TIMEOUT,
                            "no rank made progress for more than %.0f s "
                            "(--timeout)",
                            health->timeout_s);
    return lade_err_set(err, LADE_E_TIMEOUT,
                        "rank %d has been silent for more than %.0f s "
                        "(--timeout)",
                        rank, health->timeout_s);
}

/* Rank 0: what all should do now, from the notes of all nodes. */
static void decide(struct lade_health *health)
{
    uint32_t all = LADE_BOARD_FROZEN | LADE_BOARD_FINISHED, any = 0;
    uint32_t issued = 0;
    uint32_t word = atomic_load(&health->board->command);

    for (int n = 0; n < health->node->nodes; n++) {
        any |= health->state[n].flags & LADE_BOARD_FAILED;
        all &= health->state[n].flags;
        if (health->state[n].issued > issued)
            issued = health->state[n].issued;
    }
    if (is_last_word(word))
        return;
    if (any && word == LADE_COMMAND_GO)
        command(health, LADE_COMMAND_FREEZE, 0);
    else if (word == LADE_COMMAND_FREEZE && (all & LADE_BOARD_FROZEN))
        command(health, LADE_COMMAND_STOP, issued);
    else if (!any && (all & LADE_BOARD_FINISHED))
        command(health, LADE_COMMAND_LEAVE, 0);
}

/* The rank of node n that is silent, or -1. */
static int silent_rank(const struct lade_health *health, int n, uint64_t now)
{
    int first = health->node->firsts[n];

    if (health->state[n].late_local != UINT32_MAX)
        return first + (int)health->state[n].late_local;
    if (now > health->state_ns[n] && !health->closed[n] &&
        seconds(now - health->state_ns[n]) > health->timeout_s)
        return first;
    return -1;
}

/* Rank 0: who has been silent for too long, and is anything moving? */
static int root_watch(struct lade_health *health, uint64_t now, lade_err *err)
{
    uint64_t progress = 0;
    int silent = -1;

    health->read_bytes = health->read_total = 0;
    for (int n = 0; n < health->node->nodes; n++) {
        const struct lade_health_note *note = &health->state[n];
        progress += note->progress;
        health->read_bytes += note->read_bytes;
        health->read_total += note->read_total;
        if (silent < 0)
            silent = silent_rank(health, n, now);
    }
    if (silent >= 0)
        return lost(health, silent, err);
    if (progress != health->moved) {
        health->moved = progress;
        health->moved_ns = now;
    } else if (seconds(now - health->moved_ns) > health->timeout_s) {
        return lost(health, -1, err);
    }
    return LADE_OK;
}

static int root_listen(struct lade_health *health, int n, uint64_t now,
                       lade_err *err)
{
    struct lade_comm *comm = health->comm;
    struct lade_request *recv = &health->recvs[n];
    int from = health->node->firsts[n], rc = LADE_OK;
    bool done = true;

    while (rc == LADE_OK && done && !health->closed[n]) {
        if (!recv->active)
            rc = comm->ops->recv(comm->ctx, &health->in[n], sizeof(*health->in),
                                 from, LADE_MSG_HEALTH, recv, err);
        if (rc == LADE_OK)
            rc = comm->ops->test(comm->ctx, recv, &done, err);
        if (rc != LADE_OK || !done)
            break;
        if (health->in[n].goodbye)
            health->closed[n] = true;
        else
            health->state[n] = health->in[n];
        health->state_ns[n] = now;
    }
    return rc;
}

/* Sends note `out` to rank `to` if the one before has left. */
static int speak(struct lade_health *health, int slot, int to,
                 const struct lade_health_note *note, bool *sent, lade_err *err)
{
    struct lade_comm *comm = health->comm;
    struct lade_request *send = &health->sends[slot];
    bool done = true;
    int rc = LADE_OK;

    *sent = false;
    if (send->active)
        rc = comm->ops->test(comm->ctx, send, &done, err);
    if (rc != LADE_OK || !done)
        return rc;
    health->out[slot] = *note;
    rc = comm->ops->send(comm->ctx, &health->out[slot], sizeof(*note), to,
                         LADE_MSG_HEALTH, send, err);
    *sent = rc == LADE_OK;
    return rc;
}

static int root_step(struct lade_health *health, uint64_t now, lade_err *err)
{
    int rc = LADE_OK;

    health->state[0] = look(health, now);
    health->state_ns[0] = now;
    for (int n = 1; rc == LADE_OK && n < health->node->nodes; n++)
        rc = root_listen(health, n, now, err);
    if (rc == LADE_OK)
        rc = root_watch(health, now, err);
    if (rc != LADE_OK)
        return rc;
    decide(health);
    struct lade_health_note note = {
        .command = atomic_load(&health->board->command),
        .stop_rounds = atomic_load(&health->board->stop_rounds)};
    bool beat = now - health->told_ns > BEAT_NS;
    for (int n = 1; rc == LADE_OK && n < health->node->nodes; n++) {
        bool sent;
        if (is_last_word(health->out[n].command) ||
            (health->out[n].command == note.command && !beat))
            continue;
        rc = speak(health, n, health->node->firsts[n], &note, &sent, err);
    }
    if (beat)
        health->told_ns = now;
    return rc;
}

/* First rank of another node: hear commands. */
static int first_listen(struct lade_health *health, uint64_t now, lade_err *err)
{
    struct lade_comm *comm = health->comm;
    bool done = true;
    int rc = LADE_OK;

    while (rc == LADE_OK && done &&
           !is_last_word(atomic_load(&health->board->command))) {
        if (!health->recvs->active)
            rc = comm->ops->recv(comm->ctx, health->in, sizeof(*health->in), 0,
                                 LADE_MSG_HEALTH, health->recvs, err);
        if (rc == LADE_OK)
            rc = comm->ops->test(comm->ctx, health->recvs, &done, err);
        if (rc != LADE_OK || !done)
            break;
        health->heard_ns = now;
        command(health, health->in->command, health->in->stop_rounds);
    }
    if (rc == LADE_OK && !is_last_word(atomic_load(&health->board->command)) &&
        seconds(now - health->heard_ns) > health->timeout_s) {
        return lost(health, 0, err);
    }
    return rc;
}

static int first_step(struct lade_health *health, uint64_t now, lade_err *err)
{
    int rc = first_listen(health, now, err);
    bool sent;

    if (rc != LADE_OK || health->goodbye)
        return rc;
    struct lade_health_note note = look(health, now);
    if (is_last_word(atomic_load(&health->board->command)))
        note.goodbye = 1;
    if (!note.goodbye && note.flags == health->out->flags &&
        note.issued == health->out->issued && now - health->told_ns < UPDATE_NS)
        return LADE_OK;
    rc = speak(health, 0, 0, &note, &sent, err);
    if (sent) {
        health->told_ns = now;
        health->goodbye = note.goodbye != 0;
    }
    return rc;
}

static int other_step(struct lade_health *health, uint64_t now, lade_err *err)
{
    uint64_t beat = atomic_load(&health->board->ranks[0].beat_ns);

    if (beat == 0 || beat > now || seconds(now - beat) <= health->timeout_s)
        return LADE_OK;
    return lost(health, health->node->first, err);
}

int lade_health_step(struct lade_health *health, lade_err *err)
{
    uint64_t now = lade_now_ns();
    struct lade_board_rank *me = &health->board->ranks[health->node->local];

    atomic_store(&me->beat_ns, now);
    if (now < health->next_ns)
        return LADE_OK;
    health->next_ns = now + STEP_NS;
    if (atomic_load(&health->board->command) == LADE_COMMAND_LOST) {
        return lost(health, atomic_load(&health->board->lost_rank), err);
    }
    if (is_root(health))
        return root_step(health, now, err);
    if (is_first(health))
        return first_step(health, now, err);
    return other_step(health, now, err);
}

bool lade_health_over(const struct lade_health *health)
{
    uint32_t word = atomic_load(&health->board->command);

    if (!is_last_word(word))
        return false;
    if (is_root(health)) {
        for (int n = 1; n < health->node->nodes; n++)
            if (!health->closed[n] || !is_last_word(health->out[n].command))
                return false;
        return true;
    }
    return !is_first(health) || health->goodbye;
}
