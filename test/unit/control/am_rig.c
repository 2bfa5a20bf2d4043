/* SPDX-License-Identifier: BSD-3-Clause */
#include "am_rig.h"

#include "am/priv.h"

#include <stdlib.h>
#include <string.h>

enum { ENDS = 64 };

static uint8_t *mem[ENDS]; /* memory of endpoints that were opened in this test */
static unsigned int mems;
static uint32_t pd[CLIENTS];

int
am_setup(void **state)
{
	int rc = rig_setup(state);

	for (unsigned int i = 0; i < CLIENTS; i++) {
		struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};

		pd[i] = rig_ask(i, &req).handle;
	}
	return rc;
}

/* The dataplane knows nothing of packets and endpoints once its clients have gone. */
static void
nothing_is_left(void)
{
	for (unsigned int i = 0; i < CLIENTS; i++) {
		if (rig_channel[i])
			rig_channel[i]->close(rig_channel[i]->ctx);
		rig_channel[i] = NULL;
	}
	for (unsigned int i = 0; i < ADAPTERS * ENGINES; i++) {
		const struct urn_am *am =
			urn_adapter_shard(rig_dp->adapter[i / ENGINES], i % ENGINES)->am;

		assert_int_equal(urn_am_count(am), 0);
		assert_int_equal(am->outs, 0);
		for (unsigned int n = 0; am->replies && n < 2000000; n++)
			rig_turns(1); /* flows answer what they hold */
		assert_int_equal(am->replies, 0);
		for (unsigned int b = 0; b < URN_AM_NODES; b++)
			assert_int_equal(am->node[b], 0);
	}
}

int
am_teardown(void **state)
{
	int rc;

	nothing_is_left();
	rc = rig_teardown(state);
	while (mems)
		free(mem[--mems]);
	return rc;
}

void
am_open(struct am_end *e, unsigned int client, uint32_t vector)
{
	struct urn_abi_req req = {
		.op = URN_CTL_AM_OPEN,
		.am_open = {vector, AM_ENTRIES, AM_RANGES, pd[client], .channel_fd = -1}};
	struct urn_abi_req reg = {
		.op = URN_CTL_REG_MR,
		.reg_mr = {.pd = pd[client], .access = URN_ACCESS_LOCAL_WRITE, .length = MEM}};
	struct urn_abi_rep rep = rig_ask(client, &req);

	assert_true(mems < ENDS);
	*e = (struct am_end){
		.client = client,
		.node = client == CLIENTS - 1,
		.handle = rep.handle,
		.db = rep.am.db,
		.engine = rep.am.engine,
		.chunk = rep.am.chunk,
		.qid = rep.am.qid,
		.ep = (void *)((uint8_t *)rig_channel[client]->area + rep.am.off),
		.mem = calloc(1, MEM),
	};
	assert_true(urn_am_qid_is(e->qid));
	assert_non_null(e->mem);
	mem[mems++] = e->mem;
	reg.reg_mr.addr = reg.reg_mr.iova = (uintptr_t)e->mem;
	e->lkey = rig_ask(client, &reg).mr.lkey;
}

void
am_close(struct am_end *e)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_CLOSE, .handle = e->handle};
	struct urn_abi_req mr = {.op = URN_CTL_DEREG_MR, .handle = e->lkey};

	rig_ask(e->client, &req);
	assert_int_not_equal(rig_call(e->client, &req).err, 0);
	rig_ask(e->client, &mr);
}

int
am_register_err(struct am_end *e, uint32_t access, uint32_t flags, uint32_t n)
{
	struct urn_abi_req req = {
		.op = URN_CTL_AM_REG, .handle = e->handle, .am_reg = {access, flags, n}};

	return rig_call(e->client, &req).err;
}

uint64_t
am_register_list(struct am_end *e, uint32_t access, uint32_t n)
{
	struct urn_abi_req req = {
		.op = URN_CTL_AM_REG, .handle = e->handle, .am_reg = {access, 0, n}};

	return rig_ask(e->client, &req).am.key;
}

void
am_list(struct am_end *e, uint32_t off, uint64_t len)
{
	*urn_am_ranges(e->ep, AM_ENTRIES) = (struct urn_abi_am_range){
		.addr = (uintptr_t)e->mem + off, .len = len, .lkey = e->lkey};
}

uint64_t
am_register_part(struct am_end *e, uint32_t access, uint32_t off, uint64_t len)
{
	am_list(e, off, len);
	return am_register_list(e, access, 1);
}

uint64_t
am_register(struct am_end *e, uint32_t access)
{
	return am_register_part(e, access, 0, MEM);
}

void
am_open_pair(struct am_end *from, struct am_end *to, uint32_t vector)
{
	am_open(from, 0, 0);
	am_open(to, CLIENTS - 1, vector);
}

uint64_t
am_open_pair_all(struct am_end *from, struct am_end *to, uint32_t vector)
{
	am_open_pair(from, to, vector);
	return am_register(to, URN_AM_ACCESS_ALL);
}

struct urn_abi_am_cmd *
am_next(struct am_end *e, uint8_t op, uint8_t way, const struct am_end *to, uint64_t remote,
	uint64_t key, uint32_t local, uint32_t len)
{
	struct urn_abi_am_cmd *c = urn_am_cmds(e->ep) + e->posted % AM_ENTRIES;

	*c = (struct urn_abi_am_cmd){
		.op = op,
		.way = way,
		.len = len,
		.qid = to->qid,
		.remote = (uintptr_t)to->mem + remote,
		.key = key,
		.local = (uintptr_t)e->mem + local,
		.lkey = e->lkey,
		.id = e->posted,
	};
	memcpy(c->node, rig_dp->adapter[to->node]->gid[1], 16);
	return c;
}

void
am_ring(const struct am_end *e)
{
	struct urn_client *c = rig_channel[e->client]->ctx;
	uint8_t *area = rig_channel[e->client]->area;
	struct urn_abi_db *db = (void *)(area + c->db_off[e->engine]);

	if (urn_abi_db_ring(db, e->db))
		rig_channel[e->client]->wake(rig_channel[e->client]->ctx, e->engine);
}

void
am_post(struct am_end *e)
{
	atomic_store(&e->ep->client.commands, ++e->posted);
	am_ring(e);
}

void
am_command_way(struct am_end *e, uint8_t op, uint8_t way, const struct am_end *to, uint64_t remote,
	       uint64_t key, uint32_t local, uint32_t len)
{
	am_next(e, op, way, to, remote, key, local, len);
	am_post(e);
}

void
am_command(struct am_end *e, uint8_t op, const struct am_end *to, uint64_t remote, uint64_t key,
	   uint32_t local, uint32_t len)
{
	am_command_way(e, op, URN_AM_AUTO, to, remote, key, local, len);
}

struct urn_abi_am_event
am_event(struct am_end *e)
{
	struct urn_abi_am_event ev;

	for (unsigned int i = 0; atomic_load(&e->ep->dp.events) == e->read; i++) {
		if (i == 8000000)
			fail_msg("no event");
		rig_turns(1);
	}
	ev = urn_am_events(e->ep, AM_ENTRIES)[e->read % AM_ENTRIES];
	atomic_store(&e->ep->client.events, ++e->read);
	return ev;
}

void
am_expect_some(struct am_end *e, uint8_t code)
{
	struct urn_abi_am_event ev = am_event(e);

	assert_string_equal(urn_am_code_word(ev.code), urn_am_code_word(code));
	assert_int_equal(ev.code & ~URN_AM_MAY_BE_THERE, code);
}

void
am_expect(struct am_end *e, uint8_t code, uint64_t bytes)
{
	struct urn_abi_am_event ev = am_event(e);

	assert_string_equal(urn_am_code_word(ev.code), urn_am_code_word(code));
	assert_int_equal(ev.code, code);
	assert_int_equal(ev.bytes, bytes);
}

void
am_refused(struct am_end *e, uint8_t op, const struct am_end *to, uint64_t remote, uint64_t key,
	   uint32_t len, uint8_t code)
{
	uint8_t before[512];

	assert_true(len <= sizeof(before));
	memcpy(before, e->mem, len);
	am_command(e, op, to, remote, key, 0, len);
	am_expect(e, code, 0);
	assert_memory_equal(before, e->mem, len);
}

void
am_fill(uint8_t *at, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++) {
		seed = seed * 1103515245u + 12345u;
		at[i] = (uint8_t)(seed >> 16);
	}
}

uint64_t
am_counter(unsigned int adapter, enum urn_counter id)
{
	uint64_t sum = 0;

	for (unsigned int v = 0; v < ENGINES; v++)
		sum += urn_adapter_shard(rig_dp->adapter[adapter], v)->tp->c.v[id];
	return sum;
}
