/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/pci.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

static void
test_find(void **state)
{
	(void)state;
	assert_ptr_equal(urn_family_find("net_null0"), &urn_family_null);
	assert_ptr_equal(urn_family_find("net_ring_a"), &urn_family_ring);
	assert_ptr_equal(urn_family_find("net_memif7,id=1"), &urn_family_memif);
	assert_ptr_equal(urn_family_find("net_tap0"), &urn_family_tap);
	assert_ptr_equal(urn_family_find("net_af_packet0"), &urn_family_af_packet);
	assert_ptr_equal(urn_family_find("net_af_xdp0"), &urn_family_af_xdp);
	assert_ptr_equal(urn_family_find("net_pcap0"), &urn_family_pcap);
	assert_ptr_equal(urn_family_find("0000:3b:00.0"), &urn_family_pci);
	assert_null(urn_family_find("net_unknown"));
	assert_null(urn_family_find(""));
}

static void
test_pci_addr(void **state)
{
	char addr[URN_PCI_ADDR];

	(void)state;
	assert_int_equal(urn_pci_addr("3b:00.1", addr), 0);
	assert_string_equal(addr, "0000:3b:00.1");
	assert_int_equal(urn_pci_addr("0001:3B:1f.7,dv_flow_en=1", addr), 0);
	assert_string_equal(addr, "0001:3b:1f.7");
	assert_int_equal(urn_pci_addr("3b:00", addr), -1);
	assert_int_equal(urn_pci_addr("3b:00.1x", addr), -1);
	assert_int_equal(urn_pci_addr("net_tap0", addr), -1);
	assert_int_equal(urn_pci_addr("", addr), -1);
	assert_int_equal(urn_pci_addr(" 3b:00.1", addr), -1);
}

static void
test_devargs(void **state)
{
	char args[URN_DEVARGS_MAX] = "net_x0,a=1,ab=2,c=", value[8];
	struct urn_err err = {""};

	(void)state;
	assert_true(urn_devargs_get(args, "a", value, sizeof(value)));
	assert_string_equal(value, "1");
	assert_true(urn_devargs_get(args, "ab", value, sizeof(value)));
	assert_string_equal(value, "2");
	assert_true(urn_devargs_get(args, "c", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(urn_devargs_get(args, "b", value, sizeof(value)));
	assert_false(urn_devargs_get("a=1", "a", value, sizeof(value)));
	urn_devargs_name(args, value, sizeof(value));
	assert_string_equal(value, "net_x0");
	/* A key in the arguments is left alone, a missing one is added. */
	assert_int_equal(urn_devargs_default(args, "a", "%d", 9), 0);
	assert_int_equal(urn_devargs_default(args, "d", "%d", 9), 0);
	assert_string_equal(args, "net_x0,a=1,ab=2,c=,d=9");
	assert_int_equal(urn_devargs_check(args, " a ab c d ", &err), 0);
	assert_int_equal(urn_devargs_check(args, " a ab c ", &err), -1);
	assert_non_null(strstr(err.text, "d=9"));
	assert_int_equal(urn_devargs_check("net_x0,b", " a ab b ", &err), -1);
	assert_int_equal(urn_devargs_check("net_x0,=1", " a ab b ", &err), -1);
	assert_int_equal(urn_devargs_check("net_x0,a b=1", " a b ", &err), -1);
	assert_int_equal(urn_devargs_check("net_x0", " a ", &err), 0);
	assert_int_equal(urn_devargs_check("x,whatever", NULL, &err), 0);
}

static void
test_devargs_too_long(void **state)
{
	char args[URN_DEVARGS_MAX];

	(void)state;
	memset(args, 'x', sizeof(args));
	args[URN_DEVARGS_MAX - 5] = '\0';
	assert_int_equal(urn_devargs_default(args, "k", "1"), 0);
	assert_int_equal(urn_devargs_default(args, "l", "1"), -1);
	assert_int_equal(strlen(args), URN_DEVARGS_MAX - 1);
}

static void
test_netdev(void **state)
{
	uint8_t mac[6] = {1};
	char name[32];
	struct urn_err err = {""};

	(void)state;
	assert_true(urn_netdev_mtu("lo") > 1500);
	assert_int_equal(urn_netdev_mtu("urnx"), -1);
	assert_int_equal(urn_netdev_mtu("a-name-that-no-interface-can-have"), -1);
	assert_int_equal(urn_netdev_mac("lo", mac), 0);
	assert_int_equal(mac[0], 0);
	assert_int_equal(urn_netdev_mac("urnx", mac), -1);
	assert_false(urn_netdev_running("urnx"));
	assert_int_equal(urn_netdev_of("d,iface=lo", "iface", name, &err), 0);
	assert_string_equal(name, "lo");
	assert_int_equal(urn_netdev_of("d,iface=", "iface", name, &err), -1);
	assert_int_equal(urn_netdev_of("d,iface=urnx", "iface", name, &err), -1);
	assert_non_null(strstr(err.text, "urnx"));
}

static void
user_caps(void *arg)
{
	(void)arg;
	become_user();
	check(!urn_have_cap(CAP_NET_ADMIN));
}

static void
test_caps(void **state)
{
	(void)state;
	if (geteuid() == 0)
		assert_true(urn_have_cap(CAP_NET_RAW) || 1);
	assert_int_equal(child_run(user_caps, NULL), 0);
}

/* A long sentence is cut, never overrun. */
static void
test_err(void **state)
{
	struct urn_err err;
	char text[600];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	urn_err_set(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	urn_err_set(NULL, "%s", text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	cmocka_unit_test(test_pci_addr),
		cmocka_unit_test(test_devargs), cmocka_unit_test(test_devargs_too_long),
		cmocka_unit_test(test_netdev),	cmocka_unit_test(test_caps),
		cmocka_unit_test(test_err),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
