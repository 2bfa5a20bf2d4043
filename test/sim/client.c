/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a whole node: its control calls, and its own count of its objects. */
#include "host.h"

#include "control/client.h"
#include "control/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

/* ---- control calls */

static void
keep(struct sim_client *c, struct sim_share *book, uint32_t key, uint64_t bytes)
{
	for (unsigned int i = 0; i < SIM_REGIONS; i++)
		if (!book[i].key) {
			book[i].key = key;
			book[i].bytes = bytes;
			return;
		}
	sim_fail(c->node->s, "node %u: a client has too many regions for its book", c->node->id);
}

static uint64_t
drop(struct sim_client *c, struct sim_share *book, uint32_t key)
{
	for (unsigned int i = 0; i < SIM_REGIONS; i++)
		if (book[i].key == key) {
			book[i].key = 0;
			return book[i].bytes;
		}
	sim_fail(c->node->s, "node %u: region 0x%x was taken back, and the client never had it",
		 c->node->id, key);
	return 0;
}

/* Objects that a control call makes (1) or destroys (-1), by kind. */
static const struct {
	uint32_t op; /* enum urn_ctl_op */
	int8_t n;
	uint8_t quota;
} made[] = {
	{URN_CTL_CREATE_QP, 1, URN_QUOTA_QP},           {URN_CTL_DESTROY_QP, -1, URN_QUOTA_QP},
	{URN_CTL_CREATE_CQ, 1, URN_QUOTA_CQ},           {URN_CTL_DESTROY_CQ, -1, URN_QUOTA_CQ},
	{URN_CTL_CREATE_SRQ, 1, URN_QUOTA_SRQ},         {URN_CTL_DESTROY_SRQ, -1, URN_QUOTA_SRQ},
	{URN_CTL_ALLOC_PD, 1, URN_QUOTA_PD},            {URN_CTL_DEALLOC_PD, -1, URN_QUOTA_PD},
	{URN_CTL_CREATE_AH, 1, URN_QUOTA_AH},           {URN_CTL_DESTROY_AH, -1, URN_QUOTA_AH},
	{URN_CTL_ALLOC_MW, 1, URN_QUOTA_MR},            {URN_CTL_DEALLOC_MW, -1, URN_QUOTA_MR},
	{URN_CTL_REG_MR, 1, URN_QUOTA_MR},              {URN_CTL_DEREG_MR, -1, URN_QUOTA_MR},
	{URN_CTL_SHARE, 1, URN_QUOTA_SHARE},            {URN_CTL_UNSHARE, -1, URN_QUOTA_SHARE},
	{URN_CTL_CREATE_CHANNEL, 1, URN_QUOTA_CHANNEL}, {URN_CTL_DESTROY_CHANNEL, -1, URN_QUOTA_CHANNEL},
	{URN_CTL_CREATE_CHANNEL, 1, URN_QUOTA_FD},      {URN_CTL_DESTROY_CHANNEL, -1, URN_QUOTA_FD},
};

/* Count the objects that a control call made or destroyed, and the bytes of its memory. */
static void
count(struct sim_client *c, const struct urn_abi_req *req, const struct urn_abi_rep *rep)
{
	for (size_t i = 0; i < RTE_DIM(made); i++)
		if (made[i].op == req->op)
			c->has[made[i].quota] +=
				(uint64_t)(int64_t)made[i].n *
				(made[i].quota == URN_QUOTA_FD ? URN_TELLER_WAY_FDS : 1);
	switch (req->op) {
	case URN_CTL_REG_MR:
		c->has[URN_QUOTA_PINNED] += req->reg_mr.length;
		keep(c, c->region, rep->mr.lkey, req->reg_mr.length);
		break;
	case URN_CTL_DEREG_MR:
		c->has[URN_QUOTA_PINNED] -= drop(c, c->region, req->handle);
		break;
	case URN_CTL_SHARE:
		c->has[URN_QUOTA_SHARED] += req->share.length;
		keep(c, c->share, rep->handle + 1, req->share.length);
		break;
	case URN_CTL_UNSHARE:
		c->has[URN_QUOTA_SHARED] -= drop(c, c->share, req->handle + 1);
		break;
	}
}

void
sim_client_check_quota(const struct sim_client *c)
{
	const struct urn_account *u = c->c->quota.account;

	for (unsigned int q = 0; u && q < URN_QUOTAS; q++)
		if (u->used[q] > u->limits.max[q])
			sim_fail(c->node->s, "node %u: quota %u: a user has %llu, and may have %llu",
				 c->node->id, q, (unsigned long long)u->used[q],
				 (unsigned long long)u->limits.max[q]);
	/* Queues have no more of the area than was ever given out. */
	if (c->c->quota.used[URN_QUOTA_QUEUE] > c->c->area.next)
		sim_fail(c->node->s,
			 "node %u: queues of a client are said to have %llu bytes of %llu",
			 c->node->id, (unsigned long long)c->c->quota.used[URN_QUOTA_QUEUE],
			 (unsigned long long)c->c->area.next);
	for (unsigned int q = 0; q < URN_QUOTA_QUEUE; q++)
		if (c->c->quota.used[q] != c->has[q] || c->has[q] > c->c->quota.limits.max[q])
			sim_fail(c->node->s, "node %u: quota %u: a client has %llu, is said to have %llu and may have %llu",
				 c->node->id, q, (unsigned long long)c->has[q],
				 (unsigned long long)c->c->quota.used[q],
				 (unsigned long long)c->c->quota.limits.max[q]);
}

int
sim_client_call(struct sim_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep, int *fd)
{
	const int narrow = 1;

	urn_ctl_call(c->c, req, rep);
	if (fd)
		*fd = c->c->reply_fd;
	else if (c->c->reply_fd >= 0)
		close(c->c->reply_fd); /* the program has closed it */
	/* A client gets the writing end, too, and may make its buffer as small as it likes. */
	if (c->narrows && c->c->reply_fd >= 0 && rep->err == 0)
		(void)setsockopt(c->c->reply_write_fd, SOL_SOCKET, SO_SNDBUF, &narrow, sizeof(narrow));
	c->c->reply_fd = -1;
	if (rep->err == 0)
		count(c, req, rep);
	else if (!rep->why[0])
		sim_fail(c->node->s, "node %u: control request %u fails with %d, and not a word", c->node->id,
			 req->op, rep->err);
	sim_client_check_quota(c);
	return rep->err;
}

bool
sim_client_must(struct sim_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
		const char *what)
{
	if (sim_client_call(c, req, rep, NULL) == 0)
		return true;
	sim_fail(c->node->s, "node %u: %s: %s", c->node->id, what, rep->why);
	return false;
}

/* ---- coming */

bool
sim_client_open(struct sim_client *c, struct sim_node *n, struct urn_account *account,
		const struct urn_limits *limits, int share_fd, uint32_t bytes)
{
	struct urn_abi_req req = {.op = URN_CTL_SHARE};
	struct urn_abi_rep rep;
	const struct urn_client_who who = {
		.conn_fd = -1, .account = account, .limits = limits, .direct = true};
	struct urn_err err = {""};

	memset(c, 0, sizeof(*c));
	c->node = n;
	c->event_fd = -1;
	c->c = urn_client_create(n->host->a, &who, &err);
	if (c->c && urn_client_start(c->c, &err) != 0) {
		urn_client_destroy(c->c);
		c->c = NULL;
	}
	if (!c->c) {
		sim_fail(n->s, "node %u: no client: %s", n->id, err.text);
		return false;
	}
	c->has[URN_QUOTA_AREA] = c->c->area.size;
	account->clients++;
	c->bells = (void *)(c->c->area.base + c->c->db_off[0]);
	req.share.fd = fcntl(share_fd, F_DUPFD_CLOEXEC, 0);
	req.share.addr = SIM_SHARE_VA;
	req.share.length = bytes;
	return sim_client_must(c, &req, &rep, "sharing memory");
}

static uint32_t
open_cq(struct sim_client *c, struct sim_cq *cq, uint32_t cqes)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CQ,
				  .create_cq = {.cqe = cqes, .channel_fd = -1}};
	struct urn_abi_rep rep;

	memset(cq, 0, sizeof(*cq));
	if (!sim_client_must(c, &req, &rep, "a completion queue"))
		return 0;
	cq->cq.hdr = (void *)(c->c->area.base + rep.queue.off);
	cq->cq.mask = rep.queue.entries - 1;
	return rep.handle;
}

void
sim_client_settle(struct sim_client *c, uint32_t cqes)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct urn_abi_rep rep;

	if (sim_client_must(c, &req, &rep, "a protection domain"))
		c->pd = rep.handle;
	req.op = URN_CTL_ASYNC_FD;
	req.async_fd.fd = -1;
	if (sim_client_call(c, &req, &rep, &c->event_fd) != 0)
		sim_fail(c->node->s, "node %u: events: %s", c->node->id, rep.why);
	c->scq_handle = open_cq(c, &c->scq, cqes);
	c->rcq_handle = open_cq(c, &c->rcq, cqes);
	c->key_all = sim_node_region(c->node, c, 0, c->node->ram_size,
				     URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE |
					     URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC |
					     URN_ACCESS_MW_BIND,
				     &c->m_all);
}

uint32_t
sim_client_region(struct sim_client *c, uint32_t off, uint32_t len, uint32_t access)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_abi_rep rep;

	req.reg_mr.pd = c->pd;
	req.reg_mr.access = access;
	req.reg_mr.addr = SIM_SHARE_VA + off;
	req.reg_mr.length = len;
	req.reg_mr.iova = SIM_VA + off;
	return sim_client_must(c, &req, &rep, "a region") ? rep.mr.lkey : 0;
}

int
sim_client_window(struct sim_client *c, int type, uint32_t *rkey)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_MW,
				  .alloc_mw = {.pd = c->pd, .type = (uint32_t)type}};
	struct urn_abi_rep rep;

	if (!sim_client_must(c, &req, &rep, "a window"))
		return -1;
	*rkey = rep.mr.rkey;
	return 0;
}

uint8_t
sim_client_gid_index(const struct sim_client *c)
{
	return c->node->s->plan.ipv6 ? 0 : 1;
}

/* ---- queue pairs */

void
sim_client_qp(struct sim_end *e)
{
	struct sim_node *n = e->node;
	struct sim_client *c = e->client;
	const struct sim_plan *p = &n->s->plan;
	struct urn_abi_req req = {.op = URN_CTL_CREATE_QP};
	struct urn_abi_rep rep;

	req.create_qp.pd = c->pd;
	req.create_qp.type = URN_QPT_RC;
	req.create_qp.send_cq = c->scq_handle;
	req.create_qp.recv_cq = sim_one_in(&e->rng, 3) ? c->scq_handle : c->rcq_handle;
	req.create_qp.cap = (struct urn_abi_qp_cap){p->slots, p->bufs, SIM_SGES, SIM_SGES, SIM_INLINE};
	sim_rq_open(n, &e->rq, p->bufs, p->max_len, false);
	if (!sim_client_must(c, &req, &rep, "a queue pair"))
		return;
	e->qp = urn_tp_qp(n->tp, rep.handle);
	e->sq = (void *)(c->c->area.base + rep.qp.sq_off);
	e->sq_mask = rep.qp.sq_entries - 1;
	e->sq_stride = rep.qp.sq_stride;
	e->rq.hdr = (void *)(c->c->area.base + rep.qp.rq_off);
	e->rq.mask = rep.qp.rq_entries - 1;
	e->rq.stride = rep.qp.rq_stride;
	e->rq.db = rep.qp.db;
	e->rq.bells = e->bells;
	e->rq.key = e->key_all;
	e->rq.m_key = e->m_all;
	n->by_qpn[rep.handle % URN_TP_QP_CHUNK] = e;
}

static void
take_back(struct sim_client *c, uint32_t op, uint32_t handle, const char *what)
{
	struct urn_abi_req req = {.op = op, .handle = handle};
	struct urn_abi_rep rep;

	if (handle && c->c)
		sim_client_must(c, &req, &rep, what);
}

void
sim_client_close_end(struct sim_end *e)
{
	struct sim_node *n = e->node;
	uint32_t qpn = e->qp ? e->qp->qpn : 0;

	if (e->qp && n->by_qpn[qpn % URN_TP_QP_CHUNK] == e)
		n->by_qpn[qpn % URN_TP_QP_CHUNK] = NULL;
	take_back(e->client, URN_CTL_DESTROY_QP, qpn, "destroying a queue pair");
	take_back(e->client, URN_CTL_DEALLOC_MW, e->mw_rkey, "taking a window back");
	if (!e->key_dead)
		take_back(e->client, URN_CTL_DEREG_MR, e->key, "taking a region back");
	if (!e->local_dead)
		take_back(e->client, URN_CTL_DEREG_MR, e->local_key, "taking a region back");
	e->key_dead = e->local_dead = true;
	e->mw_rkey = 0;
	e->qp = NULL;
	e->sq = NULL;
	e->rq.hdr = NULL;
}

/* ---- events */

void
sim_client_check_events(struct sim_client *c)
{
	struct urn_abi_event ev;
	ssize_t got;

	while (c->event_fd >= 0 &&
	       (got = recv(c->event_fd, &ev, sizeof(ev), MSG_DONTWAIT)) == (ssize_t)sizeof(ev)) {
		sim_note(c->node->s, (int)c->node->id, "event", ev.type, ev.handle, 0);
		if (ev.type == URN_EVENT_CQ_ERR || ev.type == URN_EVENT_QP_FATAL ||
		    ev.type == URN_EVENT_SRQ_ERR || ev.type == URN_EVENT_PORT_ERR)
			sim_fail(c->node->s, "node %u: a program that does nothing wrong is told event %u of 0x%x",
				 c->node->id, ev.type, ev.handle);
	}
}
