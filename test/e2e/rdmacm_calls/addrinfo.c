/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_getaddrinfo(): hints of each kind, and errors (rdma_getaddrinfo(3)). */
#include "calls.h"

#include <netdb.h>

/* Ask, and end the program unless the answer has that number. returns: the result, or NULL */
static struct rdma_addrinfo *
ask(const char *node, const char *service, const struct rdma_addrinfo *hints, int want)
{
	struct rdma_addrinfo *r = NULL;

	EQUAL(rdma_getaddrinfo(node, service, hints, &r), want);
	CHECK((r != NULL) == (want == 0));
	return r;
}

/* End the program unless an address is a node's. */
static void
is(const struct sockaddr *a, socklen_t len, const char *text, uint16_t port)
{
	const struct sockaddr_in want = address(text, port), *got = (const struct sockaddr_in *)a;

	CHECK(a != NULL);
	EQUAL(len, sizeof(want));
	EQUAL(got->sin_family, AF_INET);
	EQUAL(got->sin_port, want.sin_port);
	EQUAL(got->sin_addr.s_addr, want.sin_addr.s_addr);
}

/* The peer's side without hints, and with the flags that only make the call shorter. */
static void
active(void)
{
	struct sockaddr_in from = address(CLIENT, 0);
	struct rdma_addrinfo h = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
				  .ai_port_space = RDMA_PS_TCP,
				  .ai_src_addr = (struct sockaddr *)&from,
				  .ai_src_len = sizeof(from)};
	struct rdma_addrinfo *r = ask(SERVER, "7790", NULL, 0);

	EQUAL(r->ai_family, AF_INET);
	EQUAL(r->ai_qp_type, IBV_QPT_RC);
	EQUAL(r->ai_port_space, RDMA_PS_TCP);
	is(r->ai_dst_addr, r->ai_dst_len, SERVER, 7790);
	CHECK(!(r->ai_flags & RAI_PASSIVE));
	rdma_freeaddrinfo(r);
	r = ask(SERVER, "7790", &h, 0);
	is(r->ai_dst_addr, r->ai_dst_len, SERVER, 7790);
	is(r->ai_src_addr, r->ai_src_len, CLIENT, 0);
	EQUAL(r->ai_route_len, 0);
	rdma_freeaddrinfo(r);
	ask("localhost", "7790", &h, EAI_NONAME); /* RAI_NUMERICHOST: no names */
}

/* The listener's side: the address is the source. */
static void
passive(void)
{
	struct rdma_addrinfo h = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *r = ask(SERVER, "7790", &h, 0);

	CHECK(r->ai_flags & RAI_PASSIVE);
	is(r->ai_src_addr, r->ai_src_len, SERVER, 7790);
	CHECK(r->ai_dst_addr == NULL);
	EQUAL(r->ai_dst_len, 0);
	rdma_freeaddrinfo(r);
	h.ai_family = AF_INET;
	r = ask(NULL, "7790", &h, 0);
	is(r->ai_src_addr, r->ai_src_len, "0.0.0.0", 7790);
	rdma_freeaddrinfo(r);
}

/* The address family; rdma-core takes it as a hint without RAI_FAMILY as well. */
static void
family(void)
{
	struct rdma_addrinfo h = {.ai_flags = RAI_FAMILY, .ai_family = AF_INET6};

	for (int i = 0; i < 2; i++, h.ai_flags = 0) {
		h.ai_family = AF_INET6;
		ask(SERVER, "7790", &h, EAI_ADDRFAMILY);
		h.ai_family = AF_INET;
		rdma_freeaddrinfo(ask(SERVER, "7790", &h, 0));
		ask("fd00::1", "7790", &h, EAI_ADDRFAMILY);
	}
	h.ai_flags = RAI_FAMILY;
	h.ai_family = AF_UNIX;
	ask(SERVER, "7790", &h, EAI_FAMILY);
	h.ai_family = AF_IB;
	ask(SERVER, "7790", &h, EAI_FAMILY);
}

/* The type of queue pairs and the port space follow from each other, and may not differ. */
static void
kinds(void)
{
	static const struct {
		int type, space; /* asked for; 0: not given */
		int type_got, space_got, err;
	} k[] = {
		{0, 0, IBV_QPT_RC, RDMA_PS_TCP, 0},
		{IBV_QPT_RC, 0, IBV_QPT_RC, RDMA_PS_TCP, 0},
		{IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP, 0},
		{0, RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP, 0},
		{0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP, 0},
		{0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB, 0},
		{IBV_QPT_UD, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB, 0},
		{IBV_QPT_RC, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB, 0},
		{IBV_QPT_UD, RDMA_PS_TCP, 0, 0, EAI_SOCKTYPE},
		{IBV_QPT_RC, RDMA_PS_UDP, 0, 0, EAI_SOCKTYPE},
	};

	for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++) {
		struct rdma_addrinfo h = {.ai_qp_type = k[i].type, .ai_port_space = k[i].space};
		struct rdma_addrinfo *r = ask(SERVER, "7790", &h, k[i].err);

		if (r == NULL)
			continue;
		EQUAL(r->ai_qp_type, k[i].type_got);
		EQUAL(r->ai_port_space, k[i].space_got);
		rdma_freeaddrinfo(r);
	}
}

/* Addresses in the hints, without a name. */
static void
addresses(void)
{
	struct sockaddr_in from = address(CLIENT, 0), to = address(SERVER, 7790);
	struct rdma_addrinfo h = {.ai_port_space = RDMA_PS_TCP,
				  .ai_src_addr = (struct sockaddr *)&from,
				  .ai_src_len = sizeof(from),
				  .ai_dst_addr = (struct sockaddr *)&to,
				  .ai_dst_len = sizeof(to)};
	struct rdma_addrinfo *r = ask(NULL, NULL, &h, 0);

	is(r->ai_dst_addr, r->ai_dst_len, SERVER, 7790);
	is(r->ai_src_addr, r->ai_src_len, CLIENT, 0);
	EQUAL(r->ai_family, AF_INET);
	rdma_freeaddrinfo(r);
	h.ai_src_addr = NULL;
	h.ai_src_len = 0;
	r = ask(NULL, NULL, &h, 0); /* the own address is found */
	CHECK(r->ai_src_addr != NULL);
	rdma_freeaddrinfo(r);
	/* A length that is not the address's: nothing behind the program's memory is read. */
	h.ai_dst_len = sizeof(sa_family_t);
	FAILS(rdma_getaddrinfo(NULL, NULL, &h, &r), EINVAL);
	h.ai_dst_len = sizeof(to);
	h.ai_src_addr = (struct sockaddr *)&from;
	h.ai_src_len = 4;
	FAILS(rdma_getaddrinfo(NULL, NULL, &h, &r), EINVAL);
	FAILS(rdma_getaddrinfo(SERVER, NULL, &h, &r), EINVAL);
	memset(&h, 0, sizeof(h));
	ask(NULL, NULL, &h, EAI_NONAME);
}

void
addrinfo_case(void)
{
	struct rdma_addrinfo *r;

	active();
	passive();
	family();
	kinds();
	addresses();
	ask(SERVER, "no-such-service", NULL, EAI_SERVICE);
	FAILS(rdma_getaddrinfo(NULL, NULL, NULL, &r), EINVAL);
	FAILS(rdma_getaddrinfo(SERVER, NULL, NULL, NULL), EINVAL);
}
