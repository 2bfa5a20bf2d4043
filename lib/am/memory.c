/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that operations use, and regions that peers reach (AM-9). */
#include "am/lock.h"

#include "attach/alloc.h"

#include <stdlib.h>

/* Write parts into the endpoint's list, and make a region of them. returns: 0, or an errno value
 * with its text */
static int
urn_am_register(struct urn_am_endpoint *ep, const struct urn_am_part *parts, uint32_t n,
		uint32_t access, uint32_t flags, uint64_t *key)
{
	struct urn_abi_am_range *list = urn_am_ranges(ep->regs, ep->attr.operations);
	struct urn_abi_req req = {.op = URN_CTL_AM_REG, .handle = ep->handle};
	struct urn_abi_rep rep;
	uint32_t i;
	int err;

	if (n == 0 || n > ep->attr.ranges)
		return urn_fail(EINVAL, "a region of this endpoint has 1 to %u ranges, not %u",
				ep->attr.ranges, n);
	for (i = 0; i < n; i++)
		list[i] = (struct urn_abi_am_range){.addr = (uintptr_t)parts[i].addr,
						    .len = parts[i].len,
						    .lkey = parts[i].memory->lkey};
	req.am_reg.access = access;
	req.am_reg.flags = flags;
	req.am_reg.ranges = n;
	err = urn_msg_dev_call(ep->dev, &req, &rep);
	if (err == 0)
		*key = rep.am.key;
	return err;
}

/* Do so under the lock: the list is one. */
static int
urn_am_register_alone(struct urn_am_endpoint *ep, const struct urn_am_part *parts, uint32_t n,
		      uint32_t access, uint32_t flags, uint64_t *key)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = urn_am_register(ep, parts, n, access, flags, key);
	urn_am_leave(ep);
	return err;
}

int
urn_am_region_create(struct urn_am_endpoint *ep, const struct urn_am_part *parts, uint32_t n,
		     uint32_t access, uint64_t *key)
{
	return urn_am_register_alone(ep, parts, n, access, 0, key);
}

int
urn_am_space_declare(struct urn_am_endpoint *ep, const struct urn_am_part *parts, uint32_t n,
		     uint32_t access)
{
	uint64_t key;

	return urn_am_register_alone(ep, parts, n, access, URN_AM_REG_SPACE, &key);
}

/* A call that needs no lock of the endpoint. returns: 0; EPERM with its text: the endpoint is a
 * parent's, or the call is made inside a handler of another endpoint */
static int
urn_am_own(const struct urn_am_endpoint *ep)
{
	if (urn_am_is_elsewhere(ep))
		return EPERM;
	return urn_am_is_parents(ep) ? urn_am_refuse_child() : 0;
}

int
urn_am_region_destroy(struct urn_am_endpoint *ep, uint64_t key)
{
	struct urn_abi_req req = {
		.op = URN_CTL_AM_DEREG, .handle = ep->handle, .am_dereg.key = key};
	struct urn_abi_rep rep;
	int err = urn_am_own(ep);

	return err == 0 ? urn_msg_dev_call(ep->dev, &req, &rep) : err;
}

/* ---- memory */

/* Take memory out of the endpoint's list. lkey: name of it; returns: NULL: its pages were not moved
 */
static struct urn_am_moved *
urn_am_unlist(struct urn_am_endpoint *ep, uint32_t lkey)
{
	struct urn_am_moved *m, *before = NULL;
	bool entered;

	if (atomic_load(&ep->moved) == NULL)
		return NULL;
	entered = urn_share_enter();
	for (m = atomic_load(&ep->moved); m != NULL && m->lkey != lkey; m = m->next)
		before = m;
	if (m != NULL && before != NULL)
		before->next = m->next;
	else if (m != NULL)
		atomic_store(&ep->moved, m->next);
	urn_share_exit(entered);
	return m;
}

static void
urn_am_list(struct urn_am_endpoint *ep, struct urn_am_moved *m)
{
	bool entered = urn_share_enter();

	m->next = atomic_load(&ep->moved);
	atomic_store(&ep->moved, m);
	urn_share_exit(entered);
}

/* The memory is not registered any more. m: NULL is allowed */
static void
urn_am_move_back(struct urn_am_moved *m)
{
	if (m != NULL)
		urn_share_drop(&m->hold);
	free(m);
}

void
urn_am_move_back_all(struct urn_am_endpoint *ep)
{
	struct urn_am_moved *m;

	while ((m = atomic_load(&ep->moved)) != NULL) {
		struct urn_am_memory memory = {.lkey = m->lkey};

		(void)urn_am_memory_remove(ep, &memory);
		if (m == atomic_load(&ep->moved)) /* the dataplane is gone */
			urn_am_move_back(urn_am_unlist(ep, m->lkey));
	}
}

/*
 * Let the dataplane reach memory: pages that it does not map are moved to memory that it maps.
 *
 * m: of a dataplane in another process; else NULL; *at: set to the dataplane's address of the
 * memory
 *
 * returns: 0, or an errno value with its text
 */
static int
urn_am_reach_memory(struct urn_am_endpoint *ep, const void *addr, size_t len,
		    struct urn_am_moved *m, uint64_t *at)
{
	struct urn_segment seg;

	*at = (uintptr_t)addr;
	if (m != NULL && !urn_segment_find(addr, len, &seg))
		*at = urn_msg_dev_move(ep->dev, addr, len, &m->hold);
	if (m != NULL && urn_share_has(&m->hold))
		return 0;
	return urn_msg_dev_share(ep->dev, addr, len);
}

/* Check that endpoints can use memory of the dataplane: not all that it can register is mapped
 * there. why: its pages were not moved there; NULL: there was no need */
static int
urn_am_try(struct urn_am_endpoint *ep, const struct urn_am_memory *memory, const char *why)
{
	struct urn_am_part all = {.memory = memory, .addr = memory->addr, .len = memory->len};
	uint64_t key = 0;
	int err = urn_am_region_create(ep, &all, 1, URN_AM_ACCESS_ALL, &key);

	if (err == EOPNOTSUPP)
		return urn_fail(EOPNOTSUPP,
				"the dataplane, which is another process, does not map the %zu "
				"bytes at %p, so endpoints can't use them: take memory of "
				"urn_alloc()%s%s",
				memory->len, memory->addr,
				why != NULL ? "; the pages were not moved there: " : "",
				why != NULL ? why : "");
	return err == 0 ? urn_am_region_destroy(ep, key) : err;
}

/* Register memory. m: as above. returns: 0, or an errno value with its text, and nothing is
 * registered */
static int
urn_am_memory_make(struct urn_am_endpoint *ep, void *addr, size_t len, struct urn_am_moved *m,
		   struct urn_am_memory *memory)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_abi_rep rep;
	int err = urn_am_reach_memory(ep, addr, len, m, &req.reg_mr.addr);

	if (err != 0)
		return err;
	req.reg_mr.pd = ep->pd;
	req.reg_mr.access = URN_ACCESS_LOCAL_WRITE;
	req.reg_mr.iova = (uintptr_t)addr;
	req.reg_mr.length = len;
	err = urn_msg_dev_call(ep->dev, &req, &rep);
	if (err != 0)
		return err;
	*memory = (struct urn_am_memory){.addr = addr, .len = len, .lkey = rep.mr.lkey};
	err = m != NULL ? urn_am_try(ep, memory, m->hold.why) : 0;
	if (err != 0)
		(void)urn_am_memory_remove(ep, memory);
	return err;
}

int
urn_am_memory_add(struct urn_am_endpoint *ep, void *addr, size_t len, struct urn_am_memory *memory)
{
	struct urn_am_moved *m = NULL;
	int err = urn_am_own(ep);

	if (err != 0)
		return err;
	if (len == 0)
		return urn_fail(EINVAL, "memory has at least one byte");
	if (urn_msg_remote(ep->dev)) {
		m = calloc(1, sizeof(*m));
		if (m == NULL)
			return urn_fail(ENOMEM, "no memory to note memory in");
	}
	err = urn_am_memory_make(ep, addr, len, m, memory);
	if (err == 0 && m != NULL && urn_share_has(&m->hold)) {
		m->lkey = memory->lkey;
		urn_am_list(ep, m);
		return 0;
	}
	urn_am_move_back(m);
	if (err != 0)
		errno = err;
	return err;
}

int
urn_am_memory_remove(struct urn_am_endpoint *ep, const struct urn_am_memory *memory)
{
	struct urn_abi_req req = {.op = URN_CTL_DEREG_MR, .handle = memory->lkey};
	struct urn_am_moved *m;
	struct urn_abi_rep rep;
	int err = urn_am_own(ep);

	if (err != 0)
		return err;
	m = urn_am_unlist(ep, memory->lkey); /* the dataplane gives its name to other memory next */
	err = urn_msg_dev_call(ep->dev, &req, &rep);
	if (err != 0 && m != NULL)
		urn_am_list(ep, m);
	else
		urn_am_move_back(m);
	return err;
}
