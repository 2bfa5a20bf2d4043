/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Providers, the devices that they put on offer, and the lists that programs get of these.
 *
 * Two locks. `urn_registry_lock` protects the list of providers, the chain of offers and
 * the reference counts, and is held for moments. An offer's own `use` lock is held while its
 * make() runs, so that withdrawing can wait for make(); `use` is taken without
 * urn_registry_lock, since make() may take long.
 */
#include "verbs/front.h"

#include <urnic/attach.h>

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct urn_offer {
	struct urn_offer *next;     /* chain of offers */
	struct urn_device *device;  /* one reference */
	struct urn_verbs_origin from;
	pthread_mutex_t use;	    /* held around from.ops->make() */
	uint32_t refs;              /* by the chain, and by opens in progress; registry's lock */
	bool gone;                  /* withdrawn; under use */
};

static pthread_mutex_t urn_registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_offer *urn_offers;
/* No provider leaves the list, so one that was found there can be asked without the lock. */
static struct urn_provider urn_adapters = {.ops = &urn_adapter_ops};
static struct urn_provider *urn_providers = &urn_adapters;
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
	for (o = urn_offers; o != NULL; o = o->next)
		pthread_mutex_init(&o->use, NULL);
	for (p = urn_providers; p != NULL; p = p->next)
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
	struct urn_provider **tail;

	p->next = NULL;
	pthread_mutex_lock(&urn_registry_lock);
	for (tail = &urn_providers; *tail != NULL; tail = &(*tail)->next)
		;
	*tail = p;
	pthread_mutex_unlock(&urn_registry_lock);
}

static const struct urn_provider *
urn_provider_next(const struct urn_provider *p)
{
	pthread_mutex_lock(&urn_registry_lock);
	p = p->next;
	pthread_mutex_unlock(&urn_registry_lock);
	return p;
}

/* Ask all providers for devices. returns: 0, or the first failure's errno value, with its text */
static int
urn_providers_discover(void)
{
	const struct urn_provider *p;
	char why[URN_ERROR_TEXT];
	int first = 0;

	for (p = urn_providers; p != NULL; p = urn_provider_next(p)) {
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
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%s", id->name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s", id->name);
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
		urn_fail(errno ? errno : ENODEV, "%s%s gave no channel", name != NULL ? "device " : "the device on offer",
			name != NULL ? name : "");
	else if (made == NULL && errno == 0)
		errno = ENODEV;
	return made;
}

int
urn_verbs_offer(const struct urn_verbs_origin *from)
{
	void *made = urn_origin_make(from, NULL);
	struct urn_offer *o, **tail;
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
	for (tail = &urn_offers; *tail != NULL; tail = &(*tail)->next)
		;
	*tail = o;
	pthread_mutex_unlock(&urn_registry_lock);
	return 0;
}

static bool
urn_origin_same(const struct urn_verbs_origin *a, const struct urn_verbs_origin *b)
{
	return a->ops == b->ops && a->make == b->make && a->arg == b->arg;
}

/* Take the first matching offer off the chain; its device forgets it. */
static struct urn_offer *
urn_offer_unchain(const struct urn_verbs_origin *from)
{
	struct urn_offer **at, *o = NULL;

	pthread_mutex_lock(&urn_registry_lock);
	for (at = &urn_offers; *at != NULL; at = &(*at)->next) {
		if (!urn_origin_same(&(*at)->from, from))
			continue;
		o = *at;
		*at = o->next;
		o->device->offer = NULL;
		break;
	}
	pthread_mutex_unlock(&urn_registry_lock);
	return o;
}

int
urn_verbs_withdraw(const struct urn_verbs_origin *from)
{
	struct urn_offer *o;
	int err = ENOENT;

	while ((o = urn_offer_unchain(from)) != NULL) {
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
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	struct urn_offer *o;
	size_t n = 0;
	int err;

	urn_registry_forks();
	err = urn_providers_discover();
	pthread_mutex_lock(&urn_registry_lock);
	for (o = urn_offers; o != NULL; o = o->next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	n = 0;
	for (o = urn_offers; o != NULL && list != NULL; o = o->next) {
		o->device->refs++;
		list[n++] = &o->device->ibv;
	}
	pthread_mutex_unlock(&urn_registry_lock);
	if (list == NULL) {
		urn_fail(ENOMEM, "no memory for the list of devices");
	} else if (err != 0) {
		/* A dataplane that does not answer is not the same as none. The error text is set. */
		errno = err;
		if (n == 0) {
			free(list);
			list = NULL;
		}
	}
	if (num_devices != NULL)
		*num_devices = (int)n;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	size_t i;

	for (i = 0; list != NULL && list[i] != NULL; i++)
		urn_device_put((struct urn_device *)list[i]);
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int
ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1; /* the kernel knows no such device */
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(((struct urn_device *)device)->guid);
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

struct ibv_context *
ibv_open_device(struct ibv_device *ibv)
{
	struct urn_device *device = (struct urn_device *)ibv;
	struct urn_offer *o = urn_offer_use(device);
	const struct urn_verbs_ops *ops;
	void *made = NULL;

	if (o == NULL) {
		urn_fail(ENODEV, "device %s is no longer on offer", ibv->name);
		return NULL;
	}
	pthread_mutex_lock(&o->use);
	ops = o->from.ops;
	if (o->gone)
		urn_fail(ENODEV, "device %s is no longer on offer", ibv->name);
	else
		made = urn_origin_make(&o->from, ibv->name);
	pthread_mutex_unlock(&o->use);
	urn_offer_put(o);
	if (made == NULL) {
		urn_device_put(device);
		return NULL;
	}
	return urn_verbs_open_device(ops, made, device);
}
