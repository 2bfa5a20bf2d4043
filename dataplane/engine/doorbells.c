/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbells that an engine looks at in a turn: those of hot clients, which rang recently, so
 * that a thousand attached and idle programs cost what a few do (architecture rule 5). The doorbell
 * page of the other clients, the cold ones, always says that the engine sleeps: when a cold client
 * rings it writes its eventfd. The write wakes a sleeping engine, and an engine that is awake looks
 * for such writes now and then (sleep.c). The client is hot from then on.
 */
#include "engine/engine.h"

#include "transport/sched.h"

enum {
	HOT_KEPT = 8,	   /* clients that stay hot, however quiet they are */
	COLD_AFTER = 4096, /* quiet turns after which a client cools down when more than HOT_KEPT
			      are hot */
	HOT_MANY = 256,	   /* hot clients: with more of them COLD_SOON counts */
	COLD_SOON =
		256, /* quiet turns: many clients that ring seldom must not be walked each turn */
	RUNG = 1024, /* doorbells that a turn takes of all clients, but one of each at least */
};

/* A shard without register sets or endpoints has no event of theirs. */
static const uint32_t nothing_untold;

static void
heat(struct urn_shard *s, struct urn_client_shard *c)
{
	c->hot = true;
	c->quiet = 0;
	atomic_store(&c->scan.db->asleep, 0);
	LIST_INSERT_HEAD(&s->hot, c, hot_link);
	s->hot_n++;
	s->hot_users += !c->user || !c->user->hot++;
}

void
urn_shard_init_lists(struct urn_shard *s)
{
	LIST_INIT(&s->clients);
	LIST_INIT(&s->hot);
	TAILQ_INIT(&s->late_cqes);
	TAILQ_INIT(&s->walk);
	TAILQ_INIT(&s->leaving);
	TAILQ_INIT(&s->untold);
	s->msg_untold = s->am_untold = &nothing_untold;
	TAILQ_INIT(&s->late_events);
}

void
urn_shard_add_client(struct urn_shard *s, struct urn_client_shard *c)
{
	TAILQ_INIT(&c->late_cqes.chunks);
	LIST_INSERT_HEAD(&s->clients, c, link);
	heat(s, c);
}

static void
unlink_hot(struct urn_shard *s, struct urn_client_shard *c)
{
	LIST_REMOVE(c, hot_link);
	c->hot = false;
	s->hot_n--;
	s->hot_users -= !c->user || !--c->user->hot;
}

void
urn_shard_remove_client(struct urn_shard *s, struct urn_client_shard *c)
{
	LIST_REMOVE(c, link);
	urn_shard_forget_events(s, c);
	urn_shard_forget_late(s, c);
	urn_shard_forget_broken(s, c);
	urn_shard_forget_left(s, c);
	if (c->hot)
		unlink_hot(s, c);
	else
		s->cold_n--;
	urn_sched_leave(&s->tp->sched, &c->share);
	urn_shard_part(c);
}

/*
 * Doorbells that a turn takes of one client: users with hot clients have equal parts of what a turn
 * takes, and so have the hot clients of a user of its part. One at least.
 */
static unsigned int
most_of(const struct urn_shard *s, const struct urn_client_shard *c)
{
	uint32_t parts;

	if (likely(s->hot_n <= RUNG / URN_TP_BURST))
		return URN_TP_BURST;
	parts = s->hot_users * (c->user ? c->user->hot : 1);
	if (parts <= RUNG / URN_TP_BURST)
		return URN_TP_BURST;
	return parts < RUNG ? RUNG / parts : 1;
}

/* Take doorbells that one client rang, at most so many. */
static unsigned int
take(struct urn_shard *s, struct urn_client_shard *c, unsigned int most)
{
	uint32_t id[URN_TP_BURST];
	unsigned int n = urn_db_take(&c->scan, id, most);

	/* A client that leaves rings, so that an engine which runs on finds out. */
	if (unlikely(urn_client_shard_says_left(c)))
		urn_client_shard_left(c);
	for (unsigned int i = 0; i < n; i++)
		if (id[i] < c->used && c->source[id[i]])
			urn_source_prefetch(c->source[id[i]]);
	for (unsigned int i = 0; i < n; i++) {
		if (likely(id[i] < c->used && c->source[id[i]]))
			urn_source_rung(s->tp, c->source[id[i]]);
		else
			URN_COUNT(s->tp, BAD_DOORBELL);
	}
	return n;
}

/* Quiet turns after which a client cools down while so many are hot. */
static inline uint32_t
cold_after(uint32_t hot_n)
{
	return hot_n > HOT_MANY ? COLD_SOON : COLD_AFTER;
}

void
urn_shard_ring_again(void *ctx, const struct urn_source *src)
{
	struct urn_client_shard *c = urn_client_shard_of(src->share);

	(void)ctx;
	(void)urn_abi_db_ring(c->scan.db, src->db);
	/* Cold clients are heard when they write their eventfd, which does not happen here. */
	urn_client_shard_heard(c);
}

/* Make a client that was quiet for long cold, unless it rang just now. */
static void
cool(struct urn_shard *s, struct urn_client_shard *c)
{
	atomic_store_explicit(&c->scan.db->asleep, 1, memory_order_relaxed);
	/* Stored before the doorbells are looked at; the ringer uses the opposite order. */
	atomic_thread_fence(memory_order_seq_cst);
	if (urn_db_any(&c->scan)) {
		atomic_store(&c->scan.db->asleep, 0);
		return;
	}
	unlink_hot(s, c);
	s->cold_n++;
}

void
urn_client_shard_heard(struct urn_client_shard *c)
{
	/* The eventfd was written without need: while the client was made hot, or without a doorbell. */
	if (c->hot || !urn_db_any(&c->scan))
		return;
	c->shard->cold_n--;
	heat(c->shard, c);
}

URN_FAST unsigned int
urn_shard_doorbells(struct urn_shard *s)
{
	unsigned int total = 0;
	struct urn_client_shard *next;

	for (struct urn_client_shard *c = LIST_FIRST(&s->hot); c; c = next) {
		next = LIST_NEXT(c, hot_link);
		if (urn_db_any(&c->scan)) {
			c->quiet = 0;
			total += take(s, c, most_of(s, c));
		} else if (unlikely(s->hot_n > HOT_KEPT && ++c->quiet >= cold_after(s->hot_n))) {
			cool(s, c);
		}
	}
	return total;
}
