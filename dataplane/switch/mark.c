/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/mark.h"

#include "base/rnd.h"
#include "wire/ecn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SLOPE_BITS 16 /* fractional bits of a slope beyond those of a probability */
#define ONE (1ull << 32)

static const struct urn_counter_row counter_rows[] = {URN_MARK_COUNTERS(URN_COUNTER_ROW)};
static const struct urn_counter_block counter_block = {
	"switch", counter_rows, sizeof(counter_rows) / sizeof(counter_rows[0])};
const struct urn_counter_scope urn_mark_scope = {"switch_mark", &counter_block, 1};

const char *
urn_mark_counter_name(unsigned int id)
{
	return urn_counter_name_in(&urn_mark_scope, id);
}

int
urn_mark_check(const struct urn_mark_config *cfg, char *why, size_t len)
{
	const char *fault = NULL;

	if (cfg->kmin > URN_MARK_MAX_BYTES || cfg->kmax > URN_MARK_MAX_BYTES)
		fault = "kmin and kmax are at most 4 GiB";
	else if (cfg->kmax && cfg->kmin > cfg->kmax)
		fault = "kmin must not be above kmax";
	else if (!(cfg->pmax >= 0 && cfg->pmax <= 1))
		fault = "pmax is a probability, from 0 to 1";
	if (fault && why)
		snprintf(why, len, "%s", fault);
	return fault ? -EINVAL : 0;
}

void
urn_mark_init(struct urn_mark *k, const struct urn_mark_config *cfg, unsigned int number)
{
	memset(k, 0, sizeof(*k));
	k->cfg = *cfg;
	k->state = urn_rnd_at(cfg->seed, number);
	if (cfg->kmax > cfg->kmin)
		k->slope = ((uint64_t)(cfg->pmax * (double)ONE) << SLOPE_BITS) /
			   (cfg->kmax - cfg->kmin);
}

/* True when so many bytes, more than kmin, earn a mark. */
static bool
drawn(struct urn_mark *k, uint64_t bytes)
{
	__extension__ typedef unsigned __int128 wide;
	uint32_t r = (uint32_t)(urn_rnd_next(&k->state) >>
				32); /* drawn for each: none changes the others' fate */

	if (bytes > k->cfg.kmax)
		return true;
	return r < (uint64_t)((wide)(bytes - k->cfg.kmin) * k->slope >> SLOPE_BITS);
}

void
urn_mark_waiting(struct urn_mark *k, struct rte_mbuf *m, uint64_t bytes)
{
	if (!drawn(k, bytes))
		return;
	if (urn_ecn_mark(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m)))
		k->c.v[URN_MARK_C_MARKED]++;
	else
		k->c.v[URN_MARK_C_UNABLE]++;
}
