/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions. */
#include "verbs/front.h"

#include <errno.h>
#include <stdlib.h>

/* Rights under which a region is written. */
#define URN_ACCESS_WRITES \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = urn_ops(context)->alloc_pd(context);

	if (pd != NULL)
		pd->context = context;
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	int err;

	if (urn_parent_dealloc(pd, &err))
		return err;
	err = urn_ops(pd->context)->dealloc_pd(pd);
	if (err == 0)
		free(pd);
	return err;
}

/*
 * Check rights that verbs has no bits for, or that urnic lacks: bits 20 to 29 may be ignored, and
 * huge pages are a hint. returns: 0, or an errno value with errno and text set
 */
static int
urn_access_check(unsigned int access)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
				   IBV_ACCESS_OPTIONAL_RANGE;
	const unsigned int flush = 3u << 8; /* bits 8 and 9, which newer headers name */

	if (access & IBV_ACCESS_ON_DEMAND)
		return urn_unsupported("registering memory on demand (IBV_ACCESS_ON_DEMAND)");
	if (access & flush)
		return urn_unsupported("rights to flush memory");
	if (access & ~known)
		return urn_fail(EINVAL, "access 0x%x has bits that verbs do not know", access);
	return 0;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr;

	if (urn_access_check(access) != 0)
		return NULL;
	if (urn_memory_check(addr, length, (access & URN_ACCESS_WRITES) != 0) != 0)
		return NULL;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	mr = urn_ops(pd->context)->reg_mr(urn_pd_use(pd), addr, length, iova, access);
	if (mr == NULL) {
		urn_pd_leave(pd);
		return NULL;
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	return mr;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	urn_unsupported("registering a dma-buf");
	return NULL;
}

/* Check what a region is to become. returns: 0, or an errno value with its text */
static int
urn_rereg_check(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd, const void *addr,
		size_t length, int access)
{
	const int known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
			  IBV_REREG_MR_CHANGE_ACCESS;

	if (flags == 0 || (flags & ~known))
		return urn_fail(EINVAL, "flags 0x%x say nothing that can be changed of a region",
				(unsigned int)flags);
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (addr == NULL || length == 0))
		return urn_fail(EINVAL, "the region's new memory needs an address and a length");
	if (access != 0 && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return urn_fail(EINVAL,
				"rights are given, and the flags do not say that they change");
	if ((flags & IBV_REREG_MR_CHANGE_PD) && (pd == NULL || pd->context != mr->context))
		return urn_fail(EINVAL,
				"the region's new protection domain must be one of its device");
	return urn_access_check((unsigned int)access);
}

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int err;

	if (urn_rereg_check(mr, flags, pd, addr, length, access) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	if (urn_ops(mr->context)->rereg_mr == NULL) {
		urn_unsupported("changing a registered region; deregister it and register it anew");
		return IBV_REREG_MR_ERR_INPUT; /* the region stays as it was */
	}
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		addr = mr->addr;
		length = mr->length;
	}
	if (!(flags & IBV_REREG_MR_CHANGE_PD))
		pd = mr->pd;
	/* The rights that stay are the provider's to know; the dataplane checks foreign memory for
	 * them. */
	if (urn_memory_check(addr, length, ((unsigned int)access & URN_ACCESS_WRITES) != 0) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	err = urn_ops(mr->context)
		      ->rereg_mr(mr, flags, urn_pd_use(pd), addr, length, (unsigned int)access);
	urn_pd_leave(err == 0 ? mr->pd : pd);
	if (err != 0)
		return err;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	struct ibv_pd *pd = mr->pd;
	int err = urn_ops(mr->context)->dereg_mr(mr);

	if (err != 0)
		return err;
	urn_pd_leave(pd);
	free(mr);
	return 0;
}
