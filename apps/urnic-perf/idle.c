/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-perf idle: clients that have objects in a dataplane and do nothing.
 * The clients are attached, each with a queue pair connected to itself, a
 * completion queue and a channel, and all sleep until somebody ends them. Other
 * tools measure the dataplane and its other clients meanwhile.
 *
 * Before it sleeps each client sends itself a message and is woken by the
 * completion, so the sleeping clients are known to work.
 */
#include "idle.h"

#include "perf.h"

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"

#include <urnic/attach.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

#define MESSAGE 8u    /* bytes */
#define WAKE_MS 10000 /* longest wait for a client's message to itself */
#define LOOK_MS 1000  /* longest sleep at a time; a signal is noticed at once all the same */

struct idle_client {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t *mem; /* a word to send, and a word to receive into */
};

struct idle {
	struct idle_opts o;
	struct idle_client *client; /* o.clients of them */
	struct pollfd *fd;	    /* the clients' channels, then their async events */
	uint32_t up;
};

/* ---- a client */

static int
failed(const char *what, struct urn_err *err)
{
	urn_err_set(err, "idle: cannot %s: %s", what, urn_attach_error());
	return -1;
}

static int
client_objects(struct idle_client *c, struct urn_err *err)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	c->pd = ibv_alloc_pd(c->ctx);
	c->channel = ibv_create_comp_channel(c->ctx);
	c->mem = urn_alloc(2 * MESSAGE);
	if (c->pd == NULL || c->channel == NULL || c->mem == NULL)
		return failed("get the objects of a client", err);
	c->cq = ibv_create_cq(c->ctx, 4, NULL, c->channel, 0);
	c->mr = ibv_reg_mr(c->pd, c->mem, (size_t)2 * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	if (c->cq == NULL || c->mr == NULL)
		return failed("get the objects of a client", err);
	attr.send_cq = attr.recv_cq = c->cq;
	c->qp = ibv_create_qp(c->pd, &attr);
	return c->qp != NULL ? 0 : failed("create a queue pair", err);
}

/* Post a client's message to itself. returns: 0, or -1 with *err */
static int
client_post(struct idle_client *c, struct urn_err *err)
{
	struct ibv_sge to = {(uintptr_t)&c->mem[1], MESSAGE, c->mr->lkey};
	struct ibv_sge from = {(uintptr_t)&c->mem[0], MESSAGE, c->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND},
			   *bad_send;

	c->mem[0] = c->qp->qp_num;
	if (ibv_req_notify_cq(c->cq, 0) != 0 || ibv_post_recv(c->qp, &recv, &bad_recv) != 0 ||
	    ibv_post_send(c->qp, &send, &bad_send) != 0)
		return failed("send a client a message of its own", err);
	return 0;
}

/* Sleep until the client's message is there, and arm its queue again. returns: 0, or -1 with *err */
static int
client_woken(struct idle_client *c, struct urn_err *err)
{
	struct pollfd p = {.fd = c->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *unused;

	if (poll(&p, 1, WAKE_MS) <= 0 || ibv_get_cq_event(c->channel, &cq, &unused) != 0) {
		urn_err_set(err, urn_stop_requested()
					 ? "idle: interrupted"
					 : "idle: a message of a client's own did not wake it");
		return -1;
	}
	ibv_ack_cq_events(cq, 1);
	if (ibv_poll_cq(c->cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
	    c->mem[1] != c->mem[0]) {
		urn_err_set(err, "idle: a client's own message did not come as it was sent");
		return -1;
	}
	return ibv_req_notify_cq(c->cq, 0) == 0 ? 0 : failed("ask to be woken", err);
}

static int
client_up(const struct idle *d, struct idle_client *c, struct urn_err *err)
{
	struct urn_ep_opts opts;
	struct urn_ep_addr own;
	union ibv_gid gid;

	c->ctx = perf_attach_other(d->o.attach, d->o.node, err);
	if (c->ctx == NULL)
		return -1;
	urn_ep_opts_default(&opts);
	if (perf_find_gid(c->ctx, false, &opts.sgid_index, &gid, err) != 0 ||
	    client_objects(c, err) != 0 || urn_ep_init(c->qp, 0, err) != 0 ||
	    urn_ep_local(c->qp, 1, opts.sgid_index, &own, err) != 0 ||
	    urn_ep_connect(c->qp, &own, &own, &opts, err) != 0 || client_post(c, err) != 0)
		return -1;
	return client_woken(c, err);
}

static void
client_down(struct idle_client *c)
{
	if (c->qp != NULL)
		ibv_destroy_qp(c->qp);
	if (c->cq != NULL)
		ibv_destroy_cq(c->cq);
	if (c->mr != NULL)
		ibv_dereg_mr(c->mr);
	if (c->channel != NULL)
		ibv_destroy_comp_channel(c->channel);
	if (c->pd != NULL)
		ibv_dealloc_pd(c->pd);
	if (c->ctx != NULL)
		ibv_close_device(c->ctx);
	urn_free(c->mem);
}

/* ---- all of them */

/* Raise the limit of descriptors: each client has some ten. */
static void
more_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

/* Sleep until the time is up, a signal comes, or a client gets an unexpected event. */
static int
sleep_on(struct idle *d, uint64_t since, struct urn_err *err)
{
	uint32_t n = 2 * d->o.clients;

	while (!urn_stop_requested()) {
		uint64_t left = d->o.duration_ns != 0 ? since + d->o.duration_ns - urn_clock_ns()
						      : UINT64_MAX;
		int ms = LOOK_MS;

		if (d->o.duration_ns != 0 && (int64_t)left <= 0)
			return 0;
		if (left / 1000000u < LOOK_MS)
			ms = (int)(left / 1000000u) + 1;
		if (poll(d->fd, n, ms) <= 0)
			continue;
		urn_err_set(
			err,
			"idle: a client was woken, and nobody had sent it anything: the dataplane "
			"is gone, or in trouble");
		return -1;
	}
	return 0;
}

static int
go(struct idle *d, uint64_t *ns, struct urn_err *err)
{
	uint64_t since;

	d->client = calloc(d->o.clients, sizeof(*d->client));
	d->fd = calloc(2 * (size_t)d->o.clients, sizeof(*d->fd));
	if (d->client == NULL || d->fd == NULL) {
		urn_err_set(err, "no memory for %u clients", d->o.clients);
		return -1;
	}
	while (d->up < d->o.clients) {
		struct idle_client *c = &d->client[d->up++];

		if (client_up(d, c, err) != 0)
			return -1;
		d->fd[2 * (d->up - 1)] = (struct pollfd){.fd = c->channel->fd, .events = POLLIN};
		d->fd[2 * d->up - 1] = (struct pollfd){.fd = c->ctx->async_fd, .events = POLLIN};
	}
	fprintf(stderr, "urnic-perf: %u clients attached, all asleep\n", d->o.clients);
	since = urn_clock_ns();
	if (sleep_on(d, since, err) != 0)
		return -1;
	*ns = urn_clock_ns() - since;
	return 0;
}

static void
tell(const struct idle_opts *o, uint64_t ns)
{
	struct urn_json j;

	if (!o->json) {
		printf("urnic-perf idle: %u clients, asleep for %.3f s\n", o->clients,
		       (double)ns / 1e9);
		return;
	}
	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", "idle");
	urn_json_u64(&j, "clients", o->clients);
	urn_json_num(&j, "seconds", (double)ns / 1e9, 6);
	urn_json_end(&j);
}

int
idle_main(int argc, char **argv)
{
	struct urn_err err = {{0}};
	struct idle d = {0};
	uint64_t ns = 0;
	int rc;

	switch (idle_options_parse(argc - 1, argv + 1, &d.o, &err)) {
	case PERF_EXIT_OK:
		return EXIT_SUCCESS;
	case PERF_EXIT_USAGE:
		fprintf(stderr, "urnic-perf: %s\n", err.text);
		return EXIT_USAGE;
	default:
		break;
	}
	urn_stop_install();
	more_descriptors();
	rc = go(&d, &ns, &err);
	if (rc == 0)
		tell(&d.o, ns);
	else
		fprintf(stderr, "urnic-perf: %s\n", err.text);
	while (d.up > 0)
		client_down(&d.client[--d.up]);
	free(d.client);
	free(d.fd);
	if (urn_stop_requested())
		return EXIT_SIGNAL + urn_stop_requested();
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILED;
}
