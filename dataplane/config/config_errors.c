/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
make_room(struct urn_config_errors *errors)
{
	unsigned int room = errors->room != 0 ? 2 * errors->room : 8;
	struct urn_config_error *more;

	if (errors->n < errors->room)
		return 0;
	more = realloc(errors->error, room * sizeof(*more));
	if (!more)
		return -1;
	errors->error = more;
	errors->room = room;
	return 0;
}

/* Make "FILE:LINE: sentence". returns: the text, for free(), or NULL */
static char *
make_text(const char *file, unsigned int line, const char *fmt, va_list ap)
{
	char *sentence, *text;
	int n;

	if (vasprintf(&sentence, fmt, ap) < 0)
		return NULL;
	n = line != 0 ? asprintf(&text, "%s:%u: %s", file, line, sentence)
		      : asprintf(&text, "%s: %s", file, sentence);
	free(sentence);
	return n < 0 ? NULL : text;
}

/* Insert a mistake behind those of its line and of earlier lines: checks of the whole run after those of lines. */
static void
insert(struct urn_config_errors *errors, unsigned int line, char *text)
{
	unsigned int at = errors->n++;

	while (at > 0 && errors->error[at - 1].line > line)
		at--;
	memmove(&errors->error[at + 1], &errors->error[at],
		(errors->n - 1 - at) * sizeof(errors->error[0]));
	errors->error[at] = (struct urn_config_error){.line = line, .text = text};
}

void
urn_config_error(struct urn_config_errors *errors, const char *file, unsigned int line,
		 const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	if (!errors)
		return;
	if (errors->n < URN_CONFIG_ERRORS_MAX && make_room(errors) == 0) {
		va_start(ap, fmt);
		text = make_text(file, line, fmt, ap);
		va_end(ap);
	}
	if (text)
		insert(errors, line, text);
	else
		errors->more++;
}

unsigned int
urn_config_errors_count(const struct urn_config_errors *errors)
{
	return errors->n + errors->more;
}

void
urn_config_errors_free(struct urn_config_errors *errors)
{
	for (unsigned int i = 0; i < errors->n; i++)
		free(errors->error[i].text);
	free(errors->error);
	memset(errors, 0, sizeof(*errors));
}
