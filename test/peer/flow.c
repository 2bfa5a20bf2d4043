/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

static void
fill(uint8_t *at, uint32_t seed, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = rnd_byte(seed, i);
}

static uint32_t
slot_at(uint64_t id)
{
	return FLOW_SLOTS_AT + (uint32_t)(id % FLOW_SLOTS) * FLOW_ROOM;
}

static uint32_t
buf_at(uint64_t id)
{
	return FLOW_BUFS_AT + (uint32_t)(id % FLOW_BUFS) * FLOW_ROOM;
}

void
flow_open(struct flow *f)
{
	memset(f->from->ram + FLOW_SLOTS_AT, FLOW_EMPTY, FLOW_SLOTS * FLOW_ROOM);
	memset(f->to->ram, FLOW_EMPTY, FLOW_SLOTS_AT);
	fill(f->win, rnd(&f->rng, UINT32_MAX), FLOW_WIN);
	memcpy(f->to->ram + FLOW_WIN_AT, f->win, FLOW_WIN);
	for (int i = 0; i < FLOW_WORDS; i++)
		f->word[i] = rnd_next(&f->rng);
	memcpy(f->to->ram + FLOW_WORDS_AT, f->word, sizeof(f->word));
	for (int i = 0; i < FLOW_SLOTS; i++)
		f->op[i].want = malloc(FLOW_LEN);
	f->short_recv = f->error == FLOW_TOO_LONG ? f->error_at : UINT32_MAX;
	f->stop_recvs = f->error == FLOW_NO_RECEIVE ? f->error_at : UINT32_MAX;
	f->wrong_at = UINT32_MAX;
}

void
flow_cut(struct flow *f, uint64_t now)
{
	f->cut = true;
	f->wrong_since = now;
}

void
flow_close(struct flow *f)
{
	for (int i = 0; i < FLOW_SLOTS; i++)
		free(f->op[i].want);
}

/* ---- making up a request */

static uint32_t
some_len(struct flow *f)
{
	static const uint32_t edge[] = {0,   1,	  3,   4,	 255,  256,  257, 511,
					512, 513, 1024, 1025, 2048, 2049, 4096, 4097};
	uint32_t len;

	if (f->exact)
		return f->max_len;
	switch (rnd(&f->rng, 4)) {
	case 0:
		len = edge[rnd(&f->rng, 16)];
		break;
	case 1:
		len = rnd(&f->rng, 64);
		break;
	case 2:
		len = rnd(&f->rng, 3000);
		break;
	default:
		len = rnd(&f->rng, f->max_len + 1);
	}
	return len < f->max_len ? len : f->max_len;
}

static enum peer_kind
some_kind(struct flow *f)
{
	uint32_t total = 0, pick, kind = 0;

	for (int i = 0; i < PEER_KINDS; i++)
		total += f->weight[i];
	pick = rnd(&f->rng, total);
	while (pick >= f->weight[kind])
		pick -= f->weight[kind++];
	if (kind == PEER_SEND_INV && f->invs + FLOW_KEYS >= f->to->invs)
		return PEER_SEND;
	return kind;
}

/*
 * True when a WRITE may change bytes that a READ in flight has still to bring: their order
 * needs a fence (IBTA 10.8.3.3).
 */
static bool
overlaps_read(const struct flow *f, uint64_t from, uint32_t len)
{
	for (uint32_t i = f->done; i != f->posted; i++) {
		const struct peer_wr *w = &f->op[i % FLOW_SLOTS].wr;

		if (w->kind == PEER_READ && from < w->remote + w->len && w->remote < from + len)
			return true;
	}
	return false;
}

static void
draw_memory(struct flow *f, struct flow_op *o)
{
	uint32_t at = rnd(&f->rng, FLOW_WIN - o->wr.len + 1);

	o->wr.remote = f->to->va + FLOW_WIN_AT + at;
	o->wr.rkey = rnd(&f->rng, 4) ? f->to->key : f->to->inv[f->to->invs - 1 - rnd(&f->rng, FLOW_KEYS)];
	if (o->wr.kind == PEER_READ) {
		if (rnd(&f->rng, 4) == 0)
			o->wr.rkey = f->to->key_read;
		memcpy(o->want, f->win + at, o->wr.len);
		return;
	}
	if (overlaps_read(f, o->wr.remote, o->wr.len))
		o->wr.fence = true;
	fill(f->from->ram + o->wr.local, o->seed, o->wr.len);
}

static void
draw_atomic(struct flow *f, struct flow_op *o)
{
	uint32_t i = rnd(&f->rng, FLOW_WORDS);

	o->wr.len = 8;
	o->wr.remote = f->to->va + FLOW_WORDS_AT + 8 * i;
	o->wr.rkey = f->to->key;
	o->wr.swap_add = rnd_next(&f->rng);
	o->wr.compare = rnd(&f->rng, 3) ? f->word[i] : rnd_next(&f->rng);
	o->orig = f->word[i];
}

/* ---- requests that are wrong */

/* True when this request must be the wrong one. There is one such request. */
static bool
is_wrong(const struct flow *f, const struct flow_op *o)
{
	enum peer_kind kind = o->wr.kind;
	bool message = kind <= PEER_SEND_INV || kind == PEER_WRITE_IMM;

	if (f->wrong_at != UINT32_MAX)
		return false;
	switch (f->error) {
	case FLOW_TOO_LONG:
	case FLOW_NO_RECEIVE:
		return message && f->msgs == f->error_at;
	case FLOW_BAD_KEY:
	case FLOW_BEYOND:
		return kind >= PEER_WRITE && o->wr.id >= f->error_at;
	case FLOW_NO_RIGHT:
		return kind >= PEER_WRITE && kind != PEER_READ && o->wr.id >= f->error_at;
	case FLOW_DEAD_KEY:
		return kind >= PEER_WRITE && o->wr.id >= f->error_at && f->invs;
	case FLOW_UNALIGNED:
		return kind >= PEER_CAS && o->wr.id >= f->error_at;
	default:
		return false;
	}
}

/* Before the request's memory is chosen. */
static void
spoil_message(struct flow *f, struct flow_op *o)
{
	if (f->error == FLOW_TOO_LONG || f->error == FLOW_NO_RECEIVE)
		o->wr.kind = PEER_SEND;
	if (o->wr.len < 4)
		o->wr.len = 4;
}

static void
spoil_target(struct flow *f, struct flow_op *o)
{
	static const enum peer_end ends[FLOW_ERRORS] = {
		[FLOW_BAD_KEY] = PEER_REM_ACCESS, [FLOW_BEYOND] = PEER_REM_ACCESS,
		[FLOW_NO_RIGHT] = PEER_REM_ACCESS, [FLOW_DEAD_KEY] = PEER_REM_ACCESS,
		[FLOW_TOO_LONG] = PEER_REM_INV,	   [FLOW_UNALIGNED] = PEER_REM_INV,
		[FLOW_NO_RECEIVE] = PEER_RNR_EXC,
	};

	o->end = ends[f->error];
	f->wrong_at = (uint32_t)o->wr.id;
	switch (f->error) {
	case FLOW_BAD_KEY:
		o->wr.rkey = f->to->key ^ 0x5500;
		break;
	case FLOW_BEYOND:
		o->wr.rkey = f->to->key;
		o->wr.remote = f->to->va + FLOW_RAM - (o->wr.kind >= PEER_CAS ? 0 : o->wr.len - 1);
		break;
	case FLOW_NO_RIGHT:
		o->wr.rkey = f->to->key_read;
		break;
	case FLOW_DEAD_KEY:
		o->wr.rkey = f->to->inv[0];
		break;
	case FLOW_UNALIGNED:
		o->wr.remote += 4;
		break;
	default:
		break;
	}
}

static void
draw(struct flow *f, struct flow_op *o, uint32_t id)
{
	uint8_t *want = o->want;
	bool spoilt;

	memset(o, 0, sizeof(*o));
	o->want = want;
	o->seed = (uint32_t)rnd_next(&f->rng);
	o->wr.id = id;
	o->wr.kind = some_kind(f);
	o->wr.len = some_len(f);
	o->wr.local = slot_at(id);
	o->wr.imm = (uint32_t)rnd_next(&f->rng);
	o->wr.fence = f->fences && rnd(&f->rng, 8) == 0;
	o->wr.se = rnd(&f->rng, 4) == 0;
	o->signalled = rnd(&f->rng, 3) || id + 1 == f->total || id % 8 == 7;
	memset(f->from->ram + o->wr.local, FLOW_EMPTY, FLOW_LEN);
	spoilt = is_wrong(f, o);
	if (spoilt)
		spoil_message(f, o);
	if (o->wr.kind >= PEER_CAS)
		draw_atomic(f, o);
	else if (o->wr.kind >= PEER_WRITE)
		draw_memory(f, o);
	else
		fill(f->from->ram + o->wr.local, o->seed, o->wr.len);
	if (o->wr.kind == PEER_SEND_INV)
		o->wr.imm = f->to->inv[f->invs++];
	if (f->wrong_at != UINT32_MAX)
		o->end = PEER_FLUSH;
	if (spoilt)
		spoil_target(f, o);
}

/* ---- effects on the other end */

static void
expect_message(struct flow *f, const struct flow_op *o)
{
	bool wrote = o->wr.kind == PEER_WRITE_IMM;

	f->msg[f->msgs++ % (2 * FLOW_SLOTS)] = (struct flow_msg){
		.len = o->wr.len,
		.imm = o->wr.imm,
		.seed = o->seed,
		.with_imm = o->wr.kind == PEER_SEND_IMM || wrote,
		.with_inv = o->wr.kind == PEER_SEND_INV,
		.wrote = wrote,
		.se = o->wr.se,
	};
}

static void
apply(struct flow *f, const struct flow_op *o)
{
	const struct peer_wr *w = &o->wr;
	uint64_t *word = &f->word[(w->remote - f->to->va - FLOW_WORDS_AT) / 8 % FLOW_WORDS];

	if (w->kind <= PEER_SEND_INV || w->kind == PEER_WRITE_IMM)
		expect_message(f, o);
	if (w->kind == PEER_WRITE || w->kind == PEER_WRITE_IMM)
		memcpy(f->win + (w->remote - f->to->va - FLOW_WIN_AT), f->from->ram + w->local, w->len);
	else if (w->kind == PEER_FADD)
		*word += w->swap_add;
	else if (w->kind == PEER_CAS && *word == w->compare)
		*word = w->swap_add;
}

/* ---- posting */

static void
post_one(struct flow *f, uint64_t now)
{
	struct flow_op *o = &f->op[f->posted % FLOW_SLOTS];

	draw(f, o, f->posted);
	if (o->end == PEER_OK)
		apply(f, o);
	if (f->wrong_at == f->posted) {
		f->wrong_since = now;
		f->other->over = true;
	}
	f->posted_at = now;
	f->posted++;
	f->from->post(f->from->ctx, &o->wr, o->signalled);
}

static bool
may_post(const struct flow *f)
{
	return f->posted < f->total && f->posted - f->done < FLOW_SLOTS &&
	       (f->recv_failed || f->msgs - f->recvd < FLOW_SLOTS);
}

static void
run_sends(struct flow *f, uint64_t now)
{
	uint32_t n = rnd_from(&f->rng, 1, f->burst);

	while (n-- && may_post(f))
		post_one(f, now);
	f->due = now + rnd(&f->rng, (uint32_t)f->pause);
}

static bool
may_receive(const struct flow *f)
{
	return f->recvs - f->recvd < FLOW_BUFS && f->recvs < f->stop_recvs && !f->recv_failed;
}

static void
run_recvs(struct flow *f, uint64_t now)
{
	uint32_t n = f->late_recvs ? rnd(&f->rng, 4) : FLOW_BUFS;

	while (n-- && may_receive(f)) {
		uint32_t id = f->recvs++, room = id == f->short_recv ? 3 : FLOW_LEN;

		memset(f->to->ram + buf_at(id), FLOW_EMPTY, FLOW_LEN);
		f->to->post_recv(f->to->ctx, id, buf_at(id), room);
	}
	f->recv_due = now + (f->late_recvs ? rnd(&f->rng, 300000) : 0);
}

uint64_t
flow_run(struct flow *f, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (f->failed)
		return next;
	if (may_receive(f)) {
		if (now >= f->recv_due)
			run_recvs(f, now);
		if (may_receive(f))
			next = f->recv_due > now ? f->recv_due : now + 1;
	}
	if (may_post(f)) {
		if (now >= f->due)
			run_sends(f, now);
		if (may_post(f) && f->due < next)
			next = f->due > now ? f->due : now + 1;
	}
	return next;
}

/* ---- completions */

static void
judge_data(struct flow *f, const struct flow_op *o)
{
	const uint8_t *at = f->from->ram + o->wr.local;
	uint64_t orig;

	memcpy(&orig, at, 8);
	if (o->wr.kind >= PEER_CAS && orig != o->orig)
		f->wrong(f->ctx, "%s: atomic %u found 0x%llx, not 0x%llx", f->name, (unsigned int)o->wr.id,
			 (unsigned long long)orig, (unsigned long long)o->orig);
	if (o->wr.kind == PEER_READ && memcmp(at, o->want, o->wr.len))
		f->wrong(f->ctx, "%s: READ %u of %u bytes brought others than are there", f->name,
			 (unsigned int)o->wr.id, o->wr.len);
	for (uint32_t i = o->wr.kind >= PEER_READ ? o->wr.len : FLOW_LEN; i < FLOW_ROOM; i++)
		if (at[i] != FLOW_EMPTY) {
			f->wrong(f->ctx, "%s: request %u: byte %u behind its memory was changed", f->name,
				 (unsigned int)o->wr.id, i);
			return;
		}
}

/* True when a request may end with this status. */
static bool
may_end(const struct flow *f, const struct flow_op *o, enum peer_end end)
{
	if (f->failed)
		return end == PEER_FLUSH;
	if (end == o->end && end != PEER_FLUSH)
		return true;
	if (end == PEER_RETRY_EXC && (f->cut || f->over || (f->lossy && f->wrong_at != UINT32_MAX)))
		return true;
	return end == PEER_FLUSH && f->over;
}

void
flow_sent(struct flow *f, uint64_t now, uint64_t id, enum peer_end end)
{
	struct flow_op *o;

	f->ends[end]++;
	f->due = f->due > now ? f->due : now;
	for (;; f->done++) {
		if (f->done == f->posted) {
			f->wrong(f->ctx, "%s: request %u completed, and not in its turn, or twice",
				 f->name, (unsigned int)id);
			return;
		}
		o = &f->op[f->done % FLOW_SLOTS];
		if (o->wr.id == id)
			break;
		if (o->signalled || o->end != PEER_OK || f->failed) {
			f->wrong(f->ctx, "%s: request %u completed before request %u", f->name,
				 (unsigned int)id, (unsigned int)o->wr.id);
			return;
		}
		judge_data(f, o);
	}
	f->done++;
	if (!may_end(f, o, end))
		f->wrong(f->ctx, "%s: request %u ended with %d, not %d", f->name, (unsigned int)id, end,
			 f->failed ? PEER_FLUSH : o->end);
	else if (end == PEER_OK)
		judge_data(f, o);
	if (end != PEER_OK && !f->failed) {
		f->failed = true;
		f->failed_at = now;
		f->other->over = true;
	}
}

static void
judge_message(struct flow *f, const struct peer_recv *r, const struct flow_msg *m)
{
	const uint8_t *at = f->to->ram + buf_at(r->id);
	const char *why = r->end != PEER_OK             ? "status"
			  : r->len != m->len            ? "length"
			  : r->with_imm != m->with_imm  ? "immediate or none"
			  : r->with_inv != m->with_inv  ? "key invalidated or none"
			  : r->wrote != m->wrote        ? "SEND or WRITE"
			  : (m->with_imm || m->with_inv) && r->imm != m->imm ? "the immediate or key"
									     : NULL;
	uint32_t len = m->wrote ? 0 : m->len;

	for (uint32_t i = 0; i < FLOW_ROOM && !why; i++)
		if (at[i] != (i < len ? rnd_byte(m->seed, i) : FLOW_EMPTY))
			why = i < len ? "bytes" : "bytes behind the message";
	if (why)
		f->wrong(f->ctx, "%s: message %u of %u bytes: wrong %s (%d, %u bytes, 0x%x)", f->name,
			 f->recvd, m->len, why, r->end, r->len, r->imm);
}

void
flow_received(struct flow *f, uint64_t now, const struct peer_recv *r)
{
	(void)now;
	if (r->id != f->recvd) {
		f->wrong(f->ctx, "%s: receive %u completed, and %u was to", f->name, (unsigned int)r->id,
			 f->recvd);
		return;
	}
	if (r->end != PEER_OK || f->recv_failed) {
		bool too_long = r->end == PEER_LOC_LEN && !f->recv_failed && r->id == f->short_recv;
		bool known = f->over || f->wrong_at != UINT32_MAX || f->cut;

		if (!too_long && (r->end != PEER_FLUSH || !known))
			f->wrong(f->ctx, "%s: receive %u ended with %d", f->name, (unsigned int)r->id,
				 r->end);
		f->recv_failed = true;
		f->recvd++;
		return;
	}
	if (f->recvd == f->msgs)
		f->wrong(f->ctx, "%s: a message more than was sent (%d)", f->name, r->end);
	else
		judge_message(f, r, &f->msg[f->recvd % (2 * FLOW_SLOTS)]);
	f->recvd++;
}

bool
flow_finished(const struct flow *f)
{
	if (f->failed || f->over)
		return f->done == f->posted;
	return f->done == f->total && f->recvd == f->msgs;
}

/* ---- the end */

static void
judge_guards(struct flow *f, const uint8_t *ram, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (ram[i] != FLOW_EMPTY) {
			f->wrong(f->ctx, "%s: byte %u, which is nobody's, was changed", f->name, i);
			return;
		}
}

static void
judge_window(struct flow *f)
{
	const uint8_t *ram = f->to->ram;

	for (uint32_t i = 0; i < FLOW_WIN; i++)
		if (ram[FLOW_WIN_AT + i] != f->win[i]) {
			f->wrong(f->ctx, "%s: byte %u of the window is not what was written last", f->name, i);
			break;
		}
	if (memcmp(ram + FLOW_WORDS_AT, f->word, sizeof(f->word)))
		f->wrong(f->ctx, "%s: an atomic was executed not once", f->name);
}

void
flow_judge(struct flow *f, bool ended)
{
	const uint8_t *ram = f->to->ram;

	/* The executed requests are known when all were executed, or all before the refused one. */
	if (!f->failed || f->wrong_at != UINT32_MAX)
		judge_window(f);
	if (ended && f->recvd != f->recvs)
		f->wrong(f->ctx, "%s: %u of %u receives never came back", f->name, f->recvs - f->recvd,
			 f->recvs);
	judge_guards(f, ram, 0, FLOW_WIN_AT);
	judge_guards(f, ram, FLOW_WIN_AT + FLOW_WIN, FLOW_WORDS_AT);
	judge_guards(f, ram, FLOW_WORDS_AT + FLOW_WORDS * 8, FLOW_BUFS_AT);
}
