/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of epolls that tcp_epoll.c and tcp_epoll_wait.c share. */
#ifndef URN_SOCKETS_TCP_EPOLL_H
#define URN_SOCKETS_TCP_EPOLL_H

#include "sockets/tcp.h"

/* An epoll with sockets of tcp.h. */
struct urn_tcp_epoll {
	int epfd, kick;		       /* the program's number; eventfd, hidden */
	uint32_t count;		       /* entries */
	uint32_t turn;		       /* waits, so that each entry is the first one now and then */
	struct urn_tcp_entry *entries; /* all under the lock of all */
	_Atomic uint32_t waiters;      /* waits under way, which know the entries of their begin;
					  raised under the lock of all */
};

/* By the program's number; NULL: the epoll had none. Memory of one is never given back. */
extern struct urn_tcp_epoll *_Atomic urn_tcp_epolls[URN_TWIN_FDS];

/* The entry of a descriptor; NULL: none. The lock of all is held. */
struct urn_tcp_entry *urn_tcp_entry_find(struct urn_tcp_epoll *ep, int fd);

#endif
