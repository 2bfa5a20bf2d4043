/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of the tests of foreign memory: a child process that hands over its
 * descriptors by a socket, as clients do, and does to its memory what it is
 * told. What it has in memory it says itself: no test looks there by the way
 * that is tested.
 */
#ifndef TEST_FOREIGN_CHILD_H
#define TEST_FOREIGN_CHILD_H

#include "memory/space.h"

#include "mem_test.h"

#include <stdbool.h>

#include <rte_mbuf.h>

/* Where the memory of children is: nothing of a program's own lies there. */
#define CHILD_AT 0x7e9000000000ull

enum child_do {
	CHILD_READ,  /* send `len` bytes at `addr` */
	CHILD_WRITE, /* take them */
	CHILD_MAP, /* map `len` anonymous bytes at `addr` with rights `arg`, shared if bit 8 is set
		    */
	CHILD_PROTECT, /* mprotect() to `arg` */
	CHILD_UNMAP,
	CHILD_FORK,	 /* a child of its own: answers CHILD_READ_FORK; */
	CHILD_READ_FORK, /* its bytes are sent */
	CHILD_EXEC,	 /* execute this program as a victim that has `len` bytes at `addr` */
	CHILD_UFFD,	 /* map `len` bytes at `addr` that a userfaultfd supplies; answers errno */
	CHILD_SERVE,	 /* supply `arg` of its pages, each filled with 0x5a */
	CHILD_SHARE, /* map `len` bytes of the descriptor `arg`, which it got by fork(), at `addr`
		      */
	CHILD_USER,  /* become the user `arg` */
	CHILD_TWIN,  /* have another process in the same address space */
	CHILD_FIND,  /* where a mapping begins whose line ends in the text at `addr`, of `len` bytes
		      */
};

struct child {
	pid_t pid;
	int sock;
	struct urn_space_fds fds; /* handed over; the caller's */
};

/* Start one. CHILD_AT is not mapped yet. */
struct child child_start(void);
/* Have something done. returns: what the child answered, mostly 0 or errno */
uint64_t child_do(struct child *c, enum child_do what, uint64_t addr, uint64_t len, uint64_t arg);
void child_read(struct child *c, uint64_t addr, void *to, size_t len);
void child_write(struct child *c, uint64_t addr, const void *from, size_t len);
uint64_t child_find(struct child *c, const char *name);
/* Send a command without waiting, and take what it answers later. */
void child_ask(struct child *c, enum child_do what, uint64_t addr, uint64_t len, uint64_t arg);
uint64_t child_answer(struct child *c);
/* SIGKILL, reap, close what is open. Twice is once. */
void child_end(struct child *c);

/* main() of a test calls it first: is this a victim of CHILD_EXEC? Then it does not return. */
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
		*region; /* of the child's memory: `len` bytes at CHILD_AT, iova the same */
	uint64_t len;
	struct ft_frame *frame;
	uint64_t rng;
	int area;	/* a memfd of a page, */
	uint64_t *mark; /* as mapped here */
};

/* Shall ft_reg() have the child map that page behind its memory, and let reads go by number? */
extern bool ft_direct;

void ft_open(struct ft *f, uint64_t len);
void ft_close(struct ft *f);
/* The child maps the page at `at`; reads are proved by it. */
void ft_share(struct ft *f, uint64_t at);
/* Register all of it; the child has mapped it. */
void ft_reg(struct ft *f, uint32_t access);
void ft_dereg(struct ft *f);
struct urn_memop ft_op(struct ft *f, int kind, uint32_t frame, uint64_t off, uint32_t len);
/* Hand them over and wait for all answers, which replace them in the order of their frames. */
void ft_run(struct ft *f, struct urn_memop *ops, unsigned int n);
/* Wait until nothing is under way, dropping answers. */
void ft_drain(struct ft *f);
void ft_fill(struct ft *f, void *p, size_t n);
/* A bounded wait of a test: yields; fails after some 60 s. */
void ft_wait(uint64_t *since);

#endif
