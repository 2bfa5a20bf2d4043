/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of options, as most programs take them: "--name arg" is read into
 * *out, or refused with a message in *err that says what to give instead.
 * Each returns 0, or -1 with *err; then *out is not valid.
 */
#ifndef URN_APPS_COMMON_OPTIONS_H
#define URN_APPS_COMMON_OPTIONS_H

#include "control/dataplane.h"

#include <stdint.h>

/* A decimal number from min to max. */
int urn_opt_number(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out,
		   struct urn_err *err);
/* A decimal number that is kept in 32 or 8 bits. */
int urn_opt_u32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out,
		struct urn_err *err);
int urn_opt_u8(const char *name, const char *arg, uint8_t min, uint8_t max, uint8_t *out,
	       struct urn_err *err);
/* A number that may have a unit of 1024 behind it: 64, 64K, 1G. */
int urn_opt_size(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out,
		 struct urn_err *err);
int urn_opt_size32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out,
		   struct urn_err *err);
/* A time in seconds, or with a unit: 2, 0.5, 200ms. min, max, *out: nanoseconds, whole ms */
int urn_opt_time(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out,
		 struct urn_err *err);
/* One of n words. *out: the word's index, from 0 on; -1 when it is none of them */
int urn_opt_word(const char *name, const char *arg, const char *const *words, int n, int *out,
		 struct urn_err *err);
/* --idle: spin, pause or sleep. */
int urn_opt_idle(const char *arg, enum urn_idle *out, struct urn_err *err);
/* The word for an idle policy, as urn_opt_idle() reads it. */
const char *urn_opt_idle_name(enum urn_idle idle);
/* --mtu: a path MTU, 256 to 4096. */
int urn_opt_mtu(const char *arg, uint32_t *out, struct urn_err *err);

/* Find a word among n. returns: its index, or -1 */
int urn_opt_find(const char *const *words, int n, const char *word);
/*
 * Say what is wrong with a word for which getopt_long() returned '?' (no option) or
 * ':' (no value). help: the command that lists the options, such as "--help"
 */
void urn_opt_bad(int id, const char *word, const char *help, struct urn_err *err);

#endif
