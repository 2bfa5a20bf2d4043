/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends, receives and ends of a stream. A call gives the machine one send or receive at a time, and
 * waits for it. The memory of a send or receive is one of two kinds: registered, so that the bytes
 * may go without a copy; or plain. Plain sends are shorter than the floor of the thresholds, so
 * that the machine copies them; plain receives are read into the stream's bounce, when they are
 * read into at all.
 */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <errno.h>
#include <string.h>

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Why a call can't begin. returns: 0; EAGAIN: the connection is not up yet; or an errno value */
static int
begun(struct urn_stream *s)
{
	(void)urn_sh_progress(s);
	if (s->phase == URN_SH_BROKEN)
		return urn_fail(s->err, "%s", s->why);
	return s->phase == URN_SH_UP ? 0 : urn_fail(EAGAIN, "the connection is not up yet");
}

/* The error of a call that the machine refused, or ended. */
static int
failure(struct urn_stream *s)
{
	int err = urn_sh_error(s);

	if (err)
		return urn_fail(err, "%s", s->why);
	return urn_fail(EPIPE, "this end has shut down, or the peer reads no more");
}

bool
urn_sh_enter(pthread_mutex_t *direction, uint32_t flags)
{
	if (flags & URN_STREAM_DONTWAIT)
		return pthread_mutex_trylock(direction) == 0;
	pthread_mutex_lock(direction);
	return true;
}

/*
 * Give the memory of an op back, without the lock: a region's end waits for the dataplane. The
 * caller has the direction, so nobody else touches the op. A peer could go on to use a region that
 * can't be taken back, so the connection ends then.
 *
 * returns: 0 or an errno value
 */
static int
give_back(struct urn_stream *s, struct urn_sh_op *op)
{
	int err;

	if (!op->mr && !op->known)
		return 0;
	pthread_mutex_unlock(&s->lock);
	err = urn_sh_unregister(s->node, op);
	pthread_mutex_lock(&s->lock);
	if (err)
		urn_st_abort(&s->st);
	return err;
}

/* ---- sends */

uint64_t
urn_sh_room(const struct urn_stream *s)
{
	uint32_t credits = s->st.tx.limit - s->st.tx.data;
	uint32_t slots = URN_SH_SLOTS - (s->st.emitted - s->st.completed);

	if (s->st.tx.count || s->st.state != URN_ST_S_OPEN)
		return 0;
	return least(credits, slots) * (uint64_t)s->st.cfg.peer.size;
}

/* True when a send goes without a copy whatever its size. */
static bool
is_forced(const struct urn_stream *s)
{
	return s->o.transfer == URN_STREAM_READ || s->o.transfer == URN_STREAM_WRITE;
}

/* Prepare the memory of a send: all of it registered, or a first part of it plain. returns: 0 or an
 * errno value */
static int
prepare_send(struct urn_stream *s, struct urn_st_area *a, uint32_t flags)
{
	bool large = a->bytes >= s->st.tx.threshold.value && s->o.transfer != URN_STREAM_COPY;

	if (flags & URN_STREAM_DONTWAIT) {
		a->bytes = least(least(a->bytes, urn_sh_room(s)), URN_SH_FLOOR - 1);
		return a->bytes ? 0 : urn_fail(EAGAIN, "no buffer is free");
	}
	a->bytes = least(a->bytes, URN_SH_ONCE_MAX);
	if (is_forced(s))
		return urn_sh_register(s->node, &s->tx, a, IBV_ACCESS_REMOTE_READ);
	/* Memory that can't be registered is copied. */
	if (!large || urn_sh_register(s->node, &s->tx, a, IBV_ACCESS_REMOTE_READ) != 0)
		a->bytes = least(a->bytes, URN_SH_FLOOR - 1);
	return 0;
}

/* Send a part. returns: 0, *done moved on; or an errno value */
static int
send_part(struct urn_stream *s, const uint8_t *from, size_t bytes, uint32_t flags, size_t *done)
{
	struct urn_st_area a = {.addr = (uintptr_t)from, .bytes = bytes};
	int err = urn_sh_error(s), stays;

	/* A broken connection has no room, and is no reason to wait. */
	if (err || s->st.tx.shut || s->st.tx.stopped)
		return failure(s);
	err = prepare_send(s, &a, flags);
	if (err)
		return err;
	s->tx.open = true;
	err = urn_st_send(&s->st, &a);
	if (err)
		s->tx.open = false;
	while (s->tx.open)
		urn_sh_wait(s, -1);
	stays = give_back(s, &s->tx);
	if (err)
		return failure(s);
	*done += s->tx.bytes;
	if (stays)
		return stays;
	return s->tx.status == URN_ST_OK ? 0 : failure(s);
}

int
urn_sh_send_flags(const struct urn_stream *s, uint32_t flags)
{
	if (flags & ~(uint32_t)URN_STREAM_DONTWAIT)
		return urn_fail(EINVAL, "no such flag of urn_stream_send()");
	if (flags && is_forced(s))
		return urn_fail(EOPNOTSUPP, "a forced kind of transfer has to wait");
	return 0;
}

ssize_t
urn_sh_send(struct urn_stream *s, const void *data, size_t len, uint32_t flags)
{
	const uint8_t *from = data;
	size_t done = 0;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	while (!err && done < len) {
		err = begun(s);
		if (err == EAGAIN && !flags) {
			urn_sh_wait(s, -1);
			err = 0;
		} else if (!err) {
			err = send_part(s, from + done, len - done, flags, &done);
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (err)
		errno = err;
	return done || !err ? (ssize_t)done : -1;
}

ssize_t
urn_stream_send(struct urn_stream *s, const void *data, size_t len, uint32_t flags)
{
	ssize_t n;

	if (urn_sh_send_flags(s, flags) != 0)
		return -1;
	if (!urn_sh_enter(&s->sending, flags))
		return urn_fail(EAGAIN, "another call sends"), -1;
	n = urn_sh_send(s, data, len, flags);
	pthread_mutex_unlock(&s->sending);
	return n;
}

/* ---- receives */

bool
urn_sh_readable(const struct urn_stream *s)
{
	return s->begun && (urn_st_readable(&s->st) || urn_st_offered(&s->st));
}

/* Prepare the memory of a receive. returns: enum urn_st_how */
static uint32_t
prepare_recv(struct urn_stream *s, struct urn_st_area *a, uint32_t flags)
{
	const struct urn_st_rx *rx = &s->st.rx;
	bool waits = !(flags & URN_STREAM_DONTWAIT), read = urn_st_offered(&s->st);
	bool told = waits && rx->pieces == 0 && a->bytes >= rx->threshold.value;
	int access = IBV_ACCESS_LOCAL_WRITE | (told ? IBV_ACCESS_REMOTE_WRITE : 0);

	a->bytes = least(a->bytes, URN_SH_ONCE_MAX);
	s->to = NULL;
	if (a->bytes >= URN_SH_FLOOR && (read || told) && s->st.state == URN_ST_S_OPEN &&
	    urn_sh_register(s->node, &s->rx, a, access) == 0)
		return told ? 0 : URN_ST_UNANNOUNCED;
	s->to = (uint8_t *)(uintptr_t)a->addr;
	a->addr = (uintptr_t)s->mem;
	a->lkey = s->mr->lkey;
	a->bytes = least(a->bytes, URN_SH_FLOOR);
	return URN_ST_UNANNOUNCED;
}

/* Wait for a receive, or take it back when it may not wait. */
static void
wait_received(struct urn_stream *s, uint32_t flags)
{
	while (s->rx.open)
		if (!(flags & URN_STREAM_DONTWAIT) || urn_st_cancel(&s->st, 0) != 0)
			urn_sh_wait(s, -1);
}

/* Receive a part. returns: 0, *bytes set, 0 at the end of the stream; or an errno value */
static int
recv_part(struct urn_stream *s, uint8_t *to, size_t room, uint32_t flags, size_t *bytes)
{
	struct urn_st_area a = {.addr = (uintptr_t)to, .bytes = room};
	uint32_t how;
	int err, stays;

	*bytes = 0;
	if (flags & URN_STREAM_DONTWAIT && !urn_sh_readable(s) && !s->st.rx.stop)
		return urn_fail(EAGAIN, "no byte waits");
	how = prepare_recv(s, &a, flags);
	s->rx.open = true;
	err = urn_st_receive(&s->st, &a, how);
	if (err)
		s->rx.open = false;
	wait_received(s, flags);
	s->to = NULL;
	stays = give_back(s, &s->rx);
	if (err == EPIPE)
		return 0;
	if (err)
		return failure(s);
	*bytes = s->rx.bytes;
	if (stays)
		return stays;
	if (s->rx.status == URN_ST_CANCELLED)
		return urn_fail(EAGAIN, "no byte waits");
	return s->rx.status == URN_ST_FAILED ? failure(s) : 0;
}

int
urn_sh_recv_flags(uint32_t flags)
{
	const uint32_t all = URN_STREAM_DONTWAIT | URN_STREAM_WAITALL;

	return flags & ~all ? urn_fail(EINVAL, "no such flag of urn_stream_recv()") : 0;
}

ssize_t
urn_sh_recv(struct urn_stream *s, void *data, size_t room, uint32_t flags)
{
	size_t done = 0, bytes = 1;
	bool more = room > 0;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	while (!err && more) {
		err = begun(s);
		if (err == EAGAIN && !(flags & URN_STREAM_DONTWAIT)) {
			urn_sh_wait(s, -1);
			err = 0;
		} else if (!err) {
			err = recv_part(s, (uint8_t *)data + done, room - done, flags, &bytes);
			done += bytes;
			more = bytes && done < room && flags & URN_STREAM_WAITALL;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (err)
		errno = err;
	return done || !err ? (ssize_t)done : -1;
}

ssize_t
urn_stream_recv(struct urn_stream *s, void *data, size_t room, uint32_t flags)
{
	ssize_t n;

	if (urn_sh_recv_flags(flags) != 0)
		return -1;
	if (!urn_sh_enter(&s->receiving, flags))
		return urn_fail(EAGAIN, "another call receives"), -1;
	n = urn_sh_recv(s, data, room, flags);
	pthread_mutex_unlock(&s->receiving);
	return n;
}

/* ---- ends */

int
urn_stream_shutdown(struct urn_stream *s, int how)
{
	int err;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return urn_fail(EINVAL, "%d is no way to shut down", how);
	pthread_mutex_lock(&s->lock);
	err = begun(s);
	if (err) {
		err = urn_fail(ENOTCONN, "the connection is not up");
	} else {
		if (how != SHUT_RD)
			urn_st_shutdown(&s->st);
		if (how != SHUT_WR)
			urn_st_shutdown_read(&s->st);
		urn_sh_happened(s);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

int
urn_stream_abort(struct urn_stream *s)
{
	pthread_mutex_lock(&s->lock);
	(void)urn_sh_progress(s);
	if (s->begun && s->phase == URN_SH_UP)
		urn_st_abort(&s->st);
	else if (s->phase != URN_SH_BROKEN)
		urn_sh_break(s, ECONNABORTED, urn_st_reason_text(URN_ST_R_ABORTED));
	urn_sh_happened(s);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* True when the peer has all that was sent. */
static bool
is_delivered(const struct urn_stream *s)
{
	return s->closed || (s->st.tx.state == URN_ST_TX_ENDED && s->st.fin_arrived);
}

/* Wait until a condition of the end holds, or for `ms`. */
static void
wait_end(struct urn_stream *s, bool (*done)(const struct urn_stream *), uint64_t ms)
{
	uint64_t end = urn_sh_now() + ms, now = end - ms;

	for (; !done(s) && !s->fenced && now < end; now = urn_sh_now())
		urn_sh_wait(s, (int)(end - now));
}

static bool
is_closed(const struct urn_stream *s)
{
	return s->closed;
}

static bool
is_decided(const struct urn_stream *s)
{
	return s->phase != URN_SH_ANSWERED;
}

/* True when a connection broke that had brought the peer all messages, but for Fin and those behind
 * it: no byte was lost. */
static bool
is_drained(const struct urn_stream *s)
{
	bool ended = s->st.tx.state == URN_ST_TX_ENDED && s->st.fin - s->st.completed <= 1;

	return s->st.reason == URN_ST_R_DOWN && (ended || s->st.emitted == s->st.completed);
}

/* End the stream in both ways. returns: 0, or why the peer has not all that was sent */
static int
finish(struct urn_stream *s)
{
	int err = 0;

	urn_st_close(&s->st);
	wait_end(s, is_delivered, s->o.linger_ms);
	if (is_delivered(s))
		wait_end(s, is_closed, least(s->o.linger_ms, URN_SH_END_MS));
	else if (urn_sh_error(s) == 0)
		err = ETIMEDOUT;
	else if (!is_drained(s) && s->st.reason != URN_ST_R_ABORTED)
		err = failure(s);
	if (err == ETIMEDOUT)
		urn_st_abort(&s->st);
	/* An Abort leaves before the queue pair goes. */
	while (s->died && !s->fenced)
		urn_sh_wait(s, URN_SH_TICK_MS);
	if (err == ETIMEDOUT)
		(void)urn_fail(err, "the peer did not take all that was sent in %u ms",
			       s->o.linger_ms);
	return err;
}

bool
urn_sh_end(struct urn_stream *s, uint32_t ms)
{
	bool over = true;

	pthread_mutex_lock(&s->lock);
	(void)urn_sh_progress(s);
	wait_end(s, is_decided, ms);
	if (s->begun && s->phase == URN_SH_UP) {
		urn_st_close(&s->st);
		wait_end(s, is_delivered, ms);
		over = is_delivered(s) || s->fenced;
	}
	pthread_mutex_unlock(&s->lock);
	return over;
}

bool
urn_sh_ended(struct urn_stream *s)
{
	bool over;

	pthread_mutex_lock(&s->lock);
	(void)urn_sh_progress(s);
	if (s->begun && s->phase == URN_SH_UP)
		urn_st_close(&s->st);
	over = s->closed || s->fenced || s->phase == URN_SH_BROKEN;
	pthread_mutex_unlock(&s->lock);
	return over;
}

int
urn_stream_close(struct urn_stream *s)
{
	struct urn_stream_node *n;
	int err = 0;

	if (!s)
		return 0;
	n = s->node;
	pthread_mutex_lock(&s->lock);
	(void)urn_sh_progress(s);
	/* Nothing was sent, so there is nothing to wait for but the way in which it ends. */
	wait_end(s, is_decided, least(s->o.linger_ms, URN_SH_END_MS));
	if (s->begun && s->phase == URN_SH_UP)
		err = finish(s);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&n->lock);
	TAILQ_REMOVE(&n->streams, s, entry);
	pthread_mutex_unlock(&n->lock);
	urn_sh_free(s);
	if (err)
		errno = err;
	return err;
}

const char *
urn_stream_error(struct urn_stream *s)
{
	bool ended;

	/* The text is written once, under the lock. */
	pthread_mutex_lock(&s->lock);
	ended = s->why[0] != '\0';
	pthread_mutex_unlock(&s->lock);
	return ended ? s->why : "";
}

int
urn_stream_get_stats(struct urn_stream *s, struct urn_stream_stats *stats)
{
	const uint64_t *count = s->st.count;

	*stats = (struct urn_stream_stats){0};
	pthread_mutex_lock(&s->lock);
	if (s->begun)
		*stats = (struct urn_stream_stats){
			.sent = s->st.tx.sent,
			.received = s->st.rx.arrived,
			.copied = count[URN_ST_D_COPY],
			.offered = count[URN_ST_D_OFFER_READ] + count[URN_ST_D_OFFER_WRITE],
			.written = count[URN_ST_D_WRITE],
			.read = count[URN_ST_D_READ],
			.asked_small = count[URN_ST_D_SMALL],
			.tx_threshold = s->st.tx.threshold.value,
			.rx_threshold = s->st.rx.threshold.value,
		};
	pthread_mutex_unlock(&s->lock);
	return 0;
}
