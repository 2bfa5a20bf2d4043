/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections and keys as a whole; files; the socket's path. */
#include "config_test.h"

#include <fcntl.h>
#include <unistd.h>

static const char all_sections[] =
	"[urnicd]\nidle = pause\nsleep = 7us\n"
	"[engine 1]\nidle = spin\nlcore = 3\n"
	"[engine 0]\nempty_polls = 5\n"
	"[port p1]\ndevice = net_null1\n"
	"[port p0]\ndevice = net_null0\n"
	"[adapter x]\nport = p0\nnode = n\n"
	"[adapter y]\nport = p1\nnode = m\nengines = 1\n"
	"[adapter z]\nswitch = w\nnode = n\nmac = 02:00:00:00:00:01\n"
	"path_mtu = 1024\nmbufs = 2k\n"
	"[switch w]\n";

static void
sections_become_objects(void **state)
{
	struct urn_config *c = config_good(all_sections);

	(void)state;
	assert_string_equal(c->file, "t.ini");
	assert_int_equal(c->engines, 2);
	assert_int_equal(c->engine[0].engine.idle, URN_IDLE_PAUSE);
	assert_int_equal(c->engine[0].engine.empty_polls, 5);
	assert_int_equal(c->engine[0].engine.sleep_us, 7);
	assert_int_equal(c->engine[0].lcore, -1);
	assert_int_equal(c->engine[0].line, 7);
	assert_int_equal(c->engine[1].engine.idle, URN_IDLE_SPIN);
	assert_int_equal(c->engine[1].lcore, 3);
	assert_int_equal(c->ports, 2);
	assert_string_equal(c->port[0].port.name, "p1");
	assert_string_equal(c->port[0].port.device, "net_null1");
	assert_int_equal(c->port[0].adapter, 1);
	assert_int_equal(c->port[0].sw, -1);
	assert_int_equal(c->port[0].line, 9);
	/* A queue for each engine. */
	assert_int_equal(c->port[0].port.queues, 1);
	assert_int_equal(c->port[1].port.queues, 2);
	assert_int_equal(c->adapters, 3);
	assert_string_equal(c->adapter[0].adapter.name, "x");
	assert_int_equal(c->adapter[0].port, 1);
	assert_int_equal(c->adapter[0].adapter.engines, 3);
	assert_null(c->adapter[0].adapter.port);
	assert_int_equal(c->adapter[0].ring[0].queues, 0);
	assert_int_equal(c->adapter[0].ring[0].roce_mtu, 0);
	assert_int_equal(c->adapter[1].adapter.engines, 2);
	assert_int_equal(c->adapter[2].port, -1);
	assert_int_equal(c->adapter[2].sw, 0);
	assert_int_equal(c->adapter[2].plug, 0);
	assert_string_equal(c->adapter[2].ring[0].name, "z");
	assert_string_equal(c->adapter[2].ring[1].name, "w.z");
	assert_memory_equal(c->adapter[2].ring[0].mac, "\2\0\0\0\0\1", 6);
	assert_memory_equal(c->adapter[2].ring[1].mac, "\0\0\0\0\0\0", 6);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(c->adapter[2].ring[i].roce_mtu, 1024);
		assert_int_equal(c->adapter[2].ring[i].mbufs, 2048);
		assert_int_equal(c->adapter[2].ring[i].queues, 1);
	}
	assert_int_equal(c->nodes, 2);
	assert_string_equal(c->node[0], "n");
	assert_string_equal(c->node[1], "m");
	assert_int_equal(c->adapter[2].node, 0);
	assert_int_equal(c->adapter[1].node, 1);
	/* With two nodes, neither is the default of clients that name none. */
	assert_string_equal(c->urnicd.node, "");
	urn_config_free(c);
}

static void
unknown_words(void **state)
{
	static const struct config_case cases[] = {
		{"[urnicd]\nsokcet = /x\n",
		 "2: sokcet is no key of [urnicd]; did you mean socket?\n"},
		{"[urnicd]\nempty-polls = 1\n",
		 "2: empty-polls is no key of [urnicd]; did you mean empty_polls?\n"},
		{"[urnicd]\nmemory = 1G\n",
		 "2: memory is no key of [urnicd], but of [eal]; move it there\n"},
		{"[eal]\nmax_qp = 1\n",
		 "2: max_qp is no key of [eal], but of [adapter NAME]; move it there\n"},
		{"[eal]\ncolour = red\n",
		 "2: colour is no key of [eal]; doc/reference/urnicd.md lists the keys\n"},
		{"[eal]\nsocket x = red\n",
		 "2: socket x is no key of [eal]; doc/reference/urnicd.md lists the keys\n"},
		{"[prot p0]\nx = 1\n", "1: [prot] is no section; did you mean [port p0]?\n"},
		{"[prot]\n", "1: [prot] is no section; did you mean [port NAME]?\n"},
		{"[EAL]\n", "1: [EAL] is no section; did you mean [eal]?\n"},
		{"[colour]\nx = 1\n", "1: [colour] is no section; there are [urnicd], [eal], "
				      "[limits], [congestion], [engine N], [port "
				      "NAME], [switch NAME] and [adapter NAME]\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
twice(void **state)
{
	static const struct config_case cases[] = {
		{"[urnicd]\nidle = spin\nidle = sleep\n",
		 "3: idle is given in line 2 already; leave one out\n"},
		{"[eal]\n[urnicd]\n[eal]\nmemory = 1\n",
		 "3: there is an [eal] in line 1 already; put both together\n"
		 "4: memory = 1: give a size from 64M to 1024G, such as 64M or 2G\n"},
		{"[port p]\ndevice = net_null0\n[port p]\ndevcie = net_null1\n[adapter x]\nport = "
		 "p\n",
		 "3: there is a [port p] in line 1 already; give this one another name\n"
		 "4: devcie is no key of [port]; did you mean device?\n"},
		{"[switch s]\n[switch s]\n[adapter x]\nswitch = s\n",
		 "2: there is a [switch s] in line 1 already; give this one another name\n"},
		{"[adapter rest]\nswitch = s\n[switch s]\n",
		 "4: port rest is used by nobody; give an adapter port = rest or a switch ports = "
		 "rest, or leave it out\n"
		 "6: there is an [adapter rest] in line 1 already; give this one another name\n"},
		{"[engine 0]\n[engine 0]\n",
		 "2: there is an [engine 0] in line 1 already; give this one another number\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
names_of_sections(void **state)
{
	static const struct config_case cases[] = {
		{"[eal x]\n", "1: [eal] takes no name; write [eal] instead of [eal x]\n"},
		{"[port]\n", "1: [port] wants a name, such as [port a]\n"},
		{"[engine]\n", "1: [engine] wants a number, such as [engine 0]\n"},
		{"[port a.b]\n", "1: [port a.b]: a name has 1 to 15 letters, digits, _ or -\n"},
		{"[port 1234567890123456]\n",
		 "1: [port 1234567890123456]: a name has 1 to 15 letters, digits, _ or -\n"},
		{"[engine 16]\n", "1: [engine 16]: engines are numbered from 0 to 15\n"},
		{"[engine 00]\n", "1: [engine 00]: engines are numbered from 0 to 15\n"},
		{"[engine 99999999999999999999]\n",
		 "1: [engine 99999999999999999999]: engines are numbered from 0 to 15\n"},
		{"[engine x]\n", "1: [engine x]: engines are numbered from 0 to 15\n"},
		{"[engine -1]\n", "1: [engine -1]: engines are numbered from 0 to 15\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

/* All mistakes of a file are found at once: those of lines, of references, of the whole. */
static void
all_are_found(void **state)
{
	(void)state;
	config_bad(
		"[urnicd\n"
		"[adapter a]\n"
		"swtch = w\n"
		"ipv4 = 10.0.0.300\n"
		"[port p]\n"
		"word\n",
		"1: the section's name has no end; put ] behind it\n"
		"2: adapter a has neither a port nor a switch; give it port = NAME of a [port "
		"NAME], or switch = NAME of a [switch NAME]\n"
		"3: swtch is no key of [adapter]; did you mean switch?\n"
		"4: ipv4 = 10.0.0.300: give an IPv4 address, such as 10.0.0.1 or 10.0.0.1/24\n"
		"5: port p has no device; give one, such as device = net_tap0,iface=urn0\n"
		"5: port p is used by nobody; give an adapter port = p or a switch ports = p, or "
		"leave it out\n"
		"6: \"word\" is no setting; write KEY = VALUE, [SECTION], or # in front of a "
		"comment\n");
	config_bad("",
		   "there is no [adapter NAME], so there is nothing to attach to; write one with "
		   "port = NAME or switch = NAME\n");
}

/* The largest numbers, and one more. */
static void
too_many(void **state)
{
	char text[8192], *p = text;
	struct urn_config *c;

	(void)state;
	for (unsigned int i = 0; i < URN_CONFIG_MAX_PORTS; i++)
		p += sprintf(p, "[port p%u]\ndevice = net_null%u\n[adapter a%u]\nport = p%u\n", i,
			     i, i, i);
	c = config_good(text);
	assert_int_equal(c->ports, URN_CONFIG_MAX_PORTS);
	assert_int_equal(c->adapters, URN_CONFIG_MAX_PORTS);
	urn_config_free(c);
	sprintf(p, "[port q]\n[adapter q]\n");
	config_bad(text, "129: [port q] is one too many: 32 are the most\n"
			 "130: [adapter q] is one too many: 32 are the most\n");
	p = text;
	p += sprintf(p, "[adapter a]\nswitch = s0\n");
	for (unsigned int i = 0; i < URN_CONFIG_MAX_SWITCHES + 1; i++)
		p += sprintf(p, "[switch s%u]\n%s%s\n", i, i > 0 ? "links = s" : "",
			     i > 0 ? "0" : "");
	config_bad(text, "131: [switch s64] is one too many: 64 are the most\n");
}

static void
errors_may_be_nobodys(void **state)
{
	struct urn_config *c;

	(void)state;
	assert_null(urn_config_parse("x", 1, "t.ini", NULL));
	c = urn_config_parse(CONFIG_REST, strlen(CONFIG_REST), "t.ini", NULL);
	assert_non_null(c);
	urn_config_free(c);
	urn_config_free(NULL);
}

/* Mistakes already in the list are not this file's. */
static void
errors_are_added(void **state)
{
	struct urn_config_errors e = {0};
	struct urn_config *c;

	(void)state;
	urn_config_error(&e, "other", 1, "x");
	c = urn_config_parse(CONFIG_REST, strlen(CONFIG_REST), "t.ini", &e);
	assert_non_null(c);
	assert_int_equal(e.n, 1);
	urn_config_free(c);
	urn_config_errors_free(&e);
}

/* ---- files */

static void
refused(const char *file, const char *words)
{
	struct urn_config_errors e = {0};

	assert_null(urn_config_read(file, &e));
	assert_int_equal(e.n, 1);
	if (!strstr(e.error[0].text, words) || strncmp(e.error[0].text, file, strlen(file)) != 0)
		fail_msg("%s", e.error[0].text);
	urn_config_errors_free(&e);
}

static void
files(void **state)
{
	char name[] = "/tmp/test_config_parse.XXXXXX";
	int fd = mkstemp(name);
	struct urn_config *c;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, CONFIG_REST, strlen(CONFIG_REST)), strlen(CONFIG_REST));
	c = urn_config_read(name, NULL);
	assert_non_null(c);
	assert_string_equal(c->file, name);
	urn_config_free(c);
	assert_int_equal(ftruncate(fd, URN_CONFIG_FILE_MAX + 1), 0);
	refused(name, ": is longer than 1048576 bytes; is it a configuration?");
	close(fd);
	unlink(name);
	refused(name, ": cannot be read: No such file or directory");
	refused("/tmp", ": cannot be read: Is a directory");
	refused("/dev/zero", ": is longer than 1048576 bytes");
	refused("/dev/null", ": there is no [adapter NAME]");
}

/* Long files full of mistakes take little time and memory. */
static void
hostile_files(void **state)
{
	static const char *const lines[] = {"x\n",
					    "[port a]\n",
					    "k=v\n",
					    "[a]\n",
					    "impair x=y\n",
					    "[switch s]\nlinks=a,b,c\n",
					    "static x=y,\n",
					    "[",
					    "=",
					    "port = p\n"};
	char *text = malloc(URN_CONFIG_FILE_MAX + 64);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < RTE_DIM(lines); i++) {
		struct urn_config_errors e = {0};
		size_t n =
			(size_t)sprintf(text, "[switch s]\n[adapter a]\nswitch = s\n[switch t]\n");

		while (n + strlen(lines[i]) < URN_CONFIG_FILE_MAX)
			n += (size_t)sprintf(text + n, "%s", lines[i]);
		assert_null(urn_config_parse(text, n, "t.ini", &e));
		assert_in_range(e.n, 1, URN_CONFIG_ERRORS_MAX);
		urn_config_errors_free(&e);
	}
	free(text);
}

static void
sockets(void **state)
{
	char path[108], folder[100];
	struct urn_err err;

	(void)state;
	assert_int_equal(urn_config_socket_default(true, NULL, path, &err), 0);
	assert_string_equal(path, "/run/urnic/urnicd.sock");
	assert_int_equal(urn_config_socket_default(true, "/run/user/0", path, &err), 0);
	assert_string_equal(path, "/run/urnic/urnicd.sock");
	assert_int_equal(urn_config_socket_default(false, "/run/user/7", path, &err), 0);
	assert_string_equal(path, "/run/user/7/urnic/urnicd.sock");
	assert_int_equal(urn_config_socket_default(false, NULL, path, &err), -1);
	assert_non_null(strstr(err.text, "XDG_RUNTIME_DIR"));
	assert_int_equal(urn_config_socket_default(false, "", path, &err), -1);
	memset(folder, 'x', sizeof(folder));
	folder[0] = '/';
	folder[89] = '\0'; /* 89 + 18 bytes fill the path */
	assert_int_equal(urn_config_socket_default(false, folder, path, &err), 0);
	folder[89] = 'x';
	folder[90] = '\0';
	assert_int_equal(urn_config_socket_default(false, folder, path, &err), -1);
	assert_non_null(strstr(err.text, "too long"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_become_objects),
		cmocka_unit_test(unknown_words),
		cmocka_unit_test(twice),
		cmocka_unit_test(names_of_sections),
		cmocka_unit_test(all_are_found),
		cmocka_unit_test(too_many),
		cmocka_unit_test(errors_may_be_nobodys),
		cmocka_unit_test(errors_are_added),
		cmocka_unit_test(files),
		cmocka_unit_test(hostile_files),
		cmocka_unit_test(sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
