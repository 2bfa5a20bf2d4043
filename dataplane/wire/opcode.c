/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/opcode.h"
#include "wire/flow.h"
#include "wire/hdr.h"

/*
 * Sizes are those of the wire structs, so that a header that grows moves everything behind it. An
 * absent extension has offset 0, which no extension can have, because the BTH begins there.
 */
enum {
	BTH = sizeof(struct urn_bth),
	RETH = sizeof(struct urn_reth),
	AETH = sizeof(struct urn_aeth),
	ATOMIC = sizeof(struct urn_atomic_eth),
	ATOMIC_ACK = 8,
	IMM = 4,
	IETH = 4,
	DETH = sizeof(struct urn_deth),
	SACK = sizeof(struct urn_sack),
	FLOW = sizeof(struct urn_flow_hdr),
	CNP_RSVD = 16, /* zero bytes behind the BTH of a CNP; no extension, no payload */
};

enum {
	REQ = URN_OPF_VALID | URN_OPF_RC | URN_OPF_REQUEST,
	RESP = URN_OPF_VALID | URN_OPF_RC | URN_OPF_RESPONSE,
	FIRST = URN_OPF_FIRST | URN_OPF_PAYLOAD | URN_OPF_FULL,
	MIDDLE = URN_OPF_PAYLOAD | URN_OPF_FULL,
	LAST = URN_OPF_LAST | URN_OPF_PAYLOAD | URN_OPF_NONZERO,
	ONLY = URN_OPF_FIRST | URN_OPF_LAST | URN_OPF_PAYLOAD,
	WHOLE = URN_OPF_FIRST | URN_OPF_LAST, /* a message of headers only */
	UC = URN_OPF_VALID | URN_OPF_UC | URN_OPF_REQUEST,
	OF_FLOW = URN_OPF_VALID | URN_OPF_FLOW,
	UD = URN_OPF_VALID | URN_OPF_UD | URN_OPF_REQUEST | URN_OPF_SEND | ONLY | URN_OPF_RECV,
};

/* One row: name, flags, then the extensions in wire order (none, one or two). */
/* clang-format off */
#define OP0(n, f) { .name = (n), .flags = (uint32_t)(f), .hdr_len = BTH }
#define OP1(n, f, a) { .name = (n), .flags = (uint32_t)(f), .hdr_len = BTH + (a), \
		       .off = { [URN_EXT_##a] = BTH } }
#define OP2(n, f, a, b) { .name = (n), .flags = (uint32_t)(f), .hdr_len = BTH + (a) + (b), \
			  .off = { [URN_EXT_##a] = BTH, [URN_EXT_##b] = BTH + (a) } }
/* clang-format on */

/* Reserved opcodes of RC: a request of no kind, which no message can begin or go on with. */
#define RESERVED OP0("RC reserved", REQ | URN_OPF_PAYLOAD)

#define SEND URN_OPF_SEND
#define WRITE URN_OPF_WRITE
#define READ URN_OPF_READ
#define RECV URN_OPF_RECV
#define ATOM URN_OPF_ATOMIC

const struct urn_opcode urn_opcodes[256] = {
	[URN_RC_SEND_FIRST] = OP0("RC SEND first", REQ | SEND | FIRST),
	[URN_RC_SEND_MIDDLE] = OP0("RC SEND middle", REQ | SEND | MIDDLE),
	[URN_RC_SEND_LAST] = OP0("RC SEND last", REQ | SEND | LAST | RECV),
	[URN_RC_SEND_LAST_IMM] = OP1("RC SEND last with immediate", REQ | SEND | LAST | RECV, IMM),
	[URN_RC_SEND_ONLY] = OP0("RC SEND only", REQ | SEND | ONLY | RECV),
	[URN_RC_SEND_ONLY_IMM] = OP1("RC SEND only with immediate", REQ | SEND | ONLY | RECV, IMM),
	[URN_RC_WRITE_FIRST] = OP1("RC WRITE first", REQ | WRITE | FIRST, RETH),
	[URN_RC_WRITE_MIDDLE] = OP0("RC WRITE middle", REQ | WRITE | MIDDLE),
	[URN_RC_WRITE_LAST] = OP0("RC WRITE last", REQ | WRITE | LAST),
	[URN_RC_WRITE_LAST_IMM] =
		OP1("RC WRITE last with immediate", REQ | WRITE | LAST | RECV, IMM),
	[URN_RC_WRITE_ONLY] = OP1("RC WRITE only", REQ | WRITE | ONLY, RETH),
	[URN_RC_WRITE_ONLY_IMM] =
		OP2("RC WRITE only with immediate", REQ | WRITE | ONLY | RECV, RETH, IMM),
	[URN_RC_READ_REQUEST] = OP1("RC READ request", REQ | READ | WHOLE, RETH),
	[URN_RC_READ_RESP_FIRST] = OP1("RC READ response first", RESP | READ | FIRST, AETH),
	[URN_RC_READ_RESP_MIDDLE] = OP0("RC READ response middle", RESP | READ | MIDDLE),
	[URN_RC_READ_RESP_LAST] = OP1("RC READ response last", RESP | READ | LAST, AETH),
	[URN_RC_READ_RESP_ONLY] = OP1("RC READ response only", RESP | READ | ONLY, AETH),
	[URN_RC_ACK] = OP1("RC ACK", RESP | URN_OPF_ACK, AETH),
	[URN_RC_ATOMIC_ACK] = OP2("RC ATOMIC ACK", RESP | ATOM | WHOLE, AETH, ATOMIC_ACK),
	[URN_RC_CMP_SWAP] =
		OP1("RC compare-and-swap", REQ | ATOM | WHOLE | URN_OPF_COMPARE, ATOMIC),
	[URN_RC_FETCH_ADD] = OP1("RC fetch-and-add", REQ | ATOM | WHOLE, ATOMIC),
	[URN_RC_SEND_LAST_INV] =
		OP1("RC SEND last with invalidate", REQ | SEND | LAST | RECV, IETH),
	[URN_RC_SEND_ONLY_INV] =
		OP1("RC SEND only with invalidate", REQ | SEND | ONLY | RECV, IETH),
	[0x15] = RESERVED,
	[0x18] = RESERVED,
	[0x19] = RESERVED,
	[0x1a] = RESERVED,
	[0x1b] = RESERVED,
	[0x1c] = RESERVED,
	[0x1d] = RESERVED,
	[0x1e] = RESERVED,
	[0x1f] = RESERVED,
	[URN_UC | URN_RC_SEND_FIRST] = OP0("UC SEND first", UC | SEND | FIRST),
	[URN_UC | URN_RC_SEND_MIDDLE] = OP0("UC SEND middle", UC | SEND | MIDDLE),
	[URN_UC | URN_RC_SEND_LAST] = OP0("UC SEND last", UC | SEND | LAST | RECV),
	[URN_UC | URN_RC_SEND_LAST_IMM] =
		OP1("UC SEND last with immediate", UC | SEND | LAST | RECV, IMM),
	[URN_UC | URN_RC_SEND_ONLY] = OP0("UC SEND only", UC | SEND | ONLY | RECV),
	[URN_UC | URN_RC_SEND_ONLY_IMM] =
		OP1("UC SEND only with immediate", UC | SEND | ONLY | RECV, IMM),
	[URN_UC | URN_RC_WRITE_FIRST] = OP1("UC WRITE first", UC | WRITE | FIRST, RETH),
	[URN_UC | URN_RC_WRITE_MIDDLE] = OP0("UC WRITE middle", UC | WRITE | MIDDLE),
	[URN_UC | URN_RC_WRITE_LAST] = OP0("UC WRITE last", UC | WRITE | LAST),
	[URN_UC | URN_RC_WRITE_LAST_IMM] =
		OP1("UC WRITE last with immediate", UC | WRITE | LAST | RECV, IMM),
	[URN_UC | URN_RC_WRITE_ONLY] = OP1("UC WRITE only", UC | WRITE | ONLY, RETH),
	[URN_UC | URN_RC_WRITE_ONLY_IMM] =
		OP2("UC WRITE only with immediate", UC | WRITE | ONLY | RECV, RETH, IMM),
	[URN_UD_SEND_ONLY] = OP1("UD SEND only", UD, DETH),
	[URN_UD_SEND_ONLY_IMM] = OP2("UD SEND only with immediate", UD, DETH, IMM),
	/* Fields that a later version puts behind are payload, which is ignored. */
	[URN_RC_SACK] = OP2("RC SACK", RESP | URN_OPF_ACK | URN_OPF_PAYLOAD, AETH, SACK),
	[URN_FLOW_DATA] = OP1("flow data", OF_FLOW | URN_OPF_REQUEST | URN_OPF_PAYLOAD, FLOW),
	[URN_FLOW_ACK] =
		OP1("flow ack", OF_FLOW | URN_OPF_RESPONSE | URN_OPF_ACK | URN_OPF_PAYLOAD, FLOW),
	[URN_FLOW_RESET] = OP1("flow reset", OF_FLOW | URN_OPF_RESPONSE, FLOW),
	/* The address is that of the head, which comes behind the end of the bulk. */
	[URN_RC_WRITE_LAST_TWO] = OP1("RC WRITE last, two addresses", REQ | WRITE | LAST, RETH),
	[URN_RC_WRITE_LAST_TWO_IMM] = OP2("RC WRITE last, two addresses, with immediate",
					  REQ | WRITE | LAST | RECV, RETH, IMM),
	[URN_UC_WORD] =
		OP1("UC window", URN_OPF_VALID | URN_OPF_UC | URN_OPF_RESPONSE | URN_OPF_ACK, AETH),
	[URN_CNP] = {.name = "CNP",
		     .flags = (uint16_t)(URN_OPF_VALID | URN_OPF_CNP),
		     .hdr_len = BTH + CNP_RSVD},
};
