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

/* Number of arguments of rw.c itself; the arguments behind them are for rw_open(). */
#define RW_ARGS 9

/*
 * Open a context. argv, n: the arguments behind those of rw.c. Ends the program when
 * no device is there.
 */
struct ibv_context *rw_open(char **argv, int n);
/* Free all that rw_open() made. The context must be closed before. */
void rw_close(void);
/* Print an error and end the program. */
void rw_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
