/*
 * In: the plan, the files, the parameters. Out: the parameters filled, counts.
 *
 * One loop per rank, nothing in it blocks: begin reads, collect finished ones,
 * send and receive stripes between nodes, take boxes out of ready slots, tell
 * and hear how the others are. A rank with a fault goes on serving its peers
 * (slots marked bad, nothing read) until the agreed stop.
 */
#include "share/share.h"

#include <sched.h>
#include <string.h>

#include "share/ring.h"
#include "share/take.h"

#define MAX_RECVS 64u /* posted ahead */
#define MAX_REAP 64u
#define TAKE_AHEAD 64u /* slots looked at behind one not yet ready */
#define TAKE_BYTES (UINT64_C(8) << 20) /* copied in one turn of the loop */
#define SPINS 64                       /* idle turns before sleeping */

struct message {
    struct lade_request request;
    uint32_t duty; /* index in the reads or the receives */
};

struct run {
    const struct lade_share_job *job;
    struct lade_share_counts *counts;
    lade_err *err; /* this rank's first fault */
    struct lade_board *board;
    struct lade_board_rank *me;
    struct lade_health health;
    struct lade_ring ring;
    struct lade_taker taker;
    void *reader;
    struct lade_vec sends, recvs; /* struct message in flight */
    uint16_t *sends_left;         /* per read duty */
    unsigned char *taken;         /* per take duty */
    uint64_t *told_node;          /* per node: read duty last sent, plus one */
    uint64_t next_shared, next_direct; /* both walk the reads */
    uint64_t next_recv, next_take;
    uint64_t reads_flying, reads_done, recvs_done;
    uint64_t read_bytes, moved_bytes;
    uint64_t last_ns;
    bool frozen, failed;
    uint32_t frozen_at; /* rounds begun when frozen */
};

static struct lade_duty *duty_at(const struct lade_vec *list, uint64_t i)
{
    return LADE_VEC_AT(list, struct lade_duty, i);
}

static const struct lade_stripe *stripe_of(const struct run *run,
                                           const struct lade_duty *duty)
{
    return &run->ring.stripes[duty->stripe];
}

static void fail(struct run *run)
{
    run->failed = true;
    run->job->reader->discard(run->reader);
    atomic_fetch_or(&run->me->flags, LADE_BOARD_FAILED);
}

/* Rounds that may be begun: all, those begun when frozen, or those agreed. */
static uint32_t round_limit(const struct run *run)
{
    switch (atomic_load(&run->board->command)) {
    case LADE_COMMAND_STOP:
        return atomic_load(&run->board->stop_rounds);
    case LADE_COMMAND_FREEZE:
        return run->frozen_at;
    default:
        return UINT32_MAX;
    }
}

static void begin_round(struct run *run, uint32_t round)
{
    if (atomic_load(&run->me->issued) < round + 1)
        atomic_store(&run->me->issued, round + 1);
}

static void set_flag(struct run *run, const struct lade_duty *duty, bool good)
{
    atomic_store_explicit(&run->ring.flags[duty->flag],
                          good ? LADE_SLOT_READY : LADE_SLOT_BAD,
                          memory_order_release);
}

/* ---- reading ---- */

static uint32_t message_tag(uint32_t stripe)
{
    return LADE_MSG_STRIPES + stripe % LADE_MSG_STRIPES_COUNT;
}

static int send_to_node(struct run *run, uint64_t index, uint32_t node)
{
    struct lade_comm *comm = run->job->comm;
    const struct lade_duty *duty = duty_at(&run->ring.reads, index);
    const struct lade_stripe *stripe = stripe_of(run, duty);
    uint32_t to = lade_plan_receiver(run->job->plan, duty->stripe, node);
    struct message message = {.duty = (uint32_t)index};
    uint64_t bytes = lade_ring_message(stripe);
    unsigned char *from = lade_ring_data(&run->ring, duty);

    if (to == UINT32_MAX)
        return LADE_OK;
    if (run->job->headers_only) {
        from += bytes - LADE_RING_STATUS;
        bytes = LADE_RING_STATUS;
    }
    struct message *slot = lade_vec_push(&run->sends, &message, run->err);
    if (slot == NULL)
        return LADE_E_MEMORY;
    int rc = comm->ops->send(comm->ctx, from, bytes, (int)to,
                             (int)message_tag(duty->stripe), &slot->request,
                             run->err);
    if (rc == LADE_OK) {
        run->sends_left[index]++;
        run->counts->sent_bytes += stripe->length;
    }
    return rc;
}

/* The stripe of read duty `index` is in its slot (or is known to be bad). */
static int publish(struct run *run, uint64_t index, bool good)
{
    const struct lade_duty *duty = duty_at(&run->ring.reads, index);
    const struct lade_plan *plan = run->job->plan;
    const uint32_t *node_of = LADE_ITEMS(plan, node_of, uint32_t);
    const uint64_t *set = lade_plan_set(plan, stripe_of(run, duty)->set);
    int rc = LADE_OK;

    lade_ring_set_status(&run->ring, duty, good ? 0 : 1);
    run->told_node[run->job->node->index] = index + 1;
    for (uint32_t r = 0; rc == LADE_OK && plan->nodes > 1 && r < plan->ranks;
         r++) {
        uint64_t *told = &run->told_node[node_of[r]];
        if (!lade_bit_get(set, r) || *told == index + 1)
            continue;
        *told = index + 1;
        rc = send_to_node(run, index, node_of[r]);
    }
    set_flag(run, duty, good);
    if (run->sends_left[index] == 0)
        lade_ring_done(&run->ring, stripe_of(run, duty)->round);
    return rc;
}

static int finish_read(struct run *run, uint64_t index, bool good)
{
    const struct lade_duty *duty = duty_at(&run->ring.reads, index);
    const struct lade_stripe *stripe = stripe_of(run, duty);

    run->reads_done++;
    run->read_bytes += stripe->length;
    if (duty->flag != LADE_NO_SLOT)
        return publish(run, index, good);
    if (good) {
        lade_take_count(&run->taker, stripe);
        run->counts->direct_bytes += stripe->length;
    }
    return LADE_OK;
}

static struct lade_read_job job_of(struct run *run, uint64_t index)
{
    const struct lade_duty *duty = duty_at(&run->ring.reads, index);
    const struct lade_stripe *stripe = stripe_of(run, duty);

    return (struct lade_read_job){
        .offset = stripe->offset,
        .length = stripe->length,
        .shard = stripe->shard,
        .tag = (uint32_t)index,
        .to = duty->flag == LADE_NO_SLOT
                  ? lade_take_address(&run->taker, stripe)
                  : lade_ring_data(&run->ring, duty),
    };
}

/* What became of one read. */
enum begun { BEGUN, LATER, BROKEN };

/* Begins read duty `index`: submits it or, after a fault, only serves it. */
static enum begun begin_read(struct run *run, uint64_t index, bool serve_only,
                             int *rc)
{
    const struct lade_duty *duty = duty_at(&run->ring.reads, index);

    if (!serve_only && !run->failed) {
        struct lade_read_job job = job_of(run, index);
        if (job.to != NULL || run->job->headers_only) {
            if (!run->job->reader->submit(run->reader, &job))
                return LATER;
            run->reads_flying++;
            return BEGUN;
        }
        lade_err_set(run->err, LADE_E_INTERNAL,
                     "stripe %u has no place on rank %d", duty->stripe,
                     run->job->comm->rank);
        fail(run);
    }
    *rc = finish_read(run, index, false);
    return *rc == LADE_OK ? BEGUN : BROKEN;
}

/* Submits the reads of one kind in plan order, as far as the engine, the ring
 * and the round limit take them. Direct reads need no slot: they may run ahead
 * of a full ring, by no more rounds than the ring holds. */
static int begin_reads(struct run *run, bool direct, uint64_t *next,
                       bool *moved)
{
    uint32_t limit = round_limit(run);
    uint32_t ahead = run->ring.done_rounds + 2 * run->ring.plan->segments;
    int rc = LADE_OK;

    for (; *next < run->ring.reads.count; ++*next) {
        const struct lade_duty *duty = duty_at(&run->ring.reads, *next);
        uint32_t round = stripe_of(run, duty)->round;
        if ((duty->flag == LADE_NO_SLOT) != direct)
            continue;
        if (round >= limit || (direct && ahead > 0 && round > ahead) ||
            (!direct && !lade_ring_free(&run->ring, round)))
            return LADE_OK;
        enum begun begun = begin_read(run, *next, limit != UINT32_MAX, &rc);
        if (begun != BEGUN)
            return rc;
        begin_round(run, round);
        *moved = true;
    }
    return LADE_OK;
}

static void read_failed(struct run *run, const struct lade_read_done *done)
{
    const struct lade_plan_input *in = run->job->in;
    struct lade_read_job job = job_of(run, done->tag);
    const struct lade_stripe *stripe =
        stripe_of(run, duty_at(&run->ring.reads, done->tag));
    const struct lade_row *row =
        &LADE_ITEMS(in->catalogue, rows, struct lade_row)[stripe->first_row];

    lade_read_error(in->shards, &job, done,
                    LADE_STRING(in->catalogue, pool, row->name), run->err);
    fail(run);
}

static int collect_reads(struct run *run, bool *moved)
{
    struct lade_read_done done[MAX_REAP];
    unsigned count = run->job->reader->reap(run->reader, done, MAX_REAP);
    int rc = LADE_OK;

    for (unsigned i = 0; rc == LADE_OK && i < count; i++) {
        run->reads_flying--;
        if (done[i].status != LADE_OK && done[i].status != LADE_E_INTERRUPT)
            read_failed(run, &done[i]);
        rc = finish_read(run, done[i].tag, done[i].status == LADE_OK);
        *moved = true;
    }
    return rc;
}

/* ---- between nodes ---- */

static int begin_recvs(struct run *run, bool *moved)
{
    struct lade_comm *comm = run->job->comm;
    uint32_t limit = round_limit(run);

    while (run->next_recv < run->ring.recvs.count &&
           run->recvs.count < MAX_RECVS) {
        const struct lade_duty *duty =
            duty_at(&run->ring.recvs, run->next_recv);
        const struct lade_stripe *stripe = stripe_of(run, duty);
        if (stripe->round >= limit ||
            !lade_ring_free(&run->ring, stripe->round))
            return LADE_OK;
        struct message message = {.duty = (uint32_t)run->next_recv};
        struct message *slot = lade_vec_push(&run->recvs, &message, run->err);
        if (slot == NULL)
            return LADE_E_MEMORY;
        unsigned char *to = lade_ring_data(&run->ring, duty);
        uint64_t bytes = lade_ring_message(stripe);
        if (run->job->headers_only) {
            to += bytes - LADE_RING_STATUS;
            bytes = LADE_RING_STATUS;
        }
        int rc = comm->ops->recv(comm->ctx, to, bytes, (int)stripe->reader,
                                 (int)message_tag(duty->stripe), &slot->request,
                                 run->err);
        if (rc != LADE_OK)
            return rc;
        begin_round(run, stripe->round);
        run->next_recv++;
        *moved = true;
    }
    return LADE_OK;
}

static void received(struct run *run, uint32_t index)
{
    const struct lade_duty *duty = duty_at(&run->ring.recvs, index);
    const struct lade_stripe *stripe = stripe_of(run, duty);

    set_flag(run, duty, lade_ring_status(&run->ring, duty) == 0);
    run->counts->received_bytes += stripe->length;
    run->moved_bytes += stripe->length;
    run->recvs_done++;
    lade_ring_done(&run->ring, stripe->round);
}

static void sent(struct run *run, uint32_t index)
{
    if (--run->sends_left[index] == 0)
        lade_ring_done(&run->ring,
                       stripe_of(run, duty_at(&run->ring.reads, index))->round);
}

/* Tests what is in flight; the order of the list does not matter. */
static int test_messages(struct run *run, struct lade_vec *list,
                         void (*finished)(struct run *, uint32_t), bool *moved)
{
    struct lade_comm *comm = run->job->comm;

    for (uint64_t i = 0; i < list->count;) {
        struct message *message = LADE_VEC_AT(list, struct message, i);
        bool done = false;
        int rc = comm->ops->test(comm->ctx, &message->request, &done, run->err);
        if (rc != LADE_OK)
            return rc;
        if (!done) {
            i++;
            continue;
        }
        finished(run, message->duty);
        *message = *LADE_VEC_AT(list, struct message, list->count - 1);
        list->count--;
        *moved = true;
    }
    return LADE_OK;
}

/* ---- taking ---- */

/* Takes stripe `i` if its slot is ready; returns the bytes, 0 if it is not. */
static uint64_t take_one(struct run *run, uint64_t i)
{
    const struct lade_duty *duty = duty_at(&run->ring.takes, i);
    const struct lade_stripe *stripe = stripe_of(run, duty);
    uint32_t state = atomic_load_explicit(&run->ring.flags[duty->flag],
                                          memory_order_acquire);

    if (state == LADE_SLOT_EMPTY)
        return 0;
    if (state == LADE_SLOT_READY) {
        uint64_t start = run->job->trace ? lade_now_ns() : 0;
        lade_take(&run->taker, stripe,
                  run->job->headers_only ? NULL
                                         : lade_ring_data(&run->ring, duty));
        if (run->job->trace)
            lade_trace_span(run->job->trace, "take", start, lade_now_ns(),
                            stripe->length);
    }
    run->taken[i] = 1;
    lade_ring_done(&run->ring, stripe->round);
    return stripe->length;
}

static void take_ready(struct run *run, bool *moved)
{
    uint64_t count = run->ring.takes.count, bytes = 0;

    for (uint64_t i = run->next_take;
         i < count && i < run->next_take + TAKE_AHEAD && bytes < TAKE_BYTES;
         i++)
        if (!run->taken[i])
            bytes += take_one(run, i);
    while (run->next_take < count && run->taken[run->next_take])
        run->next_take++;
    run->moved_bytes += bytes;
    *moved |= bytes > 0;
}

/* ---- the loop ---- */

static bool idle(const struct run *run)
{
    return run->reads_flying == 0 && run->sends.count == 0 &&
           run->recvs.count == 0;
}

static bool finished(const struct run *run)
{
    return idle(run) && run->reads_done == run->ring.reads.count &&
           run->next_recv == run->ring.recvs.count &&
           run->next_take == run->ring.takes.count;
}

/* After STOP: everything of the agreed rounds is done. */
static bool drained(const struct run *run)
{
    uint32_t limit = round_limit(run);

    return idle(run) && (run->ring.done_rounds >= limit || finished(run));
}

static void hear_interrupt(struct run *run)
{
    const int *interrupt = run->job->interrupt;

    if (interrupt == NULL || *interrupt == 0 || run->failed)
        return;
    lade_err_set(run->err, *interrupt, "stopped by %s",
                 *interrupt == LADE_E_INTERRUPT ? "SIGINT" : "SIGTERM");
    fail(run);
}

static void tell(struct run *run)
{
    struct lade_board_rank *me = run->me;
    uint32_t word = atomic_load(&run->board->command);

    atomic_store(&me->read_bytes, run->read_bytes);
    atomic_store(&me->progress, run->read_bytes + run->moved_bytes);
    lade_ring_advance(&run->ring, me);
    if (word == LADE_COMMAND_FREEZE && !run->frozen) {
        run->frozen = true;
        run->job->reader->discard(run->reader);
        run->frozen_at = atomic_load(&me->issued);
        atomic_fetch_or(&me->flags, LADE_BOARD_FROZEN);
    }
    if (finished(run))
        atomic_fetch_or(&me->flags, LADE_BOARD_FINISHED);
    if (run->job->progress != NULL && run->job->comm->rank == 0)
        run->job->progress(run->job->progress_ctx, run->health.read_bytes,
                           run->health.read_total);
}

static void clock_turn(struct run *run)
{
    uint64_t now = lade_now_ns(), passed = now - run->last_ns;

    run->last_ns = now;
    if (run->reads_flying > 0)
        run->counts->read_ns += passed;
    if (run->sends.count > 0 || run->recvs.count > 0 ||
        run->next_take < run->ring.takes.count)
        run->counts->share_ns += passed;
}

/* Nothing moved: give the core away, but never long with messages in flight,
 * since MPI moves only while it is called. */
static void rest(struct run *run, unsigned *idle_turns)
{
    if (++*idle_turns < SPINS) {
        sched_yield();
        return;
    }
    unsigned us = run->sends.count > 0 || run->recvs.count > 0 ? 20 : 200;
    if (run->reads_flying > 0)
        run->job->reader->wait(run->reader, us);
    else
        lade_sleep_us(us);
}

static int turn(struct run *run, bool *moved)
{
    int rc;

    hear_interrupt(run);
    LADE_TRY(collect_reads(run, moved));
    LADE_TRY(begin_reads(run, false, &run->next_shared, moved));
    LADE_TRY(begin_reads(run, true, &run->next_direct, moved));
    LADE_TRY(begin_recvs(run, moved));
    LADE_TRY(test_messages(run, &run->recvs, received, moved));
    LADE_TRY(test_messages(run, &run->sends, sent, moved));
    take_ready(run, moved);
    tell(run);
    LADE_TRY(lade_health_step(&run->health, run->err));
    clock_turn(run);
out:
    return rc;
}

static bool may_leave(const struct run *run)
{
    switch (atomic_load(&run->board->command)) {
    case LADE_COMMAND_LEAVE:
        return lade_health_over(&run->health);
    case LADE_COMMAND_STOP:
        return drained(run) && lade_health_over(&run->health);
    default:
        return false;
    }
}

static int loop(struct run *run)
{
    unsigned idle_turns = 0;

    run->last_ns = lade_now_ns();
    while (!may_leave(run)) {
        bool moved = false;
        int rc = turn(run, &moved);
        if (rc != LADE_OK) /* MPI itself, memory, or a lost rank */
            return rc;
        if (moved)
            idle_turns = 0;
        else
            rest(run, &idle_turns);
    }
    return run->failed ? run->err->status
                       : lade_health_close(&run->health, run->err);
}

/* ---- set-up ---- */

static int prepare(struct run *run, void *memory)
{
    const struct lade_share_job *job = run->job;
    struct lade_mem *mem = job->mem;
    const struct lade_ring_site site = {
        .plan = job->plan,
        .node = job->node,
        .board = run->board,
        .memory = memory,
        .rank = (uint32_t)job->comm->rank,
        .takes = job->plan->options.stores,
    };
    uint64_t total = 0;
    int rc;

    LADE_TRY(lade_taker_init(&run->taker, job->in, job->target,
                             (uint32_t)job->comm->rank, mem, run->err));
    LADE_TRY(lade_ring_init(&run->ring, &site, mem, run->err));
    run->sends_left =
        lade_alloc_array(mem, LADE_TAG_TEMP, run->ring.reads.count,
                         sizeof(*run->sends_left), run->err);
    run->taken =
        lade_alloc(mem, LADE_TAG_TEMP, run->ring.takes.count, run->err);
    run->told_node =
        lade_alloc_array(mem, LADE_TAG_TEMP, (uint64_t)job->node->nodes,
                         sizeof(*run->told_node), run->err);
    if (!run->sends_left || !run->taken || !run->told_node)
        LADE_TRY(LADE_E_MEMORY);
    for (uint64_t i = 0; i < run->ring.reads.count; i++)
        total += stripe_of(run, duty_at(&run->ring.reads, i))->length;
    atomic_store(&run->me->read_total, total);
    LADE_TRY(job->reader->open(&run->reader, job->in->shards,
                               &job->read_options, mem, job->trace, run->err));
out:
    return rc;
}

static void release(struct run *run)
{
    struct lade_mem *mem = run->job->mem;

    if (run->reader != NULL) {
        run->job->reader->counts(run->reader, &run->counts->read);
        run->job->reader->close(run->reader);
    }
    run->counts->delivered_bytes = run->taker.delivered_bytes;
    run->counts->copied_bytes = run->taker.delivered_bytes -
                                run->counts->direct_bytes +
                                run->counts->read.copied_bytes;
    run->counts->cast_elements = run->taker.cast_elements;
    lade_taker_fini(&run->taker, mem);
    lade_ring_fini(&run->ring, mem);
    lade_vec_fini(&run->sends);
    lade_vec_fini(&run->recvs);
    lade_free(mem, run->sends_left);
    lade_free(mem, run->taken);
    lade_free(mem, run->told_node);
    lade_health_fini(&run->health);
}

static uint64_t board_bytes(int locals)
{
    return lade_round_up(lade_board_bytes(locals), LADE_RING_UNIT);
}

uint64_t lade_share_staging_bytes(const struct lade_plan *plan, uint32_t node,
                                  int locals)
{
    uint64_t ring = lade_ring_bytes(plan, node);

    if (plan->options.scope == LADE_SCOPE_RANK)
        return ring;
    return board_bytes(locals) + ring;
}

int lade_share_run_all(const struct lade_share_job *job,
                       struct lade_share_counts *counts, lade_err *err)
{
    bool own_ring = job->plan->options.scope == LADE_SCOPE_RANK;
    uint64_t board = board_bytes(job->node->locals);
    uint64_t ring = lade_ring_bytes(job->plan, (uint32_t)job->node->index);
    struct run run = {.job = job, .counts = counts, .err = err};
    struct lade_shm shm = {.fd = -1};
    void *memory = NULL;
    int rc;

    memset(counts, 0, sizeof(*counts));
    lade_vec_init(&run.sends, job->mem, LADE_TAG_TEMP, sizeof(struct message));
    lade_vec_init(&run.recvs, job->mem, LADE_TAG_TEMP, sizeof(struct message));
    LADE_TRY(lade_node_shm_all(job->comm, job->node, LADE_TAG_STAGING,
                               board + (own_ring ? 0 : ring), &shm, "share",
                               err));
    run.board = shm.base;
    run.me = &run.board->ranks[job->node->local];
    memory = (char *)shm.base + board;
    if (own_ring)
        memory = lade_pages_alloc(job->mem, LADE_TAG_STAGING, ring, err);
    if (memory != NULL)
        prepare(&run, memory);
    lade_health_init(&run.health, job->comm, job->node, run.board, job->mem,
                     job->timeout_s, err);
    rc = lade_agree_all(job->comm, "share", err);
    if (rc == LADE_OK) {
        rc = loop(&run);
        rc = lade_agree_all(job->comm, "read", err);
    }
    /* after a lost rank a read may hang for ever, and MPI may still write:
     * nothing is taken back, the program is about to end */
    if (job->comm->dead)
        return rc;
    release(&run);
out:
    if (own_ring && memory != NULL)
        lade_pages_free(job->mem, LADE_TAG_STAGING, memory, ring);
    lade_shm_detach(&shm, job->mem, LADE_TAG_STAGING);
    return rc;
}
