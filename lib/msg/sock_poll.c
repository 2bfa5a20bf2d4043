/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Poll of sockets beside other descriptors: the rings answer for sockets, the kernel for the rest.
 * A sleeper has the kernel poll the sockets' own descriptors, too.
 */
#include "msg/sock.h"

#include "abi/clock.h"

#include <errno.h>
#include <stdlib.h>

/* Events of sockets that are there now. returns: how many sockets have some */
static int
urn_sock_scan(struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < n; i++) {
		struct urn_sock *s = ent[i].sock;
		short got = 0;

		if (s == NULL)
			continue;
		if (fds[i].events & (POLLIN | POLLRDNORM) &&
		    urn_sock_next_len(s) + urn_sock_readable(s) > 0)
			got = (short)(got | (fds[i].events & (POLLIN | POLLRDNORM)));
		if (fds[i].events & (POLLOUT | POLLWRNORM) && urn_sock_writable(s))
			got = (short)(got | (fds[i].events & (POLLOUT | POLLWRNORM)));
		if (atomic_load(&s->error) != 0 ||
		    urn_dev_gone(&urn_socks_dev(s->socks)->dev) != URN_DEV_THERE)
			got |= POLLERR;
		fds[i].revents = got;
		ready += got != 0;
	}
	return ready;
}

/* Lay out the descriptors that the kernel is to poll: those of the program, then the sockets' own.
 */
static void
urn_sock_lay_out(struct pollfd *all, const struct pollfd *fds, nfds_t n,
		 const struct urn_poll_ent *ent)
{
	nfds_t i;

	for (i = 0; i < n; i++) {
		const struct urn_sock *s = ent[i].sock;

		all[i] = fds[i];
		all[i].revents = 0;
		if (s != NULL && !ent[i].kernel)
			all[i].fd = -1;
		if (s != NULL)
			/* A socket that sends has room for output by urn_sock_scan(), not by its
			 * kernel twin. */
			all[i].events = (short)(all[i].events & ~(POLLOUT | POLLWRNORM));
		all[n + i] = (struct pollfd){
			.fd = s != NULL && fds[i].events & (POLLIN | POLLRDNORM) ? urn_sock_fd(s)
										 : -1,
			.events = POLLIN,
		};
	}
}

/* Bring the kernel's events to the program's descriptors. returns: how many of these have events */
static int
urn_sock_merge(struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent,
	       const struct pollfd *all)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < n; i++) {
		if (ent[i].sock != NULL && all[n + i].revents & (POLLHUP | POLLERR))
			urn_msg_dev_gone(urn_socks_dev(ent[i].sock->socks));
		if (ent[i].sock == NULL)
			fds[i].revents = all[i].revents;
		else
			fds[i].revents = (short)(fds[i].revents | all[i].revents);
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* Sleepers come to, or go from, all sockets that are polled for input. returns: true when datagrams
 * wait */
static bool
urn_sock_sleepers(const struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent, bool come)
{
	bool some = false;
	nfds_t i;

	for (i = 0; i < n; i++)
		if (ent[i].sock != NULL && fds[i].events & (POLLIN | POLLRDNORM))
			some |= urn_sock_sleeper(ent[i].sock, come);
	return some;
}

/* True when some socket is polled for output and has no room, or has a datagram on its way to its
 * peer: the answer makes no descriptor readable. */
static bool
urn_sock_stuffed(const struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent)
{
	nfds_t i;

	for (i = 0; i < n; i++)
		if (ent[i].sock != NULL &&
		    (fds[i].events & (POLLOUT | POLLWRNORM) || urn_sock_expects(ent[i].sock)))
			return true;
	return false;
}

/* One round: look, or sleep and look. returns: as urn_sock_poll(); 0: go on unless the time is over
 */
static int
urn_sock_poll_round(struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent,
		    struct pollfd *all, uint64_t end, const sigset_t *mask)
{
	const struct timespec zero = {0};
	struct timespec ts;
	const struct timespec *wait = urn_sock_left(end, &ts);
	bool some = urn_sock_scan(fds, n, ent) > 0;
	int got, err;

	if (!some && (wait == NULL || wait->tv_sec != 0 || wait->tv_nsec != 0))
		some = urn_sock_spin(ent, n, end);
	/* The kernel's descriptors are looked at in any case. */
	urn_sock_lay_out(all, fds, n, ent);
	/* This looks at answers, too. One that came during the spin may be an error, which makes no
	 * descriptor readable. */
	if (urn_sock_stuffed(fds, n, ent))
		wait = urn_sock_nap(wait);
	else if (!some)
		some = urn_sock_scan(fds, n, ent) > 0;
	some |= urn_sock_sleepers(fds, n, ent, true);
	got = ppoll(all, 2 * n, some ? &zero : wait, mask);
	err = errno;
	(void)urn_sock_sleepers(fds, n, ent, false);
	errno = err;
	if (got < 0 && !(some && err == EINTR))
		return -1;
	(void)urn_sock_scan(fds, n, ent);
	return urn_sock_merge(fds, n, ent, all);
}

int
urn_sock_poll(struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent, uint64_t end,
	      const sigset_t *mask)
{
	enum { FEW = 32 };
	struct pollfd few[2 * FEW], *all = n <= FEW ? few : calloc(2 * n, sizeof(*all));
	int got;

	if (all == NULL) {
		errno = ENOMEM;
		return -1;
	}
	do
		got = urn_sock_poll_round(fds, n, ent, all, end, mask);
	while (got == 0 && (end == 0 || urn_clock_ns() < end));
	if (all != few) {
		int err = errno;

		free(all);
		errno = err;
	}
	return got;
}
