/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of a process that run no destructors. A child that serves a connection closes it, and ends
 * so (Python's ForkingTCPServer): all bytes that it sent go out first. */
#include "sockets/call.h"

#include "sockets/tcp.h"

#include <stdlib.h>
#include <unistd.h>

URN_CALL __attribute__((noreturn)) void
_exit(int status)
{
	urn_tcp_leave();
	urn_real()->_exit(status);
	__builtin_unreachable();
}

URN_CALL __attribute__((noreturn)) void
_Exit(int status)
{
	_exit(status);
}
