/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WRITE, READ, SEND with immediate and atomics between two stacks: one program
 * (rw.c) over plain verbs, built once with rdma-core for the guest and once with
 * urnic (rw_urnic.c).
 */
#ifndef URN_TEST_INTEROP_RW_H
#define URN_TEST_INTEROP_RW_H

#ifdef RW_URNIC
#include <urnic/verbs.h>
#else
#include <infiniband/verbs.h>
#endif

/* Arguments of rw.c itself; what follows is rw_open()'s. */
#define RW_ARGS 8

/*
 * Where a context comes from. argv, n: further arguments. Ends the program when
 * there is none.
 */
struct ibv_context *rw_open(char **argv, int n);
/* Take down what rw_open() made, the context closed. */
void rw_close(void);
/* Say what is wrong, and end. */
void rw_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
