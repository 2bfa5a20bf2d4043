/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions. */
#include "verbs/copy.h"
#include "verbs/verbs_priv.h"

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
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct ibv_pd *pd = urn_object_alloc(sizeof(*pd));
	struct urn_abi_rep rep;

	if (pd == NULL)
		return NULL;
	if (urn_dev_call(urn_ctx_dev(context), &req, &rep) != 0) {
		free(pd);
		return NULL;
	}
	pd->context = context;
	pd->handle = rep.handle;
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	int err = urn_dev_call_handle(urn_ctx_dev(pd->context), URN_CTL_DEALLOC_PD, pd->handle);

	if (err == 0)
		free(pd);
	return err;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_abi_rep rep;
	struct ibv_mr *mr;

	if (access & IBV_ACCESS_ON_DEMAND) {
		urn_unsupported("registering memory on demand (IBV_ACCESS_ON_DEMAND)");
		return NULL;
	}
	if (urn_memory_check(addr, length, (access & URN_ACCESS_WRITES) != 0) != 0 ||
	    urn_dev_share(urn_ctx_dev(pd->context), addr, length) != 0)
		return NULL;
	mr = urn_object_alloc(sizeof(*mr));
	if (mr == NULL)
		return NULL;
	req.reg_mr.pd = pd->handle;
	req.reg_mr.access = urn_access(access);
	req.reg_mr.addr = (uintptr_t)addr;
	req.reg_mr.length = length;
	req.reg_mr.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	if (urn_dev_call(urn_ctx_dev(pd->context), &req, &rep) != 0) {
		free(mr);
		return NULL;
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = rep.mr.lkey;
	mr->lkey = rep.mr.lkey;
	mr->rkey = rep.mr.rkey;
	urn_copy_note(urn_ctx(pd->context), mr, req.reg_mr.iova);
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
	int err;

	urn_copy_forget(urn_ctx(mr->context), mr->lkey);
	err = urn_dev_call_handle(urn_ctx_dev(mr->context), URN_CTL_DEREG_MR, mr->handle);
	if (err == 0)
		free(mr);
	return err;
}
