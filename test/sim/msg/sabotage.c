/* SPDX-License-Identifier: BSD-3-Clause */
/* Sabotage: imitates bugs of a broken product, to test that the oracle notices. */
#include "msgsim.h"

#include "transport/flow_rest.h"

/* X(id, name, text) */
/* clang-format off */
#define MS_SABOTAGES(X) \
	X(BITMAP, "bitmap", "a flow at rest forgets which packets came ahead") \
	X(EPOCH, "epoch", "a flow at rest forgets which packets came") \
	X(CODES, "codes", "a flow at rest forgets refusals")
/* clang-format on */

enum {
	NOTHING,
#define X(id, name, text) id,
	MS_SABOTAGES(X)
#undef X
		COUNT_OF,
};

static const struct {
	const char *name, *text;
} names[COUNT_OF] = {
#define X(id, name, text) [id] = {name, text},
	MS_SABOTAGES(X)
#undef X
};

const char *
ms_sabotage_name(unsigned int i, const char **text)
{
	if (!i || i >= COUNT_OF)
		return NULL;
	*text = names[i].text;
	return names[i].name;
}

static void
spoil(struct urn_flows *fl, struct urn_flow_rest *r, unsigned int what)
{
	switch (what) {
	case BITMAP:
		memset(r->bitmap, 0, sizeof(r->bitmap));
		break;
	case EPOCH:
		r->rx_epoch = 0;
		break;
	case CODES:
		if (r->refusals)
			urn_flows_put_refusals(fl, r->refusals);
		r->refusals = NULL;
		break;
	}
}

void
ms_sabotage_turn(struct ms_node *n)
{
	struct urn_flow_rest *r;

	if (!n->w->sabotage)
		return;
	TAILQ_FOREACH(r, &n->tp->flows->resting, queue)
		spoil(n->tp->flows, r, n->w->sabotage);
}
