/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"

#include <rte_cycles.h>
#include <rte_lcore.h>

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_SECONDS 60u
#define FRAME_TYPE 0x88b5 /* IEEE "local experimental" */
#define BURST 8u

/* The af_xdp PMD leaks memory of libxdp and libbpf. The leak sanitizer calls this, where it is
 * built in. */
const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:libxdp.so\nleak:libbpf.so\n";
}

void
check_at(int ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	exit(1);
}

void
check_ok_at(int ret, const struct urn_err *err, const char *what, const char *file, int line)
{
	if (ret == 0)
		return;
	fprintf(stderr, "%s:%d: %s failed: %s\n", file, line, what, err->text);
	exit(1);
}

void
check_says_at(const struct urn_err *err, const char *word, const char *file, int line)
{
	if (strstr(err->text, word) != NULL)
		return;
	fprintf(stderr, "%s:%d: \"%s\" says nothing of \"%s\"\n", file, line, err->text, word);
	exit(1);
}

pid_t
child_start(void (*fn)(void *), void *arg)
{
	pid_t pid;
	int sig;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* cmocka's handlers would run the next test in the child. */
		for (sig = 1; sig < SIGRTMIN; sig++)
			signal(sig, SIG_DFL);
		fn(arg);
		exit(0);
	}
	return pid;
}

int
child_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

int
child_run(void (*fn)(void *), void *arg)
{
	return child_wait(child_start(fn, arg));
}

void
become_user(void)
{
	if (geteuid() != 0)
		return;
	unsetenv("XDG_RUNTIME_DIR");
	check(setgroups(0, NULL) == 0);
	check(setgid(65534) == 0);
	check(setuid(65534) == 0);
}

void
eal_up(void)
{
	struct urn_eal_config cfg = {.program = "test", .memory_mb = urn_eal_memory_mb(8192)};
	struct urn_err err;

	check_ok(urn_eal_start(&cfg, &err), &err);
}

struct urn_port_config
port_cfg(const char *name, const char *device)
{
	struct urn_port_config cfg = {.queues = 1};

	snprintf(cfg.name, sizeof(cfg.name), "%s", name);
	snprintf(cfg.device, sizeof(cfg.device), "%s", device);
	return cfg;
}

struct urn_port *
port_up(const struct urn_port_config *cfg)
{
	struct urn_err err = {""};
	struct urn_port *port = urn_port_open(cfg, &err);

	check_ok(port == NULL, &err);
	return port;
}

void
link_wait(struct urn_port *port)
{
	uint64_t end = rte_get_tsc_cycles() + WAIT_SECONDS * rte_get_tsc_hz();

	while (!port->link_up && rte_get_tsc_cycles() < end) {
		usleep(1000);
		urn_port_poll_link(port);
	}
	check(port->link_up);
}

void
link_down_wait(struct urn_port *port)
{
	uint64_t end = rte_get_tsc_cycles() + WAIT_SECONDS * rte_get_tsc_hz();

	while (port->link_up && rte_get_tsc_cycles() < end) {
		usleep(1000);
		urn_port_poll_link(port);
	}
	check(!port->link_up);
}

void
frame_fill(uint8_t *p, const uint8_t src[6], uint32_t len, uint32_t seed)
{
	uint32_t i, x = seed * 2654435761u + 12345u;

	memset(p, 0xff, 6);
	memcpy(p + 6, src, 6);
	p[12] = FRAME_TYPE >> 8;
	p[13] = FRAME_TYPE & 0xff;
	for (i = 14; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (uint8_t)(x >> 24);
	}
}

struct rte_mbuf *
frame_make(struct urn_port *from, uint32_t len, uint32_t seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from->pool);
	uint8_t *p;

	check(m != NULL);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	check(p != NULL);
	frame_fill(p, from->mac, len, seed);
	return m;
}

int
frame_is(struct rte_mbuf *m, struct urn_port *from, uint32_t len, uint32_t seed)
{
	uint8_t want[RTE_PKTMBUF_HEADROOM + URN_PORT_MTU_MAX + 64];

	frame_fill(want, from->mac, len, seed);
	return m->nb_segs == 1 && m->data_len >= len && (len < 60 || m->data_len == len) &&
	       memcmp(rte_pktmbuf_mtod(m, void *), want, len) == 0;
}

void
frame_send(struct urn_port *port, uint16_t queue, struct rte_mbuf *m)
{
	uint64_t end = rte_get_tsc_cycles() + WAIT_SECONDS * rte_get_tsc_hz();

	while (urn_port_tx(port, queue, &m, 1) == 0)
		check(rte_get_tsc_cycles() < end);
}

void
frame_expect(struct urn_port *port, uint16_t queue, struct urn_port *from, uint32_t len,
	     uint32_t seed)
{
	uint64_t end = rte_get_tsc_cycles() + WAIT_SECONDS * rte_get_tsc_hz();
	uint16_t q = queue == ANY_QUEUE ? 0 : queue;
	struct rte_mbuf *m;
	int found = 0;

	while (!found) {
		check(rte_get_tsc_cycles() < end);
		if (urn_port_rx(port, q, &m, 1) == 0) {
			if (queue == ANY_QUEUE)
				q = (uint16_t)((q + 1) % port->caps.queues);
			usleep(10);
			continue;
		}
		found = frame_is(m, from, len, seed);
		rte_pktmbuf_free(m);
	}
}

void
frames_cross(struct urn_port *a, struct urn_port *b, uint16_t queue, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < BURST; i++)
		frame_send(a, queue == ANY_QUEUE ? 0 : queue, frame_make(a, len, i + len));
	for (i = 0; i < BURST; i++)
		frame_expect(b, queue, a, len, i + len);
}

unsigned int
leftovers(const char *dir)
{
	char pattern[256];
	unsigned int n;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/urnic-rt-*", dir);
	if (glob(pattern, 0, NULL, &g) != 0)
		return 0;
	n = (unsigned int)g.gl_pathc;
	globfree(&g);
	return n;
}
