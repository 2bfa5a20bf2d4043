/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection whose second path is lost, for tests of OFFER: its queue pairs and the clock are the
 * test's. */
#ifndef OFFER_RIG_H
#define OFFER_RIG_H

#include "verbs/session/heal.h"

enum { PROBE_MS = 100, NUMBER = 7, CTL = 9, REAL = 11 };

extern uint64_t clock_ms;
/* Queue pairs made, offers told, receives posted, returns, and questions whether the adapter has
 * all objects. */
extern unsigned int made, told, posted, returned, asked;
extern int make_err, init_err; /* errors of the next queue pairs; 0: none */
extern uint32_t told_flags;    /* flags of this end's newest offer */
extern bool lacking;	       /* the adapter lacks objects of the program */
extern struct ibv_qp real_qp, ctl_qp;
extern struct ibv_wc waiting; /* the completion that the next poll finds; qp_num 0: none */

struct offer_rig {
	struct urn_sv_ctx ctx;
	struct urn_sv_pd pd;
	struct urn_sv_qp q;
	struct ibv_mr mr;
	struct ibv_cq cq;
};

int offer_setup(void **state);
int offer_teardown(void **state);

#endif
