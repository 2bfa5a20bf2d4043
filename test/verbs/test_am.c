/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages and remote memory access as programs see them (AM-1 to AM-4, AM-8, AM-9, AM-11):
 * two nodes, whose engines another thread turns. Each test runs with an embedded dataplane, and
 * over the dataplane's socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "am_net.h"

#include "am/endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- handlers */

static void
see(struct side *s, const struct urn_am_message *m)
{
	assert_true(m->len <= PAYLOAD);
	s->seen = *m;
	memcpy(s->data, m->data, m->len);
}

/* A request's handler that replies with the arguments doubled and the payload, to handler 1. */
static void
echo(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;
	uint64_t twice[URN_AM_ARGS];

	see(s, m);
	s->requests++;
	for (unsigned int i = 0; i < m->args; i++)
		twice[i] = 2 * m->arg[i];
	assert_int_equal(urn_am_reply(ep, m->token, 1, twice, m->args, m->data, m->len), 0);
}

/* A reply has no token, a request has one. */
static void
note(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;

	(void)ep;
	see(s, m);
	*(m->token ? &s->requests : &s->replies) += 1;
}

static void
note_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	struct side *s = arg;

	(void)ep;
	s->failure = *f;
	s->failures++;
}

/* ---- messages */

/* AM-1: arguments and payload of every length arrive, once; the reply comes back and names its
 * request. */
static void
test_request_and_reply(void **state)
{
	static uint8_t data[PAYLOAD];
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t args[URN_AM_ARGS], number;
	unsigned int sent = 0;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);
	for (uint32_t len = 0; len <= PAYLOAD; len = len * 3 + 1, sent++) {
		uint32_t args_n = sent % (URN_AM_ARGS + 1);

		for (uint32_t i = 0; i < URN_AM_ARGS; i++)
			args[i] = len * 1000ull + i;
		memset(data, (int)len, len);
		assert_int_equal(
			urn_am_request(a->ep, &b->address, 7, args, args_n, data, len, &number), 0);
		net_until(n, &a->replies, sent + 1);
		assert_int_equal(b->requests, sent + 1);
		assert_true(a->seen.number == number && a->seen.token == 0 && b->seen.token != 0);
		assert_int_equal(a->seen.len, len);
		assert_memory_equal(a->data, data, len);
		assert_memory_equal(b->seen.node, a->address.node, 16);
		assert_int_equal(a->seen.args, args_n);
		for (uint32_t i = 0; i < URN_AM_ARGS; i++)
			assert_true(a->seen.arg[i] == (i < args_n ? 2 * args[i] : 0));
		assert_int_equal(urn_am_pending(a->ep), 0);
	}
}

/* AM-1: a program hands out whichever address of its node it likes: the answer comes from there. */
static void
test_addresses(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);
	urn_am_on_failure(a->ep, note_failure, a);
	for (uint32_t i = 0; urn_am_address(b->ep, i, &b->address) == 0; i++) {
		assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
		net_until_quiet(n, a);
		assert_int_equal(a->failures, 0);
		assert_int_equal(a->replies, i + 1);
	}
	assert_int_equal(a->replies, 3);
}

/* AM-1: a handler need not reply: the request is answered all the same. More requests than have
 * room wait for progress. */
static void
test_requests_without_reply(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	unsigned int sent = 0, again = 0;

	urn_am_handle(b->ep, 3, note, b);
	while (sent < 200) {
		int err = urn_am_request(a->ep, &b->address, 3, NULL, 0, &sent, sizeof(sent), NULL);

		assert_true(err == 0 || err == EAGAIN);
		sent += err == 0;
		again += err == EAGAIN;
		assert_true(urn_am_pending(a->ep) <= 8);
		if (err == EAGAIN)
			(void)urn_am_progress(n->side[again % 2].ep);
	}
	net_until_quiet(n, a);
	assert_int_equal(b->requests, 200);
	assert_true(again > 0);
	assert_int_equal(a->failures, 0);
}

/* Try what a handler may not do. */
static void
break_rules(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;
	struct urn_rma op = {.to = &s->address, .memory = &s->memory, .local = s->buf, .len = 1};

	s->requests++;
	s->err[0] = urn_am_request(ep, &s->address, 7, NULL, 0, NULL, 0, NULL);
	s->err[1] = urn_rma_write(ep, &op);
	s->err[2] = urn_am_reply(ep, m->token + 1, 1, NULL, 0, NULL, 0);
	assert_int_equal(urn_am_progress(ep), 0);
	assert_int_equal(urn_am_reply(ep, m->token, 1, NULL, 0, NULL, 0), 0);
	s->err[3] = urn_am_reply(ep, m->token, 1, NULL, 0, NULL, 0);
}

/* A reply's handler is a handler, too, and has nothing to reply to. */
static void
break_rules_of_replies(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;

	s->replies++;
	s->err[0] = urn_am_request(ep, &s->address, 7, NULL, 0, NULL, 0, NULL);
	s->err[1] = urn_am_reply(ep, m->token, 1, NULL, 0, NULL, 0);
}

/* AM-1: no request inside a handler, no reply outside, no second reply: each a clear error, and
 * nothing hangs. */
static void
test_rules(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];

	urn_am_handle(a->ep, 1, break_rules_of_replies, a);
	urn_am_handle(b->ep, 7, break_rules, b);
	assert_int_equal(urn_am_reply(a->ep, 1, 1, NULL, 0, NULL, 0), EPERM);
	assert_non_null(strstr(urn_attach_error(), "inside the handler of a request"));
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	net_until(n, &a->replies, 1);
	assert_int_equal(b->err[0], EPERM);
	assert_int_equal(b->err[1], EPERM);
	assert_int_equal(b->err[2], EPERM);
	assert_int_equal(b->err[3], EALREADY);
	assert_int_equal(a->err[0], EPERM);
	assert_int_equal(a->err[1], EPERM);
	assert_int_equal(urn_am_reply(b->ep, 1, 1, NULL, 0, NULL, 0),
			 EPERM); /* the token outlives its handler */
	net_until_quiet(n, a);
	assert_int_equal(
		urn_am_request(a->ep, &b->address, URN_AM_HANDLERS, NULL, 0, NULL, 0, NULL),
		EINVAL);
	assert_int_equal(
		urn_am_request(a->ep, &b->address, 7, NULL, URN_AM_ARGS + 1, NULL, 0, NULL),
		EINVAL);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, a->buf, PAYLOAD + 1, NULL),
			 EMSGSIZE);
	assert_int_equal(urn_am_handle(a->ep, URN_AM_HANDLERS, note, a), EINVAL);
	assert_int_equal(urn_am_pending(a->ep), 0);
}

/* AM-1: an unknown handler is told to both sides; so are a target that is not there, and one that
 * does not answer. */
static void
test_failures(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_address nobody = b->address;
	struct urn_am_stats stats;
	uint64_t number;

	urn_am_on_failure(a->ep, note_failure, a);
	assert_int_equal(urn_am_request(a->ep, &b->address, 9, NULL, 0, NULL, 0, &number), 0);
	net_until(n, &a->failures, 1);
	assert_int_equal(a->failure.err, ENOSYS);
	assert_true(a->failure.number == number);
	assert_string_equal(a->failure.text, "the target has no handler 9");
	urn_am_get_stats(b->ep, &stats);
	assert_int_equal(stats.unknown_handler, 1);
	nobody.requests ^= 1ull << 40;
	assert_int_equal(urn_am_request(a->ep, &nobody, 9, NULL, 0, NULL, 0, &number), 0);
	net_until(n, &a->failures, 2);
	assert_int_equal(a->failure.err, EHOSTUNREACH);
	assert_int_equal(a->failure.code, URN_MSG_NO_QUEUE);
	/* The target's program sleeps. */
	assert_int_equal(urn_am_request(a->ep, &b->address, 9, NULL, 0, NULL, 0, &number), 0);
	while (a->failures < 3)
		(void)urn_am_progress(a->ep);
	assert_int_equal(a->failure.err, ETIMEDOUT);
	(void)urn_am_progress(b->ep); /* the answer comes too late */
	while (urn_am_get_stats(a->ep, &stats), stats.stray_replies == 0)
		(void)urn_am_progress(a->ep);
	assert_int_equal(a->failures, 3);
	assert_int_equal(urn_am_pending(a->ep), 0);
}

/* Answer with a reply for a handler that the requester does not have. */
static void
answer_astray(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	assert_int_equal(urn_am_reply(ep, m->token, 200, NULL, 0, NULL, 0), 0);
}

/* A reply that names a handler which is not registered ends its request, and says so. */
static void
test_reply_astray(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_stats stats;
	uint64_t number;

	urn_am_on_failure(a->ep, note_failure, a);
	urn_am_handle(b->ep, 7, answer_astray, NULL);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, &number), 0);
	net_until(n, &a->failures, 1);
	assert_int_equal(a->failure.err, ENOSYS);
	assert_true(a->failure.number == number);
	assert_non_null(strstr(a->failure.text, "reply names handler 200"));
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.unknown_handler, 1);
	assert_int_equal(urn_am_pending(a->ep), 0);
	/* The endpoint goes on. */
	urn_am_handle(b->ep, 7, echo, b);
	urn_am_handle(a->ep, 1, note, a);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	net_until(n, &a->replies, 1);
}

/* Messages of others than this library, and replies that nobody asked for, are counted and change
 * nothing. */
static void
test_strange_messages(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_msg_attr attr = {.send_size = 256};
	struct urn_register_set *set = urn_msg_set_create(a->dev, &attr);
	struct urn_msg_to to = {.qid = b->address.requests};
	uint8_t msg[200], code;
	struct urn_am_stats stats;
	uint32_t rnd = 1;

	assert_non_null(set);
	memcpy(to.node, b->address.node, 16);
	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);
	for (unsigned int i = 0; i < 500; i++) {
		uint32_t len = i % sizeof(msg);

		for (unsigned int k = 0; k < sizeof(msg); k++) {
			rnd = rnd * 1103515245u + 12345u;
			msg[k] = (uint8_t)(rnd >> 16);
		}
		if (i % 2)
			memcpy(msg,
			       (uint8_t[]){0xa3, (uint8_t)(i / 2 % 6), (uint8_t)(i / 12 % 10), 0, 0,
					   0, 0},
			       7);
		to.qid = i % 4 < 2 ? b->address.requests : b->ep->replies.qid;
		assert_int_equal(urn_msg_set_send_wait(set, &to, msg, len, -1, &code), 0);
		(void)urn_am_progress(b->ep);
		(void)urn_am_progress(a->ep);
	}
	urn_am_get_stats(b->ep, &stats);
	assert_true(stats.malformed > 300 && stats.stray_replies > 10);
	assert_int_equal(a->replies + a->requests, 0);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	net_until(n, &a->replies, 1);
	urn_msg_set_destroy(set);
}

/* ---- memory */

/* AM-2, AM-3, AM-8: bytes go there and back by each way, while both programs drive their progress.
 * (AM-11, a target whose program does nothing: test_fence() of test_am_ops.c.) */
static void
test_memory(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, MEM};
	struct urn_rma op = {.to = &b->address, .local = a->buf};
	uint64_t counter = 0;

	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &op.key), 0);
	for (uint32_t len = 1; len <= MEM;
	     len = len < MEM && len * 7 + 1 > MEM ? MEM : len * 7 + 1) {
		for (uint32_t i = 0; i < len; i++)
			a->buf[i] = (uint8_t)(i * 31 + len);
		op.remote = (uintptr_t)b->buf + (MEM - len) / 2;
		op.len = len;
		op.counter = &counter;
		for (uint8_t i = 0; i < 8; i++) {
			/* A write and a read back by each way; one reply to the pipelined write. */
			op.way = i / 2 == URN_AM_DIRECT ? URN_AM_PIPELINED : i / 2;
			op.every = i == 2 ? URN_AM_EVERY_TRANSFER : 0;
			memset(i % 2 ? a->buf : b->buf + (MEM - len) / 2, 0, len);
			assert_int_equal(net_operate(n, a, i % 2 == 0, op), URN_AM_DONE);
			assert_int_equal(a->bytes, len);
			assert_memory_equal(b->buf + (MEM - len) / 2, a->buf, len);
		}
		if (len == MEM)
			break;
	}
	assert_true(counter >= 10);
	op.way = URN_AM_DIRECT;
	op.len = MEM;
	op.remote = (uintptr_t)b->buf;
	assert_int_equal(net_operate(n, a, true, op), URN_AM_BAD_COMMAND);
}

/* AM-9: key, range and rights; a region that was taken back. */
static void
test_memory_errors(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part[2] = {{&b->memory, b->buf, 100}, {&b->memory, b->buf + 200, 100}};
	struct urn_rma op = {
		.to = &b->address, .local = a->buf, .len = 100, .remote = (uintptr_t)b->buf};

	memset(a->buf, 0x5a, MEM);
	memset(b->buf, 0, MEM);
	assert_int_equal(urn_am_region_create(b->ep, part, 2, URN_AM_ACCESS_READ, &op.key), 0);
	assert_int_equal(net_operate(n, a, true, op), URN_AM_RIGHTS);
	assert_int_equal(net_operate(n, a, false, op), URN_AM_DONE);
	op.len = 101;
	assert_int_equal(net_operate(n, a, false, op), URN_AM_RANGE);
	op.len = 100;
	op.remote += 200;
	assert_int_equal(net_operate(n, a, false, op), URN_AM_DONE);
	op.key++;
	assert_int_equal(net_operate(n, a, false, op), URN_AM_BAD_KEY);
	op.key--;
	assert_int_equal(urn_am_region_destroy(b->ep, op.key), 0);
	assert_int_equal(net_operate(n, a, false, op), URN_AM_BAD_KEY);
	assert_int_equal(urn_am_region_destroy(b->ep, op.key), EINVAL);
	op.key = 0;
	assert_int_equal(net_operate(n, a, false, op), URN_AM_UNREGISTERED);
	assert_int_equal(urn_am_space_declare(b->ep, part, 1, URN_AM_ACCESS_ALL), EPERM);
	assert_non_null(strstr(urn_attach_error(), "am_unregistered"));
	op.local = a->buf + MEM;
	assert_int_equal(net_operate(n, a, false, op), URN_AM_LOCAL);
	for (unsigned int i = 0; i < 400; i++)
		assert_int_equal(b->buf[i], 0);
}

/* Many operations at a time: EAGAIN says when there are too many, and each ends once. */
static void
test_many_operations(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, MEM};
	struct urn_rma op = {.to = &b->address,
			     .memory = &a->memory,
			     .len = 64,
			     .done = net_note_done,
			     .arg = a};
	unsigned int sent = 0, again = 0;
	uint64_t counter = 0;

	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &op.key), 0);
	op.counter = &counter;
	for (uint32_t i = 0; i < MEM; i++)
		a->buf[i] = (uint8_t)(i / 64 * 7);
	while (sent < 4000) {
		int err;

		op.local = a->buf + sent * 64;
		op.remote = (uintptr_t)b->buf + sent * 64;
		err = urn_rma_write(a->ep, &op);
		assert_true(err == 0 || err == EAGAIN);
		sent += err == 0;
		again += err == EAGAIN;
		if (err)
			(void)urn_am_progress(a->ep);
	}
	net_until_quiet(n, a);
	assert_true(a->done == 4000 && counter == 4000 && again > 0);
	assert_memory_equal(b->buf, a->buf, 4000 * 64);
}

/* Memory that a dataplane in another process can't map is refused, with the reason. */
static void
test_private_memory(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0];
	struct urn_am_memory memory;
	uint8_t *own = malloc(5000);
	char says[64];

	assert_non_null(own);
	assert_int_equal(urn_am_memory_add(a->ep, own, 5000, &memory), EOPNOTSUPP);
	snprintf(says, sizeof(says), "does not map the 5000 bytes at %p", (void *)own);
	assert_non_null(strstr(urn_attach_error(), says));
	assert_non_null(strstr(urn_attach_error(), "urn_alloc()"));
	free(own);
}

int
main(void)
{
#define OVER(f, way)                                         \
	{                                                    \
#f " " #way, f, net_setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {
		BOTH(test_request_and_reply),
		BOTH(test_addresses),
		BOTH(test_requests_without_reply),
		BOTH(test_rules),
		BOTH(test_failures),
		BOTH(test_reply_astray),
		BOTH(test_strange_messages),
		BOTH(test_memory),
		BOTH(test_memory_errors),
		BOTH(test_many_operations),
		OVER(test_private_memory, "socket"),
	};

	return cmocka_run_group_tests_name("am", tests, NULL, NULL);
}
