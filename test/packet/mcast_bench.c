/* SPDX-License-Identifier: BSD-3-Clause */
#include "mcast_bench.h"

#include <stdlib.h>

struct frame_addr
mcast_group(bool v6, uint8_t last)
{
	struct frame_addr a = {
		.mac = {0x01, 0x00, 0x5e, 0x01, 0x02, last},
		.gid = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 0x81, [14] = 2, [15] = last}};

	if (!v6)
		return a;
	return (struct frame_addr){.mac = {0x33, 0x33, 0x00, 0x00, 0x00, last},
				   .gid = {0xff, 0x0e, [15] = last}};
}

void
mcast_attach(struct probe *p, struct urn_qp *qp, const struct frame_addr *group)
{
	bool first;

	assert_int_equal(urn_mcast_attach(p->tp, qp, group->gid, &first), 0);
}

void
mcast_detach(struct probe *p, struct urn_qp *qp, const struct frame_addr *group)
{
	bool last;

	assert_int_equal(urn_mcast_detach(p->tp, qp, group->gid, &last), 0);
}

struct frame
mcast_datagram(void)
{
	struct frame f = frame_of(UD_SEND, 5);

	f.dqpn = URN_QPN_MULTICAST;
	f.qkey = PROBE_QKEY;
	f.sqpn = 0x4711;
	f.len = MCAST_LEN;
	probe_fill(f.data, MCAST_LEN, 3, 0);
	return f;
}

void
mcast_put(struct probe *p, struct frame *f, const struct frame_addr *group)
{
	struct frame_addr node = p->node;

	p->node = *group;
	probe_put(p, f);
	p->node = node;
}

struct urn_qp *
crowd_qp(struct probe *p, struct mcast_crowd *c)
{
	struct urn_qp_config cfg = {.type = URN_QPT_UD,
				    .pd = p->pd,
				    .send_cq = &p->scq,
				    .recv_cq = &p->rcq,
				    .sq = bare_sq(c->sq, 4, 1, 0),
				    .rq = bare_rq(c->rq, 4, 1),
				    .share = &c->share};
	struct urn_qp *qp;

	assert_int_equal(urn_qp_create(p->tp, &cfg, &qp), 0);
	return qp;
}

void
crowd_state(struct probe *p, struct urn_qp *qp, uint8_t state)
{
	struct urn_abi_qp_attr a;
	char why[160];

	probe_attributes(p, &a);
	a.state = state;
	assert_int_equal(urn_qp_modify(p->tp, qp, URN_QPM_STATE | bare_qp_mask(URN_QPT_UD, state),
				       &a, why, sizeof(why)),
			 0);
}

void
crowd_up(struct probe *p, struct urn_qp *qp)
{
	for (uint8_t s = URN_QPS_INIT; s <= URN_QPS_RTS; s++)
		crowd_state(p, qp, s);
}

void
crowd_open(struct probe *p, struct mcast_crowd *c, unsigned int n, const struct frame_addr *group)
{
	memset(c, 0, sizeof(*c));
	c->n = n;
	c->qp = calloc(n, sizeof(c->qp[0]));
	c->sq = bare_wq(4, urn_abi_sq_stride(1, 0));
	c->rq = bare_wq(4, urn_abi_rq_stride(1));
	assert_true(c->qp && c->sq && c->rq);
	for (unsigned int i = 0; i < n; i++) {
		c->qp[i] = crowd_qp(p, c);
		/* Some are attached before they take datagrams, some after. */
		if (i % 2)
			crowd_up(p, c->qp[i]);
		c->share.mcast.members = c->share.own.members = 0;
		mcast_attach(p, c->qp[i], group);
		if (i % 2 == 0)
			crowd_up(p, c->qp[i]);
	}
	c->share.mcast.members = c->share.own.members = n;
}

void
crowd_close(struct probe *p, struct mcast_crowd *c)
{
	for (unsigned int i = 0; i < c->n; i++) {
		assert_true(bare_qp_stop(p->tp, c->qp[i]));
		urn_qp_destroy(p->tp, c->qp[i]);
	}
	assert_int_equal(c->share.mcast.members, 0);
	assert_int_equal(c->share.mcast.groups, 0);
	assert_true(LIST_EMPTY(&c->share.mcast.places));
	free(c->qp);
	free(c->sq);
	free(c->rq);
}
