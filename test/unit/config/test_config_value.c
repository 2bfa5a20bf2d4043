/* SPDX-License-Identifier: BSD-3-Clause */
/* Every type of value: the accepted ones, and the sentence for each other. */
#include "config_test.h"

#include <arpa/inet.h>

#include "control/objects.h"
#include "switch/fdb.h"

/* A value of every type. */
static const char every_type[] = "[urnicd]\n"
				 "socket = /run/a b.sock\n"
				 "mode = 666\n"
				 "group = rdma\n"
				 "log_level = debug\n"
				 "idle = pause\n"
				 "empty_polls = 2k\n"
				 "sleep = 1ms\n"
				 "telemetry = off\n"
				 "prometheus = [::1]:9464\n"
				 "capture_dir = /tmp\n"
				 "pid_file = \"/run/urnicd.pid\"\n"
				 "[eal]\n"
				 "memory = 1G\n"
				 "huge_pages = auto\n"
				 "cores = 0-2,5 127\n"
				 "file_prefix = u-1\n"
				 "extra = --a=b --c\n"
				 "[limits]\n"
				 "clients = 12\n"
				 "qp_per_client = unlimited\n"
				 "pinned_per_uid = 3G\n"
				 "[congestion]\n"
				 "cnp_interval = 100us\n"
				 "gain_shift = 4\n"
				 "raise_bytes = 1M\n"
				 "additive = 2.4M\n"
				 "hyper = 80M\n"
				 "delay_limit = 40us\n"
				 "[port p]\n"
				 "device = 0000:3b:00.0\n"
				 "path_mtu = 2048\n"
				 "queues = 64\n"
				 "rx_desc = 32\n"
				 "tx_desc = 32k\n"
				 "mbufs = 4M\n"
				 "mac = 02:aB:00:00:00:01\n"
				 "steer = true\n"
				 "[adapter x]\n"
				 "port = p\n"
				 "ipv4 = 10.1.2.3\n"
				 "ipv6 = fd00::1\n"
				 "max_qp = 1048574\n"
				 "max_mr = 10\n"
				 "window = 1M\n"
				 "rto_floor = 1.5ms\n"
				 "congestion_control = no\n"
				 "area_size = 64M\n"
				 "work_in_flight = 64\n"
				 "features_off = sack\n"
				 "link = no\n"
				 "cache_line = 256\n"
				 "count_stores = yes\n"
				 "am_unregistered = yes\n"
				 "am_pipelined_from = 1234\n"
				 "am_tagged_from = 12345\n"
				 "icrc = no\n";

static void
all_types_are_taken(void **state)
{
	struct urn_config *c = config_good(every_type);
	struct in6_addr v6;

	(void)state;
	inet_pton(AF_INET6, "fd00::1", &v6);
	assert_string_equal(c->urnicd.socket, "/run/a b.sock");
	assert_int_equal(c->urnicd.mode, 0666);
	assert_string_equal(c->urnicd.group, "rdma");
	assert_string_equal(c->urnicd.log_level, "debug");
	assert_int_equal(c->engine[0].engine.idle, URN_IDLE_PAUSE);
	assert_int_equal(c->engine[0].engine.empty_polls, 2048);
	assert_int_equal(c->engine[0].engine.sleep_us, 1000);
	assert_false(c->urnicd.telemetry);
	assert_string_equal(c->urnicd.prometheus_host, "::1");
	assert_int_equal(c->urnicd.prometheus_port, 9464);
	assert_string_equal(c->urnicd.capture_dir, "/tmp");
	assert_string_equal(c->urnicd.pid_file, "/run/urnicd.pid");
	assert_true(c->eal.memory == 1ull << 30);
	assert_int_equal(c->eal.huge_pages, URN_CONFIG_HUGE_AUTO);
	assert_int_equal(CPU_COUNT(&c->eal.cores), 5);
	assert_true(CPU_ISSET(1, &c->eal.cores) && CPU_ISSET(5, &c->eal.cores) &&
		    CPU_ISSET(127, &c->eal.cores));
	assert_string_equal(c->eal.file_prefix, "u-1");
	assert_string_equal(c->eal.extra, "--a=b --c");
	assert_int_equal(c->limits.clients, 12);
	assert_true(c->limits.per_client.qp == URN_CONFIG_UNLIMITED);
	assert_true(c->limits.per_uid.pinned == 3ull << 30);
	assert_true(c->port[0].pci);
	assert_int_equal(c->port[0].port.roce_mtu, 2048);
	assert_int_equal(c->port[0].port.queues, 64);
	assert_int_equal(c->port[0].port.rx_desc, 32);
	assert_int_equal(c->port[0].port.tx_desc, 32768);
	assert_int_equal(c->port[0].port.mbufs, 4u << 20);
	assert_memory_equal(c->port[0].port.mac, "\x02\xab\0\0\0\1", 6);
	assert_true(c->port[0].port.steer);
	assert_memory_equal(c->adapter[0].adapter.ipv4, "\x0a\1\2\3", 4);
	assert_memory_equal(c->adapter[0].adapter.ipv6, &v6, 16);
	assert_int_equal(c->adapter[0].adapter.max_qp, 1048574);
	assert_int_equal(c->adapter[0].adapter.max_mr, 10);
	assert_int_equal(c->adapter[0].adapter.window, 1 << 20);
	assert_int_equal(c->adapter[0].adapter.rto_floor_us, 1500);
	assert_true(c->adapter[0].adapter.dcqcn.cnp_ns == 100000);
	assert_int_equal(c->adapter[0].adapter.dcqcn.gain_shift, 4);
	assert_true(c->adapter[0].adapter.dcqcn.raise_bytes == 1u << 20);
	assert_true(c->adapter[0].adapter.dcqcn.additive == 300000); /* bytes a second */
	assert_true(c->adapter[0].adapter.dcqcn.hyper == 10000000);
	assert_true(c->adapter[0].adapter.delay_limit_ns == 40000);
	assert_true(c->adapter[0].adapter.area_size == 64u << 20);
	assert_int_equal(c->adapter[0].adapter.work_in_flight, 64);
	assert_int_equal(c->adapter[0].adapter.features_off, 1);
	assert_int_equal(c->adapter[0].adapter.cache_line, 256);	 /* AW-1 */
	assert_true(c->adapter[0].adapter.count_stores);		 /* AW-7 */
	assert_true(c->adapter[0].adapter.am_unregistered);		 /* AM-9 */
	assert_int_equal(c->adapter[0].adapter.am_pipelined_from, 1234); /* AM-8 */
	assert_int_equal(c->adapter[0].adapter.am_tagged_from, 12345); /* AM-8 */
	assert_true(c->adapter[0].adapter.no_learn && c->adapter[0].adapter.no_icrc);
	assert_true(c->adapter[0].adapter.no_congestion_control);
	urn_config_free(c);
}

/* Keys that are not given have the table's defaults. */
static void
presets(void **state)
{
	struct urn_dcqcn_config published;
	struct urn_config *c = config_good("[port p]\ndevice = net_null0\n[adapter x]\nport = p\n"
					   "[adapter y]\nswitch = s\n[switch s]\n");
	const struct urn_adapter_config *a = &c->adapter[0].adapter;

	(void)state;
	assert_string_equal(c->urnicd.socket, "");
	assert_int_equal(c->urnicd.mode, 0600);
	assert_string_equal(c->urnicd.node, "host");
	assert_string_equal(c->urnicd.log_level, "error");
	assert_true(c->urnicd.telemetry);
	assert_string_equal(c->urnicd.prometheus_host, "");
	assert_int_equal(c->eal.huge_pages, URN_CONFIG_HUGE_NEVER);
	assert_int_equal(CPU_COUNT(&c->eal.cores), 0);
	assert_int_equal(c->limits.clients, 4096);
	assert_int_equal(c->limits.per_uid.mr, 262144);
	assert_true(c->limits.per_client.pinned == 16ull << 30);
	/* The defaults give no program everything that an adapter has. */
	assert_true(c->limits.per_client.qp < a->max_qp && c->limits.per_client.mr < a->max_mr);
	assert_true(c->limits.per_uid.pd < URN_ADAPTER_MAX_PD && c->limits.per_uid.ah < URN_ADAPTER_MAX_AH);
	assert_true(c->limits.per_client.pd < c->limits.per_uid.pd && c->limits.per_client.ah < c->limits.per_uid.ah);
	assert_int_equal(c->engines, 1);
	assert_int_equal(c->engine[0].lcore, -1);
	assert_int_equal(c->engine[0].engine.idle, URN_IDLE_SLEEP);
	assert_int_equal(c->engine[0].engine.empty_polls, 1024);
	assert_int_equal(c->engine[0].engine.sleep_us, 100);
	assert_int_equal(c->port[0].port.roce_mtu, 0);
	assert_int_equal(c->port[0].port.queues, 1);
	assert_false(c->port[0].port.steer || c->port[0].pci);
	assert_string_equal(a->node, "host");
	assert_int_equal(a->max_qp, 65536);
	assert_int_equal(a->max_mr, 65536);
	assert_int_equal(a->window, 256);
	assert_int_equal(a->rto_floor_us, 4000);
	assert_true(a->area_size == 1u << 30);
	assert_int_equal(a->work_in_flight, 65536);
	assert_false(a->am_unregistered);
	assert_int_equal(a->am_pipelined_from, 0);
	assert_int_equal(a->am_tagged_from, 262144);
	assert_false(a->no_learn || a->no_icrc || a->features_off || a->no_congestion_control);
	assert_int_equal(c->sw[0].sw.fdb.max, 4096);
	assert_true(c->sw[0].sw.fdb.age_ns == 300000000000);
	assert_false(c->sw[0].sw.no_learning);
	assert_true(c->sw[0].sw.mark.kmin == URN_MARK_KMIN && c->sw[0].sw.mark.pmax == URN_MARK_PMAX);
	assert_true(c->sw[0].sw.mark.kmax == 0); /* no marks */
	/* The presets of [congestion] are those of the transport. */
	urn_dcqcn_defaults(&published, 0);
	assert_memory_equal(&a->dcqcn, &published, sizeof(published));
	assert_true(a->delay_limit_ns == 0);
	urn_config_free(c);
	/* With a group, its members get a share. */
	c = config_good("[urnicd]\ngroup = rdma\n" CONFIG_REST);
	assert_int_equal(c->urnicd.mode, 0660);
	urn_config_free(c);
}

#define ADDRESS_V4 "no address of a station in a network; give one such as 10.0.0.1\n"
#define ADDRESS_V6 "no address of a station in a network; give one such as fd00::1\n"
#define LENGTH4 "the length behind the / is 1 to 32 bits, such as 10.0.0.1/24\n"
#define LENGTH6 "the length behind the / is 1 to 128 bits, such as fd00::1/64\n"
#define NETWORK4                                                                 \
	"no address of a station, but that of the network itself or of all its " \
	"stations; give one such as 10.0.0.1/24\n"
#define NETWORK6                                                                     \
	"no address of a station, but that of the network itself; give one such as " \
	"fd00::1/64\n"
#define STATION \
	"give the MAC address of one station, six bytes with colons, such as 02:00:00:00:00:01\n"
#define LISTEN "give an address and a port, such as 127.0.0.1:9464 or [::1]:9464\n"
#define X16 "xxxxxxxxxxxxxxxx"

static void
daemon_values(void **state)
{
	static const struct config_case cases[] = {
		{"[urnicd]\nsocket = urnicd.sock\n",
		 "2: socket = urnicd.sock: give an absolute path, one that begins with /\n"},
		{"[urnicd]\nsocket = \"\"\n",
		 "2: socket = : give an absolute path, one that begins with /\n"},
		{"[urnicd]\nsocket = /" X16 X16 X16 X16 X16 X16 X16 "\n",
		 "2: socket = /" X16 X16
		 "xxxxxxxxxxxxxxx...: the value is 113 bytes long; 107 are the "
		 "most\n"},
		{"[urnicd]\nmode = 0077\n",
		 "2: mode = 0077: the owner reads and writes: give 06.., such as 0600 or 0660\n"},
		{"[urnicd]\nmode = 668\n",
		 "2: mode = 668: give three octal digits, such as 0600 or 0660\n"},
		{"[urnicd]\nmode = 1600\n",
		 "2: mode = 1600: give three octal digits, such as 0600 or 0660\n"},
		{"[urnicd]\ngroup = \"\"\n",
		 "2: group = : the value is empty; give a name, or leave the line out\n"},
		{"[urnicd]\nnode = a.b\n",
		 "2: node = a.b: a name has 1 to 15 letters, digits, _ or -\n"},
		{"[urnicd]\nnode = " X16 "\n",
		 "2: node = " X16 ": a name has 1 to 15 letters, digits, _ or -\n"},
		{"[urnicd]\nlog_level = loud\n",
		 "2: log_level = loud: give error, warning, notice, info or debug\n"},
		{"[urnicd]\nidle = Spin\n", "2: idle = Spin: give spin, pause or sleep\n"},
		{"[urnicd]\nempty_polls = 0\n", "2: empty_polls = 0: give a number from 1 to 1G\n"},
		{"[urnicd]\nempty_polls = -1\n",
		 "2: empty_polls = -1: give a number from 1 to 1G\n"},
		{"[urnicd]\nsleep = 100\n",
		 "2: sleep = 100: give a time from 1us to 1ms, with us, ms "
		 "or s behind it\n"},
		{"[urnicd]\nsleep = 2ms\n",
		 "2: sleep = 2ms: give a time from 1us to 1ms, with us, ms "
		 "or s behind it\n"},
		{"[urnicd]\ntelemetry = maybe\n", "2: telemetry = maybe: give yes or no\n"},
		{"[urnicd]\nprometheus = 9464\n", "2: prometheus = 9464: " LISTEN},
		{"[urnicd]\nprometheus = localhost:9464\n",
		 "2: prometheus = localhost:9464: " LISTEN},
		{"[urnicd]\nprometheus = ::1:9464\n", "2: prometheus = ::1:9464: " LISTEN},
		{"[urnicd]\nprometheus = 127.0.0.1:0\n", "2: prometheus = 127.0.0.1:0: " LISTEN},
		{"[urnicd]\nprometheus = 127.0.0.1:65536\n",
		 "2: prometheus = 127.0.0.1:65536: " LISTEN},
		{"[urnicd]\nprometheus = []:1\n", "2: prometheus = []:1: " LISTEN},
		{"[urnicd]\nprometheus = :\n", "2: prometheus = :: " LISTEN},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
other_values(void **state)
{
	static const struct config_case cases[] = {
		{"[eal]\nmemory = 63M\n",
		 "2: memory = 63M: give a size from 64M to 1024G, such as 64M or 2G\n"},
		{"[eal]\nmemory = lots\n",
		 "2: memory = lots: give a size from 64M to 1024G, such as 64M or 2G\n"},
		{"[eal]\nhuge_pages = yes\n", "2: huge_pages = yes: give never or auto\n"},
		{"[eal]\ncores = 3-0\n",
		 "2: cores = 3-0: give CPUs from 0 to 127, such as 0-3,8\n"},
		{"[eal]\ncores = 128\n",
		 "2: cores = 128: give CPUs from 0 to 127, such as 0-3,8\n"},
		{"[eal]\ncores = 0-1-2\n",
		 "2: cores = 0-1-2: give CPUs from 0 to 127, such as 0-3,8\n"},
		{"[eal]\ncores = ,\n", "2: cores = ,: give CPUs, such as 0-3,8\n"},
		{"[eal]\nextra = -m 5\n", "2: extra = -m 5: -m is set by memory; give that\n"},
		{"[limits]\nclients = 0\n",
		 "2: clients = 0: give a number from 1 on, such as 100 or "
		 "64k, or unlimited\n"},
		{"[limits]\npinned_per_uid = 1T\n", "2: pinned_per_uid = 1T: give a number from 1 "
						    "on, such as 100 or 64k, or unlimited\n"},
		{"[limits]\nclients = 18446744073709551615\n",
		 "2: clients = 18446744073709551615: give a number from 1 on, such as 100 or 64k, "
		 "or "
		 "unlimited\n"},
		{"[engine 0]\nlcore = 128\n", "2: lcore = 128: give a number from 0 to 127\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

/* A port and an adapter with one line more. */
#define PORT(line) "[port p]\ndevice = net_null0\n" line "\n[adapter x]\nport = p\n"
#define ADAPTER(line) "[adapter x]\nswitch = s\n" line "\n[switch s]\n"

static void
address_values(void **state)
{
	static const struct config_case cases[] = {
		{ADAPTER("ipv4 = 10.0.0.1/33"), "3: ipv4 = 10.0.0.1/33: " LENGTH4},
		{ADAPTER("ipv4 = 10.0.0.1/0"), "3: ipv4 = 10.0.0.1/0: " LENGTH4},
		{ADAPTER("ipv4 = 10.0.0.1/"), "3: ipv4 = 10.0.0.1/: " LENGTH4},
		{ADAPTER("ipv4 = 10.0.0.1/255.0.0.0"), "3: ipv4 = 10.0.0.1/255.0.0.0: " LENGTH4},
		{ADAPTER("ipv4 = 10.0.0.0/24"), "3: ipv4 = 10.0.0.0/24: " NETWORK4},
		{ADAPTER("ipv4 = 10.0.0.255/24"), "3: ipv4 = 10.0.0.255/24: " NETWORK4},
		{ADAPTER("ipv4 = 10.0.0.4/30"), "3: ipv4 = 10.0.0.4/30: " NETWORK4},
		{ADAPTER("ipv4 = 10.0.0.256"),
		 "3: ipv4 = 10.0.0.256: give an IPv4 address, such as 10.0.0.1 or 10.0.0.1/24\n"},
		{ADAPTER("ipv4 = 0.0.0.0"), "3: ipv4 = 0.0.0.0: " ADDRESS_V4},
		{ADAPTER("ipv4 = 127.0.0.1"), "3: ipv4 = 127.0.0.1: " ADDRESS_V4},
		{ADAPTER("ipv4 = 224.0.0.1"), "3: ipv4 = 224.0.0.1: " ADDRESS_V4},
		{ADAPTER("ipv6 = fd00::1/129"), "3: ipv6 = fd00::1/129: " LENGTH6},
		{ADAPTER("ipv6 = fd00::/64"), "3: ipv6 = fd00::/64: " NETWORK6},
		{ADAPTER("ipv6 = fd00:"),
		 "3: ipv6 = fd00:: give an IPv6 address, such as fd00::1 or fd00::1/64\n"},
		{ADAPTER("ipv6 = ff02::1"), "3: ipv6 = ff02::1: " ADDRESS_V6},
		{ADAPTER("ipv6 = ::1"), "3: ipv6 = ::1: " ADDRESS_V6},
		{ADAPTER("ipv6 = ::"), "3: ipv6 = ::: " ADDRESS_V6},
		{ADAPTER("ipv6 = ::ffff:10.0.0.1"), "3: ipv6 = ::ffff:10.0.0.1: " ADDRESS_V6},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
port_and_adapter_values(void **state)
{
	static const struct config_case cases[] = {
		{PORT("path_mtu = 1500"),
		 "3: path_mtu = 1500: give 256, 512, 1024, 2048 or 4096\n"},
		{PORT("queues = 65"), "3: queues = 65: give a number from 1 to 64\n"},
		{PORT("tx_desc = 31"), "3: tx_desc = 31: give a number from 32 to 32k\n"},
		{PORT("mbufs = 1"), "3: mbufs = 1: give a number from 1k to 4M\n"},
		{PORT("mac = 02:00:00:00:00"), "3: mac = 02:00:00:00:00: " STATION},
		{PORT("mac = 02-00-00-00-00-01"), "3: mac = 02-00-00-00-00-01: " STATION},
		{PORT("mac = 03:00:00:00:00:01"), "3: mac = 03:00:00:00:00:01: " STATION},
		{PORT("mac = 00:00:00:00:00:00"), "3: mac = 00:00:00:00:00:00: " STATION},
		{PORT("steer = 2"), "3: steer = 2: give yes or no\n"},
		{ADAPTER("max_qp = 1M"), "3: max_qp = 1M: give a number from 1 to 1048574\n"},
		{ADAPTER("rto_floor = 2s"),
		 "3: rto_floor = 2s: give a time from 1us to 1s, with us, "
		 "ms or s behind it\n"},
		{"[congestion]\nadditive = 999k\n",
		 "2: additive = 999k: give bits a second from 1M to 100G, such as 500M or 2.5G\n"},
		{"[congestion]\ndelay_limit = 2s\n",
		 "2: delay_limit = 2s: give a time from 1us to 1s, with us, ms or s behind it\n"},
		{ADAPTER("features_off = sack, more"),
		 "3: features_off = sack, more: give sack, write_two or uc_window, or leave the "
		 "line out\n"},
		{ADAPTER("features_off = ,"),
		 "3: features_off = ,: give sack, write_two or uc_window, or leave the line out\n"},
		{ADAPTER("cache_line = 32"), "3: cache_line = 32: give 64, 128 or 256\n"},
		{ADAPTER("engines = 0,16"),
		 "3: engines = 0,16: give engines by their numbers from 0 "
		 "to 15, such as 0,1, or all\n"},
		{ADAPTER("engines = none"),
		 "3: engines = none: give engines by their numbers from 0 "
		 "to 15, such as 0,1, or all\n"},
		{ADAPTER("engines = ,"),
		 "3: engines = ,: give engines by their numbers from 0 to 15, "
		 "such as 0,1, or all\n"},
		{PORT("") "[switch s]\nports = a/b\n",
		 "6: nothing is plugged into switch s; give it ports = NAME, or an adapter switch "
		 "= "
		 "s\n"
		 "7: ports = a/b: a/b: a name has 1 to 15 letters, digits, _ or -\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
words_and_macs(void **state)
{
	static const char *const bad[] = {"",
					  "02",
					  "02:00:00:00:00",
					  "02:00:00:00:00:0",
					  "02:00:00:00:00:001",
					  "02-00-00-00-00-01",
					  "02:00:00:00:00:0g",
					  "03:00:00:00:00:01",
					  " 2:00:00:00:00:01",
					  "02:00:00:00:00:01:"};
	const char *at = " a,, b\t,c", *word;
	uint8_t mac[6];

	(void)state;
	assert_int_equal(urn_config_word(&at, &word), 1);
	assert_int_equal(*word, 'a');
	assert_int_equal(urn_config_word(&at, &word), 1);
	assert_int_equal(*word, 'b');
	assert_int_equal(urn_config_word(&at, &word), 1);
	assert_int_equal(*word, 'c');
	assert_int_equal(urn_config_word(&at, &word), 0);
	assert_int_equal(urn_config_parse_mac("fe:DC:ba:98:76:54", 17, mac), 0);
	assert_memory_equal(mac, ((uint8_t[]){0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54}), 6);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(urn_config_parse_mac(bad[i], strlen(bad[i]), mac), -1);
}

/* Numbers in sentences are written as a file could have them. */
static void
texts(void **state)
{
	static const char *const words[] = {"a", "b", "c", NULL};
	char out[32], small[5];

	(void)state;
	assert_string_equal(urn_config_number_text(0, out), "0");
	assert_string_equal(urn_config_number_text(1000, out), "1000");
	assert_string_equal(urn_config_number_text(65536, out), "64k");
	assert_string_equal(urn_config_number_text(1ull << 40, out), "1024G");
	assert_string_equal(urn_config_time_text(1000, out), "1us");
	assert_string_equal(urn_config_time_text(1500000, out), "1500us");
	assert_string_equal(urn_config_time_text(2000000, out), "2ms");
	assert_string_equal(urn_config_time_text(86400000000000, out), "86400s");
	urn_config_words_text(words, out, sizeof(out));
	assert_string_equal(out, "a, b or c");
	urn_config_words_text(words + 1, out, sizeof(out));
	assert_string_equal(out, "b or c");
	urn_config_words_text(words + 2, out, sizeof(out));
	assert_string_equal(out, "c");
	urn_config_words_text(words, small, sizeof(small));
	assert_string_equal(small, "a, b");
}

/* ---- features (architecture.md, seam 9) */

static void
every_feature_has_its_word(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < urn_link_features.n; i++) {
		struct urn_config *c;
		char text[256];

		snprintf(text, sizeof(text),
			 "[port p]\ndevice = net_null0\n[adapter x]\nport = p\n"
			 "features_off = %s\n",
			 urn_link_features.at[i].word);
		c = config_good(text);
		assert_int_equal(c->adapter[0].adapter.features_off, urn_link_features.at[i].mask);
		urn_config_free(c);
	}
}

/* A key for a list of the test's own takes that list's words, whatever their bits. */
static void
a_list_with_one_more(void **state)
{
	static const struct urn_feature two[] = {{1, "sack", "known"},
						 {1u << 7, "echo", "of this test"}};
	static const struct urn_features list = {two, 2};
	static const struct urn_config_key key = {.name = "off",
						  .type = URN_CT_FEATURES,
						  .size = sizeof(uint32_t),
						  .features = &list};
	static const struct {
		const char *text;
		uint32_t mask;
	} good[] = {{"sack", 1}, {"echo", 0x80}, {"echo, sack", 0x81}, {"sack echo", 0x81}};
	struct urn_config_errors errors = {0};
	struct urn_config cfg = {0};
	struct urn_config_ctx ctx = {.cfg = &cfg, .errors = &errors};
	struct urn_ini_entry e = {.key = {.s = "off", .line = 3}};
	uint32_t mask = 0;

	(void)state;
	cfg.file = "t.ini";
	for (unsigned int i = 0; i < RTE_DIM(good); i++) {
		e.value.s = good[i].text;
		assert_int_equal(urn_config_take(&ctx, &key, &e, &mask), 0);
		assert_int_equal(mask, good[i].mask);
	}
	e.value.s = "echoes";
	assert_int_equal(urn_config_take(&ctx, &key, &e, &mask), -1);
	assert_int_equal(errors.n, 1);
	assert_string_equal(errors.error[0].text,
			    "t.ini:3: off = echoes: give sack or echo, or leave the line out");
	urn_config_errors_free(&errors);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_types_are_taken),
		cmocka_unit_test(presets),
		cmocka_unit_test(daemon_values),
		cmocka_unit_test(other_values),
		cmocka_unit_test(address_values),
		cmocka_unit_test(port_and_adapter_values),
		cmocka_unit_test(words_and_macs),
		cmocka_unit_test(texts),
		cmocka_unit_test(every_feature_has_its_word),
		cmocka_unit_test(a_list_with_one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
