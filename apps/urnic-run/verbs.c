/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that were built for RDMA hardware get the drop-in libraries. */
#include "urnic-run/run.h"

#include <urnic/attach.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
run_verbs_folder(const char *folder, char full[PATH_MAX])
{
	char path[PATH_MAX];
	const char *found = path;

	if (folder == NULL)
		found = run_find(RUN_VERBS, path, sizeof(path));
	else if ((size_t)snprintf(path, sizeof(path), "%s/" RUN_VERBS, folder) >= sizeof(path))
		found = NULL;
	if (found == NULL || realpath(found, full) == NULL) {
		fprintf(stderr,
			"urnic-run: there is no " RUN_VERBS
			" of urnic %s%s; is urnic installed, or built?\n",
			folder != NULL ? "in " : "beside urnic-run", folder != NULL ? folder : "");
		return false;
	}
	*strrchr(full, '/') = '\0';
	if (strpbrk(full, ":;") == NULL)
		return true;
	fprintf(stderr,
		"urnic-run: the system finds no library in a folder whose path has a colon or a "
		"semicolon: %s\n",
		full);
	return false;
}

/* Preload the library of paths in a folder. returns: false: a message says why not */
static bool
preload_paths(const char *folder)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/" RUN_PATHS, folder) >= sizeof(path) ||
	    access(path, R_OK) != 0) {
		fprintf(stderr, "urnic-run: there is no " RUN_PATHS " in %s\n", folder);
		return false;
	}
	/* A blank would end the path; the system finds the name alone in LD_LIBRARY_PATH, too. */
	return run_put_first("LD_PRELOAD", strchr(path, ' ') == NULL ? path : RUN_PATHS);
}

/* The program's memory is not shared with urnicd, so what it sends is copied when posted, unless
 * told otherwise. */
static bool
tell_copy(void)
{
	const char *told = getenv("URNIC_COPY");

	return (told != NULL && told[0] != '\0') || run_tell("URNIC_COPY", "short");
}

bool
run_verbs(const char *folder)
{
	char full[PATH_MAX];

	return run_verbs_folder(folder, full) && run_put_first("LD_LIBRARY_PATH", full) &&
	       preload_paths(full) && run_tell("URNIC_EXPLAIN", "1") && tell_copy();
}

bool
run_share(void)
{
	char path[PATH_MAX];
	const char *library = run_find(RUN_SHARE, path, sizeof(path));

	if (library == NULL) {
		fputs("urnic-run: there is no " RUN_SHARE
		      " of urnic beside urnic-run; is urnic installed, or built?\n",
		      stderr);
		return false;
	}
	if (strpbrk(library, ": ") == NULL)
		return run_put_first("LD_PRELOAD", library) && run_tell("URNIC_SHARE", "1");
	fprintf(stderr,
		"urnic-run: the system loads no library whose path has a blank or a colon: %s\n",
		library);
	return false;
}

/* Open the virtual device that URNIC_SESSION describes. returns: NULL with errno set */
static struct ibv_context *
open_session(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;
	int err;

	if (list == NULL)
		return NULL;
	if (list[0] != NULL)
		c = ibv_open_device(list[0]);
	err = errno;
	ibv_free_device_list(list);
	errno = err;
	return c;
}

bool
run_urnicd_answers(void)
{
	const char *session = getenv("URNIC_SESSION");
	bool virtual = session != NULL && session[0] != '\0';
	struct ibv_context *c = virtual ? open_session() : urn_attach_connect(NULL, NULL);
	int err = errno;

	if (c != NULL) {
		ibv_close_device(c);
		return true;
	}
	fprintf(stderr, "urnic-run: %s\n", urn_attach_error());
	if (virtual)
		fputs("urnic-run: the program would find no RDMA device: see URNIC_SESSION\n",
		      stderr);
	else if (err == ENOENT || err == ECONNREFUSED)
		fputs("urnic-run: the program would find no RDMA device. For two nodes in one "
		      "dataplane, a and b:\n"
		      "           urnic-run --start two-nodes -- COMMAND\n",
		      stderr);
	return false;
}
