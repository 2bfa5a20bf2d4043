/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets that a child of fork() has from its parent. The kernel's sockets are shared; a listener
 * of urnic's, and a stream, are in memory of the dataplane that belongs to the parent.
 *
 *   a listener  the child that uses it listens at the same port itself, and takes connections
 *               before its parent (dataplane/cm/cm_heir.c): servers that make workers by fork()
 *   a stream    is the parent's: the child's calls fail; but for one that nobody has used
 *               (tcp_held.c)
 */
#include "sockets/tcp.h"

#include <sys/random.h>

/* ---- fork() */

void
urn_tcp_heir_forked(struct urn_tcp *t)
{
	uint32_t state = atomic_load(&t->state);

	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->reading, NULL);
	if (state == URN_TCP_LISTEN)
		state = URN_TCP_HEIR;
	else if (state == URN_TCP_ASKED || state == URN_TCP_STREAM)
		state = URN_TCP_LOST;
	atomic_store(&t->state, state);
	atomic_store(&t->told, false);
	t->s = NULL;
	t->l = NULL;
}

/* ---- listeners */

int
urn_tcp_heir_listen(struct urn_tcp *t, bool heir)
{
	struct urn_stream_node *n = urn_tcp_node();
	struct urn_sh_share share = {.heir = heir};

	if (n == NULL)
		return ENETDOWN;
	/* Without a secret nobody can share the port. */
	if (!heir && getrandom(&t->key, sizeof(t->key), GRND_NONBLOCK) != (ssize_t)sizeof(t->key))
		t->key = 0;
	share.key = t->key;
	return urn_sh_listen(&t->l, n, t->local.port, t->backlog, &urn_tcp_options,
			     t->key != 0 ? &share : NULL);
}

uint32_t
urn_tcp_heir_settle(struct urn_tcp *t)
{
	uint32_t state;

	pthread_mutex_lock(&t->lock);
	state = atomic_load(&t->state);
	if (state == URN_TCP_HEIR) {
		/* Without a listener of its own the child has the kernel's connections. */
		if (urn_tcp_heir_listen(t, true) == 0)
			state = URN_TCP_LISTEN;
		else
			state = t->kernel ? URN_TCP_KERNEL : URN_TCP_LOST;
		atomic_store(&t->state, state);
	}
	pthread_mutex_unlock(&t->lock);
	return state;
}
