/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole node: made, turned, taken down. */
#include "call.h"

#include "control/client.h"
#include "control/ctl.h"
#include "control/shm.h"

#include "unit/common/test_cm_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_random.h>

#define IDLE_NS 5000000ull   /* time between turns of an idle engine */
#define AWAKE_NS 50000000ull /* time after an event in which an idle engine has a turn every millisecond */
#define HOUSE_NS 1000000ull  /* time between an engine's updates of its tables */

enum { RAM = 64 << 20, MOST_QPS = 400, AREA = 1 << 20 /* less than a huge page, which takes long to clear */ };

static struct sim_host hosts[SIM_NODES];

/* ---- once a process */

static int
sealed(uint64_t bytes, uint8_t **map)
{
	int fd = memfd_create("urnic-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	*map = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		*map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	/* Keep the memory shared: each new client shares it again. */
	if (*map == MAP_FAILED || urn_shm_keep(fd, bytes) != 0) {
		perror("urnic-sim: shared memory");
		exit(1);
	}
	return fd;
}

static void
first_time(struct sim_host *h, unsigned int id)
{
	struct urn_port_config c[2] = {{.mbufs = SIM_MBUFS}, {.mbufs = 512}};
	struct urn_port *port[2];
	struct urn_err err = {""};

	if (h->port)
		return;
	snprintf(c[0].name, sizeof(c[0].name), "n%u", id);
	snprintf(c[1].name, sizeof(c[1].name), "w%u", id);
	c[0].mac[0] = c[1].mac[0] = 2;
	c[0].mac[5] = (uint8_t)(id + 1);
	c[1].mac[4] = c[1].mac[5] = (uint8_t)(id + 1);
	if (urn_port_open_ring_pair(c, port, &err) != 0) {
		fprintf(stderr, "urnic-sim: %s\n", err.text);
		exit(1);
	}
	h->port = port[0];
	h->far = port[1];
	h->ram_fd = sealed(RAM, &h->ram);
	for (unsigned int i = 0; i < SIM_ROGUES; i++)
		h->rogue[i].ram_fd = sealed(SIM_ROGUE_RAM, &h->rogue[i].ram);
}

uint8_t *
sim_host_ram(struct sim_node *n, uint32_t bytes)
{
	struct sim_host *h = &hosts[n->id];

	h->ram_size = (bytes + 4095) & ~4095u;
	if (h->ram_size > RAM) {
		sim_fail(n->s, "node %u: %u bytes of memory are too many", n->id, bytes);
		h->ram_size = RAM;
	}
	return h->ram;
}

/* A socket with a name is no client's: DPDK's telemetry answers its peers in a thread of its own. */
static bool
has_name(int fd)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 && len > sizeof(a.sun_family);
}

/* Number of mappings of memory that clients share. */
static unsigned int
mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:urnic-") != NULL;
	if (f)
		fclose(f);
	return n;
}

unsigned int
sim_host_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned int n = 0;

	while (d && (e = readdir(d)))
		n += !has_name(atoi(e->d_name));
	if (d)
		closedir(d);
	return n + mappings();
}

unsigned int
sim_host_ready(unsigned int nodes)
{
	for (unsigned int i = 0; i < nodes; i++)
		first_time(&hosts[i], i);
	return sim_host_fds();
}

/* ---- opening */

static void
open_dataplane(struct sim_node *n)
{
	struct sim *s = n->s;
	struct sim_host *h = n->host;
	struct urn_adapter_config a = {
		.port = h->port,
		.engines = 1,
		.ipv4 = {10, 0, 0, (uint8_t)(n->id + 1)},
		.max_qp = MOST_QPS,
		.max_cm = s->plan.cm ? 256 : 32,
		.max_mr = 2048,
		.area_size = AREA,
		.window = s->plan.window,
		.rto_floor_us = (uint32_t)(sim_link_rto_floor(s) / 1000),
		.work_in_flight = s->plan.work,
		.features_off = sim_link_offer(n) ? 0 : UINT32_MAX,
	};
	struct urn_dp_config c = {
		.engines = 1,
		.engine = {{.clock = &s->now}},
		.adapters = 1,
		.adapter = &a,
	};
	struct urn_err err = {""};

	if (sim_on(s, SIM_LATE)) {
		a.mem_delay_seed = s->seed * SIM_NODES + n->id + 1;
		a.mem_delay_percent = 40;
		a.mem_delay_polls = 20;
		s->stats.fired[SIM_LATE]++;
	}
	a.seed = 1; /* random numbers are those of the sequence that begins here */
	rte_srand(s->seed * SIM_NODES + n->id + 1);
	h->dp = urn_dp_create(&c, &err);
	if (!h->dp) {
		fprintf(stderr, "urnic-sim: %s\n", err.text);
		exit(1);
	}
	h->a = h->dp->adapter[0];
	h->engine = urn_dp_engine(h->dp, 0);
	h->shard = h->a->shard[0];
	n->tp = h->shard->tp;
	n->mem = h->a->mem;
	n->memx = h->shard->memx;
	n->pool = h->port->pool;
	if (memcmp(n->gid, h->a->gid[s->plan.ipv6 ? 0 : 1], 16) != 0 || memcmp(n->mac, h->a->mac, 6) != 0)
		sim_fail(s, "node %u: its adapter has other addresses", n->id);
}

void
sim_host_open(struct sim_node *n, uint32_t cqes)
{
	struct sim *s = n->s;
	struct sim_host *h = n->host = &hosts[n->id];
	struct urn_limits none;

	h->strays = 0;
	h->busy_until = s->now + AWAKE_NS;
	open_dataplane(n);
	memset(h->account, 0, sizeof(h->account));
	memset(&none, 0xff, sizeof(none));
	urn_ledger_init(&h->ledger, &none);
	h->account[0].ledger = h->account[1].ledger = &h->ledger;
	h->account[0].limits = none;
	memset(h->client, 0, sizeof(h->client));
	memset(&n->scq, 0, sizeof(n->scq));
	memset(&n->rcq, 0, sizeof(n->rcq));
	for (unsigned int i = 0; i < s->plan.clients; i++)
		if (sim_client_open(&h->client[i], n, &h->account[0], &none, h->ram_fd, h->ram_size))
			sim_client_settle(&h->client[i], cqes);
	for (unsigned int i = 0; s->plan.cm && i < s->plan.clients && !s->why[0]; i++)
		sim_client_listen(&h->client[i], i);
	/* This user's quotas are small, so that they are sometimes used up. */
	h->account[1].limits = sim_limits(10, 10, 4, 12, 4 * SIM_ROGUE_RAM);
	for (unsigned int i = 0; i < s->plan.rogues; i++)
		sim_rogue_open(n, &h->rogue[i], i);
}

struct sim_client *
sim_host_client(struct sim_node *n, struct sim_rng *rng)
{
	return &n->host->client[sim_rnd(rng, n->s->plan.clients)];
}

int
sim_host_modify(struct urn_qp *qp, uint32_t mask, const struct urn_abi_qp_attr *a, char *why,
		size_t len)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP, .handle = qp->qpn};
	struct urn_abi_rep rep;

	req.modify_qp.mask = mask;
	req.modify_qp.attr = *a;
	urn_ctl_call(urn_client_of_qp(qp), &req, &rep);
	snprintf(why, len, "%s", rep.why);
	return rep.err;
}

/* ---- turns */

/* True when a frame is for a queue pair that this adapter does not have. Looks at whole frames only. */
static bool
is_stray(const struct sim_node *n, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	bool v6 = f[12] == 0x86 && f[13] == 0xdd;
	uint32_t bth = v6 ? 62 : 42, qpn;

	if (m->data_len < bth + 16 || memcmp(f, n->mac, 6) != 0 || !(v6 || (f[12] == 8 && f[13] == 0)) ||
	    f[v6 ? 20 : 23] != 17)
		return false;
	qpn = (uint32_t)f[bth + 5] << 16 | (uint32_t)f[bth + 6] << 8 | f[bth + 7];
	/* There is one engine: the others have no queue pairs. */
	return qpn != 1 && (urn_qpn_engine(qpn) != 0 || !urn_tp_qp(n->tp, qpn));
}

/* Give the node waiting frames, as many as the engine takes in a turn. */
static unsigned int
feed(struct sim_node *n)
{
	struct rte_mbuf *m[URN_TP_BURST];
	unsigned int k = 0, sent;

	while (k < URN_TP_BURST && n->rx_out != n->rx_in) {
		m[k] = n->rx[n->rx_out++ % SIM_RX];
		sim_note_frame(n->s, n->id, "rx", m[k]);
		n->host->strays += is_stray(n, m[k]);
		k++;
	}
	sent = k ? urn_port_tx(n->host->far, 0, m, (uint16_t)k) : 0;
	if (sent != k) {
		sim_fail(n->s, "node %u: its port takes no frames", n->id);
		rte_pktmbuf_free_bulk(m + sent, k - sent);
	}
	return k;
}

static unsigned int
take_sent(struct sim_node *n)
{
	struct rte_mbuf *m[64];
	unsigned int k, total = 0;

	while ((k = urn_port_rx(n->host->far, 0, m, 64))) {
		for (unsigned int i = 0; i < k; i++)
			sim_note_frame(n->s, n->id, "tx", m[i]);
		sim_net_send(n->s, n->id, m, k);
		total += k;
	}
	return total;
}

static bool
rung(const struct sim_host *h)
{
	for (const struct urn_client_shard *c = LIST_FIRST(&h->shard->clients); c; c = LIST_NEXT(c, link))
		if (urn_db_any(&c->scan))
			return true;
	return false;
}

/* Plan the node's next turn, for the case that no frame comes. */
static void
plan_turn(struct sim_node *n)
{
	struct sim_host *h = n->host;
	const struct urn_tp *tp = n->tp;
	uint64_t timer, cm, house;

	n->due = UINT64_MAX;
	if (urn_tp_busy(tp) || n->came || n->rx_in != n->rx_out || rung(h) ||
	    urn_cm_agent_pending(h->a->cm))
		sim_node_wake(n, n->last);
	if (urn_memx_holds(n->memx, NULL))
		sim_node_wake(n, n->last + 1000);
	timer = urn_wheel_next(&tp->wheel);
	if (timer != UINT64_MAX)
		sim_node_wake(n, timer);
	if (tp->neigh_head)
		sim_node_wake(n, tp->neigh_next);
	cm = urn_cm_due(urn_cm_agent_lock(h->a->cm));
	urn_cm_agent_unlock(h->a->cm);
	house = h->shard->neigh_due > n->last ? h->shard->neigh_due : n->last + HOUSE_NS;
	if (cm != UINT64_MAX)
		sim_node_wake(n, cm > house ? cm : house);
	if (n->last >= h->busy_until)
		house = n->last + (n->last > h->busy_until + 20 * AWAKE_NS ? 10 * IDLE_NS : IDLE_NS);
	sim_node_wake(n, house);
}

void
sim_host_turn(struct sim_node *n)
{
	struct sim *s = n->s;
	struct sim_host *h = n->host;
	bool came;

	n->last = s->now;
	n->came = feed(n);
	came = n->came != 0;
	/* Turns without work are left out of the simulation, but the engine counts as run. */
	if (!n->hung && s->now > h->engine->turned + HOUSE_NS)
		h->engine->turned = s->now - HOUSE_NS;
	n->hung = false;
	urn_engine_poll(h->engine);
	if (take_sent(n) || came)
		h->busy_until = s->now + AWAKE_NS;
	plan_turn(n);
	for (unsigned int i = 0; i < s->plan.clients; i++)
		if (sim_cq_waits(&h->client[i].scq) || sim_cq_waits(&h->client[i].rcq) ||
		    !TAILQ_EMPTY(&h->client[i].c->cm.notes)) {
			uint64_t at = s->now + sim_rnd(&s->rng, 2000);

			if (at < n->prog_due)
				n->prog_due = at;
		}
}

void
sim_host_programs(struct sim_node *n, uint64_t *due)
{
	struct sim_host *h = n->host;

	for (unsigned int i = 0; i < n->s->plan.rogues && !n->s->why[0]; i++)
		sim_rogue_turn(n, &h->rogue[i], due);
	if (n->s->plan.cm && !n->s->winding_up && !n->s->why[0])
		sim_calls_turn(n, due);
}

bool
sim_host_settled(const struct sim *s)
{
	for (unsigned int i = 0; i < s->plan.nodes && s->plan.clients; i++)
		for (unsigned int r = 0; r < s->plan.rogues; r++)
			if (s->node[i].host->rogue[r].lives)
				return false;
	return sim_calls_done(s);
}

void
sim_host_dump(struct sim_node *n)
{
	const struct urn_tp *tp = n->tp;
	FILE *f = n->s->trace;

	if (!f || !tp)
		return;
	fprintf(f, "node %u: %u QPs%s%s, %u timers, %u packets kept, memory has %u;", n->id, tp->qp_count,
		tp->sched.head ? ", some scheduled" : "", tp->neigh_head ? ", some without a MAC address" : "",
		tp->wheel.count, tp->kept, urn_memx_holds(n->memx, NULL));
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		if (tp->c.v[i])
			fprintf(f, " %s %llu", urn_counter_name(i), (unsigned long long)tp->c.v[i]);
	fputc('\n', f);
	for (uint32_t i = 0; tp->qp[0] && i < URN_TP_QP_CHUNK; i++) {
		const struct urn_qp *qp = tp->qp[0][i];

		if (qp)
			fprintf(f, "  QP 0x%x to 0x%x: %s, flags 0x%x\n", qp->qpn, qp->dest_qpn,
				urn_qp_state_name(qp->state), qp->flags);
	}
}

/* ---- going */

static bool
has_client(const struct sim_host *h, const struct urn_client *c)
{
	for (const struct urn_client_shard *k = LIST_FIRST(&h->shard->clients); k; k = LIST_NEXT(k, link))
		if (urn_client_of(k->client) == c)
			return true;
	for (const struct urn_client *k = LIST_FIRST(&h->a->clients); k; k = LIST_NEXT(k, link))
		if (k == c)
			return true;
	return false;
}

/*
 * Name an object that a client which is gone left behind; NULL: none. share: was the client's, and
 * is freed.
 */
static const char *
left_behind(const struct sim_host *h, const struct urn_client *c, const struct urn_tp_share *share)
{
	const struct urn_adapter *a = h->a;
	const struct urn_tp *tp = h->shard->tp;

	if (has_client(h, c))
		return "its doorbells";
	for (uint32_t i = 1; i <= a->cfg.max_mr; i++)
		if (a->key_owner[i] == c || (!a->key_owner[i] && a->key_shm[i]))
			return "a region or window";
	for (uint32_t i = 1; i <= URN_ADAPTER_MAX_PD; i++)
		if (a->pd_owner[i] == c)
			return "a protection domain";
	for (uint32_t i = 0; i < URN_ADAPTER_MAX_AH; i++)
		if (a->ah[i] && a->ah[i]->client == &c->engine)
			return "an address handle";
	for (uint32_t i = 0; i < tp->qp_chunks; i++)
		for (uint32_t k = 0; tp->qp[i] && k < URN_TP_QP_CHUNK; k++)
			if (tp->qp[i][k] && urn_qp_owner(tp->qp[i][k]) == share)
				return "a queue pair";
	for (const struct urn_cq *q = tp->touched; q; q = q->next)
		if (q->owner == share)
			return "a completion queue that is to be told of";
	for (const struct urn_cq *q = TAILQ_FIRST(&h->shard->untold); q; q = TAILQ_NEXT(q, untold))
		if (q->owner == share)
			return "a completion queue that was not told of";
	for (unsigned int i = 0; i < tp->event_n; i++)
		if (tp->event[i].owner == share)
			return "an event";
	return NULL;
}

void
sim_client_die(struct sim_client *c, struct urn_account *account)
{
	const struct sim_node *n = c->node;
	struct sim_host *h = n->host;
	const struct urn_client *was = c->c;
	const struct urn_tp_share *share;
	uint64_t rest[URN_QUOTAS];
	const char *left;

	if (!c->c)
		return;
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		rest[q] =
			account->used[q] - (q == URN_QUOTA_QUEUE ? was->quota.used[q] : c->has[q]);
	share = was->engine.share[h->shard->engine->index];
	urn_client_destroy(c->c);
	if (n->s->sabotage == SIM_BREAK_LEFT)
		h->a->pd_owner[URN_ADAPTER_MAX_PD] = c->c;
	if (n->s->sabotage == SIM_BREAK_QUOTA)
		account->used[URN_QUOTA_QP]++;
	c->c = NULL;
	account->clients--;
	if (c->event_fd >= 0)
		close(c->event_fd);
	c->event_fd = -1;
	left = left_behind(h, was, share);
	if (left)
		sim_fail(c->node->s, "node %u: a client is dead, and %s of it is left", c->node->id, left);
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		if (account->used[q] != rest[q])
			sim_fail(c->node->s, "node %u: a client is dead, and its user still has %llu of quota %u, not %llu",
				 c->node->id, (unsigned long long)account->used[q], q,
				 (unsigned long long)rest[q]);
}

/* ---- closing */

static void
check_strays(struct sim_node *n)
{
	const uint64_t *c = n->tp->c.v;

	/* A corrupted frame is dropped for that; a frame to the node itself is never on a wire. */
	if (sim_on(n->s, SIM_CORRUPT))
		return;
	if (c[URN_C_DROP_NO_QP] < n->host->strays ||
	    c[URN_C_DROP_NO_QP] > n->host->strays + c[URN_C_LOOPBACK])
		sim_fail(n->s, "node %u: %llu frames came for queue pairs that were not there, and %llu were dropped for that",
			 n->id, (unsigned long long)n->host->strays,
			 (unsigned long long)c[URN_C_DROP_NO_QP]);
}

static void
check_connections(struct sim_node *n)
{
	struct urn_cm *cm = urn_cm_agent_lock(n->host->a->cm);

	if (!test_cm_sound(cm))
		sim_fail(n->s, "node %u: the table of connections is not sound", n->id);
	urn_cm_agent_unlock(n->host->a->cm);
}

static void
lose_frames(struct sim_host *h)
{
	struct rte_mbuf *m[32];
	unsigned int k;

	while ((k = urn_port_rx(h->far, 0, m, 32)) || (k = urn_port_rx(h->port, 0, m, 32)))
		rte_pktmbuf_free_bulk(m, k);
}

void
sim_host_close(struct sim_node *n)
{
	struct sim *s = n->s;
	struct sim_host *h = n->host;

	for (unsigned int i = 0; i < s->plan.rogues; i++)
		sim_rogue_close(n, &h->rogue[i]);
	for (unsigned int i = 0; i < s->plan.clients; i++) {
		sim_client_check_events(&h->client[i]);
		sim_client_die(&h->client[i], &h->account[0]);
	}
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		if (h->ledger.used[q])
			sim_fail(s, "node %u: all clients are gone, and have %llu of quota %u", n->id,
				 (unsigned long long)h->ledger.used[q], q);
	urn_ledger_fini(&h->ledger);
	check_strays(n);
	check_connections(n);
	/* Frames that are still to be sent are dropped. */
	for (unsigned int i = 0; i < 1000 && (urn_tp_busy(n->tp) || urn_cm_agent_pending(h->a->cm)); i++) {
		urn_engine_poll(h->engine);
		lose_frames(h);
	}
	sim_node_check_pools(n, true);
	if (urn_memx_holds(n->memx, NULL))
		sim_fail(s, "node %u: %u memory operations were not answered", n->id,
			 urn_memx_holds(n->memx, NULL));
	urn_dp_destroy(h->dp);
	lose_frames(h);
	h->dp = NULL;
	n->tp = NULL;
	n->mem = NULL;
	n->memx = NULL;
}
