/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/parse.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Copy bytes to a text. returns: false: there is no room */
static bool
copy(char *to, size_t room, const char *from, size_t bytes)
{
	if (bytes >= room)
		return false;
	memcpy(to, from, bytes);
	to[bytes] = '\0';
	return true;
}

/* Parse one adapter, up to `end`. returns: NULL, or a sentence about the mistake */
static const char *
parse_one(const char *at, const char *end, struct urn_sv_place *p)
{
	const char *colon = memrchr(at, ':', (size_t)(end - at));
	const char *slash = memrchr(at, '/', (size_t)(end - at));

	/* A colon before the last slash belongs to the path. */
	if (colon == NULL || (slash != NULL && colon < slash))
		colon = end;
	if (*at != '/')
		return "a socket needs its whole path, from / on";
	if (!copy(p->socket, sizeof(p->socket), at, (size_t)(colon - at)))
		return "the path of a socket is too long";
	if (colon == end)
		p->adapter[0] = '\0';
	else if (colon + 1 == end)
		return "a name of an adapter is missing behind a colon";
	else if (!copy(p->adapter, sizeof(p->adapter), colon + 1, (size_t)(end - colon - 1)))
		return "the name of an adapter is too long";
	return NULL;
}

/* Parse a pair of adapters, up to `end`. returns: as parse_one() */
static const char *
parse_pair(const char *at, const char *end, struct urn_sv_place place[URN_SV_ADAPTERS])
{
	const char *comma = memchr(at, ',', (size_t)(end - at)), *why;

	if (comma == NULL || memchr(comma + 1, ',', (size_t)(end - comma - 1)) != NULL)
		return "there must be two adapters, with a comma between them";
	why = parse_one(at, comma, &place[0]);
	if (why == NULL)
		why = parse_one(comma + 1, end, &place[1]);
	if (why == NULL && strcmp(place[0].socket, place[1].socket) == 0 &&
	    strcmp(place[0].adapter, place[1].adapter) == 0)
		why = "both adapters are the same one";
	return why;
}

int
urn_sv_parse(const char *text, uint64_t instance, struct urn_sv_place place[URN_SV_ADAPTERS],
	     const char **why)
{
	struct urn_sv_place pair[URN_SV_ADAPTERS];
	uint64_t pairs = 1, n = 0;
	const char *end;

	for (const char *p = text; *p != '\0'; p++)
		pairs += *p == ';';
	do {
		end = strchrnul(text, ';');
		*why = parse_pair(text, end, pair);
		if (*why != NULL)
			return EINVAL;
		if (n++ == instance % pairs)
			memcpy(place, pair, sizeof(pair));
		text = end + 1;
	} while (*end != '\0');
	return 0;
}

bool
urn_sv_same_socket(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}
