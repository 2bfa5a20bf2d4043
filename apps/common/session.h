/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual device above two adapters, for programs whose connections survive the loss of one
 * (doc/reference/sessions.md).
 */
#ifndef URN_APPS_COMMON_SESSION_H
#define URN_APPS_COMMON_SESSION_H

#include "pmd_glue/port.h"

#include <urnic/verbs.h>

#include <stdbool.h>

/* One adapter of the virtual device. */
struct urn_session_place {
	char socket[108]; /* socket of its dataplane */
	char adapter[32]; /* its name, or its node's; "": the first of the dataplane */
};

/*
 * Choose the adapters of the virtual device, before it is opened.
 *
 * text: "SOCKET[:ADAPTER],SOCKET[:ADAPTER]", the primary adapter first; "auto": as the
 *       environment's URNIC_SESSION says already
 * returns: 0, or -1 with *err
 */
int urn_session_use(const char *text, struct urn_err *err);

/* Open the virtual device. returns: the context, or NULL with *err */
struct ibv_context *urn_session_open(struct urn_err *err);

/*
 * Take the adapters apart.
 *
 * text: as in URNIC_SESSION
 * place: set to the primary adapter, and the backup
 * returns: 0, or -1 with *err
 */
int urn_session_places(const char *text, struct urn_session_place place[2], struct urn_err *err);

#endif
