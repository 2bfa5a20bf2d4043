/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: descriptors that many wait for, and that nobody reads. */
#include "attacks.h"

#include <urnic/cm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	WATCHERS = 20000,
	SPARE = 256,  /* descriptors that are left for other things */
	LEAST = 1000, /* watchers below which there is no attack */
	CHANNELS = 64,
	SERVICE = 0x4711, /* port */
	BYTES = 1 << 16,
	CQES = 256,
};

/* Watch a descriptor so often: each copy in the set is woken by itself. returns: the set */
static int
watch(int fd)
{
	unsigned long most = foe_descriptors();
	int set = epoll_create1(EPOLL_CLOEXEC), n = 0;

	FOE_MUST(set >= 0, "epoll");
	if (most < LEAST + SPARE)
		foe_skip("few descriptors");
	for (; n < WATCHERS && (unsigned long)n < most - SPARE; n++) {
		struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, SPARE);

		if (copy < 0 || epoll_ctl(set, EPOLL_CTL_ADD, copy, &ev) != 0)
			break;
	}
	if (n < LEAST)
		foe_skip("few watchers");
	return set;
}

/* Read what there is, without a wait. */
static void
empty(int fd)
{
	struct urn_abi_event ev[64];

	while (read(fd, ev, sizeof(ev)) > 0)
		;
}

static void
no_wait(int fd)
{
	FOE_MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "O_NONBLOCK");
}

/* One completion, and the event that goes with it. */
static void
one_event(struct foe_end *e, struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 8, e->mr->lkey};

	FOE_MUST(ibv_req_notify_cq(e->cq, 0) == 0, "arm");
	FOE_MUST(foe_post(qp, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)e->buf + 4096, e->mr->rkey) == 0,
		 "post");
	while (foe_drain(e->cq) == 0)
		usleep(10);
}

void
attack_watchers(struct foe *f)
{
	struct foe_end e;
	struct ibv_qp *qp[2];

	foe_open(&e, f, "a", BYTES, CQES);
	foe_pair(&e, &e, 16, qp);
	no_wait(e.ch->fd);
	(void)watch(e.ch->fd);
	foe_ready(f);
	for (;;) {
		one_event(&e, qp[0]);
		empty(e.ch->fd);
		foe_round(f);
	}
}

/* ---- the eventfd that wakes an engine */

/* Get a copy of the first eventfd of this process: the dataplane gave it to the library. */
static int
engine_eventfd(void)
{
	char path[64], what[64];

	for (int fd = 0; fd < SPARE; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, what, sizeof(what) - 1);
		what[n < 0 ? 0 : n] = '\0';
		if (strcmp(what, "anon_inode:[eventfd]") == 0)
			return fcntl(fd, F_DUPFD_CLOEXEC, 3);
	}
	foe_die("no eventfd");
}

static _Atomic int ring = -1; /* eventfd that the ringer writes without end; -1: none */
static _Atomic bool rung;     /* the ringer uses the eventfd */

static void *
ringer(void *arg)
{
	const uint64_t one = 1;

	for (;;) {
		int fd = atomic_load(&ring);

		atomic_store(&rung, fd >= 0);
		if (fd < 0 || fd != atomic_load(&ring))
			usleep(100);
		else
			(void)!write(fd, &one, sizeof(one));
	}
	return arg;
}

/* Attach, have 20,000 descriptors watch the eventfd while it is written without pause, and leave.
 */
void
attack_eventfd(struct foe *f)
{
	foe_thread(ringer, NULL);
	foe_ready(f);
	for (;;) {
		struct foe_end e;
		int fd, set;

		foe_open(&e, f, "a", BYTES, CQES);
		fd = engine_eventfd();
		FOE_MUST(fd >= 0, "copy");
		set = watch(fd);
		atomic_store(&ring, fd);
		while (!atomic_load(&rung))
			usleep(100);
		foe_close(&e);
		atomic_store(&ring, -1);
		while (atomic_load(&rung))
			usleep(100);
		close(fd);
		close(set);
		FOE_MUST(close_range(SPARE, ~0u, 0) == 0, "close"); /* the copies */
		foe_round(f);
	}
}

/* ---- connection ids */

/* Throw away all events of an end; ids of requests are destroyed. */
static void
destroy_all(struct urn_cm_end *c)
{
	struct urn_abi_cm_event ev;

	while (urn_cm_end_event(c, &ev) == 0)
		if (ev.type == URN_CM_EVENT_REQUEST || ev.type == URN_CM_EVENT_SIDR_REQUEST)
			(void)urn_cm_end_destroy(c, ev.id);
}

void
attack_watched_ids(struct foe *f)
{
	struct urn_abi_cm_connect p = {.service_id = urn_cm_service(URN_CM_PS_UDP, SERVICE),
				       .sgid_index = 1,
				       .timeout = 12,
				       .max_retries = 3};
	struct urn_cm_end *c[2];
	struct foe_end e[2];
	uint32_t id, listener;

	foe_open(&e[0], f, "a", BYTES, CQES);
	foe_open(&e[1], f, "b", BYTES, CQES);
	for (unsigned int i = 0; i < 2; i++)
		FOE_MUST(urn_cm_end_open(&c[i], e[i].ctx) == 0, "connection management");
	FOE_MUST(urn_cm_end_listen(c[1], p.service_id, 0, 0, &listener) == 0, "listen");
	memcpy(p.dgid, e[1].gid.raw, 16);
	(void)watch(urn_cm_end_fd(c[1]));
	foe_ready(f);
	for (;;) {
		/* A look-up that is not answered: a notice at the listener. */
		if (urn_cm_end_resolve(c[0], &p, &id) == 0) {
			usleep(100);
			destroy_all(c[1]);
			(void)urn_cm_end_destroy(c[0], id);
		}
		destroy_all(c[0]);
		foe_round(f);
	}
}

/* ---- events that nobody reads */

void
attack_unread_events(struct foe *f)
{
	struct foe_end *e = calloc(CHANNELS, sizeof(*e));
	struct ibv_qp *qp[CHANNELS][2];

	FOE_MUST(e != NULL, "memory");
	foe_open(&e[0], f, "a", BYTES, CQES);
	for (unsigned int i = 0; i < CHANNELS; i++) {
		if (i != 0) { /* the device's objects, but a channel and a queue of its own */
			e[i] = e[0];
			e[i].ch = ibv_create_comp_channel(e[0].ctx);
			FOE_MUST(e[i].ch != NULL, "channel");
			e[i].cq = ibv_create_cq(e[0].ctx, CQES, NULL, e[i].ch, 0);
			FOE_MUST(e[i].cq != NULL, "completion queue");
		}
		foe_pair(&e[i], &e[i], 16, qp[i]);
	}
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < CHANNELS; i++)
			one_event(&e[i], qp[i][0]);
		foe_round(f);
	}
}

/* A queue pair goes to the error state, by a key that there is not, and comes back, without end. */
void
attack_unread_async(struct foe *f)
{
	struct foe_end e;
	struct foe_peer peer[2];
	struct ibv_qp *qp[2];

	foe_open(&e, f, "a", BYTES, CQES);
	foe_pair(&e, &e, 16, qp);
	for (unsigned int i = 0; i < 2; i++)
		peer[!i] = (struct foe_peer){e.gid, qp[i]->qp_num, 20, 7};
	foe_ready(f);
	for (;;) {
		struct ibv_sge sge = {(uintptr_t)e.buf, 8, e.mr->lkey};

		if (foe_post(qp[0], IBV_WR_RDMA_WRITE, &sge, (uintptr_t)e.buf, ~e.mr->rkey) == 0)
			while (foe_drain(e.cq) == 0)
				usleep(10);
		for (unsigned int i = 0; i < 2; i++)
			FOE_MUST(foe_connect(qp[i], &peer[i]) == 0, "connect again");
		foe_round(f);
	}
}
