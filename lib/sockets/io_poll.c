/* SPDX-License-Identifier: BSD-3-Clause */
/* Poll of twins beside other descriptors. */
#include "sockets/twin.h"

#include <errno.h>
#include <stdlib.h>

/* True when the socket's dataplane is gone, and all datagrams that came before have been read. */
static bool
urn_twin_is_dead(const struct urn_sock *s)
{
	return s != NULL && urn_dev_gone(&urn_socks_dev(s->socks)->dev) != URN_DEV_THERE &&
	       !urn_sock_readable(s);
}

/* Take references to the twins, for the time of a poll. */
static void
urn_twin_poll_take(struct urn_twin **twin, struct urn_poll_ent *ent, const struct pollfd *fds,
		   nfds_t n)
{
	nfds_t i;

	for (i = 0; i < n; i++) {
		twin[i] = urn_twin_get(fds[i].fd);
		ent[i].sock = twin[i] != NULL ? atomic_load(&twin[i]->sock) : NULL;
		if (urn_twin_is_dead(ent[i].sock) && urn_twin_revive(twin[i], ent[i].sock))
			ent[i].sock = atomic_load(&twin[i]->sock);
		/* The kernel's socket tells of its own datagrams, and of shutdown(). */
		ent[i].kernel = 1;
	}
}

int
urn_twin_poll(struct pollfd *fds, nfds_t n, uint64_t end, const sigset_t *mask)
{
	enum { FEW = 32 };
	struct urn_poll_ent few[FEW] = {{0}}, *ent = few;
	struct urn_twin *few_twins[FEW], **twin = few_twins;
	int got = -1, err = ENOMEM;
	nfds_t i;

	if (n > FEW) {
		ent = calloc(n, sizeof(*ent));
		twin = calloc(n, sizeof(*twin));
	}
	if (ent != NULL && twin != NULL) {
		urn_twin_poll_take(twin, ent, fds, n);
		got = urn_sock_poll(fds, n, ent, end, mask);
		err = errno;
		for (i = 0; i < n; i++)
			urn_twin_put(twin[i]);
	}
	if (n > FEW) {
		free(ent);
		free(twin);
	}
	errno = err;
	return got;
}
