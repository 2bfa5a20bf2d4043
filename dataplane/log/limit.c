/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/limit.h"

#include <string.h>

/* A source to be looked for. */
struct key {
	const struct urn_log_who *who;
	unsigned int event; /* URN_LOG_EVENT_COUNT: any */
	bool user;	    /* all programs of who->uid */
};

static bool
is(const struct urn_log_source *s, const struct key *k)
{
	if (s->event != k->event || s->user != k->user)
		return false;
	if (k->user || (!k->who->client && !s->who.client))
		return s->who.uid == k->who->uid;
	return s->who.client == k->who->client;
}

/* Find the source's place in its present second. returns: NULL: it has none */
static struct urn_log_source *
find(struct urn_log_limit *l, const struct key *k, uint64_t now)
{
	for (unsigned int i = 0; i < URN_LOG_SOURCES; i++)
		if (l->source[i].until > now && is(&l->source[i], k))
			return &l->source[i];
	return NULL;
}

/* Find the source's place, or take a free one. returns: NULL: all are taken */
static struct urn_log_source *
place(struct urn_log_limit *l, const struct key *k, uint64_t now)
{
	struct urn_log_source *free_one = find(l, k, now);

	if (free_one)
		return free_one;
	/* A place whose second is over waits for its number to be taken. */
	for (unsigned int i = 0; i < URN_LOG_SOURCES && !free_one; i++)
		if (l->source[i].until <= now && !l->source[i].more)
			free_one = &l->source[i];
	if (!free_one)
		return NULL;
	*free_one = (struct urn_log_source){
		.until = now + URN_LOG_SECOND,
		.event = (uint8_t)k->event,
		.has_who = true,
		.user = k->user,
		.who = *k->who,
	};
	return free_one;
}

/* Add to a number. */
static void
add(struct urn_log_source *s, uint32_t n)
{
	s->more = n < UINT32_MAX - s->more ? s->more + n : UINT32_MAX;
}

/* Count events of programs that have no place, by their kind. */
static void
add_rest(struct urn_log_limit *l, enum urn_log_event event, uint32_t n, uint64_t now)
{
	struct urn_log_source *s = &l->rest[event];

	if (!s->more) {
		s->event = (uint8_t)event;
		s->until = now + URN_LOG_SECOND;
	}
	add(s, n);
}

/* Find the place of a program's events of a kind: its own while its user has few places, else the
 * one of the user's programs. user: the place of all events of the user; NULL: it has none
 * returns: NULL: all places are taken */
static struct urn_log_source *
place_of(struct urn_log_limit *l, enum urn_log_event event, const struct urn_log_who *who,
	 struct urn_log_source *user, uint64_t now)
{
	const struct key one = {who, event, false}, rest = {who, event, true};
	struct urn_log_source *s;

	if (!user)
		return NULL;
	s = find(l, &one, now);
	if (s || user->places >= URN_LOG_PLACES_PER_USER)
		return s ? s : place(l, &rest, now);
	s = place(l, &one, now);
	if (s)
		user->places++;
	return s;
}

/* Ask for a line about no program. The numbers of these events are apart from all others, so that
 * no program's flood hides a port's failure. */
static bool
system_pass(struct urn_log_limit *l, enum urn_log_event event, uint64_t now)
{
	struct urn_log_source *s = &l->system[event];

	if (s->until <= now) {
		if (s->more)
			add_rest(l, event, s->more, now);
		*s = (struct urn_log_source){.until = now + URN_LOG_SECOND,
					     .event = (uint8_t)event};
	}
	if (s->lines >= URN_LOG_PER_SYSTEM) {
		add(s, 1);
		return false;
	}
	s->lines++;
	return true;
}

bool
urn_log_limit_pass(struct urn_log_limit *l, enum urn_log_event event, const struct urn_log_who *who,
		   uint64_t now)
{
	const struct key all = {who, URN_LOG_EVENT_COUNT, true}, rest = {who, event, true};
	struct urn_log_source *user, *s;

	if (!who)
		return system_pass(l, event, now);
	if (l->until <= now) {
		l->until = now + URN_LOG_SECOND;
		l->lines = 0;
	}
	user = place(l, &all, now);
	if (user && user->lines < URN_LOG_PER_USER && l->lines < URN_LOG_PER_SECOND) {
		s = place_of(l, event, who, user, now);
		/* The lines of a user's programs that share a place are bounded by the user's. */
		if (s && (s->user || s->lines < URN_LOG_PER_SOURCE)) {
			s->lines++;
			l->lines++;
			user->lines++;
			return true;
		}
	} else {
		s = user ? place(l, &rest, now) : NULL;
	}
	if (s)
		add(s, 1);
	else
		add_rest(l, event, 1, now);
	return false;
}

void
urn_log_limit_add(struct urn_log_limit *l, enum urn_log_event event, const struct urn_log_who *who,
		  uint32_t n, uint64_t now)
{
	const struct key all = {who, URN_LOG_EVENT_COUNT, true};
	struct urn_log_source *s = NULL;

	if (who)
		s = place_of(l, event, who, place(l, &all, now), now);
	if (s)
		add(s, n);
	else
		add_rest(l, event, n, now);
}

/* Take the number of a place. */
static void
take(struct urn_log_source *s, struct urn_log_more *out)
{
	*out = (struct urn_log_more){
		.event = (enum urn_log_event)s->event,
		.has_who = s->has_who,
		/* Programs that are no clients share a place: none of them made all the events. */
		.user = s->user || (s->has_who && !s->who.client),
		.who = s->who,
		.n = s->more,
	};
	memset(s, 0, sizeof(*s));
}

bool
urn_log_limit_due(struct urn_log_limit *l, uint64_t now, struct urn_log_more *out)
{
	for (unsigned int i = 0; i < URN_LOG_NUMBERS; i++) {
		unsigned int kind = i - URN_LOG_SOURCES;
		struct urn_log_source *s = i < URN_LOG_SOURCES ? &l->source[i]
					   : kind < URN_LOG_EVENT_COUNT
						   ? &l->rest[kind]
						   : &l->system[kind - URN_LOG_EVENT_COUNT];

		if (s->more && s->until <= now) {
			take(s, out);
			return true;
		}
	}
	return false;
}
