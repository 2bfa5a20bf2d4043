/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of a user that the file does not give: half of each table. */
#include "config_test.h"

#include "config/config_memory.h"
#include "control/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARED "[urnicd]\nmode = 0666\n"
#define TWO                                                               \
	"[switch s]\n[adapter x]\nswitch = s\nmax_qp = 1k\n[adapter y]\n" \
	"switch = s\nmax_mr = 301\n"

/* The smallest adapter's table counts, and a limit that is lower anyhow stays. */
static void
half(void **state)
{
	struct urn_config *c = config_good(SHARED TWO);
	char note[8][URN_CONFIG_NOTE];

	(void)state;
	assert_true(urn_config_shared(c));
	assert_int_equal(c->limits.per_uid.qp, 512);
	assert_int_equal(c->limits.per_uid.cm, 16 << 10);
	assert_int_equal(c->limits.per_uid.mr, 150);
	assert_int_equal(c->limits.per_uid.cq, 32 << 10);
	assert_int_equal(c->limits.per_uid.pd, 2 << 10);
	assert_int_equal(c->limits.clients_per_uid, c->limits.clients / 2);
	assert_in_range(c->limits.per_uid.share, 1, urn_quota_pieces() / 2);
	assert_int_equal(urn_config_notes(c, note, 8), 0);
	urn_config_free(c);
	c = config_good(SHARED TWO "[limits]\nclients = 10\n");
	assert_int_equal(c->limits.clients_per_uid, 5);
	urn_config_free(c);
	c = config_good("[urnicd]\ngroup = users\n" CONFIG_REST);
	assert_int_equal(c->limits.per_uid.qp, 32 << 10);
	assert_int_equal(c->limits.per_uid.mr, 32 << 10);
	urn_config_free(c);
}

/* A table of one entry leaves nothing to share. */
static void
one(void **state)
{
	struct urn_config *c =
		config_good(SHARED "[switch s]\n[adapter x]\nswitch = s\nmax_qp = 1\n");
	char note[8][URN_CONFIG_NOTE];

	(void)state;
	assert_int_equal(c->limits.per_uid.qp, 1);
	assert_int_equal(urn_config_notes(c, note, 8), 0);
	urn_config_free(c);
}

/* A dataplane that is its user's own has nobody to leave anything to. */
static void
own(void **state)
{
	struct urn_config *c = config_good(TWO);

	(void)state;
	assert_false(urn_config_shared(c));
	assert_int_equal(c->limits.per_uid.qp, 64 << 10);
	assert_int_equal(c->limits.per_uid.mr, 256 << 10);
	urn_config_free(c);
	c = config_good(TWO "[limits]\nclients = 10\n");
	assert_int_equal(c->limits.clients_per_uid, 2 << 10);
	urn_config_free(c);
}

/* A limit of nothing would leave no user anything, and a share of no size has no rule: each limit
 * is one at least. */
static void
nothing(void **state)
{
	const struct urn_config_kind *k = &urn_config_kinds[URN_CK_LIMITS];
	char text[256], want[256];

	(void)state;
	assert_true(k->keys > 0);
	for (unsigned int i = 0; i < k->keys; i++) {
		snprintf(text, sizeof(text), "[limits]\n%s = 0\n" CONFIG_REST, k->key[i].name);
		snprintf(want, sizeof(want),
			 "2: %s = 0: give a number from 1 on, such as 100 or 64k, or unlimited\n",
			 k->key[i].name);
		config_bad(text, want);
		snprintf(text, sizeof(text), "[limits]\n%s = 1\n" CONFIG_REST, k->key[i].name);
		if (strstr(k->key[i].name, "area") == NULL) /* smaller than an adapter's */
			urn_config_free(config_good(text));
	}
}

/* A limit that the file gives holds, and is noted when it leaves others less than half. */
static void
notes(void **state)
{
	struct urn_config *c =
		config_good(SHARED TWO "[limits]\nqp_per_uid = 600\nmr_per_uid = 150\n"
				       "cq_per_uid = unlimited\npd_per_uid = unlimited\n");
	char note[8][URN_CONFIG_NOTE];

	(void)state;
	assert_int_equal(c->limits.per_uid.qp, 600);
	assert_int_equal(urn_config_notes(c, note, 8), 3);
	assert_string_equal(note[0],
			    "qp_per_uid = 600 lets one user take more than half of the 1k that "
			    "adapter x has room for: lower it, or raise max_qp");
	assert_string_equal(note[1],
			    "cq_per_uid = unlimited lets one user take more than half of the "
			    "64k that an adapter has room for: lower it");
	assert_non_null(strstr(
		note[2], "pd_per_uid = unlimited lets one user take more than half of the 4k"));
	assert_int_equal(urn_config_notes(c, note, 1), 1);
	urn_config_free(c);
}

/* Clients and shared pieces that leave others less than half are noted. */
static void
half_notes(void **state)
{
	struct urn_config *c =
		config_good(SHARED TWO "[limits]\nclients = 10\nclients_per_uid = 6\n"
				       "shares_per_uid = unlimited\n");
	char note[8][URN_CONFIG_NOTE];

	(void)state;
	assert_int_equal(urn_config_notes(c, note, 8), 2);
	assert_string_equal(note[0], "clients_per_uid = 6 lets one user take more than half of "
				     "clients = 10: lower it, or raise clients");
	assert_non_null(strstr(note[1],
			       "shares_per_uid = unlimited lets one user take more than half "
			       "of the "));
	assert_non_null(strstr(note[1], "(vm.max_map_count)"));
	urn_config_free(c);
	c = config_good(TWO "[limits]\nclients = 10\nclients_per_uid = 6\n");
	assert_int_equal(urn_config_notes(c, note, 8), 0);
	urn_config_free(c);
}

/* Limits of the file for which this process has too few descriptors are noted. */
static void
descriptor_notes(void **state)
{
	static const char text[] = "[limits]\nclients = 65\nclients_per_uid = 32\n"
				   "channels_per_client = 100\nchannels_per_uid = 200\n";
	char file[sizeof(SHARED TWO) + sizeof(text)], note[8][URN_CONFIG_NOTE];
	struct rlimit was, few = {1024, 1024};
	struct urn_config *c;

	(void)state;
	snprintf(file, sizeof(file), "%s%s%s", SHARED, TWO, text);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	if (was.rlim_max < few.rlim_max)
		skip();
	few.rlim_cur = was.rlim_cur < few.rlim_cur ? was.rlim_cur : few.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0); /* only root gets it back */
	c = config_good(file);
	assert_int_equal(urn_config_notes(c, note, 8),
			 2); /* 32 * 16 is half of 1024, 65 * 16 more */
	assert_string_equal(note[0], "clients = 65 is more than this process has descriptors for, "
				     "1024 with 16 each: lower it, or raise RLIMIT_NOFILE");
	assert_string_equal(note[1],
			    "channels_per_uid = 200 is more than this process has descriptors "
			    "for, 512 with 3 each: lower it, or raise RLIMIT_NOFILE");
	urn_config_free(c);
	c = config_good(SHARED TWO); /* limits that the file does not give */
	assert_int_equal(urn_config_notes(c, note, 8), 0);
	urn_config_free(c);
	(void)setrlimit(RLIMIT_NOFILE, &was);
}

/* Memory for queues: half of the machine's, and half of that for a user, unless the file says
 * something else. */
static void
queues(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = urn_config_memory() / page;
	struct urn_config *c = config_good(SHARED TWO);

	(void)state;
	assert_true(c->limits.queue == pages / 2 * page);
	assert_true(c->limits.per_uid.queue == pages / 4 * page);
	urn_config_free(c);
	c = config_good(SHARED TWO "[limits]\nqueues = 64M\n");
	assert_true(c->limits.queue == 64 << 20);
	assert_true(c->limits.per_uid.queue == 32 << 20);
	urn_config_free(c);
	c = config_good(TWO "[limits]\nqueues = 64M\n"); /* there are no other users */
	assert_true(c->limits.per_uid.queue == 64 << 20);
	urn_config_free(c);
	for (int shared = 0; shared < 2; shared++) { /* more than any machine has */
		c = shared ? config_good(SHARED TWO "[limits]\nqueues_per_uid = 1048576G\n")
			   : config_good(TWO "[limits]\nqueues_per_uid = 1048576G\n");
		assert_true(c->limits.per_uid.queue == UINT64_C(1024) << 40);
		assert_true(c->limits.queue == (shared ? pages / 2 * page : UINT64_C(1024) << 40));
		urn_config_free(c);
	}
	c = config_good(TWO "[limits]\nqueues_per_uid = 1M\n");
	assert_true(c->limits.queue == pages / 2 * page);
	urn_config_free(c);
}

/* Limits of memory for queues that leave others less than half, or bound nothing, are noted. */
static void
queue_notes(void **state)
{
	struct urn_config *c =
		config_good(SHARED TWO "[limits]\nqueues = 64M\nqueues_per_uid = 33M\n");
	char note[8][URN_CONFIG_NOTE];

	(void)state;
	assert_int_equal(urn_config_notes(c, note, 8), 1);
	assert_string_equal(note[0], "queues_per_uid = 33M lets one user take more than half of "
				     "queues = 64M: lower it, or raise queues");
	assert_int_equal(urn_config_notes(c, note, 0), 0);
	urn_config_free(c);
	c = config_good(SHARED TWO "[limits]\nqueues = unlimited\n");
	assert_int_equal(urn_config_notes(c, note, 8), 1);
	assert_string_equal(note[0], "queues = unlimited lets queues take all of the machine's "
				     "memory: give it a number");
	urn_config_free(c);
	c = config_good(TWO "[limits]\nqueues = 524288G\n");
	assert_int_equal(urn_config_notes(c, note, 8), 1);
	assert_non_null(strstr(note[0], "is more than the machine's memory, so it bounds nothing"));
	urn_config_free(c);
	c = config_good(SHARED TWO "[limits]\nqueues_per_uid = unlimited\n");
	assert_int_equal(urn_config_notes(c, note, 8), 1);
	assert_non_null(strstr(note[0], "queues_per_uid = unlimited is more than queues = "));
	urn_config_free(c);
}

/* Write a file below root; text NULL: make a folder. */
static void
put(const char *root, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (!text) {
		assert_int_equal(mkdir(path, 0700), 0);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The smallest limit of the own control group and its parents counts, of both versions. */
static void
groups(void **state)
{
	char root[] = P_tmpdir "/urnic-test.XXXXXX", list[64], gone[96];

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(list, sizeof(list), "%s/list", root);
	assert_true(urn_config_cgroup_memory(list, root) == UINT64_MAX); /* there is no list */
	put(root, "list", "5:cpu:/x\n4:memory:/x\n0::/a/b\n");
	assert_true(urn_config_cgroup_memory(list, root) == UINT64_MAX); /* nor a group */
	put(root, "a", NULL);
	put(root, "a/b", NULL);
	put(root, "a/b/memory.max", "max\n");
	assert_true(urn_config_cgroup_memory(list, root) == UINT64_MAX);
	put(root, "a/memory.max", "5000\n"); /* the parent's */
	assert_true(urn_config_cgroup_memory(list, root) == 5000);
	put(root, "a/b/memory.max", "4000\n");
	assert_true(urn_config_cgroup_memory(list, root) == 4000);
	put(root, "memory", NULL);
	put(root, "memory/x", NULL);
	put(root, "memory/x/memory.limit_in_bytes", "6000\n");
	put(root, "memory/memory.limit_in_bytes", "3000\n");
	assert_true(urn_config_cgroup_memory(list, root) == 3000);
	put(root, "list", "4:memory:/x\n");
	put(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_true(urn_config_cgroup_memory(list, root) == 6000);
	assert_true(urn_config_memory() > 0);
	snprintf(gone, sizeof(gone), "rm -r %s", root);
	assert_int_equal(system(gone), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half),	      cmocka_unit_test(one),
		cmocka_unit_test(own),	      cmocka_unit_test(notes),
		cmocka_unit_test(queues),     cmocka_unit_test(queue_notes),
		cmocka_unit_test(groups),     cmocka_unit_test(nothing),
		cmocka_unit_test(half_notes), cmocka_unit_test(descriptor_notes),
	};

	return cmocka_run_group_tests_name("config limits", tests, NULL, NULL);
}
