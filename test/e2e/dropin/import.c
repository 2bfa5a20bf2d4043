/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices, protection domains and regions that are imported, within a process and in another one
 * (ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3)). usage: import CASE
 */
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 * 4096 };

static const struct rig_options plain;
static struct rig r;
static char a_memory[BYTES], b_memory[BYTES];

static void
is_refused(const void *got, int err, int line)
{
	if (got == NULL && errno == err)
		return;
	fprintf(stderr, "line %d: %s, errno %d, not %d\n", line, got ? "an object" : "NULL", errno,
		err);
	exit(1);
}

static void
is_equal(long long got, long long want, const char *what, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "line %d: %s is %lld, not %lld (errno %d)\n", line, what, got, want, errno);
	exit(1);
}

/* One statement, unlike rig.h's. */
#undef EQUAL
#define EQUAL(got, want) is_equal((long long)(got), (long long)(want), #got, __LINE__)
/* The call fails with this errno value. */
#define REFUSED(call, err) (errno = 0, is_refused((call), err, __LINE__))

static void
fill(char *at, unsigned int seed)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		at[i] = (char)(seed + i * 7 + (i >> 8));
}

static bool
filled(const char *at, unsigned int seed)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		if (at[i] != (char)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

/* Import a's device, and a protection domain into it. fd: taken over */
static void
import(struct end *e, int fd, uint32_t pd)
{
	memset(e, 0, sizeof(*e));
	CHECK((e->c = ibv_import_device(fd)) != NULL);
	EQUAL(e->c->cmd_fd, fd);
	CHECK((e->pd = ibv_import_pd(e->c, pd)) != NULL);
	EQUAL(e->pd->handle, pd);
	CHECK(e->pd->context == e->c);
	CHECK((e->ch = ibv_create_comp_channel(e->c)) != NULL);
	EQUAL(ibv_query_gid(e->c, 1, 1, &e->gid), 0);
}

/* Let go of what import() made, and of the queues. unimport: the domain stays */
static void
leave(struct end *e, bool unimport)
{
	if (e->qp != NULL)
		EQUAL(ibv_destroy_qp(e->qp), 0);
	if (e->cq != NULL)
		EQUAL(ibv_destroy_cq(e->cq), 0);
	EQUAL(ibv_destroy_comp_channel(e->ch), 0);
	if (unimport)
		ibv_unimport_pd(e->pd);
	else
		EQUAL(ibv_dealloc_pd(e->pd), 0);
	EQUAL(ibv_close_device(e->c), 0);
}

static enum ibv_wc_status
moves(struct end *e, enum ibv_wr_opcode op, const char *local, uint32_t lkey, const char *remote,
      uint32_t rkey)
{
	EQUAL(end_send(e, op, (uintptr_t)local, BYTES, lkey, (uintptr_t)remote, rkey), 0);
	return end_wait(e, NULL);
}

/* ---- within a process */

static void
same_process(void)
{
	struct ibv_mr *a = reg(&r.a, a_memory, BYTES), *b = reg(&r.b, b_memory, BYTES), *mr, *own;
	int fd = dup(r.a.c->cmd_fd);
	struct rig pair = {.b = r.b};
	uint32_t key = a->lkey;
	static char more[BYTES];

	import(&pair.a, fd, r.a.pd->handle);
	CHECK((mr = ibv_import_mr(pair.a.pd, a->handle)) != NULL);
	CHECK(mr->addr == NULL && mr->length == BYTES && mr->handle == a->handle);
	CHECK(mr->lkey == a->lkey && mr->rkey == a->rkey && mr->pd == pair.a.pd);
	end_make(&pair.a, &plain, NULL);
	EQUAL(end_modify(&r.a, IBV_QPS_RESET), 0); /* b has one peer */
	rig_connect(&pair);
	fill(a_memory, 1);
	EQUAL(moves(&pair.a, IBV_WR_RDMA_WRITE, a_memory, mr->lkey, b_memory, b->rkey),
	      IBV_WC_SUCCESS);
	CHECK(filled(b_memory, 1));
	fill(b_memory, 2);
	EQUAL(moves(&pair.b, IBV_WR_RDMA_WRITE, b_memory, b->lkey, a_memory, mr->rkey),
	      IBV_WC_SUCCESS);
	CHECK(filled(a_memory, 2));
	/* A region of the importer's own, in the domain of the other. */
	own = reg(&pair.a, more, BYTES);
	EQUAL(moves(&pair.a, IBV_WR_RDMA_READ, more, own->lkey, b_memory, b->rkey), IBV_WC_SUCCESS);
	CHECK(filled(more, 2));
	/* The domain is one: its maker can't end it while the importer has objects there. */
	EQUAL(ibv_destroy_qp(r.a.qp), 0);
	EQUAL(ibv_dereg_mr(own), 0);
	ibv_unimport_mr(mr);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dealloc_pd(r.a.pd), EBUSY);
	EQUAL(moves(&pair.a, IBV_WR_RDMA_WRITE, a_memory, key, b_memory, b->rkey),
	      IBV_WC_LOC_PROT_ERR);
	leave(&pair.a, true);
	EQUAL(fcntl(fd, F_GETFD), -1);
	EQUAL(errno, EBADF);
	EQUAL(ibv_dereg_mr(b), 0);
	EQUAL(ibv_dealloc_pd(r.a.pd), 0);
	CHECK((r.a.pd = ibv_alloc_pd(r.a.c)) != NULL);
	r.a.qp = NULL;
}

/* The importer ends the objects. */
static void
importer_ends(void)
{
	struct ibv_mr *a = reg(&r.a, a_memory, BYTES), *b = reg(&r.b, b_memory, BYTES), *mr, *again;
	struct ibv_pd *pd;
	struct end e;

	import(&e, dup(r.a.c->cmd_fd), r.a.pd->handle);
	CHECK((mr = ibv_import_mr(e.pd, a->handle)) != NULL);
	EQUAL(moves(&r.a, IBV_WR_RDMA_WRITE, a_memory, a->lkey, b_memory, b->rkey), IBV_WC_SUCCESS);
	EQUAL(ibv_dereg_mr(mr), 0);
	EQUAL(moves(&r.a, IBV_WR_RDMA_WRITE, a_memory, a->lkey, b_memory, b->rkey),
	      IBV_WC_LOC_PROT_ERR);
	REFUSED(ibv_import_mr(e.pd, a->handle), EINVAL);
	ibv_unimport_mr(a);
	EQUAL(ibv_dealloc_pd(e.pd), EBUSY);
	/* An imported device imports on. */
	pd = ibv_alloc_pd(e.c);
	CHECK(pd != NULL && pd->handle != r.a.pd->handle);
	CHECK((again = ibv_reg_mr(pd, a_memory, BYTES, REG_ALL)) != NULL);
	EQUAL(ibv_destroy_qp(r.a.qp), 0);
	r.a.qp = NULL;
	EQUAL(ibv_dealloc_pd(e.pd), 0);
	REFUSED(ibv_import_pd(r.a.c, r.a.pd->handle), EINVAL);
	ibv_unimport_pd(r.a.pd);
	CHECK((r.a.pd = ibv_import_pd(r.a.c, pd->handle)) != NULL);
	CHECK((mr = ibv_import_mr(r.a.pd, again->handle)) != NULL);
	EQUAL(ibv_dereg_mr(mr), 0);
	ibv_unimport_mr(again);
	ibv_unimport_pd(pd);
	EQUAL(ibv_destroy_comp_channel(e.ch), 0);
	EQUAL(ibv_close_device(e.c), 0);
	EQUAL(ibv_dereg_mr(b), 0);
}

/* A context that was closed is there for its descriptor only until the dataplane has noticed. */
static void
closed(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = ibv_open_device(list[0]);
	int fd;

	CHECK(c != NULL && (fd = dup(c->cmd_fd)) >= 0);
	EQUAL(ibv_close_device(c), 0);
	while ((c = ibv_import_device(dup(fd))) != NULL) {
		EQUAL(ibv_close_device(c), 0);
		(void)usleep(1000);
	}
	EQUAL(errno, ENODEV);
	close(fd);
	ibv_free_device_list(list);
}

/* Imports that fail, and windows, which shared domains lack. */
static void
refused(void)
{
	struct ibv_pd *with;
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	struct end e;
	int fd = memfd_create("other", MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	REFUSED(ibv_import_device(-1), EBADF);
	REFUSED(ibv_import_device(0), EINVAL);
	REFUSED(ibv_import_device(fd), ENODEV);
	import(&e, dup(r.a.c->cmd_fd), r.a.pd->handle);
	REFUSED(ibv_import_pd(e.c, 0), EINVAL);
	REFUSED(ibv_import_pd(e.c, UINT32_MAX), EINVAL);
	REFUSED(ibv_import_mr(e.pd, 0), EINVAL);
	REFUSED(ibv_import_mr(e.pd, UINT32_MAX), EINVAL);
	REFUSED(ibv_import_dm(e.c, 1), EOPNOTSUPP);
	/* Another context's domain and region: the context was not imported. */
	CHECK((mr = ibv_reg_mr(r.b.pd, b_memory, BYTES, REG_ALL)) != NULL);
	REFUSED(ibv_import_mr(e.pd, mr->handle), EINVAL);
	EQUAL(ibv_dereg_mr(mr), 0);
	CHECK((with = ibv_alloc_pd(r.a.c)) != NULL);
	CHECK((mw = ibv_alloc_mw(with, IBV_MW_TYPE_1)) != NULL);
	REFUSED(ibv_import_pd(e.c, with->handle), EOPNOTSUPP);
	EQUAL(ibv_dealloc_mw(mw), 0);
	EQUAL(ibv_dealloc_pd(with), 0);
	REFUSED(ibv_alloc_mw(r.a.pd, IBV_MW_TYPE_2), EOPNOTSUPP);
	/* The rights of an imported region are its maker's to change. */
	CHECK((mr = ibv_reg_mr(r.a.pd, a_memory, BYTES, REG_ALL)) != NULL);
	{
		struct ibv_mr *seen = ibv_import_mr(e.pd, mr->handle);

		CHECK(seen != NULL);
		EQUAL(ibv_rereg_mr(seen, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		      IBV_REREG_MR_ERR_INPUT);
		ibv_unimport_mr(seen);
	}
	EQUAL(ibv_dereg_mr(mr), 0);
	leave(&e, true);
	closed();
	close(fd);
}

/* ---- in another process */

/* Everything that the other process must know. */
struct note {
	uint32_t pd, mr, lkey, rkey, qpn;
	uint64_t addr;
	union ibv_gid gid;
};

/* Send or receive a note, with a descriptor if fd is not NULL. */
static void
pass(int sock, struct note *n, int *fd, bool out)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = n, .iov_len = sizeof(*n)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = &control.align;

	memset(&control, 0, sizeof(control));
	if (fd != NULL) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control.buf);
	}
	if (fd != NULL && out) {
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), fd, sizeof(*fd));
	}
	EQUAL(out ? sendmsg(sock, &m, 0) : recvmsg(sock, &m, 0), (ssize_t)sizeof(*n));
	if (fd != NULL && !out) {
		CHECK((c = CMSG_FIRSTHDR(&m)) != NULL && c->cmsg_type == SCM_RIGHTS);
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
}

/* Bring the end up against a queue pair of another process. */
static void
connect_far(struct end *e, uint32_t qpn, const union ibv_gid *gid)
{
	struct ibv_qp far = {.qp_num = qpn};
	struct end peer = {.qp = &far, .gid = *gid};

	EQUAL(end_move(e, &peer, IBV_QPS_RESET), 0);
	EQUAL(end_move(e, &peer, IBV_QPS_INIT), 0);
	EQUAL(end_move(e, &peer, IBV_QPS_RTR), 0);
	EQUAL(end_move(e, &peer, IBV_QPS_RTS), 0);
}

/*
 * The other process: it has the descriptor of a's context, and a queue pair in a's protection
 * domain that is connected to b's.
 */
static int
importer(int sock, bool killed)
{
	static char own[BYTES];
	struct note a, b, me = {0};
	struct ibv_mr *mr, *mine, *again;
	struct end e;
	int fd;

	pass(sock, &a, &fd, false);
	pass(sock, &b, NULL, false);
	import(&e, fd, a.pd);
	CHECK((mr = ibv_import_mr(e.pd, a.mr)) != NULL);
	CHECK(mr->lkey == a.lkey && mr->rkey == a.rkey && mr->length == BYTES && mr->addr == NULL);
	end_make(&e, &plain, NULL);
	mine = reg(&e, own, BYTES);
	me.qpn = e.qp->qp_num;
	me.gid = e.gid;
	me.addr = (uintptr_t)own;
	me.rkey = mine->rkey;
	pass(sock, &me, NULL, true);
	connect_far(&e, b.qpn, &b.gid);
	pass(sock, &b, NULL, false); /* b's end is up */
	/* From the memory of a's process to b's, by this process's queue pair; and back to its own.
	 */
	EQUAL(moves(&e, IBV_WR_RDMA_WRITE, (char *)(uintptr_t)a.addr, mr->lkey,
		    (char *)(uintptr_t)b.addr, b.rkey),
	      IBV_WC_SUCCESS);
	EQUAL(moves(&e, IBV_WR_RDMA_READ, own, mine->lkey, (char *)(uintptr_t)b.addr, b.rkey),
	      IBV_WC_SUCCESS);
	CHECK(filled(own, 1));
	pass(sock, &me, NULL, true);
	if (killed)
		(void)pause();
	pass(sock, &b, NULL, false);
	/* b has written here; then a's context was closed. The regions of a are gone, the domain
	 * goes on. */
	CHECK(filled(own, 3));
	while ((again = ibv_import_mr(e.pd, a.mr)) != NULL) {
		ibv_unimport_mr(again);
		(void)usleep(1000);
	}
	EQUAL(errno, EINVAL);
	EQUAL(moves(&e, IBV_WR_RDMA_READ, own, mine->lkey, (char *)(uintptr_t)b.addr, b.rkey),
	      IBV_WC_SUCCESS);
	CHECK(filled(own, 4));
	EQUAL(moves(&e, IBV_WR_RDMA_WRITE, (char *)(uintptr_t)a.addr, mr->lkey,
		    (char *)(uintptr_t)b.addr, b.rkey),
	      IBV_WC_LOC_PROT_ERR);
	ibv_unimport_mr(mr);
	EQUAL(ibv_dereg_mr(mine), 0);
	leave(&e, false);
	return 0;
}

/* This process has both devices; the other, which was started before, imports a's. */
static void
exporter(int sock, pid_t pid, bool killed)
{
	struct ibv_mr *a, *b;
	const struct rig_options idle = {.idle = true};
	struct note na, nb, other;
	int status;

	rig_open(&r);
	rig_make(&r, &idle);
	a = reg(&r.a, a_memory, BYTES);
	b = reg(&r.b, b_memory, BYTES);
	na = (struct note){.pd = r.a.pd->handle,
			   .mr = a->handle,
			   .lkey = a->lkey,
			   .rkey = a->rkey,
			   .addr = (uintptr_t)a_memory};
	nb = (struct note){.rkey = b->rkey,
			   .qpn = r.b.qp->qp_num,
			   .gid = r.b.gid,
			   .addr = (uintptr_t)b_memory};
	fill(a_memory, 1);
	pass(sock, &na, &r.a.c->cmd_fd, true);
	pass(sock, &nb, NULL, true);
	pass(sock, &other, NULL, false);
	connect_far(&r.b, other.qpn, &other.gid);
	pass(sock, &nb, NULL, true);
	{
		struct note done;

		pass(sock, &done, NULL, false);
	}
	CHECK(filled(b_memory, 1));
	EQUAL(ibv_destroy_qp(r.a.qp), 0);
	EQUAL(ibv_dealloc_pd(r.a.pd), EBUSY);
	if (killed) {
		/* The importer dies with a queue pair and a region in the domain: they go with it.
		 */
		EQUAL(kill(pid, SIGKILL), 0);
		EQUAL(waitpid(pid, &status, 0), pid);
		EQUAL(ibv_dereg_mr(a), 0);
		while (ibv_dealloc_pd(r.a.pd) == EBUSY)
			usleep(1000);
		CHECK((r.a.pd = ibv_alloc_pd(r.a.c)) != NULL);
		EQUAL(ibv_dealloc_pd(r.a.pd), 0);
		return;
	}
	fill(b_memory, 3);
	EQUAL(moves(&r.b, IBV_WR_RDMA_WRITE, b_memory, b->lkey, (char *)(uintptr_t)other.addr,
		    other.rkey),
	      IBV_WC_SUCCESS);
	EQUAL(ibv_close_device(r.a.c), 0);
	fill(b_memory, 4);
	pass(sock, &nb, NULL, true);
	EQUAL(waitpid(pid, &status, 0), pid);
	EQUAL(status, 0);
}

static void
two_processes(bool killed)
{
	int sock[2];
	pid_t pid;

	EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	CHECK((pid = fork()) >= 0);
	if (pid == 0)
		_exit(importer(sock[1], killed));
	close(sock[1]);
	exporter(sock[0], pid, killed);
}

static void
other_process(void)
{
	two_processes(false);
}

static void
killed_importer(void)
{
	two_processes(true);
}

/* A child has the descriptor of its parent's context without being sent it. */
static void
child(void)
{
	struct ibv_mr *a = reg(&r.a, a_memory, BYTES), *mr;
	int status;
	pid_t pid;

	CHECK((pid = fork()) >= 0);
	if (pid == 0) {
		struct end e;

		import(&e, dup(r.a.c->cmd_fd), r.a.pd->handle);
		CHECK((mr = ibv_import_mr(e.pd, a->handle)) != NULL);
		EQUAL(mr->rkey, a->rkey);
		ibv_unimport_mr(mr);
		leave(&e, true);
		_exit(0);
	}
	EQUAL(waitpid(pid, &status, 0), pid);
	EQUAL(status, 0);
	EQUAL(ibv_dereg_mr(a), 0);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool bare; /* opens the devices itself */
	} cases[] = {
		{"same", same_process, false},	{"ends", importer_ends, false},
		{"refused", refused, false},	{"child", child, false},
		{"other", other_process, true}, {"killed", killed_importer, true},
	};
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		if (!cases[i].bare) {
			rig_open(&r);
			rig_make(&r, &plain);
		}
		cases[i].run();
		return 0;
	}
	fprintf(stderr, "usage: import CASE\n");
	return 2;
}
