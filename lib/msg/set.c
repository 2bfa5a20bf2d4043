/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, naming and ending register sets. */
#include "msg/set.h"

#include "abi/clock.h"
#include "msg/pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Milliseconds that a configuration may take until the library gives up. */
enum { URN_MSG_CONF_MS = 10000 };

/* returns: the least power of two that is not below n, for 1 <= n <= 2^31 */
static uint32_t
urn_msg_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static uint64_t
urn_msg_lines(uint64_t bytes)
{
	return (bytes + URN_ABI_CACHE_LINE - 1) & ~(uint64_t)(URN_ABI_CACHE_LINE - 1);
}

/* Work the layout of the arena out. returns: 0, or EINVAL with its text */
static int
urn_msg_lay_out(struct urn_register_set *set, const struct urn_msg_attr *attr)
{
	if (attr->send_size > URN_MSG_MAX || attr->recv_size > URN_MSG_MAX)
		return urn_fail(EINVAL, "a message has at most %u bytes",
				(unsigned int)URN_MSG_MAX);
	if (attr->entries > URN_MSG_ENTRIES_MAX)
		return urn_fail(EINVAL, "a receive queue has at most %u entries",
				(unsigned int)URN_MSG_ENTRIES_MAX);
	set->send_size = attr->send_size;
	set->base = urn_msg_lines(attr->send_size);
	set->entries = attr->entries ? urn_msg_pow2(attr->entries) : 0;
	set->entry_size =
		(uint32_t)urn_msg_lines(attr->recv_size + sizeof(struct urn_abi_msg_entry));
	if (set->base + (uint64_t)set->entries * set->entry_size > URN_MSG_ARENA_MAX)
		return urn_fail(EINVAL,
				"send buffer and receive queue have at most %u bytes together",
				(unsigned int)URN_MSG_ARENA_MAX);
	return 0;
}

/* returns: 0, or an errno value with its text */
static int
urn_msg_ask_open(struct urn_register_set *set, const struct urn_msg_attr *attr)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_OPEN};
	struct urn_abi_rep rep;
	int err;

	req.msg_open.comp_vector = attr->vector;
	req.msg_open.flags = attr->named ? URN_MSG_OPEN_NAMED : 0;
	req.msg_open.arena = set->base + (uint64_t)set->entries * set->entry_size;
	req.msg_open.channel_fd = attr->wakes ? set->channel : -1;
	req.msg_open.cookie = (uintptr_t)set;
	err = urn_msg_dev_call(set->dev, &req, &rep);
	if (err != 0)
		return err;
	set->handle = rep.handle;
	set->db = rep.msg.db;
	set->engine = rep.msg.engine;
	set->qid = rep.msg.qid;
	set->regs = urn_dev_at(&set->dev->dev, rep.msg.off);
	set->arena = urn_dev_at(&set->dev->dev, rep.msg.arena_off);
	return 0;
}

/* Configure the receive queue, and wait until the engine has taken it. returns: 0, or an errno
 * value */
static int
urn_msg_configure(struct urn_register_set *set, const struct urn_msg_attr *attr)
{
	struct urn_abi_msg_conf *conf = &set->regs->conf;
	struct urn_abi_msg_rstat *rstat = &set->regs->rstat;
	uint64_t end = urn_clock_ms() + URN_MSG_CONF_MS;
	struct urn_msg_pause pause = {0};
	uint32_t seq = atomic_load_explicit(&conf->seq, memory_order_relaxed) + 1;

	conf->entries = set->entries;
	conf->base = set->base;
	conf->entry_size = set->entry_size;
	conf->permit_bits = (uint8_t)(attr->permit_bits < 128 ? attr->permit_bits : 128);
	memcpy(conf->permit, attr->permit, sizeof(conf->permit));
	conf->flags = attr->own_node ? URN_MSGQ_OWN_NODE : 0;
	atomic_store_explicit(&set->regs->ctrl.head, 0, memory_order_relaxed);
	atomic_store_explicit(&conf->seq, seq, memory_order_release);
	urn_dev_ring(&set->dev->dev, set->engine, set->db);
	while (atomic_load_explicit(&rstat->conf_seq, memory_order_acquire) != seq) {
		if (urn_clock_ms() > end)
			return urn_fail(ETIMEDOUT,
					"the engine has not taken the receive queue's "
					"configuration for %d s",
					URN_MSG_CONF_MS / 1000);
		urn_msg_pause(&pause);
	}
	if (atomic_load_explicit(&rstat->state, memory_order_acquire) != URN_MSGQ_OPEN)
		return urn_fail(EINVAL, "the dataplane refused the receive queue: state %u",
				atomic_load(&rstat->state));
	return 0;
}

int
urn_msg_set_init(struct urn_register_set *set, struct urn_msg_dev *dev,
		 const struct urn_msg_attr *attr)
{
	int err;

	memset(set, 0, sizeof(*set));
	set->dev = dev;
	set->fd = set->write_fd = -1;
	err = urn_msg_lay_out(set, attr);
	if (err == 0 && attr->wakes)
		err = urn_msg_channel_open(dev, &set->fd, &set->write_fd, &set->channel);
	if (err != 0)
		return errno = err;
	err = urn_msg_ask_open(set, attr);
	if (err == 0 && set->entries != 0)
		err = urn_msg_configure(set, attr);
	if (err == 0)
		return 0;
	urn_msg_set_fini(set);
	return errno = err;
}

void
urn_msg_set_fini(struct urn_register_set *set)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_CLOSE, .handle = set->handle};
	struct urn_abi_rep rep;

	if (set->regs != NULL)
		(void)urn_msg_dev_call(set->dev, &req, &rep);
	set->regs = NULL;
	if (set->channel != 0 || set->fd >= 0)
		urn_msg_channel_close(set->dev, set->fd, set->write_fd, set->channel);
	set->fd = set->write_fd = -1;
	set->channel = 0;
}

struct urn_register_set *
urn_msg_set_create(struct urn_msg_dev *dev, const struct urn_msg_attr *attr)
{
	struct urn_register_set *set = malloc(sizeof(*set));

	if (set == NULL) {
		urn_fail(ENOMEM, "no memory for a register set");
		return NULL;
	}
	if (urn_msg_set_init(set, dev, attr) == 0)
		return set;
	free(set);
	return NULL;
}

void
urn_msg_set_destroy(struct urn_register_set *set)
{
	if (set == NULL)
		return;
	urn_msg_set_fini(set);
	free(set);
}

uint64_t
urn_msg_set_qid(const struct urn_register_set *set)
{
	return set->qid;
}

int
urn_msg_set_fd(const struct urn_register_set *set)
{
	return set->fd;
}

int
urn_msg_set_bind(struct urn_register_set *set, uint32_t name)
{
	struct urn_abi_req req = {
		.op = URN_CTL_MSG_BIND, .handle = set->handle, .msg_bind.name = name};
	struct urn_abi_rep rep;

	return urn_msg_dev_call(set->dev, &req, &rep);
}

int
urn_msg_set_bind_any(struct urn_register_set *set, uint32_t first, uint32_t end, uint32_t *name)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_BIND, .handle = set->handle};
	struct urn_abi_rep rep;
	int err;

	req.msg_bind.name = first;
	req.msg_bind.end = end;
	req.msg_bind.flags = URN_MSG_BIND_ANY;
	err = urn_msg_dev_call(set->dev, &req, &rep);
	if (err == 0)
		*name = (uint32_t)rep.msg.qid;
	return err;
}
