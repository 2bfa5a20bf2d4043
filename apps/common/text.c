/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/text.h"

#include "common/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *
urn_text_size(char *buf, size_t n, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes / 1024;
	unsigned int u = 0;

	if (bytes < 1024) {
		snprintf(buf, n, "%" PRIu64 " B", bytes);
		return buf;
	}
	while (v >= 1024 && u < 3) {
		v /= 1024;
		u++;
	}
	snprintf(buf, n, v == (double)(uint64_t)v ? "%.0f %s" : "%.2f %s", v, units[u]);
	return buf;
}

/* Decimals that leave three significant digits. */
static int
decimals_of(double v)
{
	return v >= 100 ? 0 : v >= 10 ? 1 : 2;
}

const char *
urn_text_time(char *buf, size_t n, uint64_t ns)
{
	static const char *const units[] = {"us", "ms", "s"};
	double v = (double)ns / 1000;
	unsigned int u = 0;

	if (ns < 1000) {
		snprintf(buf, n, "%" PRIu64 " ns", ns);
		return buf;
	}
	while (v >= 1000 && u < 2) {
		v /= 1000;
		u++;
	}
	snprintf(buf, n, "%.*f %s", decimals_of(v), v, units[u]);
	return buf;
}

const char *
urn_text_rate(char *buf, size_t n, double per_second)
{
	static const char *const units[] = {"", "k", "M", "G"};
	unsigned int u = 0;

	while (per_second >= 1000 && u < 3) {
		per_second /= 1000;
		u++;
	}
	snprintf(buf, n, "%.*f %s/s", decimals_of(per_second), per_second, units[u]);
	return buf;
}

/* ---- progress */

#define PROGRESS_WIDTH 30u
#define PROGRESS_EVERY_NS 100000000u

void
urn_progress_begin(struct urn_progress *p, const char *label, uint64_t total)
{
	memset(p, 0, sizeof(*p));
	p->label = label;
	p->total = total;
	p->on = isatty(STDERR_FILENO) == 1;
	p->started_ns = p->on ? urn_clock_ns() : 0;
}

static void
progress_draw(struct urn_progress *p, uint64_t done, uint64_t now)
{
	char bar[PROGRESS_WIDTH + 1], size[32], speed[32];
	double share = p->total ? (double)done / (double)p->total : 0;
	double seconds = (double)(now - p->started_ns) / 1e9;
	unsigned int full = share >= 1 ? PROGRESS_WIDTH : (unsigned int)(share * PROGRESS_WIDTH);

	memset(bar, ' ', PROGRESS_WIDTH);
	memset(bar, '=', full);
	bar[PROGRESS_WIDTH] = '\0';
	urn_text_size(size, sizeof(size), done);
	urn_text_size(speed, sizeof(speed), seconds > 0 ? (uint64_t)((double)done / seconds) : 0);
	if (p->total)
		fprintf(stderr, "\r\033[K%s [%s] %3.0f %%  %s  %s/s", p->label, bar, 100 * share,
			size, speed);
	else
		fprintf(stderr, "\r\033[K%s  %s  %s/s", p->label, size, speed);
	fflush(stderr);
	p->dirty = true;
}

void
urn_progress_update(struct urn_progress *p, uint64_t done)
{
	uint64_t now;

	if (!p->on)
		return;
	now = urn_clock_ns();
	if (now - p->drawn_ns < PROGRESS_EVERY_NS && done < p->total)
		return;
	p->drawn_ns = now;
	progress_draw(p, done, now);
}

void
urn_progress_end(struct urn_progress *p)
{
	if (!p->dirty)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->dirty = false;
}

/* ---- signals */

enum { AGAIN_MS = 1000 };

static volatile sig_atomic_t stop_signal;
static volatile bool stop_set;
static uint64_t stop_ns;		      /* CLOCK_MONOTONIC of the first signal; 0: none yet; atomic */
static unsigned int stop_again_ms = AGAIN_MS; /* ms; not changed while signals are caught */

static void
on_stop(int sig)
{
	uint64_t now = urn_clock_ns(), first = 0;

	if (__atomic_compare_exchange_n(&stop_ns, &first, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		stop_signal = sig;
		stop_set = true;
	} else if (now >= first + stop_again_ms * UINT64_C(1000000)) {
		_exit(128 + sig);
	}
}

void
urn_stop_again(unsigned int ms)
{
	stop_again_ms = ms;
}

int
urn_stop_install(void)
{
	struct sigaction sa = {.sa_handler = on_stop}, hangup;

	stop_signal = 0;
	stop_set = false;
	stop_ns = 0;
	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGINT, &sa, NULL) || sigaction(SIGTERM, &sa, NULL) ||
	    sigaction(SIGHUP, NULL, &hangup))
		return -1;
	if (hangup.sa_handler != SIG_IGN && sigaction(SIGHUP, &sa, NULL))
		return -1;
	return 0;
}

int
urn_stop_requested(void)
{
	return (int)stop_signal;
}

const volatile bool *
urn_stop_flag(void)
{
	return &stop_set;
}
