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

/* An adapter; below: its part that the virtual device has open. */
struct adapters_one {
	_Atomic bool there;	  /* it can be attached to */
	_Atomic uint32_t life;	  /* lives that were lost; contexts of another life are gone */
	_Atomic uint32_t opened;  /* contexts that are open */
	_Atomic uint32_t regions; /* regions of all contexts */
	_Atomic uint32_t tried;	  /* calls that register memory, in vain or not */
	_Atomic uint32_t keys;	  /* regions made in this life */
	_Atomic uint32_t numbers; /* numbers of queue pairs given in this life */
	void *_Atomic refused;	  /* memory that can't be registered; NULL: any can */
	_Atomic bool busy;	  /* regions can't be deregistered */
	void (*_Atomic asked)(
		void); /* called when a region is to be deregistered; NULL: nothing is */
};

extern struct adapters_one adapters[URN_SV_ADAPTERS];

/* cmocka's set-up and tear-down: a virtual device above both; *state is its struct ibv_context. At
 * the end nothing of the adapters is left open. */
int adapters_setup(void **state);
int adapters_teardown(void **state);
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
