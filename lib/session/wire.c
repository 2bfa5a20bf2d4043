/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages, written and read (FO-13, FO-17). */
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
	uint32_t paths;			/* bits by path: alive for the sender */
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
	return w->epoch || w->kind == URN_SESS_WIRE_LEAVE ? URN_SESS_V_OK : URN_SESS_V_EPOCH;
}

static enum urn_sess_verdict
check_report(const struct urn_sess_report *r)
{
	const uint32_t all =
		URN_SESS_R_READY | URN_SESS_R_LOG | URN_SESS_R_UNSURE | URN_SESS_R_DEAD;

	if (r->flags & ~all)
		return URN_SESS_V_FLAGS;
	return r->paths >> URN_SESS_PATHS ? URN_SESS_V_PATHS : URN_SESS_V_OK;
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
	if (v == URN_SESS_V_OK)
		*m = (struct urn_sess_msg){
			.kind = w.kind, .conn = conn, .epoch = be32toh(w.epoch), .told = r};
	return v;
}
