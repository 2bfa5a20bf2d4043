/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management on QP1: frames in and out, messages that wait for a MAC address,
 * addresses that nobody else may use, events and their notices.
 */
#include "cm/cm_agent.h"

#include "abi/control.h"
#include "common/test_eal.h"
#include "net/l3.h"
#include "l3_frames.h"
#include "wire/pkt.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MS 1000000ull
#define START 100000000000ull

enum { SERVICE = 0x01061234, ROOM = 8 };

static struct urn_neigh *nb;
static struct urn_cm_agent *ag;
static struct urn_cm_client client;
static struct urn_counters c;
static struct rte_mbuf *out[ROOM];
static uint64_t now;

static int
setup(void **state)
{
	struct urn_cm_agent_config cfg = {.icrc = true, .ca_guid = 7, .seed = 7, .max_ids = 4096};
	uint8_t own[2][16];

	(void)state;
	memcpy(own[0], us_v4, 16);
	memcpy(own[1], us_ll, 16);
	nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 2);
	if (!nb || urn_neigh_add_static(nb, peer_v4, peer_mac))
		return -1;
	cfg.neigh = nb;
	memcpy(cfg.mac, us_mac, 6);
	ag = urn_cm_agent_create(&cfg);
	urn_cm_client_init(&client);
	memset(&c, 0, sizeof(c));
	now = START;
	return ag ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	urn_cm_client_gone(ag, &client, now);
	urn_cm_agent_destroy(ag);
	urn_cm_agent_destroy(NULL);
	urn_neigh_destroy(nb);
	return rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS ? 0 : -1;
}

/* Poll; frames are parsed on the way. returns how many frames there were */
static unsigned int
poll(unsigned int max)
{
	unsigned int n = urn_cm_agent_poll(ag, now, test_eal_pool(), out, max, &c);

	assert_true(n <= max);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(urn_wire_parse(out[i]), URN_FRAME_ROCE);
		assert_true(urn_wire_icrc_ok(out[i]));
		assert_int_equal(urn_pkt(out[i])->dqpn, 1);
	}
	return n;
}

static struct urn_cm_msg
message_in(struct rte_mbuf *m)
{
	struct urn_cm_msg msg;
	const uint8_t *mad;
	uint32_t sqpn;

	assert_int_equal(urn_mad_find(m, &mad, &sqpn), 0);
	assert_int_equal(urn_cm_read(mad, sqpn, &msg), URN_C_CM_RX);
	return msg;
}

static uint32_t
connect_to(const uint8_t *gid, int channel)
{
	struct urn_abi_cm_connect p = {.service_id = SERVICE, .cookie = 5, .channel_fd = channel,
				       .qpn = 77, .mtu = 3, .timeout = 20, .max_retries = 1};
	uint32_t id = 0;

	memcpy(p.dgid, gid, 16);
	assert_int_equal(urn_cm_connect(urn_cm_agent_lock(ag), &client.owner, &p,
					urn_neigh_source(nb, gid), now, &id), 0);
	urn_cm_agent_unlock(ag);
	return id;
}

static uint32_t
listen_at(int channel)
{
	struct urn_abi_cm_listen p = {.service_id = SERVICE, .cookie = 6, .channel_fd = channel};
	uint32_t id = 0;

	assert_int_equal(urn_cm_listen(urn_cm_agent_lock(ag), &client.owner, &p, &id), 0);
	urn_cm_agent_unlock(ag);
	return id;
}

/* A message comes from one address to another. returns the counter that counted it */
static enum urn_counter
arrive(const struct urn_cm_msg *msg, const uint8_t *from, const uint8_t *to)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct urn_path path = {.sport = 0xc001, .ttl = 64};
	uint8_t mad[URN_MAD_BYTES];
	const uint8_t *found;
	enum urn_counter r;
	uint32_t sqpn;

	assert_non_null(m);
	memcpy(path.smac, peer_mac, 6);
	memcpy(path.dmac, us_mac, 6);
	memcpy(path.sgid, from, 16);
	memcpy(path.dgid, to, 16);
	urn_cm_write(mad, msg);
	assert_int_equal(urn_mad_frame(m, &path, mad, 0, 1), 0);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	assert_int_equal(urn_mad_find(m, &found, &sqpn), 0);
	urn_cm_agent_input(ag, m, found, sqpn, now);
	r = (enum urn_counter)urn_pkt(m)->drop;
	rte_pktmbuf_free(m);
	return r;
}

static struct urn_cm_msg
a_req(uint32_t id)
{
	return (struct urn_cm_msg){.attr = URN_CM_REQ, .local_id = id, .service_id = SERVICE,
				   .qpn = 1000 + id, .mtu = 3};
}

/* A request goes out at the next poll, to the peer's MAC address. */
static void
test_send(void **state)
{
	uint32_t id = connect_to(peer_v4, -1);
	const struct urn_eth *eth;
	struct urn_cm_msg m;

	(void)state;
	assert_true(urn_cm_agent_pending(ag));
	assert_int_equal(poll(ROOM), 1);
	assert_false(urn_cm_agent_pending(ag));
	m = message_in(out[0]);
	assert_int_equal(m.attr, URN_CM_REQ);
	assert_int_equal(m.local_id, id);
	eth = rte_pktmbuf_mtod(out[0], const struct urn_eth *);
	assert_memory_equal(eth->dst, peer_mac, 6);
	assert_memory_equal(eth->src, us_mac, 6);
	rte_pktmbuf_free(out[0]);
	assert_int_equal(poll(ROOM), 0);
	assert_int_equal(c.v[URN_C_CM_TX], 1);
}

/* A poll sends as many messages as there is room for; the rest stays. Without buffers none is lost for good. */
static void
test_room(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		connect_to(peer_v4, -1);
	for (int i = 0; i < 3; i++) {
		unsigned int n = poll(2);

		assert_int_equal(n, i < 2 ? 2 : 1);
		rte_pktmbuf_free_bulk(out, n);
	}
	/* More messages than may wait at once: they are sent a little later, and none counts as a repeat. */
	for (int i = 0; i < URN_CM_OUT + 50; i++)
		connect_to(peer_v4, -1);
	for (unsigned int got = 0; got < URN_CM_OUT + 50;) {
		unsigned int n;

		now += MS;
		n = poll(ROOM);
		rte_pktmbuf_free_bulk(out, n);
		got += n;
		assert_true(now < START + 2000 * MS);
	}
	assert_int_equal(c.v[URN_C_CM_RETRANSMITS], 0);
}

/* A request waits until the MAC address is known; an answer to a stranger does not. */
static void
test_no_mac(void **state)
{
	struct urn_cm_msg m = a_req(1);
	struct rte_mbuf *arp[4];
	uint8_t unknown[16];

	(void)state;
	memcpy(unknown, peer_v4, 16);
	unknown[15] = 77;
	connect_to(unknown, -1);
	for (int i = 0; i < 5; i++, now += MS)
		assert_int_equal(poll(ROOM), 0);
	assert_int_equal(urn_neigh_poll(nb, now, test_eal_pool(), arp, 4), 1);
	rte_pktmbuf_free(arp[0]);
	assert_int_equal(urn_neigh_add_static(nb, unknown, other_mac), 0);
	now += MS;
	assert_int_equal(poll(ROOM), 1);
	assert_memory_equal(rte_pktmbuf_mtod(out[0], const struct urn_eth *)->dst, other_mac, 6);
	rte_pktmbuf_free(out[0]);
	/* Nobody ever answers for this MAC address. */
	unknown[15] = 78;
	connect_to(unknown, -1);
	assert_int_equal(poll(ROOM), 0);
	now += URN_CM_MAC_NS;
	assert_int_equal(poll(ROOM), 0);
	assert_int_equal(c.v[URN_C_DROP_CM_TX], 1);
	/* A refusal. */
	unknown[15] = 79;
	assert_int_equal(arrive(&m, unknown, us_v4), URN_C_CM_NO_SERVICE);
	assert_int_equal(poll(ROOM), 0);
	assert_int_equal(c.v[URN_C_DROP_CM_TX], 2);
}

/* From or to addresses that a message can't come from or go to. */
static void
test_addresses(void **state)
{
	struct urn_cm_msg m = a_req(1);

	(void)state;
	assert_int_equal(arrive(&m, us_v4, us_v4), URN_C_DROP_ADDRESS);
	assert_int_equal(arrive(&m, peer_v4, peer_v4), URN_C_DROP_ADDRESS);
	assert_int_equal(arrive(&m, no_addr, us_ll), URN_C_DROP_ADDRESS);
	assert_false(urn_cm_agent_pending(ag));
}

/* To the adapter itself: no frame. */
static void
test_loop(void **state)
{
	struct urn_abi_cm_event ev;
	uint32_t l = listen_at(-1);

	(void)state;
	connect_to(us_v4, -1);
	assert_int_equal(poll(ROOM), 0);
	assert_int_equal(c.v[URN_C_LOOPBACK], 1);
	assert_int_equal(c.v[URN_C_CM_RX], 1);
	assert_int_equal(urn_cm_client_event(ag, &client, l, &ev), 0);
	assert_int_equal(ev.type, URN_CM_EVENT_REQUEST);
	assert_memory_equal(ev.gid, us_v4, 16);
}

/* Events: by id or any, oldest first; requests by their listener. */
static void
test_events(void **state)
{
	uint32_t l = listen_at(-1), id[3];
	struct urn_abi_cm_event ev;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct urn_cm_msg m = a_req(i + 1);

		assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(urn_cm_client_event(ag, &client, i ? 0 : l, &ev), 0);
		assert_int_equal(ev.qpn, 1001 + i);
		assert_int_equal(ev.cookie, 6);
		id[i] = ev.id;
		assert_int_equal(urn_cm_client_event(ag, &client, id[i], &ev), EAGAIN);
	}
	/* The listener goes, and with it the requests that the program has not heard of. */
	assert_int_equal(urn_cm_client_release(ag, &client, l, now), 0);
	assert_int_equal(urn_cm_client_release(ag, &client, l, now), ENOENT);
	assert_int_equal(urn_cm_client_event(ag, &client, 0, &ev), EAGAIN);
	assert_int_equal(client.owner.ids, 2);
	assert_int_equal(poll(ROOM), 1);
	assert_int_equal(message_in(out[0]).attr, URN_CM_REJ);
	rte_pktmbuf_free(out[0]);
}

/* A request of a listener, accepted or not: its id, fetched from the listener. */
static uint32_t
request(uint32_t l, uint32_t n)
{
	struct urn_cm_msg m = a_req(n);
	struct urn_abi_cm_event ev;

	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(urn_cm_client_event(ag, &client, l, &ev), 0);
	return ev.id;
}

/* The peer takes a request back. */
static void
take_back(uint32_t id, uint32_t n)
{
	struct urn_cm_msg m = {.attr = URN_CM_REJ, .local_id = n, .remote_id = id,
			       .reason = URN_CM_REJ_TIMEOUT};

	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
}

/* Each of many ids finds its own event, in any order; an id takes its own events along, and no other's. */
static void
test_events_by_id(void **state)
{
	enum { MANY = 100 };
	uint32_t l = listen_at(-1), id[MANY];
	struct urn_abi_cm_event ev;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		take_back(id[i] = request(l, i + 1), i + 1);
	for (uint32_t i = MANY; i-- > 0;) {
		if (i % 3 == 1)
			continue;
		if (i % 3 == 0) {
			assert_int_equal(urn_cm_client_release(ag, &client, id[i], now), 0);
		} else {
			assert_int_equal(urn_cm_client_event(ag, &client, id[i], &ev), 0);
			assert_int_equal(ev.type, URN_CM_EVENT_REJECTED);
			assert_int_equal(ev.id, id[i]);
		}
		assert_int_equal(urn_cm_client_event(ag, &client, id[i], &ev), EAGAIN);
	}
	for (uint32_t i = 1; i < MANY; i += 3) {
		assert_int_equal(urn_cm_client_event(ag, &client, 0, &ev), 0);
		assert_int_equal(ev.id, id[i]);
	}
	assert_int_equal(urn_cm_client_event(ag, &client, 0, &ev), EAGAIN);
	assert_int_equal(urn_cm_client_event(ag, &client, 0xdead, &ev), EAGAIN);
}

/*
 * A listener goes with requests that nobody heard of, more than are taken back at a time,
 * and with their later events. A request goes that was not heard of.
 */
static void
test_unheard(void **state)
{
	enum { MANY = 2 * URN_CM_SLICE + 7 };
	uint32_t l = listen_at(-1);
	struct urn_abi_cm_event ev;
	struct urn_cm_msg m;

	(void)state;
	request(l, 1);
	for (uint32_t i = 2; i < MANY; i++) {
		m = a_req(i);
		assert_int_equal(arrive(&m, peer_v4, us_v4),
				 i < 1 + URN_CM_BACKLOG ? URN_C_CM_RX : URN_C_DROP_CM_BACKLOG);
	}
	assert_int_equal(client.owner.ids, 1 + URN_CM_BACKLOG);
	take_back(0, 2);
	assert_int_equal(urn_cm_client_release(ag, &client, l, now), 0);
	assert_int_equal(client.owner.ids, 1);
	assert_int_equal(urn_cm_client_event(ag, &client, 0, &ev), EAGAIN);
	/* Ids are not secret: a program may name one before it fetches it. */
	l = listen_at(-1);
	m = a_req(1000);
	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(urn_cm_client_release(ag, &client, TAILQ_FIRST(&client.notes)->ev.id, now), 0);
	assert_int_equal(urn_cm_client_event(ag, &client, l, &ev), EAGAIN);
	assert_int_equal(client.owner.ids, 2);
}

/* One message of an id waits for a MAC address: the latest. */
static void
test_one_waits(void **state)
{
	uint8_t unknown[16];
	uint32_t id;

	(void)state;
	memcpy(unknown, peer_v4, 16);
	unknown[15] = 77;
	id = connect_to(unknown, -1);
	connect_to(unknown, -1);
	for (unsigned int i = 0; i < 3; i++, now += 1075 * MS)
		assert_int_equal(poll(ROOM), 0);
	urn_cm_client_release(ag, &client, id, now);
	assert_int_equal(urn_neigh_add_static(nb, unknown, other_mac), 0);
	now += MS;
	assert_int_equal(poll(ROOM), 2);
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_cm_msg m = message_in(out[i]);

		assert_int_equal(m.attr, m.local_id == id ? URN_CM_REJ : URN_CM_REQ);
		rte_pktmbuf_free(out[i]);
	}
	/* When that message has been sent the next does not wait. */
	now += 5300 * MS;
	assert_int_equal(poll(ROOM), 1);
	assert_int_equal(message_in(out[0]).attr, URN_CM_REQ);
	rte_pktmbuf_free(out[0]);
}

/* A message that waits for a MAC address does not change when another connection gets the id's place. */
static void
test_place_anew(void **state)
{
	struct urn_cm_agent_config cfg = {.neigh = nb, .icrc = true, .seed = 7, .max_ids = 1};
	uint8_t first[16], second[16], src[16], dst[16];
	uint32_t id;

	(void)state;
	urn_cm_client_gone(ag, &client, now);
	urn_cm_agent_destroy(ag);
	memcpy(cfg.mac, us_mac, 6);
	ag = urn_cm_agent_create(&cfg);
	assert_non_null(ag);
	urn_cm_client_init(&client);
	memcpy(first, peer_v4, 16);
	memcpy(second, peer_v4, 16);
	first[15] = 77;
	second[15] = 78;
	id = connect_to(first, -1);
	assert_int_equal(poll(ROOM), 0);
	urn_cm_client_release(ag, &client, id, now);
	connect_to(second, -1);
	assert_int_equal(poll(ROOM), 0);
	assert_int_equal(urn_neigh_add_static(nb, first, other_mac), 0);
	assert_int_equal(urn_neigh_add_static(nb, second, other_mac), 0);
	now += MS;
	assert_int_equal(poll(ROOM), 2);
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_cm_msg m = message_in(out[i]);

		urn_l3_addresses(out[i], src, dst);
		assert_memory_equal(dst, m.local_id == id ? first : second, 16);
		assert_int_equal(m.attr, m.local_id == id ? URN_CM_REJ : URN_CM_REQ);
		rte_pktmbuf_free(out[i]);
	}
}

/* Messages that wait for a MAC address that never comes leave room for others. */
static void
test_many_wait(void **state)
{
	uint8_t unknown[16];
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 0; i < URN_CM_OUT; i++) {
		memcpy(unknown, peer_v4, 16);
		unknown[14] = (uint8_t)(i >> 6);
		unknown[15] = (uint8_t)(128 + i % 64);
		connect_to(unknown, -1);
		assert_int_equal(poll(ROOM), 0);
	}
	assert_int_equal(c.v[URN_C_DROP_CM_TX], URN_CM_OUT - URN_CM_NO_MAC);
	for (unsigned int i = 0; i < URN_CM_OUT - URN_CM_NO_MAC; i++)
		connect_to(peer_v4, -1);
	for (unsigned int got = 1; got; n += got) {
		got = poll(ROOM);
		rte_pktmbuf_free_bulk(out, got);
	}
	assert_int_equal(n, URN_CM_OUT - URN_CM_NO_MAC);
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
	l = listen_at(p[1]);
	m = a_req(1);
	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(read(p[0], &note, sizeof(note)), sizeof(note));
	assert_int_equal(note.type, URN_EVENT_CM);
	assert_int_equal(note.handle, l);
	assert_int_equal(note.cookie, 6);
	while (write(p[1], &note, sizeof(note)) == (ssize_t)sizeof(note))
		full++;
	for (uint32_t i = 2; i < 4; i++) {
		m = a_req(i);
		assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	assert_int_equal(poll(ROOM), 0);
	while (full--)
		assert_int_equal(read(p[0], &note, sizeof(note)), sizeof(note));
	assert_int_equal(read(p[0], &note, sizeof(note)), -1);
	assert_int_equal(poll(ROOM), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(p[0], &note, sizeof(note)), sizeof(note));
	assert_int_equal(read(p[0], &note, sizeof(note)), -1);
	close(p[0]);
	close(p[1]); /* EBADF: the pipe is closed */
	m = a_req(4);
	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(poll(ROOM), 0);
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
	listen_at(p[1]);
	alarm(60); /* a write that blocks would do so for ever */
	for (uint32_t i = 1; i <= REQUESTS; i++) {
		m = a_req(i);
		m.qpn += i;
		assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	/* All notices come, as there is room. */
	for (uint32_t i = 0; i < REQUESTS; i++) {
		while (recv(p[0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
			came++;
		assert_int_equal(poll(ROOM), 0);
	}
	while (recv(p[0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		came++;
	assert_int_equal(came, REQUESTS);
	close(p[0]); /* EPIPE, and no signal */
	m = a_req(REQUESTS + 1);
	m.qpn += REQUESTS + 1;
	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	alarm(0);
	close(p[1]);
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
	unsigned int came = 0;
	struct urn_cm_msg m;
	uint32_t id;
	int p[2][2];

	(void)state;
	urn_cm_client_init(&other);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p[i]), 0);
		while (send(p[i][1], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
			;
	}
	listen_at(p[0][1]);
	q.channel_fd = p[1][1];
	assert_int_equal(urn_cm_listen(urn_cm_agent_lock(ag), &other.owner, &q, &id), 0);
	urn_cm_agent_unlock(ag);
	for (uint32_t i = 1; i <= REQUESTS + 1; i++) {
		m = a_req(i);
		m.qpn += i;
		m.service_id = i <= REQUESTS ? SERVICE : SERVICE + 1;
		assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	}
	for (int i = 0; i < 2; i++)
		while (recv(p[i][0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
			;
	/* There is room now, and new notices do not overtake late ones. */
	m = a_req(REQUESTS + 3);
	m.qpn += REQUESTS + 3;
	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	assert_int_equal(recv(p[0][0], &note, sizeof(note), MSG_DONTWAIT), -1);
	assert_int_equal(poll(ROOM), 0);
	while (recv(p[0][0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		came++;
	assert_in_range(came, 1, FEW);
	assert_int_equal(recv(p[1][0], &note, sizeof(note), MSG_DONTWAIT), sizeof(note));
	assert_int_equal(note.handle, id);
	for (int i = 0; i < 8; i++)
		assert_int_equal(poll(ROOM), 0);
	while (recv(p[0][0], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		came++;
	assert_int_equal(came, REQUESTS + 1);
	assert_int_equal(recv(p[1][0], &note, sizeof(note), MSG_DONTWAIT), -1);
	/* An id goes while a notice of its event is late. */
	while (send(p[1][1], &note, sizeof(note), MSG_DONTWAIT) == (ssize_t)sizeof(note))
		;
	m = a_req(REQUESTS + 2);
	m.qpn += REQUESTS + 2;
	m.service_id = SERVICE + 1;
	assert_int_equal(arrive(&m, peer_v4, us_v4), URN_C_CM_RX);
	urn_cm_client_gone(ag, &other, now);
	assert_true(TAILQ_EMPTY(&other.untold));
	assert_int_equal(poll(ROOM), 2); /* both requests are refused */
	rte_pktmbuf_free_bulk(out, 2);
	for (int i = 0; i < 2; i++) {
		close(p[i][0]);
		close(p[i][1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_send),	     T(test_room),	    T(test_no_mac),	  T(test_addresses),
		T(test_loop),	     T(test_events),	    T(test_events_by_id), T(test_unheard),
		T(test_one_waits),   T(test_place_anew),    T(test_many_wait),	  T(test_notices),
		T(test_narrow_pipe), T(test_late_by_turns),
	};

	if (test_eal_pool() == NULL)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
