/* SPDX-License-Identifier: BSD-3-Clause */
/* The 52 bytes in which the two sides of ibv_rc_pingpong tell each other their queue pairs. */
#include "pp.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define GID_AT 19u /* offset of the GID in the message */

void
pp_msg_make(char msg[PP_MSG], const struct urn_ep_addr *addr)
{
	int n = snprintf(msg, PP_MSG, "%04x:%06x:%06x:", 0u, addr->qpn & 0xffffff,
			 addr->psn & 0xffffff);

	for (unsigned int i = 0; i < 16; i++)
		n += snprintf(msg + n, PP_MSG - (size_t)n, "%02x", addr->gid[i]);
}

/* Value of the hexadecimal digits [at, at + n) of the message. returns: -1 when one is no digit */
static int64_t
hex_at(const char *msg, unsigned int at, unsigned int n)
{
	int64_t v = 0;

	for (unsigned int i = at; i < at + n; i++) {
		if (!isxdigit((unsigned char)msg[i]))
			return -1;
		v = v << 4 |
		    (isdigit((unsigned char)msg[i]) ? msg[i] - '0' : (msg[i] | 0x20) - 'a' + 10);
	}
	return v;
}

int
pp_msg_parse(const char msg[PP_MSG], struct urn_ep_addr *addr, struct urn_err *err)
{
	int64_t lid = hex_at(msg, 0, 4), qpn = hex_at(msg, 5, 6), psn = hex_at(msg, 12, 6),
		byte = 0;

	memset(addr, 0, sizeof(*addr));
	for (unsigned int i = 0; i < 16 && byte >= 0; i++) {
		byte = hex_at(msg, GID_AT + 2 * i, 2);
		addr->gid[i] = (uint8_t)byte;
	}
	if (lid < 0 || qpn < 0 || psn < 0 || byte < 0 || msg[4] != ':' || msg[11] != ':' ||
	    msg[18] != ':' || msg[PP_MSG - 1] != '\0') {
		urn_err_set(err, "the peer's answer is no LID:QPN:PSN:GID of ibv_rc_pingpong; is "
				 "another program on that port?");
		return -1;
	}
	addr->qpn = (uint32_t)qpn;
	addr->psn = (uint32_t)psn;
	for (unsigned int i = 0; i < 16; i++)
		byte |= addr->gid[i];
	if (byte != 0)
		return 0;
	urn_err_set(err, "the peer has no GID; start ibv_rc_pingpong with -g, such as -g 1");
	return -1;
}
