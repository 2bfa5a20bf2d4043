/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/link.h"

/*
 * OUI of our class. The bit that marks a locally administered address is set, so that the OUI
 * belongs to no company.
 */
static const uint8_t oui[3] = {0x02, 0x55, 0x52};

enum urn_link_arw
urn_link_arw_code(long line_bytes)
{
	switch (line_bytes) {
	case 64:
		return URN_LINK_ARW_64;
	case 128:
		return URN_LINK_ARW_128;
	case 256:
		return URN_LINK_ARW_256;
	default:
		return URN_LINK_ARW_NONE;
	}
}

void
urn_link_write(uint8_t *mad, const struct urn_link_msg *msg)
{
	struct urn_mad_vendor v;
	struct urn_link_body b;

	memset(&v, 0, sizeof(v));
	memset(&b, 0, sizeof(b));
	v.hdr.base_version = URN_MAD_BASE_VERSION;
	v.hdr.mgmt_class = URN_LINK_CLASS;
	v.hdr.class_version = URN_LINK_CLASS_VERSION;
	v.hdr.method = msg->response ? URN_MAD_GET_RESP : URN_MAD_GET;
	v.hdr.tid = rte_cpu_to_be_64(msg->tid);
	v.hdr.attr_id = msg->response ? RTE_BE16(URN_LINK_ATTR_RESPONSE)
				      : RTE_BE16(URN_LINK_ATTR_REQUEST);
	memcpy(v.oui, oui, sizeof(oui));
	b.magic = RTE_BE32(URN_LINK_MAGIC);
	b.major = URN_LINK_MAJOR;
	b.minor = URN_LINK_MINOR;
	b.length = RTE_BE16(sizeof(b));
	b.epoch = rte_cpu_to_be_64(msg->info.epoch);
	b.features = rte_cpu_to_be_32(msg->info.features);
	b.arw = msg->info.arw & 0x0f;
	memcpy(v.data, &b, sizeof(b));
	memcpy(mad, &v, sizeof(v));
}

/*
 * True when the options fill data[from..to) exactly. All options are skipped, whatever their type.
 * from and to are multiples of 4: there is room for a header, and for the pad of a value that fits.
 */
static bool
options_ok(const uint8_t *data, uint32_t from, uint32_t to)
{
	while (from < to) {
		struct urn_link_option o;

		memcpy(&o, data + from, sizeof(o));
		from += sizeof(o);
		if (rte_be_to_cpu_16(o.length) > to - from)
			return false;
		from += (rte_be_to_cpu_16(o.length) + 3u) & ~3u;
	}
	return true;
}

/* returns: 0, or the counter for the reason to drop the message */
static int
read_body(const uint8_t *data, uint32_t room, struct urn_link_info *info)
{
	struct urn_link_body b;
	uint32_t length, least;

	memcpy(&b, data, sizeof(b));
	if (b.magic != RTE_BE32(URN_LINK_MAGIC))
		return URN_C_DROP_LINK_MAGIC;
	/* The fields from magic to epoch stay where they are in every version. */
	least = b.major == URN_LINK_MAJOR ? sizeof(b) : offsetof(struct urn_link_body, features);
	length = rte_be_to_cpu_16(b.length);
	if (length < least || length > room || length % 4 != 0)
		return URN_C_DROP_LINK_LENGTH;
	memset(info, 0, sizeof(*info));
	info->major = b.major;
	info->minor = b.minor;
	info->epoch = rte_be_to_cpu_64(b.epoch);
	if (b.major != URN_LINK_MAJOR)
		return 0;
	if (!options_ok(data, sizeof(b), length))
		return URN_C_DROP_LINK_OPTION;
	info->features = rte_be_to_cpu_32(b.features);
	info->arw = b.arw & 0x0f;
	if (info->arw > URN_LINK_ARW_256)
		info->arw = URN_LINK_ARW_NONE;
	return 0;
}

enum urn_counter
urn_link_read(const uint8_t *mad, uint32_t sqpn, struct urn_link_msg *msg)
{
	struct urn_mad_vendor v;
	uint16_t attr;
	int bad;

	memcpy(&v, mad, sizeof(v));
	if (v.hdr.mgmt_class != URN_LINK_CLASS ||
	    v.hdr.class_version != URN_LINK_CLASS_VERSION || memcmp(v.oui, oui, sizeof(oui)) != 0)
		return URN_C_DROP_MAD_CLASS;
	attr = rte_be_to_cpu_16(v.hdr.attr_id);
	msg->response = v.hdr.method == URN_MAD_GET_RESP;
	msg->tid = rte_be_to_cpu_64(v.hdr.tid);
	if (!msg->response && v.hdr.method != URN_MAD_GET)
		return URN_C_DROP_MAD_METHOD;
	if (sqpn != URN_QPN_GSI)
		return URN_C_DROP_LINK_SOURCE;
	/* A peer that does not know the class sends the request back unchanged, with a status. */
	if (msg->response && v.hdr.status != 0)
		return URN_C_LINK_REFUSED;
	if (attr != (msg->response ? URN_LINK_ATTR_RESPONSE : URN_LINK_ATTR_REQUEST))
		return URN_C_DROP_MAD_METHOD;
	bad = read_body(v.data, sizeof(v.data), &msg->info);
	if (bad != 0)
		return (enum urn_counter)bad;
	return msg->response ? URN_C_LINK_RESP_RX : URN_C_LINK_REQ_RX;
}

uint32_t
urn_link_arw_bytes(uint8_t code)
{
	return code >= URN_LINK_ARW_64 && code <= URN_LINK_ARW_256 ? 32u << code : 0;
}
