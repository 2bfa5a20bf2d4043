/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables: the attacker takes all that the dataplane gives one user, by as many connections as it
 * needs, and keeps asking for more.
 */
#include "attacks.h"

#include "attach/remote.h"

#include <urnic/cm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	DEVICES = 64,	   /* connections that are used for objects */
	MOST = 1 << 17,	   /* objects of a kind, at most */
	REFUSED = 64,	   /* further objects that are asked for in a round */
	CLIENTS = 1 << 14, /* connections, at most */
	CQES = 1 << 16,	   /* entries of a large queue: 4 MiB */
	SERVICE = 0x4712,
	NEIGHBOURS = 60000,
	GROUPS = 2048,
	HALF_OPEN = 6000,
	ASK_WAIT = 18, /* code: a request waits for 1 s */
};

/* A kind of object that the attacker takes. */
struct taken {
	const char *name;
	bool (*make)(struct foe_end *e, uint32_t n); /* n: number of the object */
};

static bool
make_qp(struct foe_end *e, uint32_t n)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	(void)n;
	return ibv_create_qp(e->pd, &init) != NULL;
}

static bool
make_region(struct foe_end *e, uint32_t n)
{
	(void)n;
	return ibv_reg_mr(e->pd, e->buf, 64, FOE_ACCESS) != NULL;
}

static bool
make_cq(struct foe_end *e, uint32_t n)
{
	(void)n;
	return ibv_create_cq(e->ctx, 1, NULL, NULL, 0) != NULL;
}

static bool
make_pd(struct foe_end *e, uint32_t n)
{
	(void)n;
	return ibv_alloc_pd(e->ctx) != NULL;
}

static bool
make_srq(struct foe_end *e, uint32_t n)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

	(void)n;
	return ibv_create_srq(e->pd, &init) != NULL;
}

static bool
make_ah(struct foe_end *e, uint32_t n)
{
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = 1,
				 .grh = {.dgid = e->gid, .sgid_index = 1, .hop_limit = 64}};

	(void)n;
	return ibv_create_ah(e->pd, &to) != NULL;
}

/* Straight to the dataplane: the library would keep two descriptors of the attacker's for each. */
static bool
make_channel(struct foe_end *e, uint32_t n)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CHANNEL};
	struct urn_abi_rep rep;

	(void)n;
	return urn_dev_call(urn_ctx_dev(e->ctx), &req, &rep) == 0;
}

static bool
make_id(struct foe_end *e, uint32_t n)
{
	struct urn_abi_req req = {
		.op = URN_CTL_CM_LISTEN,
		.cm_listen = {.service_id = (uint64_t)SERVICE << 32 | n, .channel_fd = -1}};
	struct urn_abi_rep rep;

	return urn_dev_call(urn_ctx_dev(e->ctx), &req, &rep) == 0;
}

static bool
make_set(struct foe_end *e, uint32_t n)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_OPEN,
				  .msg_open = {.arena = 64, .channel_fd = -1}};
	struct urn_abi_rep rep;

	(void)n;
	return urn_dev_call(urn_ctx_dev(e->ctx), &req, &rep) == 0;
}

static bool
make_endpoint(struct foe_end *e, uint32_t n)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_OPEN,
				  .am_open = {.entries = 1, .ranges = 1, .channel_fd = -1}};
	struct urn_abi_rep rep;

	(void)n;
	req.am_open.pd = e->pd->handle;
	return urn_dev_call(urn_ctx_dev(e->ctx), &req, &rep) == 0;
}

/* A piece of shared memory: a mapping of the dataplane's. */
static bool
make_piece(struct foe_end *e, uint32_t n)
{
	struct urn_abi_req req = {.op = URN_CTL_SHARE, .share = {.addr = 4096, .length = 4096}};
	struct urn_abi_rep rep;
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool ok = fd >= 0 && ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0;

	(void)n;
	req.share.fd = fd;
	ok = ok && urn_dev_call(urn_ctx_dev(e->ctx), &req, &rep) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static const struct taken kinds[] = {
	{"queue pairs", make_qp},
	{"regions", make_region},
	{"completion queues", make_cq},
	{"protection domains", make_pd},
	{"shared receive queues", make_srq},
	{"address handles", make_ah},
	{"ids", make_id},
	{"register sets", make_set},
	{"endpoints", make_endpoint},
	{"channels", make_channel},
	{"pieces of shared memory", make_piece},
};

/* Open a device; the dataplane may refuse that. returns: true when it is open */
static bool
try_open(struct foe_end *e, const struct foe *f, unsigned int n)
{
	memset(e, 0, sizeof(*e));
	e->ctx = urn_attach_connect(f->path, n % 2 ? "b" : "a");
	e->pd = e->ctx ? ibv_alloc_pd(e->ctx) : NULL;
	e->cq = e->pd ? ibv_create_cq(e->ctx, 1, NULL, NULL, 0) : NULL;
	e->buf = e->cq ? urn_alloc(4096) : NULL;
	e->mr = e->buf ? ibv_reg_mr(e->pd, e->buf, 4096, FOE_ACCESS) : NULL;
	return e->mr && ibv_query_gid(e->ctx, 1, 1, &e->gid) == 0;
}

/* Take all objects of a kind, over all devices. */
static void
take_all(struct foe_end *e, unsigned int devices, const struct taken *k)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < devices; i++)
		while (n < MOST && k->make(&e[i], n))
			n++;
	fprintf(stderr, "took %u %s\n", n, k->name);
}

void
attack_everything(struct foe *f)
{
	struct foe_end e[DEVICES];
	unsigned int n = 0;

	(void)foe_descriptors();
	while (n < DEVICES && try_open(&e[n], f, n))
		n++;
	FOE_MUST(n > 0, "attach");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		take_all(e, n, &kinds[k]);
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < REFUSED; i++)
			for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
				(void)kinds[k].make(&e[i % n], MOST + i);
		foe_round(f);
	}
}

/* Take queues of a device until there is no room in its area, or none for this user. returns: how
 * many */
static unsigned int
take_queues(const struct foe_end *e)
{
	unsigned int n = 0;

	while (ibv_create_cq(e->ctx, CQES, NULL, NULL, 0) != NULL)
		n++;
	return n;
}

void
attack_queue_memory(struct foe *f)
{
	struct foe_end e[DEVICES];
	unsigned int devices = 0, queues = 0;

	(void)foe_descriptors();
	while (devices < DEVICES && try_open(&e[devices], f, devices))
		queues += take_queues(&e[devices++]);
	FOE_MUST(devices > 0, "attach");
	fprintf(stderr, "took %u large queues of %u devices: %s\n", queues, devices,
		urn_attach_error());
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < devices; i++)
			(void)take_queues(&e[i]);
		foe_round(f);
	}
}

/* ---- connections to the socket */

void
attack_clients(struct foe *f)
{
	unsigned int n = 0;
	int fd;

	(void)foe_descriptors();
	while (n < CLIENTS && urn_remote_connect(f->path, NULL) >= 0)
		n++;
	fprintf(stderr, "took %u connections\n", n);
	foe_ready(f);
	for (;;) {
		fd = urn_remote_connect(f->path, NULL);
		if (fd >= 0)
			close(fd);
		foe_round(f);
	}
}

/* ---- connections between nodes */

void
attack_half_open(struct foe *f)
{
	struct urn_abi_cm_connect p = {.service_id = urn_cm_service(URN_CM_PS_TCP, SERVICE),
				       .sgid_index = 1,
				       .psn = 1,
				       .mtu = 3,
				       .retry_count = 7,
				       .rnr_retry = 7,
				       .timeout = ASK_WAIT,
				       .max_retries = 15};
	struct urn_cm_end *c[2];
	struct foe_end e[2];
	struct ibv_qp *qp;
	uint32_t id;

	foe_open(&e[0], f, "a", 4096, 16);
	foe_open(&e[1], f, "b", 4096, 16);
	for (unsigned int i = 0; i < 2; i++)
		FOE_MUST(urn_cm_end_open(&c[i], e[i].ctx) == 0, "connection management");
	FOE_MUST(urn_cm_end_listen(c[1], p.service_id, 0, UINT32_MAX, &id) == 0, "listen");
	memcpy(p.dgid, e[1].gid.raw, 16);
	qp = foe_qp(&e[0], IBV_QPT_RC, 1);
	FOE_MUST(qp != NULL, "queue pair");
	p.qpn = qp->qp_num;
	for (unsigned int i = 0; i < HALF_OPEN; i++)
		if (urn_cm_end_connect(c[0], &p, &id) != 0)
			break;
	foe_ready(f);
	for (;;) {
		struct urn_abi_cm_event ev;

		/* Ids that failed make room for new ones; those of requests are kept. */
		while (urn_cm_end_event(c[0], &ev) == 0)
			(void)urn_cm_end_destroy(c[0], ev.id);
		while (urn_cm_end_event(c[1], &ev) == 0)
			;
		for (unsigned int i = 0; i < REFUSED; i++)
			(void)urn_cm_end_connect(c[0], &p, &id);
		usleep(1000);
		foe_round(f);
	}
}

/* ---- neighbours and groups */

void
attack_neighbours(struct foe *f)
{
	struct foe_end e[2];

	foe_open(&e[0], f, "a", 4096, 16);
	foe_open(&e[1], f, "b", 4096, 16);
	foe_ready(f);
	for (uint32_t n = 0;; n = (n + 1) % NEIGHBOURS) {
		struct foe_end *of = &e[n % 2];
		struct ibv_ah_attr to = {
			.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = of->gid, .sgid_index = 1, .hop_limit = 64}};
		struct ibv_ah *ah;

		to.grh.dgid.raw[14] = (uint8_t)(1 + n / 250);
		to.grh.dgid.raw[15] = (uint8_t)(1 + n % 250);
		ah = ibv_create_ah(of->pd, &to);
		if (ah)
			(void)ibv_destroy_ah(ah);
		if (n % 256 == 0)
			foe_round(f);
	}
}

void
attack_groups(struct foe *f)
{
	struct foe_end e[DEVICES / 4];
	unsigned int devices = 0, taken = 0;

	while (devices < DEVICES / 4 && try_open(&e[devices], f, devices))
		devices++;
	for (unsigned int i = 0; i < devices; i++) {
		struct ibv_qp *qp = foe_qp(&e[i], IBV_QPT_UD, 1);

		FOE_MUST(qp != NULL && foe_datagrams(qp) == 0, "datagrams");
		for (uint32_t n = 0; n < GROUPS; n++) {
			union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239}};

			group.raw[13] = (uint8_t)i;
			group.raw[14] = (uint8_t)(n >> 8);
			group.raw[15] = (uint8_t)n;
			if (ibv_attach_mcast(qp, &group, 0) != 0)
				break;
			taken++;
		}
	}
	fprintf(stderr, "took %u groups\n", taken);
	foe_ready(f);
	for (;;) {
		usleep(1000);
		foe_round(f);
	}
}
