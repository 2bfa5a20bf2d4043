/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counts that people asked to be forgotten. Counters themselves only grow, because Prometheus
 * and telemetry live on that; so a moment's counts are kept, and subtracted for people.
 */
#include "report/report_priv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct urn_report_base {
	pthread_mutex_t lock; /* protects the counts: console and control socket may ask at once */
	unsigned int adapters, ports; /* entries of the arrays */
	struct urn_counters *adapter; /* by number in the dataplane; owner: this struct */
	struct rte_eth_stats *port;   /* by number in the source; owner: this struct */
};

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
		if (b->adapter != NULL && b->port != NULL)
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
