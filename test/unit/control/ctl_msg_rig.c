/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_msg_rig.h"

#include "pmd_glue/eal.h"

#include <string.h>
#include <unistd.h>

static struct urn_port *port[ADAPTERS]; /* the two ends of a cable */
struct urn_dp *rig_dp;
struct urn_abi_channel *rig_channel[CLIENTS];
static uint64_t now;

int
rig_setup_eal(void **state)
{
	struct urn_eal_config cfg = {.program = "test", .memory_mb = 128};
	struct urn_err err;

	(void)state;
	return urn_eal_start(&cfg, &err);
}

int
rig_teardown_eal(void **state)
{
	(void)state;
	urn_eal_stop();
	return 0;
}

struct urn_abi_rep
rig_call(unsigned int i, const struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	rig_channel[i]->call(rig_channel[i]->ctx, req, &rep);
	return rep;
}

/* returns: the reply to a call that succeeds */
struct urn_abi_rep
rig_ask(unsigned int i, const struct urn_abi_req *req)
{
	struct urn_abi_rep rep = rig_call(i, req);

	if (rep.err)
		fail_msg("request %u: %s", req->op, rep.why);
	return rep;
}

void
rig_hello(unsigned int i, uint32_t features)
{
	struct urn_abi_req req = {.op = URN_CTL_HELLO,
				  .hello = {.oldest = URN_ABI_VERSION_OLDEST,
					    .newest = URN_ABI_VERSION,
					    .features = features}};

	rig_ask(i, &req);
}

int
rig_setup(void **state)
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
						    .ipv6 = {0xfd, [15] = 1 + i},
						    .am_unregistered = i == 0,
						    .am_pipelined_from = i ? 500 : 0,
						    .am_tagged_from = i ? 2000 : 0,
						    .max_qp = 16,
						    .max_mr = 16,
						    .area_size = 16 << 20};
	rig_dp = urn_dp_create(&dc, &err);
	if (!rig_dp)
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		rig_channel[i] = urn_dp_attach(rig_dp, i == CLIENTS - 1, &err);
		if (!rig_channel[i])
			fail_msg("%s", err.text);
		rig_hello(i, URN_ABI_FEATURES);
	}
	now = urn_engine_now(rig_dp->engine[0]) + 1000000000;
	return 0;
}

void
rig_turns(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		now += 2000;
		for (unsigned int e = 0; e < ENGINES; e++)
			urn_engine_turn(rig_dp->engine[e], now);
	}
}

int
rig_teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (rig_channel[i])
			rig_channel[i]->close(rig_channel[i]->ctx);
	for (unsigned int a = 0; a < ADAPTERS; a++)
		for (unsigned int v = 0; v < ENGINES; v++)
			assert_int_equal(
				urn_msg_count(urn_adapter_shard(rig_dp->adapter[a], v)->msg), 0);
	urn_dp_destroy(rig_dp);
	for (unsigned int i = 0; i < ADAPTERS; i++)
		urn_port_close(port[i]);
	return 0;
}

struct urn_abi_req
rig_open_req(uint32_t vector, uint32_t flags)
{
	return (struct urn_abi_req){.op = URN_CTL_MSG_OPEN,
				    .msg_open = {.comp_vector = vector,
						 .flags = flags,
						 .arena = ARENA,
						 .channel_fd = -1,
						 .cookie = 99}};
}

void
rig_adopt(struct rig_set *s, unsigned int client, const struct urn_abi_rep *rep)
{
	uint8_t *area = rig_channel[client]->area;

	*s = (struct rig_set){.client = client, .rep = *rep};
	s->regs = (void *)(area + rep->msg.off);
	s->arena = area + rep->msg.arena_off;
}

void
rig_open_set(struct rig_set *s, unsigned int client, uint32_t vector, uint32_t flags)
{
	struct urn_abi_req req = rig_open_req(vector, flags);
	struct urn_abi_rep rep = rig_ask(client, &req);

	rig_adopt(s, client, &rep);
}

int
rig_close_set(const struct rig_set *s)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE, .handle = s->rep.handle};

	return rig_call(s->client, &req).err;
}

void
rig_ring(const struct rig_set *s)
{
	struct urn_client *c = rig_channel[s->client]->ctx;
	uint8_t *area = rig_channel[s->client]->area;
	struct urn_abi_db *db = (void *)(area + c->db_off[s->rep.msg.engine]);

	if (urn_abi_db_ring(db, s->rep.msg.db))
		rig_channel[s->client]->wake(rig_channel[s->client]->ctx, s->rep.msg.engine);
}

void
rig_configure(const struct rig_set *s)
{
	struct urn_abi_msg_conf *c = &s->regs->conf;
	uint32_t seq = atomic_load(&c->seq) + 1;

	c->base = RING;
	c->entries = ENTRIES;
	c->entry_size = SIZE;
	atomic_store(&c->seq, seq);
	rig_ring(s);
	rig_turns(3);
	assert_int_equal(atomic_load(&s->regs->rstat.conf_seq), seq);
	assert_int_equal(atomic_load(&s->regs->rstat.state), URN_MSGQ_OPEN);
}

/* Ring for a message of 100 bytes, all `fill`, to a queue of a node. */
void
rig_send_to(const struct rig_set *s, unsigned int node, uint64_t qid, uint8_t fill)
{
	struct urn_abi_msg_send *l = &s->regs->send;

	memset(s->arena, fill, 100);
	l->size = 100;
	l->addr = 0;
	memcpy(l->node, rig_dp->adapter[node]->gid[1], 16);
	l->qid = qid;
	atomic_store(&l->seq, atomic_load(&l->seq) + 1);
	rig_ring(s);
}

/* Turn until the message is answered. returns: its code */
uint8_t
rig_answered(const struct rig_set *s)
{
	for (unsigned int i = 0; i < 200000; i++) {
		uint64_t a = atomic_load(&s->regs->sstat.answer);

		if (urn_msg_answer_seq(a) == atomic_load(&s->regs->send.seq) &&
		    urn_msg_answer_code(a) != URN_MSG_PENDING)
			return urn_msg_answer_code(a);
		rig_turns(1);
	}
	fail_msg("no answer");
	return 0;
}

const struct urn_abi_msg_entry *
rig_entry(const struct rig_set *s, uint32_t n)
{
	return (const void *)(s->arena + RING + (size_t)(n % ENTRIES) * SIZE);
}

int
rig_bind_name(const struct rig_set *s, uint32_t name, uint32_t end, struct urn_abi_rep *rep)
{
	struct urn_abi_req req = {
		.op = URN_CTL_MSG_BIND,
		.handle = s->rep.handle,
		.msg_bind = {.name = name, .flags = end ? URN_MSG_BIND_ANY : 0, .end = end}};

	*rep = rig_call(s->client, &req);
	return rep->err;
}

/* A client in another process, of a user with these limits. */
struct urn_client *
rig_stranger(struct urn_ledger *ledger, uid_t uid, uint64_t own, uint64_t users)
{
	struct urn_limits client, user;
	struct urn_client_who who = {.pid = getpid(), .uid = uid, .conn_fd = -1, .limits = &client};
	struct urn_abi_req req = {
		.op = URN_CTL_HELLO,
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
	c = urn_client_create(rig_dp->adapter[0], &who, &err);
	if (!c || urn_client_start(c, &err) != 0)
		fail_msg("%s", err.text);
	urn_ctl_call(c, &req, &rep);
	assert_int_equal(rep.err, 0);
	return c;
}

/* Open sets until that fails. returns: their number; rep: the failure */
unsigned int
rig_open_all(struct urn_client *c, struct urn_abi_rep *rep, uint32_t handle[])
{
	struct urn_abi_req req = rig_open_req(0, 0);
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
