/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose doorbells an engine looks at in a turn: all that rang not long ago, and
 * a few of the others in rotation, so that a thousand programs that are attached
 * and idle cost what a few do (architecture rule 5). One that was idle is heard a
 * little later: after as many turns as it takes to come round. Its doorbell page
 * always says that the engine sleeps, so falling asleep is no matter of all
 * programs either: what it writes then wakes the engine.
 */
#include "engine/engine.h"

enum {
	HOT_KEPT = 8,      /* clients that stay hot, however quiet they are */
	COLD_AFTER = 4096, /* quiet turns after which one of more than those cools down */
	COLD_LOOKS = 4,    /* of the cold, looked at in a turn with nothing to send; else one */
};

static void
heat(struct urn_shard *s, struct urn_client_shard *c)
{
	c->hot = true;
	c->quiet = 0;
	atomic_store(&c->scan.db->asleep, 0);
	c->hot_prev = NULL;
	c->hot_next = s->hot;
	if (s->hot)
		s->hot->hot_prev = c;
	s->hot = c;
	s->hot_n++;
}

void
urn_shard_add_client(struct urn_shard *s, struct urn_client_shard *c)
{
	c->prev = NULL;
	c->next = s->clients;
	if (s->clients)
		s->clients->prev = c;
	s->clients = c;
	heat(s, c);
}

static void
unlink_hot(struct urn_shard *s, struct urn_client_shard *c)
{
	if (c->hot_prev)
		c->hot_prev->hot_next = c->hot_next;
	else
		s->hot = c->hot_next;
	if (c->hot_next)
		c->hot_next->hot_prev = c->hot_prev;
	c->hot = false;
	s->hot_n--;
}

void
urn_shard_remove_client(struct urn_shard *s, struct urn_client_shard *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		s->clients = c->next;
	if (c->next)
		c->next->prev = c->prev;
	urn_shard_forget_events(s, c);
	if (s->cold_at == c)
		s->cold_at = c->next;
	if (c->hot)
		unlink_hot(s, c);
	else
		s->cold_n--;
}

/* What one client rang. */
static unsigned int
take(struct urn_shard *s, struct urn_client_shard *c)
{
	uint32_t id[URN_TP_BURST];
	unsigned int n = urn_db_take(&c->scan, id, URN_TP_BURST);

	for (unsigned int i = 0; i < n; i++)
		if (id[i] < c->used && c->qp[id[i]])
			urn_qp_prefetch(c->qp[id[i]]);
	for (unsigned int i = 0; i < n; i++) {
		if (likely(id[i] < c->used && c->qp[id[i]]))
			urn_tp_doorbell(s->tp, c->qp[id[i]]);
		else
			URN_COUNT(s->tp, BAD_DOORBELL);
	}
	return n;
}

/* A client that was quiet for long is cold from now on, unless it rang just then. */
static void
cool(struct urn_shard *s, struct urn_client_shard *c)
{
	atomic_store(&c->scan.db->asleep, 1);
	/* Stored before the doorbells are looked at; the ringer does it the other way. */
	atomic_thread_fence(memory_order_seq_cst);
	if (urn_db_any(&c->scan)) {
		atomic_store(&c->scan.db->asleep, 0);
		return;
	}
	unlink_hot(s, c);
	s->cold_n++;
}

/*
 * Have what the next turn looks at come in meanwhile: a page of the next client's own, and the
 * client behind it. In a cache is none of it, for each comes round once in a thousand turns.
 */
static inline void
fetch_ahead(const struct urn_shard *s)
{
	const struct urn_client_shard *c = s->cold_at;

	if (!c)
		return;
	rte_prefetch0(&c->scan.db->top[0]);
	if (c->next)
		rte_prefetch0(c->next);
}

static unsigned int
look_at_cold(struct urn_shard *s)
{
	unsigned int total = 0, looks = urn_tp_busy(s->tp) ? 1 : COLD_LOOKS;

	for (unsigned int i = 0; i < looks && s->cold_n; i++) {
		struct urn_client_shard *c = s->cold_at ? s->cold_at : s->clients;

		s->cold_at = c->next;
		fetch_ahead(s);
		if (!urn_db_any(&c->scan) || c->hot)
			continue;
		s->cold_n--;
		heat(s, c);
		total += take(s, c);
	}
	return total;
}

unsigned int
urn_shard_doorbells(struct urn_shard *s)
{
	struct urn_client_shard *next;
	unsigned int total = 0;

	for (struct urn_client_shard *c = s->hot; c; c = next) {
		next = c->hot_next;
		if (urn_db_any(&c->scan)) {
			c->quiet = 0;
			total += take(s, c);
		} else if (unlikely(s->hot_n > HOT_KEPT && ++c->quiet >= COLD_AFTER)) {
			cool(s, c);
		}
	}
	if (unlikely(s->cold_n))
		total += look_at_cold(s);
	return total;
}
