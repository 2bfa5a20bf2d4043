/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sabotage: imitates one bug of a broken product in each run, once some completions
 * have come, to test that the oracles notice.
 */
#include "sim.h"

enum { AFTER = 5 }; /* completions */

static const struct {
	const char *name, *text;
} names[SIM_SABOTAGES] = {
#define X(id, name, text) {name, text},
	SIM_SABOTAGE(X)
#undef X
};

const char *
sim_sabotage_name(unsigned int i)
{
	return i > SIM_BREAK_NOTHING && i < SIM_SABOTAGES ? names[i].name : NULL;
}

const char *
sim_sabotage_text(unsigned int i)
{
	return i < SIM_SABOTAGES ? names[i].text : NULL;
}

/* Spoil a node's memory, or an object that it owns. */
static void
spoil_node(struct sim *s, struct sim_node *n)
{
	uint64_t v;

	switch (s->sabotage) {
	case SIM_BREAK_BYTE: /* a byte behind a window, which nobody may write */
		n->ram[n->ends->word_off + SIM_WORDS * 8] ^= 1;
		break;
	case SIM_BREAK_WORD:
		memcpy(&v, n->ram + n->ends->word_off, 8);
		v++;
		memcpy(n->ram + n->ends->word_off, &v, 8);
		break;
	case SIM_BREAK_COUNT:
		memcpy(&v, n->ram + n->counter_off, 8);
		v += 1000;
		memcpy(n->ram + n->counter_off, &v, 8);
		break;
	case SIM_BREAK_MBUF:
		s->leaked = rte_pktmbuf_alloc(n->pool);
		break;
	case SIM_BREAK_WORK:
		n->tp->work_free = n->tp->work_free->next;
		n->tp->left.work--;
		break;
	case SIM_BREAK_EVENT:
		sim_event(n, URN_EVENT_LAST_WQE, n->ends->qp->qpn);
		break;
	case SIM_BREAK_STALL:
		n->asleep_until = UINT64_MAX;
		n->due = UINT64_MAX;
		break;
	default:
		break;
	}
}

bool
sim_sabotage(struct sim_node *n, struct urn_abi_cqe *c, bool *twice)
{
	struct sim *s = n->s;

	*twice = false;
	if (s->sabotage == SIM_BREAK_NOTHING || s->broken || s->winding_up ||
	    s->sabotage >= SIM_BREAK_LEFT || s->stats.completions < AFTER || !n->ends)
		return true;
	if (s->sabotage >= SIM_BREAK_BYTE) {
		spoil_node(s, n);
		s->broken = true;
		return true;
	}
	if (!n->by_qpn[c->qp_num % URN_TP_QP_CHUNK] || (c->opcode & URN_WCO_RECV))
		return true;
	s->broken = true;
	switch (s->sabotage) {
	case SIM_BREAK_LOST:
		return false;
	case SIM_BREAK_TWICE:
		*twice = true;
		break;
	case SIM_BREAK_STATUS:
		c->status = URN_WC_REM_ACCESS_ERR;
		break;
	case SIM_BREAK_FLUSH:
		c->status = URN_WC_WR_FLUSH_ERR;
		break;
	default:
		break;
	}
	return true;
}

/* True when m answers an atomic whose answer was sent before. */
static bool
is_answer_again(struct sim *s, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t bth = f[12] == 0x86 ? 62 : 42, qpn, psn;
	uint64_t id, *slot;

	if (m->data_len < bth + 12 || f[bth] != 0x12) /* ATOMIC Acknowledge: IBTA table 38 */
		return false;
	memcpy(&qpn, f + bth + 4, 4);
	memcpy(&psn, f + bth + 8, 4);
	id = (uint64_t)f[5] << 48 | (uint64_t)(rte_be_to_cpu_32(qpn) & 0xffffff) << 24 |
	     (rte_be_to_cpu_32(psn) & 0xffffff);
	slot = &s->answered[(id ^ id >> 24) % SIM_ANSWERS];
	if (*slot == id)
		return true;
	*slot = id;
	return false;
}

unsigned int
sim_sabotage_frames(struct sim *s, struct rte_mbuf **m, unsigned int n)
{
	unsigned int left = 0;

	if (s->sabotage != SIM_BREAK_ANSWER)
		return n;
	for (unsigned int i = 0; i < n; i++) {
		if (is_answer_again(s, m[i]))
			rte_pktmbuf_free(m[i]);
		else
			m[left++] = m[i];
	}
	return left;
}
