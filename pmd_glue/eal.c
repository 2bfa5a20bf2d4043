/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments that the EAL gets, with the reasons:
 *
 *  --no-huge -m N     memory needs no privilege; it is fixed at start
 *  --lcores 0@(...)   one lcore that may run on every allowed CPU: the EAL makes
 *                     no worker threads and narrows no affinity. Threads that
 *                     poll are the program's own and call rte_thread_register(),
 *                     except where other processes are let in (workers)
 *  --file-prefix      and RUNTIME_DIRECTORY: files go to a folder of this process
 *  -a or --no-pci     only devices that were named are touched
 *  --huge-dir         where the first hugetlbfs mounted is another user's
 *
 * With a prefix that the caller gives, the EAL's files go to the folder where DPDK
 * and its tools look by default, and are removed as well.
 */
#include "pmd_glue/eal.h"
#include "pmd_glue/eal_dir.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/huge.h"
#include "pmd_glue/intr.h"
#include "pmd_glue/pool.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_pdump.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define EAL_ARGS_MAX 96
/* Names the EAL's files, below the private folder. */
#define EAL_PREFIX "urnic"
/* MiB the EAL, ethdev, rings and PMDs use beside packets (measured: 12). */
#define EAL_OWN_MB 48u

/* One EAL a process (DPDK): hence static. Owner: the thread that starts and stops it. */
static struct {
	enum { EAL_NEVER, EAL_UP, EAL_DOWN } state;
	pid_t pid; /* a forked child must not remove its parent's files */
	struct urn_eal_dir dir;
	bool huge;
	char prefix[32]; /* prefix of file names */
	bool shared;	 /* the EAL's files are where DPDK's tools look */
	bool pdump;
	char files[PATH_MAX];	  /* shared: the folder of the EAL's files; "": not known yet */
	char *arg[EAL_ARGS_MAX];  /* owner: here; the EAL keeps pointers to the strings */
	char *argv[EAL_ARGS_MAX]; /* array given to the EAL, which permutes and overwrites it */
	int argc;
} eal;

static int arg_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int
arg_add(const char *fmt, ...)
{
	va_list ap;
	int n;

	if (eal.argc >= EAL_ARGS_MAX - 1)
		return -1;
	va_start(ap, fmt);
	n = vasprintf(&eal.arg[eal.argc], fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	eal.argc++;
	return 0;
}

static void
args_free(void)
{
	while (eal.argc > 0)
		free(eal.arg[--eal.argc]);
}

/* Split cfg->extra at spaces. */
static int
args_extra(const char *extra)
{
	size_t n;

	while (extra != NULL && *extra != '\0') {
		extra += strspn(extra, " \t");
		n = strcspn(extra, " \t");
		if (n > 0 && arg_add("%.*s", (int)n, extra) != 0)
			return -1;
		extra += n;
	}
	return 0;
}

/* Add "(0-2)@(0,2,3)": lcore 0, and workers, on the first `max` CPUs (0: all) that the thread may use.
 */
static int
args_lcores(unsigned int max, unsigned int workers, struct urn_err *err)
{
	char list[RTE_MAX_LCORE * 5];
	unsigned int cpu, found = 0;
	size_t len = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) != 0) {
		urn_err_set(err, "cannot read which CPUs this process may use: %s",
			    strerror(errno));
		return -1;
	}
	for (cpu = 0; cpu < RTE_MAX_LCORE && (max == 0 || found < max); cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%u",
					found == 0 ? "" : ",", cpu);
		found++;
	}
	if (found == 0) {
		urn_err_set(err,
			    "this process may run on CPUs from %u upwards only, which DPDK "
			    "does not know; allow it a lower one (taskset)",
			    RTE_MAX_LCORE);
		return -1;
	}
	return workers > 0 ? arg_add("--lcores=(0-%u)@(%s)", workers, list)
			   : arg_add("--lcores=0@(%s)", list);
}

static int
args_memory(const struct urn_eal_config *cfg)
{
	unsigned int mb = cfg->memory_mb != 0 ? cfg->memory_mb : urn_eal_memory_mb(0);
	char dir[PATH_MAX];

	eal.huge = cfg->huge_pages && urn_huge_free_mb() >= mb;
	eal.shared = cfg->file_prefix != NULL;
	if (eal.shared)
		snprintf(eal.prefix, sizeof(eal.prefix), "%s", cfg->file_prefix);
	else if (eal.huge) /* names of huge-page files must differ between processes */
		snprintf(eal.prefix, sizeof(eal.prefix), EAL_PREFIX "%d", getpid());
	else
		strcpy(eal.prefix, EAL_PREFIX);
	if (arg_add("-m%u", mb) || arg_add("--file-prefix=%s", eal.prefix))
		return -1;
	/* Without huge pages no physical addresses are available. */
	if (!eal.huge)
		return arg_add("--no-huge") || arg_add("--iova-mode=va");
	return urn_huge_dir("/proc/self/mounts", dir, sizeof(dir)) ? arg_add("--huge-dir=%s", dir)
								   : 0;
}

static int
args_build(const struct urn_eal_config *cfg, struct urn_err *err)
{
	unsigned int i;

	urn_err_set(err, "out of memory, or more than %d arguments for DPDK", EAL_ARGS_MAX - 1);
	if (arg_add("%s", cfg->program != NULL ? cfg->program : "urnic") != 0 ||
	    args_memory(cfg) != 0 ||
	    args_lcores(cfg->lcores, eal.huge ? cfg->workers : 0, err) != 0)
		return -1;
	if (arg_add("--log-level=*:%s", cfg->log_level != NULL ? cfg->log_level : "error") != 0)
		return -1;
	if (cfg->pci_count == 0 && arg_add("--no-pci") != 0)
		return -1;
	if (cfg->no_telemetry && arg_add("--no-telemetry") != 0)
		return -1;
	for (i = 0; i < cfg->pci_count; i++)
		if (arg_add("-a%s", cfg->pci[i]) != 0)
			return -1;
	return args_extra(cfg->extra);
}

/* The EAL reads RUNTIME_DIRECTORY first, and XDG_RUNTIME_DIR unless the process is root's. */
static const char *const dir_vars[] = {"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"};

static void
env_swap(char *saved[2], const char *value)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(dir_vars); i++) {
		const char *old = getenv(dir_vars[i]);

		if (value != NULL) {
			saved[i] = old != NULL ? strdup(old) : NULL;
			setenv(dir_vars[i], value, 1);
		} else if (saved[i] != NULL) {
			setenv(dir_vars[i], saved[i], 1);
			free(saved[i]);
		} else {
			unsetenv(dir_vars[i]);
		}
	}
}

/*
 * Call rte_eal_init(), and restore the caller's affinity, signal mask and environment.
 * Threads of the EAL take no signals: signals are for the program.
 */
static int
eal_init(void)
{
	sigset_t block, mask;
	char *saved[2] = {NULL, NULL};
	bool own = !eal.shared;
	cpu_set_t cpus;
	int ret, affine;

	sigfillset(&block);
	sigdelset(&block, SIGBUS);
	sigdelset(&block, SIGSEGV);
	sigdelset(&block, SIGILL);
	sigdelset(&block, SIGFPE);
	affine = pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pthread_sigmask(SIG_SETMASK, &block, &mask);
	if (own)
		env_swap(saved, eal.dir.path);
	memcpy(eal.argv, eal.arg, sizeof(eal.argv));
	ret = rte_eal_init(eal.argc, eal.argv);
	if (own)
		env_swap(saved, NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (affine == 0)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	return ret < 0 ? -1 : 0;
}

static void
eal_fail(struct urn_err *err)
{
	int code = rte_errno;

	if (urn_eal_log_reason()[0] != '\0')
		urn_err_set(err, "DPDK does not start: %s (%s)", urn_eal_log_reason(),
			    rte_strerror(code));
	else
		urn_err_set(err, "DPDK does not start: %s; a log level of \"debug\" tells more",
			    rte_strerror(code));
}

/* Refuse impossible configurations; the EAL would crash on some of them. */
static int
config_check(const struct urn_eal_config *cfg, struct urn_err *err)
{
	unsigned long ram = (unsigned long)sysconf(_SC_PHYS_PAGES) /
			    (1024 * 1024 / (unsigned long)sysconf(_SC_PAGESIZE));

	if (eal.state == EAL_UP) {
		urn_err_set(err, "DPDK is running already in this process");
		return -1;
	}
	if (eal.state == EAL_DOWN) {
		urn_err_set(err, "DPDK was started before in this process and cannot be started "
				 "twice; start a new process");
		return -1;
	}
	if (cfg->file_prefix != NULL && (strchr(cfg->file_prefix, '/') != NULL ||
					 strlen(cfg->file_prefix) >= sizeof(eal.prefix))) {
		urn_err_set(err, "'%.60s' is no prefix for files: at most %zu characters, no '/'",
			    cfg->file_prefix, sizeof(eal.prefix) - 1);
		return -1;
	}
	if (cfg->memory_mb > ram) {
		urn_err_set(err, "DPDK was given %u MiB, and this machine has %lu; ask for less",
			    cfg->memory_mb, ram);
		return -1;
	}
	if (cfg->pci_count > 0 && cfg->pci == NULL) {
		urn_err_set(err, "%u PCI addresses announced and none given", cfg->pci_count);
		return -1;
	}
	return 0;
}

/*
 * The EAL's tables are sparse files that it maps: where the disk has no room for
 * the pages that the EAL writes, the process dies of SIGBUS. Measured: 0.2 MiB,
 * and 1 MiB for 64 MiB of memory; asked for twice that, as others may start as well.
 */
static int
room_check(const struct urn_eal_config *cfg, struct urn_err *err)
{
	unsigned int mb = cfg->memory_mb != 0 ? cfg->memory_mb : urn_eal_memory_mb(0);
	uint64_t need = ((uint64_t)mb >> 5) + 1, room;
	struct statvfs st;

	/* A file system without a size of its own reports 0 blocks. */
	if (statvfs(eal.dir.path, &st) != 0 || st.f_blocks == 0)
		return 0;
	room = (uint64_t)st.f_bavail * st.f_frsize >> 20;
	if (room >= need)
		return 0;
	urn_err_set(err,
		    "the disk of %s is full: runtime files take %llu MiB and %llu are free; make "
		    "room there or set TMPDIR to a folder with more",
		    eal.dir.path, (unsigned long long)need, (unsigned long long)room);
	return -1;
}

/* Remove the files that the EAL and its secondary processes put into its own folder. */
static void
files_remove(void)
{
	int fd = open(eal.files, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(fd, e->d_name, 0);
	if (d != NULL)
		closedir(d);
	(void)rmdir(eal.files);
	/* The folder above is shared by all DPDK programs of the user: the last one removes it. */
	*strrchr(eal.files, '/') = '\0';
	(void)rmdir(eal.files);
	eal.files[0] = '\0';
}

/* Remove the files after a failed start, unless another primary process has the prefix (holds the config's lock). */
static void
files_remove_failed(void)
{
	struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	const char *dir = rte_eal_get_runtime_dir();
	char path[PATH_MAX + 8];
	int fd;

	if (!eal.shared || dir == NULL || dir[0] != '/')
		return;
	snprintf(eal.files, sizeof(eal.files), "%s", dir);
	snprintf(path, sizeof(path), "%s/config", dir);
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (fcntl(fd, F_GETLK, &held) == 0 && held.l_type == F_UNLCK))
		files_remove();
	if (fd >= 0)
		close(fd);
}

/* Note the state after rte_eal_init(), and let dpdk-dumpcap in. */
static void
eal_started(const struct urn_eal_config *cfg)
{
	eal.pid = getpid();
	if (eal.shared)
		snprintf(eal.files, sizeof(eal.files), "%s", rte_eal_get_runtime_dir());
	eal.pdump = cfg->pdump && eal.huge && rte_pdump_init() == 0;
	atexit(urn_eal_stop);
}

int
urn_eal_start(const struct urn_eal_config *cfg, struct urn_err *err)
{
	int ret;

	if (config_check(cfg, err) != 0 || urn_eal_dir_make(&eal.dir, err) != 0)
		return -1;
	if (room_check(cfg, err) != 0 || args_build(cfg, err) != 0)
		goto fail;
	urn_eal_log_open(cfg->log_level != NULL);
	urn_eal_log_hold();
	ret = eal_init();
	urn_eal_log_release();
	eal.state = ret == 0 ? EAL_UP : EAL_DOWN;
	if (ret != 0) {
		eal_fail(err);
		files_remove_failed();
		goto fail;
	}
	eal_started(cfg);
	return 0;
fail:
	if (eal.state != EAL_DOWN)
		args_free();
	urn_eal_dir_remove(&eal.dir);
	return -1;
}

void
urn_eal_stop(void)
{
	if (eal.state != EAL_UP || eal.pid != getpid())
		return;
	eal.state = EAL_DOWN;
	/* The interrupt thread would go on after the cleanup, without its memory: hold it. */
	(void)urn_intr_hold();
	if (eal.pdump)
		(void)rte_pdump_uninit();
	/* With ports open, threads may still poll them: do not free their memory. */
	if (urn_pool_count() == 0)
		rte_eal_cleanup();
	if (eal.huge)
		urn_huge_remove(eal.prefix);
	if (eal.files[0] == '/')
		files_remove();
	urn_eal_log_close();
	urn_eal_dir_remove(&eal.dir);
}

bool
urn_eal_huge(void)
{
	return eal.state == EAL_UP && eal.huge;
}

const char *
urn_eal_dir(void)
{
	return eal.state == EAL_UP ? eal.dir.path : NULL;
}

unsigned int
urn_eal_memory_mb(uint64_t mbufs)
{
	/* Pointers in the pool's ring, twice for rings of ports, and the heap's own 2 %. */
	uint64_t bytes = mbufs * (urn_pool_stride(URN_POOL_ROOM) + 4 * sizeof(void *));
	uint64_t mb = EAL_OWN_MB + (bytes + bytes / 50) / (1024 * 1024);

	return mb > 1024 * 1024 ? 1024 * 1024 : (unsigned int)mb;
}
