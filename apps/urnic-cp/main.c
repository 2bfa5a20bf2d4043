/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-cp: sends files from one dataplane process to another over RoCEv2. */
#include "hello.h"
#include "pair.h"
#include "recv.h"
#include "send.h"

#include "common/explain.h"
#include "common/text.h"

#include <urnic/explain.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All state of one side; its histogram is too large for a stack. */
struct side {
	const struct cp_opts *opts;
	struct cp_oob oob;
	struct cp_rail rail;
	struct cp_io io;
	struct cp_ends ends;
	struct cp_result res;
	bool met; /* the two sides were connected: the report has something to say */
};

static void
side_init(struct side *s, const struct cp_opts *o, int fd, bool sender)
{
	memset(s, 0, sizeof(*s));
	s->opts = o;
	cp_oob_init(&s->oob, fd, sender ? "the receiver" : "the sender");
	s->ends.rail = &s->rail;
	s->ends.oob = &s->oob;
	s->ends.io = &s->io;
	s->res.sender = sender;
	urn_hist_reset(&s->res.latency);
}

static void
turn(void *arg)
{
	cp_rail_turn(arg);
}

/* Note the connection's properties for the report, once connected. */
static void
side_met(struct side *s, uint32_t chunk, uint32_t depth, bool checked)
{
	s->met = true;
	s->res.icrc = !s->rail.cfg.no_icrc;
	s->res.over_msg = s->rail.cfg.over_msg;
	s->res.attached = s->rail.cfg.attach != NULL;
	s->res.checked = checked;
	s->res.chunk = chunk;
	s->res.depth = depth;
	s->res.mtu = s->rail.mtu;
}

static int
say_done(struct side *s, struct urn_err *err)
{
	struct cp_done done;

	cp_rail_counters(&s->rail, &s->res.own);
	memcpy(done.counters, s->res.own.v, sizeof(done.counters));
	return cp_oob_say(&s->oob, CP_DONE, &done, err);
}

static void
hear_done(struct side *s, const union cp_body *body)
{
	memcpy(s->res.peer.v, body->done.counters, sizeof(s->res.peer.v));
	s->res.complete = true;
}

/* Print why the completion failed that ended the connection, if one did. */
static void
complain_why(const struct cp_rail *r)
{
	char text[URN_EXPLAIN_TEXT];

	if (urn_explain_text(r->node.ctx, &r->failed, text, sizeof(text))[0] != '\0')
		cp_complain("%s", text);
}

/*
 * Take a side down. rc: result of the transfer, with *err when not 0; quiet:
 * the other side prints the error. returns: 0, or -1
 */
static int
side_end(struct side *s, int rc, const struct urn_err *err, bool quiet)
{
	struct urn_err late;

	if (rc != 0) {
		if (s->met)
			cp_rail_counters(&s->rail, &s->res.own);
		cp_oob_fail(&s->oob, err->text);
		if (!quiet) {
			cp_complain("%s", err->text);
			complain_why(&s->rail);
		}
	}
	cp_io_stop(&s->io);
	/* Close the socket first: a receiver that waits for its end must not wait for our EAL, too. */
	cp_oob_close(&s->oob);
	if (cp_rail_close(&s->rail, &late) != 0) {
		cp_complain("%s", late.text);
		rc = -1;
	}
	return rc;
}

/* True when the peer ended without giving a reason. */
static bool
vanished(const struct cp_oob *oob)
{
	return oob->peer_failed && !oob->peer_said;
}

static void
report(const struct side *s)
{
	if (!s->met)
		return;
	if (s->opts->json)
		cp_report_json(&s->res);
	else
		cp_report_text(&s->res);
}

/* ---- the sender */

static int
send_all(struct side *s, struct cp_source *src, unsigned int n, struct urn_err *err)
{
	struct cp_wait turning = {turn, &s->rail};
	union cp_body body;

	if (cp_io_start(&s->io, err) != 0 ||
	    cp_hello_send(&s->oob, &s->rail, s->opts, err) != 0)
		return -1;
	side_met(s, s->opts->chunk, s->opts->depth, !s->opts->no_check);
	if (cp_send_files(&s->ends, s->opts, src, n, &s->res, err) != 0 || say_done(s, err) != 0 ||
	    cp_oob_hear(&s->oob, CP_DONE, &body, &turning, err) != 0)
		return -1;
	hear_done(s, &body);
	return 0;
}

/* Connect to the receiver. returns: the control socket, or -1 with *err */
static int
find_receiver(const struct cp_opts *o, struct cp_pair *pair, struct urn_err *err)
{
	return o->role == CP_PAIR ? cp_pair_start(pair, o, err) : cp_oob_connect(o->socket, err);
}

/* The loss of an adapter; of the sender's main thread. */
static struct urn_failover failover = {.loss = {.fd = -1}};

/* Find the receiver, once the loss of an adapter is prepared. returns: as find_receiver() */
static int
begin_sender(const struct cp_opts *o, struct cp_pair *pair, struct urn_err *err)
{
	if (o->kills && urn_failover_prepare(&failover, &o->loss, err) != 0)
		return -1;
	return find_receiver(o, pair, err);
}

/* Draw the plot of a transfer that lost an adapter. returns: 0; -1 after a complaint: it lost none,
 * or the plot failed */
static int
tell_failover(const struct cp_opts *o, const struct urn_failover *f)
{
	struct urn_err err;
	int rc = urn_failover_judge(f, &err);

	if (rc == 0 && o->plot != NULL)
		rc = urn_failover_plot(f, o->plot, &err);
	if (rc != 0)
		cp_complain("%s", err.text);
	return rc;
}

static int
run_sender(const struct cp_opts *o, struct side *s, struct cp_source *src)
{
	struct cp_pair pair = {.pid = 0};
	struct urn_err err, why;
	int rc, fd = begin_sender(o, &pair, &err);

	if (fd < 0) {
		cp_complain("%s", err.text);
		return CP_EXIT_FAILED;
	}
	side_init(s, o, fd, true);
	s->res.files = o->n_files;
	s->res.sources = src;
	s->res.to = o->to;
	s->res.failover = o->kills ? &failover : NULL;
	rc = send_all(s, src, o->n_files, &err);
	rc = side_end(s, rc, &err, false);
	if (pair.pid != 0 && cp_pair_end(&pair, &why) != 0) {
		/* The receiver's exit code mostly repeats a known error; not when it died without a reason. */
		if ((rc == 0 && s->res.ok == s->res.files) || vanished(&s->oob))
			cp_complain("%s", why.text);
		rc = -1;
	}
	report(s);
	if (rc == 0 && o->kills && tell_failover(o, &failover) != 0)
		rc = -1;
	return rc == 0 && s->res.ok == s->res.files ? CP_EXIT_OK : CP_EXIT_FAILED;
}

static int
send_files(const struct cp_opts *o, struct side *s)
{
	unsigned int sendable;
	uint64_t bytes;
	struct cp_source *src = cp_sources_look(o->files, o->n_files, &sendable, &bytes);
	int rc = CP_EXIT_FAILED;

	if (src == NULL)
		cp_complain("no memory for a list of %u files.", o->n_files);
	else if (sendable == 0)
		cp_complain("nothing to send.");
	else
		rc = run_sender(o, s, src);
	urn_failover_close(&failover);
	free(src);
	return rc;
}

/* ---- the receiver */

static int
recv_all(struct side *s, struct cp_store *store, struct urn_err *err)
{
	struct cp_offer offer;

	if (cp_io_start(&s->io, err) != 0 ||
	    cp_hello_recv(&s->oob, &s->rail, s->opts, &offer, err) != 0)
		return -1;
	side_met(s, offer.chunk, offer.depth, offer.no_check == 0);
	if (cp_recv_files(&s->ends, &offer, store, s->opts->role == CP_LISTEN, &s->res, err) != 0 ||
	    cp_store_close(store, err) != 0)
		return -1;
	hear_done(s, &s->ends.body);
	return say_done(s, err);
}

/* Wait for a sender. returns: the control socket, or -1 with *err */
static int
find_sender(const struct cp_opts *o, struct urn_err *err)
{
	int listener, fd;

	if (o->role == CP_CHILD)
		return o->fd;
	listener = cp_oob_listen(o->socket, err);
	if (listener < 0)
		return -1;
	fprintf(stderr, "urnic-cp: waiting for a sender on %s\n", o->socket);
	fd = cp_oob_accept(listener, o->socket, err);
	/* A listener takes one sender: the next sender finds nobody listening. */
	unlink(o->socket);
	close(listener);
	return fd;
}

static int
receive_files(const struct cp_opts *o, struct side *s)
{
	struct cp_store store;
	struct urn_err err, late;
	bool child = o->role == CP_CHILD;
	int rc, fd = -1;

	rc = cp_store_open(&store, o->to, o->force, &err);
	if (rc == 0 || child)
		fd = find_sender(o, rc == 0 ? &err : &late);
	side_init(s, o, fd, false);
	s->res.to = o->to;
	rc = rc != 0 || fd < 0 ? -1 : recv_all(s, &store, &err);
	/* In a pair the sender prints the error, unless the sender is gone. */
	rc = side_end(s, rc, &err, child && !vanished(&s->oob));
	cp_store_close(&store, &late);
	if (child && vanished(&s->oob))
		cp_pair_child_tidy(o);
	if (!child)
		report(s);
	return rc == 0 && s->res.ok == s->res.files ? CP_EXIT_OK : CP_EXIT_FAILED;
}

/* ---- */

/* Set signals: Ctrl-C and the like end the program in order; a file size limit is an error, not a signal. */
static int
set_signals(void)
{
	if (urn_stop_install() != 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return 0;
}

int
main(int argc, char **argv)
{
	static struct side side;
	struct cp_opts opts;
	struct urn_err err;
	int rc = cp_opts_parse(argc, argv, &opts);

	if (rc >= 0)
		return rc;
	if (set_signals() != 0) {
		cp_complain("cannot catch signals.");
		return CP_EXIT_FAILED;
	}
	if (opts.role == CP_CHILD) {
		cp_complain_as("receiver: ");
		cp_pair_child(&opts);
	}
	if (opts.session != NULL && urn_session_use(opts.session, &err) != 0) {
		cp_complain("%s", err.text);
		return CP_EXIT_FAILED;
	}
	if (opts.role == CP_CHILD || opts.role == CP_LISTEN)
		rc = receive_files(&opts, &side);
	else
		rc = send_files(&opts, &side);
	if (fflush(stdout) != 0) {
		cp_complain("cannot print the summary: standard output is full or closed.");
		rc = CP_EXIT_FAILED;
	}
	return rc;
}
