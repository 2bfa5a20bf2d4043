/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that an engine sends: those of operations, and replies to operations of peers. Both have
 * bounds of their own, so that peers who ask for much leave the engine's own operations alone, and
 * the other way round. A packet keeps its head until its flow has answered, and its tag until its
 * reply has come. The bytes behind the head stay in memory, and are checked and copied each time
 * that the flow makes a frame of them: memory that was deregistered, or whose region was removed,
 * is not read any more.
 */
#include "am/priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define TAG_SLOT 0xffffu /* bits of a tag that hold the slot */
_Static_assert(URN_AM_OUTS + URN_AM_REPLIES <= TAG_SLOT, "slots of packets");

static const struct urn_am_bound replies = {URN_AM_REPLIES, URN_AM_NODE_REPLIES,
					    URN_AM_KEEP_REPLIES};

/* Take a free packet. NULL: no memory; there is room for all that the callers' bounds allow */
static URN_FAST struct urn_am_out *
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
	if (likely(am->out_free != NULL)) /* the next one is taken soon */
		for (unsigned int i = 0; i < 4; i++)
			rte_prefetch0((const char *)am->out_free + i * RTE_CACHE_LINE_SIZE);
	memset(&o->msg, 0, sizeof(o->msg));
	o->msg.data = o->buf;
	o->tag = ++am->tags << 16 | o->slot;
	o->ep = NULL;
	o->flags = 0;
	o->from = URN_AM_FROM_HEAD;
	o->more = 0;
	return o;
}

URN_FAST struct urn_am_out *
urn_am_out_get(struct urn_am *am, struct urn_am_ep *ep)
{
	struct urn_tp_share *share = ep->user.source.share;
	struct urn_tp_user *user = urn_share_user(share);
	struct urn_am_out *o;

	if (ep->outs == URN_AM_EP_OUTS ||
	    !urn_fair_user_has(&am->fair_outs, URN_AM_OUTS - am->outs, share->am, user->am))
		return NULL;
	o = get(am);
	if (!o)
		return NULL;
	o->ep = ep;
	o->msg.owner = share;
	TAILQ_INSERT_TAIL(&ep->out, o, link);
	ep->outs++;
	share->am++;
	user->am++;
	am->outs++;
	return o;
}

uint8_t
urn_am_bucket(struct urn_am *am, const uint8_t node[16])
{
	uint32_t words[4];

	if (likely(memcmp(am->last, node, sizeof(am->last)) == 0)) /* packets come in bursts */
		return am->bucket;
	memcpy(am->last, node, sizeof(am->last));
	memcpy(words, node, sizeof(words));
	am->bucket = (uint8_t)(rte_jhash_32b(words, 4, (uint32_t)am->seed) % URN_AM_NODES);
	return am->bucket;
}

struct urn_am_out *
urn_am_reply_get(struct urn_am *am, const uint8_t node[16])
{
	uint8_t bucket = urn_am_bucket(am, node);
	struct urn_am_out *o;

	if (!urn_am_bound_take(&replies, &am->node[bucket], &am->replies, &am->kept))
		return NULL;
	o = get(am);
	if (unlikely(!o)) {
		urn_am_bound_give(&replies, &am->node[bucket], &am->replies, &am->kept);
		return NULL;
	}
	memcpy(o->node, node, sizeof(o->node));
	o->bucket = bucket;
	o->msg.owner = &am->replying;
	return o;
}

URN_FAST void
urn_am_out_put(struct urn_am *am, struct urn_am_out *o)
{
	if (o->ep) {
		TAILQ_REMOVE(&o->ep->out, o, link);
		o->ep->outs--;
		o->ep->user.source.share->am--;
		urn_share_user(o->ep->user.source.share)->am--;
		am->outs--;
	} else {
		urn_am_bound_give(&replies, &am->node[o->bucket], &am->replies, &am->kept);
		if (am->open == o)
			am->open = NULL;
	}
	o->ep = NULL;
	o->flags = 0;
	o->tag = 0;
	o->link.tqe_next = am->out_free;
	am->out_free = o;
}

URN_FAST struct urn_am_out *
urn_am_out_find(const struct urn_am *am, uint64_t tag)
{
	uint32_t slot = (uint32_t)tag & TAG_SLOT;
	struct urn_am_out *o = slot < am->outs_made ? am->out[slot] : NULL;

	return o && tag && o->tag == tag ? o : NULL;
}

URN_FAST void
urn_am_out_from(struct urn_am_out *o, enum urn_am_source from, uint64_t addr, uint64_t key)
{
	o->from = (uint8_t)from;
	o->addr = addr;
	o->key = key;
	o->msg.head = (uint8_t)(o->msg.len - o->len);
}

/* Copy bytes that peers may read. returns: false: they may not, any more */
static bool
gather_region(struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_am_out *o,
	      uint32_t off, uint32_t bytes, struct urn_flow_slice *to)
{
	struct urn_am_piece piece[URN_AM_PIECES];
	unsigned int n = 0;

	if (unlikely(urn_am_reach(tp, ep, o->key, o->addr + off, bytes, URN_AM_ACCESS_READ, piece,
				  &n) != URN_AM_DONE))
		return false;
	for (unsigned int i = 0; i < n; i++)
		urn_flow_slice_put(tp, to, piece[i].at, piece[i].len);
	return true;
}

URN_FAST bool
urn_am_out_gather(struct urn_tp *tp, const struct urn_am_out *o, uint32_t off, uint32_t bytes,
		  struct urn_flow_slice *to)
{
	const struct urn_am_ep *ep = o->ep ? o->ep : urn_am_find(urn_am_of(tp), o->msg.src_qid);
	const uint8_t *at;

	if (unlikely(!ep))
		return false; /* the endpoint that a reply is from has ended */
	/* The operation may have ended: the program may use its memory for what the target may not
	 * see, and a target that withholds acknowledgements gets no later bytes. */
	if (unlikely(o->ep && !(o->flags & URN_AM_OUT_REPLY)))
		return false;
	if (o->from == URN_AM_FROM_REGION)
		return gather_region(tp, ep, o, off, bytes, to);
	at = urn_am_mapped(tp, ep->pd, (uint32_t)o->key, o->addr + off, bytes, 0);
	if (likely(at))
		urn_flow_slice_put(tp, to, at, bytes);
	return at;
}

URN_FAST uint8_t
urn_am_out_send(struct urn_tp *tp, struct urn_am_out *o)
{
	uint8_t code;

	o->flags |= URN_AM_OUT_FLOW; /* the flow may answer within the call */
	code = urn_flow_send(tp, o->node, &o->msg);
	if (unlikely(code != URN_MSG_PENDING))
		o->flags &= (uint8_t)~URN_AM_OUT_FLOW;
	return code;
}
