/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that obeys flow control: frames of a priority that its peer has paused stay with the
 * transport, which makes no more of them when its list is full. Each engine keeps the pauses by its
 * own clock; the engine that receives one tells the others by their rings.
 *
 * The pauses come from the network, which is not trusted: one that never ends is given up after the
 * watchdog's time, and further ones are ignored as long as they come.
 */
#include "engine/obey.h"

#include "engine/engine.h"

#define DEFAULT_BPS 10000000000ull

/* The pauses of a shard's port. */
struct urn_obey {
	struct urn_obey_config cfg;
	uint64_t quantum;		    /* ns of a quantum, << 16 */
	uint8_t paused;			    /* bit p: priority p is paused until until[p] */
	uint64_t until[URN_PFC_PRIORITIES]; /* ns; valid while paused */
	uint64_t since;			    /* ns: when frames began to wait; 0: none does */
	uint64_t ignore;		    /* ns: until when pauses are ignored; 0: they are not */
};

struct urn_obey *
urn_obey_create(const struct urn_obey_config *cfg, uint64_t bps)
{
	struct urn_obey *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->cfg = *cfg;
	if (!o->cfg.watchdog_ns)
		o->cfg.watchdog_ns = URN_OBEY_NS;
	if (!o->cfg.restore_ns)
		o->cfg.restore_ns = URN_OBEY_NS;
	o->quantum = urn_pfc_quantum(bps ? bps : DEFAULT_BPS);
	return o;
}

void
urn_obey_destroy(struct urn_obey *o)
{
	free(o);
}

void
urn_shard_obey(struct urn_shard *s, const struct urn_pfc *pfc)
{
	struct urn_obey *o = s->obey;
	uint64_t now = s->tp->now;

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++) {
		uint8_t bit = (uint8_t)(1u << i);

		if (!(pfc->enable & bit))
			continue;
		if (pfc->quanta[i] == 0) {
			URN_COUNT(s->tp, PFC_RESUME);
			o->paused &= (uint8_t)~bit;
		} else if (now < o->ignore) {
			/* The storm goes on. */
			URN_COUNT(s->tp, PFC_IGNORED);
			o->ignore = now + o->cfg.restore_ns;
		} else {
			URN_COUNT(s->tp, PFC_PAUSE);
			o->paused |= bit;
			o->until[i] = now + urn_pfc_ns(pfc->quanta[i], o->quantum);
		}
	}
	if (!o->paused)
		o->since = 0;
}

/* Give a message to the other engines that send at this adapter's port. */
static void
tell_siblings(struct urn_shard *s, const struct urn_pfc *pfc)
{
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++) {
		struct urn_shard *to = s->sibling[i];
		struct urn_xmsg x = {.kind = URN_X_PAUSE, .shard = to, .pfc = *pfc};

		/* No room: the peer tells again before its pause runs out. */
		if (to && to != s && to->queue >= 0)
			(void)urn_engine_put(to->engine, &x);
	}
}

unsigned int
urn_shard_take_control(struct urn_shard *s, struct rte_mbuf **m, unsigned int n)
{
	unsigned int left = 0;
	struct urn_pfc pfc;

	for (unsigned int i = 0; i < n; i++) {
		if (likely(!urn_pfc_is_control(m[i]))) {
			m[left++] = m[i];
			continue;
		}
		if (urn_pfc_read(m[i], &pfc) == 0) {
			urn_shard_obey(s, &pfc);
			tell_siblings(s, &pfc);
		} else {
			URN_COUNT(s->tp, DROP_PFC);
		}
		rte_pktmbuf_free(m[i]);
	}
	return left;
}

/* End the pauses that have run out, or all of them when frames have waited too long. */
static void
end_pauses(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	uint64_t now = s->tp->now;

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++)
		if (o->until[i] <= now)
			o->paused &= (uint8_t) ~(1u << i);
	if (o->paused && o->since && now - o->since >= o->cfg.watchdog_ns) {
		URN_COUNT(s->tp, PFC_STORM);
		o->paused = 0;
		o->ignore = now + o->cfg.restore_ns;
	}
	if (!o->paused)
		o->since = 0;
}

unsigned int
urn_shard_may_send(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	struct urn_tp *tp = s->tp;
	struct rte_mbuf *wait[URN_TP_TX];
	unsigned int may = 0, waiting = 0;

	if (!o->paused)
		return tp->tx_n;
	end_pauses(s);
	for (unsigned int i = 0; i < tp->tx_n && o->paused; i++) {
		if (o->paused & 1u << urn_classify(&o->cfg.map, tp->tx[i]))
			wait[waiting++] = tp->tx[i];
		else
			tp->tx[may++] = tp->tx[i];
	}
	if (!o->paused)
		return tp->tx_n;
	if (waiting) {
		memcpy(tp->tx + may, wait, waiting * sizeof(wait[0]));
		URN_COUNT(tp, TX_PAUSED);
	}
	o->since = !waiting ? 0 : o->since ? o->since : tp->now;
	return may;
}
