/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-am-sim: simulated nodes that read and write each other's memory, and send active messages
 * (AM-1 to AM-4, AM-8, AM-9). The nodes, wires and the clock are those of nodes.h.
 *
 *   ends ─► rings of commands ─► endpoints ─► flows ─► ... ─► flows ─► memory of ends
 *   talkers ─► the library's active messages ─► register sets ─► flows ─► ... ─► handlers
 *
 *   main.c      the load of the nodes
 *   plan.c      the scenarios
 *   end.c       an end is one life of an endpoint with its program and its memory
 *   region.c    an end's memory regions, and regions that peers reach: they come and go
 *   post.c      commands: choice of operation, target and range
 *   event.c     events of a ring, and operations that lose an end
 *   shadow.c    memory with a copy of what must be in it
 *   judge.c     the oracle of operations
 *   network.c   the oracle of the network: failures of flows, and who may blame them
 *   dev.c       a dataplane for the library: control calls and doorbells of a node
 *   talk.c      a talker is one life of an endpoint of the library with its program
 *   hear.c      the oracle of active messages
 *   word.c      the oracle of atomic operations and fences
 *   sabotage.c  bugs that are imitated, so that the oracles are seen to notice (sabotage.h)
 *   sabotage_tags.c  ... those of tags and early data
 *   sabotage_anew.c  ... what is lost at a node that was restarted
 *
 * The oracle knows the rules of doc/inside/active-messages.md and the numbers that programs see. No
 * function of dataplane/am is called to find out what is right.
 */
#ifndef URN_AMSIM_H
#define URN_AMSIM_H

#include "../nodes/nodes.h"

#include <urnic/am.h>

enum {
	AS_ENDS = 8,		 /* endpoints of a node at a time */
	AS_ZONES = 4,		 /* zones of an end; zone 0 has the local bytes of its operations */
	AS_SPACE = AS_ZONES - 1, /* zone that is reached without a key */
	AS_WORD_ZONE =
		AS_ZONES, /* zone of the words of atomic operations; stays as long as its end */
	AS_WORDS = 8,	  /* words of 8 or 4 bytes in slots of 8 */
	AS_PARTS = 6,	  /* ranges of a region */
	AS_GUARD = 192,	  /* bytes between zones that nobody writes */
	AS_RANGES = 64,	  /* room for ranges of an endpoint */
	AS_TALKERS = 3,	  /* programs of a node that send active messages at a time */
	AS_TALKER_PLACES = 94, /* sources of each */
	AS_NODES = 8,	       /* nodes of a run, at most */
	AS_NONE = -1,	       /* no end, no zone */
};
_Static_assert((int)AS_ENDS + AS_TALKERS * AS_TALKER_PLACES <= MS_SETS, "places of a node");

/* X(id, name): figures of a run */
/* clang-format off */
#define AS_STATS(X) \
	X(WRITES, "writes") \
	X(READS, "reads") \
	X(WRONG, "wrong commands") \
	X(REVOKED, "revoked") \
	X(FROZEN, "revoked midway") \
	X(LATE, "may be there") \
	X(BAD_KEY, "bad-key") \
	X(RANGE, "range") \
	X(RIGHTS, "rights") \
	X(LOCAL, "local") \
	X(BUSY, "busy") \
	X(NO_REPLY, "no-reply") \
	X(RETRIES, "retries for room") \
	X(TAGGED, "tagged") \
	X(ATOMICS, "atomics") \
	X(REQUESTS, "requests") \
	X(REPLIES, "replies") \
	X(FAILURES, "failures") \
	X(BROKEN, "sabotages")
/* clang-format on */

enum as_stat {
#define X(id, name) AS_##id,
	AS_STATS(X)
#undef X
		AS_STAT_COUNT,
};
_Static_assert((int)AS_STAT_COUNT < (int)MS_MORE, "figures of a load");

/* Memory, and what must be in it. Offsets are bytes from its start. */
struct as_mem {
	uint8_t *at;   /* the memory; owner */
	uint8_t *was;  /* bytes that must be there; owner */
	uint8_t *busy; /* by byte: AS_WRITER: an operation writes it; else operations that read it;
			  owner */
	uint32_t len;
};

enum { AS_WRITER = 255 };

/* A range of a region: offsets in the end's memory. */
struct as_part {
	uint32_t at, len;
};

/* A piece of an end's memory, with memory regions below and perhaps a region above. */
struct as_zone {
	uint32_t at, len;
	uint32_t split;	   /* bytes of the first of two memory regions; len: there is one */
	uint32_t lkey[2];  /* 0: not registered */
	bool there;	   /* a region is above */
	bool space;	   /* ... that is reached without a key */
	uint32_t access;   /* its rights */
	uint64_t key, old; /* its key; key of the region before */
	uint32_t parts;
	struct as_part part[AS_PARTS];
	bool never;    /* packets without a key may come yet: no region is declared any more */
	uint32_t late; /* writes that may come yet although their operation ended */
};

/* One life of an endpoint, with its program. */
struct as_end {
	uint32_t id, node, place;
	struct urn_am_ep *ep;	    /* NULL: closed */
	struct urn_abi_am_ep *regs; /* owner */
	uint64_t qid;
	uint32_t pd, entries;
	uint64_t iova; /* address of the first byte of its memory */
	struct as_mem mem;
	struct as_zone zone[AS_ZONES + 1];
	uint64_t first[AS_WORDS], last[AS_WORDS]; /* values of words at its start and end */
	uint32_t fence;				  /* operation with the last fence; 0: none */
	uint32_t commands, events;		  /* written; read */
	uint32_t under;				  /* operations without an event */
	uint64_t post_at, read_at;		  /* ns: next actions */
	uint64_t progress;	 /* ns: when an event was read last, or the first command posted */
	uint64_t opened, closed; /* ns; MS_NEVER: not yet */
	bool unread;		 /* the program leaves its events alone for long */
};

/* Part of an operation's target that may be reached. */
enum as_reach { AS_REACH_NONE, AS_REACH_SOME, AS_REACH_ALL };

/* An operation. */
struct as_op {
	uint32_t id;
	uint32_t from;		/* end */
	int32_t to, zone;	/* end and its zone; AS_NONE: none */
	int32_t node;		/* target node; AS_NONE: none */
	uint8_t op, way, every; /* those of the command */
	uint8_t reach;		/* enum as_reach */
	uint8_t code;		/* code of the event; valid with ended */
	uint32_t len;
	uint32_t remote, local;	 /* offsets in the memories of `to` and `from`; valid with has_* */
	uint32_t can;		 /* bits by enum urn_am_code: these codes would be true */
	uint32_t chunk;		 /* bytes that are moved or not, as a whole */
	uint32_t other[2];	 /* ... perhaps these instead, as node and network carry them */
	uint64_t posted;	 /* ns */
	uint64_t bytes;		 /* bytes by the event */
	uint8_t *want;		 /* read: bytes that are to come; owner */
	struct as_zone ranges;	 /* zone when it was posted: a later region there has another key;
				    valid with AS_REACH_SOME */
	uint32_t sure, perhaps;	 /* bytes that were new when the memory was looked at last; bytes
				    that cannot be told */
	uint32_t word;		 /* atomic operation: index of the word */
	uint64_t value, compare; /* operands, likewise */
	bool unknown;		 /* likewise: nobody knows whether it was carried out */
	uint32_t fence;		 /* operations of its end before this one end before it starts */
	bool sane;		 /* the initiator has nothing against it */
	bool tried;		 /* ... or finds out when bytes are sent, maybe after the target */
	bool has_remote, has_local; /* its ranges are reserved */
	bool ended, orphan;	    /* it has its event; its end was closed before */
	bool frozen;		    /* the target's memory cannot change by it any more */
	bool settled;		    /* likewise, the local memory */
};

struct as_dev;

/* One life of an endpoint of the library, with its program. */
struct as_talker {
	uint32_t id, node, place;
	struct as_dev *dev;	    /* its dataplane; NULL: closed; owner */
	struct urn_am_endpoint *ep; /* NULL: closed */
	struct urn_am_address address;
	uint32_t payload; /* bytes, at most */
	uint32_t open;	  /* requests without a function called */
	uint32_t silent;  /* ... of which the library says that they have ended */
	uint32_t dropped; /* failures that were accepted as requests that its library dropped */
	uint64_t closed;  /* ns; MS_NEVER: not yet */
	uint64_t send_at, progress_at, look_at; /* ns: next actions */
	bool slow;				/* the program seldom runs its handlers */
};

/* A request. */
struct as_request {
	uint32_t id, from, to; /* talkers */
	uint32_t handler;      /* enum as_handler */
	uint32_t len;	       /* bytes of payload */
	uint64_t number;       /* the library's */
	uint64_t posted;       /* ns */
	uint8_t came;	       /* times that its handler ran */
	bool replied;	       /* the handler replied */
	bool ended;	       /* a function was called */
	bool orphan;	       /* its talker was closed before */
	bool never;	       /* it failed, and may not come any more */
};

/* The flows from a node to another. */
struct as_flow {
	uint64_t failed_at, restarted_at; /* ns: last failure, with any code and with RESTARTED; 0:
					     none */
};

struct as_sim {
	struct as_flow flow[AS_NODES][AS_NODES]; /* from, to */
	struct as_end *end;
	uint32_t ends, end_room;
	struct as_op *op;  /* plan.messages */
	uint32_t ops;	   /* operations that were posted */
	uint32_t first_op; /* all operations before have ended, and left nothing behind */
	uint8_t *scratch;  /* bytes of an operation */
	uint32_t scratch_len;
	uint64_t revoke_at;	       /* ns */
	int32_t at[MS_NODES][MS_SETS]; /* ends by node and place */
	bool broken;		       /* something was broken on purpose */
	uint32_t deaf;		       /* end whose doorbells are lost; valid with broken */
	struct as_talker *talker;
	uint32_t talkers, talker_room;
	struct as_request *request; /* plan.messages */
	uint32_t requests;
	int32_t talker_at[MS_NODES][AS_TALKERS]; /* talkers by node and place */
};

static inline struct as_end *
as_end_at(const struct ms_node *n, unsigned int place)
{
	int32_t i = n->w->as->at[n->id][place];

	return i == AS_NONE ? NULL : &n->w->as->end[i];
}

/* ---- shadow.c */

/* Make memory with any bytes. */
void as_mem_make(struct ms_world *w, struct as_mem *m, uint32_t len, uint32_t seed);
void as_mem_free(struct as_mem *m);
/* Reserve a range to be read or written. returns: false: others have some of it */
bool as_mem_take(struct as_mem *m, uint32_t off, uint32_t len, bool write);
void as_mem_give(struct as_mem *m, uint32_t off, uint32_t len, bool write);
/* The program writes bytes of its own. */
void as_mem_fill(struct as_mem *m, uint32_t off, uint32_t len, uint32_t seed);
/* Take the bytes of the range for right. */
void as_mem_accept(struct as_mem *m, uint32_t off, uint32_t len);
/* Fail when a byte outside of ranges that are being written has changed. */
void as_mem_check(struct ms_world *w, const struct as_mem *m, const char *what, uint32_t id);
/* The same for a range. */
void as_mem_check_range(struct ms_world *w, const struct as_mem *m, uint32_t off, uint32_t len,
			const char *what, uint32_t id);

/* ---- end.c */

void as_end_open(struct ms_node *n, unsigned int place);
void as_end_close(struct ms_node *n, unsigned int place);
void as_end_step(struct ms_node *n, struct as_end *e);
/* Address of an offset in the end's memory. */
static inline uint64_t
as_address(const struct as_end *e, uint32_t off)
{
	return e->iova + off;
}

/* ---- region.c */

/* Register memory of a zone, and make a region above all but zone 0. */
void as_zone_make(struct ms_node *n, struct as_end *e, unsigned int zone);
/* Take memory regions of a zone back; its region goes first, or stays without memory. */
void as_zone_unmap(struct ms_node *n, struct as_end *e, unsigned int zone);
/* Let a program take something back, or make it anew. */
void as_revoke_one(struct ms_world *w);
/* True when all bytes lie in ranges of the zone's region. */
bool as_zone_holds(const struct as_zone *z, uint32_t off, uint32_t len);

/* ---- post.c */

/* Post a command. returns: false: not now */
bool as_post(struct ms_node *n, struct as_end *e);

/* ---- event.c */

/* Read events, at most `most`. returns: number of them */
uint32_t as_events_read(struct ms_node *n, struct as_end *e, uint32_t most);

/* ---- judge.c */

/* Find out which codes would be true, and which bytes may be moved. c: command of the operation */
void as_judge_post(struct ms_world *w, struct as_op *o, const struct urn_abi_am_cmd *c);
void as_judge_event(struct ms_world *w, struct as_op *o, const struct urn_abi_am_event *ev);
/* The end of an operation goes, with its local memory. */
void as_judge_orphan(struct ms_world *w, struct as_op *o);
/* A zone's region or memory goes: nothing changes there from now on. code: true from now on */
void as_judge_revoke(struct ms_world *w, struct as_end *e, unsigned int zone, uint8_t code);
/* An endpoint goes. */
void as_judge_close(struct ms_world *w, struct as_end *e);
void as_judge_look(struct ms_world *w);
void as_judge_end(struct ms_world *w);

/* ---- network.c */

void as_network_open(struct ms_world *w);
/* True when a flow from one node to the other failed since a time, ns; or because the other had
 * been started anew. */
bool as_flow_failed(const struct ms_world *w, uint32_t from, uint32_t to, uint64_t since);
bool as_flow_restarted(const struct ms_world *w, uint32_t from, uint32_t to, uint64_t since);
/* True when a flow from the node to any node failed since a time. */
bool as_any_failed(const struct ms_world *w, uint32_t from, uint64_t since);
/* True when the node was down since a time. */
bool as_was_down(const struct ms_world *w, uint32_t node, uint64_t since);

/* ---- dev.c */

/* Make a dataplane for a program: the sources of the node from a place on. */
struct as_dev *as_dev_new(struct ms_node *n, unsigned int first, uint32_t bytes);
void as_dev_free(struct as_dev *d);
struct urn_msg_dev *as_dev_msg(struct as_dev *d);
/* All sources of the program are open. */
void as_dev_opened(struct as_dev *d);
/* The source at a place; NULL: none. */
struct urn_source *as_dev_source(const struct as_dev *d, unsigned int place);
/* The time that the library sees; 0: that of the system. */
void as_clock(uint64_t ns);

/* ---- talk.c */

void as_talker_open(struct ms_node *n, unsigned int place);
void as_talker_close(struct ms_node *n, unsigned int place);
void as_talker_step(struct ms_node *n, struct as_talker *t);
static inline struct as_talker *
as_talker_at(const struct ms_node *n, unsigned int place)
{
	int32_t i = n->w->as->talker_at[n->id][place];

	return i == AS_NONE ? NULL : &n->w->as->talker[i];
}

/* ---- hear.c */

/* Handlers of requests have the numbers below, replies the last. */
enum as_handler {
	AS_H_REPLY = 1, /* replies */
	AS_H_MUTE,	/* does not */
	AS_H_RULES,	/* breaks the rules of AM-1, and replies */
	AS_H_ANSWER,	/* handler of replies */
	AS_H_MISSING,	/* not registered */
};

/* Register handlers at a talker's endpoint. */
void as_hear(struct ms_world *w, struct as_talker *t);
/* Look at the requests of a talker: those that ended without a function. */
void as_hear_silent(struct ms_world *w, struct as_talker *t);
/* A talker is closed. */
void as_hear_close(struct ms_world *w, struct as_talker *t);
/* Fail when a request stands still. */
void as_hear_look(struct ms_world *w);
void as_hear_end(struct ms_world *w);

/* ---- word.c */

static inline bool
as_is_atomic(const struct as_op *o)
{
	return o->op == URN_AM_FETCH_ADD || o->op == URN_AM_SWAP || o->op == URN_AM_COMPARE_SWAP;
}
/* Note the values of an end's words. */
void as_words_open(struct ms_world *w, struct as_end *e);
void as_words_close(struct ms_world *w, struct as_end *e);
/* Choose an atomic operation on a word. */
void as_word_choose(struct ms_world *w, const struct as_end *to, struct as_op *o);
/* An atomic operation ended. */
void as_word_event(struct ms_world *w, struct as_op *o, const struct urn_abi_am_event *ev);
/* All operations have ended: look at all words. */
void as_words_judge(struct ms_world *w);
/* An operation ended: those that it waits for have ended. */
void as_fence_event(struct ms_world *w, const struct as_op *o);

/* ---- sabotage.c */

const char *as_sabotage_name(unsigned int i, const char **text);
/* An event was read. twice: set when the program sees it twice. returns: false: nobody sees it */
bool as_sabotage_event(struct ms_world *w, struct as_op *o, struct urn_abi_am_event *ev,
		       bool *twice);
/* A request came: its handler is to run so many times. */
unsigned int as_sabotage_request(struct ms_world *w);
/* A reply came: likewise; spoil: its bytes are not those that were sent. */
unsigned int as_sabotage_reply(struct ms_world *w, bool *spoil);
/* A request failed. returns: false: nobody is told */
bool as_sabotage_failure(struct ms_world *w, struct as_request *r, struct urn_am_failure *f);
/* A node has its turn. */
void as_sabotage_turn(struct ms_node *n);
/* An end rings. returns: false: nobody hears */
bool as_sabotage_rung(struct ms_world *w, const struct as_end *e);
/* A region was taken back. */
void as_sabotage_revoked(struct ms_world *w, struct as_end *e, unsigned int zone);

/* ---- plan.c */

extern const struct ms_scenario as_scenarios[];
extern const unsigned int as_scenario_count;

/* Bytes of memory in a packet with so many bytes behind the flow header (AM-4): whole lines of 64
 * bytes. more: bytes between the message's header and these */
static inline uint32_t
as_chunk(uint32_t mtu, uint32_t more)
{
	return RTE_MIN((mtu - 20 - 32 - more) & ~63u, 4096u);
}

#endif
