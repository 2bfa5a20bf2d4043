/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about errors (failure.h). */
#include "transport/failure.h"

#include "abi/queue.h"
#include "transport/psn_timer.h"
#include "wire/hdr.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The text so far. */
struct text {
	char *at;    /* where the next part goes; always ends with a zero */
	size_t left; /* bytes from there on, that zero included */
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

/* Write a time with three digits at most: "67 ms", "4.2 s". */
static void
add_time(struct text *t, uint64_t ns)
{
	if (ns < 10000000)
		add(t, "%.3g ms", (double)ns / 1e6);
	else if (ns < 1000000000)
		add(t, "%" PRIu64 " ms", ns / 1000000);
	else if (ns < 100000000000)
		add(t, "%.1f s", (double)ns / 1e9);
	else
		add(t, "%" PRIu64 " s", ns / 1000000000);
}

static const char *
address(const uint8_t gid[16], char buf[INET6_ADDRSTRLEN])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v4 = memcmp(gid, v4, sizeof(v4)) == 0;

	if (inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid + 12 : gid, buf, INET6_ADDRSTRLEN) ==
	    NULL)
		buf[0] = '\0';
	return buf;
}

static const char *
request_name(uint8_t opcode)
{
	static const char *const names[] = {
		[URN_WCO_SEND] = "SEND",
		[URN_WCO_RDMA_WRITE] = "RDMA WRITE",
		[URN_WCO_RDMA_READ] = "RDMA READ",
		[URN_WCO_COMP_SWAP] = "compare-and-swap",
		[URN_WCO_FETCH_ADD] = "fetch-and-add",
		[URN_WCO_BIND_MW] = "window bind",
		[URN_WCO_LOCAL_INV] = "local invalidate",
	};

	return opcode < sizeof(names) / sizeof(names[0]) ? names[opcode] : "request";
}

/* The clause about a NAK that ends a queue pair. */
static const char *
nak_text(uint8_t syndrome)
{
	switch (syndrome) {
	case URN_NAK_INV_REQ:
		return "invalid request";
	case URN_NAK_ACCESS:
		return "remote access error: key, address or right is wrong";
	case URN_NAK_OP:
		return "remote operation error: memory or receive of the responder failed";
	default:
		return "error";
	}
}

/* ---- parts of the sentence */

static void
add_who(struct text *t, const struct urn_failure *f)
{
	char buf[INET6_ADDRSTRLEN];

	add(t, "QP 0x%x", f->qpn);
	if (f->connected)
		add(t, " to %s QP 0x%x", address(f->dgid, buf), f->dest_qpn);
	add(t, ": ");
}

/* Write what the peer acknowledged last. */
static void
add_acked(struct text *t, const struct urn_failure *f)
{
	if (f->acked)
		add(t, "; the peer acknowledged PSN 0x%06x last", (f->una - 1) & URN_PSN_MASK);
	else
		add(t, "; the peer has acknowledged nothing so far");
}

static void
add_timeout(struct text *t, const struct urn_failure *f)
{
	const char *s = f->tried == 1 ? "" : "s";

	if (f->unsent)
		add(t, "was never sent in %u timeout%s", f->tried, s);
	else
		add(t, "was not acknowledged, sent %u time%s", f->tried, s);
	if (f->timeout) {
		add(t, f->unsent ? " of " : ", timeout ");
		add_time(t, 1ull << (URN_TIMEOUT_SHIFT + f->timeout));
	}
	if (f->vendor_err == URN_VE_SEQ) {
		/* An answer of the peer brings this error: a NAK, or a response out of turn. The
		 * sentence about an obstacle needs the room. */
		if (f->acked)
			add(t, "; PSN 0x%06x acknowledged last", (f->una - 1) & URN_PSN_MASK);
		add(t, f->answers_lost ? "; its responses are lost on the way here"
				       : "; the peer answers, and misses packets");
		return;
	}
	add_acked(t, f);
	if (f->stalled_ns) {
		add(t, ", no progress for at least ");
		add_time(t, f->stalled_ns);
	}
}

static void
add_obstacle(struct text *t, const struct urn_failure *f, const char *port)
{
	char buf[INET6_ADDRSTRLEN];

	switch ((enum urn_obstacle)f->obstacle) {
	case URN_OBSTACLE_NONE:
		break;
	case URN_OBSTACLE_PORT_DOWN:
		add(t, ": port %s is administratively down", port);
		break;
	case URN_OBSTACLE_PORT_FAILED:
		add(t, ": port %s was failed by a command", port);
		break;
	case URN_OBSTACLE_NO_LINK:
		add(t, ": port %s has no link", port);
		break;
	case URN_OBSTACLE_NO_MAC:
		/* The long address stands at the sentence's beginning already. */
		if (strchr(address(f->hop, buf), ':'))
			add(t, ": no answer of neighbour discovery%s",
			    memcmp(f->hop, f->dgid, sizeof(f->hop)) ? " from the router" : "");
		else
			add(t, ": no ARP answer from %s%s",
			    memcmp(f->hop, f->dgid, sizeof(f->hop)) ? "the router " : "", buf);
		break;
	case URN_OBSTACLE_NO_ROUTE:
		add(t, ": no route leads there");
		break;
	}
}

static void
add_request(struct text *t, const struct urn_failure *f, const char *port)
{
	add(t, "%s", request_name(f->opcode));
	if (!f->local_work)
		add(t, " of %u bytes at PSN 0x%06x", f->length, f->psn);
	add(t, " ");
	if (f->status == URN_WC_RETRY_EXC_ERR) {
		add_timeout(t, f);
		add_obstacle(t, f, port);
	} else if (f->status == URN_WC_RNR_RETRY_EXC_ERR) {
		add(t, "found no receive at the peer, sent %u time%s", f->tried,
		    f->tried == 1 ? "" : "s");
		add_acked(t, f);
		add(t, ", and was heard at this moment"); /* by the NAK that brings this error */
	} else if (f->syndrome) {
		add(t, "was refused by the peer with NAK 0x%02x (%s)", f->syndrome,
		    nak_text(f->syndrome));
	} else {
		add(t, "failed here: %s", urn_abi_vendor_err_text(f->vendor_err));
	}
}

static void
add_peer_request(struct text *t, const struct urn_failure *f)
{
	if (f->connected)
		add(t, "request of the peer at PSN 0x%06x", f->psn);
	else
		add(t, "datagram");
	if (f->kind == URN_FAILURE_RECEIVE)
		add(t, " failed its receive: %s", urn_abi_vendor_err_text(f->vendor_err));
	if (f->syndrome)
		add(t, "%s refused with NAK 0x%02x (%s)",
		    f->kind == URN_FAILURE_RECEIVE ? ", and was" : " was", f->syndrome,
		    nak_text(f->syndrome));
	else if (f->kind == URN_FAILURE_REFUSED)
		add(t, " could not be written to memory");
}

void
urn_failure_text(const struct urn_failure *f, const char *port, bool flushed, char *out,
		 size_t size)
{
	struct text t = {out, size};

	out[0] = '\0';
	add_who(&t, f);
	if (flushed)
		add(&t, "flushed, because earlier ");
	switch ((enum urn_failure_kind)f->kind) {
	case URN_FAILURE_REQUEST:
		add_request(&t, f, port);
		break;
	case URN_FAILURE_RECEIVE:
	case URN_FAILURE_REFUSED:
		add_peer_request(&t, f);
		break;
	case URN_FAILURE_CQ:
		add(&t, "a completion queue overflowed, and completions were lost: make it larger, "
			"or poll more often");
		break;
	case URN_FAILURE_LOST:
		add(&t, "the connection belongs to another queue pair of this peer, or packets of "
			"it were forged");
		break;
	case URN_FAILURE_NONE:
		break;
	}
}
