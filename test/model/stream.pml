/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of byte streams (doc/inside/stream.md) for spin: credits, and the crossing of SrcAvail, SinkAvail and BCopy
 * data. Each way has a source and a sink, joined by two ordered queues. The states have the names of URN_ST_TX_STATES
 * and URN_ST_RX_STATES. Sizes are small numbers of units; a message of BCopy data has one unit.
 *
 * Thresholds are choices here: a source may take any way that the protocol allows, and a sink may announce memory or
 * not, read or ask for BCopy. So each way that thresholds can take is among them.
 *
 * A write that was posted may touch memory until its WrCompl was taken in: the memory must be announced all the time.
 *
 * Defines: T (units of a stream), D (BCopy buffers), BLIND (sinks can't read), TWO (two ways, and each end
 * reads when all that it writes is sent), and mutations NO_VOID, NO_STALE, NO_CROSS, SINK_WINS, KEEPS_INLINE, NO_LATE,
 * NO_UNSEEN, NO_CREDIT, CREDIT_HIGH, AGAIN, DROPS_HELD.
 */
#ifndef T
#define T 4
#endif
#ifndef D
#define D 2
#endif
#ifdef TWO
#define WAYS 2
#else
#define WAYS 1
#endif
#define ROOM 2		 /* units of a receive, at most */
#define HALF ((D + 1) / 2)
#define FORWARD 3	 /* control messages on their way: SrcAvail, WrCompl, Fin */
#define BACK 6		 /* three SinkAvails, an answer, two Credits */
#ifdef BLIND
#define READS false
#else
#define READS true
#endif

mtype = { TX_IDLE, TX_COPY, TX_OFFERED, TX_WRITING, TX_ENDED, RX_QUIET, RX_ADVERTISED, RX_OFFERED, RX_READING, RX_ENDED };
mtype = { DATA, SRC_AVAIL, WR_COMPL, FIN, SINK_AVAIL, SEND_SM, RD_COMPL, CREDIT };

/* kind, offset, units, units inline or id of a SinkAvail, SinkAvails seen */
chan forward[WAYS] = [D + FORWARD] of { mtype, byte, byte, byte, byte };
/* kind, offset, units, id of a SinkAvail, credit */
chan back[WAYS] = [BACK] of { mtype, byte, byte, byte, byte };

/* Sources. */
mtype tx[WAYS];
byte rest[WAYS];     /* units that no send has yet */
byte left[WAYS];     /* units of the send */
byte sent[WAYS], data[WAYS], limit[WAYS];
bool copying[WAYS], small[WAYS];
bool held[WAYS];     /* a SinkAvail is held */
byte held_n[WAYS], held_id[WAYS], seen[WAYS];
byte control[WAYS];  /* forward control messages on their way */

/* Sinks. */
mtype rx[WAYS];
byte arrived[WAYS], pieces[WAYS], freed[WAYS], told[WAYS], came[WAYS];
byte room[WAYS];     /* units of the receive; 0: none is posted */
byte promised[WAYS], offer_end[WAYS];
bool offered[WAYS];
byte advert_at[WAYS], advert_n[WAYS], adverts[WAYS], was_seen[WAYS];
byte reading[WAYS];
byte answers[WAYS];  /* back control messages on their way */

/* Kept for assertions only. */
byte live[WAYS];     /* id of the SinkAvail whose memory may be written; 0: none */
byte writing[WAYS];  /* id of the SinkAvail that a write under way is for; 0: none */

#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define SENT_ALL(w) (rest[w] == 0 && left[w] == 0)
#ifdef TWO
#define MAY_READ(w) SENT_ALL(1 - (w))
#else
#define MAY_READ(w) true
#endif

/* ---- messages */

inline go_forward(w, kind_, at_, n_, extra_)
{
	if
	:: kind_ == DATA -> skip
	:: else -> control[w]++; assert(control[w] <= FORWARD)
	fi;
	forward[w]!kind_, at_, n_, extra_, seen[w]
}

/* Each message back tells of free buffers. */
inline go_back(w, kind_, at_, n_, id_)
{
	answers[w]++;
	assert(answers[w] <= BACK);
#ifdef CREDIT_HIGH
	told[w] = freed[w] + D + 1;
#else
	told[w] = freed[w] + D;
#endif
	back[w]!kind_, at_, n_, id_, told[w]
}

/* ---- the source */

#define DECIDES(w) ((tx[w] == TX_IDLE || tx[w] == TX_COPY) && left[w] > 0)
#ifdef NO_CROSS
#define TAKES_ANSWER true
#else
#define TAKES_ANSWER !READS
#endif
#define CAN_WRITE(w) (held[w] && ((DECIDES(w) && !small[w]) || (tx[w] == TX_OFFERED && TAKES_ANSWER)))

/* Memory of a sink that can't be read from is taken, not asked for again: the sink keeps it as its answer. */
#ifdef DROPS_HELD
#define OFFERS(w) true
#else
#define OFFERS(w) (READS || !held[w])
#endif

inline moved(w, n_)
{
	sent[w] = sent[w] + n_;
	left[w] = left[w] - n_;
	held[w] = false;
	held_n[w] = 0
}

inline write_to_sink(w)
{
	assert(live[w] == held_id[w]); /* nothing else came to this memory, and the program has not got it back */
	n = MIN(left[w], held_n[w]);
	k = held_id[w];
	writing[w] = k;
	go_forward(w, WR_COMPL, sent[w], n, k);
	moved(w, n);
	tx[w] = TX_WRITING;
	n = 0;
	k = 0
}

inline take_advert(w, at_, m_, id_)
{
	seen[w]++;
	assert(at_ <= sent[w]);
	if
#ifdef NO_STALE
	:: tx[w] == TX_ENDED -> skip
#else
	:: tx[w] == TX_ENDED || at_ != sent[w] -> skip
#endif
#ifndef NO_CROSS
	:: tx[w] == TX_OFFERED && READS -> skip
#endif
	:: else ->
		assert(!held[w]);
		held[w] = true;
		held_n[w] = m_;
		held_id[w] = id_
	fi
}

proctype source(byte w)
{
	mtype kind;
	byte n, k, at, m, id;

	do
	:: atomic { tx[w] == TX_IDLE && left[w] == 0 && rest[w] > 0 ->
#ifdef TWO
		left[w] = rest[w];
#else
		if
		:: left[w] = 1
		:: rest[w] >= 2 -> left[w] = rest[w]
		:: rest[w] > 2 -> left[w] = 2
		fi;
#endif
		rest[w] = rest[w] - left[w];
		copying[w] = false;
		small[w] = false }
	:: atomic { DECIDES(w) && data[w] != limit[w] ->
		data[w]++;
		go_forward(w, DATA, sent[w], 1, 0);
		moved(w, 1);
		copying[w] = left[w] > 0;
		tx[w] = (left[w] > 0 -> TX_COPY : TX_IDLE) }
	:: atomic { CAN_WRITE(w) -> write_to_sink(w) }
	:: atomic { DECIDES(w) && !copying[w] && !small[w] && OFFERS(w) ->
		n = 0;
		if
		:: skip
		:: data[w] != limit[w] && left[w] > 1 -> n = 1; data[w]++
		fi;
		go_forward(w, SRC_AVAIL, sent[w], left[w], n);
		moved(w, n);
		tx[w] = TX_OFFERED;
		n = 0 }
	:: atomic { tx[w] == TX_WRITING -> tx[w] = TX_IDLE; copying[w] = false; small[w] = false }
	:: atomic { tx[w] == TX_IDLE && SENT_ALL(w) ->
		go_forward(w, FIN, sent[w], 0, 0);
		tx[w] = TX_ENDED }
	:: atomic { back[w]?kind, at, m, id, k ->
		answers[w]--;
		limit[w] = k;
		k = 0;
		if
		:: kind == SINK_AVAIL -> take_advert(w, at, m, id)
		:: kind == SEND_SM ->
			assert(tx[w] == TX_OFFERED && at >= sent[w] && at < sent[w] + left[w]);
			n = at - sent[w];
			moved(w, n);
			n = 0;
			small[w] = true;
			copying[w] = true;
			tx[w] = TX_COPY
		:: kind == RD_COMPL ->
			assert(tx[w] == TX_OFFERED && at == sent[w] + left[w]);
			n = left[w];
			moved(w, n);
			n = 0;
			tx[w] = TX_IDLE
		:: else
		fi;
		at = 0; m = 0; id = 0 }
	od
}

/* ---- the sink */

/* Memory that was announced is the program's again: no write to it may be under way, or come. */
inline make_void(w)
{
	assert(writing[w] != live[w]);
	live[w] = 0;
	rx[w] = RX_QUIET
}

inline advertise(w)
{
	adverts[w]++;
	advert_at[w] = arrived[w];
	advert_n[w] = room[w];
	live[w] = adverts[w];
	rx[w] = RX_ADVERTISED;
	go_back(w, SINK_AVAIL, arrived[w], room[w], adverts[w])
}

inline send_small(w)
{
	offered[w] = false;
	rx[w] = RX_QUIET;
#ifdef AGAIN
	go_back(w, SEND_SM, offer_end[w] - 1, 0, 0)
#else
	go_back(w, SEND_SM, arrived[w], 0, 0)
#endif
}

/* A receive is complete, or waits for more when it is not full. */
inline got(w, n_)
{
	room[w] = room[w] - n_;
#ifdef TWO
	room[w] = 0
#else
	if
	:: room[w] > 0 -> room[w] = 0
	:: skip
	fi
#endif
}

inline take_data(w, at_)
{
	assert(!offered[w] && rx[w] != RX_ENDED && at_ == arrived[w]);
	came[w]++;
	assert(came[w] <= freed[w] + D); /* a buffer was free */
	if
#ifdef NO_VOID
	:: false
#else
	:: rx[w] == RX_ADVERTISED -> make_void(w)
#endif
	:: else
	fi;
	arrived[w]++;
	pieces[w]++
}

inline take_offer(w, at_, m_, inl_)
{
	assert(!offered[w] && rx[w] != RX_ENDED && at_ == arrived[w]);
	if
#ifndef SINK_WINS
	:: rx[w] == RX_ADVERTISED && READS -> make_void(w)
#endif
#ifndef KEEPS_INLINE
	:: rx[w] == RX_ADVERTISED && !READS && inl_ > 0 -> make_void(w)
#endif
	:: else
	fi;
	came[w] = came[w] + inl_;
	assert(came[w] <= freed[w] + D);
	arrived[w] = arrived[w] + inl_;
	pieces[w] = pieces[w] + inl_;
	offered[w] = true;
	offer_end[w] = at_ + m_;
	promised[w] = at_ + m_;
	if
	:: rx[w] == RX_QUIET -> rx[w] = RX_OFFERED
	:: else
	fi
}

inline take_written(w, at_, m_, id_)
{
	assert(rx[w] == RX_ADVERTISED && id_ == live[w] && at_ == advert_at[w] && m_ <= advert_n[w]);
	assert(at_ == arrived[w]);
	writing[w] = 0;
	live[w] = 0;
	arrived[w] = arrived[w] + m_;
	offered[w] = false;
	rx[w] = RX_QUIET;
	got(w, m_)
}

inline take_fin(w, at_)
{
	assert(!offered[w] && at_ == arrived[w] && arrived[w] >= promised[w]);
	if
	:: rx[w] == RX_ADVERTISED -> make_void(w)
	:: else
	fi;
	rx[w] = RX_ENDED
}

#ifdef NO_UNSEEN
#define SEEN(w) true
#else
#define SEEN(w) (adverts[w] - was_seen[w] < 2)
#endif
#define FILLS(w) (room[w] > 0 && pieces[w] > 0 && rx[w] != RX_ADVERTISED && rx[w] != RX_READING)
#define ANSWERS(w) (rx[w] == RX_OFFERED && pieces[w] == 0 && room[w] > 0 && arrived[w] < offer_end[w])

proctype sink(byte w)
{
	mtype kind;
	byte at, m, x, k;

	do
	:: atomic { room[w] == 0 && rx[w] != RX_ENDED && MAY_READ(w) ->
#ifdef TWO
		room[w] = ROOM }
#else
		if
		:: room[w] = 1
		:: room[w] = ROOM
		fi }
#endif
	:: atomic { room[w] == 0 && rx[w] == RX_ENDED && pieces[w] > 0 && MAY_READ(w) -> room[w] = 1 }
	:: atomic { FILLS(w) ->
		pieces[w]--;
		freed[w]++;
		got(w, 1) }
	:: atomic { rx[w] == RX_QUIET && room[w] > 0 && pieces[w] == 0 && arrived[w] >= promised[w] && SEEN(w) ->
		advertise(w) }
	:: atomic { ANSWERS(w) && READS ->
		reading[w] = MIN(room[w], offer_end[w] - arrived[w]);
		rx[w] = RX_READING }
	:: atomic { ANSWERS(w) && !READS -> advertise(w) }
	:: atomic { ANSWERS(w) -> send_small(w) }
#ifndef NO_LATE
	:: atomic { rx[w] == RX_OFFERED && room[w] == 0 && arrived[w] < offer_end[w] -> send_small(w) }
#endif
	:: atomic { rx[w] == RX_READING ->
		arrived[w] = arrived[w] + reading[w];
		got(w, reading[w]);
		reading[w] = 0;
		if
		:: arrived[w] == offer_end[w] ->
			offered[w] = false;
			rx[w] = RX_QUIET;
			go_back(w, RD_COMPL, arrived[w], 0, 0)
		:: else -> rx[w] = RX_OFFERED
		fi }
#ifndef NO_CREDIT
	:: atomic { rx[w] != RX_ENDED && freed[w] + D - told[w] >= HALF && freed[w] + D > told[w] ->
		go_back(w, CREDIT, 0, 0, 0) }
#endif
	:: atomic { forward[w]?kind, at, m, x, k ->
		was_seen[w] = k;
		k = 0;
		if
		:: kind == DATA -> take_data(w, at)
		:: kind == SRC_AVAIL -> control[w]--; take_offer(w, at, m, x)
		:: kind == WR_COMPL -> control[w]--; take_written(w, at, m, x)
		:: kind == FIN -> control[w]--; take_fin(w, at)
		fi;
		at = 0; m = 0; x = 0 }
	od
}

/* When nothing can happen any more, all has come, or was sent and waits for a program that can't read. */
#define DONE(w) (tx[w] == TX_ENDED && rx[w] == RX_ENDED && arrived[w] == T && pieces[w] == 0 && live[w] == 0)

proctype judge_at_the_end()
{
#ifdef TWO
	timeout -> assert(DONE(0) && DONE(1))
#else
	timeout -> assert(DONE(0))
#endif
}

init {
	byte i;

	atomic {
		do
		:: i < WAYS ->
			tx[i] = TX_IDLE;
			rx[i] = RX_QUIET;
			rest[i] = T;
			limit[i] = D;
			told[i] = D;
			run source(i);
			run sink(i);
			i++
		:: else -> break
		od;
		run judge_at_the_end()
	}
}
