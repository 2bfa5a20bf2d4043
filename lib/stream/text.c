/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and texts of a stream connection, for logs and errors. */
#include "stream/priv.h"

#include <stdio.h>

#define NAME(name, meaning) #name,
static const char *const tx_name[URN_ST_TX_COUNT] = {URN_ST_TX_STATES(NAME)};
static const char *const rx_name[URN_ST_RX_COUNT] = {URN_ST_RX_STATES(NAME)};
static const char *const state_name[URN_ST_S_COUNT] = {URN_ST_STATES(NAME)};
#undef NAME

#define TEXT(name, text) text,
static const char *const decision_text[URN_ST_D_COUNT] = {URN_ST_DECISIONS(TEXT)};
static const char *const reason_text[URN_ST_R_COUNT] = {URN_ST_REASONS(TEXT)};
#undef TEXT

const char *
urn_st_tx_name(unsigned int state)
{
	return state < URN_ST_TX_COUNT ? tx_name[state] : "?";
}

const char *
urn_st_rx_name(unsigned int state)
{
	return state < URN_ST_RX_COUNT ? rx_name[state] : "?";
}

const char *
urn_st_state_name(unsigned int state)
{
	return state < URN_ST_S_COUNT ? state_name[state] : "?";
}

const char *
urn_st_decision_text(unsigned int decision)
{
	return decision < URN_ST_D_COUNT ? decision_text[decision] : "?";
}

const char *
urn_st_reason_text(unsigned int reason)
{
	return reason < URN_ST_R_COUNT ? reason_text[reason] : "?";
}

void
urn_st_error(const struct urn_st *s, char *to, uint32_t bytes)
{
	const char *why = urn_st_reason_text(s->reason), *more = "";

	if (s->reason == URN_ST_R_FORM)
		more = urn_st_verdict_text(s->verdict);
	if (s->reason == URN_ST_R_PEER)
		more = urn_st_reason_text(s->told);
	if (s->kind)
		snprintf(to, bytes, "%s: %s; at byte %llu, where byte %llu is due", why,
			 urn_st_kind_text(s->kind), (unsigned long long)s->offset,
			 (unsigned long long)s->expected);
	else
		snprintf(to, bytes, "%s%s%s", why, *more ? ": " : "", more);
}
