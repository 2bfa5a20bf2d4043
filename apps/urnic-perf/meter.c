/* SPDX-License-Identifier: BSD-3-Clause */
#include "meter.h"

#include <string.h>

/* Warm-up by time: a tenth of the measured time, within these limits. */
#define WARM_MIN_NS 20000000ull
#define WARM_MAX_NS 500000000ull

static uint64_t
warm_ns(uint64_t duration_ns)
{
	uint64_t ns = duration_ns / 10;

	return ns < WARM_MIN_NS ? WARM_MIN_NS : ns > WARM_MAX_NS ? WARM_MAX_NS : ns;
}

void
meter_init(struct meter *m, uint64_t iters, uint64_t warm_iters, uint64_t duration_ns,
	   uint64_t tsc_hz)
{
	memset(m, 0, sizeof(*m));
	urn_hist_reset(&m->hist);
	m->ns_per_cycle = 1e9 / (double)tsc_hz;
	m->ran.most = (uint64_t)((double)METER_GAP_NS / m->ns_per_cycle);
	m->total = UINT64_MAX;
	m->mark = UINT64_MAX;
	if (iters > 0) {
		m->total = warm_iters + iters;
		m->mark = warm_iters;
		return;
	}
	m->warm_cycles = (uint64_t)((double)warm_ns(duration_ns) / m->ns_per_cycle);
	m->run_cycles = (uint64_t)((double)duration_ns / m->ns_per_cycle);
}

/* Leave the current phase for the next. */
static void
meter_advance(struct meter *m, uint64_t now)
{
	if (m->phase == METER_WARM) {
		__atomic_store_n(&m->phase, METER_RUN, __ATOMIC_RELAXED);
		m->begin = now;
		m->base = m->done;
		m->mark = m->total;
	} else if (m->phase == METER_RUN) {
		__atomic_store_n(&m->phase, METER_OVER, __ATOMIC_RELAXED);
		m->end = now;
		m->measured = m->done - m->base;
		m->mark = UINT64_MAX;
	}
}

void
meter_cross(struct meter *m, uint64_t n, uint64_t now)
{
	uint64_t step;

	while (n > 0) {
		step = m->mark - m->done < n ? m->mark - m->done : n;
		m->done += step;
		n -= step;
		if (m->done == m->mark)
			meter_advance(m, now);
	}
}

void
meter_tick(struct meter *m, uint64_t now)
{
	meter_ran(&m->ran, now);
	if (m->started == 0) {
		m->started = now;
		if (m->mark == 0)
			meter_advance(m, now);
	}
	if (m->done != m->seen) {
		__atomic_store_n(&m->seen, m->done, __ATOMIC_RELAXED);
		m->moved_at = m->ran.cycles;
	}
	if (m->run_cycles == 0)
		return;
	if (m->phase == METER_WARM && now - m->started >= m->warm_cycles)
		meter_advance(m, now);
	else if (m->phase == METER_RUN && now - m->begin >= m->run_cycles)
		meter_advance(m, now);
}

void
meter_cut(struct meter *m, uint64_t now)
{
	if (m->phase == METER_WARM)
		meter_advance(m, now);
	if (m->phase == METER_RUN)
		meter_advance(m, now);
}

double
meter_seconds(const struct meter *m)
{
	return m->phase == METER_OVER ? (double)(m->end - m->begin) * m->ns_per_cycle / 1e9 : 0;
}
