/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm_rig.h"

#include "attach/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct rig_cm_pipe rig_cm_pipe[2];

void
rig_cm_open(struct rig *r, const struct rig_config *cfg)
{
	rig_open(r, cfg, NULL);
	for (int e = 0; e < 2; e++) {
		struct rig_cm_pipe *p = &rig_cm_pipe[e];

		assert_int_equal(urn_pipe_make(urn_ctx_dev(r->end[e].ctx), URN_CTL_CREATE_CHANNEL,
					       &p->read_fd, &p->write_fd, &p->handle), 0);
		assert_int_equal(fcntl(p->read_fd, F_SETFL, O_NONBLOCK), 0);
	}
}

void
rig_cm_close(struct rig *r)
{
	rig_close(r);
	for (int e = 0; e < 2; e++) {
		close(rig_cm_pipe[e].read_fd);
		close(rig_cm_pipe[e].write_fd);
	}
}

int
rig_cm_ctl(struct rig *r, int e, uint32_t op, struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	req->op = op;
	return urn_dev_call(urn_ctx_dev(r->end[e].ctx), req, rep);
}

uint32_t
rig_cm_listen(struct rig *r, int e, uint64_t service, uint32_t backlog)
{
	struct urn_abi_req req = {.cm_listen = {.service_id = service, .cookie = 0xaa,
						.channel_fd = rig_cm_pipe[e].handle, .backlog = backlog}};
	struct urn_abi_rep rep;

	assert_int_equal(rig_cm_ctl(r, e, URN_CTL_CM_LISTEN, &req, &rep), 0);
	assert_int_not_equal(rep.handle, 0);
	return rep.handle;
}

struct urn_abi_req
rig_cm_request(struct rig *r, int e, uint32_t qpn)
{
	struct urn_abi_req req = {.cm_connect = {
		.service_id = SERVICE, .cookie = 0xbb, .channel_fd = rig_cm_pipe[e].handle, .qpn = qpn,
		.psn = 0x1000 + (qpn & 0xfff), .mtu = 3, .retry_count = 7, .rnr_retry = 7,
		.responder_resources = 4, .initiator_depth = 4, .timeout = 14, .max_retries = 15,
		.ack_timeout = 16, .data_len = 92}};
	union ibv_gid gid;

	req.cm_connect.sgid_index = (uint8_t)rig_sgid_index(r);
	/* Timewait outlasts all repeats of a DREQ: the side remembers its answer, whatever is lost. */
	if (r->cfg.lose)
		req.cm_connect.ack_timeout = 18;
	rig_gid(r, !e, &gid);
	memcpy(req.cm_connect.dgid, gid.raw, 16);
	rig_fill(req.cm_connect.data, 92, qpn);
	return req;
}

uint32_t
rig_cm_connect(struct rig *r, int e, uint32_t qpn)
{
	struct urn_abi_req req = rig_cm_request(r, e, qpn);
	struct urn_abi_rep rep;

	assert_int_equal(rig_cm_ctl(r, e, URN_CTL_CM_CONNECT, &req, &rep), 0);
	return rep.handle;
}

struct urn_abi_rep
rig_cm_accept(struct rig *r, int e, uint32_t id, uint32_t qpn)
{
	struct urn_abi_req req = {.handle = id, .cm_accept = {
		.qpn = qpn, .psn = 0x2000 + (qpn & 0xfff), .responder_resources = 4, .initiator_depth = 4,
		.rnr_retry = 7, .data_len = 196}};
	struct urn_abi_rep rep;

	rig_fill(req.cm_accept.data, 196, qpn);
	assert_int_equal(rig_cm_ctl(r, e, URN_CTL_CM_ACCEPT, &req, &rep), 0);
	return rep;
}

int
rig_cm_call(struct rig *r, int e, uint32_t op, uint32_t id, uint32_t len)
{
	struct urn_abi_req req = {.handle = id, .cm_data = {.data_len = len}};
	struct urn_abi_rep rep;

	rig_fill(req.cm_data.data, len, op);
	return rig_cm_ctl(r, e, op, &req, &rep);
}

struct urn_abi_cm_event
rig_cm_event(struct rig *r, int e)
{
	time_t start = time(NULL);
	struct urn_abi_event note;
	struct urn_abi_req req = {.op = 0};
	struct urn_abi_rep rep;

	while (read(rig_cm_pipe[e].read_fd, &note, sizeof(note)) != (ssize_t)sizeof(note)) {
		if (time(NULL) - start > 60)
			fail_msg("no event at end %d in a minute", e);
		rig_turns(r, 4);
	}
	assert_int_equal(note.type, URN_EVENT_CM);
	req.handle = note.handle;
	assert_int_equal(rig_cm_ctl(r, e, URN_CTL_CM_EVENT, &req, &rep), 0);
	assert_int_equal(rep.cm_event.cookie, note.cookie);
	assert_int_equal(rep.handle, rep.cm_event.id);
	return rep.cm_event;
}

struct urn_abi_cm_event
rig_cm_expect(struct rig *r, int e, enum urn_cm_event_type type)
{
	struct urn_abi_cm_event ev = rig_cm_event(r, e);

	assert_int_equal(ev.type, type);
	return ev;
}

void
rig_cm_check_data(const struct urn_abi_cm_event *ev, uint32_t len, uint32_t seed)
{
	uint8_t want[URN_CM_DATA_MAX];

	rig_fill(want, len, seed);
	assert_int_equal(ev->data_len, len);
	assert_memory_equal(ev->data, want, len);
}

void
rig_cm_nothing(struct rig *r, int e)
{
	struct urn_abi_event note;
	struct urn_abi_req req = {.op = 0};
	struct urn_abi_rep rep;

	assert_int_equal(read(rig_cm_pipe[e].read_fd, &note, sizeof(note)), -1);
	assert_int_equal(rig_cm_ctl(r, e, URN_CTL_CM_EVENT, &req, &rep), EAGAIN);
}

void
rig_cm_await_ids(struct rig *r, int node, uint32_t n)
{
	time_t start = time(NULL);

	while (rig_cm_ids(r, node) != n) {
		if (time(NULL) - start > 60)
			fail_msg("node %d: %u ids, not %u, after a minute", node, rig_cm_ids(r, node), n);
		rig_turns(r, 16);
	}
}
