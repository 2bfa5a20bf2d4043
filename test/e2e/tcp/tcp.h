/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of TCP calls that knows nothing of urnic: both ends of each case. */
#ifndef TCP_H
#define TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TCP_SECONDS = 30 }; /* a case may take: it hangs */

/* Both ends of a case; each gets a connected socket, which is closed behind it. */
struct tcp_case {
	const char *name;
	void (*server)(int fd), (*client)(int fd);
};

extern const struct tcp_case tcp_data_cases[], tcp_wait_cases[]; /* up to a name of NULL */

extern int tcp_listener; /* the server's; -1: the client has none */

/* Write a line about a call: a name, its result, and errno if it failed. returns: r */
long tcp_say(const char *step, long r);
/* Write a line with bytes that came. */
void tcp_say_bytes(const char *step, const char *data, long n);
/* Wait until the other end has come to the same place. */
void tcp_meet(int fd);
/* True when a descriptor is ready in time. events: of poll() */
int tcp_ready(int fd, short events, int ms);
void tcp_block(int fd, bool on);
/* Connect to the listener of the other end. flags: of socket() */
int tcp_open(int flags, bool *pending);

#endif
