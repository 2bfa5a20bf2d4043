/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client whose memory stalls, and other clients of the same adapter. (The
 * verbs_NAME_foreign tests run all the others on foreign memory as well.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "control/ctl.h"
#include "engine/engine.h"
#include "memory/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

enum {
	PAGE = 4096,
	SLOW = 64 * PAGE,
	QPS = 3,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
};

/* A second client on node 1, with memory that a userfaultfd supplies, and does not supply for now. */
struct slow {
	int uffd;
	uint8_t *bytes; /* SLOW bytes */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *far[QPS], *qp[QPS]; /* at node 0, and the client's own */
	_Atomic int dereg;		   /* result of ibv_dereg_mr(); -1: not yet */
};

/* returns: false when the kernel forbids userfaultfd */
static bool
stalling(struct slow *s)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg;

	s->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (s->uffd < 0) {
		print_message("no userfaultfd: %s\n", strerror(errno));
		if (geteuid() == 0)
			fail_msg("root may have one");
		return false;
	}
	assert_int_equal(ioctl(s->uffd, UFFDIO_API, &api), 0);
	s->bytes = mmap(NULL, SLOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(s->bytes != MAP_FAILED);
	reg = (struct uffdio_register){
		{(uintptr_t)s->bytes, SLOW}, UFFDIO_REGISTER_MODE_MISSING, 0};
	assert_int_equal(ioctl(s->uffd, UFFDIO_REGISTER, &reg), 0);
	return true;
}

/* Supply all of the memory, at last. */
static void
supply(struct slow *s)
{
	uint8_t *page = aligned_alloc(PAGE, PAGE);

	memset(page, 0x5a, PAGE);
	for (uint32_t off = 0; off < SLOW; off += PAGE) {
		struct uffdio_copy c = {
			.dst = (uintptr_t)s->bytes + off, .src = (uintptr_t)page, .len = PAGE};

		assert_int_equal(ioctl(s->uffd, UFFDIO_COPY, &c), 0);
	}
	free(page);
}

static void
attach(struct rig *r, struct slow *s)
{
	struct rig_end mine = r->end[1];

	s->ctx = rig_attach(r, 1);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->bytes, SLOW, RIGHTS);
	assert_true(s->pd && s->cq && s->mr);
	atomic_store(&s->dereg, -1);
	for (uint32_t i = 0; i < QPS; i++) {
		struct rig_qp o = {.timeout = 18};

		s->far[i] = rig_make_qp(r, 0, &o);
		r->end[1].cq = s->cq;
		o.pd = s->pd;
		s->qp[i] = rig_make_qp(r, 1, &o);
		r->end[1] = mine;
		rig_connect(r, 0, s->far[i], 100, s->qp[i]->qp_num, 200, &o);
		rig_connect(r, 1, s->qp[i], 200, s->far[i]->qp_num, 100, &o);
	}
}

static void
detach(struct slow *s)
{
	for (uint32_t i = 0; i < QPS; i++) {
		assert_int_equal(ibv_destroy_qp(s->far[i]), 0);
		assert_int_equal(ibv_destroy_qp(s->qp[i]), 0);
	}
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	assert_int_equal(ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(ibv_close_device(s->ctx), 0);
	close(s->uffd);
	munmap(s->bytes, SLOW);
}

/* A WRITE of `len` bytes to the slow client by each of its QPs. */
static void
write_slow(struct rig *r, struct slow *s, uint32_t len)
{
	for (uint32_t i = 0; i < QPS; i++) {
		struct ibv_sge sge = {(uintptr_t)r->end[0].buf, len, r->end[0].mr->lkey};
		struct ibv_send_wr wr = {
			.wr_id = 1000 + i,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {(uintptr_t)s->bytes, s->mr->rkey},
		};

		rig_send_on(s->far[i], &wr);
	}
}

/* The rig's own two clients exchange data, and make control calls. */
static void
others_go_on(struct rig *r)
{
	for (uint32_t i = 0; i < 30; i++) {
		struct ibv_mr *mr;

		rig_fill(r->end[0].buf + 500000, 20000, i);
		rig_post(r, 0, IBV_WR_RDMA_WRITE, 500000, 20000, 500000, 7);
		assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, 7);
		assert_memory_equal(r->end[0].buf + 500000, r->end[1].buf + 500000, 20000);
		mr = ibv_reg_mr(r->end[1].pd, r->end[1].buf, 4096, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

/* Turn until node 1's counter has reached n. */
static void
wait_count(struct rig *r, enum urn_counter id, uint64_t n)
{
	time_t start = time(NULL);

	while (rig_counter(r, 1, id) < n) {
		assert_true(time(NULL) - start < 60);
		rig_turns(r, 100);
	}
}

/* Half a window of each QP, more than one client may have waiting: the rest is dropped, and retried. */
static void
stalled(void **state)
{
	struct slow s = {0};
	struct rig r;

	(void)state;
	if (!stalling(&s))
		skip();
	rig_open(&r, &(struct rig_config){.foreign = true}, &(struct rig_qp){.timeout = 18});
	attach(&r, &s);
	rig_fill(r.end[0].buf, SLOW, 1);
	write_slow(&r, &s, SLOW);
	wait_count(&r, URN_C_DROP_MEMORY, 1);
	others_go_on(&r);
	supply(&s);
	for (uint32_t i = 0; i < QPS; i++)
		rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_memory_equal(s.bytes, r.end[0].buf, SLOW);
	assert_int_equal(rig_counter(&r, 1, URN_C_NO_MBUF), 0);
	assert_int_equal(ibv_dereg_mr(s.mr), 0);
	detach(&s);
	rig_close(&r);
}

/* ---- many protection domains */

enum {
	DOMAINS = 64,
	MOST = 1024,  /* operations at most: half of the packets of one port */
	A_BURST = 32, /* doorbells an engine takes at a time */
};

/* The slow client's domains: each with a QP of its own, and a region of all its memory. */
struct domains {
	struct ibv_pd *pd[DOMAINS];
	struct ibv_mr *mr[DOMAINS];
	struct ibv_qp *far[DOMAINS], *qp[DOMAINS]; /* at node 0, and the client's own */
};

static void
make_domains(struct rig *r, struct slow *s, struct domains *d)
{
	struct rig_end mine = r->end[1];

	s->ctx = rig_attach(r, 1);
	s->cq = ibv_create_cq(s->ctx, 4 * DOMAINS, NULL, NULL, 0);
	for (uint32_t i = 0; i < DOMAINS; i++) {
		struct rig_qp o = {.timeout = -1};

		d->pd[i] = ibv_alloc_pd(s->ctx);
		d->mr[i] = ibv_reg_mr(d->pd[i], s->bytes, SLOW, RIGHTS);
		assert_non_null(d->mr[i]);
		d->far[i] = rig_make_qp(r, 0, &o);
		r->end[1].cq = s->cq;
		o.pd = d->pd[i];
		d->qp[i] = rig_make_qp(r, 1, &o);
		r->end[1] = mine;
		rig_connect(r, 0, d->far[i], 100, d->qp[i]->qp_num, 200, &o);
		rig_connect(r, 1, d->qp[i], 200, d->far[i]->qp_num, 100, &o);
	}
}

static void
drop_domains(struct slow *s, const struct domains *d)
{
	for (uint32_t i = 0; i < DOMAINS; i++) {
		assert_int_equal(ibv_destroy_qp(d->far[i]), 0);
		assert_int_equal(ibv_destroy_qp(d->qp[i]), 0);
		assert_int_equal(ibv_dereg_mr(d->mr[i]), 0);
		assert_int_equal(ibv_dealloc_pd(d->pd[i]), 0);
	}
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	assert_int_equal(ibv_close_device(s->ctx), 0);
	close(s->uffd);
	munmap(s->bytes, SLOW);
}

/* A WRITE of `len` bytes between the slow client's memory and node 0's, in either direction. */
static void
write_by(struct rig *r, struct slow *s, const struct domains *d, uint32_t i, bool out, uint32_t len)
{
	struct ibv_sge far = {(uintptr_t)r->end[0].buf, len, r->end[0].mr->lkey};
	struct ibv_sge slow = {(uintptr_t)s->bytes, len, d->mr[i]->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = out ? &slow : &far, .num_sge = 1};

	wr.wr.rdma.remote_addr = out ? far.addr : slow.addr;
	wr.wr.rdma.rkey = out ? r->end[0].mr->rkey : d->mr[i]->rkey;
	rig_send_on(out ? d->qp[i] : d->far[i], &wr);
}

/* QPs that node 1 looks at in each turn. */
static uint32_t
scheduled(const struct rig *r)
{
	uint32_t n = 0;

	for (uint32_t e = 0; e < r->engines; e++) {
		const struct urn_shard *s = r->dp->adapter[1]->shard[e];

		n += s ? s->tp->sched.n : 0;
	}
	return n;
}

/* Operations that wait for the memory of node 1's clients. */
static uint32_t
under_way(const struct rig *r)
{
	uint32_t n = 0;

	for (uint32_t e = 0; e < r->engines; e++)
		if (r->dp->adapter[1]->shard[e])
			n += urn_memx_holds(r->dp->adapter[1]->shard[e]->memx, NULL);
	return n;
}

/*
 * However many domains and QPs the slow client has, its waiting operations exceed its
 * limit by a few bursts at most, and others are delayed by a few of its QPs a turn.
 */
static void
in_domains(void **state)
{
	struct domains d;
	struct slow s = {0};
	struct rig r;

	(void)state;
	if (!stalling(&s))
		skip();
	rig_open(&r, &(struct rig_config){.foreign = true}, &(struct rig_qp){.timeout = 18});
	make_domains(&r, &s, &d);
	rig_fill(r.end[0].buf, SLOW, 1);
	for (uint32_t i = 0; i < DOMAINS; i++)
		write_by(&r, &s, &d, i, false, SLOW);
	rig_turns(&r, 20000);
	for (uint32_t i = 0; i < DOMAINS; i++)
		write_by(&r, &s, &d, i, true, 64);
	rig_turns(&r, 1000);
	assert_in_range(under_way(&r), 1, MOST);
	assert_in_range(scheduled(&r), 0, A_BURST);
	others_go_on(&r);
	supply(&s);
	for (uint32_t i = 0; i < DOMAINS; i++)
		rig_expect(&r, 0, IBV_WC_SUCCESS);
	drop_domains(&s, &d);
	rig_close(&r);
}

/* ---- many clients of one user */

enum {
	CROWD = 64,
	SHARE = MOST * 2 / 3 + 2 * A_BURST, /* operations of one user at most, and those of a turn */
	ANOTHER = 4711,                     /* another user's id */
};

/* A client of node 1 with a region of all the slow memory. */
struct member {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *far, *qp; /* at node 0, and the member's own */
};

static void
join(struct rig *r, struct member *m, const struct slow *s)
{
	struct rig_qp o = {.timeout = -1};

	m->ctx = rig_attach(r, 1);
	m->pd = ibv_alloc_pd(m->ctx);
	m->cq = ibv_create_cq(m->ctx, 64, NULL, NULL, 0);
	m->mr = ibv_reg_mr(m->pd, s->bytes, SLOW, RIGHTS);
	assert_true(m->pd && m->cq && m->mr);
	m->far = rig_make_qp(r, 0, &o);
	o.pd = m->pd;
	o.send_cq = o.recv_cq = m->cq;
	m->qp = rig_make_qp(r, 1, &o);
	rig_connect(r, 0, m->far, 100, m->qp->qp_num, 200, &o);
	rig_connect(r, 1, m->qp, 200, m->far->qp_num, 100, &o);
}

static void
leave(struct member *m)
{
	assert_int_equal(ibv_destroy_qp(m->far), 0);
	assert_int_equal(ibv_destroy_qp(m->qp), 0);
	assert_int_equal(ibv_dereg_mr(m->mr), 0);
	assert_int_equal(ibv_destroy_cq(m->cq), 0);
	assert_int_equal(ibv_dealloc_pd(m->pd), 0);
	assert_int_equal(ibv_close_device(m->ctx), 0);
}

static void
write_to(struct rig *r, const struct member *m, const struct slow *s)
{
	struct ibv_sge far = {(uintptr_t)r->end[0].buf, SLOW, r->end[0].mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &far, .num_sge = 1,
				 .wr.rdma = {(uintptr_t)s->bytes, m->mr->rkey}};

	rig_send_on(m->far, &wr);
}

/* Turn until so many operations are under way, and then long enough to see whether there will be more. */
static void
fill_up(struct rig *r, uint64_t least)
{
	time_t start = time(NULL);

	while (under_way(r) < least && time(NULL) - start < 60)
		rig_turns(r, 1000);
	rig_turns(r, 20000);
}

/*
 * However many clients of a user are slow, their waiting operations stay within the
 * user's limit: packets are left, and another user's memory is reached as ever.
 */
static void
crowded(void **state)
{
	struct member m[CROWD];
	struct slow s = {0};
	struct rig r;

	(void)state;
	if (!stalling(&s))
		skip();
	rig_open(&r, &(struct rig_config){.foreign = true}, &(struct rig_qp){.timeout = 18});
	urn_space_set_user(LIST_FIRST(&r.dp->adapter[1]->clients)->space, ANOTHER);
	for (uint32_t i = 0; i < CROWD; i++)
		join(&r, &m[i], &s);
	rig_fill(r.end[0].buf, SLOW, 1);
	for (uint32_t i = 0; i < CROWD; i++)
		write_to(&r, &m[i], &s);
	fill_up(&r, MOST / 2);
	assert_in_range(under_way(&r), MOST / 2, SHARE);
	others_go_on(&r);
	assert_int_equal(rig_counter(&r, 1, URN_C_NO_MBUF), 0);
	supply(&s);
	for (uint32_t i = 0; i < CROWD; i++)
		rig_expect(&r, 0, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < CROWD; i++)
		leave(&m[i]);
	close(s.uffd);
	munmap(s.bytes, SLOW);
	rig_close(&r);
}

static void *
dereg(void *arg)
{
	struct slow *s = arg;

	atomic_store(&s->dereg, ibv_dereg_mr(s->mr));
	return NULL;
}

/* Deregistration waits for the copy; others' control calls do not wait for deregistration. */
static void
deregistered(void **state)
{
	struct slow s = {0};
	pthread_t t;
	struct rig r;

	(void)state;
	if (!stalling(&s))
		skip();
	rig_open(&r, &(struct rig_config){.foreign = true, .no_learn = 3},
		 &(struct rig_qp){.timeout = 18});
	attach(&r, &s);
	rig_fill(r.end[0].buf, 64, 1);
	write_slow(&r, &s, 64);
	wait_count(&r, URN_C_RX_ROCE, QPS);
	assert_int_equal(pthread_create(&t, NULL, dereg, &s), 0);
	rig_turns(&r, 300);
	others_go_on(&r);
	assert_int_equal(atomic_load(&s.dereg), -1);
	supply(&s);
	for (uint32_t i = 0; i < QPS; i++)
		rig_expect(&r, 0, IBV_WC_SUCCESS);
	while (atomic_load(&s.dereg) < 0)
		rig_turn(&r);
	assert_int_equal(atomic_load(&s.dereg), 0);
	pthread_join(t, NULL);
	assert_memory_equal(s.bytes, r.end[0].buf, 64);
	assert_int_equal(s.bytes[64], 0x5a);
	detach(&s);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stalled),
		cmocka_unit_test(in_domains),
		cmocka_unit_test(crowded),
		cmocka_unit_test(deregistered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
