/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker of a space: the only thread that touches a client's memory.
 *
 * Larger reads go straight into the frames (direct.c). Other reads, and all writes, go by the
 * descriptor: operations of one kind with adjacent targets in one call, through a buffer between,
 * because a call, and each element of a vector, costs the kernel 0.9 us, while copying 4 KiB once
 * more costs 0.1 us.
 *
 * The kernel copies through the descriptor page by page. A page that can't be read ends the call
 * there; the operations before that page are done, the one that needs it fails, and those behind
 * are tried separately.
 *
 * For such a descriptor the kernel does not fetch memory that a userfaultfd supplies: EIO.
 * process_vm_readv() does fetch it. So where that call is permitted (the client's uid, or
 * CAP_SYS_PTRACE, which the worker takes for that alone) the worker reads one byte of each page by
 * it, throws the bytes away, and tries the copy once more. The call may take for ever; it never
 * shows another program's bytes to anybody.
 *
 * Atomics: read, compute, write. No other operation of this space comes between, whichever engine
 * asks for it; stores of the client itself, mapped regions of the same memory, and other clients
 * may (IBV_ATOMIC_HCA among the operations of one client's foreign memory, and no more).
 */
#include "memory/foreign.h"

#include "memory/atomic.h"
#include "memory/copy.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/futex.h>
#include <rte_branch_prediction.h>
#include <rte_pause.h>

enum {
	WORKER_RUN = 65536, /* bytes that one call moves */
	WORKER_BURST = 64,  /* operations of a lane, before the next lane's turn */
	WORKER_SPINS = 200, /* empty looks before the worker sleeps: some 10 us */
	WORKER_MANY = 8,    /* operations at a time: from so many on only WORKER_FEW_SPINS empty looks */
	WORKER_FEW_SPINS = 20,
	WORKER_STAYS = 1024, /* shares of lanes, before the worker moves to another core again */
	WORKER_STACK = 256 << 10,
	FETCH_PAGES = 16,
	ALIGN_MIN = 4, /* pages */
};

struct space_worker {
	struct urn_space *space;
	struct urn_direct *direct; /* owner */
	uint64_t page;	    /* bytes */
	unsigned int stays; /* shares of lanes before the worker may move again */
	uint8_t run[WORKER_RUN];
};

/* ---- moving bytes */

/*
 * A call that does not begin on a page boundary looks every page up twice, because the kernel goes
 * on by a page's length from where the call begins. So the bytes up to the first boundary get a
 * call of their own. returns: bytes of the next call
 */
static uint64_t
part_of(const struct space_worker *w, uint64_t at, uint64_t len)
{
	uint64_t head = w->page - (at & (w->page - 1));

	return head < w->page && len >= ALIGN_MIN * w->page ? head : len;
}

/* Move bytes between `bytes` and the space, as far as possible. returns: bytes moved */
static uint64_t
move_once(const struct space_worker *w, bool write, uint8_t *bytes, uint64_t len, uint64_t at)
{
	int fd = w->space->fds.mem;
	uint64_t done = 0;

	while (done < len) {
		uint64_t part = part_of(w, at + done, len - done);
		ssize_t n = write ? pwrite(fd, bytes + done, part, (off_t)(at + done))
				  : pread(fd, bytes + done, part, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* 0: the address space is gone */
			break;
		done += (uint64_t)n;
	}
	return done;
}

/* Read a byte of each page. returns: true when done */
static bool
touch(struct space_worker *w, uint64_t at, uint64_t end)
{
	struct urn_space *s = w->space;
	struct iovec to = {.iov_base = s->scratch}, from[FETCH_PAGES];

	while (at < end) {
		size_t n = 0;

		for (; at < end && n < FETCH_PAGES; n++, at = (at & ~(w->page - 1)) + w->page)
			from[n] = (struct iovec){(void *)(uintptr_t)at, 1};
		to.iov_len = n;
		if (process_vm_readv(s->fds.pid, &to, 1, from, n, 0) != (ssize_t)n)
			return false;
	}
	return true;
}

/* Let the pages of a range be supplied by their userfaultfd. returns: true when they are there now */
static bool
fetch(struct space_worker *w, uint64_t at, uint64_t len)
{
	bool done;

	if (!urn_space_alive(w->space))
		return false;
	urn_direct_rights(true);
	done = touch(w, at, at + len);
	urn_direct_rights(false);
	return done;
}

static bool
move(struct space_worker *w, bool write, uint8_t *bytes, uint64_t len, uint64_t at)
{
	uint64_t done = move_once(w, write, bytes, len, at);

	if (done == len)
		return true;
	return fetch(w, at + done, len - done) &&
	       move_once(w, write, bytes + done, len - done, at + done) == len - done;
}

/* ---- operations */

static uint8_t
do_atomic(struct space_worker *w, const struct urn_memop *op)
{
	uint64_t *word = urn_pkt(op->m)->record.operand, at = urn_foreign_target(op), old, now;

	if (at & 7 || !move(w, false, (uint8_t *)&old, sizeof(old), at))
		return URN_MEMOP_FAILED;
	now = urn_atomic_result(op, old, word);
	urn_atomic_intend(op, old, now);
	/* Written back even if the value stays: an atomic on read-only memory fails. */
	if (!move(w, true, (uint8_t *)&now, sizeof(now), at))
		return URN_MEMOP_FAILED;
	urn_atomic_did(op);
	word[0] = old;
	return URN_MEMOP_DONE;
}

/* True when the client has given this process up: its memory is not ours to touch any more. */
static bool
is_left(const struct space_worker *w)
{
	const _Atomic uint32_t *left = w->space->left;

	return unlikely(left && atomic_load_explicit(left, memory_order_relaxed));
}

static uint8_t
do_one(struct space_worker *w, const struct urn_memop *op)
{
	switch (op->kind) {
	case URN_MEMOP_GATHER:
	case URN_MEMOP_PLACE:
		return move(w, op->kind == URN_MEMOP_PLACE, op->frame, op->len,
			    urn_foreign_target(op))
			       ? URN_MEMOP_DONE
			       : URN_MEMOP_FAILED;
	case URN_MEMOP_CMP_SWAP:
	case URN_MEMOP_FETCH_ADD:
		return do_atomic(w, op);
	case URN_MEMOP_FENCE: /* all operations of this lane before it are done */
		return URN_MEMOP_DONE;
	default:
		return URN_MEMOP_FAILED;
	}
}

/* Find the operations from slot `at` on, of n, that go by one call. *bytes: their bytes. returns: their number */
static uint32_t
run_of(const struct urn_lane *l, uint32_t at, uint32_t n, uint64_t *bytes)
{
	const struct urn_memop *op = &l->slot[at % URN_LANE_SLOTS];
	uint64_t next = urn_foreign_target(op) + op->len;
	uint8_t kind = op->kind;
	uint32_t count = 1;

	*bytes = op->len;
	if (kind != URN_MEMOP_GATHER && kind != URN_MEMOP_PLACE)
		return 1;
	for (; count < n; count++) {
		op = &l->slot[(at + count) % URN_LANE_SLOTS];
		if (op->kind != kind || urn_foreign_target(op) != next ||
		    *bytes + op->len > WORKER_RUN)
			break;
		next += op->len;
		*bytes += op->len;
	}
	return count;
}

/* Move a run by one call. returns: bytes moved */
static uint64_t
do_run(struct space_worker *w, struct urn_lane *l, uint32_t at, uint32_t n, uint64_t bytes)
{
	const struct urn_memop *first = &l->slot[at % URN_LANE_SLOTS];
	bool write = first->kind == URN_MEMOP_PLACE;
	uint64_t off = 0, moved;

	for (uint32_t i = 0; write && i < n; i++) {
		const struct urn_memop *op = &l->slot[(at + i) % URN_LANE_SLOTS];

		urn_copy(w->run + off, op->frame, op->len);
		off += op->len;
	}
	moved = move_once(w, write, w->run, bytes, urn_foreign_target(first));
	off = 0;
	for (uint32_t i = 0; !write && i < n; i++) {
		const struct urn_memop *op = &l->slot[(at + i) % URN_LANE_SLOTS];

		if (off + op->len > moved)
			break;
		urn_copy(op->frame, w->run + off, op->len);
		off += op->len;
	}
	return moved;
}

/* Carry out up to n operations of a lane from `at` on. returns: how many were done, at least 1 */
static uint32_t
do_some(struct space_worker *w, struct urn_lane *l, uint32_t at, uint32_t n)
{
	struct urn_memop *op = &l->slot[at % URN_LANE_SLOTS];
	uint64_t bytes, moved;
	uint32_t done;

	if (is_left(w) && op->kind != URN_MEMOP_FENCE) {
		op->status = URN_MEMOP_FAILED;
		return 1;
	}
	done = op->kind == URN_MEMOP_GATHER ? urn_direct_read(w->direct, l, at, n) : 0;
	if (done)
		return done;
	n = run_of(l, at, n, &bytes);
	if (n == 1) {
		op->status = do_one(w, op);
		return 1;
	}
	moved = do_run(w, l, at, n, bytes);
	for (; done < n; done++) {
		op = &l->slot[(at + done) % URN_LANE_SLOTS];
		if (op->len > moved)
			break;
		moved -= op->len;
		op->status = URN_MEMOP_DONE;
	}
	if (done < n) { /* the operation that the call ended in is tried alone; those behind it follow */
		op->status = do_one(w, op);
		done++;
	}
	return done;
}

/* CPUs that workers may run on; one set for the process. */
static cpu_set_t cpus;
static bool cpus_set;

void
urn_space_set_cpus(const cpu_set_t *set)
{
	cpus = *set;
	cpus_set = true;
}

static void
cpus_get(cpu_set_t *set)
{
	if (cpus_set)
		*set = cpus;
	else
		memset(set, 0xff, sizeof(*set)); /* the kernel takes those that are allowed */
}

/*
 * An engine that polls does not let go of its core, so a worker on that core waits for the end of a
 * time slice: move to another core, but not to and fro.
 */
static __attribute__((cold, noinline)) void
move_away(struct space_worker *w, int cpu)
{
	cpu_set_t others;

	cpus_get(&others);
	CPU_CLR((size_t)cpu, &others);
	/* Without another core the worker stays. */
	(void)sched_setaffinity(0, sizeof(others), &others);
	w->stays = WORKER_STAYS;
}

/* Publish the worker's core, and move when the engine uses the same one. */
static void
look_around(struct space_worker *w, const struct urn_lane *l)
{
	int cpu = sched_getcpu();

	if (w->stays)
		w->stays--;
	else if (unlikely(cpu >= 0 && cpu == atomic_load_explicit(&l->cpu, memory_order_relaxed)))
		move_away(w, cpu);
	atomic_store_explicit(&w->space->cpu, sched_getcpu(), memory_order_relaxed);
}

/* Serve a share of a lane. returns: number of operations */
static uint32_t
serve(struct space_worker *w, struct urn_lane *l)
{
	uint32_t done = atomic_load_explicit(&l->done, memory_order_relaxed);
	/* Pairs with the release in urn_lanes_flush(): the slots are filled. */
	uint32_t n = atomic_load_explicit(&l->sent, memory_order_acquire) - done, all;

	if (n == 0)
		return 0;
	if (n > WORKER_BURST)
		n = WORKER_BURST;
	all = n;
	look_around(w, l);
	while (n) {
		uint32_t m = do_some(w, l, done, n);

		n -= m;
		done += m;
		/* Pairs with the acquire in lane_take(): statuses and frames are written. */
		atomic_store_explicit(&l->done, done, memory_order_release);
	}
	return all;
}

/* ---- the thread */

/* returns: number of operations */
static uint32_t
serve_all(struct space_worker *w)
{
	uint32_t n = 0;

	/* Pairs with the release in lane_make(). */
	for (struct urn_lane *l = atomic_load_explicit(&w->space->lanes, memory_order_acquire); l;
	     l = l->next)
		n += serve(w, l);
	return n;
}

static long
futex(_Atomic uint32_t *word, int what, uint32_t value)
{
	return syscall(SYS_futex, word, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Sleep until woken; not at all if there is work after all. */
static void
nap(struct space_worker *w)
{
	struct urn_space *s = w->space;

	/* Stored before the lanes are looked at again; urn_space_wake() uses the opposite order. */
	atomic_store_explicit(&s->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!serve_all(w))
		while (atomic_load(&s->asleep) && !atomic_load(&s->stop))
			futex(&s->asleep, FUTEX_WAIT, 1);
	atomic_store(&s->asleep, 0);
}

static void
worker_free(struct space_worker *w)
{
	urn_direct_destroy(w->direct);
	free(w);
}

static struct space_worker *
worker_make(struct urn_space *s)
{
	struct space_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->space = s;
	w->page = (uint64_t)sysconf(_SC_PAGESIZE);
	w->direct = urn_direct_create(s);
	if (w->direct)
		return w;
	free(w);
	return NULL;
}

static void *
run(void *arg)
{
	struct space_worker *w = arg;
	unsigned int empty = 0, spins = WORKER_SPINS;
	uint32_t n;

	urn_direct_begin(w->direct);
	while (!atomic_load_explicit(&w->space->stop, memory_order_relaxed)) {
		if ((n = serve_all(w)) != 0) {
			empty = 0;
			/*
			 * While much is moved, other threads, mostly workers, wait for the core,
			 * and operations that come meanwhile go in fewer calls.
			 */
			spins = n < WORKER_MANY ? WORKER_SPINS : WORKER_FEW_SPINS;
		} else if (++empty < spins) {
			rte_pause();
		} else {
			/*
			 * No sched_yield(): beside busy threads each call costs the worker a time
			 * slice of theirs, and work that comes meanwhile waits for that. A thread
			 * that is woken from sleep gets a core soon.
			 */
			nap(w);
			empty = 0;
		}
	}
	worker_free(w);
	return NULL;
}

/* An engine's thread may be bound to its core: the worker must be free to run elsewhere. */
static void
run_anywhere(pthread_attr_t *attr)
{
	cpu_set_t all;

	cpus_get(&all);
	pthread_attr_setaffinity_np(attr, sizeof(all), &all);
}

static int
start(struct urn_space *s)
{
	struct space_worker *w = worker_make(s);
	sigset_t none, before;
	pthread_attr_t attr;
	char name[16]; /* the kernel's limit */
	int rc;

	if (!w)
		return ENOMEM;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WORKER_STACK);
	run_anywhere(&attr);
	/* The program's signals are for the program's own threads. */
	sigfillset(&none);
	pthread_sigmask(SIG_SETMASK, &none, &before);
	rc = pthread_create(&s->worker, &attr, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		worker_free(w);
		return rc;
	}
	snprintf(name, sizeof(name), "urn-mem-%u", (uint32_t)s->fds.pid % 10000000u);
	pthread_setname_np(s->worker, name);
	s->started = true;
	return 0;
}

int
urn_space_start(struct urn_space *s)
{
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	if (!s->started)
		rc = start(s);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void
urn_space_stop(struct urn_space *s)
{
	if (!s->started)
		return;
	atomic_store(&s->stop, true);
	atomic_store(&s->asleep, 0);
	futex(&s->asleep, FUTEX_WAKE, 1);
	pthread_join(s->worker, NULL);
	s->started = false;
}

void
urn_space_wake(struct urn_space *s)
{
	/* Either the worker sees operations put before this, or this call sees the worker asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&s->asleep, memory_order_relaxed) &&
	    atomic_exchange(&s->asleep, 0))
		futex(&s->asleep, FUTEX_WAKE, 1);
}
