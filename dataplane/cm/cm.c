/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: the calls of owners. */
#include "cm/cm_internal.h"

void
urn_cm_owner_init(struct urn_cm_owner *o, uint32_t max_ids, void *ctx)
{
	TAILQ_INIT(&o->conns);
	o->ids = o->half = 0;
	o->max_ids = max_ids;
	o->user_ids = NULL;
	o->going = false;
	o->ctx = ctx;
}

static struct cm_conn *
owned(const struct urn_cm *cm, const struct urn_cm_owner *o, uint32_t id)
{
	struct cm_conn *e = cm_by_id(cm, id);

	return e && e->owner == o ? e : NULL;
}

uint32_t
urn_cm_place(const struct urn_cm *cm, const struct urn_cm_owner *o, uint32_t id)
{
	const struct cm_conn *e = owned(cm, o, id);

	return e ? (uint32_t)(e - cm->conn) : 0;
}

int
urn_cm_listen(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_listen *p,
	      uint32_t *id)
{
	uint32_t backlog = p->backlog & URN_CM_BACKLOG_BITS;
	struct cm_conn *e;
	int rc = cm_may_listen(cm, o, p);

	if (rc == 0)
		rc = cm_alloc(cm, o, p->channel_fd, &e);
	if (rc != 0)
		return rc;
	e->state = URN_CM_LISTEN;
	e->service_id = p->service_id;
	e->cookie = p->cookie;
	e->backlog = backlog ? backlog : URN_CM_BACKLOG;
	e->shared = (p->backlog & URN_CM_SHARED) != 0;
	e->heir = (p->backlog & URN_CM_HEIR) != 0;
	cm_hash(cm, e, CM_BY_PEER);
	cm_joined(cm, e);
	cm_held_wanted(cm, p->service_id);
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

/* Common part of asking for a connection and for a service. */
static int
begin(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
      const uint8_t own[16], struct cm_conn **out)
{
	struct cm_conn *e;
	int rc;

	if (p->timeout > 31 || p->max_retries > 15 || p->flow_label > 0xfffff)
		return EINVAL;
	rc = cm_alloc(cm, o, p->channel_fd, &e);
	if (rc != 0)
		return rc;
	e->active = true;
	e->service_id = p->service_id;
	e->cookie = p->cookie;
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
	cm_hash(cm, e, CM_BY_OWN_QPN);
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

/* True when an answer is for the queue pair that its service names, or its service names none. */
static bool
names_its_qp(uint64_t service, const struct urn_abi_cm_accept *p)
{
	return p->status != URN_CM_SIDR_VALID || !urn_cm_is_session_service(service) ||
	       service == urn_cm_session_service(p->qpn);
}

/* Send an answer, which is repeated for a while whenever the request comes again. */
static int
answer_sidr(struct urn_cm *cm, struct cm_conn *e, const struct urn_abi_cm_accept *p, uint64_t now)
{
	struct urn_cm_msg m;

	if (p->status >= URN_CM_SIDR_STATUSES || p->data_len > URN_CM_SIDR_REP_DATA ||
	    p->qpn > URN_QPN_MASK || (p->status == URN_CM_SIDR_VALID && p->qpn <= URN_QPN_GSI) ||
	    !names_its_qp(e->service_id, p))
		return EINVAL;
	cm_head(e, &m, URN_CM_SIDR_REP);
	m.local_id = e->remote_id; /* the request's id, by which the peer knows it */
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
	/* With another status the caller does not check that the queue pair is the client's. */
	return p->status == URN_CM_SIDR_VALID && p->qpn > URN_QPN_GSI && p->qpn <= URN_QPN_MASK &&
	       p->psn <= URN_QPN_MASK && p->rnr_retry <= 7 && p->flow_control <= 1 && p->srq <= 1 &&
	       p->ack_delay <= 31 && p->data_len <= URN_CM_REP_DATA;
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
	cm_hash(cm, e, CM_BY_OWN_QPN);
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

/* Fill a message that carries private data only. returns 0 or EINVAL: the data is too long */
static int
fill_data(const struct cm_conn *e, struct urn_cm_msg *m, enum urn_cm_attr attr,
	  const struct urn_abi_cm_data *p)
{
	if (p->data_len > urn_cm_data_bytes(attr))
		return EINVAL;
	cm_head(e, m, attr);
	memcpy(m->data, p->data, p->data_len);
	return 0;
}

int
urn_cm_establish(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		 const struct urn_abi_cm_data *p, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);
	struct urn_cm_msg m;

	if (!e)
		return ENOENT;
	if (fill_data(e, &m, URN_CM_RTU, p) != 0)
		return EINVAL;
	if (e->state == URN_CM_REP_SENT || e->state == URN_CM_MRA_REP_RCVD) {
		cm_timer_stop(cm, e);
	} else if (e->state == URN_CM_REP_RCVD || e->state == URN_CM_MRA_REP_SENT) {
		cm_say(cm, e, &m);
		if (e->excused)
			cm_insist(cm, e, now);
	} else {
		return ENOTCONN;
	}
	e->state = URN_CM_ESTABLISHED;
	cm_begun(cm, e);
	cm_stands(cm, e);
	return 0;
}

/* Agree to the end of the connection. */
static void
agree(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	cm_say(cm, e, m);
	cm_timewait(cm, e, now);
}

int
urn_cm_disconnect(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		  const struct urn_abi_cm_data *p, uint64_t now)
{
	struct cm_conn *e = owned(cm, o, id);
	struct urn_cm_msg m;
	bool answers;

	if (!e)
		return ENOENT;
	answers = e->state == URN_CM_DREQ_RCVD;
	if (!answers && e->state != URN_CM_ESTABLISHED)
		return ENOTCONN;
	if (fill_data(e, &m, answers ? URN_CM_DREP : URN_CM_DREQ, p) != 0)
		return EINVAL;
	if (answers)
		agree(cm, e, &m, now);
	else
		cm_say_dreq(cm, e, &m, now);
	return 0;
}

static void
turn_down(struct urn_cm *cm, struct cm_conn *e, uint16_t reason, uint8_t about, uint64_t now)
{
	cm_say_rej(cm, e, reason, about);
	cm_timewait(cm, e, now);
}

/* Tell the peer that the owner is done with the id, in a way that fits its state. */
static void
wind_up(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	static const struct urn_abi_cm_accept refused = {.status = URN_CM_SIDR_REJECT};
	struct urn_cm_msg m;

	switch (e->state) {
	case URN_CM_REQ_SENT:
	case URN_CM_MRA_REQ_RCVD:
		turn_down(cm, e, URN_CM_REJ_TIMEOUT, URN_CM_ABOUT_REQ, now);
		break;
	case URN_CM_REQ_RCVD:
	case URN_CM_MRA_REQ_SENT:
	case URN_CM_REP_SENT:
	case URN_CM_MRA_REP_RCVD:
		turn_down(cm, e, URN_CM_REJ_CONSUMER, URN_CM_ABOUT_REQ, now);
		break;
	case URN_CM_REP_RCVD:
	case URN_CM_MRA_REP_SENT:
		turn_down(cm, e, URN_CM_REJ_CONSUMER, URN_CM_ABOUT_REP, now);
		break;
	case URN_CM_ESTABLISHED:
		cm_head(e, &m, URN_CM_DREQ);
		cm_say_dreq(cm, e, &m, now);
		break;
	case URN_CM_DREQ_RCVD:
		cm_head(e, &m, URN_CM_DREP);
		agree(cm, e, &m, now);
		break;
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

/* True when the owner may listen at the id's service anew. Session layers take look-ups alone
 * there, which do not wait. */
static bool
may_come_back(const struct cm_conn *e)
{
	return e->backlog && !e->owner->going && !urn_cm_is_session_service(e->service_id);
}

static void
release(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (may_come_back(e))
		cm_leaves(cm, e, now);
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
urn_cm_unlisten(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id)
{
	struct cm_conn *e = owned(cm, o, id);

	if (e && e->state == URN_CM_LISTEN)
		cm_idle(cm, e);
}

void
urn_cm_owner_deaf(struct urn_cm_owner *o)
{
	o->going = true;
}

bool
urn_cm_owner_goes(struct urn_cm *cm, struct urn_cm_owner *o, uint64_t now)
{
	struct cm_conn *e;

	urn_cm_owner_deaf(o);
	cm_left_forget(cm, o);
	for (unsigned int i = 0; i < URN_CM_SLICE && (e = TAILQ_FIRST(&o->conns)); i++)
		release(cm, e, now);
	return !TAILQ_EMPTY(&o->conns);
}
