/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of each kind, registered as programs register it: works as on hardware, or is refused by
 * ibv_reg_mr() with the same errno value. usage: memory KIND [FOLDER]
 */
#include "rig.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 * 4096, HUGE_BYTES = 2 << 20 };

static const struct rig_options plain;
static struct rig r;
static const char *folder = ".";

/* Fill memory with bytes that a seed picks. */
static void
fill(char *at, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		at[i] = (char)(seed + i * 7 + (i >> 8));
}

/* True when memory has these bytes. */
static bool
filled(const char *at, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (at[i] != (char)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

/* Run one request of a, which succeeds. */
static void
moves(enum ibv_wr_opcode op, char *local, struct ibv_mr *a, char *remote, struct ibv_mr *b,
      size_t length)
{
	EQUAL(end_send(&r.a, op, (uintptr_t)local, (uint32_t)length, a->lkey, (uintptr_t)remote,
		       b->rkey),
	      0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
}

/*
 * Use memory for everything: as the source and the target of WRITE, of READ and of SEND, at
 * addresses that are aligned to nothing.
 */
static void
all_ways(char *own, size_t length)
{
	static char other[HUGE_BYTES];
	struct ibv_mr *a, *b, *mine, *theirs;
	size_t off = 3, n = length - 8;

	mine = reg(&r.a, own, length);
	theirs = reg(&r.b, own, length);
	a = reg(&r.a, other, sizeof(other));
	b = reg(&r.b, other, sizeof(other));
	fill(own + off, n, 1);
	moves(IBV_WR_RDMA_WRITE, own + off, mine, other + 1, b, n);
	CHECK(filled(other + 1, n, 1));
	fill(other + 1, n, 2);
	moves(IBV_WR_RDMA_WRITE, other + 1, a, own + off, theirs, n);
	CHECK(filled(own + off, n, 2));
	fill(other + 1, n, 3);
	moves(IBV_WR_RDMA_READ, own + off, mine, other + 1, b, n);
	CHECK(filled(own + off, n, 3));
	fill(own + off, n, 4);
	moves(IBV_WR_RDMA_READ, other + 1, a, own + off, theirs, n);
	CHECK(filled(other + 1, n, 4));
	fill(other + 1, n, 5);
	EQUAL(end_recv(&r.b, (uintptr_t)own + off, (uint32_t)n, theirs->lkey), 0);
	moves(IBV_WR_SEND, other + 1, a, NULL, b, n);
	EQUAL(end_wait(&r.b, NULL), IBV_WC_SUCCESS);
	CHECK(filled(own + off, n, 5));
	EQUAL(ibv_dereg_mr(mine), 0);
	EQUAL(ibv_dereg_mr(theirs), 0);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
}

static char *
map(int prot, int flags, int fd, size_t length)
{
	char *at = mmap(NULL, length, prot, flags, fd, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static int
file(int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/memory.file", folder);
	CHECK((fd = open(path, flags | O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0);
	EQUAL(ftruncate(fd, BYTES), 0);
	return fd;
}

static void
heap(void)
{
	char *at = malloc(BYTES), *small = malloc(40);

	all_ways(at, BYTES);
	all_ways(small, 40);
	free(at);
	free(small);
}

static void
stack(void)
{
	char at[BYTES];

	all_ways(at, sizeof(at));
}

static void
anonymous(void)
{
	all_ways(map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES), BYTES);
	all_ways(map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, BYTES), BYTES);
}

/* A region over two mappings of different kinds. */
static void
across(void)
{
	char *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES);

	CHECK(mmap(at + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS,
		   -1, 0) != MAP_FAILED);
	all_ways(at, BYTES);
}

static void
memfd(void)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	char *at, *again;

	EQUAL(ftruncate(fd, BYTES), 0);
	at = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, BYTES);
	all_ways(at, BYTES);
	again = map(PROT_READ, MAP_SHARED, fd, BYTES);
	EQUAL(memcmp(at, again, BYTES), 0);
}

/* The file gets bytes that come into a shared mapping, and none of a private one. */
static void
files(void)
{
	int fd = file(0);
	char *at = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, BYTES), *now = malloc(BYTES),
	     *then = malloc(BYTES);

	all_ways(at, BYTES);
	EQUAL(pread(fd, now, BYTES, 0), BYTES);
	EQUAL(memcmp(at, now, BYTES), 0);
	at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, BYTES);
	all_ways(at, BYTES);
	EQUAL(pread(fd, then, BYTES, 0), BYTES);
	EQUAL(memcmp(then, now, BYTES), 0);
	free(now);
	free(then);
}

/* Pages of a mapping behind the end of its file are no memory: EFAULT, as where pages are pinned.
 */
static void
beyond(void)
{
	const int sharing[] = {MAP_SHARED, MAP_PRIVATE};
	int fd = file(0);
	struct ibv_mr *mr;
	size_t i;
	char *at;

	EQUAL(ftruncate(fd, 4096), 0);
	for (i = 0; i < 2; i++) {
		at = map(PROT_READ | PROT_WRITE, sharing[i], fd, 8192);
		CHECK((mr = ibv_reg_mr(r.a.pd, at, 4096, REG_ALL)) != NULL);
		EQUAL(ibv_dereg_mr(mr), 0);
		errno = 0;
		CHECK(ibv_reg_mr(r.a.pd, at, 4097, REG_ALL) == NULL);
		EQUAL(errno, EFAULT);
		CHECK(ibv_reg_mr(r.a.pd, at + 4096, 1, 0) == NULL);
		EQUAL(errno, EFAULT);
	}
}

/* Memory that may only be read is registered for reading, and is a source; other rights are
 * refused. */
static void
readonly(void)
{
	static char target[BYTES];
	int fd = file(0);
	char *seen = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, BYTES), *at;
	const int writes[] = {IBV_ACCESS_LOCAL_WRITE, REG_ALL};
	struct ibv_mr *a, *b = reg(&r.b, target, BYTES), *theirs;
	size_t i;

	fill(seen, BYTES, 9);
	at = map(PROT_READ, MAP_SHARED, fd, BYTES);
	for (i = 0; i < 2; i++) {
		errno = 0;
		CHECK(ibv_reg_mr(r.a.pd, at, BYTES, writes[i]) == NULL);
		EQUAL(errno, EFAULT);
	}
	CHECK((a = ibv_reg_mr(r.a.pd, at, BYTES, 0)) != NULL);
	moves(IBV_WR_RDMA_WRITE, at, a, target, b, BYTES);
	CHECK(filled(target, BYTES, 9));
	CHECK((theirs = ibv_reg_mr(r.b.pd, at, BYTES, IBV_ACCESS_REMOTE_READ)) != NULL);
	EQUAL(ibv_dereg_mr(a), 0);
	a = reg(&r.a, target, BYTES);
	memset(target, 0, BYTES);
	moves(IBV_WR_RDMA_READ, target, a, at, theirs, BYTES);
	CHECK(filled(target, BYTES, 9));
	/* The right to write is not there, so a WRITE is refused, and so is a READ into the region.
	 */
	EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, (uintptr_t)target, 8, a->lkey, (uintptr_t)at,
		       theirs->rkey),
	      0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_ACCESS_ERR);
	rig_connect(&r);
	EQUAL(ibv_dereg_mr(a), 0);
	CHECK((a = ibv_reg_mr(r.a.pd, at, BYTES, 0)) != NULL);
	EQUAL(end_send(&r.a, IBV_WR_RDMA_READ, (uintptr_t)at, 8, a->lkey, (uintptr_t)target,
		       b->rkey),
	      0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_LOC_PROT_ERR);
	CHECK(filled(seen, BYTES, 9));
	rig_connect(&r);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
	EQUAL(ibv_dereg_mr(theirs), 0);
}

static void
sysv(void)
{
	int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
	char *at;

	CHECK(id >= 0);
	at = shmat(id, NULL, 0);
	CHECK(at != (char *)-1);
	EQUAL(shmctl(id, IPC_RMID, NULL), 0);
	all_ways(at, BYTES);
	EQUAL(shmdt(at), 0);
}

static void
hugetlb(void)
{
	char *at = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (at == MAP_FAILED) {
		puts("no huge pages");
		return;
	}
	all_ways(at, HUGE_BYTES);
	munmap(at, HUGE_BYTES);
	at = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	CHECK(at != MAP_FAILED);
	all_ways(at, HUGE_BYTES);
}

/* A region fails to be registered with this errno value. */
static void
refused(void *at, size_t length, int access, int err)
{
	errno = 0;
	CHECK(ibv_reg_mr(r.a.pd, at, length, access) == NULL);
	EQUAL(errno, err);
}

/* Ranges that are no memory, and the region without a byte. */
static void
ranges(void)
{
	char *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES), byte;
	char *none = map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES);
	struct ibv_mr *mr;

	EQUAL(munmap(at + 4096, 4096), 0);
	refused(at, BYTES, 0, EFAULT);
	refused(at + 4096, 1, 0, EFAULT);
	refused(none, 1, 0, EFAULT);
	refused(NULL, 1, 0, EFAULT);
	refused((void *)(uintptr_t)-8, 16, 0, EINVAL);
	refused(at, SIZE_MAX, 0, EINVAL);
	refused(at, 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refused(at, 4096, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	CHECK((mr = ibv_reg_mr(r.a.pd, &byte, 0, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	EQUAL(mr->length, 0);
	EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, (uintptr_t)&byte, 1, mr->lkey, 0, 0), 0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_LOC_PROT_ERR);
	EQUAL(ibv_dereg_mr(mr), 0);
	rig_connect(&r);
}

/* Regions over the same bytes, with other rights each, and one that changes. */
static void
overlap(void)
{
	static char at[BYTES], from[BYTES];
	struct ibv_mr *a = reg(&r.a, from, BYTES), *all = reg(&r.b, at, BYTES), *tail, *weak;
	uint32_t key;

	tail = reg(&r.b, at + 100, BYTES - 100);
	CHECK((weak = ibv_reg_mr(r.b.pd, at, BYTES, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	fill(from, BYTES, 1);
	moves(IBV_WR_RDMA_WRITE, from, a, at, all, BYTES);
	CHECK(filled(at, BYTES, 1));
	fill(from, BYTES, 2);
	moves(IBV_WR_RDMA_WRITE, from, a, at + 100, tail, BYTES - 100);
	CHECK(filled(at, 100, 1) && filled(at + 100, BYTES - 100, 2));
	EQUAL(ibv_dereg_mr(all), 0);
	moves(IBV_WR_RDMA_READ, from, a, at + 100, tail, 8);
	key = weak->rkey;
	EQUAL(ibv_rereg_mr(weak, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, REG_ALL), 0);
	/* A peer that was told the key goes on using it. */
	EQUAL(weak->rkey, key);
	fill(from, BYTES, 3);
	moves(IBV_WR_RDMA_WRITE, from, a, at, weak, BYTES);
	CHECK(filled(at, BYTES, 3));
	EQUAL(ibv_rereg_mr(weak, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, from, 64, 0), 0);
	EQUAL(weak->rkey, key);
	EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, (uintptr_t)from, 8, a->lkey, (uintptr_t)at,
		       weak->rkey),
	      0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_ACCESS_ERR);
	rig_connect(&r);
	EQUAL(ibv_dereg_mr(weak), 0);
	EQUAL(ibv_dereg_mr(tail), 0);
	EQUAL(ibv_dereg_mr(a), 0);
}

/* Memory goes and comes back at the same address: the region made anew is the new memory. */
static void
anew(void)
{
	static char from[BYTES];
	struct ibv_mr *a = reg(&r.a, from, BYTES), *b;
	char *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES);
	int i;

	for (i = 1; i <= 5; i++) {
		b = reg(&r.b, at, BYTES);
		fill(from, BYTES, (unsigned int)i);
		moves(IBV_WR_RDMA_WRITE, from, a, at, b, BYTES);
		CHECK(filled(at, BYTES, (unsigned int)i));
		EQUAL(ibv_dereg_mr(b), 0);
		EQUAL(munmap(at, BYTES), 0);
		CHECK(mmap(at, BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
		EQUAL(at[0], 0);
	}
	/* A region whose memory has gone: requests fail, nobody else notices, and it is
	 * deregistered. */
	b = reg(&r.b, at, BYTES);
	EQUAL(munmap(at, BYTES), 0);
	EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, (uintptr_t)from, BYTES, a->lkey, (uintptr_t)at,
		       b->rkey),
	      0);
	CHECK(end_wait(&r.a, NULL) != IBV_WC_SUCCESS);
	EQUAL(ibv_dereg_mr(b), 0);
	rig_connect(&r);
	EQUAL(ibv_dereg_mr(a), 0);
}

/* The child opens devices of its own, and uses its copy of the parent's memory. */
static void
child_work(void)
{
	char own[BYTES];

	rig_open(&r);
	rig_make(&r, &plain);
	all_ways(own, BYTES);
	rig_unmake(&r);
	rig_close(&r);
}

/* Parent and child use memory: each sees its own private bytes, and both the shared ones. */
static void
forks(void)
{
	char *private = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES),
	     *from = malloc(BYTES);
	char *shared = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, BYTES);
	struct ibv_mr *a, *p, *s;
	int to[2], status;
	char byte;
	pid_t pid;

	EQUAL(ibv_fork_init(), 0);
	a = reg(&r.a, from, BYTES);
	p = reg(&r.b, private, BYTES);
	s = reg(&r.b, shared, BYTES);
	fill(private, BYTES, 1);
	fill(from, BYTES, 1);
	EQUAL(pipe(to), 0);
	CHECK((pid = fork()) >= 0);
	if (pid == 0) {
		EQUAL(read(to[0], &byte, 1), 1);
		CHECK(filled(private, BYTES, 1));
		CHECK(filled(shared, BYTES, 2));
		fill(private, BYTES, 8);
		fill(from, BYTES, 9);
		child_work();
		_exit(0);
	}
	/* The parent's write breaks the common pages, and the bytes that it wrote are sent. */
	fill(from, BYTES, 2);
	moves(IBV_WR_RDMA_WRITE, from, a, private, p, BYTES);
	CHECK(filled(private, BYTES, 2));
	moves(IBV_WR_RDMA_WRITE, from, a, shared, s, BYTES);
	EQUAL(write(to[1], "x", 1), 1);
	EQUAL(waitpid(pid, &status, 0), pid);
	EQUAL(status, 0);
	CHECK(filled(private, BYTES, 2) && filled(from, BYTES, 2));
	fill(from, BYTES, 3);
	moves(IBV_WR_RDMA_WRITE, from, a, private, p, BYTES);
	CHECK(filled(private, BYTES, 3));
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(p), 0);
	EQUAL(ibv_dereg_mr(s), 0);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = {
		{"heap", heap},		{"stack", stack},     {"anonymous", anonymous},
		{"across", across},	{"memfd", memfd},     {"files", files},
		{"readonly", readonly}, {"sysv", sysv},	      {"hugetlb", hugetlb},
		{"ranges", ranges},	{"overlap", overlap}, {"anew", anew},
		{"forks", forks},	{"beyond", beyond},
	};
	size_t i;

	if (argc > 2)
		folder = argv[2];
	for (i = 0; argc >= 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[1]) != 0)
			continue;
		rig_open(&r);
		rig_make(&r, &plain);
		kinds[i].run();
		rig_unmake(&r);
		rig_close(&r);
		return 0;
	}
	fprintf(stderr, "usage: memory KIND [FOLDER]\n");
	return 2;
}
