/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that punch holes into memory that they share with the dataplane - their area,
 * a piece of memory - while an engine works with it: architecture rule 3. An engine that
 * touches a page being punched waits in the kernel until that is through, and nothing
 * ends the wait; so once an engine looks, no hole can be punched, and before that a hole
 * holds up the program itself.
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
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20, FILLED = 64 << 20, OTHERS = 50 };

/* A program's area, as the program has it. */
struct hole_area {
	int sock, fd;
	uint8_t *map;
	uint64_t size;
};

/* Open an adapter by hand, and keep the area's descriptor. */
static void
area_open(const struct rig *r, struct hole_area *a)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(URN_SOCK_FDS * sizeof(int))];
	} control;
	struct urn_sock_ask q = hostile_question(URN_SOCK_OPEN);
	struct urn_sock_answer answer;
	struct iovec iov = {.iov_base = &answer, .iov_len = sizeof(answer)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fds[URN_SOCK_FDS];
	struct cmsghdr *c;
	size_t n;

	a->sock = hostile_dial(r);
	hostile_hello(a->sock);
	memcpy(q.open.name, r->dp->adapter[0]->cfg.name, sizeof(q.open.name));
	hostile_post(a->sock, &q, q.head.bytes, NULL, 0);
	assert_int_equal(recvmsg(a->sock, &msg, MSG_CMSG_CLOEXEC), sizeof(answer));
	assert_int_equal(answer.err, 0);
	c = CMSG_FIRSTHDR(&msg);
	assert_non_null(c);
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	while (n > 1)
		close(fds[--n]);
	a->fd = fds[0];
	a->size = answer.open.area_size;
	a->map = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	assert_true(a->map != MAP_FAILED);
}

static void
area_close(struct hole_area *a)
{
	close(a->sock);
	close(a->fd);
	munmap(a->map, a->size);
}

static int
punch(int fd, uint64_t length)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)length);
}

/* Both ways of punching a hole fail as the kernel's manual says; the mapping can be written as before. */
static void
no_hole(int fd, uint8_t *map, uint64_t length)
{
	assert_int_equal(punch(fd, length), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(madvise(map, length, MADV_REMOVE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	map[length - 1] = 0x5a;
	assert_int_equal(map[length - 1], 0x5a);
}

/* Make a control call without descriptors. returns: its errno value */
static int
call(int sock, uint32_t op)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = op;
	return hostile_ask(sock, &q).call.err;
}

/* ---- the area */

static void
test_area(void **state)
{
	struct rig *r = *state;
	struct hole_area a;

	area_open(r, &a);
	/* No engine looks yet, and the program may do with the area as it likes. */
	assert_int_equal(punch(a.fd, a.size), 0);
	assert_int_equal(madvise(a.map, a.size, MADV_REMOVE), 0);
	assert_int_equal(call(a.sock, URN_CTL_ALLOC_PD), 0);
	no_hole(a.fd, a.map, a.size);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0), MAP_FAILED);
	/* The library's own mappings do not hinder its work: the rig's pair has areas sealed so. */
	hostile_others_go_on(r);
	area_close(&a);
	assert_int_equal(hostile_clients(r, 2), 2);
}

/* Events are asked for first: this seals the area, too. */
static void
test_area_events(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_EVENTS);
	struct hole_area a;

	area_open(r, &a);
	assert_int_equal(hostile_ask(a.sock, &q).err, 0);
	no_hole(a.fd, a.map, a.size);
	area_close(&a);
	assert_int_equal(hostile_clients(r, 2), 2);
}

/* A program that makes its area impossible to seal is told why, and turned away. */
static void
test_area_seals_sealed(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	struct urn_sock_answer answer;
	struct hole_area a;

	area_open(r, &a);
	assert_int_equal(fcntl(a.fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	q.call.op = URN_CTL_ALLOC_PD;
	answer = hostile_ask(a.sock, &q);
	assert_int_equal(answer.call.err, EPERM);
	assert_non_null(strstr(answer.call.why, "F_SEAL_SEAL"));
	hostile_hung_up(a.sock);
	a.sock = -1;
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_others_go_on(r);
	area_close(&a);
}

/* ---- holes all the time */

static struct {
	struct hole_area area;
	_Atomic bool stop;
	_Atomic uint64_t punched, refused;
} puncher;

/* Fill the area and punch holes, until told to stop; count both outcomes. */
static void *
punch_all_the_time(void *arg)
{
	struct hole_area *a = &puncher.area;

	(void)arg;
	while (!puncher.stop) {
		(void)fallocate(a->fd, 0, 0, a->size < FILLED ? (off_t)a->size : FILLED);
		if (punch(a->fd, a->size) == 0)
			puncher.punched++;
		else
			puncher.refused++;
	}
	return NULL;
}

static void
until(const _Atomic uint64_t *n, uint64_t count)
{
	while (*n < count)
		usleep(1000);
}

/* The pair of the rig works as often before, during and after the holes; its progress is counted, not timed. */
static void
test_area_all_the_time(void **state)
{
	struct rig *r = *state;
	pthread_t thread;

	puncher.stop = false;
	puncher.punched = puncher.refused = 0;
	area_open(r, &puncher.area);
	assert_int_equal(pthread_create(&thread, NULL, punch_all_the_time, NULL), 0);
	until(&puncher.punched, 3);
	for (int i = 0; i < OTHERS; i++)
		hostile_others_go_on(r);
	until(&puncher.punched, 6);
	assert_int_equal(puncher.refused, 0);
	/* A call amid the holes is answered, and after that no hole goes through. */
	assert_int_equal(call(puncher.area.sock, URN_CTL_ALLOC_PD), 0);
	uint64_t punched = puncher.punched;

	while (puncher.refused == 0 && puncher.punched < punched + 10)
		usleep(1000);
	if (puncher.refused == 0)
		fail_msg("holes go through while an engine looks");
	punched = puncher.punched;

	for (int i = 0; i < OTHERS; i++)
		hostile_others_go_on(r);
	until(&puncher.refused, 10);
	puncher.stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(puncher.punched, punched);
	area_close(&puncher.area);
	assert_int_equal(hostile_clients(r, 2), 2);
}

/* ---- pieces */

static int
memfd(unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PIECE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct urn_abi_rep
share(int sock, int fd, const void *at, uint64_t length)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = (uintptr_t)at;
	q.call.share.length = length;
	hostile_post(sock, &q, q.head.bytes, &fd, 1);
	return hostile_take(sock).call;
}

static int
dial(const struct rig *r)
{
	int sock = hostile_dial(r);

	hostile_hello(sock);
	assert_int_equal(hostile_open(sock, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	return sock;
}

static void
test_piece(void **state)
{
	struct rig *r = *state;
	int x = dial(r), y = dial(r), fd = memfd(F_SEAL_SHRINK), other;
	uint8_t *map = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char path[32];
	uint32_t handle;

	assert_true(map != MAP_FAILED);
	assert_int_equal(punch(fd, PIECE), 0);
	handle = share(x, fd, map, PIECE).handle;
	assert_int_not_equal(handle, 0);
	no_hole(fd, map, PIECE);
	/* Another connection, and a second share, find the mapping that is there; but not a longer one. */
	assert_int_equal(share(y, fd, map, PIECE).err, 0);
	assert_int_equal(share(x, fd, map, 4096).err, 0);
	/* A client that may only read it gets no way to write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(other >= 0);
	assert_int_equal(share(y, other, map, PIECE).err, EINVAL);
	close(other);
	close(x);
	assert_int_equal(hostile_clients(r, 3), 3);
	assert_int_equal(share(y, fd, map, PIECE).err, 0);
	/* When no connection has it any more, none can have it again, and the answer says so. */
	close(y);
	assert_int_equal(hostile_clients(r, 2), 2);
	x = dial(r);
	struct urn_abi_rep rep = share(x, fd, map, PIECE);

	assert_int_equal(rep.err, EPERM);
	assert_non_null(strstr(rep.why, "F_SEAL_FUTURE_WRITE"));
	assert_int_equal(call(x, URN_CTL_ALLOC_PD), 0);
	close(x);
	close(fd);
	munmap(map, PIECE);
	hostile_others_go_on(r);
}

/* A piece that can't be sealed is refused with the reason, and the connection goes on. */
static void
test_piece_seals_sealed(void **state)
{
	struct rig *r = *state;
	int x = dial(r), fd = memfd(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	struct urn_abi_rep rep = share(x, fd, (void *)4096, PIECE);

	assert_int_equal(rep.err, EPERM);
	assert_non_null(strstr(rep.why, "F_SEAL_SEAL"));
	assert_int_equal(call(x, URN_CTL_ALLOC_PD), 0);
	close(fd);
	close(x);
	hostile_others_go_on(r);
}

/* Memory of urn_alloc(), used by the rig's pair: no hole, while bytes move. */
static void
test_alloc(void **state)
{
	struct rig *r = *state;
	struct urn_segment seg;

	assert_true(urn_segment_find(r->end[0].buf, RIG_BUF, &seg));
	hostile_others_go_on(r);
	assert_int_equal(punch(seg.fd, seg.length), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(madvise(r->end[0].buf, 4096, MADV_REMOVE), -1);
	assert_int_equal(errno, EPERM);
	hostile_others_go_on(r);
}

/* ---- the fate of memory that is sealed */

struct loop {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
};

static void
loop_open(const struct rig *r, struct loop *l, void *at, size_t length)
{
	l->ctx = urn_attach_connect(r->path, "a");
	assert_non_null(l->ctx);
	l->pd = ibv_alloc_pd(l->ctx);
	assert_non_null(l->pd);
	l->mr = ibv_reg_mr(l->pd, at, length, IBV_ACCESS_LOCAL_WRITE);
	if (l->mr == NULL)
		fail_msg("%s", urn_attach_error());
}

static void
loop_close(struct loop *l)
{
	assert_int_equal(ibv_dereg_mr(l->mr), 0);
	assert_int_equal(ibv_dealloc_pd(l->pd), 0);
	assert_int_equal(ibv_close_device(l->ctx), 0);
}

static bool
is_sealed(const void *p)
{
	struct urn_segment seg;

	assert_true(urn_segment_find(p, 1, &seg));
	return (fcntl(seg.fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) != 0;
}

/*
 * A program that closes its device and opens another registers the same memory again: it is
 * reached as foreign memory. New memory is shared, and zero; sealed memory that the program
 * gives back is zero when it is used again.
 */
static void
test_again(void **state)
{
	enum { BIG = 40 << 20 }; /* a segment of its own */
	struct rig *r = *state;
	uint8_t *p = urn_alloc(BIG), *q;
	struct urn_segment seg, more;
	struct loop l;

	assert_false(is_sealed(p));
	loop_open(r, &l, p, BIG);
	assert_true(is_sealed(p));
	assert_true(urn_segment_find(p, 1, &seg));
	memset(p, 0xee, BIG);
	assert_int_equal(ibv_dereg_mr(l.mr), 0);
	urn_free(p);
	q = urn_alloc(BIG);
	assert_ptr_equal(q, p);
	for (size_t i = 0; i < BIG; i += 4096)
		assert_int_equal(q[i], 0);
	l.mr = ibv_reg_mr(l.pd, q, BIG, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(l.mr);
	loop_close(&l);
	assert_int_equal(hostile_clients(r, 2), 2);
	/* No dataplane has the memory, and none can. */
	loop_open(r, &l, q, BIG);
	p = urn_alloc(BIG);
	assert_true(urn_segment_find(p, 1, &more));
	assert_int_not_equal(more.id, seg.id);
	assert_false(is_sealed(p));
	loop_close(&l);
	urn_free(p);
	urn_free(q);
	assert_false(urn_segment_find(q, 1, &seg) && seg.id != more.id);
	hostile_others_go_on(r);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_area),
		cmocka_unit_test(test_area_events),
		cmocka_unit_test(test_area_seals_sealed),
		cmocka_unit_test(test_area_all_the_time),
		cmocka_unit_test(test_piece),
		cmocka_unit_test(test_piece_seals_sealed),
		cmocka_unit_test(test_alloc),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests_name("holes", tests, hostile_setup, hostile_teardown);
}
