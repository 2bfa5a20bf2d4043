/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: an id with its address and queue pair by one call, in synchronous operation. */
#include "dropin/rdmacm/rdmacm.h"

#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

/* Remember for a listener's requests how their queue pairs are made. */
static int
ep_passive(struct urn_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	   const struct ibv_qp_init_attr *attr)
{
	if (res->ai_src_addr == NULL)
		return urn_cma_result(EINVAL);
	if (rdma_bind_addr(&id->pub, res->ai_src_addr) != 0)
		return -1;
	if (pd != NULL)
		id->pub.pd = pd;
	id->ep_pd = pd;
	if (attr == NULL)
		return 0;
	id->ep_attr = malloc(sizeof(*attr));
	if (id->ep_attr == NULL)
		return urn_cma_result(ENOMEM);
	*id->ep_attr = *attr;
	id->ep_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

static int
ep_active(struct urn_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	  struct ibv_qp_init_attr *attr)
{
	if (res->ai_dst_addr == NULL)
		return urn_cma_result(EINVAL);
	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, 2000) != 0 ||
	    rdma_resolve_route(&id->pub, 2000) != 0)
		return -1;
	if (attr == NULL)
		return 0;
	attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return rdma_create_qp(&id->pub, pd, attr);
}

int
rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
	       struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *pub;
	int rc, err;

	if (out == NULL || res == NULL)
		return urn_cma_result(EINVAL);
	if (rdma_create_id(NULL, &pub, NULL, (enum rdma_port_space)res->ai_port_space) != 0)
		return -1;
	rc = res->ai_flags & RAI_PASSIVE ? ep_passive(urn_cma_of(pub), res, pd, attr)
					 : ep_active(urn_cma_of(pub), res, pd, attr);
	if (rc == 0) {
		*out = pub;
		return 0;
	}
	err = errno;
	rdma_destroy_ep(pub);
	return urn_cma_result(err);
}

void
rdma_destroy_ep(struct rdma_cm_id *pub)
{
	if (pub == NULL)
		return;
	if (pub->qp != NULL)
		rdma_destroy_qp(pub);
	if (pub->srq != NULL)
		rdma_destroy_srq(pub);
	(void)rdma_destroy_id(pub);
}

/* Wait for the next request; other events of requests that nobody took are of no use. */
static int
wait_request(struct rdma_cm_id *listen, struct rdma_cm_event **event)
{
	for (;;) {
		if (rdma_get_cm_event(listen->channel, event) != 0)
			return -1;
		if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			return 0;
		rdma_ack_cm_event(*event);
	}
}

int
rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct urn_cma_id *l = urn_cma_of(listen), *id;
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr attr;

	if (l == NULL || out == NULL || !l->sync || l->state != URN_CMA_LISTEN)
		return urn_cma_result(EINVAL);
	if (wait_request(listen, &event) != 0)
		return -1;
	id = urn_cma_of(event->id);
	if (rdma_migrate_id(&id->pub, NULL) != 0)
		goto err_id;
	id->pub.event = event;
	if (l->ep_attr != NULL) {
		attr = *l->ep_attr;
		attr.srq = attr.srq != NULL ? attr.srq : listen->srq;
		if (rdma_create_qp(&id->pub, l->ep_pd, &attr) != 0)
			goto err_id;
	}
	*out = &id->pub;
	return 0;

err_id : {
	int err = errno;

	if (id->pub.event == NULL)
		rdma_ack_cm_event(event);
	rdma_destroy_ep(&id->pub);
	return urn_cma_result(err);
}
}
