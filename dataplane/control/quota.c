/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/quota.h"

#include "control/objects.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
	RESERVE_FDS = 64,       /* for this process itself: /proc, sockets, capture files */
	DEFAULT_MAPS = 65530,   /* the kernel's default, where /proc doesn't tell */
};

static const struct {
	const char *name;
	int err; /* errno value when all clients together have too many */
} kinds[URN_QUOTAS] = {
	[URN_QUOTA_QP] = {"queue pairs", EDQUOT},
	[URN_QUOTA_CQ] = {"completion queues", EDQUOT},
	[URN_QUOTA_SRQ] = {"shared receive queues", EDQUOT},
	[URN_QUOTA_PD] = {"protection domains", EDQUOT},
	[URN_QUOTA_AH] = {"address handles", EDQUOT},
	[URN_QUOTA_MR] = {"regions and windows", EDQUOT},
	[URN_QUOTA_PINNED] = {"bytes of registered memory", EDQUOT},
	[URN_QUOTA_CM] = {"connection ids", EDQUOT},
	[URN_QUOTA_CHANNEL] = {"completion channels", EDQUOT},
	[URN_QUOTA_SHARE] = {"pieces of shared memory", ENOMEM},
	[URN_QUOTA_SHARED] = {"bytes of shared memory", EDQUOT},
	[URN_QUOTA_AREA] = {"bytes of areas for queues", EDQUOT},
	[URN_QUOTA_MSG] = {"register sets", EDQUOT},
	[URN_QUOTA_FD] = {"descriptors", EMFILE},
	[URN_QUOTA_QUEUE] = {"bytes of memory for queues", EDQUOT},
};

/* ---- descriptors and mappings of this process */

/* Descriptors that are open now. */
static uint64_t
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Mappings that a process may have. */
static uint64_t
max_maps(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long n = DEFAULT_MAPS;

	if (f && fscanf(f, "%llu", &n) != 1)
		n = DEFAULT_MAPS;
	if (f)
		fclose(f);
	return n;
}

uint64_t
urn_quota_pieces(void)
{
	return max_maps() / 2; /* the other half: areas, stacks, this process's own mappings */
}

void
urn_quota_ledger_init(struct urn_ledger *l, uint64_t queues)
{
	uint64_t used = open_fds() + RESERVE_FDS;
	struct urn_limits limits;
	struct rlimit fds;

	for (unsigned int q = 0; q < URN_LEDGER_KINDS; q++)
		limits.max[q] = UINT64_MAX;
	if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur != RLIM_INFINITY)
		limits.max[URN_QUOTA_FD] = fds.rlim_cur > used ? fds.rlim_cur - used : 0;
	limits.max[URN_QUOTA_SHARE] = urn_quota_pieces();
	if (queues)
		limits.max[URN_QUOTA_QUEUE] = queues;
	urn_ledger_init(l, &limits);
}

/* ---- a client's calls */

/* Write the sentence, as far as there is room. returns err */
static int __attribute__((format(printf, 4, 5)))
refuse(char *why, size_t len, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return err;
}

/* Say which limit refused, in why[len]. returns: an errno value */
static int
explain(const struct urn_client *c, char *why, size_t len, const struct urn_ledger_refusal *no)
{
	const char *name = c->adapter->cfg.name;
	unsigned long long max = no->max;

	if (no->level == URN_LEDGER_ALL && no->kind == URN_QUOTA_QUEUE)
		return refuse(why, len, EDQUOT,
			      "%s: all programs together may have at most %llu %s ([limits] of the "
			      "dataplane: queues)",
			      name, max, kinds[no->kind].name);
	if (no->level == URN_LEDGER_ALL)
		return refuse(why, len, kinds[no->kind].err, "%s: all programs together may have at most %llu %s "
			      "of the dataplane: its process can have no more", name, max, kinds[no->kind].name);
	return refuse(why, len, EDQUOT, "%s: %s may have at most %llu %s ([limits] of the dataplane)", name,
		      no->level == URN_LEDGER_USER ? "a user" : "a program", max, kinds[no->kind].name);
}

static bool
is_bytes(enum urn_quota q)
{
	return q == URN_QUOTA_PINNED || q == URN_QUOTA_SHARED;
}

/* Amount of a kind that a call makes or takes back. bytes: of the call's object */
static uint64_t
amount(enum urn_quota q, uint64_t bytes)
{
	if (is_bytes(q))
		return bytes;
	/* Calls that make or take back descriptors are those of completion channels. */
	return q == URN_QUOTA_FD ? URN_TELLER_WAY_FDS : 1;
}

int
urn_quota_join(struct urn_client *c, struct urn_err *err)
{
	const uint64_t area[URN_LEDGER_KINDS] = {[URN_QUOTA_AREA] = c->area.size};
	struct urn_ledger_refusal no;

	if (urn_tally_take(&c->quota, area, &no))
		return 0;
	return explain(c, err->text, sizeof(err->text), &no);
}

int
urn_quota_queue(struct urn_client *c, uint64_t bytes)
{
	const uint64_t take[URN_LEDGER_KINDS] = {[URN_QUOTA_QUEUE] = bytes};
	struct urn_ledger_refusal no;

	if (!c->quota.account || bytes == 0 || urn_tally_take(&c->quota, take, &no))
		return 0;
	return explain(c, c->no_queue, sizeof(c->no_queue), &no);
}

/* True when calls with this use are charged to the client. */
static bool
is_charged(const struct urn_client *c, const struct urn_quota_use *use)
{
	return c->quota.account && (use->take | use->back);
}

int
urn_quota_begin(struct urn_client *c, const struct urn_quota_use *use,
		const struct urn_abi_req *req, struct urn_abi_rep *rep, struct urn_charge *charge)
{
	struct urn_ledger_refusal no;
	uint64_t bytes;

	memset(charge, 0, sizeof(*charge));
	if (!is_charged(c, use))
		return 0;
	bytes = use->bytes ? use->bytes(c, req) : 0;
	for (unsigned int q = 0; q < URN_QUOTAS; q++) {
		uint64_t n = amount(q, bytes);

		charge->take[q] = use->take >> q & 1 ? n : 0;
		charge->back[q] = use->back >> q & 1 ? n : 0;
	}
	if (urn_tally_take(&c->quota, charge->take, &no))
		return 0;
	return explain(c, rep->why, sizeof(rep->why), &no);
}

void
urn_quota_end(struct urn_client *c, const struct urn_quota_use *use, const struct urn_abi_rep *rep,
	      const struct urn_charge *charge)
{
	if (is_charged(c, use))
		urn_tally_give(&c->quota, rep->err == 0 ? charge->back : charge->take);
}
