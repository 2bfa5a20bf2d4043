/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tellers: a thread of the client's own pays for the client's watchers, events of a channel take
 * bounded memory, and nothing of a channel that has ended comes out of another
 * (doc/inside/trust.md, "A program with many watchers").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/teller.h"

#include <dirent.h>
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	PATIENCE = 60, /* seconds; only a broken teller needs that long */
	RECORD = sizeof(struct urn_abi_event),
	/* Records that a pair holds: each takes 512 bytes at least, and so does a batch of them. */
	INNER = URN_TELLER_INNER / 512 + 1,
	OUTER = (URN_TELLER_BASE / 512 + 1) * URN_TELLER_BATCH,
	ALL = INNER + URN_TELLER_QUEUE + OUTER,
	FEW = 20,     /* records for which an inner pair always has room */
	PIECE = 2048, /* bytes of the system's memory for a batch, at most */
};

/* ---- the system, as the teller's thread sees it */

static pid_t test_thread;
static _Atomic int no_memory; /* sends of the teller that find none */
static _Atomic uint64_t
	turn_ns; /* processor time that a turn of the teller takes; 0: the true one */
static _Atomic uint64_t rest_ns; /* the teller's latest rest */
static _Atomic bool long_rests;	 /* a rest of a second lasts until the teller is to end */

ssize_t __real_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_ppoll(struct pollfd *p, nfds_t n, const struct timespec *ts, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *ts, const sigset_t *mask);

ssize_t
__wrap_send(int fd, const void *p, size_t n, int flags)
{
	if (gettid() != test_thread && no_memory > 0) {
		no_memory--;
		errno = ENOBUFS;
		return -1;
	}
	return __real_send(fd, p, n, flags);
}

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	static _Atomic uint64_t used;
	uint64_t ns;

	if (id != CLOCK_THREAD_CPUTIME_ID || !turn_ns)
		return __real_clock_gettime(id, ts);
	ns = atomic_fetch_add(&used, turn_ns) + turn_ns;
	*ts = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u)};
	return 0;
}

int
__wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *ts, const sigset_t *mask)
{
	rest_ns = (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
	return __real_ppoll(p, n, long_rests && ts->tv_sec ? NULL : ts, mask);
}

/* ---- ways */

static struct urn_teller_counts counts;
static struct urn_teller *teller;

/* A way, and a client at its end. */
struct line {
	struct urn_teller_way *way;
	int near; /* engines' */
	int end;  /* the client's */
	int dup;  /* the client's descriptor of the teller's end */
};

static struct line
line_open(bool merges)
{
	struct line l;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	l.end = fd[0];
	l.dup = dup(fd[1]);
	assert_int_equal(urn_teller_add(teller, fd[1], merges, &l.way, &l.near), 0);
	assert_int_not_equal(l.near, fd[1]); /* engines do not write to what the client has */
	return l;
}

/* The client closes its ends. */
static void
line_hang_up(struct line *l)
{
	close(l->end);
	close(l->dup);
}

static void
line_close(struct line *l)
{
	urn_teller_remove(teller, l->way);
	line_hang_up(l);
}

/* Write a record as an engine does. returns: 0 or an errno value */
static int
say(const struct line *l, uint32_t type, uint32_t handle)
{
	const struct urn_abi_event ev = {.type = type, .handle = handle, .cookie = ~handle};

	if (send(l->near, &ev, RECORD, MSG_DONTWAIT | MSG_NOSIGNAL) == RECORD)
		return 0;
	return errno;
}

static struct urn_abi_event
next(const struct line *l)
{
	struct pollfd p = {.fd = l->end, .events = POLLIN};
	struct urn_abi_event ev;

	assert_int_equal(poll(&p, 1, PATIENCE * 1000), 1);
	assert_int_equal(recv(l->end, &ev, RECORD, MSG_DONTWAIT), RECORD);
	return ev;
}

/* Read the next record, and expect one of clutter(). */
static void
hear_own(const struct line *l)
{
	assert_int_equal(next(l).type, URN_EVENT_MSG);
}

/* Read the next record, and expect it. */
static void
hear(const struct line *l, uint32_t type, uint32_t handle)
{
	struct urn_abi_event ev = next(l);

	assert_int_equal(ev.type, type);
	assert_int_equal(ev.handle, handle);
	assert_true(ev.cookie == (uint32_t)~handle);
}

/* Bytes that a socket's system calls a number of. */
static unsigned int
bytes(int fd, unsigned long what)
{
	int n;

	assert_int_equal(ioctl(fd, what, &n), 0);
	return (unsigned int)n;
}

/* Records that the client has not read. */
static unsigned int
unread(const struct line *l)
{
	return bytes(l->end, FIONREAD) / RECORD;
}

/* Bytes of the system's memory that these take. */
static unsigned int
taken(const struct line *l)
{
	return bytes(l->dup, SIOCOUTQ);
}

static void
await_count(const _Atomic uint64_t *count, uint64_t n)
{
	time_t start = time(NULL);

	while (*count < n) {
		assert_true(time(NULL) - start < PATIENCE);
		usleep(100);
	}
}

/* Write records from number `from` on until there is no room for long. returns: the next number */
static uint32_t
fill(const struct line *l, uint32_t type, uint32_t from)
{
	for (unsigned int tries = 0; tries < 100;) {
		int rc = say(l, type, from);

		assert_true(rc == 0 || rc == EAGAIN);
		from += rc == 0;
		tries = rc == 0 ? 0 : tries + 1;
		if (rc == EAGAIN)
			usleep(100);
	}
	return from;
}

/* ---- this process */

static unsigned int
entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned int fds, threads;

static int
setup(void **state)
{
	(void)state;
	test_thread = gettid();
	fds = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	memset(&counts, 0, sizeof(counts));
	turn_ns = rest_ns = 0;
	long_rests = false;
	no_memory = 0;
	teller = urn_teller_create(&counts, NULL);
	assert_non_null(teller);
	return 0;
}

/* A teller leaves neither a thread nor a descriptor, whatever ways it still has. */
static int
teardown(void **state)
{
	time_t start = time(NULL);

	(void)state;
	urn_teller_destroy(teller);
	assert_int_equal(entries("/proc/self/fd"), fds);
	/* The system takes an ended thread off its list a little later. */
	while (entries("/proc/self/task") != threads)
		assert_true(time(NULL) - start < PATIENCE);
	return 0;
}

/* ---- tests */

/* Records arrive once, whole and in their order. */
static void
they_move_in_order(void **state)
{
	struct line a = line_open(false), b = line_open(true);

	(void)state;
	for (uint32_t i = 0; i < 3000; i += FEW) {
		for (uint32_t k = i; k < i + FEW; k++) {
			assert_int_equal(say(&a, URN_EVENT_CM, k), 0);
			assert_int_equal(say(&b, URN_EVENT_CM, k), 0);
		}
		for (uint32_t k = i; k < i + FEW; k++) {
			hear(&a, URN_EVENT_CM, k);
			hear(&b, URN_EVENT_CM, k);
		}
	}
	line_close(&a);
	line_close(&b);
}

/* Nobody reads: a way takes so many records, though the client enlarges its buffer; none is lost.
 */
static void
they_are_bounded(void **state)
{
	const int much = 4 << 20;
	struct line l = line_open(true);
	uint32_t n;

	(void)state;
	assert_int_equal(setsockopt(l.dup, SOL_SOCKET, SO_SNDBUF, &much, sizeof(much)), 0);
	n = fill(&l, 0, 1); /* each of another completion queue */
	assert_true(n - 1 <= ALL);
	assert_true(taken(&l) < URN_TELLER_BASE + PIECE);
	for (uint32_t i = 1; i < n; i++) {
		assert_true(taken(&l) < URN_TELLER_BASE + PIECE);
		hear(&l, 0, i);
	}
	assert_int_equal(say(&l, 0, 1), 0);
	hear(&l, 0, 1);
	assert_int_equal(counts.merged, 0);
	assert_int_equal(counts.lost, 0);
	line_close(&l);
}

/* The client writes records of its own, as a library does, until this many bytes are unread. */
static unsigned int
clutter(const struct line *l, unsigned int until)
{
	const struct urn_abi_event own = {.type = URN_EVENT_MSG};
	unsigned int n = 0;

	for (; taken(l) < until; n++)
		assert_int_equal(__real_send(l->dup, &own, RECORD, MSG_DONTWAIT), RECORD);
	return n;
}

static void
await_unread(const struct line *l, unsigned int n)
{
	time_t start = time(NULL);

	while (unread(l) != n) {
		assert_true(time(NULL) - start < PATIENCE);
		usleep(100);
	}
}

/* Each queue that uses a channel brings room for an event, which the library may use up. */
static void
they_have_room_by_users(void **state)
{
	struct line l = line_open(true);
	unsigned int n;

	(void)state;
	urn_teller_users(l.way, 20);
	for (n = 0; n < 19; n++)
		(void)clutter(&l, taken(&l) + 1); /* a record */
	assert_int_equal(say(&l, 0, 1), 0);
	await_unread(&l, n + 1);
	urn_teller_users(l.way, UINT32_MAX); /* at most URN_TELLER_OUTER */
	n += 1 + clutter(&l, URN_TELLER_OUTER);
	(void)fill(&l, 0, 1);
	assert_int_equal(unread(&l), n);
	line_close(&l);
}

/* The client makes its pair small, and fills it: records wait, and come when there is room. */
static void
they_wait_for_room(void **state)
{
	const int little = 1;
	struct line l = line_open(true);
	unsigned int full = 0;
	char junk[512];

	(void)state;
	memset(junk, 0xee, sizeof(junk));
	urn_teller_users(l.way, 20); /* the system's bound comes first */
	assert_int_equal(setsockopt(l.dup, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	while (__real_send(l.dup, junk, sizeof(junk), MSG_DONTWAIT) == (ssize_t)sizeof(junk))
		full++;
	assert_true(full > 0);
	for (uint32_t i = 0; i < FEW; i++)
		assert_int_equal(say(&l, URN_EVENT_CM, i), 0);
	for (; full; full--)
		assert_int_equal(recv(l.end, junk, sizeof(junk), MSG_WAITALL), sizeof(junk));
	for (uint32_t i = 0; i < FEW; i++)
		hear(&l, URN_EVENT_CM, i);
	line_close(&l);
}

/* While there is no room, an event of a completion queue stands for those that follow. */
static void
they_are_merged(void **state)
{
	struct line l = line_open(true);
	unsigned int n = clutter(&l, URN_TELLER_BASE);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(say(&l, 0, 1), 0);
	assert_int_equal(say(&l, 0, 2), 0);
	assert_int_equal(say(&l, 0, 1), 0);
	await_count(&counts.merged, 10);
	while (n--)
		hear_own(&l);
	hear(&l, 0, 1);
	hear(&l, 0, 2);
	/* A queue whose events are read at once has each of them. */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(say(&l, 0, 1), 0);
		hear(&l, 0, 1);
	}
	assert_int_equal(counts.merged, 10);
	line_close(&l);
}

/* A queue that has its channel to itself has one unread event, and two queues have two. */
static void
they_are_one_each(void **state)
{
	struct line l = line_open(true);

	(void)state;
	for (uint32_t queues = 1; queues <= 2; queues++) {
		uint64_t merged = counts.merged;

		urn_teller_users(l.way, queues);
		for (uint32_t i = 1; i <= queues; i++) {
			assert_int_equal(say(&l, 0, i), 0);
			await_unread(&l, i);
		}
		for (uint32_t k = 0; k < 10 * queues; k++)
			assert_int_equal(say(&l, 0, 1 + k % queues), 0);
		/* One of each waits for a read, and stands for the others. */
		await_count(&counts.merged, merged + 9 * queues);
		assert_int_equal(unread(&l), queues);
		for (uint32_t k = 0; k < 2 * queues; k++)
			hear(&l, 0, 1 + k % queues);
		assert_int_equal(unread(&l), 0);
		assert_int_equal(counts.merged, merged + 9 * queues);
	}
	line_close(&l);
}

/* Notices and asynchronous events each mean something: none is merged. */
static void
others_are_not_merged(void **state)
{
	struct line channel = line_open(true), async = line_open(false);
	unsigned int n[2] = {clutter(&channel, URN_TELLER_BASE), clutter(&async, URN_TELLER_BASE)};

	(void)state;
	for (int i = 0; i < FEW; i++) {
		assert_int_equal(say(&channel, URN_EVENT_CM, 7), 0);
		assert_int_equal(say(&async, URN_EVENT_CQ_ERR, 7), 0);
	}
	while (n[0]--)
		hear_own(&channel);
	while (n[1]--)
		hear_own(&async);
	for (int i = 0; i < FEW; i++) {
		hear(&channel, URN_EVENT_CM, 7);
		hear(&async, URN_EVENT_CQ_ERR, 7);
	}
	assert_int_equal(counts.merged, 0);
	line_close(&channel);
	line_close(&async);
}

/* A client that closed its ends: engines hear that, its records are counted, others go on. */
static void
a_closed_end_ends_the_way(void **state)
{
	struct line l = line_open(true), other = line_open(true);
	time_t start = time(NULL);
	uint32_t n = fill(&l, 0, 1);
	unsigned int was = unread(&l);
	int rc;

	(void)state;
	line_hang_up(&l);
	while ((rc = say(&l, 0, n)) != EPIPE) {
		n += rc == 0;
		assert_true(time(NULL) - start < PATIENCE);
	}
	/* The end shows before the records are counted. */
	while (counts.lost == 0)
		assert_true(time(NULL) - start < PATIENCE);
	assert_in_range(counts.lost, 1, n - 1 - was);
	assert_int_equal(say(&other, 0, 1), 0);
	hear(&other, 0, 1);
	urn_teller_remove(teller, l.way);
	line_close(&other);
}

/* Nothing of a way comes out once it was removed, at whatever step its records were. */
static void
a_removed_way_is_silent(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		struct line l = line_open(true), next;
		unsigned int had;
		char c;

		for (uint32_t k = 0; k < i % 60 && say(&l, URN_EVENT_CM, k) == 0; k++)
			;
		close(l.dup);
		urn_teller_remove(teller, l.way);
		next = line_open(
			true); /* may have the same numbers of descriptors, and the same place */
		had = unread(&l);
		assert_int_equal(say(&next, URN_EVENT_CM, 1000 + i), 0);
		hear(&next, URN_EVENT_CM, 1000 + i);
		assert_int_equal(unread(&next), 0);
		assert_int_equal(unread(&l), had);
		for (uint32_t k = 0; k < had; k++)
			hear(&l, URN_EVENT_CM, k);
		assert_int_equal(recv(l.end, &c, 1, 0), 0); /* no writer is left */
		close(l.end);
		line_close(&next);
	}
}

/* The system has no memory for a record now and then: the record comes all the same. */
static void
they_survive_a_shortage(void **state)
{
	struct line l = line_open(true);

	(void)state;
	no_memory = 3;
	for (uint32_t i = 0; i < FEW; i++)
		assert_int_equal(say(&l, URN_EVENT_CM, i), 0);
	for (uint32_t i = 0; i < FEW; i++)
		hear(&l, URN_EVENT_CM, i);
	assert_int_equal(no_memory, 0);
	line_close(&l);
}

/* A wake-up that takes long is followed by a rest of nine times as long, which its end cuts short.
 */
static void
a_slow_client_waits_itself(void **state)
{
	struct line l;
	uint64_t rests;
	time_t start;

	(void)state;
	urn_teller_destroy(teller); /* one whose whole time is the test's */
	turn_ns = 150000;	    /* within what a turn may take */
	teller = urn_teller_create(&counts, NULL);
	assert_non_null(teller);
	l = line_open(true);
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(say(&l, 0, i), 0);
		hear(&l, 0, i);
	}
	assert_int_equal(rest_ns, 0);
	turn_ns = 300000;
	rests = counts.rests;
	for (uint32_t i = 50; i < 52;
	     i++) { /* the second is looked at after the rest for the first */
		assert_int_equal(say(&l, 0, i), 0);
		hear(&l, 0, i);
	}
	/* A record shows before its turn has ended: the next turn is the one that takes long. */
	for (start = time(NULL); counts.rests < rests + 2;)
		assert_true(time(NULL) - start < PATIENCE);
	assert_int_equal(rest_ns, 9 * 300000);
	turn_ns = 30000000000; /* at most a second */
	long_rests = true;
	/* The record comes before the rest, or after it if the turn before ended late. */
	assert_int_equal(say(&l, 0, 52), 0);
	for (start = time(NULL); rest_ns != 1000000000;)
		assert_true(time(NULL) - start < PATIENCE);
	assert_true(counts.rests >= 3);
	line_close(&l); /* does not wait for the rest, nor does the end of the teller */
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(they_move_in_order),
		T(they_are_bounded),
		T(they_have_room_by_users),
		T(they_wait_for_room),
		T(they_are_merged),
		T(they_are_one_each),
		T(others_are_not_merged),
		T(a_closed_end_ends_the_way),
		T(a_removed_way_is_silent),
		T(they_survive_a_shortage),
		T(a_slow_client_waits_itself),
	};

	return cmocka_run_group_tests_name("control_teller", tests, NULL, NULL);
}
