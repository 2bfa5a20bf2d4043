/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of the simulation, and its sabotage: parts of the product that it can break on purpose. */
#ifndef URN_SIM_FAULTS_H
#define URN_SIM_FAULTS_H

#include <stdint.h>

/* X(index, "name", "description") */
#define SIM_FAULTS(X)                                                                        \
	X(DROP, "drop", "wires lose frames")                                                 \
	X(DUP, "dup", "wires duplicate frames")                                              \
	X(REORDER, "reorder", "wires let frames pass others")                                \
	X(DELAY, "delay", "wires are slow, by a time that varies")                           \
	X(CORRUPT, "corrupt", "wires flip a bit")                                            \
	X(RATE, "rate", "wires carry so many bits a second")                                 \
	X(BLACKHOLE, "blackhole", "a link carries nothing for a while")                      \
	X(CUT, "cut", "a link carries nothing one way for a while")                          \
	X(FLAP, "flap", "a link goes down again and again")                                  \
	X(PAUSE, "pause", "a node stands still for a while")                                 \
	X(NEIGH, "neigh", "a node's address is not known at first")                          \
	X(LATE, "late", "memory answers late")                                               \
	X(FAIL, "fail", "memory operations fail")                                            \
	X(QPERR, "qperr", "a program ends a QP")                                             \
	X(DRAIN, "drain", "a send queue is drained and goes on")                             \
	X(RNR, "rnr", "receives are posted late")                                            \
	X(SHORT, "short", "receives are too small")                                          \
	X(DEREG, "dereg", "regions are deregistered while in use")                           \
	X(BADKEY, "badkey", "requests name keys and ranges that are not there")              \
	X(STALE, "stale", "requests name windows after they were invalidated")               \
	X(EXHAUST, "exhaust", "packets and places for work run out")                         \
	X(DIE, "die", "clients die in the middle of things; others come")                    \
	X(SCRIBBLE, "scribble", "clients write nonsense over their queues")                  \
	X(FLOOD, "flood", "clients ring doorbells that they have and have not")              \
	X(MUTE, "mute", "clients never look at completions and events")                      \
	X(GREEDY, "greedy", "clients ask for more than they may, and for nonsense")          \
	X(REFUSE, "refuse", "programs refuse connections")                                   \
	X(SLOW, "slow", "programs take their time to answer")                                \
	X(FORGET, "forget", "programs drop connections without a word")                      \
	X(FOREIGN, "foreign", "memory is other processes', and gates close before it")       \
	X(STALL, "stall", "memory of another process moves nothing for a while")             \
	X(HANG, "hang", "engines are not run for long: a node's, or all at a time")          \
	X(SERVICE, "service", "a node takes its time to execute each request, whole")        \
	X(APART, "apart", "shared receive queues are in protection domains of their own")    \
	X(OVERRUN, "overrun", "a completion queue is too small, and its program polls late") \
	X(VANISH, "vanish", "a node is gone for a while, and so is its address")             \
	X(MOVE, "move", "a node's MAC address becomes another")

enum sim_fault {
#define X(id, name, text) SIM_##id,
	SIM_FAULTS(X)
#undef X
	SIM_FAULT_COUNT,
};

_Static_assert(SIM_FAULT_COUNT <= 64, "a bit each");

#define SIM_BIT(f) (UINT64_C(1) << SIM_##f)

/* First fault of clients: drawn from a random stream of their own, so that the faults before them do not change. */
#define SIM_FIRST_OF_CLIENTS SIM_DIE
/* First fault of foreign memory: again with a random stream of their own. */
#define SIM_FIRST_OF_FOREIGN SIM_FOREIGN

/* Kinds of sabotage (sabotage.c). X(index, "name", "description") */
#define SIM_SABOTAGE(X)                                                                \
	X(NOTHING, "", "")                                                             \
	X(LOST, "lost", "a completion of a request is lost")                           \
	X(TWICE, "twice", "a completion comes twice")                                  \
	X(STATUS, "status", "a request fails for no reason")                           \
	X(FLUSH, "flush", "a request is flushed for no reason")                        \
	X(BYTE, "byte", "a byte beside a buffer is changed")                           \
	X(WORD, "word", "a word of atomics is added to once too often")                \
	X(COUNT, "count", "a shared counter is changed")                               \
	X(MBUF, "mbuf", "a packet is not given back")                                  \
	X(WORK, "work", "a place for work is not given back")                          \
	X(STALL, "stall", "a node stands still for ever")                              \
	X(EVENT, "event", "an event comes for no reason")                              \
	X(LEFT, "left", "something of a dead client is left")                          \
	X(QUOTA, "quota", "a dead client still counts")                                \
	X(ANSWER, "answer", "answers to atomics that came before are lost")

enum sim_sabotage {
#define X(id, name, text) SIM_BREAK_##id,
	SIM_SABOTAGE(X)
#undef X
	SIM_SABOTAGES,
};

#endif
