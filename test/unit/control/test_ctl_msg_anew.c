/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A used ring is configured anew, as abi/msg.h says, while senders are busy (doorbell.md DB-4,
 * DB-5, DB-7): over real flows, with messages of one packet and of several. Seeds choose the moment
 * of each step.
 */
#include "ctl_msg_rig.h"

#include <string.h>

enum {
	SENDERS = 5,
	LETTERS = 60000, /* messages of a seed, at most */
	ROUNDS = 120,	 /* configurations of a seed */
	SEEDS = 6,
	LETTER_MIN = 8,	   /* bytes of a message: its number */
	LETTER_MAX = 3500, /* ... at most: several packets */
	UNTOUCHED = 0xa5,  /* byte that the reader's arena is filled with */
};

/* A message of the seed. */
struct letter {
	uint32_t len; /* bytes */
	uint8_t code; /* its answer; PENDING: none yet */
	uint8_t came; /* times that the reader found it */
};

/* The reader's ring, as configured last. */
struct ring {
	uint32_t base, entries, size; /* bytes, entries, bytes of an entry; entries 0: no ring */
	uint32_t head;		      /* entries that were read */
};

static struct letter letter[LETTERS];
static uint32_t letters;	     /* messages that were rung for */
static uint32_t on_its_way[SENDERS]; /* number of each sender's message; LETTERS: none */
static struct rig_set from[SENDERS], to;
static struct ring ring;
static uint64_t rnd;

/* A random number below n. */
static uint32_t
below(uint32_t n)
{
	rnd = rnd * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rnd >> 33) % n;
}

static uint8_t
byte_of(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 37 + i * 11 + 5);
}

/* ---- senders */

static void
send_one(unsigned int i)
{
	struct letter *l = &letter[letters];
	struct rig_set *s = &from[i];

	assert_true(letters < LETTERS - 1);
	*l = (struct letter){.code = URN_MSG_PENDING};
	l->len = LETTER_MIN + below(below(3) ? 200 : LETTER_MAX - LETTER_MIN + 1);
	for (uint32_t k = 0; k < l->len; k++)
		s->arena[k] = byte_of(letters, k);
	memcpy(s->arena, &letters, sizeof(letters));
	s->regs->send.size = l->len;
	s->regs->send.addr = 0;
	s->regs->send.qid = to.rep.msg.qid;
	memcpy(s->regs->send.node, rig_dp->adapter[1]->gid[1], 16);
	on_its_way[i] = letters++;
	atomic_store(&s->regs->send.seq, atomic_load(&s->regs->send.seq) + 1);
	rig_ring(s);
}

/* Take the answer of a sender's message. returns: true: the sender is free */
static bool
take_answer(unsigned int i)
{
	uint64_t a = atomic_load(&from[i].regs->sstat.answer);

	if (on_its_way[i] == LETTERS)
		return true;
	if (urn_msg_answer_seq(a) != atomic_load(&from[i].regs->send.seq) ||
	    urn_msg_answer_code(a) == URN_MSG_PENDING)
		return false;
	letter[on_its_way[i]].code = urn_msg_answer_code(a);
	on_its_way[i] = LETTERS;
	return true;
}

/* Turn the engines n times; every sender that has its answer sends again. */
static void
busy_turns(uint32_t n)
{
	for (; n; n--) {
		for (unsigned int i = 0; i < SENDERS; i++)
			if (take_answer(i))
				send_one(i);
		rig_turns(1);
	}
}

/* ---- the reader */

/* Read an entry: the bytes of one message, whole. */
static void
read_entry(void)
{
	const uint8_t *at =
		to.arena + ring.base + (size_t)(ring.head & (ring.entries - 1)) * ring.size;
	struct urn_abi_msg_entry e;
	uint32_t number;

	memcpy(&e, at, sizeof(e));
	at += sizeof(e);
	memcpy(&number, at, sizeof(number));
	assert_true(number < letters);
	assert_int_equal(e.len, letter[number].len);
	for (uint32_t k = sizeof(number); k < e.len; k++)
		assert_int_equal(at[k], byte_of(number, k));
	assert_int_equal(letter[number].came++, 0);
	ring.head++;
}

/* Read n entries at most. */
static void
read_some(uint32_t n)
{
	uint32_t tail = atomic_load(&to.regs->rstat.tail);

	assert_true(tail - ring.head <= ring.entries);
	for (; n && ring.head != tail; n--)
		read_entry();
	atomic_store(&to.regs->ctrl.head, ring.head);
}

/* Write a configuration, and wait until it was taken. state: that it has then */
static void
configure(uint32_t state)
{
	struct urn_abi_msg_conf *c = &to.regs->conf;
	uint32_t seq = atomic_load(&c->seq) + 1;

	c->base = ring.base;
	c->entries = state == URN_MSGQ_OPEN ? ring.entries : 0;
	c->entry_size = ring.size;
	busy_turns(below(3));
	atomic_store(&c->seq, seq);
	busy_turns(below(3));
	rig_ring(&to);
	for (unsigned int i = 0; atomic_load(&to.regs->rstat.conf_seq) != seq; i++) {
		assert_true(i < 1000);
		busy_turns(1);
	}
	assert_int_equal(atomic_load(&to.regs->rstat.state), state);
}

/* True when nobody wrote to these bytes of the reader's arena. */
static bool
is_untouched(uint32_t start, uint32_t end)
{
	for (; start < end; start++)
		if (to.arena[start] != UNTOUCHED)
			return false;
	return true;
}

/* Give the ring up: nothing comes any more, and the entries that came before can be read. */
static void
give_up_ring(void)
{
	configure(URN_MSGQ_NONE);
	busy_turns(below(20));
	read_some(UINT32_MAX);
	assert_true(is_untouched(0, ring.base));
	assert_true(is_untouched(ring.base + ring.entries * ring.size, ARENA));
	memset(to.arena, UNTOUCHED, ARENA);
	busy_turns(below(40));
	assert_true(is_untouched(0, ARENA));
}

/* Take another ring, anywhere in the arena. */
static void
take_ring(void)
{
	ring.entries = 1u << below(6);
	ring.size = 64 * (1 + below(below(2) ? 8 : 63));
	while (ring.entries * ring.size > ARENA)
		ring.entries /= 2;
	ring.base = 64 * below((ARENA - ring.entries * ring.size) / 64 + 1);
	ring.head = 0;
	atomic_store(&to.regs->ctrl.head, 0);
	configure(URN_MSGQ_OPEN);
}

/* ---- the tests */

/* Every message with the answer DONE came once, and no other came unless its answer allows it. */
static void
judge(unsigned int count[URN_MSG_CODES])
{
	for (uint32_t i = 0; i < letters; i++) {
		uint8_t code = letter[i].code & (uint8_t)~URN_MSG_MAY_BE_THERE;

		assert_true(code < URN_MSG_CODES && code != URN_MSG_PENDING);
		count[code]++;
		if (letter[i].code == URN_MSG_DONE && letter[i].came != 1)
			fail_msg("message %u is done, and came %u times", i, letter[i].came);
		if (letter[i].code == code && code != URN_MSG_DONE && letter[i].came)
			fail_msg("message %u came, and its code is %u", i, code);
	}
}

static void
run_seed(uint64_t seed, unsigned int count[URN_MSG_CODES])
{
	rnd = seed;
	letters = 0;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		take_ring();
		for (uint32_t n = below(8); n; n--) {
			busy_turns(below(60));
			read_some(below(ring.entries + 1));
		}
		give_up_ring();
	}
	for (unsigned int n = 0; n < SENDERS; n++)
		for (unsigned int i = 0; !take_answer(n); i++) {
			assert_true(i < 200000);
			rig_turns(1);
		}
	judge(count);
}

/* Senders of both engines of the other node, and one of the reader's own. */
static void
a_busy_ring_is_configured_anew(void **state)
{
	unsigned int count[URN_MSG_CODES] = {0};

	(void)state;
	for (unsigned int i = 0; i < SENDERS; i++) {
		rig_open_set(&from[i], i == SENDERS - 1 ? 2 : i % 2, i % ENGINES, 0);
		on_its_way[i] = LETTERS;
	}
	rig_open_set(&to, 2, 1, 0);
	memset(to.arena, UNTOUCHED, ARENA);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_seed(seed, count);
	/* Each way that a ring in change can answer was taken. */
	assert_true(count[URN_MSG_DONE] > 1000);
	assert_true(count[URN_MSG_NO_QUEUE] > 100);
	assert_true(count[URN_MSG_QUEUE_FULL] > 100);
	assert_true(count[URN_MSG_TOO_LONG] > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_busy_ring_is_configured_anew, rig_setup,
						rig_teardown),
	};

	return cmocka_run_group_tests_name("ctl_msg_anew", tests, rig_setup_eal, rig_teardown_eal);
}
