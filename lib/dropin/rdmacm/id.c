/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids: making, binding, finding the peer's address, listening, destroying. */
#include "dropin/rdmacm/rdmacm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Ephemeral ports, as the kernel chooses them. */
#define PORT_FIRST 32768u
#define PORT_COUNT 28232u
#define PORT_TRIES 1000u

struct urn_cma_ids urn_cma_all = LIST_HEAD_INITIALIZER(urn_cma_all);

struct urn_cma_id *
urn_cma_id_new(struct urn_cma_channel *channel, void *context, enum rdma_port_space ps)
{
	struct urn_cma_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->channel = channel;
	id->forks = urn_cma_forks;
	id->pub.channel = &channel->pub;
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	id->ack_timeout = URN_CMA_ACK_TIMEOUT;
	LIST_INSERT_HEAD(&urn_cma_all, id, next);
	return id;
}

static bool
space_known(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	       enum rdma_port_space ps)
{
	struct urn_cma_channel *c = (struct urn_cma_channel *)channel;
	struct urn_cma_id *id;
	int err;

	if (out == NULL || !space_known(ps))
		return urn_cma_result(EINVAL);
	if (c == NULL)
		c = (struct urn_cma_channel *)rdma_create_event_channel();
	if (c == NULL)
		return -1;
	err = urn_cma_channel_own(c);
	if (err != 0)
		return urn_cma_result(err);
	pthread_mutex_lock(&urn_cma_lock);
	id = urn_cma_id_new(c, context, ps);
	pthread_mutex_unlock(&urn_cma_lock);
	if (id == NULL) {
		if (channel == NULL)
			rdma_destroy_event_channel(&c->pub);
		return urn_cma_result(ENOMEM);
	}
	id->sync = channel == NULL;
	id->reported = true;
	*out = &id->pub;
	return 0;
}

/*
 * Find another id that listens at the id's port of a device, at another address: both share one
 * listener of the end, which knows ports alone.
 *
 * returns: number of the listener; 0: there is none
 */
static uint32_t
listener_shared(const struct urn_cma_id *id, uint32_t d)
{
	uint16_t port = urn_cma_addr_port(&id->pub.route.addr.src_addr);
	const struct urn_cma_id *o;

	LIST_FOREACH(o, &urn_cma_all, next)
		if (o != id && o->listeners[d] != 0 && o->pub.ps == id->pub.ps &&
		    urn_cma_addr_port(&o->pub.route.addr.src_addr) == port)
			return o->listeners[d];
	return 0;
}

static void
listeners_end(struct urn_cma_id *id)
{
	for (uint32_t d = 0; d < urn_cma_dev_count; d++) {
		if (id->listeners[d] != 0 && listener_shared(id, d) == 0)
			(void)urn_cm_end_destroy(urn_cma_devs[d].end, id->listeners[d]);
		id->listeners[d] = 0;
	}
}

/* The requests of a listener that ends: those that the program has not seen end with it. */
static void
requests_end(struct urn_cma_id *listener)
{
	struct urn_cma_id *id, *after;

	for (id = LIST_FIRST(&urn_cma_all); id != NULL; id = after) {
		after = LIST_NEXT(id, next);
		if (id->listener != listener)
			continue;
		if (id->reported)
			id->listener = NULL;
		else
			urn_cma_id_free(id);
	}
}

void
urn_cma_id_free(struct urn_cma_id *id)
{
	if (id->cm != 0) {
		uint32_t cm = id->cm;

		urn_cma_table_remove(id);
		(void)urn_cm_end_destroy(id->dev->end, cm);
	}
	urn_cma_drop_events(id);
	urn_cma_groups_end(id);
	LIST_REMOVE(id, next);
	free(id->pub.route.path_rec);
	free(id->ep_attr);
	free(id);
}

/* A child of fork() ends an id of its parent's: the parent's connection stays. */
static void
foreign_end(struct urn_cma_id *id)
{
	if (id->sync && id->channel->pub.fd >= 0)
		rdma_destroy_event_channel(&id->channel->pub);
	free(id);
}

int
rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	struct urn_cma_channel *own;

	if (id == NULL)
		return urn_cma_result(EINVAL);
	if (urn_cma_foreign(id)) {
		foreign_end(id);
		return 0;
	}
	if (id->sync && pub->event != NULL)
		rdma_ack_cm_event(pub->event);
	pub->event = NULL;
	pthread_mutex_lock(&urn_cma_lock);
	listeners_end(id);
	requests_end(id);
	urn_cma_drop_events(id);
	urn_cma_wait_acks(id);
	own = id->sync ? id->channel : NULL;
	urn_cma_id_free(id);
	if (own != NULL)
		urn_cma_channel_free(own);
	pthread_mutex_unlock(&urn_cma_lock);
	return 0;
}

/* ---- addresses */

uint16_t
urn_cma_port_new(void)
{
	uint32_t r;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = (uint32_t)rand();
	return (uint16_t)(PORT_FIRST + r % PORT_COUNT);
}

/* True when another id of this process has the port for itself. */
static bool
port_taken(const struct urn_cma_id *id, const struct sockaddr *a)
{
	const struct urn_cma_id *o;
	union ibv_gid own, other;

	(void)urn_cma_addr_to_gid(a, &own);
	LIST_FOREACH(o, &urn_cma_all, next) {
		const struct sockaddr *b = &o->pub.route.addr.src_addr;

		if (o == id || o->pub.ps != id->pub.ps || o->reuse || id->reuse ||
		    (o->state != URN_CMA_BOUND && o->state != URN_CMA_LISTEN) ||
		    urn_cma_addr_port(a) != urn_cma_addr_port(b))
			continue;
		if (!urn_cma_addr_to_gid(b, &other))
			continue;
		if (id->afonly && o->afonly && a->sa_family != b->sa_family)
			continue;
		if (urn_cma_addr_any(a) || urn_cma_addr_any(b) || memcmp(&own, &other, 16) == 0)
			return true;
	}
	return false;
}

/* Give an address an ephemeral port that no other id has. returns: false: so many tries found none
 */
static bool
port_choose(const struct urn_cma_id *id, struct sockaddr *a)
{
	for (uint32_t n = 0; n < PORT_TRIES; n++) {
		urn_cma_addr_set_port(a, urn_cma_port_new());
		if (!port_taken(id, a))
			return true;
	}
	return false;
}

/* Bind an id; the lock is held. returns: 0, or an errno value */
static int
bind_addr(struct urn_cma_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *a = &id->pub.route.addr;
	struct urn_cma_dev *dev;
	union ibv_gid gid;
	uint8_t index;
	int err = 0;

	if (urn_cma_addr_port(addr) != 0 && port_taken(id, addr))
		return EADDRINUSE;
	if (!urn_cma_addr_any(addr)) {
		(void)urn_cma_addr_to_gid(addr, &gid);
		dev = urn_cma_dev_find(&gid, &index);
		err = dev == NULL ? ENODEV : urn_cma_id_attach(id, dev, index);
	}
	if (err != 0)
		return err;
	memset(&a->src_storage, 0, sizeof(a->src_storage));
	memcpy(&a->src_storage, addr, urn_cma_addr_len(addr));
	if (urn_cma_addr_port(addr) == 0 && !port_choose(id, &a->src_addr))
		return EADDRINUSE;
	id->state = URN_CMA_BOUND;
	return 0;
}

int
rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err;

	if (id == NULL || addr == NULL)
		return urn_cma_result(EINVAL);
	if (urn_cma_addr_len(addr) == 0)
		return urn_cma_result(EAFNOSUPPORT);
	pthread_mutex_lock(&urn_cma_lock);
	err = urn_cma_allows(id, URN_CMA_CALL_BIND) ? bind_addr(id, addr) : EINVAL;
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(err);
}

/* Give the id the device, and the own address, by which it reaches the peer. */
static int
route_to(struct urn_cma_id *id, const struct sockaddr *dst)
{
	struct rdma_addr *a = &id->pub.route.addr;
	uint16_t port = urn_cma_addr_port(&a->src_addr);
	struct sockaddr_storage own;
	struct urn_cma_dev *dev;
	union ibv_gid gid;
	uint8_t index;
	int err = 0;

	(void)urn_cma_addr_to_gid(dst, &gid);
	if (id->dev == NULL) {
		dev = urn_cma_dev_route(&gid, &index);
		err = dev == NULL ? EADDRNOTAVAIL : urn_cma_id_attach(id, dev, index);
	}
	if (err != 0)
		return err;
	urn_cma_gid_to_addr(&id->dev->gid[id->sgid_index], port, &own);
	if (port == 0)
		urn_cma_addr_set_port((struct sockaddr *)&own, urn_cma_port_new());
	memcpy(&a->src_storage, &own, sizeof(own));
	memset(&a->dst_storage, 0, sizeof(a->dst_storage));
	memcpy(&a->dst_storage, dst, urn_cma_addr_len(dst));
	memcpy(&a->addr.ibaddr.dgid, &gid, 16);
	return 0;
}

static int
resolve_addr(struct urn_cma_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	int err = 0;

	if (!urn_cma_allows(id, URN_CMA_CALL_RESOLVE_ADDR))
		return EINVAL;
	if (src != NULL && id->state == URN_CMA_IDLE && urn_cma_addr_len(src) != 0)
		err = bind_addr(id, src);
	if (err == 0)
		err = route_to(id, dst);
	if (err != 0)
		return err;
	id->state = URN_CMA_ADDR;
	return urn_cma_post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0) == NULL ? ENOMEM : 0;
}

int
rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
		  int timeout_ms)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err;

	(void)timeout_ms; /* the answer is there at once */
	if (id == NULL || dst == NULL)
		return urn_cma_result(EINVAL);
	if (urn_cma_addr_len(dst) == 0)
		return urn_cma_result(EAFNOSUPPORT);
	pthread_mutex_lock(&urn_cma_lock);
	err = resolve_addr(id, src, dst);
	pthread_mutex_unlock(&urn_cma_lock);
	return err != 0 ? urn_cma_result(err) : urn_cma_complete(id);
}

/* Make the path that programs look at: one, over RoCEv2. */
static struct ibv_sa_path_rec *
path_new(const struct urn_cma_id *id)
{
	struct ibv_sa_path_rec *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	memcpy(&p->sgid, &id->pub.route.addr.addr.ibaddr.sgid, 16);
	memcpy(&p->dgid, &id->pub.route.addr.addr.ibaddr.dgid, 16);
	p->hop_limit = 64;
	p->traffic_class = id->tos;
	p->reversible = 1;
	p->pkey = 0xffff;
	p->mtu_selector = 2; /* exactly */
	p->mtu = id->dev->mtu;
	p->packet_life_time_selector = 2;
	p->packet_life_time = URN_CMA_ACK_TIMEOUT - 1;
	return p;
}

static int
resolve_route(struct urn_cma_id *id)
{
	if (!urn_cma_allows(id, URN_CMA_CALL_RESOLVE_ROUTE))
		return EINVAL;
	id->pub.route.path_rec = path_new(id);
	if (id->pub.route.path_rec == NULL)
		return ENOMEM;
	id->pub.route.num_paths = 1;
	id->state = URN_CMA_ROUTE;
	return urn_cma_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0) == NULL ? ENOMEM : 0;
}

int
rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err;

	(void)timeout_ms;
	if (id == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	err = resolve_route(id);
	pthread_mutex_unlock(&urn_cma_lock);
	return err != 0 ? urn_cma_result(err) : urn_cma_complete(id);
}

/* ---- listening */

/*
 * Requests that may wait. The dataplane counts a request until it is accepted, not only until the
 * program fetches it, so a small number is raised.
 */
static uint32_t
backlog_of(int asked)
{
	if (asked <= 0 || asked > URN_CMA_BACKLOG_MOST)
		return URN_CMA_BACKLOG_MOST;
	return asked < URN_CMA_BACKLOG_LEAST ? URN_CMA_BACKLOG_LEAST : (uint32_t)asked;
}

/* Listen at one device, or at all when the id is bound to none. returns: 0, or an errno value */
static int
listen_at(struct urn_cma_id *id)
{
	uint16_t port = urn_cma_addr_port(&id->pub.route.addr.src_addr);
	uint64_t service = urn_cm_service((uint16_t)id->pub.ps, port);
	uint32_t backlog = backlog_of(id->backlog);
	int err = 0;

	for (uint32_t d = 0; err == 0 && d < urn_cma_dev_count; d++) {
		if (id->dev != NULL && id->dev != &urn_cma_devs[d])
			continue;
		id->listeners[d] = listener_shared(id, d);
		if (id->listeners[d] == 0)
			err = urn_cm_end_listen(urn_cma_devs[d].end, service, 0, backlog,
						&id->listeners[d]);
	}
	if (err != 0)
		listeners_end(id);
	return err;
}

int
rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	static const struct sockaddr_in any = {.sin_family = AF_INET};
	struct urn_cma_id *id = urn_cma_of(pub);
	int err = 0;

	if (id == NULL)
		return urn_cma_result(EINVAL);
	if (pub->qp_type != IBV_QPT_RC && !urn_cma_datagrams(id))
		return urn_cma_result(EOPNOTSUPP);
	pthread_mutex_lock(&urn_cma_lock);
	if (id->state == URN_CMA_IDLE && !urn_cma_foreign(id))
		err = bind_addr(id, (const struct sockaddr *)&any);
	if (err == 0 && !urn_cma_allows(id, URN_CMA_CALL_LISTEN))
		err = EINVAL;
	id->backlog = backlog;
	if (err == 0)
		err = listen_at(id);
	if (err == 0)
		id->state = URN_CMA_LISTEN;
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(err);
}
