/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/cm.h"

/* ---- wire format: network order, at any address */

struct path_wire {
	uint16_t slid, dlid;
	uint8_t sgid[16], dgid[16];
	uint32_t flow_rate;       /* flow label 20 bits, 6 reserved, rate 6 */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;               /* SL 4 bits, subnet local 1, 3 reserved */
	uint8_t ack_timeout;      /* code 5 bits, 3 reserved */
} __attribute__((packed));

struct req_wire {
	uint32_t local_id;
	uint32_t rsvd;
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t rsvd2;
	uint32_t qkey;
	uint32_t qpn_resources;   /* QPN 24 bits, responder resources 8 */
	uint32_t eecn_depth;      /* EECN 24 bits, initiator depth 8 */
	uint32_t eecn_timeout;    /* EECN 24 bits, remote timeout 5, service 2, flow control 1 */
	uint32_t psn_timeout;     /* PSN 24 bits, local timeout 5, retry count 3 */
	uint16_t pkey;
	uint8_t mtu;              /* MTU 4 bits, RDC 1, RNR retry 3 */
	uint8_t retries;          /* retries 4 bits, SRQ 1, extended transport 3 */
	struct path_wire path[2];
	uint8_t data[URN_CM_REQ_DATA];
} __attribute__((packed));

/* MRA; REJ begins alike. */
struct mra_wire {
	uint32_t local_id, remote_id;
	uint8_t about;            /* about 2 bits, 6 reserved */
	uint8_t timeout;          /* timeout 5 bits, 3 reserved */
	uint8_t data[URN_CM_MRA_DATA];
} __attribute__((packed));

struct rej_wire {
	uint32_t local_id, remote_id;
	uint8_t about;            /* about 2 bits, 6 reserved */
	uint8_t info_len;         /* length 7 bits, 1 reserved */
	uint16_t reason;
	uint8_t info[URN_CM_INFO];
	uint8_t data[URN_CM_REJ_DATA];
} __attribute__((packed));

struct rep_wire {
	uint32_t local_id, remote_id;
	uint32_t qkey;
	uint32_t qpn;             /* QPN 24 bits, 8 reserved */
	uint32_t eecn;
	uint32_t psn;             /* PSN 24 bits, 8 reserved */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t delay;            /* target ACK delay 5 bits, failover 2, flow control 1 */
	uint8_t rnr;              /* RNR retry 3 bits, SRQ 1, 4 reserved */
	uint64_t ca_guid;
	uint8_t data[URN_CM_REP_DATA];
} __attribute__((packed));

/* RTU and DREP. */
struct ids_wire {
	uint32_t local_id, remote_id;
	uint8_t data[URN_CM_RTU_DATA];
} __attribute__((packed));

struct dreq_wire {
	uint32_t local_id, remote_id;
	uint32_t qpn;             /* QPN 24 bits, 8 reserved */
	uint8_t data[URN_CM_DREQ_DATA];
} __attribute__((packed));

struct sidr_req_wire {
	uint32_t id;
	uint16_t pkey;
	uint16_t rsvd;
	uint64_t service_id;
	uint8_t data[URN_CM_SIDR_REQ_DATA];
} __attribute__((packed));

struct sidr_rep_wire {
	uint32_t id;
	uint8_t status;
	uint8_t info_len;
	uint16_t rsvd;
	uint32_t qpn;             /* QPN 24 bits, 8 reserved */
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[URN_CM_INFO];
	uint8_t data[URN_CM_SIDR_REP_DATA];
} __attribute__((packed));

struct apr_wire {
	uint32_t local_id, remote_id;
	uint8_t info_len;
	uint8_t status;
	uint8_t rest[222];
} __attribute__((packed));

struct cm_wire {
	struct urn_mad_hdr hdr;
	union {
		struct req_wire req;
		struct mra_wire mra;
		struct rej_wire rej;
		struct rep_wire rep;
		struct ids_wire ids;
		struct dreq_wire dreq;
		struct sidr_req_wire sidr_req;
		struct sidr_rep_wire sidr_rep;
		struct apr_wire apr;
		uint8_t bytes[232];
	};
} __attribute__((packed));

_Static_assert(sizeof(struct path_wire) == 44, "path");
_Static_assert(sizeof(struct req_wire) == 232, "REQ");
_Static_assert(offsetof(struct req_wire, qpn_resources) == 32, "REQ");
_Static_assert(offsetof(struct req_wire, pkey) == 48, "REQ");
_Static_assert(offsetof(struct req_wire, data) == 140, "REQ");
_Static_assert(sizeof(struct mra_wire) == 232, "MRA");
_Static_assert(sizeof(struct rej_wire) == 232, "REJ");
_Static_assert(sizeof(struct rep_wire) == 232, "REP");
_Static_assert(offsetof(struct rep_wire, ca_guid) == 28, "REP");
_Static_assert(sizeof(struct ids_wire) == 232, "RTU, DREP");
_Static_assert(sizeof(struct dreq_wire) == 232, "DREQ");
_Static_assert(sizeof(struct sidr_req_wire) == 232, "SIDR_REQ");
_Static_assert(sizeof(struct sidr_rep_wire) == 232, "SIDR_REP");
_Static_assert(offsetof(struct sidr_rep_wire, service_id) == 12, "SIDR_REP");
_Static_assert(sizeof(struct apr_wire) == 232, "APR");
_Static_assert(sizeof(struct cm_wire) == URN_MAD_BYTES, "CM MAD");

/* ---- the table of messages */

struct kind {
	uint8_t bytes;            /* bytes of private data */
	void (*write)(struct cm_wire *w, const struct urn_cm_msg *m);
	/* returns: false when a value is impossible */
	bool (*read)(const struct cm_wire *w, struct urn_cm_msg *m);
};

static const struct kind *kind_of(unsigned int attr);

static uint32_t
high24(uint32_t wire)
{
	return rte_be_to_cpu_32(wire) >> 8;
}

static uint8_t
low8(uint32_t wire)
{
	return (uint8_t)rte_be_to_cpu_32(wire);
}

static uint32_t
join(uint32_t n24, unsigned int n8)
{
	return rte_cpu_to_be_32(n24 << 8 | (n8 & 0xff));
}

/* True when programs can have a queue pair of this number. */
static bool
qpn_ok(uint32_t qpn)
{
	return qpn > URN_QPN_GSI;
}

static void
write_path(struct path_wire *w, const struct urn_cm_path *p)
{
	w->slid = rte_cpu_to_be_16(p->slid);
	w->dlid = rte_cpu_to_be_16(p->dlid);
	memcpy(w->sgid, p->sgid, 16);
	memcpy(w->dgid, p->dgid, 16);
	w->flow_rate = rte_cpu_to_be_32(p->flow_label << 12 | (p->rate & 0x3f));
	w->traffic_class = p->traffic_class;
	w->hop_limit = p->hop_limit;
	w->sl = (uint8_t)(p->sl << 4 | (p->subnet_local & 1) << 3);
	w->ack_timeout = (uint8_t)(p->ack_timeout << 3);
}

static void
read_path(const struct path_wire *w, struct urn_cm_path *p)
{
	p->slid = rte_be_to_cpu_16(w->slid);
	p->dlid = rte_be_to_cpu_16(w->dlid);
	memcpy(p->sgid, w->sgid, 16);
	memcpy(p->dgid, w->dgid, 16);
	p->flow_label = rte_be_to_cpu_32(w->flow_rate) >> 12;
	p->rate = low8(w->flow_rate) & 0x3f;
	p->traffic_class = w->traffic_class;
	p->hop_limit = w->hop_limit;
	p->sl = w->sl >> 4;
	p->subnet_local = w->sl >> 3 & 1;
	p->ack_timeout = w->ack_timeout >> 3;
}

static void
write_req(struct cm_wire *w, const struct urn_cm_msg *m)
{
	struct req_wire *r = &w->req;

	r->local_id = rte_cpu_to_be_32(m->local_id);
	r->service_id = rte_cpu_to_be_64(m->service_id);
	r->ca_guid = rte_cpu_to_be_64(m->ca_guid);
	r->qkey = rte_cpu_to_be_32(m->qkey);
	r->qpn_resources = join(m->qpn, m->responder_resources);
	r->eecn_depth = join(0, m->initiator_depth);
	r->eecn_timeout = join(0, (unsigned int)m->remote_timeout << 3 | (m->service & 3u) << 1 |
					  (m->flow_control & 1u));
	r->psn_timeout = join(m->psn, (unsigned int)m->local_timeout << 3 | (m->retry_count & 7u));
	r->pkey = rte_cpu_to_be_16(m->pkey);
	r->mtu = (uint8_t)(m->mtu << 4 | (m->rdc & 1) << 3 | (m->rnr_retry & 7));
	r->retries = (uint8_t)(m->max_retries << 4 | (m->srq & 1) << 3 | (m->extended & 7));
	for (int i = 0; i < 2; i++)
		write_path(&r->path[i], &m->path[i]);
	memcpy(r->data, m->data, sizeof(r->data));
}

static bool
read_req(const struct cm_wire *w, struct urn_cm_msg *m)
{
	const struct req_wire *r = &w->req;

	m->service_id = rte_be_to_cpu_64(r->service_id);
	m->ca_guid = rte_be_to_cpu_64(r->ca_guid);
	m->qkey = rte_be_to_cpu_32(r->qkey);
	m->qpn = high24(r->qpn_resources);
	m->responder_resources = low8(r->qpn_resources);
	m->initiator_depth = low8(r->eecn_depth);
	m->remote_timeout = low8(r->eecn_timeout) >> 3;
	m->service = low8(r->eecn_timeout) >> 1 & 3;
	m->flow_control = low8(r->eecn_timeout) & 1;
	m->psn = high24(r->psn_timeout);
	m->local_timeout = low8(r->psn_timeout) >> 3;
	m->retry_count = low8(r->psn_timeout) & 7;
	m->pkey = rte_be_to_cpu_16(r->pkey);
	m->mtu = r->mtu >> 4;
	m->rdc = r->mtu >> 3 & 1;
	m->rnr_retry = r->mtu & 7;
	m->max_retries = r->retries >> 4;
	m->srq = r->retries >> 3 & 1;
	m->extended = r->retries & 7;
	for (int i = 0; i < 2; i++)
		read_path(&r->path[i], &m->path[i]);
	memcpy(m->data, r->data, sizeof(r->data));
	return qpn_ok(m->qpn);
}

static void
write_mra(struct cm_wire *w, const struct urn_cm_msg *m)
{
	w->mra.about = (uint8_t)(m->about << 6);
	w->mra.timeout = (uint8_t)(m->service_timeout << 3);
	memcpy(w->mra.data, m->data, sizeof(w->mra.data));
}

static bool
read_mra(const struct cm_wire *w, struct urn_cm_msg *m)
{
	m->about = w->mra.about >> 6;
	m->service_timeout = w->mra.timeout >> 3;
	memcpy(m->data, w->mra.data, sizeof(w->mra.data));
	return m->about <= URN_CM_ABOUT_OTHER; /* 2: an alternate path */
}

static void
write_rej(struct cm_wire *w, const struct urn_cm_msg *m)
{
	w->rej.about = (uint8_t)(m->about << 6);
	w->rej.info_len = (uint8_t)(m->info_len << 1);
	w->rej.reason = rte_cpu_to_be_16(m->reason);
	memcpy(w->rej.info, m->info, sizeof(w->rej.info));
	memcpy(w->rej.data, m->data, sizeof(w->rej.data));
}

static bool
read_rej(const struct cm_wire *w, struct urn_cm_msg *m)
{
	m->about = w->rej.about >> 6;
	m->info_len = w->rej.info_len >> 1;
	m->reason = rte_be_to_cpu_16(w->rej.reason);
	memcpy(m->info, w->rej.info, sizeof(w->rej.info));
	memcpy(m->data, w->rej.data, sizeof(w->rej.data));
	return m->about <= URN_CM_ABOUT_OTHER && m->info_len <= URN_CM_INFO;
}

static void
write_rep(struct cm_wire *w, const struct urn_cm_msg *m)
{
	struct rep_wire *r = &w->rep;

	r->qkey = rte_cpu_to_be_32(m->qkey);
	r->qpn = join(m->qpn, 0);
	r->psn = join(m->psn, 0);
	r->responder_resources = m->responder_resources;
	r->initiator_depth = m->initiator_depth;
	r->delay = (uint8_t)(m->ack_delay << 3 | (m->failover & 3) << 1 | (m->flow_control & 1));
	r->rnr = (uint8_t)(m->rnr_retry << 5 | (m->srq & 1) << 4);
	r->ca_guid = rte_cpu_to_be_64(m->ca_guid);
	memcpy(r->data, m->data, sizeof(r->data));
}

static bool
read_rep(const struct cm_wire *w, struct urn_cm_msg *m)
{
	const struct rep_wire *r = &w->rep;

	m->qkey = rte_be_to_cpu_32(r->qkey);
	m->qpn = high24(r->qpn);
	m->psn = high24(r->psn);
	m->responder_resources = r->responder_resources;
	m->initiator_depth = r->initiator_depth;
	m->ack_delay = r->delay >> 3;
	m->failover = r->delay >> 1 & 3;
	m->flow_control = r->delay & 1;
	m->rnr_retry = r->rnr >> 5;
	m->srq = r->rnr >> 4 & 1;
	m->ca_guid = rte_be_to_cpu_64(r->ca_guid);
	memcpy(m->data, r->data, sizeof(r->data));
	return qpn_ok(m->qpn);
}

static void
write_ids(struct cm_wire *w, const struct urn_cm_msg *m)
{
	memcpy(w->ids.data, m->data, sizeof(w->ids.data));
}

static bool
read_ids(const struct cm_wire *w, struct urn_cm_msg *m)
{
	memcpy(m->data, w->ids.data, sizeof(w->ids.data));
	return true;
}

static void
write_dreq(struct cm_wire *w, const struct urn_cm_msg *m)
{
	w->dreq.qpn = join(m->qpn, 0);
	memcpy(w->dreq.data, m->data, sizeof(w->dreq.data));
}

static bool
read_dreq(const struct cm_wire *w, struct urn_cm_msg *m)
{
	m->qpn = high24(w->dreq.qpn);
	memcpy(m->data, w->dreq.data, sizeof(w->dreq.data));
	return true;
}

static void
write_sidr_req(struct cm_wire *w, const struct urn_cm_msg *m)
{
	w->sidr_req.id = rte_cpu_to_be_32(m->local_id);
	w->sidr_req.pkey = rte_cpu_to_be_16(m->pkey);
	w->sidr_req.service_id = rte_cpu_to_be_64(m->service_id);
	memcpy(w->sidr_req.data, m->data, sizeof(w->sidr_req.data));
}

static bool
read_sidr_req(const struct cm_wire *w, struct urn_cm_msg *m)
{
	m->pkey = rte_be_to_cpu_16(w->sidr_req.pkey);
	m->service_id = rte_be_to_cpu_64(w->sidr_req.service_id);
	memcpy(m->data, w->sidr_req.data, sizeof(w->sidr_req.data));
	return true;
}

static void
write_sidr_rep(struct cm_wire *w, const struct urn_cm_msg *m)
{
	struct sidr_rep_wire *r = &w->sidr_rep;

	r->id = rte_cpu_to_be_32(m->local_id);
	r->status = m->status;
	r->info_len = m->info_len;
	r->qpn = join(m->qpn, 0);
	r->service_id = rte_cpu_to_be_64(m->service_id);
	r->qkey = rte_cpu_to_be_32(m->qkey);
	memcpy(r->info, m->info, sizeof(r->info));
	memcpy(r->data, m->data, sizeof(r->data));
}

static bool
read_sidr_rep(const struct cm_wire *w, struct urn_cm_msg *m)
{
	const struct sidr_rep_wire *r = &w->sidr_rep;

	m->status = r->status;
	m->info_len = r->info_len;
	m->qpn = high24(r->qpn);
	m->service_id = rte_be_to_cpu_64(r->service_id);
	m->qkey = rte_be_to_cpu_32(r->qkey);
	memcpy(m->info, r->info, sizeof(r->info));
	memcpy(m->data, r->data, sizeof(r->data));
	return m->status < URN_CM_SIDR_STATUSES && m->info_len <= URN_CM_INFO &&
	       (m->status != URN_CM_SIDR_VALID || qpn_ok(m->qpn));
}

/* The path of a LAP or APR is ignored, because none is supported. */
static void
write_apr(struct cm_wire *w, const struct urn_cm_msg *m)
{
	w->apr.status = m->status;
}

static bool
read_apr(const struct cm_wire *w, struct urn_cm_msg *m)
{
	m->status = m->attr == URN_CM_APR ? w->apr.status : 0;
	return true;
}

static const struct kind kinds[URN_CM_ATTR_END - URN_CM_REQ] = {
	{URN_CM_REQ_DATA, write_req, read_req},
	{URN_CM_MRA_DATA, write_mra, read_mra},
	{URN_CM_REJ_DATA, write_rej, read_rej},
	{URN_CM_REP_DATA, write_rep, read_rep},
	{URN_CM_RTU_DATA, write_ids, read_ids},
	{URN_CM_DREQ_DATA, write_dreq, read_dreq},
	{URN_CM_DREP_DATA, write_ids, read_ids},
	{URN_CM_SIDR_REQ_DATA, write_sidr_req, read_sidr_req},
	{URN_CM_SIDR_REP_DATA, write_sidr_rep, read_sidr_rep},
	{0, write_apr, read_apr},
	{0, write_apr, read_apr},
};

static const struct kind *
kind_of(unsigned int attr)
{
	return attr >= URN_CM_REQ && attr < URN_CM_ATTR_END ? &kinds[attr - URN_CM_REQ] : NULL;
}

unsigned int
urn_cm_data_bytes(unsigned int attr)
{
	const struct kind *k = kind_of(attr);

	return k ? k->bytes : 0;
}

/* True when messages of this attribute begin with the ids of both sides. */
static bool
has_remote_id(unsigned int attr)
{
	return attr != URN_CM_REQ && attr != URN_CM_SIDR_REQ && attr != URN_CM_SIDR_REP;
}

void
urn_cm_write(uint8_t *mad, const struct urn_cm_msg *msg)
{
	const struct kind *k = kind_of(msg->attr);
	struct cm_wire w;

	memset(&w, 0, sizeof(w));
	w.hdr.base_version = URN_MAD_BASE_VERSION;
	w.hdr.mgmt_class = URN_MAD_CLASS_CM;
	w.hdr.class_version = URN_CM_CLASS_VERSION;
	w.hdr.method = URN_CM_METHOD_SEND;
	w.hdr.tid = rte_cpu_to_be_64(msg->tid);
	w.hdr.attr_id = rte_cpu_to_be_16(msg->attr);
	if (has_remote_id(msg->attr)) {
		w.ids.local_id = rte_cpu_to_be_32(msg->local_id);
		w.ids.remote_id = rte_cpu_to_be_32(msg->remote_id);
	}
	if (k)
		k->write(&w, msg);
	memcpy(mad, &w, sizeof(w));
}

enum urn_counter
urn_cm_read(const uint8_t *mad, uint32_t sqpn, struct urn_cm_msg *msg)
{
	const struct kind *k;
	struct cm_wire w;

	memcpy(&w, mad, sizeof(w));
	memset(msg, 0, sizeof(*msg));
	msg->attr = rte_be_to_cpu_16(w.hdr.attr_id);
	msg->tid = rte_be_to_cpu_64(w.hdr.tid);
	msg->local_id = rte_be_to_cpu_32(w.ids.local_id);
	k = kind_of(msg->attr);
	if (w.hdr.mgmt_class != URN_MAD_CLASS_CM)
		return URN_C_DROP_MAD_CLASS;
	if (sqpn != URN_QPN_GSI)
		return URN_C_DROP_CM_SOURCE;
	if (w.hdr.class_version != URN_CM_CLASS_VERSION)
		return URN_C_DROP_CM_VERSION;
	if (w.hdr.method != URN_CM_METHOD_SEND || !k)
		return URN_C_DROP_MAD_METHOD;
	if (has_remote_id(msg->attr))
		msg->remote_id = rte_be_to_cpu_32(w.ids.remote_id);
	return k->read(&w, msg) ? URN_C_CM_RX : URN_C_DROP_CM_FIELD;
}
