/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a capture: blocks of pcapng, read without any code of ours, and with our names in them. */
#define ALLOW_EXPERIMENTAL_API /* rte_pcapng */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/capture_head.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct head {
	uint8_t file[8192];
	size_t size;
	unsigned int ifaces;
	char name[8][80];	/* names of interfaces */
	unsigned int digits[8]; /* digits of their time stamps: 9: nanoseconds */
	unsigned int options[8];
};

static uint32_t
u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static void
read_interface(struct head *h, const uint8_t *b, uint32_t len)
{
	unsigned int i = h->ifaces++;
	uint32_t at = 16;
	uint16_t code, size;

	check(i < 8 && len >= 20);
	for (;; at += 4 + RTE_ALIGN((uint32_t)size, 4u)) {
		check(at + 4 <= len - 4);
		memcpy(&code, b + at, 2);
		memcpy(&size, b + at + 2, 2);
		check(at + 4 + RTE_ALIGN((uint32_t)size, 4u) <= len - 4);
		if (code == 0)
			break;
		h->options[i]++;
		if (code == 2) {
			check(h->name[i][0] == '\0' && size > 0 && size < sizeof(h->name[i]));
			memcpy(h->name[i], b + at + 4, size);
		} else if (code == 9) {
			h->digits[i] = b[at + 4];
		}
	}
	check(size == 0 && at + 4 == len - 4); /* the end of the options, and nothing behind it */
}

/* Make a head for n of the ports. */
static void
make(struct head *h, struct urn_port *const *ports, unsigned int n)
{
	int fd = memfd_create("test", MFD_CLOEXEC), other = dup(fd);
	uint64_t bytes = 0;
	rte_pcapng_t *file;
	ssize_t got;

	memset(h, 0, sizeof(*h));
	check(fd >= 0 && other >= 0);
	file = urn_capture_head(fd, ports, n, &bytes);
	check(file != NULL);
	check(fcntl(fd, F_GETFD) == -1 && errno == EBADF); /* the file owns the descriptor now */
	got = pread(other, h->file, sizeof(h->file), 0);
	check(got > 0 && (uint64_t)got == bytes);
	h->size = (size_t)got;
	/* The next block is written behind the head. */
	check(rte_pcapng_write_stats(file, ports[0]->id, NULL, 0, 0, 1, 2) > 0);
	rte_pcapng_close(file);
	check(pread(other, h->file + h->size, 4, (off_t)h->size) == 4 && u32(h->file + h->size) == 5);
	close(other);
	for (size_t at = 0; at < h->size;) {
		uint32_t len = h->size - at >= 12 ? u32(h->file + at + 4) : 0;

		check(len >= 12 && len % 4 == 0 && len <= h->size - at);
		check(u32(h->file + at + len - 4) == len);
		check((at == 0) == (u32(h->file + at) == 0x0a0d0d0a));
		if (u32(h->file + at) == 1)
			read_interface(h, h->file + at, len);
		at += len;
	}
}

static void
pair_up(struct urn_port *p[2])
{
	struct urn_port_config cfg[2] = {port_cfg("left", ""), port_cfg("right", "")};
	struct urn_err err = {""};

	eal_up();
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
}

static void
down(struct urn_port *p[2])
{
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* Ports have our names in any order; ports that are not captured keep DPDK's. All else stays. */
static void
names(void *arg)
{
	struct urn_port *p[2], *turned[2];
	struct head h;
	unsigned int options;

	(void)arg;
	pair_up(p);
	make(&h, p, 1);
	check(h.ifaces == 2 && strcmp(h.name[0], "left") == 0 && strncmp(h.name[1], "dpdk:", 5) == 0);
	options = h.options[1];
	check(h.options[0] == options && h.digits[0] == 9 && h.digits[1] == 9);
	turned[0] = p[1];
	turned[1] = p[0];
	make(&h, turned, 2);
	check(strcmp(h.name[0], "left") == 0 && strcmp(h.name[1], "right") == 0);
	check(h.options[0] == options && h.options[1] == options);
	down(p);
}

/* Names from one letter to the longest: padding and lengths are right. */
static void
lengths(void *arg)
{
	struct urn_port *p[2];
	struct head h;

	(void)arg;
	pair_up(p);
	for (size_t n = 1; n < sizeof(p[0]->cfg.name); n++) {
		memset(p[0]->cfg.name, 0, sizeof(p[0]->cfg.name));
		memset(p[0]->cfg.name, 'n', n);
		p[1]->cfg.name[0] = '\0'; /* a port without a name of ours */
		make(&h, p, 2);
		check(strcmp(h.name[0], p[0]->cfg.name) == 0 && strncmp(h.name[1], "dpdk:", 5) == 0);
	}
	down(p);
}

/* A head that can't be written fails with the reason, and the descriptor stays the caller's. */
static void
failures(void *arg)
{
	static const struct {
		const char *path;
		int flags, err;
	} t[] = {{"/dev/full", O_WRONLY, ENOSPC}, {"/dev/null", O_RDONLY, EBADF}};
	struct urn_port *p[2];
	uint64_t bytes;

	(void)arg;
	pair_up(p);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int fd = open(t[i].path, t[i].flags | O_CLOEXEC), next = dup(fd);

		close(next);
		check(urn_capture_head(fd, p, 2, &bytes) == NULL && errno == t[i].err);
		check(fcntl(fd, F_GETFD) != -1);
		/* No other descriptor is left open. */
		check(dup(fd) == next && close(next) == 0 && close(fd) == 0);
	}
	down(p);
}

CHILD_TEST(names)
CHILD_TEST(lengths)
CHILD_TEST(failures)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
