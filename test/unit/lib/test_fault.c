/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on demand over a fake dataplane. The faults of a process are read once, so each test is a
 * program of its own: this one starts itself with the variables and the name of a test.
 */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int
post(struct env *e)
{
	struct ibv_sge sge = {.length = 8};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
	int err = ibv_post_send(e->qp, &wr, &bad);

	assert_ptr_equal(bad, err != 0 ? &wr : NULL);
	return err;
}

static void
complete(struct env *e, uint64_t id, uint8_t opcode)
{
	struct fake_wc wc = {.wr_id = id, .qpn = e->qpn, .opcode = opcode};

	fake_complete(e->f, e->cq->handle, &wc);
}

static enum ibv_qp_state
state_of(struct env *e)
{
	return (enum ibv_qp_state)fake_qp(e->f, e->qpn)->attr.state;
}

/* post_send:2=ENOMEM;reg_mr:2+=EFAULT;post_recv:every 2=EIO */
static void
counts(void **state)
{
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad;
	struct env *e = *state;
	char byte;
	int i;

	for (i = 1; i <= 4; i++) {
		assert_int_equal(post(e), i == 2 ? ENOMEM : 0);
		assert_int_equal(ibv_post_recv(e->qp, &recv, &bad), i % 2 == 0 ? EIO : 0);
	}
	for (i = 0; i < 3; i++)
		assert_non_null(fake_send_wqe(e->f, e->qpn)), fake_retire(e->f, e->qpn, 1);
	assert_null(fake_send_wqe(e->f, e->qpn));
	for (i = 1; i <= 3; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, &byte, 1, 0);

		assert_true((mr == NULL) == (i >= 2));
		if (mr == NULL)
			assert_int_equal(errno, EFAULT);
		else
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

/* post_send@qp2=EIO;query_qp@qp*:2=EBUSY */
static void
queues(void **state)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_send_sge = 1}};
	struct env *e = *state, second = *e;
	struct ibv_qp_attr attr;
	int i;

	init.send_cq = init.recv_cq = e->cq;
	second.qp = ibv_create_qp(e->pd, &init);
	assert_non_null(second.qp);
	env_connect(second.qp);
	assert_int_equal(post(e), 0);
	assert_int_equal(post(&second), EIO);
	assert_int_equal(post(e), 0);
	for (i = 1; i <= 3; i++) {
		assert_int_equal(ibv_query_qp(e->qp, &attr, 0, &init), i == 2 ? EBUSY : 0);
		assert_int_equal(ibv_query_qp(second.qp, &attr, 0, &init), i == 2 ? EBUSY : 0);
	}
	assert_int_equal(ibv_destroy_qp(second.qp), 0);
}

/* post_send@qp*:every 2=EIO, by ibv_wr_complete() */
static void
batches(void **state)
{
	struct env *e = *state;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e->qp);
	int i;

	for (i = 1; i <= 4; i++) {
		ibv_wr_start(ex);
		ex->wr_id = (uint64_t)i;
		ex->wr_flags = 0;
		ibv_wr_send(ex);
		assert_int_equal(ibv_wr_complete(ex), i % 2 == 0 ? EIO : 0);
	}
	for (i = 1; i <= 3; i += 2) {
		assert_int_equal(fake_send_wqe(e->f, e->qpn)->wr_id, i);
		fake_retire(e->f, e->qpn, 1);
	}
	assert_null(fake_send_wqe(e->f, e->qpn));
}

/* wc:2=RETRY_EXC: receives don't count, what follows is flushed, receives are not */
static void
completions(void **state)
{
	struct env *e = *state;
	struct ibv_wc wc[6];

	complete(e, 1, IBV_WC_SEND);
	complete(e, 2, IBV_WC_RECV);
	complete(e, 3, IBV_WC_SEND);
	complete(e, 4, IBV_WC_SEND);
	complete(e, 5, IBV_WC_RECV);
	assert_int_equal(ibv_poll_cq(e->cq, 1, wc), 1);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(state_of(e), IBV_QPS_RTS);
	assert_int_equal(ibv_poll_cq(e->cq, 6, wc), 4);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[1].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc[1].wr_id, 3);
	assert_int_equal(wc[0].vendor_err, 0);
	assert_int_equal(wc[1].vendor_err, URN_VE_FAULT);
	assert_int_equal(wc[2].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[3].status, IBV_WC_SUCCESS);
	assert_int_equal(state_of(e), IBV_QPS_ERR);
	complete(e, 6, IBV_WC_SEND);
	assert_int_equal(ibv_poll_cq(e->cq, 6, wc), 1);
	assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	/* RESET ends the fault. */
	assert_int_equal(env_modify(e->qp, IBV_QPS_RESET), 0);
	env_connect(e->qp);
	complete(e, 7, IBV_WC_SEND);
	assert_int_equal(ibv_poll_cq(e->cq, 6, wc), 1);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
}

/* The same faults by the extended way of polling. */
static void
extended(void **state)
{
	struct env *e = *state;
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)e->cq;
	struct ibv_poll_cq_attr attr = {0};

	complete(e, 1, IBV_WC_SEND);
	complete(e, 2, IBV_WC_SEND);
	complete(e, 3, IBV_WC_SEND);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_wc_read_vendor_err(cq), URN_VE_FAULT);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(e), IBV_QPS_RTS);
	ibv_end_poll(cq);
	assert_int_equal(state_of(e), IBV_QPS_ERR);
}

/* poll_cq:2=EIO */
static void
polls(void **state)
{
	struct env *e = *state;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc;

	complete(e, 1, IBV_WC_SEND);
	assert_int_equal(ibv_start_poll((struct ibv_cq_ex *)e->cq, &attr), 0);
	ibv_end_poll((struct ibv_cq_ex *)e->cq);
	errno = 0;
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

static void
next_event(struct env *e, enum ibv_event_type type, void *queue)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(e->c, &event), 0);
	assert_int_equal(event.event_type, type);
	if (queue != NULL)
		assert_ptr_equal(event.element.qp, queue);
	ibv_ack_async_event(&event);
}

/* event:1=PORT_ERR;event:2=PORT_ACTIVE;event:3=QP_FATAL;event:4=CQ_ERR;event:5=DEVICE_FATAL, by
 * completions */
static void
events(void **state)
{
	struct env *e = *state;
	struct pollfd p = {.fd = e->c->async_fd, .events = POLLIN};
	struct ibv_port_attr port;
	struct ibv_wc wc;
	int i;

	assert_int_equal(poll(&p, 1, 0), 0);
	for (i = 1; i <= 5; i++) {
		complete(e, 1, IBV_WC_SEND);
		assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		switch (i) {
		case 1:
			next_event(e, IBV_EVENT_PORT_ERR, NULL);
			assert_int_equal(ibv_query_port(e->c, 1, &port), 0);
			assert_int_equal(port.state, IBV_PORT_DOWN);
			break;
		case 2:
			next_event(e, IBV_EVENT_PORT_ACTIVE, NULL);
			assert_int_equal(ibv_query_port(e->c, 1, &port), 0);
			assert_int_equal(port.state, IBV_PORT_ACTIVE);
			break;
		case 3:
			next_event(e, IBV_EVENT_QP_FATAL, e->qp);
			assert_int_equal(state_of(e), IBV_QPS_ERR);
			break;
		case 4:
			next_event(e, IBV_EVENT_CQ_ERR, e->cq);
			break;
		default:
			next_event(e, IBV_EVENT_DEVICE_FATAL, NULL);
		}
	}
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* event@cq1:1=CQ_ERR: the queue pairs that send or receive with it fail, and no others */
static void
broken_cq(void **state)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_send_sge = 1}};
	struct env *e = *state, sends = *e, receives = *e, other = *e;
	struct ibv_cq *cq = ibv_create_cq(e->c, 16, NULL, NULL, 0);
	struct env *const made[] = {&sends, &receives, &other};
	struct ibv_wc wc;

	assert_non_null(cq);
	for (unsigned int i = 0; i < 3; i++) {
		init.send_cq = made[i] == &sends ? e->cq : cq;
		init.recv_cq = made[i] == &receives ? e->cq : cq;
		made[i]->qp = ibv_create_qp(e->pd, &init);
		assert_non_null(made[i]->qp);
		made[i]->qpn = made[i]->qp->qp_num;
		env_connect(made[i]->qp);
	}
	complete(e, 1, IBV_WC_SEND);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
	next_event(e, IBV_EVENT_CQ_ERR, e->cq);
	assert_int_equal(state_of(e), IBV_QPS_ERR);
	assert_int_equal(state_of(&sends), IBV_QPS_ERR);
	assert_int_equal(state_of(&receives), IBV_QPS_ERR);
	assert_int_equal(state_of(&other), IBV_QPS_RTS);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(made[i]->qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* event:1ms=GID_CHANGE;event:2ms=LID_CHANGE */
static void
times(void **state)
{
	next_event(*state, IBV_EVENT_GID_CHANGE, NULL);
	next_event(*state, IBV_EVENT_LID_CHANGE, NULL);
}

/* post_send:30%=EIO: the same seed meets the same calls */
static void
chances(void **state)
{
	struct env *e = *state;
	char got[65] = "";
	int i, hits = 0;

	for (i = 0; i < 64; i++) {
		int err = post(e);

		got[i] = err != 0 ? 'x' : '.';
		hits += err != 0;
		if (err == 0) {
			fake_finish(e->f, e->qpn);
			env_poll(e->cq, 1);
		}
	}
	assert_in_range(hits, 8, 32);
	printf("chance %s\n", got);
}

/* open_device:1=EMFILE */
static void
opens(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	assert_null(urn_attach_open(&f->channel));
	assert_int_equal(errno, EMFILE);
	assert_int_equal(f->closed, 1);
	fake_free(f);
	f = fake_new();
	assert_int_equal(ibv_close_device(urn_attach_open(&f->channel)), 0);
	fake_free(f);
}

/* post_snd=EIO: nothing opens */
static void
nonsense(void **state)
{
	struct fake *f = fake_new();

	(void)state;
	assert_null(urn_attach_open(&f->channel));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(urn_attach_error(), "URNIC_FAULT, at character 1:"));
	assert_int_equal(f->closed, 1);
	fake_free(f);
}

static const struct {
	const char *name, *faults;
	struct CMUnitTest test;
} all[] = {
	{"counts", "post_send:2=ENOMEM;reg_mr:2+=EFAULT;post_recv:every 2=EIO",
	 cmocka_unit_test_setup_teardown(counts, env_setup, env_teardown)},
	{"queues", "post_send@qp2=EIO;query_qp@qp*:2=EBUSY",
	 cmocka_unit_test_setup_teardown(queues, env_setup, env_teardown)},
	{"batches", "post_send@qp*:every 2=EIO",
	 cmocka_unit_test_setup_teardown(batches, env_setup_ex, env_teardown)},
	{"completions", "wc:2=RETRY_EXC",
	 cmocka_unit_test_setup_teardown(completions, env_setup, env_teardown)},
	{"extended", "wc@cq1:2=RETRY_EXC",
	 cmocka_unit_test_setup_teardown(extended, env_setup, env_teardown)},
	{"polls", "poll_cq@cq1:2=EIO",
	 cmocka_unit_test_setup_teardown(polls, env_setup, env_teardown)},
	{"events",
	 "event:1=PORT_ERR;event:2=PORT_ACTIVE;event:3=QP_FATAL;event@cq1:4=CQ_ERR;event:5=DEVICE_"
	 "FATAL",
	 cmocka_unit_test_setup_teardown(events, env_setup, env_teardown)},
	{"broken_cq", "event@cq1:1=CQ_ERR",
	 cmocka_unit_test_setup_teardown(broken_cq, env_setup, env_teardown)},
	{"times", "event:1ms=GID_CHANGE;event:2ms=LID_CHANGE",
	 cmocka_unit_test_setup_teardown(times, env_setup, env_teardown)},
	{"chances", "post_send:30%=EIO",
	 cmocka_unit_test_setup_teardown(chances, env_setup, env_teardown)},
	{"opens", "open_device:1=EMFILE", cmocka_unit_test(opens)},
	{"nonsense", "post_snd=EIO", cmocka_unit_test(nonsense)},
};

/* Run a test in a process of its own. out: gets the line of its output that tells its chances */
static void
run(const char *name, const char *faults, const char *seed, char out[128])
{
	FILE *f;
	char command[256], line[128];

	setenv("URNIC_FAULT", faults, 1);
	setenv("URNIC_FAULT_SEED", seed, 1);
	snprintf(command, sizeof(command), "exec /proc/%d/exe %s", (int)getpid(), name);
	f = popen(command, "r");
	assert_non_null(f);
	out[0] = '\0';
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "chance ", 7) == 0)
			memcpy(out, line, sizeof(line));
	if (pclose(f) != 0)
		fail_msg("%s failed with the faults '%s'", name, faults);
}

static void
each(void **state)
{
	char out[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		run(all[i].name, all[i].faults, "1", out);
}

static void
same_seed(void **state)
{
	char first[128], again[128], other[128];

	(void)state;
	run("chances", "post_send:30%=EIO", "7", first);
	run("chances", "post_send:30%=EIO", "7", again);
	run("chances", "post_send:30%=EIO", "8", other);
	assert_string_not_equal(first, "");
	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each), cmocka_unit_test(same_seed)};
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].name, argv[1]) == 0) {
			const struct CMUnitTest one[] = {all[i].test};

			return cmocka_run_group_tests(one, NULL, NULL);
		}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
