/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in librdmacm's datagrams: look-ups, and answers to a peer's (CM-1). */
#include "rig.h"

static struct rdma_cm_id *
datagrams(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(id->qp_type, IBV_QPT_UD);
	return id;
}

/* A look-up, its answer, and one that is refused. */
static void
test_look_up(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_SIDR_REPLY, .qpn = 55, .qkey = 66};
	struct rdma_conn_param p = {.private_data = "x", .private_data_len = 181};
	struct rdma_cm_id *id;
	struct rdma_cm_event *e;

	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		id = datagrams();
		assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, 1), 0);
		next(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_resolve_route(id, 1), 0);
		next(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		fails(rdma_connect(id, &p), EINVAL);
		assert_int_equal(rdma_connect(id, NULL), 0);
		assert_int_equal(fake.connect.service_id, urn_cm_service(RDMA_PS_UDP, 7471));
		ev.id = urn_cma_of(id)->cm;
		ev.reason = refused ? URN_CM_SIDR_REJECT : 0;
		fake_event(&ev);
		assert_int_equal(rdma_get_cm_event(channel, &e), 0);
		assert_int_equal(e->event,
				 refused ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_ESTABLISHED);
		assert_int_equal(e->status, ev.reason);
		assert_int_equal(e->param.ud.qp_num, refused ? 0 : 55);
		assert_int_equal(e->param.ud.qkey, refused ? 0 : 66);
		assert_int_equal(e->param.ud.ah_attr.is_global, !refused);
		rdma_ack_cm_event(e);
		fails(rdma_disconnect(id), EINVAL);
		end(id);
	}
}

static void
test_looked_up(void **state)
{
	struct ibv_qp_init_attr *a = qp_attr();
	struct rdma_cm_id *l = datagrams(), *id;

	(void)state;
	a->qp_type = IBV_QPT_UD;
	assert_int_equal(rdma_bind_addr(l, (struct sockaddr *)&own), 0);
	assert_int_equal(rdma_listen(l, 5), 0);
	fake_request(URN_CM_EVENT_REQUEST); /* for a connection: not here */
	nothing();
	assert_int_equal(fake.destroys, 1);
	fake_request(URN_CM_EVENT_SIDR_REQUEST);
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_create_qp(id, NULL, a), 0);
	assert_int_equal(id->qp->state, IBV_QPS_RTS);
	fails(rdma_reject(id, "x", 137), EINVAL);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(fake.accept.qpn, 77);
	assert_int_equal(fake.accept.psn, RDMA_UDP_QKEY);
	assert_int_equal(fake.accept.status, URN_CM_SIDR_VALID);
	tell(id, URN_CM_EVENT_TIMEWAIT, 0);
	nothing();
	end(id);
	fake_request(URN_CM_EVENT_SIDR_REQUEST);
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_reject(id, NULL, 0), 0);
	assert_int_equal(fake.accept.status, URN_CM_SIDR_REJECT);
	end(id);
	end(l);
}

/* ---- multicast */

static struct sockaddr_in
group(uint32_t addr)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(addr)};
}

/* A join attaches the queue pair and tells how to send to the group; leaving, or the end, detaches.
 */
static void
test_join(void **state)
{
	struct sockaddr_in to = group(0xef000001), other = group(0xef000002);
	struct ibv_qp_init_attr *a = qp_attr();
	struct rdma_cm_join_mc_attr_ex only = {.comp_mask = 3,
					       .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
					       .addr = (struct sockaddr *)&other};
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	(void)state;
	a->qp_type = IBV_QPT_UD;
	for (int how = 0; how < 3; how++) { /* leave; destroy the queue pair; destroy the id */
		id = datagrams();
		fails(rdma_join_multicast(id, (struct sockaddr *)&to, NULL),
		      EINVAL); /* no device yet */
		assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
		assert_int_equal(rdma_create_qp(id, NULL, a), 0);
		assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&to, &to), 0);
		assert_int_equal(fake.attached, 1);
		assert_int_equal(rdma_get_cm_event(channel, &e), 0);
		assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
		assert_int_equal(e->status, 0);
		assert_ptr_equal(e->param.ud.private_data, &to);
		assert_int_equal(e->param.ud.qp_num, 0xffffff);
		assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
		assert_int_equal(e->param.ud.ah_attr.is_global, 1);
		assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw + 10, "\xff\xff\xef\0\0\1", 6);
		rdma_ack_cm_event(e);
		/* A join for sending only attaches nothing. */
		assert_int_equal(rdma_join_multicast_ex(id, &only, NULL), 0);
		next(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		assert_int_equal(fake.attached, 1);
		fails(rdma_leave_multicast(id, (struct sockaddr *)&own), EADDRNOTAVAIL);
		if (how == 0)
			assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&to), 0);
		assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&other), 0);
		assert_int_equal(fake.attached, how != 0);
		if (how < 2)
			rdma_destroy_qp(id);
		assert_int_equal(fake.attached, how == 2);
		if (how == 2)
			rdma_destroy_qp(id);
		end(id);
		assert_int_equal(fake.attached, 0);
	}
}

/* Joins that make no sense, and one that the dataplane refuses. */
static void
test_join_fails(void **state)
{
	struct sockaddr_in to = group(0xef000001), one = group(0x0a000009);
	struct rdma_cm_join_mc_attr_ex bad = {.comp_mask = 1, .addr = (struct sockaddr *)&to};
	struct sockaddr odd = {.sa_family = AF_UNIX};
	struct ibv_qp_init_attr *a = qp_attr();
	struct rdma_cm_id *id = datagrams();

	(void)state;
	a->qp_type = IBV_QPT_UD;
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	assert_int_equal(rdma_create_qp(id, NULL, a), 0);
	fails(rdma_join_multicast_ex(id, &bad, NULL), EINVAL);
	bad.comp_mask = 3;
	bad.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	fails(rdma_join_multicast_ex(id, &bad, NULL), EINVAL);
	fails(rdma_join_multicast(id, &odd, NULL), EAFNOSUPPORT);
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&one, NULL),
			 0); /* not a group */
	next(RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL);
	fake.attach_fails = ENOMEM;
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&to, NULL), 0);
	next(RDMA_CM_EVENT_MULTICAST_ERROR, -ENOMEM);
	fake.attach_fails = 0;
	fake.attached = 0;
	rdma_destroy_qp(id);
	end(id);
	assert_int_equal(fake.attached, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_look_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_looked_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_join, setup, teardown),
		cmocka_unit_test_setup_teardown(test_join_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
