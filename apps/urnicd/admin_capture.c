/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about captures. */
#include "admin.h"

#include "units.h"

#if __has_include("dataplane/report/capture.h")
#include "dataplane/report/capture.h"

#include <string.h>

/* Value of a size argument; the parser has checked it against the table. */
static uint64_t
size_of(const struct nicd_run *r, const char *name)
{
	const char *text = admin_arg(&r->call, name);
	uint64_t v;

	return text && urn_text_parse_size(text, &v) == 0 ? v : 0;
}

/* Take what is to be captured. returns: 0, or -1 with r->err: a number is wrong */
static int
take_order(struct nicd_run *r, struct urn_capture_order *o)
{
	const char *port = admin_arg(&r->call, "PORT");
	uint64_t snap = admin_number(&r->call, "snap", 1);

	o->port = strcmp(port, "all") == 0 ? NULL : port;
	o->file = admin_arg(&r->call, "FILE");
	o->pipe = &r->fd;
	o->max_frames = admin_number(&r->call, "frames", 0);
	o->max_bytes = size_of(r, "size");
	o->snap = (uint32_t)admin_number(&r->call, "snap", 0);
	o->by_qpn = admin_arg(&r->call, "qp") != NULL;
	o->qpn = (uint32_t)admin_number(&r->call, "qp", 0);
	/* A capture takes 0 as no limit; a person who writes 0 means something else. */
	if (admin_number(&r->call, "frames", 1) == 0 || snap == 0 ||
	    (admin_arg(&r->call, "size") && o->max_bytes == 0)) {
		urn_err_set(&r->err,
			    "frames, size and snap are from 1; leave them out for a capture "
			    "without an end, and of whole frames");
		return -1;
	}
	return 0;
}

int
nicd_run_capture_start(struct nicd_run *r)
{
	struct urn_capture_order o = {0};

	if (take_order(r, &o) != 0)
		return NICD_RUN_WRONG;
	if (r->console && strcmp(o.file, URN_CAPTURE_PIPE) == 0) {
		urn_err_set(&r->err,
			    "the console's standard output is for answers; name a file, or "
			    "give this command to urnicctl");
		return NICD_RUN_WRONG;
	}
	return urn_capture_start_order(r->admin->rig->captures, &o, &r->err) == 0
		       ? URN_REPORT_DONE
		       : URN_REPORT_FAILED;
}

static void
say(struct nicd_run *r, const struct urn_capture_status *st)
{
	struct urn_report_sink *s = r->sink;

	if (st->file[0] == '\0')
		return;
	s->begin(s, "capture", true);
	s->str(s, "file", st->file);
	s->str(s, "port", st->port[0] ? st->port : "all");
	s->flag(s, "running", st->running);
	s->flag(s, "ended", st->ended);
	s->u64(s, "frames", st->frames);
	s->u64(s, "bytes", st->bytes);
	s->u64(s, "dropped", st->dropped);
	s->str(s, "failure", st->failure);
	s->end(s);
}

int
nicd_run_capture_stop(struct nicd_run *r)
{
	struct urn_capture_status st = {0};

	if (urn_capture_stop(r->admin->rig->captures, &st, &r->err) != 0)
		return URN_REPORT_FAILED;
	say(r, &st);
	return URN_REPORT_DONE;
}

int
nicd_run_show_capture(struct nicd_run *r)
{
	struct urn_capture_status st = {0};

	urn_capture_status(r->admin->rig->captures, &st);
	say(r, &st);
	return URN_REPORT_DONE;
}

#else

static int
none(struct nicd_run *r)
{
	urn_err_set(&r->err, "this dataplane has no captures");
	return URN_REPORT_FAILED;
}

int
nicd_run_capture_start(struct nicd_run *r)
{
	return none(r);
}

int
nicd_run_capture_stop(struct nicd_run *r)
{
	return none(r);
}

int
nicd_run_show_capture(struct nicd_run *r)
{
	return none(r);
}

#endif
