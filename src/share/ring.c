/*
 * In: the plan and this rank's place. Out: where each stripe stands in the
 * node's ring, and this rank's duties in plan order. Ranks of a node compute
 * the same places from the same plan; nothing is negotiated.
 */
#include "share/ring.h"

#include <string.h>

static bool node_needs(const struct lade_plan *plan,
                       const struct lade_stripe *stripe, uint32_t node)
{
    const uint64_t *set = lade_plan_set(plan, stripe->set);
    const uint32_t *node_of = LADE_ITEMS(plan, node_of, uint32_t);

    for (uint32_t w = 0; w < plan->set_words; w++)
        for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
            uint32_t r = w * 64 + (uint32_t)__builtin_ctzll(bits);
            if (node_of[r] == node)
                return true;
        }
    return false;
}

/* needs[set]: has the node ranks in it? One byte per set. */
static unsigned char *sets_of_node(const struct lade_plan *plan, uint32_t node,
                                   struct lade_mem *mem, lade_err *err)
{
    uint64_t count = plan->sets.count / (plan->set_words ? plan->set_words : 1);
    unsigned char *needs = lade_alloc(mem, LADE_TAG_TEMP, count + 1, err);

    for (uint64_t s = 0; needs != NULL && s < count; s++) {
        struct lade_stripe probe = {.set = (uint32_t)s};
        needs[s] = node_needs(plan, &probe, node);
    }
    return needs;
}

static uint64_t flag_bytes(uint64_t flags)
{
    return lade_round_up(flags * sizeof(uint32_t), LADE_RING_UNIT);
}

static uint64_t ring_bytes(const struct lade_plan *plan, uint64_t flags)
{
    return flag_bytes(flags) + (uint64_t)plan->segments * plan->segment_bytes;
}

uint64_t lade_ring_bytes(const struct lade_plan *plan, uint32_t node)
{
    const struct lade_stripe *stripes =
        LADE_ITEMS(plan, stripes, struct lade_stripe);
    uint64_t flags = 0;

    for (uint64_t i = 0; i < plan->stripes.count; i++)
        flags += stripes[i].kind == LADE_STRIPE_SHARED &&
                 node_needs(plan, &stripes[i], node);
    return lade_max_u64(ring_bytes(plan, flags), LADE_RING_UNIT);
}

static int add(struct lade_vec *list, const struct lade_duty *duty,
               lade_err *err)
{
    return lade_vec_push(list, duty, err) ? LADE_OK : LADE_E_MEMORY;
}

/* The shared stripe's duties of this rank on this node. */
static int add_shared(struct lade_ring *ring, const struct lade_duty *duty,
                      const struct lade_ring_site *site, lade_err *err)
{
    const struct lade_stripe *stripe = &ring->stripes[duty->stripe];
    const uint32_t *node_of = LADE_ITEMS(ring->plan, node_of, uint32_t);
    const uint64_t *set = lade_plan_set(ring->plan, stripe->set);
    uint32_t *pending = &ring->pending[stripe->round];
    uint32_t rank = site->rank, node = (uint32_t)site->node->index;
    int rc = LADE_OK;

    if (stripe->reader == rank) {
        ++*pending;
        rc = add(&ring->reads, duty, err);
    } else if (node_of[stripe->reader] != node &&
               lade_plan_receiver(ring->plan, duty->stripe, node) == rank) {
        ++*pending;
        rc = add(&ring->recvs, duty, err);
    }
    if (rc == LADE_OK && site->takes && lade_bit_get(set, rank)) {
        ++*pending;
        rc = add(&ring->takes, duty, err);
    }
    return rc;
}

static int add_duties(struct lade_ring *ring, const struct lade_ring_site *site,
                      const unsigned char *needs, uint64_t *flags,
                      lade_err *err)
{
    uint64_t used = 0;
    uint32_t round = UINT32_MAX;
    int rc = LADE_OK;

    *flags = 0;
    for (uint32_t i = 0; rc == LADE_OK && i < ring->plan->stripes.count; i++) {
        const struct lade_stripe *stripe = &ring->stripes[i];
        struct lade_duty duty = {.stripe = i, .flag = LADE_NO_SLOT};
        if (stripe->round != round) {
            round = stripe->round;
            used = 0;
        }
        if (stripe->kind == LADE_STRIPE_DIRECT) {
            if (stripe->reader == site->rank)
                rc = add(&ring->reads, &duty, err);
            continue;
        }
        if (!needs[stripe->set])
            continue;
        duty.slot = used;
        duty.flag = (uint32_t)(*flags)++;
        used += lade_plan_slot_bytes(stripe);
        rc = add_shared(ring, &duty, site, err);
    }
    return rc;
}

int lade_ring_init(struct lade_ring *ring, const struct lade_ring_site *site,
                   struct lade_mem *mem, lade_err *err)
{
    const struct lade_plan *plan = site->plan;
    const struct lade_node *node = site->node;
    bool own = plan->options.scope == LADE_SCOPE_RANK;
    unsigned char *needs = NULL;
    uint64_t flags;
    int rc = LADE_OK;

    memset(ring, 0, sizeof(*ring));
    ring->plan = plan;
    ring->stripes = LADE_ITEMS(plan, stripes, struct lade_stripe);
    ring->board = site->board;
    ring->first_local = own ? node->local : 0;
    ring->end_local = own ? node->local + 1 : node->locals;
    ring->segment_bytes = plan->segment_bytes;
    lade_vec_init(&ring->reads, mem, LADE_TAG_TEMP, sizeof(struct lade_duty));
    lade_vec_init(&ring->recvs, mem, LADE_TAG_TEMP, sizeof(struct lade_duty));
    lade_vec_init(&ring->takes, mem, LADE_TAG_TEMP, sizeof(struct lade_duty));
    needs = sets_of_node(plan, (uint32_t)node->index, mem, err);
    ring->pending =
        lade_alloc_array(mem, LADE_TAG_TEMP, (uint64_t)plan->rounds + 1,
                         sizeof(*ring->pending), err);
    if (needs == NULL || ring->pending == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(add_duties(ring, site, needs, &flags, err));
    ring->flags = site->memory;
    ring->segments = (unsigned char *)site->memory + flag_bytes(flags);
out:
    lade_free(mem, needs);
    return rc;
}

void lade_ring_fini(struct lade_ring *ring, struct lade_mem *mem)
{
    lade_vec_fini(&ring->reads);
    lade_vec_fini(&ring->recvs);
    lade_vec_fini(&ring->takes);
    lade_free(mem, ring->pending);
}

bool lade_ring_free(const struct lade_ring *ring, uint32_t round)
{
    uint32_t segments = ring->plan->segments;

    if (round < segments)
        return true;
    for (int i = ring->first_local; i < ring->end_local; i++)
        if (atomic_load_explicit(&ring->board->ranks[i].done_rounds,
                                 memory_order_acquire) <= round - segments)
            return false;
    return true;
}

unsigned char *lade_ring_data(const struct lade_ring *ring,
                              const struct lade_duty *duty)
{
    const struct lade_stripe *stripe = &ring->stripes[duty->stripe];
    uint64_t segment = stripe->round % ring->plan->segments;

    return ring->segments + segment * ring->segment_bytes + duty->slot +
           stripe->offset % LADE_RING_UNIT;
}

static unsigned char *status_at(const struct lade_ring *ring,
                                const struct lade_duty *duty)
{
    return lade_ring_data(ring, duty) +
           lade_round_up(ring->stripes[duty->stripe].length, 8);
}

uint64_t lade_ring_status(const struct lade_ring *ring,
                          const struct lade_duty *duty)
{
    uint64_t status;

    memcpy(&status, status_at(ring, duty), sizeof(status));
    return status;
}

void lade_ring_set_status(const struct lade_ring *ring,
                          const struct lade_duty *duty, uint64_t status)
{
    memcpy(status_at(ring, duty), &status, sizeof(status));
}

uint64_t lade_ring_message(const struct lade_stripe *stripe)
{
    return lade_round_up(stripe->length, 8) + LADE_RING_STATUS;
}

void lade_ring_done(struct lade_ring *ring, uint32_t round)
{
    ring->pending[round]--;
}

bool lade_ring_advance(struct lade_ring *ring, struct lade_board_rank *me)
{
    uint32_t before = ring->done_rounds;

    while (ring->done_rounds < ring->plan->rounds &&
           ring->pending[ring->done_rounds] == 0)
        ring->done_rounds++;
    if (ring->done_rounds == before)
        return false;
    atomic_store_explicit(&me->done_rounds, ring->done_rounds,
                          memory_order_release);
    return true;
}
