/*
 * One rank, no MPI: every operation is done when it starts. A message to
 * oneself waits in a short list until it is received.
 */
#include <string.h>

#include "comm/roll.h"

struct mail {
    struct mail *next;
    size_t bytes;
    int tag;
};

struct self {
    struct mail *mails;
};

static int self_send(void *ctx, const void *buf, size_t bytes, int to, int tag,
                     struct lade_request *req, lade_err *err)
{
    struct self *self = ctx;
    struct mail **last = &self->mails;
    struct mail *mail =
        lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*mail) + bytes, err);

    if (mail == NULL)
        return LADE_E_MEMORY;
    if (to != 0) {
        lade_free(NULL, mail);
        return lade_err_set(err, LADE_E_INTERNAL, "no rank %d here", to);
    }
    *mail = (struct mail){.bytes = bytes, .tag = tag};
    memcpy(mail + 1, buf, bytes);
    while (*last != NULL)
        last = &(*last)->next;
    *last = mail;
    req->active = true;
    return LADE_OK;
}

static int self_recv(void *ctx, void *buf, size_t bytes, int from, int tag,
                     struct lade_request *req, lade_err *err)
{
    struct self *self = ctx;

    (void)from;
    for (struct mail **at = &self->mails; *at != NULL; at = &(*at)->next) {
        struct mail *mail = *at;
        if (mail->tag != tag)
            continue;
        if (mail->bytes > bytes)
            return lade_err_set(err, LADE_E_INTERNAL,
                                "a message of %zu bytes for %zu", mail->bytes,
                                bytes);
        memcpy(buf, mail + 1, mail->bytes);
        *at = mail->next;
        lade_free(NULL, mail);
        req->active = true;
        return LADE_OK;
    }
    return lade_err_set(err, LADE_E_INTERNAL,
                        "a message from oneself that was never sent");
}

static int self_bcast(void *ctx, void *buf, size_t bytes, int root,
                      struct lade_request *req, lade_err *err)
{
    (void)ctx, (void)buf, (void)bytes, (void)root, (void)err;
    req->active = true;
    return LADE_OK;
}

static int self_allgather(void *ctx, const void *mine, void *all, size_t bytes,
                          struct lade_request *req, lade_err *err)
{
    (void)ctx, (void)err;
    memcpy(all, mine, bytes);
    req->active = true;
    return LADE_OK;
}

static int self_allmin(void *ctx, const int64_t *mine, int64_t *all, int count,
                       struct lade_request *req, lade_err *err)
{
    (void)ctx, (void)err;
    memcpy(all, mine, (size_t)count * sizeof(*all));
    req->active = true;
    return LADE_OK;
}

static int self_test(void *ctx, struct lade_request *req, bool *done,
                     lade_err *err)
{
    (void)ctx, (void)err;
    req->active = false;
    *done = true;
    return LADE_OK;
}

static void self_cancel(void *ctx, struct lade_request *req)
{
    (void)ctx;
    req->active = false;
}

static void self_close(void *ctx)
{
    struct self *self = ctx;

    while (self->mails != NULL) {
        struct mail *next = self->mails->next;
        lade_free(NULL, self->mails);
        self->mails = next;
    }
    lade_free(NULL, self);
}

static const struct lade_comm_ops self_ops = {
    .name = "self",
    .version = LADE_COMM_VERSION,
    .send = self_send,
    .recv = self_recv,
    .bcast = self_bcast,
    .allgather = self_allgather,
    .allmin = self_allmin,
    .test = self_test,
    .cancel = self_cancel,
    .close = self_close,
};

struct lade_comm *lade_comm_self_new(lade_err *err)
{
    struct lade_comm *comm =
        lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*comm), err);
    struct self *self = lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*self), err);

    if (comm == NULL || self == NULL) {
        lade_free(NULL, comm);
        lade_free(NULL, self);
        return NULL;
    }
    *comm = (struct lade_comm){.ops = &self_ops,
                               .ctx = self,
                               .size = 1,
                               .timeout_s = 300,
                               .description = "self"};
    return comm;
}

void lade_comm_free(struct lade_comm *comm)
{
    if (comm == NULL)
        return;
    if (!comm->dead) {
        lade_roll_free(comm);
        comm->ops->close(comm->ctx);
    }
    lade_free(NULL, comm);
}
