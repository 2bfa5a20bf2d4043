/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of connection management: the reaction of each to a message of the
 * peer, and to its timer. An event is given out before anything changes:
 * if there is no room for the event, the message is dropped, and the peer repeats it.
 */
#include "cm/cm_internal.h"

/* ---- ways out */

void
cm_no_longer_waits(struct urn_cm *cm, struct cm_conn *e)
{
	struct cm_conn *l = e->waits ? cm_by_id(cm, e->listener) : NULL;

	e->waits = false;
	if (l && l->state == URN_CM_LISTEN)
		l->pending--;
}

/* Duration of timewait, ns. */
static uint64_t
timewait_ns(const struct cm_conn *e)
{
	/* After a refusal: as long as the peer may take to ask again; the peer may repeat a DREQ, too. */
	uint8_t code = e->was_up ? e->ack_timeout : URN_CM_TIMEWAIT_MAX;

	if (code <= e->timeout)
		code = (uint8_t)(e->timeout + 1);
	if (code < URN_CM_TIMEWAIT_MIN)
		code = URN_CM_TIMEWAIT_MIN;
	if (code > URN_CM_TIMEWAIT_MAX)
		code = URN_CM_TIMEWAIT_MAX;
	return urn_cm_ns(code);
}

/* Attribute of the kept message. */
static unsigned int
kept(const struct cm_conn *e)
{
	struct urn_mad_hdr h;

	memcpy(&h, e->mad, sizeof(h));
	return rte_be_to_cpu_16(h.attr_id);
}

void
cm_insist(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	e->insists = true;
	e->tries = 1;
	cm_timer(cm, e, now + cm_patience(e->timeout));
}

/* Repeat the kept message, unless it was repeated often enough. returns: true when repeated */
static bool
insisted(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (e->tries > e->max_tries)
		return false;
	e->tries++;
	cm_doubt(cm, e);
	cm_repeat(cm, e);
	cm_timer(cm, e, now + cm_patience(e->timeout));
	return true;
}

void
cm_timewait(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	e->was_up = e->state == URN_CM_ESTABLISHED || e->state == URN_CM_DREQ_SENT ||
		    e->state == URN_CM_DREQ_RCVD;
	e->tries = 0;
	cm_no_longer_waits(cm, e);
	cm_begun(cm, e);
	cm_unhash(cm, e, CM_BY_QPN);
	e->state = URN_CM_TIMEWAIT;
	e->insists = e->excused && !e->was_up && kept(e) == URN_CM_REJ;
	if (e->insists)
		cm_insist(cm, e, now);
	else
		cm_timer(cm, e, now + timewait_ns(e));
}

void
cm_idle(struct urn_cm *cm, struct cm_conn *e)
{
	if (cm_orphaned(e)) {
		cm_free(cm, e);
		return;
	}
	cm_no_longer_waits(cm, e);
	cm_begun(cm, e);
	cm_timer_stop(cm, e);
	for (unsigned int h = 0; h < CM_HASHES; h++)
		cm_unhash(cm, e, (enum cm_hash)h);
	e->state = URN_CM_IDLE;
}

/* ---- reactions that several states share */

static enum urn_counter
rejected(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	if (!cm_tell(cm, e, URN_CM_EVENT_REJECTED, m, m->reason))
		return URN_C_DROP_CM_EVENT;
	/* Copies of a withdrawn request may still be on their way: they must not count as new requests. */
	if (e->state == URN_CM_ESTABLISHED || e->state == URN_CM_DREQ_SENT || !e->active)
		cm_timewait(cm, e, now);
	else
		cm_idle(cm, e);
	return URN_C_CM_RX;
}

/* The peer asks for patience: granted as often as we could retry, no more. */
static enum urn_counter
wait_longer(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, enum urn_cm_state to,
	    uint64_t now)
{
	uint8_t code = m->service_timeout;

	if (e->mras > e->max_tries)
		return URN_C_CM_DUPLICATE;
	if (code > URN_CM_SERVICE_MAX)
		code = URN_CM_SERVICE_MAX;
	e->mras++;
	e->state = (uint8_t)to;
	cm_timer(cm, e, now + urn_cm_ns(code) + cm_patience(e->timeout));
	return URN_C_CM_RX;
}

/* The program takes its time: ask the peer for patience, whenever the peer repeats its message. */
static enum urn_counter
ask_for_patience(struct urn_cm *cm, struct cm_conn *e, enum urn_cm_state to, uint8_t about)
{
	e->state = (uint8_t)to;
	e->excused = true;
	cm_say_mra(cm, e, about);
	return URN_C_CM_DUPLICATE;
}

static enum urn_counter
again(struct urn_cm *cm, struct cm_conn *e)
{
	cm_repeat(cm, e);
	return URN_C_CM_DUPLICATE;
}

/* Refuse a reply with a queue pair that is connected to another id. */
static enum urn_counter
replied_stale(struct urn_cm *cm, struct cm_conn *e, struct cm_conn *old, const struct urn_cm_msg *m,
	      uint64_t now)
{
	if (!cm_tell(cm, e, URN_CM_EVENT_REJECTED, NULL, URN_CM_REJ_STALE_CONN))
		return URN_C_DROP_CM_EVENT;
	e->remote_id = m->local_id;
	e->knows_peer = true;
	cm_say_rej(cm, e, URN_CM_REJ_STALE_CONN, URN_CM_ABOUT_REP);
	cm_idle(cm, e);
	cm_stale(cm, old, now);
	return URN_C_CM_STALE;
}

static enum urn_counter
replied(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	struct cm_conn *old = cm_by_qpn(cm, e->peer, m->qpn);
	uint32_t had = e->remote_qpn;

	/* A connection that is not up yet may be of a queue pair that is gone. */
	if (old && old->state == URN_CM_ESTABLISHED)
		return replied_stale(cm, e, old, m, now);
	e->remote_qpn = m->qpn;
	if (!cm_tell(cm, e, URN_CM_EVENT_REPLY, m, 0)) {
		e->remote_qpn = had;
		return URN_C_DROP_CM_EVENT;
	}
	e->remote_id = m->local_id;
	e->knows_peer = true;
	cm_timer_stop(cm, e);
	cm_hash(cm, e, CM_BY_QPN);
	e->state = URN_CM_REP_RCVD;
	cm_stands(cm, e);
	return URN_C_CM_RX;
}

static enum urn_counter
established(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m)
{
	if (!cm_tell(cm, e, URN_CM_EVENT_ESTABLISHED, m, 0))
		return URN_C_DROP_CM_EVENT;
	cm_timer_stop(cm, e);
	e->state = URN_CM_ESTABLISHED;
	cm_begun(cm, e);
	cm_stands(cm, e);
	return URN_C_CM_RX;
}

static void
say_drep(struct urn_cm *cm, struct cm_conn *e, uint64_t tid)
{
	struct urn_cm_msg d;

	e->tid = tid;
	cm_head(e, &d, URN_CM_DREP);
	if (e->was_up)
		cm_say(cm, e, &d);
	else /* the kept message is a refusal, and stays for repeats */
		cm_send(cm, e->own, e->peer, &d);
}

/* The peer wants to end the connection. */
static enum urn_counter
asked_to_end(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m)
{
	if (m->qpn != e->qpn)
		return URN_C_DROP_CM_FIELD;
	if (!cm_tell(cm, e, URN_CM_EVENT_DISCONNECT, m, 0))
		return URN_C_DROP_CM_EVENT;
	e->tid = m->tid;
	cm_timer_stop(cm, e);
	/* The peer has let go, and may connect that queue pair anew, no matter how long the program takes. */
	cm_unhash(cm, e, CM_BY_QPN);
	e->state = URN_CM_DREQ_RCVD;
	return URN_C_CM_RX;
}

/* The peer agrees to the end. */
static enum urn_counter
ended(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	if (!cm_tell(cm, e, URN_CM_EVENT_DISCONNECTED, m, 0))
		return URN_C_DROP_CM_EVENT;
	cm_timewait(cm, e, now);
	return URN_C_CM_RX;
}

/* ---- one function a state */

static enum urn_counter
on_idle(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	(void)cm, (void)e, (void)m, (void)now;
	return URN_C_DROP_CM_STATE;
}

/* REQ_SENT, MRA_REQ_RCVD */
static enum urn_counter
on_req_sent(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	switch (m->attr) {
	case URN_CM_REP:
		return replied(cm, e, m, now);
	case URN_CM_REJ:
		return rejected(cm, e, m, now);
	case URN_CM_MRA:
		if (m->about != URN_CM_ABOUT_REQ)
			return URN_C_DROP_CM_STATE;
		return wait_longer(cm, e, m, URN_CM_MRA_REQ_RCVD, now);
	default:
		return URN_C_DROP_CM_STATE;
	}
}

/* REQ_RCVD, MRA_REQ_SENT */
static enum urn_counter
on_req_rcvd(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	switch (m->attr) {
	case URN_CM_REQ:
		/* The peer goes on repeating a request that another listener may have to get. */
		if (e->shared)
			return URN_C_CM_DUPLICATE;
		return ask_for_patience(cm, e, URN_CM_MRA_REQ_SENT, URN_CM_ABOUT_REQ);
	case URN_CM_REJ:
		return rejected(cm, e, m, now);
	default:
		return URN_C_DROP_CM_STATE;
	}
}

/* REP_SENT, MRA_REP_RCVD */
static enum urn_counter
on_rep_sent(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	switch (m->attr) {
	case URN_CM_REQ:
		return again(cm, e);
	case URN_CM_RTU:
		return established(cm, e, m);
	case URN_CM_MRA:
		if (m->about != URN_CM_ABOUT_REP)
			return URN_C_DROP_CM_STATE;
		return wait_longer(cm, e, m, URN_CM_MRA_REP_RCVD, now);
	case URN_CM_REJ:
		return rejected(cm, e, m, now);
	case URN_CM_DREQ: /* the RTU was lost */
		return asked_to_end(cm, e, m);
	default:
		return URN_C_DROP_CM_STATE;
	}
}

/* REP_RCVD, MRA_REP_SENT */
static enum urn_counter
on_rep_rcvd(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	switch (m->attr) {
	case URN_CM_REP:
		return ask_for_patience(cm, e, URN_CM_MRA_REP_SENT, URN_CM_ABOUT_REP);
	case URN_CM_REJ:
		return rejected(cm, e, m, now);
	case URN_CM_MRA: /* late */
		return URN_C_CM_DUPLICATE;
	default:
		return URN_C_DROP_CM_STATE;
	}
}

static void
refuse_path(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m)
{
	struct urn_cm_msg a;

	cm_head(e, &a, URN_CM_APR);
	a.tid = m->tid;
	a.status = URN_CM_APR_UNSUPPORTED;
	cm_send(cm, e->own, e->peer, &a);
}

static enum urn_counter
on_established(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	switch (m->attr) {
	case URN_CM_REP: /* the RTU was lost */
		return e->active ? again(cm, e) : URN_C_DROP_CM_STATE;
	case URN_CM_REQ:
	case URN_CM_RTU:
	case URN_CM_MRA:
		return URN_C_CM_DUPLICATE; /* late */
	case URN_CM_DREQ:
		return asked_to_end(cm, e, m);
	case URN_CM_DREP:
		return cm_stale_answer(cm, e, m, now);
	case URN_CM_REJ:
		return rejected(cm, e, m, now);
	case URN_CM_LAP:
		refuse_path(cm, e, m);
		return URN_C_CM_UNSUPPORTED;
	default:
		return URN_C_DROP_CM_STATE;
	}
}

static enum urn_counter
on_dreq_sent(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	enum urn_counter c;

	switch (m->attr) {
	case URN_CM_DREP:
	case URN_CM_REJ:
		return ended(cm, e, m->attr == URN_CM_DREP ? m : NULL, now);
	case URN_CM_DREQ: /* both sides asked at once: one answer each will do */
		if (m->qpn != e->qpn)
			return URN_C_DROP_CM_FIELD;
		c = ended(cm, e, m, now);
		if (c == URN_C_CM_RX)
			say_drep(cm, e, m->tid);
		return c;
	default:
		return URN_C_CM_DUPLICATE; /* late, from the start of the connection */
	}
}

static enum urn_counter
on_dreq_rcvd(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	(void)cm, (void)e, (void)m, (void)now;
	return m->attr == URN_CM_DREQ ? URN_C_CM_DUPLICATE : URN_C_DROP_CM_STATE;
}

/*
 * A DREQ comes again: our DREP was lost, and this one may be too. The private data is kept for the
 * next, as often as a DREQ may be repeated.
 */
static enum urn_counter
drep_again(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (e->tries < e->max_tries) {
		e->tries++;
		cm_timer(cm, e, now + timewait_ns(e));
	}
	return again(cm, e);
}

static enum urn_counter
on_timewait(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	struct urn_cm_msg r;

	switch (m->attr) {
	case URN_CM_DREQ: /* our answer has private data */
		if (kept(e) == URN_CM_DREP)
			return drep_again(cm, e, now);
		say_drep(cm, e, m->tid);
		return URN_C_CM_DUPLICATE;
	case URN_CM_SIDR_REQ:
		return again(cm, e);
	case URN_CM_REQ:
		if (!e->was_up) /* refused, and the refusal was lost; or withdrawn */
			return kept(e) == URN_CM_REJ ? again(cm, e) : URN_C_CM_DUPLICATE;
		cm_head(e, &r, URN_CM_REJ);
		r.tid = m->tid;
		r.reason = URN_CM_REJ_STALE_CONN;
		cm_send(cm, e->own, e->peer, &r);
		return URN_C_CM_STALE;
	case URN_CM_REP:
		return e->was_up || kept(e) != URN_CM_REJ ? URN_C_CM_DUPLICATE : again(cm, e);
	default:
		return URN_C_CM_DUPLICATE; /* late */
	}
}

static enum urn_counter
on_sidr_req_sent(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	(void)now;
	if (m->attr != URN_CM_SIDR_REP)
		return URN_C_DROP_CM_STATE;
	if (!cm_tell(cm, e, URN_CM_EVENT_SIDR_REPLY, m, m->status))
		return URN_C_DROP_CM_EVENT;
	cm_idle(cm, e);
	return URN_C_CM_RX;
}

static enum urn_counter
on_sidr_req_rcvd(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	(void)cm, (void)e, (void)now;
	return m->attr == URN_CM_SIDR_REQ ? URN_C_CM_DUPLICATE : URN_C_DROP_CM_STATE;
}

typedef enum urn_counter state_fn(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m,
				  uint64_t now);

static state_fn *const states[URN_CM_STATES] = {
	[URN_CM_IDLE] = on_idle,
	[URN_CM_LISTEN] = on_idle,
	[URN_CM_REQ_SENT] = on_req_sent,
	[URN_CM_REQ_RCVD] = on_req_rcvd,
	[URN_CM_MRA_REQ_SENT] = on_req_rcvd,
	[URN_CM_MRA_REQ_RCVD] = on_req_sent,
	[URN_CM_REP_SENT] = on_rep_sent,
	[URN_CM_REP_RCVD] = on_rep_rcvd,
	[URN_CM_MRA_REP_SENT] = on_rep_rcvd,
	[URN_CM_MRA_REP_RCVD] = on_rep_sent,
	[URN_CM_ESTABLISHED] = on_established,
	[URN_CM_DREQ_SENT] = on_dreq_sent,
	[URN_CM_DREQ_RCVD] = on_dreq_rcvd,
	[URN_CM_TIMEWAIT] = on_timewait,
	[URN_CM_SIDR_REQ_SENT] = on_sidr_req_sent,
	[URN_CM_SIDR_REQ_RCVD] = on_sidr_req_rcvd,
};

enum urn_counter
cm_message(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	return states[e->state](cm, e, m, now);
}

/* ---- timers */

/* Give up: no answer, not even to the retries. */
static void
give_up(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	bool end = e->state == URN_CM_DREQ_SENT;

	if (!cm_tell(cm, e, end ? URN_CM_EVENT_DISCONNECTED : URN_CM_EVENT_UNREACHABLE, NULL, 1)) {
		cm_timer(cm, e, now + URN_CM_AGAIN_NS);
		return;
	}
	CM_COUNT(cm, CM_TIMEOUTS);
	switch (e->state) {
	case URN_CM_REQ_SENT:
	case URN_CM_MRA_REQ_RCVD:
		/* The peer may have got the request. */
		cm_say_rej(cm, e, URN_CM_REJ_TIMEOUT, URN_CM_ABOUT_REQ);
		cm_idle(cm, e);
		break;
	case URN_CM_REP_SENT:
	case URN_CM_MRA_REP_RCVD:
		cm_say_rej(cm, e, URN_CM_REJ_TIMEOUT, URN_CM_ABOUT_REP);
		cm_timewait(cm, e, now);
		break;
	case URN_CM_DREQ_SENT:
		cm_timewait(cm, e, now);
		break;
	default:
		cm_idle(cm, e);
	}
}

static void
end_of_timewait(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (e->insists) {
		/* After the last repeat timewait is as long as after any refusal. */
		e->insists = insisted(cm, e, now);
		if (!e->insists)
			cm_timer(cm, e, now + timewait_ns(e));
	} else if (e->was_up && !cm_tell(cm, e, URN_CM_EVENT_TIMEWAIT, NULL, 0)) {
		cm_timer(cm, e, now + URN_CM_AGAIN_NS);
	} else {
		cm_idle(cm, e);
	}
}

void
cm_timed_out(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (e->state == URN_CM_TIMEWAIT) {
		end_of_timewait(cm, e, now);
		return;
	}
	if (e->state == URN_CM_ESTABLISHED) {
		e->insists = e->insists && insisted(cm, e, now);
		cm_stale_again(cm, e, now);
		return;
	}
	if (e->tries > e->max_tries) {
		give_up(cm, e, now);
		return;
	}
	if (e->state == URN_CM_MRA_REQ_RCVD)
		e->state = URN_CM_REQ_SENT;
	else if (e->state == URN_CM_MRA_REP_RCVD)
		e->state = URN_CM_REP_SENT;
	cm_ask_again(cm, e, now);
}
