/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting: the calls that send a message to the peer, and the requests of peers. */
#include "dropin/rdmacm/rdmacm.h"

#include <string.h>
#include <sys/random.h>

static uint32_t
psn_new(void)
{
	uint32_t r = 0;

	return getrandom(&r, sizeof(r), 0) == sizeof(r) ? r & 0xffffff : 1;
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* Check parameters; without a queue pair they name one. room: bytes of private data; returns: 0, or
 * an errno value */
static int
check(const struct urn_cma_id *id, const struct rdma_conn_param *p, uint32_t room)
{
	if (id->pub.qp_type != IBV_QPT_RC && !urn_cma_datagrams(id))
		return EOPNOTSUPP;
	if (p == NULL)
		return id->pub.qp != NULL || (urn_cma_datagrams(id) && id->state == URN_CMA_ROUTE)
			       ? 0
			       : EINVAL;
	if (p->private_data_len > room || (p->private_data_len != 0 && p->private_data == NULL))
		return EINVAL;
	return 0;
}

/* ---- the client's side */

/* Take over what the program says; without parameters the device's most. */
static void
take_param(struct urn_cma_id *id, const struct rdma_conn_param *p)
{
	id->responder_resources =
		least(p != NULL ? p->responder_resources : RDMA_MAX_RESP_RES, id->dev->rd_atomic);
	id->initiator_depth =
		least(p != NULL ? p->initiator_depth : RDMA_MAX_INIT_DEPTH, id->dev->init_depth);
	id->retry_count = p != NULL ? p->retry_count & 7 : 7;
	id->rnr_retry = p != NULL ? p->rnr_retry_count & 7 : 7;
}

void
urn_cma_write_addresses(const struct urn_cma_id *id, uint8_t out[URN_CM_IP_BYTES])
{
	const struct rdma_addr *a = &id->pub.route.addr;
	struct urn_cm_ip ip = {.version = a->dst_addr.sa_family == AF_INET ? 4 : 6,
			       .port = urn_cma_addr_port(&a->src_addr)};
	union ibv_gid gid;

	(void)urn_cma_addr_to_gid(&a->src_addr, &gid);
	memcpy(ip.src, gid.raw, 16);
	(void)urn_cma_addr_to_gid(&a->dst_addr, &gid);
	memcpy(ip.dst, gid.raw, 16);
	urn_cm_ip_write(out, &ip);
}

static void
fill_request(const struct urn_cma_id *id, const struct rdma_conn_param *p,
	     struct urn_abi_cm_connect *c)
{
	const struct rdma_addr *a = &id->pub.route.addr;
	const struct ibv_qp *qp = id->pub.qp;

	*c = (struct urn_abi_cm_connect){
		.service_id = urn_cm_service((uint16_t)id->pub.ps, urn_cma_addr_port(&a->dst_addr)),
		.qpn = qp != NULL ? qp->qp_num : p->qp_num,
		.psn = id->psn,
		.sgid_index = id->sgid_index,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.retry_count = id->retry_count,
		.rnr_retry = id->rnr_retry,
		.flow_control = p != NULL && p->flow_control != 0,
		.srq = qp != NULL ? qp->srq != NULL : p->srq != 0,
		.mtu = id->dev->mtu,
		.timeout = URN_CMA_TIMEOUT,
		.max_retries = URN_CMA_RETRIES,
		.ack_timeout = id->ack_timeout,
		.traffic_class = id->tos,
		.data_len = URN_CM_IP_BYTES};
	memcpy(c->dgid, a->addr.ibaddr.dgid.raw, 16);
	urn_cma_write_addresses(id, c->data);
	if (p == NULL || p->private_data_len == 0)
		return;
	memcpy(c->data + URN_CM_IP_BYTES, p->private_data, p->private_data_len);
	c->data_len += p->private_data_len;
}

/* Send the REQ; the lock is held. returns: 0, or an errno value */
static int
ask(struct urn_cma_id *id, const struct rdma_conn_param *p, uint32_t *cm)
{
	struct urn_abi_cm_connect c;

	take_param(id, p);
	id->psn = psn_new();
	fill_request(id, p, &c);
	return urn_cm_end_connect(id->dev->end, &c, cm);
}

int
rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *p)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	uint32_t cm;
	int err = EINVAL;

	if (id == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (urn_cma_allows(id, URN_CMA_CALL_CONNECT))
		err = check(id, p, urn_cma_datagrams(id) ? URN_CMA_SIDR_DATA : URN_CMA_REQ_DATA);
	if (err == 0)
		err = urn_cma_datagrams(id) ? urn_cma_look_up(id, p, &cm) : ask(id, p, &cm);
	if (err == 0) {
		urn_cma_table_add(id, cm);
		id->state = URN_CMA_CONNECTING;
	}
	pthread_mutex_unlock(&urn_cma_lock);
	return err != 0 ? urn_cma_result(err) : urn_cma_complete(id);
}

static void
reject(struct urn_cma_id *id, const void *data, uint8_t len)
{
	struct urn_abi_cm_reject r = {.reason = URN_CM_REJ_CONSUMER, .data_len = len};

	id->state = URN_CMA_OVER;
	if (urn_cma_datagrams(id)) {
		(void)urn_cma_answer(id, NULL, data, len);
		return;
	}
	if (len != 0)
		memcpy(r.data, data, len);
	(void)urn_cm_end_reject(id->dev->end, id->cm, &r);
}

void
urn_cma_finish(struct urn_cma_event *e)
{
	struct urn_cma_id *id = e->id;
	int err;

	if (id->pub.qp == NULL || id->state != URN_CMA_REPLIED)
		return; /* the program brings its queue pair up itself, or the peer has left already
			 */
	id->responder_resources = least(id->responder_resources, id->peer.initiator_depth);
	id->initiator_depth = least(id->initiator_depth, id->peer.responder_resources);
	err = urn_cma_qp_up(id);
	if (err == 0)
		err = urn_cm_end_establish(id->dev->end, id->cm, NULL, 0);
	if (err == 0) {
		id->state = URN_CMA_UP;
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	reject(id, NULL, 0);
	e->pub.event = RDMA_CM_EVENT_CONNECT_ERROR;
	e->pub.status = -err;
}

int
rdma_establish(struct rdma_cm_id *pub)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err = EINVAL;

	if (id == NULL || pub->qp != NULL) /* with a queue pair the library establishes */
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (urn_cma_allows(id, URN_CMA_CALL_ESTABLISH))
		err = urn_cm_end_establish(id->dev->end, id->cm, NULL, 0);
	if (err == 0)
		id->state = URN_CMA_UP;
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(err);
}

/* ---- the server's side */

static void
fill_event(struct urn_cma_event *e, const struct urn_abi_cm_event *ev)
{
	struct rdma_conn_param *c = &e->pub.param.conn;

	if (ev->type != URN_CM_EVENT_REQUEST)
		return; /* datagrams: only the private data is told */
	/* The peer's values are given from this side's view, in the same way as the kernel gives
	 * them. */
	c->responder_resources = ev->initiator_depth;
	c->initiator_depth = ev->responder_resources;
	c->flow_control = ev->flow_control;
	c->retry_count = ev->retry_count;
	c->rnr_retry_count = ev->rnr_retry;
	c->srq = ev->srq;
	c->qp_num = ev->qpn;
}

/* Make the id of a request. returns: NULL: the request can't be served */
static struct urn_cma_id *
request_id(struct urn_cma_id *listener, struct urn_cma_dev *dev, const struct urn_abi_cm_event *ev)
{
	uint16_t port = urn_cma_addr_port(&listener->pub.route.addr.src_addr);
	union ibv_gid own, peer;
	struct urn_cma_id *id;
	struct urn_cm_ip ip;
	uint8_t index = 0;

	if (urn_cma_datagrams(listener) != (ev->type == URN_CM_EVENT_SIDR_REQUEST))
		return NULL;
	if (urn_cm_ip_read(ev->data, ev->data_len, &ip) != 0)
		return NULL;
	memcpy(own.raw, ev->own_gid, 16);
	memcpy(peer.raw, ev->gid, 16);
	id = urn_cma_dev_find(&own, &index) != dev
		     ? NULL
		     : urn_cma_id_new(listener->channel, listener->pub.context, listener->pub.ps);
	if (id == NULL)
		return NULL;
	id->state = URN_CMA_REQUESTED;
	id->pub.qp_type = listener->pub.qp_type;
	id->tos = listener->tos;
	id->listener = listener;
	id->psn = psn_new();
	id->peer = *ev;
	urn_cma_gid_to_addr(&own, port, &id->pub.route.addr.src_storage);
	urn_cma_gid_to_addr(&peer, ip.port, &id->pub.route.addr.dst_storage);
	memcpy(&id->pub.route.addr.addr.ibaddr.dgid, &peer, 16);
	if (urn_cma_id_attach(id, dev, index) == 0)
		return id;
	urn_cma_id_free(id);
	return NULL;
}

void
urn_cma_request(struct urn_cma_id *listener, struct urn_cma_dev *dev,
		const struct urn_abi_cm_event *ev)
{
	struct urn_cma_id *id = request_id(listener, dev, ev);
	struct urn_cma_event *e = NULL;

	if (id == NULL) {
		(void)urn_cm_end_destroy(dev->end, ev->id);
		return;
	}
	urn_cma_table_add(id, ev->id);
	id->responder_resources = least(ev->initiator_depth, dev->rd_atomic);
	id->initiator_depth = least(ev->responder_resources, dev->init_depth);
	/* A program may bring its own queue pair up before it accepts. */
	id->retry_count = ev->retry_count;
	id->rnr_retry = ev->rnr_retry;
	e = urn_cma_post(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, ev->data + URN_CM_IP_BYTES,
			 ev->data_len - (uint32_t)URN_CM_IP_BYTES);
	if (e != NULL)
		fill_event(e, ev);
	else
		urn_cma_id_free(id);
}

static void
fill_accept(const struct urn_cma_id *id, const struct rdma_conn_param *p,
	    struct urn_abi_cm_accept *a)
{
	const struct ibv_qp *qp = id->pub.qp;

	*a = (struct urn_abi_cm_accept){.qpn = qp != NULL ? qp->qp_num : p->qp_num,
					.psn = id->psn,
					.responder_resources = id->responder_resources,
					.initiator_depth = id->initiator_depth,
					.rnr_retry = p != NULL ? p->rnr_retry_count & 7 : 7,
					.flow_control = p != NULL && p->flow_control != 0,
					.srq = qp != NULL ? qp->srq != NULL : p->srq != 0,
					.data_len = p != NULL ? p->private_data_len : 0};
	if (a->data_len != 0)
		memcpy(a->data, p->private_data, a->data_len);
}

/* Take over what the program says, within what the peer and the device have. */
static void
take_accept(struct urn_cma_id *id, const struct rdma_conn_param *p)
{
	if (p != NULL && p->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = least(p->responder_resources, id->dev->rd_atomic);
	if (p != NULL && p->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = least(p->initiator_depth, id->initiator_depth);
}

/* Bring the queue pair up and send the REP; the lock is held. returns: 0, or an errno value */
static int
accept_connection(struct urn_cma_id *id, const struct rdma_conn_param *p)
{
	struct urn_abi_cm_accept a;
	int err = check(id, p, URN_CM_REP_DATA);

	if (err != 0)
		return err;
	take_accept(id, p);
	err = id->pub.qp != NULL ? urn_cma_qp_up(id) : 0;
	if (err != 0)
		return err;
	fill_accept(id, p, &a);
	err = urn_cm_end_accept(id->dev->end, id->cm, &a);
	if (err == 0)
		id->state = URN_CMA_ACCEPTED;
	else if (id->pub.qp != NULL)
		urn_cma_qp_error(id);
	return err;
}

/* Tell a look-up the queue pair; no event follows. The lock is held. returns: 0, or an errno value
 */
static int
accept_datagrams(struct urn_cma_id *id, const struct rdma_conn_param *p)
{
	static const struct rdma_conn_param none;
	int err = check(id, p, URN_CM_SIDR_REP_DATA);

	if (err == 0)
		err = urn_cma_answer(id, p != NULL ? p : &none, NULL, 0);
	if (err == 0)
		id->state = URN_CMA_UP;
	return err;
}

int
rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *p)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err = EINVAL;

	if (id == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (urn_cma_allows(id, URN_CMA_CALL_ACCEPT))
		err = urn_cma_datagrams(id) ? accept_datagrams(id, p) : accept_connection(id, p);
	pthread_mutex_unlock(&urn_cma_lock);
	if (err == 0 && urn_cma_datagrams(id))
		return 0;
	return err != 0 ? urn_cma_result(err) : urn_cma_complete(id);
}

int
rdma_reject(struct rdma_cm_id *pub, const void *data, uint8_t len)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err = EINVAL;

	if (id == NULL || len > (urn_cma_datagrams(id) ? URN_CM_SIDR_REP_DATA : URN_CM_REJ_DATA) ||
	    (len != 0 && data == NULL))
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (urn_cma_allows(id, URN_CMA_CALL_REJECT)) {
		reject(id, data, len);
		err = 0;
	}
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(err);
}

int
rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err = 0;

	if (id == NULL || event != IBV_EVENT_COMM_EST)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (!urn_cma_allows(id, URN_CMA_CALL_NOTIFY) || urn_cma_datagrams(id))
		err = EINVAL;
	else if (id->state == URN_CMA_ACCEPTED)
		err = urn_cm_end_establish(id->dev->end, id->cm, NULL, 0);
	if (err == 0 && id->state == URN_CMA_ACCEPTED) {
		id->state = URN_CMA_UP;
		(void)urn_cma_post(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	}
	pthread_mutex_unlock(&urn_cma_lock);
	/* ENOTCONN: the RTU came in the meantime, and its event tells the same. */
	return urn_cma_result(err == ENOTCONN ? 0 : err);
}

/* ---- both sides */

/* Send the DREQ or DREP. returns: true when an event will come, or is there */
static bool
disconnect(struct urn_cma_id *id)
{
	int err = urn_cm_end_disconnect(id->dev->end, id->cm, NULL, 0);
	bool left = id->state == URN_CMA_LEFT;

	if (left)
		id->state = URN_CMA_OVER;
	else if (err == 0)
		id->state = URN_CMA_LEAVING;
	return left ? !TAILQ_EMPTY(&id->channel->queue) : err == 0;
}

int
rdma_disconnect(struct rdma_cm_id *pub)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	bool event = false;
	int err = 0;

	if (id == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (urn_cma_allows(id, URN_CMA_CALL_DISCONNECT) && !urn_cma_datagrams(id)) {
		if (pub->qp != NULL)
			urn_cma_qp_error(id);
		if (id->state != URN_CMA_LEAVING && id->state != URN_CMA_OVER)
			event = disconnect(id);
	} else {
		err = EINVAL;
	}
	pthread_mutex_unlock(&urn_cma_lock);
	return err != 0 ? urn_cma_result(err) : event ? urn_cma_complete(id) : 0;
}
