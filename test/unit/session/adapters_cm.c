/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management of the test's adapters: events are the test's. */
#include "adapters.h"

#include "verbs/front.h"
#include "verbs/provider/cm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 8 };

struct below_end {
	struct urn_cm_end front;
	struct adapters_one *of;
	uint32_t life;
	LIST_ENTRY(below_end) link;	    /* open ones, newest first; `lock` protects it */
	struct urn_abi_cm_event ev[EVENTS]; /* those that wait, oldest first; `lock` */
	uint32_t events;		    /* entries of ev in use; `lock` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, below_end) open_ends;

static struct urn_cm_end *
end_open(struct ibv_context *c)
{
	struct below_end *e = adapters_object(c, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->front.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->of = adapters_of(c);
	e->life = atomic_load(&e->of->life);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&open_ends, e, link);
	pthread_mutex_unlock(&lock);
	return &e->front;
}

static void
end_close(struct urn_cm_end *end)
{
	struct below_end *e = (struct below_end *)end;

	pthread_mutex_lock(&lock);
	LIST_REMOVE(e, link);
	pthread_mutex_unlock(&lock);
	close(e->front.fd);
	free(e);
}

/* Let the test do something before a call returns. */
static void
meanwhile(const struct adapters_one *of, uint32_t id)
{
	void (*act)(uint32_t id) = atomic_load(&of->meanwhile);

	if (act != NULL)
		act(id);
}

/* Give an id. returns: 0; EIO: the adapter was lost */
static int
give(struct urn_cm_end *end, uint32_t *id)
{
	struct below_end *e = (struct below_end *)end;

	if (e->life != atomic_load(&e->of->life))
		return urn_fail(EIO, "the test has taken the adapter away");
	*id = atomic_fetch_add(&e->of->ids, 1) + 1;
	return 0;
}

static int
end_listen(struct urn_cm_end *end, uint64_t service, uint64_t cookie, uint32_t backlog,
	   uint32_t *id)
{
	struct adapters_one *of = ((struct below_end *)end)->of;
	int err = give(end, id);

	(void)cookie, (void)backlog;
	if (err != 0 || urn_cm_is_session_service(service))
		return err;
	if (atomic_load(&of->deaf))
		return urn_fail(ENOSPC, "the test refuses listeners");
	atomic_fetch_add(&of->listens, 1);
	meanwhile(of, *id);
	return 0;
}

static int
end_connect(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	int err = give(end, id);

	(void)p;
	if (err == 0)
		meanwhile(((struct below_end *)end)->of, *id);
	return err;
}

/* returns: the test's errno value for a call that would do; else the call's */
static int
denied(const struct urn_cm_end *end, int err)
{
	int denial = atomic_load(&((const struct below_end *)end)->of->denial);

	return err == 0 && denial != 0 ? urn_fail(denial, "the test denies this") : err;
}

static int
end_accept(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_accept *p)
{
	uint32_t unused;

	(void)id, (void)p;
	return denied(end, give(end, &unused));
}

static int
end_say(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	uint32_t unused;

	(void)id, (void)data, (void)len;
	return give(end, &unused);
}

static int
end_destroy(struct urn_cm_end *end, uint32_t id)
{
	uint32_t unused;

	(void)id;
	return denied(end, give(end, &unused));
}

static int
end_event(struct urn_cm_end *end, struct urn_abi_cm_event *ev)
{
	struct below_end *e = (struct below_end *)end;
	uint64_t n;
	int err = EAGAIN;

	pthread_mutex_lock(&lock);
	if (e->events > 0) {
		*ev = e->ev[0];
		e->events--;
		for (uint32_t i = 0; i < e->events; i++)
			e->ev[i] = e->ev[i + 1];
		err = 0;
	} else if (e->life != atomic_load(&e->of->life)) { /* an adapter may have fetched some */
		err = urn_fail(EIO, "the test has taken the adapter away");
	} else {
		(void)!read(e->front.fd, &n, sizeof(n));
	}
	pthread_mutex_unlock(&lock);
	if (err == 0)
		meanwhile(e->of, ev->id);
	return err;
}

const struct urn_verbs_cm_ops adapters_cm = {
	.open = end_open,
	.close = end_close,
	.listen = end_listen,
	.connect = end_connect,
	.resolve = end_connect,
	.accept = end_accept,
	.establish = end_say,
	.disconnect = end_say,
	.destroy = end_destroy,
	.event = end_event,
};

void
adapters_event(const struct urn_abi_cm_event *ev)
{
	const uint64_t one = 1;
	struct below_end *e;

	pthread_mutex_lock(&lock);
	e = LIST_FIRST(&open_ends);
	assert_true(e != NULL && e->events < EVENTS);
	e->ev[e->events++] = *ev;
	assert_int_equal(write(e->front.fd, &one, sizeof(one)), sizeof(one));
	pthread_mutex_unlock(&lock);
}
