/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading /proc/PID/maps as far as a range needs. Kernels from 6.11 on answer for one address by an
 * ioctl, Debian 12's kernel has only the text; both belong to the address space of the time of
 * open, so one way is enough.
 */
#include "memory/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAPS_LINE = 4096 + 128 }; /* bytes: a path is at most PATH_MAX, plus escaped newlines */

struct maps_reader {
	int fd;
	off_t off;	   /* bytes of the file read so far */
	size_t used, have; /* bytes of buf */
	char buf[MAPS_LINE * 2];
};

/* Get the next line without its newline. returns: 1, 0 at the end, -1 with errno */
static int
maps_line(struct maps_reader *r, char **line)
{
	for (;;) {
		char *from = r->buf + r->used, *nl = memchr(from, '\n', r->have - r->used);
		ssize_t n;

		if (nl) {
			*nl = 0;
			*line = from;
			r->used = (size_t)(nl + 1 - r->buf);
			return 1;
		}
		memmove(r->buf, from, r->have - r->used);
		r->have -= r->used;
		r->used = 0;
		if (r->have == sizeof(r->buf)) /* a path with many escapes: its head will do */
			r->have = MAPS_LINE;
		n = pread(r->fd, r->buf + r->have, sizeof(r->buf) - r->have, r->off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		r->have += (size_t)n;
		r->off += n;
	}
}

bool
urn_map_parse(const char *line, struct urn_map *map)
{
	int at = 0;

	map->name = "";
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4[rwxsp-] %*x %*x:%*x %*u %n", &map->start,
		   &map->end, map->perms, &at) < 3 ||
	    at == 0 || strlen(map->perms) != 4)
		return false;
	map->name = line + at;
	return map->start < map->end;
}

const char *
urn_map_special(const struct urn_map *map)
{
	/* Other files in /dev are a device's memory, as far as they have pages. */
	static const char *const memory[] = {"/dev/shm/", "/dev/zero", "/dev/hugepages/",
					     "/dev/hugepages-"};
	const char *name = map->name;

	if (strncmp(name, "[vvar", 5) == 0 || strcmp(name, "[vsyscall]") == 0 ||
	    strcmp(name, "[vdso]") == 0 || strcmp(name, "[uprobes]") == 0)
		return "a mapping of the kernel's own";
	if (strncmp(name, "anon_inode:", 11) == 0 || strncmp(name, "/anon_inode:", 12) == 0 ||
	    strncmp(name, "/dmabuf:", 8) == 0 || strncmp(name, "socket:", 7) == 0)
		return "memory of a kernel object";
	if (strncmp(name, "/dev/", 5) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (strncmp(name, memory[i], strlen(memory[i])) == 0)
			return NULL;
	return "memory of a device";
}

/* Write why a mapping does not allow a range. returns: 0 when it does */
static int
maps_refuse(const struct urn_map *map, bool write, char *why, size_t len)
{
	const char *special = urn_map_special(map);

	if (special) {
		snprintf(why, len,
			 "0x%" PRIx64 "-0x%" PRIx64 " is %s (%s), which can't be registered",
			 map->start, map->end, special, map->name);
		return EFAULT;
	}
	if (map->perms[0] != 'r') {
		snprintf(why, len, "0x%" PRIx64 "-0x%" PRIx64 " is not readable (%s)", map->start,
			 map->end, map->perms);
		return EFAULT;
	}
	if (write && map->perms[1] != 'w') {
		snprintf(why, len,
			 "0x%" PRIx64 "-0x%" PRIx64 " is not writable (%s), and the rights "
			 "ask for that: ask for reading only, or map it writable",
			 map->start, map->end, map->perms);
		return EFAULT;
	}
	return 0;
}

/*
 * A file may end before its mapping does: the pages behind its end are no memory. If the last byte
 * of a range can be read, all bytes before it in the same mapping can. mem: the process's
 * /proc/PID/mem, or -1: not looked at. returns: 0 or EFAULT, like maps_refuse()
 */
static int
maps_beyond(const struct urn_map *map, int mem, uint64_t last, char *why, size_t len)
{
	char byte;

	if (mem < 0 || map->name[0] != '/')
		return 0;
	if (last >= map->end)
		last = map->end - 1;
	if (pread(mem, &byte, 1, (off_t)last) == 1)
		return 0;
	snprintf(why, len, "0x%" PRIx64 " is mapped, and behind the end of the file %s", last,
		 map->name);
	return EFAULT;
}

int
urn_maps_check(int fd, int mem, uint64_t addr, uint64_t length, bool write, char *why, size_t len)
{
	struct maps_reader r = {.fd = fd};
	uint64_t at = addr, last = addr + (length - 1);
	char *line = NULL;
	int rc;

	if (length == 0)
		return 0;
	/* Lines come in order of their addresses; a mapping that changes meanwhile splits or joins. */
	while ((rc = maps_line(&r, &line)) == 1) {
		struct urn_map map;

		if (!urn_map_parse(line, &map)) {
			snprintf(why, len,
				 "the map of the process has a line that is none: \"%.80s\"", line);
			return EFAULT;
		}
		if (map.end <= at)
			continue;
		if (map.start > at)
			break;
		rc = maps_refuse(&map, write, why, len);
		if (rc == 0)
			rc = maps_beyond(&map, mem, last, why, len);
		if (rc != 0)
			return rc;
		if (last < map.end)
			return 0;
		at = map.end;
	}
	if (rc < 0) {
		snprintf(why, len, "the map of the process can't be read: %s", strerror(errno));
		return EFAULT;
	}
	snprintf(why, len,
		 "nothing is mapped at 0x%" PRIx64 " of the %" PRIu64 " bytes at 0x%" PRIx64, at,
		 length, addr);
	return EFAULT;
}
