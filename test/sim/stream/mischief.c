/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End 1 as a peer that breaks the protocol: its machine is honest, and one message is changed or
 * put in behind the others. The end that gets it must break the connection and say why.
 */
#include "stsim.h"

enum { FAR = 100000 };

static void
put(struct st_end *e, struct urn_st_msg *m)
{
	static const uint8_t junk[ST_SIZE];
	struct st_op *op = st_net_post(e, URN_ST_A_SEND);

	m->credit += e->st.rx.limit;
	m->seen = e->st.tx.seen;
	op->mischief = true;
	op->length = urn_st_wire_put(op->bytes, m);
	memcpy(op->bytes + op->length, junk, m->length);
	op->length += m->length;
	e->w->mischief_done = true;
	st_trace(e->w, "%u.%u ─► mischief: %s, offset %llu", e->stream, e->id,
		 urn_st_kind_text(m->kind), (unsigned long long)m->offset);
}

static void
garbage(struct st_end *e)
{
	struct st_op *op = st_net_post(e, URN_ST_A_SEND);

	op->mischief = true;
	op->length = sim_between(&e->w->rng, 0, 120);
	for (uint32_t i = 0; i < op->length; i++)
		op->bytes[i] = (uint8_t)sim_rnd(&e->w->rng, 256);
	e->w->mischief_done = true;
}

static void
put_kind(struct st_end *e, uint8_t kind, uint64_t offset, uint64_t bytes)
{
	struct urn_st_msg m = {.kind = kind, .offset = offset, .bytes = bytes};

	put(e, &m);
}

static void
put_memory(struct st_end *e, uint8_t kind, uint16_t flags, uint64_t offset)
{
	struct urn_st_msg m = {.kind = kind,
			       .flags = flags,
			       .offset = offset,
			       .bytes = 50,
			       .addr = 4096,
			       .key = 1};

	put(e, &m);
}

static void
put_data(struct st_end *e, uint64_t offset)
{
	struct urn_st_msg m = {.kind = URN_ST_DATA, .offset = offset, .length = 1};

	put(e, &m);
}

static void
put_two(struct st_end *e)
{
	uint64_t sent = e->st.tx.sent, arrived = e->st.rx.arrived;

	for (uint32_t i = 0; i < 2; i++)
		if (e->w->mischief == ST_BAD_TWO_OFFERS)
			put_memory(e, URN_ST_SRC_AVAIL,
				   e->st.cfg.peer.abilities & URN_ST_CAN_READ ? URN_ST_F_READ
									      : URN_ST_F_WRITE,
				   sent);
		else
			put_memory(e, URN_ST_SINK_AVAIL, 0, arrived);
}

static void
inject(struct st_end *e)
{
	uint64_t sent = e->st.tx.sent, arrived = e->st.rx.arrived;
	struct urn_st_msg credit = {.kind = URN_ST_CREDIT, .credit = 1000};

	switch (e->w->mischief) {
	case ST_BAD_GARBAGE:
		garbage(e);
		break;
	case ST_BAD_RD_COMPL:
		put_kind(e, URN_ST_RD_COMPL, arrived + FAR, 1);
		break;
	case ST_BAD_SEND_SM:
		put_kind(e, URN_ST_SEND_SM, arrived + FAR, 1);
		break;
	case ST_BAD_WR_COMPL:
		put_kind(e, URN_ST_WR_COMPL, sent, FAR);
		break;
	case ST_BAD_TWO_OFFERS:
	case ST_BAD_TWO_ADVERTS:
		put_two(e);
		break;
	case ST_BAD_CREDIT:
		put(e, &credit);
		break;
	case ST_BAD_OVERRUN:
		for (uint32_t i = 0; i <= e->st.cfg.peer.buffers; i++)
			put_data(e, sent + i);
		break;
	case ST_BAD_PLACE:
		put_data(e, sent + 5);
		break;
	case ST_BAD_EARLY_FIN:
		put_memory(e, URN_ST_SRC_AVAIL, 0, sent);
		put_kind(e, URN_ST_FIN, sent, 0);
		break;
	default:
		break;
	}
}

void
st_mischief_step(struct st_end *e)
{
	struct st_world *w = e->w;

	if (!w->mischief || w->mischief_done || e->id == 0 || w->step < w->mischief_at ||
	    e->st.state != URN_ST_S_OPEN || e->st.tx.state == URN_ST_TX_ENDED)
		return;
	inject(e);
}

void
st_mischief_change(struct st_end *e, struct urn_st_msg *m)
{
	struct st_world *w = e->w;
	bool memory = m->kind == URN_ST_SRC_AVAIL || m->kind == URN_ST_SINK_AVAIL;

	if (w->mischief_done || e->id == 0 || w->step < w->mischief_at)
		return;
	if (w->mischief == ST_BAD_ANNOUNCE && m->kind == URN_ST_SRC_AVAIL)
		m->bytes += FAR;
	else if (w->mischief == ST_BAD_UNNAMED && memory)
		m->key ^= 0x100;
	else
		return;
	w->mischief_done = true;
}
