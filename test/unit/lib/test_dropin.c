/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in libibverbs.so.1 copies attributes between the kernel's structs and those of verbs.h,
 * each field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dropin/ibverbs/dropin.h"

#include <string.h>

/* Give each byte of an object a value of its own, from `first` on. */
static void
fill(void *p, size_t size, uint8_t first)
{
	uint8_t *byte = p;
	size_t i;

	for (i = 0; i < size; i++)
		byte[i] = (uint8_t)(first + i);
}

#define SAME(field) assert_int_equal(to.field, from.field)

static void
qp_attributes(void **state)
{
	struct ib_uverbs_qp_attr from;
	struct ibv_qp_attr to;

	(void)state;
	fill(&from, sizeof(from), 1);
	memset(&to, 0, sizeof(to));
	urn_dropin_ibv_copy_qp_attr_from_kern(&to, &from);
	SAME(qp_state), SAME(cur_qp_state), SAME(path_mtu), SAME(path_mig_state), SAME(qkey);
	SAME(rq_psn), SAME(sq_psn), SAME(dest_qp_num), SAME(qp_access_flags);
	assert_int_equal(to.cap.max_send_wr, from.max_send_wr);
	assert_int_equal(to.cap.max_recv_wr, from.max_recv_wr);
	assert_int_equal(to.cap.max_send_sge, from.max_send_sge);
	assert_int_equal(to.cap.max_recv_sge, from.max_recv_sge);
	assert_int_equal(to.cap.max_inline_data, from.max_inline_data);
	assert_memory_equal(to.ah_attr.grh.dgid.raw, from.ah_attr.grh.dgid, 16);
	SAME(ah_attr.grh.flow_label), SAME(ah_attr.grh.sgid_index), SAME(ah_attr.grh.hop_limit);
	SAME(ah_attr.grh.traffic_class), SAME(ah_attr.dlid), SAME(ah_attr.sl),
		SAME(ah_attr.src_path_bits);
	SAME(ah_attr.static_rate), SAME(ah_attr.is_global), SAME(ah_attr.port_num),
		SAME(alt_ah_attr.dlid);
	SAME(pkey_index), SAME(alt_pkey_index), SAME(en_sqd_async_notify), SAME(sq_draining);
	SAME(max_rd_atomic), SAME(max_dest_rd_atomic), SAME(min_rnr_timer), SAME(port_num),
		SAME(timeout);
	SAME(retry_cnt), SAME(rnr_retry), SAME(alt_port_num), SAME(alt_timeout);
}

static void
paths(void **state)
{
	struct ib_user_path_rec from, back;
	struct ibv_sa_path_rec to;

	(void)state;
	memset(&from, 0, sizeof(from));
	fill(&from, sizeof(from), 1);
	from.raw_traffic = 1;
	from.mtu = 5;
	urn_dropin_ibv_copy_path_rec_from_kern(&to, &from);
	assert_memory_equal(to.dgid.raw, from.dgid, 16);
	assert_memory_equal(to.sgid.raw, from.sgid, 16);
	SAME(dlid), SAME(slid), SAME(raw_traffic), SAME(flow_label), SAME(hop_limit),
		SAME(traffic_class);
	SAME(reversible), SAME(numb_path), SAME(pkey), SAME(sl), SAME(mtu_selector), SAME(mtu);
	SAME(rate_selector), SAME(rate), SAME(packet_life_time_selector), SAME(packet_life_time),
		SAME(preference);
	memcpy(&back, &from, sizeof(back)); /* padding */
	memset(&back, 0, offsetof(struct ib_user_path_rec, preference) + 1);
	urn_dropin_ibv_copy_path_rec_to_kern(&back, &to);
	assert_memory_equal(&back, &from, sizeof(from));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_attributes),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
