/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of sockets, by number. A child of fork() has the descriptors of its parent's sockets,
 * and nothing else of them: its calls fail with EBADF, and rclose() closes the descriptor. Sockets
 * of the child's own work.
 */
#include "dropin/rdmacm/rsocket/rs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_rs **table; /* by number; NULL: not one of ours */
static size_t table_size;

static void
child(void)
{
	for (size_t i = 0; i < table_size; i++)
		if (table[i] != NULL)
			table[i]->foreign = true;
	pthread_mutex_unlock(&table_lock);
	urn_rs_keepalive_forked();
	urn_rs_wake_forked();
}

static void
before_fork(void)
{
	pthread_mutex_lock(&table_lock);
}

static void
parent(void)
{
	pthread_mutex_unlock(&table_lock);
}

/* Nothing is called with the table's lock held, so any order of handlers is right. */
__attribute__((constructor)) static void
urn_rs_watch_forks(void)
{
	(void)pthread_atfork(before_fork, parent, child);
}

struct urn_rs *
urn_rs_get(int fd)
{
	struct urn_rs *rs = NULL;

	pthread_mutex_lock(&table_lock);
	if (fd >= 0 && (size_t)fd < table_size)
		rs = table[fd];
	if (rs != NULL && rs->foreign)
		rs = NULL;
	if (rs != NULL)
		atomic_fetch_add(&rs->refs, 1);
	pthread_mutex_unlock(&table_lock);
	if (rs == NULL)
		errno = EBADF;
	return rs;
}

void
urn_rs_put(struct urn_rs *rs)
{
	int err = errno;

	if (atomic_fetch_sub(&rs->refs, 1) == 1) {
		urn_rs_endpoint_free(rs);
		pthread_mutex_destroy(&rs->lock);
		pthread_mutex_destroy(&rs->sending);
		pthread_mutex_destroy(&rs->receiving);
		free(rs);
	}
	errno = err;
}

struct urn_rs *
urn_rs_new(int domain, int type)
{
	struct urn_rs *rs = calloc(1, sizeof(*rs));

	if (rs == NULL)
		return NULL;
	pthread_mutex_init(&rs->lock, NULL);
	pthread_mutex_init(&rs->sending, NULL);
	pthread_mutex_init(&rs->receiving, NULL);
	rs->fd = -1;
	rs->domain = domain;
	rs->type = type;
	rs->refs = 1;
	rs->flags = O_RDWR;
	rs->sndbuf = rs->rcvbuf = URN_RS_BUF;
	rs->sq = URN_RS_SQ;
	rs->rq = URN_RS_RQ;
	rs->inl = URN_RS_INLINE;
	rs->linger.l_onoff = 1;
	rs->keep_idle = URN_RS_KEEP_IDLE;
	return rs;
}

/* Make room for a number. The table's lock is held. returns: 0, or an errno value */
static int
grow(size_t fd)
{
	size_t size = table_size == 0 ? 64 : table_size;
	struct urn_rs **t;

	while (size <= fd)
		size *= 2;
	if (size == table_size)
		return 0;
	t = realloc(table, size * sizeof(struct urn_rs *));
	if (t == NULL)
		return ENOMEM;
	for (size_t i = table_size; i < size; i++)
		t[i] = NULL;
	table = t;
	table_size = size;
	return 0;
}

int
urn_rs_insert(struct urn_rs *rs)
{
	int err;

	pthread_mutex_lock(&table_lock);
	err = grow((size_t)rs->fd);
	if (err == 0)
		table[rs->fd] = rs;
	pthread_mutex_unlock(&table_lock);
	return err;
}

struct urn_rs *
urn_rs_take(int fd)
{
	struct urn_rs *rs = NULL;

	pthread_mutex_lock(&table_lock);
	if (fd >= 0 && (size_t)fd < table_size)
		rs = table[fd];
	if (rs != NULL)
		table[fd] = NULL;
	pthread_mutex_unlock(&table_lock);
	if (rs == NULL)
		errno = EBADF;
	return rs;
}
