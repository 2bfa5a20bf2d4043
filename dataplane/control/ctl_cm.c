/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests on connection management. */
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"

#include <errno.h>
#include <inttypes.h>

/* The engine's time. Not under the connection manager's lock, which the engine that is asked may wait for. */
static uint64_t
now_of(const struct urn_client *c)
{
	return urn_engine_now(urn_adapter_shard(c->adapter, 0)->engine);
}

/* Set the sentence for each errno value of the state machine. returns rc */
static int
answer(const struct urn_client *c, uint32_t id, struct urn_abi_rep *rep, int rc)
{
	const struct urn_adapter *a = c->adapter;

	switch (rc) {
	case 0:
		return 0;
	case ENOENT:
		return urn_ctl_fail(rep, ENOENT, "%s: no connection id 0x%x", a->cfg.name, id);
	case ENOTCONN:
		return urn_ctl_fail(rep, ENOTCONN, "%s: connection id 0x%x is in a state in which that "
				    "is not possible", a->cfg.name, id);
	case EADDRINUSE:
		return urn_ctl_fail(rep, EADDRINUSE, "%s: somebody listens at this service id already",
				    a->cfg.name);
	case EDQUOT:
		return urn_ctl_fail(rep, EDQUOT, "%s: a program has at most %u connection ids, and all of "
				    "its user so many as [limits] says; destroy some", a->cfg.name,
				    c->cm.owner.max_ids);
	case ENOSPC:
		return urn_ctl_fail(rep, ENOSPC, "%s: no more connection ids", a->cfg.name);
	default:
		return urn_ctl_fail(rep, rc, "%s: a parameter of the connection, or the length of its "
				    "private data, is out of its range", a->cfg.name);
	}
}

/* Set the limits of a client in another process, before it has any id. */
static void
take_limits(struct urn_client *c)
{
	struct urn_cm_owner *o = &c->cm.owner;

	if (!c->quota.account || o->user_ids)
		return;
	if (c->quota.limits.max[URN_QUOTA_CM] < o->max_ids)
		o->max_ids = (uint32_t)c->quota.limits.max[URN_QUOTA_CM];
	o->max_user_ids = c->quota.account->limits.max[URN_QUOTA_CM];
	o->user_ids = &c->quota.account->apart;
}

/* Check that there is connection management, and that the queue pair is the client's. */
static int
check(struct urn_client *c, uint32_t qpn, bool needs_qp, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;

	if (!a->cm)
		return urn_ctl_fail(rep, EOPNOTSUPP, "%s: has no connection management (no_cm)",
				    a->cfg.name);
	take_limits(c);
	if (needs_qp && !urn_client_owns_qp(c, qpn))
		return urn_ctl_fail(rep, EINVAL, "%s: no QP 0x%x", a->cfg.name, qpn);
	return 0;
}

/* Check the parameters of a request that depend on the adapter. */
static int
check_path(const struct urn_client *c, const struct urn_abi_cm_connect *p, bool sidr,
	   struct urn_abi_rep *rep)
{
	static const uint8_t none[16];
	const struct urn_adapter *a = c->adapter;
	uint8_t mtu = urn_adapter_mtu_code(a);

	if (!sidr && p->mtu > mtu)
		return urn_ctl_fail(rep, EINVAL, "%s: its port carries a path MTU of code %u (%u bytes) at "
				    "most, not %u", a->cfg.name, mtu, 128u << mtu, p->mtu);

	if (p->sgid_index >= URN_GIDS || memcmp(a->gid[p->sgid_index], none, 16) == 0)
		return urn_ctl_fail(rep, EINVAL, "%s: no GID with index %u", a->cfg.name, p->sgid_index);
	if (!urn_neigh_unicast(p->dgid) || urn_gid_is_v4(p->dgid) != urn_gid_is_v4(a->gid[p->sgid_index]))
		return urn_ctl_fail(rep, EINVAL, "%s: a connection goes to an address of one station, of "
				    "the family of source GID %u", a->cfg.name, p->sgid_index);
	return 0;
}

/*
 * Find the channel for notices: *channel is a descriptor of the program's own, or the handle
 * of a channel from a client in another process, and becomes a descriptor.
 */
static int
find_channel(const struct urn_client *c, struct urn_abi_rep *rep, int32_t *channel)
{
	const struct urn_ctl_channel *ch;

	if (*channel < 0)
		*channel = -1;
	if (*channel < 0 || !c->remote)
		return 0;
	ch = urn_handles_get(&c->channels, (uint32_t)*channel);
	if (!ch)
		return urn_ctl_fail(rep, EINVAL, "%s: no channel %d", c->adapter->cfg.name, *channel);
	*channel = ch->pipe.write_fd;
	return 0;
}

static void
count_not_owner(void *arg)
{
	URN_COUNT((struct urn_tp *)arg, CM_NOT_OWNER);
}

/* Check that nobody listens for questions about another program's queue pair. */
static int
check_service(struct urn_client *c, uint64_t service, struct urn_abi_rep *rep)
{
	struct urn_shard *s = urn_adapter_shard(c->adapter, 0);
	uint32_t qpn = (uint32_t)service;

	if (!urn_cm_is_session_service(service) || urn_client_owns_qp(c, qpn))
		return 0;
	urn_engine_call(s->engine, count_not_owner, s->tp);
	return urn_ctl_fail(rep, EACCES,
			    "%s: service 0x%" PRIx64 " is for the program that owns QP 0x%x",
			    c->adapter->cfg.name, service, qpn);
}

/* Take over a request of another client. p: the channel is found */
static int
take(struct urn_client *c, const struct urn_abi_cm_listen *p, struct urn_abi_rep *rep)
{
	uint32_t id = (uint32_t)p->service_id;
	struct urn_cm_agent *ag = c->adapter->cm;
	struct urn_cm *cm = urn_cm_agent_lock(ag);
	int rc = ENOENT;

	/* Events that were not fetched are the other client's. */
	if (urn_cm_agent_is_fetched(ag, id))
		rc = urn_cm_take(cm, &c->cm.owner, id, p->cookie, p->channel_fd);
	urn_cm_agent_unlock(ag);
	if (rc == 0)
		rep->handle = id;
	return answer(c, id, rep, rc);
}

int
urn_ctl_cm_listen(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_abi_cm_listen p = req->cm_listen;
	struct urn_adapter *a = c->adapter;
	int rc = check(c, 0, false, rep);
	bool takes = (p.backlog & URN_CM_TAKE) != 0;

	if (rc == 0 && !takes)
		rc = check_service(c, p.service_id, rep);
	if (rc == 0)
		rc = find_channel(c, rep, &p.channel_fd);
	if (rc != 0)
		return rc;
	if (takes)
		return take(c, &p, rep);
	rc = urn_cm_listen(urn_cm_agent_lock(a->cm), &c->cm.owner, &p, &rep->handle);
	urn_cm_agent_unlock(a->cm);
	return answer(c, 0, rep, rc);
}

/* Ask for a connection, or (sidr) for the queue pair of a service. */
static int
ask(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep, bool sidr)
{
	struct urn_abi_cm_connect p = req->cm_connect;
	struct urn_adapter *a = c->adapter;
	struct urn_cm *cm;
	uint64_t now;
	int rc = check(c, p.qpn, !sidr, rep);

	if (rc == 0)
		rc = check_path(c, &p, sidr, rep);
	if (rc == 0)
		rc = find_channel(c, rep, &p.channel_fd);
	if (rc != 0)
		return rc;
	now = now_of(c);
	cm = urn_cm_agent_lock(a->cm);
	rc = (sidr ? urn_cm_resolve : urn_cm_connect)(cm, &c->cm.owner, &p, a->gid[p.sgid_index], now,
						      &rep->handle);
	urn_cm_agent_unlock(a->cm);
	return answer(c, 0, rep, rc);
}

int
urn_ctl_cm_connect(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return ask(c, req, rep, false);
}

int
urn_ctl_cm_resolve(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return ask(c, req, rep, true);
}

/* ---- calls on an id */

typedef int act_fn(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_req *req,
		   uint64_t now);

/* needs_qp: the call uses queue pair qpn, which must be the client's */
static int
act(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep, act_fn *fn,
    uint32_t qpn, bool needs_qp)
{
	struct urn_adapter *a = c->adapter;
	int rc = check(c, qpn, needs_qp, rep);
	uint64_t now;

	if (rc != 0)
		return rc;
	now = now_of(c);
	rc = fn(urn_cm_agent_lock(a->cm), &c->cm.owner, req, now);
	urn_cm_agent_unlock(a->cm);
	return answer(c, req->handle, rep, rc);
}

static int
accept_it(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_req *req, uint64_t now)
{
	return urn_cm_accept(cm, o, req->handle, &req->cm_accept, now);
}

static int
reject_it(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_req *req, uint64_t now)
{
	return urn_cm_reject(cm, o, req->handle, &req->cm_reject, now);
}

static int
establish_it(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_req *req, uint64_t now)
{
	return urn_cm_establish(cm, o, req->handle, &req->cm_data, now);
}

static int
disconnect_it(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_req *req, uint64_t now)
{
	return urn_cm_disconnect(cm, o, req->handle, &req->cm_data, now);
}

int
urn_ctl_cm_accept(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	/* The refusal of a look-up names no queue pair. */
	return act(c, req, rep, accept_it, req->cm_accept.qpn,
		   req->cm_accept.status == URN_CM_SIDR_VALID);
}

int
urn_ctl_cm_reject(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return act(c, req, rep, reject_it, 0, false);
}

int
urn_ctl_cm_establish(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int rc = act(c, req, rep, establish_it, 0, false);

	if (rc == 0)
		urn_pair_settle(c);
	return rc;
}

int
urn_ctl_cm_disconnect(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return act(c, req, rep, disconnect_it, 0, false);
}

int
urn_ctl_cm_destroy(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int rc = check(c, 0, false, rep);

	if (rc != 0)
		return rc;
	rc = urn_cm_client_release(c->adapter->cm, &c->cm, req->handle, now_of(c));
	return answer(c, req->handle, rep, rc);
}

int
urn_ctl_cm_event(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int rc = check(c, 0, false, rep);

	if (rc != 0)
		return rc;
	rc = urn_cm_client_event(c->adapter->cm, &c->cm, req->handle, &rep->cm_event);
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: no event waits", c->adapter->cfg.name);
	rep->handle = rep->cm_event.id;
	if (rep->cm_event.type == URN_CM_EVENT_ESTABLISHED)
		urn_pair_settle(c);
	return 0;
}
