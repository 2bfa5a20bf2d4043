/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seats of a server that has a few for everybody: a connection that comes when all are taken makes
 * another one go, so that no number of slow clients keeps others out. The one to go is the oldest
 * of the address that has the most seats: at once if that address has two more than the newcomer's,
 * else when it has had its seat for a while. Pure: time is an argument.
 */
#ifndef URN_REPORT_SEATS_H
#define URN_REPORT_SEATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* A seat that a newcomer of the same address may have had so long, ms: an answer takes a few. */
enum { URN_SEAT_GRACE_MS = 250 };

struct urn_seat {
	bool taken;
	uint8_t from[16]; /* address of the client, of which IPv6 users may choose half
			     (urn_seat_from()) */
	uint64_t since;	  /* ms; when the seat was taken */
	uint64_t until;	  /* ms; when the seat is to be left */
};

/* Take the part of a client's address that counts: IPv4 whole, IPv6 without the interface's half.
 */
void urn_seat_from(uint8_t from[16], const struct sockaddr *addr);

/*
 * Find a seat that must be left now: its time is over, or all are taken and it is the one to go.
 * *next: ms; when to look again; UINT64_MAX: nothing is due. returns: its index, or n: none
 */
unsigned int urn_seats_due(const struct urn_seat *s, unsigned int n, uint64_t now, uint64_t *next);

#endif
