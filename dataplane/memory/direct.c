/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a client's memory by its process number, straight into frames.
 *
 * process_vm_readv() moves pages by the dozen and takes a list of frames, where the descriptor
 * takes one buffer and copies each page twice. But the call reads the program that the process runs
 * at that moment, so the bytes are believed only when three things hold, none of which needs the
 * client's good will:
 *
 * - The same call read a nonce that this process has just written into memory that it shares with
 *   the client. One call reads one address space; a program that the client executed meanwhile has
 *   no such memory, and can't have been given a nonce that did not exist yet.
 * - The process of the pidfd lives after the call: its number was its own all the time.
 * - The worker has given up CAP_SYS_PTRACE, so the kernel reads for it only memory that its user
 *   may read anyway: a program with rights of its own that a client executes is not readable so,
 *   whatever the client makes it map.
 *
 * Bytes that are not believed are overwritten, and the descriptor serves from then on, like where
 * the kernel refuses such calls. Writing always goes by the descriptor: bytes that were written to
 * the wrong program can't be taken back.
 */
#include "memory/foreign.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/capability.h>
#include <rte_branch_prediction.h>

enum {
	DIRECT_OPS = 32,     /* operations of one call */
	DIRECT_MIN = 12288,  /* bytes: for fewer, the nonce and the pidfd cost more than is gained */
	DIRECT_NONCES = 256, /* nonces fetched from the kernel at a time */
	NONCE_BYTES = 2 * sizeof(uint64_t),
};

struct urn_direct {
	struct urn_space *space;
	uint32_t left; /* nonces not used yet */
	uint64_t nonce[DIRECT_NONCES][2];
};

/* ---- rights */

void
urn_direct_rights(bool ptrace)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const uint32_t bit = 1u << CAP_SYS_PTRACE;

	/* The system call sets the rights of this thread alone; a library's call would change those
	 * of all threads. */
	if (syscall(SYS_capget, &head, data) != 0)
		return;
	data[0].effective = (data[0].effective & ~bit) | (ptrace ? data[0].permitted & bit : 0);
	(void)syscall(SYS_capset, &head, data);
}

static bool
has_ptrace(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, data) != 0 || data[0].effective & 1u << CAP_SYS_PTRACE;
}

struct urn_direct *
urn_direct_create(struct urn_space *space)
{
	struct urn_direct *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->space = space;
	return d;
}

void
urn_direct_destroy(struct urn_direct *d)
{
	free(d);
}

void
urn_direct_begin(struct urn_direct *d)
{
	urn_direct_rights(false);
	if (has_ptrace())
		atomic_store_explicit(&d->space->direct_off, 1, memory_order_relaxed);
}

/* ---- checks that the bytes read are the client's */

/* Direct reading must not be tried any more. returns: 0 */
static __attribute__((cold, noinline)) uint32_t
give_up(struct urn_space *s)
{
	atomic_store_explicit(&s->direct_off, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->direct_refused, 1, memory_order_relaxed);
	return 0;
}

/* Put a random number that nobody can have foreseen into the client's memory. returns: true when done */
static bool
put_nonce(struct urn_direct *d, volatile uint64_t *mark, uint64_t nonce[2])
{
	if (unlikely(d->left == 0)) {
		if (getrandom(d->nonce, sizeof(d->nonce), 0) != (ssize_t)sizeof(d->nonce))
			return false;
		d->left = DIRECT_NONCES;
	}
	d->left--;
	/* The nonce is kept here, because the client can write into the shared memory. */
	nonce[0] = d->nonce[d->left][0];
	nonce[1] = d->nonce[d->left][1];
	mark[0] = nonce[0];
	mark[1] = nonce[1];
	return true;
}

static bool
process_lives(const struct urn_space *s)
{
	struct pollfd p = {.fd = s->fds.pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

/* Overwrite bytes of an unknown owner: nobody may see them. */
static __attribute__((cold, noinline)) void
wipe(const struct iovec *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memset(to[i].iov_base, 0, to[i].iov_len);
}

/* ---- a call */

struct reading {
	struct iovec to[1 + DIRECT_OPS], from[1 + DIRECT_OPS];
	uint32_t ops, ranges; /* not counting the nonce */
	uint64_t bytes;
};

/* Collect operations of a lane that read, from `at` on, as many as go by one call. */
static void
collect(struct reading *r, const struct urn_lane *l, uint32_t at, uint32_t n)
{
	uint64_t next = 0;

	r->ops = r->ranges = 0;
	r->bytes = 0;
	if (n > DIRECT_OPS)
		n = DIRECT_OPS;
	for (; r->ops < n; r->ops++) {
		const struct urn_memop *op = &l->slot[(at + r->ops) % URN_LANE_SLOTS];
		uint64_t from = urn_foreign_target(op);

		if (op->kind != URN_MEMOP_GATHER)
			break;
		r->to[1 + r->ops] = (struct iovec){op->frame, op->len};
		/* One range where addresses touch, because the kernel takes its locks anew for each range. */
		if (r->ranges && from == next)
			r->from[r->ranges].iov_len += op->len;
		else
			r->from[++r->ranges] = (struct iovec){(void *)(uintptr_t)from, op->len};
		next = from + op->len;
		r->bytes += op->len;
	}
}

/* Set the statuses of the operations that `bytes` cover. returns: number of operations */
static uint32_t
answer(struct urn_lane *l, uint32_t at, const struct reading *r, uint64_t bytes)
{
	uint32_t done = 0;

	for (; done < r->ops && r->to[1 + done].iov_len <= bytes; done++) {
		bytes -= r->to[1 + done].iov_len;
		l->slot[(at + done) % URN_LANE_SLOTS].status = URN_MEMOP_DONE;
	}
	return done;
}

uint32_t
urn_direct_read(struct urn_direct *d, struct urn_lane *l, uint32_t at, uint32_t n)
{
	struct urn_space *s = d->space;
	/* Pairs with the release in urn_space_mark(): mark_at is valid. */
	uint64_t *mark = atomic_load_explicit(&s->mark, memory_order_acquire);
	uint64_t nonce[2], found[2] = {0, 0};
	struct reading r;
	ssize_t got;

	if (!mark || n < 2 || atomic_load_explicit(&s->direct_off, memory_order_relaxed))
		return 0;
	collect(&r, l, at, n);
	if (r.bytes < DIRECT_MIN || !put_nonce(d, mark, nonce))
		return 0;
	r.to[0] = (struct iovec){found, NONCE_BYTES};
	r.from[0] = (struct iovec){(void *)(uintptr_t)s->mark_at, NONCE_BYTES};
	got = process_vm_readv(s->fds.pid, r.to, 1 + r.ops, r.from, 1 + r.ranges, 0);
	if (unlikely(got < 0))
		/* Not permitted, no process, nothing mapped at the mark; or no memory just now. */
		return errno == ENOMEM || errno == EAGAIN || errno == EINTR ? 0 : give_up(s);
	if (unlikely(got < (ssize_t)NONCE_BYTES || found[0] != nonce[0] || found[1] != nonce[1] ||
		     !process_lives(s))) {
		wipe(r.to + 1, r.ops);
		return give_up(s);
	}
	atomic_store_explicit(&s->direct_reads, s->direct_reads + 1, memory_order_relaxed);
	return answer(l, at, &r, (uint64_t)got - NONCE_BYTES);
}
