/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: what owners do, and which id a message is for. */
#include "control/cm_internal.h"

/* ---- what owners do */

void
urn_cm_owner_init(struct urn_cm_owner *o, uint32_t max_ids, void *ctx)
{
	TAILQ_INIT(&o->conns);
	o->ids = 0;
	o->max_ids = max_ids;
	o->user_ids = NULL;
	o->ctx = ctx;
}

bool
urn_cm_uses(const struct urn_cm_owner *o, int32_t channel)
{
	const struct cm_conn *e;

	TAILQ_FOREACH(e, &o->conns, link)
		if (e->channel == channel)
			return true;
	return false;
}

static struct cm_conn *
owned(const struct urn_cm *cm, const struct urn_cm_owner *o, uint32_t id)
{
	struct cm_conn *e = cm_by_id(cm, id);

	return e && e->owner == o ? e : NULL;
}

int
urn_cm_listen(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_listen *p,
	      uint32_t *id)
{
	struct cm_conn *e;
	int rc;

	if (cm_by_service(cm, p->service_id))
		return EADDRINUSE;
	rc = cm_alloc(cm, o, &e);
	if (rc != 0)
		return rc;
	e->state = URN_CM_LISTEN;
	e->service_id = p->service_id;
	e->cookie = p->cookie;
	e->channel = p->channel_fd;
	e->backlog = p->backlog ? p->backlog : URN_CM_BACKLOG;
	cm_hash(cm, e, CM_BY_PEER);
	*id = e->id;
	return 0;
}

static bool
connect_ok(const struct urn_cm *cm, const struct urn_abi_cm_connect *p)
{
	return p->qpn > URN_QPN_GSI && p->qpn <= URN_QPN_MASK && p->psn <= URN_QPN_MASK &&
	       p->retry_count <= 7 && p->rnr_retry <= 7 && p->flow_control <= 1 && p->srq <= 1 &&
	       p->mtu >= 1 && p->mtu <= cm->cfg.max_mtu && p->ack_timeout <= 31 && p->data_len <= URN_CM_REQ_DATA;
}

/* What asking for a connection and for a service have in common. */
static int
begin(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
      const uint8_t own[16], struct cm_conn **out)
{
	struct cm_conn *e;
	int rc;

	if (p->timeout > 31 || p->max_retries > 15 || p->flow_label > 0xfffff)
		return EINVAL;
	rc = cm_alloc(cm, o, &e);
	if (rc != 0)
		return rc;
	e->active = true;
	e->service_id = p->service_id;
	e->cookie = p->cookie;
	e->channel = p->channel_fd;
	e->timeout = p->timeout ? p->timeout : URN_CM_TIMEOUT;
	e->max_tries = p->max_retries;
	e->ack_timeout = p->ack_timeout;
	e->qpn = p->qpn;
	e->tid = cm_draw(cm);
	memcpy(e->own, own, 16);
	memcpy(e->peer, p->dgid, 16);
	*out = e;
	return 0;
}

static void
fill_req(const struct urn_cm *cm, const struct cm_conn *e, const struct urn_abi_cm_connect *p,
	 struct urn_cm_msg *m)
{
	struct urn_cm_path *path = &m->path[0];

	cm_head(e, m, URN_CM_REQ);
	m->service_id = p->service_id;
	m->ca_guid = cm->cfg.ca_guid;
	m->qpn = p->qpn;
	m->psn = p->psn;
	m->pkey = p->pkey ? p->pkey : 0xffff;
	m->responder_resources = p->responder_resources;
	m->initiator_depth = p->initiator_depth;
	m->flow_control = p->flow_control;
	m->srq = p->srq;
	m->retry_count = p->retry_count;
	m->rnr_retry = p->rnr_retry;
	m->mtu = p->mtu;
	m->max_retries = p->max_retries;
	m->remote_timeout = m->local_timeout = e->timeout;
	path->slid = path->dlid = 0xffff;
	memcpy(path->sgid, e->own, 16);
	memcpy(path->dgid, e->peer, 16);
	path->flow_label = p->flow_label;
	path->traffic_class = p->traffic_class;
	path->hop_limit = p->hop_limit ? p->hop_limit : 64;
	path->ack_timeout = p->ack_timeout;
	memcpy(m->data, p->data, p->data_len);
}

int
urn_cm_connect(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
	       const uint8_t own[16], uint64_t now, uint32_t *id)
{
	struct urn_cm_msg m;
	struct cm_conn *e;
	int rc = connect_ok(cm, p) ? begin(cm, o, p, own, &e) : EINVAL;

	if (rc != 0)
		return rc;
	fill_req(cm, e, p, &m);
	e->state = URN_CM_REQ_SENT;
	cm_ask(cm, e, &m, now);
	*id = e->id;
	return 0;
}

int
urn_cm_resolve(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
	       const uint8_t own[16], uint64_t now, uint32_t *id)
{
	struct urn_cm_msg m;
	struct cm_conn *e;
	int rc = p->data_len <= URN_CM_SIDR_REQ_DATA ? begin(cm, o, p, own, &e) : EINVAL;

	if (rc != 0)
		return rc;
	e->sidr = true;
	e->state = URN_CM_SIDR_REQ_SENT;
	cm_head(e, &m, URN_CM_SIDR_REQ);
	m.service_id = p->service_id;
	m.pkey = p->pkey ? p->pkey : 0xffff;
	memcpy(m.data, p->data, p->data_len);
	cm_ask(cm, e, &m, now);
	*id = e->id;
	return 0;
}

/* An answer that is repeated for a while, whenever the request comes again. */
static int
answer_sidr(struct urn_cm *cm, struct cm_conn *e, const struct urn_abi_cm_accept *p, uint64_t now)
{
	struct urn_cm_msg m;

	if (p->status >= URN_CM_SIDR_STATUSES || p->data_len > URN_CM_SIDR_REP_DATA ||
	    p->qpn > URN_QPN_MASK || (p->status == URN_CM_SIDR_VALID && p->qpn <= URN_QPN_GSI))
		return EINVAL;
	cm_head(e, &m, URN_CM_SIDR_REP);
	m.local_id = e->remote_id; /* the request's id, as the peer knows it */
	m.service_id = e->service_id;
	m.status = p->status;
	m.qpn = p->qpn;
	m.qkey = p->psn;
	memcpy(m.data, p->data, p->data_len);
	cm_say(cm, e, &m);
	cm_timewait(cm, e, now);
	return 0;
}

static bool
accept_ok(const struct urn_abi_cm_accept *p)
{
	return p->qpn > URN_QPN_GSI && p->qpn <= URN_QPN_MASK && p->psn <= URN_QPN_MASK &&
	       p->rnr_retry <= 7 && p->flow_control <= 1 && p->srq <= 1 && p->ack_delay <= 31 &&
	       p->data_len <= URN_CM_REP_DATA;
}

int
urn_cm_accept(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
	      const struct urn_abi_cm_accept *p, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);
	struct urn_cm_msg m;

	if (!e)
		return ENOENT;
	if (e->state == URN_CM_SIDR_REQ_RCVD)
		return answer_sidr(cm, e, p, now);
	if (e->state != URN_CM_REQ_RCVD && e->state != URN_CM_MRA_REQ_SENT)
		return ENOTCONN;
	if (!accept_ok(p))
		return EINVAL;
	cm_head(e, &m, URN_CM_REP);
	m.ca_guid = cm->cfg.ca_guid;
	m.qpn = e->qpn = p->qpn;
	m.psn = p->psn;
	m.responder_resources = p->responder_resources;
	m.initiator_depth = p->initiator_depth;
	m.ack_delay = p->ack_delay;
	m.failover = 1; /* not supported */
	m.flow_control = p->flow_control;
	m.rnr_retry = p->rnr_retry;
	m.srq = p->srq;
	memcpy(m.data, p->data, p->data_len);
	cm_no_longer_waits(cm, e);
	e->state = URN_CM_REP_SENT;
	cm_ask(cm, e, &m, now);
	return 0;
}

int
urn_cm_reject(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
	      const struct urn_abi_cm_reject *p, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);
	struct urn_cm_msg m;

	if (!e)
		return ENOENT;
	if (e->state < URN_CM_REQ_RCVD || e->state > URN_CM_MRA_REP_RCVD ||
	    e->state == URN_CM_MRA_REQ_RCVD)
		return ENOTCONN;
	if (p->info_len > URN_CM_INFO || p->data_len > URN_CM_REJ_DATA)
		return EINVAL;
	cm_head(e, &m, URN_CM_REJ);
	m.about = e->active ? URN_CM_ABOUT_REP : URN_CM_ABOUT_REQ;
	m.reason = p->reason;
	m.info_len = p->info_len;
	memcpy(m.info, p->info, p->info_len);
	memcpy(m.data, p->data, p->data_len);
	cm_say(cm, e, &m);
	cm_timewait(cm, e, now);
	return 0;
}

int
urn_cm_establish(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		 const struct urn_abi_cm_data *p, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);
	struct urn_cm_msg m;

	(void)now;
	if (!e)
		return ENOENT;
	if (p->data_len > URN_CM_RTU_DATA)
		return EINVAL;
	if (e->state == URN_CM_REP_SENT || e->state == URN_CM_MRA_REP_RCVD) {
		cm_timer_stop(cm, e);
	} else if (e->state == URN_CM_REP_RCVD || e->state == URN_CM_MRA_REP_SENT) {
		cm_head(e, &m, URN_CM_RTU);
		memcpy(m.data, p->data, p->data_len);
		cm_say(cm, e, &m);
	} else {
		return ENOTCONN;
	}
	e->state = URN_CM_ESTABLISHED;
	cm_hash(cm, e, CM_BY_OWN_QPN);
	return 0;
}

int
urn_cm_disconnect(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		  const struct urn_abi_cm_data *p, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);
	struct urn_cm_msg m;

	if (!e)
		return ENOENT;
	if (e->state == URN_CM_ESTABLISHED) {
		if (p->data_len > URN_CM_DREQ_DATA)
			return EINVAL;
		cm_say_dreq(cm, e, p->data, p->data_len, now);
		return 0;
	}
	if (e->state != URN_CM_DREQ_RCVD)
		return ENOTCONN;
	if (p->data_len > URN_CM_DREP_DATA)
		return EINVAL;
	cm_head(e, &m, URN_CM_DREP);
	memcpy(m.data, p->data, p->data_len);
	cm_say(cm, e, &m);
	cm_timewait(cm, e, now);
	return 0;
}

/* Tell the peer what the owner no longer will. */
static void
wind_up(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	static const struct urn_abi_cm_accept refused = {.status = URN_CM_SIDR_REJECT};

	switch (e->state) {
	case URN_CM_REQ_SENT:
	case URN_CM_MRA_REQ_RCVD:
		cm_say_rej(cm, e, URN_CM_REJ_TIMEOUT, URN_CM_ABOUT_REQ);
		cm_timewait(cm, e, now);
		break;
	case URN_CM_REQ_RCVD:
	case URN_CM_MRA_REQ_SENT:
	case URN_CM_REP_SENT:
	case URN_CM_MRA_REP_RCVD:
		cm_say_rej(cm, e, URN_CM_REJ_CONSUMER, URN_CM_ABOUT_REQ);
		cm_timewait(cm, e, now);
		break;
	case URN_CM_REP_RCVD:
	case URN_CM_MRA_REP_SENT:
		cm_say_rej(cm, e, URN_CM_REJ_CONSUMER, URN_CM_ABOUT_REP);
		cm_timewait(cm, e, now);
		break;
	case URN_CM_ESTABLISHED:
		cm_say_dreq(cm, e, NULL, 0, now);
		break;
	case URN_CM_DREQ_RCVD: {
		struct urn_cm_msg m;

		cm_head(e, &m, URN_CM_DREP);
		cm_say(cm, e, &m);
		cm_timewait(cm, e, now);
		break;
	}
	case URN_CM_SIDR_REQ_RCVD:
		(void)answer_sidr(cm, e, &refused, now);
		break;
	case URN_CM_DREQ_SENT:
	case URN_CM_TIMEWAIT:
		break;
	default:
		cm_free(cm, e);
	}
}

static void
release(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	cm_orphan(cm, e);
	wind_up(cm, e, now);
}

int
urn_cm_release(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);

	if (!e)
		return ENOENT;
	release(cm, e, now);
	return 0;
}

void
urn_cm_owner_gone(struct urn_cm *cm, struct urn_cm_owner *o, uint64_t now)
{
	struct cm_conn *e;

	while ((e = TAILQ_FIRST(&o->conns)))
		release(cm, e, now);
}

/* ---- what comes in */

/* Refuse what no id here stands for. */
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

/* A new id for a request of a peer's. */
static int
take_request(struct urn_cm *cm, struct cm_conn *l, const struct urn_cm_msg *m, const uint8_t own[16],
	     const uint8_t peer[16], struct cm_conn **out)
{
	struct cm_conn *e;
	int rc = cm_alloc(cm, l->owner, &e);

	if (rc != 0)
		return rc;
	e->sidr = m->attr == URN_CM_SIDR_REQ;
	e->listener = l->id;
	e->service_id = m->service_id;
	e->cookie = l->cookie;
	e->channel = l->channel;
	e->tid = m->tid;
	e->knows_peer = true;
	e->remote_id = m->local_id;
	e->remote_qpn = m->qpn;
	/* How long the peer may take to answer our reply is what it says of itself. */
	e->timeout = m->local_timeout;
	e->max_tries = m->max_retries;
	e->ack_timeout = m->path[0].ack_timeout;
	memcpy(e->own, own, 16);
	memcpy(e->peer, peer, 16);
	e->state = e->sidr ? URN_CM_SIDR_REQ_RCVD : URN_CM_REQ_RCVD;
	if (!cm_tell(cm, e, e->sidr ? URN_CM_EVENT_SIDR_REQUEST : URN_CM_EVENT_REQUEST, m, 0)) {
		cm_free(cm, e);
		return ENOMEM;
	}
	e->waits = true;
	l->pending++;
	cm_hash(cm, e, CM_BY_PEER);
	*out = e;
	return 0;
}

/* What is wrong with a request in itself. returns: a reason, or 0 */
static uint16_t
objection(const struct urn_cm *cm, const struct urn_cm_msg *m)
{
	if (m->service != URN_CM_RC || m->extended)
		return URN_CM_REJ_INVALID_TRANSPORT;
	if (m->mtu < 1 || m->mtu > cm->cfg.max_mtu)
		return URN_CM_REJ_INVALID_MTU;
	return 0;
}

/*
 * A peer that connects a queue pair anew has forgotten the connection it had: that
 * ends, and the request is to come again (IBTA 12.9.8.3.1).
 */
static enum urn_counter
stale(struct urn_cm *cm, struct cm_conn *old, const struct urn_cm_msg *m, const uint8_t own[16],
      const uint8_t peer[16], uint64_t now)
{
	refuse(cm, m, own, peer, URN_CM_REJ_STALE_CONN);
	if (old->state == URN_CM_ESTABLISHED)
		cm_say_dreq(cm, old, NULL, 0, now);
	return URN_C_CM_STALE;
}

static enum urn_counter
new_req(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	const uint8_t peer[16], uint64_t now)
{
	struct cm_conn *l = cm_by_service(cm, m->service_id), *e;
	uint16_t bad = objection(cm, m);
	int rc;

	if (bad) {
		refuse(cm, m, own, peer, bad);
		return URN_C_CM_UNSUPPORTED;
	}
	e = cm_by_qpn(cm, peer, m->qpn);
	if (e)
		return stale(cm, e, m, own, peer, now);
	if (!l) {
		refuse(cm, m, own, peer, URN_CM_REJ_INVALID_SERVICE_ID);
		return URN_C_CM_NO_SERVICE;
	}
	if (l->pending >= l->backlog)
		return URN_C_DROP_CM_BACKLOG;
	rc = take_request(cm, l, m, own, peer, &e);
	if (rc == ENOMEM)
		return URN_C_DROP_CM_EVENT;
	if (rc != 0) {
		refuse(cm, m, own, peer, URN_CM_REJ_NO_RESOURCES);
		return URN_C_CM_NO_ROOM;
	}
	cm_hash(cm, e, CM_BY_QPN);
	return URN_C_CM_RX;
}

static enum urn_counter
new_sidr(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	 const uint8_t peer[16])
{
	struct cm_conn *l = cm_by_service(cm, m->service_id), *e;
	int rc;

	if (!l) {
		refuse_sidr(cm, m, own, peer, URN_CM_SIDR_UNSUPPORTED);
		return URN_C_CM_NO_SERVICE;
	}
	if (l->pending >= l->backlog)
		return URN_C_DROP_CM_BACKLOG;
	rc = take_request(cm, l, m, own, peer, &e);
	if (rc == ENOMEM)
		return URN_C_DROP_CM_EVENT;
	if (rc != 0) {
		refuse_sidr(cm, m, own, peer, URN_CM_SIDR_REJECT);
		return URN_C_CM_NO_ROOM;
	}
	return URN_C_CM_RX;
}

/* An id of ours, by the message's word for it, if it is this peer's. */
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

/* Which id a message is for; NULL: none of ours. */
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
		/* Who gave up before it heard of our id says its own only. */
		return e || m->reason != URN_CM_REJ_TIMEOUT
			       ? e
			       : cm_by_peer(cm, peer, m->local_id, false);
	default:
		return named(cm, m->remote_id, m, peer);
	}
}

/* A message to an id that is not, or no longer, here. */
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
		return new_req(cm, &m, own, peer, now);
	if (m.attr == URN_CM_SIDR_REQ)
		return new_sidr(cm, &m, own, peer);
	return nobodys(cm, &m, own, peer);
}
