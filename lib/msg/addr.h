/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of datagram sockets: a node's GID and a UDP port, and the names of queues that ports
 * become. */
#ifndef URN_MSG_ADDR_H
#define URN_MSG_ADDR_H

#include "abi/msg.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Ports that sockets without a wish get: [first, end), those of Linux. */
enum { URN_PORT_FIRST = 32768, URN_PORT_END = 61000 };

/*
 * A socket sends by several register sets, each of which has a name of its own: set k of the socket
 * at port P has the name URN_MSG_NAME_UDP + k * 65536 + P. Messages to the port go to set 0.
 */
enum { URN_PORT_OUTLETS = 4 };

struct urn_addr {
	uint8_t gid[16]; /* an IPv4 address is ::ffff:a.b.c.d; all zero, or ::ffff:0.0.0.0: any */
	uint16_t port;	 /* 0: none */
};

/*
 * Read an address of a program's. sa: NULL or any bytes; returns: 0; EINVAL: too short;
 * EAFNOSUPPORT: neither IPv4 nor IPv6
 */
int urn_addr_get(struct urn_addr *a, const struct sockaddr *sa, socklen_t len);
/*
 * Write an address for a program, cut to *len bytes.
 *
 * family: AF_INET6, or AF_INET, which shows an IPv6 address as 0.0.0.0
 * len: in: room; out: the length of the whole address
 */
void urn_addr_put(const struct urn_addr *a, int family, struct sockaddr *sa, socklen_t *len);
/* True when the address names no node in particular. */
bool urn_addr_is_any(const uint8_t gid[16]);
/* True when the address is IPv4. */
bool urn_addr_is_v4(const uint8_t gid[16]);

static inline uint32_t
urn_addr_name(uint16_t port, uint32_t outlet)
{
	return URN_MSG_NAME_UDP + (outlet << 16) + port;
}

/* The port of a queue that sent a message; 0: the queue is no socket's. */
static inline uint16_t
urn_addr_port(uint64_t qid)
{
	uint32_t name = (uint32_t)qid;

	return urn_msg_qid_is_named(qid) && name >= URN_MSG_NAME_UDP &&
			       (name - URN_MSG_NAME_UDP) >> 16 < URN_PORT_OUTLETS
		       ? (uint16_t)name
		       : 0;
}

#endif
