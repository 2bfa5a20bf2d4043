/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues whose events are late: one is removed without a look at the others, which get their events
 * in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CQS = 40, PAGE = 4096 };

static struct urn_tp tp;
static struct urn_shard shard;
static struct urn_abi_cq hdr[CQS];
static uint8_t *page; /* one page for each queue */
static int out, in;   /* ends of the channel: the engine's and the program's */

static struct urn_cq *
cq(unsigned int i)
{
	return (void *)(page + (size_t)i * PAGE);
}

static int
setup(void **state)
{
	int pair[2];

	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(hdr, 0, sizeof(hdr));
	shard = (struct urn_shard){.tp = &tp};
	urn_shard_init_lists(&shard);
	tp.now = 1000;
	page = mmap(NULL, CQS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	out = pair[0];
	in = pair[1];
	for (unsigned int i = 0; i < CQS; i++)
		*cq(i) = (struct urn_cq){.hdr = &hdr[i], .mask = 3, .handle = i + 1, .channel_fd = out};
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	munmap(page, CQS * PAGE);
	close(out);
	close(in);
	return 0;
}

/* Act as the transport does for a completion of a queue that is armed. */
static void
touch(unsigned int i)
{
	atomic_store(&hdr[i].arm, URN_CQ_ARM_NEXT);
	cq(i)->touched = true;
	cq(i)->next = tp.touched;
	tp.touched = cq(i);
}

static void
fill(void)
{
	const struct urn_abi_event junk = {.handle = UINT32_MAX};

	while (send(out, &junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
}

/* returns: the next event's queue; 0: there is none */
static uint32_t
told(void)
{
	struct urn_abi_event ev = {.handle = UINT32_MAX};

	while (ev.handle == UINT32_MAX)
		if (recv(in, &ev, sizeof(ev), MSG_DONTWAIT) != (ssize_t)sizeof(ev))
			return 0;
	return ev.handle;
}

/* All queues but the first are late, in the order of their numbers. */
static void
make_late(void)
{
	fill();
	for (unsigned int i = CQS; i-- > 1;)
		touch(i);
	urn_shard_notify(&shard);
	assert_int_equal(tp.c.v[URN_C_EVENT_LATE], CQS - 1);
	assert_null(tp.touched);
}

/* Forget a queue, while only it and its neighbours can be accessed: any other is out of bounds. */
static void
forget(unsigned int i, unsigned int left, unsigned int right)
{
	for (unsigned int k = 0; k < CQS; k++)
		if (k != i && k != left && k != right)
			assert_int_equal(mprotect(cq(k), PAGE, PROT_NONE), 0);
	urn_shard_forget_cq(&shard, cq(i));
	assert_int_equal(mprotect(page, CQS * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(cq(i), 0xa5, sizeof(*cq(i)));
}

/* The cost to forget one queue does not grow with the number of late ones. */
static void
forgets_without_a_walk(void **state)
{
	(void)state;
	make_late();
	forget(20, 19, 21);  /* in the middle */
	forget(21, 19, 22);  /* beside a gap */
	forget(1, 2, 2);     /* the oldest */
	forget(39, 38, 38);  /* the newest */
	forget(0, 0, 0);     /* one that is not late */
	while (told() != 0)
		;
	tp.now += 2000000;
	urn_shard_notify(&shard);
	for (uint32_t i = 2; i < 39; i++)
		if (i != 20 && i != 21)
			assert_int_equal(told(), i + 1);
	assert_int_equal(told(), 0);
	assert_true(TAILQ_EMPTY(&shard.untold));
}

/* Forget the only late queue; then others can be late again. */
static void
forgets_the_only_one(void **state)
{
	(void)state;
	fill();
	touch(3);
	urn_shard_notify(&shard);
	forget(3, 3, 3);
	assert_true(TAILQ_EMPTY(&shard.untold));
	touch(4);
	touch(5);
	urn_shard_notify(&shard);
	while (told() != 0)
		;
	tp.now += 2000000;
	urn_shard_notify(&shard);
	assert_int_equal(told(), 6);
	assert_int_equal(told(), 5);
	assert_int_equal(told(), 0);
}

/* Completions have come since the last turn: the queue's event goes out, as the others' do, or is forgotten. */
static void
forgets_one_of_this_turn(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		touch(i);
	urn_shard_forget_cq(&shard, cq(1));
	memset(cq(1), 0xa5, sizeof(*cq(1)));
	urn_shard_notify(&shard);
	assert_int_equal(told(), 3);
	assert_int_equal(told(), 2);
	assert_int_equal(told(), 1);
	assert_int_equal(told(), 0);
	/* The same where there is no room. */
	fill();
	for (unsigned int i = 2; i < 5; i++)
		touch(i);
	urn_shard_forget_cq(&shard, cq(3));
	memset(cq(3), 0xa5, sizeof(*cq(3)));
	while (told() != 0)
		;
	tp.now += 2000000;
	urn_shard_notify(&shard);
	assert_int_equal(told(), 5);
	assert_int_equal(told(), 3);
	assert_int_equal(told(), 0);
}

/* ---- asynchronous events, of clients */

static struct urn_engine_client client[CQS];

static struct urn_client_shard *
share(unsigned int i)
{
	return (void *)(page + (size_t)i * PAGE);
}

static void
tell(unsigned int i, uint64_t cookie)
{
	tp.event[tp.event_n++] = (struct urn_tp_event){
		.ev = {.type = URN_EVENT_PORT_ERR, .handle = i + 1, .cookie = cookie},
		.owner = &share(i)->share};
}

/* The same for clients: the cost to remove one does not grow with the number of those whose events are late. */
static void
forgets_a_client_without_a_walk(void **state)
{
	static const unsigned int goes[] = {20, 21, 0, CQS - 1};

	(void)state;
	memset(page, 0, CQS * PAGE);
	for (unsigned int i = 0; i < CQS; i++) {
		client[i] = (struct urn_engine_client){.share = {&share(i)->share}};
		atomic_store(&client[i].async_fd, out);
		share(i)->client = &client[i];
		share(i)->share.sibling = client[i].share;
		share(i)->shard = &shard;
	}
	fill();
	for (unsigned int i = 0; i < CQS; i++)
		tell(i, i);
	urn_shard_notify(&shard);
	assert_false(TAILQ_EMPTY(&shard.late_events));
	for (unsigned int g = 0; g < sizeof(goes) / sizeof(goes[0]); g++) {
		struct urn_client_shard *c = share(goes[g]), *next = TAILQ_NEXT(c, late_events),
					*prev = TAILQ_PREV(c, urn_late_clients, late_events);

		for (unsigned int k = 0; k < CQS; k++)
			if (share(k) != c && share(k) != next && share(k) != prev)
				assert_int_equal(mprotect(share(k), PAGE, PROT_NONE), 0);
		urn_shard_forget_events(&shard, share(goes[g]));
		assert_int_equal(mprotect(page, CQS * PAGE, PROT_READ | PROT_WRITE), 0);
		assert_null(share(goes[g])->late.ev);
		memset(share(goes[g]), 0xa5, sizeof(*c));
	}
	while (told() != 0)
		;
	tp.now += 2000000;
	urn_shard_notify(&shard);
	for (uint32_t i = 1; i < CQS - 1; i++)
		if (i != 20 && i != 21)
			assert_int_equal(told(), i + 1);
	assert_int_equal(told(), 0);
	assert_true(TAILQ_EMPTY(&shard.late_events));
	for (unsigned int i = 1; i < CQS - 1; i++)
		if (i != 20 && i != 21)
			urn_shard_forget_events(&shard, share(i)); /* memory that the shard allocated */
	/* The only one. */
	fill();
	tell(5, 0);
	urn_shard_notify(&shard);
	urn_shard_forget_events(&shard, share(5));
	assert_true(TAILQ_EMPTY(&shard.late_events));
}

/*
 * Another engine breaks a queue: that engine tells the client, or keeps the event for later, in the
 * client's share there, and writes nothing to the share on the queue's own engine.
 */
static void
keeps_an_event_in_its_own_share(void **state)
{
	const unsigned int owner = 0, breaker = 1;
	struct urn_cq broken = {.hdr = &hdr[0], .handle = 7, .cookie = 70};

	(void)state;
	memset(page, 0, CQS * PAGE);
	tp.cfg.engine = breaker;
	client[0] =
		(struct urn_engine_client){.share = {&share(owner)->share, &share(breaker)->share}};
	atomic_store(&client[0].async_fd, out);
	for (unsigned int e = owner; e <= breaker; e++) {
		share(e)->client = &client[0];
		share(e)->share.sibling = client[0].share;
	}
	broken.owner = &share(owner)->share;
	fill();
	assert_int_equal(mprotect(share(owner), PAGE, PROT_READ), 0);
	urn_tp_cq_break(&tp, &broken);
	assert_int_equal(tp.event_n, 1);
	assert_ptr_equal(tp.event[0].owner, &share(breaker)->share);
	urn_shard_notify(&shard);
	assert_ptr_equal(TAILQ_FIRST(&shard.late_events), share(breaker));
	while (told() != 0)
		;
	tp.now += 2000000;
	urn_shard_notify(&shard);
	assert_int_equal(told(), 7);
	assert_true(TAILQ_EMPTY(&shard.late_events));
	urn_shard_forget_events(&shard, share(breaker)); /* memory that the shard allocated */
}

/* Events of a share without a client, and of no share, go nowhere. */
static void
tells_nobody(void **state)
{
	struct urn_cq nobodys = {.hdr = &hdr[0], .handle = 7};

	(void)state;
	urn_tp_cq_break(&tp, &nobodys);
	urn_tp_event(&tp, URN_EVENT_QP_FATAL, 8, 80, &tp.nobodys);
	assert_int_equal(tp.event_n, 2);
	urn_shard_notify(&shard);
	assert_int_equal(tp.event_n, 0);
	assert_int_equal(told(), 0);
	assert_true(TAILQ_EMPTY(&shard.late_events));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(forgets_without_a_walk),	       TEST(forgets_the_only_one),
		TEST(forgets_one_of_this_turn),	       TEST(forgets_a_client_without_a_walk),
		TEST(keeps_an_event_in_its_own_share), TEST(tells_nobody),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
