/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers of messages (abi/msg.h), and rings of endpoints (abi/am.h), in shared memory. */
#include "attacks.h"

#include "am/endpoint.h"
#include "msg/set.h"

#include <string.h>

enum {
	SETS = 64,
	SIZE = 256,
	ENTRIES = 8,
	WRITES = 4096, /* bytes or commands in a round */
	OPERATIONS = 1024,
	BYTES = 1 << 20,
	CODES = 8, /* operations, right and wrong */
};

/* ---- registers */

static void
any_register(struct foe *f, struct urn_register_set *s, const struct urn_msg_to *to)
{
	volatile uint8_t *at = (volatile uint8_t *)s->regs;

	for (unsigned int i = 0; i < 32; i++)
		at[foe_below(f, sizeof(*s->regs))] = (uint8_t)foe_random(f);
	if (foe_below(f, 2)) { /* a message that makes sense */
		memcpy(s->regs->send.node, to->node, sizeof(to->node));
		s->regs->send.qid = to->qid;
		s->regs->send.size = foe_below(f, SIZE);
		s->regs->send.addr = 0;
	}
	if (foe_below(f, 2)) { /* a ring that makes sense, or nearly */
		s->regs->conf.entries = 1u << foe_below(f, 20);
		s->regs->conf.entry_size = 64 * foe_below(f, 64);
		s->regs->conf.base = 64ull * foe_below(f, 1024);
		atomic_fetch_add(&s->regs->conf.seq, 1);
	}
	atomic_fetch_add(&s->regs->send.seq, 1);
	urn_dev_ring(&s->dev->dev, s->engine, foe_below(f, 4) ? s->db : foe_below(f, 4096));
}

void
attack_registers(struct foe *f)
{
	const struct urn_msg_attr attr = {.send_size = SIZE, .recv_size = SIZE, .entries = ENTRIES};
	struct urn_msg_dev *dev = urn_msg_dev_connect(f->path, "a");
	struct urn_register_set *s[SETS];
	struct urn_msg_to to = {0};

	FOE_MUST(dev != NULL && urn_msg_dev_gid(dev, 1, to.node) == 0, "attach");
	for (unsigned int i = 0; i < SETS; i++) {
		s[i] = urn_msg_set_create(dev, &attr);
		FOE_MUST(s[i] != NULL, "register set");
	}
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < SETS; i++) {
			to.qid = urn_msg_set_qid(s[foe_below(f, SETS)]);
			any_register(f, s[i], &to);
		}
		foe_round(f);
	}
}

/* ---- endpoints */

/* An endpoint on either node, with memory that the other reaches. */
struct ends {
	struct urn_msg_dev *dev[2];
	struct urn_am_endpoint *ep[2];
	struct urn_am_memory memory[2];
	uint8_t *buf[2];
	uint64_t key[2];
	struct urn_am_address to[2];
};

static void
ends_open(struct ends *e, const struct foe *f)
{
	const struct urn_am_attr attr = {.operations = OPERATIONS};

	for (unsigned int i = 0; i < 2; i++) {
		struct urn_am_part all;

		e->dev[i] = urn_msg_dev_connect(f->path, i ? "b" : "a");
		FOE_MUST(e->dev[i] != NULL, "attach");
		e->ep[i] = urn_am_endpoint_create(e->dev[i], &attr);
		FOE_MUST(e->ep[i] != NULL, "endpoint");
		e->buf[i] = urn_alloc(BYTES);
		FOE_MUST(e->buf[i] != NULL, "memory");
		FOE_MUST(urn_am_memory_add(e->ep[i], e->buf[i], BYTES, &e->memory[i]) == 0,
			 "memory");
		all = (struct urn_am_part){&e->memory[i], e->buf[i], BYTES};
		FOE_MUST(urn_am_region_create(e->ep[i], &all, 1, URN_AM_ACCESS_ALL, &e->key[i]) ==
				 0,
			 "region");
		FOE_MUST(urn_am_address(e->ep[i], 1, &e->to[i]) == 0, "address");
	}
	FOE_MUST(e->ep[0]->regs != NULL, "rings");
}

/* A command whose fields are right or wrong, each for itself. */
static struct urn_abi_am_cmd
any_command(struct foe *f, const struct ends *e)
{
	unsigned int k = foe_below(f, 2);
	struct urn_abi_am_cmd c = {
		.op = (uint8_t)(foe_below(f, 4) ? foe_below(f, CODES) : foe_random(f)),
		.way = (uint8_t)(foe_below(f, 4) ? foe_below(f, URN_AM_WAYS + 1) : foe_random(f)),
		.every = (uint8_t)foe_random(f),
		.flags = (uint8_t)(foe_below(f, 4) ? 0 : foe_random(f)),
		.len = foe_below(f, 4) ? foe_below(f, BYTES) : (uint32_t)foe_random(f),
		.qid = foe_below(f, 4) ? e->to[k].memory : foe_random(f),
		.remote = foe_below(f, 4) ? (uintptr_t)e->buf[k] : foe_random(f),
		.key = foe_below(f, 4) ? e->key[k] : foe_random(f),
		.local = foe_below(f, 4) ? (uintptr_t)e->buf[0] : foe_random(f),
		.lkey = foe_below(f, 4) ? e->memory[0].lkey : (uint32_t)foe_random(f),
		.id = (uint32_t)foe_random(f),
	};

	memcpy(c.node, e->to[k].node, sizeof(c.node));
	return c;
}

/* Write any bytes over the head, the rings and the list of ranges. */
static void
any_bytes(struct foe *f, struct urn_abi_am_ep *regs, uint32_t ranges)
{
	volatile uint8_t *at = (volatile uint8_t *)regs;
	uint32_t bytes = (uint32_t)urn_am_ep_bytes(OPERATIONS, ranges);

	for (unsigned int i = 0; i < 64; i++)
		at[foe_below(f, bytes)] = (uint8_t)foe_random(f);
}

void
attack_commands(struct foe *f)
{
	struct urn_abi_am_ep *regs;
	struct urn_am_endpoint *ep;
	struct ends e;

	ends_open(&e, f);
	ep = e.ep[0];
	regs = ep->regs;
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < WRITES / 16; i++) {
			uint32_t at = atomic_load(&regs->client.commands);

			urn_am_cmds(regs)[at % OPERATIONS] = any_command(f, &e);
			atomic_store(&regs->client.events, foe_below(f, 16)
								   ? atomic_load(&regs->dp.events)
								   : (uint32_t)foe_random(f));
			atomic_store(&regs->client.commands,
				     foe_below(f, 64) ? at + 1 : (uint32_t)foe_random(f));
			urn_dev_ring(&ep->dev->dev, ep->engine, ep->db);
		}
		any_bytes(f, regs, ep->attr.ranges);
		foe_round(f);
	}
}
