/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that stall the dataplane's work for them: memory, map, address space,
 * descriptors. Each holds up only itself; others' control calls go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Connect and open an adapter, with all of this program's memory, and make a protection domain. */
static int
open_all(const struct rig *r, int files[2], uint32_t *pd)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = hostile_dial(r);

	files[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	files[1] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	hostile_hello(fd);
	if (hostile_open(fd, r->dp->adapter[0]->cfg.name, files, 2).open.foreign != 1)
		_exit(7);
	q.call.op = URN_CTL_ALLOC_PD;
	*pd = hostile_ask(fd, &q).call.handle;
	return fd;
}

/* Ask for the registration of memory, without waiting for the answer. */
static void
ask_reg(int fd, uint32_t pd, const void *p, uint64_t length)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = URN_CTL_REG_MR;
	q.call.reg_mr.pd = pd;
	q.call.reg_mr.access = URN_ACCESS_LOCAL_WRITE;
	q.call.reg_mr.addr = q.call.reg_mr.iova = (uintptr_t)p;
	q.call.reg_mr.length = length;
	hostile_post(fd, &q, q.head.bytes, NULL, 0);
}

/* ---- memory */

/* The program hangs up, but lives, while a write to a page that never comes is under way. */
static void
attack_memory(const struct rig *r, int say)
{
	struct hostile_loop *m = hostile_attach(r);
	int uffd;
	uint8_t *page = hostile_page(&uffd);
	struct ibv_mr *mr = ibv_reg_mr(m->rig.end[0].pd, page, 4096,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	if (mr == NULL)
		_exit(7);
	hostile_write(m, (uintptr_t)page, mr->rkey);
	usleep(300000);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != uffd && fd != say)
			close(fd);
}

static void
test_memory(void **state)
{
	/* Where ordinary users may not stall the kernel so, they can't attack this way. */
	if (!hostile_has_userfaultfd())
		skip();
	hostile_attacked_by(*state, attack_memory);
}

/* ---- the map */

/* The program reads its own map into a page that never comes. */
static void
attack_map(const struct rig *r, int say)
{
	static uint8_t any[64];
	int files[2];
	uint32_t pd;
	int fd = open_all(r, files, &pd);

	(void)say;
	hostile_read(files[1]);
	ask_reg(fd, pd, any, sizeof(any));
}

static void
test_map(void **state)
{
	if (!hostile_has_userfaultfd())
		skip();
	hostile_attacked_by(*state, attack_map);
}

/* ---- the address space */

struct space {
	int mem;
	void *at;
	_Atomic int go; /* how many of the two threads have begun */
};

/* A thread that reads memory in /proc holds the address space while a page comes. */
static void *
hold_space(void *arg)
{
	struct space *s = arg;
	char c;

	while (s->go < 1)
		sched_yield();
	return pread(s->mem, &c, 1, (off_t)(uintptr_t)s->at) < 0 ? arg : NULL;
}

/* ... and a thread that would change the address space comes before all that only look. */
static void *
change_space(void *arg)
{
	const struct space *s = arg;

	while (s->go < 2)
		sched_yield();
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? arg : NULL;
}

static void
attack_space(const struct rig *r, int say)
{
	static uint8_t any[64];
	static struct space s;
	struct stat st;
	_Atomic bool *mute;
	int file = hostile_file(&mute), files[2];
	uint32_t pd;
	int fd = open_all(r, files, &pd);

	(void)say;
	s.mem = files[0];
	s.at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
	if (s.at == MAP_FAILED || fstat(file, &st) != 0 || st.st_size != 4096) /* the kernel knows the size now */
		_exit(7);
	/*
	 * Both threads exist before either begins: making one changes the address space, too, and
	 * this thread has to go on.
	 */
	hostile_thread(hold_space, &s);
	hostile_thread(change_space, &s);
	s.go = 1;
	usleep(200000);
	s.go = 2;
	usleep(300000);
	ask_reg(fd, pd, any, sizeof(any));
}

static void
test_space(void **state)
{
	if (!hostile_has_fuse())
		skip();
	hostile_attacked_by(*state, attack_space);
}

/* ---- descriptors */

/* The program passes as its memory a file whose stat is never answered. */
static void
attack_stat(const struct rig *r, int say)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_OPEN);
	_Atomic bool *mute;
	int file = hostile_file(&mute), files[2] = {file, file}, fd = hostile_dial(r);

	(void)say;
	hostile_hello(fd);
	*mute = true;
	snprintf(q.open.name, sizeof(q.open.name), "%s", r->dp->adapter[0]->cfg.name);
	hostile_post(fd, &q, q.head.bytes, files, 2);
}

/* A descriptor that no question asked for is closed, and closing it takes for ever. */
static void
attack_flush(const struct rig *r, int say)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_HELLO);
	_Atomic bool *mute;
	int file = hostile_file(&mute), fd = hostile_dial(r);

	(void)say;
	q.hello.oldest = URN_ABI_VERSION;
	hostile_post(fd, &q, q.head.bytes, &file, 1);
}

static void
test_files(void **state)
{
	if (!hostile_has_fuse())
		skip();
	hostile_attacked_by(*state, attack_stat);
	hostile_attacked_by(*state, attack_flush);
}

/*
 * The same with a socket, which is closed by its last owner. The last owner should be the
 * dataplane; the process that hands it over is a separate one, because it might be the
 * last owner.
 */
struct handing {
	_Atomic int ready, done; /* descriptors that the attacker no longer has; that are handed over */
};

static void
hand_over(int fd, const struct urn_sock_ask *q, struct handing *h, int i)
{
	const int slow = hostile_lingering(), two[2] = {slow, slow};
	pid_t pid = fork();

	if (pid == 0) {
		while (h->ready <= i)
			sched_yield();
		hostile_post(fd, q, q->head.bytes, two, 2);
		h->done++;
		close(slow); /* opening an adapter takes longer than that, mostly */
		_exit(0);
	}
	if (pid < 0)
		_exit(7);
	close(slow);
	h->ready++;
}

static void
attack_linger(const struct rig *r, int say)
{
	struct handing *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct urn_sock_ask q = hostile_question(URN_SOCK_OPEN);
	int fd[4];

	(void)say;
	if (h == MAP_FAILED)
		_exit(7);
	snprintf(q.open.name, sizeof(q.open.name), "%s", r->dp->adapter[0]->cfg.name);
	for (int i = 0; i < 4; i++)
		hostile_hello(fd[i] = hostile_dial(r));
	for (int i = 0; i < 4; i++)
		hand_over(fd[i], &q, h, i);
	while (h->done < 4)
		sched_yield();
}

static void
test_linger(void **state)
{
	hostile_attacked_by(*state, attack_linger);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linger), cmocka_unit_test(test_files), cmocka_unit_test(test_space),
		cmocka_unit_test(test_map),    cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests_name("holdup", tests, hostile_setup, hostile_teardown);
}
