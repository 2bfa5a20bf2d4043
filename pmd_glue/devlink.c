/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/devlink.h"

#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define REPLY_MAX 8192

struct request {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	uint8_t attrs[256];
};

/* ---- attributes */

static void
attr_put(struct request *r, uint16_t type, const char *text)
{
	struct nlattr a = {.nla_type = type, .nla_len = (uint16_t)(NLA_HDRLEN + strlen(text) + 1)};
	size_t at = r->nl.nlmsg_len - sizeof(r->nl) - sizeof(r->genl);

	if (at + NLA_ALIGN(a.nla_len) > sizeof(r->attrs))
		return;
	memcpy(r->attrs + at, &a, sizeof(a));
	memcpy(r->attrs + at + NLA_HDRLEN, text, strlen(text) + 1);
	r->nl.nlmsg_len += NLA_ALIGN(a.nla_len);
}

/*
 * The next attribute of a type at or behind *p; *p moves behind the attribute.
 * returns the attribute's content, with *len; NULL: none
 */
static const uint8_t *
attr_next(const uint8_t **p, const uint8_t *end, uint16_t type, size_t *len)
{
	struct nlattr a;
	size_t step;

	while ((size_t)(end - *p) >= sizeof(a)) {
		const uint8_t *at = *p;

		memcpy(&a, at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > (size_t)(end - at))
			return NULL;
		step = NLA_ALIGN((size_t)a.nla_len);
		*p = (size_t)(end - at) > step ? at + step : end;
		if ((a.nla_type & NLA_TYPE_MASK) != type)
			continue;
		*len = (size_t)a.nla_len - NLA_HDRLEN;
		return at + NLA_HDRLEN;
	}
	return NULL;
}

static const uint8_t *
attr_find(const uint8_t *p, size_t size, uint16_t type, size_t *len)
{
	return attr_next(&p, p + size, type, len);
}

/* ---- reply */

int
urn_devlink_parse(const void *reply, size_t len)
{
	const uint8_t *p = reply, *param, *list, *value, *end;
	struct nlmsghdr nl;
	size_t n, m;

	if (len < NLMSG_HDRLEN + GENL_HDRLEN)
		return -1;
	memcpy(&nl, p, sizeof(nl));
	if (nl.nlmsg_type == NLMSG_ERROR || nl.nlmsg_len > len ||
	    nl.nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN)
		return -1;
	param = attr_find(p + NLMSG_HDRLEN + GENL_HDRLEN, nl.nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN,
			  DEVLINK_ATTR_PARAM, &n);
	list = param != NULL ? attr_find(param, n, DEVLINK_ATTR_PARAM_VALUES_LIST, &m) : NULL;
	if (list == NULL)
		return -1;
	end = list + m;
	while ((value = attr_next(&list, end, DEVLINK_ATTR_PARAM_VALUE, &n)) != NULL) {
		const uint8_t *mode = attr_find(value, n, DEVLINK_ATTR_PARAM_VALUE_CMODE, &m);

		if (mode == NULL || m < 1 || *mode != DEVLINK_PARAM_CMODE_DRIVERINIT)
			continue;
		/* A flag is on when its attribute is present. */
		return attr_find(value, n, DEVLINK_ATTR_PARAM_VALUE_DATA, &m) != NULL;
	}
	return -1;
}

/* ---- asking */

static ssize_t
ask(int fd, struct request *r, void *reply, size_t size)
{
	if (send(fd, r, r->nl.nlmsg_len, 0) != (ssize_t)r->nl.nlmsg_len)
		return -1;
	return recv(fd, reply, size, 0);
}

static void
request_init(struct request *r, uint16_t family, uint8_t cmd, uint8_t version)
{
	memset(r, 0, sizeof(*r));
	r->nl.nlmsg_len = sizeof(r->nl) + sizeof(r->genl);
	r->nl.nlmsg_type = family;
	r->nl.nlmsg_flags = NLM_F_REQUEST;
	r->genl.cmd = cmd;
	r->genl.version = version;
}

/* Number of the devlink family. returns 0 when the kernel has none */
static uint16_t
family_id(int fd)
{
	uint8_t reply[REPLY_MAX];
	struct nlmsghdr nl;
	struct request r;
	const uint8_t *id;
	uint16_t value;
	ssize_t got;
	size_t n;

	request_init(&r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	attr_put(&r, CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME);
	got = ask(fd, &r, reply, sizeof(reply));
	if (got < (ssize_t)(NLMSG_HDRLEN + GENL_HDRLEN))
		return 0;
	memcpy(&nl, reply, sizeof(nl));
	if (nl.nlmsg_type != GENL_ID_CTRL)
		return 0;
	id = attr_find(reply + NLMSG_HDRLEN + GENL_HDRLEN, (size_t)got - NLMSG_HDRLEN - GENL_HDRLEN,
		       CTRL_ATTR_FAMILY_ID, &n);
	if (id == NULL || n < sizeof(value))
		return 0;
	memcpy(&value, id, sizeof(value));
	return value;
}

int
urn_devlink_roce(const char *pci_addr)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	const struct timeval limit = {.tv_sec = 2};
	uint8_t reply[REPLY_MAX];
	struct request r;
	uint16_t family;
	ssize_t got = -1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	family = family_id(fd);
	if (family != 0) {
		request_init(&r, family, DEVLINK_CMD_PARAM_GET, DEVLINK_GENL_VERSION);
		attr_put(&r, DEVLINK_ATTR_BUS_NAME, "pci");
		attr_put(&r, DEVLINK_ATTR_DEV_NAME, pci_addr);
		attr_put(&r, DEVLINK_ATTR_PARAM_NAME, "enable_roce");
		got = ask(fd, &r, reply, sizeof(reply));
	}
	close(fd);
	return got < 0 ? -1 : urn_devlink_parse(reply, (size_t)got);
}
