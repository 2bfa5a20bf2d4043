/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_create_ep() with results of rdma_getaddrinfo(): connections, datagrams, and what it refuses.
 */
#include "calls.h"

#include <dirent.h>
#include <pthread.h>

enum { BYTES = 64 };

/* One kind of endpoint: how the queue pairs are asked for. */
struct endpoint_kind {
	int type;      /* enum ibv_qp_type */
	int space;     /* enum rdma_port_space */
	uint16_t port; /* the server's */
};

static struct ibv_qp_init_attr
plain(void)
{
	/* The type is left out, because the endpoint takes that of the address. */
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1};
}

/* Ask with hints for a node's address. src: own address; NULL: the address is to be listened at */
static struct rdma_addrinfo *
found(const struct endpoint_kind *k, const char *node, struct sockaddr_in *src)
{
	struct rdma_addrinfo h = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
				  .ai_qp_type = k->type,
				  .ai_port_space = k->space};
	struct rdma_addrinfo *r;
	char port[8];

	snprintf(port, sizeof(port), "%u", k->port);
	h.ai_flags |= src == NULL ? RAI_PASSIVE : 0;
	h.ai_src_addr = (struct sockaddr *)src;
	h.ai_src_len = src != NULL ? sizeof(*src) : 0;
	EQUAL(rdma_getaddrinfo(node, port, &h, &r), 0);
	return r;
}

/* The client: it connects, and for connections gets one message. */
static void *
client(void *arg)
{
	struct sockaddr_in from = address(CLIENT, 0);
	const struct endpoint_kind *k = arg;
	struct rdma_addrinfo *r = found(k, SERVER, &from);
	struct ibv_qp_init_attr a = plain();
	static char text[BYTES];
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	EQUAL(rdma_create_ep(&id, r, NULL, &a), 0);
	rdma_freeaddrinfo(r);
	EQUAL(id->qp_type, k->type);
	EQUAL(id->qp->qp_type, k->type);
	EQUAL(a.qp_type, k->type);
	EQUAL(((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr.s_addr,
	      from.sin_addr.s_addr);
	CHECK(id->recv_cq != NULL && id->send_cq != NULL);
	CHECK((mr = rdma_reg_msgs(id, text, sizeof(text))) != NULL);
	EQUAL(rdma_post_recv(id, NULL, text, sizeof(text), mr), 0);
	EQUAL(rdma_connect(id, NULL), 0);
	EQUAL(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	if (k->type == IBV_QPT_RC) {
		EQUAL(rdma_get_recv_comp(id, &wc), 1);
		EQUAL(wc.status, IBV_WC_SUCCESS);
		EQUAL(strcmp(text, "hello"), 0);
	} else {
		EQUAL(id->event->param.ud.qkey, RDMA_UDP_QKEY);
		CHECK(id->event->param.ud.qp_num != 0);
	}
	if (k->type == IBV_QPT_RC)
		EQUAL(rdma_disconnect(id), 0);
	EQUAL(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
	return NULL;
}

/* The server, with a client in another thread; each waits in its calls. */
static void
meet(const struct endpoint_kind *k)
{
	struct rdma_addrinfo *r = found(k, SERVER, NULL);
	struct ibv_qp_init_attr a = plain();
	struct rdma_conn_param p = {.rnr_retry_count = 7};
	static char text[BYTES] = "hello";
	struct rdma_cm_id *l, *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	pthread_t thread;

	EQUAL(rdma_create_ep(&l, r, NULL, &a), 0);
	rdma_freeaddrinfo(r);
	CHECK(l->qp == NULL); /* its requests have queue pairs */
	EQUAL(rdma_listen(l, 0), 0);
	EQUAL(pthread_create(&thread, NULL, client, (void *)(uintptr_t)k), 0);
	EQUAL(rdma_get_request(l, &id), 0);
	EQUAL(id->qp->qp_type, k->type);
	p.qp_num = id->qp->qp_num;
	EQUAL(rdma_accept(id, &p), 0);
	if (k->type == IBV_QPT_RC) {
		CHECK((mr = rdma_reg_msgs(id, text, sizeof(text))) != NULL);
		EQUAL(rdma_post_send(id, NULL, text, sizeof(text), mr, 0), 0);
		EQUAL(rdma_get_send_comp(id, &wc), 1);
		EQUAL(wc.status, IBV_WC_SUCCESS);
		EQUAL(rdma_dereg_mr(mr), 0);
		/* Both sides: a request to disconnect waits for the peer's answer. */
		EQUAL(rdma_disconnect(id), 0);
	}
	EQUAL(pthread_join(thread, NULL), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
}

void
endpoint_case(void)
{
	static const struct endpoint_kind kinds[] = {{IBV_QPT_RC, RDMA_PS_TCP, PORT + 1},
						     {IBV_QPT_UD, RDMA_PS_UDP, PORT + 2},
						     {IBV_QPT_RC, RDMA_PS_IB, PORT + 3}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		meet(&kinds[i]);
}

/* returns: number of entries in this process's folder of descriptors */
static int
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* An endpoint that can't be made: nothing is left of it, so the port is free each time. */
void
endpoint_bad_case(void)
{
	struct sockaddr_in from = address(CLIENT, 0), at = address(SERVER, PORT),
			   nobody = address("10.9.9.9", PORT);
	struct rdma_addrinfo listen = {.ai_flags = RAI_PASSIVE,
				       .ai_qp_type = IBV_QPT_RC,
				       .ai_port_space = RDMA_PS_TCP,
				       .ai_src_addr = (struct sockaddr *)&at,
				       .ai_src_len = sizeof(at)};
	struct rdma_addrinfo ask = {.ai_qp_type = IBV_QPT_UC,
				    .ai_port_space = RDMA_PS_TCP,
				    .ai_src_addr = (struct sockaddr *)&from,
				    .ai_src_len = sizeof(from),
				    .ai_dst_addr = (struct sockaddr *)&at,
				    .ai_dst_len = sizeof(at)};
	struct ibv_qp_init_attr a = plain();
	struct rdma_cm_id *id, *other;
	int fds;

	FAILS(rdma_create_ep(&id, NULL, NULL, &a), EINVAL);
	FAILS(rdma_create_ep(NULL, &ask, NULL, &a), EINVAL);
	FAILS(rdma_create_ep(&id, &ask, NULL, &a), EOPNOTSUPP); /* UC */
	fds = descriptors();					/* the devices stay open */
	ask.ai_qp_type = IBV_QPT_UD;
	FAILS(rdma_create_ep(&id, &ask, NULL, &a), EINVAL); /* UD in the space of connections */
	ask.ai_qp_type = IBV_QPT_RC;
	ask.ai_port_space = 0;
	FAILS(rdma_create_ep(&id, &ask, NULL, &a), EINVAL);
	ask.ai_port_space = RDMA_PS_TCP;
	a.cap.max_send_wr = 1u << 30;
	CHECK(rdma_create_ep(&id, &ask, NULL, &a) == -1); /* more than the device has */
	a = plain();
	ask.ai_dst_addr = NULL;
	FAILS(rdma_create_ep(&id, &ask, NULL, &a), EINVAL);
	EQUAL(rdma_create_ep(&id, &listen, NULL, &a), 0);
	FAILS(rdma_create_ep(&other, &listen, NULL, &a), EADDRINUSE);
	rdma_destroy_ep(id);
	listen.ai_src_addr = (struct sockaddr *)&nobody;
	FAILS(rdma_create_ep(&id, &listen, NULL, &a), ENODEV);
	listen.ai_src_addr = NULL;
	FAILS(rdma_create_ep(&id, &listen, NULL, &a), EINVAL);
	listen.ai_src_addr = (struct sockaddr *)&at;
	EQUAL(rdma_create_ep(&id, &listen, NULL, NULL), 0); /* without queue pairs */
	rdma_destroy_ep(id);
	EQUAL(descriptors(), fds);
}
