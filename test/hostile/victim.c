/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: victim SOCKET writes|messages [N [SECONDS]]
 *        victim SOCKET limits
 *
 * Prints one object of JSON. Exit code: 1 a byte was lost or changed, or a call failed.
 */
#include "victim.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
	SIZE = 64,
	GUARD = 4096,	    /* bytes before and behind the target that nobody may write */
	GUARD_EVERY = 64,   /* operations */
	AIM_NS = 2000000,   /* worst operation to aim at */
	MUST_NS = 10000000, /* worst operation that is allowed */
	FILL = 0xa5,
};

uint64_t
victim_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
victim_begin(struct victim_times *t)
{
	memset(t, 0, sizeof(*t));
	t->began = t->ended = victim_now();
}

bool
victim_count(struct victim_times *t, const struct victim_wish *w, uint64_t from)
{
	uint64_t took;

	t->ended = victim_now();
	took = t->ended - from;
	t->n++;
	t->worst = took > t->worst ? took : t->worst;
	t->over_aim += took > AIM_NS;
	t->over_must += took > MUST_NS;
	return (w->writes == 0 || t->n < w->writes) &&
	       (w->seconds <= 0 || (double)(t->ended - t->began) < w->seconds * 1e9);
}

void
victim_print(const struct victim_times *t, const char *kind)
{
	double s = (double)(t->ended - t->began) / 1e9;

	printf("{\"victim\": \"%s\", \"n\": %" PRIu64
	       ", \"seconds\": %.6f, \"rate\": %.0f, \"worst_us\": %.1f, \"over_2ms\": %" PRIu64
	       ", \"over_10ms\": %" PRIu64 "}\n",
	       kind, t->n, s, s > 0 ? (double)t->n / s : 0, (double)t->worst / 1e3, t->over_aim,
	       t->over_must);
}

/* ---- WRITEs */

/* The bytes of WRITE n. */
static void
pattern(uint8_t *at, uint64_t n)
{
	for (unsigned int i = 0; i < SIZE; i += 8) {
		uint64_t word = (n + i) * 0x9e3779b97f4a7c15ull;

		memcpy(at + i, &word, 8);
	}
}

static void
guards(const uint8_t *target)
{
	for (unsigned int i = 0; i < GUARD; i++)
		FOE_MUST(target[-1 - (int)i] == FILL && target[SIZE + i] == FILL,
			 "a byte beside the target was changed");
}

static void
one_write(const struct foe_end e[2], struct ibv_qp *qp, uint8_t *target, uint64_t n)
{
	struct ibv_sge sge = {(uintptr_t)e[0].buf, SIZE, e[0].mr->lkey};
	uint8_t want[SIZE];
	struct ibv_wc wc;

	pattern(e[0].buf, n);
	FOE_MUST(foe_post(qp, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)target, e[1].mr->rkey) == 0,
		 "post");
	while (ibv_poll_cq(e[0].cq, 1, &wc) == 0)
		;
	FOE_MUST(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	pattern(want, n);
	FOE_MUST(memcmp(target, want, SIZE) == 0, "the bytes of a WRITE are not there");
	if (n % GUARD_EVERY == 0)
		guards(target);
}

void
victim_writes(const struct foe *f, const struct victim_wish *w)
{
	struct victim_times t;
	struct foe_end e[2];
	struct ibv_qp *qp[2];
	uint8_t *target;
	uint64_t from;

	foe_open(&e[0], f, "a", 2 * GUARD + SIZE, 16);
	foe_open(&e[1], f, "b", 2 * GUARD + SIZE, 16);
	foe_pair(&e[0], &e[1], 4, qp);
	memset(e[1].buf, FILL, 2 * GUARD + SIZE);
	target = e[1].buf + GUARD;
	one_write(e, qp[0], target, 0); /* neighbours know each other from here on */
	victim_begin(&t);
	do {
		from = victim_now();
		one_write(e, qp[0], target, t.n + 1);
	} while (victim_count(&t, w, from));
	guards(target);
	victim_print(&t, "writes");
	for (unsigned int i = 0; i < 2; i++)
		FOE_MUST(ibv_destroy_qp(qp[i]) == 0, "destroy");
	foe_close(&e[0]);
	foe_close(&e[1]);
}

int
main(int argc, char **argv)
{
	struct victim_wish w = {.writes = argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
				.seconds = argc > 4 ? strtod(argv[4], NULL) : 0};
	struct foe f = {.path = argc > 1 ? argv[1] : NULL, .seed = 1};
	const char *kind = argc > 2 ? argv[2] : "";

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing outlives the test */
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(kind, "writes") == 0) {
		victim_writes(&f, &w);
	} else if (strcmp(kind, "messages") == 0) {
		victim_messages(&f, &w);
	} else if (strcmp(kind, "limits") == 0) {
		victim_limits(&f);
	} else {
		fprintf(stderr, "usage: victim SOCKET writes|messages [N [SECONDS]] | victim "
				"SOCKET limits\n");
		return 2;
	}
	return 0;
}
