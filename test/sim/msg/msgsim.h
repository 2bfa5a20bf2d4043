/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-msg-sim: simulated nodes that send messages (doorbell.md DB-1 to DB-9).
 *
 *   boxes ─► register sets ─► flows ─► ... ─► flows ─► rings ─► boxes
 *
 *   main.c    the load of the nodes
 *   box.c     a box is one life of a register set with its program: it sends, reads, sleeps, closes
 *   judge.c   the oracle: each message has its answer, and the answer tells the truth
 *   plan.c    the scenarios
 *   sabotage.c  bugs that a broken product could have
 */
#ifndef URN_MSGSIM_H
#define URN_MSGSIM_H

#include "../nodes/nodes.h"

enum {
	MS_HEAD = 16,	/* bytes at the start of a message: number of the mail, twice */
	MS_GUARD = 256, /* bytes behind an arena that nobody writes */
};

extern const struct ms_scenario ms_scenarios[];
extern const unsigned int ms_scenario_count;

/* A message. */
struct ms_mail {
	uint32_t from;        /* box */
	uint32_t to;          /* box that was meant; UINT32_MAX: none */
	uint8_t node[16];     /* target node */
	uint64_t qid;         /* target queue */
	uint32_t len, seq;
	uint16_t retries;
	uint8_t kinds;        /* kinds of the retry policy */
	uint8_t code;         /* answer; 0: none yet */
	bool bad;             /* a doorbell that makes no sense */
	bool orphan;          /* its box ended before the answer */
	uint8_t came;         /* times that it was delivered */
	uint64_t rung, bound; /* ns: when; and until when it is to be answered */
	uint64_t answered;    /* ns; valid with code */
	uint64_t refused;     /* refusals of the target box when it was rung */
};

/* One life of a register set, with its program. */
struct ms_box {
	struct urn_msg_rset *set;      /* NULL: closed */
	struct urn_abi_msg_set *regs; /* owner; NULL after it was closed */
	struct urn_tp_share *share;   /* share of its client */
	uint32_t id, node;            /* index of the box; of its node */
	uint32_t arena, ring, buffer; /* bytes; offset of the ring; bytes of the send buffer before it */
	uint64_t qid;
	uint32_t name;                /* 0: none */
	uint32_t entries, entry_size;
	uint32_t head, seq;
	uint32_t mail;                /* on its way; UINT32_MAX: none */
	uint64_t answer;              /* value of sstat that was seen last */
	uint64_t refused;             /* refusals when it was closed */
	uint64_t opened, closed;      /* ns; MS_NEVER: not yet */
	uint64_t send_at, read_at;    /* ns: next actions */
	uint64_t gap;                 /* ns between looks, at most */
	uint8_t permit_bits;
	uint8_t permit;               /* last byte of the GID that is permitted, with permit_bits */
	bool own_only, sleeps, armed, scribbles, receives;
};

/* ---- box.c */

/* Open a box in a free place of a node. */
void ms_box_open(struct ms_node *n, unsigned int place);
/* Close a box; messages in its ring are judged before. place: of the box among those of its node */
void ms_box_close(struct ms_node *n, unsigned int place);
/* Let the programs of a node do what is due. */
void ms_boxes_step(struct ms_node *n);
/* An event of ARM INTR came for the set in a slot. */
void ms_box_woken(struct ms_node *n, uint64_t cookie);
static inline struct ms_box *
ms_box_at(const struct ms_node *n, unsigned int place)
{
	return n->box[place] == UINT32_MAX ? NULL : &n->w->box[n->box[place]];
}

/* ---- judge.c */

/* The bytes of a mail. */
void ms_mail_fill(uint8_t *to, uint32_t mail, uint32_t len);
/* An entry of a ring is read. */
void ms_judge_entry(struct ms_world *w, struct ms_box *b, const uint8_t *entry);
/* A mail was answered. */
void ms_judge_answer(struct ms_world *w, struct ms_box *b, uint32_t mail, uint8_t code);
/* Messages that are too old without an answer are a failure. */
void ms_judge_stalls(struct ms_world *w);
/* All boxes are closed: look at every mail. */
void ms_judge_end(struct ms_world *w);

/* ---- sabotage.c */

/* Name and text of a sabotage; ms_load.sabotage. */
const char *ms_sabotage_name(unsigned int i, const char **text);
/* A node had its turn: break something, if the run is to. */
void ms_sabotage_turn(struct ms_node *n);

#endif
