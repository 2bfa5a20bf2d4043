/* SPDX-License-Identifier: BSD-3-Clause */
/* The two sides' handshake: from a control socket to connected queue pairs. */
#ifndef URN_CP_HELLO_H
#define URN_CP_HELLO_H

#include "oob.h"
#include "opts.h"
#include "rail.h"

/*
 * The sender's part, which offers the options' values. returns: 0 with the
 * rail connected and the link up, or -1 with *err
 */
int cp_hello_send(struct cp_oob *oob, struct cp_rail *r, const struct cp_opts *o,
		  struct urn_err *err);
/* The receiver's part; *offer: the sender's offer. returns as cp_hello_send() */
int cp_hello_recv(struct cp_oob *oob, struct cp_rail *r, const struct cp_opts *o,
		  struct cp_offer *offer, struct urn_err *err);

#endif
