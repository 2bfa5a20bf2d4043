/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread domains and parent domains. A parent domain stands in for its protection domain when
 * objects are made; providers see the protection domain only. A thread domain promises that one
 * thread at a time uses the objects, and nothing depends on that: the locks of queues stay.
 */
#include "verbs/front.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

struct urn_td {
	struct ibv_td td;
	uint32_t users; /* parent domains; under urn_parent_lock */
};

struct urn_parent {
	struct ibv_pd pd;
	LIST_ENTRY(urn_parent) link;
	struct ibv_pd *base; /* the protection domain */
	struct urn_td *td;   /* NULL: none */
	uint32_t users;	     /* objects made with the domain; under urn_parent_lock */
};

/* urn_parent_lock protects the list of parent domains. */
static pthread_mutex_t urn_parent_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, urn_parent) urn_parents; /* under urn_parent_lock */
static _Atomic uint32_t urn_parents_n;	    /* entries of the list: most programs have none */

/* The parent domain behind a pd. NULL: it is a protection domain. The lock is held. */
static struct urn_parent *
urn_parent_of(const struct ibv_pd *pd)
{
	struct urn_parent *p;

	LIST_FOREACH(p, &urn_parents, link)
		if (&p->pd == pd)
			break;
	return p;
}

static struct ibv_pd *
urn_pd_count(struct ibv_pd *pd, int n)
{
	struct urn_parent *p;

	if (pd == NULL || atomic_load_explicit(&urn_parents_n, memory_order_relaxed) == 0)
		return pd;
	pthread_mutex_lock(&urn_parent_lock);
	p = urn_parent_of(pd);
	if (p != NULL) {
		p->users += (uint32_t)n;
		pd = p->base;
	}
	pthread_mutex_unlock(&urn_parent_lock);
	return pd;
}

struct ibv_pd *
urn_pd_use(struct ibv_pd *pd)
{
	return urn_pd_count(pd, 1);
}

void
urn_pd_leave(struct ibv_pd *pd)
{
	(void)urn_pd_count(pd, -1);
}

bool
urn_pd_is_parent(struct ibv_pd *pd)
{
	bool is;

	pthread_mutex_lock(&urn_parent_lock);
	is = urn_parent_of(pd) != NULL;
	pthread_mutex_unlock(&urn_parent_lock);
	return is;
}

/* Take a parent domain that nothing uses off the list. The lock is held. returns: 0 or EBUSY */
static int
urn_parent_end(struct urn_parent *p)
{
	if (p->users != 0)
		return urn_fail(EBUSY, "%u objects still use this parent domain", p->users);
	LIST_REMOVE(p, link);
	urn_parents_n--;
	if (p->td != NULL)
		p->td->users--;
	free(p);
	return 0;
}

bool
urn_parent_dealloc(struct ibv_pd *pd, int *err)
{
	struct urn_parent *p;
	uint32_t above = 0;

	if (atomic_load_explicit(&urn_parents_n, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&urn_parent_lock);
	p = urn_parent_of(pd);
	if (p != NULL)
		*err = urn_parent_end(p);
	else
		LIST_FOREACH(p, &urn_parents, link)
			above += p->base == pd;
	pthread_mutex_unlock(&urn_parent_lock);
	if (above == 0)
		return p != NULL;
	*err = urn_fail(EBUSY, "%u parent domains still use this protection domain", above);
	return true;
}

struct ibv_td *
urn_verbs_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	struct urn_td *td;

	if (attr->comp_mask != 0) {
		urn_unsupported("a thread domain with attributes");
		return NULL;
	}
	td = urn_object_alloc(sizeof(*td));
	if (td == NULL)
		return NULL;
	td->td.context = c;
	return &td->td;
}

int
urn_verbs_dealloc_td(struct ibv_td *ibtd)
{
	struct urn_td *td = (struct urn_td *)ibtd;
	uint32_t users;

	pthread_mutex_lock(&urn_parent_lock);
	users = td->users;
	pthread_mutex_unlock(&urn_parent_lock);
	if (users != 0)
		return urn_fail(EBUSY, "%u parent domains still use this thread domain", users);
	free(td);
	return 0;
}

/* Check the attributes of a parent domain. returns: 0, or an errno value with its text */
static int
urn_parent_check(const struct ibv_context *c, const struct ibv_parent_domain_init_attr *attr)
{
	if (attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		return urn_unsupported("a parent domain with allocators of the program's");
	if (attr->pd == NULL || attr->pd->context != c)
		return urn_fail(EINVAL, "a parent domain needs a protection domain of its device");
	if (urn_pd_is_parent(attr->pd))
		return urn_fail(EINVAL, "a parent domain can't stand above another");
	if (attr->td != NULL && attr->td->context != c)
		return urn_fail(EINVAL, "the thread domain is of another device");
	return 0;
}

struct ibv_pd *
urn_verbs_alloc_parent_domain(struct ibv_context *c, struct ibv_parent_domain_init_attr *attr)
{
	struct urn_parent *p;

	if (urn_parent_check(c, attr) != 0)
		return NULL;
	p = urn_object_alloc(sizeof(*p));
	if (p == NULL)
		return NULL;
	p->base = attr->pd;
	p->td = (struct urn_td *)attr->td;
	p->pd.context = c;
	p->pd.handle = attr->pd->handle;
	pthread_mutex_lock(&urn_parent_lock);
	LIST_INSERT_HEAD(&urn_parents, p, link);
	urn_parents_n++;
	if (p->td != NULL)
		p->td->users++;
	pthread_mutex_unlock(&urn_parent_lock);
	return &p->pd;
}
