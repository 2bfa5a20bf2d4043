/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's end of a channel: errors of control calls, doorbells; test_context.c opens channels. */
#include "test.h"

#include "attach/dev.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void
errors(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;
	char longer[300];

	(void)state;
	assert_string_equal(urn_attach_error(), "");
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	assert_string_equal(dev.info.name, "fake0");
	fake_fail_next(f, URN_CTL_DEALLOC_PD, EBUSY, "2 regions are registered in it");
	errno = 0;
	assert_int_equal(urn_dev_call_handle(&dev, URN_CTL_DEALLOC_PD, 7), EBUSY);
	assert_int_equal(errno, EBUSY);
	assert_string_equal(urn_attach_error(), "2 regions are registered in it");
	/* A call that succeeds leaves the text of one that failed. */
	assert_int_equal(urn_dev_call_handle(&dev, URN_CTL_DEALLOC_PD, 7), 0);
	assert_int_equal(f->last.handle, 7);
	assert_string_equal(urn_attach_error(), "2 regions are registered in it");
	/* Without a sentence the message is the error's name. */
	fake_fail_next(f, URN_CTL_DEALLOC_PD, EBUSY, "");
	assert_int_equal(urn_dev_call_handle(&dev, URN_CTL_DEALLOC_PD, 7), EBUSY);
	assert_string_equal(urn_attach_error(), strerror(EBUSY));
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(urn_fail(EIO, "%s", longer), EIO);
	assert_in_range(strlen(urn_attach_error()), 100, sizeof(longer) - 2);
	urn_dev_close(&dev);
	urn_dev_close(&dev); /* a second close does nothing */
	assert_int_equal(f->closed, 1);
	fake_free(f);
}

/* lib/abi/doorbell.h: the leaf bit, then the summary bit; a summary bit that is set stays. */
static void
doorbells(void **state)
{
	static const uint32_t ids[] = {0, 63, 64, 4095, 4096, URN_ABI_MAX_QP_ENGINE - 1};
	struct fake *f = fake_new();
	struct urn_dev dev;
	uint32_t last;
	size_t i;

	(void)state;
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		urn_dev_ring(&dev, 0, ids[i]);
		urn_dev_ring(&dev, 0, ids[i]);
		assert_int_equal(fake_doorbells(f, &last), 1);
		assert_int_equal(last, ids[i]);
	}
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		urn_dev_ring(&dev, 0, ids[i]);
	assert_int_equal(fake_doorbells(f, NULL), sizeof(ids) / sizeof(ids[0]));
	assert_int_equal(f->wakes, 0);
	atomic_store(&f->db->asleep, 1);
	urn_dev_ring(&dev, 0, 5);
	assert_int_equal(f->wakes, 1);
	urn_dev_close(&dev);
	fake_free(f);
}

/* ---- a dataplane that is gone */

static unsigned int naps; /* waits of the code under test, which take no time */
static struct fake *ends; /* its engine answers at the third wait; NULL: never */

int __wrap_nanosleep(const struct timespec *for_, struct timespec *rest);

int
__wrap_nanosleep(const struct timespec *for_, struct timespec *rest)
{
	(void)for_;
	(void)rest;
	if (++naps == 3 && ends != NULL)
		atomic_store(&ends->db->ended, 1);
	return 0;
}

static int
yes(void *ctx)
{
	(void)ctx;
	return 1;
}

/* The engines are told, and woken, once. One that was given up alive is waited for. */
static void
leaving(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;
	uint32_t last = 9;

	(void)state;
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	atomic_store(&f->db->asleep, 1);
	atomic_store(&f->db->tops, 1);
	naps = 0;
	urn_dev_leave(&dev); /* it died: nobody answers */
	assert_int_equal(naps, 0);
	assert_int_equal(f->db->left, 1);
	assert_int_equal(fake_doorbells(f, &last), 1);
	assert_int_equal(last, 0);
	assert_int_equal(f->wakes, 1);
	f->channel.given_up = yes;
	ends = f;
	urn_dev_leave(&dev);
	assert_int_equal(naps, 3);
	assert_int_equal(fake_doorbells(f, NULL), 0);
	urn_dev_close(&dev);
	fake_free(f);
}

/* An engine that does not answer is waited for once. One that the client never used does not. */
static void
leaving_unheard(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;

	(void)state;
	ends = NULL;
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	f->channel.given_up = yes;
	atomic_store(&f->db->tops, 1);
	naps = 0;
	urn_dev_leave(&dev);
	assert_true(naps > 0);
	naps = 0;
	urn_dev_leave(&dev);
	assert_int_equal(naps, 0);
	urn_dev_close(&dev);
	fake_free(f);

	f = fake_new();
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	f->channel.given_up = yes;
	atomic_store(&f->db->tops, 0);
	urn_dev_leave(&dev);
	assert_int_equal(naps, 0);
	urn_dev_close(&dev);
	fake_free(f);
}

static int
share_fails(void *ctx, const void *addr, size_t length, struct urn_abi_rep *rep)
{
	(void)ctx;
	(void)addr;
	(void)length;
	snprintf(rep->why, sizeof(rep->why), "the dataplane is gone");
	return rep->err = ENODEV;
}

static int
no_watch(void *ctx, void (*died)(void *arg), void *arg)
{
	(void)ctx;
	(void)died;
	(void)arg;
	return 0;
}

/* The dataplane dies while memory is shared: an error like that of every other call. */
static void
share_dies(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;

	(void)state;
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	f->channel.share = share_fails;
	f->channel.watch = no_watch;
	errno = 0;
	assert_int_equal(urn_dev_share(&dev, f, sizeof(*f)), EIO);
	assert_int_equal(errno, EIO);
	assert_int_equal(f->db->left, 1);
	f->channel.watch = NULL;
	urn_dev_close(&dev);
	fake_free(f);
}

/* ---- architecture.md, seam 10: versions and features */

/* The library offers its range and its features, and takes the newest and the oldest version of it.
 */
static void
versions(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;
	uint32_t v;

	(void)state;
	for (v = URN_ABI_VERSION_OLDEST; v <= URN_ABI_VERSION; v++) {
		f->info.version = v;
		assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
		assert_int_equal(f->last.hello.oldest, URN_ABI_VERSION_OLDEST);
		assert_int_equal(f->last.hello.newest, URN_ABI_VERSION);
		assert_int_equal(f->last.hello.features, URN_ABI_FEATURES);
		urn_dev_close(&dev);
	}
	for (v = 0; v < 3; v++) {
		f->info.version = v == 0   ? 0
				  : v == 1 ? URN_ABI_VERSION_OLDEST - 1
					   : URN_ABI_VERSION + 1;
		assert_int_equal(urn_dev_open(&dev, &f->channel), EPROTO);
		assert_non_null(strstr(urn_attach_error(), "version"));
	}
	fake_free(f);
}

/* A call of a feature that the dataplane lacks fails before the dataplane is asked. */
static void
features(void **state)
{
	static const struct {
		uint32_t bit, op;
	} needs[] = {
		{URN_ABI_FEATURE_CM, URN_CTL_CM_LISTEN},
		{URN_ABI_FEATURE_CM, URN_CTL_CM_CONNECT},
		{URN_ABI_FEATURE_CM, URN_CTL_CM_EVENT},
		{URN_ABI_FEATURE_CONNECT_QP, URN_CTL_CONNECT_QP},
		{URN_ABI_FEATURE_SHARE, URN_CTL_SHARE},
	};
	struct fake *f = fake_new();
	struct urn_dev dev;
	char text[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		struct urn_abi_req req = {.op = needs[i].op};
		unsigned int asked = f->calls[needs[i].op];
		struct urn_abi_rep rep;

		f->info.features = ~needs[i].bit; /* unknown features do no harm */
		assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
		assert_int_equal(dev.info.features, URN_ABI_FEATURES & ~needs[i].bit);
		assert_int_equal(urn_dev_call(&dev, &req, &rep), EOPNOTSUPP);
		assert_int_equal(errno, EOPNOTSUPP);
		snprintf(text, sizeof(text), "the dataplane lacks %s: upgrade the dataplane",
			 urn_abi_feature_text(needs[i].bit));
		assert_string_equal(urn_attach_error(), text);
		assert_int_equal(f->calls[needs[i].op], asked);
		assert_int_equal(urn_dev_call_handle(&dev, URN_CTL_DEALLOC_PD, 7), 0);
		urn_dev_close(&dev);
	}
	fake_free(f);
}

/* A dataplane of version 6 names no features, and has those that all had. */
static void
implied(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;

	(void)state;
	f->info.version = 6;
	f->info.features = 0;
	assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
	assert_true(urn_dev_has(&dev, URN_ABI_FEATURE_CM));
	assert_true(urn_dev_has(&dev, URN_ABI_FEATURE_SHARE));
	assert_false(urn_dev_has_cm_events(&dev)); /* the fake is in this process */
	urn_dev_close(&dev);
	fake_free(f);
}

static int
count_share(void *ctx, const void *addr, size_t length, struct urn_abi_rep *rep)
{
	(void)addr, (void)length, (void)rep;
	((struct fake *)ctx)->wakes++;
	return 0;
}

/* Memory is not shared with a dataplane that can't: its regions are foreign memory. */
static void
no_share(void **state)
{
	struct fake *f = fake_new();
	struct urn_dev dev;
	int round;

	(void)state;
	f->channel.share = count_share;
	for (round = 0; round < 2; round++) {
		f->info.features =
			round == 0 ? URN_ABI_FEATURES & ~URN_ABI_FEATURE_SHARE : URN_ABI_FEATURES;
		assert_int_equal(urn_dev_open(&dev, &f->channel), 0);
		assert_int_equal(urn_dev_share(&dev, f, 1), 0);
		assert_int_equal(f->wakes, round);
		urn_dev_close(&dev);
	}
	fake_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors),	   cmocka_unit_test(leaving),
		cmocka_unit_test(leaving_unheard), cmocka_unit_test(share_dies),
		cmocka_unit_test(doorbells),	   cmocka_unit_test(versions),
		cmocka_unit_test(features),	   cmocka_unit_test(implied),
		cmocka_unit_test(no_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
