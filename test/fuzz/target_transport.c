/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport with live QPs on any sequence of frames, requests, and faults. record.h
 * describes an input, node_check.h the invariants.
 */
#include "node.h"
#include "record.h"
#include "words.h"

#include <string.h>

static struct words_past past;
static struct node node;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	node_init();
	return 0;
}

static void
arrive(struct node *n, const uint8_t *bytes, uint32_t len, bool split)
{
	words_came(&past, bytes, len);
	node_put(n, bytes, len, split);
}

/* Values that the numbers choose from at this moment. */
static const struct fuzz_words *
now(const struct node *n)
{
	static struct fuzz_words w;

	for (unsigned int i = 0; i < NODE_QPS; i++) {
		w.tp[i] = n->tp;
		w.qp[i] = n->q[i].qp;
	}
	for (unsigned int k = 0; k < NODE_KEYS; k++)
		w.key[k] = node_key(n, k);
	w.key_shut = n->key_shut;
	w.window = n->window;
	w.self = n->self;
	w.peer = n->peer;
	w.other = n->other;
	w.loop = n->cfg.loop;
	return &w;
}

static void
put(struct node *n, struct fuzz_in *in,
    uint32_t (*read)(const struct fuzz_words *w, struct fuzz_in *in, uint8_t *out,
		     struct words_way *way))
{
	uint8_t bytes[FRAME_ROOM];
	struct words_way way;
	uint32_t len = read(now(n), in, bytes, &way);

	arrive(n, bytes, len, way.split);
	if (way.turn)
		node_turn(n, 1000);
}

/* ---- the program, and faults */

static void
post(struct node *n, struct fuzz_in *in)
{
	struct node_send s;
	unsigned int qp = words_post(now(n), in, &s);

	node_post(n, qp, &s);
}

static void
recv(struct node *n, struct fuzz_in *in)
{
	struct words_recv r = words_recv(now(n), in);

	node_recv(n, r.qp, r.addr, r.lkey, r.len, r.broken);
}

static void
state(struct node *n, struct fuzz_in *in)
{
	unsigned int qp;
	uint8_t to = words_state(in, &qp);

	node_state(n, qp, to);
}

static void
world(struct node *n, uint8_t what)
{
	if (what < 0x60)
		n->neigh = 0;
	else if (what < 0x80)
		n->neigh = -1;
	else if (what < 0x90)
		n->neigh = -2;
	else if (what < 0xa0)
		node_link(n, what & 1);
	else if (what < 0xc0)
		node_dereg(n);
	else if (n->space && what >= 0xe0 && what != 0xff)
		node_pace(n, what & 15, what & 16);
	else
		node_rereg(n);
}

static void
again(struct node *n, uint8_t which)
{
	const uint8_t *bytes;
	uint32_t len = words_again(&past, which, &bytes);

	if (len)
		node_put(n, bytes, len, which & 0x80);
}

static void
one_record(struct node *n, struct fuzz_in *in)
{
	switch (record_kind(fuzz_u8(in))) {
	case RECORD_FRAME:
		put(n, in, words_frame);
		break;
	case RECORD_RAW:
		put(n, in, words_raw);
		break;
	case RECORD_TURN: node_turn(n, 1ull << fuzz_u8(in) % 34); break;
	case RECORD_POST: post(n, in); break;
	case RECORD_RECV: recv(n, in); break;
	case RECORD_STATE: state(n, in); break;
	case RECORD_WORLD: world(n, fuzz_u8(in)); break;
	case RECORD_AGAIN: again(n, fuzz_u8(in)); break;
	default:
		break; /* a kind that this target does not have */
	}
}

/* Work is in flight in both directions before the first record. */
static void
begin(struct node *n, uint8_t how)
{
	struct words_recv r;
	struct node_send s;

	for (unsigned int i = 0; i < NODE_QPS; i++)
		for (unsigned int k = 0; words_begin(now(n), how, i, k, &s, &r); k++) {
			node_post(n, i, &s);
			node_recv(n, i, r.addr, r.lkey, r.len, false);
		}
	node_turn(n, 1000);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	struct node_config cfg;

	if (size < RECORD_HEAD)
		return 0;
	cfg = words_head(&in);
	past.n = 0;
	node_open(&node, &cfg);
	begin(&node, fuzz_u8(&in));
	for (unsigned int i = 0; i < RECORD_MAX && fuzz_more(&in); i++)
		one_record(&node, &in);
	node_close(&node);
	return 0;
}
