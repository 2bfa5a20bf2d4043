/* SPDX-License-Identifier: BSD-3-Clause */
/* The control request that asks why a completion has an error (abi/explain.h). */
#include "control/ctl.h"
#include "control/explain.h"

#include <errno.h>

/* A search, carried out in the thread of the engine that keeps the records. */
struct search {
	const struct urn_tp *tp;	  /* transport of the queue pair; as long */
	const struct urn_tp_share *share; /* the client's own; stays during the call */
	uint32_t qpn;
	uint8_t status;	      /* enum urn_abi_wc_status that is asked for */
	bool found;	      /* result: f is valid */
	struct urn_failure f; /* result: a copy of the record */
};

static void
search(void *arg)
{
	struct search *s = arg;
	const struct urn_failure *f = urn_failure_find(s->tp, s->share, s->qpn, s->status);

	s->found = f != NULL;
	if (f)
		s->f = *f;
}

bool
urn_explain_find(const struct urn_client *c, uint32_t qpn, uint8_t status, struct urn_failure *f,
		 uint64_t *ago_ns)
{
	unsigned int engine = urn_qpn_engine(qpn);
	struct urn_shard *shard = NULL;
	uint64_t now;
	struct search s = {.qpn = qpn, .status = status};

	if (qpn <= URN_QPN_MASK && engine < URN_ABI_MAX_ENGINES)
		shard = c->adapter->shard[engine];
	if (!shard || !c->engine.share[engine])
		return false;
	s.tp = shard->tp;
	s.share = c->engine.share[engine];
	urn_engine_call(shard->engine, search, &s);
	now = urn_engine_now(shard->engine);
	*f = s.f;
	*ago_ns = now > s.f.at ? now - s.f.at : 0;
	return s.found;
}

void
urn_explain_keep(struct urn_client *c, unsigned int engine, const struct urn_tp_share *share)
{
	struct urn_explain_past *past = &c->adapter->past;

	for (unsigned int i = 0; i < URN_FAILURES; i++) { /* the oldest first */
		const struct urn_failure *f =
			&share->failures.ring[(share->failures.n + i) % URN_FAILURES];

		if (f->kind == URN_FAILURE_NONE)
			continue;
		past->ring[past->n++ % URN_EXPLAIN_PAST] = (struct urn_explain_gone){
			.client = c->id,
			.pid = c->pid,
			.engine = (uint8_t)engine,
			.f = *f,
		};
	}
}

int
urn_ctl_explain(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	uint32_t status = req->explain.status;
	const struct urn_port *port = c->adapter->cfg.port;
	struct urn_failure f;
	uint64_t ago;

	if (!urn_explain_find(c, req->handle, status < UINT8_MAX ? (uint8_t)status : UINT8_MAX, &f,
			      &ago))
		return urn_ctl_fail(rep, ENOENT,
				    "QP 0x%x: no error on record: its program or a disconnect "
				    "ended it, or it is gone, and its error older than the last %u",
				    req->handle, URN_FAILURES);
	rep->explained.ago_ns = ago;
	rep->explained.vendor_err = f.vendor_err;
	rep->explained.status = f.status;
	urn_failure_text(&f, port->cfg.name, status == URN_WC_WR_FLUSH_ERR, rep->explained.text,
			 sizeof(rep->explained.text));
	return 0;
}
