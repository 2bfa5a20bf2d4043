/* SPDX-License-Identifier: BSD-3-Clause */
#include "meet.h"

#include "abi/queue.h"
#include "perf.h"

struct meet *
meet_open(const struct perf_opts *o, struct ibv_context *ctx, uint8_t gid_index,
	  const union ibv_gid *gid, struct urn_err *err)
{
	return o->by_cm ? meet_cm_open(o, ctx, gid_index, gid, err) : meet_oob_open(o, err);
}

void
meet_close(struct meet *m)
{
	if (m != NULL)
		m->ops->close(m);
}

int
meet_ask(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err)
{
	return m->ops->ask(m, n, own, err);
}

int
meet_answer(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err)
{
	return m->ops->answer(m, n, own, err);
}

int
meet_ready(struct meet *m, uint32_t n, struct urn_err *err)
{
	return m->ops->ready(m, n, err);
}

int
meet_end(struct meet *m, uint32_t n, const struct meet_end *end, bool ended, struct urn_err *err)
{
	return m->ops->end(m, n, end, ended, err);
}

int
meet_look(struct meet *m, struct meet_news *news, int ms, struct urn_err *err)
{
	return m->ops->look(m, news, ms, err);
}

int
meet_gave_up(const struct meet_end *end, struct urn_err *err)
{
	char text[sizeof(end->text)];
	size_t n = 0;

	/* The peer's text goes to a terminal: printable characters only. */
	for (; n + 1 < sizeof(text) && end->text[n] != '\0'; n++)
		text[n] = (char)(end->text[n] >= ' ' && end->text[n] <= '~' ? end->text[n] : '?');
	text[n] = '\0';
	urn_err_set(err, "the other side gave up: %s",
		    text[0] != '\0' ? text : "for no stated reason");
	return -1;
}

/* True when datagrams fit the hello: operation send, one packet a message. */
static bool
ud_ok(const struct meet_hello *h)
{
	return h->ud_qpn == 0 || (h->ud_qpn <= 0xffffffu && perf_op_is_send((enum perf_op)h->op) &&
				  h->size >= PERF_UD_MIN && h->size <= 128u << h->mtu_code);
}

bool
meet_hello_ok(const struct meet_hello *h)
{
	return h->magic == MEET_MAGIC && h->op < PERF_LIMIT && h->check <= PERF_CHECK_FULL &&
	       h->srq <= 1 && h->mtu_code >= 1 && h->mtu_code <= 5 && h->qps >= 1 &&
	       h->qps <= PERF_MAX_QPS && h->number < h->qps && h->size <= PERF_MAX_SIZE &&
	       (!perf_op_is_atomic((enum perf_op)h->op) || h->size == 8) &&
	       (h->op != PERF_WRITE_LAT || h->size > 0) && h->depth >= 1 &&
	       h->depth <= PERF_MAX_DEPTH && (uint64_t)h->qps * h->depth <= PERF_MAX_IN_FLIGHT &&
	       h->rd_atomic >= 1 && h->rd_atomic <= URN_ABI_MAX_RD_ATOMIC && h->timeout <= 31 &&
	       ud_ok(h);
}
