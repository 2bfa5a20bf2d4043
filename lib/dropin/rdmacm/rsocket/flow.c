/* SPDX-License-Identifier: BSD-3-Clause */
#include "dropin/rdmacm/rsocket/flow.h"

#include <errno.h>
#include <string.h>

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- receiving */

void
urn_rs_rx_init(struct urn_rs_rx *rx, uint8_t *buf, uint32_t size, uint32_t *msgs, uint16_t credits)
{
	memset(rx, 0, sizeof(*rx));
	rx->buf = buf;
	rx->size = size;
	rx->given = size / 2; /* by the private data */
	rx->consumed = size / 2;
	rx->give_at = size / 2;
	rx->msgs = msgs;
	rx->slots = (uint32_t)credits + 1;
	rx->credits = credits;
	rx->told_at = credits / 2;
}

static uint32_t
next(const struct urn_rs_rx *rx, uint32_t i)
{
	return i + 1 == rx->slots ? 0 : i + 1;
}

int
urn_rs_rx_data(struct urn_rs_rx *rx, uint32_t bytes)
{
	if (bytes > rx->given || next(rx, rx->tail) == rx->head)
		return EPROTO;
	if (bytes == 0) {
		urn_rs_rx_spend(rx);
		return 0;
	}
	rx->given -= bytes;
	rx->bytes += bytes;
	rx->msgs[rx->tail] = bytes;
	rx->tail = next(rx, rx->tail);
	return 0;
}

void
urn_rs_rx_spend(struct urn_rs_rx *rx)
{
	rx->seq++;
}

/* Copy from the ring, with its wrap. returns: the offset behind the bytes */
static uint32_t
ring_read(const struct urn_rs_rx *rx, uint32_t offset, uint8_t *to, size_t len)
{
	size_t first = least(len, rx->size - offset);

	memcpy(to, rx->buf + offset, first);
	memcpy(to + first, rx->buf, len - first);
	return first < len ? (uint32_t)(len - first) : (uint32_t)((offset + len) % rx->size);
}

size_t
urn_rs_rx_read(struct urn_rs_rx *rx, void *to, size_t len, bool peek)
{
	size_t n = least(len, rx->bytes), left = n;
	uint32_t end;

	if (n == 0)
		return 0;
	end = ring_read(rx, rx->offset, to, n);
	if (peek)
		return n;
	rx->offset = end;
	rx->bytes -= (uint32_t)n;
	rx->consumed += (uint32_t)n;
	while (left != 0 && left >= rx->msgs[rx->head]) {
		left -= rx->msgs[rx->head];
		rx->head = next(rx, rx->head);
		rx->seq++;
	}
	if (left != 0)
		rx->msgs[rx->head] -= (uint32_t)left;
	return n;
}

bool
urn_rs_rx_owes(const struct urn_rs_rx *rx)
{
	return rx->consumed >= rx->size / 2 || (int16_t)(uint16_t)(rx->seq - rx->told_at) >= 0;
}

uint16_t
urn_rs_rx_tell(struct urn_rs_rx *rx, int64_t *half)
{
	rx->told_at = (uint16_t)(rx->seq + rx->credits / 2);
	*half = -1;
	if (rx->consumed >= rx->size / 2) {
		*half = rx->give_at;
		rx->consumed -= rx->size / 2;
		rx->given += rx->size / 2;
		rx->give_at = rx->give_at == 0 ? rx->size / 2 : 0;
	}
	return (uint16_t)(rx->seq + rx->credits);
}

/* ---- sending */

void
urn_rs_tx_init(struct urn_rs_tx *tx, uint8_t *buf, uint32_t size, uint32_t slots)
{
	memset(tx, 0, sizeof(*tx));
	tx->buf = buf;
	tx->size = size;
	tx->free = size;
	tx->slots = slots - URN_RS_CTRL_SLOTS;
	tx->ctrl = URN_RS_CTRL_SLOTS;
}

void
urn_rs_tx_peer(struct urn_rs_tx *tx, const struct urn_rs_conn *peer)
{
	tx->swap = peer->big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	tx->peer = peer->targets;
	tx->peer_next = 1; /* entry 0 names the buffer of our private data */
	tx->limit = peer->credits;
	tx->credits = peer->credits;
	tx->targets[0] = peer->buffer;
}

int
urn_rs_tx_limit(struct urn_rs_tx *tx, uint16_t limit)
{
	if ((uint16_t)(limit - tx->seq) > tx->credits)
		return EPROTO;
	tx->limit = limit;
	return 0;
}

bool
urn_rs_tx_target(const struct urn_rs_tx *tx, struct urn_rs_sge *to)
{
	*to = urn_rs_sge_read(&tx->targets[tx->target]);
	return to->length != 0;
}

bool
urn_rs_tx_room(const struct urn_rs_tx *tx)
{
	return tx->slots != 0 && tx->free >= URN_RS_LOW_WATER;
}

bool
urn_rs_tx_ready(const struct urn_rs_tx *tx)
{
	struct urn_rs_sge to;

	return urn_rs_tx_room(tx) && tx->seq != tx->limit && urn_rs_tx_target(tx, &to);
}

void
urn_rs_tx_use(struct urn_rs_tx *tx, const struct urn_rs_sge *to, uint32_t bytes)
{
	struct urn_rs_sge *t = &tx->targets[tx->target];

	/* Before the bytes are sent: the peer writes the entry anew when they have come. */
	t->addr = to->addr + bytes;
	__atomic_store_n(&t->length, to->length - bytes, __ATOMIC_RELEASE);
	if (to->length == bytes)
		tx->target = (tx->target + 1) % URN_RS_TARGETS;
	tx->seq++;
}

int
urn_rs_tx_copy(struct urn_rs_tx *tx, const void *from, uint32_t bytes, struct iovec parts[2])
{
	uint32_t first = (uint32_t)least(bytes, tx->size - tx->head);

	parts[0] = (struct iovec){.iov_base = tx->buf + tx->head, .iov_len = first};
	parts[1] = (struct iovec){.iov_base = tx->buf, .iov_len = bytes - first};
	memcpy(parts[0].iov_base, from, first);
	memcpy(parts[1].iov_base, (const uint8_t *)from + first, bytes - first);
	tx->head = (tx->head + bytes) % tx->size;
	tx->free -= bytes;
	return first < bytes ? 2 : 1;
}

void
urn_rs_tx_done(struct urn_rs_tx *tx, uint32_t bytes)
{
	tx->slots++;
	tx->free += bytes;
}

uint64_t
urn_rs_tx_peer_entry(struct urn_rs_tx *tx)
{
	uint64_t addr = tx->peer.addr + tx->peer_next * sizeof(struct urn_rs_sge);

	tx->peer_next = (tx->peer_next + 1) % tx->peer.length;
	return addr;
}
