/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_memif: shared memory between two processes, joined over a UNIX socket.
 *
 *  - ethdev's MTU stays at its default (configure refuses more), yet any frame
 *    passes. A buffer of the shared memory holds a whole frame of ours, so that
 *    it needs one descriptor.
 *  - A path in a device line is a file, not an abstract name: a file has
 *    permissions, an abstract name is open to every user of the machine.
 *  - The PMD silently falls back to its defaults on arguments that it does not
 *    know (port.c checks them before).
 *  - A peer that dies takes the memory away under a burst (fault.h).
 *  - zero-copy is not offered: it shares the EAL's memory, and packets lie in
 *    memory of their own (pool.c).
 *  - A client whose server is not there yet is a port whose link is down; the
 *    PMD itself would neither start nor try again.
 */
#include "pmd_glue/family.h"
#include "pmd_glue/fault.h"
#include "pmd_glue/pool.h"

#include <rte_cycles.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MEMIF_DESC 1024
#define PATH_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)
#define MEMIF_DESC_MAX 16384u /* the PMD's limit */
/* Time until a client that found no server tries again, ms. */
#define RETRY_MS 100u
/*
 * Time until a connected client gives the handshake up, ms: long, as a PMD whose peer
 * hangs up in the middle of the handshake may refuse that peer from then on.
 */
#define HANDSHAKE_MS 2000u

struct memif {
	bool client;
	char path[PATH_BYTES]; /* path of the socket */
	struct memif *next;    /* in `servers`; servers only */
	uint64_t retry_at;     /* TSC; when a client whose link is down tries again */
};

/* Servers of this process. Owner: control threads; servers_lock protects the list. */
static struct memif *servers;
static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * True when somebody listens on this socket. The test uses a socket of another type,
 * which the kernel refuses before the listener hears of it: a peer that hangs
 * up at once makes the EAL's interrupt thread panic in the PMD.
 */
static bool
listened_on(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	bool alive;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	alive = fd < 0 || connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0 ||
		errno != ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return alive;
}

/* True when a server of this process has the socket: several may share one, told apart by id. */
static bool
ours(const char *path)
{
	const struct memif *m;
	bool found = false;

	pthread_mutex_lock(&servers_lock);
	for (m = servers; m != NULL; m = m->next)
		found |= strcmp(m->path, path) == 0;
	pthread_mutex_unlock(&servers_lock);
	return found;
}

/* Prepare a server's socket: remove that of a dead server, refuse when one is alive. */
static int
server_path(const char *path, struct urn_err *err)
{
	struct stat st;

	if (lstat(path, &st) != 0 || ours(path))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		urn_err_set(err, "%.120s exists and is no socket; name another path", path);
		return -1;
	}
	if (listened_on(path)) {
		urn_err_set(err,
			    "the socket %.120s is in use by another process; name another, or "
			    "make this side the client (role=client)",
			    path);
		return -1;
	}
	if (unlink(path) != 0) {
		urn_err_set(err,
			    "a dead process left the socket %.120s, and it cannot be removed: %s",
			    path, strerror(errno));
		return -1;
	}
	return 0;
}

/* Check that the folder of a socket's path is there, and that we may write to it. */
static int
path_check(const char *path, struct urn_err *err)
{
	char dir[256];
	char *slash;

	if (strlen(path) >= PATH_BYTES) {
		urn_err_set(err, "the socket's path is longer than %zu bytes; choose a shorter one",
			    PATH_BYTES - 1);
		return -1;
	}
	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	if (access(dir, R_OK | W_OK | X_OK) != 0) {
		urn_err_set(err, "the folder %.120s of its socket cannot be used: %s", dir,
			    strerror(errno));
		return -1;
	}
	return 0;
}

static int
role_check(const char *args, char role[16], struct urn_err *err)
{
	if (!urn_devargs_get(args, "role", role, 16))
		snprintf(role, 16, "client");
	/* The PMD's old and new names. */
	if (strcmp(role, "server") == 0 || strcmp(role, "master") == 0)
		snprintf(role, 16, "server");
	else if (strcmp(role, "client") == 0 || strcmp(role, "slave") == 0)
		snprintf(role, 16, "client");
	else {
		urn_err_set(err, "the role \"%s\" is neither server nor client", role);
		return -1;
	}
	return 0;
}

static int
memif_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	uint32_t desc = RTE_MAX(cfg->rx_desc, cfg->tx_desc);
	char path[256], role[16], abstract[8] = "no";

	if (role_check(args, role, err) != 0)
		return -1;
	if (!urn_devargs_get(args, "socket", path, sizeof(path)) || path[0] == '\0') {
		urn_err_set(err, "no socket named; write \"socket=/path/to/socket\" behind the "
				 "device, the same on both sides");
		return -1;
	}
	(void)urn_devargs_get(args, "socket-abstract", abstract, sizeof(abstract));
	if (strcmp(abstract, "yes") != 0) {
		if (path[0] != '/') {
			urn_err_set(err, "the socket \"%.120s\" is no absolute path", path);
			return -1;
		}
		if (path_check(path, err) != 0)
			return -1;
		if (strcmp(role, "server") == 0 && server_path(path, err) != 0)
			return -1;
	}
	desc = RTE_MIN(rte_align32pow2(desc != 0 ? RTE_MAX(desc, 32u) : MEMIF_DESC),
		       MEMIF_DESC_MAX);
	if (urn_devargs_default(args, "socket-abstract", "no") != 0 ||
	    urn_devargs_default(args, "bsize", "%u",
				(unsigned int)(URN_POOL_ROOM - RTE_PKTMBUF_HEADROOM)) != 0 ||
	    urn_devargs_default(args, "rsize", "%u", rte_bsf32(desc)) != 0) {
		urn_err_set(err, "the device arguments are too long");
		return -1;
	}
	return 0;
}

static int
memif_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	struct memif *m = calloc(1, sizeof(*m));
	char role[16];

	(void)info;
	if (m == NULL) {
		urn_err_set(err, "out of memory");
		return -1;
	}
	port->family_data = m;
	if (urn_fault_setup() != 0) {
		urn_err_set(err, "cannot guard against a peer that dies (sigaction): %s",
			    strerror(errno));
		return -1;
	}
	if (role_check(port->cfg.device, role, err) != 0)
		return -1;
	m->client = strcmp(role, "client") == 0;
	(void)urn_devargs_get(port->cfg.device, "socket", m->path, sizeof(m->path));
	if (!m->client) {
		pthread_mutex_lock(&servers_lock);
		m->next = servers;
		servers = m;
		pthread_mutex_unlock(&servers_lock);
	}
	return 0;
}

static void
retry_set(struct memif *m, unsigned int ms)
{
	m->retry_at = rte_get_tsc_cycles() + rte_get_tsc_hz() / 1000 * ms;
}

static bool
memif_start_later(struct urn_port *port)
{
	struct memif *m = port->family_data;

	if (!m->client)
		return false;
	retry_set(m, RETRY_MS);
	return true;
}

/* Allow time for the handshake: a link that is down just after the start is no lost server. */
static int
memif_started(struct urn_port *port, struct urn_err *err)
{
	(void)err;
	retry_set(port->family_data, HANDSHAKE_MS);
	return 0;
}

/*
 * Retry, for a client that has lost its server or never found it. Either
 * side restarts when the memory vanished in a burst.
 */
static void
memif_tend(struct urn_port *port)
{
	struct memif *m = port->family_data;
	bool faulted = __atomic_load_n(&port->faulted, __ATOMIC_ACQUIRE);
	struct rte_eth_link link;

	if (!port->wanted || (!m->client && !faulted) || rte_get_tsc_cycles() < m->retry_at)
		return;
	if (port->started && !faulted &&
	    (rte_eth_link_get_nowait(port->id, &link) != 0 || link.link_status == RTE_ETH_LINK_UP))
		return;
	retry_set(m, HANDSHAKE_MS);
	if (port->started && urn_port_stop(port, NULL) != 0)
		return;
	(void)urn_port_start(port, NULL);
}

static void
memif_closed(struct urn_port *port)
{
	struct memif **at, *m = port->family_data;

	pthread_mutex_lock(&servers_lock);
	for (at = &servers; *at != NULL; at = &(*at)->next) {
		if (*at != m)
			continue;
		*at = m->next;
		break;
	}
	pthread_mutex_unlock(&servers_lock);
	free(m);
	port->family_data = NULL;
}

const struct urn_port_family urn_family_memif = {
	.prefix = "net_memif",
	.keys = " id role bsize rsize socket socket-abstract mac secret ",
	.mtu_max = URN_PORT_MTU_MAX,
	.desc = MEMIF_DESC,
	.faults = true,
	.memory = true,
	.intr_alone = true,
	.prepare = memif_prepare,
	.probed = memif_probed,
	.start_later = memif_start_later,
	.started = memif_started,
	.tend = memif_tend,
	.closed = memif_closed,
};
