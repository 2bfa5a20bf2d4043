/* SPDX-License-Identifier: BSD-3-Clause */
/* Where urnic's libraries are, and the environment by which the program finds them. */
#include "urnic-run/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
run_find(const char *name, char *path, size_t size)
{
	/* From the folder of urnic-run. */
	static const char *const places[] = {
		"",
		"../lib/",
		"../lib/urnic/",
		"../lib/urnic/verbs/",
		"../lib/x86_64-linux-gnu/",
		"../lib/x86_64-linux-gnu/urnic/verbs/",
		"../lib/aarch64-linux-gnu/",
		"../lib/aarch64-linux-gnu/urnic/verbs/",
		"../../lib/sockets/",
		"../../lib/share/",
		"../../lib/dropin/",
	};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		slash[1] = '\0';
	for (i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(path, size, "%s%s%s", self, places[i], name);

		if (len > 0 && (size_t)len < size && access(path, R_OK) == 0)
			return path;
	}
	return NULL;
}

bool
run_tell(const char *name, const char *value)
{
	if (value == NULL || setenv(name, value, 1) == 0)
		return true;
	fprintf(stderr, "urnic-run: %s can't be set: %s\n", name, strerror(errno));
	return false;
}

bool
run_put_first(const char *name, const char *word)
{
	const char *before = getenv(name);
	char *all;
	bool ok;

	if (before == NULL || before[0] == '\0')
		return run_tell(name, word);
	if (asprintf(&all, "%s:%s", word, before) < 0) {
		fprintf(stderr, "urnic-run: no memory for %s\n", name);
		return false;
	}
	ok = run_tell(name, all);
	free(all);
	return ok;
}
