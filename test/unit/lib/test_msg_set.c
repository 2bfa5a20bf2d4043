/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and register sets for messages: opening, naming, ending (DB-1, DB-2). */
#include "test.h"

#include "msg_fake.h"
#include "msg/set.h"

#include <errno.h>
#include <string.h>

static const struct urn_msg_attr both = {.send_size = 4096, .recv_size = 100, .entries = 5};

static void
opens(void **state)
{
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel);
	struct urn_register_set *set;
	uint8_t gid[16];

	(void)state;
	assert_non_null(dev);
	assert_int_equal(urn_msg_dev_gid(dev, 1, gid), 0);
	assert_memory_equal(gid, f->gid[0], 16);
	assert_int_equal(urn_msg_dev_gid(dev, 3, gid), EINVAL);
	set = urn_msg_set_create(dev, &both);
	assert_non_null(set);
	/* Entries are a power of two, each of whole lines, behind the send buffer (DB-2). */
	assert_int_equal(set->entries, 8);
	assert_int_equal(set->entry_size, 192);
	assert_int_equal(set->base, 4096);
	assert_int_equal(f->set[0].conf.entries, 8);
	assert_int_equal(urn_msg_set_qid(set), f->set[0].number);
	assert_int_equal(urn_msg_set_fd(set), -1);
	urn_msg_set_destroy(set);
	urn_msg_set_destroy(NULL);
	assert_int_equal(msg_fake_open_sets(f), 0);
	urn_msg_dev_close(dev);
	urn_msg_dev_close(NULL);
	msg_fake_free(f);
}

/* A dataplane of before messages is refused with a sentence that says what to do. */
static void
old_dataplane(void **state)
{
	struct msg_fake *f = msg_fake_new();

	(void)state;
	f->old = true;
	assert_null(urn_msg_dev_open(&f->channel));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_non_null(strstr(urn_attach_error(), "upgrade the dataplane"));
	msg_fake_free(f);
}

static void
bad_wishes(void **state)
{
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel);
	const struct urn_msg_attr long_one = {.send_size = URN_MSG_MAX + 1};
	const struct urn_msg_attr many = {.recv_size = 1, .entries = URN_MSG_ENTRIES_MAX + 1};
	const struct urn_msg_attr large = {.recv_size = URN_MSG_MAX,
					   .entries = URN_MSG_ENTRIES_MAX};

	(void)state;
	assert_null(urn_msg_set_create(dev, &long_one));
	assert_int_equal(errno, EINVAL);
	assert_null(urn_msg_set_create(dev, &many));
	assert_int_equal(errno, EINVAL);
	assert_null(urn_msg_set_create(dev, &large));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(atomic_load(&f->opens), 0);
	urn_msg_dev_close(dev);
	msg_fake_free(f);
}

/* A name belongs to one set at a time; any free one of a range can be asked for (DB-11). */
static void
names(void **state)
{
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel);
	struct urn_msg_attr named = both;
	struct urn_register_set *a, *b;
	uint32_t name = 0;

	(void)state;
	named.named = 1;
	a = urn_msg_set_create(dev, &named);
	b = urn_msg_set_create(dev, &named);
	assert_int_equal(urn_msg_set_bind(a, 7), 0);
	assert_int_equal(urn_msg_set_bind(b, 7), EADDRINUSE);
	assert_int_equal(urn_msg_set_bind_any(b, 7, 9, &name), 0);
	assert_int_equal(name, 8);
	assert_int_equal(urn_msg_set_bind(a, 0), 0);
	assert_int_equal(urn_msg_set_bind(b, 7), 0);
	urn_msg_set_destroy(a);
	urn_msg_set_destroy(b);
	urn_msg_dev_close(dev);
	msg_fake_free(f);
}

/* Sets that the dataplane has no room for leave nothing behind. */
static void
no_room(void **state)
{
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel);
	struct urn_msg_attr wakes = {.send_size = 64, .wakes = 1};
	struct urn_register_set *set[MSG_FAKE_SETS];
	unsigned int i;

	(void)state;
	for (i = 0; i < MSG_FAKE_SETS; i++)
		assert_non_null(set[i] = urn_msg_set_create(dev, &wakes));
	assert_null(urn_msg_set_create(dev, &wakes));
	assert_int_equal(errno, EDQUOT);
	assert_string_equal(urn_attach_error(), "the fake says no");
	for (i = 0; i < MSG_FAKE_SETS; i++)
		urn_msg_set_destroy(set[i]);
	urn_msg_dev_close(dev);
	msg_fake_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens),      cmocka_unit_test(old_dataplane),
		cmocka_unit_test(bad_wishes), cmocka_unit_test(names),
		cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
