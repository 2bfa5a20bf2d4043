/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of an adapter. Each folder has blocks of its own, beside it: counters_FOLDER.h, with
 * X(index, "name", "description") for each counter. The blocks are joined here into one array per
 * adapter and engine, written by that engine only. Every drop has a counter that is named after its
 * reason (architecture rule 4).
 */
#ifndef URN_COUNTERS_H
#define URN_COUNTERS_H

#include "counter_scope.h"
#include "counters_am.h"
#include "counters_cm.h"
#include "counters_control.h"
#include "counters_engine.h"
#include "counters_msg.h"
#include "counters_net.h"
#include "counters_transport.h"
#include "counters_wire.h"

#include <stdbool.h>

/*
 * B(block, "folder"): the blocks in the order of all outputs. That order is older than the
 * blocks, so some folders have several; a new block comes last.
 */
/* clang-format off */
#define URN_COUNTER_BLOCKS(B) \
	B(TRAFFIC, "transport") \
	B(NET, "net") \
	B(CM, "cm") \
	B(CONTROL, "control") \
	B(NET_MALFORMED, "net") \
	B(WIRE, "wire") \
	B(ADMIT, "transport") \
	B(WIRE_MAD, "wire") \
	B(NET_UNASKED, "net") \
	B(CM_DROPS, "cm") \
	B(DROPS, "transport") \
	B(SHORTAGE, "transport") \
	B(ENGINE, "engine") \
	B(NAKS, "transport") \
	B(FLOW, "transport") \
	B(MSG, "msg") \
	B(ENGINE_PFC, "engine") \
	B(AM, "am") \
	B(CONTROL_TELLER, "control") \
	B(ENGINE_PORTS, "engine")

enum urn_counter {
#define X(id, name, text) URN_C_##id,
#define B(block, folder) URN_COUNTERS_##block(X)
	URN_COUNTER_BLOCKS(B)
#undef B
#undef X
	URN_COUNTER_COUNT,
};
/* clang-format on */
_Static_assert(URN_COUNTER_COUNT <= 255, "urn_pkt.drop is 8 bits");

struct urn_counters {
	uint64_t v[URN_COUNTER_COUNT];
};

/* The scope "adapter": all these blocks. */
extern const struct urn_counter_scope urn_adapter_scope;

/* Counts that are kept under a lock, and moved to those of an engine from time to time. */
struct urn_counts {
	struct urn_counters c;
	bool any;              /* something was counted since the last move */
};

static inline void
urn_counts_add(struct urn_counts *from, enum urn_counter id)
{
	from->c.v[id]++;
	from->any = true;
}

/* Add the counts since the last call to *to. */
void urn_counts_move(struct urn_counts *from, struct urn_counters *to);

/* Name and description of a counter of an adapter; NULL past the end. */
const char *urn_counter_name(unsigned int id);
const char *urn_counter_text(unsigned int id);

#endif
