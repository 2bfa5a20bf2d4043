/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that sends OFFER after OFFER, while queue pairs can be made and while they can't; and the
 * return to a better path. */
#include "offer_rig.h"
#include "verbs/session/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FLOOD = 1000, CROWD = 100, A_TURN = 16 };

/* ---- tests */

/* The queue pairs are made once in the time of a probe, whatever the rounds of offers. */
static void
limited(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sess_offer o = {.path = 1, .round = 1, .qpn = 3, .ctl_qpn = 4};

	for (uint32_t i = 0; i < FLOOD; i++) {
		o.round++;
		urn_sv_heal_heard(&r->q, &o);
	}
	assert_int_equal(made, 1);
	clock_ms += PROBE_MS - 1;
	o.round++;
	urn_sv_heal_heard(&r->q, &o);
	assert_int_equal(made, 1);
	clock_ms++;
	urn_sv_heal_heard(&r->q, &o);
	assert_int_equal(made, 2);
	assert_int_equal(r->q.path[1].heal.end.to, o.round);
}

/* Nor does the thread make them by itself without a pause, after a connection in vain. */
static void
tick_limited(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_path *p = &r->q.path[1];

	LIST_INSERT_HEAD(&r->ctx.qps, &r->q, link);
	r->ctx.dead[1] = true;
	(void)urn_sv_heal_tick(&r->ctx, clock_ms);
	assert_int_equal(made, 1);
	p->heal.fresh = false;
	p->heal.due = 0;
	assert_int_equal(urn_sv_heal_tick(&r->ctx, clock_ms), clock_ms + PROBE_MS);
	assert_int_equal(made, 1);
	clock_ms += PROBE_MS;
	(void)urn_sv_heal_tick(&r->ctx, clock_ms);
	assert_int_equal(made, 2);
}

/* Queue pairs that can't be made cost no round, for a peer believes no end that is far ahead, and
 * are not offered. */
static void
in_vain(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_path *p = &r->q.path[1];

	LIST_INSERT_HEAD(&r->ctx.qps, &r->q, link);
	r->ctx.dead[1] = true;
	init_err = ENOMEM;
	for (uint32_t i = 0; i < FLOOD; i++) {
		make_err = i % 2 != 0 ? ENOMEM : 0;
		clock_ms = urn_sv_heal_tick(&r->ctx, clock_ms);
		assert_int_equal(p->heal.end.own, 2);
	}
	assert_true(made > FLOOD / 3);
	assert_int_equal(told, 0);
	make_err = init_err = 0;
	clock_ms = p->heal.due;
	(void)urn_sv_heal_tick(&r->ctx, clock_ms);
	assert_int_equal(p->heal.end.own, 2);
	assert_int_equal(told, 1);
}

/* An OFFER of a path comes over that very path, and its queue pairs can't be made. */
static void
of_itself(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_path *p = &r->q.path[1];
	struct urn_sess_offer o = {.path = 1, .round = 2, .qpn = 3, .ctl_qpn = 4};

	p->ctl = &ctl_qp;
	LIST_INSERT_HEAD(&r->ctx.ctl_bucket[CTL % URN_SV_BUCKETS], p, ctl_link);
	waiting = (struct ibv_wc){
		.wr_id = URN_SV_ID_RECV, .qp_num = CTL, .byte_len = URN_SESS_WIRE_OFFER_BYTES};
	(void)urn_sess_wire_offer(r->q.memory + URN_SV_AT_CONTROL +
					  URN_SV_CONTROLS * URN_SV_CONTROL_BYTES,
				  NUMBER, 0, &o);
	make_err = ENOMEM;
	urn_sv_control_poll(&r->ctx, 0);
	assert_null(p->ctl);
	assert_int_equal(made, 1);
	assert_int_equal(posted, 1); /* to the queue pair that received it */
}

/* While the adapter lacks objects of the program nothing is made, and no pause grows. */
static void
objects_first(void **state)
{
	struct urn_sess_offer o = {.path = 1, .round = 2, .to = 0, .qpn = 3, .ctl_qpn = 4};
	struct offer_rig *r = *state;
	struct urn_sv_path *p = &r->q.path[1];

	LIST_INSERT_HEAD(&r->ctx.qps, &r->q, link);
	r->ctx.dead[1] = true;
	p->heal.pause = PROBE_MS;
	lacking = true;
	for (uint32_t i = 0; i < FLOOD; i++) {
		urn_sv_heal_heard(&r->q, &o);
		assert_int_equal(urn_sv_heal_tick(&r->ctx, clock_ms), clock_ms + PROBE_MS);
		clock_ms += PROBE_MS;
	}
	assert_int_equal(made, 0);
	assert_int_equal(p->heal.end.own, 1);
	assert_int_equal(p->heal.pause, PROBE_MS);
	lacking = false;
	(void)urn_sv_heal_tick(&r->ctx, clock_ms);
	assert_int_equal(made, 1);
}

/* An end that shuns a path has nothing to say to an offer of it: two such ends would answer each
 * other for ever (FO-14, FO-19). */
static void
shunned(void **state)
{
	struct urn_sess_offer o = {.path = 0, .round = 1, .to = 1, .qpn = 3, .ctl_qpn = 4};
	struct offer_rig *r = *state;

	r->q.path[0].real = &real_qp;
	r->q.path[0].ctl = &ctl_qp;
	r->q.c.shun = 1;
	for (uint32_t i = 0; i < FLOOD; i++)
		urn_sv_heal_heard(&r->q, &o);
	assert_int_equal(told, 0);
	r->q.c.shun = 0;
	urn_sv_heal_heard(&r->q, &o);
	assert_int_equal(told, 1);
	o.flags = URN_SESS_O_KNOWN;
	urn_sv_heal_heard(&r->q, &o);
	assert_int_equal(told, 1);
}

/* Offers overtake each other: an older one does not undo the word that the peer has lost its end,
 * until this end is connected to another one of the peer (FO-19). */
static void
word_of_loss(void **state)
{
	static const struct {
		uint32_t flags, round, to;
		bool trusts;
	} t[] = {
		{URN_SESS_O_TRUSTED, 1, 1, true},  {0, 1, 1, false}, /* not now */
		{URN_SESS_O_TRUSTED, 1, 1, true},  {URN_SESS_O_LOST, 1, 1, false},
		{URN_SESS_O_TRUSTED, 1, 1, false}, {0, 2, 0, false}, /* made anew */
		{URN_SESS_O_TRUSTED, 2, 2, true},
	};
	struct offer_rig *r = *state;

	r->q.c.alive = 3;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct urn_sess_offer o = {1,	    t[i].flags, t[i].round,
					   t[i].to, .qpn = 3,	.ctl_qpn = 4};

		urn_sv_heal_heard(&r->q, &o);
		assert_int_equal(r->q.path[1].heal.peer_trusts, t[i].trusts);
		assert_int_equal(r->q.path[1].heal.end.to, t[i].round);
	}
}

/* An end that was lost says so, until it is made anew. */
static void
tells_of_loss(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_path *p = &r->q.path[1];

	p->real = &real_qp;
	p->ctl = &ctl_qp;
	LIST_INSERT_HEAD(&r->ctx.ctl_bucket[CTL % URN_SV_BUCKETS], p, ctl_link);
	LIST_INSERT_HEAD(&r->ctx.qps, &r->q, link);
	r->ctx.dead[1] = true;
	urn_sv_heal_lost(p);
	assert_int_equal(told_flags, URN_SESS_O_LOST);
	(void)urn_sv_heal_tick(&r->ctx, clock_ms);
	assert_int_equal(made, 1);
	assert_int_equal(told, 2);
	assert_int_equal(told_flags, 0);
}

/* Many queue pairs whose second path is lost; to be freed. pause: ms, between offers */
static struct urn_sv_qp *
crowd(struct offer_rig *r, unsigned int n, uint32_t pause)
{
	struct urn_sv_qp *q = calloc(n, sizeof(*q));

	assert_non_null(q);
	r->ctx.dead[1] = true;
	for (unsigned int i = 0; i < n; i++) {
		q[i] = r->q;
		q[i].ibv.qp_num = NUMBER + i;
		for (uint32_t k = 0; k < URN_SV_PATHS; k++)
			q[i].path[k].qp = &q[i];
		q[i].path[1].heal.pause = pause;
		LIST_INSERT_HEAD(&r->ctx.qps, &q[i], link);
	}
	return q;
}

/* A turn of the thread, which has the lock, makes a bounded number of paths anew; the others follow
 * in the next turns. */
static void
crowd_heals(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_qp *q = crowd(r, CROWD, PROBE_MS);

	for (unsigned int most = A_TURN; most < CROWD + A_TURN; most += A_TURN) {
		assert_true(urn_sv_heal_tick(&r->ctx, clock_ms) == clock_ms + 1 || most >= CROWD);
		assert_int_equal(made, most < CROWD ? most : CROWD);
		assert_int_equal(asked, made); /* a turn that is full asks for no more */
		clock_ms++;
	}
	for (unsigned int i = 0; i < CROWD; i++)
		assert_true(q[i].path[1].heal.fresh);
	free(q);
}

/* The same when the peers ask for it, all at once; nobody is forgotten. */
static void
crowd_asks(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_qp *q = crowd(r, CROWD, PROBE_MS);
	struct urn_sess_offer o = {.path = 1, .round = 2, .to = 0, .qpn = 3, .ctl_qpn = 4};

	for (unsigned int i = 0; i < CROWD; i++)
		urn_sv_heal_heard(&q[i], &o);
	assert_int_equal(made, A_TURN);
	assert_int_equal(asked, A_TURN);
	for (unsigned int i = 0; i < CROWD; i++) {
		(void)urn_sv_heal_tick(&r->ctx, clock_ms);
		assert_true(made <= A_TURN * (i + 2));
		clock_ms++;
	}
	assert_int_equal(made, CROWD);
	free(q);
}

/* Queue pairs that can't be made, over and over, hold no others up. */
static void
crowd_in_vain(void **state)
{
	struct offer_rig *r = *state;
	struct urn_sv_qp *q = crowd(r, CROWD, 0);

	r->ctx.options.probe = 1;
	init_err = ENOMEM;
	for (unsigned int i = 0; i < CROWD / A_TURN + 1; i++)
		(void)urn_sv_heal_tick(&r->ctx, clock_ms++);
	for (unsigned int i = 0; i < CROWD; i++)
		assert_true(q[i].path[1].heal.made_at != 0);
	free(q);
}

/* Let the peer send what the receive has now, so many times. */
static void
hear(struct offer_rig *r, unsigned int times, uint32_t bytes)
{
	struct urn_sv_path *p = &r->q.path[1];

	while (times-- > 0) {
		p->ctl = &ctl_qp;
		LIST_INSERT_HEAD(&r->ctx.ctl_bucket[CTL % URN_SV_BUCKETS], p, ctl_link);
		waiting =
			(struct ibv_wc){.wr_id = URN_SV_ID_RECV, .qp_num = CTL, .byte_len = bytes};
		urn_sv_control_poll(&r->ctx, 0);
		if (p->ctl != NULL)
			LIST_REMOVE(p, ctl_link);
	}
}

/* The text of the log; to be freed. lines: how many it has */
static char *
logged(const struct offer_rig *r, unsigned int *lines)
{
	off_t bytes = lseek(r->ctx.log_fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)bytes + 1);

	assert_non_null(text);
	assert_int_equal(pread(r->ctx.log_fd, text, (size_t)bytes, 0), bytes);
	*lines = 0;
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		++*lines;
	return text;
}

/* A peer that sends without end, offers or nonsense, writes a bounded log, which tells how many
 * lines it lacks. */
static void
log_bounded(void **state)
{
	struct offer_rig *r = *state;
	uint8_t *at = r->q.memory + URN_SV_AT_CONTROL + URN_SV_CONTROLS * URN_SV_CONTROL_BYTES;
	struct urn_sess_offer o = {.path = 1, .round = 1, .to = 1, .qpn = 3, .ctl_qpn = 4};
	unsigned int lines, all = FLOOD;
	char *text, out[64];

	r->ctx.log_fd = memfd_create("log", MFD_CLOEXEC);
	r->ctx.options.log = URN_LOG_DEBUG;
	assert_true(r->ctx.log_fd >= 0);
	hear(r, FLOOD, 3); /* refused */
	(void)urn_sess_wire_offer(at, NUMBER, 0, &o);
	hear(r, 2 * FLOOD, URN_SESS_WIRE_OFFER_BYTES);
	all += 2 * FLOOD;
	text = logged(r, &lines);
	assert_int_equal(lines, URN_SV_LINES);
	assert_null(strstr(text, "left-out"));
	free(text);
	clock_ms += 1000 / URN_SV_LINES_A_SECOND;
	hear(r, 1, 3);
	text = logged(r, &lines);
	assert_int_equal(lines, URN_SV_LINES + 2);
	snprintf(out, sizeof(out), " left-out lines=%u because", all - URN_SV_LINES);
	assert_non_null(strstr(text, out));
	free(text);
	/* The end of the connection is told, whatever came before. */
	hear(r, FLOOD, 3);
	urn_sv_log_end(&r->q);
	text = logged(r, &lines);
	assert_int_equal(lines, URN_SV_LINES + 4);
	assert_non_null(strstr(text, " end "));
	free(text);
	close(r->ctx.log_fd);
	r->ctx.log_fd = -1;
}

/* A connection returns to a better path at once if others outlast its loss, else when it is proven.
 */
static void
returns(void **state)
{
	static const struct {
		uint32_t alive, distrusted, n;
	} t[] = {
		{0x9, 0, 0}, {0xb, 0, 0}, {0xd, 0, 0}, {0xf, 0, 1}, {0xf, 0x2, 0}, {0xf, 0x4, 0},
	};
	struct offer_rig *r = *state;
	uint64_t proven = clock_ms + 50 * PROBE_MS;

	LIST_INSERT_HEAD(&r->ctx.qps, &r->q, link);
	r->ctx.options.fail_back = true;
	r->ctx.dead[0] = r->ctx.dead[1] = true; /* nothing is offered */
	r->q.path[0].heal.trusted_at = clock_ms;
	r->q.c.path = 3;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t next;

		returned = 0;
		r->q.c.alive = t[i].alive;
		for (uint32_t k = 0; k < URN_SV_PATHS; k++)
			r->q.path[k].heal.peer_trusts = !(t[i].distrusted & 1u << k);
		next = urn_sv_heal_tick(&r->ctx, proven - 1);
		assert_int_equal(returned, t[i].n);
		assert_true(next == (t[i].n ? UINT64_MAX : proven));
		(void)urn_sv_heal_tick(&r->ctx, proven);
		assert_int_equal(returned, t[i].n + 1);
	}
	returned = 0;
	r->q.path[0].heal.peer_trusts = false;
	(void)urn_sv_heal_tick(&r->ctx, proven);
	assert_int_equal(returned, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limited, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(tick_limited, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(in_vain, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(of_itself, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(objects_first, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(shunned, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(word_of_loss, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(tells_of_loss, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(crowd_heals, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(crowd_asks, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(crowd_in_vain, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(log_bounded, offer_setup, offer_teardown),
		cmocka_unit_test_setup_teardown(returns, offer_setup, offer_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
