/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that UDP programs make, one case after the other, each in a process of its own. Every
 * call writes a line, "case: step: result ERRNO". The lines over the kernel's loopback and over
 * urnic-run are compared (sockets_same.py): a difference is a fault, or is documented in
 * doc/reference/sockets.md.
 */
#ifndef URN_TEST_UDP_H
#define URN_TEST_UDP_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Addresses of this run; constant after the options were read. */
struct udp_where {
	const char *own;     /* an address of this host's */
	const char *foreign; /* an address of another host's */
	const char *own6;    /* an IPv6 address of this host's */
	const char *self;    /* this program's path */
};

struct udp_case {
	const char *name;
	void (*run)(void);
};

/* Cases of a file; the last one has no name. */
extern const struct udp_case udp_name_cases[], udp_data_cases[], udp_wait_cases[],
	udp_share_cases[];
extern struct udp_where udp_where;

/* Write the line of a step; r < 0: with errno's name. returns: r */
long udp_say(const char *step, long r);
/* Evaluate a call with errno 0, and write its line. */
#define SAY(step, call) (errno = 0, udp_say(step, (long)(call)))
/* End the case: the host cannot run it. */
_Noreturn void udp_die(const char *why);

/* An address of IPv4, and one of IPv6. port: of the host */
struct sockaddr_in udp_in(const char *text, uint16_t port);
struct sockaddr_in6 udp_in6(const char *text, uint16_t port);
/* A new socket, bound to an address of this host's and any port; *in: its name */
int udp_bound(struct sockaddr_in *in);
/* A new socket of IPv4. */
int udp_new(int flags);
/* Send text to an address. returns: as sendto() */
long udp_to(int fd, const char *text, const struct sockaddr_in *to);
/* Receive with flags, and write the line with the bytes that came. */
void udp_got(const char *step, int fd, size_t room, int flags);
/* True when two names are the same. */
bool udp_same(const struct sockaddr_in *a, const struct sockaddr_in *b);
/* Milliseconds of the monotonic clock. */
uint64_t udp_ms(void);
void udp_sleep_ms(unsigned int ms);
/* Set a wait of SO_RCVTIMEO. */
void udp_timeout(int fd, unsigned int ms);

#endif
