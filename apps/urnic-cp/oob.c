/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob.h"

#include "common/clock.h"
#include "common/text.h"
#include "opts.h"
#include "proto.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAGIC 0x7563706fu
#define PROTOCOL 1u
#define CONNECT_TRIES 200u /* 10 ms apart */

struct frame_head {
	uint32_t magic;
	uint16_t protocol;
	uint16_t type;
	uint32_t length; /* bytes of the body */
};
_Static_assert(sizeof(struct frame_head) == CP_FRAME_HEAD, "frame head");

static const struct {
	const char *name;
	uint32_t length; /* bytes of the body */
} frames[CP_FRAMES] = {
	[CP_SILENCE] = {"silence", 0},
	[CP_OFFER] = {"OFFER", sizeof(struct cp_offer)},
	[CP_READY] = {"READY", sizeof(struct cp_ready)},
	[CP_START] = {"START", sizeof(struct cp_start)},
	[CP_GO] = {"GO", 0},
	[CP_DONE] = {"DONE", sizeof(struct cp_done)},
	[CP_FAIL] = {"FAIL", sizeof(struct cp_fail)},
};

void
cp_oob_init(struct cp_oob *oob, int fd, const char *peer)
{
	memset(oob, 0, sizeof(*oob));
	oob->fd = fd;
	oob->peer = peer;
}

void
cp_oob_close(struct cp_oob *oob)
{
	if (oob->fd >= 0)
		close(oob->fd);
	oob->fd = -1;
}

/* Handle a failed send: the peer is gone, and may have sent a reason before. returns -1 */
static int
say_failed(struct cp_oob *oob, int code, struct urn_err *err)
{
	union cp_body body;

	if (code == EPIPE)
		cp_oob_look(oob, CP_SILENCE, &body, err);
	if (!oob->peer_said)
		urn_err_set(err, "%s has gone (%s).", oob->peer, strerror(code));
	oob->peer_failed = true;
	return -1;
}

int
cp_oob_say(struct cp_oob *oob, enum cp_frame_type type, const void *body, struct urn_err *err)
{
	struct frame_head head = {MAGIC, PROTOCOL, (uint16_t)type, frames[type].length};
	uint8_t buf[sizeof(oob->buf)];
	size_t len = sizeof(head) + head.length, done = 0;

	memcpy(buf, &head, sizeof(head));
	if (head.length > 0)
		memcpy(buf + sizeof(head), body, head.length);
	while (done < len) {
		ssize_t n = send(oob->fd, buf + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR && !urn_stop_requested())
			continue;
		if (n < 0)
			return say_failed(oob, errno, err);
		done += (size_t)n;
	}
	return 0;
}

void
cp_oob_fail(struct cp_oob *oob, const char *text)
{
	struct cp_fail body = {{0}};
	struct urn_err ignored;

	/* Do not send when the peer has gone or gave up first. */
	if (oob->fd < 0 || oob->peer_failed)
		return;
	snprintf(body.text, sizeof(body.text), "%s", text);
	cp_oob_say(oob, CP_FAIL, &body, &ignored);
}

/* Bytes of the frame that is being read, as far as its head is there. -1: malformed */
static ssize_t
frame_length(const struct cp_oob *oob)
{
	struct frame_head head;

	if (oob->have < sizeof(head))
		return sizeof(head);
	memcpy(&head, oob->buf, sizeof(head));
	if (head.magic != MAGIC || head.protocol != PROTOCOL ||
	    head.type == CP_SILENCE || head.type >= CP_FRAMES || head.length != frames[head.type].length)
		return -1;
	return (ssize_t)(sizeof(head) + head.length);
}

/* Read the available bytes of one frame. returns: 1 whole, 0 not yet, -1 with *err */
static int
fill(struct cp_oob *oob, struct urn_err *err)
{
	for (;;) {
		ssize_t want = frame_length(oob), n;

		if (want < 0) {
			oob->peer_failed = true;
			urn_err_set(err, "%s speaks another protocol; use urnic-cp of the same "
					 "release on both sides.", oob->peer);
			return -1;
		}
		if (oob->have >= sizeof(struct frame_head) && oob->have == (size_t)want)
			return 1;
		n = recv(oob->fd, oob->buf + oob->have, (size_t)want - oob->have, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n <= 0) {
			oob->peer_failed = true;
			urn_err_set(err, "%s went away in the middle%s%s.", oob->peer,
				    n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
			return -1;
		}
		oob->have += (size_t)n;
	}
}

int
cp_oob_look(struct cp_oob *oob, enum cp_frame_type want, union cp_body *body, struct urn_err *err)
{
	struct frame_head head;
	char text[sizeof(body->fail.text)];
	int rc = fill(oob, err);

	if (rc <= 0)
		return rc;
	memcpy(&head, oob->buf, sizeof(head));
	memset(body, 0, sizeof(*body));
	memcpy(body, oob->buf + sizeof(head), head.length);
	oob->have = 0;
	if (head.type == want)
		return 1;
	oob->peer_failed = true;
	if (head.type == CP_FAIL) {
		oob->peer_said = true;
		body->fail.text[sizeof(body->fail.text) - 1] = '\0';
		cp_text_clean(text, sizeof(text), body->fail.text);
		urn_err_set(err, "%s gave up: %s", oob->peer, text);
	} else {
		urn_err_set(err, "%s said %s where %s was due; use urnic-cp of the same release on "
				 "both sides.", oob->peer, frames[head.type].name, frames[want].name);
	}
	return -1;
}

int
cp_oob_hear(struct cp_oob *oob, enum cp_frame_type want, union cp_body *body,
	    const struct cp_wait *wait, struct urn_err *err)
{
	uint64_t end = urn_clock_ns() + CP_STEP_SECONDS * 1000000000ull;
	struct pollfd pfd = {.fd = oob->fd, .events = POLLIN};

	while (!urn_stop_requested()) {
		int rc = cp_oob_look(oob, want, body, err);

		if (rc != 0)
			return rc > 0 ? 0 : -1;
		if (urn_clock_ns() > end) {
			urn_err_set(err, "%s said nothing for %d seconds where %s was due.", oob->peer,
				    CP_STEP_SECONDS, frames[want].name);
			return -1;
		}
		if (wait != NULL && wait->turn != NULL)
			wait->turn(wait->arg);
		poll(&pfd, 1, wait != NULL ? 1 : 100);
	}
	urn_err_set(err, "interrupted.");
	return -1;
}

/* ---- checks */

int
cp_offer_check(const struct cp_offer *o, struct urn_err *err)
{
	char release[sizeof(o->release)];

	if (strnlen(o->release, sizeof(o->release)) == sizeof(o->release) ||
	    strcmp(o->release, URN_CP_RELEASE) != 0) {
		memcpy(release, o->release, sizeof(release));
		release[sizeof(release) - 1] = '\0';
		cp_text_clean(release, sizeof(release), release);
		urn_err_set(err, "the sender is urnic-cp %s and the receiver %s; use the same release "
				 "on both sides.", release, URN_CP_RELEASE);
		return -1;
	}
	if (!cp_mtu_valid(o->mtu) || o->chunk < CP_CHUNK_MIN || o->chunk > CP_CHUNK_MAX ||
	    o->chunk % CP_CHUNK_MIN != 0 || o->depth < CP_DEPTH_MIN || o->depth > CP_DEPTH_MAX ||
	    (uint64_t)o->chunk * o->depth > CP_WINDOW_MAX || o->no_check > 1 || o->no_icrc > 1 ||
	    o->over_msg > 1 || (o->over_msg && !cp_msg_window_ok(o->chunk, o->depth))) {
		urn_err_set(err,
			    "the sender offers values that no urnic-cp would (MTU %u, chunks of %u "
			    "bytes, %u of them).",
			    o->mtu, o->chunk, o->depth);
		return -1;
	}
	return 0;
}

static bool
ep_valid(const struct urn_ep_addr *ep)
{
	static const uint8_t none[16];

	return ep->qpn != 0 && ep->qpn < 1u << 24 && ep->psn < 1u << 24 && ep->mtu_code >= 1 &&
	       ep->mtu_code <= 5 && memcmp(ep->gid, none, sizeof(none)) != 0;
}

/* True when a queue is one of messages, or is none; over_msg says which. */
bool
cp_queue_ok(const struct cp_queue *q, bool over_msg)
{
	return (q->qid != 0) == over_msg && q->rsvd == 0;
}

int
cp_ready_check(const struct cp_ready *r, bool attached, struct urn_err *err)
{
	if (ep_valid(&r->ep) && (r->memif[0] == '\0') != attached) {
		urn_err_set(err, "the %s is attached to a dataplane and the %s is not; give --attach to "
				 "both or to neither.", attached ? "sender" : "receiver",
			    attached ? "receiver" : "sender");
		return -1;
	}
	if (!ep_valid(&r->ep) || r->rsvd != 0 || (!attached && r->memif[0] != '/') ||
	    strnlen(r->memif, sizeof(r->memif)) == sizeof(r->memif) ||
	    strpbrk(r->memif, ",[]= ") != NULL) {
		urn_err_set(err, "the receiver tells an address that cannot be one (QP 0x%x, PSN 0x%x, "
				 "MTU code %u).", r->ep.qpn, r->ep.psn, r->ep.mtu_code);
		return -1;
	}
	return 0;
}

int
cp_start_check(const struct cp_start *s, struct urn_err *err)
{
	if (!ep_valid(&s->ep)) {
		urn_err_set(err, "the sender tells an address that cannot be one (QP 0x%x, PSN 0x%x, "
				 "MTU code %u).", s->ep.qpn, s->ep.psn, s->ep.mtu_code);
		return -1;
	}
	return 0;
}

/* ---- sockets */

static int
address(const char *path, struct sockaddr_un *sa, struct urn_err *err)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(sa->sun_path)) {
		urn_err_set(err, "socket '%.60s...' has a name of more than %zu bytes; take a shorter "
				 "one.", path, sizeof(sa->sun_path) - 1);
		return -1;
	}
	memcpy(sa->sun_path, path, strlen(path) + 1);
	return 0;
}

/* Remove an old socket at path, if nobody listens there. returns 0 or -1 with *err */
static int
clear_stale(const struct sockaddr_un *sa, struct urn_err *err)
{
	struct stat st;
	bool stale;
	int fd;

	if (lstat(sa->sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		urn_err_set(err, "'%s' exists and is no socket; name another.", sa->sun_path);
		return -1;
	}
	/*
	 * A socket of another type than the listener's: the kernel says whether somebody listens
	 * (EPROTOTYPE), and the listener does not take the test for a sender.
	 */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	stale = fd >= 0 && connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) != 0 &&
		errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	if (stale) {
		unlink(sa->sun_path);
		return 0;
	}
	urn_err_set(err, "somebody else listens on '%s' already; name another socket.",
		    sa->sun_path);
	return -1;
}

int
cp_oob_listen(const char *path, struct urn_err *err)
{
	struct sockaddr_un sa;
	mode_t old;
	int fd, rc;

	if (address(path, &sa, err) || clear_stale(&sa, err))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A memif peer can write to our memory: let in nobody but this user. */
	old = umask(0077);
	rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	umask(old);
	if (rc == 0 && listen(fd, 1) == 0)
		return fd;
	urn_err_set(err, "cannot listen on '%s': %s.", path, strerror(errno));
	if (rc == 0)
		unlink(path);
	if (fd >= 0)
		close(fd);
	return -1;
}

int
cp_oob_accept(int listener, const char *path, struct urn_err *err)
{
	struct pollfd pfd = {.fd = listener, .events = POLLIN};

	while (!urn_stop_requested()) {
		int fd;

		/* A signal between the test and poll() is noticed at the next test, 100 ms later. */
		if (poll(&pfd, 1, 100) <= 0)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) {
			urn_err_set(err, "cannot accept a sender on '%s': %s.", path, strerror(errno));
			return -1;
		}
	}
	urn_err_set(err, "interrupted before a sender came.");
	return -1;
}

/* Connect with retries: a listener's socket has its name a moment before it listens. */
static int
connect_patiently(int fd, const struct sockaddr_un *sa)
{
	static const struct timespec tick = {0, 10000000};
	int rc = -1;

	for (unsigned int i = 0; i < CONNECT_TRIES && !urn_stop_requested(); i++) {
		rc = connect(fd, (const struct sockaddr *)sa, sizeof(*sa));
		if (rc == 0 || errno != ECONNREFUSED)
			break;
		nanosleep(&tick, NULL);
		errno = ECONNREFUSED;
	}
	return rc;
}

int
cp_oob_connect(const char *path, struct urn_err *err)
{
	struct sockaddr_un sa;
	int fd;

	if (address(path, &sa, err))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect_patiently(fd, &sa) == 0)
		return fd;
	urn_err_set(err, "nobody listens on '%s' (%s); start urnic-cp --listen there first.", path,
		    strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}
