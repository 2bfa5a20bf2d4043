/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapter's end of connection management, for cm.c and its test. */
#ifndef URN_VERBS_ADAPTER_CM_END_H
#define URN_VERBS_ADAPTER_CM_END_H

#include "attach/pipe.h"
#include "verbs/provider/cm.h"

#include <pthread.h>

enum {
	URN_CM_END_EVENTS = 16,	 /* events that are fetched at a time */
	URN_CM_END_NOTICES = 64, /* notices that are read at a time */
};

struct urn_adapter_cm_end {
	struct urn_cm_end front; /* first; fd: the pipe's end to read from, without a wait */
	struct ibv_context *ctx; /* the program's context */
	struct urn_way way;	 /* the other end; in no list: the context was closed */
	uint32_t notice[URN_CM_END_NOTICES]; /* ids of the notices that were read last */
	uint32_t notices;		     /* how many these are */
	uint32_t due; /* those of them, the last ones, whose events are still to be fetched */
	int32_t handle;		 /* the dataplane's name for the pipe */
	/*
	 * For a dataplane in another process: `lock` is held while events are fetched, and
	 * protects the events fetched and not given out, ev[first, end), oldest first.
	 */
	pthread_mutex_t lock;
	struct urn_abi_cm_event ev[URN_CM_END_EVENTS]; /* valid: [first, end); under lock */
	uint32_t first, end;			       /* places in ev[]; under lock */
};

#endif
