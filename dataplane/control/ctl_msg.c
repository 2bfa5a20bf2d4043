/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests on register sets of messages (doorbell.md DB-1). A set is made and ended in the
 * thread of its engine; control keeps no state of a set but reads it off the set, as with queue
 * pairs.
 */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "engine/sources.h"
#include "msg/msg.h"

enum { BIND_STEP = 256 }; /* names looked at in one call of the engine */

/* A register set, as a call on it sees it. */
struct set_view {
	struct urn_shard *shard;     /* shard of its engine */
	struct urn_client_shard *cs; /* the client's there */
	struct urn_msg_set *set;
};

/* Bytes of a set's piece of the client's area: registers, then the arena. */
static uint64_t
bytes_of(uint64_t arena)
{
	return sizeof(struct urn_abi_msg_set) + arena;
}

/* ---- open */

struct opening {
	struct urn_client_shard *cs;
	struct urn_msg_config cfg;
	struct urn_msg_view v; /* the set; valid on success */
	int rc;
};

/* In the engine's thread. */
static void
open_set(void *arg)
{
	struct opening *o = arg;
	struct urn_msg_regs *r = o->cs->shard->msg;
	struct urn_msg_set *set;

	o->rc = urn_sources_take(o->cs, &o->cfg.db);
	if (o->rc != 0)
		return;
	o->rc = urn_msg_open(r, &o->cfg, &set);
	if (o->rc != 0) {
		urn_sources_drop(o->cs, o->cfg.db);
		return;
	}
	urn_sources_enter(o->cs, urn_msg_source(set));
	urn_msg_look(r, set, &o->v);
}

static int
check_open(const struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
	   int *fd)
{
	if (req->msg_open.flags & ~(uint32_t)URN_MSG_OPEN_NAMED)
		return urn_ctl_fail(rep, EINVAL, "%s: flags 0x%x of a register set are unknown",
				    c->adapter->cfg.name, req->msg_open.flags);
	if (req->msg_open.arena > URN_MSG_ARENA_MAX)
		return urn_ctl_fail(rep, EINVAL, "%s: an arena has at most %u bytes, not %llu",
				    c->adapter->cfg.name, URN_MSG_ARENA_MAX,
				    (unsigned long long)req->msg_open.arena);
	return urn_ctl_channel_find(c, req->msg_open.channel_fd, rep, fd);
}

int
urn_ctl_msg_open(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	uint32_t vector = req->msg_open.flags & URN_MSG_OPEN_NAMED
				  ? 0
				  : req->msg_open.comp_vector % a->vectors;
	struct opening o = {.cs = urn_client_shard(c, vector),
			    .cfg = {.cookie = req->msg_open.cookie}};
	uint64_t bytes = bytes_of(req->msg_open.arena), off;
	int rc = check_open(c, req, rep, &o.cfg.channel_fd);

	if (rc != 0)
		return rc;
	rc = urn_client_alloc(c, bytes, &off);
	if (rc != 0)
		return urn_ctl_fail(rep, rc,
				    "%s: no room for a register set with an arena of %llu bytes "
				    "(area of %llu MiB)",
				    a->cfg.name, (unsigned long long)req->msg_open.arena,
				    (unsigned long long)(c->area.size >> 20));
	o.cfg.share = &o.cs->share;
	o.cfg.regs = (void *)(c->area.base + off);
	o.cfg.arena = (uint32_t)req->msg_open.arena;
	o.cfg.channel = urn_ctl_channel_use(c, req->msg_open.channel_fd);
	urn_engine_call(urn_adapter_shard(a, vector)->engine, open_set, &o);
	if (o.rc != 0) {
		urn_ctl_channel_leave(c, o.cfg.channel);
		urn_area_free(&c->area, off, bytes);
		return urn_ctl_fail(rep, o.rc,
				    "%s: no more register sets (at most %u on an engine)",
				    a->cfg.name, URN_MSG_SLOTS);
	}
	c->msg_sets++;
	rep->handle = URN_MSG_HANDLE(a->engine_of[vector], o.v.slot);
	rep->msg.off = off;
	rep->msg.arena_off = off + sizeof(struct urn_abi_msg_set);
	rep->msg.arena = o.cfg.arena;
	rep->msg.qid = o.v.qid;
	rep->msg.db = o.cfg.db;
	rep->msg.engine = vector;
	return 0;
}

/* ---- bind */

/*
 * Find the client's set with a handle; no set goes away while the adapter's lock is held.
 * returns: true when the set is there
 */
static bool
find(const struct urn_client *c, uint32_t handle, struct urn_abi_rep *rep, struct set_view *v)
{
	uint32_t engine = URN_MSG_HANDLE_ENGINE(handle);
	const struct urn_tp_share *share;

	v->shard = engine < URN_ABI_MAX_ENGINES ? c->adapter->shard[engine] : NULL;
	v->set = v->shard ? urn_msg_set_at(v->shard->msg, URN_MSG_HANDLE_SLOT(handle)) : NULL;
	share = v->set ? urn_msg_source(v->set)->share : NULL;
	if (!share || urn_client_of(urn_share_client(share)) != c) {
		urn_ctl_fail(rep, EINVAL, "%s: no register set %u", c->adapter->cfg.name, handle);
		return false;
	}
	v->cs = urn_client_shard_of(share);
	return true;
}

struct binding {
	struct urn_msg_regs *regs;
	struct urn_msg_set *set;
	uint32_t name; /* the name to try next; 0: unbind */
	uint32_t left; /* further names that may be tried, upward from there */
	int rc;	       /* EAGAIN: some names were tried and are taken, others are left */
};

/* Try some names, in the engine's thread. */
static void
bind_set(void *arg)
{
	struct binding *b = arg;

	b->rc = 0;
	if (!b->name) {
		urn_msg_unbind(b->regs, b->set);
		return;
	}
	for (unsigned int i = 0; i < BIND_STEP; i++) {
		b->rc = urn_msg_bind(b->regs, b->set, b->name);
		if (b->rc != EADDRINUSE || !b->left)
			return;
		b->name++;
		b->left--;
	}
	b->rc = EAGAIN;
}

/* Check a range of names, and set the first of it. */
static int
check_bind(const struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
	   struct binding *b)
{
	bool any = req->msg_bind.flags & URN_MSG_BIND_ANY;

	if (req->msg_bind.flags & ~(uint32_t)URN_MSG_BIND_ANY)
		return urn_ctl_fail(rep, EINVAL, "%s: flags 0x%x of a name are unknown",
				    c->adapter->cfg.name, req->msg_bind.flags);
	if (any && (!req->msg_bind.name || req->msg_bind.end <= req->msg_bind.name))
		return urn_ctl_fail(rep, EINVAL, "%s: no name is from %u to before %u",
				    c->adapter->cfg.name, req->msg_bind.name, req->msg_bind.end);
	b->name = req->msg_bind.name;
	b->left = any ? req->msg_bind.end - 1 - req->msg_bind.name : 0;
	return 0;
}

int
urn_ctl_msg_bind(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct binding b = {0};
	struct set_view v;
	int rc;

	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	rc = check_bind(c, req, rep, &b);
	if (rc != 0)
		return rc;
	if (v.shard != urn_adapter_shard(a, 0))
		return urn_ctl_fail(
			rep, EINVAL,
			"%s: register set %u can't have a name: open it with URN_MSG_OPEN_NAMED",
			a->cfg.name, req->handle);
	b.regs = v.shard->msg;
	b.set = v.set;
	do
		urn_engine_call(v.shard->engine, bind_set, &b);
	while (b.rc == EAGAIN);
	if (b.rc == EADDRINUSE)
		return urn_ctl_fail(rep, EADDRINUSE, "%s: name 0x%x of a receive queue is taken",
				    a->cfg.name, req->msg_bind.name);
	if (b.rc != 0)
		return b.rc;
	rep->handle = req->handle;
	rep->msg.qid = b.name ? URN_MSG_NAME(b.name) : 0;
	return 0;
}

/* ---- close */

/* In the engine's thread: no flow, event or message knows the set after that. */
static void
close_set(void *arg)
{
	struct set_view *v = arg;
	struct urn_source *src = urn_msg_source(v->set);
	uint32_t db = src->db;

	(void)urn_msg_end(v->shard->tp, src);
	urn_sources_drop(v->cs, db);
}

int
urn_ctl_msg_close(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_msg_view is;
	struct set_view v;

	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	urn_msg_look(v.shard->msg, v.set, &is);
	urn_engine_call(v.shard->engine, close_set, &v);
	c->msg_sets--;
	urn_ctl_channel_leave(c, is.channel);
	urn_area_free(&c->area, (uint64_t)((uint8_t *)is.regs - c->area.base), bytes_of(is.arena));
	return 0;
}
