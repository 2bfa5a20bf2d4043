/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of queue pairs and paths, between the kernel's structs and those of verbs.h. */
#include "dropin/ibverbs/dropin.h"

#include <string.h>

/* Fields that have one name in both structs. */
#define COPY(field) dst->field = src->field

void
urn_dropin_ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid.raw));
	COPY(grh.flow_label);
	COPY(grh.sgid_index);
	COPY(grh.hop_limit);
	COPY(grh.traffic_class);
	COPY(dlid);
	COPY(sl);
	COPY(src_path_bits);
	COPY(static_rate);
	COPY(is_global);
	COPY(port_num);
}

void
urn_dropin_ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
	COPY(qp_state);
	COPY(cur_qp_state);
	COPY(path_mtu);
	COPY(path_mig_state);
	COPY(qkey);
	COPY(rq_psn);
	COPY(sq_psn);
	COPY(dest_qp_num);
	COPY(qp_access_flags);
	dst->cap.max_send_wr = src->max_send_wr;
	dst->cap.max_recv_wr = src->max_recv_wr;
	dst->cap.max_send_sge = src->max_send_sge;
	dst->cap.max_recv_sge = src->max_recv_sge;
	dst->cap.max_inline_data = src->max_inline_data;
	urn_dropin_ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	urn_dropin_ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
	COPY(pkey_index);
	COPY(alt_pkey_index);
	COPY(en_sqd_async_notify);
	COPY(sq_draining);
	COPY(max_rd_atomic);
	COPY(max_dest_rd_atomic);
	COPY(min_rnr_timer);
	COPY(port_num);
	COPY(timeout);
	COPY(retry_cnt);
	COPY(rnr_retry);
	COPY(alt_port_num);
	COPY(alt_timeout);
}

/* Fields of a path that are the same in both directions but for the size. */
#define COPY_PATH(type_of_mtu, type_of_reversible)                     \
	do {                                                           \
		COPY(dlid);                                            \
		COPY(slid);                                            \
		COPY(flow_label);                                      \
		dst->raw_traffic = src->raw_traffic != 0;              \
		dst->reversible = (type_of_reversible)src->reversible; \
		dst->mtu = (type_of_mtu)src->mtu;                      \
		COPY(pkey);                                            \
		COPY(hop_limit);                                       \
		COPY(traffic_class);                                   \
		COPY(numb_path);                                       \
		COPY(sl);                                              \
		COPY(mtu_selector);                                    \
		COPY(rate_selector);                                   \
		COPY(rate);                                            \
		COPY(packet_life_time_selector);                       \
		COPY(packet_life_time);                                \
		COPY(preference);                                      \
	} while (0)

void
urn_dropin_ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(src->dgid));
	memcpy(dst->sgid.raw, src->sgid, sizeof(src->sgid));
	COPY_PATH(uint8_t, int);
}

void
urn_dropin_ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(dst->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(dst->sgid));
	COPY_PATH(uint32_t, uint32_t);
}
