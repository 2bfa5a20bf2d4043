/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory access between endpoints of two nodes, over real flows, from command to event (AM-2
 * to AM-4, AM-8, AM-9, AM-11). No call is made for the target: only engines turn.
 */
#include "am_rig.h"

#include "am/priv.h"

#include <errno.h>
#include <string.h>

/* ---- writes and reads */

/* AM-2, AM-3, AM-11: each engine of a node to each engine of the other, and to the own node. */
static void
writes_and_reads_arrive(void **state)
{
	struct am_end from[ENGINES], to[ADAPTERS][ENGINES];
	uint64_t key[ADAPTERS][ENGINES];

	(void)state;
	for (unsigned int v = 0; v < ENGINES; v++) {
		am_open(&from[v], 0, v);
		for (unsigned int a = 0; a < ADAPTERS; a++) {
			am_open(&to[a][v], a ? 2 : 1, v);
			key[a][v] = am_register(&to[a][v], URN_AM_ACCESS_ALL);
		}
	}
	for (unsigned int v = 0; v < ENGINES; v++)
		for (unsigned int i = 0; i < ADAPTERS * ENGINES; i++) {
			struct am_end *t = &to[i / ENGINES][i % ENGINES];

			am_fill(from[v].mem, 300, i + v);
			memset(t->mem, 0, MEM);
			am_command(&from[v], URN_AM_WRITE, t, 100, key[i / ENGINES][i % ENGINES], 0,
				   300);
			am_expect(&from[v], URN_AM_DONE, 300);
			assert_memory_equal(t->mem + 100, from[v].mem, 300);
			assert_int_equal(t->mem[99] | t->mem[400], 0);
			memset(from[v].mem + 1000, 0, 300);
			am_command(&from[v], URN_AM_READ, t, 100, key[i / ENGINES][i % ENGINES],
				   1000, 300);
			am_expect(&from[v], URN_AM_DONE, 300);
			assert_memory_equal(from[v].mem + 1000, t->mem + 100, 300);
		}
}

/* AM-4, AM-8: an operation longer than a packet is pipelined, the last packet shorter; a direct one
 * must fit a packet. */
static void
ways_are_chosen_by_length(void **state)
{
	struct am_end from, to;
	uint64_t key;

	(void)state;
	key = am_open_pair_all(&from, &to, 1);
	for (uint32_t len = 1; len < MEM; len = len * 5 + 3) {
		am_fill(from.mem, MEM, len);
		memset(to.mem, 0, MEM);
		am_command(&from, URN_AM_WRITE, &to, 1, key, 0, len);
		am_expect(&from, URN_AM_DONE, len);
		assert_memory_equal(to.mem + 1, from.mem, len);
		assert_int_equal(to.mem[0], 0);
		assert_int_equal(len + 1 < MEM ? to.mem[len + 1] : 0, 0);
		memset(from.mem, 0, len);
		am_command(&from, URN_AM_READ, &to, 1, key, 0, len);
		am_expect(&from, URN_AM_DONE, len);
		assert_memory_equal(to.mem + 1, from.mem, len);
	}
	am_command_way(&from, URN_AM_WRITE, URN_AM_DIRECT, &to, 0, key, 0, from.chunk);
	am_expect(&from, URN_AM_DONE, from.chunk);
	am_command_way(&from, URN_AM_WRITE, URN_AM_PIPELINED, &to, 0, key, 0, 5);
	am_expect(&from, URN_AM_DONE, 5);
	am_command_way(&from, URN_AM_WRITE, URN_AM_DIRECT, &to, 0, key, 0, from.chunk + 1);
	am_expect(&from, URN_AM_BAD_COMMAND, 0);
}

/* AM-8: the thresholds are those of the adapter's configuration. */
static void
thresholds_are_configured(void **state)
{
	static const struct {
		uint32_t len, tags;
	} t[] = {{499, 0}, {500, 0}, {1999, 0}, {2000, 1}, {5000, 2}};
	struct am_end from, to;
	uint64_t key;

	(void)state;
	am_open(&from, CLIENTS - 1, 0);
	am_open(&to, 0, 0);
	key = am_register(&to, URN_AM_ACCESS_ALL);
	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		am_command_way(&from, URN_AM_WRITE, URN_AM_AUTO, &to, 0, key, 0, t[i].len);
		am_expect(&from, URN_AM_DONE, t[i].len);
		assert_int_equal(am_counter(0, URN_C_AM_TAG_REQUESTS), t[i].tags);
	}
	/* A pipelined packet looks like a direct one. */
	assert_int_equal(urn_adapter_shard(rig_dp->adapter[1], 0)->am->pipelined_from, 500);
	assert_int_equal(urn_adapter_shard(rig_dp->adapter[1], 0)->am->tagged_from, 2000);
}

/* AM-2 to AM-6: a node answers from the address that was asked, whichever of its own that is. */
static void
each_address_of_a_node_answers(void **state)
{
	struct am_end from, to;
	uint64_t key;

	(void)state;
	key = am_open_pair_all(&from, &to, 1);
	for (uint32_t i = 0; i < URN_GIDS; i++)
		for (unsigned int way = URN_AM_DIRECT; way < URN_AM_WAYS; way++)
			for (unsigned int op = URN_AM_WRITE; op <= URN_AM_READ; op++) {
				struct urn_abi_am_cmd *c = am_next(&from, (uint8_t)op, (uint8_t)way,
								   &to, 0, key, 0, 1000);

				memcpy(c->node, rig_dp->adapter[to.node]->gid[i], 16);
				am_post(&from);
				am_expect(&from, URN_AM_DONE, 1000);
			}
}

/* Many operations under way: each has its event, and no more are taken than events have room. */
static void
each_command_has_one_event(void **state)
{
	struct am_end from, to;
	uint64_t key;

	(void)state;
	key = am_open_pair_all(&from, &to, 0);
	for (unsigned int i = 0; i < MEM; i++)
		from.mem[i] = (uint8_t)(i / 100);
	for (unsigned int i = 0; i < AM_ENTRIES; i++)
		am_command(&from, URN_AM_WRITE, &to, 100 * i, key, 100 * i, 100);
	rig_turns(2000);
	assert_int_equal(atomic_load(&from.ep->dp.events), AM_ENTRIES);
	/* Events are not read: a further command waits. */
	am_command(&from, URN_AM_WRITE, &to, 0, key, 0, 100);
	rig_turns(2000);
	assert_int_equal(atomic_load(&from.ep->dp.commands), AM_ENTRIES);
	for (unsigned int i = 0; i < AM_ENTRIES; i++)
		am_expect(&from, URN_AM_DONE, 100);
	am_ring(&from);
	am_expect(&from, URN_AM_DONE, 100);
	assert_memory_equal(to.mem, from.mem, 100 * AM_ENTRIES);
}

/* ---- refusals */

/* AM-9: wrong key, range or rights: an access error message names the reason, and not a byte moves.
 */
static void
access_is_checked(void **state)
{
	struct am_end from, to, other;
	uint64_t both, reads, others;

	(void)state;
	am_open_pair(&from, &to, 0);
	am_open(&other, 2, 0);
	both = am_register_part(&to, URN_AM_ACCESS_ALL, 1000, 1000);
	reads = am_register_part(&to, URN_AM_ACCESS_READ, 3000, 100);
	others = am_register(&other, URN_AM_ACCESS_ALL);
	am_fill(from.mem, MEM, 1);
	memset(to.mem, 0, MEM);
	am_refused(&from, URN_AM_WRITE, &to, 1000, both + 256, 10, URN_AM_BAD_KEY);
	am_refused(&from, URN_AM_WRITE, &to, 1000, others, 10, URN_AM_BAD_KEY);
	am_refused(&from, URN_AM_WRITE, &to, 1000, 0, 10, URN_AM_UNREGISTERED);
	am_refused(&from, URN_AM_WRITE, &to, 999, both, 10, URN_AM_RANGE);
	am_refused(&from, URN_AM_WRITE, &to, 1991, both, 10, URN_AM_RANGE);
	am_refused(&from, URN_AM_READ, &to, 1991, both, 10, URN_AM_RANGE);
	am_refused(&from, URN_AM_WRITE, &to, 3000, reads, 10, URN_AM_RIGHTS);
	am_refused(&from, URN_AM_READ, &to, 3095, reads, 6, URN_AM_RANGE);
	for (unsigned int i = 0; i < MEM; i++)
		assert_int_equal(to.mem[i], 0);
	am_command(&from, URN_AM_WRITE, &to, 1990, both, 0, 10);
	am_expect(&from, URN_AM_DONE, 10);
	assert_int_equal(am_counter(1, URN_C_AM_ACCESS), 8);
}

/* AM-9: a region that allows one access is not reached by another, by no way and in no mode of
 * replies. */
static void
each_access_needs_its_right(void **state)
{
	static const struct {
		uint8_t op, way, every;
		uint32_t len;
	} t[] = {{URN_AM_WRITE, URN_AM_DIRECT, 0, 1000},
		 {URN_AM_WRITE, URN_AM_PIPELINED, 0, 1000},
		 {URN_AM_WRITE, URN_AM_PIPELINED, 2, 1000},
		 {URN_AM_WRITE, URN_AM_PIPELINED, URN_AM_EVERY_TRANSFER, 1000},
		 {URN_AM_WRITE, URN_AM_TAGGED, 0, 1000},
		 {URN_AM_READ, URN_AM_DIRECT, 0, 50},
		 /* read at once */ {URN_AM_READ, URN_AM_DIRECT, 0, 1000},
		 {URN_AM_READ, URN_AM_PIPELINED, 0, 1000},
		 {URN_AM_READ, URN_AM_TAGGED, 0, 1000}};
	static const uint32_t access[] = {URN_AM_ACCESS_WRITE, URN_AM_ACCESS_READ,
					  URN_AM_ACCESS_ATOMIC};
	struct am_end from, to;

	(void)state;
	am_open_pair(&from, &to, 0);
	memset(from.mem, 0x11, 1000);
	for (unsigned int r = 0; r < RTE_DIM(access); r++) {
		uint64_t key = am_register(&to, access[r]);

		for (unsigned int i = 0; i < RTE_DIM(t); i++) {
			bool write = t[i].op == URN_AM_WRITE;
			bool may = access[r] == (write ? URN_AM_ACCESS_WRITE : URN_AM_ACCESS_READ);
			struct urn_abi_am_cmd *c = am_next(&from, t[i].op, t[i].way, &to, 0, key,
							   write ? 0 : 2000, t[i].len);

			c->every = t[i].every;
			memset(to.mem, 0, 1000);
			memset(from.mem + 2000, 0x22, 1000);
			am_post(&from);
			am_expect(&from, may ? URN_AM_DONE : URN_AM_RIGHTS, may ? t[i].len : 0);
			assert_int_equal(to.mem[t[i].len - 1], write && may ? 0x11 : 0);
			assert_int_equal(from.mem[1999 + t[i].len], !write && may ? 0 : 0x22);
		}
	}
}

/* AM-9: a range of the address space that wraps around, and commands that make no sense, end at
 * home. */
static void
bad_commands_end_at_once(void **state)
{
	struct am_end from, to;
	struct urn_abi_am_cmd *c;
	uint64_t key;

	(void)state;
	key = am_open_pair_all(&from, &to, 0);
	for (unsigned int i = 0; i < 9; i++) {
		c = am_next(&from, URN_AM_WRITE, 0, &to, 0, key, 0, 100);
		c->op = i == 0 ? 7 : c->op;
		c->way = i == 1 ? URN_AM_WAYS : 0;
		c->every = i == 2;
		c->way = i == 2 ? URN_AM_DIRECT : c->way; /* one packet, one reply */
		c->len = i == 3 ? 0 : i == 4 ? URN_AM_LEN_MAX + 1u : 100;
		c->qid = i == 5 ? 1ull << 32 : c->qid;
		c->remote = i == 6 ? UINT64_MAX - 98 : c->remote;
		if (i == 7)
			memset(c->node, 0, 16);
		c->lkey += i == 8;
		am_post(&from);
		am_expect(&from, i == 8 ? URN_AM_LOCAL : URN_AM_BAD_COMMAND, 0);
	}
	am_command(&from, URN_AM_WRITE, &to, 0, key, MEM - 10, 11);
	am_expect(&from, URN_AM_LOCAL, 0);
	assert_int_equal(am_counter(1, URN_C_AM_WRITES_RX), 0);
}

/* AM-9: a list of ranges: bytes of ranges that touch are one; a gap is no one's. */
static void
a_region_is_a_list_of_ranges(void **state)
{
	struct urn_abi_am_range *l;
	struct am_end from, to;
	uint64_t key;

	(void)state;
	am_open_pair(&from, &to, 0);
	l = urn_am_ranges(to.ep, AM_ENTRIES);
	for (unsigned int i = 0; i < 64; i++) /* 0-99, 200-299, ...; the last two touch */
		l[i] = (struct urn_abi_am_range){.addr = (uintptr_t)to.mem +
							 (i == 63 ? 62 * 200 + 100 : i * 200),
						 .len = 100,
						 .lkey = to.lkey};
	key = am_register_list(&to, URN_AM_ACCESS_ALL, 64);
	am_fill(from.mem, MEM, 3);
	for (unsigned int i = 0; i < 63; i++) {
		am_command(&from, URN_AM_WRITE, &to, i * 200, key, 0, 100);
		am_expect(&from, URN_AM_DONE, 100);
		am_refused(&from, URN_AM_WRITE, &to, i * 200, key, i == 62 ? 201 : 101,
			   URN_AM_RANGE);
		if (i < 62)
			am_refused(&from, URN_AM_WRITE, &to, i * 200 + 100, key, 1, URN_AM_RANGE);
	}
	am_command(&from, URN_AM_WRITE, &to, 62 * 200 + 50, key, 0, 150);
	am_expect(&from, URN_AM_DONE, 150);
}

/* AM-9: lists that are no lists are refused, and say which range is bad; memory of nobody is
 * refused. */
static void
bad_regions_are_refused(void **state)
{
	struct urn_abi_am_range *l;
	struct am_end to;

	(void)state;
	am_open(&to, 2, 0);
	l = urn_am_ranges(to.ep, AM_ENTRIES);
	for (unsigned int i = 0; i < 2; i++)
		l[i] = (struct urn_abi_am_range){
			.addr = (uintptr_t)to.mem + i * 100, .len = 100, .lkey = to.lkey};
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 2), 0);
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 0), ENOSPC);
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, AM_RANGES + 1), ENOSPC);
	assert_int_equal(am_register_err(&to, 0, 0, 1), EINVAL);
	assert_int_equal(am_register_err(&to, 8, 0, 1), EINVAL);
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 2, 1), EINVAL);
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, URN_AM_REG_SPACE, 1), EPERM);
	l[1].addr--;
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 2), EINVAL);
	l[1].addr = l[0].addr - 100;
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 2), EINVAL);
	l[0].len = 0;
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 1), EINVAL);
	l[0].len = UINT64_MAX;
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 1), EINVAL);
	l[0].len = MEM + 1;
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 1), EFAULT);
	l[0].len = 1;
	l[0].lkey += 256;
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, 0, 1), EFAULT);
}

/* AM-9: a key that its owner took back, and memory that was deregistered below a key, are reached
 * no more. */
static void
keys_are_revoked(void **state)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_DEREG}, mr = {.op = URN_CTL_DEREG_MR};
	struct am_end from, to;
	uint64_t one, two;

	(void)state;
	am_open_pair(&from, &to, 0);
	one = am_register(&to, URN_AM_ACCESS_ALL);
	two = am_register(&to, URN_AM_ACCESS_ALL);
	assert_true(one / URN_AM_REGIONS_MAX != two / URN_AM_REGIONS_MAX);
	req.handle = to.handle;
	req.am_dereg.key = one;
	rig_ask(2, &req);
	assert_int_equal(rig_call(2, &req).err, EINVAL);
	am_refused(&from, URN_AM_WRITE, &to, 0, one, 100, URN_AM_BAD_KEY);
	am_command(&from, URN_AM_WRITE, &to, 0, two, 0, 100);
	am_expect(&from, URN_AM_DONE, 100);
	/* In the midst of a long operation: it fails, and ends. */
	am_command(&from, URN_AM_WRITE, &to, 0, two, 0, MEM);
	rig_turns(2);
	mr.handle = to.lkey;
	rig_ask(2, &mr);
	am_expect_some(&from, URN_AM_BAD_KEY);
	am_refused(&from, URN_AM_READ, &to, 0, two, 100, URN_AM_BAD_KEY);
}

/* AM-9: memory without a key, where the node's configuration allows that, is what the endpoint
 * declared. */
static void
a_declared_space_needs_no_key(void **state)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_DEREG};
	struct am_end from, to;

	(void)state;
	am_open(&from, 2, 0);
	am_open(&to, 0, 0);
	am_list(&to, 512, 1024);
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, URN_AM_REG_SPACE, 1), 0);
	assert_int_equal(am_register_err(&to, URN_AM_ACCESS_ALL, URN_AM_REG_SPACE, 1), EEXIST);
	am_command(&from, URN_AM_WRITE, &to, 512, 0, 0, 1024);
	am_expect(&from, URN_AM_DONE, 1024);
	am_refused(&from, URN_AM_WRITE, &to, 511, 0, 2, URN_AM_RANGE);
	req.handle = to.handle;
	rig_ask(0, &req);
	am_refused(&from, URN_AM_WRITE, &to, 512, 0, 2, URN_AM_UNREGISTERED);
}

/* ---- ends */

/* An endpoint that has gone, and its slot's next one, are no target; a node that nobody has is
 * none. */
static void
a_target_that_is_not_there(void **state)
{
	struct am_end from, to, next;
	struct urn_abi_am_cmd *c;
	uint64_t key, qid;

	(void)state;
	key = am_open_pair_all(&from, &to, 1);
	qid = to.qid;
	am_close(&to);
	am_refused(&from, URN_AM_WRITE, &to, 0, key, 100, URN_AM_NO_ENDPOINT);
	am_open(&next, 2, 1);
	assert_int_equal(urn_am_qid_slot(next.qid), urn_am_qid_slot(qid));
	am_refused(&from, URN_AM_READ, &to, 0, key, 100, URN_AM_NO_ENDPOINT);
	c = am_next(&from, URN_AM_WRITE, 0, &next, 0, key, 0, 100);
	c->node[15] = 77;
	am_post(&from);
	am_expect_some(&from, URN_AM_NO_NODE);
}

/* A group of nodes is no target: no frame leaves for it, whatever the way. */
static void
a_group_is_no_target(void **state)
{
	static const uint8_t group[][16] = {{0xff, 2, [15] = 1}, {[10] = 0xff, 0xff, 224, 0, 0, 1}};
	struct am_end from, to;
	uint64_t key, sent;

	(void)state;
	key = am_open_pair_all(&from, &to, 0);
	am_command(&from, URN_AM_WRITE, &to, 0, key, 0, 100); /* the neighbour is known */
	am_expect(&from, URN_AM_DONE, 100);
	rig_turns(2000);
	sent = am_counter(0, URN_C_FLOW_TX);
	for (unsigned int i = 0; i < RTE_DIM(group); i++)
		for (unsigned int way = URN_AM_DIRECT; way < URN_AM_WAYS; way++) {
			struct urn_abi_am_cmd *c =
				am_next(&from, URN_AM_WRITE, (uint8_t)way, &to, 0, key, 0, 100);

			memcpy(c->node, group[i], 16);
			am_post(&from);
			am_expect_some(&from, URN_AM_NO_NODE);
		}
	assert_true(am_counter(0, URN_C_FLOW_TX) == sent);
}

/* An endpoint, and a client, end with operations under way: others are served, and nothing is left
 * behind. */
static void
ends_in_flight(void **state)
{
	struct am_end from, to, other;
	uint64_t key;

	(void)state;
	am_open(&other, 1, 0);
	am_open(&to, 2, 0);
	key = am_register(&to, URN_AM_ACCESS_ALL);
	for (unsigned int n = 0; n < 20; n++) {
		am_open(&from, 0, n);
		for (unsigned int i = 0; i < 4; i++)
			am_command(&from, i % 2 ? URN_AM_WRITE : URN_AM_READ, &to, 0, key, 0, MEM);
		rig_turns(n % 8);
		am_close(&from);
	}
	am_open(&from, 0, 1);
	for (unsigned int i = 0; i < 4; i++)
		am_command(&from, URN_AM_READ, &to, 0, key, 0, MEM);
	rig_turns(3);
	rig_channel[0]->close(rig_channel[0]->ctx);
	rig_channel[0] = NULL;
	am_command(&other, URN_AM_READ, &to, 0, key, 0, MEM);
	am_expect(&other, URN_AM_DONE, MEM);
	assert_memory_equal(other.mem, to.mem, MEM);
	assert_int_equal(urn_am_count(urn_adapter_shard(rig_dp->adapter[0], 0)->am), 1);
	assert_int_equal(urn_am_count(urn_adapter_shard(rig_dp->adapter[0], 1)->am), 0);
}

/* The target ends with an operation under way: the operation ends, too, with the reason. */
static void
the_target_ends_in_flight(void **state)
{
	struct am_end from, to;
	uint64_t key;

	(void)state;
	key = am_open_pair_all(&from, &to, 0);
	am_command(&from, URN_AM_WRITE, &to, 0, key, 0, MEM);
	rig_turns(2);
	rig_channel[2]->close(rig_channel[2]->ctx);
	rig_channel[2] = NULL;
	am_expect_some(&from, URN_AM_NO_ENDPOINT);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, am_setup, am_teardown)
	const struct CMUnitTest tests[] = {
		T(writes_and_reads_arrive),
		T(ways_are_chosen_by_length),
		T(thresholds_are_configured),
		T(each_address_of_a_node_answers),
		T(each_command_has_one_event),
		T(access_is_checked),
		T(each_access_needs_its_right),
		T(bad_commands_end_at_once),
		T(a_region_is_a_list_of_ranges),
		T(bad_regions_are_refused),
		T(keys_are_revoked),
		T(a_declared_space_needs_no_key),
		T(a_target_that_is_not_there),
		T(a_group_is_no_target),
		T(ends_in_flight),
		T(the_target_ends_in_flight),
	};

	return cmocka_run_group_tests_name("ctl_am", tests, rig_setup_eal, rig_teardown_eal);
}
