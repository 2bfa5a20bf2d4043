/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/netdev.h"
#include "pmd_glue/family.h"

#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ask the kernel about an interface. ifr: value of the request, both ways. returns: as ioctl() */
static int
ask(const char *name, unsigned long what, struct ifreq *ifr)
{
	int ret, fd;

	if (strlen(name) >= IFNAMSIZ)
		return -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	memset(ifr->ifr_name, 0, sizeof(ifr->ifr_name));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	ret = ioctl(fd, what, ifr);
	close(fd);
	return ret;
}

int
urn_netdev_mtu(const char *name)
{
	struct ifreq ifr = {0};

	return ask(name, SIOCGIFMTU, &ifr) == 0 ? ifr.ifr_mtu : -1;
}

int
urn_netdev_mac(const char *name, uint8_t mac[6])
{
	struct ifreq ifr = {0};

	if (ask(name, SIOCGIFHWADDR, &ifr) != 0)
		return -1;
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	return 0;
}

bool
urn_netdev_is_bridge(const char *name)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {.ifr_data = (void *)&info};

	return ask(name, SIOCETHTOOL, &ifr) == 0 && strcmp(info.driver, "bridge") == 0;
}

bool
urn_netdev_running(const char *name)
{
	struct ifreq ifr = {0};

	return ask(name, SIOCGIFFLAGS, &ifr) == 0 &&
	       (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

int
urn_netdev_of(const char *args, const char *key, char name[32], struct urn_err *err)
{
	if (!urn_devargs_get(args, key, name, 32) || name[0] == '\0') {
		urn_err_set(err, "no interface named; write \"%s=<interface>\" behind the device",
			    key);
		return -1;
	}
	if (urn_netdev_mtu(name) < 0) {
		urn_err_set(err, "there is no network interface %s; \"ip link\" lists them", name);
		return -1;
	}
	return 0;
}

bool
urn_have_cap(unsigned int cap)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &head, data) != 0)
		return false;
	return (data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap)) != 0;
}
