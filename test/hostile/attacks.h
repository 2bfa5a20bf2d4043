/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All attacks, a row each: name, family, and what the attack tries. run.py and
 * doc/inside/threat-model.md have the same names.
 */
#ifndef TEST_HOSTILE_ATTACKS_H
#define TEST_HOSTILE_ATTACKS_H

#include "foe.h"

/* clang-format off */
#define FOE_ATTACKS(X) \
	X(handles,      calls,  "names objects of others in every control call that takes one") \
	X(random,       calls,  "makes control calls with random fields") \
	X(rubbish,      calls,  "sends any bytes, with descriptors, to the socket") \
	X(storm,        calls,  "attaches and leaves, in order or by its death, without end") \
	X(unread,       calls,  "asks on many connections and takes no answer") \
	X(area,         area,   "writes any bytes over its queues and doorbells") \
	X(doorbells,    area,   "rings all doorbells that there are, its own or not") \
	X(requests,     area,   "posts requests with bad opcodes, lists, lengths and keys") \
	X(indexes,      area,   "moves the indexes of its queues to any value") \
	X(registers,    area,   "writes any bytes over 64 register sets, and rings them") \
	X(commands,     area,   "writes any bytes over the rings of an endpoint") \
	X(pageout,      memory, "has the pages of its shared memory taken out while they are written") \
	X(reclaim,      memory, "has its control group's pages reclaimed while they are written") \
	X(migrate,      memory, "moves the pages of its shared memory between NUMA nodes while they are written") \
	X(collapse,     memory, "has pages of its shared memory, mapped 4,000 times, collapsed while they are written") \
	X(sparse,       memory, "registers memory that it never touched, and gives it back") \
	X(unmap,        memory, "unmaps and maps its memory while it is written") \
	X(protect,      memory, "takes and gives rights to its memory while it is written") \
	X(cow,          memory, "forks, so that its private memory is copied while it is written") \
	X(punch,        memory, "punches holes into a mapped file while it is written") \
	X(maplock,      memory, "holds the lock of its address space nearly all the time") \
	X(never,        memory, "registers a page that never comes (userfaultfd)") \
	X(watchers,     events, "watches its channel by 20,000 descriptors") \
	X(watched_ids,  events, "watches the channel of its connection ids by 20,000 descriptors") \
	X(eventfd,      events, "watches the eventfd that wakes an engine by 20,000 descriptors, and leaves") \
	X(unread_events, events, "never reads the events of its channels") \
	X(unread_async, events, "never reads its asynchronous events") \
	X(qps,          load,   "keeps 4,096 queue pairs busy") \
	X(bulk,         load,   "writes messages of 1 MiB in frames of 4 KiB at full rate") \
	X(reads,        load,   "reads 8 MiB by each of 256 requests at a time") \
	X(mcast,        load,   "floods a multicast group that many of its queue pairs are in") \
	X(not_ready,    load,   "sends to 512 queue pairs that have no receive") \
	X(nowhere,      load,   "writes to queue pairs that nobody has, by 512 queue pairs") \
	X(churn,        load,   "makes, connects and destroys queue pairs and regions under way") \
	X(queue_full,   msg,    "floods a full queue of messages from 256 register sets, without pause") \
	X(long_messages, msg,   "sends messages of 1 MiB that nobody takes, from 32 register sets") \
	X(no_node,      msg,    "sends messages to nodes that there are not") \
	X(stuck_handler, msg,   "floods an endpoint whose handler never returns") \
	X(rma,          msg,    "keeps 1,024 operations on remote memory of 1 MiB under way") \
	X(half_open,    tables, "asks for connections that are never accepted") \
	X(neighbours,   tables, "makes the dataplane look for 60,000 neighbours") \
	X(groups,       tables, "attaches queue pairs to all multicast groups") \
	X(clients,      tables, "attaches as often as it may, and says nothing") \
	X(queue_memory, tables, "takes all memory for queues that it gets") \
	X(everything,   tables, "takes all objects of each kind that it gets")
#define X(name, family, what) foe_attack_fn attack_##name;
FOE_ATTACKS(X)
#undef X
/* clang-format on */

#endif
