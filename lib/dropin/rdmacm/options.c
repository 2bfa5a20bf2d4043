/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of an id, and calls for which urnic has nothing: ECE. */
#include "dropin/rdmacm/rdmacm.h"

#include <string.h>

/* Set an option of level RDMA_OPTION_ID; the lock is held. returns: 0, or an errno value */
static int
set_id(struct urn_cma_id *id, int name, const void *val, size_t len)
{
	int on;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != sizeof(uint8_t))
			return EINVAL;
		id->tos = *(const uint8_t *)val;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(on))
			return EINVAL;
		memcpy(&on, val, sizeof(on));
		if (name == RDMA_OPTION_ID_REUSEADDR)
			id->reuse = on != 0;
		else
			id->afonly = on != 0;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(uint8_t) || *(const uint8_t *)val > 31)
			return EINVAL;
		id->ack_timeout = *(const uint8_t *)val;
		return 0;
	default:
		return ENOSYS;
	}
}

int
rdma_set_option(struct rdma_cm_id *pub, int level, int optname, void *optval, size_t optlen)
{
	int err = ENOSYS;

	if (pub == NULL || optval == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (level == RDMA_OPTION_ID)
		err = set_id(urn_cma_of(pub), optname, optval, optlen);
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(err);
}

/* ---- enhanced connection establishment: messages of urnic's carry none */

int
rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (pub == NULL || pub->qp != NULL || ece == NULL || ece->vendor_id == 0)
		return urn_cma_result(EINVAL);
	return urn_cma_result(EOPNOTSUPP);
}

int
rdma_get_remote_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (pub == NULL || pub->qp != NULL || ece == NULL)
		return urn_cma_result(EINVAL);
	memset(ece, 0, sizeof(*ece)); /* the peer sent none */
	return 0;
}

/* A refusal whose reason is ECE; the reason of this one is the program's. */
int
rdma_reject_ece(struct rdma_cm_id *pub, const void *data, uint8_t len)
{
	return rdma_reject(pub, data, len);
}
