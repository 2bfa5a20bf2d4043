/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counts that people asked to be forgotten. Counters themselves only grow, because Prometheus
 * and telemetry live on that; so a moment's counts are kept, and subtracted for people.
 */
#include "control/adapter.h"
#include "report/report_priv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_NS = 1000000000 }; /* between samples of ports */

/* Counts of a port at a time. */
struct port_sample {
	uint64_t at; /* CLOCK_MONOTONIC, ns; 0: none yet */
	struct rte_eth_stats st;
};

struct urn_report_base {
	pthread_mutex_t lock; /* protects the counts: console and control socket may ask at once */
	unsigned int adapters, ports; /* entries of the arrays */
	struct urn_counters *adapter; /* by number in the dataplane; owner: this struct */
	struct rte_eth_stats *port;   /* by number in the source; owner: this struct */
	unsigned int switches;	      /* entries of the array */
	uint64_t **sw; /* counters of a switch, report_switch_words() of them, by number in the
			  source; owner: this struct */
	/* Counts of ports, for rates: at least RATE_NS ago, and later. By number in the source. */
	struct port_sample *before, *later;
};

/* Make room for the counters of switches. returns: false: no memory */
static bool
add_switches(struct urn_report_base *b)
{
	for (unsigned int i = 0; i < b->switches; i++) {
		b->sw[i] = calloc(report_switch_words(), sizeof(*b->sw[i]));
		if (b->sw[i] == NULL)
			return false;
	}
	return true;
}

struct urn_report_base *
urn_report_base_create(const struct urn_report_source *src, struct urn_err *err)
{
	struct urn_report_base *b = calloc(1, sizeof(*b));

	if (b != NULL) {
		pthread_mutex_init(&b->lock, NULL);
		b->adapters = src->dp->adapters_n;
		b->ports = src->ports;
		b->adapter = calloc(b->adapters + 1, sizeof(*b->adapter));
		b->port = calloc(b->ports + 1, sizeof(*b->port));
		b->switches = src->switches;
		b->sw = calloc(b->switches + 1, sizeof(*b->sw));
		b->before = calloc(b->ports + 1, sizeof(*b->before));
		b->later = calloc(b->ports + 1, sizeof(*b->later));
		if (b->adapter && b->port && b->before && b->later && b->sw && add_switches(b))
			return b;
	}
	urn_report_base_destroy(b);
	urn_err_set(err, "no memory for counts");
	return NULL;
}

void
urn_report_base_destroy(struct urn_report_base *b)
{
	if (b == NULL)
		return;
	pthread_mutex_destroy(&b->lock);
	for (unsigned int i = 0; b->sw && i < b->switches; i++)
		free(b->sw[i]);
	free(b->sw);
	free(b->before);
	free(b->later);
	free(b->adapter);
	free(b->port);
	free(b);
}

void
urn_report_base_set(struct urn_report_base *b, const struct urn_report_source *src)
{
	pthread_mutex_lock(&b->lock);
	for (unsigned int i = 0; i < b->adapters; i++)
		urn_dp_counters(src->dp, i, &b->adapter[i]);
	for (unsigned int i = 0; i < b->ports; i++)
		(void)rte_eth_stats_get(src->port[i]->id, &b->port[i]);
	for (unsigned int i = 0; i < b->switches; i++)
		report_switch_read(src, i, b->sw[i]);
	pthread_mutex_unlock(&b->lock);
}

/* Subtract; a device whose counts began anew has counted from there on. */
static void
since(uint64_t *v, uint64_t base)
{
	*v -= *v >= base ? base : 0;
}

/* The counts are read under the lock: read before, they may be below those that a `clear` keeps
 * meanwhile, and then look like counts that began anew. */

void
report_since_adapter(struct urn_report_base *b, const struct urn_report_source *src, unsigned int i,
		     struct urn_counters *c)
{
	if (b == NULL) {
		urn_dp_counters(src->dp, i, c);
		return;
	}
	pthread_mutex_lock(&b->lock);
	urn_dp_counters(src->dp, i, c);
	for (unsigned int k = 0; k < URN_COUNTER_COUNT; k++)
		since(&c->v[k], b->adapter[i].v[k]);
	pthread_mutex_unlock(&b->lock);
}

/* A device that does not count: zeros, which mislead nobody, because its packets pass all the same.
 */
static void
read_port(const struct urn_port *p, struct rte_eth_stats *st)
{
	memset(st, 0, sizeof(*st));
	(void)rte_eth_stats_get(p->id, st);
}

void
report_since_port(struct urn_report_base *b, const struct urn_port *p, unsigned int i,
		  struct rte_eth_stats *st)
{
	const struct rte_eth_stats *was;

	if (b == NULL) {
		read_port(p, st);
		return;
	}
	pthread_mutex_lock(&b->lock);
	read_port(p, st);
	was = &b->port[i];
	since(&st->ipackets, was->ipackets);
	since(&st->ibytes, was->ibytes);
	since(&st->imissed, was->imissed);
	since(&st->ierrors, was->ierrors);
	since(&st->rx_nombuf, was->rx_nombuf);
	since(&st->opackets, was->opackets);
	since(&st->obytes, was->obytes);
	since(&st->oerrors, was->oerrors);
	pthread_mutex_unlock(&b->lock);
}

/* ---- switches */

void
report_base_lock(struct urn_report_base *b)
{
	if (b)
		pthread_mutex_lock(&b->lock);
}

void
report_base_unlock(struct urn_report_base *b)
{
	if (b)
		pthread_mutex_unlock(&b->lock);
}

void
report_since_words(const struct urn_report_base *b, unsigned int sw, unsigned int first,
		   uint64_t *word, unsigned int n)
{
	for (unsigned int i = 0; b && i < n; i++)
		since(&word[i], b->sw[sw][first + i]);
}

/* ---- rates */

/* Read a port for rates. Some devices count no bytes: the port's adapter does. */
static void
read_sample(const struct urn_report_source *src, unsigned int i, struct rte_eth_stats *st)
{
	const struct urn_port *p = src->port[i];

	read_port(p, st);
	for (unsigned int k = 0; k < src->dp->adapters_n && !(st->ibytes | st->obytes); k++) {
		const struct urn_adapter *a = src->dp->adapter[k];

		if (a->cfg.port != p)
			continue;
		st->ibytes = urn_adapter_count(a, URN_C_RX_BYTES);
		st->obytes = urn_adapter_count(a, URN_C_TX_BYTES);
		return;
	}
}

void
urn_report_base_sample(struct urn_report_base *b, const struct urn_report_source *src, uint64_t now)
{
	pthread_mutex_lock(&b->lock);
	for (unsigned int i = 0; i < b->ports; i++) {
		if (b->later[i].at && now - b->later[i].at < RATE_NS)
			continue;
		b->before[i] = b->later[i];
		b->later[i].at = now;
		read_sample(src, i, &b->later[i].st);
	}
	pthread_mutex_unlock(&b->lock);
}

/* Events a second, from two counts; a count that began anew counts from 0. */
static uint64_t
rate(uint64_t before, uint64_t now, uint64_t ns)
{
	return (uint64_t)((double)(now >= before ? now - before : now) * 1e9 / (double)ns);
}

void
report_rates_port(struct urn_report_base *b, const struct urn_report_source *src, unsigned int i,
		  uint64_t now, struct report_rates *out)
{
	const struct port_sample *was;
	struct rte_eth_stats st;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&b->lock);
	/* The later sample may be too young to say anything. */
	was = b->before[i].at ? &b->before[i] : &b->later[i];
	read_sample(src, i, &st);
	if (was->at && now > was->at) {
		out->rx_bps = 8 * rate(was->st.ibytes, st.ibytes, now - was->at);
		out->tx_bps = 8 * rate(was->st.obytes, st.obytes, now - was->at);
		out->rx_pps = rate(was->st.ipackets, st.ipackets, now - was->at);
		out->tx_pps = rate(was->st.opackets, st.opackets, now - was->at);
	}
	pthread_mutex_unlock(&b->lock);
}
