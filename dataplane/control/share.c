/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share.h"

#include "control/adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * A memfd may be larger than all memory, and costs its owner nothing. Address
 * space and mappings are the whole dataplane's: whatever the limits (quota.c) say,
 * no client takes more than a small part of the first.
 */
#define MAX_SHARED (1ull << 40) /* bytes of a client */
#define PART (32ull << 20)      /* bytes that are unmapped at a time: a few milliseconds of the kernel's */

struct urn_share {
	struct urn_share *next; /* of the client */
	uint32_t handle;
	uint32_t regions;       /* that lie in it */
	uint64_t addr;          /* where the client has it */
	uint64_t length;        /* bytes */
	uint8_t *map;           /* where it is here */
};

struct urn_share *
urn_share_find(struct urn_client *c, uint64_t addr, uint64_t length, uint8_t **base)
{
	for (struct urn_share *s = c->shares; s; s = s->next) {
		if (addr < s->addr || addr - s->addr > s->length ||
		    length > s->length - (addr - s->addr))
			continue;
		*base = s->map + (addr - s->addr);
		return s;
	}
	return NULL;
}

uint64_t
urn_share_bytes(const struct urn_client *c, uint32_t handle)
{
	for (const struct urn_share *s = c->shares; s; s = s->next)
		if (s->handle == handle)
			return s->length;
	return 0;
}

void
urn_share_hold(struct urn_client *c, struct urn_share *s, uint32_t key)
{
	c->adapter->key_share[key >> 8] = s;
	s->regions++;
}

void
urn_share_release(struct urn_client *c, uint32_t key)
{
	struct urn_share **s = &c->adapter->key_share[key >> 8];

	if (*s)
		(*s)->regions--;
	*s = NULL;
}

/* Take a piece off the list: nothing finds it any more. */
static struct urn_share *
take_off(struct urn_share **at)
{
	struct urn_share *s = *at;

	*at = s->next;
	return s;
}

/*
 * A piece that is on no list, and in which no region lies. From front to back, a part at
 * a time: whoever wants to map something in this process waits for the one only.
 */
static void
unmap(struct urn_share *s)
{
	for (uint64_t off = 0; off < s->length; off += PART)
		munmap(s->map + off, s->length - off < PART ? s->length - off : PART);
	free(s);
}

void
urn_share_drop_all(struct urn_client *c)
{
	while (c->shares)
		unmap(take_off(&c->shares));
}

/* What is wrong with a descriptor that shall be shared memory of this size; NULL: nothing. */
static const char *
complaint(int fd, uint64_t length)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return "is no memfd";
	if (fs.f_type != TMPFS_MAGIC)
		return "does not lie in ordinary shared memory (huge pages can't be shared: a hole in "
		       "them faults whoever touches it)";
	if (!(seals & F_SEAL_SHRINK))
		return "can shrink: seal it with F_SEAL_SHRINK";
	if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		return "is sealed against writing";
	if (length == 0 || (uint64_t)st.st_size < length)
		return "is shorter than what is to be shared, or that is nothing";
	return NULL;
}

/* Is there room for so many bytes more? */
static bool
has_room(const struct urn_client *c, uint64_t length)
{
	uint64_t left = MAX_SHARED;

	for (const struct urn_share *s = c->shares; s; s = s->next)
		left -= s->length;
	return length <= left;
}

int
urn_ctl_share(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name, *text;
	struct urn_share *s;
	void *map;

	if (!c->remote)
		return urn_ctl_fail(rep, EINVAL, "%s: a program that holds the dataplane shares all of "
				    "its memory with it", name);
	if (req->share.fd < 0)
		return urn_ctl_fail(rep, EBADF, "%s: memory to share comes as a descriptor", name);
	text = complaint(req->share.fd, req->share.length);
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
	map = mmap(NULL, req->share.length, PROT_READ | PROT_WRITE, MAP_SHARED, req->share.fd, 0);
	if (map == MAP_FAILED) {
		free(s);
		return urn_ctl_fail(rep, errno, "%s: can't map %llu bytes of shared memory: %s", name,
				    (unsigned long long)req->share.length, strerror(errno));
	}
	*s = (struct urn_share){
		.next = c->shares,
		.handle = ++c->share_next,
		.addr = req->share.addr,
		.length = req->share.length,
		.map = map,
	};
	c->shares = s;
	rep->handle = s->handle;
	close(req->share.fd); /* the mapping keeps it */
	return 0;
}

int
urn_ctl_unshare(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_share **at = &c->shares, *s;

	while (*at && (*at)->handle != req->handle)
		at = &(*at)->next;
	if (!*at)
		return urn_ctl_fail(rep, EINVAL, "%s: no shared memory %u", c->adapter->cfg.name,
				    req->handle);
	if ((*at)->regions)
		return urn_ctl_fail(rep, EBUSY, "%s: %u regions lie in this shared memory: deregister "
				    "them first", c->adapter->cfg.name, (*at)->regions);
	/*
	 * Engines have let go of the regions that lay in it (ctl_mem.c), and it is found no more.
	 * Gigabytes take their time; only after that is it given back (quota.c).
	 */
	s = take_off(at);
	urn_ctl_open(c);
	unmap(s);
	urn_ctl_shut(c);
	return 0;
}
