/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream machine (lib/stream) whose peer sends any messages, whose program makes any calls, and
 * whose queue pair breaks at any time (SF-1 to SF-10). Invariants:
 *
 *   - each action is about memory that the machine has: bytes leave from open sends, and at their
 *     place in the stream; reads and copies go to open receives, and a receive does not end before
 *     its reads; a write goes to memory that a message of the peer named, at its place;
 *   - byte n of a stream is a function of n, whatever way it came: receives bring bytes in order;
 *   - each message that is sent can be read, and fits the buffers of the peer;
 *   - receives and messages on their way are within their bounds;
 *   - sends and receives end once, and nothing is open when the connection is over.
 *
 * Input: four bytes for greetings and limits, then steps: a byte for the kind, and its bytes.
 */
#include "stream_check.h"

#include <endian.h>
#include <string.h>

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* ---- the program */

/* An area for a send or receive. returns: false: all are open */
static bool
new_area(struct urn_st_area *a, uint64_t bytes)
{
	for (uint32_t i = 1; i < STREAM_AREAS; i++)
		if (!stream_w.area[i].live) {
			*a = (struct urn_st_area){.id = i,
						  .addr = (uint64_t)i << STREAM_AREA_SHIFT,
						  .bytes = bytes,
						  .lkey = i,
						  .rkey = i + 1000};
			return true;
		}
	return false;
}

/* Calls may complete areas at once, so an area is open before the call. */
static void
begin(const struct urn_st_area *a, bool send)
{
	struct stream_area *area = &stream_w.area[a->id];

	*area = (struct stream_area){
		.live = true, .send = send, .bytes = a->bytes, .at = stream_w.begun};
	if (send)
		stream_fill(area->mem, a->bytes, stream_w.begun);
	stream_w.begun += send ? a->bytes : 0;
	stream_w.sends += send;
	stream_w.recvs += !send;
}

/* The call was refused: nothing of the area may have been used. */
static void
take_back(const struct urn_st_area *a, bool send)
{
	struct stream_area *area = &stream_w.area[a->id];

	fuzz_check(area->live && area->send == send);
	area->live = false;
	stream_w.begun -= send ? a->bytes : 0;
	stream_w.sends -= send;
	stream_w.recvs -= !send;
}

static uint64_t
length(struct fuzz_in *in)
{
	uint8_t n = fuzz_u8(in);

	return n < 0xf0 ? n % 0x60 * (n < 0x60 ? 1u : 10u) + (n < 0xe0) : n & 3;
}

static void
program_send(struct fuzz_in *in)
{
	struct urn_st_area a;

	if (!new_area(&a, length(in)))
		return;
	begin(&a, true);
	if (urn_st_send(&stream_w.st, &a) != 0)
		take_back(&a, true);
}

static void
program_receive(struct fuzz_in *in)
{
	struct urn_st_area a;
	uint8_t how = fuzz_u8(in);

	if (!new_area(&a, length(in)))
		return;
	begin(&a, false);
	if (urn_st_receive(&stream_w.st, &a, how < 0xf0 ? how & 3u : how) != 0)
		take_back(&a, false);
}

static void
program_transact(struct fuzz_in *in)
{
	struct urn_st_area command, answer;

	if (!new_area(&command, length(in)))
		return;
	begin(&command, true);
	if (!new_area(&answer, length(in))) {
		take_back(&command, true);
		return;
	}
	begin(&answer, false);
	if (urn_st_transact(&stream_w.st, &command, &answer) != 0) {
		take_back(&answer, false);
		take_back(&command, true);
	}
}

static void
program_sets(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	struct urn_st_threshold t = {.floor = fuzz_u8(in), .ceiling = 1 + fuzz_u8(in) * 4u};

	t.value = t.floor + fuzz_u8(in);
	t.frozen = how & 4;
	if (how & 8)
		t.value = URN_ST_INFINITE;
	if (how & 1)
		(void)urn_st_set_force(&stream_w.st, (enum urn_st_force)(how >> 4));
	else
		(void)urn_st_set_threshold(&stream_w.st, how & 2, &t);
}

static void
program_ends(uint8_t how)
{
	switch (how % 8) {
	case 0:
	case 1:
	case 2:
		urn_st_shutdown(&stream_w.st);
		break;
	case 3:
	case 4:
		urn_st_shutdown_read(&stream_w.st);
		break;
	case 5:
	case 6:
		urn_st_close(&stream_w.st);
		break;
	default:
		urn_st_abort(&stream_w.st);
	}
}

/* ---- the queue pair */

/* The oldest requests are complete. */
static void
complete(uint32_t n)
{
	for (; n && stream_w.completed != stream_w.posted && !stream_w.cut; n--) {
		const struct stream_op o = stream_w.op[stream_w.completed++ % STREAM_OPS];

		if (o.act == URN_ST_A_SEND) {
			stream_w.messages--;
			urn_st_sent(&stream_w.st);
		} else if (o.act == URN_ST_A_WRITE) {
			urn_st_written(&stream_w.st);
		} else {
			stream_w.area[o.area].reads--;
			urn_st_read(&stream_w.st);
		}
	}
}

/* Nothing is on its way any more. */
static void
fence(void)
{
	for (; stream_w.completed != stream_w.posted; stream_w.completed++)
		if (stream_w.op[stream_w.completed % STREAM_OPS].act == URN_ST_A_READ)
			stream_w.area[stream_w.op[stream_w.completed % STREAM_OPS].area].reads--;
	stream_w.messages = 0;
	urn_st_fenced(&stream_w.st);
}

static void
breaks(uint8_t how)
{
	if (stream_w.died)
		fence();
	if (stream_w.died || how > 1)
		return;
	stream_w.cut = true;
	if (how == 0)
		urn_st_down(&stream_w.st);
	else
		urn_st_refused(&stream_w.st);
}

/* ---- the peer */

/* The peer names memory: each gets a key of its own, written to the message. */
static void
name(uint8_t *to, uint64_t offset, uint64_t bytes, uint64_t addr)
{
	uint32_t key = ++stream_w.keys, wire = htobe32(key);

	memcpy(to, &wire, sizeof(wire));
	stream_w.named[key % STREAM_NAMED] = (struct stream_named){key, offset, bytes, addr};
}

/* Fields that an honest peer would put into a message of its kind now. */
static void
honest(struct urn_st_msg *m, uint8_t b)
{
	const struct urn_st *s = &stream_w.st;
	uint64_t offer_end = s->tx.offer_start + s->tx.offer_bytes;

	m->offset = s->rx.arrived;
	switch (m->kind) {
	case URN_ST_DATA:
		m->length = 1 + b % s->cfg.self.size;
		break;
	case URN_ST_SRC_AVAIL:
		m->bytes = 1 + b * 5u;
		m->flags = b & 1 ? URN_ST_F_READ : URN_ST_F_WRITE;
		m->length = b & 2 && m->bytes > 9 ? 9 : 0;
		break;
	case URN_ST_SINK_AVAIL:
		m->offset = s->tx.sent;
		m->bytes = 1 + b * 3u;
		break;
	case URN_ST_SEND_SM:
		m->offset = s->tx.sent + (s->tx.answer & URN_ST_F_READ ? b & 7 : 0);
		m->bytes = m->offset - s->tx.offer_start;
		break;
	case URN_ST_RD_COMPL:
		m->offset = offer_end;
		m->bytes = s->tx.offer_bytes;
		break;
	case URN_ST_WR_COMPL:
		m->offset = s->rx.advert_offset;
		m->bytes = b & 1 ? s->rx.advert_bytes : 1u + b / 2;
		break;
	case URN_ST_STOP:
		m->offset = s->tx.sent;
		break;
	case URN_ST_ABORT:
		m->bytes = b;
		break;
	default:
		break;
	}
}

/* Change one field of a message. */
static void
lie(struct urn_st_msg *m, uint8_t which, uint8_t b)
{
	uint64_t far = b & 0x80 ? (uint64_t)INT64_MIN >> (b & 31) : b & 0x40 ? 0u - (b & 7ull) : b;

	switch (which % 10) {
	case 0:
		m->offset += far;
		break;
	case 1:
		m->bytes += far;
		break;
	case 2:
		m->length = b;
		break;
	case 3:
		m->credit += (uint32_t)far;
		break;
	case 4:
		m->seen += (uint32_t)far;
		break;
	case 5:
		m->flags ^= b & 7;
		break;
	case 6:
		m->addr = far;
		break;
	case 7:
		m->key ^= b;
		break;
	case 8:
		m->advert.bytes = far;
		break;
	default:
		m->kind = b % 12;
	}
}

/* Give a message to the machine in one of the receives, with the bytes of the stream at its place.
 */
static void
arrive(const uint8_t *bytes, uint32_t n)
{
	struct urn_st_msg m;
	struct stream_slot *s = stream_w.slot;
	uint32_t at;

	while (s < stream_w.slot + STREAM_RECVS && s->held)
		s++;
	if (stream_w.cut || stream_w.waiting == 0 || s == stream_w.slot + STREAM_RECVS ||
	    n > stream_w.st.cfg.recv_slot)
		return; /* the queue pair gives no such message to the shell */
	stream_w.waiting--;
	memcpy(s->mem, bytes, n);
	s->bytes = n;
	s->held = true;
	if (urn_st_wire_get(s->mem, n, &m, &at) == URN_ST_V_OK) {
		stream_fill(s->mem + at, m.length, m.offset);
		if (m.kind == URN_ST_SRC_AVAIL || m.kind == URN_ST_SINK_AVAIL)
			name(s->mem + STREAM_KEY_AT, m.offset, m.bytes, m.addr);
		if (m.flags & URN_ST_F_ADVERT && m.kind == URN_ST_DATA)
			name(s->mem + STREAM_ADVERT_KEY_AT, m.advert.offset, m.advert.bytes,
			     m.advert.addr);
	}
	/* The machine is told of receives by number; it has its own copy of what it judges. */
	if (stream_w.st.state == URN_ST_S_OPEN)
		urn_st_arrived(&stream_w.st, (uint32_t)(s - stream_w.slot), s->mem, n);
	else
		s->held = false;
}

static void
peer(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), b = fuzz_u8(in), bytes[URN_ST_WIRE_MAX + 256] = {0};
	struct urn_st_msg m = {.kind = how % 11, .addr = 0, .credit = stream_w.st.tx.limit};
	bool memory = m.kind == URN_ST_SRC_AVAIL || m.kind == URN_ST_SINK_AVAIL;
	uint32_t n;

	m.seen = stream_w.st.rx.adverts;
	m.credit += how & 0x10 &&
		    stream_w.st.tx.limit - stream_w.st.tx.data < stream_w.st.cfg.peer.buffers;
	honest(&m, b);
	if (memory)
		m.addr = 0x9000u + b;
	if (m.kind == URN_ST_DATA && how & 0x20) {
		m.flags = URN_ST_F_ADVERT;
		m.advert = (struct urn_st_advert){stream_w.st.tx.sent, 1u + b, 0x7000, 0};
	}
	for (n = how >= 0xc0 ? 1 + (how & 1) : 0; n; n--) {
		uint8_t which = fuzz_u8(in);

		lie(&m, which, fuzz_u8(in));
	}
	n = urn_st_wire_put(bytes, &m);
	n += m.length <= 256 ? m.length : 0;
	for (uint32_t raw = how >= 0xf0 ? how & 3 : 0; raw; raw--) {
		uint8_t at = fuzz_u8(in) % n;

		bytes[at] = fuzz_u8(in);
	}
	arrive(bytes, how < 0xfc ? n : n - (how & 3));
}

/* ---- one input */

static bool
start(struct fuzz_in *in)
{
	uint8_t a = fuzz_u8(in), b = fuzz_u8(in), c = fuzz_u8(in), d = fuzz_u8(in);
	const struct urn_st_threshold t = {.value = 20 + c, .floor = 1 + c / 4, .ceiling = 2000};
	struct urn_st_config cfg = {
		.self = {1 + a % STREAM_BUFFERS, 1 + b % STREAM_SIZE, (uint8_t)(a >> 5)},
		.peer = {1 + c % STREAM_BUFFERS, 1 + d % STREAM_SIZE, (uint8_t)(c >> 5)},
		.pieces = stream_w.pieces,
		.send_slot = STREAM_SLOT,
		.slots = 1 + (d & 7),
		.inlined = b >> 2,
		.patience = 1 + (a & 3),
		.tx = t,
		.rx = t,
		.act = stream_act,
	};

	memset(&stream_w, 0, sizeof(stream_w));
	cfg.recv_slot = URN_ST_WIRE_MAX + cfg.self.size;
	return urn_st_init(&stream_w.st, &cfg) == 0;
}

static void
step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 15) {
	case 0:
	case 1:
		program_send(in);
		break;
	case 2:
	case 3:
		program_receive(in);
		break;
	case 4:
		if (what & 0x10)
			program_transact(in);
		else
			program_sets(in);
		break;
	case 5:
		if (what & 0x30)
			(void)urn_st_cancel(&stream_w.st, what >> 4);
		else
			program_ends(fuzz_u8(in));
		break;
	case 6:
		urn_st_tick(&stream_w.st);
		break;
	case 7:
		breaks(what >> 4);
		break;
	case 8:
	case 9:
		complete(1 + (what >> 4));
		break;
	default:
		peer(in);
	}
}

/* The connection breaks if it did not, and the program closes it: nothing is open then. */
static void
finish(void)
{
	if (!stream_w.died && !stream_w.closed)
		urn_st_down(&stream_w.st);
	if (stream_w.died)
		fence();
	urn_st_close(&stream_w.st);
	fuzz_check(stream_w.sends == 0 && stream_w.recvs == 0);
	fuzz_check(stream_w.closed || stream_w.st.state == URN_ST_S_DEAD);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	char text[200];

	if (!start(&in))
		return 0;
	for (unsigned int i = 0; i < STREAM_STEPS && fuzz_more(&in) && !stream_w.closed; i++) {
		step(&in);
		fuzz_check(stream_w.st.tx.count == stream_w.sends &&
			   stream_w.st.rx.count == stream_w.recvs);
		fuzz_check((stream_w.st.state == URN_ST_S_CLOSED) == stream_w.closed);
	}
	urn_st_error(&stream_w.st, text, sizeof(text));
	fuzz_check(memchr(text, 0, sizeof(text)));
	finish();
	return 0;
}
