/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers of a datagram socket, and look-ups of their queue pairs. */
#include "dropin/rdmacm/rsocket/dgram.h"

#include <stdlib.h>
#include <string.h>

bool
urn_rs_same_addr(const struct sockaddr *a, const struct sockaddr *b)
{
	union ibv_gid ga, gb;

	return urn_cma_addr_to_gid(a, &ga) && urn_cma_addr_to_gid(b, &gb) &&
	       memcmp(&ga, &gb, sizeof(ga)) == 0 && urn_cma_addr_port(a) == urn_cma_addr_port(b);
}

/* A look-up is over: its id goes with the caller. */
static void
looked(struct urn_rs_dgram *d, struct urn_rs_peer *p)
{
	d->looking -= p->waits;
	p->waits = false;
	p->look = NULL;
}

static void
peer_free(struct urn_rs_dgram *d, struct urn_rs_peer *p)
{
	if (p->look != NULL) {
		rdma_destroy_id(p->look);
		looked(d, p);
	}
	if (p->ah != NULL)
		(void)ibv_destroy_ah(p->ah);
	LIST_REMOVE(p, next);
	d->peer_count--;
	if (d->last == p)
		d->last = NULL;
	free(p);
}

/* Forget the peer that was found least recently. */
static void
forget_one(struct urn_rs_dgram *d)
{
	struct urn_rs_peer *p, *last = NULL;

	LIST_FOREACH(p, &d->peers, next)
		last = p;
	if (last != NULL)
		peer_free(d, last);
}

struct urn_rs_peer *
urn_rs_peer_find(struct urn_rs *rs, const struct sockaddr *addr)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct urn_rs_peer *p = d->last;

	if (p != NULL && urn_rs_same_addr((struct sockaddr *)&p->addr, addr))
		return p;
	LIST_FOREACH(p, &d->peers, next)
		if (urn_rs_same_addr((struct sockaddr *)&p->addr, addr))
			break;
	if (p == NULL) {
		if (d->peer_count >= URN_RS_DGRAM_PEERS)
			forget_one(d);
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return NULL;
		memcpy(&p->addr, addr, urn_cma_addr_len(addr));
		d->peer_count++;
	} else {
		LIST_REMOVE(p, next);
	}
	LIST_INSERT_HEAD(&d->peers, p, next);
	d->last = p;
	return p;
}

/* Fetch the events of a call that has them at once. */
static void
skip_event(struct urn_rs *rs, const struct rdma_cm_id *id)
{
	struct rdma_cm_event *e;

	while (rdma_get_cm_event(rs->channel, &e) == 0) {
		if (e->id == id) {
			rdma_ack_cm_event(e);
			return;
		}
		/* Other events stand before it. */
		urn_rs_dgram_event(rs, e);
		urn_rs_wake(rs);
	}
}

int
urn_rs_peer_look(struct urn_rs *rs, struct urn_rs_peer *p)
{
	struct rdma_conn_param none = {0};
	struct urn_rs_dgram *d = rs->dgram;
	struct sockaddr_storage own = d->listener->route.addr.src_storage;
	struct rdma_cm_id *id;
	int err = 0;

	if (rdma_create_id(rs->channel, &id, p, RDMA_PS_UDP) != 0)
		return errno;
	urn_cma_addr_set_port((struct sockaddr *)&own, 0);
	if (rdma_resolve_addr(
		    id, urn_cma_addr_any((struct sockaddr *)&own) ? NULL : (struct sockaddr *)&own,
		    (struct sockaddr *)&p->addr, 2000) != 0)
		err = errno == EADDRNOTAVAIL ? ENETUNREACH : errno;
	else
		skip_event(rs, id);
	if (err == 0 && urn_cma_of(id)->dev != d->dev)
		err = ENETUNREACH;
	if (err == 0 && rdma_resolve_route(id, 2000) != 0)
		err = errno;
	else if (err == 0)
		skip_event(rs, id);
	if (err == 0 && rdma_connect(id, &none) != 0)
		err = errno;
	if (err != 0) {
		rdma_destroy_id(id);
		return err;
	}
	(void)urn_rs_dgram_hdr_write(&id->route.addr.src_addr,
				     urn_cma_addr_port(&d->listener->route.addr.src_addr), &p->hdr);
	p->look = id;
	p->err = 0;
	p->waits = p->ah == NULL;
	d->looking += p->waits;
	return 0;
}

/* Answer a peer's look-up. */
static void
answer(struct urn_rs *rs, struct rdma_cm_id *id)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct rdma_conn_param p = {.qp_num = d->qp != NULL ? d->qp->qp_num : 0};

	if (d->qp != NULL && urn_cma_of(id)->dev == d->dev)
		(void)rdma_accept(id, &p);
	else
		(void)rdma_reject(id, NULL, 0);
}

/* A look-up ended. */
static void
found(struct urn_rs *rs, struct urn_rs_peer *p, const struct rdma_cm_event *e)
{
	struct ibv_ah_attr attr = e->param.ud.ah_attr;
	struct ibv_ah *ah;

	if (e->event != RDMA_CM_EVENT_ESTABLISHED) {
		/* A negative status is an errno value: no answer came. */
		p->err = e->status < 0 ? EHOSTUNREACH : ECONNREFUSED;
		if (p->ah != NULL)
			(void)ibv_destroy_ah(p->ah);
		p->ah = NULL;
		return;
	}
	ah = ibv_create_ah(rs->dgram->qp->pd, &attr);
	if (ah == NULL) {
		p->err = errno;
		return;
	}
	if (p->ah != NULL)
		(void)ibv_destroy_ah(p->ah);
	p->ah = ah;
	p->qpn = e->param.ud.qp_num;
	p->qkey = e->param.ud.qkey;
	p->learned = urn_rs_now_ms();
}

void
urn_rs_dgram_event(struct urn_rs *rs, struct rdma_cm_event *e)
{
	struct rdma_cm_id *done = e->id != rs->dgram->listener ? e->id : NULL;
	struct urn_rs_peer *p = NULL;

	if (e->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		/* Each id has such an event: a look-up's id goes with its peer. */
		rs->state = URN_RS_FAILED;
		rs->why = rs->error = ENETDOWN;
		done = NULL;
	} else if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		answer(rs, e->id);
	} else {
		LIST_FOREACH(p, &rs->dgram->peers, next)
			if (p->look == e->id)
				break;
		if (p != NULL)
			found(rs, p, e);
	}
	rdma_ack_cm_event(e);
	if (p != NULL)
		looked(rs->dgram, p);
	if (done != NULL)
		rdma_destroy_id(done);
}

void
urn_rs_peers_free(struct urn_rs *rs)
{
	struct urn_rs_peer *p, *after;

	for (p = LIST_FIRST(&rs->dgram->peers); p != NULL; p = after) {
		after = LIST_NEXT(p, next);
		peer_free(rs->dgram, p);
	}
}
