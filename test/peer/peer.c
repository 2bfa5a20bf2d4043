/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's ends: frames in and out, time, and the end of a connection. */
#include "peer.h"

#include <string.h>

void
peer_open(struct peer *p, const struct peer_cfg *c, uint64_t now)
{
	memset(p, 0, sizeof(*p));
	p->c = *c;
	p->now = now;
	p->alloc = p->una = p->next = p->top = c->sq_psn;
	p->epsn = p->newest = c->rq_psn;
	p->timer = p->ack_at = UINT64_MAX;
	p->tries = c->retries;
	p->rnr_tries = c->rnr_retries;
}

uint64_t
peer_rnr_ns(uint32_t code)
{
	/* in 10 us: IBTA table 45 */
	static const uint32_t tens[32] = {65536, 1,    2,    3,    4,    6,    8,    12,
					  16,    24,   32,   48,   64,   96,   128,  192,
					  256,   384,  512,  768,  1024, 1536, 2048, 3072,
					  4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return tens[code & 31] * 10000ull;
}

void
peer_emit(struct peer *p, const struct pw *f)
{
	struct pw out = *f;
	uint8_t frame[PW_ROOM];

	out.qpn = p->c.other_qpn;
	out.mig = p->c.mig;
	p->c.emit(p->c.ctx, frame, pw_write(&out, &p->c.self, &p->c.other, p->c.sport, frame));
}

void
peer_rx(struct peer *p, uint64_t now, const uint8_t *frame, size_t len, bool spoilt)
{
	struct pw f;
	const char *why = pw_read(frame, len, &p->c.other, &p->c.self, &f);

	p->now = now;
	if (!why && f.qpn != p->c.qpn)
		why = "destination QP";
	if (!why && p->sport && f.sport != p->sport)
		why = "the UDP source port of the connection changed";
	if (!why && !f.mig)
		why = "MigReq is 0, and no path can be migrated (IBTA 17.2.8)";
	if (why && !spoilt)
		p->c.wrong(p->c.ctx, "a bad frame of %zu bytes: %s", len, why);
	if (why)
		return;
	if (!spoilt)
		p->sport = f.sport;
	if (pw_is(f.op) & PWI_RESPONSE)
		peer_req_response(p, &f);
	else
		peer_resp_arrives(p, &f, frame, len);
	peer_turn(p, now);
}

uint64_t
peer_due(const struct peer *p)
{
	uint64_t a = peer_req_due(p), b = peer_resp_due(p);

	return a < b ? a : b;
}

void
peer_turn(struct peer *p, uint64_t now)
{
	p->now = now;
	peer_resp_serve(p);
	peer_req_timer(p);
	peer_req_pump(p);
}

void
peer_fail(struct peer *p, enum peer_end end)
{
	p->failed = true;
	p->timer = p->ack_at = UINT64_MAX;
	p->rnr_until = 0;
	p->answer.on = false;
	p->q_out = p->q_in;
	while (p->wr_out != p->wr_in) {
		p->c.done(p->c.ctx, &p->wr[p->wr_out++ % PEER_WRS], end);
		end = PEER_FLUSH;
	}
	while (p->recv_out != p->recv_in) {
		struct peer_recv *r = &p->recv[p->recv_out++ % PEER_RECVS];

		if (r->end == PEER_OK)
			r->end = PEER_FLUSH;
		p->c.received(p->c.ctx, r);
	}
}
