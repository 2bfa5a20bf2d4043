/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_pcapng lists all ethdev ports when it opens a file, as "dpdk:0" and so on,
 * and the names cannot be set. So rte_pcapng opens a file in memory; the file's head
 * is copied to the real file with our names; and the descriptor that rte_pcapng keeps
 * is made the real file's.
 *
 * Blocks are: type, length, body, length again; the body of an interface ends in
 * options: code, length, value, padded to 4 bytes (pcapng draft, sections 3.1, 3.5, 4.2).
 */
#include "pmd_glue/capture_head.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BLOCK_INTERFACE = 1,
	INTERFACE_FIXED = 16, /* bytes before its options */
	OPT_END = 0,
	OPT_NAME = 2,	    /* if_name */
	NAME_ROOM = 4 + 32, /* bytes that a name adds at most */
};

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t
get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static size_t
put_option(uint8_t *to, uint16_t code, const void *value, size_t len)
{
	const uint16_t len16 = (uint16_t)len;
	size_t padded = RTE_ALIGN(len, 4);

	memset(to, 0, 4 + padded);
	memcpy(to, &code, 2);
	memcpy(to + 2, &len16, 2);
	memcpy(to + 4, value, len);
	return 4 + padded;
}

/* Copy an interface's block with another name. returns: its length */
static size_t
copy_named(uint8_t *to, const uint8_t *from, uint32_t len, const char *name)
{
	uint32_t at = INTERFACE_FIXED, total;
	size_t out = INTERFACE_FIXED;

	memcpy(to, from, INTERFACE_FIXED);
	out += put_option(to + out, OPT_NAME, name, strlen(name));
	while (at + 8 <= len && get16(from + at) != OPT_END) {
		uint16_t code = get16(from + at), value = get16(from + at + 2);

		if (at + 4 + RTE_ALIGN(value, 4) > len - 4)
			break;
		if (code != OPT_NAME)
			out += put_option(to + out, code, from + at + 4, value);
		at += 4 + RTE_ALIGN((uint32_t)value, 4);
	}
	out += put_option(to + out, OPT_END, "", 0);
	total = (uint32_t)out + 4;
	memcpy(to + out, &total, 4);
	memcpy(to + 4, &total, 4);
	return total;
}

static const char *
name_of(uint16_t id, struct urn_port *const *ports, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (ports[i]->id == id && ports[i]->cfg.name[0] != '\0')
			return ports[i]->cfg.name;
	return NULL;
}

/* Copy all blocks; interfaces come in the order of ethdev ports. returns: bytes; 0: malformed
 */
static size_t
copy_head(uint8_t *to, const uint8_t *from, size_t size, struct urn_port *const *ports,
	  unsigned int n)
{
	uint16_t id = (uint16_t)rte_eth_find_next_owned_by(0, RTE_ETH_DEV_NO_OWNER);
	size_t at = 0, out = 0;

	while (at < size) {
		uint32_t len = size - at >= 12 ? get32(from + at + 4) : 0;
		const char *name = NULL;

		if (len < 12 || len > size - at || len % 4 != 0)
			return 0;
		if (get32(from + at) == BLOCK_INTERFACE && len >= INTERFACE_FIXED + 4) {
			name = name_of(id, ports, n);
			id = (uint16_t)rte_eth_find_next_owned_by((uint16_t)(id + 1),
								  RTE_ETH_DEV_NO_OWNER);
		}
		if (name != NULL) {
			out += copy_named(to + out, from + at, len, name);
		} else {
			memcpy(to + out, from + at, len);
			out += len;
		}
		at += len;
	}
	return out;
}

static int
write_all(int fd, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			errno = done < 0 ? errno : ENOSPC;
			return -1;
		}
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Copy the head from the file in memory to the real one. returns 0, or -1 with errno */
static int
head_move(int mem, int fd, struct urn_port *const *ports, unsigned int n, uint64_t *bytes)
{
	uint8_t *from = NULL, *to = NULL;
	struct stat st;
	size_t len;
	int ret = -1;

	if (fstat(mem, &st) != 0)
		return -1;
	from = malloc((size_t)st.st_size + 1);
	to = malloc((size_t)st.st_size + (size_t)RTE_MAX_ETHPORTS * NAME_ROOM);
	errno = ENOMEM;
	if (from != NULL && to != NULL &&
	    pread(mem, from, (size_t)st.st_size, 0) == (ssize_t)st.st_size) {
		len = copy_head(to, from, (size_t)st.st_size, ports, n);
		errno = EPROTO;
		if (len > 0 && write_all(fd, to, len) == 0)
			ret = dup3(fd, mem, O_CLOEXEC) >= 0 ? 0 : -1;
		*bytes = len;
	}
	free(from);
	free(to);
	return ret;
}

rte_pcapng_t *
urn_capture_head(int fd, struct urn_port *const *ports, unsigned int n, uint64_t *bytes)
{
	int saved, mem = memfd_create("urnic-capture", MFD_CLOEXEC);
	rte_pcapng_t *file;

	if (mem < 0)
		return NULL;
	errno = 0;
	file = rte_pcapng_fdopen(mem, NULL, NULL, "urnic", NULL);
	if (file == NULL) {
		saved = errno != 0 ? errno : ENOMEM;
		close(mem);
		errno = saved;
		return NULL;
	}
	if (head_move(mem, fd, ports, n, bytes) == 0) {
		close(fd);
		return file;
	}
	saved = errno;
	rte_pcapng_close(file);
	errno = saved;
	return NULL;
}
