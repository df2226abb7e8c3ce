/*
 * In: a rank that waits for others. Out: the names of those who never came.
 *
 * Who waits for long listens to rank 0, and rank 0 to everybody; this costs
 * nothing while all is well. At the first deadline, its own or another rank's
 * (who then sends its word unasked), rank 0 asks all who have not said a word,
 * gives them a second, and tells those who did who is missing. Deadlines
 * begin at different times, so only an answer tells that a rank is here.
 */
#include "comm/roll.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define CALL_NS UINT64_C(1000000000) /* rank 0 waits for answers */
#define TELL_NS UINT64_C(200000000)  /* and for its last words to leave */
#define NAMED 8                      /* of the missing; the rest is counted */

enum { QUESTION = 1, VERDICT };

/* From rank 0. */
struct note {
    uint32_t kind;
    char missing[LADE_ROLL_TEXT];
};

/* What of it a rank uses depends on whether it is rank 0. Once posted a receive
 * stays, over all agreements. */
struct lade_roll {
    struct note note; /* heard from rank 0; on rank 0 its verdict */
    /* rank 0, one for each rank */
    struct note question;
    struct lade_request *recvs, *asked, *told;
    int32_t *words;
    bool *here;
    /* others */
    struct lade_request hear, say;
    int32_t word;
    bool said;
};

static int listen_to_root(struct lade_comm *comm, lade_err *err)
{
    struct lade_roll *roll = comm->roll;

    return comm->ops->recv(comm->ctx, &roll->note, sizeof(roll->note), 0,
                           LADE_MSG_ROLL, &roll->hear, err);
}

static int listen_to_ranks(struct lade_comm *comm, lade_err *err)
{
    struct lade_roll *roll = comm->roll;
    int rc = LADE_OK;

    roll->here[0] = true;
    for (int r = 1; r < comm->size && rc == LADE_OK; r++)
        rc = comm->ops->recv(comm->ctx, &roll->words[r], sizeof(int32_t), r,
                             LADE_MSG_ROLL, &roll->recvs[r], err);
    return rc;
}

/* Begins to listen, once. Without memory nobody is named: not a fault. */
static int begin(struct lade_comm *comm, lade_err *err)
{
    const size_t each = 3 * sizeof(struct lade_request) + sizeof(int32_t) + 1;
    size_t size = comm->rank == 0 ? (size_t)comm->size : 0;
    struct lade_roll *roll = comm->roll;

    if (roll != NULL)
        return LADE_OK;
    roll = lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*roll) + size * each, NULL);
    if (roll == NULL)
        return LADE_OK;
    roll->recvs = (struct lade_request *)(void *)(roll + 1);
    roll->asked = roll->recvs + size;
    roll->told = roll->asked + size;
    roll->words = (int32_t *)(void *)(roll->told + size);
    roll->here = (bool *)(roll->words + size);
    comm->roll = roll;
    return size ? listen_to_ranks(comm, err) : listen_to_root(comm, err);
}

/* ---- rank 0 ---- */

/* Notes who has said a word; *heard counts the new ones. */
static int hear_words(struct lade_comm *comm, int *heard, lade_err *err)
{
    struct lade_roll *roll = comm->roll;

    for (int r = 1; r < comm->size; r++) {
        bool done = false;
        if (roll->here[r])
            continue;
        int rc = comm->ops->test(comm->ctx, &roll->recvs[r], &done, err);
        if (rc != LADE_OK)
            return rc;
        roll->here[r] = done;
        *heard += done;
    }
    return LADE_OK;
}

/* To those who are here, or to those who may not be. */
static void send_note(struct lade_comm *comm, const struct note *note,
                      struct lade_request *sends, bool here)
{
    for (int r = 1; r < comm->size; r++)
        if (comm->roll->here[r] == here)
            comm->ops->send(comm->ctx, note, sizeof(*note), r, LADE_MSG_ROLL,
                            &sends[r], NULL);
}

static void list_missing(const struct lade_comm *comm, char *text)
{
    size_t used = 0;
    int count = 0;

    for (int r = 1; r < comm->size; r++)
        if (!comm->roll->here[r] && count++ < NAMED)
            used += (size_t)snprintf(text + used, LADE_ROLL_TEXT - used, "%s%d",
                                     used ? ", " : "", r);
    if (count > NAMED)
        snprintf(text + used, LADE_ROLL_TEXT - used, " and %d more",
                 count - NAMED);
}

static void ask(struct lade_comm *comm)
{
    struct lade_roll *roll = comm->roll;
    uint64_t start = lade_now_ns(), passed = 0;
    unsigned sleep_us = 50;
    int heard = 0;

    for (int r = 0; r < comm->size; r++)
        heard += roll->here[r];
    roll->question.kind = QUESTION;
    send_note(comm, &roll->question, roll->asked, false);
    while (heard < comm->size && passed < CALL_NS &&
           hear_words(comm, &heard, NULL) == LADE_OK) {
        lade_comm_rest(passed, &sleep_us);
        passed = lade_now_ns() - start;
    }
}

static void tell(struct lade_comm *comm)
{
    struct lade_roll *roll = comm->roll;
    uint64_t start = lade_now_ns();

    list_missing(comm, roll->note.missing);
    roll->note.kind = VERDICT;
    send_note(comm, &roll->note, roll->told, true);
    for (int r = 1; r < comm->size; r++) {
        bool done = !roll->told[r].active;
        while (!done && lade_now_ns() - start < TELL_NS)
            if (comm->ops->test(comm->ctx, &roll->told[r], &done, NULL) !=
                LADE_OK)
                break;
    }
}

static int root_turn(struct lade_comm *comm, bool late, bool *lost,
                     lade_err *err)
{
    int alarms = 0;
    int rc = hear_words(comm, &alarms, err);

    if (rc != LADE_OK || (alarms == 0 && !late))
        return rc;
    ask(comm);
    tell(comm);
    *lost = true;
    return LADE_OK;
}

/* ---- the others ---- */

static int say_here(struct lade_comm *comm, lade_err *err)
{
    struct lade_roll *roll = comm->roll;

    if (roll->said)
        return LADE_OK;
    roll->said = true;
    roll->word = comm->rank;
    return comm->ops->send(comm->ctx, &roll->word, sizeof(roll->word), 0,
                           LADE_MSG_ROLL, &roll->say, err);
}

static int other_turn(struct lade_comm *comm, bool late, bool *lost,
                      lade_err *err)
{
    struct lade_roll *roll = comm->roll;
    bool heard = false;
    int rc = comm->ops->test(comm->ctx, &roll->hear, &heard, err);

    if (rc == LADE_OK && heard) {
        *lost = roll->note.kind == VERDICT;
        rc = *lost ? LADE_OK : listen_to_root(comm, err);
    }
    if (rc == LADE_OK && !*lost && (heard || late))
        rc = say_here(comm, err);
    return rc;
}

/* ---- both ---- */

int lade_roll_wait(struct lade_comm *comm, struct lade_request *req,
                   uint64_t limit_ns, char missing[LADE_ROLL_TEXT], bool *done,
                   lade_err *err)
{
    uint64_t start = lade_now_ns(), waited = 0;
    unsigned sleep_us = 50;
    bool lost = false, root = comm->rank == 0;
    int rc;

    missing[0] = 0;
    LADE_TRY(begin(comm, err));
    while (!lost) {
        LADE_TRY(comm->ops->test(comm->ctx, req, done, err));
        if (*done)
            break;
        waited = lade_now_ns() - start;
        if (comm->roll == NULL)
            lost = waited > limit_ns;
        else if (root)
            LADE_TRY(root_turn(comm, waited > limit_ns, &lost, err));
        else
            LADE_TRY(other_turn(comm, waited > limit_ns, &lost, err));
        if (lost && comm->roll != NULL)
            memcpy(missing, comm->roll->note.missing, LADE_ROLL_TEXT);
        if (!lost && !root && waited > limit_ns + 2 * CALL_NS) {
            lost = true; /* rank 0 does not answer either */
            memcpy(missing, "0", 2);
        }
        if (!lost)
            lade_comm_rest(waited, &sleep_us);
    }
out:
    return rc;
}

void lade_roll_free(struct lade_comm *comm)
{
    struct lade_roll *roll = comm->roll;

    if (roll == NULL)
        return;
    if (comm->rank != 0)
        comm->ops->cancel(comm->ctx, &roll->hear);
    for (int r = 1; comm->rank == 0 && r < comm->size; r++)
        comm->ops->cancel(comm->ctx, &roll->recvs[r]);
    lade_free(NULL, roll);
    comm->roll = NULL;
}
