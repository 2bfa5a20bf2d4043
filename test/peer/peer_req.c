/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester (IBTA 9.7.3, 9.7.5, 9.7.7): sends in PSN order, at most a window ahead of
 * the answers; goes back to the oldest PSN without an answer at a NAK for a gap, when a
 * response is missing, and at a timeout.
 */
#include "peer.h"

#include <string.h>

static struct peer_wr *
wr_at(struct peer *p, uint32_t i)
{
	return &p->wr[i % PEER_WRS];
}

/* The request that a PSN belongs to; NULL: none in flight. */
static struct peer_wr *
wr_of(struct peer *p, uint32_t psn)
{
	for (uint32_t i = p->wr_out; i != p->wr_in; i++)
		if (pw_diff(psn, wr_at(p, i)->first) >= 0 &&
		    pw_diff(psn, wr_at(p, i)->first) < (int32_t)wr_at(p, i)->npsn)
			return wr_at(p, i);
	return NULL;
}

void
peer_post(struct peer *p, uint64_t now, const struct peer_wr *wr)
{
	struct peer_wr *w = wr_at(p, p->wr_in++);

	p->now = now;
	*w = *wr;
	w->first = p->alloc;
	w->npsn = w->kind >= PEER_CAS ? 1 : peer_packets(p, w->len);
	w->got = w->starts = 0;
	w->msn = ++p->msn & PW_PSN_MASK;
	p->alloc = pw_add(p->alloc, w->npsn);
	if (p->failed) {
		p->wr_in--;
		p->c.done(p->c.ctx, w, PEER_FLUSH);
	}
}

/* ---- sending */

static uint8_t
op_of(const struct peer_wr *w, bool first, bool last)
{
	static const uint8_t send_last[] = {PW_SEND_LAST, PW_SEND_LAST_IMM, PW_SEND_LAST_INV};
	static const uint8_t send_only[] = {PW_SEND_ONLY, PW_SEND_ONLY_IMM, PW_SEND_ONLY_INV};
	bool imm = w->kind == PEER_WRITE_IMM;

	switch (w->kind) {
	case PEER_READ:
		return PW_READ;
	case PEER_CAS:
		return PW_CMP_SWAP;
	case PEER_FADD:
		return PW_FETCH_ADD;
	case PEER_WRITE:
	case PEER_WRITE_IMM:
		if (first && last)
			return imm ? PW_WRITE_ONLY_IMM : PW_WRITE_ONLY;
		if (last)
			return imm ? PW_WRITE_LAST_IMM : PW_WRITE_LAST;
		return first ? PW_WRITE_FIRST : PW_WRITE_MIDDLE;
	default:
		if (last)
			return first ? send_only[w->kind] : send_last[w->kind];
		return first ? PW_SEND_FIRST : PW_SEND_MIDDLE;
	}
}

/* READs and atomics before this one that wait for their responses. */
static uint32_t
fetches_before(struct peer *p, const struct peer_wr *until)
{
	uint32_t n = 0;

	for (uint32_t i = p->wr_out; i != p->wr_in && wr_at(p, i) != until; i++)
		n += peer_is_fetch(wr_at(p, i));
	return n;
}

static bool
may_send(struct peer *p, const struct peer_wr *w)
{
	uint32_t before = fetches_before(p, w);

	if (w->fence && before)
		return false;
	if (peer_is_fetch(w) && before >= p->c.max_rd)
		return false;
	return (uint32_t)pw_diff(p->next, p->una) < p->c.window || p->next == p->una;
}

static void
send_one(struct peer *p, struct peer_wr *w)
{
	uint32_t n = (uint32_t)pw_diff(p->next, w->first), off = n * p->c.mtu;
	bool fetch = peer_is_fetch(w), last = fetch || n + 1 == w->npsn;
	struct pw f = {.op = op_of(w, n == 0, last), .psn = p->next, .rkey = w->rkey,
		       .swap_add = w->swap_add, .compare = w->compare, .imm = w->imm};

	f.va = w->remote + (fetch ? off : 0);
	f.dmalen = w->len - (fetch ? off : 0);
	f.se = w->se && last && !fetch && w->kind != PEER_WRITE;
	if (!fetch) {
		f.data = p->c.ram + w->local + off;
		f.len = last ? w->len - off : p->c.mtu;
	} else {
		w->start[w->starts++ % PEER_STARTS] = p->next;
	}
	p->st.sent++;
	p->st.repeated += pw_diff(p->next, p->top) < 0;
	p->next = fetch ? pw_add(w->first, w->npsn) : pw_add(p->next, 1);
	if (pw_diff(p->next, p->top) > 0)
		p->top = p->next;
	/* The last packet for now asks for an ACK, so that there always is an answer to wait for. */
	f.ack = fetch || ++p->since_ack >= p->c.ack_every || p->next == p->alloc || last ||
		(uint32_t)pw_diff(p->next, p->una) >= p->c.window;
	if (f.ack)
		p->since_ack = 0;
	peer_emit(p, &f);
}

void
peer_req_pump(struct peer *p)
{
	struct peer_wr *w;

	if (p->failed || p->rnr_until)
		return;
	while (p->next != p->alloc && (w = wr_of(p, p->next)) && may_send(p, w)) {
		if (p->timer == UINT64_MAX)
			p->timer = p->now + p->c.timeout;
		send_one(p, w);
	}
}

/* ---- going back */

static void
go_back(struct peer *p, enum peer_end end)
{
	if (p->tries-- == 0) {
		peer_fail(p, end);
		return;
	}
	p->next = p->una;
	p->timer = UINT64_MAX;
}

void
peer_req_timer(struct peer *p)
{
	if (p->rnr_until && p->now >= p->rnr_until) {
		p->rnr_until = 0;
		p->next = p->una;
		p->timer = UINT64_MAX;
	}
	if (p->rnr_until || p->now < p->timer)
		return;
	p->st.timeouts++;
	if (p->c.perfect)
		p->c.wrong(p->c.ctx, "no answer to PSN %u in time, on a wire that loses nothing", p->una);
	p->went_back = false;
	go_back(p, PEER_RETRY_EXC);
}

uint64_t
peer_req_due(const struct peer *p)
{
	return p->rnr_until ? p->rnr_until : p->timer;
}

/* ---- answers */

static void
progress(struct peer *p)
{
	p->tries = p->c.retries;
	p->rnr_tries = p->c.rnr_retries;
	p->went_back = false;
	p->rnr_until = 0;
	if (pw_diff(p->next, p->una) < 0)
		p->next = p->una;
	p->timer = p->una == p->top ? UINT64_MAX : p->now + p->c.timeout;
}

/*
 * All requests before `psn` are done. A READ or atomic among them with an incomplete
 * response stops that. returns: true when none did
 */
static bool
answered(struct peer *p, uint32_t psn)
{
	uint32_t before = p->una;
	bool whole = true;

	while (p->wr_out != p->wr_in && whole) {
		struct peer_wr *w = wr_at(p, p->wr_out);
		uint32_t end = pw_add(w->first, w->npsn);

		if (peer_is_fetch(w) && w->got < w->npsn) {
			whole = pw_diff(psn, w->first) <= (int32_t)w->got;
			if (pw_diff(psn, w->first) >= 0)
				p->una = pw_add(w->first, w->got);
			break;
		}
		if (pw_diff(psn, end) < 0) {
			if (pw_diff(psn, p->una) > 0)
				p->una = psn;
			break;
		}
		p->una = end;
		p->done_msn = w->msn;
		p->wr_out++;
		p->c.done(p->c.ctx, w, PEER_OK);
	}
	if (p->una != before)
		progress(p);
	return whole;
}

/* A response before this one is missing. */
static void
implied(struct peer *p)
{
	if (p->c.perfect)
		p->c.wrong(p->c.ctx, "PSN %u was not answered and a later one was", p->una);
	if (p->went_back)
		return;
	p->st.implied++;
	go_back(p, PEER_RETRY_EXC);
	p->went_back = true;
}

/*
 * MSN of an answer that names `psn`: the messages done before and with that PSN. A
 * message that has begun counts as well while a READ is answered (IBTA 9.7.7.1).
 */
static void
judge_msn(struct peer *p, const struct pw *f, uint32_t psn)
{
	uint32_t lo = p->done_msn, hi = p->done_msn;

	for (uint32_t i = p->wr_out; i != p->wr_in; i++) {
		const struct peer_wr *w = wr_at(p, i);
		uint32_t end = pw_add(w->first, w->npsn);

		if (pw_diff(psn, end) >= -1)
			lo = w->msn;
		if (pw_diff(p->top, end) >= 0 || (peer_is_fetch(w) && pw_diff(p->top, w->first) > 0))
			hi = w->msn;
	}
	if (pw_diff(f->msn, lo) < 0 || pw_diff(f->msn, hi) > 0)
		p->c.wrong(p->c.ctx, "%s, PSN %u: MSN %u is not between %u and %u", pw_name(f->op), f->psn,
			   f->msn, lo, hi);
}

static void
refused(struct peer *p, const struct pw *f)
{
	static const enum peer_end ends[] = {PEER_OTHER, PEER_REM_INV, PEER_REM_ACCESS, PEER_REM_OP};
	bool whole = answered(p, f->psn);

	if (p->failed)
		return;
	if (!whole) {
		implied(p); /* another answer will come */
		return;
	}
	if (f->syn >> 5 == 1) {
		p->st.rnr_naks++;
		if (p->c.rnr_retries != 7 && p->rnr_tries-- == 0) {
			peer_fail(p, PEER_RNR_EXC);
			return;
		}
		p->rnr_until = p->now + peer_rnr_ns(f->syn);
		return;
	}
	if (f->syn == PW_NAK_SEQ) {
		p->st.seq_naks++;
		if (p->c.perfect)
			p->c.wrong(p->c.ctx, "a gap before PSN %u, on a wire that loses nothing", f->psn);
		go_back(p, PEER_RETRY_EXC);
		return;
	}
	peer_fail(p, ends[f->syn & 3]);
}

static void
acknowledged(struct peer *p, const struct pw *f)
{
	bool nak = f->syn >> 5;

	if (f->syn >> 7 || f->syn >> 5 == 2 || (f->syn >= 0x60 && f->syn > PW_NAK_OP))
		p->c.wrong(p->c.ctx, "ACK of PSN %u: reserved syndrome 0x%02x", f->psn, f->syn);
	if (pw_diff(f->psn, p->una) < 0)
		return; /* late */
	judge_msn(p, f, nak ? pw_add(f->psn, PW_PSN_MASK) : f->psn);
	if (nak)
		refused(p, f);
	else if (!answered(p, pw_add(f->psn, 1)))
		implied(p);
}

/* ---- responses of READs and atomics */

static bool
was_start(const struct peer_wr *w, uint32_t psn)
{
	if (w->starts > PEER_STARTS)
		return true;
	for (uint32_t i = 0; i < w->starts; i++)
		if (w->start[i] == psn)
			return true;
	return false;
}

static void
judge_part(struct peer *p, const struct peer_wr *w, const struct pw *f)
{
	uint32_t n = (uint32_t)pw_diff(f->psn, w->first);
	bool end = n + 1 == w->npsn;
	unsigned int is = pw_is(f->op);
	const char *why = NULL;

	if (f->len != (end ? w->len - n * p->c.mtu : p->c.mtu))
		why = "length";
	else if (!(is & PWI_ENDS) == end)
		why = "first, middle, last or only";
	else if ((is & PWI_BEGINS) && !was_start(w, f->psn))
		why = "begins where no request did";
	else if (!(is & PWI_BEGINS) && n == 0)
		why = "a middle or last packet at the first PSN";
	if (why)
		p->c.wrong(p->c.ctx, "%s, PSN %u, %u bytes, of a READ of %u bytes from PSN %u: %s",
			   pw_name(f->op), f->psn, f->len, w->len, w->first, why);
}

/* True when an answer is to a request that is done, or to one that was never sent. */
static bool
is_late(const struct peer *p, uint32_t psn)
{
	return pw_diff(psn, p->una) < 0;
}

static void
fetched(struct peer *p, const struct pw *f)
{
	bool atomic = f->op == PW_ATOMIC_ACK;
	struct peer_wr *w;

	if ((pw_is(f->op) & PWI_AETH) && f->syn >> 5)
		p->c.wrong(p->c.ctx, "%s, PSN %u: syndrome 0x%02x", pw_name(f->op), f->psn, f->syn);
	if (is_late(p, f->psn))
		return;
	w = wr_of(p, f->psn);
	if (!w || !peer_is_fetch(w) || (w->kind == PEER_READ) == atomic) {
		p->c.wrong(p->c.ctx, "%s, PSN %u: nothing that was asked for", pw_name(f->op), f->psn);
		return;
	}
	if (!atomic)
		judge_part(p, w, f);
	if (pw_is(f->op) & PWI_AETH)
		judge_msn(p, f, w->first);
	if (!answered(p, f->psn)) { /* all requests before it are done */
		implied(p);
		return;
	}
	if (atomic)
		memcpy(p->c.ram + w->local, &f->orig, 8);
	else if (f->len)
		memcpy(p->c.ram + w->local + (size_t)w->got * p->c.mtu, f->data, f->len);
	w->got++;
	answered(p, pw_add(f->psn, 1));
}

void
peer_req_response(struct peer *p, const struct pw *f)
{
	if (pw_diff(f->psn, p->top) >= 0 && !(pw_diff(f->psn, p->top) == 0 && f->syn == PW_NAK_SEQ)) {
		p->c.wrong(p->c.ctx, "%s of PSN %u, and %u is the first that was not sent",
			   pw_name(f->op), f->psn, p->top);
		return;
	}
	if (p->failed)
		return;
	if (f->op == PW_ACKNOWLEDGE)
		acknowledged(p, f);
	else
		fetched(p, f);
}
