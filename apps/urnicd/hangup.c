/* SPDX-License-Identifier: BSD-3-Clause */
#include "hangup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t asked;
static int terminal = -1;     /* the terminal that urnicd was started at; -1: none */
static void (*stop)(int sig); /* handler of signals that stop */

static void
on_hangup(int sig)
{
	struct pollfd p = {.fd = terminal};
	int saved = errno;

	/* A shell whose terminal hung up sends the signal like anybody else. */
	if (terminal >= 0 && poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)))
		stop(sig);
	else
		asked = 1;
	errno = saved;
}

int
nicd_hangup_install(void)
{
	struct sigaction sa = {.sa_handler = on_hangup, .sa_flags = SA_RESTART}, before;

	if (sigaction(SIGHUP, NULL, &before) != 0)
		return -1;
	if (before.sa_handler == SIG_IGN)
		return 0;
	stop = before.sa_handler;
	terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGHUP, &sa, NULL);
}

bool
nicd_hangup_taken(void)
{
	bool taken = asked != 0;

	if (taken)
		asked = 0;
	return taken;
}
