/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch between the two nodes. */
#include "wire.h"

#include "pmd_glue/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

static const char *const ways[2] = {"a_to_b", "b_to_a"};

static int
add_plug(struct perf_wire *w, const struct perf_wire_opts *o, unsigned int i)
{
	struct urn_switch_port_config cfg = {.max_frame = urn_fabric_max_frame(w->plug[i])};
	int port;

	snprintf(cfg.name, sizeof(cfg.name), "%c", 'a' + (int)i);
	cfg.impair[URN_SWITCH_IN] = o->cfg;
	cfg.impair[URN_SWITCH_IN].seed += i;
	port = urn_switch_add_port(w->sw, &cfg);
	return port < 0 ? port
			: urn_fabric_plug(w->fabric, w->sw, (uint16_t)port, w->plug[i], true);
}

int
perf_wire_open(struct perf_wire *w, const struct perf_wire_opts *o, uint32_t mbufs,
	       struct urn_err *err)
{
	const struct urn_pool_config pool = {.name = "wire", .mbufs = mbufs};
	struct urn_switch_config cfg = {.name = "wire"};
	int rc = -ENOMEM;

	w->tsc_mult = (uint64_t)(1e9 * 4294967296.0 / (double)rte_get_tsc_hz());
	w->copies = urn_pool_create(&pool, err);
	if (w->copies == NULL)
		return -1;
	w->fabric = urn_fabric_create(w->copies);
	cfg.copies = w->copies;
	w->sw = urn_switch_create(&cfg);
	if (w->fabric == NULL || w->sw == NULL || urn_fabric_add(w->fabric, w->sw) < 0)
		urn_switch_destroy(w->sw);
	else
		rc = 0;
	for (unsigned int i = 0; i < 2 && rc == 0; i++)
		rc = add_plug(w, o, i);
	if (rc == 0)
		return 0;
	urn_err_set(err, "the switch between the nodes cannot be made: %s", strerror(-rc));
	return -1;
}

void
perf_wire_close(struct perf_wire *w)
{
	urn_fabric_destroy(w->fabric);
	urn_port_close(w->plug[0]);
	urn_port_close(w->plug[1]);
	urn_pool_free(w->copies);
	memset(w, 0, sizeof(*w));
}

unsigned int
perf_wire_poll(struct perf_wire *w)
{
	__extension__ typedef unsigned __int128 wide;

	if (w->fabric == NULL)
		return 0;
	return urn_fabric_poll(w->fabric, (uint64_t)((wide)rte_rdtsc() * w->tsc_mult >> 32));
}

bool
perf_wire_is_up(struct perf_wire *w)
{
	if (w->plug[0] == NULL)
		return true;
	urn_port_poll_link(w->plug[0]);
	urn_port_poll_link(w->plug[1]);
	return w->plug[0]->link_up && w->plug[1]->link_up;
}

void
perf_wire_get(const struct perf_wire *w, struct perf_wire_result *out)
{
	memset(out, 0, sizeof(*out));
	if (w->fabric == NULL)
		return;
	out->on = true;
	for (uint16_t i = 0; i < 2; i++) {
		const struct urn_impair *to;

		out->dir[i] = *urn_impair_counters(urn_switch_impair(w->sw, i, URN_SWITCH_IN));
		/* An impairment that does nothing sees no frames; the switch has counted them. */
		out->dir[i].v[URN_IMPAIR_PUSHED] =
			urn_switch_counters(w->sw, i)->v[URN_SWITCH_RX_PACKETS];
		to = urn_switch_impair(w->sw, 1 - i, URN_SWITCH_OUT);
		out->queue_drops[i] = urn_impair_counters(to)->v[URN_IMPAIR_QUEUE];
		out->dir[i].v[URN_IMPAIR_POPPED] =
			urn_switch_counters(w->sw, 1 - i)->v[URN_SWITCH_TX_PACKETS];
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
