/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam between public verbs and a provider (architecture.md, seam 5): each public call reaches
 * its operation in the table, once, and reaches the device only if the provider passes it on.
 */
#include "test.h"

#include "count.h"
#include "verbs/adapter/adapter.h"

#include <urnic/cm.h>
#include <urnic/explain.h>

#include <errno.h>
#include <string.h>

/* A context that counts, over a fake's. */
struct over {
	struct fake *f;
	struct ibv_context *c;
};

/* The objects of a program, one of each kind. */
struct objects {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static uint8_t memory[4096];

static int
setup(void **state)
{
	static struct over o;
	struct ibv_context *below;

	memset(&count, 0, sizeof(count));
	o.f = fake_new();
	below = urn_attach_open(&o.f->channel);
	assert_non_null(below);
	o.c = urn_verbs_open(&count_ops, below);
	assert_non_null(o.c);
	*state = &o;
	return 0;
}

static int
teardown(void **state)
{
	struct over *o = *state;

	assert_int_equal(ibv_close_device(o->c), 0);
	assert_int_equal(count.calls[COUNT(close)], 1);
	assert_int_equal(o->f->closed, 1);
	fake_free(o->f);
	return 0;
}

/* Control calls that the fake has answered. */
static unsigned int
asked(const struct fake *f)
{
	unsigned int i, sum = 0;

	for (i = 0; i < URN_CTL_OPS; i++)
		sum += f->calls[i];
	return sum;
}

static void
make(struct ibv_context *c, struct objects *o)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	o->pd = ibv_alloc_pd(c);
	assert_non_null(o->pd);
	o->mr = ibv_reg_mr(o->pd, memory, sizeof(memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_1);
	o->ah = ibv_create_ah(o->pd, &ah);
	o->ch = ibv_create_comp_channel(c);
	assert_non_null(o->ch);
	o->cq = ibv_create_cq(c, 4, o, o->ch, 0);
	o->srq = ibv_create_srq(o->pd, &srq);
	assert_true(o->mr && o->mw && o->ah && o->cq && o->srq);
	qp.send_cq = qp.recv_cq = o->cq;
	qp.qp_context = o;
	o->qp = ibv_create_qp(o->pd, &qp);
	assert_non_null(o->qp);
}

/* The front's part of each object names the front's objects, not those of a context below. */
static void
check(struct ibv_context *c, const struct objects *o)
{
	assert_ptr_equal(o->pd->context, c);
	assert_true(o->mr->context == c && o->mr->pd == o->pd && o->mr->addr == memory &&
		    o->mr->length == sizeof(memory));
	assert_true(o->mw->context == c && o->mw->pd == o->pd && o->mw->type == IBV_MW_TYPE_1);
	assert_true(o->ah->context == c && o->ah->pd == o->pd);
	assert_true(o->ch->context == c && o->ch->refcnt == 1);
	assert_true(o->cq->context == c && o->cq->channel == o->ch && o->cq->cq_context == o);
	assert_true(o->srq->context == c && o->srq->pd == o->pd);
	assert_true(o->qp->context == c && o->qp->pd == o->pd && o->qp->qp_context == o);
	assert_true(o->qp->send_cq == o->cq && o->qp->recv_cq == o->cq && o->qp->srq == NULL);
	assert_int_equal(o->qp->qp_type, IBV_QPT_RC);
	assert_null(ibv_qp_to_qp_ex(o->qp));
}

static void
query(struct ibv_context *c, struct objects *o)
{
	const struct ibv_wc wc = {.qp_num = 5, .status = IBV_WC_RETRY_EXC_ERR};
	struct ibv_srq_attr srq = {.srq_limit = 1};
	char text[URN_EXPLAIN_TEXT];
	struct ibv_qp_init_attr init;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct urn_stores stores;
	struct ibv_qp_attr qp;
	union ibv_gid gid;

	assert_int_equal(ibv_query_device(c, &device), 0);
	assert_int_equal(ibv_query_port(c, 1, &port), 0);
	assert_int_equal(ibv_query_gid(c, 1, 0, &gid), 0);
	assert_int_equal(ibv_rereg_mr(o->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
				      sizeof(memory), 0),
			 0);
	assert_int_equal(ibv_resize_cq(o->cq, 8), 0);
	assert_int_equal(ibv_modify_srq(o->srq, &srq, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(o->srq, &srq), 0);
	assert_int_equal(env_modify(o->qp, IBV_QPS_INIT), 0);
	assert_int_equal(o->qp->state, IBV_QPS_INIT);
	memset(&qp, 0, sizeof(qp));
	qp.qp_state = IBV_QPS_RTR;
	assert_int_equal(urn_cm_qp_ready(o->qp, &qp, IBV_QP_STATE, &qp, IBV_QP_STATE), 0);
	assert_int_equal(o->qp->state, IBV_QPS_RTS);
	o->qp->qp_type = IBV_QPT_UD; /* the front refuses this call for others */
	assert_int_equal(ibv_attach_mcast(o->qp, &gid, 0), 0);
	o->qp->qp_type = IBV_QPT_RC;
	assert_int_equal(urn_qp_align(o->qp, URN_LINE_PEER), 0);
	assert_int_equal(urn_mr_stores(o->mr, &stores), 0);
	assert_int_equal(urn_wc_explain(o->qp->context, &wc, text, sizeof(text)), 0);
	assert_string_equal(text, "explained 5 12");
	assert_int_equal(ibv_query_qp(o->qp, &qp, IBV_QP_CAP, &init), 0);
	assert_true(init.send_cq == o->cq && init.recv_cq == o->cq && init.qp_context == o);
}

static void
post(struct objects *o)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = o->mr->lkey};
	struct ibv_mw_bind bind = {
		.bind_info = {.mr = o->mr, .addr = (uintptr_t)memory, .length = 8}};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad_send;
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;

	assert_int_equal(ibv_post_recv(o->qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_srq_recv(o->srq, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(o->qp, &send, &bad_send), 0);
	assert_int_equal(ibv_bind_mw(o->qp, o->mw, &bind), 0);
	assert_int_equal(ibv_req_notify_cq(o->cq, 0), 0);
}

/* done: completions that are there */
static void
events(struct ibv_context *c, struct objects *o, int done)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	assert_int_equal(ibv_get_cq_event(o->ch, &cq, &arg), 0);
	assert_true(cq == o->cq && arg == o);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_poll_cq(o->cq, 1, &wc), done);
	assert_int_equal(ibv_get_async_event(c, &event), 0);
	if (event.event_type == IBV_EVENT_QP_FATAL)
		assert_ptr_equal(event.element.qp, o->qp);
	ibv_ack_async_event(&event);
}

/* Each call of connection management, once. */
static void
connect_all(struct ibv_context *c)
{
	struct urn_abi_cm_connect connect = {0};
	struct urn_abi_cm_accept accept = {0};
	struct urn_abi_cm_reject reject = {0};
	uint8_t data[URN_CM_DATA_MAX + 1] = {0};
	struct urn_abi_cm_event ev;
	struct urn_cm_end *end;
	uint32_t id;

	assert_int_equal(urn_cm_end_open(&end, c), 0);
	assert_int_equal(urn_cm_end_fd(end) >= 0, !count.made_up);
	assert_int_equal(urn_cm_end_listen(end, 7, 8, 9, &id), 0);
	assert_int_equal(urn_cm_end_connect(end, &connect, &id), 0);
	assert_int_equal(urn_cm_end_resolve(end, &connect, &id), 0);
	assert_int_equal(urn_cm_end_accept(end, 1, &accept), 0);
	assert_int_equal(urn_cm_end_reject(end, 1, &reject), 0);
	/* More private data than any message takes is refused above all providers. */
	assert_int_equal(urn_cm_end_establish(end, 1, data, sizeof(data)), EINVAL);
	assert_int_equal(urn_cm_end_establish(end, 1, data, URN_CM_DATA_MAX), 0);
	assert_int_equal(urn_cm_end_disconnect(end, 1, data, sizeof(data)), EINVAL);
	assert_int_equal(urn_cm_end_disconnect(end, 1, NULL, 0), 0);
	assert_int_equal(urn_cm_end_destroy(end, 1), 0);
	assert_int_equal(urn_cm_end_event(end, &ev), EAGAIN);
	urn_cm_end_close(end);
	urn_cm_end_close(NULL);
}

/* The fake was asked each control call of connection management once; it sends no events. */
static void
expect_connected(const struct fake *f)
{
	unsigned int op;

	for (op = URN_CTL_CM_LISTEN; op < URN_CTL_CM_EVENT; op++)
		assert_int_equal(f->calls[op], 1);
	assert_int_equal(f->calls[URN_CTL_CM_EVENT], 0);
}

static void
destroy(struct objects *o)
{
	assert_int_equal(ibv_destroy_qp(o->qp), 0);
	assert_int_equal(ibv_destroy_srq(o->srq), 0);
	assert_int_equal(ibv_destroy_cq(o->cq), 0);
	assert_int_equal(o->ch->refcnt, 0);
	assert_int_equal(ibv_destroy_comp_channel(o->ch), 0);
	assert_int_equal(ibv_destroy_ah(o->ah), 0);
	assert_int_equal(ibv_dealloc_mw(o->mw), 0);
	assert_int_equal(ibv_dereg_mr(o->mr), 0);
	assert_int_equal(ibv_dealloc_pd(o->pd), 0);
}

/* All operations of contexts were called once: a call more, or past the table, is an error. */
static void
expect_once(void)
{
	size_t i;

	assert_int_equal(count.calls[COUNT(open)], 1);
	for (i = COUNT(query_device); i < COUNT(cm); i++)
		if (count.calls[i] != 1)
			fail_msg("operation %zu of the table was called %u times", i,
				 count.calls[i]);
	for (i = 0; i < COUNT_CM_OPS; i++)
		if (count.cm[i] != 1)
			fail_msg("operation %zu of connection management was called %u times", i,
				 count.cm[i]);
}

static void
every_call_reaches_the_provider(void **state)
{
	struct over *o = *state;
	unsigned int before = asked(o->f), last;
	struct objects objects;

	count.made_up = true;
	make(o->c, &objects);
	check(o->c, &objects);
	query(o->c, &objects);
	post(&objects);
	events(o->c, &objects, 0);
	connect_all(o->c);
	destroy(&objects);
	expect_once();
	/* Nothing of that reached the device: no control call, no doorbell. */
	assert_int_equal(asked(o->f), before);
	assert_int_equal(fake_doorbells(o->f, &last), 0);
	count.made_up = false;
}

/* The same calls, passed on to the provider below, have the same effect as without the one above.
 */
static void
every_call_is_passed_on(void **state)
{
	struct over *o = *state;
	struct objects objects;
	uint32_t last, qpn;

	make(o->c, &objects);
	check(o->c, &objects);
	qpn = objects.qp->qp_num;
	assert_ptr_equal(fake_qp(o->f, qpn) != NULL, true);
	query(o->c, &objects);
	post(&objects);
	assert_int_equal(fake_send_wqe(o->f, qpn)->opcode, URN_WR_SEND);
	assert_non_null(fake_take_recv(o->f, qpn));
	assert_int_equal(fake_doorbells(o->f, &last), 1);
	fake_complete(o->f, objects.cq->handle, &(struct fake_wc){.qpn = qpn});
	fake_async(o->f, URN_EVENT_QP_FATAL, qpn, fake_qp(o->f, qpn)->cookie);
	events(o->c, &objects, 1);
	connect_all(o->c);
	expect_connected(o->f);
	destroy(&objects);
	expect_once();
	assert_true(fake_qp_gone(o->f, qpn));
}

/* Arguments that no provider takes are refused above all of them. */
static void
the_front_checks(void **state)
{
	struct over *o = *state;
	struct ibv_ah_attr local = {.port_num = 1};
	struct ibv_cq_init_attr_ex cq = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_pd *pd = ibv_alloc_pd(o->c);
	struct ibv_port_attr port;

	assert_null(ibv_create_ah(pd, &local));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq_ex(o->c, &cq));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_create_cq(o->c, -1, NULL, NULL, 0));
	assert_null(ibv_reg_mr(pd, NULL, 4096, 0));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ibv_query_port(o->c, 2, &port), EINVAL);
	assert_int_equal(count.calls[COUNT(create_ah)] + count.calls[COUNT(create_cq)] +
				 count.calls[COUNT(reg_mr)] + count.calls[COUNT(query_port)],
			 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Failures of a provider come out, and leave nothing counted. */
static void
failures_come_out(void **state)
{
	struct over *o = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(o->c);
	struct urn_cm_end *end = (struct urn_cm_end *)ch;

	assert_non_null(ch);
	count.fail = ENOSPC;
	assert_null(ibv_alloc_pd(o->c));
	assert_int_equal(errno, ENOSPC);
	assert_string_equal(urn_attach_error(), "the test wants it");
	assert_null(ibv_create_cq(o->c, 4, NULL, ch, 0));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(ch->refcnt, 0);
	assert_int_equal(urn_cm_end_open(&end, o->c), ENOSPC);
	assert_null(end);
	count.fail = 0;
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* A context that can't be opened closes the contexts below that it was to be opened over. */
static void
open_fails(void **state)
{
	struct fake *f = fake_new();
	struct ibv_context *below = urn_attach_open(&f->channel);
	struct urn_verbs_id id;

	(void)state;
	assert_non_null(below);
	count.fail = ENOSPC;
	assert_null(urn_verbs_open(&count_ops, below));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(f->closed, 1);
	count.fail = 0;
	f->closed = 0;
	assert_int_equal(count_ops.identify(urn_attach_open(&f->channel), &id), 0);
	assert_string_equal(id.name, "over_fake0");
	assert_int_equal(f->closed, 1);
	fake_free(f);
}

/* Posting and polling are one indirect call, with or without a provider above. */
static void
the_fast_path_is_the_providers(void **state)
{
	struct over *o = *state;
	struct fake *f = fake_new();
	struct ibv_context *plain = urn_attach_open(&f->channel);
	const struct {
		struct ibv_context *c;
		const struct urn_verbs_ops *ops;
	} with[] = {{o->c, &count_ops}, {plain, &urn_adapter_ops}};
	size_t i;

	for (i = 0; i < 2; i++) {
		const struct ibv_context_ops *ops = &with[i].c->ops;

		assert_ptr_equal(urn_ops(with[i].c), with[i].ops);
		assert_ptr_equal(ops->post_send, with[i].ops->post_send);
		assert_ptr_equal(ops->post_recv, with[i].ops->post_recv);
		assert_ptr_equal(ops->post_srq_recv, with[i].ops->post_srq_recv);
		assert_ptr_equal(ops->bind_mw, with[i].ops->bind_mw);
		assert_ptr_equal(ops->poll_cq, with[i].ops->poll_cq);
		assert_ptr_equal(ops->req_notify_cq, with[i].ops->req_notify_cq);
	}
	assert_int_equal(ibv_close_device(plain), 0);
	fake_free(f);
}

/* The table of the adapter has a function for everything. */
static void
the_adapter_has_all(void **state)
{
	void (*op)(void);
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OPS; i++) {
		memcpy(&op, (const uint8_t *)&urn_adapter_ops + i * sizeof(op), sizeof(op));
		assert_true(op != NULL);
	}
}

/* A provider may lack connection management: its contexts are refused in one place. */
static void
a_provider_without_connections(void **state)
{
	struct urn_verbs_ops without = count_ops;
	struct fake *f = fake_new();
	struct ibv_context *c;
	struct urn_cm_end *end = (struct urn_cm_end *)f;

	(void)state;
	without.cm = NULL;
	c = urn_verbs_open(&without, urn_attach_open(&f->channel));
	assert_non_null(c);
	assert_int_equal(urn_cm_end_open(&end, c), EOPNOTSUPP);
	assert_null(end);
	assert_non_null(strstr(urn_attach_error(), "connection management"));
	assert_int_equal(ibv_close_device(c), 0);
	fake_free(f);
}

/* An end knows its provider when its context is closed already, as a program may do. */
static void
an_end_outlives_its_context(void **state)
{
	struct fake *f = fake_new();
	struct ibv_context *c = urn_attach_open(&f->channel);
	struct urn_cm_end *end;

	(void)state;
	c = urn_verbs_open(&count_ops, c);
	assert_non_null(c);
	memset(&count, 0, sizeof(count));
	assert_int_equal(urn_cm_end_open(&end, c), 0);
	assert_int_equal(ibv_close_device(c), 0);
	urn_cm_end_close(end);
	assert_int_equal(count.cm[COUNT_CM(close)], 1);
	fake_free(f);
}

static struct urn_abi_channel *
channel_of(void *arg)
{
	return &((struct fake *)arg)->channel;
}

static struct ibv_context *
open_below(void *arg)
{
	return urn_attach_open(&((struct fake *)arg)->channel);
}

/* Open a device by its name, of a list of n. */
static struct ibv_context *
open_by_name(const char *name, int n)
{
	struct ibv_context *c = NULL;
	int there, i;
	struct ibv_device **list = ibv_get_device_list(&there);

	assert_non_null(list);
	assert_int_equal(there, n);
	for (i = 0; i < n && c == NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			c = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return c;
}

/* The list has the devices of all providers, and each opens by its own provider. */
static void
the_list_has_all_providers(void **state)
{
	struct fake *a = fake_new(), *b = fake_new();
	struct ibv_context *plain, *over;

	(void)state;
	memset(&count, 0, sizeof(count));
	b->info.name[4] = '1';
	count_register();
	count.device[0] = (struct count_device){.open = open_below, .arg = b};
	assert_int_equal(urn_attach_offer(channel_of, a), 0);
	plain = open_by_name("fake0", 2);
	over = open_by_name("over_fake1", 2);
	assert_true(plain && over);
	assert_ptr_equal(urn_ops(plain), &urn_adapter_ops);
	assert_ptr_equal(urn_ops(over), &count_ops);
	assert_int_equal(count.calls[COUNT(discover)], 2);
	assert_int_equal(count.calls[COUNT(identify)], 1);
	assert_int_equal(count.calls[COUNT(make)], 2);
	assert_int_equal(count.calls[COUNT(open)], 1);
	assert_string_equal(ibv_get_device_name(over->device), "over_fake1");
	assert_int_equal(ibv_dealloc_pd(ibv_alloc_pd(over)), 0);
	assert_int_equal(count.calls[COUNT(alloc_pd)], 1);
	assert_int_equal(ibv_close_device(over), 0);
	assert_int_equal(ibv_close_device(plain), 0);
	count_withdraw();
	memset(&count, 0, sizeof(count));
	assert_null(open_by_name("over_fake1", 1));
	assert_int_equal(urn_attach_withdraw(channel_of, a), 0);
	fake_free(a);
	fake_free(b);
}

/* A provider fails to look for devices: the list has those of others, and errno says why. */
static void
a_provider_finds_nothing(void **state)
{
	struct fake *a = fake_new();
	struct ibv_device **list;
	int n;

	(void)state;
	memset(&count, 0, sizeof(count));
	count_register();
	count.fail = ENOSPC;
	assert_null(ibv_get_device_list(&n));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(n, 0);
	assert_int_equal(urn_attach_offer(channel_of, a), 0);
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(errno, ENOSPC);
	assert_string_equal(urn_attach_error(), "the test wants it");
	assert_int_equal(n, 1);
	ibv_free_device_list(list);
	count.fail = 0;
	assert_int_equal(urn_attach_withdraw(channel_of, a), 0);
	fake_free(a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_call_reaches_the_provider, setup, teardown),
		cmocka_unit_test_setup_teardown(every_call_is_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(the_front_checks, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_come_out, setup, teardown),
		cmocka_unit_test(open_fails),
		cmocka_unit_test_setup_teardown(the_fast_path_is_the_providers, setup, teardown),
		cmocka_unit_test(the_adapter_has_all),
		cmocka_unit_test(a_provider_without_connections),
		cmocka_unit_test(an_end_outlives_its_context),
		cmocka_unit_test(the_list_has_all_providers),
		cmocka_unit_test(a_provider_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
