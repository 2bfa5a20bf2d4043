/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front: the public calls on contexts and objects, up to the provider (provider/provider.h). No
 * dataplane is reached from here but through the operations of the context's provider.
 */
#ifndef URN_VERBS_FRONT_H
#define URN_VERBS_FRONT_H

#include "verbs/provider/provider.h"

/* The operations of a context's provider. */
static inline const struct urn_verbs_ops *
urn_ops(struct ibv_context *c)
{
	return urn_verbs_ctx(c)->ops;
}

/*
 * Open a context of a provider, which is in no list of devices.
 *
 * arg: for ops->open(), taken over
 * returns: NULL with errno and text set
 */
struct ibv_context *urn_verbs_open(const struct urn_verbs_ops *ops, void *arg);
/* urn_verbs_open() for a device that is known. device: a reference, taken over; NULL: make one */
struct ibv_context *urn_verbs_open_device(const struct urn_verbs_ops *ops, void *arg, struct urn_device *device);

/*
 * Check that `length` bytes at addr may be read, and written if `write`. A device would
 * find out when it pins the pages; the dataplane would when it touches them.
 * returns: 0; EFAULT: not all of them, and urn_attach_error() says which; EINVAL: they wrap around
 */
int urn_memory_check(const void *addr, size_t length, bool write);

/* Check that an address can be used on Ethernet. returns: 0 or EINVAL */
int urn_ah_check(const struct ibv_ah_attr *attr);

/*
 * An object is made with a pd, which may be a parent domain; the object's end takes back the use.
 * returns: the protection domain, for the provider
 */
struct ibv_pd *urn_pd_use(struct ibv_pd *pd);
void urn_pd_leave(struct ibv_pd *pd);
/* True when a pd is a parent domain. */
bool urn_pd_is_parent(struct ibv_pd *pd);
/*
 * Deallocate a parent domain, or refuse to deallocate a protection domain that has one above.
 * returns: true: *err is the call's answer; false: the pd is a protection domain like any other
 */
bool urn_parent_dealloc(struct ibv_pd *pd, int *err);

/* Public calls that verbs.h makes through the context's pointers. */
int urn_verbs_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size);
int urn_verbs_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size);
struct ibv_cq_ex *urn_verbs_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *urn_verbs_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *urn_verbs_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
struct ibv_mw *urn_verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urn_verbs_dealloc_mw(struct ibv_mw *mw);
struct ibv_td *urn_verbs_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int urn_verbs_dealloc_td(struct ibv_td *td);
struct ibv_pd *urn_verbs_alloc_parent_domain(struct ibv_context *c,
					     struct ibv_parent_domain_init_attr *attr);
int urn_verbs_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);

#endif
