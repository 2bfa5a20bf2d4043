/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: rdmacm-calls CASE */
#include "calls.h"

#include <poll.h>

void
differs(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not %s; errno %d: %s\n", file, line, what, errno, strerror(errno));
	exit(1);
}

void
equal(long long got, long long want, const char *what, const char *file, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s: %lld instead of %lld; errno %d: %s\n", file, line, what, got,
		want, errno, strerror(errno));
	exit(1);
}

struct sockaddr_in
address(const char *text, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	EQUAL(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

struct rdma_cm_id *
next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	EQUAL(rdma_get_cm_event(channel, &e), 0);
	if (e->event != type)
		fprintf(stderr, "%s (%d) instead of %s\n", rdma_event_str(e->event), e->status,
			rdma_event_str(type));
	EQUAL(e->event, type);
	id = e->id;
	EQUAL(rdma_ack_cm_event(e), 0);
	return id;
}

int
quiet(struct rdma_event_channel *channel)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

struct rdma_cm_id *
routed(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_in from = address(CLIENT, 0), to = address(SERVER, port);
	struct rdma_cm_id *id;

	EQUAL(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	EQUAL(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000), 0);
	CHECK(next(channel, RDMA_CM_EVENT_ADDR_RESOLVED) == id);
	EQUAL(rdma_resolve_route(id, 2000), 0);
	CHECK(next(channel, RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
	return id;
}

struct rdma_cm_id *
listening(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_in at = address(SERVER, port);
	struct rdma_cm_id *id;

	EQUAL(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	EQUAL(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	EQUAL(rdma_listen(id, 4), 0);
	return id;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"addrinfo", addrinfo_case},
		{"endpoint", endpoint_case},
		{"endpoint_bad", endpoint_bad_case},
		{"queue_pair", queue_pair_case},
		{"notify", notify_case},
	};

	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		cases[i].run();
		puts("good");
		return 0;
	}
	fprintf(stderr, "usage: rdmacm-calls CASE\n");
	return 2;
}
