/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/fault/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S 1000000000ull
/* A day: longer times are typing errors. */
#define MOST_NS (86400ull * NS_PER_S)

struct site {
	const char *word;
	uint32_t queues; /* kinds that the place may be narrowed to */
};

static const struct site sites[URN_FAULT_SITE_COUNT] = {
#define X(site, name, narrow) [URN_FAULT_##site] = {.word = (name), .queues = (narrow)},
	URN_FAULT_SITES(X)
#undef X
};

/* A list that is being read. */
struct fault_reader {
	const char *text, *at;
	struct urn_fault_error *error;
};

const char *
urn_fault_word(enum urn_fault_site site)
{
	return sites[site].word;
}

/* Fail at a place of the text. returns: false */
static bool wrong(struct fault_reader *r, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool
wrong(struct fault_reader *r, const char *at, const char *fmt, ...)
{
	va_list ap;

	r->error->at = (uint32_t)(at - r->text) + 1;
	va_start(ap, fmt);
	vsnprintf(r->error->why, sizeof(r->error->why), fmt, ap);
	va_end(ap);
	return false;
}

static void
blanks(struct fault_reader *r)
{
	while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
		r->at++;
}

/* Read a word of letters, digits, _ and -. returns: its length, 0: there is none */
static uint32_t
word(struct fault_reader *r, const char **start)
{
	*start = r->at;
	while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '-')
		r->at++;
	return (uint32_t)(r->at - *start);
}

/* Read a decimal number of at most 18 digits. */
static bool
number(struct fault_reader *r, uint64_t *n)
{
	const char *start = r->at;

	for (*n = 0; isdigit((unsigned char)*r->at) && r->at - start < 18; r->at++)
		*n = *n * 10 + (uint64_t)(*r->at - '0');
	if (r->at == start)
		return wrong(r, start, "a number is missing here");
	return !isdigit((unsigned char)*r->at) || wrong(r, start, "the number is too large");
}

static bool
site(struct fault_reader *r, struct urn_fault_spec *f)
{
	const char *start;
	uint32_t i, len = word(r, &start);

	for (i = 0; i < URN_FAULT_SITE_COUNT; i++)
		if (strlen(sites[i].word) == len && memcmp(sites[i].word, start, len) == 0) {
			f->site = (enum urn_fault_site)i;
			return true;
		}
	if (len == 0)
		return wrong(r, start,
			     "the name of a call, wc, event or kill-peer is missing here");
	return wrong(r, start,
		     "nothing fails by the name '%.*s'; calls have their names without ibv_",
		     (int)(len > 40 ? 40 : len), start);
}

/* Read the queue after '@'. */
static bool
object(struct fault_reader *r, struct urn_fault_spec *f)
{
	static const struct {
		const char *word;
		uint32_t kind;
	} kinds[] = {{"qp", URN_FAULT_QP}, {"cq", URN_FAULT_CQ}, {"srq", URN_FAULT_SRQ}};
	const char *start = r->at;
	uint64_t n;
	uint32_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && f->queue == 0; i++)
		if (strncmp(start, kinds[i].word, strlen(kinds[i].word)) == 0) {
			f->queue = kinds[i].kind;
			r->at += strlen(kinds[i].word);
		}
	if (f->queue == 0)
		return wrong(r, start, "after @ comes qp, cq or srq, with a number or *");
	if (!(sites[f->site].queues & f->queue))
		return wrong(r, start, "%s is not about a queue of this kind", sites[f->site].word);
	if (*r->at == '*') {
		r->at++;
		f->number = URN_FAULT_EACH;
		return f->site != URN_FAULT_EVENT ||
		       wrong(r, start, "an event is about one queue, not about each");
	}
	start = r->at;
	if (!number(r, &n))
		return false;
	if (n == 0 || n >= URN_FAULT_EACH)
		return wrong(r, start, "queues are counted from 1");
	f->number = (uint32_t)n;
	return true;
}

/* Read digits after a point, up to `scale`. returns: their value in parts of scale */
static uint64_t
fraction(struct fault_reader *r, uint64_t scale)
{
	uint64_t part = 0;

	if (*r->at != '.')
		return 0;
	for (r->at++; isdigit((unsigned char)*r->at); r->at++) {
		scale /= 10;
		part += scale * (uint64_t)(*r->at - '0');
	}
	return part;
}

static bool
timed(const struct urn_fault_spec *f)
{
	return f->site == URN_FAULT_EVENT || f->site == URN_FAULT_KILL_PEER;
}

/* The unit behind a number: %, a unit of time, + or none. frac: billionths behind the point */
static bool
unit(struct fault_reader *r, const char *start, struct urn_fault_spec *f, uint64_t n, uint64_t frac)
{
	static const struct {
		const char *word;
		uint64_t ns;
	} units[] = {{"ms", 1000000}, {"us", 1000}, {"ns", 1}, {"s", NS_PER_S}};
	uint32_t i;

	if (*r->at == '%') {
		r->at++;
		if (n > 100 || (n == 100 && frac != 0))
			return wrong(r, start, "a probability is at most 100%%");
		f->when = URN_FAULT_PERCENT;
		f->n = ((n * 1000000 + frac / 1000) << 32) /
		       100000000; /* in millionths of a percent */
		return !timed(f) || wrong(r, start, "%s has a time or a number, no probability",
					  sites[f->site].word);
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strncmp(r->at, units[i].word, strlen(units[i].word)) != 0)
			continue;
		r->at += strlen(units[i].word);
		if (!timed(f))
			return wrong(r, start, "%s has no time, only events and kill-peer have",
				     sites[f->site].word);
		if (n > MOST_NS / units[i].ns)
			return wrong(r, start, "a time is at most a day");
		f->when = URN_FAULT_AFTER;
		f->n = n * units[i].ns + frac / (NS_PER_S / units[i].ns);
		return true;
	}
	if (frac != 0)
		return wrong(r, start, "only a time or a probability has a point");
	if (n == 0)
		return wrong(r, start, "counting begins with 1");
	f->when = URN_FAULT_NTH;
	f->n = n;
	if (*r->at == '+') {
		r->at++;
		f->when = URN_FAULT_FROM;
		return !timed(f) || wrong(r, start, "%s happens once", sites[f->site].word);
	}
	return true;
}

/* Read the time after ':'. */
static bool
when(struct fault_reader *r, struct urn_fault_spec *f)
{
	const char *start = r->at;
	uint64_t n, frac;

	if (strncmp(start, "every", 5) == 0) {
		r->at += 5;
		blanks(r);
		if (!number(r, &n))
			return false;
		f->when = URN_FAULT_EVERY;
		f->n = n;
		if (n == 0)
			return wrong(r, start, "counting begins with 1");
		return !timed(f) || wrong(r, start, "%s happens once", sites[f->site].word);
	}
	if (!isdigit((unsigned char)*start))
		return wrong(
			r, start,
			"after : comes a number, 'every' and a number, a probability such as 5%%, "
			"or a time such as 2s");
	if (!number(r, &n))
		return false;
	frac = fraction(r, NS_PER_S);
	return unit(r, start, f, n, frac);
}

/* Read what happens, after '='. */
static bool
what(struct fault_reader *r, struct urn_fault_spec *f)
{
	const char *start;
	uint32_t len = word(r, &start), about = 0;
	int shown = (int)(len > 40 ? 40 : len);

	if (f->site < URN_FAULT_WC)
		return urn_fault_errno(start, len, &f->what) ||
		       wrong(r, start,
			     "there is no error '%.*s'; a call fails with a name such as ENOMEM",
			     shown, start);
	if (f->site < URN_FAULT_EVENT) {
		if (!urn_fault_status(start, len, &f->what))
			return wrong(
				r, start,
				"there is no status '%.*s' of a completion; one is RETRY_EXC_ERR",
				shown, start);
		if (f->site == URN_FAULT_WC_RECV && urn_fault_is_requesters(f->what))
			return wrong(r, start, "only completions of sends get this status");
		return true;
	}
	if (!urn_fault_event(start, len, &f->what, &about))
		return wrong(r, start, "there is no event '%.*s'; one is PORT_ERR", shown, start);
	if (f->queue != 0 && f->queue != about)
		return wrong(r, start, "this event is not about a queue of that kind");
	if (f->queue == 0) {
		f->queue = about;
		f->number = about != 0 ? URN_FAULT_EACH : 0; /* the first one that there is */
	}
	return true;
}

static bool
fault(struct fault_reader *r, struct urn_fault_spec *f)
{
	*f = (struct urn_fault_spec){.when = URN_FAULT_FROM, .n = 1};
	if (!site(r, f))
		return false;
	if (timed(f))
		f->when = URN_FAULT_AFTER, f->n = 0;
	if (*r->at == '@' && (r->at++, !object(r, f)))
		return false;
	if (*r->at == ':' && (r->at++, blanks(r), !when(r, f)))
		return false;
	blanks(r);
	if (f->site == URN_FAULT_KILL_PEER)
		return true;
	if (*r->at != '=')
		return wrong(r, r->at, "a = and what happens are missing here");
	r->at++;
	blanks(r);
	return what(r, f);
}

int
urn_fault_parse(const char *text, struct urn_fault_spec *spec, uint32_t *n,
		struct urn_fault_error *error)
{
	struct fault_reader r = {.text = text, .at = text, .error = error};

	*n = 0;
	if (strnlen(text, URN_FAULT_LIST) == URN_FAULT_LIST)
		return wrong(&r, text, "more than %d characters of faults", URN_FAULT_LIST - 1),
		       EINVAL;
	for (;;) {
		blanks(&r);
		if (*r.at == '\0')
			return 0;
		if (*r.at == ';') {
			r.at++;
			continue;
		}
		if (*n == URN_FAULT_MAX)
			return wrong(&r, r.at, "more than %d faults", URN_FAULT_MAX), EINVAL;
		if (!fault(&r, &spec[*n]))
			return EINVAL;
		++*n;
		blanks(&r);
		if (*r.at != '\0' && *r.at != ';')
			return wrong(&r, r.at, "'%c' does not belong here", *r.at), EINVAL;
	}
}

int
urn_fault_seed(const char *text, uint64_t *seed)
{
	uint64_t v = 0, base = 10, digit;

	if (text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
	}
	if (*text == '\0')
		return EINVAL;
	for (; *text != '\0'; text++) {
		if (!isxdigit((unsigned char)*text))
			return EINVAL;
		digit = isdigit((unsigned char)*text)
				? (uint64_t)(*text - '0')
				: (uint64_t)(tolower((unsigned char)*text) - 'a') + 10;
		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return EINVAL;
		v = v * base + digit;
	}
	*seed = v;
	return 0;
}
