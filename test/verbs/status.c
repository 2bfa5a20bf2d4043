/* SPDX-License-Identifier: BSD-3-Clause */
#include "status.h"

void
fails(struct rig *r, struct ibv_send_wr *wr, enum ibv_wc_status status, uint32_t vendor_err)
{
	struct ibv_send_wr next = {.wr_id = 99, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_wc wc;

	wr->wr_id = 7;
	wr->next = &next;
	rig_send_on(r->end[0].qp, wr); /* neither is signalled: requests that fail complete nevertheless */
	wc = rig_expect(r, 0, status);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.qp_num, r->end[0].qp->qp_num);
	assert_int_equal(wc.vendor_err, vendor_err);
	assert_int_equal(rig_expect(r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, 99);
	assert_int_equal(rig_state(r->end[0].qp), IBV_QPS_ERR);
	rig_quiet(r, 0);
}
