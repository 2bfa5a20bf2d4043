/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane to be killed (urnicd in a process of its own), and a program attached to it
 * with queue pairs of several kinds.
 */
#ifndef URN_TEST_DEATH_H
#define URN_TEST_DEATH_H

#include "verbs/adapter/adapter.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
	DEATH_QPS = 5,            /* pairs of a busy program */
	DEATH_DEPTH = 64,         /* requests of a queue */
	DEATH_BYTES = 65536,      /* bytes of a buffer */
	DEATH_IDS = 1 << 22,      /* requests of a run, each way and pair */
	DEATH_SOON_MS = 2000,     /* limit of anything that must not take long */
};

extern char death_sock[96]; /* path of the dataplane's socket */

uint64_t death_now_ms(void);
void death_nap_us(long us);
/* Start urnicd, and wait until its socket answers. */
pid_t death_start(unsigned int engines);
void death_kill(pid_t pid, int sig);

/* Progress of a request. */
enum fate { POSTED = 1, SUCCEEDED = 2, FLUSHED = 4 };

/* One direction of one end of a pair: its requests, numbered in the order of posting. */
struct way {
	uint8_t *fate;      /* fate of a request, by its number */
	uint32_t posted;    /* numbers given out */
	uint32_t told;      /* one past the newest number that a completion came for */
	uint32_t out;       /* requests posted, and not known to be done */
	bool loose;         /* some requests are not signalled, or take turns in the queue with those of other ways */
};

/* The kinds of pairs. */
enum pair { DEATH_SENDS, DEATH_WRITES, DEATH_SHARED, DEATH_FETCHES, DEATH_FAR };

struct death_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq[2]; /* sends, receives */
	struct ibv_comp_channel *channel;
	struct ibv_cq *quiet; /* armed; no completion ever comes */
	struct ibv_srq *srq;
	struct ibv_qp *qp[DEATH_QPS];
	uint8_t *buf;
	union ibv_gid gid;
	struct way send[DEATH_QPS], recv[DEATH_QPS], shared;
};

void death_open(struct death_end *e, const char *node);
void death_connect(struct death_end *e, const struct death_end *peer);
/* All objects of the end can be given back, with the dataplane alive or dead. */
void death_close(struct death_end *e);

/* Around each test: the program has as many descriptors and threads after it as before. */
int death_setup(void **state);
int death_teardown(void **state);
/* Before all tests. argv[1]: urnicd. returns: 0, or an exit code */
int death_begin(int argc, char **argv);
/* After all tests; rc: their result. Fails when anything is left in the folder. returns: an exit code */
int death_finish(int rc);

#endif
