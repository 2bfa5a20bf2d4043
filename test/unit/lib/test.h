/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of every test of the library: cmocka, and a context over a fake. */
#ifndef URN_TEST_LIB_H
#define URN_TEST_LIB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake.h"

#include <urnic/attach.h>
#include <urnic/verbs.h>

/* A context, a protection domain, a completion queue and a queue pair on a fake. */
struct env {
	struct fake *f;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t qpn;
};

/* cmocka group or test fixtures: *state is a struct env with all objects, QP in RTS. */
int env_setup(void **state);       /* RC, 8 send and receive slots, 4 elements, 64 bytes inline */
int env_setup_ud(void **state);    /* the same, UD */
int env_setup_ex(void **state);    /* the same, RC, for ibv_wr_* */
int env_setup_ex_ud(void **state); /* the same, UD, for ibv_wr_* */
int env_teardown(void **state);

/* Only a context on a fake. */
int ctx_setup(void **state);
int ctx_teardown(void **state);

/* Move a queue pair through INIT and RTR to RTS. */
void env_connect(struct ibv_qp *qp);
/* Poll n completions, which are there. */
void env_poll(struct ibv_cq *cq, unsigned int n);
/* Move a queue pair to one state, without other attributes. */
int env_modify(struct ibv_qp *qp, enum ibv_qp_state state);

#endif
