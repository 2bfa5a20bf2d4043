/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes and peers of an outbox (am/outbox.h). */
#include "am/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and ending */

/* Long lanes of an outbox whose longest messages have `size` bytes. */
static uint32_t
long_lanes(uint32_t size, uint32_t lanes)
{
	uint32_t n = URN_AM_LONG_BYTES / size;

	n = n < URN_AM_LONG_MIN ? URN_AM_LONG_MIN : n;
	return n < lanes / 2 ? n : lanes / 2;
}

static int
make_lanes(struct urn_am_outbox *box, const struct urn_am_outbox_attr *attr)
{
	bool alike = attr->size <= URN_AM_ALIKE_BYTES;
	uint32_t large = alike ? 0 : long_lanes(attr->size, attr->lanes), i;
	int err = 0;

	box->size = attr->size;
	box->short_size = alike ? attr->size : (uint32_t)URN_AM_SHORT_BYTES;
	box->most = attr->most;
	for (i = 0; i < attr->lanes && err == 0; i++) {
		struct urn_am_lane *l = &box->lane[i];
		struct urn_msg_attr a = {.vector = attr->vector};

		l->index = (uint8_t)i;
		l->large = i < large;
		a.send_size = l->large ? box->size : box->short_size;
		err = urn_msg_set_init(&l->set, attr->dev, &a);
		if (err != 0)
			break;
		box->lanes++;
		box->room += 2 * (uint64_t)a.send_size;
		box->idle |= UINT64_C(1) << i;
		box->large |= (uint64_t)l->large << i;
		box->idle_n[l->large]++;
	}
	return err;
}

/* Make the table of peers: each has a request, a lane or a parked message, but for one that is
 * made just now; and each may have a node of its own. returns: 0, or ENOMEM with its text */
static int
make_peers(struct urn_am_outbox *box, const struct urn_am_outbox_attr *attr)
{
	uint32_t i, buckets = 64;

	box->peers = (attr->parked + attr->lanes + 1) * (attr->nodes ? 2 : 1);
	while (buckets < box->peers)
		buckets *= 2;
	box->mask = buckets - 1;
	box->peer = calloc(box->peers, sizeof(*box->peer));
	box->bucket = malloc(buckets * sizeof(*box->bucket));
	if (box->peer == NULL || box->bucket == NULL)
		return urn_fail(ENOMEM, "no memory for the peers of an endpoint");
	if (attr->nodes) {
		box->known =
			calloc((size_t)URN_AM_KNOWN_SETS * URN_AM_KNOWN_WAYS, sizeof(*box->known));
		if (box->known == NULL)
			return urn_fail(ENOMEM, "no memory for the peers of an endpoint");
	}
	for (i = 0; i < buckets; i++)
		box->bucket[i] = URN_AM_NO_PEER;
	for (i = 0; i < box->peers; i++)
		box->peer[i].next = i + 1;
	box->peer[box->peers - 1].next = URN_AM_NO_PEER;
	return 0;
}

int
urn_am_outbox_init(struct urn_am_outbox *box, const struct urn_am_outbox_attr *attr)
{
	int err;

	box->seed = attr->seed;
	box->parked_max = attr->parked;
	box->nodes = attr->nodes;
	box->last = box->waiting = box->waiting_end = URN_AM_NO_PEER;
	err = make_peers(box, attr);
	return err != 0 ? err : make_lanes(box, attr);
}

void
urn_am_outbox_fini(struct urn_am_outbox *box)
{
	uint32_t i;

	for (i = 0; i < box->lanes; i++)
		urn_msg_set_fini(&box->lane[i].set);
	for (i = 0; box->peer != NULL && i < box->peers; i++)
		while (box->peer[i].first != NULL)
			urn_am_unpark(box, box->peer[i].first);
	free(box->peer);
	free(box->bucket);
	free(box->known);
}

/* ---- peers */

static uint64_t
hash_of(const struct urn_am_outbox *box, const uint8_t node[16], uint64_t qid)
{
	uint64_t w[2], h;

	memcpy(w, node, sizeof(w));
	h = (w[0] ^ box->seed) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 32 ^ w[1]) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 32 ^ qid) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 32;
}

static uint32_t *
bucket_of(const struct urn_am_outbox *box, uint64_t hash)
{
	return &box->bucket[(hash >> 32) & box->mask];
}

static bool
is_peer(const struct urn_am_peer *p, const uint8_t node[16], uint64_t qid, bool whole)
{
	return p->qid == qid && p->whole == whole && memcmp(p->node, node, sizeof(p->node)) == 0;
}

/* The peer of a node and a queue; NULL: there is none. whole: the node itself; qid is 0 then */
static struct urn_am_peer *
find_peer(struct urn_am_outbox *box, const uint8_t node[16], uint64_t qid, bool whole)
{
	uint32_t i = box->last;

	if (i != URN_AM_NO_PEER && is_peer(&box->peer[i], node, qid, whole))
		return &box->peer[i];
	for (i = *bucket_of(box, hash_of(box, node, qid)); i != URN_AM_NO_PEER;
	     i = box->peer[i].next)
		if (is_peer(&box->peer[i], node, qid, whole)) {
			box->last = i;
			return &box->peer[i];
		}
	return NULL;
}

/* Make a peer without users; NULL: no place. */
static struct urn_am_peer *
make_peer(struct urn_am_outbox *box, const uint8_t node[16], uint64_t qid, bool whole)
{
	uint32_t *bucket, i = box->free;
	struct urn_am_peer *p;

	if (i == URN_AM_NO_PEER)
		return NULL;
	p = &box->peer[i];
	box->free = p->next;
	memset(p, 0, sizeof(*p));
	memcpy(p->node, node, sizeof(p->node));
	p->qid = qid;
	p->whole = whole;
	p->burst = box->most;
	p->hash = hash_of(box, node, qid);
	bucket = bucket_of(box, p->hash);
	p->next = *bucket;
	*bucket = box->last = i;
	return p;
}

/* Make the peer of a queue, with its node if there is none; NULL: no place. */
static struct urn_am_peer *
make_queue(struct urn_am_outbox *box, const uint8_t node[16], uint64_t qid)
{
	struct urn_am_peer *above = find_peer(box, node, 0, true), *p;

	if (above == NULL)
		above = make_peer(box, node, 0, true);
	if (above == NULL)
		return NULL;
	p = make_peer(box, node, qid, false);
	if (p == NULL) {
		urn_am_peer_put(box, above);
		return NULL;
	}
	p->above = above;
	above->users++;
	return p;
}

URN_FAST struct urn_am_peer *
urn_am_peer_get(struct urn_am_outbox *box, const uint8_t node[16], uint64_t qid)
{
	struct urn_am_peer *p = find_peer(box, node, qid, false);

	if (p != NULL)
		return p;
	return box->nodes ? make_queue(box, node, qid) : make_peer(box, node, qid, false);
}

/* Forget a peer. */
static void
forget(struct urn_am_outbox *box, struct urn_am_peer *p)
{
	uint32_t i = urn_am_peer_index(box, p), *at = bucket_of(box, p->hash);

	while (*at != i)
		at = &box->peer[*at].next;
	*at = p->next;
	p->next = box->free;
	box->free = i;
	if (box->last == i)
		box->last = URN_AM_NO_PEER;
}

URN_FAST void
urn_am_peer_put(struct urn_am_outbox *box, struct urn_am_peer *p)
{
	struct urn_am_peer *above = p->above;

	if (p->users != 0)
		return;
	forget(box, p);
	if (above != NULL && --above->users == 0)
		forget(box, above);
}

/* ---- lanes */

URN_FAST struct urn_am_lane *
urn_am_lane_take(struct urn_am_outbox *box, struct urn_am_peer *p, uint32_t size)
{
	bool large = size > box->short_size;
	uint64_t idle = box->idle & (large ? box->large : ~box->large);
	struct urn_am_lane *l = &box->lane[__builtin_ctzll(idle)];

	box->idle &= ~(UINT64_C(1) << l->index);
	box->idle_n[large]--;
	p->lanes[large]++;
	if (p->above != NULL)
		p->above->lanes[large]++;
	p->users++;
	urn_am_peer_weighs(box, p, size);
	l->m.number = l->m.until = 0;
	l->m.off = 0;
	l->m.answers = 0;
	l->m.code = 0;
	l->m.again = false;
	l->m.peer = urn_am_peer_index(box, p);
	l->m.bytes = size;
	return l;
}

URN_FAST void
urn_am_lane_give(struct urn_am_outbox *box, struct urn_am_lane *l)
{
	struct urn_am_peer *p = &box->peer[l->m.peer];

	box->idle |= UINT64_C(1) << l->index;
	box->idle_n[l->large]++;
	p->lanes[l->large]--;
	if (p->above != NULL)
		p->above->lanes[l->large]--;
	urn_am_peer_lightens(box, p, l->m.bytes);
	urn_am_peer_leave(box, p);
}

URN_FAST void
urn_am_lane_send(struct urn_am_outbox *box, struct urn_am_lane *l)
{
	l->seq = urn_msg_set_ring(&l->set, &l->m.to, l->m.off, l->m.len);
	box->under_way[(box->head + box->busy++) % URN_AM_LANES_MAX] = l->index;
}

URN_FAST struct urn_am_lane *
urn_am_lane_ended(struct urn_am_outbox *box, uint32_t *left, uint32_t *misses, uint8_t *code)
{
	/* Lanes are given back when they are needed. */
	uint32_t most = box->idle_n[0] >= box->lanes / 4 ? 1 : URN_AM_MISSES;

	/* Nobody with parked messages is taken for silent whose answer is there. */
	if (box->waiting != URN_AM_NO_PEER)
		most = URN_AM_LANES_MAX;
	while (*left > 0 && *misses < most) {
		struct urn_am_lane *l = &box->lane[box->under_way[box->head % URN_AM_LANES_MAX]];

		*code = urn_msg_set_answer(&l->set, l->seq);
		--*left;
		box->head++;
		if (*code != URN_MSG_PENDING) {
			box->busy--;
			return l;
		}
		/* Others may have theirs, and the next look begins with them. */
		box->under_way[(box->head + box->busy - 1) % URN_AM_LANES_MAX] = l->index;
		++*misses;
	}
	return NULL;
}
