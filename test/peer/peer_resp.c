/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder (IBTA 9.7.4, 9.7.5.1): executes requests in PSN order only, keeps none
 * that is ahead of its turn, answers duplicates, and serves one packet after the other,
 * at a given rate.
 */
#include "peer.h"

#include <string.h>

/* ---- answers */

/* Syndrome of an ACK: the number of posted receives, or no credits (IBTA table 46). */
static uint8_t
ack_syndrome(struct peer *p)
{
	static const uint16_t codes[31] = {0,   1,   2,   3,    4,    6,    8,    12,   16,   24,  32,
					   48,  64,  96,  128,  192,  256,  384,  512,  768,  1024, 1536,
					   2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
	uint32_t have = p->recv_in - p->recv_out, lsn;
	uint8_t code = 30;

	if (!p->c.credits)
		return PW_ACK;
	while (codes[code] > have)
		code--;
	lsn = pw_add(p->rmsn, codes[code]);
	if (!p->credits_at || pw_diff(lsn, p->lsn) > 0)
		p->lsn = lsn;
	if (!p->credits_at)
		p->credits_at = p->now;
	return code;
}

/*
 * A requester without credits sends one message, and waits for an answer to it, before
 * the next that takes a receive (IBTA 9.7.7.2.5). Some time after the first credits, the
 * other side knows of them.
 */
static void
judge_credit(struct peer *p, const struct pw *f)
{
	bool takes = pw_is(f->op) & PWI_SEND;

	if (!takes || !(pw_is(f->op) & PWI_BEGINS) || !p->credits_at || p->st.ahead || p->st.again ||
	    p->now < p->credits_at + 5000000 || pw_diff(p->rmsn + 1, p->lsn) <= 0)
		return;
	if (p->told != pw_add(f->psn, PW_PSN_MASK))
		p->c.wrong(p->c.ctx, "message %u came, message %u is the last that credits allow, and PSN %u "
			   "was answered last", p->rmsn + 1, p->lsn, p->told);
}

static void
send_aeth(struct peer *p, uint32_t psn, uint8_t syn)
{
	peer_emit(p, &(struct pw){.op = PW_ACKNOWLEDGE, .psn = psn, .syn = syn, .msn = p->rmsn});
}

static void
ack_now(struct peer *p)
{
	p->ack_at = UINT64_MAX;
	p->told = pw_add(p->epsn, PW_PSN_MASK);
	send_aeth(p, p->told, ack_syndrome(p));
}

static void
owe_ack(struct peer *p)
{
	if (p->c.ack_delay == 0)
		ack_now(p);
	else if (p->ack_at == UINT64_MAX)
		p->ack_at = p->now + p->c.ack_delay;
}

static void
nak(struct peer *p, uint8_t syn)
{
	p->told = pw_add(p->epsn, PW_PSN_MASK);
	p->ack_at = UINT64_MAX; /* the answer acknowledges all before it, too */
	send_aeth(p, p->epsn, syn);
}

static void
refuse(struct peer *p, uint8_t syn)
{
	nak(p, syn);
	peer_fail(p, PEER_FLUSH);
}

/* ---- duplicates against the packets that came first */

static uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x100000001b3ull;
	return h ^ h >> 29;
}

/* All fields but those that may differ in a retry: AckReq, MigReq, the rest of a READ. */
static uint64_t
hash_of(const struct pw *f)
{
	uint64_t h = mix(0xcbf29ce484222325ull, (uint64_t)f->op << 8 | f->se);

	h = mix(mix(h, f->va), (uint64_t)f->rkey << 32 | f->imm);
	h = mix(mix(h, f->swap_add), f->compare);
	h = mix(h, f->op == PW_READ ? 0 : f->dmalen);
	for (uint32_t i = 0; i < f->len; i++)
		h = mix(h, f->data[i]);
	return h;
}

static void
judge_fetches(struct peer *p, uint32_t psn)
{
	uint32_t n = 0;

	for (uint32_t back = 1; back < 2048; back++) {
		uint32_t at = (psn - back) & PW_PSN_MASK;
		const struct peer_seen *s = &p->seen[at % PEER_HISTORY];

		n += s->used && s->psn == at && s->fetch && !s->answered;
	}
	if (n >= p->c.max_dest_rd)
		p->c.wrong(p->c.ctx, "PSN %u: %u READs and atomics are under way, and %u may be", psn, n + 1,
			   p->c.max_dest_rd);
}

/* Check that a PSN carries the same each time, and that the fetches in flight are within their limit. */
static void
judge_same(struct peer *p, const struct pw *f)
{
	struct peer_seen *s = &p->seen[f->psn % PEER_HISTORY];
	uint64_t h = hash_of(f);

	if (s->used && s->psn == f->psn) {
		if (s->hash != h && !(p->c.stale && pw_diff(f->psn, p->epsn) < 0))
			p->c.wrong(p->c.ctx, "%s, PSN %u: not what that PSN carried before",
				   pw_name(f->op), f->psn);
		return;
	}
	if (pw_diff(f->psn, p->newest) < -PEER_HISTORY / 2)
		return;
	*s = (struct peer_seen){.psn = f->psn, .used = true, .hash = h, .last = f->psn};
	/* A part of a READ is requested at PSNs without a request before: this is no new fetch. */
	if ((pw_is(f->op) & PWI_FETCH) && pw_diff(f->psn, p->newest) >= 0) {
		judge_fetches(p, f->psn);
		s->fetch = true;
		s->last = pw_add(f->psn, f->op == PW_READ ? peer_packets(p, f->dmalen) - 1 : 0);
	}
	if (pw_diff(s->last, p->newest) >= 0)
		p->newest = pw_add(s->last, 1);
}

static void
note_answered(struct peer *p, uint32_t first)
{
	struct peer_seen *s = &p->seen[first % PEER_HISTORY];

	if (s->used && s->psn == first)
		s->answered = true;
}

/* ---- memory */

/* Address of `len` bytes at va; NULL: the key does not allow the access, or some bytes are outside. */
static uint8_t *
reach(struct peer *p, uint32_t rkey, uint64_t va, uint32_t len, bool write)
{
	bool known = rkey == p->c.key || (!write && rkey == p->c.key_read);

	for (uint32_t i = 0; i < PEER_KEYS && !known; i++)
		known = rkey && p->key[i] == rkey;
	if (!known || va < p->c.va || va - p->c.va > p->c.ram_len ||
	    len > p->c.ram_len - (va - p->c.va))
		return NULL;
	return p->c.ram + (va - p->c.va);
}

/* ---- READs and atomics */

static void
answer_read(struct peer *p, uint32_t psn, uint64_t va, uint32_t len, uint32_t first, uint32_t msn)
{
	if (p->ack_at != UINT64_MAX)
		ack_now(p);
	p->answer.on = true;
	p->answer.va = va;
	p->answer.psn = psn;
	p->answer.packet = 0;
	p->answer.npsn = peer_packets(p, len);
	p->answer.left = len;
	p->answer.first = first;
	p->answer.msn = msn;
}

static void
send_part(struct peer *p)
{
	bool begins = p->answer.packet == 0, ends = p->answer.packet + 1 == p->answer.npsn;
	struct pw f = {
		.op = begins ? (ends ? PW_RESP_ONLY : PW_RESP_FIRST)
			     : (ends ? PW_RESP_LAST : PW_RESP_MIDDLE),
		.psn = pw_add(p->answer.psn, p->answer.packet),
		.syn = ack_syndrome(p),
		.msn = p->answer.msn,
		.data = p->c.ram + (p->answer.va - p->c.va) + (size_t)p->answer.packet * p->c.mtu,
		.len = ends ? p->answer.left : p->c.mtu,
	};

	p->answer.left -= f.len;
	p->answer.packet++;
	if (ends) {
		p->answer.on = false;
		p->told = f.psn;
		note_answered(p, p->answer.first);
	}
	peer_emit(p, &f);
}

static struct peer_rec *
record(struct peer *p, const struct pw *f, uint32_t npsn)
{
	struct peer_rec *r = &p->rec[p->rec_in++ % p->c.max_dest_rd];

	*r = (struct peer_rec){.used = true, .read = f->op == PW_READ, .first = f->psn, .npsn = npsn,
			       .rkey = f->rkey, .len = f->dmalen, .va = f->va};
	p->rmsn = (p->rmsn + 1) & PW_PSN_MASK;
	r->msn = p->rmsn;
	p->epsn = pw_add(p->epsn, npsn);
	return r;
}

static void
execute_read(struct peer *p, const struct pw *f)
{
	if (f->dmalen && !reach(p, f->rkey, f->va, f->dmalen, false)) {
		refuse(p, PW_NAK_ACCESS);
		return;
	}
	if (p->ack_at != UINT64_MAX)
		ack_now(p); /* acknowledge earlier requests first */
	record(p, f, peer_packets(p, f->dmalen));
	answer_read(p, f->psn, f->dmalen ? f->va : p->c.va, f->dmalen, f->psn, p->rmsn);
}

static void
send_orig(struct peer *p, const struct peer_rec *r)
{
	note_answered(p, r->first);
	p->told = r->first;
	peer_emit(p, &(struct pw){.op = PW_ATOMIC_ACK, .psn = r->first, .syn = ack_syndrome(p),
				  .msn = r->msn, .orig = r->va});
}

static void
execute_atomic(struct peer *p, const struct pw *f)
{
	uint8_t *at = reach(p, f->rkey, f->va, 8, true);
	uint64_t old, now;
	struct peer_rec *r;

	if (f->va & 7) {
		refuse(p, PW_NAK_INV);
		return;
	}
	if (!at) {
		refuse(p, PW_NAK_ACCESS);
		return;
	}
	if (p->ack_at != UINT64_MAX)
		ack_now(p);
	memcpy(&old, at, 8);
	now = f->op == PW_FETCH_ADD ? old + f->swap_add : old == f->compare ? f->swap_add : old;
	memcpy(at, &now, 8);
	r = record(p, f, 1);
	r->va = old;
	send_orig(p, r);
}

/* ---- duplicates (IBTA 9.7.5.1.4 and following) */

static void
read_again(struct peer *p, const struct pw *f, const struct peer_rec *r)
{
	uint32_t n = (uint32_t)pw_diff(f->psn, r->first), off = n * p->c.mtu;

	if (f->va != r->va + off || f->rkey != r->rkey || f->dmalen != r->len - off)
		p->c.wrong(p->c.ctx, "READ again from PSN %u, %u bytes: no tail of the READ of %u bytes at %u",
			   f->psn, f->dmalen, r->len, r->first);
	else
		answer_read(p, f->psn, f->dmalen ? f->va : p->c.va, f->dmalen, r->first, r->msn);
}

static void
duplicate(struct peer *p, const struct pw *f)
{
	p->st.again++;
	if (!(pw_is(f->op) & PWI_FETCH)) {
		if (f->ack || p->c.ack_all)
			owe_ack(p);
		return;
	}
	for (uint32_t i = 0; i < p->c.max_dest_rd; i++) {
		const struct peer_rec *r = &p->rec[i];
		int32_t n = pw_diff(f->psn, r->first);

		if (!r->used || n < 0 || n >= (int32_t)r->npsn || r->read != (f->op == PW_READ))
			continue;
		if (r->read)
			read_again(p, f, r);
		else
			send_orig(p, r);
		return;
	}
}

/* ---- SENDs and WRITEs */

static const char *
out_of_place(struct peer *p, const struct pw *f)
{
	unsigned int is = pw_is(f->op);
	enum peer_doing want = is & PWI_SEND ? PEER_IN_SEND : PEER_IN_WRITE;

	if (is & PWI_FETCH)
		return p->doing != PEER_IDLE ? "in the middle of a message" : NULL;
	if ((is & PWI_BEGINS) && p->doing != PEER_IDLE)
		return "in the middle of a message";
	if (!(is & PWI_BEGINS) && p->doing != want)
		return "no message of that kind was begun";
	if (!(is & PWI_ENDS) && f->len != p->c.mtu)
		return "first and middle packets are as long as the MTU";
	if ((is & PWI_ENDS) && !(is & PWI_BEGINS) && (f->len == 0 || f->len > p->c.mtu))
		return "a last packet has 1 byte to the MTU";
	if (f->len > p->c.mtu)
		return "longer than the MTU";
	if ((is & PWI_RETH) && (is & PWI_ENDS) && f->dmalen != f->len)
		return "a WRITE in one packet, whose length is another";
	if ((is & PWI_RETH) && !(is & PWI_ENDS) && f->dmalen <= p->c.mtu)
		return "a WRITE of several packets that fits into one";
	if ((is & PWI_WRITE) && !(is & PWI_RETH) &&
	    (is & PWI_ENDS ? f->len != p->w_left : f->len >= p->w_left))
		return "a WRITE whose packets do not add up";
	return NULL;
}

/*
 * True when this packet needs a receive and there is none: an RNR NAK goes out, and the packet
 * must come again.
 */
static bool
not_ready(struct peer *p, const struct pw *f)
{
	unsigned int is = pw_is(f->op);
	bool needs = is & PWI_SEND ? is & PWI_BEGINS : is & PWI_WRITE && is & PWI_IMM;

	if (!needs || p->recv_out != p->recv_in)
		return false;
	p->st.rnr++;
	p->naked = true;
	nak(p, (uint8_t)(PW_RNR | p->c.rnr_code));
	return true;
}

static void
complete(struct peer *p, const struct pw *f, uint32_t len, bool wrote)
{
	struct peer_recv *r = &p->recv[p->recv_out++ % PEER_RECVS];
	unsigned int is = pw_is(f->op);

	r->len = len;
	r->imm = f->imm;
	r->with_imm = is & PWI_IMM;
	r->with_inv = is & PWI_INV;
	r->wrote = wrote;
	r->se = f->se;
	p->c.received(p->c.ctx, r);
}

static bool
invalidate(struct peer *p, uint32_t key)
{
	for (uint32_t i = 0; i < PEER_KEYS; i++)
		if (key && p->key[i] == key) {
			p->key[i] = 0;
			return true;
		}
	return false;
}

/* returns: false when the request was refused */
static bool
take_send(struct peer *p, const struct pw *f)
{
	struct peer_recv *r = &p->recv[p->recv_out % PEER_RECVS];
	unsigned int is = pw_is(f->op);

	if (is & PWI_BEGINS)
		p->s_off = 0;
	if (f->len > r->room - p->s_off) {
		r->end = PEER_LOC_LEN;
		refuse(p, PW_NAK_INV);
		return false;
	}
	if (f->len)
		memcpy(p->c.ram + r->at + p->s_off, f->data, f->len);
	p->s_off += f->len;
	p->doing = is & PWI_ENDS ? PEER_IDLE : PEER_IN_SEND;
	if ((is & PWI_INV) && !invalidate(p, f->imm)) {
		refuse(p, PW_NAK_ACCESS);
		return false;
	}
	if (is & PWI_ENDS)
		complete(p, f, p->s_off, false);
	return true;
}

static bool
take_write(struct peer *p, const struct pw *f)
{
	unsigned int is = pw_is(f->op);

	if (is & PWI_RETH) {
		if (f->dmalen && !reach(p, f->rkey, f->va, f->dmalen, true)) {
			refuse(p, PW_NAK_ACCESS);
			return false;
		}
		p->w_va = f->va;
		p->w_left = f->dmalen;
		p->s_off = f->dmalen;
	}
	if (f->len)
		memcpy(p->c.ram + (p->w_va - p->c.va), f->data, f->len);
	p->w_va += f->len;
	p->w_left -= f->len;
	p->doing = is & PWI_ENDS ? PEER_IDLE : PEER_IN_WRITE;
	if (is & PWI_IMM)
		complete(p, f, p->s_off, true);
	return true;
}

static void
execute(struct peer *p, const struct pw *f)
{
	unsigned int is = pw_is(f->op);
	const char *why = out_of_place(p, f);

	p->naked = false;
	judge_credit(p, f);
	if (why) {
		p->c.wrong(p->c.ctx, "%s, PSN %u, %u bytes: %s", pw_name(f->op), f->psn, f->len, why);
		refuse(p, PW_NAK_INV);
	} else if (f->op == PW_READ) {
		execute_read(p, f);
	} else if (is & PWI_FETCH) {
		execute_atomic(p, f);
	} else if (!not_ready(p, f) && (is & PWI_SEND ? take_send(p, f) : take_write(p, f))) {
		p->epsn = pw_add(p->epsn, 1);
		if (is & PWI_ENDS)
			p->rmsn = (p->rmsn + 1) & PW_PSN_MASK;
		if (f->ack)
			owe_ack(p);
	}
}

/* ---- the queue and its service */

static void
handle(struct peer *p, const struct pw *f)
{
	int32_t d = pw_diff(f->psn, p->epsn);

	if (d == 0) {
		execute(p, f);
	} else if (d < 0) {
		duplicate(p, f);
	} else {
		p->st.ahead++;
		if (!p->naked)
			nak(p, PW_NAK_SEQ);
		p->naked = true;
		if (p->c.perfect && !p->st.rnr)
			p->c.wrong(p->c.ctx, "PSN %u is missing, on a wire that loses nothing", p->epsn);
	}
}

void
peer_resp_arrives(struct peer *p, const struct pw *f, const uint8_t *frame, size_t len)
{
	struct peer_waiting *w = &p->queue[p->q_in % PEER_QUEUE];

	if (p->failed)
		return;
	p->st.came++;
	judge_same(p, f);
	if (p->q_in - p->q_out == PEER_QUEUE) {
		p->st.full++;
		return;
	}
	if (p->q_in == p->q_out && !p->answer.on && p->now >= p->busy_until)
		p->busy_until = p->now + p->c.wake;
	memcpy(w->at, frame, len);
	w->len = len;
	p->q_in++;
}

void
peer_resp_serve(struct peer *p)
{
	struct pw f;

	while (p->now >= p->busy_until && !p->failed) {
		if (p->answer.on) {
			send_part(p);
		} else if (p->q_out != p->q_in) {
			struct peer_waiting *w = &p->queue[p->q_out++ % PEER_QUEUE];

			if (!pw_read(w->at, w->len, &p->c.other, &p->c.self, &f))
				handle(p, &f);
		} else {
			break;
		}
		if (p->c.service)
			p->busy_until = p->now + p->c.service;
	}
	if (p->now >= p->ack_at && !p->failed && !p->answer.on)
		ack_now(p);
}

uint64_t
peer_resp_due(const struct peer *p)
{
	bool waits = p->answer.on || p->q_out != p->q_in;
	uint64_t at = waits ? p->busy_until : UINT64_MAX;

	if (p->ack_at < at && !p->answer.on)
		at = p->ack_at;
	return at;
}

void
peer_post_recv(struct peer *p, uint64_t id, uint32_t at, uint32_t room)
{
	struct peer_recv *r = &p->recv[p->recv_in++ % PEER_RECVS];

	*r = (struct peer_recv){.id = id, .at = at, .room = room};
	if (p->failed) {
		p->recv_in--;
		r->end = PEER_FLUSH;
		p->c.received(p->c.ctx, r);
	}
}
