/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the reference model: it must accept the results of a right product, and
 * refuse those of a wrong one. Here the test plays the product.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "model.h"
#include "rng.h"

#include "abi/queue.h"

enum { RAM = 65536, MTU = 256, WIN = 4096, SLOT = 1024, RECV = 32768, WORD = 60000, COUNTER = 60800 };

static struct model *m;
static uint8_t ram[2][RAM];
static int key[2], a, b; /* the QPs: a on node 0, b on node 1 */
static uint64_t posted;

#define good(verdict) check(verdict, false, __FILE__, __LINE__)
#define bad(verdict) check(verdict, true, __FILE__, __LINE__)

static void
check(const char *why, bool want_bad, const char *file, int line)
{
	if (!why == want_bad) {
		print_error("the model says: %s\n", why ? why : "nothing");
		_fail(file, line);
	}
}

static int
setup(void **state)
{
	const int srq[2] = {-1, -1};

	(void)state;
	if (!m)
		m = model_new();
	assert_non_null(m);
	model_reset(m);
	for (unsigned int i = 0; i < 2; i++) {
		memset(ram[i], 0xc5, RAM);
		model_memory(m, i, ram[i], RAM);
		key[i] = model_key(m, i, 0, RAM, MODEL_LOCAL_WRITE | MODEL_REMOTE_WRITE |
						 MODEL_REMOTE_READ | MODEL_REMOTE_ATOMIC);
	}
	a = model_pair(m, 0, 1, MTU, srq);
	b = a + 1;
	posted = 0;
	return 0;
}

static struct model_request
post(enum model_op op, uint32_t len, uint32_t remote)
{
	struct model_request r = {.wr_id = posted, .op = (uint8_t)op, .signalled = true, .len = len,
				  .local = (uint32_t)posted * SLOT, .remote = remote,
				  .seed = 77 + (uint32_t)posted, .lkey = key[0], .rkey = key[1]};

	posted++;
	model_post(m, a, &r);
	return r;
}

static void
post_recv(uint64_t wr_id, uint32_t len)
{
	model_post_recv(m, b, wr_id, RECV + (uint32_t)wr_id * SLOT, len, key[1]);
}

static const uint8_t opcodes[MODEL_OPS] = {
	[MODEL_WRITE] = URN_WCO_RDMA_WRITE, [MODEL_READ] = URN_WCO_RDMA_READ,
	[MODEL_CMP_SWAP] = URN_WCO_COMP_SWAP, [MODEL_FETCH_ADD] = URN_WCO_FETCH_ADD,
	[MODEL_COUNT] = URN_WCO_FETCH_ADD, [MODEL_WRITE_IMM] = URN_WCO_RDMA_WRITE,
};

static const char *
sent(const struct model_request *r, uint8_t status)
{
	struct model_completion c = {.wr_id = r->wr_id, .status = status, .opcode = opcodes[r->op],
				     .byte_len = r->len};

	return model_sent(m, a, &c);
}

static const char *
received(uint64_t wr_id, uint32_t len, uint8_t status)
{
	struct model_completion c = {.wr_id = wr_id, .status = status, .opcode = URN_WCO_RECV,
				     .byte_len = len};

	return model_received(m, b, &c);
}

/* Do a WRITE as the product, or the first `len` bytes of it. */
static void
do_write(const struct model_request *r, uint32_t len)
{
	sim_fill(ram[1] + r->remote, r->seed, 0, len);
}

static void
in_order_and_once(void **state)
{
	struct model_request r[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		r[i] = post(MODEL_WRITE, 100, WIN + 200u * (uint32_t)i);
		do_write(&r[i], 100);
	}
	good(sent(&r[0], URN_WC_SUCCESS));
	bad(sent(&r[0], URN_WC_SUCCESS)); /* twice */
	bad(sent(&r[2], URN_WC_SUCCESS)); /* one left out */
	good(sent(&r[1], URN_WC_SUCCESS));
	good(sent(&r[2], URN_WC_SUCCESS));
	assert_int_equal(model_open(m, a), 0);
	good(model_end(m));
}

static void
writes(void **state)
{
	struct model_request r, over;

	(void)state;
	r = post(MODEL_WRITE, 1000, WIN);
	do_write(&r, 999); /* the last byte is missing */
	bad(sent(&r, URN_WC_SUCCESS));

	setup(NULL);
	r = post(MODEL_WRITE, 1000, WIN);
	over = post(MODEL_WRITE, 300, WIN + 500); /* over a part of it, and done already */
	do_write(&r, 1000);
	do_write(&over, 300);
	good(sent(&r, URN_WC_SUCCESS));
	do_write(&r, 1000); /* the first one is executed again */
	bad(sent(&over, URN_WC_SUCCESS));

	setup(NULL);
	r = post(MODEL_WRITE, 10, WIN);
	do_write(&r, 10);
	ram[1][WIN + 10]++; /* one byte too far */
	good(sent(&r, URN_WC_SUCCESS));
	bad(model_end(m));
}

static void
reads(void **state)
{
	struct model_request w, r, later;

	(void)state;
	w = post(MODEL_WRITE, 64, WIN);
	r = post(MODEL_READ, 64, WIN);
	later = post(MODEL_WRITE, 8, WIN + 8);
	do_write(&w, 64);
	do_write(&later, 8);
	memcpy(ram[0] + r.local, ram[1] + WIN, 64); /* a READ may see a later WRITE */
	good(sent(&w, URN_WC_SUCCESS));
	good(sent(&r, URN_WC_SUCCESS));
	good(sent(&later, URN_WC_SUCCESS));
	r = post(MODEL_READ, 64, WIN);
	sim_fill(ram[0] + r.local, w.seed, 0, 64); /* the bytes from before the WRITE */
	bad(sent(&r, URN_WC_SUCCESS));

	setup(NULL);
	r = post(MODEL_READ, 64, WIN);
	later = (struct model_request){.wr_id = posted++, .op = MODEL_WRITE, .signalled = true,
				       .fence = true, .len = 64, .remote = WIN, .seed = 5,
				       .lkey = key[0], .rkey = key[1]};
	model_post(m, a, &later);
	sim_fill(ram[0] + r.local, later.seed, 0, 64); /* wrong when the later one is fenced */
	bad(sent(&r, URN_WC_SUCCESS));
}

static struct model_request
add(uint64_t n)
{
	struct model_request r = {.wr_id = posted, .op = MODEL_FETCH_ADD, .signalled = true, .len = 8,
				  .local = (uint32_t)posted * SLOT, .remote = WORD, .add = n,
				  .lkey = key[0], .rkey = key[1]};

	posted++;
	model_post(m, a, &r);
	return r;
}

/* Add as the product, this many times, and return the value before. */
static void
do_add(const struct model_request *r, unsigned int times)
{
	uint64_t v;

	memcpy(&v, ram[1] + WORD, 8);
	memcpy(ram[0] + r->local, &v, 8);
	v += times * r->add;
	memcpy(ram[1] + WORD, &v, 8);
}

static void
atomics_once(void **state)
{
	struct model_request r;

	(void)state;
	r = add(7);
	do_add(&r, 1);
	good(sent(&r, URN_WC_SUCCESS));
	r = add(9);
	do_add(&r, 2); /* executed twice */
	bad(sent(&r, URN_WC_SUCCESS));

	setup(NULL);
	r = add(7);
	do_add(&r, 1);
	ram[0][r.local] ^= 1; /* another value comes back */
	bad(sent(&r, URN_WC_SUCCESS));

	setup(NULL);
	model_wire_fails(m);
	r = add(7);
	do_add(&r, 1); /* done, and its answer is lost: once or not at all */
	good(sent(&r, URN_WC_RETRY_EXC_ERR));
	good(model_end(m));

	setup(NULL);
	model_wire_fails(m);
	r = add(7);
	do_add(&r, 2);
	good(sent(&r, URN_WC_RETRY_EXC_ERR));
	bad(model_end(m));
}

static const char *
count_came(uint64_t value, uint64_t now)
{
	struct model_request r = post(MODEL_COUNT, 8, COUNTER);

	memcpy(ram[0] + r.local, &value, 8);
	memcpy(ram[1] + COUNTER, &now, 8);
	return sent(&r, URN_WC_SUCCESS);
}

static void
shared_counter(void **state)
{
	(void)state;
	memset(ram[1] + COUNTER, 0, 8);
	model_wrote(m, 1, COUNTER, 8);
	model_counter(m, 1, COUNTER);
	good(count_came(0, 1));
	good(count_came(1, 2));
	bad(count_came(1, 3)); /* two found the same */
	setup(NULL);
	model_counter(m, 1, COUNTER);
	good(count_came(0, 2)); /* one too many */
	bad(model_end(m));
}

static void
messages(void **state)
{
	struct model_request s0, s1;

	(void)state;
	post_recv(0, 512);
	post_recv(1, 512);
	s0 = post(MODEL_SEND, 300, 0);
	s1 = post(MODEL_SEND, 40, 0);
	sim_fill(ram[1] + RECV, s0.seed, 0, 300);
	bad(received(1, 300, URN_WC_SUCCESS)); /* not the turn of that receive */
	good(received(0, 300, URN_WC_SUCCESS));
	bad(received(1, 41, URN_WC_SUCCESS)); /* a byte too many */
	setup(NULL);
	post_recv(0, 512);
	s0 = post(MODEL_SEND, 300, 0);
	sim_fill(ram[1] + RECV, s0.seed, 0, 299);
	bad(received(0, 300, URN_WC_SUCCESS));
	setup(NULL);
	post_recv(0, 512);
	bad(received(0, 0, URN_WC_SUCCESS)); /* nobody sent */
	(void)s1;
}

/* A WRITE posted before a message is there when the message is. */
static void
write_before_message(void **state)
{
	struct model_request s;

	(void)state;
	post_recv(0, 512);
	post(MODEL_WRITE, 100, WIN);
	s = post(MODEL_SEND, 10, 0);
	sim_fill(ram[1] + RECV, s.seed, 0, 10);
	bad(received(0, 10, URN_WC_SUCCESS));
}

/* A key is gone: bytes that its WRITEs wrote until then are right, and eight more are not. */
static void
late_bytes(void **state)
{
	struct model_request r, done;

	(void)state;
	done = post(MODEL_WRITE, 100, 0);
	do_write(&done, 100);
	good(sent(&done, URN_WC_SUCCESS));
	r = post(MODEL_WRITE, 1000, WIN);
	do_write(&r, 256);
	good(model_late(m, 1));
	model_key_gone(m, key[1]);
	memset(ram[1], 0, 100);
	do_write(&done, 100);
	good(model_late(m, 1)); /* it was complete before */
	sim_fill(ram[1] + WIN, 4711, 0, 1000); /* another's */
	good(model_late(m, 1));
	sim_fill(ram[1] + WIN + 300, r.seed, 300, 7);
	good(model_late(m, 1)); /* may be random */
	memset(ram[1] + WIN, 0x33, 1000);
	good(model_late(m, 1));
	sim_fill(ram[1] + WIN + 300, r.seed, 300, 8);
	good(model_late(m, 0));
	bad(model_late(m, 1));
}

/* A message that succeeds has come, though completions are lost; a receive without completion may hold it. */
static void
deaf(void **state)
{
	struct model_request s0, s1;

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		setup(NULL);
		post_recv(0, 512);
		post_recv(1, 512);
		s0 = post(MODEL_SEND, 300, 0);
		s1 = post(MODEL_SEND, 40, 0);
		sim_fill(ram[1] + RECV, s0.seed, 0, 300);
		sim_fill(ram[1] + RECV + SLOT, s1.seed, 0, 40);
		good(received(0, 300, URN_WC_SUCCESS));
		good(sent(&s0, URN_WC_SUCCESS));
		good(model_unheard(m));
		assert_int_equal(model_open_recvs(m, b), 1);
		model_deaf(m, b, false, true);
		assert_int_equal(model_open_recvs(m, -1), 0);
		assert_int_equal(model_open(m, a), 1);
		good(sent(&s1, lost ? URN_WC_SUCCESS : URN_WC_REM_OP_ERR));
		check(model_unheard(m), lost, __FILE__, __LINE__);
	}
	good(model_end(m));
	ram[1][RECV + SLOT + 100] ^= 1; /* behind the message */
	bad(model_end(m));
}

static void
failures_have_reasons(void **state)
{
	static const uint8_t errors[] = {URN_WC_LOC_PROT_ERR, URN_WC_REM_ACCESS_ERR, URN_WC_REM_OP_ERR,
					 URN_WC_REM_INV_REQ_ERR, URN_WC_RETRY_EXC_ERR,
					 URN_WC_RNR_RETRY_EXC_ERR, URN_WC_WR_FLUSH_ERR,
					 URN_WC_BAD_RESP_ERR, URN_WC_LOC_LEN_ERR};
	struct model_request r;

	(void)state;
	for (unsigned int i = 0; i < sizeof(errors); i++) {
		setup(NULL);
		r = post(MODEL_WRITE, 10, WIN);
		bad(sent(&r, errors[i]));
	}
	setup(NULL);
	r = post(MODEL_WRITE, 10, WIN);
	model_key_dead(m, key[1]);
	good(sent(&r, URN_WC_REM_ACCESS_ERR));
	setup(NULL);
	model_key_dead(m, key[1]);
	r = post(MODEL_WRITE, 10, WIN);
	do_write(&r, 10);
	bad(sent(&r, URN_WC_SUCCESS)); /* it cannot */
	setup(NULL);
	r = post(MODEL_WRITE, 10, RAM - 9); /* a byte behind the end */
	bad(sent(&r, URN_WC_SUCCESS));
	setup(NULL);
	r = post(MODEL_SEND, 10, 0);
	model_rnr_gives_up(m, a);
	good(sent(&r, URN_WC_RNR_RETRY_EXC_ERR));
}

/* A QP that fails only because of the wire is counted, once a pair; p limits the expected number. */
static void
lost_by_chance(void **state)
{
	struct model_request r;

	(void)state;
	assert_int_equal(model_lost(m), 0);
	assert_true(model_lost_expected(m) == 0);
	model_wire_loses(m, 0.5, 2); /* a try fails with 0.75 */
	r = post(MODEL_WRITE, 10, WIN);
	assert_true(fabs(model_lost_expected(m) - 0.5625) < 1e-9);
	good(sent(&r, URN_WC_RETRY_EXC_ERR));
	assert_int_equal(model_lost(m), 1);
	assert_true(fabs(model_lost_expected(m) - 0.5625) < 1e-9);
	setup(NULL);
	model_wire_loses(m, 0.1, 8);
	r = post(MODEL_WRITE, 10 * MTU, WIN);
	assert_true(fabs(model_lost_expected(m) - 10 * pow(0.19, 8)) < 1e-9);
	setup(NULL);
	model_wire_loses(m, 0.5, 1); /* never more than one pair */
	r = post(MODEL_WRITE, 10 * MTU, WIN);
	assert_true(model_lost_expected(m) == 1);
	model_ended(m, b); /* another reason */
	good(sent(&r, URN_WC_RETRY_EXC_ERR));
	assert_int_equal(model_lost(m), 0);
	setup(NULL);
	model_wire_fails(m); /* the frequency is unknown */
	r = post(MODEL_WRITE, 10, WIN);
	good(sent(&r, URN_WC_RETRY_EXC_ERR));
	assert_int_equal(model_lost(m), 0);
}

static void
after_a_failure(void **state)
{
	struct model_request r[3];

	(void)state;
	model_wire_fails(m);
	for (int i = 0; i < 3; i++)
		r[i] = post(MODEL_WRITE, 10, WIN);
	good(sent(&r[0], URN_WC_RETRY_EXC_ERR));
	good(sent(&r[1], URN_WC_WR_FLUSH_ERR));
	do_write(&r[2], 10);
	bad(sent(&r[2], URN_WC_SUCCESS));
	setup(NULL);
	r[0] = post(MODEL_WRITE, 10, WIN);
	model_ended(m, a);
	good(sent(&r[0], URN_WC_WR_FLUSH_ERR));
	bad(model_received(m, b, &(struct model_completion){.status = URN_WC_WR_FLUSH_ERR}));
}

/* A first part of a failed request took effect: whole packets from the first on, and nothing else. */
static void
torn(void **state)
{
	static const struct {
		uint32_t done;
		bool fine;
	} row[] = {{0, true}, {MTU, true}, {3 * MTU, true}, {1000, true}, {MTU + 1, false}, {999, false}};
	struct model_request r, next;

	(void)state;
	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		setup(NULL);
		model_wire_fails(m);
		r = post(MODEL_WRITE, 1000, WIN);
		do_write(&r, row[i].done);
		good(sent(&r, URN_WC_RETRY_EXC_ERR));
		check(model_end(m), !row[i].fine, __FILE__, __LINE__);
	}
	setup(NULL);
	model_wire_fails(m);
	r = post(MODEL_WRITE, 1000, WIN);
	next = post(MODEL_WRITE, 10, WIN + 2000);
	do_write(&r, MTU);
	do_write(&next, 10); /* behind one that is not whole */
	good(sent(&r, URN_WC_RETRY_EXC_ERR));
	good(sent(&next, URN_WC_WR_FLUSH_ERR));
	bad(model_end(m));
	setup(NULL);
	post_recv(0, 512);
	ram[1][RECV] ^= 1; /* no message came */
	model_ended(m, b);
	bad(received(0, 0, URN_WC_WR_FLUSH_ERR));
}

static void
datagrams(void **state)
{
	uint32_t id = model_datagram(m, 5, 1, 6, 100, 9);
	struct model_completion c = {.imm = id, .src = 5, .byte_len = 140};

	(void)state;
	memset(ram[1] + RECV, 0, 40);
	ram[1][RECV + 20] = 0x45;
	ram[1][RECV + 29] = 17;
	sim_fill(ram[1] + RECV + 40, 9, 0, 100);
	bad(model_datagram_came(m, 1, 7, RECV, &c, false)); /* to another */
	good(model_datagram_came(m, 1, 6, RECV, &c, false));
	bad(model_datagram_came(m, 1, 6, RECV, &c, false)); /* twice */
	good(model_datagram_came(m, 1, 6, RECV, &c, true));
	ram[1][RECV + 139] ^= 1;
	bad(model_datagram_came(m, 1, 6, RECV, &c, true));
	c.imm = id + 1;
	bad(model_datagram_came(m, 1, 6, RECV, &c, true));
}

static int
finish(void **state)
{
	(void)state;
	model_free(m);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(in_order_and_once, setup),
		cmocka_unit_test_setup(writes, setup),
		cmocka_unit_test_setup(reads, setup),
		cmocka_unit_test_setup(atomics_once, setup),
		cmocka_unit_test_setup(shared_counter, setup),
		cmocka_unit_test_setup(messages, setup),
		cmocka_unit_test_setup(write_before_message, setup),
		cmocka_unit_test_setup(late_bytes, setup),
		cmocka_unit_test_setup(deaf, setup),
		cmocka_unit_test_setup(failures_have_reasons, setup),
		cmocka_unit_test_setup(lost_by_chance, setup),
		cmocka_unit_test_setup(after_a_failure, setup),
		cmocka_unit_test_setup(torn, setup),
		cmocka_unit_test_setup(datagrams, setup),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, finish);
}
