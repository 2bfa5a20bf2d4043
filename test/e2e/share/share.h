/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that tries what happens to memory that it registers, on two devices of its own. */
#ifndef URN_TEST_SHARE_H
#define URN_TEST_SHARE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(ok)                                                                \
	do {                                                                     \
		if (!(ok)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok); \
			_exit(1);                                                \
		}                                                                \
	} while (0)

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Write a text, with its end. */
static inline void
words(char *to, const char *from)
{
	memcpy(to, from, strlen(from) + 1);
}

/* One of two connected ends. */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};

/* ends[0] moves bytes from and to the memory of ends[1]. */
extern struct end ends[2];

void pair_open(void);
void pair_close(void);
/* Register memory of ends[1], with all rights. */
struct ibv_mr *reg(void *p, size_t length);
void dereg(struct ibv_mr *mr);
/* Write or read `length` bytes of the remote region at p; 4096 bytes at most. */
void put(struct ibv_mr *mr, void *p, const void *from, size_t length);
void get(struct ibv_mr *mr, void *p, void *to, size_t length);

/* Private, fresh memory. */
void *fresh(size_t length);
/* A region at p works, and is shared or not. */
void works(char *p, bool is);
/* True when the page at p is shared with the dataplane. */
bool shared(const void *p);

void case_writers(void);
void case_overlap(void);
void case_heap(void);
void case_fork(void);
void case_forks(void);
void case_held(void);
void case_clone(void);
void case_spawn(void);
void case_advise(void);
void case_remap(void);
void case_unmap(void);
void case_kinds(void);
void case_blocked(void);
void case_sigwait(void);
void case_threads(void);
void case_descriptors(void);
void case_many(void);
void case_bound(void);
void case_time(void);
void case_rings(void);

#endif
