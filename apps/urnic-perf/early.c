/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that were sent again too early: tells them from those that were lost. */
#include "perf.h"

#include <string.h>

/*
 * True when a frame was lost that somebody counted: a node, the switch, or a port of the switch. A
 * peer without a receive buffer drops the request and counts the NAK alone; an answer without a
 * buffer or a place to work is not sent.
 */
static bool
any_lost(const struct result *res)
{
	static const enum urn_impair_counter lost[] = {
		URN_IMPAIR_DROPPED, URN_IMPAIR_BLACKHOLE, URN_IMPAIR_FLAP,	URN_IMPAIR_FCS,
		URN_IMPAIR_QUEUE,   URN_IMPAIR_NO_MBUF,	  URN_IMPAIR_CORRUPTED,
	};

	if ((res->counters.v[URN_C_RX_RNR_NAKS] | res->counters.v[URN_C_NO_MBUF] |
	     res->counters.v[URN_C_NO_WORK]) != 0)
		return true;
	/* A link response that nobody waits for any more is no packet of a program. */
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		if (res->counters.v[i] != 0 && i != URN_C_DROP_LINK_UNASKED &&
		    strncmp(urn_counter_name(i), "drop_", 5) == 0)
			return true;
	for (unsigned int d = 0; d < 2; d++) {
		if (res->wire.queue_drops[d] != 0)
			return true;
		for (unsigned int i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
			if (res->wire.dir[d].v[lost[i]] != 0)
				return true;
	}
	return false;
}

bool
result_only_early(const struct result *res)
{
	const uint64_t *v = res->counters.v;
	uint64_t twice = v[perf_op_is_flow(res->op) ? URN_C_FLOW_DUPLICATES : URN_C_DUPLICATES];
	/* A copy that the wire added arrives twice, too, and was sent once. */
	uint64_t copies = res->wire.dir[0].v[URN_IMPAIR_DUPLICATED] +
			  res->wire.dir[1].v[URN_IMPAIR_DUPLICATED];

	/* All messages were acknowledged: a packet that is still on its way is a repeat, too. */
	uint64_t under_way = v[URN_C_TX_PACKETS] > v[URN_C_RX_PACKETS]
				     ? v[URN_C_TX_PACKETS] - v[URN_C_RX_PACKETS]
				     : 0;

	return res->have_counters && res->retransmits > 0 &&
	       twice + under_way >= res->retransmits + copies && !any_lost(res);
}
