/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests on multicast groups. The engine of a queue pair keeps its attachments; the
 * adapter's other engines are told of the first attachment to a group and of the end of the last.
 */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "transport/mcast.h"

/* A change, carried out in the thread of the queue pair's engine, and then in those of the others.
 */
struct change {
	struct urn_tp *tp; /* the engine in turn has it */
	struct urn_qp *qp;
	const uint8_t *gid;
	unsigned int engine; /* the queue pair's */
	bool attach;
	bool edge; /* the first attachment, or the end of the last */
	int rc;
};

static void
change_members(void *arg)
{
	struct change *ch = arg;

	ch->rc = ch->attach ? urn_mcast_attach(ch->tp, ch->qp, ch->gid, &ch->edge)
			    : urn_mcast_detach(ch->tp, ch->qp, ch->gid, &ch->edge);
}

static void
tell(void *arg)
{
	struct change *ch = arg;

	ch->rc = urn_mcast_tell(ch->tp, ch->gid, ch->engine, ch->attach);
}

/* Tell the other engines. returns: 0 or an errno value */
static int
tell_others(struct urn_client *c, struct change *ch)
{
	struct urn_adapter *a = c->adapter;

	for (uint32_t v = 0; v < a->vectors; v++) {
		struct urn_shard *s = urn_adapter_shard(a, v);

		if (a->engine_of[v] == ch->engine)
			continue;
		ch->tp = s->tp;
		urn_engine_call(s->engine, tell, ch);
		if (ch->rc != 0)
			return ch->rc;
	}
	return 0;
}

static int
carry_out(struct urn_client *c, struct urn_qp *qp, const uint8_t gid[16], bool attach)
{
	struct change ch = {.qp = qp, .gid = gid, .attach = attach};
	struct urn_shard *s;

	ch.engine = urn_qpn_engine(qp->qpn);
	s = c->adapter->shard[ch.engine];
	ch.tp = s->tp;
	urn_engine_call(s->engine, change_members, &ch);
	if (ch.rc != 0 || !ch.edge || tell_others(c, &ch) == 0)
		return ch.rc;
	/* Another engine has no memory for the group: undo, which takes no memory. */
	ch.attach = false;
	ch.tp = s->tp;
	urn_engine_call(s->engine, change_members, &ch);
	(void)tell_others(c, &ch);
	return ENOMEM;
}

static int
change(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep, bool attach)
{
	const char *name = c->adapter->cfg.name;
	struct urn_qp *qp = urn_client_qp(c, req->handle);
	uint8_t mac[6];
	int rc;

	if (!qp)
		return urn_ctl_fail(rep, EINVAL, "%s: no QP 0x%x", name, req->handle);
	if (qp->type != URN_QPT_UD)
		return urn_ctl_fail(rep, EINVAL,
				    "%s: QP 0x%x is not of type UD, and can be in no group", name,
				    req->handle);
	if (!urn_gid_multicast_mac(mac, req->mcast.gid))
		return urn_ctl_fail(rep, EINVAL,
				    "%s: the GID is not that of a multicast group: "
				    "ff00::/8, or IPv4 from 224.0.0.0 to 239.255.255.255",
				    name);
	rc = carry_out(c, qp, req->mcast.gid, attach);
	if (rc == EINVAL)
		return urn_ctl_fail(rep, rc, "%s: QP 0x%x is not attached to that group", name,
				    req->handle);
	if (rc != 0)
		return urn_ctl_fail(rep, rc,
				    "%s: no more attachments to groups: %u of a client, %u groups",
				    name, URN_MCAST_CLIENT, URN_MCAST_GROUPS);
	return 0;
}

int
urn_ctl_attach_mcast(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return change(c, req, rep, true);
}

int
urn_ctl_detach_mcast(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return change(c, req, rep, false);
}

/* Control looks at the groups in the engine's thread. */
struct group_look {
	const struct urn_qp *qp;
	uint8_t gid[16];
	bool found;
};

static void
look(void *arg)
{
	struct group_look *l = arg;

	l->found = urn_mcast_group_of(l->qp, l->gid);
}

void
urn_ctl_leave_groups(struct urn_client *c, struct urn_qp *qp)
{
	struct urn_shard *s = c->adapter->shard[urn_qpn_engine(qp->qpn)];
	struct group_look l = {.qp = qp};

	while (qp->flags & URN_QPF_MCAST) {
		urn_engine_call(s->engine, look, &l);
		if (!l.found || carry_out(c, qp, l.gid, false) != 0)
			return;
		urn_ctl_took_back(c, 1);
	}
}
