/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The source of a stream: how the bytes of a send go (SF-3 to SF-9). A SinkAvail is valid for the
 * byte at tx.sent and no other: each byte that is sent by another way makes it void, here at once,
 * and at the sink when the byte comes.
 */
#include "stream/priv.h"

/* Ways for the rest of a send. */
enum way { BY_COPY, BY_WRITE, BY_READ_OFFER, BY_WRITE_OFFER, BY_ASKING };

static struct urn_st_job *
head(struct urn_st *s)
{
	return &s->tx.job[s->tx.first % URN_ST_JOBS];
}

static uint64_t
left_of(const struct urn_st_job *j)
{
	return j->area.bytes - j->done;
}

static uint32_t
credits(const struct urn_st *s)
{
	return s->tx.limit - s->tx.data;
}

/* The oldest send is complete. */
static bool
complete(struct urn_st *s, enum urn_st_status status)
{
	const struct urn_st_job j = *head(s);

	s->tx.first++;
	s->tx.count--;
	s->tx.state = URN_ST_TX_IDLE;
	if (j.transaction)
		urn_st_sink_release(s, j.carried);
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_SENT,
					      .id = j.area.id,
					      .bytes = j.done,
					      .status = status});
	return true;
}

/* Bytes of the oldest send are on their way. The send ends with its last byte, unless a completion
 * is due. */
static void
advance(struct urn_st *s, uint64_t bytes)
{
	head(s)->done += bytes;
	s->tx.sent += bytes;
	s->tx.advertised = false;
}

/* ---- decisions */

/* True when the rest of a send goes to the peer's advertised memory. */
static bool
wants_write(const struct urn_st *s, const struct urn_st_job *j)
{
	const struct urn_st_tx *t = &s->tx;
	uint64_t from = t->command ? t->threshold.floor : t->threshold.value;

	if (!t->advertised || t->force == URN_ST_FORCE_COPY ||
	    t->threshold.value == URN_ST_INFINITE)
		return false;
	if (j->small && !(s->cfg.self.abilities & URN_ST_RESUMES))
		return false;
	if (t->force == URN_ST_FORCE_READ && s->cfg.peer.abilities & URN_ST_CAN_READ)
		return false;
	return t->force == URN_ST_FORCE_WRITE || left_of(j) >= from;
}

/* True when the rest of a send is announced by SrcAvail, to go by zero copy. */
static bool
wants_offer(const struct urn_st *s, const struct urn_st_job *j)
{
	const struct urn_st_tx *t = &s->tx;

	if (t->force == URN_ST_FORCE_COPY || t->threshold.value == URN_ST_INFINITE)
		return false;
	/* A sink that has memory again behind its SendSm is read from again, when reading is
	 * forced. */
	if (j->small && t->advertised && t->force == URN_ST_FORCE_READ &&
	    s->cfg.self.abilities & URN_ST_RESUMES)
		return true;
	if (j->copying)
		return false;
	return t->force != URN_ST_ANY || left_of(j) >= t->threshold.value;
}

static enum way
choose(const struct urn_st *s, const struct urn_st_job *j)
{
	bool reads = s->cfg.peer.abilities & URN_ST_CAN_READ && s->tx.force != URN_ST_FORCE_WRITE;

	if (wants_write(s, j))
		return BY_WRITE;
	/* Memory that is announced already is taken: a SrcAvail for a write would make the sink
	 * wait for that. */
	if (wants_offer(s, j))
		return reads ? BY_READ_OFFER : s->tx.advertised ? BY_WRITE : BY_WRITE_OFFER;
	if (credits(s) == 0 && !j->small && s->cfg.peer.abilities & URN_ST_ON_DEMAND)
		return BY_ASKING;
	return BY_COPY;
}

/* ---- ways */

/* A SinkAvail for the answer rides on a command that goes in one message (SF-7). */
static void
carry(struct urn_st *s, const struct urn_st_job *j, struct urn_st_msg *m)
{
	if (!j->transaction || j->done || m->length < j->area.bytes ||
	    !urn_st_sink_carry(s, j->carried, &m->advert))
		return;
	m->flags |= URN_ST_F_ADVERT;
	urn_st_decide(s, URN_ST_D_CARRY, s->tx.sent, m->advert.bytes);
}

/* One message of BCopy. */
static bool
copy(struct urn_st *s)
{
	struct urn_st_job *j = head(s);
	struct urn_st_msg m = {.kind = URN_ST_DATA, .offset = s->tx.sent};
	uint64_t at = j->area.addr + j->done;

	s->tx.state = URN_ST_TX_COPY;
	if (!j->copying)
		urn_st_decide(s, URN_ST_D_COPY, s->tx.sent, left_of(j));
	if (!j->copying && urn_st_threshold_kept(&s->tx.threshold, j->area.bytes))
		urn_st_decide(s, URN_ST_D_TX_LOWERED, s->tx.sent, s->tx.threshold.value);
	j->copying = true;
	if (credits(s) == 0 || !urn_st_may_send(s))
		return false;
	m.length = left_of(j) < s->cfg.peer.size ? (uint32_t)left_of(j) : s->cfg.peer.size;
	carry(s, j, &m);
	advance(s, m.length);
	s->tx.data++;
	urn_st_emit(s, &m, at, j->area.lkey);
	return left_of(j) || complete(s, URN_ST_OK);
}

/* Write into the peer's memory, and say so behind it: the queue pair keeps the order. */
static bool
write_to_sink(struct urn_st *s)
{
	struct urn_st_job *j = head(s);
	const struct urn_st_advert a = s->tx.advert;
	uint64_t bytes = left_of(j) < a.bytes ? left_of(j) : a.bytes;
	struct urn_st_msg m = {.kind = URN_ST_WR_COMPL, .offset = a.offset, .bytes = bytes};

	if (!urn_st_may_send(s))
		return false;
	urn_st_decide(s, URN_ST_D_WRITE, a.offset, bytes);
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_WRITE,
					      .addr = j->area.addr + j->done,
					      .lkey = j->area.lkey,
					      .raddr = a.addr,
					      .rkey = a.key,
					      .bytes = bytes});
	advance(s, bytes);
	s->tx.state = URN_ST_TX_WRITING;
	j->copying = j->small = false;
	urn_st_emit(s, &m, 0, 0);
	return true;
}

/* Announce the rest of a send. flags: answers that are allowed */
static bool
offer(struct urn_st *s, enum urn_st_decision why, uint16_t flags)
{
	struct urn_st_job *j = head(s);
	uint64_t left = left_of(j), at = j->area.addr + j->done;
	struct urn_st_msg m = {.kind = URN_ST_SRC_AVAIL,
			       .flags = flags,
			       .offset = s->tx.sent,
			       .bytes = left,
			       .addr = at,
			       .key = j->area.rkey};

	if (!urn_st_may_send(s))
		return false;
	if (credits(s) && flags) {
		uint64_t most =
			s->cfg.inlined < s->cfg.peer.size ? s->cfg.inlined : s->cfg.peer.size;

		m.length = (uint32_t)(left - 1 < most ? left - 1 : most);
	}
	urn_st_decide(s, why, s->tx.sent, left);
	s->tx.answer = flags;
	s->tx.offer_start = s->tx.sent;
	s->tx.offer_bytes = left;
	s->tx.data += m.length != 0;
	advance(s, m.length);
	j->copying = j->small = false;
	s->tx.state = URN_ST_TX_OFFERED;
	urn_st_emit(s, &m, at, j->area.lkey);
	return true;
}

static bool
go(struct urn_st *s)
{
	switch (choose(s, head(s))) {
	case BY_WRITE:
		return write_to_sink(s);
	case BY_READ_OFFER:
		return offer(s, URN_ST_D_OFFER_READ, URN_ST_F_READ);
	case BY_WRITE_OFFER:
		return offer(s, URN_ST_D_OFFER_WRITE, URN_ST_F_WRITE);
	case BY_ASKING:
		return offer(s, URN_ST_D_ASK, 0);
	default:
		return copy(s);
	}
}

/* ---- states */

static bool
end(struct urn_st *s)
{
	struct urn_st_msg m = {.kind = URN_ST_FIN, .offset = s->tx.sent};

	if (!urn_st_may_send(s))
		return false;
	s->tx.state = URN_ST_TX_ENDED;
	s->tx.advertised = false;
	urn_st_decide(s, URN_ST_D_FIN, s->tx.sent, 0);
	urn_st_emit(s, &m, 0, 0);
	return true;
}

static bool
step_idle(struct urn_st *s)
{
	if (s->tx.count && s->tx.stopped)
		return complete(s, URN_ST_GONE);
	if (s->tx.count)
		return go(s);
	return (s->tx.shut || s->tx.stopped) && end(s);
}

/* A SrcAvail that asks for a write has its answer in a SinkAvail for the byte behind those inline.
 */
static bool
step_offered(struct urn_st *s)
{
	if (s->tx.stopped)
		return complete(s, URN_ST_GONE);
	return s->tx.advertised && write_to_sink(s);
}

static bool
step_nothing(struct urn_st *s)
{
	(void)s;
	return false;
}

bool
urn_st_source_step(struct urn_st *s)
{
	static bool (*const step[URN_ST_TX_COUNT])(struct urn_st *) = {
		[URN_ST_TX_IDLE] = step_idle,	    [URN_ST_TX_COPY] = step_idle,
		[URN_ST_TX_OFFERED] = step_offered, [URN_ST_TX_WRITING] = step_nothing,
		[URN_ST_TX_ENDED] = step_nothing,
	};

	return step[s->tx.state](s);
}

/* ---- messages of the peer's sink, and completions */

/* True when a SinkAvail is for the byte that goes next, and may be written to. */
static bool
is_valid(struct urn_st *s, const struct urn_st_advert *a)
{
	bool offered = s->tx.state == URN_ST_TX_OFFERED;

	if (s->tx.state == URN_ST_TX_ENDED || s->tx.stopped || a->offset != s->tx.sent) {
		urn_st_decide(s, URN_ST_D_STALE, a->offset, a->bytes);
		return false;
	}
	if (offered && !(s->tx.answer & URN_ST_F_WRITE)) {
		urn_st_decide(s, URN_ST_D_CROSS_READ, a->offset, a->bytes);
		return false;
	}
	if (offered)
		urn_st_decide(s, URN_ST_D_ANSWERED, a->offset, a->bytes);
	return true;
}

void
urn_st_source_advert(struct urn_st *s, const struct urn_st_msg *m, const struct urn_st_advert *a,
		     bool command)
{
	s->tx.seen++;
	if (a->offset > s->tx.sent) {
		urn_st_die(s, URN_ST_R_OFFSET, m, s->tx.sent);
		return;
	}
	if (urn_st_threshold_lower(&s->tx.threshold))
		urn_st_decide(s, URN_ST_D_TX_LOWERED, s->tx.sent, s->tx.threshold.value);
	if (!is_valid(s, a))
		return;
	if (s->tx.advertised) {
		urn_st_die(s, URN_ST_R_TWO_ADVERTS, m, s->tx.sent);
		return;
	}
	s->tx.advertised = true;
	s->tx.command = command;
	s->tx.advert = *a;
}

void
urn_st_source_read(struct urn_st *s, const struct urn_st_msg *m)
{
	uint64_t all = s->tx.offer_start + s->tx.offer_bytes;

	if (s->tx.state != URN_ST_TX_OFFERED || !(s->tx.answer & URN_ST_F_READ)) {
		urn_st_die(s, URN_ST_R_STALE_RD_COMPL, m, s->tx.sent);
		return;
	}
	if (m->offset != all || m->bytes != s->tx.offer_bytes) {
		urn_st_die(s, URN_ST_R_OFFSET, m, all);
		return;
	}
	advance(s, all - s->tx.sent);
	complete(s, URN_ST_OK);
}

void
urn_st_source_small(struct urn_st *s, const struct urn_st_msg *m)
{
	uint64_t all = s->tx.offer_start + s->tx.offer_bytes;
	struct urn_st_job *j = head(s);

	if (s->tx.state != URN_ST_TX_OFFERED) {
		urn_st_die(s, URN_ST_R_STALE_SEND_SM, m, s->tx.sent);
		return;
	}
	if (m->offset < s->tx.sent || m->offset >= all ||
	    m->offset - s->tx.offer_start != m->bytes ||
	    (m->offset != s->tx.sent && !(s->tx.answer & URN_ST_F_READ))) {
		urn_st_die(s, URN_ST_R_OFFSET, m, s->tx.sent);
		return;
	}
	if (s->tx.answer && urn_st_threshold_raise(&s->tx.threshold))
		urn_st_decide(s, URN_ST_D_TX_RAISED, s->tx.sent, s->tx.threshold.value);
	advance(s, m->offset - s->tx.sent);
	j->copying = j->small = true;
	s->tx.state = URN_ST_TX_COPY;
	urn_st_decide(s, URN_ST_D_SMALL, s->tx.sent, left_of(j));
}

/* Stop is the answer to a SrcAvail, too: bytes up to its offset were read. */
void
urn_st_source_stop(struct urn_st *s, const struct urn_st_msg *m)
{
	bool read = s->tx.state == URN_ST_TX_OFFERED && s->tx.answer & URN_ST_F_READ;
	uint64_t most = read ? s->tx.offer_start + s->tx.offer_bytes : s->tx.sent;

	if (m->offset > most || s->tx.stopped) {
		urn_st_die(s, s->tx.stopped ? URN_ST_R_PLACE : URN_ST_R_OFFSET, m, s->tx.sent);
		return;
	}
	urn_st_decide(s, URN_ST_D_STOPPED, s->tx.sent, 0);
	s->tx.stopped = true;
	if (m->offset > s->tx.sent)
		advance(s, m->offset - s->tx.sent);
	if (read && left_of(head(s)) == 0)
		complete(s, URN_ST_OK);
}

void
urn_st_source_written(struct urn_st *s)
{
	if (s->state != URN_ST_S_OPEN || s->tx.state != URN_ST_TX_WRITING)
		return;
	s->tx.state = URN_ST_TX_IDLE;
	if (left_of(head(s)) == 0)
		complete(s, URN_ST_OK);
}

void
urn_st_source_fail(struct urn_st *s, bool fenced)
{
	bool touched = s->tx.state == URN_ST_TX_OFFERED || s->tx.state == URN_ST_TX_WRITING;

	if (touched && !fenced)
		return;
	while (s->tx.count)
		complete(s, URN_ST_FAILED);
}
