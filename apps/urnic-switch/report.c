/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the counters, for people or as JSON. */
#include "rig.h"

#include "common/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One port's set of counters. */
struct set {
	const char *title; /* for people */
	const char *key;   /* in JSON */
	const char *(*name)(unsigned int id);
	const uint64_t *v;
	unsigned int n;
};

enum { SETS = 5 + URN_SWQ_PRIORITIES }; /* sets of a port, at most */

/* Sets of the queues: priority 0, and those above that have counted. returns: how many */
static unsigned int
queue_sets(const struct urn_swq *q, struct set *out)
{
	static const char *const keys[URN_SWQ_PRIORITIES] = {
		"queue0", "queue1", "queue2", "queue3", "queue4", "queue5", "queue6", "queue7",
	};
	unsigned int n = 0;

	for (unsigned int i = 0; i < URN_SWQ_PRIORITIES; i++) {
		if (i == 0 || !urn_swq_unused(q, i))
			out[n++] = (struct set){keys[i], keys[i], urn_swq_counter_name,
						q->level[i].c.v, URN_SWQ_COUNTER_COUNT};
	}
	return n;
}

/* The sets of a port; a link has no set of the fabric. returns: how many */
static unsigned int
sets_of(const struct sw_rig *rig, unsigned int port, struct set out[SETS])
{
	struct urn_switch *sw = rig->sw[rig->o->port[port].sw];
	uint16_t number = rig->number[port];
	const struct urn_fabric_counters *f = urn_fabric_counters(rig->fabric, sw, number);
	unsigned int n = 0;

	out[n++] = (struct set){"", "counters", urn_switch_counter_name,
				urn_switch_counters(sw, number)->v, URN_SWITCH_COUNTER_COUNT};
	out[n++] =
		(struct set){"in", "impair_in", urn_impair_counter_name,
			     urn_impair_counters(urn_switch_impair(sw, number, URN_SWITCH_IN))->v,
			     URN_IMPAIR_COUNTER_COUNT};
	out[n++] =
		(struct set){"out", "impair_out", urn_impair_counter_name,
			     urn_impair_counters(urn_switch_impair(sw, number, URN_SWITCH_OUT))->v,
			     URN_IMPAIR_COUNTER_COUNT};
	out[n++] = (struct set){"marks", "marks", urn_mark_counter_name,
				urn_switch_marks(sw, number)->c.v, URN_MARK_COUNTER_COUNT};
	n += queue_sets(urn_switch_queues(sw, number), &out[n]);
	if (f)
		out[n++] = (struct set){"device", "device_counters", urn_fabric_counter_name, f->v,
					URN_FABRIC_COUNTER_COUNT};
	return n;
}

/* Frames that the device had no room for, by the device's own count if it has one. */
static uint64_t
missed(const struct urn_port *dev)
{
	struct rte_eth_stats st;

	return dev && rte_eth_stats_get(dev->id, &st) == 0 ? st.imissed + st.rx_nombuf : 0;
}

/* True when frames have waited in this priority of a port, or the account has held some. */
static bool
queue_used(struct urn_switch *sw, uint16_t number, unsigned int priority,
	   struct urn_switch_account *a)
{
	(void)urn_switch_account(sw, number, priority, a);
	return urn_switch_queues(sw, number)->level[priority].peak || a->peak || a->paused;
}

/* The queues' bytes and frames, and the accounts, of priorities that were used. */
static void
json_queues(struct urn_json *j, struct urn_switch *sw, uint16_t number)
{
	urn_json_array(j, "priorities");
	for (unsigned int k = 0; k < URN_SWQ_PRIORITIES; k++) {
		const struct urn_swq_level *l = &urn_switch_queues(sw, number)->level[k];
		struct urn_switch_account a;

		if (!queue_used(sw, number, k, &a))
			continue;
		urn_json_object(j, NULL);
		urn_json_u64(j, "priority", k);
		urn_json_u64(j, "bytes", l->bytes);
		urn_json_u64(j, "frames", l->tail - l->head);
		urn_json_u64(j, "peak", l->peak);
		urn_json_u64(j, "account", a.bytes);
		urn_json_u64(j, "account_peak", a.peak);
		urn_json_bool(j, "stops_sender", a.stopped);
		urn_json_bool(j, "paused", a.paused);
		urn_json_bool(j, "restoring", a.restoring);
		urn_json_end(j);
	}
	urn_json_end(j);
}

static void
text_queues(struct urn_switch *sw, uint16_t number)
{
	for (unsigned int k = 0; k < URN_SWQ_PRIORITIES; k++) {
		const struct urn_swq_level *l = &urn_switch_queues(sw, number)->level[k];
		struct urn_switch_account a;

		if (!queue_used(sw, number, k, &a))
			continue;
		printf("    queue%u: %" PRIu64 " bytes in %u frames, at most %" PRIu64
		       "; account %" PRIu64 ", at most %" PRIu64 "%s%s%s\n",
		       k, l->bytes, l->tail - l->head, l->peak, a.bytes, a.peak,
		       a.stopped ? "; stops its sender" : "", a.paused ? "; paused" : "",
		       a.restoring ? "; restoring" : "");
	}
}

static void
json_port(struct urn_json *j, const struct sw_rig *rig, unsigned int port)
{
	const struct sw_port_opts *p = &rig->o->port[port];
	struct set set[SETS];
	unsigned int n = sets_of(rig, port, set);

	urn_json_object(j, NULL);
	urn_json_str(j, "name", p->name);
	if (rig->dev[port])
		urn_json_str(j, "device", p->device);
	else
		urn_json_null(j, "device");
	urn_json_bool(j, "up", urn_switch_port_is_up(rig->sw[p->sw], rig->number[port]));
	for (unsigned int i = 0; i < n; i++)
		urn_json_counters(j, set[i].key, "", set[i].name, set[i].v, set[i].n);
	json_queues(j, rig->sw[p->sw], rig->number[port]);
	urn_json_u64(j, "rx_missed", missed(rig->dev[port]));
	urn_json_end(j);
}

static void
report_json(const struct sw_rig *rig, double seconds)
{
	struct urn_json j;

	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_num(&j, "seconds", seconds, 3);
	urn_json_array(&j, "switches");
	for (unsigned int s = 0; s < rig->o->sws; s++) {
		urn_json_object(&j, NULL);
		urn_json_str(&j, "name", rig->o->sw[s]);
		urn_json_u64(&j, "addresses", urn_fdb_count(urn_switch_fdb(rig->sw[s])));
		urn_json_u64(&j, "queued", urn_switch_queued(rig->sw[s]));
		urn_json_array(&j, "ports");
		for (unsigned int i = 0; i < rig->o->ports; i++) {
			if (rig->o->port[i].sw == s)
				json_port(&j, rig, i);
		}
		urn_json_end(&j);
		urn_json_end(&j);
	}
	urn_json_end(&j);
	urn_json_end(&j);
}

/* Print a port's traffic, and below it all counters of other events that are not 0. */
static void
text_port(const struct sw_rig *rig, unsigned int port)
{
	const struct sw_port_opts *p = &rig->o->port[port];
	const uint64_t *v = urn_switch_counters(rig->sw[p->sw], rig->number[port])->v;
	struct set set[SETS];
	unsigned int n = sets_of(rig, port, set);

	printf("  %-15s %12" PRIu64 " %16" PRIu64 " %12" PRIu64 " %16" PRIu64 "%s\n", p->name,
	       v[URN_SWITCH_RX_PACKETS], v[URN_SWITCH_RX_BYTES], v[URN_SWITCH_TX_PACKETS],
	       v[URN_SWITCH_TX_BYTES],
	       urn_switch_port_is_up(rig->sw[p->sw], rig->number[port]) ? "" : "  down");
	for (unsigned int i = 0; i < n; i++) {
		bool impair = set[i].name == urn_impair_counter_name;
		const char *between = "";

		for (unsigned int k = 0; k < set[i].n; k++) {
			if (set[i].v[k] == 0 || (i == 0 && k <= URN_SWITCH_TX_BYTES) ||
			    (impair && k <= URN_IMPAIR_POPPED))
				continue;
			if (*between == '\0')
				printf("    %s%s", set[i].title, *set[i].title ? ": " : "");
			printf("%s%s %" PRIu64, between, set[i].name(k), set[i].v[k]);
			between = ", ";
		}
		if (*between != '\0')
			putchar('\n');
	}
	text_queues(rig->sw[p->sw], rig->number[port]);
	if (missed(rig->dev[port]))
		printf("    missed by the device: %" PRIu64 "\n", missed(rig->dev[port]));
}

static void
report_text(const struct sw_rig *rig, double seconds)
{
	for (unsigned int s = 0; s < rig->o->sws; s++) {
		printf("switch %s: %.1f s, %u addresses, %u frames inside\n", rig->o->sw[s],
		       seconds, urn_fdb_count(urn_switch_fdb(rig->sw[s])),
		       urn_switch_queued(rig->sw[s]));
		printf("  %-15s %12s %16s %12s %16s\n", "port", "rx packets", "rx bytes",
		       "tx packets", "tx bytes");
		for (unsigned int i = 0; i < rig->o->ports; i++) {
			if (rig->o->port[i].sw == s)
				text_port(rig, i);
		}
	}
}

void
sw_report(const struct sw_rig *rig, double seconds)
{
	if (rig->o->json)
		report_json(rig, seconds);
	else
		report_text(rig, seconds);
	fflush(stdout);
}
