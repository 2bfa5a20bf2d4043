/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference model, memory: an image of each node's memory, to which the
 * effects of requests are applied in the order posted.
 */
#include "model_priv.h"

#include "rng.h"

#include <stdlib.h>

/* Take bytes over into the image: the program or a placed message wrote them. */
static void
take_over(struct model *m, unsigned int node, uint32_t off, uint32_t len)
{
	memcpy(m->node[node].image + off, m->node[node].ram + off, len);
}

static bool
covers(const struct model_request *r, uint32_t at)
{
	return at - r->remote < r->len;
}

/* True when a request of q from `from` on, up to the first that is fenced, may have written this value to the byte. */
static bool
later_made(const struct mqp *q, uint32_t from, bool fences, uint32_t at, uint8_t value)
{
	for (uint32_t i = from; i < q->n; i++) {
		const struct model_request *r = &q->req[i].r;

		if (fences && r->fence)
			return false;
		if (model_is_write(r) && covers(r, at) && sim_byte(r->seed, at - r->remote) == value)
			return true;
		if (model_is_atomic(r) && covers(r, at))
			return true; /* words are judged whole, not by their bytes */
	}
	return false;
}

/* ---- requests that are complete */

/* Verdict on the bytes that a READ returned: the peer's, at the READ's turn or later. */
static const char *
check_read(struct model *m, struct mqp *q, uint32_t i)
{
	struct mreq *w = &q->req[i];
	const struct model_request *r = &w->r;
	unsigned int peer = model_peer(m, q)->node;
	const uint8_t *got = m->node[q->node].ram + r->local;
	const uint8_t *want = w->want ? w->want : m->node[peer].image + r->remote;

	if (r->len && memcmp(got, want, r->len) != 0)
		for (uint32_t b = 0; b < r->len; b++)
			if (got[b] != want[b] && !later_made(q, i + 1, true, r->remote + b, got[b]))
				return model_say(m, "byte %u of a READ of %u bytes is 0x%02x, not 0x%02x",
						 b, r->len, got[b], want[b]);
	take_over(m, q->node, r->local, r->len);
	free(w->want);
	w->want = NULL;
	return NULL;
}

static const char *
check_count(struct model *m, struct mqp *q, uint64_t got)
{
	struct mnode *n = &m->node[model_peer(m, q)->node];

	if (got >= n->count_posted)
		return model_say(m, "a shared counter was %llu, with %u additions posted",
				 (unsigned long long)got, n->count_posted);
	if (n->counted[got])
		return model_say(m, "two additions to a shared counter found it at %llu",
				 (unsigned long long)got);
	n->counted[got] = 1;
	n->count_done++;
	return NULL;
}

static const char *
check_atomic(struct model *m, struct mqp *q, uint32_t i)
{
	struct mreq *w = &q->req[i];
	uint64_t got;

	memcpy(&got, m->node[q->node].ram + w->r.local, 8);
	take_over(m, q->node, w->r.local, 8);
	if (w->r.op == MODEL_COUNT)
		return check_count(m, q, got);
	if (got != w->orig)
		return model_say(m, "an atomic brought 0x%llx, not 0x%llx", (unsigned long long)got,
				 (unsigned long long)w->orig);
	return NULL;
}

/* ---- effects at the peer */

static void
apply_atomic(struct mreq *w, uint8_t *image)
{
	uint64_t v;

	if (w->r.op == MODEL_COUNT)
		return; /* other QPs add, too: the order is unknown */
	memcpy(&v, image + w->r.remote, 8);
	w->orig = v;
	if (w->r.op == MODEL_FETCH_ADD)
		v += w->r.add;
	else if (v == w->r.add)
		v = w->r.swap;
	memcpy(image + w->r.remote, &v, 8);
}

static void
apply_one(struct model *m, const struct mqp *q, struct mreq *w)
{
	uint8_t *image = m->node[model_peer(m, q)->node].image;

	if (model_is_write(&w->r))
		sim_fill(image + w->r.remote, w->r.seed, 0, w->r.len);
	else if (model_is_atomic(&w->r))
		apply_atomic(w, image);
}

/* Verdict on a WRITE that took effect: its bytes are there, except where later requests overwrote them. */
static const char *
check_write(struct model *m, const struct mqp *q, const struct model_request *r)
{
	const struct mnode *n = &m->node[model_peer(m, q)->node];
	const uint8_t *got = n->ram + r->remote, *want = n->image + r->remote;

	if (r->len == 0 || memcmp(got, want, r->len) == 0)
		return NULL;
	for (uint32_t b = 0; b < r->len; b++)
		if (got[b] != want[b] && !later_made(q, q->applied, false, r->remote + b, got[b]))
			return model_say(m, "byte %u of a WRITE of %u bytes is 0x%02x, not 0x%02x", b,
					 r->len, got[b], want[b]);
	return NULL;
}

static const char *
check_word(struct model *m, const struct mqp *q, const struct model_request *r)
{
	const struct mnode *n = &m->node[model_peer(m, q)->node];
	uint64_t got, v;

	if (r->op == MODEL_COUNT)
		return NULL;
	memcpy(&got, n->ram + r->remote, 8);
	memcpy(&v, n->image + r->remote, 8);
	for (uint32_t i = q->applied; i <= q->n; i++) {
		if (got == v)
			return NULL;
		if (i == q->n)
			break;
		if (q->req[i].r.remote != r->remote || !model_is_atomic(&q->req[i].r))
			continue;
		if (q->req[i].r.op == MODEL_FETCH_ADD)
			v += q->req[i].r.add;
		else if (v == q->req[i].r.add)
			v = q->req[i].r.swap;
	}
	return model_say(m, "a word that atomics changed is 0x%llx", (unsigned long long)got);
}

const char *
model_apply(struct model *m, struct mqp *q, uint32_t to, uint32_t done)
{
	uint32_t from = q->applied, seen = q->ok;
	const char *why = NULL;

	/* READs that were applied before they were complete. */
	for (; seen < done && seen < from && !why; seen++)
		if (q->req[seen].r.op == MODEL_READ)
			why = check_read(m, q, seen);
	for (uint32_t i = from; i < to && !why; i++) {
		struct mreq *w = &q->req[i];

		if (w->r.op == MODEL_READ && i < done) {
			why = check_read(m, q, i);
		} else if (w->r.op == MODEL_READ && w->r.len) {
			w->want = malloc(w->r.len);
			if (!w->want)
				return "no memory";
			memcpy(w->want, m->node[model_peer(m, q)->node].image + w->r.remote, w->r.len);
		} else {
			apply_one(m, q, w);
		}
	}
	if (to > q->applied)
		q->applied = to;
	for (uint32_t i = from; i < to && !why; i++)
		why = model_is_write(&q->req[i].r)    ? check_write(m, q, &q->req[i].r)
		      : model_is_atomic(&q->req[i].r) ? check_word(m, q, &q->req[i].r)
						      : NULL;
	for (uint32_t i = q->ok; i < done && !why; i++)
		if (model_is_atomic(&q->req[i].r))
			why = check_atomic(m, q, i);
	return why;
}

const char *
model_bytes(struct model *m, unsigned int node, uint32_t off, uint32_t seed, uint32_t len,
	    const char *what)
{
	struct mnode *n = &m->node[node];

	sim_fill(n->image + off, seed, 0, len);
	if (len == 0 || memcmp(n->ram + off, n->image + off, len) == 0)
		return NULL;
	for (uint32_t b = 0; b < len; b++)
		if (n->ram[off + b] != n->image[off + b])
			return model_say(m, "byte %u of %s of %u bytes is 0x%02x, not 0x%02x", b, what,
					 len, n->ram[off + b], n->image[off + b]);
	return NULL;
}

/* ---- incomplete requests */

/*
 * True when bytes of a message lie over old ones: whole packets from the message's first on,
 * then old bytes. loose: packets in any number and order.
 */
static bool
first_part(const uint8_t *got, const uint8_t *old, uint32_t seed, uint32_t len, uint32_t mtu,
	   bool loose)
{
	bool ended = false;

	for (uint32_t at = 0; at < len; at += mtu) {
		uint32_t n = len - at < mtu ? len - at : mtu, fresh = 0, stale = 0;

		for (uint32_t b = at; b < at + n; b++) {
			fresh += got[b] == sim_byte(seed, b);
			stale += got[b] == old[b];
			if (loose && got[b] != sim_byte(seed, b) && got[b] != old[b])
				return false;
		}
		if (loose || (fresh == n && stale == n))
			continue;
		if (fresh != n && stale != n)
			return false;
		if (fresh == n && ended)
			return false;
		ended |= stale == n;
	}
	return true;
}

const char *
model_torn_recv(struct model *m, struct mqp *to, const struct mrecv *recv)
{
	struct mqp *from = model_peer(m, to);
	struct mnode *n = &m->node[to->node];
	uint32_t i = from->deliver_at;
	const char *why = NULL;
	uint32_t len;

	if (memcmp(n->ram + recv->off, n->image + recv->off, recv->len) == 0)
		return NULL;
	while (i < from->n && !model_takes_recv(&from->req[i].r))
		i++;
	if (i == from->n || from->req[i].r.op == MODEL_WRITE_IMM)
		return model_say(m, "a receive that no message came for was written to");
	len = from->req[i].r.len < recv->len ? from->req[i].r.len : recv->len;
	if (!first_part(n->ram + recv->off, n->image + recv->off, from->req[i].r.seed, len, to->mtu,
			n->fails) ||
	    memcmp(n->ram + recv->off + len, n->image + recv->off + len, recv->len - len) != 0)
		why = model_say(m, "a receive that is not complete holds bytes that are not its message's");
	take_over(m, to->node, recv->off, recv->len);
	return why;
}

/*
 * True when neither the request nor those behind it can take effect. A READ or atomic
 * that has no place for its result has taken effect at the peer by then.
 */
static bool
is_barred(const struct mreq *w)
{
	unsigned int must = w->must;

	if (w->r.op == MODEL_READ || model_is_atomic(&w->r))
		must &= ~(unsigned int)MODEL_WHY_LOCAL;
	return must != 0;
}

/* Bytes of the peer that requests of q may change. */
static void
reach(const struct mqp *q, uint32_t *lo, uint32_t *hi)
{
	*lo = UINT32_MAX;
	*hi = 0;
	for (uint32_t i = q->applied; i < q->n; i++) {
		const struct model_request *r = &q->req[i].r;

		if (is_barred(&q->req[i]))
			break;
		if (!(model_is_write(r) || (model_is_atomic(r) && r->op != MODEL_COUNT)) || !r->len)
			continue;
		if (r->remote < *lo)
			*lo = r->remote;
		if (r->remote + r->len > *hi)
			*hi = r->remote + r->len;
	}
}

/* True when the peer's memory is right, except for a request that took effect in part. */
static bool
so_but_for(const struct mnode *n, const struct model_request *r, uint32_t lo, uint32_t hi,
	   uint32_t mtu)
{
	if (!r || !model_is_write(r) || r->len == 0)
		return memcmp(n->ram + lo, n->image + lo, hi - lo) == 0;
	return memcmp(n->ram + lo, n->image + lo, r->remote - lo) == 0 &&
	       memcmp(n->ram + r->remote + r->len, n->image + r->remote + r->len,
		      hi - r->remote - r->len) == 0 &&
	       first_part(n->ram + r->remote, n->image + r->remote, r->seed, r->len, mtu, false);
}

static const char *
torn_loose(struct model *m, const struct mqp *q, uint32_t lo, uint32_t hi)
{
	struct mnode *n = &m->node[model_peer(m, q)->node];

	for (uint32_t at = lo; at < hi; at++)
		if (n->ram[at] != n->image[at] && !later_made(q, q->applied, false, at, n->ram[at]))
			return model_say(m, "byte 0x%x of node %u is 0x%02x: no request made it that", at,
					 model_peer(m, q)->node, n->ram[at]);
	take_over(m, model_peer(m, q)->node, lo, hi - lo);
	return NULL;
}

const char *
model_torn(struct model *m, struct mqp *q)
{
	struct mqp *peer = model_peer(m, q);
	struct mnode *n = &m->node[peer->node];
	uint32_t lo, hi;

	for (uint32_t i = 0; i < q->n; i++)
		if (!q->req[i].done && (q->req[i].r.op == MODEL_READ || model_is_atomic(&q->req[i].r)))
			take_over(m, q->node, q->req[i].r.local, q->req[i].r.len);
	reach(q, &lo, &hi);
	if (lo >= hi)
		return NULL;
	if (n->fails)
		return torn_loose(m, q, lo, hi);
	for (uint32_t i = q->applied; i <= q->n; i++) {
		struct mreq *w = i < q->n ? &q->req[i] : NULL;
		bool barred = w && is_barred(w);

		if (so_but_for(n, barred || !w ? NULL : &w->r, lo, hi, q->mtu)) {
			take_over(m, peer->node, lo, hi - lo);
			return NULL;
		}
		if (!w || barred)
			break; /* nothing behind a request that must fail takes effect */
		apply_one(m, q, w);
	}
	return model_say(m, "memory 0x%x..0x%x of node %u is not what any first part of the requests that failed makes",
			 lo, hi, peer->node);
}

const char *
model_compare(struct model *m, unsigned int node)
{
	struct mnode *n = &m->node[node];

	if (n->counts) {
		uint64_t v;

		memcpy(&v, n->ram + n->counter, 8);
		if (v > n->count_posted || v < n->count_done)
			return model_say(m, "%u additions to a shared counter were posted, %u are complete, and it is %llu",
					 n->count_posted, n->count_done, (unsigned long long)v);
		for (uint64_t i = v; i < n->count_posted; i++)
			if (n->counted[i])
				return model_say(m, "an addition to a shared counter is lost");
		take_over(m, node, n->counter, 8);
	}
	if (memcmp(n->ram, n->image, n->size) == 0)
		return NULL;
	for (uint32_t at = 0; at < n->size; at++)
		if (n->ram[at] != n->image[at])
			return model_say(m, "byte 0x%x of node %u is 0x%02x, and nobody may have made it so (0x%02x before)",
					 at, node, n->ram[at], n->image[at]);
	return NULL;
}
