/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of connection management for all streams and listeners of a node. No thread
 * serves them: a thread that finds the descriptor readable takes all events, and leaves each with
 * its stream or listener, whose eventfd wakes the threads that wait there.
 */
#include "stream/shell/shell.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void
urn_sh_raise(int fd)
{
	const uint64_t one = 1;

	/* A counter that is full is readable as well. */
	(void)!write(fd, &one, sizeof(one));
}

void
urn_sh_lower(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

/* Threads that poll may be there, or not: their descriptor is of no harm when nobody does. */
static void
tell(struct urn_stream *s, uint32_t news)
{
	atomic_fetch_or(&s->news, news);
	urn_bell_ring(&s->wake);
	urn_bell_ring(&s->poke);
}

/* The dataplane is gone, and with it all that the node had there. */
static void
tell_all(struct urn_stream_node *n)
{
	struct urn_stream_listener *l;
	struct urn_stream *s;

	if (n->dead)
		return;
	n->dead = true;
	TAILQ_FOREACH(s, &n->streams, entry)
		tell(s, URN_SH_N_DEAD);
	TAILQ_FOREACH(l, &n->listeners, entry)
		urn_sh_raise(l->wake);
}

/* Keep a request for the listener that it is for; nobody waits for one too many. */
static void
on_request(struct urn_stream_node *n, const struct urn_abi_cm_event *ev)
{
	struct urn_stream_listener *l;
	struct urn_sh_request *r;

	TAILQ_FOREACH(l, &n->listeners, entry)
		if (l->id == ev->listen_id)
			break;
	r = l && l->waiting < l->backlog ? malloc(sizeof(*r)) : NULL;
	if (!r) {
		urn_sh_refuse(n, ev->id, "the listener has no room for a further connection");
		return;
	}
	r->ev = *ev;
	STAILQ_INSERT_TAIL(&l->requests, r, entry);
	l->waiting++;
	urn_sh_raise(l->wake);
}

/* Forget a request that waits, and that its peer has taken back. */
static void
withdraw(struct urn_stream_node *n, uint32_t id)
{
	struct urn_stream_listener *l;
	struct urn_sh_request *r = NULL;

	TAILQ_FOREACH(l, &n->listeners, entry) {
		STAILQ_FOREACH(r, &l->requests, entry)
			if (r->ev.id == id)
				break;
		if (r)
			break;
	}
	if (!r)
		return;
	STAILQ_REMOVE(&l->requests, r, urn_sh_request, entry);
	if (--l->waiting == 0 && !n->dead)
		urn_sh_lower(l->wake);
	free(r);
	(void)urn_cm_end_destroy(n->cm, id);
}

static uint32_t
news_of(uint32_t type)
{
	switch (type) {
	case URN_CM_EVENT_REPLY:
		return URN_SH_N_REPLY;
	case URN_CM_EVENT_ESTABLISHED:
		return URN_SH_N_READY;
	case URN_CM_EVENT_REJECTED:
	case URN_CM_EVENT_UNREACHABLE:
		return URN_SH_N_REFUSED;
	case URN_CM_EVENT_DISCONNECT:
	case URN_CM_EVENT_DISCONNECTED:
		return URN_SH_N_GONE;
	default:
		return 0;
	}
}

static void
dispatch(struct urn_stream_node *n, const struct urn_abi_cm_event *ev)
{
	uint32_t news = news_of(ev->type);
	struct urn_stream *s;

	if (ev->type == URN_CM_EVENT_REQUEST) {
		on_request(n, ev);
		return;
	}
	if (ev->type == URN_CM_EVENT_SIDR_REQUEST) {
		(void)urn_cm_end_destroy(n->cm, ev->id);
		return;
	}
	TAILQ_FOREACH(s, &n->streams, entry)
		if (s->id == ev->id)
			break;
	if (!s && news & URN_SH_N_REFUSED)
		withdraw(n, ev->id);
	if (!s || !news)
		return;
	if (news & (URN_SH_N_REPLY | URN_SH_N_REFUSED))
		s->event = *ev;
	tell(s, news);
}

void
urn_sh_hub_look_locked(struct urn_stream_node *n)
{
	struct urn_abi_cm_event ev;
	int err = 0;

	/* The descriptor stays readable while events are left. */
	for (int i = 0; i < URN_SH_EVENTS && (err = urn_cm_end_event(n->cm, &ev)) == 0; i++)
		dispatch(n, &ev);
	if (err == EIO)
		tell_all(n);
}

void
urn_sh_hub_look(struct urn_stream_node *n)
{
	pthread_mutex_lock(&n->lock);
	urn_sh_hub_look_locked(n);
	pthread_mutex_unlock(&n->lock);
}
