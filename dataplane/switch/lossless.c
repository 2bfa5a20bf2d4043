/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/lossless_state.h"

#include "switch/pfc.h"
#include "switch/switch_state.h"

#include <stdlib.h>
#include <string.h>

#define KB 1024u
#define MS 1000000ull
#define DEFAULT_BPS                                                                  \
	10000000000ull /* speed of a port that has none: for the time of quanta only \
			*/
/* Bytes that one burst of an input brings at most: the longest frames of ports (pmd_glue/port.h).
 */
#define BURST_BYTES (URN_SWITCH_BURST * 4416u)

void
urn_lossless_preset(struct urn_lossless_config *cfg)
{
	cfg->no_pfc = false;
	cfg->share = 64 * KB;
	cfg->xoff = 256 * KB;
	cfg->xon = 192 * KB;
	cfg->headroom = 256 * KB;
	cfg->queue = 0;
	cfg->watchdog_ns = 200 * MS;
	cfg->restore_ns = 200 * MS;
	urn_classify_preset(&cfg->map);
}

bool
urn_lossless_check(const struct urn_lossless_config *cfg)
{
	return cfg->priorities == 0 ||
	       (cfg->xoff > 0 && cfg->xon <= cfg->xoff && cfg->watchdog_ns && cfg->restore_ns);
}

struct urn_lossless *
urn_lossless_create(const struct urn_lossless_config *cfg, struct urn_switch *sw)
{
	struct urn_lossless *ll = calloc(1, sizeof(*ll));

	if (!ll)
		return NULL;
	ll->cfg = *cfg;
	ll->sw = sw;
	ll->most = (uint64_t)cfg->xoff + cfg->headroom;
	ll->full_at = cfg->headroom > BURST_BYTES ? ll->most - BURST_BYTES : cfg->xoff;
	ll->due = UINT64_MAX;
	return ll;
}

/* Bounds of a port's queues that its configuration leaves open. */
static void
set_bounds(const struct urn_lossless_config *cfg, struct urn_swq *q)
{
	for (unsigned int i = 0; i < URN_SWQ_PRIORITIES; i++) {
		struct urn_swq_bound *b = &q->level[i].bound;

		if (!(cfg->priorities & 1u << i) && !b->bytes)
			b->bytes = cfg->queue;
		/* Accounts bound a lossless priority. */
		if (cfg->priorities & 1u << i)
			b->frames = UINT32_MAX;
	}
}

struct urn_lossless_port *
urn_lossless_add_port(struct urn_lossless *ll, const struct urn_switch_port_config *cfg,
		      uint16_t number, struct urn_swq *q)
{
	static const uint8_t none[6];
	uint64_t bps = cfg->speed ? cfg->speed : cfg->impair[URN_SWITCH_OUT].rate_bps;
	struct urn_lossless_port *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->held = calloc(URN_SWQ_PRIORITIES, sizeof(*p->held));
	if (!p->held) {
		free(p);
		return NULL;
	}
	p->ll = ll;
	p->queue = q;
	p->credits = cfg->credits;
	p->pfc = (uint8_t)cfg->pfc;
	if (cfg->pfc == URN_SWITCH_PFC_DEFAULT)
		p->pfc = ll->cfg.no_pfc ? URN_SWITCH_PFC_OBEY : URN_SWITCH_PFC_YES;
	p->quantum = urn_pfc_quantum(bps ? bps : DEFAULT_BPS);
	memcpy(p->mac, cfg->mac, sizeof(p->mac));
	/* An address of our own making says which port it is. */
	if (memcmp(p->mac, none, sizeof(none)) == 0)
		memcpy(p->mac,
		       (const uint8_t[]){2, 0, 0, 0, (uint8_t)(number >> 8), (uint8_t)number},
		       sizeof(p->mac));
	set_bounds(&ll->cfg, q);
	return p;
}

void
urn_lossless_remove_port(struct urn_lossless_port *p)
{
	if (!p)
		return;
	free(p->held);
	free(p);
}
