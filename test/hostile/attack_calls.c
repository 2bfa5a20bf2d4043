/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls, and the socket that they go over. */
#include "attacks.h"

#include "attach/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CALLS = 5000,	   /* random calls over one connection */
	MESSAGES = 64,	   /* random messages over one connection, at most */
	UNREAD = 64,	   /* connections whose answers nobody takes */
	ASKED = 20,	   /* questions of each of them */
	STORM_OBJECTS = 8, /* objects of each kind of a program that comes and goes */
};

/* ---- handles of others */

/* Operations that name an object, and would change or end it. */
static const uint32_t naming[] = {
	URN_CTL_DEALLOC_PD,   URN_CTL_DEREG_MR,	    URN_CTL_DEALLOC_MW,	     URN_CTL_RESIZE_CQ,
	URN_CTL_DESTROY_CQ,   URN_CTL_MODIFY_SRQ,   URN_CTL_QUERY_SRQ,	     URN_CTL_DESTROY_SRQ,
	URN_CTL_MODIFY_QP,    URN_CTL_QUERY_QP,	    URN_CTL_DESTROY_QP,	     URN_CTL_DESTROY_AH,
	URN_CTL_UNSHARE,      URN_CTL_CM_ACCEPT,    URN_CTL_DESTROY_CHANNEL, URN_CTL_CM_REJECT,
	URN_CTL_CM_ESTABLISH, URN_CTL_CM_DESTROY,   URN_CTL_CM_DISCONNECT,   URN_CTL_CONNECT_QP,
	URN_CTL_MSG_BIND,     URN_CTL_MSG_CLOSE,    URN_CTL_AM_CLOSE,	     URN_CTL_AM_REG,
	URN_CTL_AM_DEREG,     URN_CTL_ATTACH_MCAST, URN_CTL_REPLACE_MR,	     URN_CTL_IMPORT_PD,
	URN_CTL_IMPORT_MR,    URN_CTL_END_PD,	    URN_CTL_END_MR,	     URN_CTL_ALIGN_QP,
	URN_CTL_QUERY_STORES, URN_CTL_ALLOC_MW,	    URN_CTL_REG_MR,	     URN_CTL_CREATE_AH,
	URN_CTL_EXPLAIN,
};

static void
open_dev(const struct foe *f, struct urn_dev *dev)
{
	struct urn_abi_channel *ch = urn_remote_attach(f->path, "a");

	FOE_MUST(ch != NULL && urn_dev_open(dev, ch) == 0, "attach");
}

/* A number that may be that of an object: counted from 1, with the bits of a key, or any. */
static uint32_t
guess(struct foe *f)
{
	uint32_t n = 1 + foe_below(f, 512);

	switch (foe_below(f, 4)) {
	case 0:
		return n;
	case 1:
		return n << 8 | foe_below(f, 256);
	case 2:
		return n | foe_below(f, 16) << 16;
	default:
		return (uint32_t)foe_random(f);
	}
}

/*
 * Name an object in one call. The attacker has none, so whatever the call finds is another's, and
 * success is the end of the test.
 */
static void
name_one(struct foe *f, struct urn_dev *dev, uint32_t op)
{
	struct urn_abi_req req = {.op = op, .handle = guess(f)};
	struct urn_abi_rep rep;

	if (op == URN_CTL_MODIFY_QP) {
		req.modify_qp.mask = URN_QPM_STATE;
		req.modify_qp.attr.state = URN_QPS_ERR;
	} else if (op == URN_CTL_REG_MR) {
		req.reg_mr.pd = req.handle;
		req.reg_mr.addr = (uintptr_t)&req;
		req.reg_mr.length = 1;
	} else if (op == URN_CTL_ALLOC_MW) {
		req.alloc_mw.pd = req.handle;
		req.alloc_mw.type = 2;
	} else if (op == URN_CTL_CREATE_AH) {
		req.create_ah.pd = req.handle;
		req.create_ah.av.port_num = 1;
	} else if (op == URN_CTL_RESIZE_CQ) {
		req.resize_cq.cqe = 16;
	}
	if (urn_dev_call(dev, &req, &rep) != 0)
		return;
	fprintf(stderr, "operation %u took the number 0x%x of another's object\n", op, req.handle);
	_exit(1);
}

void
attack_handles(struct foe *f)
{
	struct urn_dev dev = {0};

	open_dev(f, &dev);
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < sizeof(naming) / sizeof(naming[0]); i++)
			name_one(f, &dev, naming[i]);
		FOE_MUST(urn_dev_gone(&dev) == URN_DEV_THERE, "the dataplane is gone");
		foe_round(f);
	}
}

/* ---- random calls */

/* Fill words with numbers that are often small, all ones, or those of objects. */
static void
any_words(struct foe *f, void *to, size_t bytes)
{
	uint32_t w[sizeof(struct urn_abi_req) / 4];

	for (size_t i = 0; i < bytes / 4; i++) {
		uint32_t kind = foe_below(f, 8);

		w[i] = kind < 4	   ? foe_below(f, 8)
		       : kind == 4 ? UINT32_MAX
		       : kind == 5 ? (uint32_t)foe_random(f)
				   : guess(f);
	}
	memcpy(to, w, bytes);
}

void
attack_random(struct foe *f)
{
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	FOE_MUST(fd >= 0 && ftruncate(fd, 1 << 20) == 0, "memfd");
	foe_ready(f);
	for (;;) {
		struct urn_dev dev = {0};
		struct urn_abi_req req;
		struct urn_abi_rep rep;

		open_dev(f, &dev);
		for (unsigned int i = 0; i < CALLS; i++) {
			any_words(f, &req, sizeof(req));
			req.op = 1 + foe_below(f, URN_CTL_OPS + 2);
			if (urn_ctl_fds_in(req.op) != 0)
				req.fd = fd;
			(void)urn_dev_call(&dev, &req, &rep);
		}
		urn_dev_close(&dev);
		foe_round(f);
	}
}

/* ---- messages by hand */

/* returns: a connection to the socket, or -1: it is refused */
static int
dial(const struct foe *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Send bytes with so many descriptors, at most 4. returns: true when they left */
static bool
send_with(int sock, const void *p, size_t bytes, int fd, unsigned int count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(4 * sizeof(int))];
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[4] = {fd, fd, fd, fd};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

void
attack_rubbish(struct foe *f)
{
	int own = open("/dev/null", O_RDWR | O_CLOEXEC);

	foe_ready(f);
	for (;;) {
		struct urn_sock_ask q = {.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, 0, 1, 0}};
		int sock = dial(f);

		for (unsigned int i = 0; sock >= 0 && i < MESSAGES; i++) {
			size_t bytes = 1 + foe_below(f, sizeof(q));

			any_words(f, &q.list, sizeof(q) - sizeof(q.head));
			q.head.kind = (uint16_t)foe_below(f, 7);
			q.head.bytes = foe_below(f, 8) ? urn_sock_ask_bytes(q.head.kind)
						       : (uint32_t)foe_random(f);
			if (foe_below(f, 8) && urn_sock_ask_bytes(q.head.kind))
				bytes = urn_sock_ask_bytes(q.head.kind);
			if (!send_with(sock, &q, bytes, own,
				       foe_below(f, 8) ? 0 : 1 + foe_below(f, 4)))
				break;
		}
		if (sock >= 0)
			close(sock);
		foe_round(f);
	}
}

/* ---- programs that come and go */

static void
come(struct foe *f, struct foe_end *e)
{
	foe_open(e, f, foe_below(f, 2) ? "a" : "b", 1 << 16, 64);
	for (unsigned int i = 0; i < STORM_OBJECTS; i++)
		FOE_MUST(foe_qp(e, IBV_QPT_RC, 16) != NULL, "queue pair");
}

void
attack_storm(struct foe *f)
{
	foe_ready(f);
	for (;;) {
		struct foe_end e;
		pid_t pid = fork();

		FOE_MUST(pid >= 0, "fork");
		if (pid == 0) { /* dies with all that it has */
			come(f, &e);
			_exit(0);
		}
		FOE_MUST(waitpid(pid, NULL, 0) == pid, "wait");
		come(f, &e);
		/* The device takes its objects along. */
		FOE_MUST(ibv_close_device(e.ctx) == 0, "close");
		urn_free(e.buf);
		foe_round(f);
	}
}

/* ---- answers that nobody takes */

/* Open an adapter over a connection, and ask for channels until the dataplane has had enough. */
static int
ask_without_end(const struct foe *f)
{
	struct urn_sock_ask q = {.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, URN_SOCK_HELLO, 1,
					  urn_sock_ask_bytes(URN_SOCK_HELLO)},
				 .hello = {URN_ABI_VERSION_OLDEST, URN_ABI_VERSION}};
	struct urn_sock_answer a;
	int sock = dial(f);

	if (sock < 0)
		return -1;
	(void)send_with(sock, &q, q.head.bytes, -1, 0);
	(void)recv(sock, &a, sizeof(a), 0);
	memset(&q.open, 0, sizeof(q.open));
	strcpy(q.open.name, "a0");
	q.head.kind = URN_SOCK_OPEN;
	q.head.bytes = urn_sock_ask_bytes(URN_SOCK_OPEN);
	(void)send_with(sock, &q, q.head.bytes, -1, 0);
	(void)recv(sock, &a, sizeof(a), 0);
	memset(&q.call, 0, sizeof(q.call));
	q.head.kind = URN_SOCK_CALL;
	q.head.bytes = urn_sock_ask_bytes(URN_SOCK_CALL);
	q.call.op = URN_CTL_CREATE_CHANNEL;
	for (unsigned int i = 0; i < ASKED; i++)
		(void)send_with(sock, &q, q.head.bytes, -1, 0);
	return sock;
}

void
attack_unread(struct foe *f)
{
	int sock[UNREAD];

	for (unsigned int i = 0; i < UNREAD; i++)
		sock[i] = ask_without_end(f);
	foe_ready(f);
	for (unsigned int i = 0;; i = (i + 1) % UNREAD) {
		if (sock[i] >= 0)
			close(sock[i]);
		sock[i] = ask_without_end(f);
		if (i == 0)
			foe_round(f);
	}
}
