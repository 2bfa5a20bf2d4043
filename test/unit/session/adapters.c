/* SPDX-License-Identifier: BSD-3-Clause */
#include "adapters.h"

#include "attach/remote.h"
#include "verbs/adapter/adapter.h"
#include "verbs/front.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 40000, REQUESTS = 4096, ENTRIES = 1 << 16, KEY_SHIFT = 8 };

/* A context of an adapter. */
struct below {
	struct adapters_one *of;
	uint32_t life;
	LIST_ENTRY(below) link; /* open ones; `lock` protects it */
	struct urn_verbs_ctx front;
};

struct below_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
};

struct below_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
};

struct adapters_one adapters[URN_SV_ADAPTERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, below) open_ones;

static struct below *
below_of(struct ibv_context *c)
{
	return (struct below *)((uint8_t *)c - offsetof(struct below, front.vctx.context));
}

/* returns: 0; EIO with errno and its text: the adapter was lost since the context was opened */
static int
there(struct ibv_context *c)
{
	const struct below *b = below_of(c);

	if (b->life == atomic_load(&b->of->life))
		return 0;
	errno = urn_fail(EIO, "the test has taken the adapter away");
	return EIO;
}

struct adapters_one *
adapters_of(struct ibv_context *c)
{
	return below_of(c)->of;
}

void *
adapters_object(struct ibv_context *c, size_t bytes)
{
	return there(c) == 0 ? urn_object_alloc(bytes) : NULL;
}

/* ---- the device */

static struct urn_verbs_ctx *
fake_open(void *arg)
{
	struct below *b = urn_object_alloc(sizeof(*b));

	assert_non_null(b);
	b->of = arg;
	b->life = atomic_load(&b->of->life);
	b->front.gids = 1;
	b->front.max_cqe = ENTRIES;
	b->front.id.name[0] = b->of == adapters ? 'p' : 's';
	b->front.vctx.context.num_comp_vectors = 1;
	b->front.vctx.context.async_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(b->front.vctx.context.async_fd >= 0);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&open_ones, b, link);
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&b->of->opened, 1);
	return &b->front;
}

static void
fake_close(struct ibv_context *c)
{
	struct below *b = below_of(c);
	void (*closes)(void) = atomic_load(&b->of->closes);

	if (closes != NULL && b->life == atomic_load(&b->of->life))
		closes();
	pthread_mutex_lock(&lock);
	LIST_REMOVE(b, link);
	pthread_mutex_unlock(&lock);
	atomic_fetch_sub(&b->of->opened, 1);
	close(c->async_fd);
	free(b);
}

static int
query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr)
{
	attr->orig_attr.max_qp_wr = REQUESTS;
	attr->orig_attr.max_sge = URN_SV_SGES;
	attr->orig_attr.max_sge_rd = URN_SV_SGES;
	attr->orig_attr.max_srq_wr = REQUESTS;
	attr->orig_attr.max_srq_sge = URN_SV_SGES;
	attr->orig_attr.max_mw = REQUESTS;
	attr->orig_attr.device_cap_flags = ADAPTERS_WINDOWS;
	attr->device_cap_flags_ex = ADAPTERS_WINDOWS;
	return there(c);
}

static int
query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	attr->gid_tbl_len = 1;
	return there(c);
}

static int
query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[15] = below_of(c)->of == adapters ? 1 : 2;
	return index == 0 ? there(c) : ENODATA;
}

static int
get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	(void)event;
	errno = there(c) != 0 ? EIO : EAGAIN;
	return -1;
}

/* ---- memory and addresses */

static struct ibv_pd *
alloc_pd(struct ibv_context *c)
{
	return adapters_object(c, sizeof(struct ibv_pd));
}

static int
dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

static struct ibv_mr *
reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct adapters_one *of = below_of(pd->context)->of;
	struct ibv_mr *mr;

	(void)length, (void)iova, (void)access;
	atomic_fetch_add(&of->tried, 1);
	if (addr == atomic_load(&of->refused)) {
		errno = atomic_load(&of->refusal);
		errno = urn_fail(errno != 0 ? errno : ENOMEM, "the test refuses this memory");
		return NULL;
	}
	mr = adapters_object(pd->context, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	mr->lkey = mr->rkey = (atomic_fetch_add(&of->keys, 1) + 1) << KEY_SHIFT;
	atomic_fetch_add(&of->regions, 1);
	return mr;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	struct adapters_one *of = below_of(mr->context)->of;
	void (*asked)(void) = atomic_load(&of->asked);

	if (asked != NULL)
		asked();
	if (atomic_load(&of->busy))
		return urn_fail(EBUSY, "the test keeps the region");
	atomic_fetch_sub(&of->regions, 1);
	return 0;
}

static struct ibv_ah *
create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	(void)attr;
	return adapters_object(pd->context, sizeof(struct ibv_ah));
}

static int
destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return 0;
}

/* ---- completions */

static struct ibv_comp_channel *
create_channel(struct ibv_context *c)
{
	struct ibv_comp_channel *ch;

	if (atomic_load(&below_of(c)->of->useless)) {
		errno = urn_fail(ENOMEM, "the test refuses channels");
		return NULL;
	}
	ch = adapters_object(c, sizeof(*ch));
	if (ch != NULL)
		ch->fd = eventfd(0, EFD_CLOEXEC);
	return ch;
}

static int
destroy_channel(struct ibv_comp_channel *ch)
{
	return close(ch->fd);
}

static int
get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq)
{
	(void)ch, (void)cq;
	errno = EAGAIN;
	return -1;
}

static struct ibv_cq_ex *
create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct below_cq *cq = adapters_object(c, sizeof(*cq));

	if (cq == NULL)
		return NULL;
	cq->ibv.cqe = (int)attr->cqe;
	return &cq->ex;
}

static int
resize_cq(struct ibv_cq *cq, uint32_t cqe)
{
	cq->cqe = (int)cqe;
	return there(cq->context);
}

static int
destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return 0;
}

/* ---- queues */

static struct ibv_srq *
create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	(void)attr, (void)cq;
	return adapters_object(pd->context, sizeof(struct ibv_srq));
}

static int
destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	return 0;
}

static struct ibv_qp *
create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct below_qp *qp = adapters_object(attr->pd->context, sizeof(*qp));

	if (qp == NULL)
		return NULL;
	qp->ibv.qp_num = atomic_fetch_add(&below_of(attr->pd->context)->of->numbers, 1) + 1;
	return &qp->ibv;
}

static int
modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)attr, (void)mask;
	return there(qp->context);
}

static int
destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

static int
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return there(qp->context);
}

static int
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return there(qp->context);
}

static int
post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return there(srq->context);
}

static int
poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq, (void)n, (void)wc;
	return 0;
}

static int
req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)solicited_only;
	return there(cq->context);
}

static const struct urn_verbs_ops fake_ops = {
	.open = fake_open,
	.close = fake_close,
	.query_device = query_device,
	.query_port = query_port,
	.query_gid = query_gid,
	.get_async_event = get_async_event,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.reg_mr = reg_mr,
	.dereg_mr = dereg_mr,
	.create_ah = create_ah,
	.destroy_ah = destroy_ah,
	.create_comp_channel = create_channel,
	.destroy_comp_channel = destroy_channel,
	.get_cq_event = get_cq_event,
	.create_cq = create_cq,
	.resize_cq = resize_cq,
	.destroy_cq = destroy_cq,
	.create_srq = create_srq,
	.destroy_srq = destroy_srq,
	.create_qp = create_qp,
	.modify_qp = modify_qp,
	.destroy_qp = destroy_qp,
	.post_send = post_send,
	.post_recv = post_recv,
	.post_srq_recv = post_srq_recv,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.cm = &adapters_cm,
};

/* ---- attaching, as the test has it */

struct urn_abi_channel *__wrap_urn_remote_attach(const char *path, const char *node);
void __wrap_urn_remote_bound(struct urn_abi_channel *channel, uint32_t ms);
int __wrap_urn_dev_need(const struct urn_dev *dev, uint32_t feature);
struct ibv_context *__real_urn_verbs_open(const struct urn_verbs_ops *ops, void *arg);
struct ibv_context *__wrap_urn_verbs_open(const struct urn_verbs_ops *ops, void *arg);

struct urn_abi_channel *
__wrap_urn_remote_attach(const char *path, const char *node)
{
	struct adapters_one *a = &adapters[strcmp(node, "s") == 0];

	(void)path;
	if (atomic_load(&a->there))
		return (struct urn_abi_channel *)(void *)a;
	errno = urn_fail(ECONNREFUSED, "the test has taken the adapter away");
	return NULL;
}

void
__wrap_urn_remote_bound(struct urn_abi_channel *channel, uint32_t ms)
{
	(void)channel, (void)ms;
}

int
__wrap_urn_dev_need(const struct urn_dev *dev, uint32_t feature)
{
	(void)dev, (void)feature;
	return 0;
}

struct ibv_context *
__wrap_urn_verbs_open(const struct urn_verbs_ops *ops, void *arg)
{
	return __real_urn_verbs_open(ops == &urn_adapter_ops ? &fake_ops : ops, arg);
}

/* ---- for tests */

int
adapters_setup(void **state)
{
	struct ibv_context *c;
	void *made;

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		memset(&adapters[i], 0, sizeof(adapters[i]));
		atomic_store(&adapters[i].there, true);
	}
	setenv("URNIC_SESSION", "/none/of/p:p,/none/of/s:s", 1);
	setenv("URNIC_SESSION_PROBE", "10", 1);
	made = urn_session_ops.make(NULL);
	assert_non_null(made);
	c = urn_verbs_open(&urn_session_ops, made);
	assert_non_null(c);
	*state = c;
	return 0;
}

/* True when no context of any adapter is open. */
static bool
all_closed(void *arg)
{
	(void)arg;
	return atomic_load(&adapters[0].opened) + atomic_load(&adapters[1].opened) == 0;
}

int
adapters_teardown(void **state)
{
	assert_int_equal(ibv_close_device(*state), 0);
	/* A thread that was attaching closes what it has found. */
	adapters_until(all_closed, NULL);
	assert_int_equal(atomic_load(&adapters[0].regions), 0);
	assert_int_equal(atomic_load(&adapters[1].regions), 0);
	return 0;
}

void
adapters_lose(uint32_t adapter)
{
	struct adapters_one *a = &adapters[adapter];
	const uint64_t one = 1;
	struct below *b;

	atomic_store(&a->there, false);
	atomic_fetch_add(&a->life, 1);
	atomic_store(&a->keys, 0);
	atomic_store(&a->numbers, 0);
	atomic_store(&a->ids, 0);
	atomic_store(&a->listens, 0);
	pthread_mutex_lock(&lock);
	LIST_FOREACH(b, &open_ones, link)
		if (b->of == a)
			assert_int_equal(write(b->front.vctx.context.async_fd, &one, sizeof(one)),
					 sizeof(one));
	pthread_mutex_unlock(&lock);
}

void
adapters_back(uint32_t adapter)
{
	atomic_store(&adapters[adapter].there, true);
}

void
adapters_until(bool (*is)(void *arg), void *arg)
{
	const struct timespec step = {.tv_nsec = 1000000};
	uint64_t start = urn_sv_now_ms();

	while (!is(arg)) {
		assert_true(urn_sv_now_ms() - start < PATIENCE_MS);
		nanosleep(&step, NULL);
	}
}

uint32_t
adapters_missing(const struct urn_sv_pd *pd, uint32_t adapter)
{
	struct urn_sv_region *r;
	uint32_t n = 0;

	LIST_FOREACH(r, &pd->regions, link)
		n += urn_sv_mr_of(r)->below[adapter] == NULL;
	return n;
}

bool
adapters_whole(void *arg)
{
	const struct adapters_whole *w = arg;
	struct urn_sv_ctx *ctx = urn_sv_ctx(w->c);
	struct urn_sv_pd *pd;
	bool whole, counted = true;

	urn_sv_lock(ctx);
	whole = !ctx->dead[w->adapter] && ctx->returned[w->adapter] >= w->returned;
	LIST_FOREACH(pd, &ctx->pds, link) {
		for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
			counted = counted && pd->missing[i] == adapters_missing(pd, i);
		whole = whole && urn_sv_pd_whole(pd, w->adapter);
	}
	urn_sv_unlock(ctx);
	assert_true(counted);
	return whole;
}
