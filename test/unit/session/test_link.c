/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that go down and up: connections leave an adapter whose link is down (FO-10, FO-11), but
 * only for one that can carry them. */
#include "verbs/front.h"
#include "verbs/session/heal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

enum { ALL = 0xf, PRIMARY = 0x3, BACKUP = 0xc, P_S = 1 << 1, S_P = 1 << 2 };

static struct urn_verbs_ctx below[URN_SV_ADAPTERS];
static struct urn_sv_ctx ctx;
static struct urn_sv_qp qp, plain;
static enum ibv_port_state port; /* that adapters tell */
static int port_err;		 /* ... or an errno value */

void __wrap_urn_sv_down(struct urn_sv_qp *q, uint32_t bit);

/* The path is not alive any more. */
void
__wrap_urn_sv_down(struct urn_sv_qp *q, uint32_t bit)
{
	assert_true(q->c.alive & 1u << bit);
	assert_non_null(q->why);
	q->c.alive &= ~(1u << bit);
}

static int
query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	(void)c;
	attr->state = port;
	attr->phys_state = port == IBV_PORT_ACTIVE ? 5 : 3;
	return port_err;
}

static const struct urn_verbs_ops ops = {.query_port = query_port};

static int
setup(void **state)
{
	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	memset(&qp, 0, sizeof(qp));
	ctx.log_fd = -1;
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		memset(&below[i], 0, sizeof(below[i]));
		below[i].ops = &ops;
		ctx.below[i] = &below[i].vctx.context;
	}
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		qp.path[i] = (struct urn_sv_path){
			.qp = &qp, .mine = i / URN_SV_ADAPTERS, .theirs = i % URN_SV_ADAPTERS};
	qp.ctx = &ctx;
	qp.mode = URN_SV_SESSION;
	qp.lower = true;
	qp.c.alive = ALL;
	plain = qp;
	plain.mode = URN_SV_PLAIN;
	LIST_INSERT_HEAD(&ctx.qps, &plain, link);
	LIST_INSERT_HEAD(&ctx.qps, &qp, link);
	port = IBV_PORT_ACTIVE;
	port_err = 0;
	return 0;
}

/* All paths of the adapter are left, and no other; a queue pair without a session stays. */
static void
leaves(void **state)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		setup(state);
		urn_sv_link(&ctx, i, false);
		assert_int_equal(qp.c.alive, i == 0 ? BACKUP : PRIMARY);
		assert_int_equal(plain.c.alive, ALL);
		urn_sv_link(&ctx, i, true);
		assert_int_equal(qp.c.alive, i == 0 ? BACKUP : PRIMARY);
	}
}

/* The end that counts the peer's adapters first leaves its own, too. */
static void
mirrored(void **state)
{
	(void)state;
	qp.lower = false;
	urn_sv_link(&ctx, 0, false);
	assert_int_equal(qp.c.alive, 1u << urn_sv_bit(&qp, 2) | 1u << urn_sv_bit(&qp, 3));
	assert_int_equal(qp.c.alive, P_S | 1 << 3);
}

/* With the last link a connection stays, and leaves when another path is trusted. */
static void
last(void **state)
{
	(void)state;
	urn_sv_link(&ctx, 0, false);
	urn_sv_link(&ctx, 1, false);
	assert_int_equal(qp.c.alive, BACKUP);
	qp.c.alive |= P_S; /* its adapter's link is down as well */
	urn_sv_link_leave(&qp);
	assert_int_equal(qp.c.alive, BACKUP | P_S);
	urn_sv_link(&ctx, 0, true); /* ... and is up again */
	assert_int_equal(qp.c.alive, P_S);
}

/* An adapter that is lost is no spare, and a dead one's link is nobody's concern. */
static void
dead(void **state)
{
	(void)state;
	ctx.dead[1] = true;
	urn_sv_link(&ctx, 0, false);
	assert_int_equal(qp.c.alive, ALL);
	ctx.dead[1] = false;
	ctx.dead[0] = true;
	ctx.down[0] = false;
	urn_sv_link(&ctx, 0, false);
	assert_int_equal(qp.c.alive, ALL);
	assert_false(ctx.down[0]);
}

/* A path that is not alive is not left again, and an event that tells nothing new does nothing. */
static void
twice(void **state)
{
	(void)state;
	qp.c.alive = S_P | 1;
	urn_sv_link(&ctx, 0, false);
	assert_int_equal(qp.c.alive, S_P);
	qp.c.alive = ALL;
	urn_sv_link(&ctx, 0, false);
	urn_sv_link(&ctx, 1, true);
	assert_int_equal(qp.c.alive, ALL);
}

/* The state is asked for; an adapter that does not tell is taken to be up. */
static void
asks(void **state)
{
	(void)state;
	port = IBV_PORT_DOWN;
	assert_false(urn_sv_link_up(&ctx, 1));
	port = IBV_PORT_ACTIVE;
	assert_true(urn_sv_link_up(&ctx, 1));
	port = IBV_PORT_DOWN;
	port_err = EIO;
	assert_true(urn_sv_link_up(&ctx, 0));
}

/* The program sees a port that is up as long as one adapter's is (FO-1). */
static void
shown(void **state)
{
	struct ibv_port_attr attr = {0};

	(void)state;
	ctx.port.state = IBV_PORT_DOWN; /* ports at the time of opening */
	ctx.port.phys_state = 3;
	port = IBV_PORT_DOWN;
	assert_int_equal(urn_sv_query_port(&ctx.front.vctx.context, &attr), 0);
	assert_true(attr.state == IBV_PORT_ACTIVE && attr.phys_state == 5);
	ctx.down[1] = true;
	assert_int_equal(urn_sv_query_port(&ctx.front.vctx.context, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_DOWN);
	assert_int_equal(attr.phys_state, 3);
	ctx.down[1] = false;
	ctx.dead[1] = true;
	assert_int_equal(urn_sv_query_port(&ctx.front.vctx.context, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_DOWN);
	ctx.port.state = IBV_PORT_ACTIVE;
	port_err = EIO; /* both adapters are away */
	assert_int_equal(urn_sv_query_port(&ctx.front.vctx.context, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_DOWN);
	ctx.dead[1] = false;
	assert_int_equal(urn_sv_query_port(&ctx.front.vctx.context, &attr), 0);
	assert_true(attr.state == IBV_PORT_ACTIVE && attr.phys_state == 5);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup(t, setup)
	const struct CMUnitTest tests[] = {T(leaves), T(mirrored), T(last), T(dead),
					   T(twice),  T(asks),	   T(shown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
