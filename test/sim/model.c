/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference model: its objects, and requests that are posted. */
#include "model_priv.h"

#include "rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const op_names[MODEL_OPS] = {
	[MODEL_SEND] = "SEND",		   [MODEL_SEND_IMM] = "SEND with immediate",
	[MODEL_SEND_INV] = "SEND with invalidate", [MODEL_WRITE] = "WRITE",
	[MODEL_WRITE_IMM] = "WRITE with immediate", [MODEL_READ] = "READ",
	[MODEL_CMP_SWAP] = "compare-and-swap", [MODEL_FETCH_ADD] = "fetch-and-add",
	[MODEL_COUNT] = "shared fetch-and-add", [MODEL_BIND] = "bind",
	[MODEL_LOCAL_INV] = "invalidate",
};

const char *
model_op_name(unsigned int op)
{
	return op < MODEL_OPS ? op_names[op] : "?";
}

const char *
model_say(struct model *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->why, sizeof(m->why), fmt, ap);
	va_end(ap);
	return m->why;
}

/* ---- room */

/* Make room for one more entry; the program ends without memory. */
static void *
grow(void *p, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap * 2 : 16;

	if (n < *cap)
		return p;
	p = realloc(p, want * size);
	if (!p) {
		fputs("model: no memory\n", stderr);
		exit(1);
	}
	memset((uint8_t *)p + *cap * size, 0, (want - *cap) * size);
	*cap = want;
	return p;
}

struct model *
model_new(void)
{
	return calloc(1, sizeof(struct model));
}

static void
forget_queue(struct mqueue *q)
{
	q->n = q->next = q->done = 0;
	q->wrong = false;
}

void
model_reset(struct model *m)
{
	for (uint32_t i = 0; i < m->qps; i++) {
		for (uint32_t k = 0; k < m->qp[i].n; k++) {
			free(m->qp[i].req[k].want);
			m->qp[i].req[k].want = NULL;
		}
		forget_queue(&m->qp[i].rq);
	}
	for (uint32_t i = 0; i < m->srqs; i++)
		forget_queue(&m->srq[i]);
	for (unsigned int i = 0; i < MODEL_NODES; i++) {
		struct mnode *n = &m->node[i];

		if (n->counted)
			memset(n->counted, 0, n->counted_cap);
		n->fails = n->counts = false;
		n->count_done = n->count_posted = 0;
		n->size = 0;
	}
	m->keys = m->qps = m->srqs = m->dgrams = 0;
	m->wire_fails = m->aligned = false;
	m->try_fails = 0;
	m->requests = 0;
	model_late_reset(m);
}

void
model_free(struct model *m)
{
	if (!m)
		return;
	model_reset(m);
	for (uint32_t i = 0; i < m->qp_cap; i++) {
		free(m->qp[i].req);
		free(m->qp[i].rq.recv);
	}
	for (uint32_t i = 0; i < m->srq_cap; i++)
		free(m->srq[i].recv);
	for (unsigned int i = 0; i < MODEL_NODES; i++) {
		free(m->node[i].image);
		free(m->node[i].counted);
	}
	free(m->qp);
	free(m->srq);
	free(m->key);
	free(m->dgram);
	free(m);
}

/* ---- objects */

void
model_memory(struct model *m, unsigned int node, const uint8_t *ram, uint32_t size)
{
	struct mnode *n = &m->node[node];

	if (size > n->cap) {
		free(n->image);
		n->image = malloc(size);
		n->cap = size;
		if (!n->image) {
			fputs("model: no memory\n", stderr);
			exit(1);
		}
	}
	n->ram = ram;
	n->size = size;
	memcpy(n->image, ram, size);
}

void
model_wrote(struct model *m, unsigned int node, uint32_t off, uint32_t len)
{
	memcpy(m->node[node].image + off, m->node[node].ram + off, len);
}

void
model_counter(struct model *m, unsigned int node, uint32_t off)
{
	m->node[node].counts = true;
	m->node[node].counter = off;
}

void
model_memory_fails(struct model *m, unsigned int node)
{
	m->node[node].fails = true;
}

void
model_wire_fails(struct model *m)
{
	m->wire_fails = true;
}

void
model_aligned(struct model *m)
{
	m->aligned = true;
}

int
model_key(struct model *m, unsigned int node, uint32_t off, uint32_t len, unsigned int rights)
{
	m->key = grow(m->key, m->keys, &m->key_cap, sizeof(*m->key));
	m->key[m->keys] = (struct mkey){
		.node = node, .off = off, .len = len, .rights = rights, .inv_qp = -1};
	return (int)m->keys++;
}

void
model_key_dead(struct model *m, int key)
{
	m->key[key].dead = true;
}

int
model_srq(struct model *m, unsigned int node)
{
	m->srq = grow(m->srq, m->srqs, &m->srq_cap, sizeof(*m->srq));
	m->srq[m->srqs].node = node;
	return (int)m->srqs++;
}

int
model_pair(struct model *m, unsigned int node_a, unsigned int node_b, uint32_t mtu, const int srq[2])
{
	for (int e = 0; e < 2; e++) {
		struct mqp *q;

		m->qp = grow(m->qp, m->qps, &m->qp_cap, sizeof(*m->qp));
		q = &m->qp[m->qps++];
		*q = (struct mqp){.node = e ? node_b : node_a, .mtu = mtu, .srq = srq[e],
				  .req = q->req, .cap = q->cap, .rq = q->rq};
		q->rq.node = q->node;
	}
	return (int)m->qps - 2;
}

void
model_rnr_gives_up(struct model *m, int qp)
{
	m->qp[qp].rnr_gives_up = true;
}

void
model_ended(struct model *m, int qp)
{
	m->qp[qp].ended = true;
}

/* ---- posting */

/* Check that a key allows an access. returns: 0, or the reason why not */
static unsigned int
reaches(const struct model *m, int key, unsigned int node, uint32_t off, uint32_t len,
	unsigned int right, unsigned int reason)
{
	const struct mkey *k;

	if (key == MODEL_NO_KEY)
		return reason;
	k = &m->key[key];
	if (k->dead || k->node != node || (k->rights & right) != right || off < k->off ||
	    off - k->off > k->len || len > k->len - (off - k->off))
		return reason;
	return 0;
}

/* Reasons why a request cannot succeed, as known at posting. */
static unsigned int
must_fail(struct model *m, struct mqp *q, uint32_t at, const struct model_request *r)
{
	unsigned int peer = model_peer(m, q)->node, why = 0, right = 0;
	const struct mkey *k = r->rkey == MODEL_NO_KEY ? NULL : &m->key[r->rkey];

	if (r->op == MODEL_BIND)
		return reaches(m, r->lkey, q->node, r->local, r->len, 0, MODEL_WHY_BIND);
	if (r->op == MODEL_LOCAL_INV)
		return !k || k->dead || !k->rights ? MODEL_WHY_BIND : 0;
	if (r->len && !r->in_line)
		why |= reaches(m, r->lkey, q->node, r->local, r->len, 0, MODEL_WHY_LOCAL);
	if (model_is_write(r))
		right = MODEL_REMOTE_WRITE;
	else if (r->op == MODEL_READ)
		right = MODEL_REMOTE_READ;
	else if (model_is_atomic(r))
		right = MODEL_REMOTE_ATOMIC;
	if (right && r->len)
		why |= reaches(m, r->rkey, peer, r->remote, r->len, right, MODEL_WHY_REMOTE);
	if (r->op == MODEL_SEND_INV && (!k || k->dead || !k->rights))
		why |= MODEL_WHY_REMOTE;
	if ((right || r->op == MODEL_SEND_INV) && k && r->len + !right && k->inv_qp == q - m->qp &&
	    k->inv_at < at)
		why |= MODEL_WHY_REMOTE;
	return why;
}

static void
expect_count(struct model *m, unsigned int node)
{
	struct mnode *n = &m->node[node];

	n->counted = grow(n->counted, n->count_posted, &n->counted_cap, 1);
	n->count_posted++;
}

void
model_post(struct model *m, int qp, const struct model_request *r)
{
	struct mqp *q = &m->qp[qp];
	struct mreq *w;

	q->req = grow(q->req, q->n, &q->cap, sizeof(*q->req));
	w = &q->req[q->n];
	*w = (struct mreq){.r = *r, .must = must_fail(m, q, q->n, r), .msg = q->msgs};
	q->msgs += model_takes_recv(r);
	if (r->op == MODEL_COUNT)
		expect_count(m, model_peer(m, q)->node);
	if (r->op == MODEL_SEND_INV && r->rkey != MODEL_NO_KEY && m->key[r->rkey].inv_qp < 0) {
		m->key[r->rkey].inv_qp = qp;
		m->key[r->rkey].inv_at = q->n;
	}
	if (r->op == MODEL_LOCAL_INV && r->rkey != MODEL_NO_KEY)
		m->key[r->rkey].doubt = true;
	q->n++;
	m->requests++;
}

static void
post_recv(struct mqueue *q, uint64_t wr_id, uint32_t off, uint32_t len, int lkey)
{
	q->recv = grow(q->recv, q->n, &q->cap, sizeof(*q->recv));
	q->recv[q->n++] = (struct mrecv){.wr_id = wr_id, .off = off, .len = len, .lkey = lkey};
}

void
model_post_recv(struct model *m, int qp, uint64_t wr_id, uint32_t off, uint32_t len, int lkey)
{
	post_recv(&m->qp[qp].rq, wr_id, off, len, lkey);
}

void
model_post_srq(struct model *m, int srq, uint64_t wr_id, uint32_t off, uint32_t len, int lkey)
{
	post_recv(&m->srq[srq], wr_id, off, len, lkey);
	m->srq[srq].wrong |= lkey == MODEL_NO_KEY;
}

/* ---- questions */

unsigned int
model_open(const struct model *m, int qp)
{
	unsigned int n = 0;

	if (qp >= 0)
		return m->qp[qp].deaf_requests ? 0 : m->qp[qp].n - m->qp[qp].head;
	for (uint32_t i = 0; i < m->qps; i++)
		n += model_open(m, (int)i);
	return n;
}

unsigned int
model_open_recvs(const struct model *m, int qp)
{
	unsigned int n = 0;

	if (qp >= 0)
		return m->qp[qp].deaf_receives ? 0 : m->qp[qp].rq.n - m->qp[qp].rq.next;
	for (uint32_t i = 0; i < m->qps; i++)
		n += model_open_recvs(m, (int)i);
	return n;
}

unsigned int
model_srq_done(const struct model *m, int srq)
{
	return m->srq[srq].done;
}

bool
model_failed(const struct model *m, int qp)
{
	return m->qp[qp].sq_failed || m->qp[qp].rq_failed;
}

uint64_t
model_requests(const struct model *m)
{
	return m->requests;
}

const char *
model_end(struct model *m)
{
	const char *why = NULL;

	for (uint32_t i = 0; i < m->qps && !why; i++)
		why = model_torn(m, &m->qp[i]);
	for (uint32_t i = 0; i < m->qps && !why; i++)
		why = model_deaf_end(m, &m->qp[i]);
	for (unsigned int i = 0; i < MODEL_NODES && !why; i++)
		if (m->node[i].size)
			why = model_compare(m, i);
	return why;
}

/* ---- datagrams */

uint32_t
model_datagram(struct model *m, uint32_t from_qpn, unsigned int to_node, uint32_t to_qpn,
	       uint32_t len, uint32_t seed)
{
	m->dgram = grow(m->dgram, m->dgrams, &m->dgram_cap, sizeof(*m->dgram));
	m->dgram[m->dgrams] = (struct mdgram){
		.from_qpn = from_qpn, .to_qpn = to_qpn, .len = len, .seed = seed, .to_node = to_node};
	m->requests++;
	return m->dgrams++;
}

const char *
model_datagram_came(struct model *m, unsigned int node, uint32_t qpn, uint32_t off,
		    const struct model_completion *c, bool dup)
{
	enum { GRH = 40 };
	const uint8_t *grh = m->node[node].ram + off;
	struct mdgram *d;

	if (c->imm >= m->dgrams)
		return model_say(m, "a datagram came that nobody sent (0x%x)", c->imm);
	d = &m->dgram[c->imm];
	if (d->to_node != node || d->to_qpn != qpn || d->from_qpn != c->src ||
	    c->byte_len != d->len + GRH)
		return model_say(m, "datagram %u of %u bytes from QP 0x%x came to QP 0x%x with %u bytes from 0x%x",
				 c->imm, d->len, d->from_qpn, qpn, c->byte_len, c->src);
	if (d->came++ && !dup)
		return model_say(m, "datagram %u came twice", c->imm);
	if (grh[0] >> 4 != 6 && (grh[20] != 0x45 || grh[29] != 17))
		return model_say(m, "datagram %u came without an IP header", c->imm);
	model_wrote(m, node, off, GRH);
	return model_bytes(m, node, off + GRH, d->seed, d->len, "a datagram");
}
