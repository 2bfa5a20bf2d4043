/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands: the choice of operation, way, target and range; some make no sense, or reach for what
 * they may not. */
#include "amsim.h"

#include <stdlib.h>

/* Choose an end whose memory is the target; closed ones now and then. returns: AS_NONE: there is
 * none */
static int32_t
choose_target(struct ms_world *w)
{
	struct as_sim *s = w->as;

	if (ms_one_in(w, w->plan.bad_in))
		return (int32_t)ms_upto(w, s->ends);
	return s->at[w->plan.one_target ? 0 : ms_upto(w, w->plan.nodes)]
		    [ms_upto(w, w->plan.am.ends)];
}

/* Choose bytes of a zone: often of one range, and often up to its end. */
static void
choose_range(struct ms_world *w, const struct as_zone *z, struct as_op *o)
{
	const struct as_part *p = &z->part[z->parts ? ms_upto(w, z->parts) : 0];
	uint32_t chunk = as_chunk(ms_flow_mtu(w, w->as->end[o->from].node), 0),
		 most = z->parts ? p->len : 1;

	if (z->parts && p + 1 < z->part + z->parts && p[1].at == p->at + p->len)
		most += p[1].len; /* ranges that touch count as one */
	o->len = 1 + (uint32_t)ms_upto(w, ms_one_in(w, 3) ? 64 : ms_one_in(w, 2) ? chunk : most);
	o->len = ms_one_in(w, 8) ? chunk * (1 + (uint32_t)ms_upto(w, 3)) : o->len;
	o->len = RTE_MIN(o->len, most);
	o->remote = z->parts ? p->at + (uint32_t)ms_upto(w, most - o->len + 1) : z->at;
	if (ms_one_in(w, 3))
		o->remote = (z->parts ? p->at : z->at) + most - o->len;
}

/* Choose reading or writing: most of the time the region allows it. */
static uint8_t
choose_op(struct ms_world *w, const struct as_zone *z)
{
	bool read = w->plan.am.reads || ms_one_in(w, 2);

	if (!ms_one_in(w, w->plan.bad_in))
		read = z->access == URN_AM_ACCESS_ALL ? read : z->access == URN_AM_ACCESS_READ;
	return read ? URN_AM_READ : URN_AM_WRITE;
}

static void
choose_way(struct ms_world *w, struct as_op *o)
{
	uint32_t chunk = as_chunk(ms_flow_mtu(w, w->as->end[o->from].node), 0);

	o->way = URN_AM_AUTO;
	if (ms_one_in(w, 3))
		o->way = URN_AM_PIPELINED;
	else if (ms_one_in(w, 2))
		o->way = URN_AM_TAGGED;
	else if (o->len <= chunk && ms_one_in(w, 2))
		o->way = URN_AM_DIRECT;
	o->every = 0;
	if (o->way == URN_AM_PIPELINED && o->op == URN_AM_WRITE && ms_one_in(w, 2))
		o->every = ms_one_in(w, 2) ? URN_AM_EVERY_TRANSFER : (uint8_t)ms_upto(w, 12);
}

/* Choose local bytes. returns: false: there are not as many */
static bool
choose_local(struct ms_world *w, const struct as_end *e, struct as_op *o)
{
	const struct as_zone *z = &e->zone[0];

	if (o->len > z->len)
		return false;
	o->local = z->at + (uint32_t)ms_upto(w, z->len - o->len + 1);
	if (ms_one_in(w, 6))
		o->local = z->at + z->len - o->len;
	return true;
}

/* Move the range out of its region, by a little or a lot. */
static void
reach_out(struct ms_world *w, const struct as_end *to, struct as_op *o)
{
	uint32_t by = 1 + (uint32_t)ms_upto(w, ms_one_in(w, 2) ? 8 : 2 * AS_GUARD);

	if (ms_one_in(w, 2))
		o->remote += RTE_MIN(by, to->mem.len - o->len - o->remote);
	else
		o->remote -= RTE_MIN(by, o->remote);
}

/* Spoil a command that makes no sense at the initiator. */
static void
spoil_command(struct ms_world *w, struct urn_abi_am_cmd *c)
{
	switch (ms_upto(w, 10)) {
	case 9:
		c->flags = 2;
		break;
	case 8:
		c->op = URN_AM_READ;
		c->every = 2;
		break;
	case 0:
		c->op = 100;
		break;
	case 1:
		c->way = 100;
		break;
	case 2:
		c->len = ms_one_in(w, 2) ? 0 : URN_AM_LEN_MAX + 1u;
		break;
	case 3:
		c->remote = UINT64_MAX - ms_upto(w, c->len);
		break;
	case 4:
		memset(c->node, 0, sizeof(c->node));
		break;
	case 5:
		c->local += ms_one_in(w, 2) ? 1u << 24 : 0u - (1u << 24);
		break;
	case 6:
		c->lkey ^= 1u << ms_upto(w, 32);
		break;
	default:
		c->qid = sim_rng_next(&w->rng) >> 2;
		break;
	}
}

/* Spoil a command's target or key. */
static void
spoil_target(struct ms_world *w, struct as_op *o, struct urn_abi_am_cmd *c)
{
	const struct as_zone *z = o->to == AS_NONE ? NULL : &w->as->end[o->to].zone[o->zone];

	switch (ms_upto(w, 4)) {
	case 0:
		c->node[14] = 0x80;
		o->node = o->to = o->zone = AS_NONE;
		break;
	case 1:
		c->qid ^= 1ull << (48 + ms_upto(w, 14)); /* no life to come has that number */
		o->to = o->zone = AS_NONE;
		break;
	case 2:
		c->key ^= 1ull << ms_upto(w, 64);
		break;
	default:
		c->key = z && z->old ? z->old : sim_rng_next(&w->rng) | 1ull << 63;
		break;
	}
	if (!c->key && o->to != AS_NONE)
		o->zone = AS_SPACE;
}

/* Reserve the ranges of an operation, as far as it may touch them. returns: false: others have them
 */
static bool
reserve(struct ms_world *w, struct as_op *o)
{
	struct as_end *e = &w->as->end[o->from];
	bool write = o->op == URN_AM_WRITE;

	if (as_is_atomic(o))
		return true;
	o->has_local = o->sane;
	o->has_remote = o->reach != AS_REACH_NONE;
	if (o->has_local && !as_mem_take(&e->mem, o->local, o->len, true))
		return false;
	if (o->has_remote)
		as_mem_check_range(w, &w->as->end[o->to].mem, o->remote, o->len, "target",
				   (uint32_t)o->to);
	if (!o->has_remote || as_mem_take(&w->as->end[o->to].mem, o->remote, o->len, write))
		return true;
	if (o->has_local)
		as_mem_give(&e->mem, o->local, o->len, true);
	return false;
}

/* Put bytes into place that the operation moves. */
static void
prepare(struct ms_world *w, struct as_op *o)
{
	struct as_end *e = &w->as->end[o->from];

	if (!o->has_local)
		return;
	if (o->op == URN_AM_WRITE) {
		as_mem_fill(&e->mem, o->local, o->len, o->id);
		return;
	}
	o->want = malloc(o->len);
	if (!o->want)
		ms_fail(w, "no memory");
	sim_fill(o->want, o->id, 0, o->len);
	if (o->has_remote)
		memcpy(o->want, w->as->end[o->to].mem.was + o->remote, o->len);
}

/* Choose a write or a read. */
static void
choose_move(struct ms_world *w, const struct as_end *to, struct as_op *o)
{
	o->zone = 1 + (int32_t)ms_upto(w, AS_ZONES - 1);
	o->op = choose_op(w, &to->zone[o->zone]);
	choose_range(w, &to->zone[o->zone], o);
	choose_way(w, o);
	if (ms_one_in(w, w->plan.bad_in))
		reach_out(w, to, o);
}

/* Spoil an atomic operation: a word that is not aligned, an operand that is too large, or a region
 * without the right. */
static void
spoil_word(struct ms_world *w, const struct as_end *to, struct as_op *o, struct urn_abi_am_cmd *c)
{
	switch (ms_upto(w, 3)) {
	case 0:
		c->remote += 1 + ms_upto(w, o->len - 1);
		break;
	case 1:
		o->value |= 1ull << 40;
		break;
	default:
		if (o->to == AS_NONE || to->zone[1].access & URN_AM_ACCESS_ATOMIC)
			break;
		o->zone = 1;
		c->key = to->zone[1].key;
		break;
	}
}

/* Make an operation and its command. returns: false: there is no target, or no room for the local
 * bytes */
static bool
make(struct ms_world *w, const struct as_end *e, struct as_op *o, struct urn_abi_am_cmd *c)
{
	const struct as_end *to;

	*o = (struct as_op){.id = w->as->ops, .from = e->id, .posted = w->now};
	o->to = choose_target(w);
	if (o->to == AS_NONE)
		return false;
	to = &w->as->end[o->to];
	o->node = (int32_t)to->node;
	if (ms_one_in(w, w->plan.am.atomic_in) && to->ep)
		as_word_choose(w, to, o);
	else
		choose_move(w, to, o);
	if (!choose_local(w, e, o))
		return false;
	*c = (struct urn_abi_am_cmd){
		.op = o->op,
		.way = o->way,
		.every = o->every,
		.flags = ms_one_in(w, w->plan.am.fence_in) ? URN_AM_FENCE : 0,
		.len = o->len,
		.qid = to->qid,
		.remote = as_address(to, o->remote),
		.key = to->zone[o->zone].key,
		.local = as_address(e, o->local),
		.lkey = e->zone[0].lkey[0],
		.id = o->id,
	};
	memcpy(c->node, w->node[o->node].gid, 16);
	if (!to->ep) /* closed: its number names nobody */
		o->to = o->zone = AS_NONE;
	if (as_is_atomic(o) && o->len == 4 && ms_one_in(w, w->plan.bad_in))
		spoil_word(w, to, o, c);
	if (ms_one_in(w, w->plan.bad_in))
		spoil_target(w, o, c);
	if (ms_one_in(w, w->plan.bad_in))
		spoil_command(w, c);
	return true;
}

static void
send(struct ms_node *n, struct as_end *e, struct as_op *o, const struct urn_abi_am_cmd *c)
{
	struct ms_world *w = n->w;

	o->fence = e->fence;
	if (c->flags & URN_AM_FENCE)
		o->fence = e->fence = o->id;
	urn_am_cmds(e->regs)[e->commands & (e->entries - 1)] = *c;
	urn_am_operands(e->regs, e->entries)[e->commands & (e->entries - 1)] =
		(struct urn_abi_am_operand){.value = o->value, .compare = o->compare};
	atomic_store(&e->regs->client.commands, ++e->commands);
	n->rung[e->place] = 1;
	if (!e->under++)
		e->progress = w->now;
	w->as->ops++;
	w->mails++;
	w->pending++;
}

bool
as_post(struct ms_node *n, struct as_end *e)
{
	struct ms_world *w = n->w;
	struct urn_abi_am_cmd c;
	struct as_op *o = &w->as->op[w->as->ops];

	if (w->quiet || w->mails == w->plan.messages ||
	    e->commands - atomic_load(&e->regs->dp.commands) == e->entries || !make(w, e, o, &c))
		return false;
	as_judge_post(w, o, &c);
	if (!reserve(w, o))
		return false;
	prepare(w, o);
	send(n, e, o, &c);
	w->stats.more[AS_READS] += o->op == URN_AM_READ;
	w->stats.more[AS_WRITES] += o->op == URN_AM_WRITE;
	w->stats.more[AS_TAGGED] += o->way == URN_AM_TAGGED;
	w->stats.more[AS_WRONG] += o->reach != AS_REACH_ALL;
	ms_trace(w,
		 "operation %u: end %u %s %u bytes, way %u, every %u, end %d zone %d offset %u, "
		 "key %llx, "
		 "local %u%s",
		 o->id, e->id,
		 o->op == URN_AM_READ	 ? "reads"
		 : o->op == URN_AM_WRITE ? "writes"
					 : "changes",
		 o->len, o->way, o->every, o->to, o->zone, o->remote, (unsigned long long)c.key,
		 o->local, o->reach == AS_REACH_ALL ? "" : " (wrong)");
	return true;
}
