/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane of death.h, and its program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "death.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *urnicd;
static char dir[64], config[96];
char death_sock[96];

/* ---- the dataplane */

uint64_t
death_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
death_nap_us(long us)
{
	const struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static void
write_config(unsigned int engines)
{
	FILE *f = fopen(config, "w");

	assert_non_null(f);
	fprintf(f, "[urnicd]\nsocket = %s\nidle = pause\nempty_polls = 4\n", death_sock);
	for (unsigned int i = 0; i < engines; i++)
		fprintf(f, "[engine %u]\n", i);
	fprintf(f, "[adapter a0]\nnode = a\nswitch = wire\nipv4 = 10.0.0.1\nmbufs = 4k\n"
		   "[adapter b0]\nnode = b\nswitch = wire\nipv4 = 10.0.0.2\nmbufs = 4k\n[switch wire]\n");
	assert_int_equal(fclose(f), 0);
}

pid_t
death_start(unsigned int engines)
{
	struct ibv_context *ctx = NULL;
	pid_t pid;

	write_config(engines);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* urnicd dies with the test, however the test ends */
		dup2(null, 2);
		execl(urnicd, urnicd, "-c", config, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	for (uint64_t end = death_now_ms() + 60000; ctx == NULL && death_now_ms() < end; death_nap_us(5000))
		ctx = urn_attach_connect(death_sock, "a");
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
	return pid;
}

void
death_kill(pid_t pid, int sig)
{
	assert_int_equal(kill(pid, sig), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- a program */

static void
way_open(struct way *w, bool loose)
{
	w->fate = mmap(NULL, DEATH_IDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(w->fate, MAP_FAILED);
	w->loose = loose;
}

void
death_open(struct death_end *e, const char *node)
{
	unsigned int far;

	memset(e, 0, sizeof(*e));
	e->ctx = urn_attach_connect(death_sock, node);
	assert_non_null(e->ctx);
	far = (unsigned int)e->ctx->num_comp_vectors - 1;
	e->pd = ibv_alloc_pd(e->ctx);
	e->buf = urn_alloc(DEATH_BYTES);
	e->mr = ibv_reg_mr(e->pd, e->buf, DEATH_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(e->mr);
	/* A send CQ may belong to another engine than its QP. */
	e->cq[0] = ibv_create_cq(e->ctx, 4096, NULL, NULL, (int)far);
	e->cq[1] = ibv_create_cq(e->ctx, 4096, NULL, NULL, 0);
	e->channel = ibv_create_comp_channel(e->ctx);
	e->quiet = ibv_create_cq(e->ctx, 16, e, e->channel, 0);
	assert_int_equal(ibv_req_notify_cq(e->quiet, 0), 0);
	e->srq = ibv_create_srq(e->pd, &(struct ibv_srq_init_attr){
		.attr = {.max_wr = 2 * DEATH_DEPTH, .max_sge = 1}});
	assert_non_null(e->srq);
	assert_int_equal(ibv_query_gid(e->ctx, 1, 1, &e->gid), 0);
	for (int q = 0; q < DEATH_QPS; q++) {
		struct ibv_qp_init_attr init = {
			.send_cq = e->cq[0],
			.recv_cq = e->cq[1],
			.srq = q == DEATH_SHARED || q == DEATH_FAR ? e->srq : NULL,
			.cap = {DEATH_DEPTH, DEATH_DEPTH, 1, 1, 64},
			.qp_type = IBV_QPT_RC,
		};

		e->qp[q] = ibv_create_qp(e->pd, &init);
		assert_non_null(e->qp[q]);
		way_open(&e->send[q], q == DEATH_WRITES);
		way_open(&e->recv[q], false);
	}
	way_open(&e->shared, true);
}

void
death_connect(struct death_end *e, const struct death_end *peer)
{
	for (int q = 0; q < DEATH_QPS; q++) {
		struct ibv_qp_attr a = {
			.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qp[q]->qp_num,
			.max_dest_rd_atomic = 16,
			.max_rd_atomic = 16,
			.min_rnr_timer = 1,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .sgid_index = 1}},
		};

		assert_int_equal(ibv_modify_qp(e->qp[q], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			IBV_QP_ACCESS_FLAGS), 0);
		a.qp_state = IBV_QPS_RTR;
		assert_int_equal(ibv_modify_qp(e->qp[q], &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
		a.qp_state = IBV_QPS_RTS;
		assert_int_equal(ibv_modify_qp(e->qp[q], &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	}
}

static void
way_close(struct way *w)
{
	munmap(w->fate, DEATH_IDS);
}

void
death_close(struct death_end *e)
{
	for (int q = 0; q < DEATH_QPS; q++) {
		assert_int_equal(ibv_destroy_qp(e->qp[q]), 0);
		way_close(&e->send[q]);
		way_close(&e->recv[q]);
	}
	way_close(&e->shared);
	assert_int_equal(ibv_destroy_srq(e->srq), 0);
	assert_int_equal(ibv_destroy_cq(e->cq[0]), 0);
	assert_int_equal(ibv_destroy_cq(e->cq[1]), 0);
	assert_int_equal(ibv_destroy_cq(e->quiet), 0);
	assert_int_equal(ibv_destroy_comp_channel(e->channel), 0);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->ctx), 0);
	urn_free(e->buf);
}

/* ---- around tests */

static unsigned int
entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static unsigned int fds_before, threads_before;

int
death_setup(void **state)
{
	(void)state;
	fds_before = entries("/proc/self/fd");
	threads_before = entries("/proc/self/task");
	return 0;
}

int
death_teardown(void **state)
{
	unsigned int segments = 0;

	(void)state;
	/* Memory of urn_alloc() stays: the library keeps a segment for the next caller. */
	for (unsigned int i = 0; i < 64; i++) {
		char path[64], to[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%u", i);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		segments += strstr(to, "urnic-memory") != NULL;
	}
	if (segments > 1 || entries("/proc/self/fd") > fds_before + segments ||
	    entries("/proc/self/task") != threads_before)
		return -1;
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

int
death_begin(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	urnicd = argv[1];
	snprintf(dir, sizeof(dir), "/tmp/urnic-death.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(death_sock, sizeof(death_sock), "%s/sock", dir);
	snprintf(config, sizeof(config), "%s/c.ini", dir);
	/* The dataplane's runtime files go here; a dataplane removes those of one that was killed. */
	setenv("TMPDIR", dir, 1);
	unsetenv("XDG_RUNTIME_DIR");
	return 0;
}

int
death_finish(int rc)
{
	(void)unlink(config);
	(void)unlink(death_sock);
	if (rmdir(dir) == 0)
		return rc;
	fprintf(stderr, "%s: something is left: %s\n", dir, strerror(errno));
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rc ? rc : 1;
}
