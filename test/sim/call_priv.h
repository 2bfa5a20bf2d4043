/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by call.c, line.c and line_act.c. */
#ifndef URN_SIM_CALL_PRIV_H
#define URN_SIM_CALL_PRIV_H

#include "call.h"

enum line_kind { LINE_ASKS, LINE_ANSWERS, LINE_GUEST, LINE_LOOKS, LINE_TELLS };

enum line_state {
	LINE_ASKED,    /* asker: waits for the answer */
	LINE_ANSWER,   /* answerer: must answer, at `due` */
	LINE_ACCEPTED, /* answerer: has accepted */
	LINE_REPLIED,  /* asker: must say that it is ready, at `due` */
	LINE_UP,
	LINE_PARTS,    /* must agree to the end, at `due` */
	LINE_ENDS,     /* waits for the end */
	LINE_OVER,
};

enum call_state { CALL_WAITS, CALL_ASKS, CALL_TALKS, CALL_ENDS, CALL_OVER };

/* The message that private data belongs to: each message has bytes of its own. */
enum sim_says {
	SIM_SAYS_REQ,
	SIM_SAYS_REP,
	SIM_SAYS_RTU,
	SIM_SAYS_REJ,
	SIM_SAYS_DREQ,
	SIM_SAYS_DREP,
	SIM_SAYS_SIDR,
	SIM_SAYS_SIDR_REP,
};

struct sim_line {
	struct sim_client *client;
	uint32_t id;
	uint32_t token;
	uint8_t kind, state;
	uint32_t seen;           /* bit: an event of this type came */
	uint64_t due;            /* ns */
	struct sim_call *call;   /* NULL: none */
	struct sim_end *end;     /* NULL: none */
};

/* One attempt of a call. */
struct sim_token {
	struct sim_call *call;
	struct sim_line *asks, *answers;
	uint32_t qpn, psn;       /* the asker's */
	uint32_t reply_qpn, reply_psn;
	uint32_t requests;       /* times that the listener was told */
	uint64_t refused_at;     /* ns: time at which the answerer refused or let go; 0: it did not */
	bool sure;               /* MAC addresses are known, and retries suffice: the attempt gets through */
	bool wrong;              /* nobody listens for its service */
	bool refuse, refuse_reply; /* the request, the reply must be refused */
	bool refused_reply;      /* the reply was refused */
	bool accepted, up;
	bool gave_up[2];         /* asker, answerer: nobody answered, or the program let go */
};

struct sim_call {
	struct sim *s;
	struct sim_rng rng;
	struct sim_node *node[2];
	struct sim_end *end[2];  /* NULL: to be made */
	uint32_t psn[2];
	uint32_t token;          /* token of the last attempt */
	uint32_t last_qpn;
	uint32_t tries, rounds, pairs;
	bool wrong, hasty;
	uint64_t due, done_since; /* ns */
	uint8_t state;           /* enum call_state */
};

struct sim_calls {
	struct sim_call call[SIM_CALLS];
	unsigned int calls;
	struct sim_line line[SIM_LINES];
	unsigned int lines;
	struct sim_token token[SIM_TOKENS];
	unsigned int tokens;
	struct sim_rng rng[SIM_NODES];
	uint32_t looks[SIM_NODES]; /* look-ups of services still to come */
	uint64_t look_due[SIM_NODES];
};

extern struct sim_calls sim_calls; /* the calls of the run */

/* ---- call.c */

struct sim_token *sim_token_new(struct sim *s, uint32_t *number);
/* True when both nodes know each other's MAC addresses. */
bool sim_are_known(const struct sim_node *a, const struct sim_node *b);
void sim_call_up(struct sim_call *c);
void sim_call_failed(struct sim_call *c);

/* ---- line_act.c */

struct sim_line *sim_line_new(struct sim_client *c, uint32_t id, enum line_kind kind, uint32_t token);
/* Fill in a message's private data; returns its bytes, at most room. */
uint8_t sim_data(uint8_t *out, uint32_t room, uint32_t token, enum sim_says says);
/* The attempt of a line; rogues share one attempt. */
struct sim_token *sim_line_token(const struct sim_line *l);
/* State of the line's id in the dataplane. */
enum urn_cm_state sim_line_state(const struct sim_line *l);
/* Time at which a program answers an event of now, ns. */
uint64_t sim_answer_at(struct sim *s);
/* Give the answer that is due. */
void sim_line_answer(struct sim_line *l);
/* The line is up: its queue pair may post. */
void sim_line_talk(struct sim_line *l);
/* End the line's queue pair, if it has one. */
void sim_line_end(struct sim_line *l);
/* Destroy the line's id, as its program does. */
void sim_line_let_go(struct sim_line *l);
/* End the connection, as its program does; forget: destroy the id instead. */
void sim_line_hang_up(struct sim_line *l, bool forget);

/* ---- line.c */

/* Take events, and give answers that are due. */
void sim_lines_turn(struct sim_node *n, uint64_t *due);

#endif
