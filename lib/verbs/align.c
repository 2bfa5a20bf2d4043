/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes on the peer's cache lines, and counts of stores (urnic/align.h). */
#include "verbs/front.h"

#include <errno.h>

int
urn_qp_align(struct ibv_qp *qp, uint32_t line)
{
	if (qp->qp_type != IBV_QPT_RC)
		return urn_fail(EINVAL, "only the writes of an RC queue pair can be aligned");
	if (line > URN_LINE_PEER && line != 64 && line != 128 && line != 256)
		return urn_fail(EINVAL, "no cache line has %u bytes: 64, 128 or 256", line);
	if (urn_ops(qp->context)->align_qp == NULL)
		return urn_unsupported("aligning the writes of a queue pair of this device");
	return urn_ops(qp->context)->align_qp(qp, line);
}

int
urn_mr_stores(struct ibv_mr *mr, struct urn_stores *stores)
{
	if (urn_ops(mr->context)->query_stores == NULL)
		return urn_unsupported("counting the stores into a region of this device");
	return urn_ops(mr->context)->query_stores(mr, stores);
}
