/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/msg_port.h"

#include "attach/remote.h"

#include <urnic/attach.h>

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* ---- adapters */

/* True when an address is of a family, and neither unset nor link-local. */
static bool
is_of_family(const uint8_t gid[16], bool ipv6)
{
	bool v4 = memcmp(gid, v4_prefix, sizeof(v4_prefix)) == 0;

	return ipv6 ? !v4 && gid[0] != 0 && gid[0] != 0xfe : v4;
}

static int
find_gid(struct urn_msg_port *port, bool ipv6, struct urn_err *err)
{
	for (uint32_t i = 0; i < port->dev.info.gids; i++) {
		struct urn_abi_req req = {.op = URN_CTL_QUERY_GID, .gid.index = i};
		struct urn_abi_rep rep;

		if (urn_dev_call(&port->dev, &req, &rep) != 0 || !is_of_family(rep.gid.gid, ipv6))
			continue;
		memcpy(port->gid, rep.gid.gid, sizeof(port->gid));
		return 0;
	}
	urn_err_set(err, "the adapter has no address of IPv%c", ipv6 ? '6' : '4');
	return -1;
}

int
urn_msg_port_open(struct urn_msg_port *port, struct urn_abi_channel *channel, bool ipv6,
		  struct urn_err *err)
{
	if (urn_dev_open(&port->dev, channel) != 0) {
		urn_err_set(err, "cannot open the adapter: %s", urn_attach_error());
		return -1;
	}
	port->open = true;
	if (urn_dev_need(&port->dev, URN_ABI_FEATURE_MSG) != 0) {
		urn_err_set(err, "cannot use messages: %s", urn_attach_error());
		return -1;
	}
	return find_gid(port, ipv6, err);
}

/* The dataplane is gone. Called by a thread of the channel's. */
static void
died(void *arg)
{
	struct urn_msg_port *port = arg;

	atomic_store_explicit(&port->dev.gone, URN_DEV_DIED, memory_order_release);
}

int
urn_msg_port_attach(struct urn_msg_port *port, const char *attach, const char *node, bool ipv6,
		    struct urn_err *err)
{
	bool usual = attach == NULL || strcmp(attach, "auto") == 0;
	struct urn_abi_channel *channel = urn_remote_attach(usual ? NULL : attach, node);

	if (channel == NULL) {
		urn_err_set(err, "cannot attach to the dataplane: %s", urn_attach_error());
		return -1;
	}
	if (urn_msg_port_open(port, channel, ipv6, err) != 0)
		return -1;
	if (channel->watch(channel->ctx, died, port) == 0)
		return 0;
	urn_err_set(err, "cannot watch the dataplane: no thread for that");
	return -1;
}

void
urn_msg_port_close(struct urn_msg_port *port)
{
	if (port->open)
		urn_dev_close(&port->dev);
	port->open = false;
}

/* ---- sets */

static uint64_t
lines(uint64_t bytes)
{
	return (bytes + URN_ABI_CACHE_LINE - 1) & ~(uint64_t)(URN_ABI_CACHE_LINE - 1);
}

/* Ask for the receive queue. base: of the ring, in the arena */
static void
configure(struct urn_regset *s, uint64_t base, bool own_node)
{
	struct urn_abi_msg_conf *c = &s->regs->conf;

	c->entries = s->entries;
	c->entry_size = s->entry_size;
	c->base = base;
	c->flags = own_node ? URN_MSGQ_OWN_NODE : 0;
	atomic_store_explicit(&c->seq, 1, memory_order_release);
	urn_dev_ring(&s->port->dev, s->engine, s->db);
}

int
urn_regset_open(struct urn_regset *s, struct urn_msg_port *port, const struct urn_regset_want *want,
		struct urn_err *err)
{
	struct urn_abi_req req = {.op = URN_CTL_MSG_OPEN, .msg_open.channel_fd = -1};
	uint64_t base = lines(want->send_bytes);
	struct urn_abi_rep rep;

	memset(s, 0, sizeof(*s));
	s->entries = want->entries;
	s->entry_size =
		(uint32_t)lines(sizeof(struct urn_abi_msg_entry) + (uint64_t)want->recv_size);
	req.msg_open.arena = base + (uint64_t)s->entries * s->entry_size;
	if (urn_dev_call(&port->dev, &req, &rep) != 0) {
		urn_err_set(err, "cannot make a register set: %s", urn_attach_error());
		return -1;
	}
	s->port = port;
	s->handle = rep.handle;
	s->db = rep.msg.db;
	s->engine = rep.msg.engine;
	s->qid = rep.msg.qid;
	s->regs = urn_dev_at(&port->dev, rep.msg.off);
	s->out = urn_dev_at(&port->dev, rep.msg.arena_off);
	if (s->entries == 0)
		return 0;
	s->ring = s->out + base;
	configure(s, base, want->own_node);
	return 0;
}

void
urn_regset_close(struct urn_regset *s)
{
	if (s->port != NULL)
		(void)urn_dev_call_handle(&s->port->dev, URN_CTL_MSG_CLOSE, s->handle);
	s->port = NULL;
}
