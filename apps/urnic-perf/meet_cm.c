/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meeting by connection management: all messages travel as private data.
 *
 * Datagrams have no connection to set up or to end. A looks the service up (SIDR_REQ) for
 * each queue pair, and again when the queue pair is finished; B answers (SIDR_REP):
 *
 *   SIDR_REQ  RDMA-CM's 36 bytes, hello     --->
 *                                           <---   SIDR_REP  valid: queue pair, hello
 *   SIDR_REQ  struct sidr_end               --->
 *                                           <---   SIDR_REP  rejected: the end, shortened
 *
 * B can't speak unasked: A learns of a later failure of B by the second look-up.
 */
#include "meet.h"
#include "perf.h"

#include "common/node.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <urnic/attach.h>
#include <urnic/cm.h>

#define BACKLOG 1024u
#define TIMEOUT 18u      /* code: a second, then a message is repeated */
#define RETRIES 15u     /* largest value of a REQ (IBTA 12.6.5, Max CM Retries) */
/* Answer to an urnic-perf that asks while another is served. */
#define BUSY "this side serves another urnic-perf; start again when that one has ended"

_Static_assert(URN_CM_IP_BYTES + sizeof(struct meet_hello) <= URN_CM_REQ_DATA, "a REQ has room");
_Static_assert(sizeof(struct meet_hello) <= URN_CM_REP_DATA, "a REP has room");
_Static_assert(sizeof(struct meet_end) <= URN_CM_DREQ_DATA, "a DREQ has room");
_Static_assert(sizeof(struct meet_end) <= URN_CM_DREP_DATA, "a DREP has room");

/* The end of a look-up's queue pair. Differs from a hello, which RDMA-CM's header precedes with a
 * 0. */
struct sidr_end {
	uint32_t magic;
	uint32_t n; /* number of the queue pair */
	struct meet_end end;
};
_Static_assert(sizeof(struct sidr_end) <= URN_CM_SIDR_REQ_DATA, "a SIDR_REQ has room");
_Static_assert(URN_CM_IP_BYTES + sizeof(struct meet_hello) <= URN_CM_SIDR_REQ_DATA,
	       "a SIDR_REQ has room");
_Static_assert(offsetof(struct meet_end, text) + 32 <= URN_CM_SIDR_REP_DATA, "a SIDR_REP has some");

#define COOKIE_END (1ull << 32) /* a look-up's cookie: end of the queue pair with the number */

struct meet_cm {
	struct meet m;
	struct urn_cm_end *cm;
	uint8_t gid_index;
	union ibv_gid gid, peer;
	bool sidr; /* datagrams, by the options or by a peer's look-up */
	uint16_t port; /* asker's RDMA-CM port: random, to differ from others at its address */
	bool asked;    /* a peer asked: its address and port are below; others are turned away */
	union ibv_gid asker;
	uint16_t asker_port;
	uint64_t service;
	uint32_t listener[2]; /* id for connections, for look-ups; 0: none */
	uint32_t *id;        /* id of each queue pair's connection; 0: none */
	uint32_t ids;        /* room */
	uint32_t hint;       /* likely number of the next event's queue pair */
};

/* Make room in id[] for a queue pair's number. returns: 0, or -1 with *err */
static int
make_room(struct meet_cm *t, uint32_t n, struct urn_err *err)
{
	uint32_t ids = t->ids ? t->ids : 64;
	uint32_t *id;

	while (ids <= n)
		ids *= 2;
	if (ids == t->ids)
		return 0;
	id = realloc(t->id, ids * sizeof(*id));
	if (id == NULL) {
		urn_err_set(err, "no memory for %u connections", ids);
		return -1;
	}
	memset(id + t->ids, 0, (ids - t->ids) * sizeof(*id));
	t->id = id;
	t->ids = ids;
	return 0;
}

/* Number of the queue pair with a connection; UINT32_MAX: none. Events mostly come in order. */
static uint32_t
number_of(struct meet_cm *t, uint32_t id)
{
	for (uint32_t i = 0; i < t->ids; i++) {
		uint32_t n = (t->hint + i) & (t->ids - 1);

		if (t->id[n] != id)
			continue;
		t->hint = n + 1;
		return n;
	}
	return UINT32_MAX;
}

static int on_event(struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news,
		    struct urn_err *err);

/*
 * Handle a failed call on a connection. rc: the reason; ENOTCONN: the other side ended the
 * connection in the meantime, and its message waits to be taken. returns -1
 */
static int
refused(struct meet_cm *t, int rc, const char *what, struct urn_err *err)
{
	struct urn_abi_cm_event ev;
	struct meet_news news;
	struct urn_err why;

	(void)urn_node_failed(what, err);
	while (rc == ENOTCONN && urn_cm_end_event(t->cm, &ev) == 0) {
		int got = on_event(t, &ev, &news, &why);

		if (got < 0)
			*err = why;
		else if (got > 0 && news.what == MEET_END && news.end.failed)
			(void)meet_gave_up(&news.end, err);
		else
			continue;
		break;
	}
	return -1;
}

static int
cm_ask(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err)
{
	struct meet_cm *t = (struct meet_cm *)m;
	struct urn_cm_ip ip = {.version = m->o->ipv6 ? 6 : 4, .port = t->port};
	struct urn_abi_cm_connect p = {
		.service_id = t->service, .cookie = n, .qpn = own->ep.qpn, .psn = side_psn(1, n),
		.sgid_index = t->gid_index, .responder_resources = own->hello.rd_atomic,
		.initiator_depth = own->hello.rd_atomic, .retry_count = 7, .rnr_retry = 7,
		.srq = own->hello.srq, .mtu = own->hello.mtu_code, .timeout = TIMEOUT,
		.max_retries = RETRIES, .ack_timeout = own->hello.timeout,
		.data_len = URN_CM_IP_BYTES + sizeof(own->hello)};
	int rc;

	if (make_room(t, n, err) != 0)
		return -1;
	if (t->sidr)
		p.qpn = 0;
	memcpy(p.dgid, t->peer.raw, 16);
	memcpy(ip.src, t->gid.raw, 16);
	memcpy(ip.dst, t->peer.raw, 16);
	urn_cm_ip_write(p.data, &ip);
	memcpy(p.data + URN_CM_IP_BYTES, &own->hello, sizeof(own->hello));
	rc = t->sidr ? urn_cm_end_resolve(t->cm, &p, &t->id[n])
		     : urn_cm_end_connect(t->cm, &p, &t->id[n]);
	return rc == 0 ? 0 : urn_node_failed("ask for a connection", err);
}

static int
cm_answer(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err)
{
	struct meet_cm *t = (struct meet_cm *)m;
	struct urn_abi_cm_accept p = {
		.qpn = own->ep.qpn, .psn = side_psn(0, n), .responder_resources = own->hello.rd_atomic,
		.initiator_depth = own->hello.rd_atomic, .rnr_retry = 7, .srq = own->hello.srq,
		.data_len = sizeof(own->hello)};
	int rc;

	if (t->sidr)
		p.psn = PERF_QKEY;
	memcpy(p.data, &own->hello, sizeof(own->hello));
	rc = urn_cm_end_accept(t->cm, t->id[n], &p);
	return rc == 0 ? 0 : refused(t, rc, "accept a connection", err);
}

static int
cm_ready(struct meet *m, uint32_t n, struct urn_err *err)
{
	struct meet_cm *t = (struct meet_cm *)m;
	int rc;

	if (t->sidr)
		return 0;
	rc = urn_cm_end_establish(t->cm, t->id[n], NULL, 0);
	return rc == 0 ? 0 : refused(t, rc, "say that a connection is up", err);
}

/* Send the end: A in one more look-up; B in its answer to that look-up, if there is one.
 */
static int
sidr_end(struct meet_cm *t, uint32_t n, const struct meet_end *end, struct urn_err *err)
{
	struct urn_abi_cm_connect p = {.service_id = t->service,
				       .cookie = COOKIE_END | n,
				       .sgid_index = t->gid_index,
				       .timeout = TIMEOUT,
				       .max_retries = RETRIES,
				       .data_len = sizeof(struct sidr_end)};
	struct urn_abi_cm_accept a = {.status = URN_CM_SIDR_REJECT,
				      .data_len = URN_CM_SIDR_REP_DATA};
	struct sidr_end e = {.magic = MEET_MAGIC, .n = n, .end = *end};

	if (t->m.o->role == PERF_LISTENS) {
		memcpy(a.data, end, URN_CM_SIDR_REP_DATA);
		/* After an answer B has no way to tell of a failure. */
		return urn_cm_end_accept(t->cm, t->id[n], &a) == 0 || end->failed
			       ? 0
			       : urn_node_failed("answer the other side", err);
	}
	if (t->id[n] != 0)
		(void)urn_cm_end_destroy(t->cm, t->id[n]);
	t->id[n] = 0;
	memcpy(p.dgid, t->peer.raw, 16);
	memcpy(p.data, &e, sizeof(e));
	return urn_cm_end_resolve(t->cm, &p, &t->id[n]) == 0
		       ? 0
		       : urn_node_failed("tell the other side the end", err);
}

static int
cm_end(struct meet *m, uint32_t n, const struct meet_end *end, bool ended, struct urn_err *err)
{
	struct meet_cm *t = (struct meet_cm *)m;
	struct urn_abi_cm_reject r = {.reason = URN_CM_REJ_CONSUMER};
	int rc;

	(void)ended;
	if (t->sidr)
		return n < t->ids ? sidr_end(t, n, end, err) : 0;
	if (n >= t->ids || t->id[n] == 0)
		return 0;
	if (urn_cm_end_disconnect(t->cm, t->id[n], end, sizeof(*end)) == 0)
		return 0;
	/* Not up yet: the message goes with a refusal, cut to the room there. */
	r.data_len = sizeof(r.data);
	memcpy(r.data, end, sizeof(r.data));
	rc = urn_cm_end_reject(t->cm, t->id[n], &r);
	return rc == 0 ? 0 : refused(t, rc, "end a connection", err);
}

/* True when an event comes from the peer that asked first. */
static bool
is_asker(struct meet_cm *t, const struct urn_abi_cm_event *ev)
{
	struct urn_cm_ip ip;

	(void)urn_cm_ip_read(ev->data, ev->data_len, &ip); /* no such header: port 0 */
	if (!t->asked) {
		t->asked = true;
		t->asker_port = ip.port;
		memcpy(t->asker.raw, ev->gid, 16);
	}
	return t->asker_port == ip.port && memcmp(t->asker.raw, ev->gid, 16) == 0;
}

static int
on_request(struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news,
	   struct urn_err *err)
{
	static const struct meet_end busy = {.magic = MEET_MAGIC, .failed = 1, .text = BUSY};
	struct urn_abi_cm_reject r = {.reason = URN_CM_REJ_CONSUMER};

	memcpy(&news->peer.hello, ev->data + URN_CM_IP_BYTES, sizeof(news->peer.hello));
	news->what = MEET_ASK;
	news->n = news->peer.hello.number;
	/* Not a request of urnic-perf: turn it away, and go on. */
	if (!meet_hello_ok(&news->peer.hello)) {
		(void)urn_cm_end_reject(t->cm, ev->id, &r);
		(void)urn_cm_end_destroy(t->cm, ev->id);
		return 0;
	}
	if (!is_asker(t, ev)) {
		r.data_len = sizeof(r.data);
		memcpy(r.data, &busy, sizeof(r.data));
		(void)urn_cm_end_reject(t->cm, ev->id, &r);
		(void)urn_cm_end_destroy(t->cm, ev->id);
		return 0;
	}
	if (make_room(t, news->n, err) != 0)
		return -1;
	if (t->id[news->n] != 0) {
		(void)urn_cm_end_destroy(t->cm, ev->id);
		return 0;
	}
	t->id[news->n] = ev->id;
	return 1;
}

/* Reject a look-up that can't be served. why: message for its user; NULL: no urnic-perf would read it */
static void
sidr_turn_away(struct meet_cm *t, uint32_t id, const struct meet_end *why)
{
	struct urn_abi_cm_accept a = {.status = URN_CM_SIDR_REJECT};

	if (why != NULL) {
		a.data_len = URN_CM_SIDR_REP_DATA;
		memcpy(a.data, why, URN_CM_SIDR_REP_DATA);
	}
	(void)urn_cm_end_accept(t->cm, id, &a);
	(void)urn_cm_end_destroy(t->cm, id);
}

/* Handle a look-up: of a queue pair, or its end. returns: as meet_look() */
static int
on_sidr_request(struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news,
		struct urn_err *err)
{
	static const struct meet_end busy = {.magic = MEET_MAGIC, .failed = 1, .text = BUSY};
	const struct meet_hello *h = &news->peer.hello;
	struct sidr_end e;

	memcpy(&e, ev->data, sizeof(e));
	memcpy(&news->peer.hello, ev->data + URN_CM_IP_BYTES, sizeof(news->peer.hello));
	if (e.magic == MEET_MAGIC && e.end.magic == MEET_MAGIC && e.n < t->ids && t->id[e.n] != 0) {
		(void)urn_cm_end_destroy(t->cm, t->id[e.n]);
		news->what = MEET_END;
		news->n = e.n;
		news->end = e.end;
		news->end.text[sizeof(news->end.text) - 1] = '\0';
	} else if (e.magic != MEET_MAGIC && meet_hello_ok(h) && h->ud_qpn != 0) {
		if (!is_asker(t, ev)) {
			sidr_turn_away(t, ev->id, &busy);
			return 0;
		}
		if (make_room(t, h->number, err) != 0)
			return -1;
		if (t->id[h->number] != 0) {
			sidr_turn_away(t, ev->id, NULL);
			return 0;
		}
		t->sidr = true;
		news->what = MEET_ASK;
		news->n = h->number;
		news->peer.ep.qpn = h->ud_qpn;
		news->peer.ep.mtu_code = h->mtu_code;
		memcpy(news->peer.ep.gid, ev->gid, 16);
		memcpy(news->own_gid, ev->own_gid, 16);
	} else {
		sidr_turn_away(t, ev->id, NULL);
		return 0;
	}
	t->id[news->n] = ev->id;
	return 1;
}

/* Handle the answer to a look-up. Any error in the answer means that the other side is gone, or never was. */
static int
on_sidr_reply(struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news,
	      struct urn_err *err)
{
	struct meet_end end = {.magic = 0};

	news->n = (uint32_t)ev->cookie;
	if (ev->reason == URN_CM_SIDR_REJECT)
		memcpy(&end, ev->data, URN_CM_SIDR_REP_DATA);
	end.text[URN_CM_SIDR_REP_DATA - offsetof(struct meet_end, text) - 1] = '\0';
	if (ev->reason == URN_CM_SIDR_VALID && (ev->cookie & COOKIE_END) == 0) {
		news->what = MEET_ANSWER;
		memcpy(&news->peer.hello, ev->data, sizeof(news->peer.hello));
		news->peer.ep.qpn = ev->qpn;
		memcpy(news->peer.ep.gid, t->peer.raw, 16);
		return 1;
	}
	if (end.magic == MEET_MAGIC) {
		news->what = ev->cookie & COOKIE_END ? MEET_ENDED : MEET_END;
		news->end = end;
		return 1;
	}
	if (ev->reason == URN_CM_SIDR_UNSUPPORTED && (ev->cookie & COOKIE_END) == 0)
		urn_err_set(err, "nobody listens there for datagrams (service id not known); start "
				 "urnic-perf with --listen and --connect cm first");
	else
		urn_err_set(err, "the other side is gone, or refused to be looked up (status %u)",
			    ev->reason);
	return -1;
}

/* Fill in the address of the other side's queue pair. */
static void
fill_ep(const struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news)
{
	struct urn_ep_addr *ep = &news->peer.ep;

	ep->qpn = ev->qpn;
	ep->psn = side_psn(t->m.o->role == PERF_LISTENS ? 0 : 1, news->n);
	ep->mtu_code = ev->type == URN_CM_EVENT_REQUEST ? ev->mtu : 0;
	memcpy(ep->gid, ev->gid, 16);
	memcpy(news->own_gid, ev->own_gid, 16);
}

static int
gone(struct urn_err *err, const struct urn_abi_cm_event *ev)
{
	struct meet_end end = {.magic = 0};

	if (ev->type == URN_CM_EVENT_REJECTED && ev->reason == URN_CM_REJ_CONSUMER)
		memcpy(&end, ev->data, URN_CM_REJ_DATA);
	end.text[URN_CM_REJ_DATA - offsetof(struct meet_end, text) - 1] = '\0';
	if (end.magic == MEET_MAGIC && end.text[0] != '\0')
		return meet_gave_up(&end, err);
	if (ev->type == URN_CM_EVENT_REJECTED && ev->reason == URN_CM_REJ_INVALID_SERVICE_ID)
		urn_err_set(err, "nobody listens there (service id not known); start urnic-perf with "
				 "--listen and --connect cm first");
	else if (ev->type == URN_CM_EVENT_REJECTED && ev->reason == URN_CM_REJ_INVALID_MTU)
		urn_err_set(err, "the other side's port does not carry this path MTU; give a smaller "
				 "--mtu");
	else if (ev->type == URN_CM_EVENT_REJECTED)
		urn_err_set(err, "the other side refused the connection, or is gone (reason %u)", ev->reason);
	else if (ev->type == URN_CM_EVENT_UNREACHABLE)
		urn_err_set(err, "the other side does not answer, all repeats included");
	else
		urn_err_set(err, "the other side is gone: it ended without a word of why");
	return -1;
}

/* returns: as meet_look() */
static int
on_end(struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news,
       struct urn_err *err)
{
	news->what = ev->type == URN_CM_EVENT_DISCONNECT ? MEET_END : MEET_ENDED;
	news->n = number_of(t, ev->id);
	memcpy(&news->end, ev->data, sizeof(news->end));
	news->end.text[sizeof(news->end.text) - 1] = '\0';
	if (news->n == UINT32_MAX)
		return gone(err, ev);
	if (news->end.magic == MEET_MAGIC)
		return 1;
	/* The peer agreed, but the data of its answer is lost; another queue pair's data may arrive. */
	memset(&news->end, 0, sizeof(news->end));
	return news->what == MEET_ENDED && ev->reason == 0 ? 1 : gone(err, ev);
}

static int
on_event(struct meet_cm *t, const struct urn_abi_cm_event *ev, struct meet_news *news,
	 struct urn_err *err)
{
	int rc = 1;

	memset(news, 0, sizeof(*news));
	switch (ev->type) {
	case URN_CM_EVENT_REQUEST:
		rc = on_request(t, ev, news, err);
		fill_ep(t, ev, news);
		return rc;
	case URN_CM_EVENT_REPLY:
		news->what = MEET_ANSWER;
		news->n = (uint32_t)ev->cookie;
		memcpy(&news->peer.hello, ev->data, sizeof(news->peer.hello));
		fill_ep(t, ev, news);
		return 1;
	case URN_CM_EVENT_ESTABLISHED:
		news->what = MEET_READY;
		news->n = number_of(t, ev->id);
		return news->n != UINT32_MAX ? 1 : 0;
	case URN_CM_EVENT_SIDR_REQUEST:
		return on_sidr_request(t, ev, news, err);
	case URN_CM_EVENT_SIDR_REPLY:
		return on_sidr_reply(t, ev, news, err);
	case URN_CM_EVENT_DISCONNECT:
	case URN_CM_EVENT_DISCONNECTED:
		return on_end(t, ev, news, err);
	case URN_CM_EVENT_REJECTED:
	case URN_CM_EVENT_UNREACHABLE:
		return gone(err, ev);
	default:
		return 0;
	}
}

static int
cm_look(struct meet *m, struct meet_news *news, int ms, struct urn_err *err)
{
	struct meet_cm *t = (struct meet_cm *)m;
	struct pollfd p = {.fd = urn_cm_end_fd(t->cm), .events = POLLIN};
	struct urn_abi_cm_event ev;
	int rc = urn_cm_end_event(t->cm, &ev);

	if (rc == EAGAIN && ms > 0 && poll(&p, 1, ms) > 0)
		rc = urn_cm_end_event(t->cm, &ev);
	if (rc == EAGAIN)
		return 0;
	return rc == 0 ? on_event(t, &ev, news, err)
		       : urn_node_failed("hear of the other side", err);
}

static void
cm_close(struct meet *m)
{
	struct meet_cm *t = (struct meet_cm *)m;

	for (uint32_t n = 0; n < t->ids; n++)
		if (t->id[n] != 0)
			(void)urn_cm_end_destroy(t->cm, t->id[n]);
	for (unsigned int i = 0; i < 2; i++)
		if (t->listener[i] != 0)
			(void)urn_cm_end_destroy(t->cm, t->listener[i]);
	urn_cm_end_close(t->cm);
	free(t->id);
	free(t);
}

static const struct meet_ops cm_ops = {
	.ask = cm_ask,
	.answer = cm_answer,
	.ready = cm_ready,
	.end = cm_end,
	.look = cm_look,
	.close = cm_close,
};

/* Set the service from the port, and the peer's address. returns: 0, or -1 with *err */
static int
take_place(struct meet_cm *t, struct urn_err *err)
{
	const struct perf_opts *o = t->m.o;
	uint64_t port;
	uint8_t v4[4];

	if (urn_text_parse_uint(o->port, &port) != 0 || port == 0 || port > 65535) {
		urn_err_set(err, "'%s' is no port from 1 to 65535", o->port);
		return -1;
	}
	t->service = urn_cm_service(o->ud ? URN_CM_PS_UDP : URN_CM_PS_TCP, (uint16_t)port);
	if (o->role == PERF_LISTENS)
		return 0;
	if (inet_pton(AF_INET, o->host, v4) == 1) {
		memset(t->peer.raw + 10, 0xff, 2);
		memcpy(t->peer.raw + 12, v4, 4);
	} else if (inet_pton(AF_INET6, o->host, t->peer.raw) != 1) {
		urn_err_set(err, "'%s' is no IP address; with --connect cm give that of the other node",
			    o->host);
		return -1;
	}
	return 0;
}

struct meet *
meet_cm_open(const struct perf_opts *o, struct ibv_context *ctx, uint8_t gid_index,
	     const union ibv_gid *gid, struct urn_err *err)
{
	struct meet_cm *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		urn_err_set(err, "no memory to meet the other side");
		return NULL;
	}
	t->m.ops = &cm_ops;
	t->m.o = o;
	t->gid_index = gid_index;
	t->sidr = o->ud;
	t->gid = *gid;
	(void)getrandom(&t->port, sizeof(t->port), 0);
	if (take_place(t, err) != 0) {
		free(t);
		return NULL;
	}
	if (urn_cm_end_open(&t->cm, ctx) != 0) {
		(void)urn_node_failed("get a pipe for events", err);
		free(t);
		return NULL;
	}
	if (o->role != PERF_LISTENS)
		return &t->m;
	/* The peer decides which of the two is used: connections or datagrams. */
	for (unsigned int i = 0; i < 2; i++) {
		uint16_t space = i == 0 ? URN_CM_PS_TCP : URN_CM_PS_UDP;

		if (urn_cm_end_listen(t->cm, urn_cm_service(space, (uint16_t)t->service), 0,
				      BACKLOG, &t->listener[i]) != 0) {
			(void)urn_node_failed("listen", err);
			cm_close(&t->m);
			return NULL;
		}
	}
	fprintf(stderr, "urnic-perf: waiting for the other side, service of port %s\n", o->port);
	return &t->m;
}
