/* SPDX-License-Identifier: BSD-3-Clause */
#include "errout.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static unsigned int lost; /* messages; under stderr's lock */

/*
 * Is there room for PIPE_BUF bytes? Of a pipe poll() says so from there on. Who shares
 * the pipe may take it before us: then this waits once, as it would have always.
 */
static bool
has_room(void)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

/* returns: all of it went */
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
	return (ssize_t)n; /* it is dealt with */
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
