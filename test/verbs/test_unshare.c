/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that programs share takes time to unmap: others' calls go on meanwhile, and no
 * quota is given back before the unmapping is done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"
#include "control/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define M (1u << 20)
#define PIECE (400ull * M + 4096) /* not a multiple of a part, and no other mapping's size */
#define TWICE (3ull * M + 4096) /* likewise; memory that two connections share */
#define MOST (700ull * M) /* limit of a user: one such piece beside the rig's memory, and no second */

static struct rig rig;

/* ---- a kernel that takes its time */

static _Atomic(uint8_t *) slow; /* start of the memory whose unmapping is held up; NULL: none is */
static _Atomic bool held, late;
static _Atomic uint64_t largest, unmapped; /* bytes of it unmapped: in one call at most, and all together */

static _Atomic bool shared_meanwhile; /* another connection maps and seals a piece of TWICE just before this one does */

void *__real_mmap64(void *at, size_t length, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *at, size_t length, int prot, int flags, int fd, off_t off);
int __real_munmap(void *at, size_t length);
int __wrap_munmap(void *at, size_t length);

void *
__wrap_mmap64(void *at, size_t length, int prot, int flags, int fd, off_t off)
{
	void *p;

	if (length == TWICE && atomic_exchange(&shared_meanwhile, false))
		assert_int_equal(urn_shm_keep(fd, length), 0);
	p = __real_mmap64(at, length, prot, flags, fd, off);
	if (length == PIECE)
		slow = p;
	return p;
}

/* Wait for the test's permission; without it, go on after a while and report that. */
static void
wait_for_leave(void)
{
	time_t end = time(NULL) + 20;

	while (held && time(NULL) < end)
		usleep(1000);
	late |= held;
	held = false;
}

int
__wrap_munmap(void *at, size_t length)
{
	uint8_t *from = slow;

	if (from && (uint8_t *)at >= from && (uint8_t *)at < from + PIECE) {
		if (at == from) {
			held = true;
			wait_for_leave();
		}
		unmapped += length;
		if (length > largest)
			largest = length;
	}
	return __real_munmap(at, length);
}

/* ---- programs */

static int
dial(unsigned int adapter)
{
	int sock = hostile_dial(&rig);

	hostile_hello(sock);
	assert_int_equal(hostile_open(sock, rig.dp->adapter[adapter]->cfg.name, NULL, 0).err, 0);
	return sock;
}

/* Make a new piece: one that was unshared by all can't be shared again. */
static struct urn_abi_rep
share_bytes(int sock, uint64_t length)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)length), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);

	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = 4096;
	q.call.share.length = length;
	hostile_post(sock, &q, q.head.bytes, &fd, 1);
	close(fd);
	return hostile_take(sock).call;
}

static struct urn_abi_rep
share(int sock)
{
	return share_bytes(sock, PIECE);
}

static void
post_unshare(int sock, uint32_t handle)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = URN_CTL_UNSHARE;
	q.call.handle = handle;
	hostile_post(sock, &q, q.head.bytes, NULL, 0);
}

static void
until_held(void)
{
	time_t end = time(NULL) + 20;

	while (!held && time(NULL) < end)
		usleep(1000);
	assert_true(held);
}

/* While a piece is being unmapped: calls of others are answered, and its bytes are given to nobody else. */
static void
others_meanwhile(int other)
{
	struct ibv_pd *pd;

	until_held();
	pd = ibv_alloc_pd(rig.end[0].ctx);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	hostile_others_go_on(&rig);
	assert_int_equal(share(other).err, EDQUOT);
	assert_false(late);
	assert_true(held);
	held = false;
}

static void
test_unshare(void **state)
{
	struct rig_config cfg = {.remote = true};
	struct urn_abi_rep rep;
	int x, y;

	(void)state;
	cfg.per_uid.max[URN_QUOTA_SHARED] = MOST;
	rig_open(&rig, &cfg, NULL);
	x = dial(0);
	y = dial(0);
	rep = share(x);
	assert_int_equal(rep.err, 0);
	assert_non_null(slow);
	post_unshare(x, rep.handle);
	others_meanwhile(y);
	assert_int_equal(hostile_take(x).call.err, 0);
	/*
	 * All of the piece, a part at a time: a thread that maps memory meanwhile waits for
	 * the kernel's lock.
	 */
	assert_int_equal(unmapped, PIECE);
	assert_in_range(largest, 1, 64 * M);
	/* The same again, and now the program goes. */
	rep = share(y);
	assert_int_equal(rep.err, 0);
	close(y);
	others_meanwhile(x);
	assert_int_equal(hostile_clients(&rig, 3), 3);
	assert_int_equal(unmapped, 2 * PIECE);
	slow = NULL;
	assert_int_equal(share(x).err, 0);
	slow = NULL;
	close(x);
	assert_int_equal(hostile_clients(&rig, 2), 2);
	rig_close(&rig);
}

/*
 * Two connections share the same memory at the same time: the second finds no mapping, and
 * then can't map the memory any more, for the first has sealed it. The second uses the
 * first one's mapping.
 */
static void
test_twice(void **state)
{
	struct rig_config cfg = {.remote = true};
	struct urn_abi_rep rep;
	int x;

	(void)state;
	rig_open(&rig, &cfg, NULL);
	x = dial(0);
	shared_meanwhile = true;
	rep = share_bytes(x, TWICE);
	assert_false(shared_meanwhile);
	assert_int_equal(rep.err, 0);
	post_unshare(x, rep.handle);
	assert_int_equal(hostile_take(x).call.err, 0);
	close(x);
	assert_int_equal(hostile_clients(&rig, 2), 2);
	rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unshare),
		cmocka_unit_test(test_twice),
	};

	return cmocka_run_group_tests_name("unshare", tests, NULL, NULL);
}
