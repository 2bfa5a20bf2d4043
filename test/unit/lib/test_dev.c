/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's end of a channel: errors of control calls, doorbells; test_context.c opens channels. */
#include "test.h"

#include "attach/dev.h"

#include <errno.h>
#include <string.h>

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

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(errors), cmocka_unit_test(doorbells)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
