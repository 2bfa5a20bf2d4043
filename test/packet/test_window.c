/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows from the peer's side: bound and freed by the program's
 * requests, used and invalidated by packets (IBTA 10.6.7).
 */
#include "probe.h"

enum { AT = 4096, LEN = 256 }; /* where windows are bound */

#define RW (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC)

static uint32_t
window(struct probe *p, int type)
{
	uint32_t key;

	assert_int_equal(urn_mem_alloc_mw(p->mem, p->pd, type, &key), 0);
	return key;
}

static void
bind(struct probe *p, int type, uint32_t mw, uint32_t new_key, uint32_t off, uint64_t len,
     uint32_t access)
{
	struct urn_abi_swqe *w;

	probe_prepare(p, type == 1 ? URN_WR_BIND_MW1 : URN_WR_BIND_MW, URN_WRF_SIGNALED, 0, 0, 0,
		      77);
	w = probe_slot(p);
	w->bind.addr = PROBE_VA + off;
	w->bind.length = len;
	w->bind.mw_rkey = mw;
	w->bind.new_rkey = new_key;
	w->bind.mr_lkey = p->key;
	w->bind.access = access;
	probe_ring(p);
	expect_sent(p, 77, SUCCESS);
}

static void
invalidate(struct probe *p, uint32_t key)
{
	probe_prepare(p, URN_WR_LOCAL_INV, URN_WRF_SIGNALED, 0, 0, 0, 78);
	probe_slot(p)->imm = key;
	probe_ring(p);
	expect_sent(p, 78, SUCCESS);
}

/* Deregister a key like control does. */
static void
take_away(struct probe *p, uint32_t key)
{
	struct urn_mem_dead dead;

	assert_int_equal(urn_mem_kill_mw(p->mem, key, &dead), 0);
	if (dead.qpn)
		urn_mem_unlist_mw(p->mem, &dead, &urn_tp_qp(p->tp, dead.qpn)->windows);
	urn_mem_free_mw(p->mem, &dead);
}

static uint32_t
next_key(uint32_t key)
{
	return (key & ~0xffu) | ((key + 1) & 0xff);
}

/* True when a packet that uses a key is let through. */
static bool
reaches(struct probe *p, uint8_t op, uint32_t psn, uint32_t key, uint32_t off, uint32_t len)
{
	struct frame f = frame_of(op, psn);
	const struct frame *got;
	bool ok;

	f.va = PROBE_VA + off;
	f.rkey = key;
	f.length = len;
	f.len = op == WRITE_ONLY ? len : 0;
	f.ack = true;
	f.swap = 1;
	probe_fill(f.data, f.len, psn, 0);
	probe_put(p, &f);
	probe_settle(p);
	got = &p->seen[p->looked % PROBE_SEEN];
	assert_true(p->seen_n > p->looked);
	ok = got->op != ACK || got->syn == SYN_ACK;
	if (!ok)
		assert_int_equal(got->syn, NAK_ACCESS);
	else if (op == WRITE_ONLY)
		check_fill(probe_at(p, off), len, psn, 0);
	p->looked = p->seen_n;
	assert_int_equal(p->qp->state, ok ? URN_QPS_RTS : URN_QPS_ERR);
	return ok;
}

/* A bound window lets through accesses to its bytes, by its rights and key; type 2 for its QP only. */
static void
bounds(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t off, len, access;
		bool ok;
	} c[] = {
		{WRITE_ONLY, AT, LEN, URN_ACCESS_REMOTE_WRITE, true},
		{WRITE_ONLY, AT + LEN - 1, 1, URN_ACCESS_REMOTE_WRITE, true},
		{WRITE_ONLY, AT - 1, 2, URN_ACCESS_REMOTE_WRITE, false},
		{WRITE_ONLY, AT + 1, LEN, URN_ACCESS_REMOTE_WRITE, false},
		{WRITE_ONLY, AT + LEN, 1, URN_ACCESS_REMOTE_WRITE, false},
		{WRITE_ONLY, AT, 8, URN_ACCESS_REMOTE_READ, false},
		{READ_REQ, AT, LEN, URN_ACCESS_REMOTE_READ, true},
		{READ_REQ, AT, LEN + 1, URN_ACCESS_REMOTE_READ, false},
		{READ_REQ, AT, LEN, URN_ACCESS_REMOTE_WRITE, false},
		{FETCH_ADD, AT + LEN - 8, 0, URN_ACCESS_REMOTE_ATOMIC, true},
		{FETCH_ADD, AT + LEN, 0, URN_ACCESS_REMOTE_ATOMIC, false},
		{CMP_SWAP, AT, 0, URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ, false},
	};

	(void)state;
	for (int type = 1; type <= 2; type++)
		for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
			for (int qp = 0; qp < 2; qp++) {
				struct probe p;
				uint32_t key;

				probe_open(&p, &(struct probe_config){.qps = 2});
				key = window(&p, type);
				bind(&p, type, key, next_key(key), AT, LEN, c[i].access);
				probe_use(&p,
					  (unsigned int)
						  qp); /* type 2 belongs to the QP that bound it */
				assert_int_equal(reaches(&p, c[i].op, RQ(0), next_key(key),
							 c[i].off, c[i].len),
						 c[i].ok && !(type == 2 && qp == 1));
				probe_close(&p);
			}
}

/* Keys that reach nothing: never bound, from before the bind, freed, off by one. */
static void
stale(void **state)
{
	(void)state;
	for (int type = 1; type <= 2; type++)
		for (int what = 0; what < 5; what++) {
			struct probe p;
			uint32_t key, use;

			probe_open(&p, NULL);
			use = key = window(&p, type);
			if (what > 0) {
				bind(&p, type, key, next_key(key), AT, LEN, RW);
				use = next_key(key);
				assert_true(reaches(&p, WRITE_ONLY, RQ(0), use, AT, LEN));
			}
			if (what == 1) { /* the key from before it was bound */
				use = key;
			} else if (what == 2) { /* freed */
				if (type == 1)
					bind(&p, 1, use, next_key(use), 0, 0, 0);
				else
					invalidate(&p, use);
			} else if (what == 3) { /* bound again */
				if (type == 2)
					invalidate(&p, use);
				bind(&p, type, use, next_key(use), AT + LEN, LEN, RW);
				assert_true(reaches(&p, WRITE_ONLY, RQ(1), next_key(use), AT + LEN,
						    LEN));
			} else if (what == 4) { /* the window is gone */
				take_away(&p, use);
			}
			assert_false(reaches(&p, WRITE_ONLY,
					     RQ(what == 0   ? 0
						: what == 3 ? 2
							    : 1),
					     use, AT, LEN));
			probe_close(&p);
		}
}

/* A type 2 window is bound once, until it is invalidated. */
static void
bound_already(void **state)
{
	struct probe p;
	uint32_t key;

	(void)state;
	probe_open(&p, NULL);
	key = window(&p, 2);
	bind(&p, 2, key, next_key(key), AT, LEN, RW);
	probe_prepare(&p, URN_WR_BIND_MW, 0, 0, 0, 0, 1);
	probe_slot(&p)->bind.addr = PROBE_VA;
	probe_slot(&p)->bind.length = 8;
	probe_slot(&p)->bind.mw_rkey = probe_slot(&p)->bind.new_rkey = next_key(key);
	probe_slot(&p)->bind.mr_lkey = p.key;
	probe_ring(&p);
	expect_sent(&p, 1, MW_BIND_ERR);
	assert_int_equal(probe_cqe(&p, false)->vendor_err, URN_VE_WINDOW);
	probe_close(&p);
}

static void
send_inv(struct probe *p, uint32_t psn, uint32_t key)
{
	struct frame f = frame_of(SEND_ONLY_INV, psn);

	f.imm = key;
	f.len = 16;
	f.ack = true;
	probe_put(p, &f);
}

/* The peer invalidates: the key is dead from that packet on, in one burst even. */
static void
by_peer(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct probe p;
		struct frame f;
		uint32_t key;

		probe_open(&p, &(struct probe_config){.delay_seed = seed});
		key = window(&p, 2);
		bind(&p, 2, key, next_key(key), AT, LEN, RW);
		key = next_key(key);
		probe_recv(&p, 0, 64, 1);
		send_inv(&p, RQ(0), key);
		probe_write(&p, WRITE_ONLY, RQ(1), AT, 8, 8, 3);
		expect_recv(&p, 1, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->wc_flags, URN_WCF_WITH_INV);
		assert_int_equal(probe_cqe(&p, true)->imm, key);
		probe_settle(&p);
		p.looked = p.seen_n - 1;
		expect_aeth(&p, RQ(1), SYN_ACK, 2); /* that one had the region's key */
		/* The invalidation comes again after the program bound again: nothing is undone. */
		bind(&p, 2, key, key, AT, LEN, RW);
		send_inv(&p, RQ(0), key);
		expect_aeth(&p, RQ(1), SYN_ACK, 2);
		assert_true(reaches(&p, WRITE_ONLY, RQ(2), key, AT, 8));
		/* In one burst: packets behind the invalidation do not get through. */
		probe_recv(&p, 0, 64, 2);
		send_inv(&p, RQ(3), key);
		f = frame_of(WRITE_ONLY, RQ(4));
		f.va = PROBE_VA + AT;
		f.rkey = key;
		f.length = f.len = 8;
		probe_put(&p, &f);
		expect_recv(&p, 2, SUCCESS);
		probe_settle(&p);
		p.looked = p.seen_n - 1;
		expect_aeth(&p, RQ(4), NAK_ACCESS, 4);
		check_fill(probe_at(&p, AT), 8, RQ(2), 0);
		probe_close(&p);
	}
}

/* Keys that a peer may not invalidate: a type 1 window, a region, another QP's, one that is not bound. */
static void
by_peer_refused(void **state)
{
	(void)state;
	for (int what = 0; what < 5; what++) {
		struct probe p;
		uint32_t key;

		probe_open(&p, &(struct probe_config){.qps = 2});
		key = window(&p, what == 0 ? 1 : 2);
		if (what != 3)
			bind(&p, what == 0 ? 1 : 2, key, next_key(key), AT, LEN, RW);
		key = what == 1 ? p.key_read : what == 3 ? key : next_key(key);
		if (what == 2)
			probe_use(&p, 1);
		if (what == 4)
			key ^= 0x80; /* not its key now */
		probe_recv(&p, 0, 64, 1);
		send_inv(&p, RQ(0), key);
		expect_aeth(&p, RQ(0), NAK_ACCESS, 0);
		expect_recv(&p, 1, LOC_ACCESS_ERR);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		if (what == 0 || what == 4) { /* and it still holds */
			struct urn_region *r;

			key = what == 4 ? key ^ 0x80 : key;
			assert_int_equal(urn_mem_check(p.mem, key, p.pd, p.q[0].qp->qpn,
						       PROBE_VA + AT, LEN, RW, 1, &r),
					 URN_MEM_OK);
		}
		probe_close(&p);
	}
}

/* Freed in the middle of a message that uses it: the rest is refused, and not placed. */
static void
in_the_middle(void **state)
{
	(void)state;
	for (int read = 0; read < 2; read++) {
		struct probe p;
		struct frame f = frame_of(read ? READ_REQ : WRITE_FIRST, RQ(0));
		uint32_t key;

		probe_open(&p, NULL);
		key = window(&p, 2);
		bind(&p, 2, key, next_key(key), AT, 40960, RW);
		f.va = PROBE_VA + AT;
		f.rkey = next_key(key);
		f.length = 40960;
		f.len = read ? 0 : 1024;
		probe_fill(f.data, f.len, 1, 0);
		probe_put(&p, &f);
		probe_turn(&p, 0); /* a share of a response is made */
		p.looked = p.seen_n;
		probe_prepare(&p, URN_WR_LOCAL_INV, URN_WRF_SIGNALED, 0, 0, 0, 78);
		probe_slot(&p)->imm = next_key(key);
		probe_ring(&p);
		if (read) {
			for (uint32_t i = p.looked; i < 40; i++) {
				probe_settle(&p);
				if (p.seen[p.looked % PROBE_SEEN].op == ACK)
					break;
				p.looked++;
			}
			expect_aeth(&p, RQ(p.looked), NAK_ACCESS, 1);
		} else {
			expect_sent(&p, 78, SUCCESS);
			probe_write(&p, WRITE_MIDDLE, RQ(1), 0, 0, 1024, 2);
			expect_aeth(&p, RQ(1), NAK_ACCESS, 0);
			check_fill(probe_at(&p, AT), 1024, 1, 0);
			assert_int_equal(*probe_at(&p, AT + 1024), 0);
			assert_memory_equal(probe_at(&p, AT + 1024), probe_at(&p, AT + 2048), 1024);
		}
		probe_close(&p);
	}
}

static void
unbind(struct probe *p, uint32_t key)
{
	probe_prepare(p, URN_WR_BIND_MW1, URN_WRF_SIGNALED, 0, 0, 0, 79);
	probe_slot(p)->bind.addr = 0;
	probe_slot(p)->bind.length = 0;
	probe_slot(p)->bind.mw_rkey = key;
	probe_slot(p)->bind.new_rkey = next_key(key);
	probe_slot(p)->bind.mr_lkey = 0;
	probe_slot(p)->bind.access = 0;
	probe_ring(p);
}

static void
write_by(struct probe *p, uint32_t psn, uint32_t key, uint32_t seed)
{
	struct frame f = frame_of(WRITE_ONLY, psn);

	f.va = PROBE_VA + AT;
	f.rkey = key;
	f.length = f.len = 64;
	probe_fill(f.data, 64, seed, 0);
	probe_put(p, &f);
}

/* The engine would ring the doorbell of a QP that has to look again: the test does, when it lets memory answer. */
static void
again(void *ctx, const struct urn_source *src)
{
	(void)ctx;
	(void)src;
}

static void
let_go(struct probe *p)
{
	p->hold = false;
	for (int i = 0; i < 30; i++) {
		urn_tp_doorbell(p->tp, p->qp);
		probe_turn(p, 0);
	}
}

/*
 * Invalidating or unbinding a window is complete when the accesses it let in have ended, however late
 * memory is, and later requests of the queue wait. A request that is flushed meanwhile leaves nothing behind.
 */
static void
waits_for_accepted(void **state)
{
	(void)state;
	for (int type = 1; type <= 2; type++)
		for (int flushed = 0; flushed < 2; flushed++) {
			struct urn_region *region;
			struct probe p;
			uint32_t key;

			probe_open(&p, &(struct probe_config){.qps = 2, .delay_seed = 7, .delay_polls = 6});
			p.tp->cfg.ring_again = again;
			key = window(&p, type);
			bind(&p, type, key, next_key(key), AT, LEN, RW);
			key = next_key(key);
			p.hold = true;
			probe_use(&p, type == 1); /* a type 1 window is open to the other QP as well */
			write_by(&p, RQ(0), key, 5);
			probe_settle(&p);
			assert_int_equal(urn_memx_holds(p.memx, NULL), 1);
			probe_use(&p, 0);
			probe_post(&p, URN_WR_SEND, URN_WRF_INLINE | URN_WRF_SIGNALED, 0, 0, 0, 1);
			if (type == 1) {
				unbind(&p, key);
			} else {
				probe_prepare(&p, URN_WR_LOCAL_INV, URN_WRF_SIGNALED, 0, 0, 0, 79);
				probe_slot(&p)->imm = key;
				probe_ring(&p);
			}
			probe_post(&p, URN_WR_SEND, URN_WRF_INLINE | URN_WRF_SIGNALED, 0, 0, 0, 2);
			expect_frame(&p, SEND_ONLY, SQ(0));
			assert_true(expect_frame(&p, SEND_ONLY, SQ(0))->ack); /* nothing follows: it is asked */
			probe_ack(&p, SQ(0), SYN_ACK, 1);
			if (type == 1) /* with type 2 the ACK is behind the WRITE */
				expect_sent(&p, 1, SUCCESS);
			expect_no_cqe(&p);
			expect_silence(&p);
			/* The key is dead at once, and the region stays until the end. */
			assert_int_equal(urn_mem_check(p.mem, key, p.pd, p.qp->qpn, PROBE_VA + AT, 8,
						       URN_ACCESS_REMOTE_WRITE, 1, &region),
					 URN_MEM_BAD_KEY);
			assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &region), EBUSY);
			if (flushed) {
				probe_state(&p, URN_QPS_ERR);
				let_go(&p);
				if (type == 2)
					expect_sent(&p, 1, WR_FLUSH_ERR);
				expect_sent(&p, 79, WR_FLUSH_ERR);
				expect_sent(&p, 2, WR_FLUSH_ERR);
			} else {
				let_go(&p);
				if (type == 2)
					expect_sent(&p, 1, SUCCESS);
				expect_sent(&p, 79, SUCCESS);
				check_fill(probe_at(&p, AT), 64, 5, 0);
			}
			probe_settle(&p);
			assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &region), 0);
			urn_mem_free_mr(p.mem, region);
			probe_close(&p);
		}
}

/* The same where the peer invalidates: an answer to its READ is read before the receive completes. */
static void
peer_waits_for_read(void **state)
{
	struct frame f = frame_of(SEND_ONLY_INV, RQ(1));
	struct probe p;
	uint32_t key;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 7, .delay_polls = 6});
	key = window(&p, 2);
	bind(&p, 2, key, next_key(key), AT, LEN, RW);
	key = next_key(key);
	probe_fill(probe_at(&p, AT), 64, 9, 0);
	probe_recv(&p, 0, 64, 1);
	p.hold = true;
	p.key = key; /* the key that probe_read() uses */
	probe_read(&p, RQ(0), AT, 64);
	probe_settle(&p);
	assert_int_equal(urn_memx_holds(p.memx, NULL), 1);
	f.imm = key; /* no payload, which would wait for memory of its own */
	f.ack = true;
	probe_put(&p, &f);
	for (int i = 0; i < 20; i++)
		probe_turn(&p, 0);
	expect_no_cqe(&p);
	p.hold = false;
	expect_recv(&p, 1, SUCCESS);
	assert_int_equal(urn_memx_holds(p.memx, NULL), 0);
	check_fill(expect_frame(&p, READ_ONLY, RQ(0))->data, 64, 9, 0);
	probe_close(&p);
}

/*
 * Type 2 windows die with their QP (IBTA 10.6.7): one that is reset, or destroyed, lets nobody
 * in by them again, holds no region, and leaves them free to be bound. One of many that was
 * taken away before is none of it.
 */
static void
die_with_qp(void **state)
{
	enum { MANY = 300, AWAY = 150 }; /* more than a call unbinds */

	(void)state;
	for (int destroy = 0; destroy < 2; destroy++) {
		struct urn_abi_qp_attr reset = {.state = URN_QPS_RESET};
		struct urn_region *region;
		uint32_t key[MANY], one;
		struct probe p;
		char why[160];
		int rc;

		probe_open(&p, &(struct probe_config){.qps = 2});
		one = window(&p, 1);
		bind(&p, 1, one, next_key(one), AT, LEN, RW);
		for (int i = 0; i < MANY; i++) {
			key[i] = window(&p, 2);
			bind(&p, 2, key[i], next_key(key[i]), AT, LEN, RW);
			key[i] = next_key(key[i]);
		}
		assert_true(reaches(&p, WRITE_ONLY, RQ(0), key[MANY - 1], AT, LEN));
		take_away(&p, key[AWAY]);
		assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &region), EBUSY);
		if (destroy) {
			for (urn_qp_stop(p.tp, p.qp); !urn_qp_stopped(p.qp);)
				urn_qp_stop(p.tp, p.qp);
		} else {
			while ((rc = urn_qp_modify(p.tp, p.qp, URN_QPM_STATE, &reset, why, sizeof(why))))
				assert_int_equal(rc, EAGAIN);
		}
		assert_int_equal(p.qp->windows, 0);
		/* The QP has the same number, so a key that was alive would let it in. */
		for (int i = 0; i < MANY; i++)
			assert_int_equal(urn_mem_check(p.mem, key[i], p.pd, p.qp->qpn, PROBE_VA + AT, 8,
						       URN_ACCESS_REMOTE_WRITE, 1, &region),
					 URN_MEM_BAD_KEY);
		probe_use(&p, 1);
		bind(&p, 2, key[0], next_key(key[0]), AT, LEN, RW);
		assert_true(reaches(&p, WRITE_ONLY, RQ(0), next_key(key[0]), AT, LEN));
		invalidate(&p, next_key(key[0]));
		/* A type 1 window belongs to no QP. */
		assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &region), EBUSY);
		take_away(&p, one);
		assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &region), 0);
		urn_mem_free_mr(p.mem, region);
		probe_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds),	   cmocka_unit_test(stale),
		cmocka_unit_test(bound_already),   cmocka_unit_test(by_peer),
		cmocka_unit_test(by_peer_refused), cmocka_unit_test(in_the_middle),
		cmocka_unit_test(die_with_qp), cmocka_unit_test(waits_for_accepted),
		cmocka_unit_test(peer_waits_for_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
