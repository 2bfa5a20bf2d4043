/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of the program's start. Servers clear it (nginx's workers do, after fork()), and
 * urnic is looked for by such a process later. So the library's own secure_getenv() (--wrap)
 * finds a variable of urnic's in the environment, or else in what was kept at the start.
 */
#include "sockets/heir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { URN_ENV_MAX = 16 }; /* variables that are kept */

/* Copies of "NAME=value"; written once, before the program's main(). */
static char *urn_env_kept[URN_ENV_MAX];
static unsigned int urn_env_n;

/* True when a variable is one that the library reads later. */
static bool
urn_env_is(const char *text)
{
	return (strncmp(text, "URNIC_", 6) == 0 &&
		strncmp(text, URN_HEIR_VARIABLE "=", sizeof(URN_HEIR_VARIABLE)) != 0) ||
	       strncmp(text, "XDG_RUNTIME_DIR=", 16) == 0;
}

__attribute__((constructor)) static void
urn_env_keep(void)
{
	char **at;

	for (at = environ; at != NULL && *at != NULL && getauxval(AT_SECURE) == 0; at++)
		if (urn_env_n < URN_ENV_MAX && urn_env_is(*at) &&
		    (urn_env_kept[urn_env_n] = strdup(*at)) != NULL)
			urn_env_n++;
}

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
char *__wrap_secure_getenv(const char *name);
char *__real_secure_getenv(const char *name);

char *
__wrap_secure_getenv(const char *name)
{
	char *value = __real_secure_getenv(name);
	size_t len = strlen(name);
	unsigned int i;

	for (i = 0; value == NULL && i < urn_env_n; i++)
		if (strncmp(urn_env_kept[i], name, len) == 0 && urn_env_kept[i][len] == '=')
			value = urn_env_kept[i] + len + 1;
	return value;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
