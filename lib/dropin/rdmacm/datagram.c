/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams (RDMA_PS_UDP): a look-up (SIDR_REQ) asks for the queue pair that serves a port, and the
 * answer (SIDR_REP) names it with its Q_Key. There is no connection, and nothing to end.
 */
#include "dropin/rdmacm/rdmacm.h"

#include <string.h>

int
urn_cma_look_up(struct urn_cma_id *id, const struct rdma_conn_param *p, uint32_t *cm)
{
	const struct rdma_addr *a = &id->pub.route.addr;
	struct urn_abi_cm_connect c = {
		.service_id = urn_cm_service((uint16_t)id->pub.ps, urn_cma_addr_port(&a->dst_addr)),
		.sgid_index = id->sgid_index,
		.timeout = URN_CMA_TIMEOUT,
		.max_retries = URN_CMA_RETRIES,
		.traffic_class = id->tos,
		.data_len = URN_CM_IP_BYTES};

	memcpy(c.dgid, a->addr.ibaddr.dgid.raw, 16);
	urn_cma_write_addresses(id, c.data);
	if (p != NULL && p->private_data_len != 0) {
		memcpy(c.data + URN_CM_IP_BYTES, p->private_data, p->private_data_len);
		c.data_len += p->private_data_len;
	}
	return urn_cm_end_resolve(id->dev->end, &c, cm);
}

int
urn_cma_answer(struct urn_cma_id *id, const struct rdma_conn_param *p, const void *data,
	       uint32_t len)
{
	struct urn_abi_cm_accept a = {.status = URN_CM_SIDR_REJECT};

	if (p != NULL) {
		a.status = URN_CM_SIDR_VALID;
		a.qpn = id->pub.qp != NULL ? id->pub.qp->qp_num : p->qp_num;
		a.psn = RDMA_UDP_QKEY;
		data = p->private_data;
		len = p->private_data_len;
	}
	a.data_len = (uint8_t)len;
	if (len != 0)
		memcpy(a.data, data, len);
	return urn_cm_end_accept(id->dev->end, id->cm, &a);
}

void
urn_cma_answered(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	bool found = ev->reason == URN_CM_SIDR_VALID;
	struct urn_cma_event *e;

	id->state = found ? URN_CMA_UP : URN_CMA_OVER;
	e = urn_cma_post(id, found ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
			 ev->reason, ev->data, ev->data_len);
	if (e == NULL || !found)
		return;
	urn_cma_ah_attr(id, id->pub.route.addr.addr.ibaddr.dgid.raw, &e->pub.param.ud.ah_attr);
	e->pub.param.ud.qp_num = ev->qpn;
	e->pub.param.ud.qkey = ev->qkey;
}
