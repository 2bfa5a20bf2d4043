/* SPDX-License-Identifier: BSD-3-Clause */
#include "memx_bench.h"
#include "wire/hdr.h"
#include "wire/icrc.h"

#include <pthread.h>

/* architecture rule 1: mapped memory is answered at once, and moved byte for byte */
static void
test_immediate(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {.pending = 8};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint8_t *model = malloc(BYTES);
	struct urn_memop op[16];

	memx_fill(f, f->bytes, BYTES);
	memcpy(model, f->bytes, BYTES);
	for (int round = 0; round < 2000; round++) {
		uint32_t n = 1 + test_random(&f->rng) % 16;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t len = test_random(&f->rng) % (FRAME + 1);

			memx_fill(f, f->frame[i].data, FRAME);
			op[i] = memx_op(f, test_random(&f->rng) & 1, i,
					test_random(&f->rng) % (BYTES - FRAME), len);
			if (op[i].kind == URN_MEMOP_PLACE)
				memcpy(model + (op[i].addr - IOVA), op[i].frame, len);
		}
		assert_int_equal(urn_memx_execute(x, op, n), 0);
		assert_memory_equal(model, f->bytes, BYTES);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(op[i].status, URN_MEMOP_DONE);
	}
	assert_int_equal(urn_memx_poll(x, op, 16), 0);
	assert_int_equal(urn_memx_holds(x, NULL), 0);
	free(model);
	urn_memx_destroy(x);
}

/* Gathers fill their frame and no byte beside it; length 0 needs no region. */
static void
test_gather(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	struct urn_memop op[2];

	memx_fill(f, f->bytes, BYTES);
	for (uint32_t len = 0; len < FRAME - 2; len++) {
		memset(f->frame[0].data, 0xee, FRAME);
		op[0] = memx_op(f, URN_MEMOP_GATHER, 0, 1000 + len, len);
		op[0].frame++;
		op[1] = (struct urn_memop){.kind = URN_MEMOP_PLACE};
		assert_int_equal(urn_memx_execute(x, op, 2), 0);
		assert_int_equal(op[1].status, URN_MEMOP_DONE);
		assert_int_equal(f->frame[0].data[0], 0xee);
		assert_memory_equal(f->frame[0].data + 1, f->bytes + 1000 + len, len);
		assert_int_equal(f->frame[0].data[len + 1], 0xee);
	}
	urn_memx_destroy(x);
	urn_memx_destroy(NULL);
}

/* A packet as it comes from its pool, with room for the headers, a payload and the ICRC. */
struct long_frame {
	struct rte_mbuf m;
	uint8_t priv[URN_PKT_PRIV];
	uint8_t headroom[RTE_PKTMBUF_HEADROOM];
	uint8_t data[URN_ETH_BYTES + 80 + 4200];
};

/*
 * A gather with ICRC leaves the frame as a gather and urn_icrc() do, pad included, and no byte
 * beside it; deferred as well as at once.
 */
static void
check_gather_icrc(struct fix *f, struct urn_memx *x, struct long_frame *fr, uint32_t len, int ipv6)
{
	uint32_t head = URN_ETH_BYTES + (ipv6 ? 60 + 16 : 40 + len % 3 * 4), pad = -len & 3;
	struct urn_memop op = memx_op(f, URN_MEMOP_GATHER_ICRC, 0, 1000 + len, len);
	uint8_t *payload = fr->data + head;
	unsigned int left;
	uint32_t crc;

	memset(fr->data, 0xee, sizeof(fr->data));
	memx_fill(f, fr->data, head);
	fr->data[URN_ETH_BYTES] = ipv6 ? 0x61 : 0x45;
	memset(payload + len, 0, pad);
	op.m = &fr->m;
	op.frame = payload;
	left = urn_memx_execute(x, &op, 1);
	while (left)
		left -= urn_memx_poll(x, &op, 1);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_memory_equal(payload, f->bytes + 1000 + len, len);
	for (uint32_t i = 0; i < pad; i++)
		assert_int_equal(payload[len + i], 0);
	memcpy(&crc, payload + len + pad, 4);
	assert_int_equal(rte_le_to_cpu_32(crc), urn_icrc(fr->data + URN_ETH_BYTES,
							 head - URN_ETH_BYTES + len + pad, ipv6));
	assert_int_equal(payload[len + pad + 4], 0xee);
}

static void
test_gather_icrc(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config at_once = {0};
	struct urn_memx_config late = {
		.pending = 4, .delay_seed = 3, .delay_percent = 50, .delay_polls = 3};
	struct urn_memx *x[2] = {urn_memx_create(&at_once), urn_memx_create(&late)};
	struct long_frame *fr = aligned_alloc(64, (sizeof(*fr) + 63) & ~(size_t)63);

	assert_non_null(fr);
	assert_ptr_equal(urn_pkt_fresh(&fr->m), fr->data);
	memx_fill(f, f->bytes, BYTES);
	for (uint32_t len = 1; len <= 4096; len += len < 300 ? 1 : 41)
		for (int i = 0; i < 4; i++)
			check_gather_icrc(f, x[i & 1], fr, len, i >> 1);
	check_gather_icrc(f, x[0], fr, 4096, 0);
	free(fr);
	urn_memx_destroy(x[0]);
	urn_memx_destroy(x[1]);
}

/* IBTA 9.4.5: atomics, old value back, host byte order in memory */
static void
test_atomics(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint64_t *target = (uint64_t *)(f->bytes + 64), *word = memx_words(f, 0);
	struct urn_memop op = memx_op(f, URN_MEMOP_FETCH_ADD, 0, 64, 8);

	*target = 0x1122334455667788u;
	word[0] = 0x10;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_true(word[0] == 0x1122334455667788u && *target == 0x1122334455667798u);
	*target = UINT64_MAX;
	word[0] = 3;
	urn_memx_execute(x, &op, 1);
	assert_true(word[0] == UINT64_MAX && *target == 2);

	op.kind = URN_MEMOP_CMP_SWAP;
	word[0] = 2;
	word[1] = 0xabcd;
	urn_memx_execute(x, &op, 1);
	assert_true(word[0] == 2 && *target == 0xabcd);
	word[0] = 2; /* does not compare equal */
	word[1] = 0xffff;
	urn_memx_execute(x, &op, 1);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_true(word[0] == 0xabcd && *target == 0xabcd);
	urn_memx_destroy(x);
}

/* mem.h: unaligned atomics and unknown kinds fail and change nothing */
static void
test_impossible(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint8_t before[64];
	struct urn_memop op;

	memx_fill(f, f->bytes, 64);
	memcpy(before, f->bytes, 64);
	for (int kind = URN_MEMOP_CMP_SWAP; kind < 256; kind++) {
		if (kind == URN_MEMOP_FENCE || kind == URN_MEMOP_GATHER_ICRC)
			continue;
		op = memx_op(f, kind, 0, kind % 8 ? kind % 8 : 1, 8);
		memx_words(f, 0)[0] = 5;
		assert_int_equal(urn_memx_execute(x, &op, 1), 1);
		assert_int_equal(op.status, URN_MEMOP_FAILED);
		assert_int_equal(memx_words(f, 0)[0], 5);
		assert_memory_equal(f->bytes, before, 64);
	}
	urn_memx_destroy(x);
}

struct adder {
	struct fix *f;
	uint32_t frame;
};

static void *
add_many(void *arg)
{
	struct adder *a = arg;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);

	for (int i = 0; i < 20000; i++) {
		struct urn_memop op = memx_op(a->f, URN_MEMOP_FETCH_ADD, a->frame, 0, 8);

		memx_words(a->f, a->frame)[0] = 1;
		urn_memx_execute(x, &op, 1);
	}
	urn_memx_destroy(x);
	return NULL;
}

/* Atomics of several engines on one word: none is lost. */
static void
test_atomics_of_engines(void **state)
{
	struct fix *f = *state;
	struct adder a = {f, 1}, b = {f, 2};
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, add_many, &a), 0);
	add_many(&b);
	pthread_join(t, NULL);
	assert_int_equal(*(uint64_t *)f->bytes, 40000);
}

/* A window's operations go to the region it is bound to, and outlive the binding. */
static void
test_through_window(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = 4, .delay_seed = 1, .delay_percent = 100, .delay_polls = 1};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint32_t mr, mw = test_mw(f->mem, f->pd, 2);
	struct urn_memop op = memx_op(f, URN_MEMOP_PLACE, 0, 0, 8);
	struct urn_region *region;

	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->more, 4096, 1 << 20, RIGHTS, &mr), 0);
	assert_int_equal(urn_mem_bind(f->mem, 2, mw, mw, mr, (1 << 20) + 512, 64,
				      URN_ACCESS_REMOTE_WRITE, f->pd, 3, NULL),
			 URN_MEM_OK);
	op.addr = (1 << 20) + 520;
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, 3, op.addr, 8, URN_ACCESS_REMOTE_WRITE, 1,
				       &op.region),
			 URN_MEM_OK);
	memset(f->frame[0].data, 0x99, 8);
	assert_int_equal(urn_memx_execute(x, &op, 1), 1);
	assert_int_equal(urn_mem_invalidate(f->mem, mw, f->pd, 3, NULL), URN_MEM_OK);
	assert_int_equal(urn_mem_kill_mr(f->mem, mr, &region), 0);
	assert_int_equal(urn_memx_holds(x, region), 1);
	assert_int_equal(urn_memx_poll(x, &op, 1), 1);
	assert_int_equal(f->more[520], 0x99);
	assert_int_equal(f->more[519], 0);
	assert_int_equal(f->more[528], 0);
	assert_int_equal(urn_memx_holds(x, region), 0);
	urn_mem_free_mr(f->mem, region);
	urn_memx_destroy(x);
}

/* The log has an atomic's intended change, and that it is done; also when others change the memory. */
static void
test_log(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint64_t *word = (uint64_t *)(f->bytes + 64), *w = memx_words(f, 0);
	struct urn_abi_atomic log = {0};
	struct urn_memop op = memx_op(f, URN_MEMOP_FETCH_ADD, 0, 64, 8);

	op.frame = (uint8_t *)&log;
	urn_pkt(op.m)->psn = 0x123456;
	*word = 40;
	w[0] = 2;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(*word, 42);
	assert_int_equal(w[0], 40);
	assert_int_equal(log.addr, IOVA + 64);
	assert_int_equal(log.old, 40);
	assert_int_equal(log.new, 42);
	assert_int_equal(log.psn, 0x123456);
	assert_int_equal(log.state, URN_ATOMIC_DONE);

	op.kind = URN_MEMOP_CMP_SWAP;
	w[0] = 41; /* the word is 42: nothing happens, and the log says so */
	w[1] = 7;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(*word, 42);
	assert_int_equal(w[0], 42);
	assert_int_equal(log.old, 42);
	assert_int_equal(log.new, 42);
	w[0] = 42;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(*word, 7);
	assert_int_equal(w[0], 42);
	assert_int_equal(log.new, 7);
	assert_int_equal(log.state, URN_ATOMIC_DONE);
	urn_memx_destroy(x);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, memx_setup, memx_teardown)
	const struct CMUnitTest tests[] = {
		T(test_log),
		T(test_immediate),
		T(test_gather),
		T(test_gather_icrc),
		T(test_atomics),
		T(test_impossible),
		T(test_atomics_of_engines),
		T(test_through_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
