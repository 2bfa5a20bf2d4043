/* SPDX-License-Identifier: BSD-3-Clause */
/* Urnic sockets of twins that came over exec(): each is made at the first call that needs it, so
 * that a child that only has the descriptor does not take its parent's port. */
#include "sockets/twin.h"

#include "abi/clock.h"

#include <errno.h>
#include <time.h>

/* Milliseconds that the first call waits for the port, and between tries of later calls. The old
 * program's port is free a moment after exec(), when the dataplane has seen its end. */
enum { URN_SETTLE_MS = 1000, URN_SETTLE_AGAIN_MS = 100 };

/* Time of urn_clock_ms() until which ports of the program before exec() may become free; 0: there
 * was none. */
static _Atomic uint64_t urn_settle_until;

void
urn_twin_replaced(void)
{
	atomic_store(&urn_settle_until, urn_clock_ms() + URN_SETTLE_MS);
}

int
urn_twin_bind(struct urn_sock *s, const struct urn_addr *a)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	int err = urn_sock_bind(s, a);

	while (err == EADDRINUSE && urn_clock_ms() < atomic_load(&urn_settle_until)) {
		(void)nanosleep(&nap, NULL);
		err = urn_sock_bind(s, a);
	}
	return err;
}

/* Give the urnic socket its port and peer. end: a time of urn_clock_ms(), until which the port may
 * become free; returns: 0, or an errno value */
static int
urn_settle_names(struct urn_twin *t, struct urn_sock *s, uint64_t end)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	int err = t->heir_bound ? urn_sock_bind(s, &t->local) : 0;

	while (err == EADDRINUSE && atomic_load(&t->pending) && urn_clock_ms() < end) {
		(void)nanosleep(&nap, NULL);
		err = urn_sock_bind(s, &t->local);
	}
	return err == 0 && t->heir_connected ? urn_sock_connect(s, &t->peer) : err;
}

int
urn_twin_settle(struct urn_twin *t)
{
	uint64_t now = urn_clock_ms(), next = atomic_load(&t->heir_next);
	struct urn_sock *s = NULL;
	int err;

	/* A child of vfork() changes nothing. */
	if (!atomic_load(&t->pending) || urn_real_stranger())
		return 0;
	if (now < next)
		return atomic_load(&t->heir_err);
	err = urn_sock_make(&s, t->family);
	if (err == 0)
		err = urn_settle_names(t, s, next == 0 ? now + URN_SETTLE_MS : now);
	if (err == 0 && urn_twin_install(t, s))
		return 0;
	if (s != NULL)
		urn_sock_drop(s);
	if (!atomic_load(&t->pending))
		return 0; /* another thread was faster */
	atomic_store(&t->heir_err, err);
	atomic_store(&t->heir_next, urn_clock_ms() + URN_SETTLE_AGAIN_MS);
	return err;
}

int
urn_twin_unsettled(const struct urn_twin *t)
{
	int err = atomic_load(&t->pending) ? atomic_load(&t->heir_err) : 0;

	if (err == 0 || err == EADDRINUSE)
		return err;
	return urn_twin_is_full(err) ? ENOBUFS : ENETDOWN;
}

void
urn_twin_claim(uint16_t port)
{
	int fd;

	for (fd = 0; fd < urn_twin_top() && port != 0; fd++) {
		const struct urn_twin *seen = urn_twin_glance(fd);
		struct urn_twin *t;

		if (seen == NULL || !atomic_load(&seen->pending))
			continue;
		t = urn_twin_peek(fd);
		if (t != NULL && atomic_load(&t->pending) && t->heir_bound && t->local.port == port)
			(void)urn_twin_settle(t);
		urn_twin_put(t);
	}
}
