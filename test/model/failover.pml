/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of the fail-over protocol (doc/inside/failover.md) for spin. End 0 sends N messages to end 1 over paths that
 * die; both ends run the protocol of lib/session. The states have the names of URN_SESS_STATES, and inlines have the
 * names of functions in lib/session/machine.c.
 *
 * Control messages are bits: a message that was sent may arrive at any time, in any order and again and again, and may be
 * lost LOSSES times. A message that would be dropped makes no step. So all executions are finite, and a deadlock that is no goal, or
 * an execution that does not come to rest, is an error.
 *
 * Defines: N, SENDS (bits by message id: a Send, else a write), PATHS, FAILS, LOSSES, HEALS, DOOM (all paths may
 * die), and mutations NO_FENCE, NO_EPOCH, LESS, NO_REPEAT, NO_READY, HIGHER, NO_MAX.
 */
#ifndef N
#define N 2
#endif
#ifndef SENDS
#define SENDS 4 /* message 1 is a write, message 2 a Send */
#endif
#ifndef PATHS
#define PATHS 3
#endif
#ifndef FAILS
#define FAILS 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef HEALS
#define HEALS 0
#endif

#define EPOCHS 8
#define ALL ((1 << PATHS) - 1)
#define BIT(p) (1 << (p))
#define IS_SEND(id) ((SENDS >> (id)) & 1)
#define MSG(e, k) ((e) * EPOCHS + (k))
#define FLOWS(e) (st[e] == CONNECTED || st[e] == MIGRATED)
#define REST(e) (FLOWS(e) || st[e] == DEAD)

mtype = { CONNECTED, SLEEPING, DRAINING, REPORTED, BINDING, ANSWERED, MIGRATED, DEAD };

/* Ends: the fields of struct urn_sess_conn. */
mtype st[2];
byte epoch[2], path[2], next[2], alive[2], told[2];
bool open[2], reported[2], heard[2];
byte fenced[2];			 /* bits by path */
byte p_paths[2], p_sent[2], p_received[2]; /* the peer's REPORT */
bool p_ready[2];
byte sent, received;		 /* LAST SENT of end 0; LAST RECEIVED of end 1 */

/* The programs. */
byte posts;			 /* messages posted by the program of end 0 */
byte delivered;			 /* newest Send that the program of end 1 got */

/* Paths from end 0 to end 1: ids up to which something happened, in order. */
byte posted[PATHS], wire[PATHS], placed[PATHS], flushed[PATHS];
bool begun[PATHS];		 /* the first packet of the next Send was placed */
bool whole[PATHS];		 /* the newest message placed has no receive completion yet */
bool dead0[PATHS], dead1[PATHS]; /* adapter of the end died */

/* Control messages, by sender and epoch. */
bool report_at[2 * EPOCHS], answer_at[2 * EPOCHS], migrated_at[2 * EPOCHS];
byte r_paths[2 * EPOCHS], r_sent[2 * EPOCHS], r_received[2 * EPOCHS];
byte fails, losses, heals;
byte i_; /* scratch, always 0 between steps */

inline tell(e)
{
	r_paths[MSG(e, epoch[e])] = told[e];
	if
	:: e == 0 -> r_sent[MSG(e, epoch[e])] = sent
	:: else -> r_received[MSG(e, epoch[e])] = received
	fi
}

/* The program of end 1 gets a Send: once, in order, none left out. */
inline deliver(id)
{
	if
	:: IS_SEND(id) ->
		assert(id > delivered);
		i_ = delivered + 1;
		do
		:: i_ < id -> assert(!IS_SEND(i_)); i_++
		:: else -> break
		od;
		i_ = 0;
		delivered = id
	:: else
	fi
}

/* FO-14: headers of the left path up to the peer's LAST SENT complete receives. */
inline rebuild()
{
	do
	:: received < p_sent[1] ->
		received++;
		assert(received <= placed[path[1]]); /* a header is there, and the whole message */
		deliver(received)
#ifdef HIGHER
	:: received >= p_sent[1] && (received < placed[path[1]] || begun[path[1]]) && received < N ->
		received++;
		deliver(received);
		break
#endif
	:: else -> break
	od
}

/* FO-15: all up to the greater one are done. */
inline judge(e)
{
	if
	:: e == 0 ->
		if
#ifdef NO_MAX
		:: true
#else
		:: p_received[0] > sent -> sent = p_received[0]
		:: else
#endif
		fi
	:: else -> rebuild()
	fi
}

inline report_anew(e)
{
	reported[e] = true;
	told[e] = alive[e];
	st[e] = REPORTED;
	tell(e);
	report_at[MSG(e, epoch[e])] = true
}

inline decide(e)
{
	if
	:: !reported[e] -> told[e] = alive[e]
	:: else
	fi;
	judge(e);
	if
	:: !(told[e] & p_paths[e]) -> st[e] = DEAD
	:: else ->
		i_ = 0;
		do
		:: !(told[e] & p_paths[e] & BIT(i_)) -> i_++
		:: else -> break
		od;
		next[e] = i_;
		i_ = 0;
		if
		:: alive[e] & BIT(next[e]) -> st[e] = BINDING
		:: else ->
			epoch[e] = epoch[e] + 1;
			heard[e] = false;
			report_anew(e)
		fi
	fi
}

inline proceed(e)
{
	if
	:: !alive[e] -> st[e] = DEAD
	:: alive[e] && heard[e] -> decide(e)
	:: else -> report_anew(e)
	fi
}

inline begin(e, k, joined)
{
	epoch[e] = k;
	assert(epoch[e] < EPOCHS - 1);
	heard[e] = joined;
	reported[e] = false;
	p_ready[e] = false;
	if
	:: open[e] -> alive[e] = alive[e] & ~BIT(path[e]); st[e] = SLEEPING
	:: else -> proceed(e)
	fi
}

inline down(e, p)
{
	alive[e] = alive[e] & ~BIT(p);
	if
	:: (FLOWS(e) || st[e] == ANSWERED) && path[e] == p -> begin(e, epoch[e] + 1, false)
	:: st[e] == REPORTED && !(alive[e] & told[e]) -> begin(e, epoch[e] + 1, false)
	:: st[e] == BINDING && next[e] == p -> begin(e, epoch[e] + 1, false)
	:: else
	fi
}

/* Requests are on the new path: those with ids greater than LAST SENT. */
inline arrive(e)
{
	st[e] = MIGRATED;
	if
	:: e == 0 ->
#ifdef LESS
		i_ = (sent -> sent - 1 : 0);
#else
		i_ = sent;
#endif
		wire[path[0]] = i_;
		placed[path[0]] = i_;
		flushed[path[0]] = i_;
		posted[path[0]] = posts;
		i_ = 0
	:: else
	fi
}

/* Receives are on the new path. */
inline rebound(e)
{
	path[e] = next[e];
	open[e] = true;
	if
#ifdef NO_READY
	:: true ->
#else
	:: p_ready[e] ->
#endif
		arrive(e);
		migrated_at[MSG(e, epoch[e])] = true
#ifndef NO_READY
	:: !p_ready[e] && reported[e] -> st[e] = ANSWERED; migrated_at[MSG(e, epoch[e])] = true
	:: else -> st[e] = ANSWERED; tell(e); answer_at[MSG(e, epoch[e])] = true
#endif
	fi
}

inline hold(e, k, ready)
{
	p_paths[e] = r_paths[MSG(1 - e, k)];
	p_sent[e] = r_sent[MSG(1 - e, k)];
	p_received[e] = r_received[MSG(1 - e, k)];
	p_ready[e] = ready
}

#ifdef NO_EPOCH
#define OURS(e, k) ((k) <= epoch[e])
#else
#define OURS(e, k) ((k) == epoch[e])
#endif
#define WAITS(e) (st[e] == SLEEPING || st[e] == DRAINING)

/* A REPORT without READY. */
inline report(e, k)
{
	if
	:: k > epoch[e] && WAITS(e) -> hold(e, k, false); epoch[e] = k; heard[e] = true
	:: k > epoch[e] && !WAITS(e) -> hold(e, k, false); begin(e, k, true)
	:: k <= epoch[e] && WAITS(e) -> hold(e, k, false); heard[e] = true
	:: k <= epoch[e] && st[e] == REPORTED -> hold(e, k, false); heard[e] = true; decide(e)
	:: k <= epoch[e] && st[e] == ANSWERED -> tell(e); answer_at[MSG(e, epoch[e])] = true
	:: k <= epoch[e] && FLOWS(e) -> migrated_at[MSG(e, epoch[e])] = true
	fi
}

#define REPORT_COUNTS(e, k) \
	(report_at[MSG(1 - e, k)] && st[e] != DEAD && \
	 (k > epoch[e] || (OURS(e, k) && ((WAITS(e) && !heard[e]) || st[e] == REPORTED || \
					  (st[e] == ANSWERED && !answer_at[MSG(e, epoch[e])]) || \
					  (FLOWS(e) && epoch[e] && !migrated_at[MSG(e, epoch[e])])))))
#define ANSWER_COUNTS(e, k) \
	(answer_at[MSG(1 - e, k)] && OURS(e, k) && \
	 (st[e] == REPORTED || st[e] == ANSWERED || (st[e] == BINDING && !p_ready[e]) || \
	  (FLOWS(e) && !migrated_at[MSG(e, epoch[e])])))
#define MIGRATED_COUNTS(e, k) \
	(migrated_at[MSG(1 - e, k)] && OURS(e, k) && (st[e] == ANSWERED || (st[e] == BINDING && !p_ready[e])))

inline answer(e, k)
{
	if
	:: st[e] == REPORTED -> hold(e, k, true); heard[e] = true; decide(e)
	:: st[e] == BINDING -> p_ready[e] = true
	:: st[e] == ANSWERED -> arrive(e)
	:: FLOWS(e) -> migrated_at[MSG(e, epoch[e])] = true
	fi
}

#define NOTICES(e, p) \
	((alive[e] & BIT(p)) && \
	 (dead0[p] || dead1[p] || (open[e] && path[e] == p && (fenced[1 - e] & BIT(p)))))
#if PATHS == 3
#define ANY_PATH(m, e) (m(e, 0) || m(e, 1) || m(e, 2))
#else
#define ANY_PATH(m, e) (m(e, 0) || m(e, 1))
#endif
#define ANY_EPOCH(m, e) (m(e, 1) || m(e, 2) || m(e, 3) || m(e, 4) || m(e, 5) || m(e, 6))

#if PATHS == 3
#define choose_path(m, e, p) if :: m(e, 0) -> p = 0 :: m(e, 1) -> p = 1 :: m(e, 2) -> p = 2 fi
#else
#define choose_path(m, e, p) if :: m(e, 0) -> p = 0 :: m(e, 1) -> p = 1 fi
#endif
#define choose_epoch(m, e, k) \
	if :: m(e, 1) -> k = 1 :: m(e, 2) -> k = 2 :: m(e, 3) -> k = 3 :: m(e, 4) -> k = 4 :: m(e, 5) -> k = 5 \
	:: m(e, 6) -> k = 6 fi

/* One end: its protocol. */
proctype end_of(byte e)
{
	byte k;

	do
	:: d_step { st[e] == SLEEPING ->
#ifndef NO_FENCE
		fenced[e] = fenced[e] | BIT(path[e]);
#endif
		st[e] = DRAINING }
	:: d_step { st[e] == DRAINING -> open[e] = false; proceed(e) }
	:: d_step { st[e] == BINDING -> rebound(e) }
	:: d_step { st[e] == MIGRATED && REST(1 - e) && epoch[0] == epoch[1] -> st[e] = CONNECTED }
	:: atomic { st[e] != DEAD && ANY_PATH(NOTICES, e) ->
		/* a path's death is noticed, or the peer has left it */
		choose_path(NOTICES, e, k);
		down(e, k);
		k = 0 }
	:: atomic { ANY_EPOCH(REPORT_COUNTS, e) ->
		choose_epoch(REPORT_COUNTS, e, k);
#ifdef NO_REPEAT
		report_at[MSG(1 - e, k)] = false;
#endif
		report(e, k);
		k = 0 }
	:: atomic { ANY_EPOCH(ANSWER_COUNTS, e) ->
		choose_epoch(ANSWER_COUNTS, e, k);
#ifdef NO_REPEAT
		answer_at[MSG(1 - e, k)] = false;
#endif
		answer(e, k);
		k = 0 }
	:: atomic { ANY_EPOCH(MIGRATED_COUNTS, e) ->
		choose_epoch(MIGRATED_COUNTS, e, k);
		if
		:: st[e] == ANSWERED -> arrive(e)
		:: else -> p_ready[e] = true
		fi;
		k = 0 }
#ifndef NO_REPEAT
	:: d_step { st[e] == REPORTED && !report_at[MSG(e, epoch[e])] -> report_at[MSG(e, epoch[e])] = true }
	:: d_step { st[e] == ANSWERED && !answer_at[MSG(e, epoch[e])] ->
		tell(e);
		answer_at[MSG(e, epoch[e])] = true }
#endif
	:: d_step { losses < LOSSES && report_at[MSG(e, epoch[e])] && st[e] == REPORTED ->
		report_at[MSG(e, epoch[e])] = false; losses++ }
	:: d_step { losses < LOSSES && answer_at[MSG(e, epoch[e])] && st[e] == ANSWERED ->
		answer_at[MSG(e, epoch[e])] = false; losses++ }
	:: d_step { losses < LOSSES && migrated_at[MSG(e, epoch[e])] && st[1 - e] == ANSWERED ->
		migrated_at[MSG(e, epoch[e])] = false; losses++ }
	od
}

/* Steps of traffic: e is not used. */
#define SENDS_PACKET(e, p) (open[0] && path[0] == p && FLOWS(0) && !dead0[p] && wire[p] < posted[p])
#define ARRIVES(p) (wire[p] > placed[p] && !dead1[p] && !(fenced[1] & BIT(p)) && !whole[p])
#define BEGINS(e, p) (ARRIVES(p) && IS_SEND(placed[p] + 1) && !begun[p])
#define PLACES(e, p) (ARRIVES(p) && (begun[p] || !IS_SEND(placed[p] + 1)))
#define RECEIVES(e, p) (whole[p] && !dead1[p] && !(fenced[1] & BIT(p)) && open[1] && path[1] == p)
/* The READ was executed when all up to placed was there; its response comes to end 0. */
#define FLUSHES(e, p) \
	(open[0] && path[0] == p && flushed[p] < placed[p] && !dead0[p] && !(fenced[0] & BIT(p)))

/* The paths in use: requests, packets, completions. */
proctype traffic()
{
	byte p;

	do
	:: d_step { FLOWS(0) && posts < N -> posts++; posted[path[0]] = posts }
	:: atomic { ANY_PATH(SENDS_PACKET, 0) -> choose_path(SENDS_PACKET, 0, p); wire[p] = wire[p] + 1; p = 0 }
	:: atomic { ANY_PATH(BEGINS, 0) -> choose_path(BEGINS, 0, p);
		assert(open[1] && path[1] == p); /* nothing is placed after the last drain, or before its receive */
		begun[p] = true;
		p = 0 }
	:: atomic { ANY_PATH(PLACES, 0) -> choose_path(PLACES, 0, p);
		assert(open[1] && path[1] == p);
		placed[p] = placed[p] + 1;
		begun[p] = false;
		whole[p] = IS_SEND(placed[p]);
		assert(IS_SEND(placed[p]) || delivered < placed[p]); /* FO-18 */
		p = 0 }
	:: atomic { ANY_PATH(RECEIVES, 0) -> choose_path(RECEIVES, 0, p);
		whole[p] = false;
		received = placed[p];
		deliver(received);
		p = 0 }
	:: atomic { ANY_PATH(FLUSHES, 0) -> choose_path(FLUSHES, 0, p);
		flushed[p] = placed[p];
		sent = (flushed[p] > sent -> flushed[p] : sent);
		p = 0 }
	od
}

/* True when a path would carry all if the others died. */
#define SPARE(p) (!dead0[p] && !dead1[p] && (alive[0] & alive[1] & BIT(p)) && path[0] != p && path[1] != p)
#ifdef DOOM
#define DIES(e, p) (!dead0[p] && !dead1[p])
#elif PATHS == 3
#define DIES(e, p) (!dead0[p] && !dead1[p] && ((p != 0 && SPARE(0)) || (p != 1 && SPARE(1)) || (p != 2 && SPARE(2))))
#else
#define DIES(e, p) (!dead0[p] && !dead1[p] && ((p != 0 && SPARE(0)) || (p != 1 && SPARE(1))))
#endif
#define HEALABLE(e, p) (p != path[0] && !(alive[0] & BIT(p)) && !(alive[1] & BIT(p)))

/* Failures of the adapter of either end, or both, with at least one path left; and healing. */
proctype faults()
{
	byte p;

	do
	:: atomic { fails < FAILS && ANY_PATH(DIES, 0) -> choose_path(DIES, 0, p);
		if
		:: dead0[p] = true
		:: dead1[p] = true
		:: dead0[p] = true; dead1[p] = true
		fi;
		fails++;
		p = 0 }
	:: atomic { heals < HEALS && FLOWS(0) && FLOWS(1) && epoch[0] == epoch[1] && ANY_PATH(HEALABLE, 0) ->
		choose_path(HEALABLE, 0, p);
		dead0[p] = false;
		dead1[p] = false;
		fenced[0] = fenced[0] & ~BIT(p);
		fenced[1] = fenced[1] & ~BIT(p);
		begun[p] = false;
		whole[p] = false;
		wire[p] = 0;
		placed[p] = 0;
		posted[p] = 0;
		flushed[p] = 0;
		alive[0] = alive[0] | BIT(p);
		alive[1] = alive[1] | BIT(p);
		heals++;
		p = 0 }
	od
}

/* When nothing can happen any more, all is delivered and complete, or no path was left. */
#ifdef DOOM
#define GOAL ((FLOWS(0) && FLOWS(1) && sent == N && received == N) || (REST(0) && REST(1)) || st[0] == DEAD || st[1] == DEAD)
#else
#define GOAL (FLOWS(0) && FLOWS(1) && posts == N && sent == N && delivered == N)
#endif

proctype judge_at_the_end()
{
	timeout -> assert(GOAL)
}

init {
	atomic {
		st[0] = CONNECTED;
		st[1] = CONNECTED;
		alive[0] = ALL;
		alive[1] = ALL;
		open[0] = true;
		open[1] = true;
		run traffic();
		run end_of(0);
		run end_of(1);
		run faults();
		run judge_at_the_end()
	}
}

ltl migrates { [] (!(REST(0) && REST(1)) -> <> ((REST(0) && REST(1)) || st[0] == DEAD || st[1] == DEAD)) }
