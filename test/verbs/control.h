/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the tests of the control path. */
#ifndef URN_TEST_CONTROL_H
#define URN_TEST_CONTROL_H

#include "rig.h"

#include <errno.h>
#include <string.h>

enum { MAX_PD = 4096, MAX_AH = 65536 }; /* control/adapter.h */

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* The call failed with errno value `want`, and the message has `word`. */
static inline void
control_refused(int err, int want, const char *word)
{
	assert_int_equal(err, want);
	assert_int_equal(errno, want);
	if (!strstr(urn_attach_error(), word))
		fail_msg("\"%s\" says nothing of \"%s\"", urn_attach_error(), word);
}

static inline struct ibv_qp *
control_small_qp(struct rig_end *end, uint32_t depth)
{
	struct ibv_qp_init_attr init = {.send_cq = end->cq,
					.recv_cq = end->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {depth, depth, 1, 1, 0}};

	return ibv_create_qp(end->pd, &init);
}

#endif
