/* SPDX-License-Identifier: BSD-3-Clause */
/* One node with a port of its own, polled by the thread that uses it. */
#include "pp.h"

#include "common/text.h"

#include <rte_lcore.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define GUARD 4096u /* bytes before and behind the receive buffer */
#define GUARD_BYTE 0xa5
#define LINK_POLL_NS 10000000u

static int
open_node(struct pp_node *n, struct urn_err *err)
{
	struct urn_node_config cfg = {
		.name = "pingpong",
		.idle = n->o->idle,
		.capture = n->o->capture,
	};

	if ((size_t)snprintf(cfg.port.device, sizeof(cfg.port.device), "%s", n->o->device) >=
	    sizeof(cfg.port.device)) {
		urn_err_set(err, "--device %.64s...: longer than %zu bytes", n->o->device,
			    sizeof(cfg.port.device) - 1);
		return -1;
	}
	memcpy(cfg.port.mac, n->o->mac, sizeof(cfg.port.mac));
	memcpy(cfg.adapter.ipv4, n->o->ipv4, sizeof(cfg.adapter.ipv4));
	memcpy(cfg.adapter.ipv6, n->o->ipv6, sizeof(cfg.adapter.ipv6));
	if (urn_node_open(&n->node, &cfg, err) != 0)
		return -1;
	if (n->node.port->caps.roce_mtu >= n->o->mtu)
		return 0;
	urn_err_set(err, "%.64s carries a path MTU of %u at most, not %u; give --mtu %u, and "
			 "the peer the same", n->o->device, n->node.port->caps.roce_mtu, n->o->mtu,
		    n->node.port->caps.roce_mtu);
	return -1;
}

static int
make_buffers(struct pp_node *n, struct urn_err *err)
{
	size_t room = ((size_t)n->o->size + GUARD - 1) / GUARD * GUARD;
	uint8_t *map;

	n->map_len = 2 * room + 2 * GUARD;
	map = mmap(NULL, n->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		urn_err_set(err, "no memory for messages of %u bytes; give a smaller --size",
			    n->o->size);
		return -1;
	}
	n->map = map;
	memset(map, GUARD_BYTE, room + 2 * GUARD);
	n->recv = map + GUARD;
	n->send = map + 2 * GUARD + room;
	n->recv_mr = ibv_reg_mr(n->pd, n->recv, n->o->size, IBV_ACCESS_LOCAL_WRITE);
	n->send_mr = ibv_reg_mr(n->pd, n->send, n->o->size, 0);
	if (n->recv_mr == NULL || n->send_mr == NULL)
		return urn_node_failed("register the messages' memory", err);
	return 0;
}

bool
pp_node_guards_ok(const struct pp_node *n)
{
	for (const uint8_t *p = n->map; p < n->recv; p++)
		if (*p != GUARD_BYTE)
			return false;
	for (const uint8_t *p = n->recv + n->o->size; p < n->send; p++)
		if (*p != GUARD_BYTE)
			return false;
	return true;
}

static int
make_qp(struct pp_node *n, struct urn_err *err)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = n->o->rx_depth, .max_send_sge = 1,
			.max_recv_sge = 1},
	};
	uint32_t psn = 0;

	n->cq = ibv_create_cq(n->node.ctx, (int)n->o->rx_depth + 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = n->cq;
	n->qp = n->cq != NULL ? ibv_create_qp(n->pd, &attr) : NULL;
	if (n->qp == NULL)
		return urn_node_failed("make a queue pair", err);
	/* A random first PSN tells packets of an earlier connection from ours. */
	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
		psn = (uint32_t)urn_tcp_now_ns();
	return urn_ep_init(n->qp, 0, err) == 0 ? urn_ep_local(n->qp, psn, n->o->gid, &n->local, err)
					       : -1;
}

static int
wait_link(struct pp_node *n, struct urn_err *err)
{
	uint64_t since = urn_tcp_now_ns(), looked = 0, now = since;

	while (now - since <= n->o->wait_ns && !urn_stop_requested()) {
		if (now - looked >= LINK_POLL_NS) {
			looked = now;
			if (urn_node_link(&n->node, false))
				return 0;
		}
		pp_node_turn(n);
		now = urn_tcp_now_ns();
	}
	if (urn_stop_requested())
		urn_err_set(err, "interrupted while the link came up");
	else
		urn_err_set(err, "the link of %.64s is still down after %.1f s (--wait); set its "
				 "interface and the other end up (ip link set ... up)", n->o->device,
			    (double)n->o->wait_ns / 1e9);
	return -1;
}

int
pp_node_open(struct pp_node *n, const struct pp_opts *o, struct urn_err *err)
{
	memset(n, 0, sizeof(*n));
	n->o = o;
	if (urn_node_start(&n->node, "urnic-pingpong", err) != 0)
		return -1;
	rte_thread_register();
	if (open_node(n, err) != 0)
		return -1;
	n->pd = ibv_alloc_pd(n->node.ctx);
	if (n->pd == NULL)
		return urn_node_failed("make a protection domain", err);
	return make_buffers(n, err) || make_qp(n, err) || wait_link(n, err) ? -1 : 0;
}

int
pp_node_connect(struct pp_node *n, const struct urn_ep_addr *peer, struct urn_err *err)
{
	struct urn_ep_opts opts;

	urn_ep_opts_default(&opts);
	opts.mtu_code = (uint8_t)(__builtin_ctz(n->o->mtu) - 7);
	opts.timeout = n->o->timeout;
	opts.sgid_index = n->o->gid;
	return urn_ep_connect(n->qp, &n->local, peer, &opts, err);
}

void
pp_node_turn(void *node)
{
	struct pp_node *n = node;

	urn_node_turn_idle(&n->node);
}

void
pp_node_counters(const struct pp_node *n, struct urn_counters *out)
{
	urn_node_counters(&n->node, out);
}

static void
close_verbs(struct pp_node *n)
{
	if (n->qp != NULL)
		ibv_destroy_qp(n->qp);
	if (n->cq != NULL)
		ibv_destroy_cq(n->cq);
	if (n->send_mr != NULL)
		ibv_dereg_mr(n->send_mr);
	if (n->recv_mr != NULL)
		ibv_dereg_mr(n->recv_mr);
	if (n->pd != NULL)
		ibv_dealloc_pd(n->pd);
}

int
pp_node_close(struct pp_node *n, uint64_t *capture_lost, struct urn_err *err)
{
	int rc;

	close_verbs(n);
	rc = urn_node_close(&n->node, capture_lost, err);
	if (n->map != NULL)
		munmap(n->map, n->map_len);
	memset(n, 0, sizeof(*n));
	return rc;
}
