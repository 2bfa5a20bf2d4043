/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stop has a number, which is odd while threads are to stay stopped. A handler that finds an
 * even number came too late, and returns. A stop begins only when no handler of an earlier one
 * runs any more, so that no thread is listed that is about to go on.
 */
#include "attach/stop.h"

#include "abi/clock.h"
#include "attach/task.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	URN_STOP_THREADS = 1024,   /* threads of a process that can be stopped */
	URN_STOP_OUT = 64,	   /* threads that are remembered as such that can't be stopped */
	URN_STOP_BLOCKED_MS = 500, /* patience with a thread that blocks the signal, as one does
				      that starts or ends */
	URN_STOP_KNOWN_MS = 10,	   /* ... that blocked it last time, too */
	URN_STOP_MS = 2000,	   /* patience with a thread that does not answer */
	URN_STOP_LOOK = 16, /* rounds between looks at the state of a thread that does not answer */
};

/* A thread that waits in its handler. */
struct urn_stop_slot {
	_Atomic pid_t tid; /* stored last; 0: not there yet */
	struct urn_stopped at;
};

static int urn_stop_sig;		 /* set once */
static _Atomic uint32_t urn_stop_turn;	 /* number of the stop; odd: threads stay stopped */
static _Atomic uint32_t urn_stop_inside; /* handlers that run */
static _Atomic uint32_t urn_stop_count;	 /* slots taken */
static struct urn_stop_slot urn_stop_slots[URN_STOP_THREADS];
static pid_t urn_stop_told[URN_STOP_THREADS]; /* threads that the signal was sent to */
static unsigned int urn_stop_tolds;
static pid_t urn_stop_blocks; /* thread that blocked the signal last time; 0: none */
static bool urn_stop_stuck;   /* a handler of an earlier stop ran for too long last time */
/* Threads that are sent no signal. tid: the thread did not answer, until its handler runs; -tid:
 * the thread takes the signal by sigwait(), so it would see ours. 0: free */
static _Atomic pid_t urn_stop_out[URN_STOP_OUT];
static sigset_t urn_stop_before; /* the caller's mask */

static const char urn_stop_why_blocks[] =
	"a thread of the program blocks the signal that stops threads";
static const char urn_stop_why_mute[] =
	"a thread of the program does not answer the signal that stops threads";
static const char urn_stop_why_takes[] =
	"a thread of the program waits for all signals (sigwait), that which stops threads too";

static uintptr_t
urn_stop_tp(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static uintptr_t
urn_stop_sp(const ucontext_t *u)
{
#if defined(__x86_64__)
	return (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
#else
	return (uintptr_t)u->uc_mcontext.sp;
#endif
}

/* The kernel's call, which the C library keeps two signals of its own from. */
static void
urn_stop_sigmask(const sigset_t *set, sigset_t *before)
{
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, set, before, _NSIG / 8);
}

static void
urn_stop_block_all(sigset_t *before)
{
	sigset_t all;

	memset(&all, 0xff, sizeof(all));
	urn_stop_sigmask(&all, before);
}

/* Wait for the end of a stop, whose number is `turn`. */
static void
urn_stop_wait(uint32_t turn)
{
	while (atomic_load(&urn_stop_turn) == turn)
		(void)syscall(SYS_futex, &urn_stop_turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
}

/* This thread has answered, perhaps late. */
static void
urn_stop_answered(pid_t self)
{
	unsigned int i;

	for (i = 0; i < URN_STOP_OUT; i++) {
		pid_t mute = self;

		(void)atomic_compare_exchange_strong(&urn_stop_out[i], &mute, 0);
	}
}

static void
urn_stop_handler(int sig, siginfo_t *info, void *context)
{
	int err = errno;
	pid_t self = (pid_t)syscall(SYS_gettid);
	uint32_t turn, i;
	sigset_t before;

	(void)sig, (void)info;
	atomic_fetch_add(&urn_stop_inside, 1);
	turn = atomic_load(&urn_stop_turn);
	if (turn & 1) {
		urn_stop_block_all(&before); /* returning brings the mask back */
		i = atomic_fetch_add(&urn_stop_count, 1);
		if (i < URN_STOP_THREADS) {
			urn_stop_slots[i].at = (struct urn_stopped){
				.sp = urn_stop_sp(context),
				.frame = (uintptr_t)&before,
				.tp = urn_stop_tp(),
			};
			atomic_store(&urn_stop_slots[i].tid, self);
		}
		urn_stop_wait(turn);
	}
	urn_stop_answered(self);
	atomic_fetch_sub(&urn_stop_inside, 1);
	errno = err;
}

/* True when the signal is handled by the handler above, for now. */
static bool
urn_stop_ours(int sig)
{
	struct sigaction now;

	return sigaction(sig, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
	       now.sa_sigaction == urn_stop_handler;
}

static void
urn_stop_choose(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, now;
	int sig;

	ours.sa_sigaction = urn_stop_handler;
	sigfillset(&ours.sa_mask);
	for (sig = SIGRTMAX; sig >= SIGRTMIN && urn_stop_sig == 0; sig--)
		if (sigaction(sig, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
		    now.sa_handler == SIG_DFL && sigaction(sig, &ours, NULL) == 0)
			urn_stop_sig = sig;
}

int
urn_stop_signal(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, urn_stop_choose);
	return urn_stop_sig;
}

void
urn_stop_mask(sigset_t *set)
{
	const char *share = secure_getenv("URNIC_SHARE");

	sigfillset(set);
	if (share != NULL && strcmp(share, "1") == 0 && urn_stop_signal() != 0)
		sigdelset(set, urn_stop_signal());
}

/* True when the thread is among the first n that wait in their handlers. */
static bool
urn_stop_waits(pid_t tid, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && i < URN_STOP_THREADS; i++)
		if (atomic_load(&urn_stop_slots[i].tid) == tid)
			return true;
	return false;
}

static bool
urn_stop_was_told(pid_t tid)
{
	unsigned int i;

	for (i = 0; i < urn_stop_tolds; i++)
		if (urn_stop_told[i] == tid)
			return true;
	return false;
}

/* Remember a thread. who: as in urn_stop_out */
static void
urn_stop_keep_out(pid_t who)
{
	static unsigned int oldest;
	unsigned int i, at = URN_STOP_OUT;

	for (i = 0; i < URN_STOP_OUT; i++) {
		pid_t now = atomic_load(&urn_stop_out[i]);

		if (now == who)
			return;
		if (now == 0 || now == -who)
			at = i;
	}
	if (at == URN_STOP_OUT)
		at = oldest++ % URN_STOP_OUT;
	atomic_store(&urn_stop_out[at], who);
}

/* returns: why a thread gets no signal, or NULL */
static const char *
urn_stop_known(pid_t tid)
{
	unsigned int i;

	for (i = 0; i < URN_STOP_OUT; i++) {
		pid_t now = atomic_load(&urn_stop_out[i]);

		if (now == tid || now == -tid)
			return now == tid ? urn_stop_why_mute : urn_stop_why_takes;
	}
	return NULL;
}

/* Forget threads that ended: another one may get the number. */
static void
urn_stop_forget(void)
{
	unsigned int i;

	for (i = 0; i < URN_STOP_OUT; i++) {
		pid_t now = atomic_load(&urn_stop_out[i]);

		if (now != 0 && syscall(SYS_tgkill, getpid(), now > 0 ? now : -now, 0) != 0 &&
		    errno == ESRCH)
			atomic_store(&urn_stop_out[i], 0);
	}
}

/* Remember threads that do not answer, before they are let go on: a handler that runs from now on
 * takes its thread out again. */
static void
urn_stop_remember(void)
{
	uint32_t waiting = atomic_load(&urn_stop_count);
	unsigned int i;

	for (i = 0; i < urn_stop_tolds; i++)
		if (!urn_stop_waits(urn_stop_told[i], waiting))
			urn_stop_keep_out(urn_stop_told[i]);
}

/* Results of one round over all threads. */
struct urn_stop_round {
	unsigned int left; /* threads that do not wait yet */
	pid_t blocks;	   /* a thread that blocks the signal; 0: none */
	bool self;	 /* the caller is in the list, so the numbers are those of our namespace */
	const char *why; /* NULL, or why there is no use in going on */
};

/* Look at a thread that does not wait. returns: false: the thread ended */
static bool
urn_stop_see(int tasks, pid_t tid, struct urn_stop_round *r)
{
	switch (urn_task_state(tasks, tid, urn_stop_sig)) {
	case URN_TASK_ENDED:
		return false;
	case URN_TASK_BLOCKS:
		r->blocks = tid;
		break;
	case URN_TASK_TAKES:
		urn_stop_keep_out(-tid);
		break;
	case URN_TASK_HIDDEN:
		r->why = "the system does not show what the program's threads wait for";
		break;
	case URN_TASK_RUNS:
		break;
	}
	if (r->why == NULL)
		r->why = urn_stop_known(tid);
	return true;
}

/* Send the signal to a thread that does not wait. look: look at the state of one that was told
 * before, too */
static void
urn_stop_tell(int tasks, pid_t tid, bool send, bool look, struct urn_stop_round *r)
{
	bool told = urn_stop_was_told(tid);

	if ((!told || look) && !urn_stop_see(tasks, tid, r))
		return;
	r->left++;
	if (told || !send || r->why != NULL)
		return;
	if (urn_stop_tolds == URN_STOP_THREADS)
		r->why = "the program has too many threads";
	else if (syscall(SYS_tgkill, getpid(), tid, urn_stop_sig) == 0)
		urn_stop_told[urn_stop_tolds++] = tid;
	else if (errno != ESRCH)
		r->why = "the system does not let the program send itself a signal";
}

/* Go over all threads once. Threads that run may make others meanwhile: only threads that waited
 * before the round count. */
static void
urn_stop_round(int tasks, bool send, bool look, struct urn_stop_round *r)
{
	uint32_t waiting = atomic_load(&urn_stop_count);
	pid_t tid, self = (pid_t)syscall(SYS_gettid);
	struct urn_tasks w = {.fd = tasks};

	*r = (struct urn_stop_round){0};
	(void)lseek(tasks, 0, SEEK_SET);
	while (r->why == NULL && (tid = urn_tasks_next(&w)) > 0) {
		if (tid == self)
			r->self = true;
		else if (!send || !urn_stop_waits(tid, waiting))
			urn_stop_tell(tasks, tid, send, look, r);
	}
	if (r->why == NULL && !r->self)
		r->why = "the program's threads are not in /proc/self/task";
}

static void
urn_stop_nap(unsigned int round)
{
	const struct timespec t = {.tv_nsec = round < 10 ? 20000 : 500000};

	(void)nanosleep(&t, NULL);
}

/* Before any thread is stopped: wait a moment for threads that block the signal. returns: NULL, or
 * why not */
static const char *
urn_stop_look(int tasks)
{
	uint64_t start = urn_clock_ms();
	struct urn_stop_round r;
	unsigned int i;

	for (i = 0;; i++) {
		urn_stop_round(tasks, false, true, &r);
		if (r.why != NULL)
			return r.why;
		if (r.blocks == 0)
			break;
		if (urn_clock_ms() - start >
		    (r.blocks == urn_stop_blocks ? URN_STOP_KNOWN_MS : URN_STOP_BLOCKED_MS)) {
			urn_stop_blocks = r.blocks;
			return urn_stop_why_blocks;
		}
		urn_stop_nap(i);
	}
	urn_stop_blocks = 0;
	return NULL;
}

/* Tell all threads, and wait until all wait. returns: NULL, or why not */
static const char *
urn_stop_all(int tasks)
{
	uint64_t start = urn_clock_ms();
	struct urn_stop_round r;
	unsigned int i;

	for (i = 0;; i++) {
		urn_stop_round(tasks, true, i % URN_STOP_LOOK == URN_STOP_LOOK - 1, &r);
		if (r.why != NULL || r.left == 0)
			return r.why;
		if (urn_clock_ms() - start > (r.blocks != 0 ? URN_STOP_BLOCKED_MS : URN_STOP_MS)) {
			urn_stop_remember();
			return r.blocks != 0 ? urn_stop_why_blocks : urn_stop_why_mute;
		}
		urn_stop_nap(i);
	}
}

/* Wait until no handler of an earlier stop runs. returns: false: one runs for too long */
static bool
urn_stop_over(void)
{
	uint64_t end = urn_clock_ms() + (urn_stop_stuck ? URN_STOP_KNOWN_MS : URN_STOP_MS);
	unsigned int i;

	for (i = 0; atomic_load(&urn_stop_inside) != 0; i++) {
		urn_stop_stuck = urn_clock_ms() > end;
		if (urn_stop_stuck)
			return false;
		urn_stop_nap(i);
	}
	urn_stop_stuck = false;
	return true;
}

/* Begin a stop, once no handler of an earlier one runs. returns: false: one runs for too long */
static bool
urn_stop_begin(void)
{
	pid_t self = (pid_t)syscall(SYS_gettid);
	unsigned int i;

	if (!urn_stop_over())
		return false;
	for (i = 0; i < URN_STOP_THREADS; i++)
		atomic_store_explicit(&urn_stop_slots[i].tid, 0, memory_order_relaxed);
	urn_stop_tolds = 0;
	urn_stop_slots[0].at = (struct urn_stopped){
		.sp = (uintptr_t)&self, .frame = (uintptr_t)&self, .tp = urn_stop_tp()};
	atomic_store(&urn_stop_slots[0].tid, self);
	atomic_store(&urn_stop_count, 1);
	atomic_fetch_add(&urn_stop_turn, 1);
	return true;
}

const char *
urn_stop_others(void)
{
	const char *why = NULL;
	int tasks;

	if (urn_stop_signal() == 0 || !urn_stop_ours(urn_stop_sig))
		return "the program uses all real-time signals, or that which stops threads";
	tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tasks < 0)
		return "/proc/self/task can't be read";
	urn_stop_block_all(&urn_stop_before);
	urn_stop_forget();
	/* A thread that has yet to leave the handler of an earlier stop blocks all signals: on a
	 * busy machine it would count as a thread of the program that does so. */
	(void)urn_stop_over();
	why = urn_stop_look(tasks);
	if (why == NULL && !urn_stop_begin())
		why = "a thread of the program does not come back from a signal";
	if (why != NULL) {
		urn_stop_sigmask(&urn_stop_before, NULL);
	} else {
		why = urn_stop_all(tasks);
		if (why != NULL)
			urn_stop_release();
	}
	close(tasks);
	return why;
}

void
urn_stop_release(void)
{
	atomic_fetch_add(&urn_stop_turn, 1);
	(void)syscall(SYS_futex, &urn_stop_turn, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	urn_stop_sigmask(&urn_stop_before, NULL);
}

bool
urn_stop_thread(unsigned int i, struct urn_stopped *out)
{
	uint32_t n = atomic_load(&urn_stop_count);

	if (i >= n || i >= URN_STOP_THREADS)
		return false;
	*out = urn_stop_slots[i].at;
	return true;
}

void
urn_stop_forked(void)
{
	unsigned int i;

	atomic_store(&urn_stop_inside, 0);
	atomic_store(&urn_stop_turn, 0);
	urn_stop_blocks = 0;
	urn_stop_stuck = false;
	for (i = 0; i < URN_STOP_OUT; i++)
		atomic_store(&urn_stop_out[i], 0);
}
