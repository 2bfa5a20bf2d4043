/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups of many peers at once by a datagram socket (RS-3). */
#include "rig.h"

#include "dropin/rdmacm/rsocket/dgram.h"

enum { PEERS = 3 };

static unsigned int
ids(void)
{
	const struct urn_cma_id *id;
	unsigned int n = 0;

	LIST_FOREACH(id, &urn_cma_all, next)
		n++;
	return n;
}

/* Events that stand before those of a new look-up are handled as in a step: the look-up is counted
 * off, and its id goes, as that of a peer's request does. */
static void
test_many(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_SIDR_REPLY,
				      .reason = URN_CM_SIDR_REJECT};
	struct urn_rs_dgram d = {0};
	struct urn_rs rs = {.channel = channel, .dgram = &d, .state = URN_RS_BOUND};
	struct urn_rs_peer *p[PEERS];

	(void)state;
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_create_id(channel, &d.listener, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(d.listener, (struct sockaddr *)&own), 0);
	assert_int_equal(rdma_listen(d.listener, 0), 0);
	d.dev = urn_cma_of(d.listener)->dev;
	for (int i = 0; i < PEERS; i++) {
		peer.sin_port = htons((uint16_t)(8000 + i));
		p[i] = urn_rs_peer_find(&rs, (struct sockaddr *)&peer);
		assert_non_null(p[i]);
		assert_int_equal(urn_rs_peer_look(&rs, p[i]), 0);
		/* The one before is over, and its request's id is gone. */
		assert_int_equal(d.looking, 1);
		assert_int_equal(ids(), 2);
		assert_true(i == 0 || (p[i - 1]->look == NULL && p[i - 1]->err == ECONNREFUSED));
		ev.id = urn_cma_of(p[i]->look)->cm;
		fake_event(&ev);
		fake_request(URN_CM_EVENT_SIDR_REQUEST);
	}
	urn_rs_peers_free(&rs);
	assert_int_equal(d.looking, 0);
	rdma_destroy_id(d.listener);
	assert_int_equal(ids(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
