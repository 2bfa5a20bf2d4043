/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's end of the socket, against answers made by hand: lengths that do not fit,
 * and answers of a dataplane of another version.
 */
#include "test.h"

#include "abi/fd.h"
#include "attach/patience.h"
#include "attach/remote.h"

#include <urnic/attach.h>

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { AREA = 65536 };

/* An answer, and the bytes behind it. */
struct said {
	struct urn_sock_answer a;
	struct urn_abi_cm_event ev[URN_SOCK_EVENTS_MAX + 1];
};

static struct said
answer(uint16_t kind, uint32_t events)
{
	struct said s = {.a = {.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, kind, 0, 0}}};

	s.a.head.bytes = (uint32_t)(sizeof(s.a) + events * sizeof(s.ev[0]));
	if (kind == URN_SOCK_EVENTS)
		s.a.events.n = events;
	for (uint32_t i = 0; i < URN_SOCK_EVENTS_MAX + 1; i++)
		memset(&s.ev[i], (int)i + 1, sizeof(s.ev[i]));
	return s;
}

/* Send the answer before the question: the socket keeps it. */
static void
say(int fd, const struct said *s, size_t bytes, int *fds, unsigned int n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)s, .iov_len = bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), bytes);
}

static int channel_fd; /* the newest channel's own end */

/* Take a question of a kind. returns: the descriptors that came with it */
static unsigned int
asked(int fd, uint16_t kind)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct urn_sock_ask q;
	struct iovec iov = {.iov_base = &q, .iov_len = sizeof(q)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.buf)};
	unsigned int n = 0;
	int fds[8];

	assert_int_equal(recvmsg(fd, &msg, MSG_DONTWAIT), urn_sock_ask_bytes(kind));
	assert_int_equal(q.head.kind, kind);
	(void)urn_fd_take(&msg, fds, 8, &n);
	for (unsigned int i = 0; i < n; i++)
		close(fds[i]);
	return n;
}

static bool tight; /* channels find room for the dataplane's descriptors, and none more */

/* Let this process open `more` descriptors and none more. returns: the limit of before */
static rlim_t
allow_fds(unsigned int more)
{
	struct rlimit l;
	rlim_t was;
	int fd[8];

	for (unsigned int i = 0; i <= more; i++)
		fd[i] = dup(STDIN_FILENO);
	for (unsigned int i = 0; i <= more; i++)
		close(fd[i]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	was = l.rlim_cur;
	l.rlim_cur = (rlim_t)fd[more];
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
	return was;
}

static void
allow_again(rlim_t was)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = was;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/*
 * A channel whose other end is *peer. can: of the dataplane; memory: descriptors that must come
 * with the question
 */
static struct urn_abi_channel *
channel_of(int *peer, uint32_t can, unsigned int memory)
{
	struct said s = answer(URN_SOCK_OPEN, 0);
	struct urn_abi_channel *ch;
	rlim_t was;
	int fd[2], own[2] = {memfd_create("area", MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(ftruncate(own[0], AREA), 0);
	s.a.open.area_size = AREA;
	s.a.open.engines = 1;
	say(fd[1], &s, sizeof(s.a), own, 2);
	was = allow_fds(tight ? 2 : 7);
	ch = urn_remote_open(fd[0], (char[32]){"a"}, can);
	allow_again(was);
	assert_non_null(ch);
	close(own[0]);
	close(own[1]);
	assert_int_equal(asked(fd[1], URN_SOCK_OPEN), memory);
	*peer = fd[1];
	channel_fd = fd[0];
	return ch;
}

static struct urn_abi_channel *
channel(int *peer)
{
	return channel_of(peer, 0, 2);
}

/* Events arrive as they were sent, and no more than there is room for. */
static void
test_events(void **state)
{
	struct urn_abi_cm_event ev[URN_SOCK_EVENTS_MAX + 1];
	struct urn_sock_ask q;
	struct urn_abi_rep rep;
	int peer;
	struct urn_abi_channel *ch = channel(&peer);

	(void)state;
	for (uint32_t n = 0; n <= URN_SOCK_EVENTS_MAX; n++) {
		struct said s = answer(URN_SOCK_EVENTS, n);
		uint32_t got = 99;

		memset(ev, 0xee, sizeof(ev));
		say(peer, &s, s.a.head.bytes, NULL, 0);
		assert_int_equal(ch->cm_events(ch->ctx, ev, URN_SOCK_EVENTS_MAX, &got, &rep), 0);
		assert_int_equal(got, n);
		assert_memory_equal(ev, s.ev, n * sizeof(ev[0]));
		memset(s.ev, 0xee, sizeof(s.ev));
		assert_memory_equal(ev + n, s.ev, sizeof(ev) - n * sizeof(ev[0]));
		assert_int_equal(recv(peer, &q, sizeof(q), 0), urn_sock_ask_bytes(URN_SOCK_EVENTS));
		assert_int_equal(q.head.bytes, urn_sock_ask_bytes(URN_SOCK_EVENTS));
		assert_int_equal(q.events.max, URN_SOCK_EVENTS_MAX);
	}
	close(peer);
	ch->close(ch->ctx);
}

/* An answer whose length does not fit is no answer: nothing of it is used. */
static void
test_lengths(void **state)
{
	/* events it claims, events it brings, extra bytes; the room is 2 events */
	static const struct {
		uint32_t says, brings;
		int more, head;
	} bad[] = {
		{1, 0, 0, 0}, {0, 1, 0, 0}, {2, 1, 0, 0}, {1, 2, 0, 0}, {1, 1, -1, 0}, {1, 1, 1, 0},
		{3, 3, 0, 0}, {UINT32_MAX, 1, 0, 0}, {0x0ccccccdu, 0, 0, 0}, {1, 1, 0, 1}, {1, 1, 0, -1},
		{0, 0, -1, 0}, {0, 0, 1, 0}, {0, 0, 0, 1},
	};
	struct urn_abi_cm_event ev[2];
	int peer;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct said s = answer(URN_SOCK_EVENTS, bad[i].brings);
		size_t bytes = s.a.head.bytes + (size_t)bad[i].more;
		struct urn_abi_channel *ch = channel(&peer);
		struct urn_abi_rep rep = {0};
		uint32_t n = 99;
		int err;

		s.a.events.n = bad[i].says;
		s.a.head.bytes = (uint32_t)(bytes + (size_t)bad[i].head);
		say(peer, &s, bytes, NULL, 0);
		err = ch->cm_events(ch->ctx, ev, 2, &n, &rep);
		if (err != ENODEV && err != EPROTO)
			fail_msg("answer %u: %d", i, err);
		assert_int_equal(n, 0);
		assert_true(rep.why[0] != '\0');
		close(peer);
		ch->close(ch->ctx);
	}
}

/* Answers of other kinds bring no events; a dataplane's refusal is returned. */
static void
test_others(void **state)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct urn_abi_cm_event ev[2];
	struct urn_abi_rep rep = {0};
	struct said s;
	uint32_t n = 99;
	int peer;
	struct urn_abi_channel *ch = channel(&peer);

	(void)state;
	s = answer(URN_SOCK_EVENTS, 0);
	s.a.err = EOPNOTSUPP;
	memcpy(s.a.why, "has none", 9);
	say(peer, &s, sizeof(s.a), NULL, 0);
	assert_int_equal(ch->cm_events(ch->ctx, ev, 2, &n, &rep), EOPNOTSUPP);
	assert_int_equal(n, 0);
	assert_string_equal(rep.why, "has none");
	s = answer(URN_SOCK_CALL, 1);
	say(peer, &s, s.a.head.bytes, NULL, 0);
	ch->call(ch->ctx, &req, &rep);
	assert_int_equal(rep.err, ENODEV);
	close(peer);
	assert_int_equal(ch->cm_events(ch->ctx, ev, 2, &n, &rep), ENODEV);
	assert_int_equal(n, 0);
	ch->close(ch->ctx);
}

/*
 * Share memory: the dataplane hears one question of a kind; 0: none. err: its answer to MEMORY.
 * returns: the errno value that the program gets
 */
static int
share(struct urn_abi_channel *ch, int peer, const void *addr, uint16_t kind, int err)
{
	struct said s = answer(kind, 0);
	struct urn_abi_rep rep = {0};
	char none;
	int told;

	s.a.err = kind == URN_SOCK_MEMORY ? err : 0;
	s.a.call.handle = 1;
	if (s.a.err != 0)
		snprintf(s.a.why, sizeof(s.a.why), "for a reason");
	if (kind != 0)
		say(peer, &s, sizeof(s.a), NULL, 0);
	told = ch->share(ch->ctx, addr, 4096, &rep);
	assert_int_equal(rep.err, told);
	if (told != 0)
		assert_string_equal(rep.why, "for a reason");
	if (kind != 0)
		assert_int_equal(asked(peer, kind), kind == URN_SOCK_MEMORY ? 2 : 1);
	assert_int_equal(recv(peer, &none, 1, MSG_DONTWAIT), -1);
	return told;
}

/* Descriptors of this program's memory that it has open: of its map too. */
static unsigned int
own_open(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		char path[64], to[64];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		if (strncmp(to, "/proc/", 6) != 0 || (!strstr(to, "/mem") && !strstr(to, "/maps")))
			continue;
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		n++;
	}
	return n;
}

/*
 * The library opens the program's memory with the adapter, and closes it once it is handed over,
 * with the adapter, and in a child of fork(): urn_remote_forked() is what a child calls.
 */
static void
test_memory_open(void **state)
{
	static char own[4096];

	(void)state;
	for (unsigned int way = 0; way < 3; way++) {
		int peer;
		struct urn_abi_channel *ch = channel_of(&peer, URN_SOCK_CAN_MEMORY, 0);

		assert_int_equal(own_open(), 2);
		if (way == 1)
			assert_int_equal(share(ch, peer, own, URN_SOCK_MEMORY, 0), 0);
		if (way == 2)
			ch->forked(ch->ctx);
		assert_int_equal(own_open(), way == 0 ? 2 : 0);
		close(peer);
		ch->close(ch->ctx);
		assert_int_equal(own_open(), 0);
	}
}

/*
 * The descriptors of all memory leave the program with its first region that is in no shared
 * memory, once, and not before; a dataplane that would not take them later has them with OPEN.
 * After a refusal the next region asks again. A refusal that may pass is told at once, with its
 * errno value; another one is told by the call that makes the region.
 */
static void
test_memory(void **state)
{
	static const int refusals[] = {0, EOPNOTSUPP, ENOMEM, EMFILE, ENFILE};
	static char own[4096];
	int peer;
	struct urn_abi_channel *ch;
	void *shared = urn_alloc(4096);

	(void)state;
	assert_non_null(shared);
	for (unsigned int i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		int err = refusals[i];

		ch = channel_of(&peer, URN_SOCK_CAN_MEMORY, 0);
		assert_int_equal(share(ch, peer, shared, URN_SOCK_CALL, 0), 0);
		assert_int_equal(share(ch, peer, shared, 0, 0), 0);
		for (int times = 0; err != 0 && times < 2; times++)
			assert_int_equal(share(ch, peer, own, URN_SOCK_MEMORY, err),
					 err == EOPNOTSUPP ? 0 : err);
		assert_int_equal(share(ch, peer, own, URN_SOCK_MEMORY, err != 0 ? 0 : EALREADY), 0);
		assert_int_equal(share(ch, peer, own, 0, 0), 0);
		close(peer);
		ch->close(ch->ctx);
	}
	ch = channel_of(&peer, 0, 2);
	assert_int_equal(share(ch, peer, own, 0, 0), 0);
	close(peer);
	ch->close(ch->ctx);
	urn_free(shared);
}

/*
 * A program that has no descriptor left as it opens its adapter has the adapter all the same.
 * Foreign regions fail for that reason until there are descriptors.
 */
static void
test_memory_lack(void **state)
{
	static char own[4096];
	struct urn_abi_rep rep = {0};
	struct urn_abi_channel *ch;
	rlim_t was;
	char none;
	int peer;

	(void)state;
	tight = true;
	ch = channel_of(&peer, URN_SOCK_CAN_MEMORY, 0);
	tight = false;
	assert_int_equal(own_open(), 0);
	was = allow_fds(1);
	assert_int_equal(ch->share(ch->ctx, own, 4096, &rep), EMFILE);
	allow_again(was);
	assert_non_null(strstr(rep.why, "descriptor"));
	assert_int_equal(recv(peer, &none, 1, MSG_DONTWAIT), -1);
	assert_int_equal(share(ch, peer, own, URN_SOCK_MEMORY, 0), 0);
	close(peer);
	ch->close(ch->ctx);
	assert_int_equal(own_open(), 0);
}

/* ---- patience */

enum { BOUND_MS = 1000 };

static unsigned int stalls;	/* waits for an answer that end without one */
static int stall_err;		/* errno of each of them */
static uint64_t stall_ms, late_ms; /* how long each takes; the clock */
static _Atomic uint32_t *grows; /* grows meanwhile; NULL: nothing does */

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

ssize_t
__wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (stalls == 0)
		return __real_recvmsg(fd, msg, flags);
	stalls--;
	if (grows != NULL)
		atomic_fetch_add(grows, 1);
	late_ms += stall_ms;
	errno = stall_err;
	return -1;
}

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){.tv_sec = (time_t)(late_ms / 1000),
			       .tv_nsec = (long)(late_ms % 1000) * 1000000};
	return 0;
}

/*
 * Make a call whose answer comes after so many waits, after a HELLO that tells of the doorbells.
 * returns: 0 or an errno value
 */
static int
call_slowly(struct urn_abi_channel *ch, int peer, unsigned int waits, bool lives)
{
	struct urn_abi_db *db = (void *)((uint8_t *)ch->area + 4096);
	struct urn_abi_req req = {.op = URN_CTL_HELLO};
	struct said s = answer(URN_SOCK_CALL, 0);
	struct urn_abi_rep rep;

	s.a.call.device.engines = 1;
	s.a.call.device.features = URN_ABI_FEATURES;
	s.a.call.device.db_off[0] = 4096;
	say(peer, &s, sizeof(s.a), NULL, 0);
	ch->call(ch->ctx, &req, &rep);
	assert_int_equal(rep.err, 0);
	say(peer, &s, sizeof(s.a), NULL, 0);
	stalls = waits;
	grows = lives ? &db->waits : NULL;
	req.op = URN_CTL_DEREG_MR;
	ch->call(ch->ctx, &req, &rep);
	stalls = 0;
	return rep.err;
}

static unsigned int send_stalls; /* signals that interrupt the sending of a question */

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (send_stalls == 0 || fd != channel_fd)
		return __real_sendmsg(fd, msg, flags);
	send_stalls--;
	late_ms += stall_ms;
	errno = EINTR;
	return -1;
}

/* Signals do not let a question wait for ever for room on its way. */
static void
test_asks(void **state)
{
	(void)state;
	for (unsigned int n = 1; n <= 2; n++) {
		int peer;
		struct urn_abi_channel *ch = channel(&peer);
		struct urn_abi_req req = {.op = URN_CTL_DEREG_MR};
		struct said s = answer(URN_SOCK_CALL, 0);
		struct urn_abi_rep rep;

		urn_remote_bound(ch, BOUND_MS);
		urn_patience_set(channel_fd, BOUND_MS);
		say(peer, &s, sizeof(s.a), NULL, 0);
		stall_ms = BOUND_MS * 9 / 10;
		send_stalls = n;
		ch->call(ch->ctx, &req, &rep);
		assert_int_equal(rep.err, n == 1 ? 0 : ENODEV);
		assert_int_equal(ch->given_up(ch->ctx), n != 1);
		send_stalls = 0;
		close(peer);
		ch->close(ch->ctx);
	}
}

/* A dataplane that waits for the program's own memory is waited for, four times as long as a silent
 * one, and no longer, but for the time of one more wait that a signal ends. */
static void
test_waits(void **state)
{
	static const struct {
		int err; /* EAGAIN: the socket's bound is over; EINTR: a signal came */
		uint32_t ms;
		unsigned int waits;
		bool lives, answered;
	} t[] = {
		{EAGAIN, BOUND_MS, 1, false, false},
		{EAGAIN, BOUND_MS, 1, true, true},
		{EAGAIN, BOUND_MS, 3, false, false},
		{EAGAIN, BOUND_MS, 3, true, true},
		{EAGAIN, BOUND_MS, 4, true, false},
		{EAGAIN, BOUND_MS, 1000, true, false},
		{EINTR, BOUND_MS * 9 / 10, 1, false, true},
		{EINTR, BOUND_MS * 9 / 10, 2, false, false},
		{EINTR, BOUND_MS * 9 / 10, 4, true, true},
		{EINTR, BOUND_MS * 9 / 10, 5, true, false},
		{EINTR, BOUND_MS / 100, 390, true, true},
		{EINTR, BOUND_MS / 100, 400, true, false},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int peer;
		struct urn_abi_channel *ch = channel(&peer);

		urn_remote_bound(ch, BOUND_MS);
		urn_patience_set(channel_fd, BOUND_MS);
		stall_err = t[i].err;
		stall_ms = t[i].ms;
		assert_int_equal(call_slowly(ch, peer, t[i].waits, t[i].lives),
				 t[i].answered ? 0 : ENODEV);
		assert_int_equal(ch->given_up(ch->ctx), !t[i].answered);
		close(peer);
		ch->close(ch->ctx);
	}
}

static void
on_death(void *arg)
{
	sem_post(arg);
}

/* A dataplane that says nothing is given up, though the program calls nothing. */
static void
test_silent(void **state)
{
	int peer;
	struct urn_abi_channel *ch = channel(&peer);
	sem_t died;

	(void)state;
	assert_int_equal(sem_init(&died, 0, 0), 0);
	urn_remote_bound(ch, 20);
	assert_int_equal(ch->watch(ch->ctx, on_death, &died), 0);
	while (sem_wait(&died) != 0)
		;
	assert_int_equal(ch->given_up(ch->ctx), 1);
	close(peer);
	ch->close(ch->ctx);
	sem_destroy(&died);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),	    cmocka_unit_test(test_silent),
		cmocka_unit_test(test_events),	    cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_others),	    cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_open), cmocka_unit_test(test_memory_lack),
		cmocka_unit_test(test_asks),
	};

	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
