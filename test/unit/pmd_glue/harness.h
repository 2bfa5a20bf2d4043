/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The EAL starts once a process, so every test that needs one runs in a child of its own.
 * A child does not use cmocka's assertions (they jump back into the parent's runner) but
 * check(), which names the place and ends the child.
 */
#ifndef URN_TEST_PMD_GLUE_HARNESS_H
#define URN_TEST_PMD_GLUE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/port.h"

#include <sys/types.h>
#include <unistd.h>

#define check(cond) check_at((cond), #cond, __FILE__, __LINE__)
/* A call that must succeed; its error is printed when it does not. */
#define check_ok(call, err) check_ok_at((call), (err), #call, __FILE__, __LINE__)
/* The sentence must contain a word. */
#define check_says(err, word) check_says_at((err), (word), __FILE__, __LINE__)

void check_at(int ok, const char *what, const char *file, int line);
void check_ok_at(int ret, const struct urn_err *err, const char *what, const char *file, int line);
void check_says_at(const struct urn_err *err, const char *word, const char *file, int line);

/* A cmocka test, test_<fn>, that runs fn in a child. */
#define CHILD_TEST(fn)                                    \
	static void test_##fn(void **state)               \
	{                                                 \
		(void)state;                              \
		assert_int_equal(child_run(fn, NULL), 0); \
	}

/* Like CHILD_TEST; needs root, and is skipped without. */
#define ROOT_TEST(fn)                                     \
	static void test_##fn(void **state)               \
	{                                                 \
		(void)state;                              \
		if (geteuid() != 0)                       \
			skip();                           \
		assert_int_equal(child_run(fn, NULL), 0); \
	}

/* Run fn(arg) in a child. returns the child's wait status: 0 when fn returned */
int child_run(void (*fn)(void *), void *arg);
pid_t child_start(void (*fn)(void *), void *arg);
int child_wait(pid_t pid);
/* Become an ordinary user for good (root only; other users stay as they are). */
void become_user(void);

/* Start an EAL for a test, with the calling thread registered as an lcore. */
void eal_up(void);
/* A port configuration. */
struct urn_port_config port_cfg(const char *name, const char *device);
/* Open a port, or end the child with the port's error. */
struct urn_port *port_up(const struct urn_port_config *cfg);
/* Poll the link until it is up (ten seconds at most). */
void link_wait(struct urn_port *port);
/* Poll the link until it is down. The kernel reports its own links late. */
void link_down_wait(struct urn_port *port);

/* A frame of `len` bytes with content made from a seed, from `from`'s pool. */
struct rte_mbuf *frame_make(struct urn_port *from, uint32_t len, uint32_t seed);
/* True when m is the frame of that length and seed. Ethernet padding behind it is allowed. */
int frame_is(struct rte_mbuf *m, struct urn_port *from, uint32_t len, uint32_t seed);
/* Fill bytes as frame_make() does: for the end that is no port. */
void frame_fill(uint8_t *p, const uint8_t src[6], uint32_t len, uint32_t seed);
/* A queue for frames that the other end's hash puts on any. */
#define ANY_QUEUE UINT16_MAX
/* Send a burst of frames of `len` bytes on a queue of `a`; all must arrive at `b`, in order. */
void frames_cross(struct urn_port *a, struct urn_port *b, uint16_t queue, uint32_t len);
/* Send one frame that must be accepted. */
void frame_send(struct urn_port *port, uint16_t queue, struct rte_mbuf *m);
/* Receive one frame made with that length and seed (ten seconds); others are dropped. */
void frame_expect(struct urn_port *port, uint16_t queue, struct urn_port *from, uint32_t len,
		  uint32_t seed);

/* Ethernet frame of the largest packet at a path MTU. */
static inline uint32_t
frame_len(const struct urn_port *port)
{
	return 14u + port->caps.roce_mtu + 84u;
}

/* Number of runtime folders below a folder. */
unsigned int leftovers(const char *dir);

#endif
