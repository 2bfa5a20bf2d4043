/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Register sets from their opening to their end, in a dataplane of two engines and two nodes with real flows
 * between them (doorbell.md DB-1 to DB-8).
 */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "pmd_glue/eal.h"
#include "transport/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ADAPTERS = 2, ENGINES = 2, CLIENTS = 3, ARENA = 65536, RING = 4096, ENTRIES = 8, SIZE = 1024 };

static struct urn_port *port[ADAPTERS]; /* the two ends of a cable */
static struct urn_dp *dp;
static struct urn_abi_channel *channel[CLIENTS]; /* 0 and 1 of adapter 0, 2 of adapter 1 */
static uint64_t now;

/* A register set that a test has opened. */
struct set {
	unsigned int client;
	struct urn_abi_rep rep;
	struct urn_abi_msg_set *regs;
	uint8_t *arena;
};

static int
setup_eal(void **state)
{
	struct urn_eal_config cfg = {.program = "test", .memory_mb = 128};
	struct urn_err err;

	(void)state;
	return urn_eal_start(&cfg, &err);
}

static int
teardown_eal(void **state)
{
	(void)state;
	urn_eal_stop();
	return 0;
}

static struct urn_abi_rep
call(unsigned int i, const struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	channel[i]->call(channel[i]->ctx, req, &rep);
	return rep;
}

/* returns: the reply to a call that succeeds */
static struct urn_abi_rep
ask(unsigned int i, const struct urn_abi_req *req)
{
	struct urn_abi_rep rep = call(i, req);

	if (rep.err)
		fail_msg("request %u: %s", req->op, rep.why);
	return rep;
}

static void
hello(unsigned int i, uint32_t features)
{
	struct urn_abi_req req = {.op = URN_CTL_HELLO,
				  .hello = {.oldest = URN_ABI_VERSION_OLDEST,
					    .newest = URN_ABI_VERSION,
					    .features = features}};

	ask(i, &req);
}

static int
setup(void **state)
{
	struct urn_port_config pc[ADAPTERS] = {{.name = "near", .queues = ENGINES, .mbufs = 4096},
					       {.name = "far", .queues = ENGINES, .mbufs = 4096}};
	struct urn_adapter_config ac[ADAPTERS];
	struct urn_dp_config dc = {.engines = ENGINES, .adapters = ADAPTERS, .adapter = ac};
	struct urn_err err = {{0}};

	(void)state;
	if (urn_port_open_ring_pair(pc, port, &err) != 0)
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < ADAPTERS; i++)
		ac[i] = (struct urn_adapter_config){.node = "n",
						    .port = port[i],
						    .engines = (1 << ENGINES) - 1,
						    .ipv4 = {10, 0, 0, 1 + i},
						    .max_qp = 16,
						    .max_mr = 16,
						    .area_size = 16 << 20};
	dp = urn_dp_create(&dc, &err);
	if (!dp)
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		channel[i] = urn_dp_attach(dp, i == CLIENTS - 1, &err);
		if (!channel[i])
			fail_msg("%s", err.text);
		hello(i, URN_ABI_FEATURES);
	}
	now = urn_engine_now(dp->engine[0]) + 1000000000;
	return 0;
}

static void
turns(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		now += 2000;
		for (unsigned int e = 0; e < ENGINES; e++)
			urn_engine_turn(dp->engine[e], now);
	}
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (channel[i])
			channel[i]->close(channel[i]->ctx);
	for (unsigned int a = 0; a < ADAPTERS; a++)
		for (unsigned int v = 0; v < ENGINES; v++)
			assert_int_equal(urn_msg_count(urn_adapter_shard(dp->adapter[a], v)->msg), 0);
	urn_dp_destroy(dp);
	for (unsigned int i = 0; i < ADAPTERS; i++)
		urn_port_close(port[i]);
	return 0;
}

static struct urn_abi_req
open_req(uint32_t vector, uint32_t flags)
{
	return (struct urn_abi_req){.op = URN_CTL_MSG_OPEN,
				    .msg_open = {.comp_vector = vector,
						 .flags = flags,
						 .arena = ARENA,
						 .channel_fd = -1,
						 .cookie = 99}};
}

static void
adopt(struct set *s, unsigned int client, const struct urn_abi_rep *rep)
{
	uint8_t *area = channel[client]->area;

	*s = (struct set){.client = client, .rep = *rep};
	s->regs = (void *)(area + rep->msg.off);
	s->arena = area + rep->msg.arena_off;
}

static void
open_set(struct set *s, unsigned int client, uint32_t vector, uint32_t flags)
{
	struct urn_abi_req req = open_req(vector, flags);
	struct urn_abi_rep rep = ask(client, &req);

	adopt(s, client, &rep);
}

static int
close_set(const struct set *s)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE, .handle = s->rep.handle};

	return call(s->client, &req).err;
}

static void
ring(const struct set *s)
{
	struct urn_client *c = channel[s->client]->ctx;
	uint8_t *area = channel[s->client]->area;
	struct urn_abi_db *db = (void *)(area + c->db_off[s->rep.msg.engine]);

	if (urn_abi_db_ring(db, s->rep.msg.db))
		channel[s->client]->wake(channel[s->client]->ctx, s->rep.msg.engine);
}

static void
configure(const struct set *s)
{
	struct urn_abi_msg_conf *c = &s->regs->conf;
	uint32_t seq = atomic_load(&c->seq) + 1;

	c->base = RING;
	c->entries = ENTRIES;
	c->entry_size = SIZE;
	atomic_store(&c->seq, seq);
	ring(s);
	turns(3);
	assert_int_equal(atomic_load(&s->regs->rstat.conf_seq), seq);
	assert_int_equal(atomic_load(&s->regs->rstat.state), URN_MSGQ_OPEN);
}

/* Ring for a message of 100 bytes, all `fill`, to a queue of a node. */
static void
send_to(const struct set *s, unsigned int node, uint64_t qid, uint8_t fill)
{
	struct urn_abi_msg_send *l = &s->regs->send;

	memset(s->arena, fill, 100);
	l->size = 100;
	l->addr = 0;
	memcpy(l->node, dp->adapter[node]->gid[1], 16);
	l->qid = qid;
	atomic_store(&l->seq, atomic_load(&l->seq) + 1);
	ring(s);
}

/* Turn until the message is answered. returns: its code */
static uint8_t
answered(const struct set *s)
{
	for (unsigned int i = 0; i < 200000; i++) {
		uint64_t a = atomic_load(&s->regs->sstat.answer);

		if (urn_msg_answer_seq(a) == atomic_load(&s->regs->send.seq) &&
		    urn_msg_answer_code(a) != URN_MSG_PENDING)
			return urn_msg_answer_code(a);
		turns(1);
	}
	fail_msg("no answer");
	return 0;
}

static const struct urn_abi_msg_entry *
entry(const struct set *s, uint32_t n)
{
	return (const void *)(s->arena + RING + (size_t)(n % ENTRIES) * SIZE);
}

/* ---- open and close */

/* DB-1: the reply says where registers and arena are, which are zero and apart from each other's. */
static void
a_reply_says_where(void **state)
{
	static const struct urn_abi_msg_set zero;
	struct set s[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		open_set(&s[i], 0, i, 0);
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
		assert_int_equal(close_set(&s[i]), 0);
		assert_int_equal(close_set(&s[i]), EINVAL);
	}
}

/* A library that does not know messages can't open sets. */
static void
the_feature_is_needed(void **state)
{
	struct urn_abi_req req = open_req(0, 0);

	(void)state;
	hello(0, URN_ABI_FEATURES & ~(uint32_t)URN_ABI_FEATURE_MSG);
	assert_int_equal(call(0, &req).err, EOPNOTSUPP);
}

static void
nonsense_is_refused(void **state)
{
	struct urn_abi_req req = open_req(0, 0x8000);
	struct set s;

	(void)state;
	assert_int_equal(call(0, &req).err, EINVAL);
	req = open_req(0, 0);
	req.msg_open.arena = URN_MSG_ARENA_MAX + 1ull;
	assert_int_equal(call(0, &req).err, EINVAL);
	req.msg_open.arena = UINT64_MAX;
	assert_int_equal(call(0, &req).err, EINVAL);
	req.msg_open.arena = URN_MSG_ARENA_MAX; /* more than the client's area */
	assert_int_equal(call(0, &req).err, ENOMEM);
	open_set(&s, 0, UINT32_MAX, 0); /* any vector is an engine's */
	for (uint32_t handle = 0; handle < 8; handle++) {
		req = (struct urn_abi_req){.op = URN_CTL_MSG_CLOSE, .handle = handle << 16 | 7};
		assert_int_equal(call(0, &req).err, EINVAL);
	}
	req.handle = UINT32_MAX;
	assert_int_equal(call(0, &req).err, EINVAL);
	req.handle = s.rep.handle; /* another client's */
	assert_int_equal(call(1, &req).err, EINVAL);
	req.op = URN_CTL_MSG_BIND;
	assert_int_equal(call(1, &req).err, EINVAL);
	assert_int_equal(close_set(&s), 0);
}

/* DB-1: thousands of sets, whose places are used again; ids of doorbells and memory come back. */
static void
thousands_come_and_go(void **state)
{
	enum { N = 4096 };
	static struct set s[N];
	struct urn_abi_req req = open_req(0, 0);
	uint64_t next = 0;

	(void)state;
	req.msg_open.arena = 1024;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < N; i++) {
			req.msg_open.comp_vector = i;
			struct urn_abi_rep rep = ask(0, &req);

			adopt(&s[i], 0, &rep);
			assert_true(s[i].rep.msg.db < N);
		}
		if (round == 0)
			next = ((struct urn_client *)channel[0]->ctx)->area.next;
		for (unsigned int i = 0; i < N; i++)
			assert_int_equal(close_set(&s[i]), 0);
	}
	assert_true(((struct urn_client *)channel[0]->ctx)->area.next == next);
}

/* ---- names */

static int
bind_name(const struct set *s, uint32_t name, uint32_t end, struct urn_abi_rep *rep)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_BIND,
				  .handle = s->rep.handle,
				  .msg_bind = {.name = name, .flags = end ? URN_MSG_BIND_ANY : 0, .end = end}};

	*rep = call(s->client, &req);
	return rep->err;
}

/* DB-11: a name is taken once, and free again when its set lets go or ends. */
static void
names_are_taken_once(void **state)
{
	struct urn_abi_rep rep;
	struct set a, b, other;

	(void)state;
	open_set(&a, 0, 1, URN_MSG_OPEN_NAMED);
	open_set(&b, 1, 0, URN_MSG_OPEN_NAMED);
	open_set(&other, 0, 1, 0);
	assert_int_equal(a.rep.msg.engine, 0); /* the adapter's first engine, whatever was wanted */
	assert_int_equal(bind_name(&other, 7, 0, &rep), EINVAL);
	assert_int_equal(bind_name(&a, 7, 0, &rep), 0);
	assert_true(rep.msg.qid == URN_MSG_NAME(7));
	assert_int_equal(bind_name(&b, 7, 0, &rep), EADDRINUSE);
	assert_int_equal(bind_name(&b, 8, 0, &rep), 0);
	assert_int_equal(bind_name(&a, 0, 0, &rep), 0);
	assert_int_equal(bind_name(&b, 7, 0, &rep), 0);
	assert_int_equal(bind_name(&a, 8, 0, &rep), 0);
	assert_int_equal(close_set(&b), 0);
	assert_int_equal(bind_name(&a, 7, 0, &rep), 0);
}

/* Any name of a range: a free one, as long as there is one. */
static void
any_name_of_a_range(void **state)
{
	enum { N = 700 };
	static struct set s[N + 1];
	static bool seen[N];
	struct urn_abi_rep rep;
	struct urn_abi_req req = open_req(0, URN_MSG_OPEN_NAMED);

	(void)state;
	req.msg_open.arena = 64;
	for (unsigned int i = 0; i <= N; i++) {
		struct urn_abi_rep opened = ask(0, &req);

		adopt(&s[i], 0, &opened);
	}
	assert_int_equal(bind_name(&s[0], 500, 500, &rep), EINVAL);
	assert_int_equal(bind_name(&s[0], 500, 499, &rep), EINVAL);
	for (unsigned int i = 0; i < N; i++) {
		uint32_t at;

		assert_int_equal(bind_name(&s[i], 1000, 1000 + N, &rep), 0);
		at = (uint32_t)(rep.msg.qid - URN_MSG_NAME(1000));
		assert_true(at < N && !seen[at]);
		seen[at] = true;
	}
	assert_int_equal(bind_name(&s[N], 1000, 1000 + N, &rep), EADDRINUSE);
	assert_int_equal(bind_name(&s[N], UINT32_MAX - 1, UINT32_MAX, &rep), 0);
	assert_true(rep.msg.qid == URN_MSG_NAME(UINT32_MAX - 1));
}

/* ---- messages */

/* DB-3, DB-4: from each engine of one node to each engine of the other, and to the own node. */
static void
messages_arrive(void **state)
{
	struct set from[ENGINES], to[ADAPTERS][ENGINES];
	uint8_t fill = 0;

	(void)state;
	for (unsigned int v = 0; v < ENGINES; v++) {
		open_set(&from[v], 0, v, 0);
		for (unsigned int a = 0; a < ADAPTERS; a++) {
			open_set(&to[a][v], a ? 2 : 1, v, 0);
			configure(&to[a][v]);
		}
	}
	for (unsigned int v = 0; v < ENGINES; v++)
		for (unsigned int a = 0; a < ADAPTERS; a++)
			for (unsigned int w = 0; w < ENGINES; w++) {
				const struct urn_abi_msg_entry *e = entry(&to[a][w], v);

				send_to(&from[v], a, to[a][w].rep.msg.qid, ++fill);
				assert_int_equal(answered(&from[v]), URN_MSG_DONE);
				assert_int_equal(atomic_load(&to[a][w].regs->rstat.tail), v + 1);
				assert_int_equal(e->len, 100);
				assert_true(e->qid == from[v].rep.msg.qid);
				assert_memory_equal(e->node, dp->adapter[0]->gid[1], 16);
				assert_int_equal(((const uint8_t *)(e + 1))[99], fill);
			}
}

/* A name leads to the adapter's first engine, wherever the message comes from; the answer finds its way back. */
static void
messages_by_name(void **state)
{
	struct urn_abi_rep rep;
	struct set a, b;

	(void)state;
	open_set(&a, 0, 1, 0);
	open_set(&b, 2, 0, URN_MSG_OPEN_NAMED);
	configure(&a);
	configure(&b);
	assert_int_equal(bind_name(&b, 53, 0, &rep), 0);
	send_to(&a, 1, URN_MSG_NAME(53), 1);
	assert_int_equal(answered(&a), URN_MSG_DONE);
	send_to(&b, 0, entry(&b, 0)->qid, 2);
	assert_int_equal(answered(&b), URN_MSG_DONE);
	assert_true(entry(&a, 0)->qid == URN_MSG_NAME(53));
	send_to(&a, 1, URN_MSG_NAME(54), 1);
	assert_int_equal(answered(&a), URN_MSG_NO_QUEUE);
}

/* DB-5: a full queue answers its sender; the other queue of the same reader takes messages meanwhile. */
static void
a_full_queue_answers(void **state)
{
	struct set from, full, other;

	(void)state;
	open_set(&from, 0, 0, 0);
	open_set(&full, 2, 0, 0);
	open_set(&other, 2, 0, 0);
	configure(&full);
	configure(&other);
	for (unsigned int i = 0; i < ENTRIES; i++) {
		send_to(&from, 1, full.rep.msg.qid, 1);
		assert_int_equal(answered(&from), URN_MSG_DONE);
	}
	send_to(&from, 1, full.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_QUEUE_FULL);
	send_to(&from, 1, other.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_DONE);
	atomic_store(&full.regs->ctrl.head, 1);
	send_to(&from, 1, full.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_DONE);
}

/* Messages to a queue that was closed, and to its slot's next owner, find no queue. */
static void
a_closed_queue_takes_nothing(void **state)
{
	struct set from, to, next;

	(void)state;
	open_set(&from, 0, 0, 0);
	open_set(&to, 1, 1, 0);
	configure(&to);
	assert_int_equal(close_set(&to), 0);
	send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_NO_QUEUE);
	open_set(&next, 1, 1, 0);
	configure(&next);
	assert_int_equal(urn_msg_qid_slot(next.rep.msg.qid), urn_msg_qid_slot(to.rep.msg.qid));
	send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_NO_QUEUE);
	assert_int_equal(atomic_load(&next.regs->rstat.tail), 0);
}

/* DB-8: the event goes to the channel with handle and cookie, once; without room it comes later. */
static void
events_are_written(void **state)
{
	struct urn_abi_req req = open_req(0, 0);
	struct urn_abi_event ev, junk = {.handle = 1};
	struct urn_abi_rep rep;
	struct set from, to;
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
	req.msg_open.channel_fd = fd[1];
	rep = ask(1, &req);
	adopt(&to, 1, &rep);
	open_set(&from, 0, 0, 0);
	configure(&to);
	atomic_store(&to.regs->conf.arm, 1);
	send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_DONE);
	turns(2);
	assert_int_equal(read(fd[0], &ev, sizeof(ev)), sizeof(ev));
	assert_int_equal(ev.type, URN_EVENT_MSG);
	assert_int_equal(ev.handle, to.rep.handle);
	assert_int_equal(ev.cookie, 99);
	send_to(&from, 0, to.rep.msg.qid, 1);
	assert_int_equal(answered(&from), URN_MSG_DONE);
	turns(2);
	assert_int_equal(read(fd[0], &ev, sizeof(ev)), -1);
	while (write(fd[1], &junk, sizeof(junk)) > 0)
		;
	atomic_store(&to.regs->conf.arm, 1); /* messages wait: rung for */
	ring(&to);
	turns(1000);
	assert_int_equal(atomic_load(&to.regs->rstat.pending), 1);
	while (read(fd[0], &ev, sizeof(ev)) > 0)
		assert_int_equal(ev.handle, junk.handle);
	turns(1000);
	assert_int_equal(read(fd[0], &ev, sizeof(ev)), sizeof(ev));
	assert_int_equal(ev.type, URN_EVENT_MSG);
	assert_int_equal(atomic_load(&to.regs->rstat.pending), 2);
	assert_int_equal(close_set(&to), 0);
	close(fd[0]);
	close(fd[1]);
}

/* ---- ends */

/* A set that ends with its message in flight: others are served, and nothing is left behind. */
static void
a_set_ends_in_flight(void **state)
{
	struct set from, to, other;

	(void)state;
	open_set(&other, 1, 0, 0);
	open_set(&to, 2, 0, 0);
	configure(&to);
	for (unsigned int n = 0; n < 40; n++) {
		open_set(&from, 0, n, 0);
		send_to(&from, 1, to.rep.msg.qid, 1);
		turns(n % 8);
		assert_int_equal(close_set(&from), 0);
		memset(from.arena, 0xee, ARENA);
		atomic_store(&to.regs->ctrl.head, atomic_load(&to.regs->rstat.tail));
	}
	send_to(&other, 1, to.rep.msg.qid, 7);
	assert_int_equal(answered(&other), URN_MSG_DONE);
	assert_int_equal(((const uint8_t *)(entry(&to, atomic_load(&to.regs->rstat.tail) - 1) + 1))[0], 7);
}

/* A client that dies with messages in flight, in retries, and with readers armed. */
static void
a_client_dies_in_flight(void **state)
{
	struct set s[60], other;

	(void)state;
	open_set(&other, 1, 1, 0);
	configure(&other);
	for (unsigned int i = 0; i < 60; i++) {
		open_set(&s[i], 0, i, i % 3 == 0 ? URN_MSG_OPEN_NAMED : 0);
		configure(&s[i]);
		atomic_store(&s[i].regs->conf.arm, 1);
		s[i].regs->send.retries = 65535;
		s[i].regs->send.retry_kinds = 0xff;
		send_to(&s[i], i % 2, i % 4 ? other.rep.msg.qid : 1ull << 40, 1);
		turns(i % 3);
		send_to(&other, 0, s[i].rep.msg.qid, 1);
	}
	channel[0]->close(channel[0]->ctx);
	channel[0] = NULL;
	turns(10);
	(void)answered(&other);
	atomic_store(&other.regs->ctrl.head, atomic_load(&other.regs->rstat.tail));
	send_to(&other, 0, other.rep.msg.qid, 9);
	assert_int_equal(answered(&other), URN_MSG_DONE);
	assert_int_equal(urn_msg_count(urn_adapter_shard(dp->adapter[0], 0)->msg), 0);
	assert_int_equal(urn_msg_count(urn_adapter_shard(dp->adapter[0], 1)->msg), 1);
}

/* ---- clients of other users */

/* A client in another process, of a user with these limits. */
static struct urn_client *
stranger(struct urn_ledger *ledger, uid_t uid, uint64_t own, uint64_t users)
{
	struct urn_limits client, user;
	struct urn_client_who who = {.pid = getpid(), .uid = uid, .conn_fd = -1, .limits = &client};
	struct urn_abi_req req = {.op = URN_CTL_HELLO,
				  .hello = {URN_ABI_VERSION_OLDEST, URN_ABI_VERSION, 0, URN_ABI_FEATURES}};
	struct urn_abi_rep rep;
	struct urn_err err;
	struct urn_client *c;
	bool full;

	memset(&client, 0xff, sizeof(client));
	memset(&user, 0xff, sizeof(user));
	client.max[URN_QUOTA_MSG] = own;
	user.max[URN_QUOTA_MSG] = users;
	who.account = urn_account_join(ledger, uid, &user, 10, &full);
	assert_non_null(who.account);
	c = urn_client_create(dp->adapter[0], &who, &err);
	if (!c || urn_client_start(c, &err) != 0)
		fail_msg("%s", err.text);
	urn_ctl_call(c, &req, &rep);
	assert_int_equal(rep.err, 0);
	return c;
}

/* Open sets until that fails. returns: their number; rep: the failure */
static unsigned int
open_all(struct urn_client *c, struct urn_abi_rep *rep, uint32_t handle[])
{
	struct urn_abi_req req = open_req(0, 0);
	unsigned int n = 0;

	req.msg_open.arena = 1024;
	for (;; n++) {
		req.msg_open.comp_vector = n;
		urn_ctl_call(c, &req, rep);
		if (rep->err)
			return n;
		handle[n] = rep->handle;
	}
}

/* Quotas: a client's own, its user's; a set that is closed, and a client that dies, give theirs back. */
static void
quotas_hold(void **state)
{
	static uint32_t handle[64];
	struct urn_client *a, *b, *other;
	struct urn_ledger ledger;
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE};
	struct urn_abi_rep rep;
	struct set s;

	(void)state;
	urn_quota_ledger_init(&ledger);
	a = stranger(&ledger, 1000, 10, 15);
	b = stranger(&ledger, 1000, 10, 15);
	other = stranger(&ledger, 1001, 10, 15);
	assert_int_equal(open_all(a, &rep, handle), 10);
	assert_int_equal(rep.err, EDQUOT);
	assert_non_null(strstr(rep.why, "a program may have at most 10 register sets"));
	assert_int_equal(open_all(b, &rep, handle + 20), 5);
	assert_non_null(strstr(rep.why, "a user may have at most 15 register sets"));
	assert_int_equal(open_all(other, &rep, handle + 40), 10); /* another user's */
	open_set(&s, 0, 0, 0);					   /* a program's that embeds the dataplane */
	req.handle = handle[3];
	urn_ctl_call(b, &req, &rep); /* not its own */
	assert_int_equal(rep.err, EINVAL);
	urn_ctl_call(a, &req, &rep);
	assert_int_equal(rep.err, 0);
	urn_ctl_call(a, &req, &rep);
	assert_int_equal(rep.err, EINVAL);
	assert_int_equal(open_all(b, &rep, handle + 25), 1);
	urn_client_destroy(a);
	assert_int_equal(open_all(b, &rep, handle + 26), 4); /* up to its own limit */
	urn_client_destroy(b);
	urn_client_destroy(other);
	urn_ledger_fini(&ledger);
}

/* A set writes to a channel of its client: the channel stays as long as the set, and may go with the client. */
static void
a_channel_is_in_use(void **state)
{
	struct urn_abi_req make = {.op = URN_CTL_CREATE_CHANNEL}, open = open_req(0, 0), end = make, close_it = make;
	struct urn_abi_rep rep;
	struct urn_ledger ledger;
	struct urn_client *c;

	(void)state;
	urn_quota_ledger_init(&ledger);
	c = stranger(&ledger, 1000, 10, 10);
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

/*
 * A stranger that scribbles over its area, rings every doorbell, and dies with all of that under way: a reader
 * and a sender beside it see nothing of it.
 */
static void
a_hostile_client_harms_nobody(void **state)
{
	static uint32_t handle[64];
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE};
	struct urn_ledger ledger;
	struct urn_abi_rep rep;
	struct set from, to;
	unsigned int rnd = 1;

	(void)state;
	urn_quota_ledger_init(&ledger);
	open_set(&from, 0, 0, 0);
	open_set(&to, 1, 1, 0);
	configure(&to);
	for (unsigned int life = 0; life < 5; life++) {
		struct urn_client *c = stranger(&ledger, 1000, 60, 60);
		unsigned int n = open_all(c, &rep, handle);

		for (unsigned int k = 0; k < 300; k++) {
			for (unsigned int i = 0; i < 2000; i++) {
				rnd = rnd * 1103515245u + 12345u;
				c->area.base[(rnd >> 4) % (size_t)c->area.next] = (uint8_t)(rnd >> 16);
			}
			turns(1);
			if (k % 10 == 5) {
				req.handle = handle[k / 10 % n];
				urn_ctl_call(c, &req, &rep);
			}
			if (k % 20 == 0) {
				send_to(&from, 0, to.rep.msg.qid, (uint8_t)k);
				assert_int_equal(answered(&from), URN_MSG_DONE);
				atomic_store(&to.regs->ctrl.head, atomic_load(&to.regs->rstat.tail));
			}
		}
		urn_client_destroy(c);
		turns(5);
	}
	assert_int_equal(atomic_load(&to.regs->rstat.tail), 75);
	urn_ledger_fini(&ledger);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_reply_says_where),
		T(the_feature_is_needed),
		T(nonsense_is_refused),
		T(thousands_come_and_go),
		T(names_are_taken_once),
		T(any_name_of_a_range),
		T(messages_arrive),
		T(messages_by_name),
		T(a_full_queue_answers),
		T(a_closed_queue_takes_nothing),
		T(events_are_written),
		T(a_set_ends_in_flight),
		T(a_client_dies_in_flight),
		T(quotas_hold),
		T(a_channel_is_in_use),
		T(a_hostile_client_harms_nobody),
	};

	return cmocka_run_group_tests_name("ctl_msg", tests, setup_eal, teardown_eal);
}
