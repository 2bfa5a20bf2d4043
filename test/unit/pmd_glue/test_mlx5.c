/* SPDX-License-Identifier: BSD-3-Clause */
/* Without the device: missing parts are reported, and a devlink reply is read right. */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/devlink.h"
#include "pmd_glue/family.h"
#include "pmd_glue/pci.h"

#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devlink */

struct reply {
	uint8_t b[512];
	uint32_t len;
};

static uint32_t
attr(struct reply *r, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
	uint32_t at = r->len;

	memcpy(r->b + at, &a, sizeof(a));
	if (len > 0)
		memcpy(r->b + at + NLA_HDRLEN, data, len);
	r->len += NLA_ALIGN(a.nla_len);
	return at;
}

static void
nest_end(struct reply *r, uint32_t at)
{
	uint16_t len = (uint16_t)(r->len - at);

	memcpy(r->b + at, &len, sizeof(len));
}

static void
value(struct reply *r, uint8_t cmode, bool on)
{
	uint32_t at = attr(r, NLA_F_NESTED | DEVLINK_ATTR_PARAM_VALUE, NULL, 0);

	if (on)
		attr(r, DEVLINK_ATTR_PARAM_VALUE_DATA, NULL, 0);
	attr(r, DEVLINK_ATTR_PARAM_VALUE_CMODE, &cmode, 1);
	nest_end(r, at);
}

/* A reply as the kernel gives it for mlx5: a driverinit value, behind one of another mode. */
static void
reply_make(struct reply *r, bool on)
{
	struct nlmsghdr nl = {.nlmsg_type = 30};
	uint32_t param, list;

	memset(r, 0, sizeof(*r));
	r->len = NLMSG_HDRLEN + GENL_HDRLEN;
	attr(r, DEVLINK_ATTR_BUS_NAME, "pci", 4);
	attr(r, DEVLINK_ATTR_DEV_NAME, "0000:3b:00.0", 13);
	param = attr(r, NLA_F_NESTED | DEVLINK_ATTR_PARAM, NULL, 0);
	attr(r, DEVLINK_ATTR_PARAM_NAME, "enable_roce", 12);
	list = attr(r, NLA_F_NESTED | DEVLINK_ATTR_PARAM_VALUES_LIST, NULL, 0);
	value(r, DEVLINK_PARAM_CMODE_PERMANENT, !on);
	value(r, DEVLINK_PARAM_CMODE_DRIVERINIT, on);
	nest_end(r, list);
	nest_end(r, param);
	nl.nlmsg_len = r->len;
	memcpy(r->b, &nl, sizeof(nl));
}

static void
test_devlink(void **state)
{
	struct reply r;

	(void)state;
	reply_make(&r, true);
	assert_int_equal(urn_devlink_parse(r.b, r.len), 1);
	reply_make(&r, false);
	assert_int_equal(urn_devlink_parse(r.b, r.len), 0);
	/* The kernel knows no such device (or no devlink at all). */
	assert_int_equal(urn_devlink_roce("ffff:ff:1f.7"), -1);
}

/* The reader never goes beyond a reply, whatever it has in it (run under address sanitizer). */
static void
test_devlink_broken(void **state)
{
	struct reply r;
	uint32_t len, i;
	uint8_t *copy;
	unsigned int seed = 1;

	(void)state;
	reply_make(&r, true);
	for (len = 0; len < r.len; len++) {
		copy = malloc(len + 1);
		memcpy(copy, r.b, len);
		assert_int_equal(urn_devlink_parse(copy, len), -1);
		free(copy);
	}
	for (i = 0; i < 20000; i++) {
		copy = malloc(r.len);
		memcpy(copy, r.b, r.len);
		copy[rand_r(&seed) % r.len] ^= (uint8_t)(1 + rand_r(&seed) % 255);
		copy[rand_r(&seed) % r.len] ^= (uint8_t)(1 + rand_r(&seed) % 255);
		assert_in_range(urn_devlink_parse(copy, r.len) + 1, 0, 2);
		free(copy);
	}
}

/* ---- missing parts */

static void
refused(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("m0", device);
	struct urn_err err = {""};

	/* Open by the family itself: this machine's device may be of another make. */
	check(urn_port_open_by(&cfg, &urn_family_mlx5, NULL, &err) == NULL);
	check_says(&err, "port m0");
	check_says(&err, word);
}

/* A PCI device of this machine that is no ConnectX; "" when there is none. */
static void
other_device(char addr[URN_PCI_ADDR])
{
	DIR *d = opendir("/sys/bus/pci/devices");
	struct dirent *e;

	addr[0] = '\0';
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' && !urn_mlx5_is(e->d_name))
			(void)urn_pci_addr(e->d_name, addr);
	if (d != NULL)
		closedir(d);
}

static void
missing(void *arg)
{
	char addr[URN_PCI_ADDR];

	(void)arg;
	eal_up();
	refused("ffff:ff:1f.7", "no such PCI device");
	refused("ff:1f.7,dv_flow_en=1", "no such PCI device");
	other_device(addr);
	if (addr[0] != '\0')
		refused(addr, "without PCI");
}

static void
missing_driver(void *arg)
{
	struct urn_eal_config eal = {.program = "test", .pci_count = 1};
	char addr[URN_PCI_ADDR];
	const char *pci[1] = {"ffff:ff:1f.7"};
	struct urn_err err = {""};

	(void)arg;
	eal.pci = pci;
	check_ok(urn_eal_start(&eal, &err), &err);
	refused("ffff:ff:1f.7", "no such PCI device");
	other_device(addr);
	if (addr[0] != '\0')
		refused(addr, "mlx5_core");
}

CHILD_TEST(missing)
CHILD_TEST(missing_driver)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devlink),
		cmocka_unit_test(test_devlink_broken),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_missing_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
