/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "report/prometheus.h"
#include "counters.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct node {
	struct urn_port *port[2];
	struct urn_dp *dp;
	struct urn_prometheus *web;
};

static void
up(struct node *n)
{
	struct urn_port_config cfg[2] = {port_cfg("p0", ""), port_cfg("p1", "")};
	struct urn_adapter_config a[2] = {{.node = "n", .name = "a0", .engines = 1, .max_qp = 64},
					  {.node = "m", .name = "b0", .engines = 1, .max_qp = 64}};
	struct urn_dp_config dp = {.engines = 1, .adapters = 2, .adapter = a};
	struct urn_metrics_source src = {.port = n->port, .ports = 2};
	struct urn_err err = {""};

	eal_up();
	check_ok(urn_port_open_ring_pair(cfg, n->port, &err), &err);
	a[0].port = n->port[0];
	a[1].port = n->port[1];
	n->dp = urn_dp_create(&dp, &err);
	check_ok(n->dp == NULL, &err);
	src.dp = n->dp;
	n->web = urn_prometheus_open("127.0.0.1", 0, &src, &err);
	check_ok(n->web == NULL, &err);
	check(urn_prometheus_port(n->web) != 0);
}

static void
down(struct node *n)
{
	urn_prometheus_close(n->web);
	urn_dp_destroy(n->dp);
	urn_port_close(n->port[0]);
	urn_port_close(n->port[1]);
}

/* Connect from an address of this host. room: bytes that may wait to be read; 0: the usual */
static int
dial_from(const struct node *n, in_addr_t from, int room)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(urn_prometheus_port(n->web)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
			   own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0);
	check(!room || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) == 0);
	check(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	return fd;
}

static int
dial(const struct node *n)
{
	return dial_from(n, INADDR_LOOPBACK, 0);
}

static void
say(int fd, const void *text, size_t n)
{
	while (n > 0) {
		ssize_t done = send(fd, text, n, MSG_NOSIGNAL);

		if (done < 0)
			return; /* the server has read enough */
		text = (const char *)text + done;
		n -= (size_t)done;
	}
}

/* Read until the other side ends. */
static char *
hear(int fd)
{
	static char all[1 << 20];
	size_t n = 0;
	ssize_t got;

	while ((got = recv(fd, all + n, sizeof(all) - 1 - n, 0)) > 0)
		n += (size_t)got;
	all[n] = '\0';
	close(fd);
	return all;
}

static char *
ask(const struct node *n, const char *request)
{
	int fd = dial(n);

	say(fd, request, strlen(request));
	return hear(fd);
}

/* Every counter with its help, type and a sample of each adapter. */
static void
the_page(void *arg)
{
	struct urn_prometheus_counters c;
	char *all, line[300];
	struct node n;
	char *body;

	(void)arg;
	up(&n);
	for (unsigned int i = 0; i < 40; i++)
		(void)urn_engine_poll(urn_dp_engine(n.dp, 0));
	all = ask(&n, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	check(strncmp(all, "HTTP/1.1 200 OK\r\n", 17) == 0);
	check(strstr(all, "Content-Type: text/plain; version=0.0.4") != NULL);
	body = strstr(all, "\r\n\r\n");
	check(body != NULL);
	body += 4;
	check(strtoul(strstr(all, "Content-Length: ") + 16, NULL, 10) == strlen(body));
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		snprintf(line, sizeof(line),
			 "# HELP urnic_adapter_%s_total %s\n# TYPE urnic_adapter_%s_total counter\n"
			 "urnic_adapter_%s_total{adapter=\"a0\",node=\"n\"} ",
			 urn_counter_name(i), urn_counter_text(i), urn_counter_name(i),
			 urn_counter_name(i));
		check(strstr(body, line) != NULL);
	}
	check(strstr(body, "\nurnic_engine_turns_total{engine=\"0\"} 40\n") != NULL);
	check(strstr(body, "\nurnic_port_up{port=\"p1\"} ") != NULL);
	check(strstr(body, "\nurnic_adapter_qps{adapter=\"b0\",node=\"m\"} 0\n") != NULL);
	check(strncmp(ask(&n, "GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "HTTP/1.1 200", 12) == 0);
	do
		urn_prometheus_counters(n.web, &c);
	while (c.pages < 2);
	check(c.refused == 0 && c.cut == 0);
	down(&n);
}

static void
refusals(void *arg)
{
	static const struct {
		const char *request, *status;
	} t[] = {
		{"GET / HTTP/1.1\r\n\r\n", "404"},
		{"GET /metricsx HTTP/1.1\r\n\r\n", "404"},
		{"GET /metrics/.. HTTP/1.1\r\n\r\n", "404"},
		{"POST /metrics HTTP/1.1\r\n\r\n", "405"},
		{"HEAD /metrics HTTP/1.1\r\n\r\n", "405"},
		{"GET /metrics HTTP/2.0\r\n\r\n", "400"},
		{"GET /metrics\r\n\r\n", "400"},
		{"GET  /metrics HTTP/1.1\r\n\r\n", "400"},
		{"GET metrics HTTP/1.1\r\n\r\n", "400"},
		{"\r\n\r\n", "400"},
		{"nonsense\r\n\r\n", "400"},
	};
	struct urn_prometheus_counters c;
	char *big = malloc(100000);
	struct node n;
	char want[32];
	int fd;

	(void)arg;
	check(big != NULL);
	up(&n);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		snprintf(want, sizeof(want), "HTTP/1.1 %s ", t[i].status);
		check(strncmp(ask(&n, t[i].request), want, strlen(want)) == 0);
	}
	/* A request without end, a NUL, and many bytes behind a complete request. */
	memset(big, 'x', 100000);
	fd = dial(&n);
	say(fd, big, 5000);
	check(strncmp(hear(fd), "HTTP/1.1 431 ", 13) == 0);
	fd = dial(&n);
	say(fd, "GET /\0metrics", 13);
	check(strncmp(hear(fd), "HTTP/1.1 400 ", 13) == 0);
	fd = dial(&n);
	say(fd, "GET /metrics HTTP/1.1\r\n\r\n", 25);
	say(fd, big, 60000);
	check(strncmp(hear(fd), "HTTP/1.1 200 ", 13) == 0);
	/* The client sends nothing. */
	fd = dial(&n);
	shutdown(fd, SHUT_WR);
	check(hear(fd)[0] == '\0');
	check(strncmp(ask(&n, "GET /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 200", 12) == 0);
	do
		urn_prometheus_counters(n.web, &c);
	while (c.pages < 2);
	check(c.refused == sizeof(t) / sizeof(t[0]) + 2 && c.cut == 1);
	down(&n);
	free(big);
}

/* Slow clients are cut off, and then others have their turn. */
static void
slow(void *arg)
{
	struct urn_prometheus_counters c;
	int fd[URN_PROMETHEUS_CONNS];
	struct node n;

	(void)arg;
	up(&n);
	for (unsigned int i = 0; i < URN_PROMETHEUS_CONNS; i++) {
		fd[i] = dial(&n);
		say(fd[i], "GET /metr", 9);
	}
	/* A newcomer has a place of its own. */
	check(strncmp(ask(&n, "GET /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 200", 12) == 0);
	for (unsigned int i = 0; i < URN_PROMETHEUS_CONNS; i++)
		check(hear(fd[i])[0] == '\0');
	urn_prometheus_counters(n.web, &c);
	check(c.cut == URN_PROMETHEUS_CONNS);
	/* The server is taken down in the middle. */
	fd[0] = dial(&n);
	say(fd[0], "GET ", 4);
	down(&n);
	check(hear(fd[0])[0] == '\0');
}

/*
 * Slow clients, more than there are places, and for ever: half of them never end their request,
 * half never read the answer. Clients that come from their address and another one are answered all
 * the same.
 */
static void
crowd(void *arg)
{
	enum { SLOW = 2 * URN_PROMETHEUS_CONNS, ASKS = 20 };
	struct urn_prometheus_counters c;
	int fd[SLOW], me;
	struct node n;

	(void)arg;
	up(&n);
	for (unsigned int i = 0; i < SLOW; i++)
		fd[i] = -1;
	for (unsigned int k = 0; k < ASKS; k++) {
		for (unsigned int i = 0; i < SLOW && k % (ASKS / 2) == 0; i++) {
			if (fd[i] >= 0)
				close(fd[i]);
			fd[i] = dial_from(&n, INADDR_LOOPBACK, 1);
			say(fd[i], "GET /metrics HTTP/1.1\r\n\r\n", i % 2 ? 25 : 9);
		}
		me = dial_from(&n, INADDR_LOOPBACK + k % 2, 0);
		say(me, "GET /metrics HTTP/1.1\r\n\r\n", 25);
		check(strncmp(hear(me), "HTTP/1.1 200", 12) == 0);
	}
	for (unsigned int i = 0; i < SLOW; i++)
		close(fd[i]);
	urn_prometheus_counters(n.web, &c);
	check(c.pages >= ASKS && c.cut > 0 && c.refused == 0);
	down(&n);
}

static void
places(void *arg)
{
	struct urn_metrics_source src = {0};
	struct urn_prometheus *other;
	struct urn_err err = {""};
	struct node n;

	(void)arg;
	up(&n);
	src.dp = n.dp;
	check(urn_prometheus_open("127.0.0.1", urn_prometheus_port(n.web), &src, &err) == NULL);
	check_says(&err, "prometheus = 127.0.0.1:");
	check_says(&err, strerror(EADDRINUSE));
	check(urn_prometheus_open("192.0.2.1", 9, &src, &err) == NULL);
	check_says(&err, strerror(EADDRNOTAVAIL));
	check(urn_prometheus_open("host", 9, &src, &err) == NULL);
	check_says(&err, "prometheus = host:9");
	other = urn_prometheus_open("::1", 0, &src, &err);
	if (other == NULL) {
		check_says(&err, "prometheus = [::1]:0: can't listen there"); /* this machine has no IPv6 */
	} else {
		struct sockaddr_in6 to = {.sin6_family = AF_INET6,
					  .sin6_port = htons(urn_prometheus_port(other)),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
		int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

		check(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
		say(fd, "GET /metrics HTTP/1.1\r\n\r\n", 25);
		check(strstr(hear(fd), "\nurnic_adapter_up{") != NULL);
	}
	urn_prometheus_close(other);
	urn_prometheus_close(NULL);
	down(&n);
}

CHILD_TEST(the_page)
CHILD_TEST(refusals)
CHILD_TEST(slow)
CHILD_TEST(crowd)
CHILD_TEST(places)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_page), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_slow),	 cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
