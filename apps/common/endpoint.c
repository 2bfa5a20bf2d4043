/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/endpoint.h"

#include <string.h>

#include <urnic/attach.h>
#include <urnic/cm.h>

#define PORT_NUM 1u
#define PSN_MASK 0xffffffu

/* The dataplane's message about the call that just failed, or the meaning of rc. */
static const char *
reason(int rc)
{
	const char *why = urn_attach_error();

	return why[0] != '\0' ? why : strerror(rc);
}

void
urn_ep_opts_default(struct urn_ep_opts *o)
{
	*o = (struct urn_ep_opts){
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
	};
}

int
urn_ep_init(struct ibv_qp *qp, unsigned int access, struct urn_err *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = PORT_NUM,
		.qp_access_flags = access,
	};
	int rc = ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (rc == 0)
		return 0;
	urn_err_set(err, "QP 0x%06x does not go to INIT with access 0x%x: %s", qp->qp_num, access,
		    reason(rc));
	return -1;
}

int
urn_ep_local(struct ibv_qp *qp, uint32_t psn, uint8_t sgid_index, struct urn_ep_addr *out,
	     struct urn_err *err)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	int rc = ibv_query_port(qp->context, PORT_NUM, &port);

	if (rc != 0) {
		urn_err_set(err, "the adapter of QP 0x%06x does not tell its MTU: %s", qp->qp_num,
			    reason(rc));
		return -1;
	}
	if (ibv_query_gid(qp->context, PORT_NUM, sgid_index, &gid) != 0) {
		urn_err_set(err, "the adapter of QP 0x%06x has no GID %u; give it an IP address",
			    qp->qp_num, sgid_index);
		return -1;
	}
	memset(out, 0, sizeof(*out));
	out->qpn = qp->qp_num;
	out->psn = psn & PSN_MASK;
	out->mtu_code = port.active_mtu;
	memcpy(out->gid, gid.raw, sizeof(out->gid));
	return 0;
}

static uint32_t
smaller_mtu(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a | b;
	return a < b ? a : b;
}

int
urn_ep_connect(struct ibv_qp *qp, const struct urn_ep_addr *local,
	       const struct urn_ep_addr *remote, const struct urn_ep_opts *o, struct urn_err *err)
{
	uint32_t mtu = smaller_mtu(smaller_mtu(local->mtu_code, remote->mtu_code), o->mtu_code);
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)mtu,
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn & PSN_MASK,
		.max_dest_rd_atomic = o->max_dest_rd_atomic,
		.min_rnr_timer = o->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT_NUM,
			    .grh = {.sgid_index = o->sgid_index, .hop_limit = 64}},
	};
	const struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = local->psn & PSN_MASK,
		.timeout = o->timeout,
		.retry_cnt = o->retry_cnt,
		.rnr_retry = o->rnr_retry,
		.max_rd_atomic = o->max_rd_atomic,
	};
	int rc;

	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) {
		urn_err_set(err, "QP 0x%06x cannot use MTU code %u; codes 1 to 5 mean 256 to 4096",
			    qp->qp_num, mtu);
		return -1;
	}
	memcpy(rtr.ah_attr.grh.dgid.raw, remote->gid, sizeof(remote->gid));
	rc = urn_cm_qp_ready(qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
			     &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc == 0)
		return 0;
	if (qp->state == IBV_QPS_RTR)
		urn_err_set(err, "QP 0x%06x does not go to RTS: %s", qp->qp_num, reason(rc));
	else
		urn_err_set(err, "QP 0x%06x does not go to RTR towards QP 0x%06x: %s", qp->qp_num,
			    remote->qpn, reason(rc));
	return -1;
}
