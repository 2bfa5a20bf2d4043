/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/eal_log.h"

#include <rte_log.h>

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static FILE *log_stream; /* owner: eal_log.c; NULL: DPDK's own stream is in use */
static bool log_loud;

static _Thread_local struct {
	bool on;	/* hold lines back */
	char line[160]; /* the first line held; "": none */
} held;

static void
hold_line(const char *buf, size_t size)
{
	size_t n = size;

	if (held.line[0] != '\0')
		return;
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '.' || buf[n - 1] == ' '))
		n--;
	if (n >= sizeof(held.line))
		n = sizeof(held.line) - 1;
	memcpy(held.line, buf, n);
	held.line[n] = '\0';
}

static ssize_t
log_write(void *cookie, const char *buf, size_t size)
{
	(void)cookie;
	if (held.on)
		hold_line(buf, size);
	if (!held.on || log_loud)
		(void)!write(STDERR_FILENO, buf, size);
	return (ssize_t)size;
}

void
urn_eal_log_open(bool loud)
{
	cookie_io_functions_t io = {.write = log_write};

	log_loud = loud;
	if (log_stream != NULL)
		return;
	log_stream = fopencookie(NULL, "w", io);
	if (log_stream == NULL)
		return;
	setvbuf(log_stream, NULL, _IOLBF, 1024);
	rte_openlog_stream(log_stream);
}

void
urn_eal_log_close(void)
{
	if (log_stream == NULL)
		return;
	rte_openlog_stream(NULL);
	fclose(log_stream);
	log_stream = NULL;
}

int
urn_eal_log_level(const char *level)
{
	static const struct {
		const char *name;
		uint32_t level;
	} levels[] = {
		{"error", RTE_LOG_ERR}, {"warning", RTE_LOG_WARNING}, {"notice", RTE_LOG_NOTICE},
		{"info", RTE_LOG_INFO}, {"debug", RTE_LOG_DEBUG},
	};

	for (unsigned int i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(level, levels[i].name) == 0)
			return rte_log_set_level_pattern("*", levels[i].level) < 0 ? -1 : 0;
	return -1;
}

void
urn_eal_log_hold(void)
{
	held.on = true;
	held.line[0] = '\0';
}

void
urn_eal_log_release(void)
{
	held.on = false;
}

const char *
urn_eal_log_reason(void)
{
	return held.line;
}
