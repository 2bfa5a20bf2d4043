/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* All tests here keep their runtime files below this folder. */
static char base[] = "/tmp/urn-eal-XXXXXX";

static unsigned int entries;

static int
count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)st;
	(void)type;
	entries += ftw->level > 0;
	return 0;
}

/* Entries of any kind below the base. */
static unsigned int
left(void)
{
	entries = 0;
	nftw(base, count_one, 16, FTW_PHYS);
	return entries;
}

static int
start(const struct urn_eal_config *cfg, struct urn_err *err)
{
	err->text[0] = '\0';
	return urn_eal_start(cfg, err);
}

static void
up(void)
{
	struct urn_eal_config cfg = {.program = "test"};
	struct urn_err err;

	check_ok(start(&cfg, &err), &err);
}

/* ---- remains: nothing */

static void
stays_private(void *arg)
{
	struct stat st;
	const char *dir;
	char file[128];

	(void)arg;
	check(urn_eal_dir() == NULL);
	up();
	dir = urn_eal_dir();
	check(dir != NULL && strncmp(dir, base, strlen(base)) == 0);
	check(stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
	check(strncmp(rte_eal_get_runtime_dir(), dir, strlen(dir)) == 0);
	/* The path of a memif socket fits below the folder. */
	check(strlen(dir) < 80);
	snprintf(file, sizeof(file), "%s/mine", dir);
	check(mkdir(file, 0700) == 0);
	check(left() > 3);
	check(strcmp(getenv("XDG_RUNTIME_DIR"), base) == 0);
	check(getenv("RUNTIME_DIRECTORY") == NULL);
	urn_eal_stop();
	check(left() == 0 && urn_eal_dir() == NULL);
	urn_eal_stop();
}

static void
exits(void *arg)
{
	(void)arg;
	up();
	exit(0);
}

static void
on_signal(int sig)
{
	(void)sig;
}

/* A program that handles SIGTERM and stops: the signal reaches its own thread. */
static void
takes_signal(void *arg)
{
	struct sigaction sa = {.sa_handler = on_signal};
	sigset_t mask, old, pending;

	(void)arg;
	sigaction(SIGTERM, &sa, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	up();
	/* With the only willing thread unwilling the signal stays pending: the EAL's threads do not take it. */
	pthread_sigmask(SIG_BLOCK, &mask, &old);
	check(!sigismember(&old, SIGTERM));
	kill(getpid(), SIGTERM);
	usleep(20000);
	check(sigpending(&pending) == 0 && sigismember(&pending, SIGTERM));
	sigwaitinfo(&mask, NULL);
	urn_eal_stop();
	check(left() == 0);
}

static void
fails(void *arg)
{
	struct urn_eal_config cfg = {.program = "test", .extra = "--no-such-option"};
	struct urn_err err;

	(void)arg;
	check(start(&cfg, &err) == -1);
	check_says(&err, "DPDK does not start");
	check(left() == 0 && urn_eal_dir() == NULL);
}

static void
fails_late(void *arg)
{
	const struct rlimit limit = {.rlim_cur = 30000, .rlim_max = RLIM_INFINITY};
	struct urn_eal_config cfg = {.program = "test"};
	struct urn_err err;

	(void)arg;
	/* The disk fills up: the first of the EAL's files still fits. */
	signal(SIGXFSZ, SIG_IGN);
	check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	check(start(&cfg, &err) == -1);
	check_says(&err, "DPDK does not start");
	check(left() == 0);
	/* DPDK cannot be started again then. */
	check(start(&cfg, &err) == -1);
	check_says(&err, "new process");
}

/* A forked child that ends must not remove its parent's files. */
static void
child_ends(void *arg)
{
	(void)arg;
	urn_eal_stop();
}

static void
forks(void *arg)
{
	unsigned int n;

	(void)arg;
	up();
	n = left();
	check(child_run(child_ends, NULL) == 0);
	/* DPDK's own exit handler removes its telemetry socket, in any child; no more than that. */
	check(left() + 1 >= n && leftovers(base) == 1);
	urn_eal_stop();
	check(left() == 0);
}

/* A process is killed: the next start removes its folder, and no living process's. */
static void
waits(void *arg)
{
	int *fd = arg;

	up();
	check(write(fd[1], "x", 1) == 1);
	pause();
}

static void
counts(void *arg)
{
	up();
	check(leftovers(base) == *(unsigned int *)arg);
	exit(0);
}

static void
sweeps(void *arg)
{
	unsigned int one = 1, two = 2;
	int fd[2];
	pid_t dead, alive;
	char c;

	(void)arg;
	check(pipe(fd) == 0);
	dead = child_start(waits, fd);
	check(read(fd[0], &c, 1) == 1);
	alive = child_start(waits, fd);
	check(read(fd[0], &c, 1) == 1);
	check(leftovers(base) == 2);
	kill(dead, SIGKILL);
	child_wait(dead);
	check(leftovers(base) == 2);
	/* The dead process's folder is removed; the living one's and the new one's own are there. */
	check(child_run(counts, &two) == 0);
	kill(alive, SIGKILL);
	child_wait(alive);
	check(child_run(counts, &one) == 0);
}

/* ---- effects on the program: none */

static void *
thread_main(void *arg)
{
	cpu_set_t *cpus = arg;

	check(rte_thread_register() == 0);
	check(rte_lcore_id() != LCORE_ID_ANY);
	check(pthread_getaffinity_np(pthread_self(), sizeof(*cpus), cpus) == 0);
	rte_thread_unregister();
	return NULL;
}

static void
keeps_affinity(void *arg)
{
	/* The EAL puts its own threads on one CPU; the program's threads stay as they are. */
	struct urn_eal_config cfg = {.program = "test", .lcores = 1};
	cpu_set_t before, after, thread;
	struct urn_err err;
	sigset_t mask;
	pthread_t t;

	(void)arg;
	check(pthread_getaffinity_np(pthread_self(), sizeof(before), &before) == 0);
	check_ok(start(&cfg, &err), &err);
	check(pthread_getaffinity_np(pthread_self(), sizeof(after), &after) == 0);
	check(CPU_EQUAL(&before, &after));
	check(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && !sigismember(&mask, SIGINT));
	/* No worker threads; the program's own threads become lcores. */
	check(rte_lcore_count() == 1);
	check(pthread_create(&t, NULL, thread_main, &thread) == 0);
	check(pthread_join(t, NULL) == 0);
	check(CPU_EQUAL(&before, &thread));
	check(!rte_eal_has_hugepages() && !rte_eal_has_pci());
	check(rte_eal_iova_mode() == RTE_IOVA_VA);
}

static void
one_cpu(void *arg)
{
	struct urn_eal_config cfg = {.program = "test", .lcores = 1, .log_level = "warning"};
	struct urn_err err;
	cpu_set_t set;

	(void)arg;
	/* The thread may run on the last CPU only. */
	check(sched_getaffinity(0, sizeof(set), &set) == 0);
	while (CPU_COUNT(&set) > 1) {
		int cpu = 0;

		while (!CPU_ISSET(cpu, &set))
			cpu++;
		CPU_CLR(cpu, &set);
	}
	check(sched_setaffinity(0, sizeof(set), &set) == 0);
	check_ok(start(&cfg, &err), &err);
}

static void
starts_once(void *arg)
{
	struct urn_eal_config cfg = {.program = "test", .pci_count = 1};
	struct urn_err err;

	(void)arg;
	check(start(&cfg, &err) == -1);
	check_says(&err, "none given");
	cfg.pci_count = 0;
	cfg.memory_mb = UINT32_MAX;
	check(start(&cfg, &err) == -1);
	check_says(&err, "this machine has");
	/* Huge pages are requested: where there are none, the EAL starts without. */
	cfg.huge_pages = true;
	cfg.memory_mb = 64;
	cfg.extra = "  --single-file-segments   ";
	check_ok(start(&cfg, &err), &err);
	check(start(&cfg, &err) == -1);
	check_says(&err, "running already");
	urn_eal_stop();
	check(start(&cfg, &err) == -1);
	check_says(&err, "new process");
}

static void
no_folder(void *arg)
{
	struct urn_err err;
	struct urn_eal_config cfg = {.program = "test"};

	(void)arg;
	/* XDG_RUNTIME_DIR is no folder: the next choice is taken. */
	setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
	setenv("TMPDIR", base, 1);
	check_ok(start(&cfg, &err), &err);
	check(strncmp(urn_eal_dir(), base, strlen(base)) == 0);
	check(strcmp(getenv("XDG_RUNTIME_DIR"), "/nowhere") == 0);
}

static void
as_user(void *arg)
{
	(void)arg;
	become_user();
	setenv("XDG_RUNTIME_DIR", base, 1);
	stays_private(NULL);
}

/* The memory is enough for the requested size (doc/reference/ports.md: fixed at start). */
static void
memory_suffices(void *arg)
{
	struct urn_eal_config cfg = {.program = "test", .memory_mb = urn_eal_memory_mb(20000)};
	struct urn_port_config p = port_cfg("n", "net_null0");
	struct urn_err err;
	struct urn_port *port;
	void *rest;

	(void)arg;
	check(cfg.memory_mb > 80 && cfg.memory_mb < 200);
	check(urn_eal_memory_mb(0) >= 32 && urn_eal_memory_mb(UINT64_MAX / 8192) <= 1024 * 1024);
	check_ok(start(&cfg, &err), &err);
	p.mbufs = 20000;
	port = port_up(&p);
	rest = rte_malloc(NULL, 20000ull * 4352, 64);
	check(rest != NULL);
	rte_free(rest);
	urn_port_close(port);
}

CHILD_TEST(stays_private)
CHILD_TEST(exits)
CHILD_TEST(takes_signal)
CHILD_TEST(fails)
CHILD_TEST(fails_late)
CHILD_TEST(forks)
CHILD_TEST(sweeps)
CHILD_TEST(keeps_affinity)
CHILD_TEST(one_cpu)
CHILD_TEST(starts_once)
CHILD_TEST(no_folder)
CHILD_TEST(as_user)
CHILD_TEST(memory_suffices)

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(base) == NULL || chmod(base, 0777) != 0)
		return -1;
	unsetenv("RUNTIME_DIRECTORY");
	return setenv("XDG_RUNTIME_DIR", base, 1);
}

/* After every test: no file survived the processes. */
static int
nothing_left(void **state)
{
	(void)state;
	return left() == 0 ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(base);
}

#define T(fn) cmocka_unit_test_teardown(fn, nothing_left)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_stays_private),	 T(test_exits),		 T(test_takes_signal),
		T(test_fails),		 T(test_fails_late),	 T(test_forks),
		T(test_sweeps),		 T(test_keeps_affinity), T(test_one_cpu),
		T(test_starts_once),	 T(test_no_folder),	 T(test_as_user),
		T(test_memory_suffices),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
