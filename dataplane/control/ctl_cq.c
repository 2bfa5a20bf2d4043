/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests on completion queues. */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "control/cq_move.h"

/*
 * Entries up to which a new queue has room for messages beside its completions: 2 MiB. The area has
 * more use for the room of larger queues.
 */
enum { BESIDE_MOST = 16384 };

static uint64_t
bytes_of(uint32_t entries, bool beside)
{
	return beside ? urn_abi_beside_off(entries) +
				(uint64_t)entries * sizeof(struct urn_abi_beside)
		      : URN_ABI_CQ_SLOTS + (uint64_t)entries * sizeof(struct urn_abi_cqe);
}

static struct urn_abi_beside *
beside_at(const struct urn_client *c, uint64_t off, uint32_t entries, bool beside)
{
	return beside ? (void *)(c->area.base + off + urn_abi_beside_off(entries)) : NULL;
}

static int
check_size(const struct urn_client *c, struct urn_abi_rep *rep, uint32_t cqe)
{
	if (cqe == 0 || cqe > URN_ABI_MAX_CQE)
		return urn_ctl_fail(rep, EINVAL, "%s: a completion queue has 1 to %u entries, not %u",
				    c->adapter->cfg.name, URN_ABI_MAX_CQE, cqe);
	return 0;
}

static int
no_room(const struct urn_client *c, struct urn_abi_rep *rep, int rc)
{
	return urn_ctl_fail(rep, rc, "%s: no room for the completion queue (area of %llu MiB, at most "
			    "%u queues)", c->adapter->cfg.name,
			    (unsigned long long)(c->area.size >> 20), URN_ADAPTER_MAX_CQ);
}

static void
answer(const struct urn_ctl_cq *q, struct urn_abi_rep *rep)
{
	rep->handle = q->cq.handle;
	rep->queue.off = q->off;
	rep->queue.entries = q->cq.mask + 1;
	rep->queue.stride = sizeof(struct urn_abi_cqe);
	rep->queue.engine = q->vector;
	rep->queue.beside = q->cq.beside != NULL;
}

/* Allocate a new queue: in an area that is almost full without messages beside completions. */
static int
allocate(struct urn_client *c, struct urn_ctl_cq *q, uint32_t entries, bool beside)
{
	int rc;

	q->bytes = bytes_of(entries, beside);
	rc = urn_client_alloc(c, q->bytes, &q->off);
	if ((rc == ENOMEM || rc == EDQUOT) && beside) {
		beside = false;
		q->bytes = bytes_of(entries, false);
		rc = urn_client_alloc(c, q->bytes, &q->off);
	}
	if (rc != 0)
		return rc;
	q->cq.beside = beside_at(c, q->off, entries, beside);
	q->cq.space = c->space;
	return 0;
}

void
urn_ctl_reach_cqs(struct urn_client *c)
{
	for (uint32_t h = 1; h <= c->cqs.cap; h++) {
		struct urn_ctl_cq *q = urn_handles_get(&c->cqs, h);

		/* An engine may look at it: a message beside its completion is only faster. */
		if (q)
			__atomic_store_n(&q->cq.space, c->space, __ATOMIC_RELAXED);
	}
}

int
urn_ctl_create_cq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	uint32_t entries;
	struct urn_ctl_cq *q;
	int rc = check_size(c, rep, req->create_cq.cqe), fd;

	if (rc == 0)
		rc = urn_ctl_channel_find(c, req->create_cq.channel_fd, rep, &fd);
	if (rc != 0)
		return rc;
	entries = urn_pow2(req->create_cq.cqe);
	q = calloc(1, sizeof(*q));
	if (!q)
		return ENOMEM;
	q->vector = req->create_cq.comp_vector % a->vectors;
	rc = allocate(c, q, entries,
		      req->create_cq.beside == 1 && (c->space || c->remote) &&
			      entries <= BESIDE_MOST);
	if (rc == 0) {
		rc = urn_handles_put(&c->cqs, q, URN_ADAPTER_MAX_CQ, &q->cq.handle);
		if (rc != 0)
			urn_area_free(&c->area, q->off, q->bytes);
	}
	if (rc != 0) {
		free(q);
		return no_room(c, rep, rc);
	}
	q->cq.hdr = (void *)(c->area.base + q->off);
	q->cq.mask = entries - 1;
	q->cq.engine = a->engine_of[q->vector];
	q->cq.channel_fd = fd;
	q->channel = urn_ctl_channel_use(c, req->create_cq.channel_fd);
	q->cq.cookie = req->create_cq.cookie;
	q->cq.owner = c->engine.share[q->cq.engine];
	answer(q, rep);
	return 0;
}

static struct urn_ctl_cq *
find(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_cq *q = urn_handles_get(&c->cqs, req->handle);

	if (!q)
		urn_ctl_fail(rep, EINVAL, "%s: no completion queue %u", c->adapter->cfg.name,
			     req->handle);
	return q;
}

/* Move the queue: carry completions over without the adapter's lock until the engine can copy the rest. */
static int
move(struct urn_client *c, struct urn_ctl_cq *q, struct urn_cq_move *m)
{
	for (;;) {
		urn_engine_call(urn_adapter_shard(c->adapter, q->vector)->engine, urn_cq_move_step, m);
		if (m->rc != EAGAIN)
			return m->rc;
		urn_ctl_unlock(c);
		urn_cq_move_carry(m);
		urn_ctl_relock(c);
	}
}

int
urn_ctl_resize_cq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_cq *q = find(c, req, rep);
	struct urn_cq_move m;
	uint32_t entries;
	uint64_t off, bytes;
	int rc = q ? check_size(c, rep, req->resize_cq.cqe) : EINVAL;

	if (rc != 0)
		return rc;
	entries = urn_pow2(req->resize_cq.cqe);
	bytes = bytes_of(entries, q->cq.beside != NULL);
	rc = urn_client_alloc(c, bytes, &off);
	if (rc != 0)
		return no_room(c, rep, rc);
	urn_cq_move_init(&m, &q->cq, (void *)(c->area.base + off), off, entries);
	m.to.beside = beside_at(c, off, entries, q->cq.beside != NULL);
	rc = move(c, q, &m);
	if (rc != 0) {
		urn_area_free(&c->area, off, bytes);
		return urn_ctl_fail(rep, rc, "%s: completion queue %u holds more than %u completions",
				    c->adapter->cfg.name, req->handle, entries);
	}
	if (q->cq.shared)
		urn_adapter_barrier(c->adapter); /* other engines use the new ring from here on */
	urn_area_free(&c->area, q->off, q->bytes);
	q->off = off;
	q->bytes = bytes;
	answer(q, rep);
	return 0;
}

/* Queues of one engine that are forgotten together. */
struct forget {
	struct urn_shard *shard;
	struct urn_ctl_cq *const *q;
	unsigned int n;
	uint32_t events; /* events of the last queue, those included that its end caused */
};

/* In the owner's thread. */
static void
forget(void *arg)
{
	struct forget *f = arg;

	for (unsigned int i = 0; i < f->n; i++) {
		urn_shard_forget_cq(f->shard, &f->q[i]->cq);
		f->events = f->q[i]->cq.events;
	}
}

/* Remove all traces of queues from all engines, and free them. All are of one engine, and nothing
 * uses them. returns: events of the last one */
static uint32_t
end_all(struct urn_client *c, struct urn_ctl_cq *const *q, unsigned int n)
{
	struct urn_adapter *a = c->adapter;
	uint32_t vector = q[0]->vector;
	struct forget f = {.shard = urn_adapter_shard(a, vector), .q = q, .n = n};

	for (uint32_t v = 0; v < a->vectors; v++)
		urn_adapter_pass_completions(c, v, vector);
	urn_engine_call(f.shard->engine, forget, &f);
	for (unsigned int i = 0; i < n; i++) {
		urn_ctl_channel_leave(c, q[i]->channel);
		urn_handles_remove(&c->cqs, q[i]->cq.handle);
		urn_area_free(&c->area, q[i]->off, q[i]->bytes);
		free(q[i]);
	}
	return f.events;
}

int
urn_ctl_destroy_cq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_ctl_cq *q = find(c, req, rep);

	if (!q)
		return EINVAL;
	if (q->cq.users)
		return urn_ctl_fail(rep, EBUSY,
				    "%s: completion queue %u is used by %u queues of QPs: "
				    "destroy those first",
				    a->cfg.name, req->handle, q->cq.users);
	rep->queue.events = end_all(c, &q, 1);
	return 0;
}

/* Take back the queues of one engine. */
static void
take_back(struct urn_client *c, uint32_t vector)
{
	struct urn_ctl_cq *q[URN_CTL_TOGETHER];
	unsigned int n = 0;

	for (uint32_t h = 1; h <= c->cqs.cap && c->cqs.n; h++) {
		struct urn_ctl_cq *one = urn_handles_get(&c->cqs, h);

		if (one && one->vector == vector && !one->cq.users)
			q[n++] = one;
		if (n == URN_CTL_TOGETHER || (n && h == c->cqs.cap)) {
			(void)end_all(c, q, n);
			urn_ctl_took_back(c, n);
			n = 0;
		}
	}
}

void
urn_ctl_take_back_cqs(struct urn_client *c)
{
	for (uint32_t v = 0; v < c->adapter->vectors; v++)
		take_back(c, v);
}
