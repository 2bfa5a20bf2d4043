/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable datagrams (--ud): queue pairs that are not connected, so each request has
 * a destination, each message comes behind a GRH, and lost messages are not repeated.
 */
#include "perf.h"

#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

#include <urnic/attach.h>

#define PORT_NUM 1u
#define QUIET_NS 200000000ull  /* quiet time after the sender's end: then the missing ones are lost */
#define GONE_NS 10000000000ull /* quiet time without an end: then the sender is gone */

static int
failed(const struct ibv_qp *qp, const char *what, struct urn_err *err)
{
	urn_err_set(err, "QP 0x%06x: %s: %s", qp->qp_num, what, urn_attach_error());
	return -1;
}

int
datagram_init(struct ibv_qp *qp, struct urn_err *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = PORT_NUM, .qkey = PERF_QKEY};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0)
		return 0;
	return failed(qp, "does not go to INIT", err);
}

int
datagram_connect(struct side *s, uint32_t n, const struct urn_ep_addr *own,
		 const struct urn_ep_addr *peer, const struct urn_ep_opts *o, struct urn_err *err)
{
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = PORT_NUM,
				 .grh = {.sgid_index = o->sgid_index, .hop_limit = 64}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp *qp = s->qp[n].qp;

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
		return failed(qp, "does not go to RTR", err);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = own->psn & 0xffffffu;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
		return failed(qp, "does not go to RTS", err);
	s->qp[n].peer_qpn = peer->qpn;
	if (s->ah != NULL) /* all datagrams have one destination */
		return 0;
	memcpy(to.grh.dgid.raw, peer->gid, 16);
	s->ah = ibv_create_ah(s->pd, &to);
	return s->ah != NULL ? 0 : failed(qp, "no handle of the other side's address", err);
}

bool
datagram_over(struct side *s, unsigned int work)
{
	uint64_t final = atomic_load_explicit(&s->run->final, memory_order_relaxed), now;

	if (s->received >= final)
		return true;
	if (work > 0 || ++s->quiet_turns % 64 != 1) {
		s->quiet_since = work > 0 ? 0 : s->quiet_since;
		return false;
	}
	now = urn_clock_ns();
	if (s->quiet_since == 0)
		s->quiet_since = now;
	if (final != UINT64_MAX)
		return now - s->quiet_since > QUIET_NS;
	/* Before the first datagram the other side may take any time. */
	if (s->received > 0 && s->peer == NULL && now - s->quiet_since > GONE_NS)
		run_fail(s->run, "no datagram has come for 10 seconds, and nobody said that it was "
				 "the last: "
				 "the other side is gone");
	return false;
}
