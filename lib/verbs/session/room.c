/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a queue pair that may have a session: rings of its requests, and what adapters read and
 * write, which is on each adapter. */
#include "abi/queue.h"
#include "attach/fail.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>

int
urn_sv_room_below(struct urn_sv_qp *q, uint32_t adapter)
{
	struct ibv_pd *pd = q->pd->below[adapter];

	if (pd == NULL)
		return urn_fail(EIO, "an adapter of the virtual device is away");
	q->memory_mr[adapter] = ibv_reg_mr(pd, q->memory, q->memory_bytes, IBV_ACCESS_LOCAL_WRITE);
	return q->memory_mr[adapter] != NULL ? 0 : errno;
}

/* Inline data is in the queue pair's memory, and has a key like the program's. returns: 0 or ENOMEM
 * with its text */
static int
urn_sv_room_name(struct urn_sv_qp *q)
{
	uint32_t key[URN_SV_ADAPTERS];

	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		key[i] = q->memory_mr[i] != NULL ? q->memory_mr[i]->lkey : URN_SV_NO_KEY;
	q->memory_key = urn_sv_name(q->pd, q->memory_mr[0]);
	if (urn_sv_keys_put(&q->pd->local, q->memory_key, key))
		return 0;
	q->memory_key = 0;
	return urn_fail(ENOMEM, "too many regions and queue pairs of a domain");
}

/* Make the memory that the adapters read and write. returns: 0 or an errno value with its text */
static int
urn_sv_room(struct urn_sv_qp *q)
{
	size_t bytes;

	q->send_room =
		(uint32_t)sizeof(struct urn_sess_wire) + ((q->cap.max_inline_data + 31) & ~31u);
	q->sends_at = URN_SV_AT_REST;
	q->receives_at = q->sends_at + (size_t)q->wrs * q->send_room;
	bytes = q->receives_at + q->rwrs * sizeof(struct urn_sess_wire);
	q->memory_bytes = bytes;
	q->memory = urn_alloc(bytes);
	if (q->memory == NULL)
		return urn_fail(ENOMEM, "no memory for a queue pair");
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int err = urn_sv_room_below(q, i);

		if (err != 0 && (err != EIO || i == 0))
			return err;
	}
	return urn_sv_room_name(q);
}

int
urn_sv_rings(struct urn_sv_qp *q)
{
	/* A write with immediate data is two requests. */
	q->wrs = urn_sv_power(2 * q->cap.max_send_wr);
	q->rwrs = urn_sv_power(q->cap.max_recv_wr);
	q->swr = calloc(q->wrs, sizeof(*q->swr));
	q->wr = calloc(q->wrs, sizeof(*q->wr));
	q->sge = calloc((size_t)q->wrs * q->cap.max_send_sge, sizeof(*q->sge));
	q->rwr = calloc(q->rwrs, sizeof(*q->rwr));
	q->recvs = q->rwrs;
	/* A queue pair may have so many taken and not completed. */
	if (q->srq != NULL)
		q->recvs = q->srq->size < URN_ABI_TAKEN ? q->srq->size : URN_ABI_TAKEN;
	q->recv = calloc(q->recvs, sizeof(*q->recv));
	q->recv_sge = calloc((size_t)q->rwrs * (q->cap.max_recv_sge + 1), sizeof(*q->recv_sge));
	if (q->swr == NULL || q->wr == NULL || q->sge == NULL || q->rwr == NULL ||
	    q->recv == NULL || q->recv_sge == NULL)
		return urn_fail(ENOMEM, "no memory for a queue pair");
	return urn_sv_room(q);
}

void
urn_sv_rings_free(struct urn_sv_qp *q)
{
	if (q->memory_key != 0)
		urn_sv_keys_drop(&q->pd->local, q->memory_key);
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (q->memory_mr[i] != NULL)
			(void)ibv_dereg_mr(q->memory_mr[i]);
	urn_free(q->memory);
	free(q->swr);
	free(q->wr);
	free(q->sge);
	free(q->rwr);
	free(q->recv);
	free(q->recv_sge);
	free(q->batch);
}
