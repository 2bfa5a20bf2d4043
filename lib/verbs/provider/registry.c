/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two locks. `urn_registry_lock` protects the list of providers, the list of offers and
 * the reference counts, and is held for moments. An offer's own `use` lock is held while its
 * make() runs, so that withdrawing can wait for make(); `use` is taken without
 * urn_registry_lock, since make() may take long.
 */
#include "verbs/provider/registry.h"

#include <urnic/attach.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct urn_offer {
	TAILQ_ENTRY(urn_offer) next; /* in the list of offers; registry's lock */
	struct urn_device *device;   /* one reference */
	struct urn_verbs_origin from;
	pthread_mutex_t use; /* held around from.ops->make() */
	uint32_t refs;	     /* by the list, and by opens in progress; registry's lock */
	bool gone;	     /* withdrawn; under use */
};

/* urn_registry_lock protects the two lists, and the reference counts of offers and devices. */
static pthread_mutex_t urn_registry_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, urn_offer) urn_offers = TAILQ_HEAD_INITIALIZER(urn_offers);
/* No provider leaves the list, so one found there can be asked without urn_registry_lock. */
static STAILQ_HEAD(, urn_provider) urn_providers = STAILQ_HEAD_INITIALIZER(urn_providers);
static pthread_once_t urn_registry_once = PTHREAD_ONCE_INIT;

static void
urn_registry_hold(void)
{
	pthread_mutex_lock(&urn_registry_lock);
}

static void
urn_registry_parent(void)
{
	pthread_mutex_unlock(&urn_registry_lock);
}

static void
urn_registry_child(void)
{
	const struct urn_provider *p;
	struct urn_offer *o;

	pthread_mutex_init(&urn_registry_lock, NULL);
	/* A thread that held `use` while it waited for a dataplane is not in the child. */
	TAILQ_FOREACH(o, &urn_offers, next)
		pthread_mutex_init(&o->use, NULL);
	STAILQ_FOREACH(p, &urn_providers, next)
		if (p->ops->discover_forked != NULL)
			p->ops->discover_forked();
}

static void
urn_registry_start(void)
{
	(void)pthread_atfork(urn_registry_hold, urn_registry_parent, urn_registry_child);
}

void
urn_registry_forks(void)
{
	(void)pthread_once(&urn_registry_once, urn_registry_start);
}

void
urn_provider_add(struct urn_provider *p)
{
	pthread_mutex_lock(&urn_registry_lock);
	STAILQ_INSERT_TAIL(&urn_providers, p, next);
	pthread_mutex_unlock(&urn_registry_lock);
}

/* The provider after p in the list; p NULL: the first one. returns: NULL: there are no more */
static const struct urn_provider *
urn_provider_next(const struct urn_provider *p)
{
	pthread_mutex_lock(&urn_registry_lock);
	p = p != NULL ? STAILQ_NEXT(p, next) : STAILQ_FIRST(&urn_providers);
	pthread_mutex_unlock(&urn_registry_lock);
	return p;
}

int
urn_providers_discover(void)
{
	const struct urn_provider *p = NULL;
	char why[URN_ERROR_TEXT];
	int first = 0;

	while ((p = urn_provider_next(p)) != NULL) {
		int err = p->ops->discover();

		if (err == 0 || first != 0)
			continue;
		first = err;
		/* The next provider may leave another text. */
		snprintf(why, sizeof(why), "%s", urn_attach_error());
	}
	return first != 0 ? urn_fail(first, "%s", why) : 0;
}

struct urn_device *
urn_device_make(const struct urn_verbs_id *id)
{
	struct urn_device *d = urn_object_alloc(sizeof(*d));

	if (d == NULL)
		return NULL;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), "%s", id->name);
	/* There is no character device and no sysfs entry: these paths lead nowhere. */
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "%s", id->name);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%s",
		 id->name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 id->name);
	d->guid = id->guid;
	d->refs = 1;
	return d;
}

void
urn_device_put(struct urn_device *device)
{
	uint32_t left;

	pthread_mutex_lock(&urn_registry_lock);
	left = --device->refs;
	pthread_mutex_unlock(&urn_registry_lock);
	if (left == 0)
		free(device);
}

static void
urn_offer_put(struct urn_offer *o)
{
	uint32_t left;

	pthread_mutex_lock(&urn_registry_lock);
	left = --o->refs;
	pthread_mutex_unlock(&urn_registry_lock);
	if (left == 0) {
		pthread_mutex_destroy(&o->use);
		free(o);
	}
}

/*
 * Ask an origin for what a context is opened over.
 *
 * name: of the device, NULL: not known yet
 * returns: NULL with errno and a text, which make() may have set
 */
static void *
urn_origin_make(const struct urn_verbs_origin *from, const char *name)
{
	void *made;

	urn_fail(0, "%s", "");
	made = from->ops->make(from);
	if (made == NULL && urn_attach_error()[0] == '\0')
		urn_fail(errno ? errno : ENODEV, "%s%s gave no channel",
			 name != NULL ? "device " : "the device on offer",
			 name != NULL ? name : "");
	else if (made == NULL && errno == 0)
		errno = ENODEV;
	return made;
}

int
urn_verbs_offer(const struct urn_verbs_origin *from)
{
	void *made = urn_origin_make(from, NULL);
	struct urn_offer *o;
	struct urn_verbs_id id;
	int err;

	if (made == NULL)
		return errno;
	err = from->ops->identify(made, &id);
	if (err != 0)
		return err;
	o = calloc(1, sizeof(*o));
	if (o != NULL)
		o->device = urn_device_make(&id);
	if (o == NULL || o->device == NULL) {
		free(o);
		return urn_fail(ENOMEM, "no memory to offer device %s", id.name);
	}
	o->from = *from;
	o->refs = 1;
	pthread_mutex_init(&o->use, NULL);
	o->device->offer = o;

	pthread_mutex_lock(&urn_registry_lock);
	TAILQ_INSERT_TAIL(&urn_offers, o, next);
	pthread_mutex_unlock(&urn_registry_lock);
	return 0;
}

static bool
urn_origin_same(const struct urn_verbs_origin *a, const struct urn_verbs_origin *b)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed offer has left the list */
	return a->ops == b->ops && a->make == b->make && a->arg == b->arg;
}

/* Take the first matching offer off the list; its device forgets it. NULL: there is none */
static struct urn_offer *
urn_offer_unlist(const struct urn_verbs_origin *from)
{
	struct urn_offer *o;

	pthread_mutex_lock(&urn_registry_lock);
	TAILQ_FOREACH(o, &urn_offers, next)
		if (urn_origin_same(&o->from, from))
			break;
	if (o != NULL) {
		TAILQ_REMOVE(&urn_offers, o, next);
		o->device->offer = NULL; // NOLINT(clang-analyzer-unix.Malloc): as above
	}
	pthread_mutex_unlock(&urn_registry_lock);
	return o;
}

int
urn_verbs_withdraw(const struct urn_verbs_origin *from)
{
	struct urn_offer *o;
	int err = ENOENT;

	while ((o = urn_offer_unlist(from)) != NULL) {
		err = 0;
		pthread_mutex_lock(&o->use);
		o->gone = true;
		pthread_mutex_unlock(&o->use);
		urn_device_put(o->device);
		urn_offer_put(o);
	}
	return err == 0 ? 0 : urn_fail(err, "no device is on offer by that function");
}

struct ibv_device **
urn_offers_list(size_t *n)
{
	struct ibv_device **list;
	struct urn_offer *o;

	*n = 0;
	pthread_mutex_lock(&urn_registry_lock);
	TAILQ_FOREACH(o, &urn_offers, next)
		(*n)++;
	list = calloc(*n + 1, sizeof(*list));
	*n = 0;
	TAILQ_FOREACH(o, &urn_offers, next) {
		if (list == NULL)
			break;
		o->device->refs++;
		list[(*n)++] = &o->device->ibv;
	}
	pthread_mutex_unlock(&urn_registry_lock);
	if (list == NULL)
		urn_fail(ENOMEM, "no memory for the list of devices");
	return list;
}

/* Take a reference to a device and its offer; NULL when it is not on offer. */
static struct urn_offer *
urn_offer_use(struct urn_device *device)
{
	struct urn_offer *o;

	pthread_mutex_lock(&urn_registry_lock);
	o = device->offer;
	if (o != NULL) {
		o->refs++;
		device->refs++;
	}
	pthread_mutex_unlock(&urn_registry_lock);
	return o;
}

void *
urn_offer_make(struct urn_device *device, const struct urn_verbs_ops **ops)
{
	struct urn_offer *o = urn_offer_use(device);
	void *made = NULL;

	if (o == NULL) {
		urn_fail(ENODEV, "device %s is no longer on offer", device->ibv.name);
		return NULL;
	}
	pthread_mutex_lock(&o->use);
	*ops = o->from.ops;
	if (o->gone)
		urn_fail(ENODEV, "device %s is no longer on offer", device->ibv.name);
	else
		made = urn_origin_make(&o->from, device->ibv.name);
	pthread_mutex_unlock(&o->use);
	urn_offer_put(o);
	if (made == NULL)
		urn_device_put(device);
	return made;
}
