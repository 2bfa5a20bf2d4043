/* SPDX-License-Identifier: BSD-3-Clause */
#include "peers.h"

#include "control/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_S = 20 };

struct peers peers;

/* ---- time; the linker puts this in front (--wrap) */

static _Atomic uint64_t clock_ns = 1000000000;

uint64_t __wrap_urn_engine_now(const struct urn_engine *e);

uint64_t
__wrap_urn_engine_now(const struct urn_engine *e)
{
	(void)e;
	return clock_ns;
}

/* ---- once a process */

int peers_fd[FD_KINDS];

static int
memfd(off_t size, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	fuzz_check(fd >= 0 && ftruncate(fd, size) == 0);
	fuzz_check(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void
open_fds(void)
{
	int pipe_fd[2], pair[2];

	fuzz_check(pipe2(pipe_fd, O_CLOEXEC) == 0);
	fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	peers_fd[FD_SHARE] = memfd(PEERS_SHARED, F_SEAL_SHRINK);
	peers_fd[FD_UNSEALED] = memfd(PEERS_SHARED, 0);
	peers_fd[FD_READ_ONLY] = memfd(PEERS_SHARED, F_SEAL_SHRINK | F_SEAL_WRITE);
	peers_fd[FD_SHORT] = memfd(1, F_SEAL_SHRINK);
	peers_fd[FD_PIPE] = pipe_fd[1];
	peers_fd[FD_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	peers_fd[FD_EVENT] = eventfd(0, EFD_CLOEXEC);
	peers_fd[FD_MEM] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	peers_fd[FD_MAPS] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	peers_fd[FD_SOCKET] = pair[0];
	peers_fd[FD_DIR] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < FD_KINDS; i++)
		fuzz_check(peers_fd[i] >= 0);
	peers.shared =
		mmap(NULL, PEERS_SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, peers_fd[FD_SHARE], 0);
	fuzz_check(peers.shared != MAP_FAILED);
	/* All inputs share these files. */
	fuzz_check(urn_shm_keep(peers_fd[FD_SHARE], PEERS_SHARED) == 0);
	fuzz_check(urn_shm_keep(peers_fd[FD_SHORT], 1) == 0);
}

static void
open_dataplane(void)
{
	struct urn_port_config pc[2] = {{.name = "port", .mbufs = 1023},
					{.name = "wire", .mbufs = 1023}};
	struct urn_adapter_config ac = {.name = "a",
					.engines = 1,
					.ipv4 = {10, 0, 0, 1},
					.max_qp = 64,
					.max_mr = 64,
					.max_cm = 64,
					.area_size = 4 << 20,
					.work_in_flight = 64};
	struct urn_dp_config dc = {.engines = 1, .adapters = 1, .adapter = &ac};
	struct urn_err err = {""};

	if (urn_port_open_ring_pair(pc, peers.port, &err) != 0)
		fuzz_fail("ports: %s", err.text);
	ac.port = peers.port[0];
	peers.dp = urn_dp_create(&dc, &err);
	if (!peers.dp)
		fuzz_fail("dataplane: %s", err.text);
	peers.e = urn_dp_engine(peers.dp, 0);
	peers.a = peers.dp->adapter[0];
}

/*
 * The socket's file and the lock beside it are removed as soon as they are made: a fuzzer with a
 * finding does not clean up.
 */
static void
open_server(void)
{
	char folder[] = "/tmp/urnic-fuzz-XXXXXX", path[64], lock[80];
	struct urn_server_config cfg = {.path = path, .gid = (gid_t)-1};
	struct urn_err err = {""};
	int fd;

	cfg.per_uid.max[URN_QUOTA_QP] = QUOTA_QP;
	cfg.per_uid.max[URN_QUOTA_CQ] = QUOTA_CQ;
	cfg.per_uid.max[URN_QUOTA_SRQ] = QUOTA_SRQ;
	cfg.per_uid.max[URN_QUOTA_MR] = QUOTA_MR;
	cfg.per_uid.max[URN_QUOTA_PINNED] = QUOTA_MR * (uint64_t)PEERS_SHARED;
	fuzz_check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	peers.server = urn_server_open(peers.dp, &cfg, &err);
	fd = open(path, O_PATH | O_CLOEXEC);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	(void)unlink(path);
	(void)unlink(lock);
	fuzz_check(rmdir(folder) == 0);
	if (!peers.server || fd < 0)
		fuzz_fail("server: %s", err.text);
	peers.addr.sun_family = AF_UNIX;
	snprintf(peers.addr.sun_path, sizeof(peers.addr.sun_path), "/proc/self/fd/%d", fd);
}

unsigned int
peers_count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	fuzz_check(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void
peers_init(void)
{
	fuzz_eal();
	open_fds();
	open_dataplane();
	open_server();
	for (unsigned int i = 0; i < PEERS_CONNS; i++)
		peers.conn[i].fd = -1;
}

/* ---- turns. Between them nobody polls the engine: calls run in the threads that make them */

void
peers_turn(uint64_t ns)
{
	struct rte_mbuf *m[32];
	unsigned int n;

	clock_ns += ns;
	urn_engine_bind(peers.e);
	urn_engine_turn(peers.e, clock_ns);
	urn_engine_unbind(peers.e);
	while ((n = urn_port_rx(peers.port[1], 0, m, 32)) > 0)
		rte_pktmbuf_free_bulk(m, n);
}

void
peers_yield(time_t since, const char *what)
{
	sched_yield();
	if (time(NULL) - since > PATIENCE_S)
		fuzz_fail("%s in %d s", what, PATIENCE_S);
}

/* ---- messages */

void
peers_hang_up(struct peers_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

void
peers_dial(struct peers_conn *c)
{
	time_t start = time(NULL);

	peers_hang_up(c);
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	fuzz_check(c->fd >= 0);
	while (connect(c->fd, (void *)&peers.addr, sizeof(peers.addr)) != 0) {
		if (errno != EAGAIN)
			fuzz_fail("cannot connect: %s", strerror(errno));
		peers_yield(start, "nobody is let in");
	}
}

/* returns: true when it was sent */
bool
peers_say(struct peers_conn *c, const void *p, size_t n, const int *fds, unsigned int fds_n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(PEERS_FDS * sizeof(int))];
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fds_n) {
		struct cmsghdr *h;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fds_n * sizeof(int));
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(fds_n * sizeof(int));
		memcpy(CMSG_DATA(h), fds, fds_n * sizeof(int));
	}
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL) == (ssize_t)n;
}

static void
close_fds(struct msghdr *msg)
{
	fuzz_check(!(msg->msg_flags & (MSG_CTRUNC | MSG_TRUNC)));
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		unsigned int n = (unsigned int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		int fd;

		for (unsigned int i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			close(fd);
		}
	}
}

/* The number of events is the answer's, each event is complete, and no other answer has any. */
static void
check_events(const struct urn_sock_answer *a, const struct urn_abi_cm_event *ev, size_t bytes)
{
	uint32_t n = a->head.kind == URN_SOCK_EVENTS && a->err == 0 ? a->events.n : 0;

	fuzz_check(n <= URN_SOCK_EVENTS_MAX && bytes == n * sizeof(ev[0]));
	for (uint32_t i = 0; i < n; i++)
		fuzz_check(ev[i].type && ev[i].type < URN_CM_EVENTS && ev[i].id && ev[i].data_len <= URN_CM_DATA_MAX);
}

/* Wait for an answer. returns: true when it came; otherwise the connection has ended */
bool
peers_hear(struct peers_conn *c, struct urn_sock_answer *a)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(32 * sizeof(int))];
	} control;
	struct urn_abi_cm_event ev[URN_SOCK_EVENTS_MAX];
	struct iovec iov[2] = {{.iov_base = a, .iov_len = sizeof(*a)},
			       {.iov_base = ev, .iov_len = sizeof(ev)}};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	ssize_t n;

	memset(&control, 0, sizeof(control));
	if (poll(&p, 1, PATIENCE_S * 1000) != 1)
		fuzz_fail("no answer in %d s", PATIENCE_S);
	n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0) {
		peers_hang_up(c);
		return false;
	}
	fuzz_check(n >= (ssize_t)sizeof(*a) && a->head.bytes == n && a->head.magic == URN_SOCK_MAGIC);
	check_events(a, ev, (size_t)n - sizeof(*a));
	close_fds(&msg);
	return true;
}

struct urn_sock_ask
peers_question(struct peers_conn *c, uint16_t kind)
{
	return (struct urn_sock_ask){
		.head =
			{
				.magic = URN_SOCK_MAGIC,
				.version = URN_SOCK_VERSION,
				.kind = kind,
				.serial = ++c->serial,
				.bytes = urn_sock_ask_bytes(kind),
			},
	};
}

void
peers_check(const struct urn_sock_ask *q, const struct urn_sock_answer *a)
{
	const struct urn_abi_rep *rep = &a->call;

	fuzz_check(a->head.serial == q->head.serial);
	fuzz_check(memchr(a->why, '\0', sizeof(a->why)) && (a->err == 0) == (a->why[0] == '\0'));
	if (a->err || q->head.kind != URN_SOCK_CALL)
		return;
	fuzz_check(memchr(rep->why, '\0', sizeof(rep->why)));
	fuzz_check(rep->err >= 0 && rep->err < 4096 && (rep->err == 0) == (rep->why[0] == '\0'));
}

/* Ask, and wait for the answer. returns: true when it came */
bool
peers_ask(struct peers_conn *c, const struct urn_sock_ask *q, struct urn_sock_answer *a,
	  const int *fds, unsigned int n)
{
	if (!peers_say(c, q, q->head.bytes, fds, n) || !peers_hear(c, a)) {
		peers_hang_up(c);
		return false;
	}
	peers_check(q, a);
	return true;
}

void
peers_begin(struct peers_conn *c)
{
	struct urn_sock_ask hello, open;
	struct urn_sock_answer a;

	peers_dial(c);
	hello = peers_question(c, URN_SOCK_HELLO);
	hello.hello.oldest = URN_ABI_VERSION;
	fuzz_check(peers_ask(c, &hello, &a, NULL, 0) && a.err == 0);
	open = peers_question(c, URN_SOCK_OPEN);
	open.open.name[0] = 'a';
	fuzz_check(peers_ask(c, &open, &a, NULL, 0));
	if (a.err)
		fuzz_fail("cannot open an adapter: %s", a.why);
}
