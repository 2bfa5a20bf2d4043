/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing memory that a program has: the list of mappings, stopping threads, windows and moving
 * pages (attach/share). */
#include "attach/share/window.h"
#include "attach/stop.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE URN_SHARE_PAGE
#define MIB ((uintptr_t)1 << 20)

/* ---- mappings */

static void
parses(const char *line, uintptr_t start, uintptr_t end, bool own, bool plain)
{
	struct urn_own_mapping m;

	assert_true(urn_mapping_parse(line, &m));
	assert_int_equal(m.start, start);
	assert_int_equal(m.end, end);
	assert_int_equal(m.plain, plain);
	assert_int_equal(urn_mapping_own(&m), own);
}

static void
test_parse(void **state)
{
	static const char *const bad[] = {"",
					  "x",
					  "1000-2000",
					  "1000-2000 rw-p",
					  "1000-2000 rw-p 0 00:00",
					  "1000-2000 rw-q 0 00:00 0",
					  "2000-1000 rw-p 0 00:00 0",
					  "1000-2000 rw 0 00:00 0",
					  "1000 2000 rw-p 0 00:00 0",
					  "-2000 rw-p 0 00:00 0",
					  "1000-2000 rw-p 0 0000 0"};
	struct urn_own_mapping m;
	size_t i;

	(void)state;
	parses("1000-3000 rw-p 00000000 00:00 0 ", 0x1000, 0x3000, true, true);
	parses("5581a000-5583b000 rw-p 00000000 00:00 0                          [heap]",
	       0x5581a000, 0x5583b000, true, true);
	parses("7f00deadb000-7f00deadd000 rw-p 00000000 00:00 0 [anon:glibc: malloc]",
	       0x7f00deadb000, 0x7f00deadd000, true, true);
	parses("7ffd000-7ffe000 rw-p 00000000 00:00 0 [stack]", 0x7ffd000, 0x7ffe000, false, false);
	parses("7ffd000-7ffe000 r-xp 00000000 00:00 0 [vdso]", 0x7ffd000, 0x7ffe000, false, false);
	parses("1000-2000 r--p 00000000 00:00 0", 0x1000, 0x2000, false, true);
	parses("1000-2000 rwxp 00000000 00:00 0", 0x1000, 0x2000, false, true);
	parses("1000-2000 ---p 00000000 00:00 0", 0x1000, 0x2000, false, true);
	parses("1000-2000 rw-s 00000000 00:01 77 /dev/zero (deleted)", 0x1000, 0x2000, false,
	       false);
	parses("1000-2000 rw-p 00000000 00:0f 77 /anon_hugepage (deleted)", 0x1000, 0x2000, false,
	       false);
	parses("1000-2000 rw-p 00012000 fe:01 77 /usr/bin/x y", 0x1000, 0x2000, false, false);
	assert_true(urn_mapping_parse(
		"1000-2000 rw-s 00abc000 fe:1f 18446744073709551615 /memfd:urnic-shared (deleted)",
		&m));
	assert_int_equal(m.off, 0xabc000);
	assert_int_equal(m.major, 0xfe);
	assert_int_equal(m.minor, 0x1f);
	assert_true(m.ino == UINT64_MAX && m.shared && m.read && m.write && !m.exec);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(urn_mapping_parse(bad[i], &m));
}

/* Find the mapping of an address. returns: true: there is one */
static bool
mapping_of(const void *p, struct urn_own_mapping *m)
{
	int fd = urn_maps_open();
	struct urn_maps w;
	uintptr_t last = 0;
	bool found = false;

	assert_true(fd >= 0);
	urn_maps_start(&w, fd);
	while (!found && urn_maps_next(&w, m)) {
		assert_true(m->start >= last);
		last = m->end;
		found = (uintptr_t)p >= m->start && (uintptr_t)p < m->end;
	}
	close(fd);
	return found;
}

/* A list of many mappings is read in parts. */
static void
test_walk(void **state)
{
	enum { N = 600 };
	char *p = mmap(NULL, 2 * N * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	struct urn_own_mapping m;
	size_t i;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	for (i = 0; i < N; i++)
		assert_int_equal(mprotect(p + 2 * i * PAGE, PAGE, PROT_READ), 0);
	for (i = 0; i < N; i += 199) {
		assert_true(mapping_of(p + 2 * i * PAGE, &m) && !urn_mapping_own(&m));
		assert_int_equal(m.start, (uintptr_t)p + 2 * i * PAGE);
		assert_true(mapping_of(p + (2 * i + 1) * PAGE, &m) && urn_mapping_own(&m));
	}
	assert_true(mapping_of(&i, &m) && !urn_mapping_own(&m));
	munmap(p, 2 * N * PAGE);
	assert_false(mapping_of(p, &m) && m.start == (uintptr_t)p);
}

/* ---- threads */

static _Atomic uint64_t beats;
static _Atomic bool over, ready;

static void *
beat(void *blocks)
{
	sigset_t all;

	sigfillset(&all);
	if (blocks != NULL)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	ready = true;
	while (!over)
		atomic_fetch_add(&beats, 1);
	return NULL;
}

static pthread_t
start(bool blocks)
{
	pthread_t t;

	over = ready = false;
	assert_int_equal(pthread_create(&t, NULL, beat, blocks ? &beats : NULL), 0);
	while (!ready)
		sched_yield();
	return t;
}

static void
end(pthread_t t)
{
	over = true;
	pthread_join(t, NULL);
}

static void
test_stop(void **state)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	struct urn_stopped at;
	pthread_t t = start(false);
	const char *why;
	unsigned int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		uint64_t seen;

		why = urn_stop_others();
		seen = beats;
		if (i % 10 == 0)
			nanosleep(&nap, NULL);
		why = why != NULL ? why : seen != beats ? "a thread went on" : NULL;
		why = why != NULL					    ? why
		      : !urn_stop_thread(1, &at) || urn_stop_thread(2, &at) ? "the list is wrong"
									    : NULL;
		urn_stop_release();
		assert_null(why);
		while (seen == beats)
			sched_yield();
	}
	end(t);
}

/* A thread that blocks the signal, and a program that has taken the signal for itself. */
static void
test_stop_not(void **state)
{
	struct sigaction ours, theirs = {.sa_handler = SIG_IGN};
	pthread_t t = start(true);
	sigset_t mask, before;

	(void)state;
	assert_string_equal(urn_stop_others(),
			    "a thread of the program blocks the signal that stops threads");
	assert_string_equal(urn_stop_others(),
			    "a thread of the program blocks the signal that stops threads");
	end(t);
	while (urn_stop_others() != NULL) /* a thread that was joined may be on its way out yet */
		sched_yield();
	urn_stop_release();
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_false(sigismember(&before, SIGUSR1) || sigismember(&before, urn_stop_signal()));
	sigaction(urn_stop_signal(), &theirs, &ours);
	assert_non_null(strstr(urn_stop_others(), "uses all real-time signals"));
	sigaction(urn_stop_signal(), &ours, NULL);
	assert_null(urn_stop_others());
	urn_stop_release();

	urn_stop_mask(&mask);
	assert_true(sigismember(&mask, SIGUSR1) && sigismember(&mask, urn_stop_signal()));
	setenv("URNIC_SHARE", "1", 1);
	urn_stop_mask(&mask);
	assert_true(sigismember(&mask, SIGUSR1) && !sigismember(&mask, urn_stop_signal()));
	unsetenv("URNIC_SHARE");
}

/* Takes all signals, until SIGUSR1 comes; arg: the number of signals that came. */
static void *
takes(void *arg)
{
	unsigned int *n = arg;
	sigset_t all;
	int sig = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	ready = true;
	for (; sig != SIGUSR1; ++*n)
		assert_int_equal(sigwait(&all, &sig), 0);
	return NULL;
}

/* A thread that takes the signal itself is recognised, and never gets it. */
static void
test_stop_sigwait(void **state)
{
	unsigned int i, n = 0;
	const char *why = "";
	pthread_t t;

	(void)state;
	ready = false;
	assert_int_equal(pthread_create(&t, NULL, takes, &n), 0);
	while (!ready)
		sched_yield();
	while (strstr(why, "(sigwait)") == NULL) /* the thread is on its way there */
		assert_non_null(why = urn_stop_others());
	for (i = 0; i < 20; i++)
		assert_ptr_equal(urn_stop_others(), why);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	assert_int_equal(n, 1);
	while (urn_stop_others() != NULL)
		sched_yield();
	urn_stop_release();
}

static int gate[2];

/* Stays within vfork(), which no signal interrupts, until the gate opens. */
static void *
deaf(void *arg)
{
	char c;
	pid_t pid;

	(void)arg;
	pid = vfork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that failed leaves nothing behind */
		ready = true;
		_exit(read(gate[0], &c, 1) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (!over)
		sched_yield();
	return NULL;
}

/* A thread's poll() comes back early: the thread was stopped. */
static void *
polls(void *arg)
{
	_Atomic unsigned int *stops = arg;

	while (!over)
		if (poll(NULL, 0, 10) < 0 && errno == EINTR)
			++*stops;
	return NULL;
}

/* Other threads are stopped in vain only once for a thread that does not answer. */
static void
test_stop_deaf(void **state)
{
	_Atomic unsigned int stops = 0;
	unsigned int i, before;
	pthread_t t, other;
	const char *why;

	(void)state;
	over = ready = false;
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(pthread_create(&t, NULL, deaf, NULL), 0);
	assert_int_equal(pthread_create(&other, NULL, polls, &stops), 0);
	while (!ready)
		sched_yield();
	do /* a thread that begins blocks the signal */
		why = urn_stop_others();
	while (why != NULL && strstr(why, "does not answer") == NULL);
	assert_non_null(why);
	before = stops;
	for (i = 0; i < 20; i++)
		assert_ptr_equal(urn_stop_others(), why);
	poll(NULL, 0, 30);
	assert_in_range(stops, before, before + 1);
	assert_int_equal(write(gate[1], "x", 1), 1);
	while (urn_stop_others() != NULL) /* until the thread has answered, late */
		sched_yield();
	urn_stop_release();
	over = true;
	pthread_join(t, NULL);
	pthread_join(other, NULL);
	close(gate[0]);
	close(gate[1]);
}

/* Write a text, with its end. */
static inline void
words(char *to, const char *from)
{
	memcpy(to, from, strlen(from) + 1);
}

/* ---- windows */

static void
lies(uintptr_t start, uintptr_t end, uintptr_t want_start, uintptr_t want_end)
{
	struct urn_share_window *w = urn_share_make(start, end);

	assert_non_null(w);
	assert_int_equal(w->start, want_start);
	assert_int_equal(w->end, want_end);
	assert_ptr_equal(urn_share_find(start, end), w);
	assert_null(urn_share_find(start, want_end + PAGE));
	urn_share_unmake(w);
	assert_null(urn_share_find(start, end));
}

static void
test_windows(void **state)
{
	const uintptr_t big = URN_SHARE_WINDOW;
	struct urn_share_window *w[URN_SHARE_WINDOWS];
	unsigned int i;

	(void)state;
	lies(PAGE, 2 * PAGE, 0, big);
	lies(5 * big + PAGE, 5 * big + 3 * PAGE, 5 * big, 6 * big);
	lies(6 * big - PAGE, 6 * big, 5 * big, 6 * big);
	lies(6 * big - PAGE, 6 * big + PAGE, 5 * big + big / 2, 6 * big + big / 2);
	lies(6 * big - PAGE, 6 * big + MIB, 5 * big + big / 2, 6 * big + big / 2);
	lies(6 * big - PAGE, 6 * big - PAGE + big / 2, 5 * big + big / 2, 6 * big + big / 2);
	lies(6 * big - PAGE, 6 * big + big / 2, 6 * big - PAGE, 6 * big + big / 2);
	lies(big, 9 * big, big, 9 * big);
	for (i = 0; i < URN_SHARE_WINDOWS; i++)
		assert_non_null(w[i] = urn_share_make(i * MIB, (i + 1) * MIB));
	assert_null(urn_share_make(0, MIB));
	for (i = 0; i < URN_SHARE_WINDOWS; i++)
		urn_share_unmake(w[i]);
}

static void
test_move(void **state)
{
	char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = (uintptr_t)p;
	struct urn_share_window *w = urn_share_make(at, at + 4 * MIB);
	const uint8_t *home = w->home + (at - w->start);
	struct urn_own_mapping m;

	(void)state;
	words(p + MIB, "here");
	words(p + 2 * MIB - 5, "last");
	assert_int_equal(mprotect(p + 3 * MIB, PAGE, PROT_READ), 0);
	assert_null(urn_share_move_in(w, at + MIB, at + 2 * MIB));
	assert_true(mapping_of(p + MIB, &m) && urn_share_in_place(w, &m));
	assert_true(mapping_of(p, &m) && urn_mapping_own(&m));
	assert_string_equal(p + MIB, "here");
	assert_string_equal(home + MIB, "here");
	words(p + MIB, "there");
	assert_string_equal(home + MIB, "there");
	/* Part of it again, and more; and what can't be shared. */
	assert_null(urn_share_move_in(w, at, at + 3 * MIB));
	assert_non_null(strstr(urn_share_move_in(w, at + 2 * MIB, at + 4 * MIB), "not private"));
	/* A hole in the program's memory; then new pages, which must not show the old ones' bytes.
	 */
	munmap(p + MIB, PAGE);
	assert_non_null(strstr(urn_share_move_in(w, at, at + 3 * MIB), "not all mapped"));
	assert_ptr_equal(mmap(p + MIB, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 p + MIB);
	assert_null(urn_share_move_in(w, at, at + 3 * MIB));
	assert_int_equal(p[MIB], 0);
	/* Back: a part, with its protection; then all, also what the program moved elsewhere. */
	assert_int_equal(mprotect(p, PAGE, PROT_NONE), 0);
	assert_null(urn_share_move_back(w, at, at + 2 * MIB));
	assert_true(mapping_of(p, &m) && !m.read && !m.shared);
	assert_true(mapping_of(p + MIB, &m) && urn_mapping_own(&m));
	assert_string_equal(p + 2 * MIB - 5, "last");
	assert_true(mapping_of(p + 2 * MIB, &m) && m.shared);
	assert_null(urn_share_move_back(w, 0, 0));
	assert_true(mapping_of(p + 2 * MIB, &m) && urn_mapping_own(&m));
	assert_int_equal(w->bytes, PAGE); /* those that were unmapped */
	urn_share_unmake(w);
	munmap(p, 4 * MIB);
}

/* Variables of the library, if it is linked into the program, stay: a child needs them to get its
 * copy of shared pages. */
static void
test_library(void **state)
{
	uintptr_t at = (uintptr_t)&urn_share_windows[URN_SHARE_WINDOWS / 2] & ~(PAGE - 1);
	struct urn_share_window *w = urn_share_make(at, at + PAGE);
	struct urn_own_mapping m;

	(void)state;
	assert_non_null(
		strstr(urn_share_move_in(w, at, at + PAGE), "variables of urnic's library"));
	assert_true(mapping_of((void *)at, &m) && urn_mapping_own(&m));
	assert_true(urn_share_fork_needs(0, UINTPTR_MAX));
	assert_false(urn_share_fork_needs(0, PAGE));
	urn_share_unmake(w);
}

/* The parts of a buffer, registered one by one in whole pages, have pages in common: all are
 * shared. */
static void
test_neighbours(void **state)
{
	const uintptr_t length = 8 * MIB;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The parts lie on one side of an aligned window's bound, wherever the mapping is. */
	uintptr_t at = (uintptr_t)p, bound = (at + length) / URN_SHARE_WINDOW * URN_SHARE_WINDOW;
	uintptr_t first = bound > at && bound < at + length / 2 ? bound : at;
	struct urn_share_window *w = NULL;
	struct urn_own_mapping m;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		uintptr_t to;

		at = first + i * MIB;
		to = at + MIB + PAGE;
		if (w == NULL)
			w = urn_share_make(at, to);
		assert_non_null(w);
		assert_ptr_equal(urn_share_find(at, to), w);
		assert_null(urn_share_move_in(w, at, to));
		assert_true(mapping_of((void *)at, &m) && urn_share_in_place(w, &m));
		assert_true(mapping_of((void *)(to - 1), &m) && urn_share_in_place(w, &m));
	}
	assert_null(urn_share_move_back(w, 0, 0));
	urn_share_unmake(w);
	munmap(p, length);
}

/* Exit codes of a child whose memory is not what it should be. */
enum { CHILD_OK, CHILD_BYTES, CHILD_PROTECTION, CHILD_WINDOWS, CHILD_MASK };

static int locks[2]; /* a pipe: a byte when locks are taken, and one when they are free */

static void
change_locks(void)
{
	assert_int_equal(write(locks[1], "", 1), 1);
}

static bool
is_blocked(int sig)
{
	sigset_t mask;

	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	return sigismember(&mask, sig) == 1;
}

/* In a child of a program with three shared pages: one may be read, one may not be touched. */
static int
check_child(const char *p)
{
	struct urn_own_mapping m;

	if (strcmp(p, "first") != 0 || strcmp(p + PAGE, "second") != 0)
		return CHILD_BYTES;
	if (!mapping_of(p, &m) || !m.read || !m.write || m.shared)
		return CHILD_PROTECTION;
	if (!mapping_of(p + PAGE, &m) || !m.read || m.write || m.shared)
		return CHILD_PROTECTION;
	if (!mapping_of(p + 2 * PAGE, &m) || m.read || m.write || m.shared)
		return CHILD_PROTECTION;
	for (unsigned int i = 0; i < urn_share_top; i++)
		if (urn_share_windows[i].end != 0)
			return CHILD_WINDOWS;
	return is_blocked(SIGUSR1) ? CHILD_MASK : CHILD_OK;
}

/*
 * A child has its own copy of shared pages with their protection, and no window. No signal comes to
 * a thread while the windows are locked. Locks of others are free before the child has its copy.
 */
static void
test_fork(void **state)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct urn_share_window *w = urn_share_make((uintptr_t)p, (uintptr_t)p + 3 * PAGE);
	int status;
	pid_t pid;

	(void)state;
	words(p, "first");
	words(p + PAGE, "second");
	assert_null(urn_share_move_in(w, (uintptr_t)p, (uintptr_t)p + 3 * PAGE));
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(p + 2 * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(pipe(locks), 0);
	urn_share_fork_more(change_locks, change_locks);
	urn_share_fork_prepare();
	assert_true(is_blocked(SIGUSR1) && is_blocked(SIGALRM) && !is_blocked(SIGSEGV));
	pid = _Fork();
	if (pid == 0) {
		for (int i = 0; i < 2; i++) /* for ever, if the parent waits for the copy first */
			assert_int_equal(read(locks[0], &status, 1), 1);
		urn_share_fork_child();
		_exit(check_child(p));
	}
	urn_share_fork_parent();
	urn_share_fork_more(NULL, NULL);
	assert_true(pid > 0);
	assert_false(is_blocked(SIGUSR1));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHILD_OK);
	assert_null(urn_share_move_back(w, 0, 0));
	urn_share_unmake(w);
	munmap(p, 3 * PAGE);
}

/* Pages under a region stay where they are. */
static void
test_held(void **state)
{
	char *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = (uintptr_t)p;
	struct urn_share_window *w = urn_share_make(at, at + 2 * MIB);
	struct urn_share_hold foreign = {.start = at + MIB, .end = at + MIB + PAGE};
	char here[64];

	(void)state;
	urn_share_holds = &foreign;
	assert_non_null(strstr(urn_share_move_in(w, at, at + 2 * MIB), "foreign memory"));
	assert_null(urn_share_move_in(w, at, at + MIB));
	urn_share_holds = NULL;
	assert_null(urn_share_move_in(w, at, at + 2 * MIB));
	assert_null(urn_share_move_back(w, 0, 0));
	urn_share_unmake(w);
	munmap(p, 2 * MIB);
	at = (uintptr_t)here & ~(PAGE - 1);
	w = urn_share_make(at, at + PAGE);
	assert_non_null(urn_share_move_in(w, at, at + PAGE));
	urn_share_unmake(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	     cmocka_unit_test(test_walk),
		cmocka_unit_test(test_stop),	     cmocka_unit_test(test_stop_not),
		cmocka_unit_test(test_stop_sigwait), cmocka_unit_test(test_stop_deaf),
		cmocka_unit_test(test_windows),	     cmocka_unit_test(test_move),
		cmocka_unit_test(test_neighbours),   cmocka_unit_test(test_fork),
		cmocka_unit_test(test_held),	     cmocka_unit_test(test_library),
	};

	urn_share_move_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
