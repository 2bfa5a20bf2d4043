/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths of packets that fit a port's Ethernet MTU. */
#ifndef URN_PMD_GLUE_MTU_H
#define URN_PMD_GLUE_MTU_H

#include "pmd_glue/port.h"

/* Largest path MTU of RoCE that passes a port. mtu: Ethernet MTU, bytes. returns: 256 to 4096; 0:
 * none */
static inline uint16_t
urn_port_roce_mtu(uint16_t mtu)
{
	uint16_t m;

	for (m = 4096; m >= 256; m /= 2)
		if (mtu >= m + URN_PORT_ROCE_HEADERS)
			return m;
	return 0;
}

/*
 * Bytes behind the flow header that a packet of a flow has room for, a multiple of 4. A path MTU
 * below the port's own was asked for because the network carries no more: packets of flows keep to
 * it. mtu: Ethernet MTU; path: path MTU in use, at least 256; both in bytes
 */
static inline uint16_t
urn_port_flow_mtu(uint16_t mtu, uint16_t path)
{
	if (path < urn_port_roce_mtu(mtu))
		return path;
	return (uint16_t)((mtu - URN_PORT_FLOW_HEADERS) & ~3u);
}

#endif
