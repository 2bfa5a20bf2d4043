/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile users of register sets (doorbell.md DB-1): a process of another user that does one bad
 * thing again and again, and what the dataplane has, to be compared before and after.
 */
#ifndef URN_TEST_HOSTILE_MSG_H
#define URN_TEST_HOSTILE_MSG_H

#include "hostile.h"
#include "msg/set.h"

enum {
	HOSTILE_SIZE = 256,   /* bytes of a message */
	HOSTILE_ENTRIES = 8,  /* entries of a queue */
	HOSTILE_LONG = 65536, /* bytes of a message in many packets */
	HOSTILE_BYTE = 0x5a,  /* each byte of a hostile message */
};

/* Shared by the test and the hostile process. */
struct hostile_page {
	struct urn_msg_to near,
		far;	  /* queues of the test's: on node a; on node b, for HOSTILE_LONG bytes */
	uint64_t guarded; /* number of a queue on node a that permits nobody */
	_Atomic uint32_t rounds; /* bad things done so far; the hostile process's */
	_Atomic uint32_t line;	 /* line of the hostile process's check that failed; 0: none */
};

/* Stop the hostile process unless cond is true; the test says the line. */
#define HOSTILE_HOLD(page, cond)                                    \
	do {                                                        \
		if (!(cond))                                        \
			hostile_msg_fail(page, (uint32_t)__LINE__); \
	} while (0)
void hostile_msg_fail(struct hostile_page *page, uint32_t line) __attribute__((noreturn));

/* Attach as another user, in a process of its own, which is that user from then on. Ends the
 * process on failure. */
struct urn_msg_dev *hostile_msg_connect(struct hostile_page *page, const char *path);

/* Memory that processes share, all zero. */
struct hostile_page *hostile_page_new(void);
/* Run body(page, path) in a process of its own, which never returns from it. returns: the process
 */
pid_t hostile_msg_start(struct rig *r, struct hostile_page *page,
			void (*body)(struct hostile_page *page, const char *path));
/* Wait until the process has done n rounds; the test fails when the process ends before. */
void hostile_msg_wait(struct hostile_page *page, pid_t pid, uint32_t n);
/* Kill the process, which was alive until now, and wait until n clients are left. */
void hostile_msg_kill(struct hostile_page *page, const struct rig *r, pid_t pid, uint64_t n);

/* Write a doorbell without asking whether it makes sense. returns: its number */
uint32_t hostile_ring(struct urn_register_set *s, uint64_t addr, uint32_t size,
		      const uint8_t node[16], uint64_t qid);
/* Wait for the answer to a doorbell. returns: its code */
uint8_t hostile_answer(struct urn_register_set *s, uint32_t seq);
/* Configure a queue, likewise. returns: the state that the dataplane says */
uint32_t hostile_configure(struct urn_register_set *s, uint64_t base, uint32_t entries,
			   uint32_t entry_size);

/* Amounts that a client's death must give back, of both adapters together. */
struct hostile_have {
	uint64_t sets;			 /* register sets */
	uint64_t wholes;		 /* long messages that are put together */
	uint64_t work;			 /* free entries for packets under way */
	uint64_t used[URN_LEDGER_KINDS]; /* quotas of all users together (enum urn_quota) */
};
void hostile_have(struct rig *r, struct hostile_have *h);
/* The test fails unless the dataplane has again what it had; packets under way are waited for. */
void hostile_have_again(struct rig *r, const struct hostile_have *before);

#endif
