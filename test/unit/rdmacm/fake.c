/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake.h"

#include "attach/stop.h"

#include <urnic/attach.h>

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 64 };

struct fake fake;
static struct verbs_context vctx;
static struct ibv_device device;
static struct ibv_device *list[] = {&device, NULL};
static struct ibv_pd pd;
static struct {
	int fd;
	uint32_t n;
	struct urn_abi_cm_event ev[EVENTS];
} end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct ibv_device **
ibv_get_device_list(int *n)
{
	*n = 1;
	return list;
}

void
ibv_free_device_list(struct ibv_device **l)
{
	(void)l;
}

static int
query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a, size_t size)
{
	(void)c, (void)port;
	memset(a, 0, size);
	a->active_mtu = IBV_MTU_1024;
	a->gid_tbl_len = 2;
	return 0;
}

struct ibv_context *
ibv_open_device(struct ibv_device *d)
{
	vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	vctx.sz = sizeof(vctx);
	vctx.query_port = query_port;
	vctx.context.device = d;
	return &vctx.context;
}

int
ibv_close_device(struct ibv_context *c)
{
	(void)c;
	return 0;
}

int
ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	memset(a, 0, sizeof(*a));
	a->max_qp_rd_atom = 16;
	a->max_qp_init_rd_atom = 8;
	return 0;
}

#undef ibv_query_port
int
ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *a)
{
	(void)c, (void)port, (void)a;
	return EINVAL;
}

/* Entry 0 is a link-local address, entry 1 the IPv4 address. */
int
ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	(void)c, (void)port;
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = index == 0 ? 0xfe : 0;
	gid->raw[1] = index == 0 ? 0x80 : 0;
	if (index == 1) {
		gid->raw[10] = gid->raw[11] = 0xff;
		inet_pton(AF_INET, FAKE_OWN, gid->raw + 12);
	}
	return 0;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *c)
{
	pd.context = c;
	return &pd;
}

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *c)
{
	(void)c;
	return calloc(1, sizeof(struct ibv_comp_channel));
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	free(c);
	return 0;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *c, int cqe, void *context, struct ibv_comp_channel *ch, int vec)
{
	(void)c, (void)cqe, (void)context, (void)ch, (void)vec;
	return calloc(1, sizeof(struct ibv_cq));
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *p, struct ibv_srq_init_attr *a)
{
	(void)p, (void)a;
	return calloc(1, sizeof(struct ibv_srq));
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	free(srq);
	return 0;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *a)
{
	struct ibv_qp *qp = calloc(1, sizeof(*qp));

	qp->context = p->context;
	qp->pd = p;
	qp->qp_num = 77;
	qp->qp_type = a->qp_type;
	return qp;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	(void)mask;
	qp->state = a->qp_state;
	fake.qps_error += a->qp_state == IBV_QPS_ERR;
	return 0;
}

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (qp->qp_type != IBV_QPT_UD || lid != 0)
		return EINVAL;
	if (fake.attach_fails != 0)
		return fake.attach_fails;
	fake.group = *gid;
	fake.attached++;
	return 0;
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (qp->qp_type != IBV_QPT_UD || lid != 0 || memcmp(&fake.group, gid, 16) != 0)
		return EINVAL;
	fake.attached--;
	return 0;
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	free(qp);
	return 0;
}

int
urn_cm_qp_ready(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
		const struct ibv_qp_attr *rts, int rts_mask)
{
	(void)rtr, (void)rtr_mask, (void)rts, (void)rts_mask;
	qp->state = IBV_QPS_RTS;
	fake.qps_up++;
	return 0;
}

/* ---- calls that no test makes; sockets that move data would */

#undef ibv_reg_mr
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *p, void *addr, size_t length, int access)
{
	(void)p, (void)addr, (void)length, (void)access;
	abort();
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	abort();
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *p, struct ibv_ah_attr *a)
{
	(void)p, (void)a;
	abort();
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	abort();
}

int
ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **context)
{
	(void)c, (void)cq, (void)context;
	abort();
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq, (void)n;
	abort();
}

void *
urn_alloc(size_t bytes)
{
	return malloc(bytes);
}

void
urn_free(void *p)
{
	free(p);
}

/* ---- the end */

static int
failed(void)
{
	int err = fake.fails;

	fake.fails = 0;
	return err;
}

int
urn_cm_end_open(struct urn_cm_end **out, struct ibv_context *ctx)
{
	(void)ctx;
	end.fd = eventfd(0, EFD_NONBLOCK);
	*out = (struct urn_cm_end *)&end;
	return 0;
}

int
urn_cm_end_fd(const struct urn_cm_end *c)
{
	(void)c;
	return end.fd;
}

int
urn_cm_end_listen(struct urn_cm_end *c, uint64_t service, uint64_t cookie, uint32_t backlog,
		  uint32_t *id)
{
	(void)c, (void)service, (void)cookie, (void)backlog;
	fake.listens++;
	*id = fake.listener = ++fake.id;
	return failed();
}

int
urn_cm_end_connect(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	(void)c;
	fake.connects++;
	fake.connect = *p;
	*id = ++fake.id;
	return failed();
}

int
urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_cm_end_connect(c, p, id);
}

int
urn_cm_end_accept(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_accept *p)
{
	(void)c, (void)id;
	fake.accepts++;
	fake.accept = *p;
	return failed();
}

int
urn_cm_end_reject(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_reject *p)
{
	(void)c, (void)id, (void)p;
	fake.rejects++;
	return failed();
}

int
urn_cm_end_establish(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len)
{
	(void)c, (void)id, (void)data, (void)len;
	fake.establishes++;
	return failed();
}

int
urn_cm_end_disconnect(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len)
{
	(void)c, (void)id, (void)data, (void)len;
	fake.disconnects++;
	return failed();
}

int
urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id)
{
	(void)c;
	fake.destroys++;
	fake.destroyed = id;
	return 0;
}

int
urn_cm_end_event(struct urn_cm_end *c, struct urn_abi_cm_event *ev)
{
	uint64_t count;
	int err = EAGAIN;

	(void)c;
	pthread_mutex_lock(&lock);
	if (end.n != 0) {
		*ev = end.ev[0];
		memmove(&end.ev[0], &end.ev[1], --end.n * sizeof(end.ev[0]));
		err = 0;
	} else if (read(end.fd, &count, sizeof(count)) < 0) {
		err = EAGAIN; /* nothing was counted */
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- the peer */

void
fake_event(const struct urn_abi_cm_event *ev)
{
	uint64_t one = 1;

	pthread_mutex_lock(&lock);
	if (end.n < EVENTS)
		end.ev[end.n++] = *ev;
	if (write(end.fd, &one, sizeof(one)) < 0)
		abort();
	pthread_mutex_unlock(&lock);
	fake_settle();
}

void
fake_settle(void)
{
	struct pollfd p = {.fd = end.fd, .events = POLLIN};

	/* The count goes when an event was asked for in vain: all that came are handled. */
	while (poll(&p, 1, 0) > 0)
		usleep(100);
	pthread_mutex_lock(&urn_cma_lock);
	pthread_mutex_unlock(&urn_cma_lock);
}

uint32_t
fake_request(enum urn_cm_event_type type)
{
	struct urn_abi_cm_event ev = {
		.type = type,
		.qpn = 9,
		.psn = 5,
		.responder_resources = 3,
		.initiator_depth = 4,
		.retry_count = 6,
		.rnr_retry = 5,
		.mtu = IBV_MTU_1024,
		.data_len = type == URN_CM_EVENT_REQUEST ? URN_CM_REQ_DATA : URN_CM_SIDR_REQ_DATA};
	struct urn_cm_ip ip = {.version = 4, .port = 40000};

	ev.id = ++fake.id;
	ev.listen_id = fake.listener;
	ev.gid[10] = ev.gid[11] = ev.own_gid[10] = ev.own_gid[11] = 0xff;
	inet_pton(AF_INET, FAKE_PEER, ev.gid + 12);
	inet_pton(AF_INET, FAKE_OWN, ev.own_gid + 12);
	memcpy(ip.src, ev.gid, 16);
	memcpy(ip.dst, ev.own_gid, 16);
	urn_cm_ip_write(ev.data, &ip);
	memcpy(ev.data + URN_CM_IP_BYTES, "hello", 6);
	fake_event(&ev);
	return ev.id;
}

/* Threads of the library block all signals here. */
void
urn_stop_mask(sigset_t *set)
{
	sigfillset(set);
}
