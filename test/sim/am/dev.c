/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane for the library's active messages: control calls, doorbells and time of a simulated
 * node. The engine says that it sleeps, so each doorbell comes here at once, and a queue's
 * configuration is taken before the library waits for that.
 */
#include "amsim.h"

#include "msg/dev.h"

#include <urnic/attach.h>

#include <errno.h>
#include <sys/random.h>
#include <stdlib.h>

enum { MOST = AS_TALKER_PLACES };

struct as_dev {
	struct ms_node *n;
	struct urn_abi_channel channel;
	struct urn_msg_dev *msg;
	uint8_t *area; /* owner */
	uint64_t size, used;
	struct urn_abi_db *db; /* in the area */
	unsigned int first;    /* place of the first source */
	struct urn_source *source[MOST];
	bool opening; /* configurations are taken at once */
};

/* ---- time and random numbers, as the library sees them */

static uint64_t clock_ns;
static struct ms_world
	*random_of; /* world whose random numbers the library gets; NULL: the system's */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
ssize_t __real_getrandom(void *buf, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!clock_ns)
		return __real_clock_gettime(id, ts);
	*ts = (struct timespec){.tv_sec = (time_t)(clock_ns / MS_S),
				.tv_nsec = (long)(clock_ns % MS_S)};
	return 0;
}

ssize_t
__wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	uint8_t *to = buf;

	if (!random_of)
		return __real_getrandom(buf, len, flags);
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)sim_rng_next(&random_of->rng);
	return (ssize_t)len;
}

void
as_clock(uint64_t ns)
{
	clock_ns = ns;
}

/* ---- doorbells */

static void
wake(void *ctx, uint32_t engine)
{
	struct as_dev *d = ctx;
	struct ms_node *n = d->n;

	(void)engine;
	for (unsigned int i = 0; i < MOST; i++) {
		unsigned int id = d->first + i;
		uint64_t bit = 1ull << id % 64;

		if (!(atomic_fetch_and(&d->db->leaf[id / 64], ~bit) & bit) || !d->source[i])
			continue;
		if (d->opening)
			(void)urn_source_ops(d->source[i])->serve(n->tp, d->source[i]);
		n->rung[id] = 1;
		ms_node_wake(n, n->w->now + 500);
	}
	for (unsigned int i = 0; i < URN_ABI_DB_TOPS; i++)
		atomic_store(&d->db->top[i], 0);
}

struct urn_source *
as_dev_source(const struct as_dev *d, unsigned int place)
{
	return place - d->first < MOST ? d->source[place - d->first] : NULL;
}

/* ---- control calls */

static uint64_t
take(struct as_dev *d, uint64_t bytes)
{
	uint64_t off = d->used;

	d->used = RTE_ALIGN_CEIL(d->used + bytes, 64ull);
	if (d->used > d->size)
		ms_fail(d->n->w, "the area of a talker has no room for %llu bytes",
			(unsigned long long)bytes);
	return off;
}

/* A free source. returns: its index */
static unsigned int
free_source(struct as_dev *d)
{
	unsigned int i = 0;

	while (i < MOST && d->source[i])
		i++;
	if (i == MOST)
		ms_fail(d->n->w, "a talker has too many sources");
	return i;
}

static void
open_set(struct as_dev *d, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct ms_node *n = d->n;
	unsigned int i = free_source(d);
	struct urn_msg_rset *set;
	struct urn_msg_view v;
	struct urn_msg_config c = {
		.share = &n->share[d->first % RTE_DIM(n->share)],
		.db = d->first + i,
		.arena = (uint32_t)req->msg_open.arena,
		.channel_fd = -1,
		.cookie = req->msg_open.cookie,
	};

	rep->msg.off = take(d, sizeof(*c.regs) + c.arena);
	rep->msg.arena_off = rep->msg.off + sizeof(*c.regs);
	c.regs = (void *)(d->area + rep->msg.off);
	if (urn_msg_open(n->regs, &c, &set) != 0)
		ms_fail(n->w, "a register set could not be made");
	urn_msg_look(n->regs, set, &v);
	d->source[i] = urn_msg_source(set);
	rep->handle = i + 1;
	rep->msg.arena = c.arena;
	rep->msg.qid = v.qid;
	rep->msg.db = c.db;
}

static void
open_endpoint(struct as_dev *d, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct ms_node *n = d->n;
	unsigned int i = free_source(d);
	struct urn_am_config c = {
		.share = &n->share[d->first % RTE_DIM(n->share)],
		.db = d->first + i,
		.entries = req->am_open.entries,
		.ranges = req->am_open.ranges,
		.pd = req->am_open.pd,
	};
	struct urn_am_view v;
	struct urn_am_ep *ep;

	rep->am.off = take(d, urn_am_ep_bytes(c.entries, c.ranges));
	c.regs = (void *)(d->area + rep->am.off);
	if (urn_am_ep_open(n->am, &c, &ep) != 0)
		ms_fail(n->w, "an endpoint could not be made");
	urn_am_ep_look(n->am, ep, &v);
	d->source[i] = urn_am_ep_source(ep);
	rep->handle = i + 1;
	rep->am.qid = v.qid;
	rep->am.db = c.db;
	rep->am.chunk = urn_am_chunk(n->tp);
}

static void
close_source(struct as_dev *d, uint32_t handle)
{
	struct urn_source *src = handle && handle <= MOST ? d->source[handle - 1] : NULL;

	if (!src || !urn_source_ops(src)->end(d->n->tp, src))
		ms_fail(d->n->w, "a source of a talker does not end");
	d->source[handle - 1] = NULL;
	d->n->rung[d->first + handle - 1] = 0;
}

static void
hello(const struct as_dev *d, struct urn_abi_rep *rep)
{
	rep->device = (struct urn_abi_device){
		.version = URN_ABI_VERSION,
		.engines = 1,
		.gids = 1,
		.features = (uint32_t)URN_ABI_FEATURES,
		.area_size = d->size,
		.name = "sim",
	};
}

static void
call(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct as_dev *d = ctx;

	rep->err = 0;
	switch (req->op) {
	case URN_CTL_HELLO:
		hello(d, rep);
		break;
	case URN_CTL_QUERY_GID:
		memcpy(rep->gid.gid, d->n->gid, 16);
		break;
	case URN_CTL_ALLOC_PD:
		rep->err = urn_mem_alloc_pd(d->n->mem, &rep->handle);
		break;
	case URN_CTL_DEALLOC_PD:
		rep->err = urn_mem_dealloc_pd(d->n->mem, req->handle);
		break;
	case URN_CTL_MSG_OPEN:
		open_set(d, req, rep);
		break;
	case URN_CTL_AM_OPEN:
		open_endpoint(d, req, rep);
		break;
	case URN_CTL_MSG_CLOSE:
	case URN_CTL_AM_CLOSE:
		close_source(d, req->handle);
		break;
	default:
		rep->err = EOPNOTSUPP;
		break;
	}
}

static void
shut(void *ctx)
{
	(void)ctx;
}

struct as_dev *
as_dev_new(struct ms_node *n, unsigned int first, uint32_t bytes)
{
	struct as_dev *d = calloc(1, sizeof(*d));

	if (!d)
		ms_fail(n->w, "no memory");
	random_of = n->w;
	d->n = n;
	d->first = first;
	d->size = RTE_ALIGN_CEIL(bytes + sizeof(*d->db), 64ull);
	d->area = aligned_alloc(64, d->size);
	if (!d->area)
		ms_fail(n->w, "no memory");
	memset(d->area, 0, d->size);
	d->db = (void *)d->area;
	d->used = RTE_ALIGN_CEIL(sizeof(*d->db), 64ull);
	atomic_store(&d->db->asleep, 1);
	d->channel = (struct urn_abi_channel){
		.ctx = d, .call = call, .wake = wake, .close = shut, .area = d->area};
	d->msg = urn_msg_dev_open(&d->channel);
	if (!d->msg)
		ms_fail(n->w, "the library opens no device: %s", urn_attach_error());
	d->opening = true;
	return d;
}

struct urn_msg_dev *
as_dev_msg(struct as_dev *d)
{
	return d->msg;
}

void
as_dev_opened(struct as_dev *d)
{
	d->opening = false;
}

void
as_dev_free(struct as_dev *d)
{
	urn_msg_dev_close(d->msg);
	for (unsigned int i = 0; i < MOST; i++)
		if (d->source[i])
			ms_fail(d->n->w, "a source of a talker is left");
	free(d->area);
	free(d);
}
