/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: attaching, and taking everything back. */
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "control/shm.h"
#include "engine/sources.h"
#include "am/am.h"
#include "msg/msg.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the embedded channel */

static void
channel_call(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_client *c = ctx;

	if (c->adapter) {
		urn_ctl_call(c, req, rep);
		return;
	}
	memset(rep, 0, sizeof(*rep));
	rep->err = urn_ctl_fail(rep, ENODEV, "the dataplane has been taken down: close the device");
}

static void
channel_wake(void *ctx, uint32_t vector)
{
	struct urn_client *c = ctx;
	uint64_t one = 1;

	if (c->adapter && vector < c->adapter->vectors &&
	    write(c->wake_fd[vector], &one, sizeof(one)) < 0) {
		/* The eventfd is full: the engine is being woken already. */
	}
}

static void
channel_close(void *ctx)
{
	urn_client_destroy(ctx);
}

/* ---- doorbells */

struct link {
	struct urn_shard *shard;
	struct urn_client_shard *cs;
	struct urn_shard_user *spare; /* when the client comes: memory for its user, or NULL */
	uid_t uid;		      /* ... and its user */
	int wake_set;		      /* when the client goes: its inner epoll, or -1 */
};

static void
link_shard(void *arg)
{
	struct link *l = arg;

	l->spare = urn_shard_join(l->shard, l->cs, l->uid, l->spare);
	urn_shard_add_client(l->shard, l->cs);
}

/* Drop the events of a share that no turn of the engine has written yet: the client goes. */
static void
drop_events(struct urn_tp *tp, const struct urn_tp_share *owner)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < tp->event_n; i++)
		if (tp->event[i].owner != owner)
			tp->event[n++] = tp->event[i];
	tp->event_n = n;
}

static void
unlink_shard(void *arg)
{
	struct link *l = arg;

	drop_events(l->shard->tp, &l->cs->share);
	atomic_store(&l->cs->scan.db->asleep, 0); /* no client is left that must wake the engine */
	if (l->wake_set >= 0)
		urn_engine_unwatch(l->shard->engine, l->wake_set);
	urn_shard_remove_client(l->shard, l->cs);
}

/* Make an eventfd of the client's, in an inner epoll that an engine watches. returns 0, or an errno
 * value: close_wakes() closes what there is */
static int
make_wake(struct urn_client *c, uint32_t vector)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	c->wake_fd[vector] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->wake_set[vector] = epoll_create1(EPOLL_CLOEXEC);
	if (c->wake_fd[vector] < 0 || c->wake_set[vector] < 0 ||
	    epoll_ctl(c->wake_set[vector], EPOLL_CTL_ADD, c->wake_fd[vector], &ev) != 0)
		return errno;
	return urn_engine_watch(urn_adapter_shard(c->adapter, vector)->engine, c->wake_set[vector]);
}

/*
 * Make the client an eventfd of its own for each engine: its abuse of one hurts nobody else. No
 * lock is held, and the client does not have the eventfds yet.
 */
static int
make_wakes(struct urn_client *c)
{
	int rc = 0;

	for (uint32_t v = 0; v < c->adapter->vectors && rc == 0; v++)
		rc = make_wake(c, v);
	return rc;
}

/*
 * Close the eventfds and their epolls, without a lock: the client may watch the eventfds with many
 * descriptors. An eventfd leaves its epoll first, because before Linux 6.4 the end of an epoll
 * that still watches something holds a lock of the whole system meanwhile.
 */
static void
close_wakes(struct urn_client *c)
{
	for (uint32_t v = 0; v < URN_ABI_MAX_ENGINES; v++) {
		if (c->wake_set[v] >= 0) {
			(void)epoll_ctl(c->wake_set[v], EPOLL_CTL_DEL, c->wake_fd[v], NULL);
			close(c->wake_set[v]);
		}
		if (c->wake_fd[v] >= 0)
			close(c->wake_fd[v]);
		c->wake_fd[v] = c->wake_set[v] = -1;
	}
}

static int
add_shard(struct urn_client *c, uint32_t vector)
{
	struct urn_client_shard *cs = calloc(1, sizeof(*cs));
	struct link l = {
		.shard = urn_adapter_shard(c->adapter, vector),
		.cs = cs,
		.spare = calloc(1, sizeof(*l.spare)),
		.uid = c->remote ? c->uid : geteuid(),
	};
	int rc = ENOMEM;

	if (cs && l.spare)
		rc = urn_area_alloc(&c->area, sizeof(struct urn_abi_db), &c->db_off[vector]);
	if (rc != 0) {
		free(l.spare);
		free(cs);
		return rc;
	}
	cs->scan.db = (void *)(c->area.base + c->db_off[vector]);
	cs->scan.top = UINT32_MAX;
	if (vector == 0 && c->space)
		urn_space_leave_by(c->space, &cs->scan.db->left);
	cs->client = &c->engine;
	cs->share.sibling = c->engine.share;
	cs->shard = l.shard;
	c->engine.share[c->adapter->engine_of[vector]] = &cs->share;
	urn_engine_call(l.shard->engine, link_shard, &l);
	free(l.spare);
	return urn_engine_watch_for(l.shard->engine, c->wake_set[vector], cs);
}

static void
remove_shard(struct urn_client *c, uint32_t vector)
{
	struct urn_client_shard *cs = urn_client_shard(c, vector);
	struct link l = {
		.shard = urn_adapter_shard(c->adapter, vector),
		.cs = cs,
		.wake_set = c->wake_set[vector],
	};

	if (!cs)
		return;
	urn_engine_call(l.shard->engine, unlink_shard, &l);
	urn_explain_keep(c, c->adapter->engine_of[vector], &cs->share);
	urn_sources_fini(cs);
	free(cs);
}

/* Open this process's memory like another process's. */
static int
own_space(struct urn_client *c, struct urn_err *err)
{
	char why[256] = "can't open its own memory in /proc";
	struct urn_space_fds fds;
	int rc = urn_space_open_self(&fds);

	if (rc == 0) {
		rc = urn_space_create(&fds, &c->space, why, sizeof(why));
		if (rc == 0)
			urn_space_set_user(c->space, geteuid());
		else
			urn_space_close_fds(&fds);
	}
	if (rc != 0)
		urn_err_set(err, "%s: foreign memory: %s", c->adapter->cfg.name, why);
	return rc;
}

/* Set the client's owner, all fields at once. returns 0, or an errno value with *err */
static int
introduce(struct urn_client *c, const struct urn_client_who *who, struct urn_err *err)
{
	if (!who)
		return c->adapter->cfg.mem_foreign ? own_space(c, err) : 0;
	c->remote = true;
	c->pid = who->pid;
	c->uid = who->uid;
	c->engine.who = (struct urn_log_who){.pid = who->pid, .uid = who->uid};
	memcpy(c->engine.who.program, who->program, sizeof(who->program));
	atomic_store(&c->conn_fd, who->conn_fd);
	c->direct = who->direct;
	c->space = who->space;
	memcpy(c->no_space, who->no_space, sizeof(c->no_space));
	c->quota.account = who->account;
	if (who->limits)
		c->quota.limits = *who->limits;
	return urn_quota_join(c, err);
}

/* Make a client that nobody knows yet. NULL with *err and errno */
static struct urn_client *
make(struct urn_adapter *a, const struct urn_client_who *who, struct urn_err *err)
{
	struct urn_client *c = calloc(1, sizeof(*c));
	int rc = c ? urn_area_init(&c->area, a->cfg.area_size, who != NULL) : ENOMEM;

	if (rc != 0) {
		urn_err_set(err, "%s: can't map %llu MiB for a client's queues: %s", a->cfg.name,
			    (unsigned long long)(a->cfg.area_size >> 20), strerror(rc));
		if (who)
			urn_space_release(who->space);
		free(c);
		errno = rc;
		return NULL;
	}
	c->adapter = a;
	memset(c->wake_fd, -1, sizeof(c->wake_fd));
	memset(c->wake_set, -1, sizeof(c->wake_set));
	c->reply_fd = -1;
	c->agreed = urn_abi_unasked(&a->dp->speaks);
	atomic_store(&c->engine.async_fd, -1);
	c->async.write_fd = -1;
	atomic_store(&c->conn_fd, -1);
	urn_cm_client_init(&c->cm);
	c->channel = (struct urn_abi_channel){
		.ctx = c,
		.call = channel_call,
		.wake = channel_wake,
		.close = channel_close,
		.area = c->area.base,
	};
	rc = introduce(c, who, err);
	if (rc == 0)
		return c;
	urn_space_release(c->space);
	urn_area_fini(&c->area);
	free(c);
	errno = rc;
	return NULL;
}

int
urn_client_start(struct urn_client *c, struct urn_err *err)
{
	static _Atomic uint32_t serial;
	struct urn_adapter *a = c->adapter;
	char why[128];
	int rc;

	if (c->started)
		return 0;
	/* Sealing waits for a hole that the client is just punching; no other client waits. */
	rc = urn_area_seal(&c->area, why, sizeof(why));
	if (rc != 0) {
		urn_err_set(err, "%s: the area for queues %s", a->cfg.name, why);
		return rc;
	}
	urn_ctl_lock(a, c->remote);
	c->id = atomic_fetch_add(&serial, 1) + 1; /* under the adapter's lock: first in the list */
	c->engine.who.client = c->id;
	for (uint32_t v = 0; v < a->vectors && rc == 0; v++)
		rc = add_shard(c, v);
	if (rc == 0) { /* the client is complete: others may see it */
		c->family = c->id;
		LIST_INSERT_HEAD(&a->clients, c, link);
		c->started = true;
	}
	pthread_mutex_unlock(&a->lock);
	if (rc != 0)
		urn_err_set(err, rc == ENOMEM ? "%s: an area of %llu bytes is too small for a client's doorbells"
					      : "%s: no descriptors left for a client (area of %llu bytes)",
			    a->cfg.name, (unsigned long long)a->cfg.area_size);
	return rc;
}

struct urn_client *
urn_client_create(struct urn_adapter *a, const struct urn_client_who *who, struct urn_err *err)
{
	struct urn_client *c = make(a, who, err);
	int rc;

	if (!c)
		return NULL;
	rc = make_wakes(c);
	if (rc != 0)
		urn_err_set(err, "%s: no descriptors left for a client: %s", a->cfg.name, strerror(rc));
	else if (!c->remote)
		rc = urn_client_start(c, err);
	if (rc == 0)
		return c;
	urn_client_destroy(c);
	errno = ENOMEM;
	return NULL;
}

void
urn_client_mark(struct urn_client *c)
{
	if (!c->area_at || !c->space || c->mark_off)
		return;
	if (urn_area_alloc(&c->area, URN_ABI_CACHE_LINE, &c->mark_off) == 0)
		urn_space_mark(c->space, (uint64_t *)(void *)(c->area.base + c->mark_off),
			       c->area_at + c->mark_off);
}

void
urn_client_reach(struct urn_client *c, struct urn_space *space, const char *why)
{
	const struct urn_client_shard *first = urn_client_shard(c, 0);

	urn_ctl_enter(c);
	snprintf(c->no_space, sizeof(c->no_space), "%s", why);
	if (space && first)
		urn_space_leave_by(space, &first->scan.db->left);
	c->space = space;
	if (space) {
		urn_client_mark(c);
		urn_ctl_reach_cqs(c);
	}
	urn_ctl_leave(c);
}

int
urn_client_alloc(struct urn_client *c, uint64_t bytes, uint64_t *off)
{
	bool quick = urn_area_is_quick(&c->area, bytes);
	int rc = urn_quota_queue(c, urn_area_grows(&c->area, bytes));

	if (rc != 0)
		return rc;
	/* Only this client uses the area, and no other call of the client runs. */
	if (!quick)
		urn_ctl_unlock(c);
	rc = urn_area_alloc(&c->area, bytes, off);
	if (!quick)
		urn_ctl_relock(c);
	return rc;
}

/* ---- taking back; the adapter's lock is held */

enum {
	TAKEN_AT_A_TIME = 32, /* objects; each, or a group of them, takes an engine's turn or two */
	LET_IN_US = 50, /* microseconds for a waiting thread to wake up and take the lock, which is
			   not fair */
};

void
urn_ctl_took_back(struct urn_client *c, unsigned int n)
{
	c->taken += n;
	if (c->taken < TAKEN_AT_A_TIME && !urn_ctl_frozen(c->adapter))
		return;
	c->taken = 0;
	urn_ctl_unlock(c);
	if (c->remote)
		usleep(LET_IN_US);
	else
		urn_engine_wait_turn();
	urn_ctl_relock(c);
}

static void
take_back(struct urn_client *c, urn_ctl_fn *fn, uint32_t handle)
{
	struct urn_abi_req req = {.handle = handle};
	struct urn_abi_rep rep;

	(void)fn(c, &req, &rep);
	urn_ctl_took_back(c, 1);
}

static void
take_back_table(struct urn_client *c, struct urn_handles *t, urn_ctl_fn *fn)
{
	for (uint32_t h = 1; h <= t->cap && t->n; h++)
		if (urn_handles_get(t, h))
			take_back(c, fn, h);
}

/* Arguments of end_source(), which runs in the engine's thread. */
struct ending {
	struct urn_client_shard *cs;
	struct urn_source *src;
	bool ended;
};

static void
end_source(void *arg)
{
	struct ending *e = arg;
	uint32_t id = e->src->db;

	e->ended = urn_source_ops(e->src)->end(e->cs->shard->tp, e->src);
	if (e->ended)
		urn_sources_drop(e->cs, id);
}

/* Take back all queue pairs on the engine of a vector. */
static void
take_back_qps(struct urn_client *c, uint32_t vector)
{
	const struct urn_client_shard *cs = urn_client_shard(c, vector);
	uint32_t qpn[URN_CTL_TOGETHER];
	unsigned int n = 0;

	for (uint32_t i = 0; cs && i < cs->used; i++) {
		struct urn_source *src = cs->source[i];

		if (src && src->kind == URN_SOURCE_QP) {
			urn_ctl_leave_groups(c, urn_source_qp(src));
			qpn[n++] = urn_source_qp(src)->qpn;
		}
		if (n == URN_CTL_TOGETHER || (n && i + 1 == cs->used)) {
			urn_ctl_end_qps(c, qpn, n);
			urn_ctl_took_back(c, n);
			n = 0;
		}
	}
}

/* Take back a source of work that is no queue pair, on the engine of a vector. src: NULL: there is
 * none */
static void
take_back_source(struct urn_client *c, uint32_t vector, struct urn_source *src)
{
	struct ending e = {.cs = urn_client_shard(c, vector), .src = src};

	if (!src)
		return;
	if (urn_source_ops(src) == &urn_msg_ops) {
		const struct urn_shard *s = e.cs->shard;
		struct urn_msg_view v;

		urn_msg_look(s->msg, urn_msg_set_of(src), &v);
		take_back(c, urn_ctl_msg_close, URN_MSG_HANDLE(s->engine->index, v.slot));
		return;
	}
	if (urn_source_ops(src) == &urn_am_ep_ops) {
		const struct urn_shard *s = e.cs->shard;
		struct urn_am_view v;

		urn_am_ep_look(s->am, urn_am_ep_of(src), &v);
		take_back(c, urn_ctl_am_close, URN_MSG_HANDLE(s->engine->index, v.slot));
		return;
	}
	for (;;) {
		urn_engine_call(e.cs->shard->engine, end_source, &e);
		if (e.ended)
			break;
		urn_ctl_wait(c);
	}
	urn_ctl_took_back(c, 1);
}

static void
take_back_all(struct urn_client *c)
{
	struct urn_adapter *a = c->adapter;

	if (a->cm && a->vectors)
		urn_cm_client_gone(a->cm, &c->cm, urn_engine_now(urn_adapter_shard(a, 0)->engine));
	for (uint32_t v = 0; v < a->vectors; v++) {
		const struct urn_client_shard *cs = urn_client_shard(c, v);

		take_back_qps(c, v);
		for (uint32_t i = 0; cs && i < cs->used; i++)
			take_back_source(c, v, cs->source[i]);
	}
	take_back_table(c, &c->srqs, urn_ctl_destroy_srq);
	urn_ctl_take_back_cqs(c);
	take_back_table(c, &c->channels, urn_ctl_destroy_channel);
	urn_ctl_take_back_ahs(c);
	urn_ctl_take_back_keys(c);
	urn_ctl_take_back_pds(c);
	for (uint32_t v = 0; v < a->vectors; v++)
		remove_shard(c, v);
}

void
urn_client_orphan(struct urn_client *c)
{
	urn_ctl_enter(c);
	c->leaving = true;
	take_back_all(c);
	if (c->started)
		LIST_REMOVE(c, link);
	urn_ctl_leave(c);
	urn_handles_fini(&c->cqs);
	urn_handles_fini(&c->srqs);
	urn_handles_fini(&c->channels);
	urn_shm_drop_all(c);
	/* No engine knows the client any more. The client's watchers delay the end of its teller,
	 * and nobody else waits here. */
	urn_teller_destroy(c->teller);
	c->teller = NULL;
	if (c->direct && c->async.write_fd >= 0)
		close(c->async.write_fd);
	close_wakes(c);
	c->adapter = NULL;
}

void
urn_client_destroy(struct urn_client *c)
{
	if (c->adapter)
		urn_client_orphan(c);
	urn_space_release(c->space);
	urn_area_fini(&c->area);
	urn_tally_leave(&c->quota); /* no memory of the client is mapped any more */
	free(c);
}
