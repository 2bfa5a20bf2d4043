/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of connection management: in their order and by id, and their notices. */
#include "agent_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Events: by id or any, oldest first; requests by their listener. */
static void
test_events(void **state)
{
	uint32_t l = agent_listen_at(-1), id[3];
	struct urn_abi_cm_event ev;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct urn_cm_msg m = agent_a_req(i + 1);

		assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, i ? 0 : l, &ev), 0);
		assert_int_equal(ev.qpn, 1001 + i);
		assert_int_equal(ev.cookie, 6);
		id[i] = ev.id;
		assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, id[i], &ev), EAGAIN);
	}
	/* The listener goes, and with it the requests that the program has not heard of. */
	assert_int_equal(urn_cm_client_release(agent.ag, &agent.client, l, agent.now), 0);
	assert_int_equal(urn_cm_client_release(agent.ag, &agent.client, l, agent.now), ENOENT);
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, 0, &ev), EAGAIN);
	assert_int_equal(agent.client.owner.ids, 2);
	assert_int_equal(agent_poll(ROOM), 1);
	assert_int_equal(agent_message_in(agent.out[0]).attr, URN_CM_REJ);
	rte_pktmbuf_free(agent.out[0]);
}

/* A request of a listener, accepted or not: its id, fetched from the listener. */
static uint32_t
request(uint32_t l, uint32_t n)
{
	struct urn_cm_msg m = agent_a_req(n);
	struct urn_abi_cm_event ev;

	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, l, &ev), 0);
	return ev.id;
}

/* The peer takes a request back. */
static void
take_back(uint32_t id, uint32_t n)
{
	struct urn_cm_msg m = {
		.attr = URN_CM_REJ, .local_id = n, .remote_id = id, .reason = URN_CM_REJ_TIMEOUT};

	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
}

/* Each of many ids finds its own event, in any order; an id takes its own events along, and no
 * other's. */
static void
test_events_by_id(void **state)
{
	enum { MANY = 100 };
	uint32_t l = agent_listen_at(-1), id[MANY];
	struct urn_abi_cm_event ev;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		take_back(id[i] = request(l, i + 1), i + 1);
	for (uint32_t i = MANY; i-- > 0;) {
		if (i % 3 == 1)
			continue;
		if (i % 3 == 0) {
			assert_int_equal(
				urn_cm_client_release(agent.ag, &agent.client, id[i], agent.now),
				0);
		} else {
			assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, id[i], &ev),
					 0);
			assert_int_equal(ev.type, URN_CM_EVENT_REJECTED);
			assert_int_equal(ev.id, id[i]);
		}
		assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, id[i], &ev), EAGAIN);
	}
	for (uint32_t i = 1; i < MANY; i += 3) {
		assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, 0, &ev), 0);
		assert_int_equal(ev.id, id[i]);
	}
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, 0, &ev), EAGAIN);
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, 0xdead, &ev), EAGAIN);
}

/*
 * A listener goes with requests that nobody heard of, more than are taken back at a time,
 * and with their later events. A request goes that was not heard of.
 */
static void
test_unheard(void **state)
{
	enum { MANY = 2 * URN_CM_SLICE + 7 };
	uint32_t l = agent_listen_at(-1);
	struct urn_abi_cm_event ev;
	struct urn_cm_msg m;

	(void)state;
	request(l, 1);
	for (uint32_t i = 2; i < MANY; i++) {
		m = agent_a_req(i);
		assert_int_equal(agent_arrive(&m, peer_v4, us_v4),
				 i < 1 + URN_CM_BACKLOG ? URN_C_CM_RX : URN_C_DROP_CM_BACKLOG);
	}
	assert_int_equal(agent.client.owner.ids, 1 + URN_CM_BACKLOG);
	take_back(0, 2);
	assert_int_equal(urn_cm_client_release(agent.ag, &agent.client, l, agent.now), 0);
	assert_int_equal(agent.client.owner.ids, 1);
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, 0, &ev), EAGAIN);
	/* Ids are not secret: a program may name one before it fetches it. */
	l = agent_listen_at(-1);
	m = agent_a_req(1000);
	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(urn_cm_client_release(agent.ag, &agent.client,
					       TAILQ_FIRST(&agent.client.notes)->ev.id, agent.now),
			 0);
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, l, &ev), EAGAIN);
	assert_int_equal(agent.client.owner.ids, 2);
}

/* Notices: one for each event; late when the pipe is full; none to a pipe that is closed. */
static void
test_notices(void **state)
{
	struct urn_abi_event note = {.type = 0};
	struct urn_cm_msg m;
	uint32_t l, full = 0;
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	l = agent_listen_at(p[1]);
	m = agent_a_req(1);
	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(read(p[0], &note, sizeof(note)), sizeof(note));
	assert_int_equal(note.type, URN_EVENT_CM);
	assert_int_equal(note.handle, l);
	assert_int_equal(note.cookie, 6);
	while (write(p[1], &note, sizeof(note)) == (ssize_t)sizeof(note))
		full++;
	for (uint32_t i = 2; i < 4; i++) {
		m = agent_a_req(i);
		assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	assert_int_equal(agent_poll(ROOM), 0);
	while (full--)
		assert_int_equal(read(p[0], &note, sizeof(note)), sizeof(note));
	assert_int_equal(read(p[0], &note, sizeof(note)), -1);
	assert_int_equal(agent_poll(ROOM), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(p[0], &note, sizeof(note)), sizeof(note));
	assert_int_equal(read(p[0], &note, sizeof(note)), -1);
	close(p[0]);
	close(p[1]); /* EBADF: the pipe is closed */
	m = agent_a_req(4);
	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(agent_poll(ROOM), 0);
}

/*
 * A socket pair, as a client in another process has it: it may block, and is as small as
 * the client makes it. No notice blocks on it, or ends the program.
 */
static void
test_narrow_pipe(void **state)
{
	enum { REQUESTS = 64 };
	struct urn_abi_event note = {.type = 0};
	const int narrow = 1;
	struct urn_cm_msg m;
	uint32_t came = 0;
	int p[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	assert_int_equal(setsockopt(p[1], SOL_SOCKET, SO_SNDBUF, &narrow, sizeof(narrow)), 0);
	agent_listen_at(p[1]);
	alarm(60); /* a write that blocks would do so for ever */
	for (uint32_t i = 1; i <= REQUESTS; i++) {
		m = agent_a_req(i);
		m.qpn += i;
		assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	/* All notices come, as there is room. */
	for (uint32_t i = 0; i < REQUESTS; i++) {
		while (recv(p[0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
			came++;
		assert_int_equal(agent_poll(ROOM), 0);
	}
	while (recv(p[0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		came++;
	assert_int_equal(came, REQUESTS);
	close(p[0]); /* EPIPE, and no signal */
	m = agent_a_req(REQUESTS + 1);
	m.qpn += REQUESTS + 1;
	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	alarm(0);
	close(p[1]);
}

/* A pipe takes no more notices. */
static void
fill_pipe(const int pipe[2])
{
	const struct urn_abi_event note = {.type = 0};

	while (send(pipe[1], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		;
}

/* Read all notices in a pipe. returns: how many they were */
static unsigned int
drain(const int pipe[2])
{
	struct urn_abi_event note;
	unsigned int n = 0;

	while (recv(pipe[0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		n++;
	return n;
}

/* Request n comes, for a queue pair of its own. */
static void
request_arrives(uint32_t n, uint64_t service)
{
	struct urn_cm_msg m = agent_a_req(n);

	m.qpn += n;
	m.service_id = service;
	assert_int_equal(agent_arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
}

/*
 * A client that reads no notices has many late ones: a poll writes some of those, and in
 * turn, so that neither the engine nor another client waits for them.
 */
static void
test_late_by_turns(void **state)
{
	enum { REQUESTS = 100, FEW = 40 };
	struct urn_abi_cm_listen q = {.service_id = SERVICE + 1};
	struct urn_abi_event note = {.type = 0};
	struct urn_cm_client other;
	unsigned int came;
	uint32_t id;
	int p[2][2];

	(void)state;
	urn_cm_client_init(&other);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p[i]), 0);
		fill_pipe(p[i]);
	}
	agent_listen_at(p[0][1]);
	q.channel_fd = p[1][1];
	assert_int_equal(urn_cm_listen(urn_cm_agent_lock(agent.ag), &other.owner, &q, &id), 0);
	urn_cm_agent_unlock(agent.ag);
	for (uint32_t i = 1; i <= REQUESTS + 1; i++)
		request_arrives(i, i <= REQUESTS ? SERVICE : SERVICE + 1);
	for (int i = 0; i < 2; i++)
		(void)drain(p[i]);
	/* There is room now, and new notices do not overtake late ones. */
	request_arrives(REQUESTS + 3, SERVICE);
	assert_int_equal(recv(p[0][0], &note, sizeof(note), MSG_DONTWAIT), -1);
	assert_int_equal(agent_poll(ROOM), 0);
	came = drain(p[0]);
	assert_in_range(came, 1, FEW);
	assert_int_equal(recv(p[1][0], &note, sizeof(note), MSG_DONTWAIT), sizeof(note));
	assert_int_equal(note.handle, id);
	for (int i = 0; i < 8; i++)
		assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(came + drain(p[0]), REQUESTS + 1);
	assert_int_equal(recv(p[1][0], &note, sizeof(note), MSG_DONTWAIT), -1);
	/* An id goes while a notice of its event is late. */
	fill_pipe(p[1]);
	request_arrives(REQUESTS + 2, SERVICE + 1);
	urn_cm_client_gone(agent.ag, &other, agent.now);
	assert_true(TAILQ_EMPTY(&other.untold));
	assert_int_equal(agent_poll(ROOM), 2); /* both requests are refused */
	rte_pktmbuf_free_bulk(agent.out, 2);
	for (int i = 0; i < 2; i++) {
		close(p[i][0]);
		close(p[i][1]);
	}
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, agent_setup, agent_teardown)
	const struct CMUnitTest tests[] = {
		T(test_events),	 T(test_events_by_id), T(test_unheard),
		T(test_notices), T(test_narrow_pipe),  T(test_late_by_turns),
	};

	if (test_eal_pool() == NULL)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
