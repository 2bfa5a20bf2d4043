/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/am.h"

#include "abi/am_codes.h"

#include <string.h>

#include <rte_byteorder.h>

enum { REPLY = 1 << 0, DATA = 1 << 1, KNOWN = 1 << 2 };

static const uint8_t kinds[URN_AM_KINDS] = {
#define X(name, number, reply, data) \
	[URN_AM_K_##name] = KNOWN | ((reply) ? REPLY : 0) | ((data) ? DATA : 0),
	URN_AM_KIND_LIST(X)
#undef X
};

bool
urn_am_kind_is_reply(uint8_t kind)
{
	return kind < URN_AM_KINDS && (kinds[kind] & REPLY);
}

/* True when the code fits the kind. */
static bool
code_ok(uint8_t kind, uint8_t code)
{
	return kind == URN_AM_K_ERROR ? code != URN_AM_DONE && code < URN_AM_CODES : code == 0;
}

bool
urn_am_parse(const uint8_t *data, uint32_t len, struct urn_am_msg *m)
{
	struct urn_am_hdr h;
	uint8_t what;

	if (len < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	what = h.kind < URN_AM_KINDS ? kinds[h.kind] : 0;
	m->kind = h.kind;
	m->code = h.code;
	m->len = rte_be_to_cpu_32(h.len);
	m->tag = rte_be_to_cpu_64(h.tag);
	m->addr = rte_be_to_cpu_64(h.addr);
	m->key = rte_be_to_cpu_64(h.key);
	m->data = what & DATA ? data + sizeof(h) : NULL;
	if (!what || !code_ok(h.kind, h.code) || h.flags != 0)
		return false;
	if (m->len == 0 || m->len > URN_AM_CHUNK_MAX ||
	    len - sizeof(h) != (what & DATA ? m->len : 0))
		return false;
	if (what & REPLY)
		return m->addr == 0 && m->key == 0;
	return m->addr + (m->len - 1) >= m->addr;
}

uint32_t
urn_am_build(uint8_t *at, const struct urn_am_msg *m)
{
	struct urn_am_hdr h = {
		.kind = m->kind,
		.code = m->code,
		.len = rte_cpu_to_be_32(m->len),
		.tag = rte_cpu_to_be_64(m->tag),
		.addr = rte_cpu_to_be_64(m->addr),
		.key = rte_cpu_to_be_64(m->key),
	};

	memcpy(at, &h, sizeof(h));
	return (uint32_t)sizeof(h) + (kinds[m->kind] & DATA ? m->len : 0);
}
