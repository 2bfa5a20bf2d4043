/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/unsealed.h"

#include "wire/icrc.h"
#include "wire/vlan.h"

#include <rte_branch_prediction.h>
#include <rte_mbuf_dyn.h>

static uint64_t mark; /* 0: not registered, and no frame has it; atomic */

uint64_t
urn_unsealed_bit(void)
{
	static const struct rte_mbuf_dynflag unsealed = {.name = "urnic_unsealed"};
	int bit = rte_mbuf_dynflag_register(&unsealed); /* the same bit each time */

	if (bit < 0)
		return 0;
	__atomic_store_n(&mark, RTE_BIT64(bit), __ATOMIC_RELAXED);
	return RTE_BIT64(bit);
}

void
urn_wire_seal(struct rte_mbuf *m)
{
	uint64_t bit = __atomic_load_n(&mark, __ATOMIC_RELAXED);
	uint32_t off = URN_ETH_BYTES, len, crc;
	uint8_t *l3;

	if (likely(!(m->ol_flags & bit)))
		return;
	m->ol_flags &= ~bit;
	if (urn_vlan_has(m))
		off += URN_VLAN_BYTES;
	l3 = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	len = m->data_len - off - URN_ICRC_BYTES;
	crc = rte_cpu_to_le_32(urn_icrc(l3, len, l3[0] >> 4 == 6));
	memcpy(l3 + len, &crc, sizeof(crc));
}
