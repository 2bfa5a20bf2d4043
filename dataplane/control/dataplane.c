/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole dataplane: making it, taking it down, queries. */
#include "control/adapter.h"
#include "control/client.h"
#include "control/lock.h"

#include "crc/crc.h"
#include "log/log.h"

#include <stdio.h>
#include <unistd.h>

enum { LOOK_US = 50 }; /* microseconds between looks at a lock that another thread holds */

/*
 * Find out where both ends of a wire are here: queues of one number that one engine has. Other
 * engines, and adapters whose port leads elsewhere, to a switch for instance, go on with whole
 * frames.
 */
static void
join_ends(const struct urn_adapter *a, const struct urn_adapter *b)
{
	if (urn_port_other_end(a->cfg.port) != b->cfg.port)
		return;
	for (unsigned int e = 0; e < a->dp->engines_n; e++) {
		struct urn_shard *s = a->shard[e], *other = b->shard[e];

		if (s && other && s->queue >= 0 && s->queue == other->queue)
			urn_shards_join(s, other);
	}
}

struct urn_dp *
urn_dp_create(const struct urn_dp_config *cfg, struct urn_err *err)
{
	static _Atomic unsigned int serial;
	struct urn_dp *dp = calloc(1, sizeof(*dp));
	char name[16];

	if (!dp || cfg->engines < 1 || cfg->engines > URN_ABI_MAX_ENGINES) {
		urn_err_set(err, dp ? "a dataplane has 1 to %u engines" : "no memory (%u)",
			    URN_ABI_MAX_ENGINES);
		free(dp);
		return NULL;
	}
	if (urn_crc_choose(err->text, sizeof(err->text)) != 0) {
		free(dp);
		return NULL;
	}
	dp->speaks = URN_ABI_OFFER;
	/* DPDK's rings have names of their own, one namespace a process. */
	snprintf(name, sizeof(name), "dp%u", atomic_fetch_add(&serial, 1));
	for (unsigned int i = 0; i < cfg->engines; i++) {
		if (cfg->engine[i].idle > URN_IDLE_SLEEP) {
			urn_err_set(err, "engine %u: idle policy %u; give spin, pause or sleep", i,
				    (unsigned int)cfg->engine[i].idle);
			goto fail;
		}
		dp->engine[i] = urn_engine_create(i, &cfg->engine[i], name);
		if (!dp->engine[i]) {
			urn_err_set(err, "engine %u: no memory for its ring (EAL memory, -m)", i);
			goto fail;
		}
		dp->engines_n++;
	}
	dp->adapter = calloc(cfg->adapters ? cfg->adapters : 1, sizeof(*dp->adapter));
	if (!dp->adapter) {
		urn_err_set(err, "no memory for %u adapters", cfg->adapters);
		goto fail;
	}
	for (unsigned int i = 0; i < cfg->adapters; i++) {
		dp->adapter[i] = urn_adapter_create(dp, i, &cfg->adapter[i], err);
		if (!dp->adapter[i])
			goto fail;
		dp->adapters_n++;
	}
	for (unsigned int i = 0; i < dp->adapters_n; i++)
		for (unsigned int k = 0; k < i; k++)
			join_ends(dp->adapter[i], dp->adapter[k]);
	return dp;

fail:
	urn_dp_destroy(dp);
	return NULL;
}

void
urn_dp_destroy(struct urn_dp *dp)
{
	if (!dp)
		return;
	/* A thread that ended without unbinding polls no more: its engine's calls run in this thread. */
	for (unsigned int i = 0; i < dp->engines_n; i++)
		urn_engine_unbind(dp->engine[i]);
	/* Everything of a client is taken back through adapters and engines that are whole. */
	for (unsigned int i = 0; i < dp->adapters_n; i++) {
		struct urn_adapter *a = dp->adapter[i];

		while (a && !LIST_EMPTY(&a->clients))
			urn_client_orphan(LIST_FIRST(&a->clients));
	}
	for (unsigned int i = 0; i < dp->adapters_n; i++)
		urn_adapter_destroy(dp->adapter[i]);
	for (unsigned int i = 0; i < dp->engines_n; i++)
		urn_engine_destroy(dp->engine[i]);
	free(dp->adapter);
	free(dp);
}

void
urn_dp_freeze(struct urn_dp *dp)
{
	if (!dp)
		return;
	atomic_store(&dp->frozen, true);
	/*
	 * A holder of an adapter's lock gives it back after the object or the group in hand,
	 * and a stalled control call holds none. Thousands of threads may wait in line: this one
	 * does not, because the lock goes to whoever asks first.
	 */
	for (unsigned int i = 0; i < dp->adapters_n; i++)
		while (pthread_mutex_trylock(&dp->adapter[i]->lock) != 0)
			usleep(LOOK_US);
}

bool
urn_dp_unseal(struct urn_dp *dp, unsigned int adapter, unsigned int engine, struct urn_port *across)
{
	struct urn_adapter *a = dp->adapter[adapter];

	return a->cfg.engines == 1u << engine && a->shard[engine]->queue == 0 &&
	       urn_shard_unseal(a->shard[engine], across);
}

void
urn_dp_set_log(struct urn_dp *dp, struct urn_log *log)
{
	dp->log = log;
	for (unsigned int i = 0; i < dp->engines_n; i++)
		dp->engine[i]->log = urn_log_ring_of(log, i);
}

struct urn_engine *
urn_dp_engine(struct urn_dp *dp, unsigned int index)
{
	return index < dp->engines_n ? dp->engine[index] : NULL;
}

struct urn_abi_channel *
urn_dp_attach(struct urn_dp *dp, unsigned int adapter, struct urn_err *err)
{
	struct urn_client *c;

	if (adapter >= dp->adapters_n) {
		urn_err_set(err, "no adapter %u: there are %u", adapter, dp->adapters_n);
		return NULL;
	}
	c = urn_client_create(dp->adapter[adapter], NULL, err);
	return c ? &c->channel : NULL;
}

uint64_t
urn_adapter_count(const struct urn_adapter *a, enum urn_counter id)
{
	uint64_t n = 0;

	/* Each value is written by one engine; the sum mixes values of slightly different times. */
	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++)
		if (a->shard[e])
			n += __atomic_load_n(&a->shard[e]->tp->c.v[id], __ATOMIC_RELAXED);
	if (id == URN_C_TELLER_MERGED)
		n += atomic_load_explicit(&a->told.merged, memory_order_relaxed);
	else if (id == URN_C_TELLER_LOST)
		n += atomic_load_explicit(&a->told.lost, memory_order_relaxed);
	else if (id == URN_C_TELLER_RESTS)
		n += atomic_load_explicit(&a->told.rests, memory_order_relaxed);
	return n;
}

void
urn_dp_counters(struct urn_dp *dp, unsigned int adapter, struct urn_counters *out)
{
	memset(out, 0, sizeof(*out));
	if (adapter >= dp->adapters_n)
		return;
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		out->v[i] = urn_adapter_count(dp->adapter[adapter], (enum urn_counter)i);
}

uint64_t
urn_dp_qp_bytes(struct urn_dp *dp, unsigned int adapter, unsigned int max_dest_rd_atomic)
{
	const uint64_t qp = sizeof(struct urn_qp), heap = 2 * sizeof(size_t);

	(void)dp;
	(void)adapter;
	/*
	 * The QP, its entries in the table of QPs, in the table of doorbells and in the
	 * stack of free doorbell ids, and its record of READs and atomics with the heap's
	 * header. test/packet/test_idle.c measures most of that.
	 */
	return qp + 2 * sizeof(struct urn_qp *) + sizeof(uint32_t) +
	       (max_dest_rd_atomic ? urn_pow2(max_dest_rd_atomic) * sizeof(struct urn_rec) + heap : 0);
}
