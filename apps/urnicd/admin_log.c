/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about the log, and the log of commands. */
#include "admin.h"

#include "dataplane/log/log.h"

#include <stdio.h>
#include <string.h>

int
nicd_run_log(struct nicd_run *r)
{
	const char *area = admin_arg(&r->call, "AREA"), *word = admin_arg(&r->call, "LEVEL");
	struct urn_log *log = r->admin->rig->log;
	uint8_t level[URN_LOG_AREA_COUNT];
	char text[2 * URN_LOG_WORDS], why[200];
	bool all = strcmp(area, "all") == 0;

	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++)
		level[i] = (uint8_t)urn_log_level(log, (enum urn_log_area)i);
	/* One area and one level are words without the signs of a list. */
	if (strlen(area) + strlen(word) + 2 > URN_LOG_WORDS || strpbrk(area, ":, \t") ||
	    strpbrk(word, ":, \t")) {
		urn_err_set(&r->err, "give one area, or all, and one level: log qp debug");
		return NICD_RUN_WRONG;
	}
	snprintf(text, sizeof(text), "%s%s%s", all ? "" : area, all ? "" : ":", word);
	if (urn_log_parse(text, level, why, sizeof(why)) != 0) {
		urn_err_set(&r->err, "%s", why);
		return NICD_RUN_WRONG;
	}
	nicd_admin_tell(r); /* the new level may hide it */
	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++)
		urn_log_set(log, (enum urn_log_area)i, (enum urn_log_level)level[i]);
	return URN_REPORT_DONE;
}

int
nicd_run_show_log(struct nicd_run *r)
{
	static const char *const texts[URN_LOG_AREA_COUNT] = {
#define X(id, word, text) [URN_LOG_##id] = (text),
		URN_LOG_AREAS(X)
#undef X
	};
	struct urn_report_sink *s = r->sink;

	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++) {
		enum urn_log_area area = (enum urn_log_area)i;

		s->begin(s, "area", false);
		s->str(s, "area", urn_log_area_word(area));
		s->str(s, "level", urn_log_level_word(urn_log_level(r->admin->rig->log, area)));
		s->str(s, "about", texts[i]);
		s->end(s);
	}
	return URN_REPORT_DONE;
}

void
nicd_admin_note(struct nicd_run *r, char *const *words, unsigned int n)
{
	size_t len = 0;

	for (unsigned int i = 0; i < n && len < sizeof(r->said); i++)
		len += (size_t)snprintf(r->said + len, sizeof(r->said) - len, "%s%s", i ? " " : "",
					words[i]);
}

void
nicd_admin_tell(struct nicd_run *r)
{
	const char *words = admin_commands[r->call.id].words;

	if (r->told || strncmp(words, "show ", 5) == 0 || r->call.id == ADMIN_help ||
	    r->call.id == ADMIN_quit)
		return;
	r->told = urn_log_shows(r->admin->rig->log, URN_LOG_COMMANDED);
	if (r->console) {
		urn_log_say(r->admin->rig->log, URN_LOG_COMMANDED, NULL,
			    "the console gave the command: %s", r->said);
		return;
	}
	urn_log_who_program(&r->by);
	urn_log_say(r->admin->rig->log, URN_LOG_COMMANDED, &r->by, "gave the command: %s", r->said);
}
