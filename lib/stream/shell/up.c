/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers and queue pair of a stream, and the start of its machine. */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <urnic/align.h>
#include <urnic/attach.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	TIMEOUT = 16,		/* 0.27 s until a packet is repeated (IBTA 11.2.4.2) */
	RETRIES = 7,		/* retries of a packet; of one that met no receive, without end */
	RNR_TIMER = 1,		/* 10 us */
	PSN_MASK = 0xffffff,	/* a packet's number has 24 bits */
	LONGEST_OUT = 64 << 10, /* bytes of data in a message, at most, whatever the peer takes */
	SLOT_ALIGN = 256,	/* slots begin on a cache line of any machine */
};

static uint32_t
slot_bytes(uint32_t data)
{
	return (URN_ST_WIRE_MAX + data + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

static uint32_t
in_slots(const struct urn_stream *s)
{
	return URN_ST_CONTROL + s->o.buffers;
}

/* ---- making */

/* returns: 0, or an errno value */
static int
make_memory(struct urn_stream *s)
{
	s->in_bytes = slot_bytes(s->o.size);
	s->mem_bytes = URN_SH_FLOOR + (size_t)in_slots(s) * s->in_bytes;
	s->mem = urn_alloc(s->mem_bytes);
	s->pieces = calloc(s->o.buffers, sizeof(*s->pieces));
	s->spare = calloc(in_slots(s), sizeof(*s->spare));
	if (!s->mem || !s->pieces || !s->spare)
		return urn_fail(ENOMEM, "no memory for a stream");
	for (s->spares = 0; s->spares < in_slots(s); s->spares++)
		s->spare[s->spares] = s->spares;
	s->mr = ibv_reg_mr(s->node->pd, s->mem, s->mem_bytes, IBV_ACCESS_LOCAL_WRITE);
	return s->mr ? 0 : errno;
}

/* returns: 0, or an errno value */
static int
make_descriptors(struct urn_stream *s)
{
	int flags;

	if (urn_bell_make(&s->wake) != 0 || urn_bell_make(&s->poke) != 0)
		return urn_fail(errno, "no descriptors for a stream");
	s->channel = ibv_create_comp_channel(s->node->ctx);
	if (!s->channel)
		return errno;
	flags = fcntl(s->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(s->channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return urn_fail(errno, "a channel of completions can't be set not to block");
	return 0;
}

/* returns: 0, or an errno value */
static int
make_queues(struct urn_stream *s)
{
	int cqe = URN_SH_REQUESTS + (int)in_slots(s);
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = URN_SH_REQUESTS,
						.max_recv_wr = in_slots(s),
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = URN_SH_PORT,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};

	s->cq = ibv_create_cq(s->node->ctx, cqe, NULL, s->channel, 0);
	if (!s->cq)
		return errno;
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->node->pd, &init);
	if (!s->qp)
		return errno;
	return ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void
init_locks(struct urn_stream *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->sending, NULL);
	pthread_mutex_init(&s->receiving, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->turn, &attr);
	pthread_condattr_destroy(&attr);
}

int
urn_sh_make(struct urn_stream **out, struct urn_stream_node *n, const struct urn_stream_options *o)
{
	struct urn_stream *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return urn_fail(ENOMEM, "no memory for a stream");
	s->node = n;
	s->o = *o;
	s->wake.fd = s->poke.fd = -1;
	s->inputs = 1;
	s->self = (struct urn_st_hello){o->buffers, o->size, URN_ST_CAN_READ};
	init_locks(s);
	(void)!getrandom(&s->psn, sizeof(s->psn), 0);
	s->psn &= PSN_MASK;
	err = make_memory(s);
	if (!err)
		err = make_descriptors(s);
	if (!err)
		err = make_queues(s);
	if (err) {
		urn_sh_free(s);
		errno = err;
		return err;
	}
	*out = s;
	return 0;
}

/* ---- the start */

/* Slots for messages; the peer may take longer ones than this end sends. returns: 0 or ENOMEM */
static int
make_out(struct urn_stream *s, struct urn_st_hello *peer)
{
	uint32_t most = s->o.size > LONGEST_OUT ? s->o.size : LONGEST_OUT;
	size_t bytes;

	peer->size = peer->size < most ? peer->size : most;
	s->out_bytes = slot_bytes(peer->size);
	bytes = (size_t)s->out_bytes * (URN_SH_SLOTS + 1);
	s->out = urn_alloc(bytes);
	s->out_mr = s->out ? ibv_reg_mr(s->node->pd, s->out, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
	return s->out_mr ? 0 : ENOMEM;
}

/* returns: 0, or an errno value */
static int
ready_qp(struct urn_stream *s, const struct urn_abi_cm_event *ev)
{
	bool asked = ev->type == URN_CM_EVENT_REQUEST;
	uint8_t mtu = (uint8_t)s->node->port.active_mtu, reads = s->node->rd_atomic;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = asked && ev->mtu < mtu ? ev->mtu : mtu,
		.dest_qp_num = ev->qpn,
		.rq_psn = s->psn,
		.max_dest_rd_atomic = reads,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .port_num = URN_SH_PORT,
			    .grh = {.sgid_index = s->sgid_index, .hop_limit = 64}}};
	const struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = ev->psn,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.max_rd_atomic = ev->responder_resources < reads ? ev->responder_resources : reads};

	memcpy(rtr.ah_attr.grh.dgid.raw, ev->gid, 16);
	return urn_cm_qp_ready(s->qp, &rtr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER,
			       &rts,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct urn_st_config
config_of(struct urn_stream *s, const struct urn_st_hello *peer)
{
	const struct urn_st_threshold t = {s->o.zero_copy == URN_STREAM_NEVER ? URN_ST_INFINITE
									      : s->o.zero_copy,
					   URN_SH_FLOOR, URN_SH_CEILING, s->o.frozen, 0};

	return (struct urn_st_config){.self = s->self,
				      .peer = *peer,
				      .pieces = s->pieces,
				      .send_slot = s->out_bytes,
				      .recv_slot = s->in_bytes,
				      .slots = URN_SH_SLOTS,
				      .inlined = URN_SH_INLINE,
				      .patience = s->o.patience_ms / URN_SH_TICK_MS,
				      .tx = t,
				      .rx = t,
				      .act = urn_sh_act,
				      .arg = s};
}

int
urn_sh_begin(struct urn_stream *s, const struct urn_abi_cm_event *ev,
	     const struct urn_st_hello *greeting, uint16_t line, char *why)
{
	static const enum urn_st_force force[URN_STREAM_TRANSFERS] = {
		[URN_STREAM_ANY] = URN_ST_ANY,
		[URN_STREAM_COPY] = URN_ST_FORCE_COPY,
		[URN_STREAM_READ] = URN_ST_FORCE_READ,
		[URN_STREAM_WRITE] = URN_ST_FORCE_WRITE,
	};
	struct urn_st_hello peer = *greeting;
	struct urn_st_config cfg;
	int err = make_out(s, &peer);

	memcpy(s->peer, ev->gid, sizeof(s->peer));
	/* Receives are there before the peer can send. */
	cfg = config_of(s, &peer);
	if (!err)
		err = urn_st_init(&s->st, &cfg);
	if (!err && s->down)
		err = EIO;
	if (!err)
		err = urn_st_set_force(&s->st, force[s->o.transfer]);
	if (!err)
		err = ready_qp(s, ev);
	if (err) {
		snprintf(why, URN_SH_WHY, "the queue pair is not brought up: %s",
			 urn_attach_error());
		return err;
	}
	/* A device that can't do it writes as ever. */
	(void)urn_qp_align(s->qp, line);
	s->begun = true;
	return 0;
}

void
urn_sh_break(struct urn_stream *s, int err, const char *why)
{
	s->phase = URN_SH_BROKEN;
	s->err = err;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

/* ---- the end */

void
urn_sh_free(struct urn_stream *s)
{
	if (s->id)
		(void)urn_cm_end_destroy(s->node->cm, s->id);
	if (s->qp)
		(void)ibv_destroy_qp(s->qp);
	if (s->cq)
		(void)ibv_destroy_cq(s->cq);
	if (s->channel)
		(void)ibv_destroy_comp_channel(s->channel);
	if (s->mr)
		(void)ibv_dereg_mr(s->mr);
	if (s->out_mr)
		(void)ibv_dereg_mr(s->out_mr);
	urn_free(s->mem);
	urn_free(s->out);
	urn_bell_end(&s->wake);
	urn_bell_end(&s->poke);
	free(s->pieces);
	free(s->spare);
	pthread_cond_destroy(&s->turn);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->receiving);
	pthread_mutex_destroy(&s->sending);
	free(s);
}
