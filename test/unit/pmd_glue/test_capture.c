/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/capture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char dir[] = "/tmp/urn-cap-XXXXXX";

static void
pair_up(struct urn_port *p[2], uint16_t queues)
{
	struct urn_port_config cfg[2] = {port_cfg("left", ""), port_cfg("right", "")};
	struct urn_err err = {""};

	cfg[0].queues = cfg[1].queues = queues;
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
}

static void
path_of(char path[64], const char *name)
{
	snprintf(path, 64, "%s/%s", dir, name);
}

/* ---- reading pcapng: blocks of type, length, body, length */

struct seen {
	unsigned int in, out;  /* packets, by direction */
	unsigned int bytes_ok; /* packets with the bytes that the test sent */
	uint32_t snap;	       /* snap length of the interfaces */
	unsigned int ifaces;
	char names[64];		    /* names of the interfaces, a space behind each */
	unsigned int stats;	    /* blocks of interface statistics */
	uint64_t received, dropped; /* the counts in these blocks */
	bool sorted; /* time stamps do not decrease */
	uint64_t first_ns;
};

static uint32_t
u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static void
packet_see(struct seen *s, const uint8_t *b, uint32_t len, uint64_t *last)
{
	uint64_t ns = (uint64_t)u32(b + 12) << 32 | u32(b + 16);
	uint32_t cap = u32(b + 20), i;
	uint8_t want[8192];

	check(cap <= len - 32 &&
	      cap == (s->snap != 0 ? RTE_MIN(s->snap, u32(b + 24)) : u32(b + 24)));
	s->sorted &= ns >= *last;
	*last = ns;
	if (s->first_ns == 0)
		s->first_ns = ns;
	/* The seed of a frame is its length here. */
	frame_fill(want, b + 28 + 6, u32(b + 24), u32(b + 24));
	s->bytes_ok += memcmp(want, b + 28, cap) == 0;
	for (i = 28 + RTE_ALIGN(cap, 4); i + 8 <= len - 4; i += 4 + RTE_ALIGN(b[i + 2], 4)) {
		if (b[i] != 2)
			continue;
		s->in += (u32(b + i + 4) & 3) == 1;
		s->out += (u32(b + i + 4) & 3) == 2;
	}
}

/* The value of an option among those from `at` on; NULL: it has none. */
static const uint8_t *
option(const uint8_t *b, uint32_t at, uint32_t len, uint16_t code, uint16_t *size)
{
	for (; at + 8 <= len; at += 4 + RTE_ALIGN(*size, 4u)) {
		*size = (uint16_t)(b[at + 2] | b[at + 3] << 8);
		if ((b[at] | b[at + 1] << 8) == code)
			return b + at + 4;
	}
	return NULL;
}

static void
block_see(struct seen *s, const uint8_t *b, uint32_t len)
{
	uint16_t size = 0;
	const uint8_t *v;

	if (u32(b) == 1) {
		s->ifaces++;
		s->snap = u32(b + 12);
		v = option(b, 16, len, 2, &size);
		check(v != NULL && strlen(s->names) + size + 2 < sizeof(s->names));
		strncat(s->names, (const char *)v, size);
		strcat(s->names, " ");
	} else if (u32(b) == 5) {
		s->stats++;
		v = option(b, 20, len, 4, &size);
		check(v != NULL && size == 8);
		s->received += u32(v);
		v = option(b, 20, len, 5, &size);
		check(v != NULL && size == 8);
		s->dropped += u32(v);
	}
}

static struct seen
pcapng_read(const char *path)
{
	static uint8_t file[16 << 20];
	struct seen s = {.sorted = true};
	uint64_t last = 0;
	size_t size, at = 0;
	FILE *f = fopen(path, "r");

	check(f != NULL);
	size = fread(file, 1, sizeof(file), f);
	fclose(f);
	check(size >= 28 && u32(file) == 0x0a0d0d0a);
	while (at < size) {
		uint32_t len = size - at >= 12 ? u32(file + at + 4) : 0;

		check(len >= 12 && len <= size - at && u32(file + at + len - 4) == len);
		block_see(&s, file + at, len);
		if (u32(file + at) == 6)
			packet_see(&s, file + at, len, &last);
		at += len;
	}
	return s;
}

/* ---- tests */

/* Every frame both ways, on every queue, in order, byte by byte; tshark reads it. */
static void
whole(void *arg)
{
	struct urn_capture *cap;
	struct urn_err err = {""};
	struct urn_port *p[2];
	uint64_t dropped = 1;
	struct seen s;
	char path[64], cmd[256];
	uint32_t len, n = 0;
	struct timespec now;

	(void)arg;
	path_of(path, "whole");
	eal_up();
	pair_up(p, 2);
	frame_send(p[0], 0, frame_make(p[0], 99, 99));
	frame_expect(p[1], 0, p[0], 99, 99);
	cap = urn_capture_open(path, p, 2, &err);
	check_ok(cap == NULL, &err);
	for (len = 60; len <= frame_len(p[0]); len += 37, n++) {
		frame_send(p[n & 1], n & 1, frame_make(p[n & 1], len, len));
		frame_expect(p[!(n & 1)], n & 1, p[n & 1], len, len);
	}
	check_ok(urn_capture_close(cap, &dropped, &err), &err);
	check(dropped == 0);
	/* The ports go on without a capture. */
	frames_cross(p[0], p[1], 0, 100);
	s = pcapng_read(path);
	check(s.in == n && s.out == n && s.bytes_ok == 2 * n && s.sorted);
	check(s.ifaces == 2 && strcmp(s.names, "left right ") == 0);
	check(s.stats == 2 && s.received == 2 * n && s.dropped == 0);
	clock_gettime(CLOCK_REALTIME, &now);
	check(s.first_ns / 1000000000 - (uint64_t)now.tv_sec + 60 <= 60);
	snprintf(cmd, sizeof(cmd), "tshark -r %s 2>%s.err | wc -l >%s.n", path, path, path);
	if (system("command -v tshark >/dev/null") == 0) {
		check(system(cmd) == 0);
		snprintf(cmd, sizeof(cmd), "test $(cat %s.n) -eq %u && ! grep -i cut %s.err", path,
			 2 * n, path);
		check(system(cmd) == 0);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* Make a frame whole. */
static void
complete(struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	frame_fill(f, f + 6, m->data_len, m->data_len);
}

/* Send a frame of 300 bytes whose last byte is missing. */
static void
send_unfinished(struct urn_port *from)
{
	struct rte_mbuf *m = frame_make(from, 300, 300);

	*rte_pktmbuf_mtod_offset(m, uint8_t *, 299) ^= 0xff;
	frame_send(from, 0, m);
}

/*
 * A frame that is not whole is made so before it is captured: when it is sent, and, if it was sent
 * before the capture began, when it is received. Without a capture it stays as it is.
 */
static void
made_whole(void *arg)
{
	struct urn_capture *cap;
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct rte_mbuf *m;
	struct seen s;
	char path[64];

	(void)arg;
	path_of(path, "made_whole");
	eal_up();
	pair_up(p, 1);
	p[0]->complete = p[1]->complete = complete;
	send_unfinished(p[0]);
	check(urn_port_rx(p[1], 0, &m, 1) == 1 && !frame_is(m, p[0], 300, 300));
	rte_pktmbuf_free(m);
	for (unsigned int sent = 0; sent < 2; sent++) {
		if (sent == 0)
			send_unfinished(p[0]);
		check(!urn_port_tx_seen(p[0], 0) && !urn_port_rx_seen(p[1], 0));
		cap = urn_capture_open(path, p, 2, &err);
		check_ok(cap == NULL, &err);
		check(urn_port_tx_seen(p[0], 0) && urn_port_rx_seen(p[1], 0));
		if (sent == 1)
			send_unfinished(p[0]);
		frame_expect(p[1], 0, p[0], 300, 300);
		check_ok(urn_capture_close(cap, NULL, &err), &err);
		s = pcapng_read(path);
		check(s.out == sent && s.in == 1 && s.bytes_ok == sent + 1);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* Several captures one after the other, and two at once, in one process. */
static void
again(void *arg)
{
	struct urn_capture *cap[2];
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct seen s;
	char path[2][64];
	int i;

	(void)arg;
	path_of(path[0], "again0");
	path_of(path[1], "again1");
	eal_up();
	pair_up(p, 1);
	for (i = 0; i < 3; i++) {
		cap[0] = urn_capture_open(path[0], p, 1, &err);
		cap[1] = urn_capture_open(path[1], p + 1, 1, &err);
		check_ok(cap[0] == NULL || cap[1] == NULL, &err);
		frames_cross(p[0], p[1], 0, 200);
		check_ok(urn_capture_close(cap[0], NULL, &err), &err);
		frames_cross(p[0], p[1], 0, 200);
		check_ok(urn_capture_close(cap[1], NULL, &err), &err);
		s = pcapng_read(path[0]);
		check(s.in == 0 && s.out == 8 && s.sorted);
		s = pcapng_read(path[1]);
		check(s.in == 16 && s.out == 0 && s.sorted);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* Packets come faster than the writer writes: the port goes on, missing packets are counted. */
static void
overrun(void *arg)
{
	struct urn_capture *cap;
	struct urn_err err = {""};
	struct urn_port_config cfg = port_cfg("n", "net_null0");
	struct urn_port *p;
	uint64_t dropped = 0;
	struct rte_mbuf *m[32];
	struct seen s;
	char path[64];
	int i, k;

	(void)arg;
	path_of(path, "overrun");
	eal_up();
	p = port_up(&cfg);
	cap = urn_capture_open(path, &p, 1, &err);
	check_ok(cap == NULL, &err);
	for (i = 0; i < 1000; i++) {
		for (k = 0; k < 32; k++)
			m[k] = frame_make(p, 64, 64);
		check(urn_port_tx(p, 0, m, 32) == 32);
	}
	check_ok(urn_capture_close(cap, &dropped, &err), &err);
	s = pcapng_read(path);
	check(s.out + dropped == 32000 && s.bytes_ok == s.out);
	check(s.received == 32000 && s.dropped == dropped);
	urn_port_close(p);
}

/* The disk fills up in the middle: the end reports it, and the port went on. */
static void
disk_full(void *arg)
{
	const struct rlimit limit = {.rlim_cur = 100000, .rlim_max = 100000};
	struct urn_capture *cap;
	struct urn_err err = {""};
	struct urn_port *p[2];
	uint64_t dropped = 0;
	char path[64];
	int i;

	(void)arg;
	path_of(path, "full");
	eal_up();
	pair_up(p, 1);
	signal(SIGXFSZ, SIG_IGN);
	check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	cap = urn_capture_open(path, p, 2, &err);
	check_ok(cap == NULL, &err);
	for (i = 0; i < 20; i++)
		frames_cross(p[0], p[1], 0, 4000);
	check(urn_capture_close(cap, &dropped, &err) == -1);
	check_says(&err, "not whole");
	check_says(&err, path);
	check(dropped > 0 && dropped <= 320);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* How the end of a capture waits until no burst is under way: the test holds the lock during its bursts. */
struct bursts {
	pthread_mutex_t lock;
	int waits; /* how often an end has waited; under the lock */
};

static void
wait_bursts(void *arg)
{
	struct bursts *b = arg;

	pthread_mutex_lock(&b->lock);
	b->waits++;
	pthread_mutex_unlock(&b->lock);
}

static void
burst_cross(struct bursts *b, struct urn_port *const *p)
{
	pthread_mutex_lock(&b->lock);
	frames_cross(p[0], p[1], 0, 200);
	pthread_mutex_unlock(&b->lock);
}

/* A limit of frames, or of bytes; the port goes on behind it. */
static void
limits(void *arg)
{
	struct urn_capture_info info;
	struct urn_capture *cap;
	struct urn_err err = {""};
	struct bursts bursts = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct urn_port *p[2];
	struct stat st;
	struct seen s;
	char path[64];
	int i;

	(void)arg;
	path_of(path, "limits");
	eal_up();
	pair_up(p, 1);
	for (i = 0; i < 2; i++) {
		struct urn_capture_config cfg = {.path = path,
						 .ports = p,
						 .n = 2,
						 .quiesce = wait_bursts,
						 .quiesce_arg = &bursts};

		bursts.waits = 0;
		cfg.max_frames = i == 0 ? 7 : 0;
		cfg.max_bytes = i == 0 ? 0 : 5000;
		cfg.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		check(cfg.fd >= 0);
		cap = urn_capture_begin(&cfg, &err);
		check_ok(cap == NULL, &err);
		do {
			burst_cross(&bursts, p);
			urn_capture_info(cap, &info);
		} while (!info.full);
		burst_cross(&bursts, p);
		check_ok(urn_capture_finish(cap, &info, &err), &err);
		check(info.full && info.error == 0 && bursts.waits >= 1);
		s = pcapng_read(path);
		check(stat(path, &st) == 0 && (uint64_t)st.st_size == info.bytes);
		check(s.in + s.out == info.frames && s.stats == s.ifaces);
		check(i == 0 ? info.frames == 7 : info.bytes <= 5000 + 200 && info.frames > 10);
		check(fcntl(cfg.fd, F_GETFD) == -1);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* True for frames of an even length. */
static bool
even(const void *arg, const struct rte_mbuf *m)
{
	__atomic_fetch_add((unsigned int *)(uintptr_t)arg, 1, __ATOMIC_RELAXED);
	return m->pkt_len % 2 == 0;
}

/* Frames are cut at every length, and chosen; a port without a chosen frame is not in the file. */
static void
cut_and_chosen(void *arg)
{
	static const uint32_t snaps[] = {1, 14, 59, 60, 61, 62, 1000};
	struct urn_capture_info info;
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct seen s;
	char path[64];

	(void)arg;
	path_of(path, "cut");
	eal_up();
	pair_up(p, 1);
	for (unsigned int i = 0; i < sizeof(snaps) / sizeof(snaps[0]); i++) {
		unsigned int asked = 0, n = 0;
		const struct urn_capture_config cfg = {.path = path,
						       .fd = -1,
						       .ports = p,
						       .n = 2,
						       .snap = snaps[i],
						       .filter = even,
						       .filter_arg = &asked};
		struct urn_capture *cap = urn_capture_begin(&cfg, &err);

		check_ok(cap == NULL, &err);
		for (uint32_t len = 60; len < 90; len++, n++) {
			frame_send(p[0], 0, frame_make(p[0], len, len));
			frame_expect(p[1], 0, p[0], len, len);
		}
		check_ok(urn_capture_finish(cap, &info, &err), &err);
		s = pcapng_read(path);
		check(asked == 2 * n && info.dropped == 0 && s.out == n / 2 && s.in == n / 2);
		check(s.snap == snaps[i] && s.bytes_ok == n && s.received == 2 * n &&
		      s.ifaces == 2);

		cap = urn_capture_begin(&cfg, &err);
		check_ok(cap == NULL, &err);
		frame_send(p[0], 0, frame_make(p[0], 61, 61));
		frame_expect(p[1], 0, p[0], 61, 61);
		check_ok(urn_capture_close(cap, NULL, &err), &err);
		s = pcapng_read(path);
		check(s.in + s.out == 0 && s.ifaces == 0 && s.stats == 0);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

static void
errors(void *arg)
{
	struct urn_err err = {""};
	struct urn_port *p[2];

	(void)arg;
	eal_up();
	pair_up(p, 1);
	check(urn_capture_open("/nowhere/file", p, 2, &err) == NULL);
	check_says(&err, "/nowhere/file");
	check(urn_capture_open(dir, p, 2, &err) == NULL);
	check_says(&err, strerror(EISDIR));
	check(urn_capture_open("/dev/full", p, 2, &err) == NULL);
	check_says(&err, strerror(ENOSPC));
	check_ok(urn_capture_close(NULL, NULL, &err), &err);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

CHILD_TEST(whole)
CHILD_TEST(made_whole)
CHILD_TEST(again)
CHILD_TEST(overrun)
CHILD_TEST(disk_full)
CHILD_TEST(limits)
CHILD_TEST(cut_and_chosen)
CHILD_TEST(errors)

static int
setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL;
}

static int
teardown(void **state)
{
	char cmd[64];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	  cmocka_unit_test(test_made_whole),
		cmocka_unit_test(test_again),	  cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_disk_full), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_errors),	  cmocka_unit_test(test_cut_and_chosen),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
