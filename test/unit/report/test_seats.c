/* SPDX-License-Identifier: BSD-3-Clause */
/* Seats of the server of counters: no number of slow clients keeps another out. Time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rnd.h"
#include "report/seats.h"

#include <arpa/inet.h>
#include <string.h>

enum { SEATS = 9, LIFE = 5000 };

static struct urn_seat seat[SEATS];
static uint64_t now;

static void
clear(void)
{
	memset(seat, 0, sizeof(seat));
	now = 1000000;
}

/* A client of an address takes a seat that is free. returns: its index; SEATS: none is free */
static unsigned int
sit(uint8_t from)
{
	unsigned int i = 0;

	while (i < SEATS && seat[i].taken)
		i++;
	if (i < SEATS) {
		seat[i] = (struct urn_seat){.taken = true, .since = now, .until = now + LIFE};
		seat[i].from[15] = from;
	}
	return i;
}

/* Free the seats that must be left now. *next: as urn_seats_due(). returns: how many */
static unsigned int
leave(uint64_t *next)
{
	unsigned int n = 0, i;

	while ((i = urn_seats_due(seat, SEATS, now, next)) < SEATS) {
		assert_true(seat[i].taken);
		seat[i].taken = false;
		n++;
	}
	return n;
}

/* Seats of an address. */
static unsigned int
has(uint8_t from)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < SEATS; i++)
		n += seat[i].taken && seat[i].from[15] == from;
	return n;
}

/* Without a crowd a seat is left when its time is over. */
static void
test_time(void **state)
{
	uint64_t next;

	(void)state;
	clear();
	assert_int_equal(urn_seats_due(seat, SEATS, now, &next), SEATS);
	assert_true(next == UINT64_MAX);
	assert_int_equal(urn_seats_due(seat, 0, now, &next), 0);
	for (unsigned int i = 0; i < SEATS - 1; i++, now += 10)
		sit(1);
	now += 10000 - 10 * (SEATS - 1) - 5001;
	assert_int_equal(leave(&next), 0);
	assert_true(next == 1000000 + LIFE);
	now = next;
	assert_int_equal(leave(&next), 1);
	assert_true(next == now + 10);
}

/* The newcomer of the same address waits until the oldest has had its seat for a while. */
static void
test_same_address(void **state)
{
	uint64_t next;

	(void)state;
	clear();
	for (unsigned int i = 0; i < SEATS; i++, now++)
		assert_int_equal(sit(1), i);
	assert_int_equal(leave(&next), 0);
	assert_true(next == 1000000 + URN_SEAT_GRACE_MS);
	now = next;
	assert_int_equal(leave(&next), 1);
	assert_false(seat[0].taken);
	assert_true(next > now + LIFE / 2); /* a seat is free: nobody else goes */
}

/* An address with many seats makes room at once, and only that one. */
static void
test_other_address(void **state)
{
	uint64_t next;

	(void)state;
	clear();
	for (unsigned int i = 0; i < SEATS - 1; i++)
		sit(1);
	assert_int_equal(sit(2), SEATS - 1); /* the seat that is kept for a newcomer */
	assert_int_equal(leave(&next), 1);
	assert_int_equal(has(1), SEATS - 2);
	/* Others come at the same time: each gets a seat until all have about as many. */
	for (uint8_t from = 3; from < 9; from++) {
		assert_true(sit(from) < SEATS);
		(void)leave(&next);
		assert_int_equal(has(from), 1);
	}
	assert_int_equal(has(2), 1);
	assert_int_equal(has(1), 2);
}

/*
 * Bound: others may do anything, and a client gets a seat within the grace after it is the next in
 * line, and has it for the grace at least.
 */
static void
test_bound(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t rng = seed, next, came;
		unsigned int mine;

		clear();
		for (int i = 0; i < 500; i++) {
			now += urn_rnd_next(&rng) % 40;
			(void)leave(&next);
			sit((uint8_t)(urn_rnd_next(&rng) % (seed % 4 + 1)));
		}
		came = now;
		/* The worst: an address that has seats already. */
		while ((mine = sit(0)) == SEATS) {
			if (leave(&next) > 0)
				continue;
			now = next;
			assert_true(now <= came + URN_SEAT_GRACE_MS);
		}
		for (came = now; now < came + URN_SEAT_GRACE_MS; now++) {
			(void)leave(&next);
			if (now > came)
				sit(1); /* others press on */
			assert_true(seat[mine].taken && seat[mine].since == came);
		}
	}
}

/* Addresses by which clients count. */
static void
test_from(void **state)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	uint8_t a[16], b[16], zero[16] = {0};

	(void)state;
	assert_int_equal(inet_pton(AF_INET, "10.0.0.1", &v4.sin_addr), 1);
	urn_seat_from(a, (const struct sockaddr *)&v4);
	v4.sin_port = 77;
	urn_seat_from(b, (const struct sockaddr *)&v4);
	assert_memory_equal(a, b, 16);
	assert_int_equal(inet_pton(AF_INET, "10.0.0.2", &v4.sin_addr), 1);
	urn_seat_from(b, (const struct sockaddr *)&v4);
	assert_memory_not_equal(a, b, 16);
	/* A client of IPv6 has as many addresses as it likes in its network. */
	assert_int_equal(inet_pton(AF_INET6, "fd00::1", &v6.sin6_addr), 1);
	urn_seat_from(a, (const struct sockaddr *)&v6);
	assert_int_equal(inet_pton(AF_INET6, "fd00::77:1", &v6.sin6_addr), 1);
	urn_seat_from(b, (const struct sockaddr *)&v6);
	assert_memory_equal(a, b, 16);
	assert_int_equal(inet_pton(AF_INET6, "fd00:0:0:1::1", &v6.sin6_addr), 1);
	urn_seat_from(b, (const struct sockaddr *)&v6);
	assert_memory_not_equal(a, b, 16);
	urn_seat_from(b, &(struct sockaddr){.sa_family = AF_UNIX});
	assert_memory_equal(b, zero, 16);
}

/* Time that a client waits behind so many of a crowd, which has all seats. returns: ms */
static uint64_t
wait_behind(unsigned int line, uint8_t addresses)
{
	uint64_t next, from, rng = line + 1;
	unsigned int taken = 0;

	clear();
	while (sit((uint8_t)(urn_rnd_next(&rng) % addresses)) < SEATS)
		taken++;
	from = now;
	for (;;) {
		taken -= leave(&next);
		if (taken == SEATS) {
			now = next;
			continue;
		}
		if (line-- == 0)
			return now - from;
		taken += sit((uint8_t)(urn_rnd_next(&rng) % addresses)) < SEATS;
	}
}

/* Bound of the wait in line: the grace for each nine clients before, if they are of one address,
 * and for each single one whoever they are. The socket's line holds ten. */
static void
test_line(void **state)
{
	(void)state;
	for (unsigned int line = 0; line < 100; line++) {
		assert_in_range(wait_behind(line, 1), 0, (line / SEATS + 1) * 250ull);
		for (uint8_t addresses = 2; addresses < 12; addresses++)
			assert_in_range(wait_behind(line, addresses), 0, (line + 1) * 250ull);
	}
	assert_in_range(wait_behind(10, 1), 0, 500);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),	      cmocka_unit_test(test_same_address),
		cmocka_unit_test(test_other_address), cmocka_unit_test(test_bound),
		cmocka_unit_test(test_line),	      cmocka_unit_test(test_from),
	};

	return cmocka_run_group_tests_name("seats", tests, NULL, NULL);
}
