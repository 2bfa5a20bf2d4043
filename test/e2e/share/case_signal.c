/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that take signals by sigwait(): those that the library sends are none of theirs. */
#include "share.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { REGIONS = 20 };

static _Atomic bool over, ready;
static _Atomic unsigned int stops; /* times that `polls` was interrupted */

/* Takes the signals of the set, until SIGUSR1 comes, which is the only one sent. */
static void *
takes(void *set)
{
	int sig = 0;

	ready = true;
	CHECK(sigwait(set, &sig) == 0);
	if (sig != SIGUSR1)
		fprintf(stderr, "sigwait() returns signal %d, which nobody sent\n", sig);
	CHECK(sig == SIGUSR1);
	return NULL;
}

static void *
polls(void *arg)
{
	(void)arg;
	while (!over)
		if (poll(NULL, 0, 10) < 0 && errno == EINTR)
			stops++;
	return NULL;
}

/* Start a thread that blocks the signals of a set, and takes them. */
static pthread_t
taker(sigset_t *set)
{
	pthread_t thread;
	sigset_t before;

	ready = false;
	CHECK(pthread_sigmask(SIG_BLOCK, set, &before) == 0);
	CHECK(pthread_create(&thread, NULL, takes, set) == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	while (!ready)
		usleep(1000);
	return thread;
}

static void
finish(pthread_t thread)
{
	CHECK(pthread_kill(thread, SIGUSR1) == 0 && pthread_join(thread, NULL) == 0);
}

void
case_sigwait(void)
{
	char *p = fresh(PAGE);
	pthread_t thread, other;
	sigset_t all, one;
	unsigned int i;

	CHECK(pthread_create(&other, NULL, polls, NULL) == 0);
	/* All signals: nobody is stopped. */
	sigfillset(&all);
	thread = taker(&all);
	for (i = 0; i < REGIONS; i++)
		works(p, false);
	CHECK(stops == 0);
	finish(thread);
	/* Signals that ours is not among: the thread can be stopped. */
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	thread = taker(&one);
	works(p, true);
	while (stops == 0)
		works(fresh(MIB), true);
	finish(thread);
	over = true;
	CHECK(pthread_join(other, NULL) == 0);
}
