/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/refuse.h"

#include "abi/socket.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 64, TEND_MS = 10, STOP_S = 1 };

struct refused {
	int fd, err;
	char why[sizeof(((struct urn_sock_answer *)0)->why)];
};

struct urn_refuser {
	pthread_t thread;
	/* lock protects all fields behind cond, which is signalled under lock. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct refused queue[ROOM];
	unsigned int first, n;
	uint64_t turn, seen; /* connections that were closed; the number at the last urn_refuser_tend() */
	bool closing;        /* a connection is being closed */
	bool stop, ended;    /* the thread is to end; has ended */
};

/* Signal handler that only interrupts a system call. */
static void
nothing(int sig)
{
	(void)sig;
}

static int
the_signal(void)
{
	return SIGRTMAX;
}

static void
tell(const struct refused *one)
{
	struct urn_sock_answer a = {
		.head = {
			.magic = URN_SOCK_MAGIC,
			.version = URN_SOCK_VERSION,
			.kind = URN_SOCK_HELLO,
			.bytes = sizeof(a),
		},
		.err = one->err,
	};

	memcpy(a.why, one->why, sizeof(a.why));
	/* An error is ignored: the connection is empty, so there is room, unless the peer has gone. */
	(void)!send(one->fd, &a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(one->fd);
}

static void *
refuser_thread(void *arg)
{
	struct urn_refuser *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stop || r->n) {
		struct refused one;

		if (!r->n) {
			pthread_cond_wait(&r->cond, &r->lock);
			continue;
		}
		one = r->queue[r->first];
		r->first = (r->first + 1) % ROOM;
		r->n--;
		r->closing = true;
		pthread_mutex_unlock(&r->lock);
		tell(&one);
		pthread_mutex_lock(&r->lock);
		r->closing = false;
		r->turn++;
	}
	r->ended = true;
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

struct urn_refuser *
urn_refuser_start(void)
{
	const struct sigaction interrupt = {.sa_handler = nothing};
	struct urn_refuser *r = calloc(1, sizeof(*r));
	sigset_t all, before;
	int rc;

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
	(void)sigaction(the_signal(), &interrupt, NULL);
	sigfillset(&all);
	sigdelset(&all, the_signal());
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&r->thread, NULL, refuser_thread, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0) {
		(void)pthread_setname_np(r->thread, "urnic-refuse");
		return r;
	}
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
	free(r);
	return NULL;
}

bool
urn_refuser_has_room(struct urn_refuser *r)
{
	bool room;

	pthread_mutex_lock(&r->lock);
	room = r->n < ROOM;
	pthread_mutex_unlock(&r->lock);
	return room;
}

void
urn_refuser_put(struct urn_refuser *r, int fd, int err, const char *why)
{
	struct refused *one;

	pthread_mutex_lock(&r->lock);
	one = &r->queue[(r->first + r->n++) % ROOM];
	one->fd = fd;
	one->err = err;
	snprintf(one->why, sizeof(one->why), "%s", why);
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

int
urn_refuser_tend(struct urn_refuser *r)
{
	bool busy, lasts;

	pthread_mutex_lock(&r->lock);
	busy = r->closing || r->n;
	lasts = r->closing && r->seen == r->turn;
	r->seen = r->turn;
	if (lasts)
		pthread_kill(r->thread, the_signal());
	pthread_mutex_unlock(&r->lock);
	return busy ? TEND_MS : -1;
}

void
urn_refuser_stop(struct urn_refuser *r)
{
	struct timespec nap = {.tv_nsec = TEND_MS * 1000000l};

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->cond);
	for (unsigned int i = 0; !r->ended && i < STOP_S * 1000 / TEND_MS; i++) {
		pthread_mutex_unlock(&r->lock);
		(void)urn_refuser_tend(r);
		(void)nanosleep(&nap, NULL);
		pthread_mutex_lock(&r->lock);
	}
	if (!r->ended) { /* the thread is in a call that no signal ends: it goes with the process */
		pthread_mutex_unlock(&r->lock);
		pthread_detach(r->thread);
		return;
	}
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
