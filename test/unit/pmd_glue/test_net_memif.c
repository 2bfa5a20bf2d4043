/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"

#include <rte_cycles.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROUNDS 200u

struct side {
	char socket[64];
	const char *role;
	bool user; /* true: give up root first */
	uint16_t queues;
};

static char dir[] = "/tmp/urn-memif-XXXXXX";

static struct side
side_of(const char *role)
{
	struct side s = {.role = role, .queues = 2};

	snprintf(s.socket, sizeof(s.socket), "%s/sock", dir);
	return s;
}

static struct urn_port *
side_open(const struct side *s)
{
	struct urn_port_config cfg = port_cfg(s->role, "");

	snprintf(cfg.device, sizeof(cfg.device), "net_memif0,role=%s,id=0,socket=%s", s->role,
		 s->socket);
	cfg.queues = s->queues;
	return port_up(&cfg);
}

/* Sizes below and above every buffer size, and the largest. */
static uint32_t
size_of(const struct urn_port *port, uint32_t i)
{
	const uint32_t sizes[] = {60, 64, 1514, 1518, 2047, 2048, 2049, 4096, 4200};

	return i % 10 == 9 ? frame_len(port) : sizes[i % 10];
}

/* Send frames and expect them back, byte by byte. */
static void
talk(void *arg)
{
	const struct side *s = arg;
	struct urn_port *port;
	uint32_t i, len;

	if (s->user)
		become_user();
	eal_up();
	port = side_open(s);
	check(port->caps.roce_mtu == 4096 && port->caps.memory);
	check(!port->caps.link_interrupt && !port->caps.rx_interrupt);
	check(port->caps.queues == s->queues);
	link_wait(port);
	for (i = 0; i < ROUNDS; i++) {
		len = size_of(port, i);
		frame_send(port, (uint16_t)(i % s->queues), frame_make(port, len, i));
		frame_expect(port, (uint16_t)(i % s->queues), port, len, i);
	}
	/* Tell the other side to end. A frame that it has not taken goes with the port. */
	frame_send(port, 0, frame_make(port, 61, 0));
	link_down_wait(port);
	urn_port_close(port);
}

/* Send back every frame until one of 61 bytes. */
static void
echo(void *arg)
{
	const struct side *s = arg;
	uint64_t end;
	struct urn_port *port;
	struct rte_mbuf *m;
	bool over = false;
	uint16_t q = 0;

	if (s->user)
		become_user();
	eal_up();
	port = side_open(s);
	link_wait(port);
	end = rte_get_tsc_cycles() + 60 * rte_get_tsc_hz();
	while (!over) {
		check(rte_get_tsc_cycles() < end);
		q = (uint16_t)((q + 1) % s->queues);
		if (urn_port_rx(port, q, &m, 1) == 0) {
			usleep(1);
			continue;
		}
		check(m->nb_segs == 1);
		over = m->pkt_len == 61;
		if (over)
			rte_pktmbuf_free(m);
		else
			frame_send(port, q, m);
	}
	urn_port_close(port);
	/* The server removes its socket. */
	check(strcmp(s->role, "server") != 0 || access(s->socket, F_OK) != 0);
}

static void
both(struct side *a, struct side *b, unsigned int delay_us)
{
	pid_t first = child_start(echo, a), second;

	usleep(delay_us);
	second = child_start(talk, b);
	assert_int_equal(child_wait(second), 0);
	assert_int_equal(child_wait(first), 0);
}

/* doc/reference/ports.md "Ports, one by one": 4200-byte frames pass both ways between two processes. */
static void
test_two_processes(void **state)
{
	struct side a = side_of("server"), b = side_of("client");

	(void)state;
	both(&a, &b, 0);
}

/* The same without privileges. */
static void
test_two_users(void **state)
{
	struct side a = side_of("server"), b = side_of("client");

	(void)state;
	a.user = b.user = true;
	assert_int_equal(chmod(dir, 0777), 0);
	both(&a, &b, 0);
}

/* A client may come up before its server: the client's link is down until then. */
static void
test_client_first(void **state)
{
	struct side a = side_of("client"), b = side_of("server");

	(void)state;
	both(&a, &b, 500000);
}

/* ---- a peer that goes away and comes back */

static void
stay_up(void *arg)
{
	struct urn_port *port;

	eal_up();
	port = side_open(arg);
	for (;;) {
		urn_port_poll_link(port);
		usleep(1000);
	}
}

static void
peer_dies(void *arg)
{
	struct side *roles = arg;
	struct urn_port *port;
	pid_t peer;
	int i;

	peer = child_start(stay_up, &roles[1]);
	eal_up();
	port = side_open(&roles[0]);
	link_wait(port);
	kill(peer, SIGKILL);
	child_wait(peer);
	link_down_wait(port);
	/* No frame moves, and nothing breaks. */
	for (i = 0; i < 3; i++) {
		struct rte_mbuf *m = frame_make(port, 100, 1);

		if (urn_port_tx(port, 0, &m, 1) == 0)
			rte_pktmbuf_free(m);
		check(urn_port_rx(port, 0, &m, 1) == 0);
	}
	urn_port_close(port);
}

static void
test_peer_dies(void **state)
{
	struct side server[2] = {side_of("server"), side_of("client")};
	struct side client[2] = {side_of("client"), side_of("server")};

	(void)state;
	assert_int_equal(child_run(peer_dies, server), 0);
	/* The killed server leaves its socket; the next one takes it over. */
	assert_int_equal(child_run(peer_dies, client), 0);
	assert_int_equal(child_run(peer_dies, server), 0);
}

/* ---- errors */

static void
refused(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("m9", device);
	struct urn_err err = {""};

	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "port m9 (net_memif9)");
	check_says(&err, word);
}

/* Errors name the port and give advice (the PMD would silently fall back to defaults). */
static void
errors(void *arg)
{
	char device[256];
	struct urn_port_config cfg;
	struct urn_port *port;

	(void)arg;
	eal_up();
	refused("net_memif9", "socket=");
	refused("net_memif9,role=boss,socket=/tmp/x", "boss");
	refused("net_memif9,socket=/tmp/x,colour=red", "colour");
	refused("net_memif9,socket=/tmp/x,id", "\"id\"");
	refused("net_memif9,socket=x", "absolute");
	refused("net_memif9,socket=/nowhere/at/all/x", "/nowhere/at/all");
	snprintf(device, sizeof(device), "%s/file", dir);
	check(close(creat(device, 0600)) == 0);
	snprintf(device, sizeof(device), "net_memif9,role=server,socket=%s/file", dir);
	refused(device, "no socket");
	snprintf(device, sizeof(device), "%s/file", dir);
	check(unlink(device) == 0);
	refused("net_memif9,socket=/tmp/x,bsize=0", "buffer size");
	memset(device, 'x', sizeof(device));
	memcpy(device, "net_memif9,socket=/tmp/", 23);
	device[180] = '\0';
	refused(device, "longer");
	/* The same name twice. */
	snprintf(device, sizeof(device), "net_memif9,role=server,socket=%s/twice", dir);
	cfg = port_cfg("m1", device);
	port = port_up(&cfg);
	refused(device, "in use");
	/* Another port on this socket in the same process: another id is allowed. */
	snprintf(device, sizeof(device), "net_memif8,role=server,id=8,socket=%s/twice", dir);
	cfg = port_cfg("m2", device);
	urn_port_close(port_up(&cfg));
	urn_port_close(port);
}

static void
test_errors(void **state)
{
	(void)state;
	assert_int_equal(child_run(errors, NULL), 0);
}

/* A socket that another process listens on. */
static void
busy(void *arg)
{
	char device[256];

	eal_up();
	snprintf(device, sizeof(device), "net_memif9,role=server,socket=%s", (char *)arg);
	refused(device, "in use by another process");
}

static void
test_busy(void **state)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	(void)state;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/busy", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(child_run(busy, sun.sun_path), 0);
	close(fd);
	unlink(sun.sun_path);
}

static int
setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL;
}

static int
teardown(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/sock", dir);
	unlink(path);
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_processes), cmocka_unit_test(test_client_first),
		cmocka_unit_test(test_peer_dies),     cmocka_unit_test(test_errors),
		cmocka_unit_test(test_busy),	      cmocka_unit_test(test_two_users),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
