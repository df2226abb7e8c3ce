/*
 * One rank without MPI, and the waits on back-ends of a caller's own: pieces,
 * deadlines, faults of the back-end, what is done when a rank is lost.
 */
#include "unit.h"

#include <stdbool.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/shm.h"
#include "comm/comm.h"

/* ---- one rank ---- */

static void agreement_of_one(void **state)
{
    lade_err err = LADE_ERR_INIT;
    struct lade_comm *comm = lade_comm_self_new(&err);

    (void)state;
    assert_int_equal(comm->size, 1);
    assert_int_equal(comm->rank, 0);
    assert_true(comm->timeout_s > 299 && comm->timeout_s < 301);
    assert_int_equal(lade_agree_all(comm, "route", &err), LADE_OK);
    assert_int_equal(err.status, LADE_OK);
    assert_int_equal(err.text[0], 0);
    lade_err_set(&err, LADE_E_PARAMETER, "one is missing");
    assert_int_equal(lade_agree_all(comm, "route", &err), LADE_E_PARAMETER);
    assert_string_equal(err.text, "one is missing");
    assert_string_equal(err.gate, "route");
    assert_int_equal(err.rank, 0);
    assert_true(err.node[0] != 0);
    /* what is known stays: a later gate only hands it on */
    assert_int_equal(lade_agree_all(comm, "check", &err), LADE_E_PARAMETER);
    assert_string_equal(err.gate, "route");
    lade_comm_free(comm);
    lade_comm_free(NULL);
}

static void collectives_of_one(void **state)
{
    lade_err err = LADE_ERR_INIT;
    struct lade_comm *comm = lade_comm_self_new(&err);
    struct lade_mem *mem = lade_mem_new();
    struct lade_gathered all;
    char text[] = "text", copy[5] = "";
    struct lade_block block = {mem, text, sizeof(text)};
    const int first = 0;

    (void)state;
    assert_int_equal(lade_comm_bcast_all(comm, text, 5, 0, "t", &err), LADE_OK);
    assert_int_equal(lade_comm_bcast_all(comm, NULL, 0, 0, "t", &err), LADE_OK);
    assert_int_equal(lade_comm_allgather_all(comm, text, copy, 5, "t", &err),
                     LADE_OK);
    assert_string_equal(copy, "text");
    assert_int_equal(lade_comm_gather_all(comm, mem, text, 5, &all, "t", &err),
                     LADE_OK);
    assert_int_equal(all.sizes[0], 5);
    assert_string_equal(all.bytes, "text");
    lade_gathered_fini(&all);
    lade_gathered_fini(&all); /* once more does no harm */
    assert_int_equal(lade_comm_gather_all(comm, mem, NULL, 0, &all, "t", &err),
                     LADE_OK);
    assert_int_equal(all.sizes[0], 0);
    lade_gathered_fini(&all);
    assert_int_equal(lade_comm_spread_all(comm, &block, &first, 1, "t", &err),
                     LADE_OK);
    assert_ptr_equal(block.data, text);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), 0);
    lade_mem_free(mem);
    lade_comm_free(comm);
}

static int send_one(struct lade_comm *comm, int value, int to, int tag,
                    lade_err *err)
{
    struct lade_request req = {0};
    int rc =
        comm->ops->send(comm->ctx, &value, sizeof(value), to, tag, &req, err);

    return rc == LADE_OK ? lade_comm_wait(comm, &req, "t", err) : rc;
}

static int recv_one(struct lade_comm *comm, int *value, int tag, lade_err *err)
{
    struct lade_request req = {0};
    int rc =
        comm->ops->recv(comm->ctx, value, sizeof(*value), 0, tag, &req, err);

    return rc == LADE_OK ? lade_comm_wait(comm, &req, "t", err) : rc;
}

static void mail_to_oneself(void **state)
{
    lade_err err = LADE_ERR_INIT;
    struct lade_comm *comm = lade_comm_self_new(&err);
    int value = 0;
    char byte;
    struct lade_request req = {0};

    (void)state;
    for (int i = 1; i < 4; i++) {
        assert_int_equal(send_one(comm, i, 0, 7, &err), LADE_OK);
        assert_int_equal(send_one(comm, i * 10, 0, 8, &err), LADE_OK);
    }
    for (int i = 1; i < 4; i++) { /* in order for each tag */
        assert_int_equal(recv_one(comm, &value, 8, &err), LADE_OK);
        assert_int_equal(value, i * 10);
    }
    assert_int_equal(recv_one(comm, &value, 7, &err), LADE_OK);
    assert_int_equal(value, 1);
    assert_int_equal(comm->ops->recv(comm->ctx, &byte, 1, 0, 7, &req, &err),
                     LADE_E_INTERNAL);
    assert_string_equal(err.text, "a message of 4 bytes for 1");
    err = (lade_err)LADE_ERR_INIT;
    assert_int_equal(recv_one(comm, &value, 9, &err), LADE_E_INTERNAL);
    assert_non_null(strstr(err.text, "never sent"));
    err = (lade_err)LADE_ERR_INIT;
    assert_int_equal(send_one(comm, 1, 1, 7, &err), LADE_E_INTERNAL);
    assert_string_equal(err.text, "no rank 1 here");
    lade_comm_free(comm); /* with letters that nobody fetched */
}

static void node_of_one(void **state)
{
    lade_err err = LADE_ERR_INIT;
    struct lade_comm *comm = lade_comm_self_new(&err);
    struct lade_mem *mem = lade_mem_new();
    struct lade_blob head = {.kind = LADE_BLOB_PLAN};
    const void *product = NULL;
    struct lade_node node;
    struct lade_shm shm;

    (void)state;
    for (int split = 0; split < 2; split++) {
        assert_int_equal(lade_node_find_all(comm, mem, split, &node, &err),
                         LADE_OK);
        assert_int_equal(node.nodes, 1);
        assert_int_equal(node.locals, 1);
        assert_int_equal(node.index + node.local + node.first, 0);
        assert_int_equal(lade_node_shm_all(comm, &node, LADE_TAG_STAGING, 0,
                                           &shm, "t", &err),
                         LADE_OK);
        assert_non_null(shm.base);
        assert_true(shm.fd < 0); /* nobody else can come in any more */
        lade_shm_detach(&shm, mem, LADE_TAG_STAGING);
        void *blob = lade_blob_pack(mem, &head, sizeof(head), NULL, 0, &err);
        assert_int_equal(
            lade_node_publish_all(comm, &node, blob, &product, &shm, "t", &err),
            LADE_OK);
        assert_ptr_equal(product, blob);
        assert_null(shm.base);
        lade_free(mem, blob);
        lade_node_fini(&node);
    }
    assert_int_equal(lade_node_find_all(comm, mem, 0, &node, &err), LADE_OK);
    assert_int_equal(lade_node_shm_all(comm, &node, LADE_TAG_STAGING,
                                       UINT64_C(1) << 60, &shm, "share", &err),
                     LADE_E_MEMORY);
    assert_string_equal(err.gate, "share");
    assert_non_null(strstr(err.text, "1152921504606846976 bytes of shared"));
    lade_node_fini(&node);
    for (int t = 0; t < LADE_TAGS; t++)
        assert_int_equal(lade_mem_now(mem, (enum lade_tag)t), 0);
    lade_mem_free(mem);
    lade_comm_free(comm);
}

/* ---- back-ends of a caller's own ---- */

/* Notes what it is asked; completes after `turns` tests, or with `fault`. */
struct fake {
    int turns, fault, left, closed;
    uint64_t calls, bytes, longest;
};

static int start(struct fake *fake, size_t bytes, struct lade_request *req)
{
    fake->left = fake->turns;
    fake->calls++;
    fake->bytes += bytes;
    if (bytes > fake->longest)
        fake->longest = bytes;
    req->active = true;
    return LADE_OK;
}

static int fake_send(void *ctx, const void *buf, size_t bytes, int to, int tag,
                     struct lade_request *req, lade_err *err)
{
    (void)buf, (void)to, (void)tag, (void)err;
    return start(ctx, bytes, req);
}

static int fake_recv(void *ctx, void *buf, size_t bytes, int from, int tag,
                     struct lade_request *req, lade_err *err)
{
    (void)buf, (void)from, (void)tag, (void)err;
    return start(ctx, bytes, req);
}

static int fake_bcast(void *ctx, void *buf, size_t bytes, int root,
                      struct lade_request *req, lade_err *err)
{
    (void)buf, (void)root, (void)err;
    return start(ctx, bytes, req);
}

static int fake_allgather(void *ctx, const void *mine, void *all, size_t bytes,
                          struct lade_request *req, lade_err *err)
{
    (void)mine, (void)all, (void)err;
    return start(ctx, bytes, req);
}

static int fake_allmin(void *ctx, const int64_t *mine, int64_t *all, int count,
                       struct lade_request *req, lade_err *err)
{
    (void)err;
    memcpy(all, mine, (size_t)count * sizeof(*all));
    return start(ctx, 0, req);
}

static int fake_test(void *ctx, struct lade_request *req, bool *done,
                     lade_err *err)
{
    struct fake *fake = ctx;

    if (fake->fault)
        return lade_err_set(err, fake->fault, "the wire is cut");
    *done = fake->left-- <= 0;
    req->active = !*done;
    return LADE_OK;
}

static void fake_cancel(void *ctx, struct lade_request *req)
{
    (void)ctx;
    req->active = false;
}

static void fake_close(void *ctx)
{
    ((struct fake *)ctx)->closed++;
}

static struct lade_comm *fake_new(struct fake *fake)
{
    static const struct lade_comm_ops ops = {
        "fake",         LADE_COMM_VERSION, fake_send, fake_recv,   fake_bcast,
        fake_allgather, fake_allmin,       fake_test, fake_cancel, fake_close};
    struct lade_comm *comm =
        lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*comm), NULL);

    assert_non_null(comm);
    *comm = (struct lade_comm){
        .ops = &ops, .ctx = fake, .rank = 1, .size = 3, .timeout_s = 0.25};
    return comm;
}

static void long_messages_go_in_pieces(void **state)
{
    struct fake fake = {.turns = 3};
    struct lade_comm *comm = fake_new(&fake);
    lade_err err = LADE_ERR_INIT;
    char byte = 0; /* the fake looks at no byte */
    const uint64_t size = (UINT64_C(3) << 30) + 1;

    (void)state;
    assert_int_equal(lade_comm_bcast_all(comm, &byte, size, 0, "t", &err),
                     LADE_OK);
    assert_int_equal(fake.bytes, size);
    assert_true(fake.longest < UINT64_C(1) << 30);
    assert_true(fake.calls >= 4);
    lade_comm_free(comm);
    assert_int_equal(fake.closed, 1);
}

static void a_deadline_makes_it_dead(void **state)
{
    struct fake fake = {.turns = INT_MAX};
    struct lade_comm *comm = fake_new(&fake);
    struct lade_request req = {0};
    lade_err err = LADE_ERR_INIT, after = LADE_ERR_INIT;
    char byte = 0;

    (void)state;
    fake_bcast(&fake, &byte, 1, 0, &req, &err);
    uint64_t start_ns = lade_now_ns();
    assert_int_equal(lade_comm_wait(comm, &req, "route", &err), LADE_E_TIMEOUT);
    assert_in_range(lade_now_ns() - start_ns, 250000000u, 2000000000u);
    assert_string_equal(err.text,
                        "route: 0.25 s without an answer (--timeout)");
    assert_true(comm->dead);
    uint64_t calls = fake.calls;
    assert_int_equal(lade_comm_bcast_all(comm, &byte, 1, 0, "plan", &after),
                     LADE_E_TIMEOUT);
    assert_non_null(strstr(after.text, "plan: an earlier deadline passed"));
    assert_int_equal(lade_agree_all(comm, "plan", &err), LADE_E_TIMEOUT);
    assert_int_equal(fake.calls, calls); /* nothing was sent any more */
    lade_comm_free(comm);
    assert_int_equal(fake.closed, 0);
}

/* Nobody answers this rank, rank 0 neither: it says so. */
static void an_agreement_without_answer(void **state)
{
    struct fake fake = {.turns = INT_MAX};
    struct lade_comm *comm = fake_new(&fake);
    lade_err err = LADE_ERR_INIT;

    (void)state;
    assert_int_equal(lade_agree_all(comm, "locate", &err), LADE_E_TIMEOUT);
    assert_string_equal(err.text,
                        "locate: no word from rank 0 for 0.25 s (--timeout)");
    assert_string_equal(err.gate, "locate");
    assert_int_equal(err.rank, 1);
    assert_true(comm->dead);
    lade_free(NULL, comm->roll); /* left alone for what may still arrive */
    lade_comm_free(comm);
}

static void faults_of_the_back_end(void **state)
{
    struct fake fake = {.turns = 1, .fault = LADE_E_MPI};
    struct lade_comm *comm = fake_new(&fake);
    lade_err err = LADE_ERR_INIT;

    (void)state;
    assert_int_equal(lade_agree_all(comm, "model", &err), LADE_E_MPI);
    assert_string_equal(err.text, "the wire is cut");
    assert_string_equal(err.gate, "model");
    /* an own cause counts more than the way it could not take */
    err = (lade_err)LADE_ERR_INIT;
    lade_err_set(&err, LADE_E_IO, "the cause");
    assert_int_equal(lade_agree_all(comm, "model", &err), LADE_E_IO);
    assert_string_equal(err.text, "the cause");
    lade_comm_free(comm);
}

/* Without limit is a number, too. */
static void timeouts_of_any_size(void **state)
{
    const double timeouts[] = {1e300, 1e18, 3e9};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fake fake = {.turns = 20};
        struct lade_comm *comm = fake_new(&fake);
        lade_err err = LADE_ERR_INIT;
        comm->timeout_s = timeouts[i];
        assert_int_equal(lade_agree_all(comm, "t", &err), LADE_OK);
        lade_comm_free(comm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agreement_of_one),
        cmocka_unit_test(collectives_of_one),
        cmocka_unit_test(mail_to_oneself),
        cmocka_unit_test(node_of_one),
        cmocka_unit_test(long_messages_go_in_pieces),
        cmocka_unit_test(a_deadline_makes_it_dead),
        cmocka_unit_test(an_agreement_without_answer),
        cmocka_unit_test(faults_of_the_back_end),
        cmocka_unit_test(timeouts_of_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
