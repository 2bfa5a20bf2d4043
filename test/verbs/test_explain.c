/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors that explain (doc/reference/errors.md): the sentences of urn_wc_explain() and 'show
 * errors' about completions with errors, each reached by its cause.
 */
#include "report_bench.h"

#include "abi/queue.h"
#include "control/explain.h"
#include "control/objects.h"
#include "pmd_glue/plug.h"
#include <urnic/explain.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct rig *const rig = &report_rig;

/* Give end 0 a new queue pair with these properties, connected to end 1's. */
static void
reconnect(const struct rig_qp *o)
{
	for (int e = 0; e < 2; e++) {
		if (rig->end[e].qp)
			assert_int_equal(ibv_destroy_qp(rig->end[e].qp), 0);
		rig->end[e].qp = rig_make_qp(rig, e, o);
	}
	for (int e = 0; e < 2; e++)
		rig_connect(rig, e, rig->end[e].qp, 0x10, rig->end[!e].qp->qp_num, 0x10, o);
}

static int
make(void **state)
{
	const struct rig_qp plain = {0};

	(void)state;
	reconnect(&plain);
	return 0;
}

/* The sentence about a completion has all of these words; each ends with NULL. */
static void
says(int e, const struct ibv_wc *wc, const char *const *words)
{
	char text[URN_EXPLAIN_TEXT];

	assert_int_equal(urn_wc_explain(rig->end[e].ctx, wc, text, sizeof(text)), 0);
	for (; *words; words++)
		if (!strstr(text, *words))
			fail_msg("'%s' is not in '%s'", *words, text);
}

#define SAYS(e, wc, ...) says(e, wc, (const char *const[]){__VA_ARGS__, NULL})

/* "QP 0x11 to 10.0.0.3 QP 0x12: " of end e. */
static const char *
who(int e)
{
	static char text[80];

	snprintf(text, sizeof(text), "QP 0x%x to 10.0.0.%d QP 0x%x: ", rig->end[e].qp->qp_num,
		 e ? 1 : 2, rig->end[!e].qp->qp_num);
	return text;
}

/* ---- a silent peer */

static void
peer_is_gone(void **state)
{
	const struct rig_qp o = {.retry_cnt = 3, .timeout = 14};
	struct urn_report_query q = {.by_qpn = true};
	char before[80];
	struct ibv_wc wc;

	(void)state;
	reconnect(&o);
	rig_post(rig, 0, IBV_WR_RDMA_WRITE, 0, 64, 0, 1);
	rig_expect(rig, 0, IBV_WC_SUCCESS);
	snprintf(before, sizeof(before), "%s", who(0));
	assert_int_equal(ibv_destroy_qp(rig->end[1].qp), 0);
	rig->end[1].qp = NULL;
	rig_post(rig, 0, IBV_WR_RDMA_WRITE, 0, 100, 0, 2);
	rig_post(rig, 0, IBV_WR_SEND, 0, 100, 0, 3);
	wc = rig_expect(rig, 0, IBV_WC_RETRY_EXC_ERR);
	assert_string_equal(urn_vendor_err_name(wc.vendor_err), "timeout");
	SAYS(0, &wc, before, "RDMA WRITE of 100 bytes at PSN 0x000011 was not acknowledged",
	     "sent 4 times, timeout 67 ms", "the peer acknowledged PSN 0x000010 last",
	     "no progress for at least ");
	wc = rig_expect(rig, 0, IBV_WC_WR_FLUSH_ERR);
	SAYS(0, &wc, before, "flushed, because earlier RDMA WRITE of 100 bytes at PSN 0x000011");

	/* The same sentence for operators. */
	q.qpn = rig->end[0].qp->qp_num;
	report_forget();
	assert_true(report_ask(urn_report_errors, &q, NULL) > 0);
	assert_int_equal(report_notes.objects, 1);
	report_has("error adapter=urnic0 client=");
	report_has(" attached=yes qpn=");
	report_has(" status=12 vendor_err=timeout why=QP 0x");
	q.at = (struct urn_report_at){0};
	report_forget();
	assert_true(report_ask(urn_report_qps, &q, NULL) > 0);
	report_has(" last_error=QP 0x");
	report_has(" RDMA WRITE of 100 bytes at PSN 0x000011 was not acknowledged");
}

static void
nothing_was_acknowledged(void **state)
{
	const struct rig_qp o = {.retry_cnt = -1, .timeout = 14};
	struct ibv_wc wc;

	(void)state;
	reconnect(&o);
	rig_to(rig->end[1].qp, IBV_QPS_RESET);
	rig_post(rig, 0, IBV_WR_RDMA_READ, 0, 64, 0, 1);
	wc = rig_expect(rig, 0, IBV_WC_RETRY_EXC_ERR);
	SAYS(0, &wc, who(0), "RDMA READ of 64 bytes at PSN 0x000010", "sent 1 time, timeout 67 ms",
	     "the peer has acknowledged nothing so far");
}

static void
port_is_down(void **state)
{
	static const struct {
		unsigned int port;
		enum urn_port_plug plug;
		const char *words;
	} c[] = {
		{0, URN_PORT_DOWN, ": port p0 is administratively down"},
		{0, URN_PORT_FAILED, ": port p0 was failed by a command"},
		{1, URN_PORT_DOWN, ": port p0 has no link"},
	};
	const struct rig_qp o = {.retry_cnt = 1,
				 .timeout = 14}; /* over the 5 ms between looks at the link */

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct ibv_wc wc;

		reconnect(&o);
		assert_int_equal(urn_port_plug(rig->port[c[i].port], c[i].plug, NULL), 0);
		for (int e = 0; e < 2; e++)
			rig_event(rig, e, IBV_EVENT_PORT_ERR);
		rig_post(rig, 0, IBV_WR_SEND, 0, 64, 0, 1);
		wc = rig_expect(rig, 0, IBV_WC_RETRY_EXC_ERR);
		SAYS(0, &wc, who(0), c[i].words);
		assert_int_equal(urn_port_plug(rig->port[c[i].port], URN_PORT_UP, NULL), 0);
		for (int e = 0; e < 2; e++)
			rig_event(rig, e, IBV_EVENT_PORT_ACTIVE);
	}
}

static void
nobody_answers(void **state)
{
	const struct rig_qp o = {.retry_cnt = 1, .timeout = 10};
	union ibv_gid gid;
	struct ibv_wc wc;

	(void)state;
	rig_gid(rig, 1, &gid);
	gid.raw[15] = 200; /* no node has this address */
	assert_int_equal(ibv_destroy_qp(rig->end[0].qp), 0);
	rig->end[0].qp = rig_make_qp(rig, 0, &o);
	rig_connect_to(rig, rig->end[0].qp, 5, 77, 6, &gid, &o);
	rig_post(rig, 0, IBV_WR_SEND, 0, 10, 0, 1);
	wc = rig_expect(rig, 0, IBV_WC_RETRY_EXC_ERR);
	SAYS(0, &wc, " to 10.0.0.200 QP 0x4d: ",
	     "SEND of 10 bytes at PSN 0x000005 was never sent in 2 timeouts of 4.19 ms; ",
	     "the peer has acknowledged nothing so far", ": no ARP answer from 10.0.0.200");
}

/* ---- refusals */

/* Post a WRITE of 64 bytes with this key of the peer's. */
static void
post_write(uint32_t lkey, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)rig->end[0].buf, 64, lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};

	wr.wr.rdma.remote_addr = (uintptr_t)rig->end[1].buf;
	wr.wr.rdma.rkey = rkey;
	rig_send_on(rig->end[0].qp, &wr);
}

static void
refused(void **state)
{
	struct ibv_wc wc;

	(void)state;
	rig_recv(rig, 1, 0, 64, 7);
	post_write(rig->end[0].mr->lkey, rig->end[1].mr->rkey ^ 0x55);
	wc = rig_expect(rig, 0, IBV_WC_REM_ACCESS_ERR);
	assert_string_equal(urn_vendor_err_name(wc.vendor_err), "nak");
	SAYS(0, &wc, who(0), "RDMA WRITE of 64 bytes at PSN 0x000010 was refused by the peer with ",
	     "NAK 0x62 (remote access error");
	/* The other side has no completion for it but the flush, which tells all the same. */
	wc = rig_expect(rig, 1, IBV_WC_WR_FLUSH_ERR);
	SAYS(1, &wc, who(1), "flushed, because earlier request of the peer at PSN 0x000010 was ",
	     "refused with NAK 0x62");
	rig_event(rig, 1, IBV_EVENT_QP_ACCESS_ERR);
}

static void
receive_too_short(void **state)
{
	struct ibv_wc wc;

	(void)state;
	rig_recv(rig, 1, 0, 64, 7);
	rig_post(rig, 0, IBV_WR_SEND, 0, 65, 0, 1);
	wc = rig_expect(rig, 1, IBV_WC_LOC_LEN_ERR);
	assert_string_equal(urn_vendor_err_name(wc.vendor_err), "recv-short");
	SAYS(1, &wc, who(1),
	     "request of the peer at PSN 0x000010 failed its receive: the message is ",
	     "longer than its receive", "refused with NAK 0x61");
	wc = rig_expect(rig, 0, IBV_WC_REM_INV_REQ_ERR);
	SAYS(0, &wc, who(0), "SEND of 65 bytes", "NAK 0x61 (invalid request)");
}

static void
receiver_not_ready(void **state)
{
	const struct rig_qp o = {.rnr_retry = 2, .timeout = -1};
	struct ibv_wc wc;

	(void)state;
	reconnect(&o);
	rig_post(rig, 0, IBV_WR_SEND, 0, 10, 0, 1);
	wc = rig_expect(rig, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_string_equal(urn_vendor_err_name(wc.vendor_err), "rnr");
	SAYS(0, &wc, who(0),
	     "SEND of 10 bytes at PSN 0x000010 found no receive at the peer, sent 3 "
	     "times; the peer has acknowledged nothing so far, and was heard at this moment");
}

static void
own_memory(void **state)
{
	struct ibv_wc wc;

	(void)state;
	post_write(rig->end[0].mr->lkey ^ 0x55, rig->end[1].mr->rkey);
	wc = rig_expect(rig, 0, IBV_WC_LOC_PROT_ERR);
	assert_string_equal(urn_vendor_err_name(wc.vendor_err), "bad-lkey");
	SAYS(0, &wc, who(0),
	     "RDMA WRITE of 64 bytes at PSN 0x000010 failed here: no region has that ", "key");
}

/* ---- datagrams */

/* Post a SEND of 64 bytes from end `from` to the other end's UD queue pair. */
static void
send_datagram(int from, struct ibv_ah *ah, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)rig->end[from].buf, 64, lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = rig->end[!from].qp->qp_num;
	wr.wr.ud.remote_qkey = 0x1234;
	rig_send_on(rig->end[from].qp, &wr);
}

/* Both ends get UD queue pairs. returns: the way from end `from` to the other one */
static struct ibv_ah *
make_datagram(int from)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct ibv_ah *ah;

	reconnect(&(struct rig_qp){.type = IBV_QPT_UD});
	a.grh.sgid_index = (uint8_t)rig_sgid_index(rig);
	rig_gid(rig, !from, &a.grh.dgid);
	ah = ibv_create_ah(rig->end[from].pd, &a);
	assert_non_null(ah);
	return ah;
}

/* Let a receive of end 1 be too short for a datagram. */
static struct ibv_wc
fail_datagram(struct ibv_ah *ah)
{
	rig_recv(rig, 1, 0, 64, 7); /* without room for the GRH */
	send_datagram(0, ah, rig->end[0].mr->lkey);
	rig_expect(rig, 0, IBV_WC_SUCCESS);
	return rig_expect(rig, 1, IBV_WC_LOC_LEN_ERR);
}

static int explained(struct ibv_context *ctx, const struct ibv_wc *wc);

/* A UD queue pair survives the error of a receive, which is no reason of a later flush. */
static void
survived_errors(void **state)
{
	struct ibv_ah *ah = make_datagram(0);
	struct ibv_wc wc = fail_datagram(ah);

	(void)state;
	SAYS(1, &wc, "datagram failed its receive: the message is longer than its receive");
	rig_recv(rig, 1, 0, 64, 8);
	rig_to(rig->end[1].qp, IBV_QPS_ERR);
	wc = rig_expect(rig, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(explained(rig->end[1].ctx, &wc), ENOENT);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* An error that put a queue pair into SQE explains what is flushed there, and nothing after. */
static void
send_queue_error(void **state)
{
	struct ibv_ah *ah = make_datagram(0);
	struct ibv_wc failed, wc;

	(void)state;
	send_datagram(0, ah, rig->end[0].mr->lkey ^ 0x55);
	failed = rig_expect(rig, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(rig_state(rig->end[0].qp), IBV_QPS_SQE);
	send_datagram(0, ah, rig->end[0].mr->lkey);
	wc = rig_expect(rig, 0, IBV_WC_WR_FLUSH_ERR);
	SAYS(0, &wc, ": flushed, because earlier SEND of 64 bytes");
	rig_to(rig->end[0].qp, IBV_QPS_RTS);
	assert_int_equal(explained(rig->end[0].ctx, &failed), 0);
	assert_int_equal(explained(rig->end[0].ctx, &wc), ENOENT);
	rig_recv(rig, 0, 0, 64, 8);
	rig_to(rig->end[0].qp, IBV_QPS_ERR);
	wc = rig_expect(rig, 0, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(explained(rig->end[0].ctx, &wc), ENOENT);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- owners of records, and their number */

/* The completion of a request that failed on a new queue pair of end 0. */
static struct ibv_wc
fail_once(void)
{
	reconnect(&(struct rig_qp){0});
	post_write(rig->end[0].mr->lkey ^ 0x55, rig->end[1].mr->rkey);
	return rig_expect(rig, 0, IBV_WC_LOC_PROT_ERR);
}

static int
explained(struct ibv_context *ctx, const struct ibv_wc *wc)
{
	char text[URN_EXPLAIN_TEXT], cut[8] = "";
	int err = urn_wc_explain(ctx, wc, text, sizeof(text));

	/* There is always a sentence, and a short buffer has its beginning. */
	assert_int_equal(urn_wc_explain(ctx, wc, cut, sizeof(cut)), err);
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_memory_equal(text, cut, sizeof(cut) - 1);
	if (err)
		assert_non_null(strstr(text, ibv_wc_status_str(wc->status)));
	return err;
}

/* A client gets no word of another client's queue pairs, and none of numbers that nobody has. */
static void
own_records_only(void **state)
{
	struct ibv_context *other = rig_attach(rig, 0);
	struct ibv_wc wc = fail_once();

	(void)state;
	assert_int_equal(explained(rig->end[0].ctx, &wc), 0);
	assert_int_equal(explained(other, &wc), ENOENT);
	for (uint32_t bit = 1 << 12; bit;
	     bit <<= 1) { /* lower ones give numbers of earlier tests */
		struct ibv_wc off = wc;

		off.qp_num ^= bit;
		assert_int_equal(explained(rig->end[0].ctx, &off), ENOENT);
	}
	assert_int_equal(ibv_close_device(other), 0);
}

/* Datagrams that fail receives push no other record out, however many there are. */
static void
one_record_of_datagrams(void **state)
{
	struct ibv_wc other, wc;
	struct ibv_qp *failed;
	struct ibv_ah *ah;

	(void)state;
	/* An error of end 1's program, before them. */
	rig_recv(rig, 1, 0, 10, 7);
	rig_post(rig, 0, IBV_WR_SEND, 0, 20, 0, 1);
	other = rig_expect(rig, 1, IBV_WC_LOC_LEN_ERR);
	rig_expect(rig, 0, IBV_WC_REM_INV_REQ_ERR);
	failed = rig->end[1].qp;
	rig->end[1].qp = NULL; /* nobody gets its number */
	ah = make_datagram(0);
	for (unsigned int i = 0; i < 2 * URN_FAILURES; i++)
		wc = fail_datagram(ah);
	assert_int_equal(explained(rig->end[1].ctx, &wc), 0);
	assert_int_equal(explained(rig->end[1].ctx, &other), 0);
	assert_int_equal(ibv_destroy_qp(failed), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* RESET forgets the errors of a queue pair; its end does not, as long as nobody has its number. */
static void
reset_forgets(void **state)
{
	struct ibv_wc wc = fail_once();

	(void)state;
	assert_int_equal(explained(rig->end[0].ctx, &wc), 0);
	rig_to(rig->end[0].qp, IBV_QPS_RESET);
	assert_int_equal(explained(rig->end[0].ctx, &wc), ENOENT);
	wc = fail_once();
	assert_int_equal(ibv_destroy_qp(rig->end[0].qp), 0);
	rig->end[0].qp = NULL;
	assert_int_equal(explained(rig->end[0].ctx, &wc), 0);
}

/* The number of a queue pair whose record must be in no table any more. */
static void
not_on_record(const struct ibv_wc *wc)
{
	char text[URN_EXPLAIN_TEXT];

	assert_int_equal(explained(rig->end[0].ctx, wc), ENOENT);
	(void)urn_wc_explain(rig->end[0].ctx, wc, text, sizeof(text));
	assert_non_null(strstr(text, "; no record is left: newer errors "));
	assert_non_null(strstr(urn_attach_error(), "older than the last 16"));
}

/* The error of each queue pair that is there is on record, however many there are, and explains
 * what is flushed behind it; of those that are gone, the last 16 are. */
static void
one_of_each_queue_pair(void **state)
{
	enum { N = 2 * URN_FAILURES + 3, PUSHED_OUT = N - URN_FAILURES };
	struct urn_report_query q = {.by_qpn = true};
	struct ibv_wc wc[N], flushed;
	struct ibv_qp *qp[N];

	(void)state;
	for (unsigned int i = 0; i < N; i++) {
		wc[i] = fail_once();
		qp[i] = rig->end[0].qp;
		rig->end[0].qp = NULL;
	}
	for (unsigned int i = 0; i < N; i++) {
		flushed = wc[i];
		flushed.status = IBV_WC_WR_FLUSH_ERR;
		assert_int_equal(explained(rig->end[0].ctx, &wc[i]), 0);
		SAYS(0, &flushed, ": flushed, because earlier RDMA WRITE of 64 bytes");
		flushed.status = IBV_WC_RETRY_EXC_ERR;
		assert_int_equal(explained(rig->end[0].ctx, &flushed), ENOENT);
	}
	q.qpn = qp[0]->qp_num;
	report_forget();
	assert_true(report_ask(urn_report_qps, &q, NULL) > 0);
	report_has(" last_error=QP 0x");
	rig_to(qp[0], IBV_QPS_RESET);
	not_on_record(&wc[0]);
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	for (unsigned int i = 0; i < PUSHED_OUT; i++)
		not_on_record(&wc[i]);
	for (unsigned int i = PUSHED_OUT; i < N; i++)
		assert_int_equal(explained(rig->end[0].ctx, &wc[i]), 0);
}

/* A queue pair left SQE, and its error was pushed out since: it explains no later flush. */
static void
pushed_out_of_sqe(void **state)
{
	struct ibv_ah *ah = make_datagram(0);
	struct ibv_qp *datagram, *more[URN_FAILURES];
	struct ibv_wc failed, wc;

	(void)state;
	send_datagram(0, ah, rig->end[0].mr->lkey ^ 0x55);
	failed = rig_expect(rig, 0, IBV_WC_LOC_PROT_ERR);
	datagram = rig->end[0].qp;
	for (unsigned int i = 0; i < URN_FAILURES; i++) {
		rig->end[0].qp = NULL;
		fail_once();
		more[i] = rig->end[0].qp;
	}
	wc = failed;
	wc.status = IBV_WC_WR_FLUSH_ERR;
	SAYS(0, &wc, ": flushed, because earlier SEND of 64 bytes");
	rig_to(datagram, IBV_QPS_RTS);
	assert_int_equal(explained(rig->end[0].ctx, &failed), 0);
	assert_int_equal(explained(rig->end[0].ctx, &wc), ENOENT);
	rig->end[0].qp = NULL;
	assert_int_equal(ibv_destroy_qp(datagram), 0);
	for (unsigned int i = 0; i < URN_FAILURES; i++)
		assert_int_equal(ibv_destroy_qp(more[i]), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Errors of programs that have gone stay for operators: the newest of them, and no more. */
static void
gone_programs(void **state)
{
	struct urn_report_query q = {.adapter = "urnic0", .rows = 5};
	unsigned int gone = 0, rounds = 0;

	(void)state;
	while (rounds++ < URN_EXPLAIN_PAST / URN_FAILURES + 1) {
		struct ibv_context *mine = rig->end[0].ctx, *ctx = rig_attach(rig, 0);
		struct ibv_pd *pd = ibv_alloc_pd(ctx);
		struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
		struct ibv_sge sge = {(uintptr_t)rig->end[0].buf, 64, 0x1234};
		const struct rig_qp o = {.send_cq = cq, .recv_cq = cq, .pd = pd};
		struct ibv_qp *qp[URN_FAILURES];

		rig->end[0].ctx = ctx;
		for (unsigned int i = 0; i < URN_FAILURES; i++) {
			struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
						 .send_flags = IBV_SEND_SIGNALED,
						 .sg_list = &sge,
						 .num_sge = 1};
			struct ibv_wc wc;

			qp[i] = rig_make_qp(rig, 0, &o);
			/* The error is of this side; no two programs may share a peer's number. */
			rig_connect(rig, 0, qp[i], 5, 0x1000 + rounds * URN_FAILURES + i, 5, &o);
			rig_send_on(qp[i], &wr);
			while (ibv_poll_cq(cq, 1, &wc) == 0)
				rig_turn(rig);
			assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
		}
		rig->end[0].ctx = mine;
		for (unsigned int i = 0; i < URN_FAILURES; i++)
			assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(ibv_close_device(ctx), 0);
	}
	report_forget();
	assert_true(report_ask(urn_report_errors, &q, NULL) > 1);
	for (const char *at = report_notes.text; (at = strstr(at, " attached=no ")); at++)
		gone++;
	assert_int_equal(gone, URN_EXPLAIN_PAST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(peer_is_gone, make),
		cmocka_unit_test_setup(nothing_was_acknowledged, make),
		cmocka_unit_test_setup(port_is_down, make),
		cmocka_unit_test_setup(nobody_answers, make),
		cmocka_unit_test_setup(refused, make),
		cmocka_unit_test_setup(receive_too_short, make),
		cmocka_unit_test_setup(receiver_not_ready, make),
		cmocka_unit_test_setup(own_memory, make),
		cmocka_unit_test_setup(survived_errors, make),
		cmocka_unit_test_setup(send_queue_error, make),
		cmocka_unit_test_setup(own_records_only, make),
		cmocka_unit_test_setup(one_record_of_datagrams, make),
		cmocka_unit_test_setup(reset_forgets, make),
		cmocka_unit_test_setup(one_of_each_queue_pair, make),
		cmocka_unit_test_setup(pushed_out_of_sqe, make),
		cmocka_unit_test_setup(gone_programs, make),
	};
	int rc = cmocka_run_group_tests_name("embedded", tests, report_setup, report_teardown);

	return rc + cmocka_run_group_tests_name("over the socket", tests, report_setup_remote,
						report_teardown);
}
