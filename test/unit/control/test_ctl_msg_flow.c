/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between register sets, over real flows, from doorbell to ring and event (doorbell.md
 * DB-3 to DB-8); sets and clients that end meanwhile.
 */
#include "ctl_msg_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- messages */

/* DB-3, DB-4: from each engine of one node to each engine of the other, and to the own node. */
static void
messages_arrive(void **state)
{
	struct rig_set from[ENGINES], to[ADAPTERS][ENGINES];
	uint8_t fill = 0;

	(void)state;
	for (unsigned int v = 0; v < ENGINES; v++) {
		rig_open_set(&from[v], 0, v, 0);
		for (unsigned int a = 0; a < ADAPTERS; a++) {
			rig_open_set(&to[a][v], a ? 2 : 1, v, 0);
			rig_configure(&to[a][v]);
		}
	}
	for (unsigned int v = 0; v < ENGINES; v++)
		for (unsigned int a = 0; a < ADAPTERS; a++)
			for (unsigned int w = 0; w < ENGINES; w++) {
				const struct urn_abi_msg_entry *e = rig_entry(&to[a][w], v);

				rig_send_to(&from[v], a, to[a][w].rep.msg.qid, ++fill);
				assert_int_equal(rig_answered(&from[v]), URN_MSG_DONE);
				assert_int_equal(atomic_load(&to[a][w].regs->rstat.tail), v + 1);
				assert_int_equal(e->len, 100);
				assert_true(e->qid == from[v].rep.msg.qid);
				assert_memory_equal(e->node, rig_dp->adapter[0]->gid[1], 16);
				assert_int_equal(((const uint8_t *)(e + 1))[99], fill);
			}
}

/* A name leads to the adapter's first engine, wherever the message comes from; the answer finds its
 * way back. */
static void
messages_by_name(void **state)
{
	struct urn_abi_rep rep;
	struct rig_set a, b;

	(void)state;
	rig_open_set(&a, 0, 1, 0);
	rig_open_set(&b, 2, 0, URN_MSG_OPEN_NAMED);
	rig_configure(&a);
	rig_configure(&b);
	assert_int_equal(rig_bind_name(&b, 53, 0, &rep), 0);
	rig_send_to(&a, 1, URN_MSG_NAME(53), 1);
	assert_int_equal(rig_answered(&a), URN_MSG_DONE);
	rig_send_to(&b, 0, rig_entry(&b, 0)->qid, 2);
	assert_int_equal(rig_answered(&b), URN_MSG_DONE);
	assert_true(rig_entry(&a, 0)->qid == URN_MSG_NAME(53));
	rig_send_to(&a, 1, URN_MSG_NAME(54), 1);
	assert_int_equal(rig_answered(&a), URN_MSG_NO_QUEUE);
}

/* DB-5: a full queue answers its sender; the other queue of the same reader takes messages
 * meanwhile. */
static void
a_full_queue_answers(void **state)
{
	struct rig_set from, full, other;

	(void)state;
	rig_open_set(&from, 0, 0, 0);
	rig_open_set(&full, 2, 0, 0);
	rig_open_set(&other, 2, 0, 0);
	rig_configure(&full);
	rig_configure(&other);
	for (unsigned int i = 0; i < ENTRIES; i++) {
		rig_send_to(&from, 1, full.rep.msg.qid, 1);
		assert_int_equal(rig_answered(&from), URN_MSG_DONE);
	}
	rig_send_to(&from, 1, full.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_QUEUE_FULL);
	rig_send_to(&from, 1, other.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_DONE);
	atomic_store(&full.regs->ctrl.head, 1);
	rig_send_to(&from, 1, full.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_DONE);
}

/* Messages to a queue that was closed, and to its slot's next owner, find no queue. */
static void
a_closed_queue_takes_nothing(void **state)
{
	struct rig_set from, to, next;

	(void)state;
	rig_open_set(&from, 0, 0, 0);
	rig_open_set(&to, 1, 1, 0);
	rig_configure(&to);
	assert_int_equal(rig_close_set(&to), 0);
	rig_send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_NO_QUEUE);
	rig_open_set(&next, 1, 1, 0);
	rig_configure(&next);
	assert_int_equal(urn_msg_qid_slot(next.rep.msg.qid), urn_msg_qid_slot(to.rep.msg.qid));
	rig_send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_NO_QUEUE);
	assert_int_equal(atomic_load(&next.regs->rstat.tail), 0);
}

/* DB-8: the event goes to the channel with handle and cookie, once; without room it comes later. */
static void
events_are_written(void **state)
{
	struct urn_abi_req req = rig_open_req(0, 0);
	struct urn_abi_event ev, junk = {.handle = 1};
	struct urn_abi_rep rep;
	struct rig_set from, to;
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
	req.msg_open.channel_fd = fd[1];
	rep = rig_ask(1, &req);
	rig_adopt(&to, 1, &rep);
	rig_open_set(&from, 0, 0, 0);
	rig_configure(&to);
	atomic_store(&to.regs->conf.arm, 1);
	rig_send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_DONE);
	rig_turns(2);
	assert_int_equal(read(fd[0], &ev, sizeof(ev)), sizeof(ev));
	assert_int_equal(ev.type, URN_EVENT_MSG);
	assert_int_equal(ev.handle, to.rep.handle);
	assert_int_equal(ev.cookie, 99);
	rig_send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(rig_answered(&from), URN_MSG_DONE);
	rig_turns(2);
	assert_int_equal(read(fd[0], &ev, sizeof(ev)), -1);
	while (write(fd[1], &junk, sizeof(junk)) > 0)
		;
	atomic_store(&to.regs->conf.arm, 1); /* messages wait: rung for */
	rig_ring(&to);
	rig_turns(1000);
	assert_int_equal(atomic_load(&to.regs->rstat.pending), 1);
	while (read(fd[0], &ev, sizeof(ev)) > 0)
		assert_int_equal(ev.handle, junk.handle);
	rig_turns(1000);
	assert_int_equal(read(fd[0], &ev, sizeof(ev)), sizeof(ev));
	assert_int_equal(ev.type, URN_EVENT_MSG);
	assert_int_equal(atomic_load(&to.regs->rstat.pending), 2);
	assert_int_equal(rig_close_set(&to), 0);
	close(fd[0]);
	close(fd[1]);
}

/* ---- ends */

/* A set that ends with its message in flight: others are served, and nothing is left behind. */
static void
a_set_ends_in_flight(void **state)
{
	struct rig_set from, to, other;

	(void)state;
	rig_open_set(&other, 1, 0, 0);
	rig_open_set(&to, 2, 0, 0);
	rig_configure(&to);
	for (unsigned int n = 0; n < 40; n++) {
		rig_open_set(&from, 0, n, 0);
		rig_send_to(&from, 1, to.rep.msg.qid, 1);
		rig_turns(n % 8);
		assert_int_equal(rig_close_set(&from), 0);
		memset(from.arena, 0xee, ARENA);
		atomic_store(&to.regs->ctrl.head, atomic_load(&to.regs->rstat.tail));
	}
	rig_send_to(&other, 1, to.rep.msg.qid, 7);
	assert_int_equal(rig_answered(&other), URN_MSG_DONE);
	assert_int_equal(
		((const uint8_t *)(rig_entry(&to, atomic_load(&to.regs->rstat.tail) - 1) + 1))[0],
		7);
}

/* A client that dies with messages in flight, in retries, and with readers armed. */
static void
a_client_dies_in_flight(void **state)
{
	struct rig_set s[60], other;

	(void)state;
	rig_open_set(&other, 1, 1, 0);
	rig_configure(&other);
	for (unsigned int i = 0; i < 60; i++) {
		rig_open_set(&s[i], 0, i, i % 3 == 0 ? URN_MSG_OPEN_NAMED : 0);
		rig_configure(&s[i]);
		atomic_store(&s[i].regs->conf.arm, 1);
		s[i].regs->send.retries = 65535;
		s[i].regs->send.retry_kinds = 0xff;
		rig_send_to(&s[i], i % 2, i % 4 ? other.rep.msg.qid : 1ull << 40, 1);
		rig_turns(i % 3);
		rig_send_to(&other, 0, s[i].rep.msg.qid, 1);
	}
	rig_channel[0]->close(rig_channel[0]->ctx);
	rig_channel[0] = NULL;
	rig_turns(10);
	(void)rig_answered(&other);
	atomic_store(&other.regs->ctrl.head, atomic_load(&other.regs->rstat.tail));
	rig_send_to(&other, 0, other.rep.msg.qid, 9);
	assert_int_equal(rig_answered(&other), URN_MSG_DONE);
	assert_int_equal(urn_msg_count(urn_adapter_shard(rig_dp->adapter[0], 0)->msg), 0);
	assert_int_equal(urn_msg_count(urn_adapter_shard(rig_dp->adapter[0], 1)->msg), 1);
}

/*
 * A stranger that scribbles over its area, rings every doorbell, and dies with all of that under
 * way: a reader and a sender beside it see nothing of it.
 */
static void
a_hostile_client_harms_nobody(void **state)
{
	static uint32_t handle[64];
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE};
	struct urn_ledger ledger;
	struct urn_abi_rep rep;
	struct rig_set from, to;
	unsigned int rnd = 1;

	(void)state;
	urn_quota_ledger_init(&ledger, 0);
	rig_open_set(&from, 0, 0, 0);
	rig_open_set(&to, 1, 1, 0);
	rig_configure(&to);
	for (unsigned int life = 0; life < 5; life++) {
		struct urn_client *c = rig_stranger(&ledger, 1000, 60, 60);
		unsigned int n = rig_open_all(c, &rep, handle);

		for (unsigned int k = 0; k < 300; k++) {
			for (unsigned int i = 0; i < 2000; i++) {
				rnd = rnd * 1103515245u + 12345u;
				c->area.base[(rnd >> 4) % (size_t)c->area.next] =
					(uint8_t)(rnd >> 16);
			}
			rig_turns(1);
			if (k % 10 == 5) {
				req.handle = handle[k / 10 % n];
				urn_ctl_call(c, &req, &rep);
			}
			if (k % 20 == 0) {
				rig_send_to(&from, 0, to.rep.msg.qid, (uint8_t)k);
				assert_int_equal(rig_answered(&from), URN_MSG_DONE);
				atomic_store(&to.regs->ctrl.head,
					     atomic_load(&to.regs->rstat.tail));
			}
		}
		urn_client_destroy(c);
		rig_turns(5);
	}
	assert_int_equal(atomic_load(&to.regs->rstat.tail), 75);
	urn_ledger_fini(&ledger);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(messages_arrive),	    T(messages_by_name),
		T(a_full_queue_answers),    T(a_closed_queue_takes_nothing),
		T(events_are_written),	    T(a_set_ends_in_flight),
		T(a_client_dies_in_flight), T(a_hostile_client_harms_nobody),
	};

	return cmocka_run_group_tests_name("ctl_msg_flow", tests, rig_setup_eal, rig_teardown_eal);
}
