/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes impairments in words. */
#include "switch/impair_state.h"
#include "switch/impair_words.h"

#include <stdarg.h>
#include <stdio.h>

struct words {
	char *buf;
	size_t size, len;
};

static void __attribute__((format(printf, 2, 3))) word(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (w->len && w->len + 1 < w->size)
		w->buf[w->len++] = ',';
	va_start(ap, fmt);
	n = vsnprintf(w->buf + w->len, w->size - w->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->len += (size_t)n < w->size - w->len ? (size_t)n : w->size - w->len - 1;
}

static void
percent_word(struct words *w, const char *key, double share)
{
	if (share > 0)
		word(w, "%s=%.9g%%", key, share * 100);
}

/* Write a time in its largest exact unit; parts of a microsecond with decimals. */
static const char *
time_text(uint64_t ns, char buf[32])
{
	if (ns % 1000000000 == 0)
		snprintf(buf, 32, "%llus", (unsigned long long)(ns / 1000000000));
	else if (ns % 1000000 == 0)
		snprintf(buf, 32, "%llums", (unsigned long long)(ns / 1000000));
	else
		snprintf(buf, 32, "%.12gus", (double)ns / 1000);
	return buf;
}

static void
time_word(struct words *w, const char *key, uint64_t ns)
{
	char text[32];

	if (ns)
		word(w, "%s=%s", key, time_text(ns, text));
}

/* Write the words of reordering; defaults are left out. */
static void
hold_words(struct words *w, const struct urn_impair_config *c)
{
	if (c->reorder_max && c->reorder_min == c->reorder_max)
		word(w, "hold=%u", c->reorder_max);
	else if (c->reorder_max &&
		 (c->reorder_min != 1 || c->reorder_max != URN_IMPAIR_DEFAULT_PASS))
		word(w, "hold=%u-%u", c->reorder_min, c->reorder_max);
	if (c->reorder_ns != URN_IMPAIR_DEFAULT_REORDER_NS)
		time_word(w, "hold-time", c->reorder_ns);
}

const char *
urn_impair_text(const struct urn_impair_config *c, char *buf, size_t size)
{
	struct words w = {.buf = buf, .size = size};
	char up[32], down[32];

	buf[0] = '\0';
	percent_word(&w, "drop", c->drop);
	percent_word(&w, "dup", c->dup);
	percent_word(&w, "corrupt", c->corrupt);
	percent_word(&w, "reorder", c->reorder);
	if (c->reorder > 0)
		hold_words(&w, c);
	time_word(&w, "delay", c->delay_ns);
	time_word(&w, "jitter", c->jitter_ns);
	if (c->rate_bps)
		word(&w, "rate=%.12gk", (double)c->rate_bps / 1e3);
	if (c->flap_up_ns || c->flap_down_ns)
		word(&w, "flap=%s/%s", time_text(c->flap_up_ns, up),
		     time_text(c->flap_down_ns, down));
	if (c->queue && c->queue != URN_IMPAIR_DEFAULT_QUEUE)
		word(&w, "queue=%u", c->queue);
	if (c->blackhole)
		word(&w, "blackhole");
	/* Without an impairment the seed has no effect. */
	if (c->seed && w.len)
		word(&w, "seed=%llu", (unsigned long long)c->seed);
	return buf;
}
