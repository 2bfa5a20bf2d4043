/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/bpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
call(enum bpf_cmd cmd, union bpf_attr *attr)
{
	long ret = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : (int)ret;
}

static uint64_t
address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Ask the kernel about an object. size: of the struct in the kernel's header. */
static int
info(int fd, void *out, size_t size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	memset(out, 0, size);
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = (uint32_t)size;
	attr.info.info = address(out);
	return call(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

int
urn_bpf_id(int fd, bool btf, uint64_t *id)
{
	struct bpf_btf_info types;
	struct {
		uint32_t type, id; /* the head of bpf_prog_info and of bpf_map_info */
	} other;
	int ret = btf ? info(fd, &types, sizeof(types)) : info(fd, &other, sizeof(other));

	if (ret == 0)
		*id = btf ? types.id : other.id;
	return ret;
}

int
urn_bpf_map_name(int map, char name[16])
{
	struct bpf_map_info i;
	int ret = info(map, &i, sizeof(i));

	_Static_assert(sizeof(i.name) == 16, "length of names");
	memcpy(name, i.name, sizeof(i.name));
	name[15] = '\0';
	return ret;
}

static int
element(enum bpf_cmd cmd, int map, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = address(key);
	attr.value = address(value);
	return call(cmd, &attr);
}

int
urn_bpf_map_set(int map, const void *key, const void *value)
{
	return element(BPF_MAP_UPDATE_ELEM, map, key, value);
}

int
urn_bpf_map_drop(int map, const void *key)
{
	int ret = element(BPF_MAP_DELETE_ELEM, map, key, NULL);

	return ret == -ENOENT ? 0 : ret;
}

int
urn_bpf_map_get(int map, const void *key, void *value)
{
	return element(BPF_MAP_LOOKUP_ELEM, map, key, value);
}

unsigned int
urn_bpf_cpus(void)
{
	unsigned int first = 0, last = 0;
	FILE *f = fopen("/sys/devices/system/cpu/possible", "re");

	/* "0-7" or "0"; ranges with holes count up to the last. */
	if (f == NULL)
		return 1;
	while (fscanf(f, "%u", &first) == 1) {
		last = first;
		if (fgetc(f) == EOF)
			break;
	}
	fclose(f);
	return last + 1;
}

int
urn_bpf_link(int prog, unsigned int ifindex)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)prog;
	attr.link_create.target_ifindex = ifindex;
	attr.link_create.attach_type = BPF_XDP;
	return call(BPF_LINK_CREATE, &attr);
}

/* RTM_SETLINK with IFLA_XDP { IFLA_XDP_FD: -1 }, and the kernel's answer. */
int
urn_bpf_detach(unsigned int ifindex)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
		struct rtattr xdp, fd;
		int none;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_SETLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			 .nlmsg_seq = 1},
		.link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex},
		.xdp = {.rta_len = 2 * sizeof(struct rtattr) + sizeof(int),
			.rta_type = IFLA_XDP | NLA_F_NESTED},
		.fd = {.rta_len = sizeof(struct rtattr) + sizeof(int), .rta_type = IFLA_XDP_FD},
		.none = -1,
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char more[512]; /* the question again */
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), ret = -EIO;

	if (fd < 0)
		return -errno;
	if (send(fd, &ask, sizeof(ask), 0) < 0)
		ret = -errno;
	else if (recv(fd, &answer, sizeof(answer), 0) >=
			 (ssize_t)(sizeof(answer.head) + sizeof(answer.err)) &&
		 answer.head.nlmsg_type == NLMSG_ERROR)
		ret = answer.err.error;
	close(fd);
	return ret;
}
