/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for several streams, listeners and other descriptors at once. */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	FDS_EACH = 3, /* descriptors of an entry, at most */
	FEW = 16,     /* entries that need no memory of the heap */
};

/* State of an entry during the call. */
struct poll_entry {
	bool joined; /* the stream counts the entry among those that poll */
	bool owns;   /* this entry, of all that poll the stream, sleeps on its descriptors */
	size_t at;   /* the first of its descriptors in `sys` */
	size_t mine; /* the stream's own two in `sys`; valid with `owns` */
};

/* One call. */
struct poll_set {
	struct urn_stream_pollfd *fds; /* the program's */
	size_t n;		       /* entries */
	const uint64_t *seen;	       /* for each: inputs that count no more; NULL: none */
	struct poll_entry *entry;      /* one for each */
	const struct urn_sh_poll *all; /* the caller's wishes */
	struct pollfd *sys;	       /* descriptors to sleep on; FDS_EACH for each entry fit */
	size_t used;		       /* descriptors in `sys` now */
	bool others;		       /* some entries are no streams */
	bool waits;		       /* the call may sleep */
};

/* Events that a stream is ready for; its lock is held. seen: inputs of the stream that the caller
 * knows of, which are not told again */
static short
ready(const struct urn_stream *s, uint64_t seen)
{
	bool ended = s->st.tx.shut || s->st.tx.stopped;
	short r = 0;

	if (urn_sh_error(s))
		return POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP;
	if (s->phase != URN_SH_UP)
		return 0;
	if (s->st.rx.state == URN_ST_RX_ENDED && s->inputs > seen)
		r |= POLLRDHUP;
	if ((urn_sh_readable(s) || s->st.rx.stop) && s->inputs > seen)
		r |= POLLIN;
	if (ended || urn_sh_room(s))
		r |= POLLOUT;
	return r;
}

static short
asked(const struct urn_stream_pollfd *f, short r)
{
	return (short)(r & (f->events | POLLERR | POLLHUP));
}

/*
 * Look at entry i, and arm it for a sleep. Notices wake all that sleep on them, but the first that
 * looks takes them away. So one entry sleeps on a stream's descriptors, and others look from time
 * to time.
 *
 * sleeps: no entry before was ready
 * due: lowered to the ms until the entry needs a look by time alone
 * returns: events that the entry is ready for, of those it asks for
 */
static short
look_stream(struct poll_set *p, size_t i, bool sleeps, int *due)
{
	const struct urn_stream_pollfd *f = &p->fds[i];
	uint64_t seen = p->seen ? p->seen[i] : 0;
	struct poll_entry *e = &p->entry[i];
	struct urn_stream *s = f->stream;
	int own;
	short r;

	pthread_mutex_lock(&s->lock);
	/* The look tells others of what it finds; this call knows it without a notice. */
	s->pollers -= e->joined;
	e->owns |= !s->owned;
	s->owned = true;
	(void)urn_sh_progress(s);
	r = asked(f, ready(s, seen));
	if (!r && sleeps && p->waits && e->owns && !s->armed) {
		/* The order matters: a completion behind the last look makes the descriptor
		 * readable. */
		urn_sh_arm(s);
		(void)urn_sh_progress(s);
		r = asked(f, ready(s, seen));
	}
	s->pollers++;
	e->joined = true;
	own = urn_sh_due(s);
	if (!e->owns && (own < 0 || own > URN_SH_SHARED_MS))
		own = URN_SH_SHARED_MS;
	if (own >= 0 && (*due < 0 || own < *due))
		*due = own;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* The call on an entry ends. Another one that polls the stream owns it at its next look. */
static void
unlook_stream(struct urn_stream *s, const struct poll_entry *e)
{
	if (!e->joined)
		return;
	pthread_mutex_lock(&s->lock);
	s->pollers--;
	if (e->owns)
		s->owned = false;
	pthread_mutex_unlock(&s->lock);
}

static short
look_listener(struct urn_stream_listener *l)
{
	short r;

	pthread_mutex_lock(&l->node->lock);
	r = l->waiting || l->node->dead ? POLLIN : 0;
	/* Nobody has to ask for the end, or the call would return nothing, and not sleep either. */
	if (l->node->dead)
		r |= POLLERR | POLLHUP;
	pthread_mutex_unlock(&l->node->lock);
	return r;
}

/* Look at all streams and listeners. returns: number of entries that are ready */
static int
look(struct poll_set *p, int *due)
{
	int count = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct urn_stream_pollfd *f = &p->fds[i];

		f->revents = 0;
		if (f->stream)
			f->revents = look_stream(p, i, count == 0, due);
		else if (f->listener)
			f->revents = asked(f, look_listener(f->listener));
		count += f->revents != 0;
	}
	return count;
}

/* returns: NULL: another descriptor */
static struct urn_stream_node *
node_of(const struct urn_stream_pollfd *f)
{
	if (f->stream)
		return f->stream->node;
	return f->listener ? f->listener->node : NULL;
}

static void
add(struct poll_set *p, int fd, short events)
{
	p->sys[p->used++] = (struct pollfd){.fd = fd, .events = events};
}

/* Gather the descriptors to sleep on. The system takes no more of them than a program may have
 * open, so neighbours of one node share the end of its connection management. Descriptors of a
 * dataplane that is gone are readable for ever, and tell nothing that the looks have not found. */
static void
watch(struct poll_set *p)
{
	const struct urn_stream_node *before = NULL;

	p->used = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct urn_stream_pollfd *f = &p->fds[i];
		const struct urn_stream_node *n = node_of(f);
		bool dead = n && atomic_load(&n->dead);

		p->entry[i].at = p->used;
		if (!n) {
			add(p, f->fd, f->events);
			continue;
		}
		if (n != before)
			add(p, dead ? -1 : urn_cm_end_fd(n->cm), POLLIN);
		before = n;
		if (f->listener) {
			add(p, f->listener->wake, POLLIN);
		} else if (p->entry[i].owns) {
			p->entry[i].mine = p->used;
			add(p, dead ? -1 : f->stream->channel->fd, POLLIN);
			add(p, f->stream->poke.fd, POLLIN);
		}
	}
}

/* Take the notices of a stream away; they ended the sleep. mine: its two descriptors */
static void
take_notices(struct urn_stream *s, const struct pollfd *mine)
{
	if (mine[0].revents) {
		pthread_mutex_lock(&s->lock);
		urn_sh_disarm(s);
		/* The thread that leads had the same notice in view, and this call may end without
		 * another look. */
		if (s->leading)
			urn_bell_ring(&s->wake);
		pthread_mutex_unlock(&s->lock);
	}
	if (mine[1].revents)
		urn_bell_take(&s->poke);
}

/* Take what the system says: events of other descriptors; of connection management, for all.
 * returns: number of other descriptors that are ready */
static int
take(struct poll_set *p)
{
	const struct urn_stream_node *before = NULL;
	int count = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct urn_stream_pollfd *f = &p->fds[i];
		struct urn_stream_node *n = node_of(f);

		if (!n) {
			f->revents = p->sys[p->entry[i].at].revents;
			count += f->revents != 0;
			continue;
		}
		if (n != before && p->sys[p->entry[i].at].revents)
			urn_sh_hub_look(n);
		before = n;
		if (f->stream && p->entry[i].owns)
			take_notices(f->stream, &p->sys[p->entry[i].mine]);
	}
	return count;
}

/*
 * Look at all without a notice of what comes later: the look of a program whose streams are busy.
 *
 * returns: number of entries that are ready; -1 with errno
 */
static int
look_quick(struct poll_set *p)
{
	int count = 0, more = 0;

	p->used = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct urn_stream_pollfd *f = &p->fds[i];

		f->revents = 0;
		if (f->stream) {
			pthread_mutex_lock(&f->stream->lock);
			(void)urn_sh_progress(f->stream);
			f->revents = asked(f, ready(f->stream, p->seen ? p->seen[i] : 0));
			pthread_mutex_unlock(&f->stream->lock);
		} else if (f->listener) {
			f->revents = asked(f, look_listener(f->listener));
		} else {
			p->entry[i].at = p->used;
			add(p, f->fd, f->events);
		}
		count += f->revents != 0;
	}
	if (count && p->used && !p->all->lone)
		more = p->all->sleep(p->sys, p->used, 0, p->all->arg);
	for (size_t i = 0; i < p->n && more > 0; i++)
		if (!node_of(&p->fds[i]))
			p->fds[i].revents = p->sys[p->entry[i].at].revents;
	return count + (more > 0 ? more : 0);
}

/* Look again and again for a while, since answers often come soon. returns: as look_quick() */
static int
spin(struct poll_set *p, int timeout_ms)
{
	size_t rounds = timeout_ms ? URN_SH_POLL_SPINS / (p->n + 1) : 0;
	int count = look_quick(p);
	uint64_t start = rounds && count == 0 ? urn_sh_now() : 0;

	if (timeout_ms && count == 0 && p->all->begin)
		p->all->begin(p->all->arg);
	for (size_t i = 0; i < rounds && count == 0; i++) {
		/* Other threads of a busy core take a long time each. */
		if (i % URN_SH_SPIN_YIELD == 0 && urn_sh_now() - start > 1)
			break;
		if (i % URN_SH_SPIN_YIELD == 0)
			sched_yield();
		count = look_quick(p);
	}
	return count;
}

/* Milliseconds for one sleep. left: ms until the call ends; -1: it does not; due: ms until a look
 * by time alone; -1: none */
static int
sleep_ms(int left, int due)
{
	return due >= 0 && (left < 0 || due < left) ? due : left;
}

/* Milliseconds until a time. returns: -1: there is none */
static int
until(uint64_t end, bool forever)
{
	uint64_t now = urn_sh_now();

	if (forever)
		return -1;
	return end > now ? (int)(end - now) : 0;
}

/* returns: as urn_stream_poll() */
static int
turn(struct poll_set *p, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? urn_sh_now() + (uint64_t)timeout_ms : 0;
	int soon = spin(p, timeout_ms);

	p->waits = timeout_ms != 0;
	if (soon)
		return soon;
	for (;;) {
		int due = -1, count = look(p, &due), left, more;

		/* An entry that is ready ends the call, and only other descriptors may add to it.
		 */
		if (count && (p->all->lone || !p->others))
			return count;
		left = until(end, timeout_ms < 0);
		watch(p);
		more = p->all->sleep(p->sys, p->used, count ? 0 : sleep_ms(left, due), p->all->arg);
		if (more < 0)
			return count ? count : -1;
		more = more ? take(p) : 0;
		if (count || more)
			return count + more;
		/* News may have come with the last look. */
		if (left == 0)
			return look(p, &due);
	}
}

int
urn_sh_poll(const struct urn_sh_poll *all, int timeout_ms)
{
	struct poll_set p = {.fds = all->fds, .n = all->n, .seen = all->seen, .all = all};
	struct pollfd few_sys[FEW * FDS_EACH];
	struct poll_entry few[FEW];
	size_t n = all->n;
	int count = -1, err = 0;

	if (n <= FEW)
		memset(few, 0, n * sizeof(*few));
	p.sys = n <= FEW ? few_sys : calloc(n, FDS_EACH * sizeof(*p.sys));
	p.entry = n <= FEW ? few : calloc(n, sizeof(*p.entry));
	for (size_t i = 0; i < n && !p.others; i++)
		p.others = !p.fds[i].stream;
	if (p.sys && p.entry)
		count = turn(&p, timeout_ms);
	else
		(void)urn_fail(ENOMEM, "no memory to poll");
	err = errno;
	for (size_t i = 0; p.entry && i < n; i++)
		if (p.fds[i].stream)
			unlook_stream(p.fds[i].stream, &p.entry[i]);
	if (n > FEW) {
		free(p.sys);
		free(p.entry);
	}
	if (count < 0)
		errno = err;
	return count;
}

static int
sleep_poll(struct pollfd *fds, size_t n, int ms, void *arg)
{
	(void)arg;
	return poll(fds, n, ms);
}

int
urn_stream_poll(struct urn_stream_pollfd *fds, size_t n, int timeout_ms)
{
	const struct urn_sh_poll p = {.fds = fds, .n = n, .sleep = sleep_poll};

	if (n > URN_SH_POLL_MAX)
		return urn_fail(EINVAL, "more than %d entries", URN_SH_POLL_MAX), -1;
	return urn_sh_poll(&p, timeout_ms);
}
