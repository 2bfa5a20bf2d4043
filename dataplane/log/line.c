/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/line.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
urn_log_who_program(struct urn_log_who *who)
{
	char path[40];
	ssize_t n;
	int fd;

	memset(who->program, 0, sizeof(who->program));
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)who->pid);
	fd = who->pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	n = read(fd, who->program, sizeof(who->program) - 1);
	close(fd);
	n = n < 0 ? 0 : n;
	who->program[n] = '\0';
	who->program[strcspn(who->program, "\n")] = '\0';
}

/* Name of a user, or the number. */
static const char *
user_name(uid_t uid, struct urn_log_users *users)
{
	struct passwd pw, *found = NULL;
	unsigned int at;
	char buf[2048];

	for (unsigned int i = 0; i < users->n && i < URN_LOG_USERS; i++)
		if (users->user[i].uid == uid)
			return users->user[i].name;
	at = users->n++ % URN_LOG_USERS;
	users->user[at].uid = uid;
	if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) == 0 && found)
		snprintf(users->user[at].name, sizeof(users->user[at].name), "%s", pw.pw_name);
	else
		snprintf(users->user[at].name, sizeof(users->user[at].name), "%u",
			 (unsigned int)uid);
	return users->user[at].name;
}

/* The line so far. */
struct log_text {
	char *out;
	size_t used; /* bytes, at most URN_LOG_LINE - 2: a line end fits */
};

static void __attribute__((format(printf, 2, 3))) add(struct log_text *l, const char *fmt, ...)
{
	size_t room = URN_LOG_LINE - 1 - l->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->out + l->used, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* Write the program, with a blank behind it. */
static void
add_who(struct log_text *l, const struct urn_log_who *who, struct urn_log_users *users)
{
	char client[32] = "";

	if (who->client && who->pid)
		snprintf(client, sizeof(client), ", client %u", who->client);
	if (!who->pid)
		add(l, "client %u ", who->client);
	else if (who->program[0])
		add(l, "program %s (process %d, user %s%s) ", who->program, (int)who->pid,
		    user_name(who->uid, users), client);
	else
		add(l, "process %d (user %s%s) ", (int)who->pid, user_name(who->uid, users),
		    client);
}

size_t
urn_log_line(const struct urn_log_entry *e, bool priority, const char *name,
	     struct urn_log_users *users, char out[URN_LOG_LINE])
{
	enum urn_log_level level = urn_log_event_level(e->event);
	struct log_text l = {.out = out};
	size_t begin;
	struct tm tm;

	if (priority)
		add(&l, "<%d>", urn_log_level_priority(level));
	gmtime_r(&e->at.tv_sec, &tm);
	add(&l, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %s[%d] %s %s %s: ", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)(e->at.tv_nsec / 1000000), name, (int)getpid(), urn_log_level_word(level),
	    urn_log_area_word(urn_log_event_area(e->event)), urn_log_event_word(e->event));
	begin = l.used;
	if (e->has_who)
		add_who(&l, &e->who, users);
	add(&l, "%s", e->text);
	for (size_t i = begin; i < l.used; i++)
		if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
	out[l.used++] = '\n';
	out[l.used] = '\0';
	return l.used;
}

void
urn_log_line_more(const struct urn_log_more *more, struct urn_log_users *users,
		  struct urn_log_entry *e)
{
	*e = (struct urn_log_entry){.event = more->event, .has_who = more->has_who && !more->user};
	e->who = more->who;
	(void)clock_gettime(CLOCK_REALTIME, &e->at);
	if (!more->has_who)
		snprintf(e->text, sizeof(e->text), "%u more like this within a second", more->n);
	else if (more->user)
		snprintf(e->text, sizeof(e->text),
			 "programs of user %s: %u more like this within a second",
			 user_name(more->who.uid, users), more->n);
	else
		snprintf(e->text, sizeof(e->text), "has %u more like this within a second",
			 more->n);
}
