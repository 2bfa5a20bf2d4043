/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tag.h"

#include "transport/frame.h"
#include "wire/vlan.h"

void
urn_tp_tag(struct urn_tp *tp, uint16_t tci)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < tp->tx_n; i++) {
		struct rte_mbuf *m = tp->tx[i];

		/* Frames that the port left in an earlier turn have it. */
		if (urn_vlan_has(m) || urn_vlan_push(m, tci)) {
			tp->tx[n++] = m;
			continue;
		}
		URN_COUNT(tp, DROP_TX);
		rte_pktmbuf_free(m);
	}
	tp->tx_n = n;
}

unsigned int
urn_tp_untag(struct urn_tp *tp, struct rte_mbuf **m, unsigned int n, uint16_t tci)
{
	unsigned int left = 0;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (likely(urn_vlan_has(m[i]) && urn_vlan_vid(m[i]) == (tci & URN_VLAN_VID))) {
			urn_vlan_pop(m[i]);
			bytes += URN_VLAN_BYTES;
			m[left++] = m[i];
			continue;
		}
		bytes += m[i]->pkt_len;
		urn_tp_drop(tp, m[i], URN_C_DROP_VLAN);
	}
	/* The parser's caller counts those that are left, without their tags. */
	URN_COUNT_N(tp, RX_PACKETS, n - left);
	URN_COUNT_N(tp, RX_BYTES, bytes);
	return left;
}
