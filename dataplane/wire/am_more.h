/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies to several writes in one message, in wire format (doc/reference/wire.md). Such a message
 * begins with the header of a WRITE_REPLY (wire/am.h), whose `flags` are the number of further
 * writes; their tags follow. All the writes had the length in the header.
 */
#ifndef URN_WIRE_AM_MORE_H
#define URN_WIRE_AM_MORE_H

#include "wire/am.h"

#include <string.h>

#include <rte_byteorder.h>

enum {
	URN_AM_MORE_MAX = 15, /* further writes that a message answers */
	URN_AM_MORE_BYTES = (int)sizeof(struct urn_am_hdr) + 8 * URN_AM_MORE_MAX,
};

/* True when a message may be such a reply; data, len: the message, any bytes. */
static inline bool
urn_am_is_more(const uint8_t *data, uint32_t len)
{
	return len > sizeof(struct urn_am_hdr) && data[0] == URN_AM_K_WRITE_REPLY;
}

/* Read such a message. data, len: any bytes. returns: number of further writes, and *m is set as to
 * the reply to the first; 0: malformed */
static inline unsigned int
urn_am_parse_more(const uint8_t *data, uint32_t len, struct urn_am_msg *m)
{
	struct urn_am_hdr h;
	unsigned int n;

	if (!urn_am_is_more(data, len))
		return 0;
	memcpy(&h, data, sizeof(h));
	n = rte_be_to_cpu_16(h.flags);
	*m = (struct urn_am_msg){
		.kind = h.kind,
		.len = rte_be_to_cpu_32(h.len),
		.tag = rte_be_to_cpu_64(h.tag),
	};
	if (n > URN_AM_MORE_MAX || len != sizeof(h) + 8 * n || h.code || h.addr || h.key ||
	    !m->len || m->len > URN_AM_CHUNK_MAX)
		return 0;
	return n;
}

/* Tag of a further write. data: a message that was read; i: below their number */
static inline uint64_t
urn_am_more_tag(const uint8_t *data, unsigned int i)
{
	uint64_t tag;

	memcpy(&tag, data + sizeof(struct urn_am_hdr) + (size_t)8 * i, sizeof(tag));
	return rte_be_to_cpu_64(tag);
}

/* Let a message answer one more write. data: a reply to a write and to n more, with room for
 * another tag behind */
static inline void
urn_am_put_more(uint8_t *data, unsigned int n, uint64_t tag)
{
	struct urn_am_hdr *h = (struct urn_am_hdr *)data;

	h->flags = rte_cpu_to_be_16((uint16_t)(n + 1));
	tag = rte_cpu_to_be_64(tag);
	memcpy(data + sizeof(*h) + (size_t)8 * n, &tag, sizeof(tag));
}

#endif
