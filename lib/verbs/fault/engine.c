/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of the process, and the decision whether one strikes. */
#include "verbs/fault/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct urn_fault_state urn_fault_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t urn_fault_once = PTHREAD_ONCE_INIT;
static char urn_fault_wrong[URN_ERROR_TEXT]; /* the variables make no sense; set once */

/* Next number of a sequence (splitmix64). */
static uint64_t
urn_fault_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

bool
urn_fault_strikes(struct urn_fault *f, struct urn_fault_obj *o)
{
	const struct urn_fault_spec *s = &f->spec;
	uint64_t *count = &f->count;

	if (s->queue != 0) {
		if (o == NULL || o->kind != s->queue ||
		    (s->number != URN_FAULT_EACH && s->number != o->number))
			return false;
		if (s->number == URN_FAULT_EACH)
			count = &o->count[f - urn_fault_state.fault];
	}
	++*count;
	switch (s->when) {
	case URN_FAULT_NTH:
		return *count == s->n;
	case URN_FAULT_FROM:
		return *count >= s->n;
	case URN_FAULT_EVERY:
		return *count % s->n == 0;
	case URN_FAULT_PERCENT:
		return (urn_fault_random(&f->random) >> 32) < s->n;
	case URN_FAULT_AFTER:
		break;
	}
	return false;
}

int
urn_fault_call(enum urn_fault_site site, struct urn_fault_obj *o)
{
	struct urn_fault_state *s = &urn_fault_state;
	int err = 0;
	uint32_t i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->n; i++)
		if (s->fault[i].spec.site == site && urn_fault_strikes(&s->fault[i], o) && err == 0)
			err = s->fault[i].spec.what;
	pthread_mutex_unlock(&s->lock);
	return err == 0 ? 0 : urn_fail(err, "a fault on demand: %s fails", urn_fault_word(site));
}

/* ---- beginning */

static void
urn_fault_cond_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&urn_fault_state.cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void
urn_fault_fork_hold(void)
{
	pthread_mutex_lock(&urn_fault_state.lock);
}

static void
urn_fault_fork_parent(void)
{
	pthread_mutex_unlock(&urn_fault_state.lock);
}

/* In a child of fork() no other thread is: none uses a queue, and events are the parent's until a
 * device is opened. */
static void
urn_fault_fork_child(void)
{
	struct urn_fault_state *s = &urn_fault_state;
	struct urn_fault_obj *o;
	unsigned int i;

	pthread_mutex_init(&s->lock, NULL);
	urn_fault_cond_init();
	s->runs = s->acts = false;
	for (i = 0; i < URN_FAULT_LISTS; i++)
		LIST_FOREACH(o, &s->objs[i], link)
			o->users = 0;
}

static void
urn_fault_complain(const char *variable, uint32_t at, const char *why)
{
	if (at != 0)
		snprintf(urn_fault_wrong, sizeof(urn_fault_wrong), "%s, at character %u: %s",
			 variable, at, why);
	else
		snprintf(urn_fault_wrong, sizeof(urn_fault_wrong), "%s: %s", variable, why);
	fprintf(stderr, "urnic: %s\n", urn_fault_wrong);
}

bool urn_faults_off;

/* Parse the variables. returns: the number of faults; 0: none, or the variables make no sense */
static uint32_t
urn_fault_parse_all(struct urn_fault_spec *spec, uint64_t *seed)
{
	const char *text = secure_getenv(URN_FAULT_ENV), *told = secure_getenv(URN_FAULT_SEED_ENV);
	struct urn_fault_error error;
	uint32_t n = 0;

	if (text == NULL || text[0] == '\0' || urn_faults_off)
		return 0;
	if (told != NULL && told[0] != '\0' && urn_fault_seed(told, seed) != 0) {
		urn_fault_complain(URN_FAULT_SEED_ENV, 0, "not a number");
		return 0;
	}
	if (urn_fault_parse(text, spec, &n, &error) != 0) {
		urn_fault_complain(URN_FAULT_ENV, error.at, error.why);
		return 0;
	}
	return n;
}

static void
urn_fault_read(void)
{
	struct urn_fault_spec spec[URN_FAULT_MAX];
	struct urn_fault_state *s = &urn_fault_state;
	uint64_t seed = 0;
	uint32_t i, n = urn_fault_parse_all(spec, &seed);

	if (n == 0)
		return;
	for (i = 0; i < n; i++) {
		s->fault[i] =
			(struct urn_fault){.spec = spec[i], .random = seed + ((uint64_t)i << 32)};
		s->timed += spec[i].site >= URN_FAULT_EVENT;
	}
	urn_fault_cond_init();
	(void)pthread_atfork(urn_fault_fork_hold, urn_fault_fork_parent, urn_fault_fork_child);
	s->n = n;
}

int
urn_faults_read(void)
{
	(void)pthread_once(&urn_fault_once, urn_fault_read);
	return urn_fault_wrong[0] == '\0' ? 0 : urn_fail(EINVAL, "%s", urn_fault_wrong);
}

int
urn_faults_above(struct urn_verbs_ctx *v)
{
	struct urn_fault_state *s = &urn_fault_state;
	struct urn_fault_ctx *f;
	int err = urn_faults_read();

	if (err != 0 || s->n == 0)
		return err;
	err = urn_fault_call(URN_FAULT_OPEN_DEVICE, NULL);
	if (err != 0)
		return err;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return urn_fail(ENOMEM, "no memory for faults on demand");
	f->ops = *v->ops;
	f->real = v->ops;
	f->context = &v->vctx.context;
	urn_fault_calls_fill(f);
	urn_fault_completions_fill(f);
	v->ops = &f->ops;
	pthread_mutex_lock(&s->lock);
	LIST_INSERT_HEAD(&s->contexts, f, link);
	if (!s->opened) {
		s->opened = true;
		urn_fault_start(URN_FAULT_EVENT);
	}
	urn_fault_thread_start();
	pthread_mutex_unlock(&s->lock);
	return 0;
}
