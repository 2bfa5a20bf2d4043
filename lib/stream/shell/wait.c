/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping. One thread of those that wait for a stream leads: it sleeps on the descriptors, and
 * looks for all when it wakes. The others wait for their turn. A thread that does not sleep, and
 * makes something happen, wakes the leader.
 */
#include "stream/shell/shell.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

static void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void
urn_sh_happened(struct urn_stream *s)
{
	s->happened++;
	if (s->leading)
		urn_bell_ring(&s->wake);
	if (s->pollers)
		urn_bell_ring(&s->poke);
}

/*
 * One event of the queue is on its way at most. While `armed`, a completion has its event in the
 * channel or will have it, so a look behind this call and a sleep on the channel miss nothing.
 * Arming the queue again would bring a second event for each completion that nobody slept for.
 */
void
urn_sh_arm(struct urn_stream *s)
{
	if (!s->armed)
		s->armed = ibv_req_notify_cq(s->cq, 0) == 0;
}

void
urn_sh_disarm(struct urn_stream *s)
{
	struct ibv_cq *cq;
	void *arg;

	/* The descriptor does not block. Another thread may have taken the event, and armed the
	 * queue again. */
	if (ibv_get_cq_event(s->channel, &cq, &arg) != 0)
		return;
	ibv_ack_cq_events(cq, 1);
	s->armed = false;
}

/* Look again and again for a while, since answers often come soon. returns: true: something
 * happened */
static bool
spin(struct urn_stream *s)
{
	uint64_t before = s->happened;

	for (uint32_t i = 1; i <= URN_SH_SPINS; i++) {
		bool did = urn_sh_progress(s);

		if ((did && !s->more) || s->happened != before)
			return true;
		pthread_mutex_unlock(&s->lock);
		if (i % URN_SH_SPIN_YIELD == 0)
			sched_yield();
		else
			relax();
		pthread_mutex_lock(&s->lock);
	}
	return s->happened != before;
}

/* Wait until the leader has looked. */
static void
follow(struct urn_stream *s, int ms)
{
	struct timespec t;

	if (ms < 0) {
		pthread_cond_wait(&s->turn, &s->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	(void)pthread_cond_timedwait(&s->turn, &s->lock, &t);
}

static void
lead(struct urn_stream *s, int ms)
{
	struct pollfd fds[] = {{.fd = s->channel->fd, .events = POLLIN},
			       {.fd = s->wake.fd, .events = POLLIN},
			       {.fd = urn_cm_end_fd(s->node->cm), .events = POLLIN}};
	int due;

	urn_sh_arm(s);
	if (urn_sh_progress(s))
		return;
	due = urn_sh_due(s);
	if (due >= 0 && (ms < 0 || due < ms))
		ms = due;
	s->leading = true;
	pthread_mutex_unlock(&s->lock);
	(void)poll(fds, 3, ms);
	pthread_mutex_lock(&s->lock);
	s->leading = false;
	if (fds[0].revents)
		urn_sh_disarm(s);
	/* A thread that polls had the same notice in view. */
	if (s->pollers)
		urn_bell_ring(&s->poke);
	if (fds[1].revents)
		urn_bell_take(&s->wake);
	if (fds[2].revents)
		urn_sh_hub_look(s->node);
	(void)urn_sh_progress(s);
	pthread_cond_broadcast(&s->turn);
}

void
urn_sh_wait(struct urn_stream *s, int ms)
{
	if (s->leading)
		follow(s, ms);
	else if (!spin(s))
		s->leading ? follow(s, ms) : lead(s, ms);
}
