/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management as the programs of a rig see it: control calls, notices in a pipe
 * of each end, events. The calls are the same in one process and over the dataplane's
 * socket.
 */
#ifndef URN_TEST_CM_RIG_H
#define URN_TEST_CM_RIG_H

#include "rig.h"
#include "verbs/adapter/adapter.h"

enum { SERVICE = 0x01061234 };

/* The pipe that notices of an end come through; neither side of the pipe blocks. */
struct rig_cm_pipe {
	int read_fd, write_fd;
	int32_t handle;      /* the dataplane's handle of the pipe */
};
extern struct rig_cm_pipe rig_cm_pipe[2];

/* Open a rig with a pipe for each end, and close both again. */
void rig_cm_open(struct rig *r, const struct rig_config *cfg);
void rig_cm_close(struct rig *r);

/* A control call of an end. returns: 0, or an errno value */
int rig_cm_ctl(struct rig *r, int e, uint32_t op, struct urn_abi_req *req, struct urn_abi_rep *rep);
/* Listen at end e. returns: the id */
uint32_t rig_cm_listen(struct rig *r, int e, uint64_t service, uint32_t backlog);
/* A request for a connection to SERVICE at the other end; psn 0x1000 + qpn, private data of seed qpn. */
struct urn_abi_req rig_cm_request(struct rig *r, int e, uint32_t qpn);
/* Make that request. returns: the id */
uint32_t rig_cm_connect(struct rig *r, int e, uint32_t qpn);
/* Accept request `id`; psn 0x2000 + qpn, private data of seed qpn. */
struct urn_abi_rep rig_cm_accept(struct rig *r, int e, uint32_t id, uint32_t qpn);
/* Establish, disconnect, destroy, with `len` bytes of seed op. returns: 0, or an errno value */
int rig_cm_call(struct rig *r, int e, uint32_t op, uint32_t id, uint32_t len);
/* Turn until a notice comes, and fetch the event that it announces. */
struct urn_abi_cm_event rig_cm_event(struct rig *r, int e);
struct urn_abi_cm_event rig_cm_expect(struct rig *r, int e, enum urn_cm_event_type type);
void rig_cm_check_data(const struct urn_abi_cm_event *ev, uint32_t len, uint32_t seed);
/* Fails the test when end e has a notice, or an event to fetch. */
void rig_cm_nothing(struct rig *r, int e);
/* Turn until a node has n ids. */
void rig_cm_await_ids(struct rig *r, int node, uint32_t n);

#endif
