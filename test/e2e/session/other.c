/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that plays a session layer's part by itself, wrongly, on one adapter. Lines on the
 * standard input; each is answered by one.
 *
 * usage: other    (URNIC_SOCKET names the adapter)
 *
 * listen N   listen for questions about queue pair N. answer: the errno value, and its text
 * make       make a queue pair and listen for questions about it. answer: its number
 * answer     wait for a question, and answer it with an unknown version. answer: 0
 */
#include "../check.h"

#include <urnic/attach.h>
#include <urnic/cm.h>

#include <poll.h>

enum { WAIT_MS = 60000, LINE = 64 };

static struct ibv_context *ctx;
static struct urn_cm_end *end;
static struct ibv_qp *qp;

static void
listen_at(uint32_t qpn)
{
	uint32_t id;
	int err = urn_cm_end_listen(end, urn_cm_session_service(qpn), 0, 0, &id);

	printf("%d %s\n", err, err != 0 ? urn_attach_error() : "");
}

static void
make(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint32_t id;

	CHECK(cq != NULL && pd != NULL);
	qp = ibv_create_qp(pd, &init);
	CHECK(qp != NULL);
	EQUAL(urn_cm_end_listen(end, urn_cm_session_service(qp->qp_num), 0, 0, &id), 0);
	printf("%u\n", qp->qp_num);
}

static void
answer(void)
{
	struct urn_abi_cm_accept p = {.qpn = qp->qp_num, .data_len = 4, .data = "USP9"};
	struct pollfd fd = {.fd = urn_cm_end_fd(end), .events = POLLIN};
	struct urn_abi_cm_event ev;

	EQUAL(poll(&fd, 1, WAIT_MS), 1);
	EQUAL(urn_cm_end_event(end, &ev), 0);
	EQUAL(ev.type, URN_CM_EVENT_SIDR_REQUEST);
	EQUAL(urn_cm_end_accept(end, ev.id, &p), 0);
	puts("0");
}

int
main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char line[LINE];
	uint32_t qpn;

	CHECK(list != NULL && list[0] != NULL);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx != NULL);
	ibv_free_device_list(list);
	EQUAL(urn_cm_end_open(&end, ctx), 0);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "listen %u", &qpn) == 1)
			listen_at(qpn);
		else if (strcmp(line, "make\n") == 0)
			make();
		else
			answer();
		fflush(stdout);
	}
	return 0;
}
