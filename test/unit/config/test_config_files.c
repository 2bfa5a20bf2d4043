/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The example configurations in config/ are good, as they are and with every line that
 * can be uncommented ("#key = value", without a space behind the #). argv[1]: the
 * project's folder.
 */
#include "config_test.h"

#include <ctype.h>
#include <dirent.h>

static const char *project;

/* Contents of each file: engines, ports, switches, adapters, nodes. */
static const struct {
	const char *name;
	unsigned int engines, ports, switches, adapters, nodes;
	const char *device; /* beginning of the first port's device */
	bool pci;
} files[] = {
	{"nic-vfio.ini", 1, 1, 0, 1, 1, "0000:", true},
	{"nic-mlx5.ini", 2, 1, 0, 1, 1, "0000:", true},
	{"two-nodes.ini", 1, 0, 1, 2, 2, "", false},
	{"sessions.ini", 1, 0, 2, 4, 2, "", false},
	{"two-ports.ini", 1, 0, 2, 4, 2, "", false},
	{"session-pairs.ini", 1, 0, 2, 8, 2, "", false},
	{"lossless.ini", 1, 0, 1, 3, 3, "", false},
	{"memif-a.ini", 1, 1, 0, 1, 1, "net_memif0,role=server,", false},
	{"memif-b.ini", 1, 1, 0, 1, 1, "net_memif0,role=client,", false},
	{"af-packet.ini", 1, 1, 0, 1, 1, "net_af_packet0,iface=", false},
	{"tap.ini", 1, 1, 0, 1, 1, "net_tap0,iface=", false},
};

static struct urn_config *
read_file(const char *name)
{
	struct urn_config_errors errors = {0};
	struct urn_config *c;
	char path[512];

	snprintf(path, sizeof(path), "%s/config/%s", project, name);
	c = urn_config_read(path, &errors);
	if (!c)
		fail_msg("%s", errors.error[0].text);
	return c;
}

static void
files_are_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(files); i++) {
		struct urn_config *c = read_file(files[i].name);

		assert_int_equal(c->engines, files[i].engines);
		assert_int_equal(c->ports, files[i].ports);
		assert_int_equal(c->switches, files[i].switches);
		assert_int_equal(c->adapters, files[i].adapters);
		assert_int_equal(c->nodes, files[i].nodes);
		if (c->ports > 0) {
			const char *device = c->port[0].port.device;

			assert_int_equal(strncmp(device, files[i].device, strlen(files[i].device)),
					 0);
			assert_int_equal(c->port[0].pci, files[i].pci);
		}
		urn_config_free(c);
	}
}

/* No file is unknown to this test. */
static void
files_are_known(void **state)
{
	struct dirent *e;
	char path[512];
	DIR *dir;

	(void)state;
	snprintf(path, sizeof(path), "%s/config", project);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		size_t i = 0;

		while (i < RTE_DIM(files) && strcmp(files[i].name, e->d_name) != 0)
			i++;
		if (i == RTE_DIM(files) && strstr(e->d_name, ".ini"))
			fail_msg("%s/%s is not tested", path, e->d_name);
	}
	closedir(dir);
}

static void
comments_are_good(void **state)
{
	char path[512], line[256], *text;
	size_t size;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(files); i++) {
		FILE *out = open_memstream(&text, &size), *in;

		snprintf(path, sizeof(path), "%s/config/%s", project, files[i].name);
		in = fopen(path, "r");
		assert_true(in && out);
		while (fgets(line, sizeof(line), in)) {
			bool setting = line[0] == '#' &&
				       (isalpha((unsigned char)line[1]) || line[1] == '[');

			fputs(line + setting, out);
		}
		fclose(in);
		fclose(out);
		urn_config_free(config_good(text));
		free(text);
	}
}

static void
two_nodes(void **state)
{
	struct urn_config *c = read_file("two-nodes.ini");

	(void)state;
	assert_string_equal(c->node[0], "a");
	assert_string_equal(c->node[1], "b");
	assert_memory_equal(c->adapter[0].adapter.ipv4, "\x0a\0\0\1", 4);
	assert_memory_equal(c->adapter[1].adapter.ipv4, "\x0a\0\0\2", 4);
	assert_int_equal(c->adapter[0].sw, c->adapter[1].sw);
	assert_int_equal(c->sw[0].plugs, 2);
	assert_int_equal(c->eal.huge_pages, URN_CONFIG_HUGE_NEVER);
	urn_config_free(c);
}

/* A switched topology: each pair has an adapter on each of two switches with a link (FO-5). */
static void
switched(const char *name, unsigned int adapters)
{
	struct urn_config *c = read_file(name);

	assert_int_equal(c->adapters, adapters);
	for (unsigned int i = 0; i < adapters; i += 2) {
		const struct urn_config_adapter *primary = &c->adapter[i], *backup = primary + 1;

		assert_string_equal(primary->adapter.node, backup->adapter.node);
		assert_int_equal(primary->sw, c->adapter[0].sw);
		assert_int_equal(backup->sw, c->adapter[1].sw);
	}
	assert_string_not_equal(c->adapter[0].adapter.node, c->adapter[adapters / 2].adapter.node);
	assert_int_not_equal(c->adapter[0].sw, c->adapter[1].sw);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(c->sw[i].plugs, adapters / 2 + 1); /* and the link */
	urn_config_free(c);
}

/* One pair a node, and several, over which instances are spread (FO-6). */
static void
switched_pairs(void **state)
{
	(void)state;
	switched("sessions.ini", 4);
	switched("session-pairs.ini", 8);
}

/* Both ends use one socket, and can run at the same time. */
static void
memif_pair(void **state)
{
	struct urn_config *a = read_file("memif-a.ini"), *b = read_file("memif-b.ini");

	(void)state;
	assert_string_equal(strstr(a->port[0].port.device, "socket="),
			    strstr(b->port[0].port.device, "socket="));
	assert_string_not_equal(a->urnicd.socket, b->urnicd.socket);
	assert_string_not_equal(a->node[0], b->node[0]);
	assert_memory_not_equal(a->adapter[0].adapter.ipv4, b->adapter[0].adapter.ipv4, 4);
	urn_config_free(a);
	urn_config_free(b);
}

/* Each adapter of two nodes has a port on each of two switches, the first on its own one (FO-5). */
static void
two_ports(void **state)
{
	struct urn_config *c = read_file("two-ports.ini");

	(void)state;
	for (unsigned int i = 0; i < c->adapters; i++) {
		assert_true(c->adapter[i].two);
		assert_int_equal(c->adapter[i].sw, i % 2);
		assert_int_equal(c->adapter[i].sw2, 1 - i % 2);
	}
	for (unsigned int i = 0; i < c->switches; i++)
		assert_int_equal(c->sw[i].plugs, c->adapters + 1); /* and the link */
	urn_config_free(c);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_good),    cmocka_unit_test(files_are_known),
		cmocka_unit_test(comments_are_good), cmocka_unit_test(two_nodes),
		cmocka_unit_test(switched_pairs),    cmocka_unit_test(memif_pair),
		cmocka_unit_test(two_ports),
	};

	if (argc != 2)
		return 2;
	project = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
