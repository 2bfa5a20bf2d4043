/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the tests of time at the requester. */
#ifndef URN_TEST_TIMER_H
#define URN_TEST_TIMER_H

#include "probe.h"

/* The wheel's grain: a timer comes at most this late, never early. */
enum { TIMER_GRAIN = 2 << URN_WHEEL_TICK_SHIFT };

#define TIMEOUT(code) (4096ull << (code))

static inline void
timer_post(struct probe *p, uint64_t wr_id)
{
	probe_post(p, URN_WR_SEND, 0, 0, 32, 0, wr_id);
}

/* Nothing comes before `ns`, something at `ns`. Leaves the frame to be looked at. */
static inline void
timer_comes_after(struct probe *p, uint64_t ns, const char *file, int line)
{
	uint32_t had = p->seen_n;

	probe_pass(p, ns - 1, ns / 7 + 1);
	if (p->seen_n != had) {
		print_error("%u frames too early\n", p->seen_n - had);
		_fail(file, line);
	}
	probe_pass(p, TIMER_GRAIN, TIMER_GRAIN);
	if (p->seen_n == had) {
		print_error("nothing came in %lu ns\n", (unsigned long)(ns + TIMER_GRAIN));
		_fail(file, line);
	}
}
#define expect_after(p, ns) timer_comes_after(p, ns, __FILE__, __LINE__)

#endif
