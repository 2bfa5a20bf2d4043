/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a session connection and the steps between them (FO-11 to FO-17, FO-19). */
#include "session/priv.h"

#include <string.h>

static const char *const state_name[URN_SESS_STATE_COUNT] = {
#define X(name, meaning) #name,
	URN_SESS_STATES(X)
#undef X
};

static const char *const counter_text[URN_SESS_COUNTER_COUNT] = {
#define X(name, text) text,
	URN_SESS_COUNTERS(X)
#undef X
};

static const char *const reason_text[URN_SESS_REASON_COUNT] = {
#define X(name, text) text,
	URN_SESS_REASONS(X)
#undef X
};

const char *
urn_sess_state_name(unsigned int state)
{
	return state < URN_SESS_STATE_COUNT ? state_name[state] : "?";
}

const char *
urn_sess_counter_text(unsigned int counter)
{
	return counter < URN_SESS_COUNTER_COUNT ? counter_text[counter] : "?";
}

const char *
urn_sess_reason_text(unsigned int reason)
{
	return reason < URN_SESS_REASON_COUNT ? reason_text[reason] : "?";
}

static uint32_t
bit(uint32_t path)
{
	return path < URN_SESS_PATHS ? 1u << path : 0;
}

static bool
moving(enum urn_sess_state s)
{
	return s != URN_SESS_CONNECTED && s != URN_SESS_MIGRATED && s != URN_SESS_DEAD;
}

/* Change the state; the last connection of a session that arrives wakes the program (FO-17). */
static void
enter(struct urn_sess_conn *c, enum urn_sess_state s)
{
	bool was = moving(c->state), is = moving(s);
	enum urn_sess_state from = c->state;

	c->state = s;
	if (c->cfg.step && s != from)
		c->cfg.step(c->cfg.arg, from);
	if (is && !was)
		c->cfg.group->moving++;
	else if (was && !is && --c->cfg.group->moving == 0)
		urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_WAKE});
}

bool
urn_sess_init(struct urn_sess_conn *c, const struct urn_sess_config *cfg)
{
	*c = (struct urn_sess_conn){0};
	if (!cfg->group || !cfg->act || !cfg->wr || !cfg->wrs || (cfg->wrs & (cfg->wrs - 1)) ||
	    (cfg->recvs && !cfg->recv) || !cfg->paths || cfg->paths >> URN_SESS_PATHS)
		return false;
	c->cfg = *cfg;
	c->alive = cfg->paths;
	c->path = (uint32_t)__builtin_ctz(cfg->paths);
	c->open = true;
	c->next_id = 1;
	return true;
}

void
urn_sess_fini(struct urn_sess_conn *c)
{
	c->open = false;
	enter(c, URN_SESS_DEAD);
}

/* ---- messages to the peer */

static void
tell(struct urn_sess_conn *c, uint32_t flags)
{
	struct urn_sess_report r = {
		.epoch = c->epoch,
		.flags = flags | (c->record.log ? URN_SESS_R_LOG : 0) |
			 (c->record.unsure ? URN_SESS_R_UNSURE : 0),
		.paths = c->told,
		.sent = c->sent,
		.received = c->received,
		.sends = c->sends,
		.atomics = c->record.count,
	};

	memcpy(r.old, c->record.old, sizeof(r.old));
	urn_sess_count(c, URN_SESS_C_REPORTS);
	urn_sess_emit(c, &(struct urn_sess_action){
				 .act = URN_SESS_TELL, .epoch = c->epoch, .message = &r});
}

static void
tell_migrated(struct urn_sess_conn *c)
{
	urn_sess_count(c, URN_SESS_C_MIGRATEDS);
	urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_READY, .epoch = c->epoch});
}

/* The epoch of a dead end is a new one, so that the peer hears it in each state. */
void
urn_sess_bury(struct urn_sess_conn *c, enum urn_sess_reason reason)
{
	c->reason = reason;
	c->open = false;
	c->told = 0;
	c->epoch++;
	enter(c, URN_SESS_DEAD);
	if (reason != URN_SESS_PEER_DEAD)
		tell(c, URN_SESS_R_DEAD);
}

/* ---- the way from state to state */

/* Take the fields of an epoch. join() has set peer and heard before. */
static void
renew(struct urn_sess_conn *c, uint32_t epoch)
{
	urn_sess_count(c, moving(c->state) ? URN_SESS_C_AGAIN : URN_SESS_C_MIGRATIONS);
	c->heard = c->heard && c->peer.epoch == epoch;
	c->epoch = epoch;
	c->reported = false;
}

/* The paths of a REPORT. */
static uint32_t
telling(const struct urn_sess_conn *c)
{
	return c->alive | (c->alive & c->shun) << URN_SESS_PATHS;
}

/* Send the epoch's first REPORT. */
static void
ask(struct urn_sess_conn *c)
{
	if (!c->alive) {
		urn_sess_end(c, URN_SESS_NO_PATH, c->tail, URN_SESS_FLUSHED);
		return;
	}
	c->heard = false;
	c->reported = true;
	c->told = telling(c);
	enter(c, URN_SESS_REPORTED);
	tell(c, 0);
}

/*
 * Both REPORTs are known, and no queue pair is in use: choose the path, which both sides choose
 * alike. If it died meanwhile, the next epoch begins, of which the peer has told nothing yet.
 */
static void
decide(struct urn_sess_conn *c)
{
	uint32_t both, liked;

	if (!c->reported)
		c->told = telling(c);
	if (!urn_sess_judge(c))
		return;
	both = c->told & c->peer.paths & URN_SESS_ALL;
	if (!both) {
		urn_sess_end(c, URN_SESS_NO_PATH, c->tail, URN_SESS_FLUSHED);
		return;
	}
	liked = both & ~((c->told | c->peer.paths) >> URN_SESS_PATHS);
	c->next = (uint32_t)__builtin_ctz(liked ? liked : both);
	if (!(c->alive & bit(c->next))) {
		renew(c, c->epoch + 1);
		ask(c);
		return;
	}
	enter(c, URN_SESS_BINDING);
	urn_sess_emit(c, &(struct urn_sess_action){
				 .act = URN_SESS_BIND_ALL, .path = c->next, .epoch = c->epoch});
}

/* All completions of the left queue pair are known: send REPORT, or answer the peer's. */
static void
proceed(struct urn_sess_conn *c)
{
	if (c->alive && c->heard && urn_sess_plausible(c, &c->peer)) {
		decide(c);
		return;
	}
	if (c->alive && c->heard)
		urn_sess_count(c, URN_SESS_C_FORGED);
	ask(c);
}

/* Begin a migration, or begin it anew with the next epoch. */
static void
begin(struct urn_sess_conn *c, uint32_t epoch)
{
	renew(c, epoch);
	if (!c->open) {
		proceed(c); /* no queue pair was used since the last drain */
		return;
	}
	c->alive &= ~bit(c->path); /* a queue pair that was fenced has to be made anew */
	enter(c, URN_SESS_SLEEPING);
	urn_sess_emit(c, &(struct urn_sess_action){
				 .act = URN_SESS_FENCE, .path = c->path, .epoch = c->used});
}

void
urn_sess_fenced(struct urn_sess_conn *c, uint32_t epoch)
{
	if (c->state != URN_SESS_SLEEPING || epoch != c->used) {
		urn_sess_count(c, URN_SESS_C_BAD_EVENT);
		return;
	}
	enter(c, URN_SESS_DRAINING);
	urn_sess_emit(c, &(struct urn_sess_action){
				 .act = URN_SESS_DRAIN, .path = c->path, .epoch = c->used});
}

bool
urn_sess_found(struct urn_sess_conn *c, uint32_t index, const struct urn_sess_header *h)
{
	if (c->state != URN_SESS_DRAINING || c->found == c->cfg.recvs) {
		urn_sess_count(c, URN_SESS_C_BAD_EVENT);
		return false;
	}
	c->cfg.recv[c->found++] = (struct urn_sess_recv){
		.index = index,
		.header = h ? *h : (struct urn_sess_header){0},
	};
	return true;
}

void
urn_sess_drained(struct urn_sess_conn *c, uint32_t epoch, const struct urn_sess_record *record)
{
	if (c->state != URN_SESS_DRAINING || epoch != c->used) {
		urn_sess_count(c, URN_SESS_C_BAD_EVENT);
		return;
	}
	c->open = false;
	c->record = *record;
	proceed(c);
}

/* Requests are on the new path, and the program's come behind them. */
static void
arrive(struct urn_sess_conn *c)
{
	urn_sess_repost(c);
	enter(c, URN_SESS_MIGRATED);
}

void
urn_sess_rebound(struct urn_sess_conn *c, uint32_t epoch)
{
	if (c->state != URN_SESS_BINDING || epoch != c->epoch)
		return; /* the answer for a path that died meanwhile */
	c->path = c->next;
	c->used = c->epoch;
	c->open = true;
	urn_sess_receive_again(c);
	if (c->peer.flags & URN_SESS_R_READY) {
		arrive(c);
		tell_migrated(c);
		return;
	}
	enter(c, URN_SESS_ANSWERED);
	if (c->reported)
		tell_migrated(c); /* the REPORTs crossed */
	else
		tell(c, URN_SESS_R_READY);
}

void
urn_sess_resume(struct urn_sess_conn *c)
{
	if (c->state == URN_SESS_MIGRATED)
		enter(c, URN_SESS_CONNECTED);
}

/* ---- paths */

void
urn_sess_down(struct urn_sess_conn *c, uint32_t path)
{
	bool lost = false;

	c->alive &= ~bit(path);
	switch (c->state) {
	case URN_SESS_CONNECTED:
	case URN_SESS_MIGRATED:
	case URN_SESS_ANSWERED:
		lost = path == c->path;
		break;
	case URN_SESS_REPORTED:
		lost = !(c->alive & c->told);
		break;
	case URN_SESS_BINDING:
		lost = path == c->next;
		break;
	default: /* SLEEPING, DRAINING: REPORT tells the paths alive then */
		break;
	}
	if (lost)
		begin(c, c->epoch + 1);
}

void
urn_sess_up(struct urn_sess_conn *c, uint32_t path)
{
	c->alive |= bit(path) & c->cfg.paths;
}

void
urn_sess_fail_back(struct urn_sess_conn *c)
{
	if (c->state == URN_SESS_CONNECTED && (c->alive & (bit(c->path) - 1)))
		begin(c, c->epoch + 1);
}

/* ---- messages of the peer: one function a state for a REPORT of our epoch */

static void
hold(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	if (c->heard && !(r->flags & URN_SESS_R_DEAD))
		urn_sess_count(c, URN_SESS_C_REPEATED);
	else
		c->peer = *r;
	c->heard = true;
}

static void
report_reported(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	if (!urn_sess_plausible(c, r)) {
		urn_sess_count(c, URN_SESS_C_FORGED);
		return;
	}
	c->peer = *r;
	c->heard = true;
	decide(c);
}

static void
report_binding(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	urn_sess_count(c, URN_SESS_C_REPEATED);
	c->peer.flags |= r->flags & URN_SESS_R_READY;
}

/* READY proves as much as MIGRATED does. Without it the peer lacks our answer. */
static void
report_answered(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	urn_sess_count(c, URN_SESS_C_REPEATED);
	if (r->flags & URN_SESS_R_READY)
		arrive(c);
	else
		tell(c, URN_SESS_R_READY);
}

/* The peer lacks our MIGRATED. */
static void
report_migrated(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	(void)r;
	urn_sess_count(c, URN_SESS_C_REPEATED);
	if (c->epoch)
		tell_migrated(c);
}

static void
report_dead(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	if (r->flags & URN_SESS_R_DEAD)
		return;
	if (r->epoch > c->epoch)
		c->epoch = r->epoch;
	tell(c, URN_SESS_R_DEAD);
}

static void (*const on_report[URN_SESS_STATE_COUNT])(struct urn_sess_conn *c,
						     const struct urn_sess_report *r) = {
	[URN_SESS_CONNECTED] = report_migrated,
	[URN_SESS_SLEEPING] = hold,
	[URN_SESS_DRAINING] = hold,
	[URN_SESS_REPORTED] = report_reported,
	[URN_SESS_BINDING] = report_binding,
	[URN_SESS_ANSWERED] = report_answered,
	[URN_SESS_MIGRATED] = report_migrated,
	[URN_SESS_DEAD] = report_dead,
};

/* The peer is at a newer epoch: take part in it. */
static void
join(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	c->peer = *r;
	c->heard = true;
	if (c->state == URN_SESS_SLEEPING || c->state == URN_SESS_DRAINING)
		c->epoch = r->epoch;
	else
		begin(c, r->epoch);
}

/* True when no peer sends such a REPORT. A peer is ready only after our REPORT of its epoch. */
static bool
impossible(const struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	const uint32_t flags =
		URN_SESS_R_READY | URN_SESS_R_LOG | URN_SESS_R_UNSURE | URN_SESS_R_DEAD;
	const uint32_t all = (r->paths | r->paths >> URN_SESS_PATHS) & URN_SESS_ALL;
	bool newer = r->epoch > c->epoch;

	return !r->epoch || (r->flags & ~flags) || (all & ~c->cfg.paths) ||
	       r->received >= c->next_id || (newer && r->epoch - c->epoch > URN_SESS_AHEAD) ||
	       (newer && (r->flags & URN_SESS_R_READY));
}

void
urn_sess_report(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	if (impossible(c, r)) {
		urn_sess_count(c, URN_SESS_C_FORGED);
		return;
	}
	if (c->state == URN_SESS_DEAD)
		report_dead(c, r); /* a peer at an older epoch, too: it asks until it hears */
	else if (r->epoch < c->epoch)
		urn_sess_count(c, URN_SESS_C_OLD_EPOCH);
	else if (r->epoch > c->epoch)
		join(c, r);
	else if ((r->flags & URN_SESS_R_DEAD) && c->open && c->state != URN_SESS_SLEEPING &&
		 c->state != URN_SESS_DRAINING)
		begin(c, c->epoch + 1); /* drain, then ask the dead peer again */
	else
		on_report[c->state](c, r);
}

void
urn_sess_migrated(struct urn_sess_conn *c, uint32_t epoch)
{
	if (epoch != c->epoch) {
		urn_sess_count(c, epoch < c->epoch ? URN_SESS_C_OLD_EPOCH : URN_SESS_C_FORGED);
		return;
	}
	if (c->state == URN_SESS_ANSWERED)
		arrive(c);
	else if (c->state == URN_SESS_BINDING)
		c->peer.flags |= URN_SESS_R_READY;
	else
		urn_sess_count(c, URN_SESS_C_REPEATED);
}

void
urn_sess_tick(struct urn_sess_conn *c)
{
	if (c->state == URN_SESS_REPORTED)
		tell(c, 0);
	else if (c->state == URN_SESS_ANSWERED)
		tell(c, URN_SESS_R_READY);
}
