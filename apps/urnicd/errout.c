/* SPDX-License-Identifier: BSD-3-Clause */
#include "errout.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static unsigned int lost; /* number of lost messages; under stderr's lock */

/*
 * True when there is room for PIPE_BUF bytes: poll() reports a pipe as writable from there on.
 * Another writer of the pipe may take the room first: then one write waits, as without this check.
 */
static bool
has_room(void)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

/* returns: true when the whole text was written */
static bool
put(const char *text, size_t n)
{
	while (n) {
		size_t piece = n < PIPE_BUF ? n : PIPE_BUF;
		ssize_t done = has_room() ? write(STDERR_FILENO, text, piece) : -1;

		if (done <= 0)
			return false;
		text += done;
		n -= (size_t)done;
	}
	return true;
}

static ssize_t
put_message(void *cookie, const char *text, size_t n)
{
	char note[80];
	int len;

	(void)cookie;
	if (lost && has_room()) {
		len = snprintf(note, sizeof(note), "urnicd: %u messages found no room here and are lost\n", lost);
		if (put(note, (size_t)len))
			lost = 0;
	}
	if (lost || !put(text, n))
		lost++;
	return (ssize_t)n; /* the message is written or counted as lost */
}

void
nicd_errout_open(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = put_message});

	if (!f)
		return;
	(void)setvbuf(f, NULL, _IONBF, 0);
	stderr = f;
}
