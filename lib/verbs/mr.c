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
	int err = urn_ops(pd->context)->dealloc_pd(pd);

	if (err == 0)
		free(pd);
	return err;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr;

	if (access & IBV_ACCESS_ON_DEMAND) {
		urn_unsupported("registering memory on demand (IBV_ACCESS_ON_DEMAND)");
		return NULL;
	}
	if (urn_memory_check(addr, length, (access & URN_ACCESS_WRITES) != 0) != 0)
		return NULL;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	mr = urn_ops(pd->context)->reg_mr(pd, addr, length, iova, access);
	if (mr == NULL)
		return NULL;
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

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
	urn_unsupported("changing a registered region; deregister it and register it anew");
	return IBV_REREG_MR_ERR_INPUT; /* the region stays as it was */
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	int err = urn_ops(mr->context)->dereg_mr(mr);

	if (err == 0)
		free(mr);
	return err;
}
