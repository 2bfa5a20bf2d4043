/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a side: context, memory, queues, queue pairs. */
#include "perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <urnic/attach.h>

static int
verbs_failed(const struct side *s, const char *what, struct urn_err *err)
{
	const char *why = urn_attach_error();

	urn_err_set(err, "node %c: cannot %s: %s", 'A' + (int)s->index, what,
		    why[0] != '\0' ? why : strerror(errno));
	return -1;
}

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

int
perf_find_gid(struct ibv_context *ctx, bool ipv6, uint8_t *index, union ibv_gid *gid,
	      struct urn_err *err)
{
	struct ibv_port_attr port;

	if (ibv_query_port(ctx, 1, &port) != 0) {
		urn_err_set(err, "%s: cannot query the port: %s", ibv_get_device_name(ctx->device),
			    urn_attach_error());
		return -1;
	}
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(ctx, 1, i, gid) != 0)
			continue;
		/* IPv6: any GID that is neither IPv4, link-local nor unset. */
		if (ipv6 ? gid->raw[0] != 0 && gid->raw[0] != 0xfe
			 : memcmp(gid->raw, v4_prefix, 12) == 0) {
			*index = (uint8_t)i;
			return 0;
		}
	}
	urn_err_set(err, "%s: the adapter has no GID of an IPv%c address",
		    ibv_get_device_name(ctx->device), ipv6 ? '6' : '4');
	return -1;
}

int
perf_answer_gid(struct ibv_context *ctx, const uint8_t own[16], const uint8_t peer[16],
		uint8_t *index, union ibv_gid *gid, struct urn_err *err)
{
	static const uint8_t unknown[16];

	if (perf_find_gid(ctx, memcmp(peer, v4_prefix, 12) != 0, index, gid, err) != 0)
		return -1;
	/* Zeros are an unset entry of the table: no address. */
	if (memcmp(own, unknown, sizeof(unknown)) == 0)
		return 0;
	for (int i = 0; i <= UINT8_MAX; i++) {
		union ibv_gid one;

		if (ibv_query_gid(ctx, 1, i, &one) != 0 || memcmp(one.raw, own, 16) != 0)
			continue;
		*index = (uint8_t)i;
		*gid = one;
		break;
	}
	return 0;
}

static int
find_gid(struct side *s, struct urn_err *err)
{
	return perf_find_gid(s->ctx, s->o->ipv6, &s->gid_index, &s->gid, err);
}

static int
register_one(struct side *s, uint8_t *at, uint64_t bytes, struct ibv_mr **mr, struct urn_err *err)
{
	if (at == NULL)
		return 0;
	*mr = ibv_reg_mr(s->pd, at, bytes,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
	return *mr != NULL ? 0 : verbs_failed(s, "register the messages' memory", err);
}

static int
make_queues(struct side *s, struct urn_err *err)
{
	const struct layout *l = s->l;
	uint64_t recvs = l->srq_slots ? l->srq_slots : (uint64_t)l->qps * l->rx_slots;
	uint64_t cqe = (uint64_t)l->qps * l->src_slots + (perf_op_receives(s->o->op) ? recvs : 0) +
		       PERF_BATCH;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = l->srq_slots, .max_sge = 1}};
	/* Each side belongs to one thread: no lock, as in comparable programs. */
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = (uint32_t)cqe,
					      .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					      .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct ibv_cq_ex *cq;

	cq = ibv_create_cq_ex(s->ctx, &cq_attr);
	if (cq == NULL)
		return verbs_failed(s, "create the completion queue", err);
	s->cq = ibv_cq_ex_to_cq(cq);
	if (l->srq_slots == 0)
		return 0;
	s->srq = ibv_create_srq(s->pd, &attr);
	return s->srq != NULL ? 0 : verbs_failed(s, "create the shared receive queue", err);
}

/* Make a QP; one that receives nothing has room for one receive. returns: the QP, or NULL with *err */
static struct ibv_qp *
make_qp(struct side *s, uint32_t sends, uint32_t recvs, struct urn_err *err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = s->srq != NULL ? 0 : recvs,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = s->o->inline_bytes},
		.qp_type = s->o->ud ? IBV_QPT_UD : IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	if (qp == NULL) {
		verbs_failed(s, "create a queue pair", err);
		return NULL;
	}
	if ((s->o->ud ? datagram_init(qp, err)
		      : urn_ep_init(qp,
				    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					    IBV_ACCESS_REMOTE_ATOMIC,
				    err)) == 0)
		return qp;
	ibv_destroy_qp(qp);
	return NULL;
}

static int
make_qps(struct side *s, struct urn_err *err)
{
	uint32_t recvs = perf_op_receives(s->o->op) ? s->l->rx_slots : 1;
	uint32_t sends = s->l->tells ? 2 * s->l->src_slots : s->l->src_slots;

	s->qp = aligned_alloc(64, s->l->qps * sizeof(*s->qp));
	s->idle = calloc(s->o->idle_qps + 1, sizeof(*s->idle));
	s->wr = malloc(sizeof(*s->wr));
	if (s->qp == NULL || s->idle == NULL || s->wr == NULL) {
		urn_err_set(err, "no memory for %u queue pairs", s->l->qps + s->o->idle_qps);
		return -1;
	}
	memset(s->qp, 0, s->l->qps * sizeof(*s->qp));
	/* Idle QPs first: a search from the front has to pass them. */
	for (uint32_t i = 0; i < s->o->idle_qps; i++) {
		s->idle[i] = make_qp(s, 1, 1, err);
		if (s->idle[i] == NULL)
			return -1;
	}
	for (uint32_t i = 0; i < s->l->qps; i++) {
		s->qp[i].qp = make_qp(s, sends, recvs, err);
		if (s->qp[i].qp == NULL)
			return -1;
	}
	if (s->srq == NULL)
		return 0;
	s->map = qpn_map_make(s->qp, s->l->qps);
	return s->map != NULL ? 0 : verbs_failed(s, "get memory for the map of QPs", err);
}

/* Let the writes of A go on the lines of B, if options say so. */
static int
align_qps(struct side *s, struct urn_err *err)
{
	uint32_t line = s->o->line ? s->o->line : URN_LINE_PEER;

	for (uint32_t i = 0; s->index == 0 && s->o->align && i < s->l->qps; i++)
		if (urn_qp_align(s->qp[i].qp, line) != 0)
			return verbs_failed(s, "align the writes of a queue pair", err);
	return 0;
}

void
side_needs(enum perf_op op, unsigned int index, bool *src, bool *dst)
{
	bool a = index == 0;

	*src = perf_op_is_pingpong(op) || (perf_op_is_read(op) ? !a : a);
	*dst = perf_op_is_pingpong(op) || (perf_op_is_read(op) ? a : !a);
	if (perf_op_is_atomic(op)) {
		*src = false;
		*dst = true;
	}
}

int
side_open_device(struct side *s, struct urn_dp *dp, struct urn_err *err)
{
	s->ctx = perf_attach(s->o, dp, s->index, err);
	return s->ctx == NULL ? -1 : find_gid(s, err);
}

int
side_open_more(struct side *s, struct urn_err *err)
{
	bool src, dst, shared = s->o->attach != NULL && !s->o->foreign;

	s->pd = ibv_alloc_pd(s->ctx);
	if (s->pd == NULL)
		return verbs_failed(s, "allocate a protection domain", err);
	side_needs(s->o->op, s->index, &src, &dst);
	if (buffers_make(&s->mem, s->l, s->p, src, dst, shared, err) ||
	    register_one(s, s->mem.src, s->mem.src_bytes, &s->mr_src, err) ||
	    register_one(s, s->mem.dst, s->mem.dst_bytes, &s->mr_dst, err) || make_queues(s, err) ||
	    make_qps(s, err) || align_qps(s, err))
		return -1;
	post_prepare(s);
	if (perf_op_is_pingpong(s->o->op) || s->index == 1)
		return perf_op_receives(s->o->op) ? receive_start(s, err) : 0;
	return 0;
}

int
side_connect(struct side *s, uint32_t n, const struct urn_ep_addr *own,
	     const struct urn_ep_addr *peer, const struct urn_ep_opts *o, struct urn_err *err)
{
	if (s->o->ud)
		return datagram_connect(s, n, own, peer, o, err);
	return urn_ep_connect(s->qp[n].qp, own, peer, o, err);
}

void
side_close(struct side *s)
{
	for (uint32_t i = 0; s->qp != NULL && i < s->l->qps; i++) {
		if (s->qp[i].qp != NULL)
			ibv_destroy_qp(s->qp[i].qp);
	}
	for (uint32_t i = 0; s->idle != NULL && i < s->o->idle_qps; i++) {
		if (s->idle[i] != NULL)
			ibv_destroy_qp(s->idle[i]);
	}
	if (s->ah != NULL)
		ibv_destroy_ah(s->ah);
	if (s->srq != NULL)
		ibv_destroy_srq(s->srq);
	if (s->cq != NULL)
		ibv_destroy_cq(s->cq);
	if (s->mr_src != NULL)
		ibv_dereg_mr(s->mr_src);
	if (s->mr_dst != NULL)
		ibv_dereg_mr(s->mr_dst);
	if (s->pd != NULL)
		ibv_dealloc_pd(s->pd);
	if (s->ctx != NULL)
		ibv_close_device(s->ctx);
	qpn_map_free(s->map);
	buffers_free(&s->mem);
	free(s->qp);
	free(s->idle);
	free(s->wr);
}

uint32_t
side_psn(unsigned int side, uint32_t number)
{
	return (0xfffff0u + number * 7919u + side * 104729u) & 0xffffffu;
}

uint8_t
side_mtu_code(uint32_t mtu)
{
	return (uint8_t)(__builtin_ctz(mtu) - 7);
}

side_step
side_step_of(enum perf_op op, unsigned int index)
{
	if (index == 0)
		return perf_op_is_pingpong(op) ? ping_step : requester_step;
	if (perf_op_is_pingpong(op))
		return pong_step;
	return perf_op_receives(op) ? receiver_step : bystander_step;
}
