/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that verbs.h turns into others, by macro or inline function, as programs write
 * them. Only compiled: names.sh looks at the object's symbols. Valid as C and as C++.
 */
#include <urnic/attach.h>
#include <urnic/verbs.h>

#include <string.h>

int names_calls(struct ibv_context *c, struct ibv_pd *pd, struct ibv_qp *qp, struct ibv_mw *mw, int access);

int
names_calls(struct ibv_context *c, struct ibv_pd *pd, struct ibv_qp *qp, struct ibv_mw *mw, int access)
{
	struct ibv_qp_init_attr_ex qp_attr;
	struct ibv_srq_init_attr_ex srq_attr;
	struct ibv_cq_init_attr_ex cq_attr;
	struct ibv_device_attr_ex dev_attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	struct ibv_mw_bind bind;
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	struct ibv_cq_ex *cq;
	struct ibv_wc wc;
	char buf[1];
	int n = 0;

	memset(&qp_attr, 0, sizeof(qp_attr));
	memset(&srq_attr, 0, sizeof(srq_attr));
	memset(&cq_attr, 0, sizeof(cq_attr));
	memset(&bind, 0, sizeof(bind));
	ibv_free_device_list(ibv_get_device_list(&n));
	n += ibv_query_port(c, 1, &port);
	n += ibv_query_device_ex(c, NULL, &dev_attr);
	n += ibv_query_gid_ex(c, 1, 0, &gid, 0);
	n += (int)ibv_query_gid_table(c, &gid, 1, 0);
	n += ibv_reg_mr(pd, buf, 1, IBV_ACCESS_LOCAL_WRITE) != NULL;
	n += ibv_reg_mr(pd, buf, 1, access) != NULL;
	n += ibv_reg_mr(pd, buf, 1, IBV_ACCESS_RELAXED_ORDERING) != NULL;
	n += ibv_reg_mr_iova(pd, buf, 1, 5, IBV_ACCESS_LOCAL_WRITE) != NULL;
	n += ibv_reg_mr_iova(pd, buf, 1, 5, access) != NULL;
	n += ibv_create_qp_ex(c, &qp_attr) != NULL;
	n += ibv_create_srq_ex(c, &srq_attr) != NULL;
	cq = ibv_create_cq_ex(c, &cq_attr);
	n += ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc);
	n += ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0);
	n += ibv_bind_mw(qp, mw, &bind);
	n += ibv_post_send(qp, NULL, &bad_send);
	n += ibv_post_recv(qp, NULL, &bad_recv);
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	return n + ibv_wr_complete(ibv_qp_to_qp_ex(qp));
}
