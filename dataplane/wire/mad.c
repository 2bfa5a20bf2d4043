/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mad.h"

enum { GSI_HDR = sizeof(struct urn_bth) + sizeof(struct urn_deth) };

int
urn_mad_frame(struct rte_mbuf *m, const struct urn_path *path, const uint8_t *mad, uint32_t psn,
	      int icrc)
{
	const struct urn_deth deth = {
		.qkey = RTE_BE32(URN_GSI_QKEY),
		.sqpn = RTE_BE32(URN_QPN_GSI),
	};
	struct urn_tmpl tmpl;
	uint32_t len;
	uint8_t *f, *bth;

	urn_tmpl_init(&tmpl, path);
	len = tmpl.len + GSI_HDR + URN_MAD_BYTES;
	if (m->buf_len - m->data_off < (int)(len + URN_ICRC_BYTES))
		return -1;
	f = rte_pktmbuf_mtod(m, uint8_t *);
	bth = f + tmpl.len;
	/* Moved first: in a received frame the MAD may lie where the headers go. */
	memmove(bth + GSI_HDR, mad, URN_MAD_BYTES);
	urn_build_headers(f, &tmpl, GSI_HDR + URN_MAD_BYTES);
	urn_build_bth((struct urn_bth *)bth, URN_UD_SEND_ONLY, URN_BTH_M, 0, URN_QPN_GSI, psn,
		      0);
	memcpy(bth + sizeof(struct urn_bth), &deth, sizeof(deth));
	urn_build_icrc(f, len, tmpl.ipv6, icrc);
	m->data_len = (uint16_t)(len + URN_ICRC_BYTES);
	m->pkt_len = m->data_len;
	return 0;
}

int
urn_mad_find(struct rte_mbuf *m, const uint8_t **mad, uint32_t *sqpn)
{
	const struct urn_pkt *p = urn_pkt(m);
	struct urn_deth deth;

	if (!(p->op->flags & URN_OPF_UD))
		return URN_C_DROP_QP_TYPE;
	memcpy(&deth, urn_pkt_ext(m, URN_EXT_DETH), sizeof(deth));
	if (deth.qkey != RTE_BE32(URN_GSI_QKEY))
		return URN_C_DROP_QKEY;
	if (p->payload_len != URN_MAD_BYTES)
		return URN_C_DROP_MAD_LENGTH;
	*mad = urn_pkt_payload(m);
	*sqpn = rte_be_to_cpu_32(deth.sqpn) & URN_QPN_MASK;
	if (((const struct urn_mad_hdr *)*mad)->base_version != URN_MAD_BASE_VERSION)
		return URN_C_DROP_MAD_VERSION;
	return 0;
}
