/* SPDX-License-Identifier: BSD-3-Clause */
#include "apply.h"

#include "dataplane/control/adapter.h"

#include <string.h>

struct engine_set {
	struct urn_engine *e;
	const struct urn_engine_config *cfg;
};

/* Runs in the engine's thread. */
static void
set_engine(void *arg)
{
	struct engine_set *s = arg;

	__atomic_store_n(&s->e->cfg.idle, s->cfg->idle, __ATOMIC_RELAXED);
	__atomic_store_n(&s->e->cfg.empty_polls, s->cfg->empty_polls, __ATOMIC_RELAXED);
	__atomic_store_n(&s->e->cfg.sleep_us, s->cfg->sleep_us, __ATOMIC_RELAXED);
}

void
nicd_apply_engine(struct urn_engine *e, const struct urn_engine_config *cfg)
{
	struct engine_set s = {e, cfg};

	urn_engine_call(e, set_engine, &s);
}

struct adapter_set {
	struct urn_tp *tp;
	uint32_t window; /* packets; 0: unchanged */
	uint64_t rto_ns; /* 0: unchanged */
};

/* Runs in the engine's thread. */
static void
set_adapter(void *arg)
{
	struct adapter_set *s = arg;
	struct urn_peers *ps = &s->tp->peers;
	struct urn_peer *p;
	uint32_t index = 0;

	if (s->rto_ns)
		__atomic_store_n(&s->tp->cfg.rto_floor, s->rto_ns, __ATOMIC_RELAXED);
	if (s->window == 0)
		return;
	__atomic_store_n(&s->tp->cfg.window, s->window, __ATOMIC_RELAXED);
	ps->window = s->window;
	while ((p = urn_peer_next(ps, &index)))
		p->window = s->window; /* until the path is measured next */
}

void
nicd_apply_adapter(const struct urn_adapter *a, uint32_t window, uint64_t rto_ns)
{
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++) {
		struct adapter_set s = {.window = window, .rto_ns = rto_ns};

		if (a->shard[i] == NULL)
			continue;
		s.tp = a->shard[i]->tp;
		urn_engine_call(a->shard[i]->engine, set_adapter, &s);
	}
}

struct impair_set {
	struct urn_switch *sw;
	uint16_t port;
	const bool *dir; /* by enum urn_switch_dir */
	const struct urn_impair_config *cfg;
	int rc;
};

/* Runs in the thread of the switch's engine. */
static void
set_impair(void *arg)
{
	struct impair_set *s = arg;

	for (unsigned int d = 0; d < 2 && s->rc == 0; d++)
		if (s->dir[d])
			s->rc = urn_impair_set(
				urn_switch_impair(s->sw, s->port, (enum urn_switch_dir)d), s->cfg);
}

int
nicd_apply_impair(const struct nicd_rig *rig, unsigned int sw, uint16_t port, const bool dir[2],
		  const struct urn_impair_config *cfg)
{
	struct impair_set s = {.sw = rig->base.sw[sw], .port = port, .dir = dir, .cfg = cfg};

	urn_engine_call(rig->base.dp->engine[rig->cfg->sw[sw].engine], set_impair, &s);
	return s.rc;
}
