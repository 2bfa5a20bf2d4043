/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of OFFER (doc/inside/failover.md, "Healing") for spin: two ends make one path anew after its loss, and use it
 * again. The steps have the names of enum urn_sess_heal_step, and inlines those of functions in lib/session/heal.c and
 * lib/verbs/session/heal.c. What the ends do on their other paths is not modelled: failover.pml has REPORT and MIGRATED.
 *
 * An offer that was sent stays in flight until it is heard or lost: it comes in any order, and may come REPEATS times
 * more. The offers of one end in flight are ROOM at most, and others are lost. An end repeats its offer only when the
 * other end would make a step. So all executions are finite: one that is not is an error, as is an end without GOAL.
 *
 * Defines: FAILS (adapters that die, and paths that fail at one end), LOSSES, REPEATS, ROOM, and mutations NO_SEEN,
 * NO_BOUND, NO_ROUND, TO_ANY, NO_LEAVE, NO_PROBE, NO_REPEAT, NO_KNOWN, ALWAYS, NO_LOST.
 */
#ifndef FAILS
#define FAILS 1
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef ROOM
#define ROOM 2
#endif

#define ROUNDS 16		 /* rounds of an end are below this */
#define TRUSTED 1		 /* flags of an offer */
#define KNOWN 2
#define LOST 4

mtype = { OLD, FORGED, AGREED, TELL, CONNECT, REMAKE, REMAKE_CONNECT };

/* Ends: struct urn_sess_heal, and the fields of struct urn_sv_heal. */
byte own[2], to[2], seen[2], bound[2];
bool agreed[2];
bool fresh[2];			 /* made anew, and not trusted yet */
bool knows[2];			 /* peer_trusts: the peer counts the path as alive */
bool peer_lost[2];		 /* the peer has lost the end that this one knows of, for good */
bool lost[2];			 /* this end was lost since it was made */
bool trusts[2];			 /* alive: counts for the machine */
bool used[2];			 /* in use, or not drained yet */
bool leaves[2];			 /* ... and about to be left */
bool there[2];			 /* queue pairs exist */
bool broken[2];			 /* the adapter died */

/* REPORTs on the other paths, by their sender: that the path was left. */
bool tells[2], again[2];

/* Offers in flight, by sender: 0, or 1 + flags + 8 * (to + ROUNDS * round). */
int flight[2 * ROOM];

/* The end has heard by an offer that the other one has lost the end that it knows of, and not trusted another since. */
bool heard_lost[2];

byte fails, losses, repeats;

#define AT(e, i) flight[(e) * ROOM + (i)]
#define O_FLAGS(m) (((m) - 1) & 7)
#define O_TO(m) ((((m) - 1) >> 3) % ROUNDS)
#define O_ROUND(m) ((((m) - 1) >> 3) / ROUNDS)
#define FLAGS(e) ((trusts[e] -> TRUSTED : 0) + (knows[e] -> KNOWN : 0) + (lost[e] -> LOST : 0))
#define OFFER(e) (1 + FLAGS(e) + 8 * (to[e] + ROUNDS * own[e]))
#if ROOM == 2
#define IN_FLIGHT(e, m) (AT(e, 0) == (m) || AT(e, 1) == (m))
#else
#define IN_FLIGHT(e, m) (AT(e, 0) == (m) || AT(e, 1) == (m) || AT(e, 2) == (m))
#endif
#define FULL(e) (AT(e, ROOM - 1) != 0)

/* Both ends are connected to each other, and their adapters live. */
#define MEET (own[0] == to[1] && own[1] == to[0])
#define CARRIES (MEET && there[0] && there[1] && !broken[0] && !broken[1])

/* ---- lib/session/heal.c: urn_sess_heal_judge() */

#ifdef NO_SEEN
#define GONE(e, r) false
#else
#define GONE(e, r) ((r) < seen[e])
#endif
#ifdef NO_BOUND
#define OVERTAKEN(e, r, t) false
#else
#define OVERTAKEN(e, r, t) ((r) == seen[e] && (t) == 0 && bound[e] != 0)
#endif
#ifdef TO_ANY
#define UNCONNECTED(e, t) CONNECT
#else
#define UNCONNECTED(e, t) ((t) == 0 || (t) == own[e] -> CONNECT : TELL)
#endif
#define SAME(e, t) ((t) == own[e] -> AGREED : TELL)
#ifdef NO_ROUND
#define NEWER(e, t) AGREED
#else
#define NEWER(e, t) ((t) == 0 -> REMAKE_CONNECT : REMAKE)
#endif
#define JUDGE(e, r, t) \
	((r) == 0 || (t) > own[e] -> FORGED : (GONE(e, r) || OVERTAKEN(e, r, t) -> OLD : \
	 (to[e] == 0 -> UNCONNECTED(e, t) : (to[e] == (r) -> SAME(e, t) : NEWER(e, t)))))

/* ---- lib/verbs/session/heal.c */

inline offer(e)
{
	if
	:: there[e] && !IN_FLIGHT(e, OFFER(e)) && !FULL(e) ->
		if
		:: AT(e, 0) == 0 -> AT(e, 0) = OFFER(e)
#if ROOM == 3
		:: AT(e, 0) != 0 && AT(e, 1) != 0 -> AT(e, 2) = OFFER(e)
#endif
		:: AT(e, 0) != 0 && AT(e, 1) == 0 -> AT(e, 1) = OFFER(e)
		fi
	:: else /* no queue pair to tell of; on its way already; or lost */
	fi
}

/* An offer of end `who` leaves the wire. */
inline gone(who, at)
{
	AT(who, at) = 0;
	if
	:: (at) == 0 -> AT(who, 0) = AT(who, 1); AT(who, 1) = 0
	:: else
	fi
#if ROOM == 3
	;
	if
	:: (at) <= 1 -> AT(who, 1) = AT(who, 2); AT(who, 2) = 0
	:: else
	fi
#endif
}

/* The path is not alive for this end any more. */
inline down(e)
{
	trusts[e] = false;
	lost[e] = true;
	heard_lost[1 - e] = false;
	if
	:: used[e] && !leaves[e] -> leaves[e] = true; tells[e] = true
	:: else
	fi;
	if
	:: !broken[e] -> offer(e) /* urn_sv_heal_lost() */
	:: else
	fi
}

inline remake(e)
{
	assert(!used[e]); /* nobody takes a queue pair from the machine that uses it */
	own[e]++;
	assert(own[e] < ROUNDS);
	to[e] = 0;
	agreed[e] = false;
	fresh[e] = true;
	there[e] = true;
	knows[e] = false;
	peer_lost[e] = false;
	lost[e] = false
}

/* Both ends are connected to each other. f: flags of the peer's offer */
inline agree(e)
{
	agreed[e] = true;
	/* an end that believes in the other one is right, unless that one was made anew since */
	assert(to[e] != own[1 - e] || to[1 - e] == own[e]);
#ifndef NO_LOST
	peer_lost[e] = peer_lost[e] || ((f) & LOST);
#endif
	knows[e] = ((f) & TRUSTED) && !peer_lost[e];
	if
#ifdef ALWAYS
	:: true -> offer(e)
#elif defined(NO_KNOWN)
	:: trusts[e] -> offer(e)
	:: else
#else
	:: trusts[e] && !((f) & KNOWN) -> offer(e)
	:: else
#endif
	fi
}

/* r, t, f: round, to and flags of the peer's offer, as all below */
inline connect(e)
{
	if
	:: fresh[e] && !used[e] ->
		assert(to[e] == 0); /* an end is connected once */
		to[e] = r;
		seen[e] = r;
		agreed[e] = false;
		peer_lost[e] = false;
		if
		:: (t) == own[e] -> agree(e)
		:: else
		fi;
		offer(e)
	:: else
	fi
}

#ifdef NO_LEAVE
#define MAY_REMAKE(e) true
#else
#define MAY_REMAKE(e) (!used[e])
#endif

/* urn_sv_heal_heard(), and urn_sv_heal_step() */
inline hear(e)
{
	r = O_ROUND(m);
	t = O_TO(m);
	f = O_FLAGS(m);
	step = JUDGE(e, r, t);
	assert(step != FORGED);
	if
	:: !broken[e] && r > seen[e] -> seen[e] = r; bound[e] = t
	:: !broken[e] && r == seen[e] && t != 0 -> bound[e] = t
	:: else
	fi;
	if
	:: (f & LOST) && r == own[1 - e] && lost[1 - e] -> heard_lost[e] = true
	:: else
	fi;
	if
	:: broken[e] || step == OLD
	:: !broken[e] && step == AGREED -> agree(e)
	:: !broken[e] && step == TELL -> offer(e)
	:: !broken[e] && step == CONNECT -> connect(e)
	:: !broken[e] && (step == REMAKE || step == REMAKE_CONNECT) ->
		if
		:: trusts[e] -> down(e)
		:: else
		fi;
		if
		:: MAY_REMAKE(e) ->
			remake(e);
			if
			:: step == REMAKE_CONNECT -> connect(e)
			:: else -> offer(e)
			fi
		:: else
		fi
	fi;
	m = 0;
	r = 0;
	t = 0;
	f = 0;
	step = 0
}

/* Hearing what end 1 - e offers now would make a step of end e, or of the other one by its answer. */
#define STEP(e) JUDGE(e, own[1 - (e)], to[1 - (e)])
#define MOVES(e) \
	(!broken[e] && \
	 ((STEP(e) == CONNECT && fresh[e] && !used[e]) || \
	  ((STEP(e) == REMAKE || STEP(e) == REMAKE_CONNECT) && (trusts[e] || !used[e])) || \
	  (STEP(e) == AGREED && (!agreed[e] || (!knows[e] && trusts[1 - (e)] && !peer_lost[e])))))
#define ANSWERS(e) \
	(!broken[e] && there[e] && !FULL(e) && !IN_FLIGHT(e, OFFER(e)) && \
	 ((STEP(e) == TELL && MOVES((1 - (e)))) || \
	  (STEP(e) == AGREED && trusts[e] && !knows[1 - (e)] && !peer_lost[1 - (e)])))
#define COUNTS(e) (MOVES(e) || ANSWERS(e))

/* An offer is due: urn_sv_heal_path(). */
#define DUE(e) \
	(there[e] && !broken[e] && !used[e] && \
	 ((trusts[e] && !knows[e]) || (!trusts[e] && fresh[e] && !agreed[e])))

/* The end notices that its path carries nothing. A path that is not in use is not looked at, but for its own adapter. */
#define NOTICES(e) (trusts[e] && (broken[e] || (used[e] && !CARRIES)))

proctype end_of(byte e)
{
	int m;
	byte r, t, f;
	mtype step;

	do
	:: atomic { AT(1 - e, 0) -> m = AT(1 - e, 0);
		if
		:: gone(1 - e, 0)
		:: repeats < REPEATS -> repeats++
		fi;
		hear(e) }
	:: atomic { AT(1 - e, 1) -> m = AT(1 - e, 1);
		if
		:: gone(1 - e, 1)
		:: repeats < REPEATS -> repeats++
		fi;
		hear(e) }
#if ROOM == 3
	:: atomic { AT(1 - e, 2) -> m = AT(1 - e, 2);
		if
		:: gone(1 - e, 2)
		:: repeats < REPEATS -> repeats++
		fi;
		hear(e) }
#endif
	:: d_step { losses < LOSSES && AT(e, 0) -> gone(e, 0); losses++ }
	:: d_step { losses < LOSSES && AT(e, 1) -> gone(e, 1); losses++ }
	/* REPORT: the machine repeats it until it is heard, and it may come once more */
	:: d_step { tells[1 - e] ->
		tells[1 - e] = false;
		again[1 - e] = repeats < REPEATS;
		knows[e] = false; /* urn_sv_heal_reported() */
		if
		:: used[e] && !leaves[e] -> trusts[e] = false; lost[e] = true; leaves[e] = true; tells[e] = true
		:: else
		fi }
	:: d_step { again[1 - e] && repeats < REPEATS -> again[1 - e] = false; repeats++; knows[e] = false }
	:: d_step { used[e] && leaves[e] -> used[e] = false; leaves[e] = false } /* fenced and drained */
	:: d_step { NOTICES(e) -> down(e) }
	/* the adapter is begun anew */
	:: d_step { broken[e] && !trusts[e] && !used[e] -> broken[e] = false; there[e] = false; fresh[e] = false }
	/* urn_sv_heal_dead() */
	:: d_step { !trusts[e] && !used[e] && !broken[e] && (!fresh[e] || (agreed[e] && !CARRIES && !broken[1 - e])) ->
		remake(e);
		offer(e) }
	/* urn_sv_heal_carried() */
	:: d_step { !trusts[e] && fresh[e] && agreed[e] &&
#ifndef NO_PROBE
		    CARRIES &&
#endif
		    !broken[e] ->
		assert(MEET); /* no end trusts a path that leads to an end that is gone */
		trusts[e] = true;
		fresh[e] = false;
		heard_lost[1 - e] = false;
		offer(e) }
#ifndef NO_REPEAT
	:: d_step { DUE(e) && !IN_FLIGHT(e, OFFER(e)) && !FULL(e) && COUNTS(1 - e) -> offer(e) }
#endif
	/* urn_sv_fail_back(): both ends choose the path if both count it as alive */
	:: d_step { trusts[e] && knows[e] && !broken[e] && !used[0] && !used[1] && !tells[0] && !tells[1] ->
		if
		:: trusts[1 - e] ->
			assert(MEET);
			used[0] = true;
			used[1] = true;
			again[0] = false;
			again[1] = false
		:: else ->
			assert(!heard_lost[e]); /* the word of a loss is not undone by an older one */
			knows[e] = false /* the peer's REPORT says so */
		fi }
	od
}

/* Failures: of an adapter, or of a path at one end alone. */
proctype faults()
{
	byte e;

	do
	:: fails < FAILS ->
		if
		:: d_step { !broken[0] -> broken[0] = true; fails++ }
		:: d_step { !broken[1] -> broken[1] = true; fails++ }
		:: d_step { trusts[0] -> down(0); fails++ }
		:: d_step { trusts[1] -> down(1); fails++ }
		fi
	:: else -> break
	od
}

/* When nothing can happen any more, the path is in use again. */
#define GOAL (used[0] && used[1] && trusts[0] && trusts[1] && MEET)

proctype judge_at_the_end()
{
	timeout -> assert(GOAL)
}

init {
	atomic {
		own[0] = 1;
		own[1] = 1;
		to[0] = 1;
		to[1] = 1;
		seen[0] = 1;
		seen[1] = 1;
		bound[0] = 1;
		bound[1] = 1;
		agreed[0] = true;
		agreed[1] = true;
		knows[0] = true;
		knows[1] = true;
		trusts[0] = true;
		trusts[1] = true;
		used[0] = true;
		used[1] = true;
		there[0] = true;
		there[1] = true;
		run end_of(0);
		run end_of(1);
		run faults();
		run judge_at_the_end()
	}
}
