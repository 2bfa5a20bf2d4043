/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_poll_cq(), the extended poll, ibv_req_notify_cq(), and removing a QP's completions. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* Times that the library yielded the core. */
static unsigned int yields;
/* Nanoseconds for which others then run. */
static unsigned int yield_ns;
/* The library's clock, in nanoseconds. */
static _Atomic uint64_t now;

int
sched_yield(void)
{
	yields++;
	now += yield_ns;
	return 0;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	uint64_t ns = ++now;

	(void)id;
	*ts = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	return 0;
}

static struct urn_abi_cq *
cq_hdr(struct env *e)
{
	return fake_at(e->f, fake_cq(e->f, e->cq->handle)->off);
}

static void
complete(struct env *e, uint64_t wr_id)
{
	struct fake_wc wc = {.wr_id = wr_id, .qpn = e->qpn};

	fake_complete(e->f, e->cq->handle, &wc);
}

static void
poll_fields(void **state)
{
	struct env *e = *state;
	struct fake_wc in = {.wr_id = 0x1234567890, .qpn = 0x101, .byte_len = 4000, .imm = 0x01020304, .src_qp = 0x55,
		.status = URN_WC_REM_ACCESS_ERR, .opcode = URN_WCO_RECV_RDMA_WITH_IMM,
		.flags = URN_WCF_WITH_IMM | URN_WCF_GRH};
	struct ibv_wc wc;

	memset(&wc, 0xff, sizeof(wc));
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	fake_complete(e->f, e->cq->handle, &in);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0x1234567890);
	assert_int_equal(wc.qp_num, 0x101);
	assert_int_equal(wc.byte_len, 4000);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_int_equal(wc.src_qp, 0x55);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.vendor_err, URN_VE_NAK);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(wc.pkey_index, 0);
	assert_int_equal(wc.slid, 0);
	assert_int_equal(wc.sl, 0);
	assert_int_equal(wc.dlid_path_bits, 0);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	/* The service level says of a datagram that its header is IPv4's. */
	in.flags = URN_WCF_GRH | URN_WCF_IPV4;
	fake_complete(e->f, e->cq->handle, &in);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
	assert_int_equal(wc.sl, 2);
}

/* Phases: a full queue, lap after lap, read in pieces; never one completion twice, never a stale one. */
static void
poll_laps(void **state)
{
	struct env *e = *state;
	uint64_t in = 0, out = 0;
	struct ibv_wc wc[5];
	int n, i, lap;

	for (lap = 0; lap < 9; lap++) {
		while (in - out < 16)
			complete(e, in++);
		do {
			n = ibv_poll_cq(e->cq, 5, wc);
			for (i = 0; i < n; i++)
				assert_int_equal(wc[i].wr_id, out++);
			/* The dataplane learns at once how far the program has read. */
			assert_int_equal(atomic_load(&cq_hdr(e)->cons), (uint32_t)out);
		} while (n == 5);
		assert_int_equal(out, in);
		complete(e, in++);
		assert_int_equal(ibv_poll_cq(e->cq, 5, wc), 1);
		assert_int_equal(wc[0].wr_id, out++);
	}
	assert_int_equal(ibv_poll_cq(e->cq, 0, wc), 0);
	assert_int_equal(ibv_poll_cq(e->cq, -1, wc), 0);
}

static struct ibv_cq_ex *
make_ex(struct env *e, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = flags};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->c, &attr);

	assert_non_null(cq);
	return cq;
}

static void
ex_poll(struct env *e, struct ibv_cq_ex *cq)
{
	struct fake_wc in = {.wr_id = 1, .qpn = 0x100, .byte_len = 10, .imm = 20, .src_qp = 30,
		.opcode = URN_WCO_RECV, .flags = URN_WCF_WITH_IMM};
	struct fake_wc datagram = {.opcode = URN_WCO_RECV, .flags = URN_WCF_GRH | URN_WCF_IPV4};
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc;
	int i;

	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT); /* and no ibv_end_poll() after that */
	for (i = 0; i < 4; i++, in.wr_id++, in.byte_len++)
		fake_complete(e->f, cq->handle, &in);
	in.status = URN_WC_RETRY_EXC_ERR;
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(cq->wr_id, 1 + i);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_byte_len(cq), 10 + i);
		assert_int_equal(ibv_next_poll(cq), i < 3 ? 0 : ENOENT);
	}
	/* The last one can still be read. */
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_imm_data(cq), 20);
	assert_int_equal(ibv_wc_read_qp_num(cq), 0x100);
	assert_int_equal(ibv_wc_read_src_qp(cq), 30);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	assert_int_equal(ibv_wc_read_sl(cq), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	ibv_end_poll(cq);
	fake_complete(e->f, cq->handle, &in); /* there is room again */
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	fake_complete(e->f, cq->handle, &datagram);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_GRH);
	assert_int_equal(ibv_wc_read_sl(cq), 2);
	ibv_end_poll(cq);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void
poll_extended(void **state)
{
	struct env *e = *state;

	ex_poll(e, make_ex(e, 0));
	ex_poll(e, make_ex(e, IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
}

static void
poll_extended_unsupported(void **state)
{
	struct env *e = *state;
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_CVLAN};

	errno = 0;
	assert_null(ibv_create_cq_ex(e->c, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr = (struct ibv_cq_init_attr_ex){.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	assert_null(ibv_create_cq_ex(e->c, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr = (struct ibv_cq_init_attr_ex){.cqe = 4, .comp_mask = 1u << 2};
	assert_null(ibv_create_cq_ex(e->c, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* ---- arming */

struct armed {
	struct env *e;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
};

static struct armed
armed_make(struct env *e)
{
	struct armed a = {.e = e, .ch = ibv_create_comp_channel(e->c)};

	assert_non_null(a.ch);
	assert_int_equal(fcntl(a.ch->fd, F_SETFL, O_NONBLOCK), 0);
	a.cq = ibv_create_cq(e->c, 8, &a, a.ch, 0);
	assert_non_null(a.cq);
	return a;
}

/* Number of events; each is acknowledged. */
static int
armed_events(struct armed *a)
{
	struct ibv_cq *cq;
	void *ctx;
	int n = 0;

	while (ibv_get_cq_event(a->ch, &cq, &ctx) == 0) {
		assert_ptr_equal(cq, a->cq);
		ibv_ack_cq_events(cq, 1);
		n++;
	}
	assert_int_equal(errno, EAGAIN);
	return n;
}

static void
armed_done(struct armed *a)
{
	assert_int_equal(ibv_destroy_cq(a->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(a->ch), 0);
}

static void
armed_complete(struct armed *a, bool solicited)
{
	struct fake_wc wc = {.qpn = 1, .solicited = solicited};

	fake_complete(a->e->f, a->cq->handle, &wc);
}

static void
notify_next(void **state)
{
	struct armed a = armed_make(*state);
	struct ibv_wc wc[8];

	armed_complete(&a, true);
	assert_int_equal(armed_events(&a), 0); /* not armed */
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(armed_events(&a), 0);
	armed_complete(&a, false);
	armed_complete(&a, false);
	assert_int_equal(armed_events(&a), 1); /* one event for one request */
	armed_done(&a);
}

static void
notify_solicited(void **state)
{
	struct armed a = armed_make(*state);
	struct ibv_wc wc[8];

	assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
	armed_complete(&a, false);
	assert_int_equal(armed_events(&a), 0);
	armed_complete(&a, true);
	assert_int_equal(armed_events(&a), 1);
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 2);
	/* The wider of two requests counts. */
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
	armed_complete(&a, false);
	assert_int_equal(armed_events(&a), 1);
	armed_done(&a);
}

/* doc/reference/verbs.md: arming with completions waiting fires at once, and only once. */
static void
notify_fires_at_once(void **state)
{
	struct armed a = armed_make(*state);
	struct ibv_wc wc[8];

	armed_complete(&a, false);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(armed_events(&a), 1);
	armed_complete(&a, false);
	assert_int_equal(armed_events(&a), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 2);
	armed_done(&a);
}

/*
 * doc/reference/verbs.md: a program that takes an event, arms and then polls once is not told of
 * the same completion again. A completion that no event can have told of is one to tell of.
 */
static void
notify_tells_once(void **state)
{
	struct armed a = armed_make(*state);
	struct ibv_wc wc[8];
	int i;

	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	for (i = 0; i < 3; i++) {
		armed_complete(&a, false);
		assert_int_equal(armed_events(&a), 1);
		assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
		assert_int_equal(armed_events(&a), 0);
		assert_int_equal(ibv_poll_cq(a.cq, 1, wc), 1);
	}
	/* One of two is polled. */
	armed_complete(&a, false);
	armed_complete(&a, false);
	assert_int_equal(armed_events(&a), 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(armed_events(&a), 1);
	assert_int_equal(ibv_poll_cq(a.cq, 1, wc), 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(armed_events(&a), 1);
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 1);
	armed_done(&a);
}

/* An event that came for another completion does not hide one that nothing has told of. */
static void
notify_after_stale(void **state)
{
	struct armed a = armed_make(*state);
	struct ibv_wc wc[8];
	int i;

	/* The event's completion was polled before; the new one comes before, or after the event is
	 * taken. */
	for (i = 0; i < 4; i++) {
		assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
		armed_complete(&a, false);
		assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 1);
		if (i & 1)
			armed_complete(&a, false);
		assert_int_equal(armed_events(&a), 1);
		if (i & 2)
			assert_int_equal(ibv_poll_cq(a.cq, 8, wc), i & 1);
		if (i != 1)
			armed_complete(&a, false);
		assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
		assert_int_equal(armed_events(&a), 1);
		assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 1);
	}
	/* Armed for solicited completions, and the event is an older one. */
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	armed_complete(&a, false);
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
	armed_complete(&a, false);
	assert_int_equal(armed_events(&a), 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(armed_events(&a), 1);
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 1);
	armed_done(&a);
}

#define RACES 20000

static void *
race_writer(void *arg)
{
	struct armed *a = arg;
	struct fake_wc wc = {.qpn = 1};
	uint64_t i;

	for (i = 0; i < RACES; i++) {
		wc.wr_id = i;
		while (!fake_try_complete(a->e->f, a->cq->handle, &wc))
			sched_yield();
	}
	return NULL;
}

/*
 * A program that arms, polls until empty and then waits for an event never
 * sleeps through a completion, however arming and completing interleave.
 */
static void
notify_race(void **state)
{
	struct armed a = armed_make(*state);
	struct pollfd pfd = {.fd = a.ch->fd, .events = POLLIN};
	struct ibv_wc wc[8];
	uint64_t seen = 0;
	pthread_t t;
	int n, i;

	assert_int_equal(pthread_create(&t, NULL, race_writer, &a), 0);
	while (seen < RACES) {
		assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
		assert_int_equal(poll(&pfd, 1, 60000), 1);
		armed_events(&a);
		while ((n = ibv_poll_cq(a.cq, 8, wc)) > 0)
			for (i = 0; i < n; i++)
				assert_int_equal(wc[i].wr_id, seen++);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	armed_done(&a);
}

static void
notify_without_channel(void **state)
{
	struct env *e = *state;

	complete(e, 1);
	assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
}

/* ---- completions of a QP that goes */

static void
clean_on_destroy(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr qi = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *other;
	struct fake_wc wc = {0};
	struct ibv_wc out[16];
	unsigned int lap, i;
	int n;

	/* At every position of the ring, so that slots of two laps are moved. */
	for (lap = 0; lap < 16; lap++) {
		other = ibv_create_qp(e->pd, &qi);
		assert_non_null(other);
		for (i = 0; i < 13; i++) {
			wc.qpn = i % 3 == 1 ? e->qpn : other->qp_num;
			wc.wr_id = i;
			wc.byte_len = 100 + i;
			fake_complete(e->f, e->cq->handle, &wc);
		}
		assert_int_equal(ibv_destroy_qp(other), 0);
		/* A completion after the cleaning follows those that were kept. */
		wc = (struct fake_wc){.wr_id = 13, .qpn = e->qpn, .byte_len = 113};
		fake_complete(e->f, e->cq->handle, &wc);
		n = ibv_poll_cq(e->cq, 16, out);
		assert_int_equal(n, 5);
		for (i = 0; i < 5; i++) {
			assert_int_equal(out[i].wr_id, i * 3 + 1);
			assert_int_equal(out[i].byte_len, 100 + i * 3 + 1);
			assert_int_equal(out[i].qp_num, e->qpn);
		}
		assert_int_equal(ibv_poll_cq(e->cq, 16, out), 0);
	}
}

static void
clean_on_reset(void **state)
{
	struct env *e = *state;
	struct ibv_wc wc;

	complete(e, 1);
	assert_int_equal(env_modify(e->qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

/* Looks at an empty queue until the reader yields its core. */
static unsigned int
looks_until_yield(struct env *e, struct ibv_cq_ex *ex)
{
	struct ibv_poll_cq_attr attr = {0};
	unsigned int looks = 0, before = yields;
	struct ibv_wc wc;

	while (yields == before) {
		if (ex == NULL)
			assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
		else
			assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
		assert_in_range(++looks, 1, 1000);
	}
	return looks;
}

/* A reader of an empty queue yields its core now and then, and never while completions come. */
static void
poll_yields(void **state)
{
	struct env *e = *state;
	struct ibv_cq_ex *ex = make_ex(e, 0);
	unsigned int looks = looks_until_yield(e, NULL), before;
	struct ibv_wc wc;

	assert_in_range(looks, 100, 1000);
	assert_int_equal(looks_until_yield(e, NULL), looks);
	assert_int_equal(looks_until_yield(e, ex), looks);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	before = yields;
	for (unsigned int i = 1; i < 3 * looks; i++) {
		if (i % (looks - 1) == 0)
			complete(e, i);
		assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), i % (looks - 1) == 0);
	}
	assert_int_equal(yields, before);
}

/* A reader whose core others use yields after few looks, and after more of them when no other ran. */
static void
poll_yields_sooner(void **state)
{
	struct env *e = *state;
	struct ibv_cq_ex *ex = make_ex(e, 0);
	unsigned int most = looks_until_yield(e, NULL), few;

	yield_ns = 5000;
	assert_int_equal(looks_until_yield(e, NULL), most);
	few = looks_until_yield(e, NULL);
	assert_in_range(few, 1, most / 8);
	assert_int_equal(looks_until_yield(e, NULL), few);
	yield_ns = 0;
	assert_int_equal(looks_until_yield(e, NULL), few);
	assert_int_equal(looks_until_yield(e, NULL), 2 * few);
	assert_int_equal(looks_until_yield(e, NULL), 4 * few);
	for (few *= 8; few < most; few *= 2)
		assert_int_equal(looks_until_yield(e, NULL), few);
	assert_int_equal(looks_until_yield(e, NULL), most);
	assert_int_equal(looks_until_yield(e, ex), most);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(poll_fields),
		RC(poll_laps),
		RC(poll_extended),
		RC(poll_extended_unsupported),
		RC(notify_next),
		RC(notify_solicited),
		RC(notify_fires_at_once),
		RC(notify_tells_once),
		RC(notify_after_stale),
		RC(notify_race),
		RC(notify_without_channel),
		RC(clean_on_destroy),
		RC(clean_on_reset),
		RC(poll_yields),
		RC(poll_yields_sooner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
