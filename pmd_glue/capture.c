/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capturing: the lcore that moves a frame copies it, and one thread writes the
 * copies.
 *
 *   lcore: rx/tx callback ─► filter ─► copy, time stamp ─► ring ─► writer: pcapng block ─► file
 *
 * An lcore never waits: without a packet in the pool or room in the ring, the
 * frame is dropped and counted. When the file cannot be written (disk full), the
 * writer drops all further frames, and closing says so. At its limit, or when the reader of a pipe
 * leaves, the writer removes the callbacks and ends the file by itself.
 */
#include "pmd_glue/capture_priv.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/pcapng.h"
#include "pmd_glue/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 1000 /* where a caller has no settings */
#define COPIES 4095u /* frames on their way to the file */
#define RING_SIZE 4096u
#define BLOCKS 65536u /* bytes of blocks that are written at once; as many for one block more */

static unsigned int captures; /* makes names unique; control threads, atomic */

static void
capture_free(struct urn_capture *cap)
{
	if (cap == NULL)
		return;
	rte_ring_free(cap->ring);
	urn_pool_free(cap->copies);
	if (cap->fd >= 0)
		close(cap->fd);
	pthread_mutex_destroy(&cap->taps_lock);
	free(cap->tap);
	free(cap->port);
	free(cap->buf);
	free(cap->path);
	free(cap);
}

static int
pool_make(struct urn_capture *cap, const struct urn_capture_config *cfg, struct urn_err *err)
{
	unsigned int i, id = __atomic_fetch_add(&captures, 1, __ATOMIC_RELAXED);
	char name[RTE_MEMPOOL_NAMESIZE];
	struct urn_pool_config pool = {.name = name, .mbufs = COPIES, .room = URN_POOL_ROOM};

	for (i = 0; i < cfg->n; i++)
		pool.room = RTE_MAX(pool.room, (uint32_t)cfg->ports[i]->room);
	snprintf(name, sizeof(name), "urncap%u", id);
	cap->ring = rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY,
				    RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
	if (cap->ring == NULL) {
		urn_err_set(err, "no memory for the ring of a capture");
		return -1;
	}
	cap->copies = urn_pool_create(&pool, err);
	return cap->copies != NULL ? 0 : -1;
}

static int
file_open(struct urn_capture *cap, struct urn_err *err)
{
	struct stat st;

	if (cap->fd < 0)
		cap->fd = open(cap->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (cap->fd < 0) {
		urn_err_set(err, "cannot write the capture %.150s: %s", cap->path, strerror(errno));
		return -1;
	}
	/* A file that is the standard output may have more in it, and is not cut back. */
	cap->stream =
		strcmp(cap->path, "-") == 0 || (fstat(cap->fd, &st) == 0 && !S_ISREG(st.st_mode));
	if (urn_capture_write_head(cap) != 0) {
		urn_err_set(err, "cannot write the head of the capture %.150s: %s", cap->path,
			    strerror(errno));
		return -1;
	}
	return 0;
}

/* Allocate the parts. returns: 0, or -1: no memory, or no queue */
static int
parts_make(struct urn_capture *cap, const struct urn_capture_config *cfg)
{
	unsigned int i, queues = 0;

	for (i = 0; i < cfg->n; i++)
		queues += cfg->ports[i]->caps.queues;
	cap->path = strdup(cfg->path);
	cap->buf_size = 2 * BLOCKS;
	cap->buf = malloc(cap->buf_size);
	cap->port = calloc(cfg->n + 1, sizeof(*cap->port));
	if (queues > 0)
		cap->tap = aligned_alloc(RTE_CACHE_LINE_SIZE, 2 * queues * sizeof(*cap->tap));
	if (cap->path == NULL || cap->buf == NULL || cap->port == NULL || cap->tap == NULL)
		return -1;
	memset(cap->tap, 0, 2 * queues * sizeof(*cap->tap));
	for (i = 0; i < cfg->n; i++) {
		struct capture_port *port = &cap->port[i];
		const char *name = cfg->ports[i]->cfg.name;
		struct rte_ether_addr mac;

		port->iface = -1;
		if (name[0] != '\0')
			snprintf(port->name, sizeof(port->name), "%s", name);
		else
			snprintf(port->name, sizeof(port->name), "dpdk:%u", cfg->ports[i]->id);
		if (rte_eth_macaddr_get(cfg->ports[i]->id, &mac) == 0)
			memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	}
	return 0;
}

static struct urn_capture *
capture_new(const struct urn_capture_config *cfg, struct urn_err *err)
{
	struct urn_capture *cap = calloc(1, sizeof(*cap));

	urn_err_set(err, "out of memory for the capture %.150s", cfg->path);
	if (cap == NULL) {
		if (cfg->fd >= 0)
			close(cfg->fd);
		return NULL;
	}
	pthread_mutex_init(&cap->taps_lock, NULL);
	cap->fd = cfg->fd;
	cap->max_frames = cfg->max_frames;
	cap->max_bytes = cfg->max_bytes;
	cap->snap = cfg->snap == 0 ? UINT32_MAX : cfg->snap;
	cap->filter = cfg->filter;
	cap->filter_arg = cfg->filter_arg;
	cap->quiesce = cfg->quiesce;
	cap->quiesce_arg = cfg->quiesce_arg;
	cap->patience_ms = cfg->patience_ms;
	cap->hurry = cfg->hurry;
	if (parts_make(cap, cfg) == 0)
		return cap;
	capture_free(cap);
	return NULL;
}

struct urn_capture *
urn_capture_begin(const struct urn_capture_config *cfg, struct urn_err *err)
{
	struct urn_capture *cap = capture_new(cfg, err);

	if (cap == NULL)
		return NULL;
	if (pool_make(cap, cfg, err) != 0 || file_open(cap, err) != 0) {
		capture_free(cap);
		return NULL;
	}
	if (pthread_create(&cap->writer, NULL, urn_capture_writer, cap) != 0) {
		urn_err_set(err, "no thread to write the capture %.150s", cfg->path);
		capture_free(cap);
		return NULL;
	}
	if (urn_capture_taps_add(cap, cfg->ports, cfg->n) == 0)
		return cap;
	(void)urn_capture_close(cap, NULL, err);
	urn_err_set(err, "the ports do not let themselves be captured");
	return NULL;
}

struct urn_capture *
urn_capture_open(const char *path, struct urn_port *const *ports, unsigned int n,
		 struct urn_err *err)
{
	const struct urn_capture_config cfg = {
		.fd = -1, .path = path, .ports = ports, .n = n, .patience_ms = PATIENCE_MS};

	return urn_capture_begin(&cfg, err);
}

const char *
urn_capture_why(int error)
{
	return error == ETIMEDOUT ? "its reader takes nothing" : strerror(error);
}

void
urn_capture_info(const struct urn_capture *cap, struct urn_capture_info *info)
{
	info->frames = __atomic_load_n(&cap->frames, __ATOMIC_RELAXED);
	info->bytes = __atomic_load_n(&cap->bytes, __ATOMIC_RELAXED);
	info->full = __atomic_load_n(&cap->full, __ATOMIC_RELAXED);
	info->error = __atomic_load_n(&cap->write_errno, __ATOMIC_RELAXED);
	info->dropped = __atomic_load_n(&cap->write_drops, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < cap->taps; i++)
		info->dropped += __atomic_load_n(&cap->tap[i].drops, __ATOMIC_RELAXED);
}

int
urn_capture_finish(struct urn_capture *cap, struct urn_capture_info *info, struct urn_err *err)
{
	int ret = 0;

	urn_capture_taps_remove(cap);
	__atomic_store_n(&cap->stop, true, __ATOMIC_RELEASE);
	pthread_join(cap->writer, NULL);
	urn_capture_info(cap, info);
	if (info->error != 0) {
		urn_err_set(err, "the capture %.150s is not whole: %s; %llu frames are missing",
			    cap->path, urn_capture_why(info->error),
			    (unsigned long long)info->dropped);
		ret = -1;
	}
	capture_free(cap);
	return ret;
}

int
urn_capture_close(struct urn_capture *cap, uint64_t *dropped, struct urn_err *err)
{
	struct urn_capture_info info;
	int ret;

	if (cap == NULL)
		return 0;
	ret = urn_capture_finish(cap, &info, err);
	if (dropped != NULL)
		*dropped = info.dropped;
	return ret;
}

unsigned int
urn_capture_mbufs(void)
{
	return COPIES;
}
