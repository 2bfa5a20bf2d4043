/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/options.h"

#include "attach/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
urn_sv_probe(const char *text, uint32_t *ms)
{
	unsigned long n;
	char *end;

	*ms = URN_SV_PROBE_MS;
	if (text == NULL || text[0] == '\0')
		return true;
	if (strcmp(text, "no") == 0) {
		*ms = 0;
		return true;
	}
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n < URN_SV_PROBE_LEAST_MS ||
	    n > URN_SV_PROBE_MOST_MS)
		return false;
	*ms = (uint32_t)n;
	return true;
}

bool
urn_sv_yes(const char *text, bool *yes)
{
	*yes = text != NULL && strcmp(text, "yes") == 0;
	return text == NULL || text[0] == '\0' || *yes || strcmp(text, "no") == 0;
}

bool
urn_sv_instance(const char *text, uint64_t *n)
{
	char *end;

	*n = (uint64_t)getpid();
	if (text == NULL || text[0] == '\0')
		return true;
	errno = 0;
	*n = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *n <= UINT32_MAX;
}

bool
urn_sv_level(const char *text, enum urn_log_level *level)
{
	*level = URN_LOG_DEBUG;
	if (text == NULL || text[0] == '\0')
		return true;
	for (int i = 0; i < URN_LOG_LEVELS; i++) {
		*level = (enum urn_log_level)i;
		if (strcmp(text, urn_log_level_word(*level)) == 0)
			return true;
	}
	return false;
}

/* Read a variable that is yes or no. returns: 0; EINVAL with its text */
static int
urn_sv_variable(const char *name, bool *yes)
{
	const char *text = secure_getenv(name);

	return urn_sv_yes(text, yes)
		       ? 0
		       : urn_fail(EINVAL, "%s is '%.32s'; it is yes or no", name, text);
}

int
urn_sv_options(struct urn_sv_options *o)
{
	const char *silence = secure_getenv("URNIC_SESSION_SILENCE");
	const char *probe = secure_getenv("URNIC_SESSION_PROBE");
	const char *instance = secure_getenv("URNIC_SESSION_INSTANCE");
	const char *level = secure_getenv("URNIC_SESSION_LOG_LEVEL");

	if (!urn_sv_silence(silence, &o->silence))
		return urn_fail(EINVAL,
				"URNIC_SESSION_SILENCE is '%.32s'; it is a number of milliseconds, "
				"%d to %d",
				silence, (int)URN_SV_SILENCE_LEAST_MS, (int)URN_SV_SILENCE_MOST_MS);
	if (!urn_sv_probe(probe, &o->probe))
		return urn_fail(EINVAL,
				"URNIC_SESSION_PROBE is '%.32s'; it is no, or a number of "
				"milliseconds, %d to %d",
				probe, (int)URN_SV_PROBE_LEAST_MS, (int)URN_SV_PROBE_MOST_MS);
	if (!urn_sv_instance(instance, &o->instance))
		return urn_fail(EINVAL,
				"URNIC_SESSION_INSTANCE is '%.32s'; it is a number, from 0 on",
				instance);
	if (!urn_sv_level(level, &o->log))
		return urn_fail(EINVAL,
				"URNIC_SESSION_LOG_LEVEL is '%.32s'; it is off, error, warning, "
				"notice, info or debug",
				level);
	return urn_sv_variable("URNIC_SESSION_FAILBACK", &o->fail_back);
}
