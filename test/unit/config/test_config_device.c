/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and EAL arguments that are impossible. */
#include "config_test.h"

static void
devices(void **state)
{
	static const char *const good[] = {
		"net_ring0",
		"net_null0,size=64,no-rx=1",
		"net_memif0,role=server,socket=/run/x.sock",
		"net_memif0,socket=x,socket-abstract=yes",
		"net_tap0",
		"net_tap0,iface=urn0",
		"net_af_packet0,iface=eth0,qpairs=2",
		"net_af_xdp0,iface=eth0",
		"net_pcap0,rx_pcap=a.pcap",
		"0000:3b:00.0",
		"3b:00.0",
		"0000:3b:00.0,anything=1",
	};
	static const char *const bad[][2] = {
		{"net_memif0", "the device wants socket; add ,socket=/path/to/socket"},
		{"net_memif0,socket=", "the device wants socket; add ,socket=/path/to/socket"},
		{"net_memif0,socket=x.sock",
		 "the socket x.sock is no absolute path; begin it with /"},
		{"net_memif0,rolle=client",
		 "\"rolle=client\" is no argument of this device; it takes "
		 "key=value with the keys id role bsize rsize socket "
		 "socket-abstract mac secret"},
		{"net_af_packet0", "the device wants iface; add ,iface=eth0"},
		{"net_af_xdp0,iface", "\"iface\" is no argument"},
		{"net_memif0,socket=/x,role=sever", "is neither server nor client; give one"},
		{"mlx5_0", "mlx5_0 is the name of an RDMA device; give the PCI address"},
		{"mlx4_17", "mlx4_17 is the name of an RDMA device; give the PCI address"},
		{"mlx5_", "for an interface of that name give net_af_packet0,iface=mlx5_"},
		{"mlx5_a", "for an interface of that name give net_af_packet0,iface=mlx5_a"},
		{"..", "no device of DPDK; give net_memif"},
		{"eth0", "for an interface of that name give net_af_packet0,iface=eth0"},
		{"net_ixgbe0", "no device of DPDK; give net_memif"},
		{"0000:3b:00", "or a PCI address such as 0000:3b:00.0"},
		{"", "no device of DPDK"},
		{"a device with a long name", "no device of DPDK; give net_memif"},
	};
	struct urn_err err;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(good); i++) {
		if (urn_config_device_check(good[i], &err) != 0)
			fail_msg("%s: %s", good[i], err.text);
	}
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		if (urn_config_device_check(bad[i][0], &err) == 0)
			fail_msg("%s was taken", bad[i][0]);
		if (!strstr(err.text, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.text);
	}
}

static void
identities(void **state)
{
	char a[64], b[64];

	(void)state;
	urn_config_device_id("net_tap0,iface=x", a, sizeof(a));
	assert_string_equal(a, "net_tap0");
	urn_config_device_id("3B:00.0", a, sizeof(a));
	urn_config_device_id("0000:3b:00.0,x=1", b, sizeof(b));
	assert_string_equal(a, "0000:3b:00.0");
	assert_string_equal(a, b);
}

static void
eal_arguments(void **state)
{
	static const char *const good[] = {
		"",	  "  ", "--log-level=lib.eal:8", "--huge-dir /dev/huge", "--lcores-of-mine",
		"-d x.so"};
	static const char *const bad[][2] = {
		{"-l 0-3", "-l is set by cores; give that"},
		{"-l0-3", "-l0-3 is set by cores; give that"},
		{"--lcores=0@1", "--lcores=0@1 is set by cores; give that"},
		{"-d x.so -m512", "-m512 is set by memory; give that"},
		{"\t--no-huge", "--no-huge is set by huge_pages; give that"},
		{"--file-prefix x", "--file-prefix is set by file_prefix; give that"},
		{"--vdev=net_tap0", "--vdev=net_tap0 is set by device in a [port NAME]; give that"},
		{"--no-telemetry", "--no-telemetry is set by telemetry in [urnicd]; give that"},
		{"--log-level=*:debug",
		 "--log-level=*:debug is set by log_level in [urnicd]; give that"},
	};
	struct urn_err err;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(good); i++) {
		if (urn_config_eal_check(good[i], &err) != 0)
			fail_msg("'%s': %s", good[i], err.text);
	}
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(urn_config_eal_check(bad[i][0], &err), -1);
		assert_string_equal(err.text, bad[i][1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices),
		cmocka_unit_test(identities),
		cmocka_unit_test(eal_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
