/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on switches: the thread that owns a switch copies its counters, a switch at a time. */
#include "report/report_priv.h"

#include "near.h"
#include "switch/fabric.h"
#include "switch/impair_words.h"

#include <stdio.h>
#include <stdlib.h>

/* A queue of a port, copied: bytes and frames that wait, most bytes so far. */
struct queue_view {
	uint64_t bytes, frames, peak;
	struct urn_switch_account account; /* all zero when the switch is lossy */
};

/* Counters of a port, each of 64 bits. */
struct plug_counts {
	struct urn_switch_counters c;
	struct urn_fabric_counters f; /* all zero unless the port is plugged */
	struct urn_impair_counters ic[2];
	struct urn_swq_counters qc[URN_SWQ_PRIORITIES];
	struct urn_mark_counters mc;
};
_Static_assert(sizeof(struct plug_counts) % sizeof(uint64_t) == 0, "counters are words");

enum { PLUG_WORDS = sizeof(struct plug_counts) / sizeof(uint64_t) };

/* A port of a switch, copied. */
struct plug_view {
	char name[32];
	bool up, linked, plugged;
	enum urn_switch_pfc pfc;
	struct urn_impair_config impair[2];
	struct plug_counts n; /* since the start, or since people had counters cleared */
	struct queue_view queue[URN_SWQ_PRIORITIES];
};

struct look {
	const struct urn_report_switch *sw;
	struct plug_view *plug; /* URN_SWITCH_MAX_PORTS */
	unsigned int plugs, queued, addresses;
};

/* Copy the queues of port i. */
static void
copy_queues(const struct urn_switch *sw, uint16_t i, struct plug_view *p)
{
	const struct urn_swq *queues = urn_switch_queues(sw, i);

	for (unsigned int k = 0; k < URN_SWQ_PRIORITIES; k++) {
		const struct urn_swq_level *l = &queues->level[k];
		struct queue_view *q = &p->queue[k];

		p->n.qc[k] = l->c;
		q->bytes = l->bytes;
		q->frames = l->tail - l->head;
		q->peak = l->peak;
		(void)urn_switch_account(sw, i, k, &q->account);
	}
}

/* In the thread of the switch's engine. */
static void
copy(void *arg)
{
	struct look *l = arg;
	struct urn_switch *sw = l->sw->sw;

	l->plugs = urn_switch_ports(sw); /* URN_SWITCH_MAX_PORTS at most */
	l->queued = urn_switch_queued(sw);
	l->addresses = urn_fdb_count(urn_switch_fdb(sw));
	for (uint16_t i = 0; i < (uint16_t)l->plugs; i++) {
		const struct urn_fabric_counters *f = urn_fabric_counters(l->sw->fabric, sw, i);
		struct plug_view *p = &l->plug[i];

		snprintf(p->name, sizeof(p->name), "%s", urn_switch_port_name(sw, i));
		p->up = urn_switch_port_is_up(sw, i);
		p->linked = urn_switch_port_is_linked(sw, i);
		p->plugged = f != NULL;
		p->pfc = urn_switch_port_pfc(sw, i);
		p->n.c = *urn_switch_counters(sw, i);
		if (f)
			p->n.f = *f;
		for (unsigned int d = 0; d < 2; d++) {
			struct urn_impair *imp = urn_switch_impair(sw, i, (enum urn_switch_dir)d);

			p->impair[d] = *urn_impair_config(imp);
			p->n.ic[d] = *urn_impair_counters(imp);
		}
		p->n.mc = urn_switch_marks(sw, i)->c;
		copy_queues(sw, i, p);
	}
}

static void
impairments(const struct plug_view *p, struct urn_report_sink *s)
{
	static const char *const keys[] = {"impair_in", "impair_out"};
	char text[256];

	for (unsigned int d = 0; d < 2; d++)
		s->str(s, keys[d], urn_impair_text(&p->impair[d], text, sizeof(text)));
}

/* Frames that did not go on, for any reason. The impairment has counted those that a queue dropped.
 */
static uint64_t
drops(const struct plug_view *p)
{
	uint64_t n = 0;

	for (unsigned int i = URN_SWITCH_DROP_RUNT; i <= URN_SWITCH_DROP_COPY; i++)
		n += p->n.c.v[i];
	for (unsigned int d = 0; d < 2; d++)
		for (unsigned int i = URN_IMPAIR_DROPPED; i <= URN_IMPAIR_NO_MBUF; i++)
			n += p->n.ic[d].v[i];
	return n + p->n.f.v[URN_FABRIC_DROP_TX_NO_MBUF] + p->n.f.v[URN_FABRIC_DROP_TX_STUCK];
}

/* Report the counters of a port that are not zero, or all. */
static void
counters(const struct plug_view *p, bool all, struct urn_report_sink *s)
{
	report_counters(s, &urn_switch_scope, "", p->n.c.v, all);
	if (p->plugged)
		report_counters(s, &urn_fabric_scope, "", p->n.f.v, all);
	report_counters(s, &urn_impair_scope, "in_", p->n.ic[URN_SWITCH_IN].v, all);
	report_counters(s, &urn_impair_scope, "out_", p->n.ic[URN_SWITCH_OUT].v, all);
	report_counters(s, &urn_mark_scope, "", p->n.mc.v, all);
	for (unsigned int k = 0; k < URN_SWQ_PRIORITIES; k++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "queue%u_", k);
		report_counters(s, &urn_swq_scope, prefix, p->n.qc[k].v, all);
	}
}

/* The state of a priority for people, the most important first. */
static const char *
queue_state(const struct queue_view *q)
{
	if (q->account.restoring)
		return "restoring";
	if (q->account.paused)
		return "paused";
	return q->account.stopped ? "stops its sender" : "flows";
}

/* Fields of a port beside its counters and those of queues, and fields of a queue. */
enum { FIELDS_OF_PORT = 10, FIELDS_OF_QUEUE = 6 };

_Static_assert(FIELDS_OF_PORT + URN_SWITCH_COUNTER_COUNT + URN_FABRIC_COUNTER_COUNT +
			       2 * URN_IMPAIR_COUNTER_COUNT +
			       URN_SWQ_PRIORITIES * (URN_SWQ_COUNTER_COUNT + FIELDS_OF_QUEUE) <=
		       256,
	       "an object of DPDK's telemetry has no more fields");

/* Report the queues that have ever held a frame or stopped a sender. */
static void
queues(const struct plug_view *p, struct urn_report_sink *s)
{
	for (unsigned int k = 0; k < URN_SWQ_PRIORITIES; k++) {
		const struct queue_view *q = &p->queue[k];
		const struct {
			const char *name;
			uint64_t v;
		} gauge[] = {{"bytes", q->bytes},
			     {"frames", q->frames},
			     {"peak", q->peak},
			     {"account", q->account.bytes},
			     {"account_peak", q->account.peak}};
		char key[40];

		if (q->peak == 0 && q->account.peak == 0 && !q->account.paused)
			continue;
		snprintf(key, sizeof(key), "queue%u_state", k);
		s->str(s, key, queue_state(q));
		for (unsigned int i = 0; i < sizeof(gauge) / sizeof(gauge[0]); i++) {
			snprintf(key, sizeof(key), "queue%u_%s", k, gauge[i].name);
			s->u64(s, key, gauge[i].v);
		}
	}
}

/* Report the queues of a port in a line: bytes that wait, most in a priority, pauses, marks. */
static void
queues_in_short(const struct plug_view *p, struct urn_report_sink *s)
{
	uint64_t bytes = 0, peak = 0, tx = 0, rx = 0, marks = 0;

	for (unsigned int k = 0; k < URN_SWQ_PRIORITIES; k++) {
		bytes += p->queue[k].bytes;
		peak = p->queue[k].peak > peak ? p->queue[k].peak : peak;
		tx += p->n.qc[k].v[URN_SWQ_C_PAUSE_TX];
		rx += p->n.qc[k].v[URN_SWQ_C_PAUSE_RX];
		marks += p->n.qc[k].v[URN_SWQ_C_MARKED];
	}
	s->u64(s, "queue_bytes", bytes);
	s->u64(s, "queue_peak", peak);
	s->u64(s, "pause_tx", tx);
	s->u64(s, "pause_rx", rx);
	s->u64(s, "marked", marks);
}

/* Words for the use of flow control; of a lossy switch and a link: none. */
static const char *const pfc_words[] = {[URN_SWITCH_PFC_DEFAULT] = "",
					[URN_SWITCH_PFC_YES] = "yes",
					[URN_SWITCH_PFC_OBEY] = "obeyed",
					[URN_SWITCH_PFC_NO] = "no"};

static void
one_plug(const struct look *l, const struct plug_view *p, const struct urn_report_query *q,
	 struct urn_report_sink *s)
{
	bool card = q->name != NULL;

	s->begin(s, "switch", card);
	s->str(s, "switch", urn_switch_name(l->sw->sw));
	s->str(s, "port", p->name);
	s->flag(s, "up", p->up);
	s->flag(s, "switch_link", p->linked);
	s->str(s, "pfc", pfc_words[p->pfc]);
	if (card) {
		s->u64(s, "engine", l->sw->engine);
		s->u64(s, "switch_addresses", l->addresses);
		s->u64(s, "switch_queued", l->queued);
		queues(p, s);
		counters(p, q->all, s);
	} else {
		s->u64(s, "rx_packets", p->n.c.v[URN_SWITCH_RX_PACKETS]);
		s->u64(s, "tx_packets", p->n.c.v[URN_SWITCH_TX_PACKETS]);
		s->u64(s, "drops", drops(p));
		s->u64(s, "ecn_marked", p->n.mc.v[URN_MARK_C_MARKED]);
		queues_in_short(p, s);
	}
	impairments(p, s);
	s->end(s);
}

static int
one_switch(const struct urn_report_source *src, const struct urn_report_switch *sw,
	   const struct urn_report_query *q, struct urn_report_sink *s, struct urn_err *err)
{
	struct look l = {.sw = sw, .plug = calloc(URN_SWITCH_MAX_PORTS, sizeof(struct plug_view))};

	if (l.plug == NULL) {
		urn_err_set(err, "no memory to look at switch %s", urn_switch_name(sw->sw));
		return -1;
	}
	report_base_lock(q->base);
	urn_engine_call(src->dp->engine[sw->engine], copy, &l);
	for (unsigned int i = 0; i < l.plugs; i++)
		report_since_words(q->base, (unsigned int)(sw - src->sw), i * PLUG_WORDS,
				   (uint64_t *)&l.plug[i].n, PLUG_WORDS);
	report_base_unlock(q->base);
	for (unsigned int i = 0; i < l.plugs; i++)
		one_plug(&l, &l.plug[i], q, s);
	free(l.plug);
	return 0;
}

unsigned int
report_switch_words(void)
{
	return URN_SWITCH_MAX_PORTS * PLUG_WORDS;
}

void
report_switch_read(const struct urn_report_source *src, unsigned int i, uint64_t *words)
{
	const struct urn_report_switch *sw = &src->sw[i];
	struct look l = {.sw = sw, .plug = calloc(URN_SWITCH_MAX_PORTS, sizeof(struct plug_view))};

	if (l.plug == NULL)
		return; /* the counts stay as they are */
	urn_engine_call(src->dp->engine[sw->engine], copy, &l);
	for (unsigned int k = 0; k < l.plugs; k++)
		memcpy(words + k * PLUG_WORDS, &l.plug[k].n, sizeof(l.plug[k].n));
	free(l.plug);
}

/* returns: 0, or -1 with *err: no switch has the name that was asked for */
static int
check_name(const struct urn_report_source *src, const char *name, struct urn_err *err)
{
	char hint[URN_NEAR_HINT];
	struct urn_near near;

	if (name == NULL)
		return 0;
	urn_near_begin(&near, name);
	for (unsigned int i = 0; i < src->switches; i++) {
		if (strcmp(urn_switch_name(src->sw[i].sw), name) == 0)
			return 0;
		urn_near_try(&near, urn_switch_name(src->sw[i].sw));
	}
	urn_near_hint(&near, "show switch", hint);
	urn_err_set(err, "no switch has the name %s; %s", name, hint);
	return -1;
}

int
urn_report_switches(const struct urn_report_source *src, struct urn_report_query *q,
		    struct urn_report_sink *s, struct urn_err *err)
{
	if (check_name(src, q->name, err) != 0)
		return URN_REPORT_FAILED;
	for (; q->at.outer < src->switches; q->at.outer++) {
		if (!report_named(q->name, urn_switch_name(src->sw[q->at.outer].sw)))
			continue;
		if (q->at.on) {
			q->at.on = false;
			return URN_REPORT_MORE; /* a switch at a time */
		}
		if (one_switch(src, &src->sw[q->at.outer], q, s, err) != 0)
			return URN_REPORT_FAILED;
		q->at.on = true;
	}
	return URN_REPORT_DONE;
}

/* ---- addresses */

enum { ADDRESSES = 64 }; /* addresses copied at a time */

struct addresses {
	const struct urn_report_switch *sw;
	struct urn_fdb_entry e[ADDRESSES];
	char port[ADDRESSES][32];
	uint32_t at;
	unsigned int n, max;
	bool end;
};

/* In the thread of the switch's engine. */
static void
copy_addresses(void *arg)
{
	struct addresses *l = arg;
	const struct urn_fdb *fdb = urn_switch_fdb(l->sw->sw);

	for (l->n = 0; l->n < l->max; l->n++) {
		const struct urn_fdb_entry *e = urn_fdb_next(fdb, &l->at);

		l->end = e == NULL;
		if (l->end)
			return;
		l->e[l->n] = *e;
		snprintf(l->port[l->n], sizeof(l->port[0]), "%s",
			 urn_switch_port_name(l->sw->sw, e->port));
	}
}

static void
one_address(const struct addresses *l, unsigned int i, struct urn_report_sink *s)
{
	uint8_t mac[6];
	char text[18];

	memcpy(mac, &l->e[i].mac, 6);
	s->begin(s, "address", false);
	s->str(s, "switch", urn_switch_name(l->sw->sw));
	s->str(s, "mac", report_mac(mac, text));
	s->str(s, "port", l->port[i]);
	s->flag(s, "static", l->e[i].fixed);
	s->end(s);
}

/* Report the addresses of a switch from q->at.inner on. returns: like a report */
static int
walk_addresses(const struct urn_report_source *src, struct urn_report_query *q,
	       struct urn_report_sink *s, uint32_t *rows)
{
	struct addresses l = {.sw = &src->sw[q->at.outer], .at = q->at.inner};

	while (!l.end) {
		if (*rows == 0)
			return URN_REPORT_MORE;
		l.max = *rows < ADDRESSES ? *rows : ADDRESSES;
		urn_engine_call(src->dp->engine[l.sw->engine], copy_addresses, &l);
		for (unsigned int i = 0; i < l.n; i++)
			one_address(&l, i, s);
		*rows -= l.n;
		q->at.inner = l.at;
	}
	q->at.inner = 0;
	return URN_REPORT_DONE;
}

int
urn_report_addresses(const struct urn_report_source *src, struct urn_report_query *q,
		     struct urn_report_sink *s, struct urn_err *err)
{
	uint32_t rows = report_rows(q);

	if (check_name(src, q->name, err) != 0)
		return URN_REPORT_FAILED;
	for (; q->at.outer < src->switches; q->at.outer++)
		if (report_named(q->name, urn_switch_name(src->sw[q->at.outer].sw)) &&
		    walk_addresses(src, q, s, &rows) != URN_REPORT_DONE)
			return URN_REPORT_MORE;
	return URN_REPORT_DONE;
}
