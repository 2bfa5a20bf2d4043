/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: finds the id that a message is for, and makes ids for new requests. */
#include "cm/cm_internal.h"

/* Refuse a message that has no id here. */
static void
refuse(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16], const uint8_t peer[16],
       uint16_t reason)
{
	struct urn_cm_msg r = {
		.attr = URN_CM_REJ,
		.tid = m->tid,
		.local_id = m->remote_id,
		.remote_id = m->local_id,
		.about = m->attr == URN_CM_REP ? URN_CM_ABOUT_REP : URN_CM_ABOUT_REQ,
		.reason = reason,
	};

	cm_send(cm, own, peer, &r);
}

static void
refuse_sidr(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	    const uint8_t peer[16], uint8_t status)
{
	struct urn_cm_msg r = {
		.attr = URN_CM_SIDR_REP,
		.tid = m->tid,
		.local_id = m->local_id,
		.service_id = m->service_id,
		.status = status,
	};

	cm_send(cm, own, peer, &r);
}

/* Refuse a request that has no id here: for a connection, or a look-up. */
static void
decline(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16], const uint8_t peer[16],
	uint16_t reason, uint8_t status)
{
	if (m->attr == URN_CM_SIDR_REQ)
		refuse_sidr(cm, m, own, peer, status);
	else
		refuse(cm, m, own, peer, reason);
}

/*
 * Repeats of our reply: the peer says how many, but all of them take no longer than a program may.
 * A request with an address that nobody has would hold an id for minutes otherwise.
 */
static uint8_t
repeats(const struct urn_cm_msg *m)
{
	uint64_t most = urn_cm_ns(URN_CM_SERVICE_MAX) / cm_patience(m->local_timeout) - 1;

	return (uint8_t)RTE_MIN(m->max_retries, most);
}

/* Make an id for a request of a peer. */
static int
take_request(struct urn_cm *cm, struct cm_conn *l, const struct urn_cm_msg *m, const uint8_t own[16],
	     const uint8_t peer[16])
{
	struct cm_conn *e;
	int rc = cm_alloc(cm, l->owner, l->channel, &e);

	if (rc != 0)
		return rc;
	e->sidr = m->attr == URN_CM_SIDR_REQ;
	e->listener = l->id;
	e->service_id = m->service_id;
	e->cookie = l->cookie;
	e->shared = l->shared;
	e->tid = m->tid;
	e->knows_peer = true;
	e->remote_id = m->local_id;
	e->remote_qpn = m->qpn;
	/* The peer says itself how long it may take to answer our reply. */
	e->timeout = m->local_timeout;
	e->max_tries = repeats(m);
	e->ack_timeout = m->path[0].ack_timeout;
	memcpy(e->own, own, 16);
	memcpy(e->peer, peer, 16);
	e->state = e->sidr ? URN_CM_SIDR_REQ_RCVD : URN_CM_REQ_RCVD;
	if (!cm_tell(cm, e, e->sidr ? URN_CM_EVENT_SIDR_REQUEST : URN_CM_EVENT_REQUEST, m, 0)) {
		cm_free(cm, e);
		return ENOMEM;
	}
	e->waits = true;
	cm_begins(cm, e);
	l->pending++;
	l->given = ++cm->given;
	cm_hash(cm, e, CM_BY_PEER);
	if (!e->sidr)
		cm_hash(cm, e, CM_BY_QPN);
	return 0;
}

/* Give a request to the listener of its service, if there is one and it has room. */
static enum urn_counter
new_request(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	    const uint8_t peer[16])
{
	struct cm_conn *l = cm_pick(cm, m->service_id);
	int rc;

	if (!l || l->owner->going) {
		decline(cm, m, own, peer, URN_CM_REJ_INVALID_SERVICE_ID, URN_CM_SIDR_UNSUPPORTED);
		return URN_C_CM_NO_SERVICE;
	}
	if (l->pending >= l->backlog)
		return URN_C_DROP_CM_BACKLOG;
	if (!cm_may_begin(cm, l->owner, peer)) {
		decline(cm, m, own, peer, URN_CM_REJ_NO_RESOURCES, URN_CM_SIDR_REJECT);
		return URN_C_CM_CROWD;
	}
	rc = take_request(cm, l, m, own, peer);
	if (rc == ENOMEM)
		return URN_C_DROP_CM_EVENT;
	if (rc != 0) {
		decline(cm, m, own, peer, URN_CM_REJ_NO_RESOURCES, URN_CM_SIDR_REJECT);
		return URN_C_CM_NO_ROOM;
	}
	return URN_C_CM_RX;
}

/* Check a request by its own fields. returns: the reason to refuse it, or 0 */
static uint16_t
objection(const struct urn_cm *cm, const struct urn_cm_msg *m)
{
	if (m->service != URN_CM_RC || m->extended)
		return URN_CM_REJ_INVALID_TRANSPORT;
	if (m->mtu < 1 || m->mtu > cm->cfg.max_mtu)
		return URN_CM_REJ_INVALID_MTU;
	return 0;
}

/* Give a request to a listener, or refuse it. */
static enum urn_counter
listener_takes(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	       const uint8_t peer[16])
{
	/* A repeat may overtake the request that waited. */
	(void)cm_held_withdrawn(cm, peer, m->local_id);
	return new_request(cm, m, own, peer);
}

enum urn_counter
cm_request(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	   const uint8_t peer[16], uint64_t now, bool may_wait)
{
	enum urn_counter c = URN_C_CM_NO_SERVICE;
	uint16_t bad = objection(cm, m);
	struct cm_conn *old;

	if (bad) {
		refuse(cm, m, own, peer, bad);
		return URN_C_CM_UNSUPPORTED;
	}
	old = cm_by_qpn(cm, peer, m->qpn);
	if (!old) {
		if (may_wait && !cm_by_service(cm, m->service_id))
			c = cm_hold(cm, m, own, peer, now);
		return c == URN_C_CM_NO_SERVICE ? listener_takes(cm, m, own, peer) : c;
	}
	refuse(cm, m, own, peer, URN_CM_REJ_STALE_CONN);
	cm_stale(cm, old, now);
	return URN_C_CM_STALE;
}

/* The id of ours that the message names, if its connection is with this peer. */
static struct cm_conn *
named(const struct urn_cm *cm, uint32_t id, const struct urn_cm_msg *m, const uint8_t peer[16])
{
	struct cm_conn *e = cm_by_id(cm, id);

	if (!e || e->state == URN_CM_LISTEN || memcmp(e->peer, peer, 16) != 0)
		return NULL;
	if (e->sidr != (m->attr == URN_CM_SIDR_REP))
		return NULL;
	return e->knows_peer && e->remote_id != m->local_id ? NULL : e;
}

/* The id that a message is for; NULL: none of ours. */
static struct cm_conn *
find(const struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t peer[16])
{
	struct cm_conn *e;

	switch (m->attr) {
	case URN_CM_REQ:
	case URN_CM_SIDR_REQ:
		return cm_by_peer(cm, peer, m->local_id, m->attr == URN_CM_SIDR_REQ);
	case URN_CM_SIDR_REP:
		return named(cm, m->local_id, m, peer);
	case URN_CM_REJ:
		e = named(cm, m->remote_id, m, peer);
		/* A peer that gave up before it knew our id names only its own. */
		return e || m->reason != URN_CM_REJ_TIMEOUT
			       ? e
			       : cm_by_peer(cm, peer, m->local_id, false);
	default:
		return named(cm, m->remote_id, m, peer);
	}
}

/* Answer a message to an id that is not, or no longer, here. */
static enum urn_counter
nobodys(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16], const uint8_t peer[16])
{
	struct urn_cm_msg d = {
		.attr = URN_CM_DREP,
		.tid = m->tid,
		.local_id = m->remote_id,
		.remote_id = m->local_id,
	};

	if (m->attr == URN_CM_DREQ)
		cm_send(cm, own, peer, &d);
	else if (m->attr == URN_CM_REP)
		refuse(cm, m, own, peer, URN_CM_REJ_INVALID_COMM_ID);
	return URN_C_CM_UNKNOWN;
}

enum urn_counter
urn_cm_input(struct urn_cm *cm, const uint8_t peer[16], const uint8_t own[16], uint32_t sqpn,
	     const uint8_t *mad, uint64_t now)
{
	struct urn_cm_msg m;
	enum urn_counter c = urn_cm_read(mad, sqpn, &m);
	struct cm_conn *e;

	if (c != URN_C_CM_RX)
		return c;
	e = find(cm, &m, peer);
	if (e && e->state != URN_CM_IDLE)
		return cm_message(cm, e, &m, now);
	if (m.attr == URN_CM_REQ)
		return cm_request(cm, &m, own, peer, now, true);
	if (m.attr == URN_CM_SIDR_REQ)
		return new_request(cm, &m, own, peer);
	if (m.attr == URN_CM_REJ && cm_held_withdrawn(cm, peer, m.local_id))
		return URN_C_CM_RX;
	return nobodys(cm, &m, own, peer);
}
