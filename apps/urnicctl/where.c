/* SPDX-License-Identifier: BSD-3-Clause */
#include "where.h"

#include "urnicd/admin_proto.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/urnic/urnicd.sock"
#define HOW "; start one (urnicd -c FILE), or say where it is: --socket PATH"

static bool
is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The control socket of a socket for programs, if there is one, or the given path itself. */
static bool
beside(char *path, size_t size, const char *socket)
{
	int n = snprintf(path, size, "%s" ADMIN_SUFFIX, socket);

	if (n < 0 || (size_t)n >= size || !is_socket(path))
		n = snprintf(path, size, "%s", socket);
	return n > 0 && (size_t)n < size;
}

bool
ctl_where_find(const char *told, struct ctl_where *w)
{
	const char *variable = getenv("URNIC_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	memset(w, 0, sizeof(*w));
	if (told && strcmp(told, "auto") != 0)
		return beside(w->path, sizeof(w->path), told);
	if (variable && variable[0])
		return beside(w->path, sizeof(w->path), variable);
	/* The folder of another user is ignored, as programs do. */
	if (dir && stat(dir, &st) == 0 && st.st_uid != geteuid())
		w->others_dir = true;
	else if (dir && dir[0]) {
		n = snprintf(w->before, sizeof(w->before), "%s/urnic/urnicd.sock", dir);
		if (n > 0 && (size_t)n < sizeof(w->before) &&
		    beside(w->path, sizeof(w->path), w->before) && is_socket(w->path))
			return true;
	}
	return beside(w->path, sizeof(w->path), SYSTEM_SOCKET);
}

/* This user may not connect: because of the socket's own mode, or of a folder before it. */
static void
tell_closed(const char *path)
{
	struct stat st;
	struct group *g;

	if (stat(path, &st) != 0) {
		fprintf(stderr,
			"urnicctl: no urnicd at %s for user %u: a folder on the way is closed to "
			"this user\n",
			path, (unsigned int)geteuid());
		return;
	}
	g = getgrgid(st.st_gid);
	fprintf(stderr,
		"urnicctl: no urnicd at %s for user %u: the socket is of user %u and group %s, "
		"mode %04o: members of \"control_group\" of [urnicd] may ask\n",
		path, (unsigned int)geteuid(), (unsigned int)st.st_uid, g ? g->gr_name : "?",
		(unsigned int)(st.st_mode & 07777));
}

void
ctl_where_tell(const struct ctl_where *w, int err)
{
	struct stat st;

	if (err == EACCES || err == EPERM)
		tell_closed(w->path);
	else if (err == ECONNREFUSED && stat(w->path, &st) == 0)
		fprintf(stderr, "urnicctl: no urnicd at %s: %s" HOW "\n", w->path,
			S_ISSOCK(st.st_mode) ? "its socket is there, and nobody listens any more"
					     : "the file is no socket");
	else if (err == ENOENT && w->before[0])
		fprintf(stderr, "urnicctl: no urnicd at %s, nor at %s: nothing is there" HOW "\n",
			w->path, w->before);
	else if (err == ENOENT)
		fprintf(stderr, "urnicctl: no urnicd at %s: nothing is there%s" HOW "\n", w->path,
			w->others_dir ? ", and XDG_RUNTIME_DIR is not this user's" : "");
	else
		fprintf(stderr, "urnicctl: %s: %s\n", w->path, strerror(err));
}
