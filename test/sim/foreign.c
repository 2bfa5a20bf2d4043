/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Foreign memory: some programs of a node have a protection domain and an address
 * space of their own, whose bytes a worker copies in its own time (packet/worker.h
 * replaces the worker's thread). Operations that wait for the worker close the domain's
 * gate, which opens when the worker has caught up.
 */
#include "sim.h"

#include "packet/worker.h"

#define RIGHTS                                                                       \
	(URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | \
	 URN_ACCESS_REMOTE_ATOMIC | URN_ACCESS_MW_BIND)

enum { POLLS = 100000 }; /* polls of memory until a QP counts as stuck */

void
sim_spaces_open(struct sim_node *n)
{
	struct sim *s = n->s;

	memset(n->space, 0, sizeof(n->space));
	for (unsigned int i = 0; sim_on(s, SIM_FOREIGN) && i < SIM_SPACES; i++) {
		struct sim_space *sp = &n->space[i];

		sp->rng = sim_rng_of(s->seed, 3000 + n->id * SIM_SPACES + i);
		sp->space = worker_open();
		if (!sp->space || urn_mem_alloc_pd(n->mem, &sp->pd) != 0) {
			sim_fail(s, "node %u: no memory for an address space", n->id);
			return;
		}
		sp->key_all = sim_space_region(n, sp, 0, n->ram_size, RIGHTS, &sp->m_all);
	}
}

uint32_t
sim_space_region(struct sim_node *n, struct sim_space *sp, uint32_t off, uint32_t len,
		 uint32_t access, int *m)
{
	char why[160] = "";
	uint32_t key = 0;

	if (urn_mem_add_foreign(n->mem, sp->pd, sp->space, (uintptr_t)(n->ram + off), len,
				SIM_VA + off, access, &key, why, sizeof(why)) != 0)
		sim_fail(n->s, "node %u: a region could not be registered: %s", n->id, why);
	*m = sim_model_key(n, off, len, access);
	return key;
}

struct sim_space *
sim_space_draw(struct sim_node *n, uint64_t stream)
{
	struct sim_rng r = sim_rng_of(n->s->seed, stream);
	uint32_t i = sim_rnd(&r, SIM_SPACES + 1);

	return i < SIM_SPACES && n->space[i].space ? &n->space[i] : NULL;
}

/* ---- the worker's course */

static void
note_gate(struct sim_node *n, struct sim_space *sp)
{
	bool shut = urn_memx_gate(n->memx)->pd[sp->pd];

	if (shut == sp->shut)
		return;
	sp->shut = shut;
	sim_note(n->s, (int)n->id, "gate", sp->pd, shut, worker_waits(sp->space));
	n->s->stats.fired[SIM_FOREIGN] += shut;
}

void
sim_spaces_work(struct sim_node *n)
{
	struct sim *s = n->s;
	bool failing = sim_on(s, SIM_FAIL) && n->id == s->seed % s->plan.nodes;

	for (unsigned int i = 0; i < SIM_SPACES && n->space[i].space; i++) {
		struct sim_space *sp = &n->space[i];

		note_gate(n, sp);
		if (sp->stalled || s->now < sp->due || worker_waits(sp->space) == 0)
			continue;
		worker_do(sp->space, sim_between(&sp->rng, 1, 8),
			  failing && sim_one_in(&sp->rng, 200));
		sp->due = s->now + (sim_one_in(&sp->rng, 16) ? sim_rnd(&sp->rng, 30000)
							     : sim_rnd(&sp->rng, 2000));
	}
}

uint64_t
sim_spaces_next(const struct sim_node *n)
{
	uint64_t at = UINT64_MAX;

	for (unsigned int i = 0; i < SIM_SPACES && n->space[i].space; i++) {
		const struct sim_space *sp = &n->space[i];

		if (worker_answered(sp->space))
			return n->s->now;
		if (!sp->stalled && worker_waits(sp->space) && sp->due < at)
			at = sp->due;
	}
	return at;
}

uint32_t
sim_spaces_hold(const struct sim_node *n)
{
	uint32_t under_way = 0;

	for (unsigned int i = 0; i < SIM_SPACES && n->space[i].space; i++)
		under_way += worker_under_way(n->space[i].space);
	return under_way;
}

void
sim_space_stall(struct sim_node *n, unsigned int i, bool ends)
{
	n->space[i % SIM_SPACES].stalled = !ends;
	sim_node_wake(n, n->s->now);
}

/* ---- taking down */

static void
finish(struct sim_node *n)
{
	for (unsigned int i = 0; i < SIM_SPACES && n->space[i].space; i++)
		worker_do(n->space[i].space, UINT32_MAX, false);
}

bool
sim_node_poll(struct sim_node *n)
{
	finish(n);
	return urn_tp_poll_memory(n->tp) || urn_memx_holds(n->memx, NULL);
}

bool
sim_qp_stop(struct sim_node *n, struct urn_qp *qp)
{
	urn_qp_stop(n->tp, qp);
	for (int i = 0; i < POLLS; i++) {
		if (urn_qp_quiet(qp))
			return true;
		sim_node_poll(n);
	}
	return false;
}

void
sim_spaces_close(struct sim_node *n)
{
	struct urn_region *region;

	for (unsigned int i = 0; i < SIM_SPACES && n->space[i].space; i++) {
		struct sim_space *sp = &n->space[i];

		if (urn_memx_gate(n->memx)->pd[sp->pd])
			sim_fail(n->s, "node %u: the gate of domain %u stays closed", n->id,
				 sp->pd);
		if (urn_mem_kill_mr(n->mem, sp->key_all, &region) == 0)
			urn_mem_free_mr(n->mem, region);
		else
			sim_fail(n->s, "node %u: a window is still bound to foreign memory", n->id);
		if (urn_mem_dealloc_pd(n->mem, sp->pd) != 0)
			sim_fail(n->s, "node %u: protection domain %u is still used", n->id,
				 sp->pd);
		worker_close(sp->space);
		sp->space = NULL;
	}
}
