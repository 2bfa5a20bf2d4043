/* SPDX-License-Identifier: BSD-3-Clause */
/* The session header, written and read (FO-7). */
#include "session/header.h"

#include <endian.h>

void
urn_sess_header_put(struct urn_sess_wire *to, const struct urn_sess_header *h)
{
	*to = (struct urn_sess_wire){
		.id = htobe64(h->id),
		.acked = htobe64(h->acked),
		.conn = htobe32(h->conn),
		.length = htobe32(h->length),
		.word = htobe32(h->word),
		.epoch = htobe16(h->epoch),
		.flags = h->flags | URN_SESS_H_VALID,
		.op = h->op,
	};
}

bool
urn_sess_header_get(const struct urn_sess_wire *from, uint32_t room, struct urn_sess_header *h)
{
	const uint8_t both = URN_SESS_H_IMM | URN_SESS_H_INV;

	*h = (struct urn_sess_header){
		.id = be64toh(from->id),
		.acked = be64toh(from->acked),
		.conn = be32toh(from->conn),
		.length = be32toh(from->length),
		.word = be32toh(from->word),
		.epoch = be16toh(from->epoch),
		.flags = from->flags,
		.op = from->op,
	};
	return (h->flags & URN_SESS_H_VALID) && h->id && h->length <= room &&
	       (h->flags & both) != both;
}
