/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chain between a PCI address and its port, link by link, on a machine made up by the
 * test: each missing link is named, with advice.
 */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/devlink.h"
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/pci.h"

#include <infiniband/verbs.h>
#include <rte_eal.h>
#include <rte_flow.h>
#include <linux/capability.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static struct {
	bool there, probed;
	unsigned int vendor, class; /* class: 0: unknown */
	const char *driver, *netdev, *rdma, *provider;
	const char *vfio; /* the device's file, "": none */
	bool vfio_may;	  /* the process may open it */
	bool net_raw;
	int roce;
} host = {.vfio = ""};

bool __wrap_urn_pci_there(const char *addr);
unsigned int __wrap_urn_pci_vendor(const char *addr);
unsigned int __wrap_urn_pci_class(const char *addr);
void __wrap_urn_pci_driver(const char *addr, char *out, size_t size);
void __wrap_urn_pci_child(const char *addr, const char *folder, char *out, size_t size);
bool __wrap_urn_pci_vfio(const char *addr, char *path, size_t size);
bool __wrap_urn_have_cap(unsigned int cap);
int __wrap_urn_devlink_roce(const char *addr);
int __wrap_rte_eal_has_pci(void);
struct ibv_device **__wrap_ibv_get_device_list(int *n);
void __wrap_ibv_free_device_list(struct ibv_device **list);
int __wrap_rte_dev_probe(const char *args);

bool
__wrap_urn_pci_there(const char *addr)
{
	return host.there && strcmp(addr, "0000:3b:00.0") == 0;
}

unsigned int
__wrap_urn_pci_vendor(const char *addr)
{
	(void)addr;
	return host.vendor;
}

unsigned int
__wrap_urn_pci_class(const char *addr)
{
	(void)addr;
	return host.class;
}

void
__wrap_urn_pci_driver(const char *addr, char *out, size_t size)
{
	(void)addr;
	snprintf(out, size, "%s", host.driver);
}

void
__wrap_urn_pci_child(const char *addr, const char *folder, char *out, size_t size)
{
	(void)addr;
	snprintf(out, size, "%s", strcmp(folder, "net") == 0 ? host.netdev : host.rdma);
}

bool
__wrap_urn_pci_vfio(const char *addr, char *path, size_t size)
{
	check(strcmp(addr, "0000:3b:00.0") == 0);
	snprintf(path, size, "%s", host.vfio);
	return host.vfio_may;
}

bool
__wrap_urn_have_cap(unsigned int cap)
{
	return cap == CAP_NET_RAW && host.net_raw;
}

int
__wrap_urn_devlink_roce(const char *addr)
{
	check(strcmp(addr, "0000:3b:00.0") == 0);
	return host.roce;
}

int
__wrap_rte_eal_has_pci(void)
{
	return 1;
}

struct ibv_device **
__wrap_ibv_get_device_list(int *n)
{
	static struct ibv_device dev;
	static struct ibv_device *list[2];

	list[0] = host.provider[0] != '\0' ? &dev : NULL;
	snprintf(dev.name, sizeof(dev.name), "%s", host.provider);
	*n = list[0] != NULL;
	return list;
}

void
__wrap_ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

int
__wrap_rte_dev_probe(const char *args)
{
	check(strcmp(args, "0000:3b:00.0,dv_flow_en=1") == 0);
	host.probed = true;
	return -ENODEV;
}

static void
says(const char *word)
{
	struct urn_port_config cfg = port_cfg("rail0", "3b:00.0,dv_flow_en=1");
	struct urn_err err = {""};

	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "port rail0 (3b:00.0)");
	check_says(&err, word);
}

/* ConnectX: kernel driver, interface, RDMA device, provider, rights, RoCE given up. */
static void
mlx5(void *arg)
{
	(void)arg;
	eal_up();
	host.vendor = 0x15b3;
	host.class = 0x020000;
	host.driver = host.netdev = host.rdma = host.provider = "";
	host.roce = 1;
	says("no such PCI device");
	host.there = true;
	says("belongs to no driver");
	host.driver = "vfio-pci";
	says("belongs to vfio-pci");
	says("modprobe mlx5_core");
	host.driver = "mlx5_core";
	says("LINK_TYPE_P1=2");
	host.netdev = "ens1np0";
	says("no RDMA device for ens1np0");
	host.rdma = "mlx5_0";
	says("package ibverbs-providers");
	host.provider = "mlx5_1";
	says("libibverbs does not know mlx5_0");
	host.provider = "mlx5_0";
	says("CAP_NET_RAW");
	host.net_raw = true;
	says("name enable_roce value false");
	says("devlink dev reload pci/0000:3b:00.0");
	check(!host.probed);
	/* RoCE off, or a kernel that does not say: on to the PMD. */
	host.roce = 0;
	says("does not come up");
	check(host.probed);
	host.probed = false;
	host.roce = -1;
	says("does not come up");
	check(host.probed);
}

/* Any other device: it must have been unbound from the kernel's driver. */
static void
others(void *arg)
{
	(void)arg;
	eal_up();
	host.vendor = 0x8086;
	host.driver = "";
	says("no such PCI device");
	host.there = true;
	says("belongs to no driver");
	host.driver = "ixgbe";
	says("dpdk-devbind.py -b vfio-pci 0000:3b:00.0");
	check(!host.probed);
	host.driver = "vfio-pci";
	says("does not come up");
	check(host.probed);
}

/* A right that vfio needs is missing: the error names it. */
static void
rights(void *arg)
{
	struct rlimit lock;

	(void)arg;
	eal_up();
	host.vendor = 0x8086;
	host.there = true;
	host.driver = "vfio-pci";
	says("no IOMMU has the device");
	host.vfio = "/dev/vfio/17";
	says("give /dev/vfio/17 to the user (chown)");
	host.vfio_may = true;
	check(getrlimit(RLIMIT_MEMLOCK, &lock) == 0);
	lock.rlim_cur = 64 << 10;
	check(setrlimit(RLIMIT_MEMLOCK, &lock) == 0);
	says("locked memory is limited to 64 KiB");
	host.driver = "uio_pci_generic";
	says("does not come up");
}

/* Links of cards with good interrupts are noted; those of an 82574 are asked for. */
static void
link_interrupts(void *arg)
{
	struct urn_port port = {.cfg = port_cfg("p0", "3b:00.0"), .caps = {.link_interrupt = true}};
	struct rte_eth_dev_info info = {.driver_name = "net_virtio"};

	(void)arg;
	check(urn_family_pci.probed(&port, &info, NULL) == 0 && port.caps.link_interrupt);
	info.driver_name = "net_e1000_em";
	check(urn_family_pci.probed(&port, &info, NULL) == 0 && !port.caps.link_interrupt);
}

/* A device that is none of a network: it is not given to DPDK, whoever drives it. */
static void
no_nics(void *arg)
{
	static const struct {
		unsigned int class;
		const char *text;
	} none[] = {{0x060000, "a host bridge"}, {0x060400, "a bridge"},
		    {0x010802, "for storage"},	 {0x030000, "for a display"},
		    {0x0c0330, "serial bus"},	 {0x080000, "itself"}};
	static const unsigned int maybe[] = {0, 0x020000, 0x020700, 0x028000, 0xffff00, 0x120000};

	(void)arg;
	eal_up();
	host.vendor = 0x8086;
	host.driver = "";
	host.there = true;
	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		host.class = none[i].class;
		says(none[i].text);
		says("no network device");
	}
	for (unsigned int i = 0; i < sizeof(maybe) / sizeof(maybe[0]); i++) {
		host.class = maybe[i];
		says("belongs to no driver");
	}
	check(!host.probed);
}

/* ---- steering */

static struct {
	unsigned int isolated, rules;
	bool refuse;
} flow;

int __wrap_rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *error);
struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
					const struct rte_flow_item item[],
					const struct rte_flow_action action[],
					struct rte_flow_error *error);
int __wrap_rte_flow_flush(uint16_t port, struct rte_flow_error *error);
int __wrap_urn_netdev_mac(const char *name, uint8_t mac[6]);

int
__wrap_rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *error)
{
	(void)port;
	error->message = "not on a weekday";
	flow.isolated += set == 1;
	return flow.refuse ? -ENOTSUP : 0;
}

struct rte_flow *
__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
		       const struct rte_flow_item item[], const struct rte_flow_action action[],
		       struct rte_flow_error *error)
{
	(void)port, (void)item, (void)action, (void)error;
	flow.rules += attr->ingress;
	return (struct rte_flow *)&flow;
}

int
__wrap_rte_flow_flush(uint16_t port, struct rte_flow_error *error)
{
	(void)port, (void)error;
	flow.rules = 0;
	return 0;
}

int
__wrap_urn_netdev_mac(const char *name, uint8_t mac[6])
{
	check(strcmp(name, "ens1np0") == 0);
	memset(mac, 2, 6);
	return 0;
}

/* Isolated on request, before the port is configured; ARP and ND are ours only with a MAC of our own. */
static void
steers(const struct urn_port_family *f, bool shares)
{
	struct urn_port port = {.cfg = port_cfg("rail0", "3b:00.0"), .caps = {.queues = 2}};
	struct urn_err err = {""};

	memset(&flow, 0, sizeof(flow));
	memset(port.mac, 2, 6);
	check_ok(f->probed(&port, NULL, &err), &err);
	check_ok(f->started(&port, &err), &err);
	check(flow.isolated == 0 && flow.rules == 0);
	port.cfg.steer = true;
	check_ok(f->probed(&port, NULL, &err), &err);
	check(flow.isolated == 1 && flow.rules == 0);
	check_ok(f->started(&port, &err), &err);
	check(flow.rules == (shares ? 2 : 6));
	port.mac[5]++;
	check_ok(f->started(&port, &err), &err);
	check(flow.rules == 6);
}

static void
steering(void *arg)
{
	struct urn_port port = {.cfg = port_cfg("rail0", "3b:00.0")};
	struct urn_err err = {""};

	(void)arg;
	host.there = true;
	host.netdev = "ens1np0";
	steers(&urn_family_mlx5, true);
	steers(&urn_family_pci, false);
	/* Without it mlx5 would take the kernel's traffic, or none; other devices get all frames anyway. */
	flow.refuse = true;
	port.cfg.steer = true;
	check(urn_family_mlx5.probed(&port, NULL, &err) == -1);
	check_says(&err, "not on a weekday");
	check(urn_family_pci.probed(&port, NULL, &err) == 0);
	flow.rules = 0;
	check_ok(urn_family_pci.started(&port, &err), &err);
	check(flow.rules == 0);
}

CHILD_TEST(mlx5)
CHILD_TEST(others)
CHILD_TEST(rights)
CHILD_TEST(link_interrupts)
CHILD_TEST(no_nics)
CHILD_TEST(steering)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mlx5),	cmocka_unit_test(test_others),
		cmocka_unit_test(test_rights),	cmocka_unit_test(test_link_interrupts),
		cmocka_unit_test(test_no_nics), cmocka_unit_test(test_steering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
