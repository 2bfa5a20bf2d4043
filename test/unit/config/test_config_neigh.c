/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours that a file names. */
#include "config_test.h"

#include "control/dataplane.h"
#include "net/neigh.h"

#define ADAPTER "[switch s]\n[adapter x]\nswitch = s\nipv4 = 10.0.0.1\nipv6 = fd00::a00:1\n"

static void
taken(void **state)
{
	struct urn_config *c = config_good(ADAPTER "neighbour 10.0.0.2 = 02:00:00:00:00:02\n"
						   "neighbour fd00::7 = 02:00:00:00:00:07\n"
						   "[adapter y]\nswitch = s\nneighbour 10.0.0.1 = 02:00:00:00:00:01\n");
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};
	static const uint8_t v6[16] = {0xfd, [15] = 7};
	const struct urn_adapter_config *a = &c->adapter[0].adapter;

	(void)state;
	assert_int_equal(a->neighbours, 2);
	assert_memory_equal(a->neighbour[0].gid, v4, 16);
	assert_memory_equal(a->neighbour[0].mac, "\2\0\0\0\0\2", 6);
	assert_memory_equal(a->neighbour[1].gid, v6, 16);
	assert_memory_equal(a->neighbour[1].mac, "\2\0\0\0\0\7", 6);
	assert_int_equal(c->adapter[1].adapter.neighbours, 1); /* fd00::a00:1 is not 10.0.0.1 */
	urn_config_free(c);
}

static void
refused(void **state)
{
	static const struct config_case cases[] = {
		{ADAPTER "neighbour 10.0.0 = 02:00:00:00:00:02\n",
		 "6: 10.0.0 is no address of a station in a network; write neighbour 10.0.0.2 = "
		 "02:00:00:00:00:02\n"},
		{ADAPTER "neighbour = 02:00:00:00:00:02\n",
		 "6:  is no address of a station in a network; write neighbour 10.0.0.2 = "
		 "02:00:00:00:00:02\n"},
		{ADAPTER "neighbour 224.0.0.1 = 02:00:00:00:00:02\nneighbour ff02::1 = 02:00:00:00:00:02\n"
			 "neighbour ::ffff:10.0.0.2 = 02:00:00:00:00:02\n",
		 "6: 224.0.0.1 is no address of a station in a network; write neighbour 10.0.0.2 = "
		 "02:00:00:00:00:02\n"
		 "7: ff02::1 is no address of a station in a network; write neighbour 10.0.0.2 = "
		 "02:00:00:00:00:02\n"
		 "8: ::ffff:10.0.0.2 is no address of a station in a network; write neighbour 10.0.0.2 = "
		 "02:00:00:00:00:02\n"},
		{ADAPTER "neighbour 10.0.0.1 = 02:00:00:00:00:02\nneighbour fd00::a00:1 = 02:00:00:00:00:02\n",
		 "6: 10.0.0.1 is the adapter's own address; leave it out\n"
		 "7: fd00::a00:1 is the adapter's own address; leave it out\n"},
		{ADAPTER "neighbour fd00::2 = 02:00:00:00:00:02\nneighbour fd00:0::2 = 02:00:00:00:00:03\n",
		 "7: fd00:0::2 has a MAC address already; leave one out\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

/* The table of an adapter takes all that the file may have. */
static void
room(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct urn_config *c;

	(void)state;
	assert_non_null(f);
	fputs(ADAPTER, f);
	for (unsigned int i = 0; i < URN_NEIGH_STATIC; i++)
		fprintf(f, "neighbour 10.1.%u.%u = 02:00:00:00:00:02\n", i / 256, i % 256);
	fflush(f);
	c = config_good(text);
	assert_int_equal(c->adapter[0].adapter.neighbours, URN_NEIGH_STATIC);
	urn_config_free(c);
	fputs("neighbour 10.2.0.0 = 02:00:00:00:00:02\n", f);
	fclose(f);
	config_bad(text, "2054: an adapter has room for 2048 neighbours; leave some out\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),
		cmocka_unit_test(refused),
		cmocka_unit_test(room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
