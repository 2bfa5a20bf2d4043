/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs and atomics at the responder and its record of them (doc/reference/wire.md "PSN",
 * "Duplicates", "Acknowledgement").
 */
#include "probe.h"

enum { MTU = 1024 };

/* Responses first .. n-1 of a READ of len bytes at off whose first PSN is psn. */
static void
responses(struct probe *p, uint32_t psn, uint32_t off, uint32_t len, uint32_t msn, const char *file,
	  int line)
{
	uint32_t n = len ? (len + MTU - 1) / MTU : 1;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t op = n == 1 ? READ_ONLY : i == 0 ? READ_FIRST : i + 1 == n ? READ_LAST : READ_MIDDLE;
		const struct frame *f = probe_expect(p, op, PSN(psn, i), file, line);
		uint32_t want = i + 1 == n ? len - i * MTU : MTU;

		if (f->len != want || (op != READ_MIDDLE && f->msn != msn) || f->ack) {
			print_error("%u bytes, MSN %u came\n", f->len, f->msn);
			_fail(file, line);
		}
		probe_check_fill(f->data, want, 7, off + i * MTU, file, line);
	}
}
#define expect_read(p, psn, off, len, msn) responses(p, psn, off, len, msn, __FILE__, __LINE__)

static void
open_filled(struct probe *p, const struct probe_config *c)
{
	probe_open(p, c);
	probe_fill(probe_at(p, 0), 65536, 7, 0);
}

/* A READ consumes as many PSNs as its responses; MSN counts it at acceptance. */
static void
sizes(void **state)
{
	static const uint32_t len[] = {0, 1, 1023, 1024, 1025, 2048, 10000};
	struct probe p;
	uint32_t psn = PROBE_RQ_PSN;

	(void)state;
	open_filled(&p, NULL);
	for (uint32_t i = 0; i < 7; i++) {
		probe_read(&p, psn, 3 * i, len[i]);
		expect_read(&p, psn, 3 * i, len[i], i + 1);
		psn = PSN(psn, len[i] ? (len[i] + MTU - 1) / MTU : 1);
	}
	probe_write(&p, WRITE_ONLY, psn, 60000, 8, 8, 1);
	expect_aeth(&p, psn, SYN_ACK, 8);
	expect_silence(&p);
	probe_close(&p);
}

/* A zero-length READ or WRITE needs no valid key (doc/reference/wire.md "Lengths"). */
static void
zero_without_key(void **state)
{
	struct probe p;
	struct frame f = frame_of(READ_REQ, RQ(0));

	(void)state;
	open_filled(&p, NULL);
	f.va = 0xdeadbeef;
	f.rkey = 0x12345678;
	probe_put(&p, &f);
	expect_read(&p, RQ(0), 0, 0, 1);
	f.op = WRITE_ONLY;
	f.psn = RQ(1);
	f.ack = true;
	probe_put(&p, &f);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	probe_close(&p);
}

/* A response acknowledges earlier requests; an ACK never overtakes the response. */
static void
order_of_answers(void **state)
{
	struct probe p;

	(void)state;
	open_filled(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(0), 65536, 8, 8, 1);
	probe_read(&p, RQ(1), 0, 3000);
	probe_atomic(&p, FETCH_ADD, RQ(4), 65536 + 64, 1, 0);
	probe_write(&p, WRITE_ONLY, RQ(5), 65536, 8, 8, 1);
	expect_read(&p, RQ(1), 0, 3000, 2);
	assert_int_equal(expect_frame(&p, ATOMIC_ACK, RQ(4))->msn, 3);
	expect_aeth(&p, RQ(5), SYN_ACK, 4);
	expect_silence(&p);
	probe_close(&p);
}

/* A duplicate READ is replayed: whole, a tail, or packets out of the middle. */
static void
replay(void **state)
{
	struct probe p;

	(void)state;
	open_filled(&p, NULL);
	probe_read(&p, RQ(0), 100, 5000);
	expect_read(&p, RQ(0), 100, 5000, 1);
	probe_write(&p, WRITE_ONLY, RQ(5), 65536, 8, 8, 1);
	expect_aeth(&p, RQ(5), SYN_ACK, 2);
	probe_read(&p, RQ(0), 100, 5000);
	expect_read(&p, RQ(0), 100, 5000, 1); /* the MSN of then */
	probe_read(&p, RQ(2), 100 + 2 * MTU, 5000 - 2 * MTU);
	expect_read(&p, RQ(2), 100 + 2 * MTU, 5000 - 2 * MTU, 1);
	probe_read(&p, RQ(4), 100 + 4 * MTU, 5000 - 4 * MTU);
	expect_read(&p, RQ(4), 100 + 4 * MTU, 5000 - 4 * MTU, 1);
	probe_read(&p, RQ(1), 100 + MTU, 2 * MTU);
	expect_read(&p, RQ(1), 100 + MTU, 2 * MTU, 1);
	expect_silence(&p);
	expect_count(&p, DUPLICATES, 4);
	expect_count(&p, DROP_DUPLICATE, 0);
	/* Nothing was executed again: the next PSN is the next. */
	probe_write(&p, WRITE_ONLY, RQ(6), 65536, 8, 8, 1);
	expect_aeth(&p, RQ(6), SYN_ACK, 3);
	probe_close(&p);
}

/* A duplicate that differs from the recorded request is dropped and counted. */
static void
replay_refused(void **state)
{
	struct probe p;
	struct frame f;
	struct {
		uint32_t psn, off, length, rkey;
	} bad[] = {
		{0, 100, 5000, 1}, /* another key, as good */
		{0, 100, 5000, 2}, /* no key */
		{0, 101, 5000, 0}, /* another address */
		{0, 101, 4999, 0},
		{1, 100, 5000 - MTU, 0},
		{1, 100, 5000, 0},		   /* not the address of that packet */
		{1, 100 + MTU, 5000 - MTU + 1, 0}, /* beyond its end */
		{0, 100, 5001, 0},		   /* the same */
		{0, 100, 0x80000000, 0},
		{0, 100, 0xffffffff, 0},
		{4, 100 + 4 * MTU, 5000 - 4 * MTU + 1, 0},
		{1, 100 + MTU, 100, 0}, /* not whole packets */
		{0, 100, 0, 0},
		{(uint32_t)-1, 100 - MTU, 5000, 0}, /* before it */
		{5, 100, 8, 0},			    /* a WRITE was there */
	};

	(void)state;
	open_filled(&p, NULL);
	probe_read(&p, RQ(0), 100, 5000);
	expect_read(&p, RQ(0), 100, 5000, 1);
	probe_write(&p, WRITE_ONLY, RQ(5), 65536, 8, 8, 1);
	expect_aeth(&p, RQ(5), SYN_ACK, 2);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f = frame_of(READ_REQ, RQ(bad[i].psn));
		f.va = PROBE_VA + bad[i].off;
		f.length = bad[i].length;
		f.rkey = bad[i].rkey == 1 ? p.key_read : bad[i].rkey == 2 ? 0x777 : p.key;
		probe_put(&p, &f);
		expect_silence(&p);
		expect_count(&p, DROP_DUPLICATE, i + 1);
	}
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	/* An atomic where the READ was. */
	probe_atomic(&p, FETCH_ADD, RQ(0), 0, 1, 0);
	expect_silence(&p);
	check_fill(probe_at(&p, 0), 8, 7, 0);
	probe_close(&p);
}

/* Atomics: executed once; a duplicate gets the recorded value, whatever it asks. */
static void
atomics(void **state)
{
	struct probe p;
	uint64_t *word, v = 0x1122334455667788;

	(void)state;
	probe_open(&p, NULL);
	word = (uint64_t *)(void *)probe_at(&p, 64);
	*word = v;
	probe_atomic(&p, FETCH_ADD, RQ(0), 64, 0x10, 0);
	assert_true(expect_frame(&p, ATOMIC_ACK, RQ(0))->orig == v);
	assert_true(*word == v + 0x10);
	probe_atomic(&p, CMP_SWAP, RQ(1), 64, 99, v + 0x10);
	assert_true(expect_frame(&p, ATOMIC_ACK, RQ(1))->orig == v + 0x10);
	assert_true(*word == 99);
	probe_atomic(&p, CMP_SWAP, RQ(2), 64, 100, 98); /* does not match */
	assert_true(expect_frame(&p, ATOMIC_ACK, RQ(2))->orig == 99);
	assert_true(*word == 99);
	*word = 5;
	probe_atomic(&p, FETCH_ADD, RQ(0), 64, 0x10, 0);
	assert_true(expect_frame(&p, ATOMIC_ACK, RQ(0))->orig == v);
	probe_atomic(&p, CMP_SWAP, RQ(1), 64, 7, 5);
	assert_true(expect_frame(&p, ATOMIC_ACK, RQ(1))->orig == v + 0x10);
	probe_atomic(&p, CMP_SWAP, RQ(2), 64, 7, 5);
	assert_true(expect_frame(&p, ATOMIC_ACK, RQ(2))->orig == 99);
	assert_true(*word == 5);
	assert_int_equal(p.seen[(p.seen_n - 1) % PROBE_SEEN].msn, 3);
	expect_silence(&p);
	probe_close(&p);
}

/* The duplicate in the same burst as its original waits for it. */
static void
atomic_twice_in_a_burst(void **state)
{
	struct probe p;
	uint64_t *word;

	(void)state;
	for (uint64_t seed = 0; seed < 2; seed++) {
		probe_open(&p, &(struct probe_config){.delay_seed = seed});
		word = (uint64_t *)(void *)probe_at(&p, 64);
		*word = 40;
		for (int i = 0; i < 3; i++)
			probe_atomic(&p, FETCH_ADD, RQ(0), 64, 2, 0);
		probe_settle(&p);
		assert_true(*word == 42);
		assert_true(expect_frame(&p, ATOMIC_ACK, RQ(0))->orig == 40);
		while (p.looked != p.seen_n)
			assert_true(expect_frame(&p, ATOMIC_ACK, RQ(0))->orig == 40);
		probe_close(&p);
	}
}

/* Off the record: dropped silently, counted, and never executed. */
static void
record_depth(void **state)
{
	struct probe p;
	uint64_t *word;

	(void)state;
	probe_open(&p, &(struct probe_config){.dest_rd_atomic = 4});
	word = (uint64_t *)(void *)probe_at(&p, 64);
	for (uint32_t i = 0; i < 10; i++) {
		probe_atomic(&p, FETCH_ADD, RQ(i), 64, 1, 0);
		assert_true(expect_frame(&p, ATOMIC_ACK, RQ(i))->orig == i);
	}
	for (uint32_t i = 6; i < 10; i++) {
		probe_atomic(&p, FETCH_ADD, RQ(i), 64, 1, 0);
		assert_true(expect_frame(&p, ATOMIC_ACK, RQ(i))->orig == i);
	}
	for (uint32_t i = 0; i < 6; i++)
		probe_atomic(&p, FETCH_ADD, RQ(i), 64, 1, 0);
	expect_silence(&p);
	expect_count(&p, DROP_DUPLICATE, 6);
	assert_true(*word == 10);
	probe_close(&p);
}

/* More READs in flight than max_dest_rd_atomic: the peer breaks the agreement. */
static void
too_many(void **state)
{
	struct probe p;

	(void)state;
	open_filled(&p, &(struct probe_config){.dest_rd_atomic = 2});
	for (uint32_t i = 0; i < 3; i++)
		probe_read(&p, RQ(i), 0, 8);
	expect_read(&p, RQ(0), 0, 8, 1);
	expect_read(&p, RQ(1), 0, 8, 2);
	expect_aeth(&p, RQ(2), NAK_INV, 2);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	probe_close(&p);

	open_filled(&p, &(struct probe_config){.dest_rd_atomic = -1});
	probe_read(&p, RQ(0), 0, 8);
	expect_aeth(&p, RQ(0), NAK_INV, 0);
	probe_close(&p);
}

/*
 * A repetition that crossed the response it asks for: the peer has its response
 * and goes on. The replay gives way to the new request.
 */
static void
replay_gives_way(void **state)
{
	struct probe p;

	(void)state;
	open_filled(&p, &(struct probe_config){.dest_rd_atomic = 1});
	probe_read(&p, RQ(0), 0, 60 * MTU);
	expect_read(&p, RQ(0), 0, 60 * MTU, 1);
	probe_read(&p, RQ(0), 0, 60 * MTU);
	probe_turn(&p, 0);
	assert_true(p.seen_n - p.looked < 60); /* the replay is under way */
	probe_read(&p, RQ(60), 512, 100);
	while (p.seen[p.looked % PROBE_SEEN].psn != RQ(60)) {
		probe_settle(&p);
		assert_true(p.looked != p.seen_n);
		assert_true(p.seen[p.looked % PROBE_SEEN].op != ACK);
		p.looked++;
	}
	expect_read(&p, RQ(60), 512, 100, 2);
	expect_silence(&p);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);

	/* The same in one burst, and with an atomic. */
	open_filled(&p, &(struct probe_config){.dest_rd_atomic = 1});
	probe_read(&p, RQ(0), 0, 8);
	expect_read(&p, RQ(0), 0, 8, 1);
	probe_read(&p, RQ(0), 0, 8);
	probe_atomic(&p, FETCH_ADD, RQ(1), 65536, 1, 0);
	expect_frame(&p, ATOMIC_ACK, RQ(1));
	expect_silence(&p);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/* The region goes away between request and response, or the bytes can't be read. */
static void
read_fails(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct probe p;

		open_filled(&p, &(struct probe_config){.delay_seed = (uint64_t)late});
		probe_fail_op(&p, 4, late); /* the WRITE, two packets, this one */
		probe_read(&p, RQ(0), 0, 10 * MTU);
		probe_read(&p, RQ(10), 0, 2 * MTU);
		probe_write(&p, WRITE_ONLY, RQ(12), 65536, 8, 8, 1);
		expect_frame(&p, READ_FIRST, RQ(0));
		expect_frame(&p, READ_MIDDLE, RQ(1));
		/* Nothing that is behind the packet that failed comes before the NAK, or after. */
		assert_int_equal(expect_frame(&p, ACK, RQ(2))->syn, NAK_OP);
		expect_silence(&p);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		expect_count(&p, NAK_OPERATIONAL, 1);
		probe_close(&p);
	}
}

static void
region_goes(void **state)
{
	struct probe p;
	struct urn_region *r;

	(void)state;
	open_filled(&p, NULL);
	probe_read(&p, RQ(0), 0, 60 * MTU);
	probe_turn(&p, 0); /* a share of the response is made */
	assert_true(p.seen_n > 2 && p.seen_n < 60);
	assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &r), 0);
	p.looked = p.seen_n;
	assert_int_equal(expect_frame(&p, ACK, RQ(p.looked - 0))->syn, NAK_ACCESS);
	expect_silence(&p);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	urn_mem_free_mr(p.mem, r);
	probe_close(&p);
}

/*
 * A READ was answered, its key is dead by then, and a copy of the request comes
 * that was long on its way: it is no reason to end the connection.
 */
static void
key_died_since(void **state)
{
	struct probe p;
	struct urn_region *r;

	(void)state;
	open_filled(&p, NULL);
	probe_read(&p, RQ(0), 0, 2 * MTU);
	expect_frame(&p, READ_FIRST, RQ(0));
	expect_frame(&p, READ_LAST, RQ(1));
	assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &r), 0);
	probe_read(&p, RQ(0), 0, 2 * MTU);
	expect_silence(&p);
	expect_count(&p, DROP_DUPLICATE, 1);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	/* A new request is refused. */
	probe_read(&p, RQ(2), 0, 8);
	assert_int_equal(expect_frame(&p, ACK, RQ(2))->syn, NAK_ACCESS);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	urn_mem_free_mr(p.mem, r);
	probe_close(&p);
}

/*
 * PSNs come round again after 2^24: of two atomics, or READs, on record under
 * one PSN the newer is meant.
 */
static void
round_again(void **state)
{
	struct probe p;

	(void)state;
	open_filled(&p, NULL);
	memset(probe_at(&p, 0), 0, 8);
	for (uint64_t i = 0; i < 2; i++) {
		p.qp->rx.epsn = RQ(0); /* as if all the others had gone by, without READs */
		p.qp->rx.done = RQ(-1);
		probe_atomic(&p, FETCH_ADD, RQ(0), 0, 5, 0);
		assert_int_equal(expect_frame(&p, ATOMIC_ACK, RQ(0))->orig, 5 * i);
	}
	probe_atomic(&p, FETCH_ADD, RQ(0), 0, 5, 0);
	assert_int_equal(expect_frame(&p, ATOMIC_ACK, RQ(0))->orig, 5);
	for (uint32_t i = 0; i < 2; i++) {
		p.qp->rx.epsn = RQ(1);
		p.qp->rx.done = RQ(0);
		probe_read(&p, RQ(1), i * MTU, 8);
		expect_frame(&p, READ_ONLY, RQ(1));
	}
	probe_read(&p, RQ(1), MTU, 8);
	expect_frame(&p, READ_ONLY, RQ(1));
	expect_silence(&p);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(zero_without_key),
		cmocka_unit_test(order_of_answers),
		cmocka_unit_test(replay),
		cmocka_unit_test(replay_refused),
		cmocka_unit_test(atomics),
		cmocka_unit_test(atomic_twice_in_a_burst),
		cmocka_unit_test(record_depth),
		cmocka_unit_test(too_many),
		cmocka_unit_test(replay_gives_way),
		cmocka_unit_test(read_fails),
		cmocka_unit_test(region_goes),
		cmocka_unit_test(key_died_since),
		cmocka_unit_test(round_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
