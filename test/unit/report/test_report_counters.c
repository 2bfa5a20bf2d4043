/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters are joined from a block for each folder, and belong to scopes (architecture.md, seam 9).
 * A block and a scope of the test's own go through the same functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "counters.h"
#include "report/report_out.h"
#include "report/report_priv.h"
#include "switch/fabric.h"

#include <stdio.h>
#include <string.h>

static struct urn_report_buf out;
static struct urn_report_text text;

/* The fields that a report has of a scope's counters: "name value" a line, as a card has them. */
static const char *
report(const struct urn_counter_scope *scope, const char *prefix, const uint64_t *v, bool all)
{
	urn_report_buf_free(&out);
	urn_report_text_init(&text, &out);
	text.sink.begin(&text.sink, "counters", true);
	report_counters(&text.sink, scope, prefix, v, all);
	text.sink.end(&text.sink);
	urn_report_text_flush(&text);
	urn_report_text_free(&text);
	return out.data ? out.data : "";
}

/* ---- counters of the product */

static const struct {
	const struct urn_counter_scope *scope;
	const char *word;
	unsigned int n;
} scopes[] = {
	{&urn_adapter_scope, "adapter", URN_COUNTER_COUNT},
	{&urn_switch_scope, "switch", URN_SWITCH_COUNTER_COUNT},
	{&urn_impair_scope, "switch_impair", URN_IMPAIR_COUNTER_COUNT},
	{&urn_fabric_scope, "switch_device", URN_FABRIC_COUNTER_COUNT},
	{&urn_swq_scope, "switch_queue", URN_SWQ_COUNTER_COUNT},
	{&urn_mark_scope, "switch_mark", URN_MARK_COUNTER_COUNT},
};

static void
each_has_name_and_text(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < RTE_DIM(scopes); s++) {
		const struct urn_counter_scope *scope = scopes[s].scope;

		assert_string_equal(scope->word, scopes[s].word);
		assert_int_equal(urn_counter_total(scope), scopes[s].n);
		for (unsigned int id = 0; id < scopes[s].n; id++) {
			const char *name = urn_counter_name_in(scope, id);

			assert_true(strlen(name) > 0 && strlen(urn_counter_text_in(scope, id)) > 0);
			for (unsigned int other = 0; other < id;
			     other++) /* so each is in one block */
				assert_string_not_equal(name, urn_counter_name_in(scope, other));
		}
		assert_null(urn_counter_name_in(scope, scopes[s].n));
		assert_null(urn_counter_text_in(scope, scopes[s].n));
		assert_null(urn_counter_name_in(scope, UINT32_MAX));
	}
}

static void
each_is_in_a_block_of_a_folder(void **state)
{
	static const char *const folders[] = {"wire", "net",	   "cm",     "msg",
					      "am",   "transport", "engine", "control"};
	bool seen[RTE_DIM(folders)] = {false};

	(void)state;
	for (unsigned int b = 0; b < urn_adapter_scope.blocks; b++) {
		unsigned int f = 0;

		while (strcmp(folders[f], urn_adapter_scope.block[b].folder) != 0)
			assert_true(++f < RTE_DIM(folders));
		seen[f] = true;
		assert_true(urn_adapter_scope.block[b].n > 0);
	}
	for (unsigned int f = 0; f < RTE_DIM(folders); f++)
		assert_true(seen[f]);
}

/* Index and name agree at the seams of blocks; programs of one release tell each other these
 * indices. */
static void
order_stays(void **state)
{
	static const struct {
		unsigned int id;
		const char *name;
	} at[] = {
		{URN_C_RX_PACKETS, "rx_packets"},
		{URN_C_CNP_RX, "rx_cnp"},
		{URN_C_ARP_RX, "rx_arp"},
		{URN_C_CM_TX, "tx_cm"},
		{URN_C_PAIR_REFUSED, "pair_refused"},
		{URN_C_DROP_NEIGH, "drop_neigh"},
		{URN_C_DROP_SHORT, "drop_short"},
		{URN_C_DROP_ICRC, "drop_icrc"},
		{URN_C_DROP_NOT_ROCE, "drop_not_roce"},
		{URN_C_DROP_LINK_UNASKED, "drop_link_unasked"},
		{URN_C_DROP_CM_VERSION, "drop_cm_version"},
		{URN_C_DROP_OTHER, "drop_other"},
		{URN_C_NO_MBUF, "no_mbuf"},
		{URN_C_EVENT_LATE, "event_late"},
		{URN_C_NAK_OPERATIONAL, "nak_operational"},
		{URN_C_FLOW_TX, "flow_tx_packets"},
		{URN_C_MSG_SENT, "tx_msg"},
		{URN_C_DROP_MSG_HEAD, "drop_msg_head"},
		{URN_C_PFC_PAUSE, "pfc_pause"},
		{URN_C_DROP_PFC, "drop_pfc"},
		{URN_C_AM_COMMANDS, "am_commands"},
		{URN_C_DROP_AM_REPLY, "drop_am_reply"},
		{URN_C_TELLER_MERGED, "teller_merged"},
		{URN_C_TELLER_RESTS, "teller_rests"},
		{URN_C_PORT_MOVES, "port_moves"},
		{URN_C_DROP_STANDBY, "drop_standby"},
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(at); i++) {
		assert_string_equal(urn_counter_name(at[i].id), at[i].name);
		assert_true(i == 0 || at[i].id > at[i - 1].id);
	}
	assert_int_equal(URN_C_RX_PACKETS, 0);
	assert_int_equal(URN_C_TELLER_RESTS, URN_COUNTER_COUNT - 3);
	assert_int_equal(URN_C_DROP_STANDBY, URN_COUNTER_COUNT - 1);
}

/* ---- a block and a scope more */

#define ECHO_COUNTERS(X)                          \
	X(ECHOES, "echoes", "messages sent back") \
	X(LOST, "drop_echo", "messages dropped: nobody listens")

static const struct urn_counter_row echo_rows[] = {ECHO_COUNTERS(URN_COUNTER_ROW)};
static const struct urn_counter_block echo_block = {"echo", echo_rows, RTE_DIM(echo_rows)};

static void
a_block_more(void **state)
{
	struct urn_counter_block joined[32];
	struct urn_counter_scope scope = {"adapter", joined, urn_adapter_scope.blocks + 1};
	uint64_t v[URN_COUNTER_COUNT + 2] = {0};

	(void)state;
	assert_true(scope.blocks <= RTE_DIM(joined));
	memcpy(joined, urn_adapter_scope.block, urn_adapter_scope.blocks * sizeof(joined[0]));
	joined[urn_adapter_scope.blocks] = echo_block;
	assert_int_equal(urn_counter_total(&scope), URN_COUNTER_COUNT + 2);
	assert_string_equal(urn_counter_name_in(&scope, URN_C_CM_TX), "tx_cm"); /* where it was */
	assert_string_equal(urn_counter_name_in(&scope, URN_COUNTER_COUNT), "echoes");
	assert_string_equal(urn_counter_text_in(&scope, URN_COUNTER_COUNT + 1),
			    "messages dropped: nobody listens");
	assert_null(urn_counter_name_in(&scope, URN_COUNTER_COUNT + 2));
	v[URN_C_CM_TX] = 7;
	v[URN_COUNTER_COUNT + 1] = 3;
	assert_string_equal(report(&scope, "", v, false), "tx_cm                  7\n"
							  "drop_echo              3\n");
	/* The product's own scope ends before them. */
	assert_string_equal(report(&urn_adapter_scope, "", v, false), "tx_cm                  7\n");
}

static void
a_scope_more(void **state)
{
	static const struct urn_counter_scope scope = {"echo", &echo_block, 1};
	static const uint64_t v[] = {5, 0};

	(void)state;
	assert_int_equal(urn_counter_total(&scope), 2);
	assert_string_equal(report(&scope, "", v, false), "echoes                 5\n");
	assert_string_equal(report(&scope, "in_", v, true), "in_echoes              5\n"
							    "in_drop_echo           0\n");
	urn_report_buf_free(&out);
}

/* Each count moves once, and counts that an engine has stay. */
static void
counts_move_once(void **state)
{
	static struct urn_counts from;
	static struct urn_counters to;

	(void)state;
	to.v[URN_C_LOOPBACK] = 5;
	urn_counts_add(&from, URN_C_LOOPBACK);
	urn_counts_add(&from, URN_C_DROP_CM_TX);
	urn_counts_add(&from, URN_C_DROP_CM_TX);
	for (unsigned int i = 0; i < 2; i++) {
		urn_counts_move(&from, &to);
		assert_int_equal(to.v[URN_C_LOOPBACK], 6);
		assert_int_equal(to.v[URN_C_DROP_CM_TX], 2);
	}
	urn_counts_add(&from, URN_C_LOOPBACK);
	urn_counts_move(&from, &to);
	assert_int_equal(to.v[URN_C_LOOPBACK], 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_name_and_text),
		cmocka_unit_test(each_is_in_a_block_of_a_folder),
		cmocka_unit_test(order_stays),
		cmocka_unit_test(a_block_more),
		cmocka_unit_test(a_scope_more),
		cmocka_unit_test(counts_move_once),
	};

	return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
