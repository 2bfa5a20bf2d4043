/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets of a device, and the processes that have them. */
#include "msg/sock.h"

#include "abi/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_MS = 2000 }; /* milliseconds that a child of fork() may take until it runs */

/* In memory that children of fork() share. */
struct urn_socks_shared {
	pthread_mutex_t lock; /* lock protects `used` of all slots, and the decision about who ends
				 a socket */
	_Atomic uint32_t forking; /* children that have not taken their locks yet */
	uint64_t forks;		  /* children so far; under lock */
	struct urn_sock sock[URN_SOCKS_MAX];
};

struct urn_socks {
	struct urn_msg_dev *dev;
	struct urn_socks_shared *shared;
	int lock_fd; /* file of URN_SOCKS_MAX bytes: a lock on a byte for each process that has the
			socket */
	uint8_t held[URN_SOCKS_MAX]; /* 1: this process has the socket; under urn_socks_lock */
	_Atomic uint64_t awaited;    /* shared->forks at the last wait for children */
	struct urn_socks *next;
};

/* urn_socks_lock protects the list of tables, the current one, and `held` of all. */
static pthread_mutex_t urn_socks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_socks *urn_socks_list;    /* under urn_socks_lock; never shortened */
static struct urn_socks *urn_socks_current; /* under urn_socks_lock */
static pthread_once_t urn_socks_once = PTHREAD_ONCE_INIT;

/* ---- locks on bytes */

/* Set or unset this process's lock on a socket's byte. */
static void
urn_socks_mark(struct urn_socks *t, uint32_t index, bool have)
{
	struct flock l = {.l_type = have ? F_RDLCK : F_UNLCK,
			  .l_whence = SEEK_SET,
			  .l_start = index,
			  .l_len = 1};

	(void)fcntl(t->lock_fd, F_SETLK, &l);
	t->held[index] = have;
}

/* True when another process has the socket. The lock of the table is held. */
static bool
urn_socks_others(struct urn_socks *t, uint32_t index)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};

	/* A child without its locks has the sockets that were there before it, and no later ones.
	 */
	if (atomic_load(&t->shared->forking) != 0 && t->shared->sock[index].born < t->shared->forks)
		return true;
	return fcntl(t->lock_fd, F_GETLK, &l) != 0 || l.l_type != F_UNLCK;
}

/* ---- fork(): the child takes a lock for each socket that it has now, too */

static void
urn_socks_fork_hold(void)
{
	struct urn_socks *t;

	pthread_mutex_lock(&urn_socks_lock);
	for (t = urn_socks_list; t != NULL; t = t->next) {
		(void)urn_msg_mutex_take(&t->shared->lock);
		atomic_fetch_add(&t->shared->forking, 1);
		t->shared->forks++;
		pthread_mutex_unlock(&t->shared->lock);
	}
}

static void
urn_socks_fork_parent(void)
{
	pthread_mutex_unlock(&urn_socks_lock);
}

static void
urn_socks_fork_child(void)
{
	struct urn_socks *t;
	uint32_t i;

	pthread_mutex_init(&urn_socks_lock, NULL);
	for (t = urn_socks_list; t != NULL; t = t->next) {
		for (i = 0; i < URN_SOCKS_MAX; i++)
			if (t->held[i])
				urn_socks_mark(t, i, true);
		atomic_fetch_sub(&t->shared->forking, 1);
	}
}

static void
urn_socks_fork_register(void)
{
	urn_msg_dev_forks();
	(void)pthread_atfork(urn_socks_fork_hold, urn_socks_fork_parent, urn_socks_fork_child);
}

void
urn_socks_forks(void)
{
	(void)pthread_once(&urn_socks_once, urn_socks_fork_register);
}

/* ---- tables */

static struct urn_socks *
urn_socks_make(struct urn_msg_dev *dev)
{
	struct urn_socks *t = calloc(1, sizeof(*t));
	void *shared = mmap(NULL, sizeof(*t->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = urn_fd_memory("urnic-sockets", URN_SOCKS_MAX);

	if (t == NULL || shared == MAP_FAILED || fd < 0) {
		free(t);
		if (shared != MAP_FAILED)
			munmap(shared, sizeof(*t->shared));
		if (fd >= 0)
			close(fd);
		urn_fail(ENOMEM, "no memory for sockets");
		return NULL;
	}
	urn_socks_forks();
	t->dev = dev;
	t->shared = shared;
	t->lock_fd = fd;
	urn_msg_mutex_init(&t->shared->lock);
	t->next = urn_socks_list;
	urn_socks_list = t;
	return t;
}

/* The table of a device. urn_socks_lock is held. */
static struct urn_socks *
urn_socks_of(struct urn_msg_dev *dev)
{
	struct urn_socks *t;

	for (t = urn_socks_list; t != NULL; t = t->next)
		if (t->dev == dev)
			return t;
	return urn_socks_make(dev);
}

int
urn_socks_use(struct urn_msg_dev *dev)
{
	int err = 0;

	pthread_mutex_lock(&urn_socks_lock);
	urn_socks_current = dev != NULL ? urn_socks_of(dev) : NULL;
	if (dev != NULL && urn_socks_current == NULL)
		err = errno;
	pthread_mutex_unlock(&urn_socks_lock);
	return err;
}

struct urn_socks *
urn_socks_get(void)
{
	struct urn_socks *t;
	struct urn_msg_dev *dev;

	pthread_mutex_lock(&urn_socks_lock);
	t = urn_socks_current;
	if (t != NULL && urn_dev_gone(&t->dev->dev) != URN_DEV_THERE && urn_msg_remote(t->dev))
		t = NULL; /* the dataplane died: a new one may be there. The old sockets keep the
			     old table. */
	if (t == NULL) {
		dev = urn_msg_dev_connect(NULL, NULL);
		t = dev != NULL ? urn_socks_make(dev) : NULL;
		urn_socks_current = t;
	}
	pthread_mutex_unlock(&urn_socks_lock);
	return t;
}

struct urn_msg_dev *
urn_socks_dev(struct urn_socks *t)
{
	return t->dev;
}

/* ---- slots */

struct urn_sock *
urn_socks_take(struct urn_socks *t)
{
	struct urn_sock *s = NULL;
	uint32_t i;

	pthread_mutex_lock(&urn_socks_lock);
	(void)urn_msg_mutex_take(&t->shared->lock);
	for (i = 0; i < URN_SOCKS_MAX && s == NULL; i++)
		if (!t->shared->sock[i].used)
			s = &t->shared->sock[i];
	if (s != NULL) {
		memset(s, 0, sizeof(*s));
		s->socks = t;
		s->index = i - 1;
		s->used = 1;
		s->born = t->shared->forks;
		urn_socks_mark(t, s->index, true);
	}
	pthread_mutex_unlock(&t->shared->lock);
	pthread_mutex_unlock(&urn_socks_lock);
	if (s == NULL)
		errno = ENFILE;
	return s;
}

bool
urn_socks_let_go(struct urn_sock *s)
{
	struct urn_socks *t = s->socks;
	bool last;

	pthread_mutex_lock(&urn_socks_lock);
	(void)urn_msg_mutex_take(&t->shared->lock);
	urn_socks_mark(t, s->index, false);
	last = !urn_socks_others(t, s->index) && s->used == 1;
	if (last)
		s->used = 2; /* nobody else ends the socket */
	pthread_mutex_unlock(&t->shared->lock);
	pthread_mutex_unlock(&urn_socks_lock);
	return last;
}

void
urn_socks_free(struct urn_sock *s)
{
	struct urn_socks *t = s->socks;

	(void)urn_msg_mutex_take(&t->shared->lock);
	s->used = 0;
	pthread_mutex_unlock(&t->shared->lock);
}

/* Take an orphan, which is then this caller's to end. NULL: there is none from *i on */
static struct urn_sock *
urn_socks_orphan(struct urn_socks *t, uint32_t *i)
{
	struct urn_sock *found = NULL;

	pthread_mutex_lock(&urn_socks_lock);
	(void)urn_msg_mutex_take(&t->shared->lock);
	for (; *i < URN_SOCKS_MAX && found == NULL; ++*i) {
		struct urn_sock *s = &t->shared->sock[*i];

		if (s->used == 1 && !t->held[*i] && !urn_socks_others(t, *i)) {
			s->used = 2;
			found = s;
		}
	}
	pthread_mutex_unlock(&t->shared->lock);
	pthread_mutex_unlock(&urn_socks_lock);
	return found;
}

/* Wait until each child has its locks, or is late: on a busy machine it has not run at all yet. */
static void
urn_socks_await_children(struct urn_socks *t)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	uint64_t forks;
	int i;

	(void)urn_msg_mutex_take(&t->shared->lock);
	forks = t->shared->forks;
	pthread_mutex_unlock(&t->shared->lock);
	if (atomic_exchange(&t->awaited, forks) == forks)
		return; /* a child that was killed before it ran never takes its locks */
	for (i = 0; i < CHILD_MS && atomic_load(&t->shared->forking) != 0; i++)
		nanosleep(&ms, NULL);
}

unsigned int
urn_socks_reap(struct urn_socks *t)
{
	struct urn_sock *s;
	unsigned int n = 0;
	uint32_t i = 0;

	urn_socks_await_children(t);
	while ((s = urn_socks_orphan(t, &i)) != NULL) {
		/* The channel's descriptor was another process's. */
		for (uint32_t k = 0; k < URN_PORT_OUTLETS; k++)
			s->outlet[k].set.fd = s->outlet[k].set.write_fd = -1;
		urn_sock_end(s);
		urn_socks_free(s);
		n++;
	}
	return n;
}
