/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreign_child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

struct cmd {
	uint64_t what, addr, len, arg;
};

/* ---- both sides */

/* A failure in the child ends it, which the test sees. */
static void
all(int fd, void *bytes, size_t len, bool out)
{
	uint8_t *p = bytes;

	while (len) {
		ssize_t n = out ? send(fd, p, len, MSG_NOSIGNAL) : recv(fd, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(9);
		p += n;
		len -= (size_t)n;
	}
}

/* ---- the child's side */

static void
give_fds(int sock)
{
	struct urn_space_fds fds;
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} c = {{.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(3 * sizeof(int))}};
	char byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};

	if (urn_space_open_self(&fds) != 0)
		_exit(8);
	memcpy(CMSG_DATA(&c.h), (int[]){fds.mem, fds.maps, fds.pidfd}, 3 * sizeof(int));
	if (sendmsg(sock, &m, 0) != 1)
		_exit(8);
	urn_space_close_fds(&fds);
}

static void *
map(uint64_t addr, uint64_t len, int prot, bool shared)
{
	return mmap((void *)(uintptr_t)addr, len, prot,
		    (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static uint64_t
find_map(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strlen(line) >= strlen(name) &&
		    strcmp(line + strlen(line) - strlen(name), name) == 0 &&
		    sscanf(line, "%lx", &start) == 1)
			break;
		start = 0;
	}
	if (f)
		fclose(f);
	return start;
}

static int
open_uffd(uint64_t addr, uint64_t len, int *uffd)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {{addr, len}, UFFDIO_REGISTER_MODE_MISSING, 0};

	*uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (*uffd < 0)
		return errno;
	if (ioctl(*uffd, UFFDIO_API, &api) != 0 ||
	    map(addr, len, PROT_READ | PROT_WRITE, false) == MAP_FAILED ||
	    ioctl(*uffd, UFFDIO_REGISTER, &r) != 0)
		return errno;
	return 0;
}

/* Wait for page faults, and supply the pages. */
static void
serve_uffd(int uffd, uint64_t pages)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));

	memset(page, 0x5a, sizeof(page));
	while (pages) {
		struct uffd_msg m;
		struct uffdio_copy c = {.src = (uintptr_t)page, .len = sizeof(page)};

		if (read(uffd, &m, sizeof(m)) != sizeof(m))
			_exit(7);
		c.dst = m.arg.pagefault.address & ~4095ull;
		if (ioctl(uffd, UFFDIO_COPY, &c) == 0)
			pages--;
	}
}

static pid_t
fork_reader(int *sock)
{
	int s[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0)
		_exit(7);
	pid = fork();
	if (pid == 0) {
		struct cmd c;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		for (;;) {
			all(s[1], &c, sizeof(c), false);
			all(s[1], (void *)(uintptr_t)c.addr, c.len, true);
		}
	}
	close(s[1]);
	*sock = s[0];
	return pid;
}

static void
read_fork(int sock, int reader, const struct cmd *c)
{
	uint8_t *bytes = malloc(c->len);
	struct cmd copy = *c;

	all(reader, &copy, sizeof(copy), true);
	all(reader, bytes, c->len, false);
	all(sock, bytes, c->len, true);
	free(bytes);
}

static void
become_victim(int sock, const struct cmd *c)
{
	char at[32], len[32], fd[16];

	snprintf(at, sizeof(at), "%llu", (unsigned long long)c->addr);
	snprintf(len, sizeof(len), "%llu", (unsigned long long)c->len);
	snprintf(fd, sizeof(fd), "%d", sock);
	fcntl(sock, F_SETFD, 0);
	execl("/proc/self/exe", "victim", "--victim", at, len, fd, (char *)NULL);
	_exit(6);
}

/* The kernel kills the twin with its maker; they share CLONE_VM and nothing else. */
static int
be_twin(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pause() < 0)
		;
	return 0;
}

static bool
make_twin(void)
{
	static uint8_t stack[65536] __attribute__((aligned(64)));

	return clone(be_twin, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL) > 0;
}

static int
to_errno(bool ok)
{
	return ok ? 0 : errno;
}

/* Map, protect, unmap. returns: 0 or an errno value */
static int
change_map(const struct cmd *c)
{
	void *at = (void *)(uintptr_t)c->addr;

	switch (c->what) {
	case CHILD_MAP:
		return to_errno(map(c->addr, c->len, (int)(c->arg & 0xff), c->arg & 0x100) !=
				MAP_FAILED);
	case CHILD_PROTECT:
		return to_errno(mprotect(at, c->len, (int)c->arg) == 0);
	case CHILD_UNMAP:
		return to_errno(munmap(at, c->len) == 0);
	default:
		return to_errno(mmap(at, c->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				     (int)c->arg, 0) != MAP_FAILED);
	}
}

static void
serve(int sock)
{
	int uffd = -1, reader = -1;

	for (;;) {
		void *at;
		uint64_t answer = 0;
		struct cmd c;
		char name[64];

		all(sock, &c, sizeof(c), false);
		at = (void *)(uintptr_t)c.addr;
		switch (c.what) {
		case CHILD_READ:
			all(sock, at, c.len, true);
			continue;
		case CHILD_WRITE:
			all(sock, at, c.len, false);
			break;
		case CHILD_MAP:
		case CHILD_PROTECT:
		case CHILD_UNMAP:
		case CHILD_SHARE:
			answer = (uint64_t)change_map(&c);
			break;
		case CHILD_FORK:
			answer = to_errno(fork_reader(&reader) > 0);
			break;
		case CHILD_READ_FORK:
			read_fork(sock, reader, &c);
			continue;
		case CHILD_EXEC:
			become_victim(sock, &c);
			break;
		case CHILD_USER:
			answer = to_errno(setresuid((uid_t)c.arg, (uid_t)c.arg, (uid_t)c.arg) == 0);
			break;
		case CHILD_TWIN:
			answer = to_errno(make_twin());
			break;
		case CHILD_UFFD:
			answer = (uint64_t)open_uffd(c.addr, c.len, &uffd);
			break;
		case CHILD_SERVE:
			serve_uffd(uffd, c.arg);
			break;
		case CHILD_FIND:
			all(sock, name, c.len, false);
			name[c.len] = 0;
			answer = find_map(name);
			break;
		default:
			_exit(5);
		}
		all(sock, &answer, sizeof(answer), true);
	}
}

void
child_be_victim(int argc, char **argv)
{
	uint64_t at, len, answer;
	int sock;

	if (argc != 5 || strcmp(argv[1], "--victim") != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	at = strtoull(argv[2], NULL, 10);
	len = strtoull(argv[3], NULL, 10);
	sock = atoi(argv[4]);
	answer = to_errno(map(at, len, PROT_READ | PROT_WRITE, false) != MAP_FAILED);
	for (uint64_t i = 0; !answer && i < len; i++)
		((uint8_t *)(uintptr_t)at)[i] = (uint8_t)(i * 7);
	all(sock, &answer, sizeof(answer), true);
	serve(sock);
}

/* ---- the test's side */

static void
take_fds(struct child *c)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} m_c;
	char byte;
	struct iovec v = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &m_c, .msg_controllen = sizeof(m_c)};
	int fd[3];

	assert_int_equal(recvmsg(c->sock, &m, MSG_CMSG_CLOEXEC), 1);
	assert_int_equal(m_c.h.cmsg_len, CMSG_LEN(sizeof(fd)));
	memcpy(fd, CMSG_DATA(&m_c.h), sizeof(fd));
	c->fds = (struct urn_space_fds){.mem = fd[0], .maps = fd[1], .pidfd = fd[2], .pid = c->pid};
}

struct child
child_start(void)
{
	struct child c = {0};
	int s[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		give_fds(s[1]);
		serve(s[1]);
	}
	close(s[1]);
	c.sock = s[0];
	take_fds(&c);
	return c;
}

static void
tell(struct child *c, void *bytes, size_t len, bool out)
{
	uint8_t *p = bytes;

	while (len) {
		ssize_t n = out ? send(c->sock, p, len, MSG_NOSIGNAL) : recv(c->sock, p, len, 0);

		assert_true(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

void
child_ask(struct child *c, enum child_do what, uint64_t addr, uint64_t len, uint64_t arg)
{
	struct cmd cmd = {what, addr, len, arg};

	tell(c, &cmd, sizeof(cmd), true);
}

uint64_t
child_answer(struct child *c)
{
	uint64_t answer;

	tell(c, &answer, sizeof(answer), false);
	return answer;
}

uint64_t
child_do(struct child *c, enum child_do what, uint64_t addr, uint64_t len, uint64_t arg)
{
	child_ask(c, what, addr, len, arg);
	return child_answer(c);
}

void
child_read(struct child *c, uint64_t addr, void *to, size_t len)
{
	child_ask(c, CHILD_READ, addr, len, 0);
	tell(c, to, len, false);
}

void
child_write(struct child *c, uint64_t addr, const void *from, size_t len)
{
	child_ask(c, CHILD_WRITE, addr, len, 0);
	tell(c, (void *)(uintptr_t)from, len, true);
	assert_int_equal(child_answer(c), 0);
}

uint64_t
child_find(struct child *c, const char *name)
{
	child_ask(c, CHILD_FIND, 0, strlen(name), 0);
	tell(c, (void *)(uintptr_t)name, strlen(name), true);
	return child_answer(c);
}

void
child_end(struct child *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	close(c->sock);
	c->pid = 0;
}

/* ---- executor */

bool ft_direct;

static void
make_area(struct ft *f)
{
	f->area = memfd_create("area", MFD_CLOEXEC);
	assert_int_equal(ftruncate(f->area, 4096), 0);
	f->mark = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f->area, 0);
	assert_true(f->mark != MAP_FAILED);
}

void
ft_open(struct ft *f, uint64_t len)
{
	struct urn_memx_config cfg = {.max_pds = 4};
	char why[256] = "";

	memset(f, 0, sizeof(*f));
	f->rng = 77;
	f->len = len;
	make_area(f);
	f->child = child_start();
	if (urn_space_create(&f->child.fds, &f->space, why, sizeof(why)) != 0)
		fail_msg("space: %s", why);
	f->mem = urn_mem_create(64, 4);
	f->pd = test_pd(f->mem);
	f->x = urn_memx_create(&cfg);
	f->frame = aligned_alloc(64, FT_FRAMES * sizeof(*f->frame));
	assert_true(f->mem && f->x && f->frame);
	memset(f->frame, 0, FT_FRAMES * sizeof(*f->frame));
}

void
ft_close(struct ft *f)
{
	ft_drain(f);
	if (f->region)
		ft_dereg(f);
	urn_memx_destroy(f->x);
	urn_mem_destroy(f->mem);
	urn_space_release(f->space);
	child_end(&f->child);
	munmap(f->mark, 4096);
	close(f->area);
	free(f->frame);
}

void
ft_share(struct ft *f, uint64_t at)
{
	assert_int_equal(child_do(&f->child, CHILD_SHARE, at, 4096, (uint64_t)f->area), 0);
	urn_space_mark(f->space, f->mark, at);
}

void
ft_reg(struct ft *f, uint32_t access)
{
	char why[256] = "";

	if (ft_direct)
		ft_share(f, CHILD_AT + (f->len + 4095) / 4096 * 4096);
	if (test_reg_foreign(f->mem, f->pd, f->space, CHILD_AT, f->len, CHILD_AT, access,
				&f->key, why, sizeof(why)) != 0)
		fail_msg("registration: %s", why);
	assert_int_equal(urn_mem_check(f->mem, f->key, f->pd, 0, 0, 0, 0, 0, &f->region), 0);
}

void
ft_dereg(struct ft *f)
{
	struct urn_region *r;

	assert_int_equal(urn_mem_kill_mr(f->mem, f->key, &r), 0);
	assert_int_equal(urn_memx_holds(f->x, r), 0);
	urn_mem_free_mr(f->mem, r);
	f->region = NULL;
}

struct urn_memop
ft_op(struct ft *f, int kind, uint32_t frame, uint64_t off, uint32_t len)
{
	return (struct urn_memop){
		.region = f->region,
		.addr = CHILD_AT + off,
		.frame = kind >= URN_MEMOP_CMP_SWAP ? NULL : f->frame[frame].data,
		.m = &f->frame[frame].m,
		.len = len,
		.kind = (uint8_t)kind,
		.status = 77,
		.tag = (uint16_t)frame,
	};
}

void
ft_wait(uint64_t *since)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec;
	if (*since == 0)
		*since = now;
	assert_true(now - *since < 60);
	sched_yield();
}

void
ft_run(struct ft *f, struct urn_memop *ops, unsigned int n)
{
	struct urn_memop got[32];
	unsigned int left = n, k;
	uint64_t since = 0;

	assert_int_equal(urn_memx_execute(f->x, ops, n), n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(ops[i].status, URN_MEMOP_PENDING);
	while (left) {
		k = urn_memx_poll(f->x, got, 32);
		for (unsigned int i = 0; i < k; i++) {
			unsigned int j = 0;

			while (j < n &&
			       !(ops[j].tag == got[i].tag && ops[j].status == URN_MEMOP_PENDING))
				j++;
			assert_true(j < n);
			assert_int_not_equal(got[i].status, URN_MEMOP_PENDING);
			ops[j] = got[i];
		}
		left -= k;
		if (k == 0)
			ft_wait(&since);
	}
	assert_int_equal(urn_memx_holds(f->x, NULL), 0);
}

void
ft_drain(struct ft *f)
{
	struct urn_memop got[32];
	uint64_t since = 0;

	while (urn_memx_holds(f->x, NULL))
		if (urn_memx_poll(f->x, got, 32) == 0)
			ft_wait(&since);
}

void
ft_fill(struct ft *f, void *p, size_t n)
{
	uint8_t *b = p;

	while (n--)
		*b++ = (uint8_t)test_random(&f->rng);
}
