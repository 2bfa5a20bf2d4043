/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/moves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void
urn_moves_begin(struct urn_moves *m, int pid, uint64_t since_us)
{
	memset(m, 0, sizeof(*m));
	m->pid = pid;
	m->since_us = since_us;
}

void
urn_moves_end(struct urn_moves *m)
{
	free(m->conn);
	m->conn = NULL;
	m->room = 0;
}

static struct urn_moves_conn *
find(struct urn_moves *m, uint32_t number)
{
	for (uint32_t i = 0; i < m->left; i++)
		if (m->conn[i].number == number)
			return &m->conn[i];
	return NULL;
}

/* A connection has left its path. */
static void
left(struct urn_moves *m, uint32_t number)
{
	if (find(m, number) != NULL)
		return;
	if (m->left == m->room) {
		uint32_t room = m->room != 0 ? 2 * m->room : 16;
		struct urn_moves_conn *more = realloc(m->conn, room * sizeof(*more));

		if (more == NULL) {
			m->short_of_memory = true;
			return;
		}
		m->conn = more;
		m->room = room;
	}
	m->conn[m->left++] = (struct urn_moves_conn){.number = number};
}

/* A connection has migrated. Later migrations of the same one are of other losses. */
static void
moved(struct urn_moves *m, uint32_t number, uint64_t at_us, const char *text)
{
	struct urn_moves_conn *c = find(m, number);
	const char *took = strstr(text, " took us=");
	uint64_t us = took != NULL ? strtoull(took + 9, NULL, 10) : 0;

	if (c == NULL || c->moved)
		return;
	c->moved = true;
	m->moved++;
	m->moved_us = at_us;
	if (us > m->slowest_us)
		m->slowest_us = us;
}

/* Note the first line of a loss. text: of which the words are a part; end: behind them */
static void
noticed(struct urn_moves *m, uint64_t at_us, const char *text, const char *end)
{
	if (m->noticed_us != 0)
		return;
	m->noticed_us = at_us;
	if (end == NULL)
		end = text + strlen(text);
	snprintf(m->cause, sizeof(m->cause), "%.*s", (int)(end - text), text);
}

/* A line about an adapter. */
static void
adapter_line(struct urn_moves *m, uint64_t at_us, const char *text)
{
	char name[64], how[16];

	if (sscanf(text, "adapter %63s is %15s", name, how) == 2 && strcmp(how, "lost") == 0)
		noticed(m, at_us, text, NULL);
	else if (sscanf(text, "adapter %63s has its link %15s", name, how) == 2 &&
		 strncmp(how, "down", 4) == 0)
		noticed(m, at_us, text, strchr(text, ','));
}

/* A line about a connection, behind its head. */
static void
conn_line(struct urn_moves *m, uint64_t at_us, uint32_t number, const char *text)
{
	const char *because = strstr(text, " because ");
	char from[16], to[16];

	if (strncmp(text, "lost path=", 10) == 0 && because != NULL) {
		noticed(m, at_us, because + 9, NULL);
		return;
	}
	if (sscanf(text, "step %15s -> %15s", from, to) != 2)
		return;
	if (strcmp(from, "CONNECTED") == 0 && strcmp(to, "MIGRATED") != 0) {
		noticed(m, at_us, because != NULL ? because + 9 : text, NULL);
		left(m, number);
	}
	if (strcmp(to, "MIGRATED") == 0)
		moved(m, number, at_us, text);
}

void
urn_moves_line(struct urn_moves *m, const char *line)
{
	struct tm tm = {.tm_isdst = 0};
	unsigned int us, number;
	const char *numbers;
	int pid, head = 0, conn = 0;
	uint64_t at_us;

	if (sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%6uZ session[%d.%*u] %*s session %*s %n",
		   &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &us,
		   &pid, &head) != 8 ||
	    head == 0)
		return;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	at_us = (uint64_t)timegm(&tm) * 1000000 + us;
	if (pid != m->pid || at_us < m->since_us)
		return;
	numbers = strstr(line + head, " | ");
	if (numbers == NULL)
		adapter_line(m, at_us, line + head);
	else if (sscanf(numbers, " | conn=%u peer=%*u epoch=%*u path=%*s %n", &number, &conn) ==
			 1 &&
		 conn > 0)
		conn_line(m, at_us, number, numbers + conn);
}
