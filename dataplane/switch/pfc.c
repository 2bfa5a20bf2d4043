/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/pfc.h"

#include <errno.h>
#include <string.h>

/* Places in the frame, bytes from its begin. */
enum { AT_SOURCE = 6, AT_TYPE = 12, AT_OPCODE = 14, AT_VECTOR = 16, AT_TIMES = 18 };

_Static_assert(AT_TIMES + 2 * URN_PFC_PRIORITIES == URN_PFC_LEAST, "802.3 annex 31D");

/* The group address of MAC control (IEEE 802.3 31.4.1.1). */
static const uint8_t address[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

static unsigned int
get16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static void
put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

int
urn_pfc_read(const struct rte_mbuf *m, struct urn_pfc *pfc)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len < URN_PFC_LEAST || memcmp(f, address, sizeof(address)) != 0 ||
	    get16(f + AT_TYPE) != URN_PFC_ETHERTYPE || get16(f + AT_OPCODE) != URN_PFC_OPCODE ||
	    get16(f + AT_VECTOR) > UINT8_MAX)
		return -EBADMSG;
	pfc->enable = f[AT_VECTOR + 1];
	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++)
		pfc->quanta[i] = (uint16_t)get16(f + AT_TIMES + 2 * (size_t)i);
	return 0;
}

int
urn_pfc_write(struct rte_mbuf *m, const uint8_t source[6], const struct urn_pfc *pfc)
{
	uint8_t *f = (uint8_t *)rte_pktmbuf_append(m, URN_PFC_BYTES);

	if (!f)
		return -ENOBUFS;
	memset(f, 0, URN_PFC_BYTES);
	memcpy(f, address, sizeof(address));
	memcpy(f + AT_SOURCE, source, 6);
	put16(f + AT_TYPE, URN_PFC_ETHERTYPE);
	put16(f + AT_OPCODE, URN_PFC_OPCODE);
	f[AT_VECTOR + 1] = pfc->enable;
	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++)
		if (pfc->enable & 1u << i)
			put16(f + AT_TIMES + 2 * (size_t)i, pfc->quanta[i]);
	return 0;
}

uint64_t
urn_pfc_quantum(uint64_t bps)
{
	/* 512e9 << 16 fits in 64 bits. */
	return (URN_PFC_QUANTUM_BITS * 1000000000ull << 16) / bps;
}
