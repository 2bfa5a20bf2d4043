/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on clients and their objects: completion queues, shared receive queues, memory. */
#include "report/report_priv.h"

#include "memory/check.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- walking */

struct report_walk
report_walk_begin(const struct urn_report_source *src, struct urn_report_query *q,
		  struct urn_report_sink *s)
{
	return (struct report_walk){
		.src = src,
		.q = q,
		.s = s,
		.rows = report_rows(q),
		.scan = REPORT_SCAN,
	};
}

/*
 * Find a client by its number. conn (may be NULL): set to a copy of the descriptor of its
 * connection, which the caller closes; -1: there is none. returns: 0, or -1 with *err
 */
static int
find_client(const struct urn_report_source *src, uint32_t id, struct urn_err *err, int *conn)
{
	bool found = false;

	for (unsigned int i = 0; i < src->dp->adapters_n && !found; i++) {
		struct urn_adapter *a = src->dp->adapter[i];

		if (urn_report_lock(a, err) != 0)
			return -1;
		for (const struct urn_client *c = LIST_FIRST(&a->clients); c && !found;
		     c = LIST_NEXT(c, link)) {
			found = c->id == id;
			if (found && conn)
				*conn = fcntl(atomic_load(&c->conn_fd), F_DUPFD_CLOEXEC, 0);
		}
		urn_report_unlock(a);
	}
	if (!found)
		urn_err_set(err, "no client has the number %u; 'show client' lists them", id);
	return found ? 0 : -1;
}

int
report_adapters_walk(struct report_walk *w, struct urn_err *err, report_adapter_fn *one)
{
	struct urn_report_query *q = w->q;
	const struct urn_dp *dp = w->src->dp;

	if (report_check_adapter(w->src, q->adapter, err) != 0)
		return URN_REPORT_FAILED;
	/* Nobody has nothing: that is another answer than none. A client may go meanwhile. */
	if (q->client && !q->at.outer && !q->at.middle && !q->at.inner &&
	    find_client(w->src, q->client, err, NULL) != 0)
		return URN_REPORT_FAILED;
	for (; q->at.outer < dp->adapters_n; q->at.outer++) {
		struct urn_adapter *a = dp->adapter[q->at.outer];
		bool done;

		if (!report_named(q->adapter, a->cfg.name))
			continue;
		if (urn_report_lock(a, err) != 0)
			return URN_REPORT_FAILED;
		done = one(w, a);
		urn_report_unlock(a);
		if (!done)
			return URN_REPORT_MORE;
		q->at = (struct urn_report_at){.outer = q->at.outer};
	}
	return URN_REPORT_DONE;
}

/* A walk over clients, on top of a walk over adapters. */
struct clients_walk {
	struct report_walk walk;
	report_client_fn *one;
};

/* Clients are listed with the newest, and so the highest number, first: q->at.middle is the next number. */
bool
report_clients_of(struct report_walk *w, struct urn_adapter *a, report_client_fn *one)
{
	struct urn_report_at *at = &w->q->at;

	for (const struct urn_client *c = LIST_FIRST(&a->clients); c; c = LIST_NEXT(c, link)) {
		if ((at->on && c->id > at->middle) || (w->q->client && c->id != w->q->client))
			continue;
		if (report_full(w))
			return false;
		if (!at->on || c->id != at->middle)
			at->inner = 0; /* the client that the walk was in the middle of is gone */
		at->on = true;
		at->middle = c->id;
		if (!one(w, c))
			return false;
		at->inner = 0;
		at->middle = c->id - 1;
	}
	return true;
}

static bool
walk_clients(struct report_walk *w, struct urn_adapter *a)
{
	return report_clients_of(w, a, ((const struct clients_walk *)w)->one);
}

int
report_clients_walk(struct report_walk *w, struct urn_err *err, report_client_fn *one)
{
	struct clients_walk cw = {.walk = *w, .one = one};

	return report_adapters_walk(&cw.walk, err, walk_clients);
}

bool
report_slots_walk(struct report_walk *w, const struct urn_adapter *a, unsigned int engine,
		  uint32_t n, report_slot_fn *one)
{
	uint32_t *slot = &w->q->at.inner;

	while (*slot < n) {
		if (report_full(w))
			return false;
		w->scan--;
		one(w, a, engine, (*slot)++);
	}
	return true;
}

bool
report_asks_for(const struct report_walk *w, const struct urn_tp_share *share,
		const struct urn_client **c)
{
	*c = urn_client_of(urn_share_client(share));
	return !w->q->client || (*c && (*c)->id == w->q->client);
}

void
report_owner(struct urn_report_sink *s, const struct urn_client *c)
{
	s->str(s, "adapter", c->adapter->cfg.name);
	s->u64(s, "client", c->id);
}

/* ---- clients */

void
report_program(const struct urn_client *c, char name[32])
{
	char path[40];
	ssize_t n;
	int fd;

	name[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)c->pid);
	fd = c->pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	n = read(fd, name, 31);
	close(fd);
	n = n < 0 ? 0 : n;
	name[n] = '\0';
	if (n && name[n - 1] == '\n')
		name[n - 1] = '\0';
}

/* Sources of the client's that are neither register sets nor endpoints. */
static uint64_t
qps_of(const struct urn_client *c)
{
	uint64_t n = 0;

	for (uint32_t v = 0; v < c->adapter->vectors; v++) {
		const struct urn_client_shard *cs = urn_client_shard(c, v);

		if (cs)
			n += LOOK(cs->used) - LOOK(cs->free_n);
	}
	return n - c->msg_sets - c->am_eps;
}

/* Report how the client's foreign memory is read: by process number, and how often that was refused. */
static void
foreign_reads(struct urn_report_sink *s, const struct urn_client *c)
{
	struct urn_space_stats stats = {0};

	if (c->space)
		urn_space_stats(c->space, &stats);
	s->u64(s, "direct_reads", stats.direct);
	s->u64(s, "direct_refused", stats.refused);
}

static bool
one_client(struct report_walk *w, const struct urn_client *c)
{
	struct urn_report_query *q = w->q;
	struct urn_report_sink *s = w->s;
	char name[32];

	report_program(c, name);
	s->begin(s, "client", q->client != 0);
	s->u64(s, "client", c->id);
	s->str(s, "adapter", c->adapter->cfg.name);
	s->u64(s, "pid", (uint64_t)c->pid);
	s->u64(s, "uid", c->uid);
	s->str(s, "program", name);
	s->flag(s, "remote", c->remote);
	s->u64(s, "qps", qps_of(c));
	s->u64(s, "cqs", c->cqs.n);
	s->u64(s, "srqs", c->srqs.n);
	s->u64(s, "channels", c->channels.n);
	s->u64(s, "msg_sets", c->msg_sets);
	s->u64(s, "am_endpoints", c->am_eps);
	s->u64(s, "mrs", c->quota.used[URN_QUOTA_MR]);
	s->u64(s, "pinned_bytes", c->quota.used[URN_QUOTA_PINNED]);
	s->flag(s, "foreign", c->space != NULL);
	if (q->client) {
		s->u64(s, "area_bytes", c->area.size);
		s->u64(s, "area_resident_bytes", urn_area_resident(&c->area));
		s->str(s, "no_foreign", c->no_space);
		foreign_reads(s, c);
	}
	s->end(s);
	w->rows--;
	return true;
}

int
urn_report_clients(const struct urn_report_source *src, struct urn_report_query *q,
		   struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_clients_walk(&w, err, one_client);
}

int
urn_report_kick(const struct urn_report_source *src, uint32_t client, struct urn_err *err)
{
	int conn = -1, rc = find_client(src, client, err, &conn);

	if (rc != 0 || conn < 0)
		return rc;
	/* The client's thread finds the end, and takes everything back. All of the client's
	 * watchers of the connection wake up: so that happens outside the adapter's lock. */
	(void)shutdown(conn, SHUT_RD);
	close(conn);
	return 0;
}

/* ---- completion queues */

static void
one_cq(const struct urn_client *c, const struct urn_ctl_cq *q, struct urn_report_sink *s)
{
	uint32_t mask = LOOK(q->cq.mask);
	uint32_t cons = atomic_load_explicit(&q->cq.hdr->cons, memory_order_relaxed);

	s->begin(s, "cq", false);
	report_owner(s, c);
	s->u64(s, "cq", q->cq.handle);
	s->u64(s, "engine", q->cq.engine);
	s->u64(s, "entries", mask + 1ull);
	s->u64(s, "waiting", report_fill(LOOK(q->cq.prod), cons, mask));
	s->u64(s, "written", LOOK(q->cq.prod));
	s->u64(s, "users", q->cq.users);
	s->flag(s, "channel", q->cq.channel_fd >= 0);
	s->u64(s, "events", LOOK(q->cq.events));
	s->flag(s, "overrun", LOOK(q->cq.overrun));
	s->end(s);
}

/* Go through a client's table of handles, from q->at.inner on. */
static bool
walk_table(struct report_walk *w, const struct urn_client *c, const struct urn_handles *t,
	   void (*one)(const struct urn_client *c, const void *obj, struct urn_report_sink *s))
{
	uint32_t *i = &w->q->at.inner;

	for (; *i < t->cap; ++*i) {
		if (report_full(w))
			return false;
		w->scan--;
		if (t->v[*i] == NULL)
			continue;
		one(c, t->v[*i], w->s);
		w->rows--;
	}
	return true;
}

static void
table_cq(const struct urn_client *c, const void *obj, struct urn_report_sink *s)
{
	one_cq(c, obj, s);
}

static bool
client_cqs(struct report_walk *w, const struct urn_client *c)
{
	return walk_table(w, c, &c->cqs, table_cq);
}

int
urn_report_cqs(const struct urn_report_source *src, struct urn_report_query *q,
	       struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_clients_walk(&w, err, client_cqs);
}

/* ---- shared receive queues */

static void
table_srq(const struct urn_client *c, const void *obj, struct urn_report_sink *s)
{
	const struct urn_ctl_srq *q = obj;
	const struct urn_rq *rq = &q->srq.rq;
	uint32_t prod = atomic_load_explicit(&rq->hdr->prod, memory_order_relaxed);

	s->begin(s, "srq", false);
	report_owner(s, c);
	s->u64(s, "srq", q->srq.handle);
	s->u64(s, "engine", q->srq.engine);
	s->u64(s, "pd", q->srq.pd);
	s->u64(s, "entries", rq->mask + 1ull);
	s->u64(s, "posted", report_fill(prod, LOOK(rq->cons), rq->mask));
	s->u64(s, "limit", LOOK(q->srq.limit));
	s->u64(s, "users", q->srq.users);
	s->end(s);
}

static bool
client_srqs(struct report_walk *w, const struct urn_client *c)
{
	return walk_table(w, c, &c->srqs, table_srq);
}

int
urn_report_srqs(const struct urn_report_source *src, struct urn_report_query *q,
		struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_clients_walk(&w, err, client_srqs);
}

/* ---- regions and windows */

static const char *
access_text(uint32_t access, char buf[64])
{
	static const struct {
		uint32_t bit;
		const char *name;
	} bits[] = {
		{URN_ACCESS_LOCAL_WRITE, "local-write"},
		{URN_ACCESS_REMOTE_WRITE, "write"},
		{URN_ACCESS_REMOTE_READ, "read"},
		{URN_ACCESS_REMOTE_ATOMIC, "atomic"},
		{URN_ACCESS_MW_BIND, "bind"},
		{URN_ACCESS_ZERO_BASED, "zero-based"},
	};
	int n = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (access & bits[i].bit)
			n += snprintf(buf + n, (size_t)(64 - n), n ? ",%s" : "%s", bits[i].name);
	return buf;
}

static const char *
kind_text(uint32_t kind)
{
	static const char *const names[] = {
		[URN_REGION_FREE] = "free",   [URN_REGION_MR] = "region",
		[URN_REGION_DYING] = "dying", [URN_REGION_MW1] = "window1",
		[URN_REGION_MW2] = "window2",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

static void
one_mr(const struct urn_client *c, const struct urn_region *r, const struct urn_region_view *v,
       struct urn_report_sink *s)
{
	bool region = v->kind == URN_REGION_MR;
	char text[64];

	s->begin(s, "mr", false);
	report_owner(s, c);
	snprintf(text, sizeof(text), "0x%08x", v->key);
	s->str(s, "key", text);
	s->str(s, "kind", kind_text(v->kind));
	s->u64(s, "pd", v->pd);
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v->start);
	s->str(s, "address", text);
	s->u64(s, "bytes", v->length);
	s->str(s, "access", access_text(v->access, text));
	s->flag(s, "foreign", region && LOOK(r->foreign));
	s->flag(s, "bound", region || v->mr != NULL);
	s->end(s);
}

/* Report regions and windows in order of their keys, each with its owner. */
static bool
adapter_mrs(struct report_walk *w, struct urn_adapter *a)
{
	uint32_t *i = &w->q->at.inner;
	uint32_t end = a->mem->fresh < a->cfg.max_mr + 1 ? a->mem->fresh : a->cfg.max_mr + 1;

	for (; *i < end; ++*i) {
		const struct urn_client *c = a->key_owner[*i];
		const struct urn_region *r;
		struct urn_region_view v;

		if (report_full(w))
			return false;
		w->scan--;
		if (c == NULL || (w->q->client && c->id != w->q->client))
			continue;
		r = urn_region_at(a->mem, *i);
		/* An engine may be binding the window at this moment: the next report has it. */
		if (r == NULL || !urn_region_read(r, &v) || v.kind == URN_REGION_FREE)
			continue;
		one_mr(c, r, &v, w->s);
		w->rows--;
	}
	return true;
}

int
urn_report_mrs(const struct urn_report_source *src, struct urn_report_query *q,
	       struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_adapters_walk(&w, err, adapter_mrs);
}
