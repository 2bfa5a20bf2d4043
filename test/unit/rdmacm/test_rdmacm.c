/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in librdmacm's state machine, and its bad uses, against an end whose peer is the test
 * (CM-1). */
#include "rig.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void
test_null(void **state)
{
	struct rdma_cm_id *id = NULL;

	(void)state;
	fails(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	fails(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)5), EINVAL);
	fails(rdma_destroy_id(NULL), EINVAL);
	fails(rdma_bind_addr(NULL, (struct sockaddr *)&own), EINVAL);
	fails(rdma_resolve_addr(NULL, NULL, (struct sockaddr *)&peer, 1), EINVAL);
	fails(rdma_resolve_route(NULL, 1), EINVAL);
	fails(rdma_listen(NULL, 1), EINVAL);
	fails(rdma_connect(NULL, NULL), EINVAL);
	fails(rdma_accept(NULL, NULL), EINVAL);
	fails(rdma_reject(NULL, NULL, 0), EINVAL);
	fails(rdma_establish(NULL), EINVAL);
	fails(rdma_disconnect(NULL), EINVAL);
	fails(rdma_notify(NULL, IBV_EVENT_COMM_EST), EINVAL);
}

static void
test_null_others(void **state)
{
	struct rdma_cm_id *id = NULL;
	struct rdma_cm_event *e;
	int mask;

	(void)state;
	fails(rdma_get_cm_event(NULL, &e), EINVAL);
	fails(rdma_get_cm_event(channel, NULL), EINVAL);
	fails(rdma_ack_cm_event(NULL), EINVAL);
	fails(rdma_migrate_id(NULL, channel), EINVAL);
	fails(rdma_get_request(NULL, &id), EINVAL);
	fails(rdma_create_ep(NULL, NULL, NULL, NULL), EINVAL);
	fails(rdma_create_qp(NULL, NULL, qp_attr()), EINVAL);
	fails(rdma_create_srq(NULL, NULL, NULL), EINVAL);
	fails(rdma_init_qp_attr(NULL, NULL, &mask), EINVAL);
	fails(rdma_set_option(NULL, 0, 0, NULL, 0), EINVAL);
	fails(rdma_getaddrinfo(NULL, NULL, NULL, NULL), EINVAL);
	rdma_destroy_qp(NULL);
	rdma_destroy_srq(NULL);
	rdma_destroy_ep(NULL);
	rdma_freeaddrinfo(NULL);
	rdma_destroy_event_channel(NULL);
	assert_int_equal(rdma_get_src_port(NULL), 0);
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
}

/* Calls by a letter each, in the order of enum urn_cma_call. */
static int
call(struct rdma_cm_id *id, char letter)
{
	struct rdma_conn_param p = {.qp_num = 1};

	switch (letter) {
	case 'b':
		return rdma_bind_addr(id, (struct sockaddr *)&own);
	case 'l':
		return rdma_listen(id, 1);
	case 'a':
		return rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, 1);
	case 'r':
		return rdma_resolve_route(id, 1);
	case 'c':
		return rdma_connect(id, &p);
	case 'p':
		return rdma_accept(id, &p);
	case 'j':
		return rdma_reject(id, NULL, 0);
	case 'e':
		return rdma_establish(id);
	case 'n':
		return rdma_notify(id, IBV_EVENT_COMM_EST);
	default:
		return rdma_disconnect(id);
	}
}

/* Each call in each state: only those of the table get as far as the end. Idle ids are bound by
 * rdma_listen(). */
static void
test_wrong_state(void **state)
{
	static const char all[] = "blarcpjend";
	static const char *const allowed[URN_CMA_STATES] = {
		[URN_CMA_IDLE] = "bla",	   [URN_CMA_BOUND] = "la",	[URN_CMA_LISTEN] = "",
		[URN_CMA_ADDR] = "r",	   [URN_CMA_ROUTE] = "c",	[URN_CMA_CONNECTING] = "d",
		[URN_CMA_REPLIED] = "jed", [URN_CMA_REQUESTED] = "pjd", [URN_CMA_ACCEPTED] = "jnd",
		[URN_CMA_UP] = "nd",	   [URN_CMA_LEAVING] = "d",	[URN_CMA_LEFT] = "d",
		[URN_CMA_OVER] = "d",
	};
	struct rdma_cm_id *id = routed();
	struct urn_cma_id *i = urn_cma_of(id);

	(void)state;
	for (int s = 0; s < URN_CMA_STATES; s++) {
		i->state = (enum urn_cma_state)s;
		assert_string_not_equal(urn_cma_state_name(i->state), "unknown");
		for (const char *c = all; *c != '\0'; c++) {
			if (strchr(allowed[s], *c) != NULL)
				continue;
			fails(call(id, *c), EINVAL);
			assert_int_equal(i->state, s);
		}
	}
	assert_int_equal(fake.connects + fake.accepts + fake.rejects + fake.establishes, 0);
	assert_int_equal(fake.disconnects + fake.listens, 0);
	end(id);
}

static void
test_client(void **state)
{
	struct rdma_cm_id *id = connecting();
	struct urn_cm_ip ip;

	(void)state;
	assert_int_equal(urn_cma_of(id)->state, URN_CMA_CONNECTING);
	assert_int_equal(fake.connect.qpn, 77);
	assert_int_equal(fake.connect.service_id, urn_cm_service(RDMA_PS_TCP, 7471));
	assert_int_equal(fake.connect.sgid_index, 1);
	assert_int_equal(urn_cm_ip_read(fake.connect.data, fake.connect.data_len, &ip), 0);
	assert_int_equal(htons(ip.port), rdma_get_src_port(id));
	tell(id, URN_CM_EVENT_REPLY, 0);
	fails(rdma_establish(id), EINVAL); /* with a queue pair the library does that */
	assert_int_equal(fake.establishes,
			 0); /* the queue pair comes up in the program's own call */
	assert_ptr_equal(next(RDMA_CM_EVENT_ESTABLISHED, 0), id);
	assert_int_equal(fake.qps_up, 1);
	assert_int_equal(fake.establishes, 1);
	assert_int_equal(urn_cma_of(id)->initiator_depth, 2);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(fake.qps_error, 1);
	assert_int_equal(rdma_disconnect(id), 0); /* again: nothing */
	assert_int_equal(fake.disconnects, 1);
	tell(id, URN_CM_EVENT_DISCONNECTED, 0);
	next(RDMA_CM_EVENT_DISCONNECTED, 0);
	tell(id, URN_CM_EVENT_TIMEWAIT, 0);
	next(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(fake.destroys, 0);
	end(id);
	assert_int_equal(fake.destroys, 1);
}

static void
test_client_fails(void **state)
{
	struct rdma_cm_id *id = connecting();

	(void)state;
	tell(id, URN_CM_EVENT_REJECTED, URN_CM_REJ_CONSUMER);
	next(RDMA_CM_EVENT_REJECTED, URN_CM_REJ_CONSUMER);
	tell(id, URN_CM_EVENT_REPLY, 0); /* too late */
	nothing();
	end(id);
	id = connecting();
	tell(id, URN_CM_EVENT_UNREACHABLE, 0);
	next(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	end(id);
	/* The reply came, and the peer has left before the program looks. */
	id = connecting();
	tell(id, URN_CM_EVENT_REPLY, 0);
	fake.fails = ENOTCONN;
	next(RDMA_CM_EVENT_CONNECT_ERROR, -ENOTCONN);
	assert_int_equal(fake.rejects, 1);
	end(id);
	id = routed();
	assert_int_equal(rdma_create_qp(id, NULL, qp_attr()), 0);
	fake.fails = ENOSPC;
	fails(rdma_connect(id, NULL), ENOSPC);
	end(id);
}

static void
test_own_qp(void **state)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};
	struct rdma_conn_param p = {.qp_num = 1234};
	struct rdma_cm_id *id = routed();
	int mask;

	(void)state;
	fails(rdma_init_qp_attr(id, &a, &mask), EINVAL); /* no reply yet */
	fails(rdma_connect(id, NULL), EINVAL);		 /* no number of a queue pair */
	assert_int_equal(rdma_connect(id, &p), 0);
	assert_int_equal(fake.connect.qpn, 1234);
	fails(rdma_establish(id), EINVAL);
	tell(id, URN_CM_EVENT_REPLY, 0);
	next(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_init_qp_attr(id, &a, &mask), 0);
	assert_int_equal(a.dest_qp_num, 9);
	assert_true(mask & IBV_QP_DEST_QPN);
	assert_int_equal(rdma_establish(id), 0);
	assert_int_equal(urn_cma_of(id)->state, URN_CMA_UP);
	fails(rdma_establish(id), EINVAL);
	end(id);
}

static void
test_server(void **state)
{
	struct rdma_cm_id *l = listening(), *id;
	struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
	struct rdma_cm_event *e;
	int mask;

	(void)state;
	fake_request(URN_CM_EVENT_REQUEST);
	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(e->listen_id, l);
	assert_int_equal(e->param.conn.private_data_len, 56);
	assert_string_equal(e->param.conn.private_data, "hello");
	assert_int_equal(e->param.conn.responder_resources, 4); /* the peer asks for so many */
	assert_int_equal(e->param.conn.initiator_depth, 3);
	id = e->id;
	assert_int_equal(rdma_get_dst_port(id), htons(40000));
	assert_int_equal(rdma_get_src_port(id), htons(7471));
	rdma_ack_cm_event(e);
	/* A queue pair of the program's own may come up before rdma_accept(). */
	assert_int_equal(rdma_init_qp_attr(id, &a, &mask), 0);
	assert_int_equal(a.retry_cnt, 6);
	assert_int_equal(a.rnr_retry, 5);
	fails(rdma_accept(id, NULL), EINVAL); /* neither queue pair nor its number */
	assert_int_equal(rdma_create_qp(id, NULL, qp_attr()), 0);
	fails(rdma_create_qp(id, NULL, qp_attr()), EINVAL);
	assert_int_equal(rdma_accept(id, &p), 0);
	assert_int_equal(fake.qps_up, 1);
	assert_int_equal(fake.accept.qpn, 77);
	fails(rdma_accept(id, &p), EINVAL);
	tell(id, URN_CM_EVENT_ESTABLISHED, 0);
	assert_ptr_equal(next(RDMA_CM_EVENT_ESTABLISHED, 0), id);
	tell(id, URN_CM_EVENT_DISCONNECT, 0);
	next(RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(fake.disconnects, 1);
	end(id);
	end(l);
}

static void
test_notify(void **state)
{
	struct rdma_cm_id *l = listening(), *id;

	(void)state;
	fake_request(URN_CM_EVENT_REQUEST);
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_create_qp(id, NULL, qp_attr()), 0);
	assert_int_equal(rdma_accept(id, NULL), 0);
	fails(rdma_notify(id, IBV_EVENT_PATH_MIG), EINVAL);
	assert_int_equal(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
	next(RDMA_CM_EVENT_ESTABLISHED, 0);
	tell(id, URN_CM_EVENT_ESTABLISHED, 0); /* the RTU after all: once is enough */
	nothing();
	end(id);
	end(l);
}

/* Requests that are taken back, refused, or not fetched before their listener ends. */
static void
test_requests_end(void **state)
{
	struct rdma_cm_id *l = listening(), *id;
	uint32_t last;

	(void)state;
	fake_request(URN_CM_EVENT_REQUEST);
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	tell(id, URN_CM_EVENT_REJECTED, URN_CM_REJ_TIMEOUT);
	next(RDMA_CM_EVENT_REJECTED, URN_CM_REJ_TIMEOUT);
	fails(rdma_accept(id, &(struct rdma_conn_param){.qp_num = 1}), EINVAL);
	end(id);
	fake_request(URN_CM_EVENT_REQUEST);
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	fails(rdma_reject(id, NULL, 5), EINVAL);
	fails(rdma_reject(id, "x", 149), EINVAL);
	assert_int_equal(rdma_reject(id, "no", 2), 0);
	assert_int_equal(fake.rejects, 1);
	last = fake_request(URN_CM_EVENT_REQUEST);
	end(l);
	assert_int_equal(fake.destroyed, last);
	nothing();
	end(id); /* lives longer than its listener */
}

static void
test_private_data(void **state)
{
	static const uint8_t data[256];
	struct rdma_conn_param p = {.private_data = data, .private_data_len = 57, .qp_num = 1};
	struct rdma_cm_id *id = routed(), *l;

	(void)state;
	fails(rdma_connect(id, &p), EINVAL);
	p.private_data = NULL;
	p.private_data_len = 56;
	fails(rdma_connect(id, &p), EINVAL);
	p.private_data = data;
	assert_int_equal(rdma_connect(id, &p), 0);
	assert_int_equal(fake.connect.data_len, 92);
	end(id);
	l = listening();
	fake_request(URN_CM_EVENT_REQUEST);
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	p.private_data_len = 197;
	fails(rdma_accept(id, &p), EINVAL);
	p.private_data_len = 196;
	assert_int_equal(rdma_accept(id, &p), 0);
	end(id);
	end(l);
}

static void
test_addresses(void **state)
{
	struct rdma_cm_id *id = make(), *other = make();
	struct sockaddr_in any = {.sin_family = AF_INET}, loopback = any;
	struct sockaddr_in6 loopback6 = {.sin6_family = AF_INET6,
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_un {
		sa_family_t family;
	} bad = {.family = AF_UNIX};

	(void)state;
	fails(rdma_bind_addr(id, (struct sockaddr *)&bad), EAFNOSUPPORT);
	fails(rdma_bind_addr(id, (struct sockaddr *)&peer), ENODEV);
	fails(rdma_resolve_addr(id, NULL, (struct sockaddr *)&bad, 1), EAFNOSUPPORT);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	assert_ptr_equal(id->verbs, urn_cma_devs[0].ctx);
	fails(rdma_bind_addr(other, (struct sockaddr *)&own), EADDRINUSE);
	assert_int_equal(rdma_bind_addr(other, (struct sockaddr *)&any), 0);
	assert_null(other->verbs);
	assert_int_not_equal(rdma_get_src_port(other), 0);
	fails(rdma_create_qp(other, NULL, qp_attr()), EINVAL); /* no device yet */
	end(id);
	end(other);
	/* A loopback address leaves the adapter open, too: libfabric binds to one. */
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	id = make();
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&loopback), 0);
	assert_null(id->verbs);
	assert_int_equal(rdma_listen(id, 1), 0);
	end(id);
	id = make();
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&loopback6), 0);
	assert_null(id->verbs);
	end(id);
}

static void
test_channels(void **state)
{
	struct rdma_event_channel *to = rdma_create_event_channel();
	struct rdma_cm_id *id = make();
	struct rdma_cm_event *e;

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, 1), 0);
	assert_int_equal(rdma_migrate_id(id, to), 0);
	nothing();
	assert_ptr_equal(id->channel, to);
	assert_int_equal(rdma_get_cm_event(to, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_ack_cm_event(e);
	fcntl(to->fd, F_SETFL, O_NONBLOCK);
	fails(rdma_get_cm_event(to, &e), EAGAIN);
	/* Unfetched events go with their id. */
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	end(id);
	fails(rdma_get_cm_event(to, &e), EAGAIN);
	rdma_destroy_event_channel(to);
}

static void *
get_event(void *to)
{
	struct rdma_cm_event *e;

	(void)rdma_get_cm_event(to, &e);
	return to;
}

/* The thread waits: it ends by nothing but its cancellation. */
static void
waits(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* A thread that waits at a channel, or asks for an event later, waits on when the channel is
 * destroyed. */
static void
test_channel_gone(void **state)
{
	struct rdma_event_channel *to = rdma_create_event_channel();
	pthread_t before, after;

	(void)state;
	assert_non_null(to);
	assert_int_equal(pthread_create(&before, NULL, get_event, to), 0);
	usleep(50000);
	rdma_destroy_event_channel(to);
	assert_int_equal(pthread_create(&after, NULL, get_event, to), 0);
	usleep(50000);
	waits(before);
	waits(after);
}

/* Without a channel each call waits for its event. */
static void
test_sync(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REJECTED, .reason = 8};
	struct rdma_cm_id *id, *request;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, 1), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	assert_int_equal(rdma_create_qp(id, NULL, qp_attr()), 0);
	assert_non_null(id->send_cq);
	assert_non_null(id->recv_cq_channel);
	assert_int_equal(urn_cma_of(id)->sync, true);
	fails(rdma_migrate_id(id, NULL), EINVAL);
	fails(rdma_get_request(id, &request), EINVAL);
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	ev.id = urn_cma_of(id)->cm;
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	fake_event(&ev);
	fails(urn_cma_complete(urn_cma_of(id)), ECONNREFUSED);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(id);
}

static void
test_request_sync(void **state)
{
	struct rdma_addrinfo ai = {.ai_flags = RAI_PASSIVE,
				   .ai_qp_type = IBV_QPT_RC,
				   .ai_port_space = RDMA_PS_TCP,
				   .ai_src_addr = (struct sockaddr *)&own,
				   .ai_src_len = sizeof(own)};
	struct rdma_cm_id *l, *id;

	(void)state;
	assert_int_equal(rdma_create_ep(&l, &ai, NULL, qp_attr()), 0);
	fails(rdma_get_request(l, &id), EINVAL); /* does not listen */
	assert_int_equal(rdma_listen(l, 0), 0);
	fake_request(URN_CM_EVENT_REQUEST);
	assert_int_equal(rdma_get_request(l, &id), 0);
	assert_non_null(id->qp);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
}

static void
test_absent(void **state)
{
	struct ibv_qp_init_attr *a = qp_attr();
	struct rdma_cm_id *id = routed();

	(void)state;
	a->qp_type = IBV_QPT_UC;
	fails(rdma_create_qp(id, NULL, a), EOPNOTSUPP);
	a->qp_type = IBV_QPT_UD;
	fails(rdma_create_qp(id, NULL, a), EINVAL);
	fails(rdma_join_multicast(id, (struct sockaddr *)&peer, NULL),
	      EINVAL); /* not for datagrams */
	fails(rdma_join_multicast(id, NULL, NULL), EINVAL);
	fails(rdma_leave_multicast(id, (struct sockaddr *)&peer), EADDRNOTAVAIL);
	fails(rdma_set_option(id, 7, 0, a, 1), ENOSYS);
	fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, a, 3), EINVAL);
	end(id);
}

int
main(void)
{
#define t(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		t(null),	 t(null_others),  t(wrong_state),  t(client),
		t(client_fails), t(own_qp),	  t(server),	   t(notify),
		t(requests_end), t(private_data), t(addresses),	   t(channels),
		t(channel_gone), t(sync),	  t(request_sync), t(absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
