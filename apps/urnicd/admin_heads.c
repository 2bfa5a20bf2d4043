/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of tables without a row, which no object gives: a person sees what would be there. */
#include "admin.h"

#include <string.h>

/* Columns in their order, by command; NULL: its answer is never an empty table. */
static const char *const heads[ADMIN_COMMAND_COUNT] = {
	[ADMIN_show_qp] =
		("qpn adapter client pid program type state peer peer_qpn mtu sends receives "
		 "outstanding"),
	[ADMIN_show_errors] = "adapter client pid attached qpn ago_ms status vendor_err why",
	[ADMIN_show_cq] = ("adapter client cq engine entries waiting written users channel "
			   "events overrun"),
	[ADMIN_show_srq] = "adapter client srq engine pd entries posted limit users",
	[ADMIN_show_msg] = ("set adapter client engine queue name state entries entry_bytes "
			    "head tail waiting sent answer may_be_there arena_bytes"),
	[ADMIN_show_am] = ("endpoint adapter client engine number entries commands waiting "
			   "under_way packets done failed last_error may_be_there refused "
			   "last_refusal unread regions ranges no_key"),
	[ADMIN_show_mr] = "adapter client key kind pd address bytes access foreign bound",
	[ADMIN_show_client] = ("client adapter pid uid program remote qps cqs srqs channels "
			       "msg_sets am_endpoints mrs pinned_bytes foreign"),
	[ADMIN_show_switch] = ("switch port up switch_link pfc rx_packets tx_packets drops "
			       "ecn_marked queue_bytes queue_peak pause_tx pause_rx marked "
			       "impair_in impair_out"),
	[ADMIN_show_address] = "switch mac port static",
	[ADMIN_show_neigh] = "adapter address mac state static routes peer",
	[ADMIN_show_route] = "adapter prefix via mac state from lifetime_s",
	[ADMIN_reload] = "section key from to when",
};

void
nicd_admin_head(struct nicd_run *r)
{
	const char *head = heads[r->call.id];

	if (head == NULL || r->text.any)
		return;
	for (const char *at = head; *at;) {
		size_t n = strcspn(at, " ");

		urn_report_buf_add(&r->out, at, n);
		at += n + (at[n] == ' ');
		urn_report_buf_add(&r->out, *at ? "  " : "\n", *at ? 2 : 1);
	}
}
