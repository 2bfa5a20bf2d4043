/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two adapters below a virtual device, as a test has them: they make all objects, carry no traffic,
 * and are lost and come back when the test says so. A program that is linked with adapters.c wraps
 * the calls that attach to a dataplane (meson.build).
 */
#ifndef URN_TEST_SESSION_ADAPTERS_H
#define URN_TEST_SESSION_ADAPTERS_H

#include "verbs/session/heal.h"

#include <stdbool.h>
#include <stdint.h>

/* Capabilities of an adapter that a virtual device has not. */
#define ADAPTERS_WINDOWS                                                        \
	((unsigned int)(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A | \
			IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS))

/* An adapter; below: its part that the virtual device has open. */
struct adapters_one {
	_Atomic bool there;	  /* it can be attached to */
	_Atomic uint32_t life;	  /* lives that were lost; contexts of another life are gone */
	_Atomic uint32_t opened;  /* contexts that are open */
	_Atomic uint32_t regions; /* regions of all contexts */
	_Atomic uint32_t tried;	  /* calls that register memory, in vain or not */
	_Atomic uint32_t keys;	  /* regions made in this life */
	_Atomic uint32_t numbers; /* numbers of queue pairs given in this life */
	_Atomic uint32_t ids;	  /* ids of connection management given in this life */
	_Atomic uint32_t listens; /* listeners made in this life for services of ports */
	_Atomic bool deaf;	  /* it makes no such listener */
	_Atomic int denial;	  /* errno value of accepts and of the end of ids; 0: none */
	/* called when an id was given, or an event taken, before the adapter's call returns; id: as
	 * the adapter knows it; NULL: nothing is */
	void (*_Atomic meanwhile)(uint32_t id);
	void *_Atomic refused;	  /* memory that can't be registered; NULL: any can */
	_Atomic int refusal;	  /* ... for this errno value; 0: ENOMEM */
	_Atomic bool useless;	  /* it makes no channel: the device has no use for it */
	_Atomic bool busy;	  /* regions can't be deregistered */
	void (*_Atomic asked)(
		void); /* called when a region is to be deregistered; NULL: nothing is */
	void (*_Atomic closes)(
		void); /* called when a context that was not lost is closed; NULL: nothing is */
};

extern struct adapters_one adapters[URN_SV_ADAPTERS];

/* cmocka's set-up and tear-down: a virtual device above both; *state is its struct ibv_context. At
 * the end nothing of the adapters is left open. */
int adapters_setup(void **state);
int adapters_teardown(void **state);
/* The adapter of a context. */
struct adapters_one *adapters_of(struct ibv_context *c);
/* An object of a context that is there. returns: NULL with errno set */
void *adapters_object(struct ibv_context *c, size_t bytes);
/* Connection management of the adapters (adapters_cm.c). */
extern const struct urn_verbs_cm_ops adapters_cm;
/* An event for the end of the primary adapter that was opened last. */
void adapters_event(const struct urn_abi_cm_event *ev);
/* An adapter is lost. */
void adapters_lose(uint32_t adapter);
/* An adapter can be attached to again. */
void adapters_back(uint32_t adapter);
/* Wait until that is true. The test fails when it is not soon. */
void adapters_until(bool (*is)(void *arg), void *arg);
/* True when the device has an adapter, and all objects of the program there. arg: of this type */
struct adapters_whole {
	struct ibv_context *c;
	uint32_t adapter;
	uint32_t returned; /* times that it came back, at least */
};
bool adapters_whole(void *arg);
/* Regions of a domain that are not on an adapter, counted one by one; the device's lock is held. */
uint32_t adapters_missing(const struct urn_sv_pd *pd, uint32_t adapter);

#endif
