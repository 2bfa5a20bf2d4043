/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of datagrams. */
#include "dropin/rdmacm/rsocket/dgram.h"

#include <arpa/inet.h>
#include <string.h>

uint8_t
urn_rs_dgram_hdr_write(const struct sockaddr *a, uint16_t port, struct urn_rs_dgram_hdr *out)
{
	memset(out, 0, sizeof(*out));
	out->port = htons(port);
	if (a->sa_family == AF_INET) {
		out->version = 4;
		out->length = URN_RS_DGRAM_V4;
		memcpy(out->addr.v4, &((const struct sockaddr_in *)a)->sin_addr, 4);
	} else {
		out->version = 6;
		out->length = URN_RS_DGRAM_V6;
		memcpy(out->addr.v6.addr, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
	}
	return out->length;
}

uint32_t
urn_rs_dgram_hdr_read(const uint8_t *p, uint32_t len, struct sockaddr_storage *from)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)from;
	struct sockaddr_in *v4 = (struct sockaddr_in *)from;
	struct urn_rs_dgram_hdr h;

	memset(&h, 0, sizeof(h));
	memset(from, 0, sizeof(*from));
	if (len < URN_RS_DGRAM_V4)
		return 0;
	memcpy(&h, p, len < sizeof(h) ? len : sizeof(h));
	if (h.version == 4 && h.length == URN_RS_DGRAM_V4) {
		v4->sin_family = AF_INET;
		v4->sin_port = h.port;
		memcpy(&v4->sin_addr, h.addr.v4, 4);
		return h.length;
	}
	if (h.version != 6 || h.length != URN_RS_DGRAM_V6 || len < URN_RS_DGRAM_V6)
		return 0;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = h.port;
	memcpy(&v6->sin6_addr, h.addr.v6.addr, 16);
	return h.length;
}
