/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages, written and read (FO-13, FO-17, FO-19). */
#include "session/wire.h"

#include <endian.h>
#include <string.h>

/* A control message as it travels, in network byte order. MIGRATED ends before flags, LEAVE has
 * three fields from there on. */
struct urn_sess_control {
	uint32_t magic;			/* URN_SESS_WIRE_MAGIC */
	uint8_t version;		/* URN_SESS_WIRE_VERSION */
	uint8_t kind;			/* URN_SESS_WIRE_REPORT or URN_SESS_WIRE_MIGRATED */
	uint16_t length;		/* bytes of the whole message */
	uint32_t conn;			/* number of the connection, on the receiver's side */
	uint32_t epoch;			/* epoch of the migration; from 1 on */
	uint32_t flags;			/* enum urn_sess_report_flag */
	uint32_t paths;			/* struct urn_sess_report.paths */
	uint64_t sent;			/* LAST RELIABLY SENT MSGID */
	uint64_t received;		/* LAST RELIABLY RECEIVED MSGID */
	uint64_t sends;			/* Sends among the messages up to sent */
	uint64_t atomics;		/* atomics that the sender carried out for us */
	uint64_t old[URN_SESS_ATOMICS]; /* their results, by number */
};
_Static_assert(sizeof(struct urn_sess_control) == URN_SESS_WIRE_MAX, "REPORT");
_Static_assert(offsetof(struct urn_sess_control, conn) == 8, "control message");
_Static_assert(offsetof(struct urn_sess_control, flags) == URN_SESS_WIRE_HEAD, "control message");
_Static_assert(offsetof(struct urn_sess_control, sent) == 24, "REPORT");
_Static_assert(offsetof(struct urn_sess_control, old) == 56, "REPORT");
_Static_assert(offsetof(struct urn_sess_control, flags) + 24 == URN_SESS_WIRE_LEAVE_BYTES, "LEAVE");

/* OFFER as it travels, in network byte order. */
struct urn_sess_offered {
	uint8_t head[URN_SESS_WIRE_HEAD]; /* the first fields of struct urn_sess_control */
	uint32_t path;			  /* struct urn_sess_offer, as all below */
	uint32_t flags;			  /* ... */
	uint32_t round;			  /* ... */
	uint32_t to;			  /* ... */
	uint32_t qpn, psn;		  /* ... */
	uint32_t ctl_qpn, ctl_psn;	  /* ... */
	uint32_t key;			  /* ... */
	uint32_t zero;			  /* 0 */
	uint8_t gid[16];		  /* ... */
};
_Static_assert(sizeof(struct urn_sess_offered) == URN_SESS_WIRE_OFFER_BYTES, "OFFER");
_Static_assert(offsetof(struct urn_sess_offered, key) == 48, "OFFER");

static const char *const verdict_text[URN_SESS_V_COUNT] = {
#define X(name, text) text,
	URN_SESS_VERDICTS(X)
#undef X
};

const char *
urn_sess_wire_text(unsigned int verdict)
{
	return verdict < URN_SESS_V_COUNT ? verdict_text[verdict] : "?";
}

static void
put_head(struct urn_sess_control *w, uint8_t kind, uint16_t length, uint32_t conn, uint32_t epoch)
{
	*w = (struct urn_sess_control){
		.magic = htobe32(URN_SESS_WIRE_MAGIC),
		.version = URN_SESS_WIRE_VERSION,
		.kind = kind,
		.length = htobe16(length),
		.conn = htobe32(conn),
		.epoch = htobe32(epoch),
	};
}

uint32_t
urn_sess_wire_report(void *to, uint32_t conn, const struct urn_sess_report *r)
{
	struct urn_sess_control w;

	put_head(&w, URN_SESS_WIRE_REPORT, URN_SESS_WIRE_MAX, conn, r->epoch);
	w.flags = htobe32(r->flags);
	w.paths = htobe32(r->paths);
	w.sent = htobe64(r->sent);
	w.received = htobe64(r->received);
	w.sends = htobe64(r->sends);
	w.atomics = htobe64(r->atomics);
	for (uint32_t i = 0; i < URN_SESS_ATOMICS; i++)
		w.old[i] = htobe64(r->old[i]);
	memcpy(to, &w, URN_SESS_WIRE_MAX);
	return URN_SESS_WIRE_MAX;
}

uint32_t
urn_sess_wire_migrated(void *to, uint32_t conn, uint32_t epoch)
{
	struct urn_sess_control w;

	put_head(&w, URN_SESS_WIRE_MIGRATED, URN_SESS_WIRE_HEAD, conn, epoch);
	memcpy(to, &w, URN_SESS_WIRE_HEAD);
	return URN_SESS_WIRE_HEAD;
}

/* LEAVE has three fields, from where REPORT has flags on. */
uint32_t
urn_sess_wire_leave(void *to, uint32_t conn, uint32_t epoch, const struct urn_sess_report *r)
{
	uint64_t field[3] = {htobe64(r->received), htobe64(r->sent), htobe64(r->sends)};
	struct urn_sess_control w;

	put_head(&w, URN_SESS_WIRE_LEAVE, URN_SESS_WIRE_LEAVE_BYTES, conn, epoch);
	memcpy(&w.flags, field, sizeof(field));
	memcpy(to, &w, URN_SESS_WIRE_LEAVE_BYTES);
	return URN_SESS_WIRE_LEAVE_BYTES;
}

uint32_t
urn_sess_wire_offer(void *to, uint32_t conn, uint32_t epoch, const struct urn_sess_offer *o)
{
	struct urn_sess_offered f = {
		.path = htobe32(o->path),
		.flags = htobe32(o->flags),
		.round = htobe32(o->round),
		.to = htobe32(o->to),
		.qpn = htobe32(o->qpn),
		.psn = htobe32(o->psn),
		.ctl_qpn = htobe32(o->ctl_qpn),
		.ctl_psn = htobe32(o->ctl_psn),
		.key = htobe32(o->key),
	};
	struct urn_sess_control w;

	put_head(&w, URN_SESS_WIRE_OFFER, URN_SESS_WIRE_OFFER_BYTES, conn, epoch);
	memcpy(f.head, &w, sizeof(f.head));
	memcpy(f.gid, o->gid, sizeof(f.gid));
	memcpy(to, &f, sizeof(f));
	return sizeof(f);
}

/* Read an OFFER whose length and head are right. */
static enum urn_sess_verdict
get_offer(const struct urn_sess_control *w, struct urn_sess_offer *o)
{
	const uint32_t bits24 = 0xffffff;
	struct urn_sess_offered f;

	memcpy(&f, w, sizeof(f));
	*o = (struct urn_sess_offer){
		.path = be32toh(f.path),
		.flags = be32toh(f.flags),
		.round = be32toh(f.round),
		.to = be32toh(f.to),
		.qpn = be32toh(f.qpn),
		.psn = be32toh(f.psn),
		.ctl_qpn = be32toh(f.ctl_qpn),
		.ctl_psn = be32toh(f.ctl_psn),
		.key = be32toh(f.key),
	};
	memcpy(o->gid, f.gid, sizeof(o->gid));
	if (o->path >= URN_SESS_PATHS)
		return URN_SESS_V_PATHS;
	if (o->flags & ~(uint32_t)(URN_SESS_O_TRUSTED | URN_SESS_O_KNOWN | URN_SESS_O_LOST))
		return URN_SESS_V_FLAGS;
	if (o->round == 0 || o->qpn == 0 || o->ctl_qpn == 0 ||
	    ((o->qpn | o->psn | o->ctl_qpn | o->ctl_psn) & ~bits24))
		return URN_SESS_V_ENDS;
	return URN_SESS_V_OK;
}

static void
get_leave(const struct urn_sess_control *w, struct urn_sess_report *r)
{
	uint64_t field[3];

	memcpy(field, &w->flags, sizeof(field));
	r->received = be64toh(field[0]);
	r->sent = be64toh(field[1]);
	r->sends = be64toh(field[2]);
}

/* Length of a kind; 0: there is no such kind. */
static uint32_t
length_of(uint8_t kind)
{
	switch (kind) {
	case URN_SESS_WIRE_REPORT:
		return URN_SESS_WIRE_MAX;
	case URN_SESS_WIRE_MIGRATED:
		return URN_SESS_WIRE_HEAD;
	case URN_SESS_WIRE_LEAVE:
		return URN_SESS_WIRE_LEAVE_BYTES;
	case URN_SESS_WIRE_OFFER:
		return URN_SESS_WIRE_OFFER_BYTES;
	default:
		return 0;
	}
}

static enum urn_sess_verdict
check_head(const struct urn_sess_control *w, uint32_t bytes, uint32_t conn)
{
	uint32_t want = length_of(w->kind);

	if (be32toh(w->magic) != URN_SESS_WIRE_MAGIC)
		return URN_SESS_V_MAGIC;
	if (w->version != URN_SESS_WIRE_VERSION)
		return URN_SESS_V_VERSION;
	if (want == 0)
		return URN_SESS_V_KIND;
	if (bytes != want || be16toh(w->length) != want)
		return URN_SESS_V_LENGTH;
	if (be32toh(w->conn) != conn)
		return URN_SESS_V_CONN;
	return w->epoch || w->kind == URN_SESS_WIRE_LEAVE || w->kind == URN_SESS_WIRE_OFFER
		       ? URN_SESS_V_OK
		       : URN_SESS_V_EPOCH;
}

static enum urn_sess_verdict
check_report(const struct urn_sess_report *r)
{
	const uint32_t all =
		URN_SESS_R_READY | URN_SESS_R_LOG | URN_SESS_R_UNSURE | URN_SESS_R_DEAD;

	if (r->flags & ~all)
		return URN_SESS_V_FLAGS;
	/* Nobody shuns a path that is not alive. */
	return (r->paths >> URN_SESS_PATHS) & ~r->paths ? URN_SESS_V_PATHS : URN_SESS_V_OK;
}

static void
get_report(const struct urn_sess_control *w, struct urn_sess_report *r)
{
	*r = (struct urn_sess_report){
		.epoch = be32toh(w->epoch),
		.flags = be32toh(w->flags),
		.paths = be32toh(w->paths),
		.sent = be64toh(w->sent),
		.received = be64toh(w->received),
		.sends = be64toh(w->sends),
		.atomics = be64toh(w->atomics),
	};
	for (uint32_t i = 0; i < URN_SESS_ATOMICS; i++)
		r->old[i] = be64toh(w->old[i]);
}

enum urn_sess_verdict
urn_sess_wire_get(const void *from, uint32_t bytes, uint32_t conn, struct urn_sess_msg *m)
{
	struct urn_sess_control w = {0};
	struct urn_sess_report r = {0};
	struct urn_sess_offer o = {0};
	enum urn_sess_verdict v;

	*m = (struct urn_sess_msg){0};
	if (bytes < URN_SESS_WIRE_HEAD)
		return URN_SESS_V_SHORT;
	memcpy(&w, from, bytes < sizeof(w) ? bytes : sizeof(w));
	v = check_head(&w, bytes, conn);
	if (v == URN_SESS_V_OK && w.kind == URN_SESS_WIRE_REPORT) {
		get_report(&w, &r);
		v = check_report(&r);
	}
	if (v == URN_SESS_V_OK && w.kind == URN_SESS_WIRE_LEAVE)
		get_leave(&w, &r);
	if (v == URN_SESS_V_OK && w.kind == URN_SESS_WIRE_OFFER)
		v = get_offer(&w, &o);
	if (v == URN_SESS_V_OK)
		*m = (struct urn_sess_msg){.kind = w.kind,
					   .conn = conn,
					   .epoch = be32toh(w.epoch),
					   .told = r,
					   .offer = o};
	return v;
}
