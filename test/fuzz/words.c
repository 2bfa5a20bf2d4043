/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

/* ---- values that the numbers choose from */

enum { OFF_VALUES = 64 };

/* The PSN that is due, or one near it, or any. */
static uint32_t
near_psn(uint32_t due, uint8_t byte)
{
	int8_t d = (int8_t)byte;

	if (d >= -OFF_VALUES && d < OFF_VALUES)
		return (due + (uint32_t)d) & 0xffffff;
	return (due + (uint32_t)d * 0x20421u) & 0xffffff;
}

/* The PSN after the last in a ring of kept packets (ring.h); without one, `none`. */
static uint32_t
behind(struct rte_mbuf *last, uint32_t none)
{
	return last ? urn_pkt(last)->psn + 1 : none;
}

/* other: another PSN that makes sense, such as the one after all that is kept. */
static uint32_t
due_psn(const struct fuzz_words *x, unsigned int i, uint8_t op, bool other)
{
	const struct urn_qp *qp = x->qp[i];
	const struct urn_work *w = qp->tx.fetch;

	if (op == SACK)
		return (other ? qp->tx.cur.psn : qp->tx.una) - 1;
	if (op == ACK)
		return other ? qp->tx.una : qp->tx.next - 1;
	if (op < READ_FIRST || op > ATOMIC_ACK)
		return other ? behind(qp->rx.ooo, qp->rx.epsn - 1) : qp->rx.epsn;
	if (w && !other)
		return w->first_psn + w->accepted;
	return qp->tx.repair ? behind(x->tp[i]->repair[qp->tx.repair].kept, qp->tx.una) : qp->tx.una;
}

/* READ or atomic whose response has this PSN. */
static const struct urn_work *
fetch_at(const struct urn_qp *qp, uint32_t psn)
{
	for (const struct urn_work *w = qp->tx.head; w; w = w->next)
		if (urn_work_is_fetch(w) && ((psn - w->first_psn) & 0xffffff) < w->npsn)
			return w;
	return NULL;
}

/* The opcode of the response with this PSN; part: the response begins with it. */
static uint8_t
response_op(const struct urn_qp *qp, uint8_t op, uint32_t psn, bool part)
{
	const struct urn_work *w = fetch_at(qp, psn);
	bool first, last;

	if (!w)
		return op;
	if (w->opcode != URN_WR_RDMA_READ)
		return ATOMIC_ACK;
	first = part || psn == w->first_psn;
	last = ((psn - w->first_psn) & 0xffffff) + 1 == w->npsn;
	return first ? (last ? READ_ONLY : READ_FIRST) : (last ? READ_LAST : READ_MIDDLE);
}

/* Number of payload bytes that the opcode should have now. */
static uint32_t
due_len(const struct urn_qp *qp, const struct frame *f, uint32_t wish)
{
	const struct urn_work *w = fetch_at(qp, f->psn);
	uint32_t mtu = qp->mtu, left = qp->msg_len - qp->msg_off;

	switch (qp->type == URN_QPT_UC ? f->op & ~UC : f->op) {
	case SEND_FIRST:
	case SEND_MIDDLE:
	case WRITE_FIRST:
	case WRITE_MIDDLE:
	case READ_FIRST:
	case READ_MIDDLE:
		return mtu;
	case WRITE_ONLY:
	case WRITE_ONLY_IMM:
		return f->length;
	case WRITE_LAST:
	case WRITE_LAST_IMM:
		return left <= mtu ? left : 1;
	case READ_LAST:
	case READ_ONLY:
		left = w ? w->length - ((f->psn - w->first_psn) & 0xffffff) * mtu : 0;
		return left <= mtu ? left : 0;
	case SACK:
		return sizeof(struct urn_sack);
	case READ_REQ:
	case ACK:
	case ATOMIC_ACK:
	case CMP_SWAP:
	case FETCH_ADD:
	case CNP:
		return 0;
	default:
		return f->op == SEND_LAST && wish % mtu == 0 ? 1 : wish % (mtu + 1);
	}
}

/* ---- frames in words */

enum word_bit {
	WORD_ACK = 1,
	WORD_SE = 2,
	WORD_NO_M = 4,
	WORD_ANY_LEN = 8,
	WORD_ANY_VA = 16,
	WORD_TURN = 32,
	WORD_OTHER_PSN = 64,
	WORD_ANY_LENGTH = 128,
};
enum sel_bit {
	SEL_QP = 3,
	SEL_SOURCE = 4,
	SEL_DEST = 8,
	SEL_ENGINE = 16,
	SEL_PKEY = 32,
	SEL_ODD = 60,	       /* mask: a bit counts only alone, so that most frames have none */
	SEL_ANY_RESPONSE = 64, /* the response opcode stays, whichever is due */
	SEL_PART = 128,	       /* a response that begins here */
};

static bool
is_odd(uint8_t sel, enum sel_bit what)
{
	return (sel & SEL_ODD) == what;
}

static uint32_t
key_of(const struct fuzz_words *w, uint8_t byte)
{
	unsigned int k = byte < 0xc0 ? 0 : byte & 7;

	return k < NODE_KEYS ? w->key[k] : k * 0x01010101u;
}

static uint64_t
va_of(const struct fuzz_words *w, uint32_t off, uint32_t key, bool any)
{
	static const uint64_t edge[] = {NODE_VA - 1, NODE_VA + NODE_LEN - 7, 0, UINT64_MAX - 7};

	if (any)
		return edge[off & 3] + (off >> 14 ? off : 0);
	return (key == w->key_shut ? NODE_SHUT_VA : NODE_VA) + (off & (NODE_LEN - 8));
}

static void
payload_of(struct frame *f, uint32_t len)
{
	f->len = len <= FRAME_DATA ? len : FRAME_DATA;
	memset(f->data, (int)f->psn, f->len);
}

/* A duplicate READ that requests the rest of the recorded one from its PSN on. */
static void
ask_again(const struct urn_qp *qp, struct frame *f, uint32_t length)
{
	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++) {
		const struct urn_rec *rec = &qp->rec[i];
		uint32_t at = ((f->psn - rec->first_psn) & 0xffffff) * qp->mtu;

		if (rec->kind != URN_REC_READ || at >= rec->length)
			continue;
		f->va = rec->va + at;
		f->rkey = rec->rkey;
		f->length = length & 1 ? rec->length - at : (1 + (length >> 1 & 7)) * qp->mtu;
	}
}

/* Ranges after PSN `at`: as many as wanted and, unless any, as were sent. */
static void
fill_ranges(const struct urn_qp *qp, struct urn_sack *s, uint32_t at, uint32_t how, bool any)
{
	uint8_t n = how >> 8 & 7;

	for (s->ranges = 0; s->ranges < n; s->ranges++) {
		uint32_t first = at + (how >> 1 & 7), i = s->ranges % URN_SACK_RANGES;

		at = first + (how >> 4 & 7) + !any;
		if (!any && (urn_psn_diff(at, qp->tx.next) > 0 || s->ranges == URN_SACK_RANGES))
			return;
		s->range[i].first = rte_cpu_to_be_32(first & 0xffffff);
		s->range[i].end = rte_cpu_to_be_32(at & 0xffffff);
	}
}

/*
 * Possible contents of a selective acknowledgement: a pattern of 32 PSNs in the whole
 * bitmap, or some there and ranges behind it, or ranges only.
 */
static void
fill_sack(const struct urn_qp *qp, struct frame *f, uint32_t bits, uint32_t how)
{
	struct urn_sack *s = (struct urn_sack *)f->data;
	uint32_t at = f->psn + 1 + (how & 1);
	bool any = how >= 0xf000;
	uint32_t width = any ? 32 : how & 0x80 ? 0 : how & 0x700 ? 8 : URN_SACK_BITS;

	memset(f->data, 0, sizeof(*s));
	s->version = how < 0xfff0 ? URN_SACK_VERSION : 0;
	s->expected = rte_cpu_to_be_32(at & 0xffffff);
	for (uint32_t i = 0; i < width; i++)
		if ((bits >> i % 32 & 1) && (any || urn_psn_diff(at + 1 + i, qp->tx.next) < 0))
			s->bitmap[i / 8] |= (uint8_t)(1u << i % 8);
	fill_ranges(qp, s, at + width, how, any);
}

/* Opcode of a frame to QP `qp`, whose type is given (enum urn_abi_qp_type). */
static uint8_t
op_of(uint8_t byte, unsigned int qp, uint8_t type)
{
	if (byte & 0x80)
		return byte ^ 0x80 ? byte : CNP;
	if (type == URN_QPT_UC) /* now and then one of RC */
		return byte >= 0x74 ? byte & 0x1f : UC | byte % (WRITE_ONLY_IMM + 1);
	if (qp != 2 && byte >= 0x74)
		return SACK;
	if (qp != 2 && byte >= 0x72)
		return byte & 1 ? UD_SEND : UC_SEND_ONLY; /* a UD or UC opcode, not RC's */
	return qp == 2 && !(byte & 0x40) ? (uint8_t)(UD_SEND + (byte & 1)) : byte & 0x1f;
}

/* A READ may ask for more than one turn answers. */
static uint32_t
length_of(const struct urn_qp *qp, uint8_t op, uint32_t length, bool any)
{
	if (any)
		return length << 17 | length;
	if (op == WRITE_ONLY || op == WRITE_ONLY_IMM || op == (UC | WRITE_ONLY) ||
	    op == (UC | WRITE_ONLY_IMM))
		return (length & 0x1fff) % (qp->mtu + 1u);
	return length & (op == READ_REQ ? 0x3fff : 0x1fff);
}

/* Opcode, PSN, QP, key, address and lengths, from the first bytes of a record. */
static void
fill_head(const struct fuzz_words *w, struct fuzz_in *in, struct frame *f, uint8_t bits,
	  uint8_t psn, uint8_t sel)
{
	unsigned int i = (sel & SEL_QP) % NODE_QPS;
	const struct urn_qp *qp = w->qp[i];
	uint8_t key = fuzz_u8(in);
	uint16_t off = fuzz_u16(in), length = fuzz_u16(in), len = fuzz_u16(in);

	f->psn = near_psn(due_psn(w, i, f->op, bits & WORD_OTHER_PSN), psn);
	if (f->op >= READ_FIRST && f->op <= ATOMIC_ACK && f->op != ACK && !(sel & SEL_ANY_RESPONSE))
		f->op = response_op(qp, f->op, f->psn, sel & SEL_PART);
	f->dqpn = (sel & SEL_QP) == 3 ? 0x123u >> (off & 8)
				      : qp->qpn | (is_odd(sel, SEL_ENGINE) ? 0x300000 : 0);
	f->pkey = is_odd(sel, SEL_PKEY) ? off : 0xffff;
	f->rkey = key_of(w, key);
	f->va = va_of(w, f->op == READ_REQ ? off & 0x3fff : off, f->rkey, bits & WORD_ANY_VA);
	f->length = length_of(qp, f->op, length, bits & WORD_ANY_LENGTH);
	if (f->op == READ_REQ && !(bits & WORD_ANY_VA) && urn_psn_diff(f->psn, qp->rx.epsn) < 0)
		ask_again(qp, f, length);
	payload_of(f, bits & WORD_ANY_LEN ? len : due_len(qp, f, len));
	if (f->op == SACK)
		fill_sack(qp, f, (uint32_t)off << 16 | length, len);
	f->imm = f->sqpn = off;
}

uint32_t
words_frame(const struct fuzz_words *w, struct fuzz_in *in, uint8_t *bytes, struct words_way *way)
{
	uint8_t op = fuzz_u8(in), bits = fuzz_u8(in), psn = fuzz_u8(in), sel = fuzz_u8(in), spoil;
	unsigned int i = (sel & SEL_QP) % NODE_QPS;
	struct frame f = frame_of(op_of(op, sel & SEL_QP, w->qp[i]->type), 0);
	const struct frame_addr *from = is_odd(sel, SEL_SOURCE) ? &w->other : &w->peer;
	struct frame_addr to = w->self;
	uint32_t size;

	f.ack = bits & WORD_ACK;
	f.se = bits & WORD_SE;
	f.no_m = bits & WORD_NO_M;
	fill_head(w, in, &f, bits, psn, sel);
	f.syn = fuzz_u8(in);
	f.syn = f.syn < 0x80 && f.op != ACK ? SYN_ACK : f.syn & 0x7f;
	f.msn = (w->qp[i]->tx.ssn + (uint32_t)(int8_t)fuzz_u8(in)) & 0xffffff;
	if (fuzz_u8(in) & 1)
		f.imm = w->window;
	f.swap = fuzz_u8(in);
	f.compare = fuzz_u8(in) & 3;
	f.qkey = NODE_QKEY + (fuzz_u8(in) > 0xf0);
	spoil = fuzz_u8(in);
	if (is_odd(sel, SEL_DEST))
		to.gid[15] ^= 0x40;
	if (w->loop && i == 1 && from == &w->peer)
		from = &w->self;
	size = frame_write(&f, from, &to, bytes);
	if (spoil > 0xe0)
		bytes[12 + (spoil & 0x1f) * 2u % (size - 12)] ^= (uint8_t)(1u << (f.psn & 7));
	*way = (struct words_way){.turn = bits & WORD_TURN};
	return size;
}

/* ---- frames in bytes */

enum raw_fix {
	RAW_ADDR = 1,
	RAW_LEN = 2,
	RAW_QPN = 4,
	RAW_PSN = 8,
	RAW_KEY = 16,
	RAW_SEAL = 32,
	RAW_TURN = 64,
	RAW_SPLIT = 128
};

static void
put_be(uint8_t *p, uint64_t v, unsigned int bytes)
{
	while (bytes--) {
		p[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static void
fix_lower(const struct fuzz_words *w, uint8_t *f, uint32_t len, uint8_t fix, bool v6)
{
	uint32_t udp = v6 ? 54 : 34;

	if (fix & RAW_ADDR) {
		for (int i = 0; i < 6; i++) { /* gcc 12 with sanitizers believes that f may be NULL in memcpy() */
			f[i] = w->self.mac[i];
			f[6 + i] = w->peer.mac[i];
		}
		memcpy(f + (v6 ? 22 : 26), w->peer.gid + (v6 ? 0 : 12), v6 ? 16 : 4);
		memcpy(f + (v6 ? 38 : 30), w->self.gid + (v6 ? 0 : 12), v6 ? 16 : 4);
	}
	if (fix & RAW_LEN) {
		put_be(f + (v6 ? 18 : 16), len - (v6 ? 54 : 14), 2);
		put_be(f + udp + 4, len - udp, 2);
	}
}

/* Correct a frame without a tag. sel: QP, and whose PSN; psn: beside the one that is due. */
static void
fix_frame(const struct fuzz_words *w, uint8_t *f, uint32_t len, uint8_t fix, uint8_t sel,
	  uint8_t psn)
{
	unsigned int i = (sel & SEL_QP) % NODE_QPS;
	bool v6 = len > 13 && f[12] == 0x86;
	uint8_t *bth = f + (v6 ? 62 : 42);

	if (len < (v6 ? 78u : 58u))
		return;
	fix_lower(w, f, len, fix, v6);
	if (fix & RAW_QPN)
		put_be(bth + 5, w->qp[i]->qpn, 3);
	if (fix & RAW_PSN)
		put_be(bth + 9, near_psn(due_psn(w, i, bth[0], sel & 0x80), psn), 3);
	if ((fix & RAW_KEY) && frame_ext_len(bth[0]) >= 16 && bth + 28 <= f + len) {
		put_be(bth + 12, NODE_VA + (psn & 31) * 8u, 8);
		put_be(bth + 20, w->key[0], 4);
	}
	if (fix & RAW_SEAL)
		frame_seal(f, len);
}

uint32_t
words_raw(const struct fuzz_words *w, struct fuzz_in *in, uint8_t *f, struct words_way *way)
{
	uint8_t fix = fuzz_u8(in), sel = fuzz_u8(in), psn = fuzz_u8(in), tag[4];
	uint32_t len = fuzz_u16(in) % 4600u, left = (uint32_t)(in->end - in->p);

	len = len < left ? len : left;
	memcpy(f, in->p, len);
	in->p += len;
	if (len > 17 && f[12] == 0x81 && f[13] == 0) {
		memcpy(tag, f + 12, 4);
		memmove(f + 4, f, 12);
		fix_frame(w, f + 4, len - 4, fix, sel, psn);
		memmove(f, f + 4, 12);
		memcpy(f + 12, tag, 4);
	} else {
		fix_frame(w, f, len, fix, sel, psn);
	}
	*way = (struct words_way){.split = fix & RAW_SPLIT, .turn = fix & RAW_TURN};
	return len;
}

/* ---- the program */

unsigned int
words_post(const struct fuzz_words *w, struct fuzz_in *in, struct node_send *s)
{
	uint8_t op = fuzz_u8(in), flags = fuzz_u8(in), sel = fuzz_u8(in), key = fuzz_u8(in);
	uint16_t len = fuzz_u16(in), off = fuzz_u16(in), remote = fuzz_u16(in);

	*s = (struct node_send){
		.op = op < 0xf0 ? op % URN_WR_OPS : op,
		.flags = flags & 0xf,
		.num_sge = sel < 0xf0 ? 1 : sel & 3,
		.len = sel & 8 ? len : len & 0xfff,
		.lkey = key_of(w, key),
		.rkey = key_of(w, (uint8_t)(key ^ sel)),
		.ring = !(flags & 0x80),
	};
	if (fuzz_u8(in) < 0xf0)
		s->num_sge = s->len ? 1 : 0;
	if (s->op == URN_WR_CMP_SWAP || s->op == URN_WR_FETCH_ADD)
		s->len = 8;
	if (s->flags & URN_WRF_INLINE && sel < 0xf0)
		s->len &= 63;
	s->addr = va_of(w, off, s->lkey, sel & 16);
	s->remote = va_of(w, remote, s->rkey, sel & 32);
	return (sel & 3) % NODE_QPS;
}

struct words_recv
words_recv(const struct fuzz_words *w, struct fuzz_in *in)
{
	uint8_t sel = fuzz_u8(in);
	uint16_t len = fuzz_u16(in), off = fuzz_u16(in);
	unsigned int k = sel & 0x80 ? sel >> 2 & 7 : 0;
	uint32_t key = k < NODE_KEYS ? w->key[k] : k * 0x01010101u;

	return (struct words_recv){
		.qp = (sel & 3) % NODE_QPS,
		.addr = va_of(w, off % (NODE_LEN - 4096), key, sel == 0xff),
		.lkey = key,
		.len = sel & 0x40 ? len : 4096,
		.broken = (sel & 0x70) == 0x70,
	};
}

uint8_t
words_state(struct fuzz_in *in, unsigned int *qp)
{
	static const uint8_t to[] = {URN_QPS_SQD, URN_QPS_RTS, URN_QPS_SQD,   URN_QPS_RTS,
				     URN_QPS_RTS, URN_QPS_ERR, URN_QPS_RESET, URN_QPS_RTR};

	*qp = (fuzz_u8(in) & 3) % NODE_QPS;
	return to[fuzz_u8(in) & 7];
}

bool
words_begin(const struct fuzz_words *w, uint8_t how, unsigned int qp, unsigned int k,
	    struct node_send *s, struct words_recv *r)
{
	static const uint8_t ops[] = {URN_WR_RDMA_READ, URN_WR_SEND, URN_WR_FETCH_ADD,
				      URN_WR_RDMA_WRITE};
	unsigned int op = (k + (how >> 3)) % 4;

	if (k >= (how & 7u))
		return false;
	*s = (struct node_send){
		.op = qp == 2 ? URN_WR_SEND : ops[w->qp[qp]->type == URN_QPT_UC ? op | 1 : op],
		.flags = URN_WRF_SIGNALED,
		.num_sge = 1,
		.len = 700 * k + 8,
		.addr = NODE_VA,
		.remote = NODE_VA + 4096,
		.lkey = w->key[0],
		.rkey = w->key[0],
		.ring = true,
	};
	if (s->op == URN_WR_FETCH_ADD)
		s->len = 8;
	*r = (struct words_recv){
		.qp = qp, .addr = NODE_VA + 8192 + k * 4096ull, .lkey = w->key[0], .len = 4096};
	return true;
}

/* ---- duplicates of earlier frames */

enum {
	PAST = sizeof(((struct words_past *)NULL)->frame) /
	       sizeof(((struct words_past *)NULL)->frame[0])
};

void
words_came(struct words_past *past, const uint8_t *bytes, uint32_t len)
{
	unsigned int at = past->n++ % PAST;

	memcpy(past->frame[at].bytes, bytes, len);
	past->frame[at].len = len;
}

uint32_t
words_again(const struct words_past *past, uint8_t which, const uint8_t **bytes)
{
	unsigned int at = which % PAST;

	*bytes = past->frame[at].bytes;
	return at < past->n ? past->frame[at].len : 0;
}

/* ---- the node's configuration */

struct node_config
words_head(struct fuzz_in *in)
{
	uint8_t a = fuzz_u8(in), b = fuzz_u8(in), c = fuzz_u8(in), d = fuzz_u8(in), e;
	struct node_config cfg = {
		.ipv6 = a & 1,
		.srq = a & 2,
		.late = a & 4,
		.selective = a & 128,
		.failing = (a & 24) == 24,
		.poor = (a & 96) == 96,
		.mtu = 256u << (b & 3),
		.window = 2u << (b >> 2 & 7),
		.kept = b & 128 ? 3 : 256,
		.foreign = b & 64,
		.uc = (b & 32) && (c & 128),
		.timeout = c & 1 ? 0 : 2 + (c & 14), /* 16 us to 268 ms */
		.retry_cnt = c >> 4 & 7,
		.rnr_retry = d & 7,
		.rd_atomic = 1 + (d >> 3 & 3),
		.dest_rd_atomic = d >> 5 & 7,
	};

	cfg.seed = 1u + fuzz_u16(in);
	e = fuzz_u8(in);
	cfg.rto_floor = (e & 15ull) << 16;
	cfg.loop = e & 16;
	cfg.events = e & 32;
	cfg.far = (e & 96) == 96;
	cfg.plain = (e & 192) == 192;
	cfg.scarce = e & 128;
	cfg.unresolved = e & 64;
	return cfg;
}
