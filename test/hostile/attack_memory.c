/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is slow, or goes, while the dataplane reads and writes it. One thread does that to
 * the memory; the other keeps WRITEs to it and READs from it under way.
 */
#include "attacks.h"

#include "attach/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
	LEN = 8 << 20, /* bytes of the memory */
	SPARSE = 64 << 20,
	CHUNK = 64 << 10, /* bytes of a request */
	DEPTH = 16,
	TURNS = 64, /* requests in a round */
	POPULATED = 256 << 20,
	HUGE = 2 << 20,
	MAPPINGS = 4000,
};

struct slow {
	struct foe *f;
	struct foe_end end;
	struct ibv_qp *qp[2];
	struct foe_peer peer[2];
	uint8_t *mem;	   /* LEN bytes */
	struct ibv_mr *mr; /* region of mem */
	int fd;		   /* file behind it; -1: none */
};

/* Open a device, and register memory. mem: LEN bytes; NULL: of urn_alloc() */
static void
slow_open(struct slow *s, struct foe *f, void *mem)
{
	memset(s, 0, sizeof(*s));
	s->f = f;
	s->fd = -1;
	foe_open(&s->end, f, "a", CHUNK, 1024);
	s->mem = mem ? mem : urn_alloc(LEN);
	FOE_MUST(s->mem != NULL && s->mem != MAP_FAILED, "memory");
	s->mr = ibv_reg_mr(s->end.pd, s->mem, LEN, FOE_ACCESS);
	if (s->mr == NULL && mem)
		foe_skip("foreign memory can't be registered");
	FOE_MUST(s->mr != NULL, "region");
	foe_pair(&s->end, &s->end, DEPTH, s->qp);
	for (unsigned int i = 0; i < 2; i++)
		s->peer[!i] = (struct foe_peer){s->end.gid, s->qp[i]->qp_num, 14, 7};
}

static void *
private_memory(void)
{
	return mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Keep requests under way; queue pairs that failed come back. */
static void __attribute__((noreturn)) move(struct slow *s)
{
	struct ibv_sge sge = {(uintptr_t)s->end.buf, CHUNK, s->end.mr->lkey};

	foe_ready(s->f);
	for (;;) {
		struct ibv_wc wc;

		for (unsigned int i = 0; i < TURNS; i++) {
			uint64_t at = (uint64_t)foe_below(s->f, LEN / CHUNK) * CHUNK;

			(void)foe_post(s->qp[0],
				       foe_below(s->f, 2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				       &sge, (uintptr_t)s->mem + at, s->mr->rkey);
			if (ibv_poll_cq(s->end.cq, 1, &wc) == 1 && wc.status != IBV_WC_SUCCESS)
				for (unsigned int k = 0; k < 2; k++)
					(void)foe_connect(s->qp[k], &s->peer[k]);
		}
		sched_yield();
		foe_round(s->f);
	}
}

/* ---- shared memory */

static void *
take_pages_out(void *arg)
{
	struct slow *s = arg;

	for (;;)
		if (madvise(s->mem, LEN, MADV_PAGEOUT) != 0)
			foe_skip("MADV_PAGEOUT");
	return NULL;
}

void
attack_pageout(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, NULL);
	foe_thread(take_pages_out, &s);
	move(&s);
}

/* The control group's file is run.py's: it made the group, and put this process there. */
static void *
have_pages_reclaimed(void *arg)
{
	const char *path = getenv("URNIC_TEST_RECLAIM"), *what = getenv("URNIC_TEST_RECLAIM_WORD");
	int fd = path && what ? open(path, O_WRONLY | O_CLOEXEC) : -1;

	(void)arg;
	if (fd < 0)
		foe_skip("no control group of memory");
	for (;;) /* fails with EAGAIN or EBUSY where less than that can be reclaimed */
		(void)!pwrite(fd, what, strlen(what), 0);
	return NULL;
}

void
attack_reclaim(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, NULL);
	foe_thread(have_pages_reclaimed, &s);
	move(&s);
}

/* NUMA nodes that this process may use, as bits. */
static unsigned long
nodes(void)
{
	unsigned long mask[16] = {0};

	/* Further words are for nodes beyond 63, which are left out. */
	if (syscall(SYS_get_mempolicy, NULL, mask, 8 * sizeof(mask), NULL, MPOL_F_MEMS_ALLOWED) !=
	    0)
		foe_skip("get_mempolicy");
	return mask[0];
}

/* Ask for each node in turn, page by page and for the whole; with one node, for that one. */
static void *
move_pages_about(void *arg)
{
	enum { PAGES = LEN / 4096 };
	static int node[PAGES], status[PAGES];
	static void *page[PAGES];
	struct slow *s = arg;
	unsigned long all = nodes(), left = all;

	for (unsigned int i = 0; i < PAGES; i++)
		page[i] = s->mem + 4096u * i;
	for (;;) {
		unsigned long one = left & -left;

		for (unsigned int i = 0; i < PAGES; i++)
			node[i] = __builtin_ctzl(one);
		if (syscall(SYS_move_pages, 0, PAGES, page, node, status, MPOL_MF_MOVE) < 0 &&
		    errno == ENOSYS)
			foe_skip("move_pages");
		(void)syscall(SYS_mbind, s->mem, LEN, MPOL_BIND, &one, 8 * sizeof(one),
			      MPOL_MF_MOVE);
		left = left == one ? all : left & ~one;
	}
	return NULL;
}

void
attack_migrate(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, NULL);
	foe_thread(move_pages_about, &s);
	move(&s);
}

/* Memory that is collapsed once; then all is made anew, because nothing splits it again. */
struct wide {
	struct foe *f;
	struct foe_end end;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;   /* region of mem */
	uint8_t *mem;	     /* SPARSE bytes */
	uint8_t *huge;	     /* another mapping of it, at a multiple of HUGE */
	size_t length;	     /* bytes of each mapping */
	void *map[MAPPINGS]; /* further mappings of mem: each makes the kernel's search longer */
	_Atomic bool done;   /* all is collapsed */
};

static void
wide_open(struct wide *w, const struct foe *f)
{
	struct urn_segment seg;
	uintptr_t at;

	foe_open(&w->end, f, "a", CHUNK, 1024);
	foe_pair(&w->end, &w->end, DEPTH, w->qp);
	w->mem = urn_alloc(SPARSE);
	FOE_MUST(w->mem != NULL && urn_segment_find(w->mem, SPARSE, &seg), "memory");
	memset(w->mem, 1, SPARSE);
	w->mr = ibv_reg_mr(w->end.pd, w->mem, SPARSE, FOE_ACCESS);
	FOE_MUST(w->mr != NULL, "region");
	w->length = seg.length;
	at = (uintptr_t)mmap(NULL, seg.length + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	at = (at + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
	w->huge = mmap((void *)at, seg.length, PROT_READ, MAP_SHARED | MAP_FIXED, seg.fd, 0);
	FOE_MUST(w->huge == (void *)at, "map");
	for (unsigned int i = 0; i < MAPPINGS; i++)
		w->map[i] = mmap(NULL, seg.length, PROT_READ, MAP_SHARED, seg.fd, 0);
	w->done = false;
}

static void
wide_close(struct wide *w)
{
	(void)munmap(w->huge, w->length);
	for (unsigned int i = 0; i < MAPPINGS; i++)
		if (w->map[i] != MAP_FAILED)
			(void)munmap(w->map[i], w->length);
	for (unsigned int i = 0; i < 2; i++)
		FOE_MUST(ibv_destroy_qp(w->qp[i]) == 0, "destroy");
	FOE_MUST(ibv_dereg_mr(w->mr) == 0, "deregister");
	foe_close(&w->end);
	urn_free(w->mem);
}

static void *
collapse_pages(void *arg)
{
	struct wide *w = arg;

	for (size_t off = 0; off + HUGE <= w->length; off += HUGE) {
		if (madvise(w->huge + off, HUGE, MADV_COLLAPSE) != 0 && errno == EINVAL)
			foe_skip("MADV_COLLAPSE");
		foe_round(w->f);
	}
	atomic_store(&w->done, true);
	return NULL;
}

void
attack_collapse(struct foe *f)
{
	static struct wide w;

	w.f = f;
	foe_ready(f);
	for (;;) {
		struct ibv_sge sge;
		pthread_t t;

		wide_open(&w, f);
		sge = (struct ibv_sge){(uintptr_t)w.end.buf, 64, w.end.mr->lkey};
		FOE_MUST(pthread_create(&t, NULL, collapse_pages, &w) == 0, "thread");
		while (!atomic_load(&w.done)) {
			(void)foe_post(w.qp[0], IBV_WR_RDMA_WRITE, &sge,
				       (uintptr_t)w.mem + foe_below(f, SPARSE - 64), w.mr->rkey);
			(void)foe_drain(w.end.cq);
		}
		FOE_MUST(pthread_join(t, NULL) == 0, "thread");
		wide_close(&w);
	}
}

/* Memory that was never touched is shared, written in a few places, and given back. */
void
attack_sparse(struct foe *f)
{
	struct foe_end e;
	struct ibv_qp *qp[2];

	foe_open(&e, f, "a", 1 << 16, 1024);
	foe_pair(&e, &e, DEPTH, qp);
	foe_ready(f);
	for (;;) {
		uint8_t *p = urn_alloc(SPARSE);
		struct ibv_mr *mr = p ? ibv_reg_mr(e.pd, p, SPARSE, FOE_ACCESS) : NULL;
		struct ibv_sge sge = {(uintptr_t)e.buf, 64, e.mr->lkey};

		for (unsigned int i = 0; mr && i < DEPTH; i++)
			(void)foe_post(qp[0], IBV_WR_RDMA_WRITE, &sge,
				       (uintptr_t)p + foe_below(f, SPARSE - 64), mr->rkey);
		for (unsigned int done = 0; mr && done < DEPTH; done += foe_drain(e.cq))
			usleep(10);
		if (mr)
			FOE_MUST(ibv_dereg_mr(mr) == 0, "deregister");
		urn_free(p);
		foe_round(f);
	}
}

/* ---- memory of the program's own */

static void *
unmap_and_map(void *arg)
{
	struct slow *s = arg;

	for (;;) {
		(void)munmap(s->mem, LEN);
		usleep(100);
		FOE_MUST(mmap(s->mem, LEN, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == s->mem,
			 "map");
		usleep(100);
	}
	return NULL;
}

void
attack_unmap(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, private_memory());
	foe_thread(unmap_and_map, &s);
	move(&s);
}

static void *
take_and_give_rights(void *arg)
{
	struct slow *s = arg;

	for (;;) {
		(void)mprotect(s->mem, LEN, PROT_NONE);
		(void)mprotect(s->mem + LEN / 2, LEN / 2, PROT_READ);
		(void)mprotect(s->mem, LEN, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

void
attack_protect(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, private_memory());
	foe_thread(take_and_give_rights, &s);
	move(&s);
}

static void *
fork_and_write(void *arg)
{
	struct slow *s = arg;

	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			usleep(2000);
			_exit(0);
		}
		for (size_t i = 0; i < LEN; i += 4096)
			((volatile uint8_t *)s->mem)[i] = 1;
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
	return NULL;
}

void
attack_cow(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, private_memory());
	foe_thread(fork_and_write, &s);
	move(&s);
}

static void *
punch_holes(void *arg)
{
	struct slow *s = arg;

	for (;;) {
		(void)fallocate(s->fd, 0, 0, LEN);
		(void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, LEN);
	}
	return NULL;
}

void
attack_punch(struct foe *f)
{
	int fd = memfd_create("attack", MFD_CLOEXEC);
	struct slow s;

	FOE_MUST(fd >= 0 && ftruncate(fd, LEN) == 0, "memfd");
	slow_open(&s, f, mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	s.fd = fd;
	foe_thread(punch_holes, &s);
	move(&s);
}

static void *
hold_the_lock(void *arg)
{
	(void)arg;
	for (;;) {
		void *p = mmap(NULL, POPULATED, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (p != MAP_FAILED)
			(void)munmap(p, POPULATED);
	}
	return NULL;
}

void
attack_maplock(struct foe *f)
{
	struct slow s;

	slow_open(&s, f, private_memory());
	foe_thread(hold_the_lock, &s);
	move(&s);
}

/* The whole memory waits for a userfaultfd that nobody reads. */
void
attack_never(struct foe *f)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *mem = private_memory();
	struct uffdio_register reg = {.range = {(uintptr_t)mem, LEN},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct slow s;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
		foe_skip("userfaultfd");
	slow_open(&s, f, mem);
	FOE_MUST(ioctl(fd, UFFDIO_REGISTER, &reg) == 0, "userfaultfd");
	move(&s);
}
