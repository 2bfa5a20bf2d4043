/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Greetings and refusals, which travel as private data of connection management:
 *
 *   REQ, REP  0: the machine's greeting, 16 bytes  16: line of this end  18: 0, 6 bytes
 *   REJ       0: "USTR"                             4: text, up to its end or a 0
 *
 * All fields are in network byte order; bytes behind a greeting are of no meaning.
 */
#include "stream/shell/shell.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE_AT = URN_ST_WIRE_HELLO, REST_AT = LINE_AT + 2, TEXT_MAX = URN_CM_REJ_DATA };

_Static_assert((int)URN_SH_GREETING <= (int)URN_CM_REQ_DATA, "a REQ has room");
_Static_assert((int)URN_SH_GREETING <= (int)URN_CM_REP_DATA, "a REP has room");
_Static_assert((int)URN_CM_REJ_DATA + 20 < (int)URN_SH_WHY, "a text has room");

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

void
urn_sh_greet(const struct urn_stream *s, uint8_t *to)
{
	uint16_t line = htobe16(s->node->line);

	memset(to, 0, URN_SH_GREETING);
	(void)urn_st_hello_put(to, &s->self);
	memcpy(to + LINE_AT, &line, sizeof(line));
}

int
urn_sh_greeted(const uint8_t *from, uint32_t bytes, struct urn_st_hello *h, uint16_t *line,
	       char *why)
{
	static const uint8_t zeros[URN_SH_GREETING - REST_AT];
	enum urn_st_verdict v = urn_st_hello_get(from, bytes, h);

	*line = 0;
	if (v != URN_ST_V_OK) {
		snprintf(why, URN_SH_WHY, "the greeting of the peer is %s", urn_st_verdict_text(v));
		if (v == URN_ST_V_VERSION)
			snprintf(why, URN_SH_WHY,
				 "the peer speaks version %u of the stream layer, and this end "
				 "version %d",
				 from[4], URN_ST_WIRE_VERSION);
		return EPROTO;
	}
	if (bytes >= URN_SH_GREETING) {
		memcpy(line, from + LINE_AT, sizeof(*line));
		*line = be16toh(*line);
	}
	if (bytes < URN_SH_GREETING || memcmp(from + REST_AT, zeros, sizeof(zeros)) != 0 ||
	    (*line != 0 && *line != 64 && *line != 128 && *line != 256)) {
		snprintf(why, URN_SH_WHY,
			 "the greeting of the peer is of another form, or names a "
			 "cache line that is none");
		return EPROTO;
	}
	if (h->abilities & URN_ST_ON_DEMAND) {
		snprintf(why, URN_SH_WHY,
			 "the peer has buffers on demand only, which this end does "
			 "not serve");
		return EPROTO;
	}
	return 0;
}

void
urn_sh_refuse(struct urn_stream_node *n, uint32_t id, const char *why)
{
	const uint32_t magic = htobe32(URN_ST_WIRE_MAGIC);
	struct urn_abi_cm_reject r = {.reason = URN_CM_REJ_CONSUMER, .data_len = TEXT_MAX};

	memcpy(r.data, &magic, sizeof(magic));
	snprintf((char *)r.data + URN_SH_REFUSAL_HEAD, TEXT_MAX - URN_SH_REFUSAL_HEAD, "%s", why);
	(void)urn_cm_end_reject(n->cm, id, &r);
	(void)urn_cm_end_destroy(n->cm, id);
}

/* The text of a peer, which is not trusted. */
static void
take_text(const struct urn_abi_cm_event *ev, char *why)
{
	char text[TEXT_MAX - URN_SH_REFUSAL_HEAD + 1] = "";

	memcpy(text, ev->data + URN_SH_REFUSAL_HEAD, sizeof(text) - 1);
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	snprintf(why, URN_SH_WHY, "the peer refused: %s", text);
}

int
urn_sh_refusal(const struct urn_abi_cm_event *ev, char *why)
{
	const uint32_t magic = htobe32(URN_ST_WIRE_MAGIC);

	if (ev->type != URN_CM_EVENT_REJECTED) {
		snprintf(why, URN_SH_WHY, "the peer does not answer, all repeats included");
		return ETIMEDOUT;
	}
	if (ev->reason == URN_CM_REJ_INVALID_SERVICE_ID) {
		snprintf(why, URN_SH_WHY, "nobody listens for streams at this port of the peer");
		return ECONNREFUSED;
	}
	if (ev->reason == URN_CM_REJ_CONSUMER && memcmp(ev->data, &magic, sizeof(magic)) == 0) {
		take_text(ev, why);
		return EPROTO;
	}
	if (ev->reason == URN_CM_REJ_TIMEOUT) {
		snprintf(why, URN_SH_WHY, "the peer got no answer");
		return ETIMEDOUT;
	}
	snprintf(why, URN_SH_WHY, "the peer refused the connection, or is gone (reason %u)",
		 ev->reason);
	return ECONNREFUSED;
}

/* True when an address serves for a peer of the same family. */
static bool
is_family(const uint8_t gid[16], const uint8_t peer[16])
{
	bool v4 = memcmp(gid, v4_prefix, sizeof(v4_prefix)) == 0;

	if (memcmp(peer, v4_prefix, sizeof(v4_prefix)) == 0)
		return v4;
	/* A link-local peer has a link-local address here. */
	return !v4 && (gid[0] == 0xfe) == (peer[0] == 0xfe) && gid[0] != 0;
}

int
urn_sh_find_gid(struct urn_stream_node *n, const uint8_t gid[16], bool own)
{
	union ibv_gid one;

	for (int i = 0; i < n->port.gid_tbl_len && i <= UINT8_MAX; i++) {
		if (ibv_query_gid(n->ctx, URN_SH_PORT, i, &one) != 0)
			continue;
		if (own ? memcmp(one.raw, gid, 16) == 0 : is_family(one.raw, gid))
			return i;
	}
	return -1;
}
