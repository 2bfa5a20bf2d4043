/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits: of a client, of its user, and of what the dataplane's process has only once. A
 * client that reaches one is told which; objects that are given back can be had again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"
#include <urnic/cm.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rig rig;

static int
setup(void **state)
{
	const struct rig_config cfg = {.remote = true};

	rig_open(&rig, &cfg, NULL);
	*state = &rig;
	return 0;
}

static int
teardown(void **state)
{
	rig_close(*state);
	return 0;
}

/* So many objects of a kind and no more, by a client and by its user; objects given back can be had again. */
static void
test_quotas(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	struct ibv_context *a, *b;
	struct ibv_pd *pd;
	struct ibv_cq *cq[3];
	struct ibv_mr *mr;
	static uint8_t buf[8192];

	rig_close(r);
	/* The rig's own two clients have a CQ, a QP and RIG_BUF bytes each. */
	tight.per_client.max[URN_QUOTA_CQ] = 2;
	tight.per_client.max[URN_QUOTA_PINNED] = RIG_BUF;
	tight.per_uid.max[URN_QUOTA_CQ] = 5;
	tight.per_uid.max[URN_QUOTA_MR] = 3;
	tight.clients_per_uid = 4;
	rig_open(r, &tight, NULL);
	a = rig_attach(r, 0);
	b = rig_attach(r, 0);
	assert_null(urn_attach_connect(r->path, "a")); /* a fifth client of this user */
	for (int i = 0; i < 2; i++)
		assert_non_null(cq[i] = ibv_create_cq(a, 16, NULL, NULL, 0));
	assert_null(ibv_create_cq(a, 16, NULL, NULL, 0));
	assert_int_equal(errno, EDQUOT);
	assert_non_null(strstr(urn_attach_error(), "a program may have at most 2 completion queues"));
	assert_non_null(cq[2] = ibv_create_cq(b, 16, NULL, NULL, 0));
	assert_null(ibv_create_cq(b, 16, NULL, NULL, 0));
	assert_non_null(strstr(urn_attach_error(), "a user may have at most 5 completion queues"));
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
	assert_non_null(cq[0] = ibv_create_cq(b, 16, NULL, NULL, 0));
	pd = ibv_alloc_pd(b);
	assert_null(ibv_reg_mr(pd, r->end[0].buf, RIG_BUF + 1, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EDQUOT);
	assert_non_null(mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE));
	assert_null(ibv_reg_mr(pd, buf, 1, IBV_ACCESS_LOCAL_WRITE)); /* a fourth region of this user */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* A client that goes leaves its share to the user's other clients. */
	assert_non_null(mr = ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(ibv_close_device(b), 0);
	free(mr); /* the library's part of an object that went with the connection */
	free(pd);
	free(cq[0]);
	free(cq[2]);
	assert_int_equal(hostile_clients(r, 3), 3);
	b = rig_attach(r, 0);
	pd = ibv_alloc_pd(b);
	assert_non_null(mr = ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_destroy_cq(cq[1]), 0);
	assert_int_equal(ibv_close_device(a), 0);
	assert_int_equal(ibv_close_device(b), 0);
	hostile_others_go_on(r);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* ---- by hand */

static int
opened(const struct rig *r, unsigned int adapter)
{
	int fd = hostile_dial(r);

	hostile_hello(fd);
	assert_int_equal(hostile_open(fd, r->dp->adapter[adapter]->cfg.name, NULL, 0).err, 0);
	return fd;
}

/* Share the beginning of a new memfd. returns: the reply's errno value */
static int
share(int sock, uint64_t size, uint64_t length)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);

	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = 4096;
	q.call.share.length = length;
	hostile_post(sock, &q, q.head.bytes, &fd, 1);
	close(fd);
	return hostile_take(sock).call.err;
}

static int
unshare_piece(int sock, uint32_t handle)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = URN_CTL_UNSHARE;
	q.call.handle = handle;
	return hostile_ask(sock, &q).call.err;
}

/* Memory that is shared and not registered. */
static void
test_shared(void **state)
{
	enum { M64 = 64 << 20 };
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	int x, y;

	rig_close(r);
	/* The rig's own two clients share a piece each. */
	tight.per_client.max[URN_QUOTA_SHARE] = 3;
	tight.per_client.max[URN_QUOTA_SHARED] = M64;
	tight.per_uid.max[URN_QUOTA_SHARE] = 6;
	rig_open(r, &tight, NULL);
	x = opened(r, 0);
	y = opened(r, 1);
	assert_int_equal(share(x, 2 * M64, M64 + 1), EDQUOT); /* limit of bytes */
	assert_int_equal(share(x, 2 * M64, 0), EINVAL);       /* costs nothing */
	for (int i = 0; i < 3; i++)
		assert_int_equal(share(x, 2 * M64, 4096), 0);
	assert_int_equal(share(x, 2 * M64, 4096), EDQUOT); /* limit of pieces */
	assert_int_equal(share(y, 2 * M64, 4096), 0);
	assert_int_equal(share(y, 2 * M64, 4096), EDQUOT); /* ... of the user */
	assert_int_equal(unshare_piece(x, 77), EINVAL);
	assert_int_equal(unshare_piece(x, 2), 0);
	assert_int_equal(share(y, 2 * M64, 4096), 0);
	close(x);
	assert_int_equal(hostile_clients(r, 3), 3);
	assert_int_equal(share(y, 2 * M64, M64 - 8191), EDQUOT);
	assert_int_equal(share(y, 2 * M64, M64 - 8192), 0);
	close(y);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_others_go_on(r);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* ---- areas */

/* So many bytes of areas, by a program and by its user; a client that goes gives them back. */
static void
test_areas(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	uint64_t area = r->dp->adapter[0]->cfg.area_size;
	struct urn_sock_answer a;
	struct ibv_context *ctx;
	int fd;

	rig_close(r);
	tight.per_client.max[URN_QUOTA_AREA] = area;
	tight.per_uid.max[URN_QUOTA_AREA] = 4 * area - 1; /* two are the rig's own */
	rig_open(r, &tight, NULL);
	ctx = rig_attach(r, 0);
	fd = hostile_dial(r);
	hostile_hello(fd);
	for (int i = 0; i < 100; i++) { /* a call that fails costs nothing */
		a = hostile_open(fd, r->dp->adapter[1]->cfg.name, NULL, 0);
		assert_int_equal(a.err, EDQUOT);
		assert_non_null(strstr(a.why, "a user may have at most"));
		assert_non_null(strstr(a.why, "bytes of areas for queues"));
	}
	assert_null(urn_attach_connect(r->path, "a"));
	assert_int_equal(errno, EDQUOT);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(hostile_clients(r, 3), 3);
	assert_int_equal(hostile_open(fd, r->dp->adapter[1]->cfg.name, NULL, 0).err, 0);
	close(fd);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_others_go_on(r);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

static _Atomic bool watch_clears;
static _Atomic int cleared_open, cleared_locked; /* large pieces cleared, by whether others had to wait */

int __real_urn_area_alloc(struct urn_area *a, uint64_t bytes, uint64_t *off);
int __wrap_urn_area_alloc(struct urn_area *a, uint64_t bytes, uint64_t *off);

int
__wrap_urn_area_alloc(struct urn_area *a, uint64_t bytes, uint64_t *off)
{
	struct urn_client *c = (void *)((char *)a - offsetof(struct urn_client, area));

	if (watch_clears && bytes >= 1 << 20) {
		/* Only the call that clears could hold the adapter's lock. */
		if (pthread_mutex_trylock(&c->adapter->lock) == 0) {
			pthread_mutex_unlock(&c->adapter->lock);
			cleared_open++;
		} else {
			cleared_locked++;
		}
	}
	return __real_urn_area_alloc(a, bytes, off);
}

/* Memory that is given back is cleared while others make their calls, for every kind of object. */
static void
test_clears_in_the_open(void **state)
{
	struct ibv_qp_init_attr qa = {.qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 16384, .max_recv_wr = 16384,
					      .max_send_sge = 8, .max_recv_sge = 8}};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 16384, .max_sge = 8}};
	struct rig *r = *state;
	struct ibv_context *ctx = rig_attach(r, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	for (int again = 0; again < 2; again++) {
		cleared_open = cleared_locked = 0;
		watch_clears = again; /* the first time all memory is fresh */
		assert_non_null(cq = ibv_create_cq(ctx, 65536, NULL, NULL, 0));
		assert_non_null(srq = ibv_create_srq(pd, &sa));
		qa.send_cq = qa.recv_cq = cq;
		assert_non_null(qp = ibv_create_qp(pd, &qa));
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_destroy_srq(srq), 0);
		assert_int_equal(ibv_resize_cq(cq, 131072), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	watch_clears = false;
	assert_int_equal(cleared_locked, 0);
	assert_int_equal(cleared_open, 5); /* both queues of the QP */
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	hostile_others_go_on(r);
}

/* ---- channels, descriptors */

static void
test_channels(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	struct ibv_comp_channel *ch[3];
	struct ibv_context *a, *b;
	struct urn_cm_end *cm;

	rig_close(r);
	tight.per_client.max[URN_QUOTA_CHANNEL] = 2;
	tight.per_uid.max[URN_QUOTA_CHANNEL] = 3;
	rig_open(r, &tight, NULL);
	a = rig_attach(r, 0);
	b = rig_attach(r, 1);
	for (int i = 0; i < 4; i++) { /* channels that the program closed do not count */
		assert_int_equal(urn_cm_end_open(&cm, a), 0);
		urn_cm_end_close(cm);
	}
	for (int i = 0; i < 2; i++)
		assert_non_null(ch[i] = ibv_create_comp_channel(a));
	assert_null(ibv_create_comp_channel(a));
	assert_int_equal(errno, EDQUOT);
	assert_non_null(strstr(urn_attach_error(), "a program may have at most 2 completion channels"));
	assert_non_null(ch[2] = ibv_create_comp_channel(b));
	assert_null(ibv_create_comp_channel(b));
	assert_non_null(strstr(urn_attach_error(), "a user may have at most 3 completion channels"));
	assert_int_equal(ibv_destroy_comp_channel(ch[0]), 0);
	assert_non_null(ch[0] = ibv_create_comp_channel(b));
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_comp_channel(ch[i]), 0);
	for (int i = 0; i < 2; i++) { /* nor do their descriptors */
		assert_int_equal(
			LIST_FIRST(&r->dp->adapter[i]->clients)->quota.used[URN_QUOTA_CHANNEL], 0);
		assert_int_equal(LIST_FIRST(&r->dp->adapter[i]->clients)->quota.used[URN_QUOTA_FD],
				 0);
	}
	assert_int_equal(ibv_close_device(a), 0);
	assert_int_equal(ibv_close_device(b), 0);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

static struct urn_abi_rep
channel_by_hand(int sock)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);

	q.call.op = URN_CTL_CREATE_CHANNEL; /* the channel's two ends come along, and find no room to be kept */
	return hostile_ask(sock, &q).call;
}

/* Programs are refused before the last descriptor is gone, and those that are attached go on. */
static void
test_descriptors(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg;
	struct rlimit was, few;
	unsigned int n = 0, used = 0;
	struct ibv_context *ctx;
	struct urn_abi_rep rep;
	int fd;

	rig_close(r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (int i = 0; i < 4096; i++)
		used += fcntl(i, F_GETFD) >= 0;
	few = was;
	few.rlim_cur = used + 240; /* the dataplane is in this process */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rig_open(r, &cfg, NULL);
	fd = opened(r, 0);
	while ((rep = channel_by_hand(fd)).err == 0 && n < 1000)
		n++;
	assert_int_equal(rep.err, EMFILE);
	assert_non_null(strstr(rep.why, "all programs together may have at most"));
	assert_in_range(n, 20, 239);
	ctx = urn_attach_connect(r->path, "a");
	assert_null(ctx);
	assert_int_equal(errno, EMFILE);
	assert_non_null(strstr(urn_attach_error(), "descriptors"));
	hostile_others_go_on(r);
	close(fd);
	assert_int_equal(hostile_clients(r, 2), 2);
	ctx = rig_attach(r, 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	hostile_others_go_on(r);
	rig_close(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	rig_open(r, &cfg, NULL);
}

/*
 * Where users share a dataplane, one of them gets half of its descriptors, be it by channels, by
 * connections, or by both.
 */
static void
test_half_descriptors(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, shared = r->cfg;
	struct rlimit was, few;
	unsigned int n = 0, used = 0;
	struct urn_abi_rep rep;
	int fd;

	rig_close(r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (int i = 0; i < 4096; i++)
		used += fcntl(i, F_GETFD) >= 0;
	few = was;
	few.rlim_cur = used + 240;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	shared.shared = true;
	rig_open(r, &shared, NULL);
	fd = opened(r, 0);
	while ((rep = channel_by_hand(fd)).err == 0 && n < 1000)
		n++;
	assert_int_equal(rep.err, EDQUOT);
	assert_non_null(strstr(rep.why, "a user may have at most"));
	assert_non_null(strstr(rep.why, "descriptors"));
	assert_in_range(n, 10, 119);
	assert_int_equal(hostile_attach_many(r), 0);
	hostile_others_go_on(r);
	close(fd);
	assert_int_equal(hostile_clients(r, 2), 2);
	/* A program counts with 16, two of them for the engine, and two of the user's are attached.
	 */
	assert_in_range(hostile_attach_many(r), 1, (240 - 64) / 2 / 16 - 2);
	rig_close(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	rig_open(r, &cfg, NULL);
}

/* ---- means that the process has used up */

static _Atomic int no_threads; /* further threads that can't be made */
static _Atomic int no_eventfds;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __real_eventfd(unsigned int count, int flags);
int __wrap_eventfd(unsigned int count, int flags);

int
__wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	return no_threads > 0 && no_threads-- > 0 ? EAGAIN : __real_pthread_create(t, a, fn, arg);
}

/* An adapter whose list nobody may find half a client in; the thread that makes one has its lock. */
static struct urn_adapter *_Atomic watched;
static _Atomic int looked, halves;

static bool
is_whole(const struct urn_client *c)
{
	bool doorbells = true;

	for (uint32_t v = 0; v < c->adapter->vectors; v++)
		doorbells = doorbells && urn_client_shard(c, v) && c->wake_fd[v] >= 0;
	return doorbells && c->id && c->remote && c->pid == getpid() && c->uid == getuid() &&
	       atomic_load(&c->conn_fd) >= 0 && c->quota.account &&
	       c->quota.limits.max[URN_QUOTA_QP] && c->quota.used[URN_QUOTA_AREA] == c->area.size;
}

int
__wrap_eventfd(unsigned int count, int flags)
{
	const struct urn_adapter *a = watched;

	for (const struct urn_client *c = a ? LIST_FIRST(&a->clients) : NULL; c;
	     c = LIST_NEXT(c, link))
		halves += !is_whole(c);
	looked += a != NULL;
	if (no_eventfds > 0 && no_eventfds-- > 0) {
		errno = EMFILE;
		return -1;
	}
	return __real_eventfd(count, flags);
}

/* A client without its thread is told so, and counts no longer: not as a program, nor by its descriptors. */
static void
test_threads(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	struct ibv_context *ctx, *other;

	rig_close(r);
	tight.clients_per_uid = 4; /* two are the rig's own */
	rig_open(r, &tight, NULL);
	for (int i = 0; i < 8; i++) {
		no_threads = 1;
		assert_null(urn_attach_connect(r->path, "a"));
		assert_int_equal(errno, EAGAIN);
		assert_non_null(strstr(urn_attach_error(), "no thread for a program more"));
		assert_int_equal(hostile_clients(r, 2), 2);
	}
	ctx = rig_attach(r, 0);
	no_threads = 1;
	assert_null(urn_attach_connect(r->path, "a"));
	other = rig_attach(r, 1);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(ibv_close_device(other), 0);
	hostile_others_go_on(r);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* A client is in the list once it is complete, and not before. */
static void
test_whole(void **state)
{
	struct rig *r = *state;
	struct urn_adapter *a = r->dp->adapter[0];
	struct ibv_context *ctx[4];

	looked = halves = 0;
	watched = a;
	for (int i = 0; i < 4; i++)
		ctx[i] = rig_attach(r, 0);
	watched = NULL;
	assert_true(looked >= 4);
	assert_int_equal(halves, 0);
	pthread_mutex_lock(&a->lock);
	for (const struct urn_client *c = LIST_FIRST(&a->clients); c; c = LIST_NEXT(c, link)) {
		assert_true(is_whole(c));
		assert_true(!LIST_NEXT(c, link) || c->id > LIST_NEXT(c, link)->id);
	}
	pthread_mutex_unlock(&a->lock);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ibv_close_device(ctx[i]), 0);
	assert_int_equal(hostile_clients(r, 2), 2);
}

/* A program whose client can't be made may try again and again: no descriptors stay with it. */
static void
test_opens_in_vain(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg;
	struct rlimit was, few;
	struct ibv_context *ctx;
	unsigned int used = 0;
	int fd;

	rig_close(r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (int i = 0; i < 4096; i++)
		used += fcntl(i, F_GETFD) >= 0;
	few = was;
	few.rlim_cur = used + 240;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rig_open(r, &cfg, NULL);
	fd = hostile_dial(r);
	hostile_hello(fd);
	for (int i = 0; i < 100; i++) {
		no_eventfds = 1;
		assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, ENOMEM);
	}
	ctx = rig_attach(r, 0);
	assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	close(fd);
	assert_int_equal(hostile_clients(r, 2), 2);
	rig_close(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	rig_open(r, &cfg, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_half_descriptors),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_opens_in_vain),
		cmocka_unit_test(test_areas),
		cmocka_unit_test(test_clears_in_the_open),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests_name("quotas", tests, setup, teardown);
}
