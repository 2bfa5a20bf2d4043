/* SPDX-License-Identifier: BSD-3-Clause */
/* A victim that comes late, and needs 1,000 objects of a kind. */
#include "victim.h"

#include <urnic/cm.h>
#include <urnic/msg.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OBJECTS = 1000,	  /* queue pairs on either node, regions, connections */
	REGISTERS = 64,	  /* register sets */
	AT_A_TIME = 16,	  /* connections that are being made */
	SERVICE = 0x4713, /* port */
	BYTES = 1 << 20,
};

struct late {
	struct foe_end end[2];
	struct ibv_qp *qp[2][OBJECTS];
	struct ibv_mr *mr[OBJECTS];
	struct urn_cm_end *cm[2];
	unsigned int asked, accepted, established; /* connections */
};

static void
objects(struct late *l)
{
	for (unsigned int i = 0; i < OBJECTS; i++) {
		for (unsigned int k = 0; k < 2; k++) {
			l->qp[k][i] = foe_qp(&l->end[k], IBV_QPT_RC, 4);
			FOE_MUST(l->qp[k][i] != NULL, "queue pair");
		}
		l->mr[i] = ibv_reg_mr(l->end[0].pd, l->end[0].buf + (size_t)i * 64, 64, FOE_ACCESS);
		FOE_MUST(l->mr[i] != NULL, "region");
	}
}

/* ---- connections */

static void
ask(struct late *l)
{
	struct urn_abi_cm_connect p = {.service_id = urn_cm_service(URN_CM_PS_TCP, SERVICE),
				       .sgid_index = 1,
				       .mtu = 3,
				       .retry_count = 7,
				       .rnr_retry = 7,
				       .timeout = 18, /* 1 s */
				       .max_retries = 15,
				       .ack_timeout = 16};
	uint32_t id;

	p.qpn = l->qp[0][l->asked]->qp_num;
	p.psn = 0x1000 + l->asked;
	memcpy(p.dgid, l->end[1].gid.raw, 16);
	FOE_MUST(urn_cm_end_connect(l->cm[0], &p, &id) == 0, "connect");
	l->asked++;
}

static void
accept_one(struct late *l, uint32_t id)
{
	struct urn_abi_cm_accept p = {.psn = 0x2000 + l->accepted, .rnr_retry = 7};

	FOE_MUST(l->accepted < OBJECTS, "more requests than connections");
	p.qpn = l->qp[1][l->accepted]->qp_num;
	FOE_MUST(urn_cm_end_accept(l->cm[1], id, &p) == 0, "accept");
	l->accepted++;
}

/* Take all events of both ends. */
static void
events(struct late *l)
{
	struct urn_abi_cm_event ev;

	for (unsigned int k = 0; k < 2; k++)
		while (urn_cm_end_event(l->cm[k], &ev) == 0) {
			if (ev.type == URN_CM_EVENT_REQUEST) {
				accept_one(l, ev.id);
			} else if (ev.type == URN_CM_EVENT_REPLY) {
				FOE_MUST(urn_cm_end_establish(l->cm[0], ev.id, NULL, 0) == 0,
					 "establish");
			} else if (ev.type == URN_CM_EVENT_ESTABLISHED) {
				l->established++;
			} else {
				fprintf(stderr, "event %u, reason %u\n", ev.type, ev.reason);
				foe_die("a connection was refused");
			}
		}
}

static void
connections(struct late *l)
{
	uint32_t listener;

	for (unsigned int k = 0; k < 2; k++)
		FOE_MUST(urn_cm_end_open(&l->cm[k], l->end[k].ctx) == 0, "connection management");
	FOE_MUST(urn_cm_end_listen(l->cm[1], urn_cm_service(URN_CM_PS_TCP, SERVICE), 0, 0,
				   &listener) == 0,
		 "listen");
	while (l->established < OBJECTS) {
		struct pollfd p[2] = {{.fd = urn_cm_end_fd(l->cm[0]), .events = POLLIN},
				      {.fd = urn_cm_end_fd(l->cm[1]), .events = POLLIN}};

		while (l->asked < OBJECTS && l->asked < l->established + AT_A_TIME)
			ask(l);
		(void)poll(p, 2, 100);
		events(l);
	}
}

/* ---- the rest */

static void
registers(const struct foe *f)
{
	const struct urn_msg_attr attr = {.send_size = 64, .recv_size = 64, .entries = 4};
	struct urn_msg_dev *dev = urn_msg_dev_connect(f->path, "a");

	FOE_MUST(dev != NULL, "attach");
	for (unsigned int i = 0; i < REGISTERS; i++)
		FOE_MUST(urn_msg_set_create(dev, &attr) != NULL, "register set");
}

static void
group(struct late *l)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 200, 2, 3}};
	struct ibv_qp *qp = foe_qp(&l->end[0], IBV_QPT_UD, 4);

	FOE_MUST(qp != NULL && foe_datagrams(qp) == 0, "datagrams");
	FOE_MUST(ibv_attach_mcast(qp, &gid, 0) == 0, "attach to a group");
}

void
victim_limits(const struct foe *f)
{
	static struct late l;
	uint64_t from = victim_now();

	foe_open(&l.end[0], f, "a", BYTES, 64);
	foe_open(&l.end[1], f, "b", BYTES, 64);
	objects(&l);
	connections(&l);
	registers(f);
	group(&l);
	printf("{\"victim\": \"limits\", \"qps\": %d, \"regions\": %d, \"connections\": %u, "
	       "\"registers\": %d, \"seconds\": %.3f}\n",
	       2 * OBJECTS, OBJECTS, l.established, REGISTERS, (double)(victim_now() - from) / 1e9);
	fflush(stdout);
	_exit(0); /* the dataplane takes all objects back */
}
