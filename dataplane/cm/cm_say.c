/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: messages to the peer, events to the owner. */
#include "cm/cm_internal.h"

enum { EARLY = 4 }; /* from this try of a look-up on, the wait is whole */

void
cm_head(const struct cm_conn *e, struct urn_cm_msg *m, enum urn_cm_attr attr)
{
	memset(m, 0, sizeof(*m));
	m->attr = (uint16_t)attr;
	m->tid = e->tid;
	m->local_id = e->id;
	m->remote_id = e->knows_peer ? e->remote_id : 0;
}

static enum urn_cm_sending
send_mad(struct urn_cm *cm, uint32_t id, const uint8_t own[16], const uint8_t peer[16],
	 const uint8_t *mad, bool wait)
{
	enum urn_cm_sending how = cm->cfg.send(cm->cfg.ctx, id, own, peer, mad, wait);

	if (how == URN_CM_SENDS)
		CM_COUNT(cm, CM_TX);
	return how;
}

/* Send a message that may be dropped, because it comes again if it is lost. */
static void
send_once(struct urn_cm *cm, uint32_t id, const uint8_t own[16], const uint8_t peer[16],
	  const uint8_t *mad, bool wait)
{
	if (send_mad(cm, id, own, peer, mad, wait) == URN_CM_NO_ROOM)
		CM_COUNT(cm, DROP_CM_TX);
}

void
cm_send(struct urn_cm *cm, const uint8_t own[16], const uint8_t peer[16], const struct urn_cm_msg *m)
{
	uint8_t mad[URN_MAD_BYTES];

	urn_cm_write(mad, m);
	send_once(cm, 0, own, peer, mad, false);
}

void
cm_send_late(struct urn_cm *cm, const uint8_t own[16], const uint8_t peer[16],
	     const struct urn_cm_msg *m)
{
	uint8_t mad[URN_MAD_BYTES];

	urn_cm_write(mad, m);
	send_once(cm, 0, own, peer, mad, true);
}

/* ns until a sent message is repeated. A look-up changes nothing at the peer, so its first repeats may come early: after an
 * eighth, a quarter and half of the wait that the program chose. One lost frame then costs datagrams no second. */
static uint64_t
patience(const struct cm_conn *e)
{
	uint64_t whole = cm_patience(e->timeout);

	if (e->state != URN_CM_SIDR_REQ_SENT || e->tries == 0 || e->tries >= EARLY)
		return whole;
	return whole >> (EARLY - e->tries);
}

void
cm_doubt(const struct urn_cm *cm, const struct cm_conn *e)
{
	if (cm->cfg.doubt)
		cm->cfg.doubt(cm->cfg.ctx, e->peer);
}

/* Send the kept message. One that waits for the peer's MAC address counts as no try: the peer can't have got it. */
static void
transmit(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (e->tries)
		cm_doubt(cm, e);
	switch (send_mad(cm, e->id, e->own, e->peer, e->mad, true)) {
	case URN_CM_NO_ROOM:
		cm_timer(cm, e, now + URN_CM_AGAIN_NS);
		return;
	case URN_CM_SENDS:
		if (e->tries++)
			CM_COUNT(cm, CM_RETRANSMITS);
		break;
	case URN_CM_WAITS:
		break;
	}
	cm_timer(cm, e, now + patience(e));
}

void
cm_ask(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	urn_cm_write(e->mad, m);
	e->tries = 0;
	e->mras = 0;
	transmit(cm, e, now);
}

void
cm_ask_again(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	transmit(cm, e, now);
}

void
cm_say(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m)
{
	urn_cm_write(e->mad, m);
	send_once(cm, e->id, e->own, e->peer, e->mad, true);
}

void
cm_repeat(struct urn_cm *cm, struct cm_conn *e)
{
	CM_COUNT(cm, CM_RETRANSMITS);
	send_once(cm, e->id, e->own, e->peer, e->mad, false);
}

void
cm_say_rej(struct urn_cm *cm, struct cm_conn *e, uint16_t reason, uint8_t about)
{
	struct urn_cm_msg m;
	uint64_t guid = rte_cpu_to_be_64(cm->cfg.ca_guid);

	cm_head(e, &m, URN_CM_REJ);
	m.reason = reason;
	m.about = about;
	/* A peer that does not know our id yet finds the connection by this GUID. */
	if (reason == URN_CM_REJ_TIMEOUT) {
		m.info_len = sizeof(guid);
		memcpy(m.info, &guid, sizeof(guid));
	}
	cm_say(cm, e, &m);
}

void
cm_say_mra(struct urn_cm *cm, struct cm_conn *e, uint8_t about)
{
	struct urn_cm_msg m;

	cm_head(e, &m, URN_CM_MRA);
	m.about = about;
	m.service_timeout = URN_CM_SERVICE_MAX;
	cm_send(cm, e->own, e->peer, &m);
}

void
cm_say_dreq(struct urn_cm *cm, struct cm_conn *e, struct urn_cm_msg *m, uint64_t now)
{
	e->tid = m->tid = cm_draw(cm);
	m->qpn = e->remote_qpn;
	e->state = URN_CM_DREQ_SENT;
	cm_ask(cm, e, m, now);
}

static void
fill_from_message(struct urn_abi_cm_event *ev, const struct urn_cm_msg *m)
{
	unsigned int bytes = urn_cm_data_bytes(m->attr);

	ev->qpn = m->qpn;
	ev->psn = m->psn;
	ev->qkey = m->qkey;
	ev->pkey = m->pkey;
	ev->responder_resources = m->responder_resources;
	ev->initiator_depth = m->initiator_depth;
	ev->retry_count = m->retry_count;
	ev->rnr_retry = m->rnr_retry;
	ev->flow_control = m->flow_control;
	ev->srq = m->srq;
	ev->mtu = m->mtu;
	ev->ack_timeout = m->attr == URN_CM_REP ? m->ack_delay : m->path[0].ack_timeout;
	ev->traffic_class = m->path[0].traffic_class;
	ev->hop_limit = m->path[0].hop_limit;
	ev->flow_label = m->path[0].flow_label;
	ev->data_len = (uint8_t)bytes;
	memcpy(ev->data, m->data, bytes);
	ev->info_len = m->info_len;
	memcpy(ev->data + bytes, m->info, m->info_len);
}

bool
cm_tell(struct urn_cm *cm, struct cm_conn *e, enum urn_cm_event_type type,
	const struct urn_cm_msg *m, uint16_t reason)
{
	struct urn_abi_cm_event ev;

	if (cm_orphaned(e) || e->owner->going)
		return true;
	memset(&ev, 0, sizeof(ev));
	ev.type = type;
	ev.id = e->id;
	ev.listen_id = e->listener;
	ev.cookie = e->cookie;
	ev.service_id = e->service_id;
	ev.reason = reason;
	memcpy(ev.gid, e->peer, 16);
	memcpy(ev.own_gid, e->own, 16);
	if (m)
		fill_from_message(&ev, m);
	return cm->cfg.event(cm->cfg.ctx, e->owner, e->channel, &ev);
}

void
cm_stands(struct urn_cm *cm, const struct cm_conn *e)
{
	if (cm->cfg.stands && !cm_orphaned(e))
		cm->cfg.stands(cm->cfg.stands_ctx, e->owner, e->peer, e->remote_qpn);
}
