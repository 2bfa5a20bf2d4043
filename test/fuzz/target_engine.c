/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole dataplane (whole.h) on any sequence of frames, of requests and calls of its
 * program, and of a wire's faults. The input is that of the transport's target with more
 * kinds of records (record.h).
 *
 * Invariants: frames sent are valid; each request completes once, in order; only bytes
 * that may be written are written; QPs in the error state come to rest; other programs
 * are served afterwards; no packet buffer is lost.
 */
#include "l3_words.h"
#include "record.h"
#include "whole.h"

#include "common/test_link_mad.h"
#include "wire/cm.h"

#include <errno.h>
#include <string.h>

enum { BOTH = 3, SERVICE = 0x01061234 };

static struct words_past past;
static struct whole whole;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	whole_init();
	return 0;
}

static const struct fuzz_words *
now(const struct whole *w)
{
	static struct fuzz_words x;
	const uint32_t keys[NODE_KEYS] = {w->mr ? w->mr->rkey : 0,
					  w->local ? w->local->rkey : 0,
					  w->shut->rkey,
					  w->other_mr->rkey,
					  w->mw->rkey,
					  0};

	for (unsigned int i = 0; i < NODE_QPS; i++) {
		x.tp[i] = whole_tp(w, i);
		x.qp[i] = whole_urn_qp(w, i);
	}
	memcpy(x.key, keys, sizeof(keys));
	x.key_shut = w->shut->rkey;
	x.window = w->mw->rkey;
	x.self = w->self;
	x.peer = w->peer;
	x.other = w->other;
	x.loop = w->cfg.loop;
	return &x;
}

static void
arrive(struct whole *w, const uint8_t *bytes, uint32_t len, bool split)
{
	words_came(&past, bytes, len);
	whole_put(w, bytes, len, split);
}

static void
put(struct whole *w, struct fuzz_in *in,
    uint32_t (*read)(const struct fuzz_words *w, struct fuzz_in *in, uint8_t *out,
		     struct words_way *way))
{
	uint8_t bytes[FRAME_ROOM];
	struct words_way way;
	uint32_t len = read(now(w), in, bytes, &way);

	arrive(w, bytes, len, way.split);
	if (way.turn)
		whole_turn(w, 1000, BOTH);
}

static void
again(struct whole *w, uint8_t which)
{
	const uint8_t *bytes;
	uint32_t len = words_again(&past, which, &bytes);

	if (len)
		whole_put(w, bytes, len, which & 0x80);
}

/* ---- the other nodes */

static const uint8_t *
some_gid(const struct whole *w, uint8_t byte, uint8_t room[16])
{
	const uint8_t *const known[] = {w->self.gid,  w->peer.gid, us_v4,   peer_v4,
					w->a->gid[0], peer_ll,	   no_addr, w->other.gid};

	if (byte < 0xe0)
		return known[byte & 7];
	byte & 1 ? l3_nth_v4(room, byte) : l3_nth_v6(room, byte);
	return room;
}

static void
put_l3(struct whole *w, struct fuzz_in *in)
{
	uint8_t f[L3_ROOM], room[3][16], kind = fuzz_u8(in), how = fuzz_u8(in), at, with, cut;
	const uint8_t *a = some_gid(w, fuzz_u8(in), room[0]),
		      *b = some_gid(w, fuzz_u8(in), room[1]);
	const uint8_t *c = some_gid(w, fuzz_u8(in), room[2]);
	uint32_t len;

	at = fuzz_u8(in);
	with = fuzz_u8(in);
	cut = fuzz_u8(in);
	/* The peer's MAC comes first: the adapter does not accept frames from its own. */
	len = l3_words(f, kind, how, l3_words_mac((how >> 1) + 1), a, b, c);
	if (kind & 0x40)
		f[at % len] = with;
	if (kind & 0x20)
		l3_fix(f, len);
	if ((kind & 0x18) == 0x18) /* cut short */
		len -= cut % len;
	arrive(w, f, len, false);
}

/* The adapter's address of the same family. */
static const uint8_t *
own_gid(const struct whole *w, const uint8_t *gid)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, v4, sizeof(v4)) == 0 ? w->a->gid[1] : w->a->gid[0];
}

static void
put_link(struct whole *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), f[LINK_FRAME_ROOM], room[16];
	const uint8_t *src = some_gid(w, fuzz_u8(in), room);
	struct link_spec s = link_good(how & 1, how & 2 ? w->link_tid : fuzz_u16(in));
	uint16_t at;
	uint32_t len;

	s.epoch = how & 4 ? fuzz_u8(in) : s.epoch;
	s.features = how & 8 ? fuzz_u16(in) : s.features;
	at = fuzz_u16(in);
	len = link_frame(f, &s, peer_mac, src, us_mac, own_gid(w, src));
	if (how & 0x10) /* mostly behind the headers that the parser looks at */
		f[at & 0x8000 ? at % len : len - 4 - LINK_MAD + at % LINK_MAD] = (uint8_t)(at >> 4);
	if (!(how & 0x20))
		frame_seal(f, len);
	arrive(w, f, len, false);
}

static uint32_t
seen_id(const struct whole *w, uint8_t byte)
{
	return byte >= 0xf0 ? byte * 0x01010101u : w->cm[byte % WHOLE_CM_SEEN].id;
}

static void
put_cm(struct whole *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), kind = fuzz_u8(in), id = fuzz_u8(in), spoil = fuzz_u8(in),
		bytes[FRAME_ROOM];
	struct urn_cm_msg m = {
		.attr = (uint16_t)(URN_CM_REQ + kind % 11),
		.tid = how & 1 ? w->cm[id % WHOLE_CM_SEEN].tid : fuzz_u8(in),
		.local_id = 1u + (how >> 1 & 3),
		.remote_id = seen_id(w, id),
		.service_id = SERVICE + (fuzz_u8(in) & 3u),
		.qpn = how & 8 ? w->q[0].qp->qp_num : 2u + (how >> 4),
		.mtu = kind < 0xf0 ? 3 : kind & 7,
		.local_timeout = fuzz_u8(in) & 31,
		.max_retries = how >> 4,
		.about = kind >> 6 & 1,
		.service_timeout = spoil & 31,
		.reason = URN_CM_REJ_TIMEOUT,
		.qkey = NODE_QKEY,
		.responder_resources = 1,
		.initiator_depth = 1,
	};
	struct frame f = frame_of(UD_SEND, how);

	if (m.attr == URN_CM_SIDR_REP)
		m.local_id = m.remote_id;
	m.path[0].ack_timeout = m.local_timeout;
	f.dqpn = 1;
	f.sqpn = spoil == 0xff ? 2 : 1;
	f.qkey = spoil == 0xfe ? 0 : 0x80010000;
	f.len = URN_MAD_BYTES - (spoil == 0xfd);
	urn_cm_write(f.data, &m);
	for (unsigned int i = spoil >> 6 == 2 ? spoil & 3 : 0; i; i--) {
		uint8_t at = fuzz_u8(in);

		f.data[at] = fuzz_u8(in);
	}
	arrive(w, bytes,
	       frame_write(&f, how & 0x80 && kind & 0x80 ? &w->other : &w->peer, &w->self, bytes),
	       false);
}

/* ---- the program */

static void
begin_id(struct whole *w, struct urn_abi_req *req, uint8_t how, uint8_t n)
{
	struct urn_abi_cm_connect p = {
		.service_id = SERVICE + (how & 3u),
		.channel_fd = -1,
		.mtu = 3,
		.timeout = n & 31,
		.max_retries = how >> 2 & 15,
		.sgid_index = w->cfg.ipv6 ? 0 : 1,
		.data_len = n & 63,
	};

	memcpy(p.dgid, how & 0x80 ? w->other.gid : w->peer.gid, 16);
	if (req->op == URN_CTL_CM_LISTEN) {
		req->cm_listen = (struct urn_abi_cm_listen){
			.service_id = SERVICE + (how & 3u), .channel_fd = -1, .backlog = n & 7};
		return;
	}
	if (req->op == URN_CTL_CM_CONNECT)
		p.qpn = w->q[how >> 4 & 1].qp->qp_num;
	req->cm_connect = p;
}

static void
call(struct whole *w, struct fuzz_in *in)
{
	static const uint8_t ops[] = {
		URN_CTL_CM_LISTEN, URN_CTL_CM_CONNECT,	 URN_CTL_CM_RESOLVE,	URN_CTL_CM_ACCEPT,
		URN_CTL_CM_REJECT, URN_CTL_CM_ESTABLISH, URN_CTL_CM_DISCONNECT, URN_CTL_CM_DESTROY,
		URN_CTL_CM_EVENT,  URN_CTL_CM_EVENT,	 URN_CTL_CM_ACCEPT,	URN_CTL_CM_CONNECT,
	};
	uint8_t what = fuzz_u8(in), how = fuzz_u8(in), id = fuzz_u8(in), n = fuzz_u8(in);
	struct urn_abi_req req = {.op = ops[what % sizeof(ops)],
				  .handle = w->id[id % WHOLE_CM_SEEN]};
	struct urn_abi_rep rep;

	switch (req.op) {
	case URN_CTL_CM_LISTEN:
	case URN_CTL_CM_CONNECT:
	case URN_CTL_CM_RESOLVE:
		begin_id(w, &req, how, n);
		break;
	case URN_CTL_CM_ACCEPT:
		req.cm_accept =
			(struct urn_abi_cm_accept){.qpn = w->q[n & 1].qp->qp_num, .data_len = n};
		break;
	case URN_CTL_CM_REJECT:
		req.cm_reject =
			(struct urn_abi_cm_reject){.reason = n, .data_len = n, .info_len = how};
		break;
	case URN_CTL_CM_EVENT:
		req.handle = how & 1 ? req.handle : 0;
		break;
	default:
		req.cm_data.data_len = n;
	}
	w->ch->call(w->ch->ctx, &req, &rep);
	if (rep.err)
		return;
	if (req.op == URN_CTL_CM_EVENT) {
		fuzz_check(rep.cm_event.type > URN_CM_EVENT_NONE &&
			   rep.cm_event.type < URN_CM_EVENTS);
		w->id[w->ids++ % WHOLE_CM_SEEN] = rep.cm_event.id;
	} else if (rep.handle) {
		w->id[w->ids++ % WHOLE_CM_SEEN] = rep.handle;
	}
}

static void
post(struct whole *w, struct fuzz_in *in)
{
	struct node_send s;
	unsigned int qp = words_post(now(w), in, &s);

	whole_post(w, qp, &s);
}

static void
receive(struct whole *w, struct fuzz_in *in)
{
	struct words_recv r = words_recv(now(w), in);

	whole_recv(w, &r);
}

static void
state(struct whole *w, struct fuzz_in *in)
{
	unsigned int qp;
	uint8_t to = words_state(in, &qp);

	whole_turn(w, 0, BOTH);
	whole_state(w, qp, to);
}

/* Like the transport's target, for the parts that concern the wire or the program. */
static void
world(struct whole *w, uint8_t what)
{
	if (what < 0x60)
		whole_set_wire(w, w->wire & ~WHOLE_DEAF);
	else if (what < 0xa0)
		whole_set_wire(w, w->wire | WHOLE_DEAF);
	else if (what < 0xc0)
		whole_dereg(w);
	else
		whole_rereg(w);
}

static void
turns(struct whole *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), ns = fuzz_u8(in);
	unsigned int engines = how & 3 ? how & 3 : BOTH;

	for (unsigned int i = 0; i <= (how >> 2 & 15u); i++)
		whole_turn(w, 1ull << ns % 34, engines);
}

static void
one_record(struct whole *w, struct fuzz_in *in)
{
	switch (record_kind(fuzz_u8(in))) {
	case RECORD_FRAME:
		put(w, in, words_frame);
		break;
	case RECORD_RAW:
		put(w, in, words_raw);
		break;
	case RECORD_TURN:
		whole_turn(w, 1ull << fuzz_u8(in) % 34, BOTH);
		break;
	case RECORD_POST:
		post(w, in);
		break;
	case RECORD_RECV:
		receive(w, in);
		break;
	case RECORD_STATE:
		state(w, in);
		break;
	case RECORD_WORLD:
		world(w, fuzz_u8(in));
		break;
	case RECORD_AGAIN:
		again(w, fuzz_u8(in));
		break;
	case RECORD_L3:
		put_l3(w, in);
		break;
	case RECORD_LINK:
		put_link(w, in);
		break;
	case RECORD_CM:
		put_cm(w, in);
		break;
	case RECORD_CALL:
		call(w, in);
		break;
	case RECORD_WIRE:
		whole_set_wire(w, fuzz_u8(in) & 31);
		break;
	case RECORD_TURNS:
		turns(w, in);
		break;
	case RECORD_GUEST:
		whole_guest(w, fuzz_u8(in));
		break;
	case RECORD_KINDS:
		break;
	}
}

/* Work is in flight before the first record. */
static void
begin(struct whole *w, uint8_t how)
{
	struct words_recv r;
	struct node_send s;

	for (unsigned int i = 0; i < NODE_QPS; i++)
		for (unsigned int k = 0; words_begin(now(w), how, i, k, &s, &r); k++) {
			whole_post(w, i, &s);
			whole_recv(w, &r);
		}
	/* The second turn is for a program that asked for a MAC address in the first. */
	whole_turn(w, 1000, BOTH);
	whole_turn(w, 1000, BOTH);
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
	whole_open(&whole, &cfg, data[1] & 0x20);
	begin(&whole, fuzz_u8(&in));
	for (unsigned int i = 0; i < RECORD_MAX && fuzz_more(&in); i++)
		one_record(&whole, &in);
	whole_close(&whole);
	return 0;
}
