/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch between the two nodes. */
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

static const char *const ways[2] = {"a_to_b", "b_to_a"};

enum { ENGINE_B = 1 };

void
perf_wire_config(struct urn_config_switch *sw, struct urn_config_plug *plug, unsigned int plugs,
		 const struct perf_wire_opts *o)
{
	memset(sw, 0, sizeof(*sw));
	snprintf(sw->sw.name, sizeof(sw->sw.name), "wire");
	sw->engine = ENGINE_B;
	sw->plug = plug;
	for (sw->plugs = 0; sw->plugs < plugs; sw->plugs++) {
		unsigned int i = sw->plugs;

		plug[i] =
			(struct urn_config_plug){.kind = URN_CONFIG_PLUG_PORT, .index = 2 * i + 1};
		snprintf(plug[i].port.name, sizeof(plug[i].port.name), "%c", 'a' + (int)i);
		plug[i].port.impair[URN_SWITCH_IN] = o->cfg;
		plug[i].port.impair[URN_SWITCH_IN].seed += i;
	}
}

void
perf_wire_open(struct perf_wire *w, const struct urn_rig *rig)
{
	memset(w, 0, sizeof(*w));
	if (rig->cfg->switches == 0)
		return;
	w->tsc_mult = (uint64_t)(1e9 * 4294967296.0 / (double)rte_get_tsc_hz());
	w->fabric = rig->fabric[ENGINE_B];
	w->sw = rig->sw[0];
	w->plugs = rig->cfg->sw[0].plugs;
}

unsigned int
perf_wire_poll(struct perf_wire *w)
{
	__extension__ typedef unsigned __int128 wide;

	if (w->fabric == NULL)
		return 0;
	return urn_fabric_poll(w->fabric, (uint64_t)((wide)rte_rdtsc() * w->tsc_mult >> 32));
}

void
perf_wire_get(const struct perf_wire *w, struct perf_wire_result *out)
{
	memset(out, 0, sizeof(*out));
	if (w->fabric == NULL)
		return;
	out->on = true;
	for (unsigned int n = 0; n < w->plugs; n++) {
		uint16_t i = (uint16_t)n;
		const struct urn_impair_counters *in =
			urn_impair_counters(urn_switch_impair(w->sw, i, URN_SWITCH_IN));
		const struct urn_impair_counters *to =
			urn_impair_counters(urn_switch_impair(w->sw, i, URN_SWITCH_OUT));
		unsigned int dir = n + 1 < w->plugs ? 0 : 1;

		for (unsigned int k = 0; k < URN_IMPAIR_COUNTER_COUNT; k++)
			out->dir[dir].v[k] +=
				k == URN_IMPAIR_PUSHED || k == URN_IMPAIR_POPPED ? 0 : in->v[k];
		/* An impairment that does nothing sees no frames; the switch has counted them. */
		out->dir[dir].v[URN_IMPAIR_PUSHED] +=
			urn_switch_counters(w->sw, i)->v[URN_SWITCH_RX_PACKETS];
		out->dir[1 - dir].v[URN_IMPAIR_POPPED] +=
			urn_switch_counters(w->sw, i)->v[URN_SWITCH_TX_PACKETS];
		out->queue_drops[1 - dir] += to->v[URN_IMPAIR_QUEUE];
	}
}

void
perf_wire_json(struct urn_json *j, const struct perf_wire_opts *o, const struct perf_wire_result *r)
{
	if (!r->on)
		return;
	urn_json_object(j, "wire");
	urn_json_num(j, "loss", o->cfg.drop * 100, 6);
	urn_json_num(j, "dup", o->cfg.dup * 100, 6);
	urn_json_num(j, "reorder", o->cfg.reorder * 100, 6);
	urn_json_u64(j, "reorder_depth", o->cfg.reorder_max ? o->cfg.reorder_max : 8);
	urn_json_num(j, "corrupt", o->cfg.corrupt * 100, 6);
	urn_json_num(j, "delay_us", (double)o->cfg.delay_ns / 1000, 3);
	urn_json_u64(j, "seed", o->cfg.seed);
	for (unsigned int i = 0; i < 2; i++)
		urn_json_counters(j, ways[i], "", urn_impair_counter_name, r->dir[i].v,
				  URN_IMPAIR_COUNTER_COUNT);
	urn_json_u64(j, "queue_drops", r->queue_drops[0] + r->queue_drops[1]);
	urn_json_end(j);
}

void
perf_wire_print(const struct perf_wire_result *r)
{
	if (!r->on)
		return;
	for (unsigned int i = 0; i < 2; i++) {
		printf("  switch %c to %c:", 'A' + (int)i, 'B' - (int)i);
		for (unsigned int k = 0; k < URN_IMPAIR_COUNTER_COUNT; k++) {
			if (r->dir[i].v[k] > 0)
				printf("  %s %" PRIu64, urn_impair_counter_name(k), r->dir[i].v[k]);
		}
		if (r->queue_drops[i] > 0)
			printf("  queue_drops %" PRIu64, r->queue_drops[i]);
		putchar('\n');
	}
}
