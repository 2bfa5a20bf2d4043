/* SPDX-License-Identifier: BSD-3-Clause */
#include "rail_msg.h"

#include "common/clock.h"
#include "common/msg_port.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SETS 16u          /* register sets for messages that are no chunks */
#define SPARE 64u         /* messages beside chunks that the window has room for */
#define LEAD 64u          /* bytes in a chunk's arena before its slot */
#define RETRIES 65000u    /* tries while the queue is full, the peer busy, or its address not known yet */
#define RETRY_US 1000u    /* ... and the time between two: about a minute in all */
#define READY_NS 10000000000ull /* the engine has this long for taking the queue's configuration */

/* Head of each message. Both sides have the same release, and the same byte order: they share the host. */
struct head {
	uint32_t token;   /* of the queue that it is for */
	uint32_t seq;     /* number of the message, wraps */
	uint32_t kind;    /* enum kind */
	uint32_t chunk;   /* low bits of the chunk's number; valid with CHUNK */
};

enum kind { CHUNK = 1, MESSAGE = 2 };

/* A register set that sends. */
struct out {
	struct urn_regset set;
	uint32_t seq;     /* number of the message on its way; valid with pending */
	bool pending;
};

/* A message that came, until it is delivered. */
struct held {
	const struct urn_abi_msg_entry *entry; /* in the queue; NULL: has not come */
	uint32_t at;                           /* number of the entry */
};

struct cp_rail_msg {
	struct urn_msg_port port;
	struct urn_regset queue;
	struct out *chunk;        /* sender: one a slot; owner; NULL: receiver */
	struct out msg[SETS];
	uint32_t chunks, msgs;    /* sets that are open */
	uint64_t posted, written; /* sender: chunks sent; chunks answered, in order */
	uint32_t sent;            /* number of the next message */
	uint32_t window;          /* messages from the oldest that is not answered on, a power of two */
	uint32_t token;           /* of this side's queue */
	uint32_t peer_token;
	uint8_t peer_gid[16];     /* zero until connected: no message is taken */
	/* Receiving. */
	uint32_t next;            /* number of the message that is delivered next */
	uint32_t taken;           /* entries of the queue that were looked at */
	struct held *held;        /* by number modulo window; owner */
	bool *done;               /* by entry of the ring: may be given back; owner */
	uint32_t *entry_of;       /* receiver: entry of a chunk, by slot; owner */
	uint64_t given;           /* receiver: chunks given back */
};

/* ---- making */

static uint32_t
pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static int
open_port(struct cp_rail *r, struct urn_err *err)
{
	struct urn_abi_channel *channel;

	if (r->cfg.attach != NULL)
		return urn_msg_port_attach(&r->msg->port, r->cfg.attach, r->cfg.node, false, err);
	channel = urn_dp_attach(r->node.rig.dp, 0, err);
	return channel != NULL ? urn_msg_port_open(&r->msg->port, channel, false, err) : -1;
}

static int
open_sets(struct cp_rail *r, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;
	struct urn_regset_want want = {.send_bytes = sizeof(struct head) + CP_MSG_MAX};

	for (; m->msgs < SETS; m->msgs++, r->n_free_send++)
		if (urn_regset_open(&m->msg[m->msgs].set, &m->port, &want, err) != 0)
			return -1;
	if (r->cfg.server)
		return 0;
	want.send_bytes = LEAD + r->cfg.chunk;
	for (; m->chunks < r->cfg.slots; m->chunks++) {
		if (urn_regset_open(&m->chunk[m->chunks].set, &m->port, &want, err) != 0)
			return -1;
		r->at[m->chunks] = m->chunk[m->chunks].set.out + LEAD;
	}
	return 0;
}

/* Make the receive queue, and wait until the engine takes messages for it. */
static int
open_queue(struct cp_rail *r, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;
	uint64_t end = urn_clock_ns() + READY_NS;
	struct urn_regset_want want = {
		.entries = m->window,
		.recv_size = (uint32_t)sizeof(struct head) + (r->cfg.server ? r->cfg.chunk : CP_MSG_MAX),
	};
	int ready;

	if (urn_regset_open(&m->queue, &m->port, &want, err) != 0)
		return -1;
	while ((ready = urn_regset_ready(&m->queue)) == 0 && urn_clock_ns() < end) {
		cp_rail_turn(r);
		sched_yield();
	}
	if (ready == 1)
		return 0;
	urn_err_set(err, "the dataplane does not take a receive queue of %u chunks; use a smaller --chunk or --depth.",
		    r->cfg.slots);
	return -1;
}

static int
make_arrays(struct cp_rail *r, struct urn_err *err)
{
	struct cp_rail_msg *m = calloc(1, sizeof(*m));

	r->msg = m;
	r->at = calloc(r->cfg.slots, sizeof(*r->at));
	if (m == NULL || r->at == NULL)
		goto none;
	m->window = pow2(r->cfg.slots + SPARE);
	m->held = calloc(m->window, sizeof(*m->held));
	m->done = calloc(m->window, sizeof(*m->done));
	if (r->cfg.server)
		m->entry_of = calloc(r->cfg.slots, sizeof(*m->entry_of));
	else
		m->chunk = calloc(r->cfg.slots, sizeof(*m->chunk));
	if (m->held != NULL && m->done != NULL && (r->cfg.server ? m->entry_of != NULL : m->chunk != NULL))
		return 0;
none:
	urn_err_set(err, "no memory for %u chunks; use a smaller --depth.", r->cfg.slots);
	return -1;
}

int
cp_rail_msg_open(struct cp_rail *r, struct urn_err *err)
{
	struct ibv_port_attr port;

	if (make_arrays(r, err) != 0 || open_port(r, err) != 0 || open_sets(r, err) != 0 || open_queue(r, err) != 0)
		return -1;
	if (ibv_query_port(r->node.ctx, 1, &port) != 0) {
		urn_err_set(err, "cannot ask the adapter for its port.");
		return -1;
	}
	/* Without the token a stranger's message is not taken; a weak one is no danger, for the address is checked, too. */
	if (getrandom(&r->msg->token, sizeof(r->msg->token), GRND_NONBLOCK) != sizeof(r->msg->token))
		r->msg->token = (uint32_t)urn_clock_ns();
	r->local = (struct urn_ep_addr){.qpn = CP_NO_QPN, .mtu_code = (uint32_t)port.active_mtu};
	memcpy(r->local.gid, r->msg->port.gid, 16);
	return 0;
}

void
cp_rail_msg_own(const struct cp_rail *r, struct cp_queue *own)
{
	*own = (struct cp_queue){.qid = r->msg->queue.qid, .token = r->msg->token};
}

static void
aim(struct out *o, const uint8_t gid[16], uint64_t qid)
{
	urn_regset_target(&o->set, gid, qid, RETRIES,
			  URN_MSG_RETRY_QUEUE_FULL | URN_MSG_RETRY_BUSY | URN_MSG_RETRY_NO_NODE, RETRY_US);
}

void
cp_rail_msg_connect(struct cp_rail *r, const uint8_t gid[16], const struct cp_queue *peer)
{
	struct cp_rail_msg *m = r->msg;

	memcpy(m->peer_gid, gid, sizeof(m->peer_gid));
	m->peer_token = peer->token;
	for (uint32_t i = 0; i < m->msgs; i++)
		aim(&m->msg[i], gid, peer->qid);
	for (uint32_t i = 0; i < m->chunks; i++)
		aim(&m->chunk[i], gid, peer->qid);
}

void
cp_rail_msg_close(struct cp_rail *r)
{
	struct cp_rail_msg *m = r->msg;

	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->msgs; i++)
		urn_regset_close(&m->msg[i].set);
	for (uint32_t i = 0; i < m->chunks; i++)
		urn_regset_close(&m->chunk[i].set);
	urn_regset_close(&m->queue);
	urn_msg_port_close(&m->port);
	free(m->chunk);
	free(m->held);
	free(m->done);
	free(m->entry_of);
	free(m);
	r->msg = NULL;
}

/* ---- sending */

/* True when the oldest message without an answer is so old that the peer may have no room for another number. */
static bool
is_window_full(const struct cp_rail *r)
{
	const struct cp_rail_msg *m = r->msg;
	uint32_t most = m->window - 1;

	if (m->written < m->posted && m->sent - m->chunk[m->written % r->cfg.slots].seq >= most)
		return true;
	for (uint32_t i = 0; i < SETS; i++)
		if (m->msg[i].pending && m->sent - m->msg[i].seq >= most)
			return true;
	return false;
}

/* Send what lies in a set's arena from `addr` on, where the head belongs. len: bytes behind the head */
static void
ring(struct cp_rail_msg *m, struct out *o, uint32_t addr, uint32_t len, enum kind kind, uint32_t chunk)
{
	struct head h = {.token = m->peer_token, .seq = m->sent++, .kind = kind, .chunk = chunk};

	o->seq = h.seq;
	o->pending = true;
	memcpy(o->set.out + addr, &h, sizeof(h));
	urn_regset_send(&o->set, addr, (uint32_t)sizeof(h) + len);
}

int
cp_rail_msg_write(struct cp_rail *r, uint64_t seq, uint32_t len, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;

	/* Not reached: credits bound chunks, and few messages go beside them. */
	if (is_window_full(r)) {
		urn_err_set(err, "the receiver answers newer messages and not the oldest.");
		return -1;
	}
	ring(m, &m->chunk[seq % r->cfg.slots], LEAD - (uint32_t)sizeof(struct head), len, CHUNK, (uint32_t)seq);
	m->posted++;
	return 0;
}

/* Give all entries back that are done with, the oldest first. */
static void
give(struct cp_rail_msg *m)
{
	uint32_t mask = m->window - 1;
	bool any = false;

	while (m->queue.head != m->taken && m->done[m->queue.head & mask]) {
		m->done[m->queue.head & mask] = false;
		urn_regset_next(&m->queue);
		any = true;
	}
	if (any)
		urn_regset_give(&m->queue);
}

/* The receiver is done with all chunks before `done`. */
static void
give_chunks(struct cp_rail *r, uint64_t done)
{
	struct cp_rail_msg *m = r->msg;

	for (; m->given < done; m->given++)
		m->done[m->entry_of[m->given % r->cfg.slots] & (m->window - 1)] = true;
	give(m);
}

int
cp_rail_msg_send(struct cp_rail *r, const struct cp_msg *msg, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;
	struct out *o = m->msg;

	(void)err;
	if (r->n_free_send == 0 || is_window_full(r))
		return 0;
	/* The entries are free before the peer uses them. */
	if (msg->type == CP_MSG_CREDIT && r->cfg.server)
		give_chunks(r, msg->credit.done);
	while (o->pending)
		o++;
	r->n_free_send--;
	ring(m, o, 0, (uint32_t)cp_msg_encode(msg, o->set.out + sizeof(struct head)), MESSAGE, 0);
	return 1;
}

/* ---- answers */

static int
fail(const struct cp_rail *r, uint8_t code, struct urn_err *err)
{
	const char *peer = r->cfg.server ? "sender" : "receiver";

	if (urn_dev_gone(&r->msg->port.dev) != URN_DEV_THERE)
		urn_err_set(err, "the dataplane that this side is attached to is gone.");
	else
		urn_err_set(err, "the %s no longer takes messages: %s.", peer, urn_msg_code_text(code));
	return -1;
}

/* Look at the answer of a set. returns: 1: DONE, 0: none yet, -1 with *err */
static int
look(const struct cp_rail *r, struct out *o, struct urn_err *err)
{
	uint8_t code = urn_regset_answer(&o->set);

	if (code == URN_MSG_PENDING)
		return 0;
	o->pending = false;
	return code == URN_MSG_DONE ? 1 : fail(r, code, err);
}

/* Take answers to messages that are no chunks. returns: 0, or -1 with *err */
static int
take_answers(struct cp_rail *r, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;

	for (uint32_t i = 0; i < SETS && r->n_free_send < SETS; i++) {
		int rc = m->msg[i].pending ? look(r, &m->msg[i], err) : 0;

		if (rc < 0)
			return -1;
		r->n_free_send += (uint32_t)rc;
	}
	return 0;
}

/* Take the answer to the oldest chunk. returns: 1 with *ev, 0, or -1 with *err */
static int
take_written(struct cp_rail *r, struct cp_event *ev, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;
	int rc;

	if (m->written == m->posted)
		return 0;
	rc = look(r, &m->chunk[m->written % r->cfg.slots], err);
	if (rc <= 0)
		return rc;
	memset(ev, 0, sizeof(*ev));
	ev->type = CP_EV_WRITTEN;
	ev->seq = (uint32_t)m->written++;
	return 1;
}

/* ---- receiving */

static const struct head *
head_of(const struct urn_abi_msg_entry *e)
{
	return (const struct head *)(e + 1);
}

/* True when a message is the peer's, for this queue, and none of the numbers that came. */
static bool
is_peers(const struct cp_rail *r, const struct urn_abi_msg_entry *e)
{
	static const uint8_t none[16];
	const struct cp_rail_msg *m = r->msg;
	const struct head *h = head_of(e);

	if (e->len < sizeof(*h) || memcmp(m->peer_gid, none, 16) == 0 || memcmp(e->node, m->peer_gid, 16) != 0 ||
	    h->token != m->token)
		return false;
	return h->seq - m->next < m->window && m->held[h->seq & (m->window - 1)].entry == NULL;
}

/* Look at all entries that came. */
static void
take_entries(struct cp_rail *r)
{
	struct cp_rail_msg *m = r->msg;
	uint32_t tail = urn_regset_tail(&m->queue), mask = m->window - 1;

	for (; m->taken != tail; m->taken++) {
		const struct urn_abi_msg_entry *e = urn_regset_at(&m->queue, m->taken);

		if (is_peers(r, e))
			m->held[head_of(e)->seq & mask] = (struct held){.entry = e, .at = m->taken};
		else
			m->done[m->taken & mask] = true;
	}
}

/* Deliver the next message, if it has come. returns: 1 with *ev, 0, or -1 with *err */
static int
deliver(struct cp_rail *r, struct cp_event *ev, struct urn_err *err)
{
	struct cp_rail_msg *m = r->msg;
	struct held *h = &m->held[m->next & (m->window - 1)];
	const struct urn_abi_msg_entry *e = h->entry;
	const char *why = NULL;

	if (e == NULL)
		return 0;
	h->entry = NULL;
	m->next++;
	memset(ev, 0, sizeof(*ev));
	if (head_of(e)->kind == CHUNK && r->cfg.server) {
		uint32_t slot = head_of(e)->chunk % r->cfg.slots;

		ev->type = CP_EV_CHUNK;
		ev->seq = head_of(e)->chunk;
		ev->len = e->len - (uint32_t)sizeof(struct head);
		r->at[slot] = (uint8_t *)(uintptr_t)(head_of(e) + 1);
		m->entry_of[slot] = h->at;
		return 1;
	}
	ev->type = CP_EV_MSG;
	cp_msg_decode((const uint8_t *)(head_of(e) + 1), e->len - sizeof(struct head), &ev->msg, &why);
	m->done[h->at & (m->window - 1)] = true;
	give(m);
	if (why == NULL)
		return 1;
	urn_err_set(err, "the %s sent %s.", r->cfg.server ? "sender" : "receiver", why);
	return -1;
}

int
cp_rail_msg_poll(struct cp_rail *r, struct cp_event *ev, struct urn_err *err)
{
	int rc;

	if (urn_dev_gone(&r->msg->port.dev) != URN_DEV_THERE)
		return fail(r, URN_MSG_UNREACHABLE, err);
	if (take_answers(r, err) != 0)
		return -1;
	rc = take_written(r, ev, err);
	if (rc != 0)
		return rc;
	take_entries(r);
	return deliver(r, ev, err);
}
