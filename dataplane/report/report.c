/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on objects that exist from the start: ports, adapters, engines, their tables and counters. */
#include "log/log.h"
#include "near.h"
#include "report/report_priv.h"
#include "abi/clock.h"
#include "am/am.h"
#include "msg/msg.h"
#include "server/server.h"
#include "pmd_glue/bond.h"
#include "pmd_glue/filter.h"
#include "pmd_glue/plug.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rte_version.h>

#define LOCK_NS 2000000000ull /* longest wait for a busy adapter */
#define LOCK_PAUSE_US 100     /* between two tries */

/* ---- common to all */

int
urn_report_lock(struct urn_adapter *a, struct urn_err *err)
{
	uint64_t until = 0;

	while (pthread_mutex_trylock(&a->lock) != 0) {
		uint64_t now = urn_clock_ns();

		if (until == 0)
			until = now + LOCK_NS;
		if (now > until) {
			urn_err_set(
				err,
				"%s is busy: a control call of a program does not end; try again",
				a->cfg.name);
			return -1;
		}
		urn_engine_wait_turn();
		usleep(LOCK_PAUSE_US); /* the wait may be long, and engines want the CPU */
	}
	return 0;
}

void
urn_report_unlock(struct urn_adapter *a)
{
	pthread_mutex_unlock(&a->lock);
}

const char *
report_gid(const uint8_t gid[16], char buf[48])
{
	bool v4 = urn_gid_is_v4(gid);

	if (inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, buf, 48) == NULL)
		buf[0] = '\0';
	return buf;
}

const char *
report_mac(const uint8_t m[6], char buf[18])
{
	snprintf(buf, 18, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
	return buf;
}

int
report_check_adapter(const struct urn_report_source *src, const char *name, struct urn_err *err)
{
	char hint[URN_NEAR_HINT];
	struct urn_near near;

	urn_near_begin(&near, name ? name : "");
	for (unsigned int i = 0; i < src->dp->adapters_n; i++) {
		if (report_named(name, src->dp->adapter[i]->cfg.name))
			return 0;
		urn_near_try(&near, src->dp->adapter[i]->cfg.name);
	}
	urn_near_hint(&near, "show adapter", hint);
	urn_err_set(err, "no adapter has the name %s; %s", name ? name : "", hint);
	return -1;
}

const char *
urn_idle_name(unsigned int idle)
{
	static const char *const names[] = {
		[URN_IDLE_SPIN] = "spin",
		[URN_IDLE_PAUSE] = "pause",
		[URN_IDLE_SLEEP] = "sleep",
	};

	return idle <= URN_IDLE_SLEEP ? names[idle] : NULL;
}

/* ---- ports */

/* The adapter that has a port; NULL: a switch has it. */
static const struct urn_adapter *
adapter_of(const struct urn_dp *dp, const struct urn_port *p)
{
	for (unsigned int i = 0; i < dp->adapters_n; i++)
		if (dp->adapter[i]->cfg.port == (p->bond ? p->bond : p))
			return dp->adapter[i];
	return NULL;
}

static void
port_counters(const struct urn_port *p, unsigned int i, struct urn_report_base *base,
	      struct urn_report_sink *s)
{
	struct rte_eth_stats st;

	report_since_port(base, p, i, &st);
	s->u64(s, "rx_packets", st.ipackets);
	s->u64(s, "rx_bytes", st.ibytes);
	s->u64(s, "rx_missed", st.imissed);
	s->u64(s, "rx_errors", st.ierrors);
	s->u64(s, "rx_no_mbuf", st.rx_nombuf);
	s->u64(s, "tx_packets", st.opackets);
	s->u64(s, "tx_bytes", st.obytes);
	s->u64(s, "tx_errors", st.oerrors);
	s->u64(s, "mbufs", p->pool->size);
	s->u64(s, "mbufs_free", rte_mempool_avail_count(p->pool));
}

/* Frames that the kernel looked at for the port, where it counts them. */
static void
port_filter(const struct urn_port *p, struct urn_report_sink *s)
{
	struct urn_port_filter_counts n;

	if (!urn_port_filter_counts(p, &n))
		return;
	s->u64(s, "filter_taken", n.v[URN_FILTER_TAKEN]);
	s->u64(s, "filter_passed", n.v[URN_FILTER_PASSED]);
	s->u64(s, "filter_missed", n.v[URN_FILTER_MISSED]);
}

static void
port_rates(const struct urn_report_source *src, unsigned int i, struct urn_report_base *base,
	   struct urn_report_sink *s)
{
	struct report_rates r;

	report_rates_port(base, src, i, urn_clock_ns(), &r);
	s->u64(s, "rx_mbps", r.rx_bps / 1000000);
	s->u64(s, "tx_mbps", r.tx_bps / 1000000);
	s->u64(s, "rx_pps", r.rx_pps);
	s->u64(s, "tx_pps", r.tx_pps);
}

static void
one_port(const struct urn_report_source *src, unsigned int i, const struct urn_report_query *q,
	 struct urn_report_sink *s)
{
	const struct urn_port *p = src->port[i];
	const struct urn_adapter *a = adapter_of(src->dp, p);
	bool card = q->name != NULL;
	char mac[18];

	s->begin(s, "port", card);
	s->str(s, "name", p->cfg.name);
	s->str(s, "adapter", a ? a->cfg.name : "");
	s->str(s, "use", !p->bond ? "" : urn_bond_active(p->bond) == p ? "active" : "standby");
	s->str(s, "state", urn_port_plug_name(urn_port_plugged(p)));
	s->flag(s, "link", LOOK(p->link_up));
	s->u64(s, "speed_mbps", urn_port_speed(p) / 1000000);
	s->str(s, "mac", report_mac(p->mac, mac));
	s->u64(s, "mtu", p->caps.mtu);
	s->u64(s, "path_mtu", p->caps.roce_mtu);
	s->u64(s, "queues", p->caps.queues);
	s->u64(s, "numa_node", (uint64_t)(p->caps.socket < 0 ? 0 : p->caps.socket));
	s->str(s, "filter", urn_port_filter_name(p));
	s->str(s, "device", p->cfg.device);
	if (q->base)
		port_rates(src, i, q->base, s);
	if (card) {
		port_counters(p, i, q->base, s);
		port_filter(p, s);
	}
	s->end(s);
}

int
urn_report_ports(const struct urn_report_source *src, struct urn_report_query *q,
		 struct urn_report_sink *s, struct urn_err *err)
{
	char hint[URN_NEAR_HINT];
	struct urn_near near;
	bool any = false;

	urn_near_begin(&near, q->name ? q->name : "");
	for (unsigned int i = 0; i < src->ports; i++) {
		urn_near_try(&near, src->port[i]->cfg.name);
		if (!report_named(q->name, src->port[i]->cfg.name))
			continue;
		any = true;
		one_port(src, i, q, s);
	}
	if (any || q->name == NULL)
		return URN_REPORT_DONE;
	urn_near_hint(&near, "show port", hint);
	urn_err_set(err, "no port has the name %s; %s", q->name, hint);
	return URN_REPORT_FAILED;
}

/* ---- adapters */

static const char *
engine_list(uint32_t mask, char buf[48])
{
	int n = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES && n < 44; i++)
		if (mask & 1u << i)
			n += snprintf(buf + n, (size_t)(48 - n), n ? ",%u" : "%u", i);
	return buf;
}

void
report_features(struct urn_report_sink *s, const struct urn_features *list, uint32_t offered)
{
	for (unsigned int i = 0; i < list->n; i++)
		s->flag(s, list->at[i].word, offered & list->at[i].mask);
}

static void
adapter_more(const struct urn_adapter *a, struct urn_report_sink *s)
{
	char gid[48];

	s->str(s, "gid_link_local", report_gid(a->gid[0], gid));
	s->str(s, "active_port", urn_bond_active(a->cfg.port)->cfg.name);
	s->u64(s, "port_moves", LOOK(a->cfg.port->moves));
	s->u64(s, "ipv4_prefix", a->cfg.ipv4_bits);
	s->u64(s, "ipv6_prefix", a->cfg.ipv6_bits);
	s->u64(s, "vlan", a->cfg.vlan);
	s->u64(s, "priority", a->cfg.priority);
	s->u64(s, "routes", urn_neigh_routes(a->neigh, NULL, 0));
	s->flag(s, "accept_ra", a->cfg.accept_ra);
	s->u64(s, "neighbours", urn_neigh_count(a->neigh));
	s->u64(s, "peers", a->learn ? urn_learn_count(a->learn) : 0);
	s->u64(s, "max_qp", a->cfg.max_qp);
	s->u64(s, "max_mr", a->cfg.max_mr);
	s->u64(s, "area_bytes", a->cfg.area_size);
	s->u64(s, "work_in_flight", a->cfg.work_in_flight);
	s->flag(s, "link_requests", !a->cfg.no_learn);
	s->flag(s, "cm", !a->cfg.no_cm);
	s->flag(s, "icrc", !a->cfg.no_icrc);
	s->flag(s, "congestion_control", !a->cfg.no_congestion_control);
	report_features(s, &urn_link_features,
			a->cfg.no_learn ? 0 : URN_LINK_F_ALL & ~a->cfg.features_off);
}

/* Counts that the adapter's engines keep; each is read at its own moment. */
static void
adapter_counts(const struct urn_adapter *a, struct urn_report_sink *s)
{
	uint64_t qps = 0, sets = 0, eps = 0, flows = 0;

	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++) {
		if (!a->shard[e])
			continue;
		qps += LOOK(a->shard[e]->tp->qp_count);
		sets += urn_msg_count(a->shard[e]->msg);
		eps += urn_am_count(a->shard[e]->am);
		flows += urn_flow_count(a->shard[e]->tp);
	}
	s->u64(s, "qps", qps);
	s->u64(s, "msg_sets", sets);
	s->u64(s, "am_endpoints", eps);
	s->u64(s, "flows", flows);
}

static int
one_adapter(struct urn_adapter *a, bool card, struct urn_report_sink *s, struct urn_err *err)
{
	const struct urn_shard *first = a->vectors ? urn_adapter_shard(a, 0) : NULL;
	char text[48];
	uint64_t clients = 0;

	if (urn_report_lock(a, err) != 0)
		return -1;
	for (const struct urn_client *c = LIST_FIRST(&a->clients); c; c = LIST_NEXT(c, link))
		clients++;
	urn_report_unlock(a);
	s->begin(s, "adapter", card);
	s->str(s, "name", a->cfg.name);
	s->str(s, "node", a->cfg.node);
	s->str(s, "port", a->cfg.port->cfg.name);
	s->flag(s, "link", LOOK(a->cfg.port->link_up));
	s->str(s, "mac", report_mac(a->mac, text));
	s->str(s, "ipv4", memcmp(a->cfg.ipv4, "\0\0\0", 4) ? report_gid(a->gid[1], text) : "");
	s->str(s, "ipv6",
	       memcmp(a->gid[2], (const uint8_t[16]){0}, 16) ? report_gid(a->gid[2], text) : "");
	s->str(s, "engines", engine_list(a->cfg.engines, text));
	s->u64(s, "clients", clients);
	adapter_counts(a, s);
	s->u64(s, "window", first ? LOOK(first->tp->cfg.window) : a->cfg.window);
	s->u64(s, "rto_floor_us",
	       first ? LOOK(first->tp->cfg.rto_floor) / 1000 : a->cfg.rto_floor_us);
	if (card)
		adapter_more(a, s);
	s->end(s);
	return 0;
}

int
urn_report_adapters(const struct urn_report_source *src, struct urn_report_query *q,
		    struct urn_report_sink *s, struct urn_err *err)
{
	if (report_check_adapter(src, q->name, err) != 0)
		return URN_REPORT_FAILED;
	for (unsigned int i = 0; i < src->dp->adapters_n; i++)
		if (report_named(q->name, src->dp->adapter[i]->cfg.name) &&
		    one_adapter(src->dp->adapter[i], q->name != NULL, s, err) != 0)
			return URN_REPORT_FAILED;
	return URN_REPORT_DONE;
}

/* ---- engines */

int
urn_report_engines(const struct urn_report_source *src, struct urn_report_query *q,
		   struct urn_report_sink *s, struct urn_err *err)
{
	bool any = false;
	char number[16];

	for (unsigned int i = 0; i < src->dp->engines_n; i++) {
		const struct urn_engine *e = src->dp->engine[i];
		unsigned int switches = 0;

		snprintf(number, sizeof(number), "%u", i);
		if (!report_named(q->name, number))
			continue;
		any = true;
		for (unsigned int k = 0; k < src->switches; k++)
			switches += src->sw[k].engine == i;
		s->begin(s, "engine", false);
		s->u64(s, "engine", i);
		s->str(s, "idle", urn_idle_name(LOOK(e->cfg.idle)));
		s->u64(s, "empty_polls", LOOK(e->cfg.empty_polls));
		s->u64(s, "sleep_us", LOOK(e->cfg.sleep_us));
		s->u64(s, "adapters", e->shards_n);
		s->u64(s, "switches", switches);
		s->u64(s, "turns", LOOK(e->loops));
		s->end(s);
	}
	if (any || q->name == NULL)
		return URN_REPORT_DONE;
	urn_err_set(err, "no engine has the number %s; there are %u", q->name, src->dp->engines_n);
	return URN_REPORT_FAILED;
}

/* ---- counters */

void
report_counters(struct urn_report_sink *s, const struct urn_counter_scope *scope,
		const char *prefix, const uint64_t *v, bool all)
{
	unsigned int n = urn_counter_total(scope);
	char key[64];

	for (unsigned int id = 0; id < n; id++) {
		if (!all && !v[id])
			continue;
		snprintf(key, sizeof(key), "%s%s", prefix, urn_counter_name_in(scope, id));
		s->u64(s, key, v[id]);
	}
}

int
urn_report_counters(const struct urn_report_source *src, struct urn_report_query *q,
		    struct urn_report_sink *s, struct urn_err *err)
{
	struct urn_counters c;

	if (report_check_adapter(src, q->adapter, err) != 0)
		return URN_REPORT_FAILED;
	for (unsigned int i = 0; i < src->dp->adapters_n; i++) {
		if (!report_named(q->adapter, src->dp->adapter[i]->cfg.name))
			continue;
		report_since_adapter(q->base, src, i, &c);
		s->begin(s, "counters", true);
		s->str(s, "adapter", src->dp->adapter[i]->cfg.name);
		report_counters(s, &urn_adapter_scope, "", c.v, q->all);
		s->end(s);
	}
	return URN_REPORT_DONE;
}

/* ---- limits, server, version */

static void
limit_value(struct urn_report_sink *s, const char *key, uint64_t v)
{
	/* A limit that does not exist is no number. */
	if (v == 0 || v == UINT64_MAX)
		s->str(s, key, "unlimited");
	else
		s->u64(s, key, v);
}

/* Limits or use of a client, of a user, and of all together. */
struct three {
	uint64_t client, uid, all;
};

static void
one_limit(struct urn_report_sink *s, const char *what, struct three max, struct three used)
{
	s->begin(s, "limit", false);
	s->str(s, "limit", what);
	limit_value(s, "per_client", max.client);
	limit_value(s, "per_uid", max.uid);
	limit_value(s, "total", max.all);
	s->u64(s, "used_client", used.client);
	s->u64(s, "used_uid", used.uid);
	s->u64(s, "used_total", used.all);
	s->end(s);
}

int
urn_report_limits(const struct urn_report_source *src, struct urn_report_query *q,
		  struct urn_report_sink *s, struct urn_err *err)
{
	static const char *const names[URN_QUOTAS] = {
		[URN_QUOTA_QP] = "qp",
		[URN_QUOTA_CQ] = "cq",
		[URN_QUOTA_SRQ] = "srq",
		[URN_QUOTA_MR] = "mr",
		[URN_QUOTA_PINNED] = "pinned",
		[URN_QUOTA_CM] = "cm",
		[URN_QUOTA_PD] = "pd",
		[URN_QUOTA_AH] = "ah",
		[URN_QUOTA_CHANNEL] = "channels",
		[URN_QUOTA_SHARE] = "shares",
		[URN_QUOTA_SHARED] = "shared",
		[URN_QUOTA_AREA] = "area",
		[URN_QUOTA_QUEUE] = "queues",
		[URN_QUOTA_MSG] = "msg_sets",
	};
	const struct urn_server_config *c = src->server_config;
	struct report_use use;

	if (c == NULL)
		return URN_REPORT_DONE;
	/* A reload may change limits meanwhile. */
	if (report_use(src, q->client, &use, err) != 0)
		return URN_REPORT_FAILED;
	one_limit(s, "clients", (struct three){1, LOOK(c->clients_per_uid), LOOK(c->clients)},
		  (struct three){use.clients > 0, use.clients_uid, use.clients});
	for (unsigned int i = 0; i < URN_QUOTAS; i++)
		if (names[i])
			one_limit(s, names[i],
				  (struct three){LOOK(c->per_client.max[i]), c->per_uid.max[i],
						 use.max[i]},
				  (struct three){use.client[i], use.uid[i], use.all[i]});
	return URN_REPORT_DONE;
}

int
urn_report_server(const struct urn_report_source *src, struct urn_report_query *q,
		  struct urn_report_sink *s, struct urn_err *err)
{
	struct urn_server_counters c;
	struct urn_log_counts log = {0};

	(void)q;
	(void)err;
	if (src->server == NULL)
		return URN_REPORT_DONE;
	if (src->dp->log)
		urn_log_counts(src->dp->log, &log);
	urn_server_counters(src->server, &c);
	s->begin(s, "server", true);
	s->u64(s, "clients", c.clients);
	s->u64(s, "accepted", c.accepted);
	s->u64(s, "refused", c.refused);
	s->u64(s, "opened", c.opened);
	s->u64(s, "calls", c.calls);
	s->u64(s, "bad", c.bad);
	s->u64(s, "queue_memory_refused", c.queue_memory_refused);
	s->u64(s, "log_lines", log.lines);
	s->u64(s, "log_more", log.more);
	s->u64(s, "log_lost", log.lost);
	s->end(s);
	return URN_REPORT_DONE;
}

int
urn_report_version(const struct urn_report_source *src, struct urn_report_query *q,
		   struct urn_report_sink *s, struct urn_err *err)
{
	(void)q;
	(void)err;
	s->begin(s, "version", true);
	s->str(s, "urnic", URN_VERSION);
	s->str(s, "dpdk", rte_version());
	s->u64(s, "abi", URN_ABI_VERSION);
	s->u64(s, "engines", src->dp->engines_n);
	s->u64(s, "adapters", src->dp->adapters_n);
	s->end(s);
	return URN_REPORT_DONE;
}
