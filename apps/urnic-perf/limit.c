/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limit of this machine: the same bytes through the same ports, pools and
 * frame sizes, with no protocol. A takes a packet, copies a piece of a message
 * in, appends a CRC and sends; B receives, checks the CRC, copies the piece to
 * its place and counts messages. Frames come in order and none is lost, so B finds
 * the place by counting.
 *
 *   | headers (made once for every packet of the pool) | payload | CRC |
 *
 * Without the sender's copy a frame is a chain: a packet with headers and CRC,
 * and a second one whose buffer is the source itself.
 *
 * With --lat one frame goes back and forth; the latency is half the time, allocation,
 * CRC and copies included.
 */
#include "perf.h"

#include "crc/crc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_prefetch.h>

#define L2_BYTES 14u
/* Bytes that the ICRC covers before the payload: IPv4, UDP and BTH. */
#define HEADER_BYTES (20u + 8u + 12u)
#define CRC_BYTES 4u
/* Finalised CRC of the 8 leading bytes of ones (doc/reference/wire.md "ICRC"). */
#define CRC_SEED 0x2144df1cu
#define ETHERTYPE_EXPERIMENTAL 0x88b5u
/* Frames handed over at once: fewer when they are long, so that B begins early. */
#define BURST_SHORT PERF_BATCH
#define BURST_LONG 8u
#define LONG_FRAME 1024u

/* A place in a side's slots, message after message. */
struct cursor {
	uint8_t *base;     /* first slot */
	uint32_t slot;     /* slot, counted over all QPs */
	uint32_t slots;
	uint64_t off;      /* bytes of the message that are done */
	uint64_t messages; /* whole messages that are done */
};

/* State of one side of the limit, in addition to struct side. */
struct limit_side {
	struct cursor tx, rx;
	struct rte_mbuf *m[PERF_BATCH]; /* frames made */
	unsigned int made, sent;        /* frames in m; sent: taken by the port */
	struct rte_mbuf_ext_shared_info shinfo; /* for the source, when it is not copied */
	uint32_t first_extra;           /* header bytes that only a message's first frame has */
	unsigned int burst;
	bool sending, waiting;          /* --lat */
	uint64_t posted_at;             /* --lat: TSC */
	uint64_t crc_wrong;             /* frames with a wrong CRC */
} __attribute__((aligned(64)));

struct limit {
	struct side side[2];
	struct limit_side ls[2];
	struct run run;
	struct meter meter;
	struct perf_opts o;
	struct layout l;
	struct pattern p;
};

static struct limit_side *
state_of(struct side *s)
{
	return (struct limit_side *)(uintptr_t)s->scratch[0];
}

/* ---- frames */

/* Payload bytes of the frame at a cursor. */
static uint32_t
piece_of(const struct side *s, const struct cursor *c)
{
	uint64_t left = s->l->size - c->off;

	return left < s->o->mtu ? (uint32_t)left : s->o->mtu;
}

/* Bytes from the frame's start to its payload. */
static uint32_t
headers_of(const struct limit_side *ls, const struct cursor *c)
{
	return L2_BYTES + HEADER_BYTES + (c->off == 0 ? ls->first_extra : 0);
}

static uint8_t *
place_of(const struct side *s, const struct cursor *c)
{
	return c->base + c->slot * s->l->stride + c->off;
}

static void
advance(const struct side *s, struct cursor *c, uint32_t piece)
{
	c->off += piece;
	if (c->off < s->l->size)
		return;
	c->off = 0;
	c->messages++;
	if (++c->slot == c->slots)
		c->slot = 0;
}

/* Make a frame: copy the piece in and append the CRC. */
static void
make_frame(struct side *s, struct limit_side *ls, struct rte_mbuf *m)
{
	uint32_t head = headers_of(ls, &ls->tx), piece = piece_of(s, &ls->tx);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t crc = 0;

	memcpy(frame + head, place_of(s, &ls->tx), piece);
	if (!s->o->no_icrc)
		crc = urn_crc(CRC_SEED, frame + L2_BYTES, head + piece - L2_BYTES, NULL);
	memcpy(frame + head + piece, &crc, CRC_BYTES);
	m->data_len = (uint16_t)(head + piece + CRC_BYTES);
	m->pkt_len = m->data_len;
	advance(s, &ls->tx, piece);
}

/* Make a frame without the copy: `data` is the source itself, behind `m` with headers and CRC. */
static void
make_chain(struct side *s, struct limit_side *ls, struct rte_mbuf *m, struct rte_mbuf *data)
{
	uint32_t head = headers_of(ls, &ls->tx), piece = piece_of(s, &ls->tx);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *src = place_of(s, &ls->tx);
	uint32_t crc = 0;

	rte_pktmbuf_attach_extbuf(data, src, RTE_BAD_IOVA, (uint16_t)piece, &ls->shinfo);
	data->data_len = (uint16_t)piece;
	if (!s->o->no_icrc) {
		crc = urn_crc(CRC_SEED, frame + L2_BYTES, head - L2_BYTES, NULL);
		crc = urn_crc(crc, src, piece, NULL);
	}
	memcpy(frame + head, &crc, CRC_BYTES);
	m->data_len = (uint16_t)(head + CRC_BYTES);
	m->pkt_len = m->data_len + piece;
	m->nb_segs = 2;
	m->next = data;
	advance(s, &ls->tx, piece);
}

/* True when the CRC in a received frame is right. */
static bool
crc_ok(const struct rte_mbuf *m, uint32_t head, uint32_t piece)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t crc, sent;

	if (m->nb_segs == 1) {
		crc = urn_crc(CRC_SEED, frame + L2_BYTES, head + piece - L2_BYTES, NULL);
		memcpy(&sent, frame + head + piece, CRC_BYTES);
		return sent == crc;
	}
	crc = urn_crc(CRC_SEED, frame + L2_BYTES, head - L2_BYTES, NULL);
	crc = urn_crc(crc, rte_pktmbuf_mtod(m->next, const uint8_t *), piece, NULL);
	memcpy(&sent, frame + head, CRC_BYTES);
	return sent == crc;
}

/* Check the CRC and copy the piece out. returns: false, and the run failed, on a wrong frame */
static bool
take_frame(struct side *s, struct limit_side *ls, const struct rte_mbuf *m)
{
	uint32_t head = headers_of(ls, &ls->rx), piece = piece_of(s, &ls->rx);
	const uint8_t *data = rte_pktmbuf_mtod_offset(m, const uint8_t *, head);

	if (m->nb_segs > 2 || m->pkt_len < head + piece + CRC_BYTES) {
		run_fail(s->run, "limit: a frame of %u bytes in %u pieces came where one of %u was "
				 "to come",
			 m->pkt_len, m->nb_segs, head + piece + CRC_BYTES);
		return false;
	}
	if (!s->o->no_icrc)
		ls->crc_wrong += !crc_ok(m, head, piece);
	if (m->nb_segs == 2)
		data = rte_pktmbuf_mtod(m->next, const uint8_t *);
	memcpy(place_of(s, &ls->rx), data, piece);
	advance(s, &ls->rx, piece);
	return true;
}

/* ---- moving */

/* Make frames up to a burst, or up to the end of a message with --lat. */
static void
make_burst(struct side *s, struct limit_side *ls)
{
	struct rte_mbuf *data[PERF_BATCH];
	uint64_t whole = ls->tx.messages;
	unsigned int n = ls->burst;

	ls->made = ls->sent = 0;
	if (s->o->lat) {
		uint64_t frames = (s->l->size - ls->tx.off + s->o->mtu - 1) / s->o->mtu;

		n = frames < n ? (unsigned int)frames : n;
	}
	if (rte_pktmbuf_alloc_bulk(s->port->pool, ls->m, n) != 0)
		return;
	if (s->o->no_sender_copy) {
		if (rte_pktmbuf_alloc_bulk(s->port->pool, data, n) != 0) {
			rte_pktmbuf_free_bulk(ls->m, n);
			return;
		}
		rte_mbuf_ext_refcnt_update(&ls->shinfo, (int16_t)n);
		for (unsigned int i = 0; i < n; i++)
			make_chain(s, ls, ls->m[i], data[i]);
	} else {
		for (unsigned int i = 0; i < n; i++)
			make_frame(s, ls, ls->m[i]);
	}
	ls->made = n;
	if (ls->tx.messages != whole)
		ls->sending = false;
}

/* Send frames that were made; make more when all are sent. returns: frames that the port took */
static unsigned int
send_some(struct side *s, struct limit_side *ls)
{
	unsigned int n;

	if (ls->sent == ls->made)
		make_burst(s, ls);
	if (ls->sent == ls->made)
		return 0;
	n = urn_port_tx(s->port, 0, ls->m + ls->sent, (uint16_t)(ls->made - ls->sent));
	ls->sent += n;
	return n;
}

/* Receive a burst. returns: frames */
static unsigned int
receive_some(struct side *s, struct limit_side *ls)
{
	struct rte_mbuf *m[PERF_BATCH];
	unsigned int n = urn_port_rx(s->port, 0, m, PERF_BATCH);

	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (unsigned int i = 0; i < n; i++) {
		if (!take_frame(s, ls, m[i]))
			break;
	}
	if (n > 0)
		rte_pktmbuf_free_bulk(m, n);
	return n;
}

static unsigned int
stream_tx_step(struct side *s, uint64_t now)
{
	(void)now;
	return send_some(s, state_of(s));
}

static unsigned int
stream_rx_step(struct side *s, uint64_t now)
{
	struct limit_side *ls = state_of(s);
	uint64_t before = ls->rx.messages;
	unsigned int n = receive_some(s, ls);

	meter_count(s->meter, ls->rx.messages - before, now);
	side_watch(s, now);
	if (s->meter->phase == METER_OVER)
		atomic_store(&s->run->stop, true);
	return n;
}

/* A: send a message, wait for the answer. */
static unsigned int
lat_ping_step(struct side *s, uint64_t now)
{
	struct limit_side *ls = state_of(s);
	uint64_t before = ls->rx.messages;

	if (ls->sending || ls->sent < ls->made) {
		send_some(s, ls);
	} else if (ls->waiting) {
		receive_some(s, ls);
		if (ls->rx.messages != before) {
			now = rte_rdtsc();
			meter_latency(s->meter, (now - ls->posted_at) / 2);
			meter_count(s->meter, 1, now);
			ls->waiting = false;
		}
	}
	side_watch(s, now);
	if (s->meter->phase == METER_OVER) {
		atomic_store(&s->run->stop, true);
	} else if (!ls->waiting) {
		ls->waiting = ls->sending = true;
		ls->posted_at = rte_rdtsc();
		send_some(s, ls);
	}
	return 1;
}

/* B: answer each message. */
static unsigned int
lat_pong_step(struct side *s, uint64_t now)
{
	struct limit_side *ls = state_of(s);
	uint64_t before = ls->rx.messages;
	unsigned int n = 0;

	(void)now;
	if (!ls->sending && ls->sent == ls->made) {
		n = receive_some(s, ls);
		if (ls->rx.messages != before)
			ls->sending = true;
	}
	if (ls->sending || ls->sent < ls->made)
		n += send_some(s, ls);
	return n;
}

/* ---- the run */

/* Header bytes beyond the BTH in the first frame of a message of this operation. */
static uint32_t
extra_of(enum perf_op op)
{
	if (op == PERF_WRITE_BW || op == PERF_WRITE_LAT)
		return 16; /* RETH */
	if (perf_op_is_read(op))
		return 4; /* AETH of the response */
	return perf_op_is_atomic(op) ? 20 : 0; /* AtomicETH is 28, of which 8 count as payload */
}

static void
header_put(struct rte_mempool *pool, void *opaque, void *obj, unsigned int index)
{
	struct rte_mbuf *m = obj;
	uint8_t *frame = (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM;

	(void)pool;
	(void)index;
	memset(frame, 0, L2_BYTES + HEADER_BYTES + 32);
	/* MAC addresses from A to B or back, for a switch between them. */
	frame[0] = frame[6] = 0x02; /* locally administered */
	frame[5] = opaque == NULL ? 2 : 1;
	frame[11] = opaque == NULL ? 1 : 2;
	frame[12] = ETHERTYPE_EXPERIMENTAL >> 8;
	frame[13] = ETHERTYPE_EXPERIMENTAL & 0xff;
}

static void
source_free(void *addr, void *opaque)
{
	(void)addr;
	(void)opaque;
}

static uint32_t
dst_slots(const struct layout *l)
{
	return l->srq_slots ? l->srq_slots : l->qps * l->dst_slots;
}

static int
limit_side_init(struct limit *lim, struct rig *rig, unsigned int i, struct urn_err *err)
{
	struct side *s = &lim->side[i];
	struct limit_side *ls = &lim->ls[i];
	bool lat = lim->o.lat;

	*s = (struct side){.index = i,
			   .run = &lim->run,
			   .peer = &lim->side[1 - i],
			   .o = &lim->o,
			   .l = &lim->l,
			   .p = &lim->p,
			   .wire = i == 1 ? &rig->wire : NULL,
			   .port = rig->port[i]};
	s->scratch[0] = (uintptr_t)ls;
	s->meter = (i == 0) == lat ? &lim->meter : NULL;
	if (lat)
		s->step = i == 0 ? lat_ping_step : lat_pong_step;
	else
		s->step = i == 0 ? stream_tx_step : stream_rx_step;
	if (buffers_make(&s->mem, &lim->l, &lim->p, lat || i == 0, lat || i == 1, false, err))
		return -1;
	ls->tx = (struct cursor){.base = s->mem.src, .slots = lim->l.qps * lim->l.src_slots};
	ls->rx = (struct cursor){.base = s->mem.dst, .slots = dst_slots(&lim->l)};
	ls->first_extra = extra_of(lim->o.op);
	ls->burst = lim->l.size >= LONG_FRAME && lim->o.mtu >= LONG_FRAME ? BURST_LONG : BURST_SHORT;
	ls->shinfo.free_cb = source_free;
	rte_mbuf_ext_refcnt_set(&ls->shinfo, 1);
	return 0;
}

static int
limit_init(struct limit *lim, struct rig *rig, const struct perf_opts *o, struct urn_err *err)
{
	lim->o = *o;
	lim->o.lat = o->lat || perf_op_is_lat(o->op);
	layout_make(&lim->l, o);
	pattern_init(&lim->p);
	meter_init(&lim->meter, o->iters, o->iters / 10 + 1, o->duration_ns, rig->tsc_hz);
	for (unsigned int i = 0; i < 2; i++) {
		if (limit_side_init(lim, rig, i, err))
			return -1;
		rte_mempool_obj_iter(rig->port[i]->pool, header_put, i == 0 ? NULL : lim);
	}
	return 0;
}

/* Compare the messages that side s received, slot by slot, except the slot being filled. */
static int
limit_check(struct limit *lim, struct side *s)
{
	const struct limit_side *ls = state_of(s);
	struct message_id id;
	uint64_t k;

	if (ls->crc_wrong > 0) {
		run_fail(&lim->run, "limit: %llu frames arrived with a wrong CRC",
			 (unsigned long long)ls->crc_wrong);
		return -1;
	}
	for (uint32_t slot = 0; slot < ls->rx.slots && slot < ls->rx.messages; slot++) {
		if (slot == ls->rx.slot && ls->rx.off > 0)
			continue;
		k = ls->rx.messages - 1 - (ls->rx.messages - 1 - slot) % ls->rx.slots;
		k %= (uint64_t)lim->l.qps * lim->l.src_slots;
		id.qp = (uint32_t)(k / lim->l.src_slots);
		id.slot = (uint32_t)(k % lim->l.src_slots);
		id.seq = k + 1;
		id.stamp = id.slot;
		if (!check_message(s, s->mem.dst + slot * lim->l.stride, &id, UINT64_MAX))
			return -1;
	}
	return 0;
}

static int
limit_measure(struct limit *lim, struct rig *rig, struct result *res)
{
	bool check = lim->o.check != PERF_CHECK_NONE && lim->o.link != PERF_NULL;

	if (lim->o.link != PERF_NULL)
		rig_drain(rig);
	if (workers_run(&lim->side[0], &lim->side[1], &lim->run) != 0)
		return -1;
	for (unsigned int i = 0; i < 2; i++) {
		struct limit_side *ls = &lim->ls[i];

		if (check && lim->side[i].mem.dst != NULL && limit_check(lim, &lim->side[i]))
			return -1;
		rte_pktmbuf_free_bulk(ls->m + ls->sent, ls->made - ls->sent);
		res->checked += lim->side[i].checked;
	}
	if (lim->o.link != PERF_NULL)
		rig_drain(rig);
	result_from_meter(res, &lim->o, &lim->meter);
	res->moved = lim->meter.done * lim->l.size * (lim->o.lat ? 2 : 1);
	res->interrupted = lim->run.interrupted;
	return 0;
}

int
limit_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err)
{
	struct limit *lim = aligned_alloc(64, (sizeof(*lim) + 63) & ~(size_t)63);
	int rc;

	if (lim == NULL) {
		urn_err_set(err, "no memory to measure the limit with");
		return -1;
	}
	memset(lim, 0, sizeof(*lim));
	rc = limit_init(lim, rig, o, err);
	if (rc == 0) {
		rc = limit_measure(lim, rig, res);
		if (rc != 0)
			*err = lim->run.err;
	}
	buffers_free(&lim->side[0].mem);
	buffers_free(&lim->side[1].mem);
	free(lim);
	return rc;
}
