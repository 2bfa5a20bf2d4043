/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports about a device, its port and its tables. */
#include "test.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

static void
device_plain(void **state)
{
	struct env *e = *state;
	struct ibv_device_attr a;

	memset(&a, 0xff, sizeof(a));
	assert_int_equal(ibv_query_device(e->c, &a), 0);
	assert_string_equal(a.fw_ver, "1.2.3");
	assert_int_equal(be64toh(a.node_guid), 0x0011223344556677);
	assert_int_equal(a.max_qp, 1000);
	assert_int_equal(a.max_qp_wr, URN_ABI_MAX_WR);
	assert_int_equal(a.max_sge, URN_ABI_MAX_SGE);
	assert_int_equal(a.max_qp_rd_atom, 16);
	assert_int_equal(a.phys_port_cnt, 1);
	assert_int_equal(a.max_pkeys, 1);
	assert_int_equal(a.atomic_cap, IBV_ATOMIC_HCA);
	assert_true(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_int_equal(a.max_mcast_grp, URN_ABI_MCAST_GROUPS);
	assert_int_equal(a.max_mcast_qp_attach, URN_ABI_MCAST_CLIENT);
}

/* doc/reference/verbs.md: a caller with a shorter struct gets no byte beyond its end. */
static void
device_short(void **state)
{
	struct env *e = *state;
	struct verbs_context *v = verbs_get_ctx(e->c);
	struct ibv_query_device_ex_input in = {.comp_mask = 0};
	union {
		struct ibv_device_attr_ex a;
		uint8_t b[sizeof(struct ibv_device_attr_ex) + 64];
	} u;
	size_t size, i;

	assert_non_null(v);
	for (size = sizeof(struct ibv_device_attr); size <= sizeof(u); size++) {
		memset(&u, 0xee, sizeof(u));
		assert_int_equal(v->query_device_ex(e->c, &in, &u.a, size), 0);
		assert_int_equal(u.a.orig_attr.max_qp, 1000);
		for (i = size; i < sizeof(u); i++)
			assert_int_equal(u.b[i], 0xee);
		for (i = sizeof(u.a); i < size; i++)
			assert_int_equal(u.b[i], 0);
	}
	assert_int_equal(v->query_device_ex(e->c, NULL, &u.a, sizeof(struct ibv_device_attr) - 1), EINVAL);
	assert_int_equal(v->query_device_ex(e->c, NULL, &u.a, 0), EINVAL);
	in.comp_mask = 1;
	assert_int_equal(v->query_device_ex(e->c, &in, &u.a, sizeof(u.a)), EINVAL);
	assert_int_equal(ibv_query_device_ex(e->c, NULL, &u.a), 0);
	assert_int_equal(u.a.phys_port_cnt_ex, 1);
	assert_int_equal(u.a.comp_mask, 0);
}

static void
port_attr(void **state)
{
	struct env *e = *state;
	struct verbs_context *v = verbs_get_ctx(e->c);
	struct ibv_port_attr a;
	union {
		struct ibv_port_attr a;
		uint8_t b[sizeof(struct ibv_port_attr)];
	} u;
	size_t i;

	assert_int_equal(ibv_query_port(e->c, 1, &a), 0);
	assert_int_equal(a.state, IBV_PORT_ACTIVE);
	assert_int_equal(a.active_mtu, IBV_MTU_1024);
	assert_int_equal(a.max_mtu, IBV_MTU_4096);
	assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(a.gid_tbl_len, FAKE_GIDS);
	assert_int_equal(a.pkey_tbl_len, 1);
	assert_int_equal(a.max_msg_sz, 1u << 31);
	assert_int_equal(a.active_width, 1);
	assert_int_equal(a.active_speed, 4);
	assert_int_equal(a.phys_state, 5);
	e->f->port.state = 1;
	e->f->port.speed = 0;
	assert_int_equal(ibv_query_port(e->c, 1, &a), 0);
	assert_int_equal(a.state, IBV_PORT_DOWN);
	assert_int_equal(a.active_speed, 1);
	assert_int_equal(ibv_query_port(e->c, 0, &a), EINVAL);
	assert_int_equal(ibv_query_port(e->c, 2, &a), EINVAL);
	memset(&u, 0xee, sizeof(u));
	assert_int_equal(v->query_port(e->c, 1, &u.a, 20), 0);
	for (i = 20; i < sizeof(u); i++)
		assert_int_equal(u.b[i], 0xee);
	fake_fail_next(e->f, URN_CTL_QUERY_PORT, EIO, "x");
	assert_int_equal(ibv_query_port(e->c, 1, &a), EIO);
}

static void
gid_table(void **state)
{
	struct env *e = *state;
	struct ibv_gid_entry en, table[FAKE_GIDS];
	union ibv_gid gid;

	memset(e->f->gid[0], 0xfe, 16);
	memset(e->f->gid[2], 0x11, 16);
	assert_int_equal(ibv_query_gid(e->c, 1, 2, &gid), 0);
	assert_memory_equal(gid.raw, e->f->gid[2], 16);
	assert_int_equal(ibv_query_gid(e->c, 1, 1, &gid), 0);
	assert_memory_equal(gid.raw, e->f->gid[1], 16); /* empty: zeros */
	assert_int_equal(ibv_query_gid(e->c, 1, FAKE_GIDS, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(e->c, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(e->c, 2, 0, &gid), -1);

	assert_int_equal(ibv_query_gid_ex(e->c, 1, 2, &en, 0), 0);
	assert_int_equal(en.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(en.gid_index, 2);
	assert_int_equal(en.port_num, 1);
	assert_memory_equal(en.gid.raw, e->f->gid[2], 16);
	assert_int_equal(ibv_query_gid_ex(e->c, 1, 1, &en, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(e->c, 1, 2, &en, 1), EOPNOTSUPP);

	assert_int_equal(ibv_query_gid_table(e->c, table, FAKE_GIDS, 0), 2);
	assert_int_equal(table[0].gid_index, 0);
	assert_int_equal(table[1].gid_index, 2);
	assert_int_equal(ibv_query_gid_table(e->c, table, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(e->c, table, 1, 1), -EOPNOTSUPP);
	fake_fail_next(e->f, URN_CTL_QUERY_GID, EIO, "x");
	assert_int_equal(ibv_query_gid_table(e->c, table, 4, 0), -EIO);
	fake_fail_next(e->f, URN_CTL_QUERY_GID, ENODATA, "empty");
	assert_int_equal(ibv_query_gid(e->c, 1, 2, &gid), 0);
	assert_int_equal(gid.raw[0], 0);
}

static void
pkey_table(void **state)
{
	struct env *e = *state;
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(e->c, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(e->c, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(e->c, 2, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(e->c, 1, htons(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(e->c, 1, htons(0x7fff)), -1);
	assert_int_equal(ibv_get_pkey_index(e->c, 9, htons(0xffff)), -1);
}

#define CTX(fn) cmocka_unit_test_setup_teardown(fn, ctx_setup, ctx_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CTX(device_plain), CTX(device_short), CTX(port_attr), CTX(gid_table), CTX(pkey_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
