/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of the control socket, and the words of its questions. */
#ifndef URNICD_ADMIN_PROTO_H
#define URNICD_ADMIN_PROTO_H

#include "abi/admin.h"
#include "admin_words.h"

#endif
