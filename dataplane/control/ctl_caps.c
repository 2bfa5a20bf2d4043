/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of queue pairs that programs may ask for. */
#include "control/ctl.h"

int
urn_ctl_check_caps(const struct urn_client *c, const struct urn_abi_req *req,
		   struct urn_abi_rep *rep)
{
	const struct urn_abi_qp_cap *cap = &req->create_qp.cap;
	const char *name = c->adapter->cfg.name;

	if (cap->max_send_wr > URN_ABI_MAX_WR || cap->max_recv_wr > URN_ABI_MAX_WR)
		return urn_ctl_fail(rep, EINVAL, "%s: a queue has at most %u requests, not %u",
				    name, URN_ABI_MAX_WR,
				    cap->max_send_wr > cap->max_recv_wr ? cap->max_send_wr
									: cap->max_recv_wr);
	if (cap->max_send_sge > URN_ABI_MAX_SGE || cap->max_recv_sge > URN_ABI_MAX_SGE)
		return urn_ctl_fail(rep, EINVAL, "%s: a request has at most %u elements, not %u",
				    name, URN_ABI_MAX_SGE,
				    cap->max_send_sge > cap->max_recv_sge ? cap->max_send_sge
									  : cap->max_recv_sge);
	if (cap->max_inline > URN_ABI_MAX_INLINE)
		return urn_ctl_fail(rep, EINVAL, "%s: at most %u bytes inline, not %u", name,
				    URN_ABI_MAX_INLINE, cap->max_inline);
	return 0;
}
