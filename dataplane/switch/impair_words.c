/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/impair_words.h"

#include "near.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

const char urn_impair_keys[] = "  drop=P            share of frames lost, in percent: 1 or 1%\n"
			       "  dup=P             share of frames duplicated\n"
			       "  corrupt=P         share of frames with one bit flipped\n"
			       "  reorder=P         share of frames held back until others passed\n"
			       "  hold=N or A-B     how many others pass, 1 to 32 (1-8)\n"
			       "  hold-time=T       ... or for how long at most (100us)\n"
			       "  delay=T           every frame comes later: 200us, 1.5ms\n"
			       "  jitter=T          by up to so much more; the order stays\n"
			       "  rate=R            bits a second: 500M, 2.5G (1000-based)\n"
			       "  queue=N           frames inside at a time, 1 to 1048576 (4096)\n"
			       "  flap=UP/DOWN      passes for a time, then not: 900ms/100ms\n"
			       "  blackhole         nothing passes\n"
			       "  seed=N            seed of all random choices (0)\n";

int
urn_impair_parse_percent(const char *s, double *out)
{
	char *end;
	double v;

	/* strtod() takes more than is allowed here: spaces, signs, hexadecimal, "inf". */
	if (strspn(s, "0123456789.") == 0 || strspn(s, "0123456789.%") != strlen(s))
		return -1;
	v = strtod(s, &end);
	if (end == s || (*end != '\0' && strcmp(end, "%") != 0) || v > 100)
		return -1;
	*out = v / 100;
	return 0;
}

static int
bad(struct urn_err *err, const char *key, const char *value, const char *want)
{
	if (value)
		urn_err_set(err, "%.16s=%.32s: give %s", key, value, want);
	else
		urn_err_set(err, "%.16s wants a value: %s", key, want);
	return -1;
}

static int
take_percent(const char *key, const char *value, double *out, struct urn_err *err)
{
	if (value && urn_impair_parse_percent(value, out) == 0)
		return 0;
	return bad(err, key, value, "percent from 0 to 100, such as 0.1 or 5%");
}

static int
take_time(const char *key, const char *value, uint64_t *out, struct urn_err *err)
{
	if (value && urn_text_parse_time(value, out) == 0 && *out <= URN_IMPAIR_MAX_NS)
		return 0;
	return bad(err, key, value, "a time up to 60 s, such as 200us or 1.5ms");
}

/* Take "3" or "1-8". */
static int
take_hold(struct urn_impair_config *c, const char *value, struct urn_err *err)
{
	char first[8] = "";
	uint64_t a, b;
	size_t n;

	if (!value)
		return bad(err, "hold", value, "how many others pass, such as 3 or 1-8");
	n = strcspn(value, "-");
	if (n < sizeof(first))
		memcpy(first, value, n);
	if (urn_text_parse_uint(first, &a) == 0) {
		b = a;
		if ((value[n] == '\0' || urn_text_parse_uint(value + n + 1, &b) == 0) && a >= 1 &&
		    a <= b && b <= URN_IMPAIR_MAX_PASS) {
			c->reorder_min = (uint32_t)a;
			c->reorder_max = (uint32_t)b;
			return 0;
		}
	}
	return bad(err, "hold", value, "1 to 32, or a range of these such as 1-8");
}

/* Take bits a second, with 1000-based letters, like all bit rates. */
static int
take_rate(struct urn_impair_config *c, const char *value, struct urn_err *err)
{
	uint64_t bps;

	if (value && urn_text_parse_rate(value, &bps) == 0 && bps >= URN_IMPAIR_MIN_BPS &&
	    bps <= URN_IMPAIR_MAX_BPS) {
		c->rate_bps = bps;
		return 0;
	}
	return bad(err, "rate", value, "bits a second from 1k to 1000G, such as 500M or 2.5G");
}

static int
take_flap(struct urn_impair_config *c, const char *value, struct urn_err *err)
{
	const char *slash = value ? strchr(value, '/') : NULL;
	char up[32] = "";

	if (slash && (size_t)(slash - value) < sizeof(up)) {
		memcpy(up, value, (size_t)(slash - value));
		if (urn_text_parse_time(up, &c->flap_up_ns) == 0 &&
		    urn_text_parse_time(slash + 1, &c->flap_down_ns) == 0 && c->flap_up_ns &&
		    c->flap_down_ns && c->flap_up_ns <= INT64_MAX / 2 &&
		    c->flap_down_ns <= INT64_MAX / 2)
			return 0;
	}
	return bad(err, "flap", value, "two times, up and down, such as 900ms/100ms");
}

static int
take_queue(struct urn_impair_config *c, const char *value, struct urn_err *err)
{
	uint64_t v;

	if (!value || urn_text_parse_uint(value, &v) || v < 1 || v > URN_IMPAIR_MAX_QUEUE)
		return bad(err, "queue", value, "frames from 1 to 1048576");
	c->queue = (uint32_t)v;
	return 0;
}

static int
take_seed(struct urn_impair_config *c, const char *value, struct urn_err *err)
{
	if (value && urn_text_parse_uint(value, &c->seed) == 0)
		return 0;
	return bad(err, "seed", value, "a number");
}

static int
take_blackhole(struct urn_impair_config *c, const char *value, struct urn_err *err)
{
	if (value) {
		urn_err_set(err, "blackhole takes no value, not %.32s", value);
		return -1;
	}
	c->blackhole = true;
	return 0;
}

/* Say that a word is no impairment. returns: -1 */
static int
unknown(const char *key, struct urn_err *err)
{
	static const char *const words[] = {"drop",	 "dup",	  "corrupt",  "reorder", "hold",
					    "hold-time", "delay", "jitter",   "rate",	 "queue",
					    "flap",	 "seed",  "blackhole"};
	char mean[URN_NEAR_HINT];
	struct urn_near near;

	urn_near_begin(&near, key);
	for (size_t i = 0; i < RTE_DIM(words); i++)
		urn_near_try(&near, words[i]);
	urn_err_set(err,
		    "%.32s is no impairment; %sthere are drop, dup, corrupt, reorder, hold, "
		    "hold-time, delay, jitter, rate, queue, flap, blackhole and seed",
		    key, urn_near_mean(&near, mean));
	return -1;
}

int
urn_impair_take(struct urn_impair_config *c, const char *key, const char *value,
		struct urn_err *err)
{
	static const struct {
		const char *key;
		int (*take)(struct urn_impair_config *c, const char *value, struct urn_err *err);
	} others[] = {
		{"hold", take_hold}, {"rate", take_rate}, {"queue", take_queue},
		{"flap", take_flap}, {"seed", take_seed}, {"blackhole", take_blackhole},
	};
	const struct {
		const char *key;
		double *at;
	} percents[] = {
		{"drop", &c->drop},
		{"dup", &c->dup},
		{"corrupt", &c->corrupt},
		{"reorder", &c->reorder},
	};
	const struct {
		const char *key;
		uint64_t *at;
	} times[] = {
		{"delay", &c->delay_ns},
		{"jitter", &c->jitter_ns},
		{"hold-time", &c->reorder_ns},
	};

	for (size_t i = 0; i < RTE_DIM(percents); i++) {
		if (strcmp(key, percents[i].key) == 0)
			return take_percent(key, value, percents[i].at, err);
	}
	for (size_t i = 0; i < RTE_DIM(times); i++) {
		if (strcmp(key, times[i].key) == 0)
			return take_time(key, value, times[i].at, err);
	}
	for (size_t i = 0; i < RTE_DIM(others); i++) {
		if (strcmp(key, others[i].key) == 0)
			return others[i].take(c, value, err);
	}
	return unknown(key, err);
}

int
urn_impair_take_list(struct urn_impair_config *c, const char *list, struct urn_err *err)
{
	char word[64], *value;

	for (;;) {
		size_t n = strcspn(list, ",");

		if (n == 0 || n >= sizeof(word)) {
			urn_err_set(err, "%.48s: give impairments such as drop=1%%,delay=200us",
				    n ? list : "an empty word");
			return -1;
		}
		memcpy(word, list, n);
		word[n] = '\0';
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (urn_impair_take(c, word, value, err))
			return -1;
		if (list[n] == '\0')
			return 0;
		list += n + 1;
	}
}
