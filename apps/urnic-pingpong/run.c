/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange itself, in step with ibv_rc_pingpong: a side sends again when
 * its last message is acknowledged and the peer's next one has come.
 */
#include "pp.h"

#include "common/explain.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WR_RECV = 1, WR_SEND = 2 };
#define BATCH 16

struct pp_state {
	const struct pp_opts *o;
	struct pp_node node;
	struct pp_result *res;
	uint32_t posted;	/* receives that are posted */
	unsigned int under_way; /* WR_RECV: the peer's turn; WR_SEND: not acknowledged yet */
	uint64_t sent_ns;	/* time at which our last message was posted; 0: none yet */
	uint64_t moved_ns;	/* time of the last completion */
	bool done;
};

/* ---- meeting */

static int
tell_and_hear(struct pp_state *s, int fd, struct urn_err *err)
{
	struct urn_tcp_wait w = {pp_node_turn, &s->node, s->o->wait_ns,
				 "ibv_rc_pingpong, or urnic-pingpong --listen,"};
	char mine[PP_MSG], theirs[PP_MSG], end[5];

	pp_msg_make(mine, &s->node.local);
	s->res->local = s->node.local;
	/* The side that connected speaks first. */
	if (!s->o->listen &&
	    urn_tcp_write(fd, mine, sizeof(mine), "our queue pair was told", &w, err))
		return -1;
	if (urn_tcp_read(fd, theirs, sizeof(theirs), "the peer's queue pair was told", &w, err) ||
	    pp_msg_parse(theirs, &s->res->peer, err) ||
	    pp_node_connect(&s->node, &s->res->peer, err))
		return -1;
	s->res->met = true;
	if (!s->o->listen)
		return urn_tcp_write(fd, "done", sizeof("done"), "the peer was told we are ready",
				     &w, err);
	if (urn_tcp_write(fd, mine, sizeof(mine), "our queue pair was told", &w, err))
		return -1;
	return urn_tcp_read(fd, end, sizeof(end), "the peer said it is ready", &w, err);
}

/* fd: the listening socket, or -1 */
static int
meet(struct pp_state *s, int listener, struct urn_err *err)
{
	struct urn_tcp_wait w = {pp_node_turn, &s->node, s->o->wait_ns,
				 "ibv_rc_pingpong, or urnic-pingpong --listen,"};
	int fd, rc;

	if (listener >= 0) {
		fd = urn_tcp_accept(listener, &w, err);
	} else {
		fd = urn_tcp_connect(s->o->host, s->o->service, &w, err);
	}
	if (fd < 0)
		return -1;
	rc = tell_and_hear(s, fd, err);
	close(fd);
	return rc;
}

/* ---- messages */

static int
post_receives(struct pp_state *s, struct urn_err *err)
{
	struct ibv_sge sge = {(uintptr_t)s->node.recv, s->o->size, s->node.recv_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = WR_RECV, .sg_list = &sge, .num_sge = 1}, *bad;

	for (; s->posted < s->o->rx_depth; s->posted++) {
		int rc = ibv_post_recv(s->node.qp, &wr, &bad);

		if (rc == 0)
			continue;
		urn_err_set(err, "QP 0x%06x takes no receive: %s", s->node.qp->qp_num,
			    strerror(rc));
		return -1;
	}
	return 0;
}

/* Post our next message: one made up, or the peer's to be sent back. */
static int
post_message(struct pp_state *s, struct urn_err *err)
{
	struct ibv_sge sge = {(uintptr_t)s->node.send, s->o->size, s->node.send_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int rc;

	if (s->res->role == PP_MAKES)
		pp_data_make(s->node.send, s->o->size, s->res->sent);
	else
		memcpy(s->node.send, s->node.recv, s->o->size);
	s->sent_ns = urn_tcp_now_ns();
	rc = ibv_post_send(s->node.qp, &wr, &bad);
	s->under_way = WR_SEND | WR_RECV;
	if (rc != 0)
		urn_err_set(err, "QP 0x%06x takes no message: %s", s->node.qp->qp_num,
			    strerror(rc));
	return rc == 0 ? 0 : -1;
}

/* Choose our role: a client's first message decides which side makes messages up. */
static void
take_first(struct pp_state *s)
{
	s->res->role = pp_data_is_fill(s->node.recv, s->o->size) ? PP_MAKES : PP_ECHOES;
	if (s->res->role == PP_MAKES && !s->o->no_check)
		s->res->checked += s->o->size;
}

static int
take_message(struct pp_state *s, const struct ibv_wc *wc, struct urn_err *err)
{
	struct pp_result *res = s->res;

	if (wc->byte_len != s->o->size) {
		urn_err_set(err,
			    "message %u of the peer has %u bytes, not %u; give both the same size",
			    res->received + 1, wc->byte_len, s->o->size);
		return -1;
	}
	if (s->sent_ns != 0)
		urn_hist_add(&res->hist, urn_tcp_now_ns() - s->sent_ns);
	if (s->o->listen && res->received == 0) {
		take_first(s);
	} else if (res->role == PP_MAKES && !s->o->no_check) {
		if (pp_data_compare(s->node.recv, s->node.send, s->o->size, res->received, err))
			return -1;
		res->checked += s->o->size;
	}
	res->received++;
	s->under_way &= ~(unsigned int)WR_RECV;
	if (--s->posted <= 1)
		return post_receives(s, err);
	return 0;
}

/* ---- failures */

/* Append counters: " (timeouts 7, NAKs 0, retransmits 21; dropped: icrc 3)" */
static void
add_counters(const struct pp_state *s, char *text, size_t n)
{
	struct urn_counters c;
	size_t used;
	bool any = false;

	pp_node_counters(&s->node, &c);
	used = (size_t)snprintf(text, n, " (timeouts %llu, NAKs %llu, RNR NAKs %llu, repeated %llu",
				(unsigned long long)c.v[URN_C_TIMEOUTS],
				(unsigned long long)c.v[URN_C_RX_NAKS],
				(unsigned long long)c.v[URN_C_RX_RNR_NAKS],
				(unsigned long long)c.v[URN_C_RETRANSMITS]);
	for (unsigned int i = 0; i < URN_COUNTER_COUNT && used < n; i++) {
		if (c.v[i] == 0 || strncmp(urn_counter_name(i), "drop_", 5) != 0)
			continue;
		used += (size_t)snprintf(text + used, n - used, "%s%s %llu",
					 any ? ", " : "; dropped: ", urn_counter_name(i) + 5,
					 (unsigned long long)c.v[i]);
		any = true;
	}
	if (used < n)
		snprintf(text + used, n - used, ")");
}

static const char *
peer_name(const struct pp_state *s, char text[INET6_ADDRSTRLEN])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *gid = s->res->peer.gid;

	if (memcmp(gid, v4, sizeof(v4)) == 0)
		inet_ntop(AF_INET, gid + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
	return text;
}

static int
failed(const struct pp_state *s, const char *why, struct urn_err *err)
{
	char counters[160], peer[INET6_ADDRSTRLEN];

	add_counters(s, counters, sizeof(counters));
	urn_err_set(err, "QP 0x%06x to %s QP 0x%06x: %s, %u of %u messages sent, %u received%s",
		    s->node.qp->qp_num, peer_name(s, peer), s->res->peer.qpn, why, s->res->sent,
		    s->o->iters, s->res->received, counters);
	return -1;
}

/*
 * ibv_rc_pingpong leaves when it has all its messages; a lost acknowledgement of the
 * last one is then never repeated. True when only that acknowledgement is missing: no error.
 */
static bool
only_gone(const struct pp_state *s, const struct ibv_wc *wc)
{
	return wc->wr_id == WR_SEND && wc->status == IBV_WC_RETRY_EXC_ERR &&
	       s->res->received == s->o->iters && s->res->sent == s->o->iters - 1;
}

static int
take_completion(struct pp_state *s, const struct ibv_wc *wc, struct urn_err *err)
{
	s->moved_ns = urn_tcp_now_ns();
	if (wc->status != IBV_WC_SUCCESS && only_gone(s, wc)) {
		s->res->last_unacknowledged = true;
		s->done = true;
		return 0;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		urn_explain_print("urnic-pingpong", s->node.node.ctx, wc);
		return failed(s, ibv_wc_status_str(wc->status), err);
	}
	if (wc->wr_id == WR_RECV)
		return take_message(s, wc, err);
	s->res->sent++;
	s->under_way &= ~(unsigned int)WR_SEND;
	return 0;
}

/* ---- the loop */

static int
poll_completions(struct pp_state *s, struct urn_err *err)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(s->node.cq, BATCH, wc);

	if (n < 0) {
		urn_err_set(err, "the completion queue is broken");
		return -1;
	}
	/* Only flushed receives follow the completion that ends the exchange. */
	for (int i = 0; i < n && !s->done; i++) {
		if (take_completion(s, &wc[i], err))
			return -1;
	}
	return 0;
}

static int
watch(const struct pp_state *s, struct urn_err *err)
{
	char why[64];

	if (urn_stop_requested())
		return failed(s, "interrupted", err);
	if (urn_tcp_now_ns() - s->moved_ns <= s->o->wait_ns)
		return 0;
	snprintf(why, sizeof(why), "nothing moved for %.1f s (--wait)",
		 (double)s->o->wait_ns / 1e9);
	return failed(s, why, err);
}

static int
exchange(struct pp_state *s, struct urn_err *err)
{
	s->moved_ns = urn_tcp_now_ns();
	s->under_way = WR_RECV;
	if (!s->o->listen && post_message(s, err))
		return -1;
	while (!s->done) {
		pp_node_turn(&s->node);
		if (poll_completions(s, err) || watch(s, err))
			return -1;
		if (s->under_way == 0 && s->res->sent < s->o->iters && post_message(s, err))
			return -1;
		if (s->res->sent == s->o->iters && s->res->received == s->o->iters)
			s->done = true;
	}
	if (pp_node_guards_ok(&s->node))
		return 0;
	return failed(s, "memory beside the receive buffer was written", err);
}

/* Stay for a while: the peer may have lost our last acknowledgement, and retry until it has it. */
static void
linger(struct pp_state *s)
{
	struct urn_counters c;
	uint64_t seen = 0, since = urn_tcp_now_ns(), now = since;

	while (now - since <= s->o->linger_ns && !urn_stop_requested()) {
		pp_node_turn(&s->node);
		pp_node_counters(&s->node, &c);
		now = urn_tcp_now_ns();
		if (c.v[URN_C_RX_ROCE] != seen)
			since = now;
		seen = c.v[URN_C_RX_ROCE];
	}
}

static int
run(struct pp_state *s, int listener, struct urn_err *err)
{
	uint64_t begin;
	int rc;

	if (pp_node_open(&s->node, s->o, err) || post_receives(s, err) || meet(s, listener, err))
		return -1;
	begin = urn_tcp_now_ns();
	rc = exchange(s, err);
	s->res->seconds_ns = urn_tcp_now_ns() - begin;
	if (rc == 0 && !s->res->last_unacknowledged)
		linger(s);
	pp_node_counters(&s->node, &s->res->counters);
	return rc;
}

int
pp_run(const struct pp_opts *o, struct pp_result *res, struct urn_err *err)
{
	struct pp_state s = {.o = o, .res = res};
	int listener = -1, rc = 0;
	struct urn_err late;

	memset(res, 0, sizeof(*res));
	urn_hist_reset(&res->hist);
	if (o->listen) {
		listener = urn_tcp_listen(o->host, o->service, err);
		if (listener < 0)
			return -1;
		/* The port comes up meanwhile; the kernel accepts the connection. */
		fprintf(stderr, "urnic-pingpong: waiting for a peer on port %s\n", o->service);
	}
	s.node.o = o;
	rc = run(&s, listener, err);
	if (listener >= 0)
		close(listener);
	if (pp_node_close(&s.node, &res->capture_lost, &late) && rc == 0) {
		*err = late;
		rc = -1;
	}
	return rc;
}
