/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of the tests of foreign memory: a child process that passes its descriptors
 * over a socket, as clients do, and does to its memory as the test tells it. The child
 * itself reports its memory's contents: no test reads them by the way under test.
 */
#ifndef TEST_FOREIGN_CHILD_H
#define TEST_FOREIGN_CHILD_H

#include "memory/space.h"

#include "mem_test.h"

#include <stdbool.h>

#include <rte_mbuf.h>

/* Address of the children's memory: no program has anything there. */
#define CHILD_AT 0x7e9000000000ull

enum child_do {
	CHILD_READ,  /* send `len` bytes at `addr` */
	CHILD_WRITE, /* receive `len` bytes and store them at `addr` */
	CHILD_MAP, /* map `len` anonymous bytes at `addr` with rights `arg`, shared if bit 8 is set
		    */
	CHILD_PROTECT, /* mprotect() to `arg` */
	CHILD_UNMAP,
	CHILD_FORK,	 /* fork a child of the child: it answers CHILD_READ_FORK; */
	CHILD_READ_FORK, /* send bytes of the child's child */
	CHILD_EXEC,	 /* execute this program as a victim that has `len` bytes at `addr` */
	CHILD_UFFD,	 /* map `len` bytes at `addr` that a userfaultfd supplies; answers errno */
	CHILD_SERVE,	 /* supply `arg` of the pages of CHILD_UFFD, each filled with 0x5a */
	CHILD_SHARE, /* map `len` bytes of the descriptor `arg`, inherited by fork(), at `addr` */
	CHILD_USER,  /* become the user `arg` */
	CHILD_TWIN,  /* start another process in the same address space */
	CHILD_FIND,  /* start of the mapping whose line ends in the text at `addr`, of `len` bytes */
};

struct child {
	pid_t pid;
	int sock;
	struct urn_space_fds fds; /* descriptors handed over; the caller owns them */
};

/* Start a child. CHILD_AT is not mapped yet. */
struct child child_start(void);
/* Tell the child to do `what`. returns: the child's answer, mostly 0 or errno */
uint64_t child_do(struct child *c, enum child_do what, uint64_t addr, uint64_t len, uint64_t arg);
void child_read(struct child *c, uint64_t addr, void *to, size_t len);
void child_write(struct child *c, uint64_t addr, const void *from, size_t len);
uint64_t child_find(struct child *c, const char *name);
/* Send a command without waiting, and take its answer later. */
void child_ask(struct child *c, enum child_do what, uint64_t addr, uint64_t len, uint64_t arg);
uint64_t child_answer(struct child *c);
/* SIGKILL and reap the child, close its descriptors. A second call does nothing. */
void child_end(struct child *c);

/* Call first in a test's main(): for a victim of CHILD_EXEC it does not return. */
void child_be_victim(int argc, char **argv);

/* ---- one executor, one space, frames */

enum { FT_FRAMES = 1024, FT_FRAME = 4096 + 64 };

struct ft_frame {
	struct rte_mbuf m;
	uint8_t priv[URN_PKT_PRIV];
	uint8_t data[FT_FRAME];
} __attribute__((aligned(64)));

struct ft {
	struct child child;
	struct urn_space *space;
	struct urn_mem *mem;
	struct urn_memx *x;
	uint32_t pd, key;
	struct urn_region
		*region; /* region of the child's memory: `len` bytes at CHILD_AT, iova the same */
	uint64_t len;
	struct ft_frame *frame;
	uint64_t rng;
	int area;	/* a memfd of one page, */
	uint64_t *mark; /* and its mapping here */
};

/* True when ft_reg() must have the child map that page behind its memory, and let reads go by number. */
extern bool ft_direct;

void ft_open(struct ft *f, uint64_t len);
void ft_close(struct ft *f);
/* The child maps the page at `at`; it proves reads. */
void ft_share(struct ft *f, uint64_t at);
/* Register all of the child's memory, which the child has mapped. */
void ft_reg(struct ft *f, uint32_t access);
void ft_dereg(struct ft *f);
struct urn_memop ft_op(struct ft *f, int kind, uint32_t frame, uint64_t off, uint32_t len);
/* Hand operations over and wait for all answers, which replace them in the order of their frames. */
void ft_run(struct ft *f, struct urn_memop *ops, unsigned int n);
/* Wait until no operation is in flight, and drop the answers. */
void ft_drain(struct ft *f);
void ft_fill(struct ft *f, void *p, size_t n);
/* One step of a bounded wait: yields; fails the test after some 60 s. */
void ft_wait(uint64_t *since);

/* Check another process's memory and register it, in one call. Errors as of the two calls */
static inline int
test_reg_foreign(struct urn_mem *mem, uint32_t pd, struct urn_space *space, uint64_t addr, uint64_t length,
		 uint64_t iova, uint32_t access, uint32_t *key, char *why, size_t len)
{
	int rc = urn_mem_check_foreign(space, addr, length, iova, access, why, len);

	return rc ? rc : urn_mem_add_foreign(mem, pd, space, addr, length, iova, access, key, why, len);
}

#endif
