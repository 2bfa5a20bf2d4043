/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/shm.h"

#include "control/ctl.h"
#include "control/lock.h"
#include "control/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * A memfd may be larger than all memory, and costs its owner nothing. Address
 * space and mappings belong to the whole dataplane: independent of the limits (quota.c),
 * no client takes more than a small part of the address space.
 */
#define MAX_SHARED (1ull << 40) /* bytes of a client */
#define PART (32ull << 20)      /* bytes that are unmapped at a time: a few milliseconds of the kernel's time */

/*
 * A memfd that is mapped in this process, sealed or about to be. Once sealed it can't be mapped for
 * writing again: a client that shares it over a second connection, or to a second adapter, gets the
 * same mapping.
 */
struct mapping {
	LIST_ENTRY(mapping) link; /* in the list of all; under maps_lock */
	unsigned int users; /* pieces of clients; under maps_lock; the fields behind are constant */
	dev_t dev;              /* dev and ino: the memfd, whose numbers nothing else has while it is mapped */
	ino_t ino;
	uint8_t *base;
	uint64_t length;        /* bytes mapped, from its start on */
	int fd; /* the memfd, opened anew, to look for holes by; -1: memory of this process */
	struct urn_account *account; /* user that pays for fd; NULL: not counted */
	uint64_t full_from,
		full_to; /* bytes that have pages, of the latest look; under maps_lock */
};

static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list; held for moments */
static LIST_HEAD(, mapping) maps = LIST_HEAD_INITIALIZER(maps);

struct urn_shm {
	LIST_ENTRY(urn_shm) link; /* in the client's list */
	uint32_t handle;
	uint32_t regions;       /* regions that lie in it */
	uint64_t addr;          /* its address in the client */
	uint64_t length;        /* bytes */
	struct mapping *map;    /* its mapping in this process */
};

/* ---- mappings */

/* Find a mapping of at least `length` bytes of a file, and count a user more; NULL: there is none. */
static struct mapping *
map_get(const struct stat *st, uint64_t length)
{
	struct mapping *m;

	pthread_mutex_lock(&maps_lock);
	LIST_FOREACH(m, &maps, link)
		if (m->dev == st->st_dev && m->ino == st->st_ino && m->length >= length)
			break;
	if (m)
		m->users++;
	pthread_mutex_unlock(&maps_lock);
	return m;
}

/*
 * Unmap from front to back, a part at a time: another thread of this process that wants to map
 * memory waits for one part only.
 */
static void
unmap(uint8_t *base, uint64_t length)
{
	for (uint64_t off = 0; off < length; off += PART)
		munmap(base + off, length - off < PART ? length - off : PART);
}

/*
 * Open a memfd once more: a program that is stalled in a call on its own description does not hold
 * up a look by this one. returns: the descriptor, or -1 with errno
 */
static int
open_anew(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void
map_free(struct mapping *m)
{
	if (m->fd >= 0) {
		close(m->fd);
		urn_account_give(m->account, URN_QUOTA_FD, 1);
	}
	free(m);
}

/* Make the record of a mapping. c: the client that shares it; NULL: this process. NULL with errno
 */
static struct mapping *
map_new(const struct urn_client *c, int fd)
{
	struct mapping *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->fd = -1;
	if (!c)
		return m;
	m->account = c->quota.account;
	errno = EMFILE;
	if (urn_account_take_own(m->account, URN_QUOTA_FD, 1)) {
		m->fd = open_anew(fd);
		if (m->fd >= 0)
			return m;
		urn_account_give(m->account, URN_QUOTA_FD, 1);
	}
	free(m);
	return NULL;
}

/* Count a user less; the last unmaps the mapping. */
static void
map_put(struct mapping *m)
{
	bool last;

	pthread_mutex_lock(&maps_lock);
	last = --m->users == 0;
	if (last)
		LIST_REMOVE(m, link);
	pthread_mutex_unlock(&maps_lock);
	if (!last)
		return;
	unmap(m->base, m->length);
	map_free(m);
}

/* True when the memfd is sealed: nobody can punch a hole into it, nor is punching one. */
static bool
is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_FUTURE_WRITE);
}

/* Map a memfd into *m. returns 0, or an errno value with why */
static int
map_into(struct mapping *m, int fd, const struct stat *st, uint64_t length, char *why, size_t len)
{
	void *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int rc = base == MAP_FAILED ? errno : 0;

	if (rc == EPERM)
		snprintf(why, len, "was sealed (F_SEAL_FUTURE_WRITE) before it came here: another dataplane has "
				   "it, or a connection that has ended had it");
	else if (rc != 0)
		snprintf(why, len, "can't be mapped (%llu bytes): %s", (unsigned long long)length, strerror(rc));
	if (rc != 0)
		return rc;
	/* Programs' data is not for core dumps of this process: a hint, so its failure is ignored.
	 */
	(void)madvise(base, length, MADV_DONTDUMP);
	m->users = 1;
	m->dev = st->st_dev;
	m->ino = st->st_ino;
	m->base = base;
	m->length = length;
	return 0;
}

/*
 * Map a memfd and seal it against holes, in this order. The mapping is listed in between: a call
 * that can't map the memfd any more, because it is sealed, finds the mapping. c: as map_new().
 * returns 0, or an errno value with why
 */
static int
map_make(const struct urn_client *c, int fd, const struct stat *st, uint64_t length,
	 struct mapping **out, char *why, size_t len)
{
	struct mapping *m = map_new(c, fd);
	int rc;

	if (!m) {
		rc = errno;
		snprintf(why, len, "can't be opened to look for holes in it: %s", strerror(rc));
		return rc;
	}
	rc = map_into(m, fd, st, length, why, len);
	if (rc != 0) {
		map_free(m);
		return rc;
	}
	pthread_mutex_lock(&maps_lock);
	LIST_INSERT_HEAD(&maps, m, link);
	pthread_mutex_unlock(&maps_lock);
	rc = urn_seal(fd, why, len);
	if (rc != 0)
		map_put(m);
	else
		*out = m;
	return rc;
}

/* Find the mapping of a sealed memfd, or make and seal one. returns like map_make() */
static int
map_find(const struct urn_client *c, int fd, const struct stat *st, uint64_t length,
	 struct mapping **out, char *why, size_t len)
{
	int rc;

	/* A mapping that is listed and not sealed yet is only for the call that made it. */
	*out = is_sealed(fd) ? map_get(st, length) : NULL;
	if (*out)
		return 0;
	rc = map_make(c, fd, st, length, out, why, len);
	/* Another connection shared the same memfd, and sealed it in between. */
	if (rc == EPERM && is_sealed(fd) && (*out = map_get(st, length)))
		rc = 0;
	return rc;
}

int
urn_shm_keep(int fd, uint64_t length)
{
	struct mapping *m;
	struct stat st;
	char why[160];

	return fstat(fd, &st) != 0 ? errno : map_make(NULL, fd, &st, length, &m, why, sizeof(why));
}

/* ---- pieces of clients */

struct urn_shm *
urn_shm_find(struct urn_client *c, uint64_t addr, uint64_t length, uint8_t **base)
{
	struct urn_shm *s;

	LIST_FOREACH(s, &c->shms, link) {
		if (addr < s->addr || addr - s->addr > s->length ||
		    length > s->length - (addr - s->addr))
			continue;
		*base = s->map->base + (addr - s->addr);
		return s;
	}
	return NULL;
}

/* True when an earlier look found pages for all these bytes: a sealed memfd loses none. */
static bool
is_known(const struct mapping *m, uint64_t off, uint64_t length)
{
	bool known;

	pthread_mutex_lock(&maps_lock);
	known = off >= m->full_from && off <= m->full_to && length <= m->full_to - off;
	pthread_mutex_unlock(&maps_lock);
	return known;
}

/* Note what a look found, so that many regions of one piece need one look. */
static void
note_full(struct mapping *m, uint64_t from, uint64_t to)
{
	pthread_mutex_lock(&maps_lock);
	if (from > m->full_to ||
	    to < m->full_from) { /* apart from what is known: the latest counts */
		m->full_from = from;
		m->full_to = to;
	} else {
		m->full_from = from < m->full_from ? from : m->full_from;
		m->full_to = to > m->full_to ? to : m->full_to;
	}
	pthread_mutex_unlock(&maps_lock);
}

int
urn_shm_populated(struct urn_client *c, const struct urn_shm *s, uint64_t addr, uint64_t length,
		  struct urn_abi_rep *rep)
{
	uint64_t off = addr - s->addr;
	off_t hole;

	if (s->map->fd < 0 || is_known(s->map, off, length))
		return 0;
	/* Looking takes as long as the memory is large, and waits for the client's calls on the
	 * file. */
	urn_ctl_unlock(c);
	hole = lseek(s->map->fd, (off_t)off, SEEK_HOLE);
	urn_ctl_relock(c);
	if (hole > (off_t)off)
		note_full(s->map, off, (uint64_t)hole);
	if (hole >= 0 && (uint64_t)hole >= off + length)
		return 0;
	if (hole < 0)
		hole = (off_t)off;
	return urn_ctl_fail(rep, EFAULT,
			    "%s: shared memory at 0x%llx has no page: write all of it before you "
			    "register it (MADV_POPULATE_WRITE), so that it counts as yours",
			    c->adapter->cfg.name,
			    (unsigned long long)s->addr + (unsigned long long)hole);
}

void
urn_shm_hold(struct urn_client *c, struct urn_shm *s, uint32_t key)
{
	c->adapter->key_shm[key >> 8] = s;
	s->regions++;
}

void
urn_shm_release(struct urn_client *c, uint32_t key)
{
	struct urn_shm **s = &c->adapter->key_shm[key >> 8];

	if (*s)
		(*s)->regions--;
	*s = NULL;
}

void
urn_shm_move(struct urn_client *c, uint32_t from, uint32_t to)
{
	struct urn_shm **of = c->adapter->key_shm;

	urn_shm_release(c, to);
	of[to >> 8] = of[from >> 8];
	of[from >> 8] = NULL;
}

/* Let a piece go that is on no list, and in which no region lies. */
static void
let_go(struct urn_shm *s)
{
	map_put(s->map);
	free(s);
}

void
urn_shm_drop_all(struct urn_client *c)
{
	struct urn_shm *s;

	while ((s = LIST_FIRST(&c->shms))) {
		LIST_REMOVE(s, link);
		let_go(s);
	}
}

/* Check a descriptor of memory to share. *st: its status. returns: the end of a sentence on its fault, or NULL */
static const char *
complaint(int fd, uint64_t length, struct stat *st)
{
	int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);
	struct statfs fs;

	if (seals < 0 || mode < 0 || fstat(fd, st) != 0 || fstatfs(fd, &fs) != 0)
		return "is no memfd";
	if ((mode & O_ACCMODE) != O_RDWR)
		return "is not open for reading and writing";
	if (fs.f_type != TMPFS_MAGIC)
		return "does not lie in ordinary shared memory (huge pages can't be shared: a hole "
		       "in "
		       "them faults each process that touches it)";
	if (!(seals & F_SEAL_SHRINK))
		return "can shrink: seal it with F_SEAL_SHRINK";
	if (seals & F_SEAL_WRITE)
		return "is sealed against writing";
	if (length == 0 || (uint64_t)st->st_size < length)
		return "is shorter than the range to be shared, or the range is empty";
	return NULL;
}

/* True when the client may share `length` bytes more. */
static bool
has_room(const struct urn_client *c, uint64_t length)
{
	const struct urn_shm *s;
	uint64_t left = MAX_SHARED;

	LIST_FOREACH(s, &c->shms, link)
		left -= s->length;
	return length <= left;
}

/*
 * Map and seal the memfd. Sealing waits for a hole that the client is punching, and so may mapping:
 * no other client's call and no engine waits for that. returns 0, or an errno value with the reply
 */
static int
find_map(struct urn_client *c, const struct urn_abi_req *req, const struct stat *st, struct mapping **map,
	 struct urn_abi_rep *rep)
{
	char why[160] = "";
	int rc;

	urn_ctl_unlock(c);
	rc = map_find(c, req->share.fd, st, req->share.length, map, why, sizeof(why));
	urn_ctl_relock(c);
	return rc == 0 ? 0 : urn_ctl_fail(rep, rc, "%s: the memory %s", c->adapter->cfg.name, why);
}

uint64_t
urn_ctl_share_bytes(struct urn_client *c, const struct urn_abi_req *req)
{
	(void)c;
	return req->share.length;
}

int
urn_ctl_share(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name, *text;
	struct urn_shm *s;
	struct mapping *map;
	struct stat st;
	int rc;

	if (req->share.fd < 0)
		return urn_ctl_fail(rep, EBADF, "%s: memory to share comes as a descriptor", name);
	text = complaint(req->share.fd, req->share.length, &st);
	if (text)
		return urn_ctl_fail(rep, EINVAL, "%s: the descriptor %s", name, text);
	if (req->share.addr + req->share.length < req->share.addr)
		return urn_ctl_fail(rep, EINVAL, "%s: shared memory wraps around the address space", name);
	if (!has_room(c, req->share.length))
		return urn_ctl_fail(rep, ENOSPC, "%s: a program shares at most %llu GiB of memory", name,
				    MAX_SHARED >> 30);
	s = calloc(1, sizeof(*s));
	if (!s)
		return ENOMEM;
	rc = find_map(c, req, &st, &map, rep);
	if (rc != 0) {
		free(s);
		return rc;
	}
	*s = (struct urn_shm){
		.handle = ++c->shm_next,
		.addr = req->share.addr,
		.length = req->share.length,
		.map = map,
	};
	LIST_INSERT_HEAD(&c->shms, s, link);
	rep->handle = s->handle;
	close(req->share.fd); /* the mapping keeps the memfd */
	return 0;
}

/* The piece with this handle. NULL: the client has none */
static struct urn_shm *
by_handle(struct urn_client *c, uint32_t handle)
{
	struct urn_shm *s;

	LIST_FOREACH(s, &c->shms, link)
		if (s->handle == handle)
			break;
	return s;
}

uint64_t
urn_ctl_unshare_bytes(struct urn_client *c, const struct urn_abi_req *req)
{
	const struct urn_shm *s = by_handle(c, req->handle);

	return s ? s->length : 0;
}

int
urn_ctl_unshare(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_shm *s = by_handle(c, req->handle);

	if (!s)
		return urn_ctl_fail(rep, EINVAL, "%s: no shared memory %u", c->adapter->cfg.name,
				    req->handle);
	if (s->regions)
		return urn_ctl_fail(rep, EBUSY,
				    "%s: %u regions lie in this shared memory: deregister "
				    "them first",
				    c->adapter->cfg.name, s->regions);
	/*
	 * Engines have let go of the regions that lay in the piece (ctl_mem.c), and nothing finds it any
	 * more. Unmapping gigabytes takes its time; the quota is given back only after that (quota.c).
	 */
	LIST_REMOVE(s, link);
	urn_ctl_unlock(c);
	let_go(s);
	urn_ctl_relock(c);
	return 0;
}
