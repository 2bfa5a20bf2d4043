/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"

#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
cp_source_fail(struct cp_source *src, const char *why)
{
	if (src->state == CP_UNSENT)
		return;
	src->state = CP_UNSENT;
	if (why != src->why.text)
		snprintf(src->why.text, sizeof(src->why.text), "%s", why);
	cp_complain("%s", src->why.text);
}

static int
open_failed(struct cp_source *src, int code)
{
	urn_err_set(&src->why, "cannot read '%.150s': %s.", src->path, strerror(code));
	return -1;
}

int
cp_source_open(struct cp_source *src)
{
	struct stat st;
	uint8_t byte;
	/* O_NONBLOCK: a FIFO is refused below, not waited for. */
	int fd = open(src->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return open_failed(src, errno);
	if (fstat(fd, &st) != 0) {
		open_failed(src, errno);
	} else if (S_ISDIR(st.st_mode)) {
		urn_err_set(&src->why, "'%.150s' is a folder; name the files in it.", src->path);
	} else if (!S_ISREG(st.st_mode)) {
		urn_err_set(&src->why, "'%.150s' is not a regular file; only those can be sent.",
			    src->path);
	} else {
		src->size = (uint64_t)st.st_size;
		src->mode = st.st_mode & 0777;
		/* Refuse files, too, whose size is 0 though they have content, as in /proc. */
		if (src->size > 0 || cp_source_read(src, fd, &byte, 0, 0, true, &src->why) == 0)
			return fd;
	}
	close(fd);
	return -1;
}

int
cp_source_read(const struct cp_source *src, int fd, uint8_t *buf, size_t len, uint64_t offset,
	       bool last, struct urn_err *err)
{
	size_t done = 0;
	uint8_t more;
	ssize_t n;

	while (done < len) {
		n = pread(fd, buf + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			urn_err_set(err, "cannot read '%.150s': %s.", src->path, strerror(errno));
			return -1;
		}
		if (n == 0) {
			urn_err_set(err, "'%.150s' became shorter while it was sent; send it again.",
				    src->path);
			return -1;
		}
		done += (size_t)n;
	}
	if (last && pread(fd, &more, 1, (off_t)(offset + len)) > 0) {
		urn_err_set(err, "'%.150s' became longer while it was sent; send it again when nobody "
				 "writes to it.", src->path);
		return -1;
	}
	return 0;
}

static void
look_at(struct cp_source *src)
{
	const char *why = cp_name_check(src->name, strlen(src->name));
	int fd = cp_source_open(src);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 && why != NULL) {
		urn_err_set(&src->why, "'%.150s' cannot be sent: it has %s.", src->path, why);
		fd = -1;
	}
	if (fd < 0)
		cp_source_fail(src, src->why.text);
}

static int
by_name(const void *a, const void *b)
{
	const struct cp_source *x = *(struct cp_source *const *)a;
	const struct cp_source *y = *(struct cp_source *const *)b;
	int rc = strcmp(x->name, y->name);

	/* With equal names the order of the command line decides. */
	return rc != 0 ? rc : (x > y) - (x < y);
}

/* When several files would get one name, only the first is sent. */
static int
refuse_same_names(struct cp_source *src, unsigned int n)
{
	struct cp_source **sorted = calloc(n, sizeof(*sorted));
	struct cp_source *first = NULL;

	if (sorted == NULL)
		return -1;
	for (unsigned int i = 0; i < n; i++)
		sorted[i] = &src[i];
	qsort(sorted, n, sizeof(*sorted), by_name);
	for (unsigned int i = 0; i < n; i++) {
		if (sorted[i]->state != CP_TODO)
			continue;
		if (first == NULL || strcmp(first->name, sorted[i]->name) != 0) {
			first = sorted[i];
			continue;
		}
		urn_err_set(&sorted[i]->why, "'%.80s' would get the same name as '%.80s'; send it to "
					     "another folder.", sorted[i]->path, first->path);
		cp_source_fail(sorted[i], sorted[i]->why.text);
	}
	free(sorted);
	return 0;
}

struct cp_source *
cp_sources_look(char *const *paths, unsigned int n, unsigned int *sendable, uint64_t *bytes)
{
	struct cp_source *src = calloc(n, sizeof(*src));

	*sendable = 0;
	*bytes = 0;
	if (src == NULL)
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		const char *slash = strrchr(paths[i], '/');

		src[i].path = paths[i];
		src[i].name = slash != NULL ? slash + 1 : paths[i];
		look_at(&src[i]);
	}
	if (refuse_same_names(src, n) != 0) {
		free(src);
		return NULL;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (src[i].state != CP_TODO)
			continue;
		(*sendable)++;
		*bytes += src[i].size;
	}
	return src;
}
