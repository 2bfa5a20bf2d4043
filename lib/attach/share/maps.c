/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/share/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Read a number. *at: its first digit, then the byte behind it. returns: false: no digit */
static bool
urn_maps_number(const char **at, unsigned int base, uint64_t *out)
{
	const char *p = *at;
	uint64_t n = 0;

	for (;; p++) {
		unsigned int digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned int)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned int)(*p - 'a') + 10;
		else
			break;
		n = n * base + digit;
	}
	if (p == *at)
		return false;
	*at = p;
	*out = n;
	return true;
}

/* Read a number and the character behind it. */
static bool
urn_maps_field(const char **at, unsigned int base, uint64_t *out, char behind)
{
	if (!urn_maps_number(at, base, out) || **at != behind)
		return false;
	(*at)++;
	return true;
}

static bool
urn_maps_perms(const char **at, struct urn_own_mapping *m)
{
	const char *p = *at;

	if (strnlen(p, 5) < 5 || p[4] != ' ' || (p[3] != 'p' && p[3] != 's'))
		return false;
	m->read = p[0] == 'r';
	m->write = p[1] == 'w';
	m->exec = p[2] == 'x';
	m->shared = p[3] == 's';
	*at = p + 5;
	return true;
}

/* True when the name says neither a stack nor memory of the kernel's; "[anon:NAME]" is of
 * prctl(PR_SET_VMA). */
static bool
urn_maps_plain(const char *name)
{
	return name[0] == '\0' || strcmp(name, "[heap]") == 0 || strncmp(name, "[anon:", 6) == 0;
}

bool
urn_maps_ring(const char *name)
{
	return strcmp(name, "anon_inode:[io_uring]") == 0 || strcmp(name, "/[aio] (deleted)") == 0;
}

bool
urn_mapping_parse(const char *line, struct urn_own_mapping *m)
{
	uint64_t start, end, major, minor;
	const char *at = line;

	*m = (struct urn_own_mapping){0};
	if (!urn_maps_field(&at, 16, &start, '-') || !urn_maps_field(&at, 16, &end, ' ') ||
	    !urn_maps_perms(&at, m) || !urn_maps_field(&at, 16, &m->off, ' ') ||
	    !urn_maps_field(&at, 16, &major, ':') || !urn_maps_field(&at, 16, &minor, ' ') ||
	    !urn_maps_number(&at, 10, &m->ino) || start >= end)
		return false;
	while (*at == ' ')
		at++;
	m->start = start;
	m->end = end;
	m->major = (uint32_t)major;
	m->minor = (uint32_t)minor;
	m->plain = urn_maps_plain(at);
	m->ring = urn_maps_ring(at);
	return true;
}

bool
urn_mapping_own(const struct urn_own_mapping *m)
{
	return m->plain && m->ino == 0 && !m->shared && m->read && m->write && !m->exec;
}

int
urn_maps_open(void)
{
	return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

void
urn_maps_start(struct urn_maps *w, int fd)
{
	w->fd = fd;
	w->over = false;
	w->off = w->used = w->have = 0;
}

/* Read more behind the bytes that are not used yet. */
static void
urn_maps_read(struct urn_maps *w)
{
	ssize_t n;

	memmove(w->buf, w->buf + w->used, w->have - w->used);
	w->have -= w->used;
	w->used = 0;
	/* A line fits: a path has at most 4,096 bytes. One with many escaped bytes loses its end.
	 */
	if (w->have == sizeof(w->buf))
		w->have = sizeof(w->buf) / 2;
	do
		n = pread(w->fd, w->buf + w->have, sizeof(w->buf) - w->have, (off_t)w->off);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		w->over = true;
		return;
	}
	w->have += (size_t)n;
	w->off += (uint64_t)n;
}

bool
urn_maps_next(struct urn_maps *w, struct urn_own_mapping *m)
{
	while (!w->over) {
		char *line = w->buf + w->used, *end = memchr(line, '\n', w->have - w->used);

		if (end == NULL) {
			urn_maps_read(w);
			continue;
		}
		*end = '\0';
		w->used = (size_t)(end + 1 - w->buf);
		if (urn_mapping_parse(line, m))
			return true;
	}
	return false;
}
