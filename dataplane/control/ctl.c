/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests: the one validator. A request is a fixed struct from an
 * untrusted client; every field is checked here or in the handler before it is
 * used. Calls on an adapter are serialised; objects that an engine owns are changed in the
 * engine's thread.
 */
#include "control/ctl.h"
#include "control/client.h"
#include "control/lock.h"

#include <stdio.h>
#include <unistd.h>

/* The words of URN_CTL_LIST for the dataplane. */
#define END_OF(part) (offsetof(struct urn_abi_req, part) + sizeof(((struct urn_abi_req *)0)->part))
#define FROM_ANY false
#define FROM_REMOTE true
#define Q(kind) (1u << URN_QUOTA_##kind)
#define NO_QUOTA .take = 0
#define MAKES(kinds) .take = (kinds)
#define ENDS(kinds) .back = (kinds)
#define BYTES(word) .bytes = urn_ctl_##word##_bytes

static const struct urn_ctl_row rows[URN_CTL_OPS] = {
#define X(op, name, part, from, in, out, needs, ...) \
	[URN_CTL_##op] = {.word = #name,             \
			  .run = urn_ctl_##name,     \
			  .bytes = END_OF(part),     \
			  .remote = FROM_##from,     \
			  .fds_in = in,              \
			  .fds_out = out,            \
			  .feature = needs,          \
			  .use = {__VA_ARGS__}},
	URN_CTL_LIST(X)
#undef X
};

const struct urn_ctl_table urn_ctl_table = {rows, URN_CTL_OPS};

enum { AREA_ALIGN = 4096 }; /* bytes; a mapping begins on a page at least */

/* ---- any operation */

const struct urn_ctl_row *
urn_ctl_row(const struct urn_ctl_table *t, uint32_t op)
{
	return op < t->n && t->row[op].run ? &t->row[op] : NULL;
}

/* Check the request against its row, which is NULL for an unknown number. returns 0, or an errno
 * value */
static int
check(const struct urn_ctl_row *row, const struct urn_client *c, const struct urn_ctl_call *call,
      struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name;
	uint32_t op = call->req->op;
	unsigned int in = row ? row->fds_in : 0;

	if (call->fds > in)
		return urn_ctl_fail(rep, EBADF,
				    "control request %u takes %s descriptor, and %u came", op,
				    in ? "one" : "no", call->fds);
	if (!row)
		return urn_ctl_fail(rep, EINVAL, "no control request has the number %u", op);
	if (call->bytes < row->bytes)
		return urn_ctl_fail(rep, EINVAL,
				    "%s: control request %s needs %u bytes, and %zu came", name,
				    row->word, row->bytes, call->bytes);
	if (row->remote && !c->remote)
		return urn_ctl_fail(rep, EINVAL,
				    "%s: control request %s is for programs in another "
				    "process than the dataplane",
				    name, row->word);
	return 0;
}

int
urn_ctl_need(const struct urn_client *c, uint32_t feature, char *why, size_t size)
{
	uint32_t lacks = feature & ~c->agreed.features;
	const char *who;

	if (lacks == 0)
		return 0;
	who = lacks & urn_abi_offer_features(&c->adapter->dp->speaks) ? "library" : "dataplane";
	snprintf(why, size, "%s: the %s lacks %s: upgrade the %s", c->adapter->cfg.name, who,
		 urn_abi_feature_text(lacks), who);
	return EOPNOTSUPP;
}

/* Hold the handler to its row: a reply brings all of its descriptors, or none when the call failed.
 */
static void
check_reply(const struct urn_ctl_row *row, struct urn_client *c, struct urn_abi_rep *rep)
{
	unsigned int out = c->reply_fd >= 0 ? URN_CTL_REPLY_FDS : 0;

	if (!c->remote || out == (rep->err == 0 ? row->fds_out : 0))
		return;
	if (out)
		close(c->reply_fd);
	c->reply_fd = -1;
	rep->err = urn_ctl_fail(rep, EPROTO,
				"%s: the reply to control request %s brings %u descriptors "
				"instead of %u",
				c->adapter->cfg.name, row->word, out, row->fds_out);
}

void
urn_ctl_run(const struct urn_ctl_table *t, struct urn_client *c, struct urn_ctl_call *call,
	    struct urn_abi_rep *rep)
{
	const struct urn_ctl_row *row = urn_ctl_row(t, call->req->op);
	struct urn_charge charge;

	memset(rep, 0, sizeof(*rep));
	rep->err = check(row, c, call, rep);
	if (rep->err)
		return;
	if (row->fds_in)
		call->req->fd = call->fds ? call->fd[0] : -1;
	urn_ctl_enter(c);
	rep->err = urn_ctl_need(c, row->feature, rep->why, sizeof(rep->why));
	if (rep->err == 0)
		rep->err = urn_quota_begin(c, &row->use, call->req, rep, &charge);
	if (rep->err == 0) {
		c->no_queue[0] = '\0';
		rep->err = row->run(c, call->req, rep);
		check_reply(row, c, rep);
		if (rep->err == EDQUOT && c->no_queue[0])
			urn_ctl_fail(rep, EDQUOT, "%s", c->no_queue);
		urn_quota_end(c, &row->use, rep, &charge);
	}
	urn_ctl_leave(c);
	if (rep->err == 0)
		call->fds = 0;
	else if (!rep->why[0])
		urn_ctl_fail(rep, rep->err, "%s: control request %s: %s", c->adapter->cfg.name,
			     row->word, strerror(rep->err));
}

void
urn_ctl_call(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_abi_req copy = *req;
	struct urn_ctl_call call = {.req = &copy, .bytes = sizeof(copy), .fd = &req->fd};

	call.fds = urn_ctl_fds_in(req->op) && req->fd >= 0;
	urn_ctl_run(&urn_ctl_table, c, &call, rep);
}

/* ---- operations on the adapter as a whole */

/* Take the address of the client's area, which need not be true. returns: 0, or EINVAL */
static int
take_address(struct urn_client *c, uint64_t area, struct urn_abi_rep *rep)
{
	if (area & (AREA_ALIGN - 1) || area > UINT64_MAX - c->area.size)
		return urn_ctl_fail(rep, EINVAL, "%s: an area of %llu bytes can't lie at 0x%llx",
				    c->adapter->cfg.name, (unsigned long long)c->area.size,
				    (unsigned long long)area);
	if (!c->area_at)
		c->area_at = area;
	urn_client_mark(c);
	return 0;
}

int
urn_ctl_hello(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_abi_device *d = &rep->device;

	const struct urn_abi_offer library = {req->hello.oldest, req->hello.newest,
					      req->hello.features};
	struct urn_abi_agreed agreed;

	if (urn_abi_agree(&library, &a->dp->speaks, &agreed, rep->why, sizeof(rep->why)) != 0)
		return EPROTO;
	if (take_address(c, req->hello.area, rep) != 0)
		return EINVAL;
	c->agreed = agreed;
	d->version = agreed.version;
	d->features = agreed.features;
	d->engines = a->vectors;
	d->node_guid = urn_adapter_guid(a);
	d->max_mr_size = UINT64_MAX >> 1;
	d->max_qp = a->cfg.max_qp;
	d->max_cq = URN_ADAPTER_MAX_CQ;
	d->max_mr = d->max_mw = a->cfg.max_mr;
	d->max_pd = URN_ADAPTER_MAX_PD;
	d->max_ah = URN_ADAPTER_MAX_AH;
	d->max_srq = URN_ADAPTER_MAX_SRQ;
	d->max_wr = URN_ABI_MAX_WR;
	d->max_sge = URN_ABI_MAX_SGE;
	d->max_cqe = URN_ABI_MAX_CQE;
	d->max_rd_atomic = URN_ABI_MAX_RD_ATOMIC;
	d->max_inline = URN_ABI_MAX_INLINE;
	d->gids = URN_GIDS;
	d->area_size = c->area.size;
	memcpy(d->db_off, c->db_off, sizeof(d->db_off));
	snprintf(d->name, sizeof(d->name), "%s", a->cfg.name);
	snprintf(d->fw_ver, sizeof(d->fw_ver), "%s", URN_VERSION);
	return 0;
}

int
urn_ctl_query_port(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const struct urn_port *p = c->adapter->cfg.port;

	(void)req;
	rep->port.state = p->link_up ? 4 : 1;
	rep->port.max_mtu = rep->port.active_mtu = urn_adapter_mtu_code(c->adapter);
	rep->port.mtu_bytes = p->caps.mtu;
	rep->port.speed = urn_port_speed(p);
	return 0;
}

int
urn_ctl_query_gid(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	if (req->gid.index >= URN_GIDS)
		return urn_ctl_fail(rep, EINVAL, "%s has %u GIDs, and none with index %u",
				    c->adapter->cfg.name, URN_GIDS, req->gid.index);
	memcpy(rep->gid.gid, c->adapter->gid[req->gid.index], 16);
	return 0;
}
