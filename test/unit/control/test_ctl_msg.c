/* SPDX-License-Identifier: BSD-3-Clause */
/* Register sets are opened, named and closed (doorbell.md DB-1, DB-11); quotas hold. */
#include "ctl_msg_rig.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- open and close */

/* DB-1: the reply says where registers and arena are, which are zero and apart from each other's.
 */
static void
a_reply_says_where(void **state)
{
	static const struct urn_abi_msg_set zero;
	struct rig_set s[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		rig_open_set(&s[i], 0, i, 0);
		assert_int_equal(s[i].rep.msg.engine, i);
		assert_int_equal(s[i].rep.msg.arena, ARENA);
		assert_int_equal(s[i].rep.msg.off % 64, 0);
		assert_int_equal(s[i].rep.msg.arena_off, s[i].rep.msg.off + sizeof(zero));
		assert_memory_equal(s[i].regs, &zero, sizeof(zero));
		assert_false(urn_msg_qid_is_named(s[i].rep.msg.qid));
		assert_int_equal(urn_msg_qid_engine(s[i].rep.msg.qid), i);
		assert_int_not_equal(s[i].rep.msg.qid >> 32, 0);
	}
	assert_true(s[0].rep.msg.off + sizeof(zero) + ARENA <= s[1].rep.msg.off ||
		    s[1].rep.msg.off + sizeof(zero) + ARENA <= s[0].rep.msg.off);
	assert_int_not_equal(s[0].rep.handle, s[1].rep.handle);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(rig_close_set(&s[i]), 0);
		assert_int_equal(rig_close_set(&s[i]), EINVAL);
	}
}

/* A library that does not know messages can't open sets. */
static void
the_feature_is_needed(void **state)
{
	struct urn_abi_req req = rig_open_req(0, 0);

	(void)state;
	rig_hello(0, URN_ABI_FEATURES & ~(uint32_t)URN_ABI_FEATURE_MSG);
	assert_int_equal(rig_call(0, &req).err, EOPNOTSUPP);
}

static void
nonsense_is_refused(void **state)
{
	struct urn_abi_req req = rig_open_req(0, 0x8000);
	struct rig_set s;

	(void)state;
	assert_int_equal(rig_call(0, &req).err, EINVAL);
	req = rig_open_req(0, 0);
	req.msg_open.arena = URN_MSG_ARENA_MAX + 1ull;
	assert_int_equal(rig_call(0, &req).err, EINVAL);
	req.msg_open.arena = UINT64_MAX;
	assert_int_equal(rig_call(0, &req).err, EINVAL);
	req.msg_open.arena = URN_MSG_ARENA_MAX; /* more than the client's area */
	assert_int_equal(rig_call(0, &req).err, ENOMEM);
	rig_open_set(&s, 0, UINT32_MAX, 0); /* any vector is an engine's */
	for (uint32_t handle = 0; handle < 8; handle++) {
		req = (struct urn_abi_req){.op = URN_CTL_MSG_CLOSE, .handle = handle << 16 | 7};
		assert_int_equal(rig_call(0, &req).err, EINVAL);
	}
	req.handle = UINT32_MAX;
	assert_int_equal(rig_call(0, &req).err, EINVAL);
	req.handle = s.rep.handle; /* another client's */
	assert_int_equal(rig_call(1, &req).err, EINVAL);
	req.op = URN_CTL_MSG_BIND;
	assert_int_equal(rig_call(1, &req).err, EINVAL);
	assert_int_equal(rig_close_set(&s), 0);
}

/* DB-1: thousands of sets, whose places are used again; ids of doorbells and memory come back. */
static void
thousands_come_and_go(void **state)
{
	enum { N = 4096 };
	static struct rig_set s[N];
	struct urn_abi_req req = rig_open_req(0, 0);
	uint64_t next = 0;

	(void)state;
	req.msg_open.arena = 1024;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < N; i++) {
			req.msg_open.comp_vector = i;
			struct urn_abi_rep rep = rig_ask(0, &req);

			rig_adopt(&s[i], 0, &rep);
			assert_true(s[i].rep.msg.db < N);
		}
		if (round == 0)
			next = ((struct urn_client *)rig_channel[0]->ctx)->area.next;
		for (unsigned int i = 0; i < N; i++)
			assert_int_equal(rig_close_set(&s[i]), 0);
	}
	assert_true(((struct urn_client *)rig_channel[0]->ctx)->area.next == next);
}

/* ---- names */

/* DB-11: a name is taken once, and free again when its set lets go or ends. */
static void
names_are_taken_once(void **state)
{
	struct urn_abi_rep rep;
	struct rig_set a, b, other;

	(void)state;
	rig_open_set(&a, 0, 1, URN_MSG_OPEN_NAMED);
	rig_open_set(&b, 1, 0, URN_MSG_OPEN_NAMED);
	rig_open_set(&other, 0, 1, 0);
	assert_int_equal(a.rep.msg.engine, 0); /* the adapter's first engine, whatever was wanted */
	assert_int_equal(rig_bind_name(&other, 7, 0, &rep), EINVAL);
	assert_int_equal(rig_bind_name(&a, 7, 0, &rep), 0);
	assert_true(rep.msg.qid == URN_MSG_NAME(7));
	assert_int_equal(rig_bind_name(&b, 7, 0, &rep), EADDRINUSE);
	assert_int_equal(rig_bind_name(&b, 8, 0, &rep), 0);
	assert_int_equal(rig_bind_name(&a, 0, 0, &rep), 0);
	assert_int_equal(rig_bind_name(&b, 7, 0, &rep), 0);
	assert_int_equal(rig_bind_name(&a, 8, 0, &rep), 0);
	assert_int_equal(rig_close_set(&b), 0);
	assert_int_equal(rig_bind_name(&a, 7, 0, &rep), 0);
}

/* Any name of a range: a free one, as long as there is one. */
static void
any_name_of_a_range(void **state)
{
	enum { N = 700 };
	static struct rig_set s[N + 1];
	static bool seen[N];
	struct urn_abi_rep rep;
	struct urn_abi_req req = rig_open_req(0, URN_MSG_OPEN_NAMED);

	(void)state;
	req.msg_open.arena = 64;
	for (unsigned int i = 0; i <= N; i++) {
		struct urn_abi_rep opened = rig_ask(0, &req);

		rig_adopt(&s[i], 0, &opened);
	}
	assert_int_equal(rig_bind_name(&s[0], 500, 500, &rep), EINVAL);
	assert_int_equal(rig_bind_name(&s[0], 500, 499, &rep), EINVAL);
	for (unsigned int i = 0; i < N; i++) {
		uint32_t at;

		assert_int_equal(rig_bind_name(&s[i], 1000, 1000 + N, &rep), 0);
		at = (uint32_t)(rep.msg.qid - URN_MSG_NAME(1000));
		assert_true(at < N && !seen[at]);
		seen[at] = true;
	}
	assert_int_equal(rig_bind_name(&s[N], 1000, 1000 + N, &rep), EADDRINUSE);
	assert_int_equal(rig_bind_name(&s[N], UINT32_MAX - 1, UINT32_MAX, &rep), 0);
	assert_true(rep.msg.qid == URN_MSG_NAME(UINT32_MAX - 1));
}

/* Quotas: a client's own, its user's; a set that is closed, and a client that dies, give theirs
 * back. */
static void
quotas_hold(void **state)
{
	static uint32_t handle[64];
	struct urn_client *a, *b, *other;
	struct urn_ledger ledger;
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE};
	struct urn_abi_rep rep;
	struct rig_set s;

	(void)state;
	urn_quota_ledger_init(&ledger, 0);
	a = rig_stranger(&ledger, 1000, 10, 15);
	b = rig_stranger(&ledger, 1000, 10, 15);
	other = rig_stranger(&ledger, 1001, 10, 15);
	assert_int_equal(rig_open_all(a, &rep, handle), 10);
	assert_int_equal(rep.err, EDQUOT);
	assert_non_null(strstr(rep.why, "a program may have at most 10 register sets"));
	assert_int_equal(rig_open_all(b, &rep, handle + 20), 5);
	assert_non_null(strstr(rep.why, "a user may have at most 15 register sets"));
	assert_int_equal(rig_open_all(other, &rep, handle + 40), 10); /* another user's */
	rig_open_set(&s, 0, 0, 0); /* a program's that embeds the dataplane */
	req.handle = handle[3];
	urn_ctl_call(b, &req, &rep); /* not its own */
	assert_int_equal(rep.err, EINVAL);
	urn_ctl_call(a, &req, &rep);
	assert_int_equal(rep.err, 0);
	urn_ctl_call(a, &req, &rep);
	assert_int_equal(rep.err, EINVAL);
	assert_int_equal(rig_open_all(b, &rep, handle + 25), 1);
	urn_client_destroy(a);
	assert_int_equal(rig_open_all(b, &rep, handle + 26), 4); /* up to its own limit */
	urn_client_destroy(b);
	urn_client_destroy(other);
	urn_ledger_fini(&ledger);
}

/* A set writes to a channel of its client: the channel stays as long as the set, and may go with
 * the client. */
static void
a_channel_is_in_use(void **state)
{
	struct urn_abi_req make = {.op = URN_CTL_CREATE_CHANNEL}, open = rig_open_req(0, 0),
			   end = make, close_it = make;
	struct urn_abi_rep rep;
	struct urn_ledger ledger;
	struct urn_client *c;

	(void)state;
	urn_quota_ledger_init(&ledger, 0);
	c = rig_stranger(&ledger, 1000, 10, 10);
	open.msg_open.channel_fd = 5;
	urn_ctl_call(c, &open, &rep);
	assert_int_equal(rep.err, EINVAL); /* no such channel */
	for (unsigned int i = 0; i < 2; i++) {
		urn_ctl_call(c, &make, &rep);
		assert_int_equal(rep.err, 0);
		close(c->reply_fd);
		c->reply_fd = -1;
		end = (struct urn_abi_req){.op = URN_CTL_DESTROY_CHANNEL, .handle = rep.handle};
		open.msg_open.channel_fd = (int32_t)rep.handle;
		urn_ctl_call(c, &open, &rep);
		assert_int_equal(rep.err, 0);
		close_it = (struct urn_abi_req){.op = URN_CTL_MSG_CLOSE, .handle = rep.handle};
		urn_ctl_call(c, &end, &rep);
		assert_int_equal(rep.err, EBUSY);
		if (i)
			break;
		urn_ctl_call(c, &close_it, &rep);
		assert_int_equal(rep.err, 0);
		urn_ctl_call(c, &end, &rep);
		assert_int_equal(rep.err, 0);
	}
	urn_client_destroy(c);
	urn_ledger_fini(&ledger);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_reply_says_where),	  T(the_feature_is_needed), T(nonsense_is_refused),
		T(thousands_come_and_go), T(names_are_taken_once),  T(any_name_of_a_range),
		T(quotas_hold),		  T(a_channel_is_in_use),
	};

	return cmocka_run_group_tests_name("ctl_msg", tests, rig_setup_eal, rig_teardown_eal);
}
