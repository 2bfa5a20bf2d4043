/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of [limits]: checks those that must fit together, and leaves half of each table to the
 * other users where the file says nothing else.
 */
#include "config/config_memory.h"
#include "config/config_priv.h"
#include "control/quota.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void
check_limits(struct urn_config_ctx *ctx)
{
	static const char *const pairs[][2] = {
		{"clients_per_uid", "clients"},
		{"qp_per_client", "qp_per_uid"},
		{"cq_per_client", "cq_per_uid"},
		{"srq_per_client", "srq_per_uid"},
		{"pd_per_client", "pd_per_uid"},
		{"ah_per_client", "ah_per_uid"},
		{"mr_per_client", "mr_per_uid"},
		{"pinned_per_client", "pinned_per_uid"},
		{"cm_per_client", "cm_per_uid"},
		{"channels_per_client", "channels_per_uid"},
		{"shares_per_client", "shares_per_uid"},
		{"shared_per_client", "shared_per_uid"},
		{"area_per_client", "area_per_uid"},
		{"queues_per_client", "queues_per_uid"},
		{"queues_per_uid", "queues"},
		{"msg_sets_per_client", "msg_sets_per_uid"},
	};
	const struct urn_config_limits *l = &ctx->cfg->limits;
	const struct urn_config_quota *c = &l->per_client, *u = &l->per_uid;
	const uint64_t values[][2] = {
		{l->clients_per_uid, l->clients},
		{c->qp, u->qp},
		{c->cq, u->cq},
		{c->srq, u->srq},
		{c->pd, u->pd},
		{c->ah, u->ah},
		{c->mr, u->mr},
		{c->pinned, u->pinned},
		{c->cm, u->cm},
		{c->channel, u->channel},
		{c->share, u->share},
		{c->shared, u->shared},
		{c->area, u->area},
		{c->queue, u->queue},
		{u->queue, l->queue},
		{c->msg, u->msg},
	};
	const struct urn_ini_section *s = ctx->only[URN_CK_LIMITS];

	/* A limit that is not given is not checked: the smaller one rules. */
	for (unsigned int i = 0; s && i < RTE_DIM(pairs); i++) {
		const struct urn_ini_entry *small = urn_ini_find(s, pairs[i][0]);
		const struct urn_ini_entry *large = urn_ini_find(s, pairs[i][1]);

		if (small && large && values[i][0] > values[i][1])
			urn_config_say(
				ctx, small->key.line,
				"%s = %.32s is more than %s = %.32s (line %u), so nobody could "
				"reach it; lower the one or raise the other",
				pairs[i][0], small->value.s, pairs[i][1], large->value.s,
				large->key.line);
	}
}

/* Check that a program may have an area of its adapter's size: otherwise none could attach. */
static void
check_areas(struct urn_config_ctx *ctx)
{
	const struct urn_config_limits *l = &ctx->cfg->limits;
	bool client = l->per_client.area <= l->per_uid.area;
	const char *key = client ? "area_per_client" : "area_per_uid";
	const struct urn_ini_section *s = ctx->only[URN_CK_LIMITS];
	const struct urn_ini_entry *limit = s ? urn_ini_find(s, key) : NULL;

	for (unsigned int i = 0; limit && i < ctx->cfg->adapters; i++) {
		const struct urn_config_adapter *a = &ctx->cfg->adapter[i];
		char size[32];

		if (a->adapter.area_size > (client ? l->per_client.area : l->per_uid.area))
			urn_config_say(ctx, limit->key.line,
				       "%s = %.32s is less than area_size = %s of adapter %s, so "
				       "no program could "
				       "attach; raise the one or lower the other",
				       key, limit->value.s,
				       urn_config_number_text(a->adapter.area_size, size),
				       a->adapter.name);
	}
}

/* Part of the machine's memory in bytes, 1 for all; UINT64_MAX: the system does not tell. */
static uint64_t
memory(uint64_t part)
{
	uint64_t bytes = urn_config_memory(), page = (uint64_t)sysconf(_SC_PAGESIZE);

	return bytes == UINT64_MAX ? bytes : bytes / page / part * page;
}

/*
 * Memory for queues is the dataplane's own, by the kernel's account: unless the file says something
 * else, all users together get half of what the machine has, and one of them half of that. Where
 * the adapters have one user, the limit that the file gives for a user is one for all, too.
 */
static void
bound_queues(struct urn_config *cfg)
{
	struct urn_config_limits *l = &cfg->limits;
	uint64_t most;

	if (l->queue == 0) {
		l->queue = memory(2);
		if (!urn_config_shared(cfg) && l->per_uid.queue > l->queue)
			l->queue = l->per_uid.queue;
	}
	most = urn_config_shared(cfg) ? l->queue / 2 : l->queue;
	if (l->per_uid.queue == 0)
		l->per_uid.queue = memory(4) < most ? memory(4) : most;
}

/* ---- shares of tables */

/* Entries of tables that all adapters have alike (control/objects.h, cm/cm.h, msg/msg.h). */
#define TABLE_CQ (64u << 10)
#define TABLE_CM (32u << 10)
#define TABLE_SRQ (64u << 10)
#define TABLE_PD (4u << 10)
#define TABLE_AH (64u << 10)
#define TABLE_MSG (64u << 10)

/* A table of adapters, of which users other than the one who takes the most are to have half. */
struct share {
	const char *limit; /* key in [limits] of what a user may have */
	const char *size;  /* key of an adapter's section; NULL: all adapters have the same */
	uint64_t *user;	   /* the limit's value */
	uint64_t entries;  /* size of the smallest adapter's table */
	const char *name;  /* name of that adapter */
};

enum { TABLES = 8 };

/* Find the smallest adapter's tables. */
static void
find_tables(struct urn_config *cfg, struct share t[TABLES])
{
	struct urn_config_quota *u = &cfg->limits.per_uid;

	t[0] = (struct share){"qp_per_uid", "max_qp", &u->qp, UINT64_MAX, NULL};
	t[1] = (struct share){"mr_per_uid", "max_mr", &u->mr, UINT64_MAX, NULL};
	t[2] = (struct share){"cm_per_uid", NULL, &u->cm, TABLE_CM, NULL};
	t[3] = (struct share){"cq_per_uid", NULL, &u->cq, TABLE_CQ, NULL};
	t[4] = (struct share){"srq_per_uid", NULL, &u->srq, TABLE_SRQ, NULL};
	t[5] = (struct share){"pd_per_uid", NULL, &u->pd, TABLE_PD, NULL};
	t[6] = (struct share){"ah_per_uid", NULL, &u->ah, TABLE_AH, NULL};
	t[7] = (struct share){"msg_sets_per_uid", NULL, &u->msg, TABLE_MSG, NULL};
	for (unsigned int i = 0; i < cfg->adapters; i++) {
		const struct urn_adapter_config *a = &cfg->adapter[i].adapter;
		const uint64_t size[] = {a->max_qp, a->max_mr};

		for (unsigned int k = 0; k < RTE_DIM(size); k++) {
			if (size[k] >= t[k].entries)
				continue;
			t[k].entries = size[k];
			t[k].name = a->name;
		}
	}
}

bool
urn_config_shared(const struct urn_config *cfg)
{
	return (cfg->urnicd.mode & 0077) != 0 || cfg->urnicd.group[0] != '\0';
}

/* Set a limit that the file does not give to half of what there is, unless it is lower. */
static void
halve(const struct urn_ini_section *s, const char *key, uint64_t *limit, uint64_t entries)
{
	uint64_t half = entries > 1 ? entries / 2 : 1;

	if (!(s && urn_ini_find(s, key)) && *limit > half)
		*limit = half;
}

/* Where users share the dataplane, one of them gets at most half of each table unless the file says
 * so. */
static void
leave_half(struct urn_config_ctx *ctx)
{
	const struct urn_ini_section *s = ctx->only[URN_CK_LIMITS];
	struct urn_config_limits *l = &ctx->cfg->limits;
	struct share t[TABLES];

	if (!urn_config_shared(ctx->cfg))
		return;
	find_tables(ctx->cfg, t);
	for (unsigned int i = 0; i < TABLES; i++)
		halve(s, t[i].limit, t[i].user, t[i].entries);
	halve(s, "clients_per_uid", &l->clients_per_uid, l->clients);
	halve(s, "shares_per_uid", &l->per_uid.share, urn_quota_pieces());
}

/* ---- notes */

/* A list of sentences. */
struct notes {
	char (*note)[URN_CONFIG_NOTE]; /* the caller's */
	unsigned int n, max;	       /* sentences so far, and room for them */
};

/* Add a sentence if there is room. */
static void __attribute__((format(printf, 2, 3))) note(struct notes *notes, const char *fmt, ...)
{
	va_list ap;

	if (notes->n == notes->max)
		return;
	va_start(ap, fmt);
	vsnprintf(notes->note[notes->n++], URN_CONFIG_NOTE, fmt, ap);
	va_end(ap);
}

/* Write a limit to text. returns text */
static const char *
limit_text(uint64_t limit, char text[32])
{
	if (limit != URN_CONFIG_UNLIMITED)
		return urn_config_number_text(limit, text);
	snprintf(text, 32, "unlimited");
	return text;
}

/* Note limits of memory for queues that leave others too little, or hold nothing. */
static void
note_queues(const struct urn_config *cfg, struct notes *notes)
{
	const struct urn_config_limits *l = &cfg->limits;
	char user[32], all[32];

	limit_text(l->per_uid.queue, user);
	limit_text(l->queue, all);
	if (l->queue == URN_CONFIG_UNLIMITED)
		note(notes, "queues = unlimited lets queues take all of the machine's memory: give "
			    "it a number");
	else if (l->queue > memory(1))
		note(notes,
		     "queues = %s is more than the machine's memory, so it bounds nothing: "
		     "lower it",
		     all);
	if (l->per_uid.queue > l->queue)
		note(notes,
		     "queues_per_uid = %s is more than queues = %s, so nobody could reach "
		     "it: lower the one or raise the other",
		     user, all);
	else if (urn_config_shared(cfg) && l->per_uid.queue > l->queue / 2)
		note(notes,
		     "queues_per_uid = %s lets one user take more than half of queues = %s: "
		     "lower it, or raise queues",
		     user, all);
}

/* Note limits of a user that leave others less than half of a table. */
static void
note_tables(struct urn_config *cfg, struct notes *notes)
{
	struct share t[TABLES];
	char limit[32], size[32];

	find_tables(cfg, t);
	for (unsigned int i = 0; i < TABLES; i++) {
		if (*t[i].user <= t[i].entries / 2 || t[i].entries < 2)
			continue;
		note(notes,
		     "%s = %s lets one user take more than half of the %s that %s%s has room "
		     "for%s%s",
		     t[i].limit, limit_text(*t[i].user, limit),
		     urn_config_number_text(t[i].entries, size),
		     t[i].name ? "adapter " : "an adapter", t[i].name ? t[i].name : "",
		     t[i].size ? ": lower it, or raise " : ": lower it",
		     t[i].size ? t[i].size : "");
	}
}

/* Note limits of clients and of shared pieces that leave others less than half. */
static void
note_halves(const struct urn_config *cfg, struct notes *notes)
{
	const struct urn_config_limits *l = &cfg->limits;
	uint64_t pieces = urn_quota_pieces();
	char user[32], all[32];

	if (l->clients > 1 && l->clients_per_uid > l->clients / 2)
		note(notes,
		     "clients_per_uid = %s lets one user take more than half of clients = "
		     "%s: lower it, or raise clients",
		     limit_text(l->clients_per_uid, user), limit_text(l->clients, all));
	if (l->per_uid.share > pieces / 2)
		note(notes,
		     "shares_per_uid = %s lets one user take more than half of the %s pieces "
		     "that this system allows (vm.max_map_count): lower it, or raise that",
		     limit_text(l->per_uid.share, user), urn_config_number_text(pieces, all));
}

/* Note a limit for which this process has too few descriptors. each: descriptors that one takes;
 * fds: how many all of the limit may take */
static void
note_fds(struct notes *notes, const char *key, uint64_t limit, uint64_t each, uint64_t fds)
{
	char text[32];

	if (limit != URN_CONFIG_UNLIMITED && limit > fds / each)
		note(notes,
		     "%s = %s is more than this process has descriptors for, %llu with %llu "
		     "each: lower it, or raise RLIMIT_NOFILE",
		     key, limit_text(limit, text), (unsigned long long)fds,
		     (unsigned long long)each);
}

/* Note limits that the file gives and for which this process has too few descriptors. */
static void
note_descriptors(const struct urn_config *cfg, struct notes *notes)
{
	const struct urn_config_limits *l = &cfg->limits;
	uint64_t engines = cfg->engines, client, user;
	struct rlimit fds;

	for (unsigned int i = 0; i < cfg->adapters; i++) { /* the smallest client */
		uint64_t n = (uint64_t)__builtin_popcount(cfg->adapter[i].adapter.engines);

		engines = n < engines ? n : engines;
	}
	client = URN_QUOTA_FDS_CONNECTION + URN_QUOTA_FDS_CLIENT + URN_QUOTA_FDS_ENGINE * engines;
	if (getrlimit(RLIMIT_NOFILE, &fds) != 0 || fds.rlim_max == RLIM_INFINITY)
		return;
	user = urn_config_shared(cfg) ? fds.rlim_max / 2 : fds.rlim_max;
	if (l->given.clients)
		note_fds(notes, "clients", l->clients, client, fds.rlim_max);
	if (l->given.clients_per_uid)
		note_fds(notes, "clients_per_uid", l->clients_per_uid, client, user);
	if (l->given.channels_per_uid)
		note_fds(notes, "channels_per_uid", l->per_uid.channel, URN_TELLER_WAY_FDS, user);
}

unsigned int
urn_config_notes(struct urn_config *cfg, char note[][URN_CONFIG_NOTE], unsigned int max)
{
	struct notes notes = {.note = note, .max = max};

	if (urn_config_shared(cfg)) {
		note_tables(cfg, &notes);
		note_halves(cfg, &notes);
	}
	note_queues(cfg, &notes);
	note_descriptors(cfg, &notes);
	return notes.n;
}

/* Remember which limits the file gives, of those that descriptors bound. */
static void
keep_given(struct urn_config_ctx *ctx)
{
	const struct urn_ini_section *s = ctx->only[URN_CK_LIMITS];
	struct urn_config_limits *l = &ctx->cfg->limits;

	l->given.clients = s && urn_ini_find(s, "clients");
	l->given.clients_per_uid = s && urn_ini_find(s, "clients_per_uid");
	l->given.channels_per_uid = s && urn_ini_find(s, "channels_per_uid");
}

void
urn_config_limits(struct urn_config_ctx *ctx)
{
	bound_queues(ctx->cfg);
	check_limits(ctx);
	check_areas(ctx);
	leave_half(ctx);
	keep_given(ctx);
}
