/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapters: the part that all engines share, and a shard on each engine. */
#include "control/adapter.h"

#include "am/am.h"

#include "pmd_glue/bond.h"
#include "pmd_glue/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <rte_random.h>

static const uint8_t none[16];

/* GIDs: link-local from the MAC (EUI-64), IPv4 at index 1, a configured IPv6. */
static void
make_gids(struct urn_adapter *a)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t *ll = a->gid[0];

	ll[0] = 0xfe;
	ll[1] = 0x80;
	ll[8] = a->mac[0] ^ 2;
	ll[9] = a->mac[1];
	ll[10] = a->mac[2];
	ll[11] = 0xff;
	ll[12] = 0xfe;
	ll[13] = a->mac[3];
	ll[14] = a->mac[4];
	ll[15] = a->mac[5];
	if (memcmp(a->cfg.ipv4, none, 4) != 0) {
		memcpy(a->gid[1], v4_prefix, sizeof(v4_prefix));
		memcpy(a->gid[1] + 12, a->cfg.ipv4, 4);
	}
	memcpy(a->gid[2], a->cfg.ipv6, 16);
}

static int
tp_neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	return urn_neigh_lookup(ctx, gid, mac);
}

static void
tp_neigh_doubt(void *ctx, const uint8_t gid[16])
{
	urn_neigh_doubt(ctx, gid);
}

static bool
tp_neigh_hop(void *ctx, const uint8_t gid[16], uint8_t hop[16])
{
	return urn_neigh_hop(ctx, gid, hop);
}

static uint32_t
tp_learn(void *ctx, const uint8_t gid_peer[16])
{
	return urn_learn_features(ctx, gid_peer);
}

static uint32_t
tp_learn_line(void *ctx, const uint8_t gid_peer[16])
{
	return urn_learn_line(ctx, gid_peer);
}

/*
 * The receivers of UC on an engine of the adapter that has this address; none when two have it, as
 * adapters on networks that are not joined may. Adapters come and go with the dataplane only.
 */
static bool
tp_near(void *ctx, const uint8_t gid[16], unsigned int engine, struct urn_tp_near *near)
{
	const struct urn_adapter *a = ctx;
	const struct urn_shard *found = NULL;
	unsigned int adapters = 0;

	for (unsigned int i = 0; i < a->dp->adapters_n; i++) {
		const struct urn_adapter *b = a->dp->adapter[i];

		for (unsigned int k = 0; k < URN_GIDS; k++) {
			if (memcmp(b->gid[k], gid, 16) != 0)
				continue;
			adapters++;
			found = b->shard[engine];
			break;
		}
	}
	if (adapters != 1 || !found)
		return false;
	urn_tp_near(found->tp, near);
	return true;
}

static struct urn_ah *
tp_ah(void *ctx, uint32_t id)
{
	struct urn_adapter *a = ctx;

	if (id == 0 || id > URN_ADAPTER_MAX_AH)
		return NULL;
	return atomic_load_explicit(&a->ah[id - 1], memory_order_acquire);
}

/* Bytes a second that a port carries; a port that does not know: more than any software sends. */
static uint64_t
line_rate(const struct urn_port *p)
{
	uint64_t bps = urn_port_speed(p);

	return (bps ? bps : RTE_ETH_SPEED_NUM_100G * 1000000ull) / 8;
}

/* Index of the adapter's first engine, which may be that of a shard in the making. */
static unsigned int
first_engine(const struct urn_adapter *a, const struct urn_shard *s)
{
	return s->first ? s->engine->index : a->engine_of[0];
}

/*
 * A number for the start of a transport: later than any before, in this process and in earlier ones, in
 * units of 4 ms. Numbers wrap after half a year; peers compare them by their difference.
 */
static uint32_t
start_number(void)
{
	static _Atomic uint32_t last;
	struct timespec t;
	uint32_t now, before = atomic_load(&last);

	clock_gettime(CLOCK_REALTIME, &t);
	do {
		now = (uint32_t)(((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) >> 22);
		if (before && (int32_t)(now - before) <= 0)
			now = before + 1;
		now += now < 1u << 16 ? 1u << 16 : 0; /* peers take lower numbers for ages */
	} while (!atomic_compare_exchange_weak(&last, &before, now));
	return now;
}

/* A number that nobody can guess, for this process alone; in tests with a seed, the next of
 * rte_srand(). */
static uint64_t
secret_number(const struct urn_adapter *a)
{
	uint64_t n;

	if (a->cfg.seed || getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		n = rte_rand();
	return n;
}

static struct urn_tp *
make_tp(struct urn_adapter *a, struct urn_shard *s)
{
	struct urn_tp_config cfg = {
		.engine = s->engine->index,
		.mem = a->mem,
		.memx = s->memx,
		.pool = a->cfg.port->pool,
		.gids = URN_GIDS,
		.mtu = a->cfg.port->caps.roce_mtu,
		.flow_mtu = a->cfg.port->caps.flow_mtu,
		.icrc = !a->cfg.no_icrc,
		.max_qp = a->cfg.max_qp,
		.work = a->cfg.work_in_flight,
		.repairs = RTE_MIN(a->cfg.max_qp, (uint32_t)URN_REPAIRS),
		.window = a->cfg.window,
		.hash_seed = (uint32_t)secret_number(a),
		.kept = rte_mempool_avail_count(urn_bond_least_pool(a->cfg.port)) / 4 /
			(unsigned int)__builtin_popcount(a->cfg.engines),
		.near = tp_near,
		.near_ctx = a,
		.neigh = tp_neigh,
		.neigh_doubt = tp_neigh_doubt,
		.neigh_hop = tp_neigh_hop,
		.neigh_ctx = a->neigh,
		.line = a->cfg.no_congestion_control ? 0 : line_rate(a->cfg.port),
		.dcqcn = a->cfg.dcqcn,
		.delay_limit = a->cfg.delay_limit_ns,
		.rto_floor = a->cfg.rto_floor_us * 1000ull,
		.flow_user = &urn_am_flow_user,
		.flow_ctx = s->msg,
		.am = s->am,
		.flow_epoch = start_number(),
		.flow_secret = secret_number(a),
		.first_engine = first_engine(a, s),
		.features = a->cfg.no_learn ? 0 : URN_LINK_F_ALL & ~a->cfg.features_off,
		.learn = a->learn ? tp_learn : NULL,
		.learn_line = a->learn ? tp_learn_line : NULL,
		.learn_ctx = a->learn,
		.gsi = a->learn || a->cm,
		.clock = urn_engine_clock,
		.clock_ctx = s->engine,
		.ah = tp_ah,
		.ah_ctx = a,
		.give_cqe = urn_shard_give_cqe,
		.cq_broken = urn_shard_cq_broken,
		.take_events = urn_shard_tell_events,
		.ring_again = urn_shard_ring_again,
		.has_left = urn_shard_has_left,
		.obstacle = urn_shard_obstacle,
		.failed = urn_shard_failed,
		.give_ctx = s,
	};

	memcpy(cfg.mac, a->mac, 6);
	memcpy(cfg.gid, a->gid, sizeof(a->gid));
	return urn_tp_create(&cfg, urn_engine_now(s->engine));
}

static void
destroy_shard(struct urn_shard *s)
{
	if (!s)
		return;
	urn_engine_remove(s->engine, s);
	urn_tp_destroy(s->tp);
	urn_msg_regs_destroy(s->msg);
	urn_am_destroy(s->am);
	urn_memx_destroy(s->memx);
	urn_obey_destroy(s->obey);
	free(s);
}

static struct urn_shard *
create_shard(struct urn_adapter *a, struct urn_engine *e)
{
	struct urn_memx_config mx = {
		.pending = 1024,
		.delay_seed = a->cfg.mem_delay_seed,
		.delay_percent = a->cfg.mem_delay_percent,
		.delay_polls = a->cfg.mem_delay_polls,
		.fail_per_million = a->cfg.mem_fail_per_million,
		/* Packets that wait for foreign memory may be half of the pool. */
		.foreign = urn_bond_least_pool(a->cfg.port)->size / 2 /
			   (unsigned int)__builtin_popcount(a->cfg.engines),
		.max_pds = URN_ADAPTER_MAX_PD,
		.engine = e->index,
		.count_stores = a->cfg.count_stores,
	};
	struct urn_shard *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	urn_shard_init_lists(s);
	s->engine = e;
	s->name = a->cfg.name;
	s->port = a->cfg.port;
	s->neigh = a->neigh;
	s->learn = a->learn;
	s->cm = a->cm;
	s->ends = &a->pairs.ends;
	s->sibling = a->shard;
	s->first = a->vectors == 0;
	s->queue = a->vectors < s->port->caps.queues ? (int)a->vectors : -1;
	s->sender = s->queue < 0 ? urn_adapter_shard(a, 0) : s;
	s->memx = urn_memx_create(&mx);
	if (s->memx)
		urn_mem_join(a->mem, e->index, s->memx);
	s->msg = urn_msg_regs_create(e->index, first_engine(a, s), secret_number(a));
	if (s->msg)
		s->msg_untold = urn_msg_untold_at(s->msg);
	s->am = urn_am_create(e->index, secret_number(a), a->cfg.am_unregistered);
	if (s->am) {
		s->am_untold = urn_am_untold_at(s->am);
		urn_am_pipelined_from(s->am, a->cfg.am_pipelined_from);
		urn_am_tagged_from(s->am, a->cfg.am_tagged_from);
	}
	s->tag = urn_tag_of(a->cfg.vlan, a->cfg.priority);
	s->tp = s->memx && s->msg && s->am ? make_tp(a, s) : NULL;
	if (a->cfg.obey.on)
		s->obey = urn_obey_create(&a->cfg.obey, urn_port_speed(s->port));
	if (!s->tp || (a->cfg.obey.on && !s->obey) || urn_engine_add(e, s) != 0) {
		destroy_shard(s);
		return NULL;
	}
	return s;
}

static int
make_shards(struct urn_adapter *a)
{
	for (unsigned int i = 0; i < a->dp->engines_n; i++) {
		if (!(a->cfg.engines & 1u << i))
			continue;
		a->shard[i] = create_shard(a, a->dp->engine[i]);
		if (!a->shard[i])
			return ENOMEM;
		a->engine_of[a->vectors++] = (uint8_t)i;
	}
	return 0;
}

static void
set_defaults(struct urn_adapter *a)
{
	struct urn_adapter_config *c = &a->cfg;

	if (!c->name[0])
		snprintf(c->name, sizeof(c->name), "urnic%u", a->index);
	if (c->vlan || c->priority) /* the tag has the priority, whatever the DSCP */
		memset(c->obey.map.dscp, c->obey.map.pcp[c->priority & 7],
		       sizeof(c->obey.map.dscp));
	c->max_qp = c->max_qp ? c->max_qp : 65536;
	c->max_mr = c->max_mr ? c->max_mr : 65536;
	c->area_size = c->area_size ? c->area_size : 1ull << 30;
	c->window = c->window ? c->window : 256;
	c->rto_floor_us = c->rto_floor_us ? c->rto_floor_us : 4000;
	c->work_in_flight = c->work_in_flight ? c->work_in_flight : 65536;
}

/* True when a station can have both addresses; an address of all zeros is none, and fine. */
static bool
unicast(const uint8_t ip4[4], const uint8_t ip6[16])
{
	static const uint8_t loopback[16] = {[15] = 1};
	bool no4 = memcmp(ip4, none, 4) == 0, no6 = memcmp(ip6, none, 16) == 0;

	return (no4 || (ip4[0] != 0 && ip4[0] != 127 && ip4[0] < 224)) &&
	       (no6 || (ip6[0] != 0xff && memcmp(ip6, loopback, 16) != 0 && !urn_gid_is_v4(ip6)));
}

static int
check(const struct urn_adapter *a, struct urn_err *err)
{
	const struct urn_adapter_config *c = &a->cfg;

	if (!c->port) {
		urn_err_set(err, "%s: no port; open one and name it in .port", c->name);
		return -1;
	}
	for (unsigned int i = 0; i < a->dp->adapters_n; i++) {
		if (a->dp->adapter[i]->cfg.port != c->port)
			continue;
		/* Two engines would receive from one queue. */
		urn_err_set(err, "%s: port %s is that of %s already; give each adapter its own",
			    c->name, c->port->cfg.name, a->dp->adapter[i]->cfg.name);
		return -1;
	}
	if (c->engines == 0 || c->engines >= 1u << a->dp->engines_n) {
		urn_err_set(err,
			    "%s: engines is 0x%x; set a bit for each that serves it, of the %u "
			    "there are",
			    c->name, c->engines, a->dp->engines_n);
		return -1;
	}
	if (!unicast(c->ipv4, c->ipv6)) {
		urn_err_set(err, "%s: an address is no unicast address of a network", c->name);
		return -1;
	}
	if (c->vlan > URN_TAG_VLAN_MAX || c->priority > 7) {
		urn_err_set(err, "%s: VLANs are numbered from 1 to %u, priorities from 0 to 7",
			    c->name, URN_TAG_VLAN_MAX);
		return -1;
	}
	if (c->max_qp > (1u << URN_TP_ENGINE_SHIFT) - 2 || c->max_mr > 0xfffffe ||
	    c->window > 1u << 20 || c->max_cm > URN_CM_IDS_MAX) {
		urn_err_set(err, "%s: at most %u QPs, %u regions, a window of %u packets, %u connection "
			    "ids", c->name, (1u << URN_TP_ENGINE_SHIFT) - 2, 0xfffffe, 1u << 20,
			    URN_CM_IDS_MAX);
		return -1;
	}
	return 0;
}

/* Bytes of this machine's cache lines; 0: unknown. */
static long
cache_line(void)
{
	long n = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
	FILE *f;

	if (n > 0)
		return n;
	/* The C library does not know the size on every processor; the kernel mostly does. */
	f = fopen("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size", "re");
	if (!f || fscanf(f, "%ld", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

static struct urn_learn *
make_learn(const struct urn_adapter *a)
{
	struct urn_learn_config cfg = {
		.neigh = a->neigh,
		.offer = URN_LINK_F_ALL & ~a->cfg.features_off,
		.arw = (uint8_t)urn_link_arw_code(a->cfg.cache_line ? (long)a->cfg.cache_line
								    : cache_line()),
		.icrc = !a->cfg.no_icrc,
		.seed = a->cfg.seed ? rte_rand() : 0,
	};

	memcpy(cfg.mac, a->mac, 6);
	return urn_learn_create(&cfg);
}

static void
cm_stands(void *ctx, const struct urn_cm_owner *o, const uint8_t peer[16], uint32_t qpn)
{
	urn_pair_doom(ctx, o, peer, qpn);
}

static struct urn_cm_agent *
make_cm(struct urn_adapter *a)
{
	struct urn_cm_agent_config cfg = {
		.neigh = a->neigh,
		.icrc = !a->cfg.no_icrc,
		.ca_guid = urn_adapter_guid(a),
		.seed = a->cfg.seed ? rte_rand() : 0,
		.max_ids = a->cfg.max_cm,
		.max_mtu = urn_adapter_mtu_code(a),
		.stands = cm_stands,
		.stands_ctx = &a->pairs,
	};

	memcpy(cfg.mac, a->mac, 6);
	return urn_cm_agent_create(&cfg);
}

static int
make_tables(struct urn_adapter *a)
{
	uint32_t keys = a->cfg.max_mr + 1;

	a->mem = urn_mem_create(a->cfg.max_mr, URN_ADAPTER_MAX_PD);
	if (a->mem && urn_mem_draw_keys(a->mem, a->cfg.seed) != 0)
		return ENOMEM;
	if (a->mem && a->cfg.count_stores)
		urn_mem_count_stores(a->mem);
	a->neigh = urn_neigh_create(a->mac, (const uint8_t (*)[16])a->gid, URN_GIDS);
	a->learn = a->neigh && !a->cfg.no_learn ? make_learn(a) : NULL;
	a->cm = a->neigh && !a->cfg.no_cm ? make_cm(a) : NULL;
	a->ah = calloc(URN_ADAPTER_MAX_AH, sizeof(*a->ah));
	a->key_owner = calloc(keys, sizeof(*a->key_owner));
	a->key_kind = calloc(keys, sizeof(*a->key_kind));
	a->key = calloc(keys, sizeof(*a->key));
	a->key_shm = calloc(keys, sizeof(*a->key_shm));
	a->key_bytes = calloc(keys, sizeof(*a->key_bytes));
	a->key_link = calloc(keys, sizeof(*a->key_link));
	a->pd_owner = calloc(URN_ADAPTER_MAX_PD + 1, sizeof(*a->pd_owner));
	a->pd_flags = calloc(URN_ADAPTER_MAX_PD + 1, sizeof(*a->pd_flags));
	return a->mem && a->neigh && (a->learn || a->cfg.no_learn) && (a->cm || a->cfg.no_cm) &&
			       a->ah && a->key_owner && a->key_kind && a->key && a->key_shm &&
			       a->key_bytes && a->key_link && a->pd_owner && a->pd_flags &&
			       urn_pairs_init(&a->pairs, a->cfg.max_qp,
					      (uint32_t)__builtin_popcount(a->cfg.engines)) == 0
		       ? 0
		       : ENOMEM;
}

/* Announce the adapter's addresses. On a port whose link is down the engine does so when the link comes up. */
static void
announce(struct urn_adapter *a)
{
	struct urn_shard *s = urn_adapter_shard(a, 0);

	s->link_up = s->port->link_up;
	if (s->link_up)
		urn_shard_announce(s);
}

struct urn_adapter *
urn_adapter_create(struct urn_dp *dp, unsigned int index, const struct urn_adapter_config *cfg,
		   struct urn_err *err)
{
	struct urn_adapter *a = calloc(1, sizeof(*a));

	if (!a) {
		urn_err_set(err, "no memory for an adapter");
		return NULL;
	}
	a->dp = dp;
	a->index = index;
	a->cfg = *cfg;
	pthread_mutex_init(&a->lock, NULL);
	set_defaults(a);
	if (check(a, err) != 0) {
		urn_adapter_destroy(a);
		return NULL;
	}
	memcpy(a->mac, cfg->port->mac, 6);
	make_gids(a);
	if (urn_port_filter(cfg->port, (const uint8_t(*)[16])a->gid, URN_GIDS, cfg->vlan, err) !=
	    0) {
		urn_adapter_destroy(a);
		return NULL;
	}
	if (make_tables(a) != 0 || make_shards(a) != 0) {
		urn_err_set(err, "%s: no memory for its tables (%u QPs, %u regions)", a->cfg.name,
			    a->cfg.max_qp, a->cfg.max_mr);
		urn_adapter_destroy(a);
		return NULL;
	}
	if (urn_adapter_fix(a, err) != 0) {
		urn_adapter_destroy(a);
		return NULL;
	}
	announce(a);
	return a;
}

void
urn_adapter_destroy(struct urn_adapter *a)
{
	if (!a)
		return;
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++)
		destroy_shard(a->shard[i]);
	urn_learn_destroy(a->learn);
	urn_cm_agent_destroy(a->cm);
	urn_neigh_destroy(a->neigh);
	urn_mem_destroy(a->mem);
	free((void *)a->ah);
	free(a->key_owner);
	free(a->key_kind);
	free(a->key);
	free(a->key_shm);
	free(a->key_bytes);
	free(a->key_link);
	urn_pairs_fini(&a->pairs);
	free(a->pd_owner);
	free(a->pd_flags);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void
nothing(void *arg)
{
	(void)arg;
}

void
urn_adapter_barrier(struct urn_adapter *a)
{
	for (uint32_t v = 0; v < a->vectors; v++)
		urn_engine_call(urn_adapter_shard(a, v)->engine, nothing, NULL);
}

struct passing {
	struct urn_shard *from, *to;
	struct urn_client_shard *client; /* the client's shard on `from` */
	bool begun;                      /* late is valid: completions that come meanwhile are not waited for */
	uint32_t late;                   /* completions that found no room in the ring: still to pass */
};

/* In the giver's thread. */
static void
pass_give(void *arg)
{
	struct passing *p = arg;

	uint32_t n = p->begun ? p->late : p->client->late_cqes.n;

	p->begun = true;
	n -= urn_shard_give_late_of(p->from, p->client, n);
	p->late = n < p->client->late_cqes.n ? n : p->client->late_cqes.n; /* the engine's turns gave others */
}

/* In the owner's thread: take the completions in its ring now, not those that come meanwhile. */
static void
pass_take(void *arg)
{
	struct passing *p = arg;
	unsigned int left = rte_ring_count(p->to->engine->ring), n;

	while (left && (n = urn_engine_take(p->to->engine)) > 0)
		left -= n < left ? n : left;
}

void
urn_adapter_pass_completions(const struct urn_client *c, uint32_t from, uint32_t to)
{
	struct urn_adapter *a = c->adapter;
	struct passing p = {.from = urn_adapter_shard(a, from),
			    .to = urn_adapter_shard(a, to),
			    .client = urn_client_shard(c, from)};

	if (from == to || !p.client)
		return;
	do {
		urn_engine_call(p.from->engine, pass_give, &p);
		urn_engine_call(p.to->engine, pass_take, &p);
	} while (p.late);
}
