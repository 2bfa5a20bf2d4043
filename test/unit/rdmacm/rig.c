/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

struct sockaddr_in own = {.sin_family = AF_INET}, peer = {.sin_family = AF_INET};
struct rdma_event_channel *channel;

struct ibv_qp_init_attr *
qp_attr(void)
{
	static struct ibv_qp_init_attr a;

	a = (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
	return &a;
}

int
setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	inet_pton(AF_INET, FAKE_OWN, &own.sin_addr);
	inet_pton(AF_INET, FAKE_PEER, &peer.sin_addr);
	own.sin_port = htons(7471);
	peer.sin_port = htons(7471);
	channel = rdma_create_event_channel();
	return channel == NULL;
}

int
teardown(void **state)
{
	(void)state;
	rdma_destroy_event_channel(channel);
	return LIST_EMPTY(&urn_cma_all) ? 0 : 1;
}

struct rdma_cm_id *
make(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

struct rdma_cm_id *
next(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	fake_settle();
	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	assert_string_equal(rdma_event_str(e->event), rdma_event_str(type));
	assert_int_equal(e->status, status);
	id = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	return id;
}

void
nothing(void)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	fake_settle();
	assert_int_equal(poll(&p, 1, 0), 0);
}

struct rdma_cm_id *
routed(void)
{
	struct rdma_cm_id *id = make();

	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, 1000), 0);
	assert_ptr_equal(next(RDMA_CM_EVENT_ADDR_RESOLVED, 0), id);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(next(RDMA_CM_EVENT_ROUTE_RESOLVED, 0), id);
	return id;
}

struct rdma_cm_id *
connecting(void)
{
	struct rdma_cm_id *id = routed();

	assert_int_equal(rdma_create_qp(id, NULL, qp_attr()), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	return id;
}

struct rdma_cm_id *
listening(void)
{
	struct rdma_cm_id *id = make();

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	assert_int_equal(rdma_listen(id, 5), 0);
	return id;
}

void
tell(struct rdma_cm_id *id, enum urn_cm_event_type type, uint16_t reason)
{
	struct urn_abi_cm_event ev = {.type = type,
				      .id = urn_cma_of(id)->cm,
				      .reason = reason,
				      .qpn = 9,
				      .psn = 5,
				      .responder_resources = 2,
				      .initiator_depth = 2};

	fake_event(&ev);
}

void
end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}
