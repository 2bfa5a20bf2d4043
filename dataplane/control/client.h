/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of an adapter: its area, its doorbells, and everything it made, so
 * that it can be taken back when the client goes (architecture rule 3).
 */
#ifndef URN_CONTROL_CLIENT_H
#define URN_CONTROL_CLIENT_H

#include "abi/control.h"
#include "control/area.h"
#include "control/table.h"
#include "engine/engine.h"

struct urn_adapter;

/* A completion queue as control knows it. */
struct urn_ctl_cq {
	struct urn_cq cq;
	uint64_t off, bytes;  /* in the client's area */
	uint32_t vector;      /* which of the adapter's engines owns it */
};

struct urn_ctl_srq {
	struct urn_srq srq;
	uint64_t off, bytes;
	uint32_t vector;
};

struct urn_client {
	struct urn_adapter *adapter;   /* NULL: its dataplane has been taken down */
	struct urn_client *next;       /* of the adapter */
	struct urn_abi_channel channel;
	struct urn_area area;
	uint64_t db_off[URN_ABI_MAX_ENGINES]; /* by vector */
	struct urn_client_shard *shard[URN_ABI_MAX_ENGINES]; /* by vector; engine's from the start on */
	_Atomic int async_fd;          /* write end; -1: none */
	struct urn_table cqs, srqs;    /* struct urn_ctl_cq, struct urn_ctl_srq */
};

/* Where a client wants its asynchronous events; -1: nowhere. client may be NULL. */
int urn_client_async_fd(const void *client);

#endif
