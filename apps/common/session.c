/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/session.h"

#include <urnic/attach.h>

#include <stdlib.h>
#include <string.h>

#define VARIABLE "URNIC_SESSION"

int
urn_session_use(const char *text, struct urn_err *err)
{
	const char *told = getenv(VARIABLE);

	if (strcmp(text, "auto") != 0) {
		if (setenv(VARIABLE, text, 1) == 0)
			return 0;
		urn_err_set(err, "--session: no memory for the names of the adapters");
		return -1;
	}
	if (told != NULL && told[0] != '\0')
		return 0;
	urn_err_set(err, "--session auto: " VARIABLE " is not set; name both adapters: "
			 "SOCKET[:ADAPTER],SOCKET[:ADAPTER]");
	return -1;
}

struct ibv_context *
urn_session_open(struct urn_err *err)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	if (list != NULL && list[0] != NULL)
		ctx = ibv_open_device(list[0]);
	if (ctx == NULL)
		urn_err_set(err, "cannot open the virtual device of the session: %s",
			    urn_attach_error());
	if (list != NULL)
		ibv_free_device_list(list);
	return ctx;
}

/* Copy bytes to a text. returns: false: there is no room, or there are none */
static bool
copy(char *to, size_t room, const char *from, size_t bytes)
{
	if (bytes == 0 || bytes >= room)
		return false;
	memcpy(to, from, bytes);
	to[bytes] = '\0';
	return true;
}

/* Take one adapter apart: `bytes` of text. returns: false: it is none */
static bool
one_place(const char *text, size_t bytes, struct urn_session_place *p)
{
	const char *end = text + bytes;
	const char *colon = memrchr(text, ':', bytes), *slash = memrchr(text, '/', bytes);

	/* A colon before the last slash belongs to the path. */
	if (colon == NULL || (slash != NULL && colon < slash))
		colon = end;
	p->adapter[0] = '\0';
	if (!copy(p->socket, sizeof(p->socket), text, (size_t)(colon - text)))
		return false;
	return colon == end ||
	       copy(p->adapter, sizeof(p->adapter), colon + 1, (size_t)(end - colon - 1));
}

int
urn_session_places(const char *text, struct urn_session_place place[2], struct urn_err *err)
{
	const char *comma = strchr(text, ',');

	if (comma != NULL && strchr(text, ';') == NULL &&
	    one_place(text, (size_t)(comma - text), &place[0]) &&
	    one_place(comma + 1, strlen(comma + 1), &place[1]))
		return 0;
	urn_err_set(err,
		    "a session has two adapters: SOCKET[:ADAPTER],SOCKET[:ADAPTER], and not "
		    "'%.100s'",
		    text);
	return -1;
}
