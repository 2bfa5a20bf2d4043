/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that an engine sends: those of operations, and replies to operations of peers. Both have
 * bounds of their own, so that peers who ask for much leave the engine's own operations alone, and
 * the other way round. A packet keeps its bytes until its flow has answered, and its tag until its
 * reply has come.
 */
#include "am/priv.h"
#include "transport/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define TAG_SLOT 0xffffu /* bits of a tag that hold the slot */
_Static_assert(URN_AM_OUTS + URN_AM_REPLIES <= TAG_SLOT, "slots of packets");

/* Take a free packet. NULL: no memory; there is room for all that the callers' bounds allow */
static struct urn_am_out *
get(struct urn_am *am)
{
	struct urn_am_out *o = am->out_free;

	if (o) {
		am->out_free = o->link.tqe_next;
	} else {
		o = malloc(sizeof(*o)); /* once for each packet under way at the same time */
		if (!o)
			return NULL;
		o->slot = am->outs_made;
		am->out[am->outs_made++] = o;
	}
	memset(&o->msg, 0, sizeof(o->msg));
	o->msg.data = o->buf;
	o->tag = ++am->tags << 16 | o->slot;
	o->ep = NULL;
	o->flags = 0;
	return o;
}

struct urn_am_out *
urn_am_out_get(struct urn_am *am, struct urn_am_ep *ep)
{
	struct urn_tp_share *share = ep->user.source.share;
	struct urn_am_out *o;

	if (ep->outs == URN_AM_EP_OUTS || !urn_pool_has(URN_AM_OUTS - am->outs, share->am))
		return NULL;
	o = get(am);
	if (!o)
		return NULL;
	o->ep = ep;
	o->msg.owner = share;
	TAILQ_INSERT_TAIL(&ep->out, o, link);
	ep->outs++;
	share->am++;
	am->outs++;
	return o;
}

uint8_t
urn_am_bucket(const struct urn_am *am, const uint8_t node[16])
{
	uint32_t words[4];

	memcpy(words, node, sizeof(words));
	return (uint8_t)(rte_jhash_32b(words, 4, (uint32_t)am->seed) % URN_AM_NODES);
}

struct urn_am_out *
urn_am_reply_get(struct urn_am *am, const uint8_t node[16])
{
	uint8_t bucket = urn_am_bucket(am, node);
	struct urn_am_out *o;

	if (am->replies == URN_AM_REPLIES || am->node[bucket] == URN_AM_NODE_REPLIES)
		return NULL;
	o = get(am);
	if (!o)
		return NULL;
	memcpy(o->node, node, sizeof(o->node));
	o->bucket = bucket;
	o->msg.owner = am;
	am->node[bucket]++;
	am->replies++;
	return o;
}

void
urn_am_out_put(struct urn_am *am, struct urn_am_out *o)
{
	if (o->ep) {
		TAILQ_REMOVE(&o->ep->out, o, link);
		o->ep->outs--;
		o->ep->user.source.share->am--;
		am->outs--;
	} else {
		am->node[o->bucket]--;
		am->replies--;
	}
	o->ep = NULL;
	o->flags = 0;
	o->tag = 0;
	o->link.tqe_next = am->out_free;
	am->out_free = o;
}

struct urn_am_out *
urn_am_out_find(const struct urn_am *am, uint64_t tag)
{
	uint32_t slot = (uint32_t)tag & TAG_SLOT;
	struct urn_am_out *o = slot < am->outs_made ? am->out[slot] : NULL;

	return o && tag && o->tag == tag ? o : NULL;
}

uint8_t
urn_am_out_send(struct urn_tp *tp, struct urn_am_out *o)
{
	uint8_t code;

	o->flags |= URN_AM_OUT_FLOW; /* the flow may answer within the call */
	code = urn_flow_send(tp, o->node, &o->msg);
	if (unlikely(code != URN_MSG_PENDING))
		o->flags &= (uint8_t)~URN_AM_OUT_FLOW;
	return code;
}
