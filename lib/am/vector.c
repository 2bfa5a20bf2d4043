/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectored writes and reads: a command for each piece, and one completion. */
#include "am/lock.h"

int
urn_rma_check_n(const struct urn_am_endpoint *ep, uint32_t n)
{
	if (n == 0 || n > ep->attr.operations)
		return urn_fail(EINVAL,
				"a vectored operation of this endpoint has 1 to %u pieces, not %u",
				ep->attr.operations, n);
	return 0;
}

/* Check all pieces. returns: 0, or EINVAL with its text */
static int
urn_rma_check_pieces(const struct urn_am_endpoint *ep, const struct urn_rma_vector *v)
{
	int err = urn_rma_check_n(ep, v->n);
	uint32_t i;

	for (i = 0; err == 0 && i < v->n; i++)
		err = urn_rma_check(v->pieces[i].remote, v->pieces[i].len, v->way);
	return err;
}

static URN_FAST int
urn_rma_do_issuev(struct urn_am_endpoint *ep, const struct urn_rma_vector *v, uint8_t kind)
{
	struct urn_am_wish w = {v->done, v->arg, v->counter, v->flags};
	struct urn_am_batch b = {.to = v->to, .key = v->key};
	int err = urn_rma_may(ep, v->flags);
	uint32_t i;

	if (err == 0)
		err = urn_rma_check_pieces(ep, v);
	if (err == 0)
		err = urn_rma_begin(ep, v->n, &w, &b);
	if (err != 0)
		return err;
	for (i = 0; i < v->n; i++) {
		const struct urn_rma_piece *p = &v->pieces[i];
		struct urn_abi_am_cmd *c = urn_rma_add(&b, NULL, p->len, NULL);

		c->op = kind;
		c->way = v->way;
		c->remote = p->remote;
		c->local = (uintptr_t)p->local;
		c->lkey = p->memory->lkey;
	}
	urn_rma_go(&b);
	return 0;
}

static int
urn_rma_issuev(struct urn_am_endpoint *ep, const struct urn_rma_vector *v, uint8_t kind)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = urn_rma_do_issuev(ep, v, kind);
	urn_am_leave(ep);
	return err;
}

int
urn_rma_writev(struct urn_am_endpoint *ep, const struct urn_rma_vector *v)
{
	return urn_rma_issuev(ep, v, URN_AM_WRITE);
}

int
urn_rma_readv(struct urn_am_endpoint *ep, const struct urn_rma_vector *v)
{
	return urn_rma_issuev(ep, v, URN_AM_READ);
}
