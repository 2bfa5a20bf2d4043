/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP between two programs that meet through the kernel. Sockets do not block: a
 * waiting function keeps the NIC running, for the peer may ask for our MAC
 * address before it sends another byte. Each wait ends with a stop signal, too.
 */
#ifndef URN_APPS_COMMON_TCP_H
#define URN_APPS_COMMON_TCP_H

#include "pmd_glue/port.h"

#include <stddef.h>
#include <stdint.h>

/* Waiting on TCP: the call that keeps the NIC running meanwhile, and the longest wait. */
struct urn_tcp_wait {
	void (*turn)(void *arg); /* NULL: nothing to do meanwhile */
	void *arg;		 /* for turn */
	uint64_t limit_ns;	 /* longest wait of each call */
	const char *listener;	 /* program that should listen at the peer, for *err of
				    urn_tcp_connect() */
};

/* CLOCK_MONOTONIC, ns */
uint64_t urn_tcp_now_ns(void);

/*
 * Make a TCP socket that listens for the peer. host: empty means all addresses.
 * service: port, decimal. returns: descriptor, or -1 with *err
 */
int urn_tcp_listen(const char *host, const char *service, struct urn_err *err);
/* Take a peer's connection. returns: its descriptor, or -1 with *err. fd, which listens, stays open
 */
int urn_tcp_accept(int fd, const struct urn_tcp_wait *w, struct urn_err *err);
/*
 * Connect; a host that refuses may not be ready yet: retries until
 * the time is over. returns: descriptor, or -1 with *err
 */
int urn_tcp_connect(const char *host, const char *service, const struct urn_tcp_wait *w,
		    struct urn_err *err);
/* Read n bytes, or write them. what: name of the data for *err. returns: 0, or -1 with *err */
int urn_tcp_read(int fd, void *buf, size_t n, const char *what, const struct urn_tcp_wait *w,
		 struct urn_err *err);
int urn_tcp_write(int fd, const void *buf, size_t n, const char *what, const struct urn_tcp_wait *w,
		  struct urn_err *err);

#endif
