/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that shares memory without pages, which the kernel would charge to the dataplane as its
 * engines touch them, is refused; the library populates what it registers (control/shm.h). And what
 * core dumps have of programs' memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "attach/alloc.h"
#include "control/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ull
#define SPARSE (4ull << 30) /* bytes of memory that is shared and has no page */
#define AT (1ull << 40)	    /* its address, by the program's word */

/* A program by hand, with a memfd that it shares. */
struct sparse {
	int sock, fd;
	uint32_t pd;
	uint8_t *map;
};

static void
attach(const struct rig *r, struct sparse *s, uint64_t bytes)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	s->sock = hostile_dial(r);
	hostile_hello(s->sock);
	assert_int_equal(hostile_open(s->sock, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	q.call.op = URN_CTL_ALLOC_PD;
	s->pd = hostile_ask(s->sock, &q).call.handle;
	assert_int_not_equal(s->pd, 0);
	s->fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(s->fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	s->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
	assert_true(s->map != MAP_FAILED);
}

static void
share(const struct sparse *s, uint64_t bytes)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = AT;
	q.call.share.length = bytes;
	hostile_post(s->sock, &q, q.head.bytes, &s->fd, 1);
	assert_int_equal(hostile_take(s->sock).call.err, 0);
}

static void
leave(struct rig *r, struct sparse *s, uint64_t bytes)
{
	close(s->sock);
	close(s->fd);
	munmap(s->map, bytes);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_others_go_on(r);
}

/* Register len bytes at off. returns: the answer; a region that was made is taken back */
static struct urn_abi_rep
reg(const struct sparse *s, uint64_t off, uint64_t len)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	struct urn_abi_rep rep;

	q.call.op = URN_CTL_REG_MR;
	q.call.reg_mr.pd = s->pd;
	q.call.reg_mr.access = URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE;
	q.call.reg_mr.addr = q.call.reg_mr.iova = AT + off;
	q.call.reg_mr.length = len;
	rep = hostile_ask(s->sock, &q).call;
	if (rep.err == 0) {
		q = hostile_question(URN_SOCK_CALL);
		q.call.op = URN_CTL_DEREG_MR;
		q.call.handle = rep.handle;
		assert_int_equal(hostile_ask(s->sock, &q).call.err, 0);
	}
	return rep;
}

static uint64_t
pages(const struct sparse *s)
{
	struct stat st;

	assert_int_equal(fstat(s->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512 / PAGE;
}

/* 4 GiB without a page can be shared, which costs nothing, and not be registered; nobody gives it
 * pages. */
static void
test_sparse(void **state)
{
	struct rig *r = *state;
	struct urn_abi_rep rep;
	struct sparse s;
	uint64_t had;

	attach(r, &s, SPARSE);
	share(&s, SPARSE);
	rep = reg(&s, 0, SPARSE);
	assert_int_equal(rep.err, EFAULT);
	assert_non_null(strstr(rep.why, "has no page"));
	assert_int_equal(reg(&s, 0, 1).err, EFAULT);
	assert_int_equal(reg(&s, SPARSE - 1, 1).err, EFAULT);
	assert_int_equal(pages(&s), 0);
	/* Pages that the program has written may be registered, to their last byte and no further.
	 */
	memset(s.map + 2 * PAGE, 1, 2 * PAGE);
	s.map[SPARSE - 1] = 1;
	had = pages(&s);
	assert_int_equal(reg(&s, 2 * PAGE, 2 * PAGE).err, 0);
	assert_int_equal(reg(&s, 2 * PAGE + 7, PAGE).err, 0);
	assert_int_equal(reg(&s, SPARSE - PAGE, PAGE).err, 0);
	assert_int_equal(reg(&s, 2 * PAGE - 1, 2).err, EFAULT);
	assert_int_equal(reg(&s, 2 * PAGE, 2 * PAGE + 1).err, EFAULT);
	assert_int_equal(pages(&s), had);
	leave(r, &s, SPARSE);
}

/* Pages behind the memory that is shared, or behind the file's end, do not count for it. */
static void
test_elsewhere(void **state)
{
	struct rig *r = *state;
	struct sparse s;

	attach(r, &s, 64 * PAGE);
	memset(s.map + 32 * PAGE, 1, 32 * PAGE);
	(void)fallocate(s.fd, FALLOC_FL_KEEP_SIZE, 64 * PAGE, 64 * PAGE);
	assert_true(pages(&s) >= 32);
	share(&s, 32 * PAGE);
	assert_int_equal(reg(&s, 0, 32 * PAGE).err, EFAULT);
	assert_int_equal(reg(&s, 31 * PAGE, 1).err, EFAULT);
	leave(r, &s, 64 * PAGE);
}

/* Pages can't be taken away again, nor the answer be changed by rights on the file. */
static void
test_stays(void **state)
{
	struct rig *r = *state;
	struct sparse s;

	attach(r, &s, 4 * PAGE);
	memset(s.map, 1, 2 * PAGE);
	share(&s, 4 * PAGE);
	assert_int_equal(fallocate(s.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -1);
	assert_int_equal(madvise(s.map, PAGE, MADV_REMOVE), -1);
	assert_int_equal(madvise(s.map, PAGE, MADV_DONTNEED), 0);
	assert_true(pages(&s) >= 2);
	assert_int_equal(reg(&s, 0, 2 * PAGE).err, 0);
	assert_int_equal(fchmod(s.fd, 0), 0);
	assert_int_equal(reg(&s, 0, 2 * PAGE).err, 0);
	assert_int_equal(reg(&s, 2 * PAGE, PAGE).err, EFAULT);
	leave(r, &s, 4 * PAGE);
}

/* The library populates the memory that a program registers, and no more. */
static void
test_library(void **state)
{
	enum { MIB = 1 << 20 };
	struct rig *r = *state;
	uint8_t *p = urn_alloc(64 * MIB); /* more than a segment: it has one of its own */
	struct urn_segment seg;
	struct ibv_mr *mr;
	struct stat st;

	assert_non_null(p);
	assert_true(urn_segment_find(p, 64 * MIB, &seg));
	mr = ibv_reg_mr(r->end[0].pd, p + 8 * MIB + 5, 4 * MIB, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(fstat(seg.fd, &st), 0);
	/* Huge pages, if the system gives them, are at both ends. */
	assert_in_range((uint64_t)st.st_blocks * 512, 4 * MIB, 8 * MIB);
	for (unsigned int i = 0; i < 4 * MIB; i++)
		assert_int_equal(p[8 * MIB + 5 + i], 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	urn_free(p);
	hostile_others_go_on(r);
}

/*
 * Count the mappings of a file in this process, but for that at `skip`. *out: those of them that
 * are left out of core dumps
 */
static unsigned int
mappings(uint64_t ino, const void *skip, unsigned int *out)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long long start, end, of;
	bool counts = false;
	unsigned int n = 0;
	char line[512];

	assert_non_null(f);
	*out = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %*4s %*x %*x:%*x %llu", &start, &end, &of) == 3) {
			counts = of == ino && start != (uintptr_t)skip;
			n += counts;
		}
		if (counts && strncmp(line, "VmFlags:", 8) == 0)
			*out += strstr(line, " dd") != NULL;
	}
	fclose(f);
	return n;
}

/* A core dump of the dataplane has neither the memory that a program shares, nor its queues. */
static void
test_dumps(void **state)
{
	struct rig *r = *state;
	const struct urn_client *c;
	unsigned int out, n;
	struct sparse s;
	struct stat st;

	attach(r, &s, 4 * PAGE);
	memset(s.map, 1, 4 * PAGE);
	share(&s, 4 * PAGE);
	c = LIST_FIRST(&r->dp->adapter[0]->clients); /* the newest */
	assert_int_equal(fstat(s.fd, &st), 0);
	n = mappings(st.st_ino, s.map, &out);
	assert_true(n > 0);
	assert_int_equal(out, n);
	n = mappings(c->area.ino, NULL, &out); /* the program has not mapped its area */
	assert_true(n > 0);
	assert_int_equal(out, n);
	leave(r, &s, 4 * PAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sparse), cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_stays),  cmocka_unit_test(test_library),
		cmocka_unit_test(test_dumps),
	};

	return cmocka_run_group_tests_name("sparse", tests, hostile_setup, hostile_teardown);
}
