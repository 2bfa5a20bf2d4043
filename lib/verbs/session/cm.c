/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management of the virtual device. Ids and their events outlive the primary adapter
 * (FO-1): an end of the program has an end of the primary adapter below, and a new one when that
 * comes back. Listeners are made anew there. A connection whose session lives needs no id below:
 * its end is told by the session layer of the peer, by LEAVE, instead of a DREQ.
 *
 * Each operation is a call of the program in the sense of calls.c, so the end below and listeners
 * stay as they are for as long as the operation lasts. The lock of an end protects its ids against
 * other operations, and is taken after that of the device. Fetching events and making ids exclude
 * each other, because an event may be faster than the answer to the call that makes its id.
 */
#include "verbs/provider/cm.h"
#include "verbs/front.h"
#include "verbs/session/cm_end.h"
#include "verbs/session/heal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct urn_sv_end *
urn_sv_end_of(struct urn_cm_end *end)
{
	return (struct urn_sv_end *)end;
}

/* ---- beginning and end */

static void
urn_sv_end_free(struct urn_sv_end *e)
{
	urn_cm_end_close(e->below);
	if (e->event_fd >= 0)
		close(e->event_fd);
	if (e->front.fd >= 0)
		close(e->front.fd);
	pthread_mutex_destroy(&e->lock);
	pthread_mutex_destroy(&e->making);
	free(e);
}

/* Make the descriptors. returns: 0 or an errno value with its text */
static int
urn_sv_end_fds(struct urn_sv_end *e)
{
	e->front.fd = epoll_create1(EPOLL_CLOEXEC);
	e->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->front.fd < 0 || e->event_fd < 0)
		return urn_fail(errno, "no descriptor for connection management: %s",
				strerror(errno));
	return urn_sv_end_watch(e, e->event_fd);
}

static struct urn_cm_end *
urn_sv_end_open(struct ibv_context *c)
{
	struct urn_sv_end *e = urn_object_alloc(sizeof(*e));
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err;

	if (e == NULL)
		return NULL;
	e->ctx = ctx;
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->making, NULL);
	urn_sv_cm_begin(&e->ids);
	err = urn_sv_end_fds(e);
	urn_sv_enter(ctx);
	if (err == 0)
		err = urn_sv_thread_start(ctx); /* which learns of the loss of the adapter */
	if (err == 0)
		err = urn_sv_end_make(e);
	if (err == 0) {
		urn_sv_lock(ctx);
		LIST_INSERT_HEAD(&ctx->ends, e, link);
		urn_sv_unlock(ctx);
	}
	urn_sv_exit(ctx);
	if (err == 0)
		return &e->front;
	urn_sv_end_free(e);
	errno = err;
	return NULL;
}

static void
urn_sv_end_close(struct urn_cm_end *end)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	struct urn_sv_ctx *ctx = e->ctx;

	/* The device may be closed already, and the adapter with it: an adapter's end outlives its
	 * context, and makes no call then. */
	if (ctx == NULL) {
		if (!e->forked)
			urn_sv_cm_end(&e->ids);
		urn_sv_end_free(e);
		return;
	}
	urn_sv_enter(ctx);
	urn_sv_lock(ctx);
	LIST_REMOVE(e, link);
	urn_sv_unlock(ctx);
	if (!e->forked) /* a thread of the parent may have been changing them */
		urn_sv_cm_end(&e->ids);
	urn_sv_end_free(e);
	urn_sv_exit(ctx);
}

/* ---- operations of one id */

/* Begin an operation. returns: 0; EIO with its text: the device was closed, or is the parent's */
static int
urn_sv_end_enter(const struct urn_sv_end *e)
{
	if (e->ctx == NULL)
		return urn_fail(EIO, "the virtual device was closed");
	if (e->forked)
		return urn_fail(EIO, "the virtual device was opened before fork()");
	urn_sv_enter(e->ctx);
	return 0;
}

/* In an operation. returns: 0; EIO with its text: there is no end below */
static int
urn_sv_end_there(const struct urn_sv_end *e)
{
	return e->below != NULL && !e->ctx->dead[0]
		       ? 0
		       : urn_fail(EIO, "the primary adapter of the virtual device is away");
}

/* The adapter's number of an id, which is 0 if the adapter that gave it was lost. */
static uint32_t
urn_sv_end_number(struct urn_sv_end *e, uint32_t front)
{
	struct urn_sv_cm_id *id;
	uint32_t below;

	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_find(&e->ids, front);
	below = id != NULL ? id->below : 0;
	pthread_mutex_unlock(&e->lock);
	return below;
}

/*
 * An id was given by the adapter: give the program one. An adapter whose loss was noticed meanwhile
 * has lost this id, too.
 *
 * like: its fields that the caller knows
 */
static int
urn_sv_end_given(struct urn_sv_end *e, uint32_t below, const struct urn_sv_cm_id *like,
		 uint32_t *front)
{
	struct urn_sv_cm_id *id;

	urn_sv_lock(e->ctx);
	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_make(&e->ids, below, like->state);
	if (id != NULL) {
		id->service = like->service;
		id->cookie = like->cookie;
		id->backlog = like->backlog;
		urn_sv_cm_of(&e->ids, id, like->qpn);
		*front = id->front;
	}
	if (e->ctx->dead[0])
		urn_sv_end_lost(e);
	pthread_mutex_unlock(&e->lock);
	urn_sv_unlock(e->ctx);
	if (id != NULL)
		return 0;
	(void)urn_cm_end_destroy(e->below, below);
	return ENOMEM;
}

/* An operation on an id has succeeded. */
static void
urn_sv_end_did(struct urn_sv_end *e, uint32_t front, enum urn_sv_cm_state state)
{
	struct urn_sv_cm_id *id;

	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_find(&e->ids, front);
	if (id != NULL && id->state < state)
		id->state = state;
	pthread_mutex_unlock(&e->lock);
}

static int
urn_sv_end_listen(struct urn_cm_end *end, uint64_t service, uint64_t cookie, uint32_t backlog,
		  uint32_t *id)
{
	const struct urn_sv_cm_id like = {.state = URN_SV_CM_LISTENER,
					  .service = service,
					  .cookie = cookie,
					  .backlog = backlog & URN_CM_BACKLOG_BITS};
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t given;
	int err;

	if (backlog & URN_CM_TAKE)
		return urn_unsupported("taking over a request, by a session");
	err = urn_sv_end_enter(e);
	if (err != 0)
		return err;
	/* Nobody shares the service of a session. */
	backlog &= URN_CM_BACKLOG_BITS;
	pthread_mutex_lock(&e->making);
	err = urn_sv_end_there(e);
	if (err == 0)
		err = urn_cm_end_listen(e->below, service, cookie, backlog, &given);
	if (err == 0)
		err = urn_sv_end_given(e, given, &like, id);
	pthread_mutex_unlock(&e->making);
	urn_sv_exit(e->ctx);
	return err;
}

/* Ask by one of two calls. */
static int
urn_sv_end_ask(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id,
	       int (*call)(struct urn_cm_end *, struct urn_abi_cm_connect *, uint32_t *))
{
	const struct urn_sv_cm_id like = {
		.state = URN_SV_CM_ASKED, .cookie = p->cookie, .qpn = p->qpn};
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t given;
	int err = urn_sv_end_enter(e);

	if (err != 0)
		return err;
	pthread_mutex_lock(&e->making);
	err = urn_sv_end_there(e);
	if (err == 0)
		err = call(e->below, p, &given);
	if (err == 0)
		err = urn_sv_end_given(e, given, &like, id);
	pthread_mutex_unlock(&e->making);
	urn_sv_exit(e->ctx);
	return err;
}

static int
urn_sv_end_connect(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_sv_end_ask(end, p, id, urn_cm_end_connect);
}

static int
urn_sv_end_resolve(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_sv_end_ask(end, p, id, urn_cm_end_resolve);
}

/* Begin an operation on an id. below: set to the adapter's number. returns: 0 or EIO with its text
 */
static int
urn_sv_end_begin(struct urn_sv_end *e, uint32_t front, uint32_t *below)
{
	int err = urn_sv_end_enter(e);

	if (err != 0)
		return err;
	err = urn_sv_end_there(e);
	*below = err == 0 ? urn_sv_end_number(e, front) : 0;
	if (*below != 0)
		return 0;
	urn_sv_exit(e->ctx);
	return err != 0 ? err
			: urn_fail(EIO, "id %u was the primary adapter's before that was lost",
				   front);
}

/* A request is accepted. returns: like urn_sv_cm_accepts() */
static bool
urn_sv_end_accepts(struct urn_sv_end *e, uint32_t front, uint32_t qpn)
{
	struct urn_sv_cm_id *id;
	bool is;

	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_find(&e->ids, front);
	is = id != NULL && urn_sv_cm_accepts(id);
	if (is)
		urn_sv_cm_of(&e->ids, id, qpn);
	pthread_mutex_unlock(&e->lock);
	return is;
}

/* ... in vain */
static void
urn_sv_end_unaccepts(struct urn_sv_end *e, uint32_t front)
{
	struct urn_sv_cm_id *id;

	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_find(&e->ids, front);
	if (id != NULL) {
		urn_sv_cm_unaccepts(id);
		urn_sv_cm_of(&e->ids, id, 0);
	}
	pthread_mutex_unlock(&e->lock);
}

static int
urn_sv_end_accept(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_accept *p)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t below;
	bool accepts;
	int err = urn_sv_end_begin(e, id, &below);

	if (err != 0)
		return err;
	/* The peer's answer may come before this call returns. */
	accepts = urn_sv_end_accepts(e, id, p->qpn);
	err = urn_cm_end_accept(e->below, below, p);
	if (err != 0 && accepts)
		urn_sv_end_unaccepts(e, id);
	urn_sv_exit(e->ctx);
	return err;
}

static int
urn_sv_end_reject(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_reject *p)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t below;
	int err = urn_sv_end_begin(e, id, &below);

	if (err != 0)
		return err;
	err = urn_cm_end_reject(e->below, below, p);
	if (err == 0)
		urn_sv_end_did(e, id, URN_SV_CM_OVER);
	urn_sv_exit(e->ctx);
	return err;
}

static int
urn_sv_end_establish(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t below;
	int err = urn_sv_end_begin(e, id, &below);

	if (err != 0)
		return err;
	err = urn_cm_end_establish(e->below, below, data, len);
	if (err == 0)
		urn_sv_end_did(e, id, URN_SV_CM_UP);
	urn_sv_exit(e->ctx);
	return err;
}

/* End a connection whose adapter was lost. returns: like urn_sv_cm_quit() */
static int
urn_sv_end_quit(struct urn_sv_end *e, uint32_t front)
{
	struct urn_sv_cm_id *id;
	int err = 0;

	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_find(&e->ids, front);
	if (id == NULL)
		err = urn_fail(ENOTCONN, "there is no id %u", front);
	else
		err = urn_sv_cm_quit(&e->ids, id);
	urn_sv_end_fire(e);
	pthread_mutex_unlock(&e->lock);
	return err;
}

static int
urn_sv_end_disconnect(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t below;
	int err = urn_sv_end_enter(e);

	if (err != 0)
		return err;
	below = urn_sv_end_there(e) == 0 ? urn_sv_end_number(e, id) : 0;
	err = below != 0 ? urn_cm_end_disconnect(e->below, below, data, len) : EIO;
	if (err == 0)
		urn_sv_end_did(e, id, URN_SV_CM_ENDS);
	else if (err == EIO)
		err = urn_sv_end_quit(e, id);
	urn_sv_exit(e->ctx);
	return err;
}

/* The program has no use of an id any more. returns: 0; EINVAL with its text: there is none */
static int
urn_sv_end_drop(struct urn_sv_end *e, uint32_t front)
{
	struct urn_sv_cm_id *id;

	pthread_mutex_lock(&e->lock);
	id = urn_sv_cm_find(&e->ids, front);
	if (id != NULL)
		urn_sv_cm_drop(id, &e->ids);
	urn_sv_end_fire(e);
	pthread_mutex_unlock(&e->lock);
	return id != NULL ? 0 : urn_fail(EINVAL, "there is no id %u", front);
}

static int
urn_sv_end_destroy(struct urn_cm_end *end, uint32_t id)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	uint32_t below;
	int err;

	if (e->forked)
		return 0;
	if (urn_sv_end_enter(e) != 0)
		return urn_sv_end_drop(e, id);
	below = urn_sv_end_there(e) == 0 ? urn_sv_end_number(e, id) : 0;
	err = below != 0 ? urn_cm_end_destroy(e->below, below) : 0;
	/* An id that the adapter does not know, or can't name any more, is to go all the same. */
	if (err != EDQUOT && err != ENOMEM)
		err = urn_sv_end_drop(e, id);
	urn_sv_exit(e->ctx);
	return err;
}

/* ---- events */

/* Give an event of the adapter our numbers. An adapter whose loss was noticed meanwhile has lost
 * its requests, and its other ids were told. returns: like urn_sv_cm_came() */
static int
urn_sv_end_came(struct urn_sv_end *e, struct urn_abi_cm_event *ev)
{
	int err = EAGAIN;

	urn_sv_lock(e->ctx);
	pthread_mutex_lock(&e->lock);
	if (!e->ctx->dead[0])
		err = urn_sv_cm_came(&e->ids, ev);
	pthread_mutex_unlock(&e->lock);
	urn_sv_unlock(e->ctx);
	return err;
}

/* Take an event of the adapter. returns: 0; EAGAIN: there is none */
static int
urn_sv_end_fetch(struct urn_sv_end *e, struct urn_abi_cm_event *ev)
{
	int err = EAGAIN;

	while (e->below != NULL && err != 0) {
		uint32_t id;

		err = urn_cm_end_event(e->below, ev);
		if (err == EAGAIN)
			return EAGAIN;
		if (err != 0) {
			urn_sv_end_over(e, e->ctx); /* the device's thread sees to the rest */
			return EAGAIN;
		}
		id = ev->id;
		err = urn_sv_end_came(e, ev);
		if (err == ENOMEM)
			(void)urn_cm_end_destroy(e->below, id); /* the request is refused */
	}
	return err;
}

static int
urn_sv_end_event(struct urn_cm_end *end, struct urn_abi_cm_event *ev)
{
	struct urn_sv_end *e = urn_sv_end_of(end);
	bool own;
	int err;

	if (e->ctx == NULL || e->forked)
		return urn_fail(EIO, "the virtual device was closed, or opened before fork()");
	pthread_mutex_lock(&e->lock);
	own = urn_sv_cm_own(&e->ids, ev);
	urn_sv_end_fire(e);
	pthread_mutex_unlock(&e->lock);
	if (own)
		return 0;
	/* No wait for a replacement: there is none of an adapter that is not lost, and the event of
	 * one that is tells nothing. */
	if (!urn_sv_enter_now(e->ctx))
		return EAGAIN;
	pthread_mutex_lock(&e->making);
	err = urn_sv_end_fetch(e, ev);
	pthread_mutex_unlock(&e->making);
	urn_sv_exit(e->ctx);
	return err;
}

const struct urn_verbs_cm_ops urn_sv_cm = {
	.open = urn_sv_end_open,
	.close = urn_sv_end_close,
	.listen = urn_sv_end_listen,
	.connect = urn_sv_end_connect,
	.resolve = urn_sv_end_resolve,
	.accept = urn_sv_end_accept,
	.reject = urn_sv_end_reject,
	.establish = urn_sv_end_establish,
	.disconnect = urn_sv_end_disconnect,
	.destroy = urn_sv_end_destroy,
	.event = urn_sv_end_event,
};
