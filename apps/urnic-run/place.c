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
		"../lib/x86_64-linux-gnu/urnic/",
		"../lib/x86_64-linux-gnu/urnic/verbs/",
		"../lib/aarch64-linux-gnu/urnic/",
		"../lib/aarch64-linux-gnu/urnic/verbs/",
		"../../lib/sockets/",
		"../../lib/share/",
		"../../lib/dropin/",
		"../urnicd/",
		"../sbin/",
		"../../config/",
		"../share/urnic/",
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
run_allow_asan(void)
{
	const char *before = getenv("ASAN_OPTIONS");
	char all[4096];

	if (before != NULL && strstr(before, "verify_asan_link_order") != NULL)
		return true;
	if ((size_t)snprintf(all, sizeof(all), "%s%sverify_asan_link_order=0",
			     before != NULL ? before : "",
			     before != NULL && before[0] != '\0' ? ":" : "") >= sizeof(all))
		return true; /* the sanitizer will say what it wants */
	return run_tell("ASAN_OPTIONS", all);
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

/* True when `part`, of n bytes, is `word`, or a path whose last name is `word`. */
static bool
names(const char *part, size_t n, const char *word)
{
	size_t len = strlen(word);

	if (n < len || memcmp(part + n - len, word, len) != 0)
		return false;
	return n == len || (word[0] != '/' && part[n - len - 1] == '/');
}

bool
run_take_out(const char *name, const char *word)
{
	const char *before = getenv(name), *part;
	char *rest;
	size_t n, used = 0;
	bool ok;

	if (before == NULL || word[0] == '\0')
		return true;
	rest = malloc(strlen(before) + 1);
	if (rest == NULL) {
		fprintf(stderr, "urnic-run: no memory for %s\n", name);
		return false;
	}
	for (part = before; *part != '\0'; part += n + (part[n] != '\0')) {
		n = strcspn(part, ":");
		if (names(part, n, word))
			continue;
		if (used > 0)
			rest[used++] = ':';
		memcpy(rest + used, part, n);
		used += n;
	}
	rest[used] = '\0';
	ok = used > 0 ? run_tell(name, rest) : unsetenv(name) == 0;
	free(rest);
	return ok;
}
