/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of logs, for the dataplane's log of events and the library's log of steps. */
#ifndef URN_ABI_LOG_LEVEL_H
#define URN_ABI_LOG_LEVEL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* X(id, word, priority): a log shows events of its level and of those before it. priority: of
 * syslog (RFC 5424, 6.2.1), as the journal takes it in front of a line */
#define URN_LOG_LEVEL_LIST(X)    \
	X(OFF, "off", 7)         \
	X(ERROR, "error", 3)     \
	X(WARNING, "warning", 4) \
	X(NOTICE, "notice", 5)   \
	X(INFO, "info", 6)       \
	X(DEBUG, "debug", 7)

enum urn_log_level {
#define X(id, word, priority) URN_LOG_##id,
	URN_LOG_LEVEL_LIST(X)
#undef X
		URN_LOG_LEVELS,
};

/* The word of a level. */
static inline const char *
urn_log_level_word(enum urn_log_level level)
{
	static const char *const words[URN_LOG_LEVELS] = {
#define X(id, word, priority) [URN_LOG_##id] = (word),
		URN_LOG_LEVEL_LIST(X)
#undef X
	};

	return words[level];
}

/* The priority of a level. */
static inline int
urn_log_level_priority(enum urn_log_level level)
{
	static const int priorities[URN_LOG_LEVELS] = {
#define X(id, word, priority) [URN_LOG_##id] = (priority),
		URN_LOG_LEVEL_LIST(X)
#undef X
	};

	return priorities[level];
}

/* True when a descriptor, which is or was the standard error, is the journal's (systemd.exec(5),
 * JOURNAL_STREAM). */
static inline bool
urn_log_is_journal(int fd)
{
	const char *told = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return told && sscanf(told, "%llu:%llu", &dev, &ino) == 2 && fstat(fd, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

#endif
