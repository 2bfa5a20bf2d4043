/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management on any MAD, with an owner that makes any calls. Invariants: each
 * message sent can be read; each message received has a counter; the owner gets events of
 * its own ids only; the table is sound after every step and within its bounds; when the
 * owner is gone and time has passed, nothing is left.
 *
 * Input: a byte for the size of the table, then steps: a byte for the kind, and its
 * bytes.
 */
#include "fuzz.h"

#include "common/test_cm_look.h"

#include <string.h>

enum { STEPS = 96, IDS = 16, SERVICES = 3 };

struct cm_world {
	struct urn_cm *cm;
	struct urn_cm_owner o;
	uint64_t now;
	uint32_t id[IDS];   /* ids that the owner got, from events or calls */
	unsigned int ids;
	bool deaf, dumb;
};

static const uint8_t us[16] = {[10] = 0xff, [11] = 0xff, [15] = 1};
static const uint8_t peers[2][16] = {{[10] = 0xff, [11] = 0xff, [15] = 2}, {0xfe, 0x80, [15] = 3}};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static enum urn_cm_sending
send_mad(void *ctx, uint32_t id, const uint8_t own[16], const uint8_t peer[16], const uint8_t *mad,
	 bool wait)
{
	struct cm_world *w = ctx;
	struct urn_cm_msg m;

	(void)id, (void)wait;
	fuzz_check(memcmp(own, us, 16) == 0);
	fuzz_check(memcmp(peer, peers[0], 16) == 0 || memcmp(peer, peers[1], 16) == 0);
	fuzz_check(urn_cm_read(mad, 1, &m) == URN_C_CM_RX);
	return w->dumb ? URN_CM_NO_ROOM : URN_CM_SENDS;
}

static void
remember(struct cm_world *w, uint32_t id)
{
	w->id[w->ids++ % IDS] = id;
}

static bool
take_event(void *ctx, struct urn_cm_owner *o, int32_t channel, const struct urn_abi_cm_event *ev)
{
	struct cm_world *w = ctx;

	(void)channel;
	fuzz_check(o == &w->o);
	fuzz_check(ev->type > URN_CM_EVENT_NONE && ev->type < URN_CM_EVENTS);
	fuzz_check(ev->id != 0 && ev->data_len + ev->info_len <= URN_CM_DATA_MAX);
	if (w->deaf)
		return false;
	if (ev->type == URN_CM_EVENT_REQUEST || ev->type == URN_CM_EVENT_SIDR_REQUEST)
		remember(w, ev->id);
	return true;
}

static uint32_t
some_id(const struct cm_world *w, uint8_t byte)
{
	return byte >= 0xf0 ? byte * 0x01010101u : w->id[byte % IDS];
}

/* A message whose fields make sense sometimes, with some of its bytes changed. */
static void
message(struct cm_world *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), kind = fuzz_u8(in), mad[URN_MAD_BYTES];
	const uint8_t *peer = peers[how & 1];
	struct urn_cm_msg m = {.attr = (uint16_t)(URN_CM_REQ + kind % 11), .tid = fuzz_u8(in)};

	m.remote_id = some_id(w, fuzz_u8(in));
	m.local_id = m.attr == URN_CM_SIDR_REP ? m.remote_id : 1u + (how >> 1 & 3);
	m.service_id = fuzz_u8(in) % (SERVICES + 1u);
	m.qpn = 2u + (how >> 3 & 1);
	m.mtu = kind < 0xf0 ? 3 : kind & 7;
	m.local_timeout = fuzz_u8(in) & 31;
	m.max_retries = how >> 4;
	m.about = kind >> 6 & 1;
	m.service_timeout = m.local_timeout;
	m.reason = URN_CM_REJ_TIMEOUT;
	m.path[0].ack_timeout = m.local_timeout;
	urn_cm_write(mad, &m);
	for (unsigned int i = kind >= 0xc0 ? kind & 7 : 0; i; i--) {
		uint8_t at = fuzz_u8(in);

		mad[at] = fuzz_u8(in);
	}
	fuzz_check(urn_cm_input(w->cm, peer, us, (how & 0xf0) == 0xf0 ? how & 3 : 1, mad, w->now) <
		   URN_COUNTER_COUNT);
}

/* Bytes of the input, unchanged. */
static void
raw(struct cm_world *w, struct fuzz_in *in)
{
	uint8_t mad[URN_MAD_BYTES];

	for (unsigned int i = 0; i < URN_MAD_BYTES; i++)
		mad[i] = fuzz_u8(in);
	mad[1] = URN_MAD_CLASS_CM;
	fuzz_check(urn_cm_input(w->cm, peers[0], us, 1, mad, w->now) < URN_COUNTER_COUNT);
}

static void
ask(struct cm_world *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	struct urn_abi_cm_connect p = {
		.service_id = how & 3,
		.qpn = how & 0x40 ? 7 : fuzz_u8(in),
		.mtu = 3,
		.timeout = fuzz_u8(in),
		.max_retries = how >> 2 & 15,
		.data_len = how & 0x40 ? 3 : fuzz_u8(in),
	};
	struct urn_abi_cm_listen l = {.service_id = how & 3, .backlog = how >> 4};
	uint32_t id = 0;
	int rc;

	memcpy(p.dgid, peers[how >> 6 & 1], 16);
	if (how < 0x40)
		rc = urn_cm_listen(w->cm, &w->o, &l, &id);
	else if (how < 0x60)
		rc = urn_cm_resolve(w->cm, &w->o, &p, us, w->now, &id);
	else
		rc = urn_cm_connect(w->cm, &w->o, &p, us, w->now, &id);
	fuzz_check((rc == 0) == (id != 0));
	if (rc == 0)
		remember(w, id);
}

static void
act(struct cm_world *w, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in), n = fuzz_u8(in);
	uint32_t id = some_id(w, fuzz_u8(in));
	struct urn_abi_cm_accept a = {.qpn = n, .data_len = n};
	struct urn_abi_cm_reject r = {.reason = n, .data_len = n, .info_len = n};
	struct urn_abi_cm_data d = {.data_len = n};

	switch (what % 6) {
	case 0: case 1: (void)urn_cm_accept(w->cm, &w->o, id, &a, w->now); break;
	case 2: (void)urn_cm_reject(w->cm, &w->o, id, &r, w->now); break;
	case 3: (void)urn_cm_establish(w->cm, &w->o, id, &d, w->now); break;
	case 4: (void)urn_cm_disconnect(w->cm, &w->o, id, &d, w->now); break;
	default: (void)urn_cm_release(w->cm, &w->o, id, w->now);
	}
}

static void
pass(struct cm_world *w, uint8_t how)
{
	w->now += 1ull << how % 40;
	fuzz_check(urn_cm_tick(w->cm, w->now) <= URN_CM_TICK);
	w->deaf = how >= 0xf0;
	w->dumb = (how & 0xf0) == 0xe0;
}

/* No connection has an owner: all end by themselves. */
static void
finish(struct cm_world *w)
{
	w->deaf = w->dumb = false;
	while (urn_cm_owner_goes(w->cm, &w->o, w->now))
		;
	fuzz_check(w->o.ids == 0);
	for (unsigned int i = 0; urn_cm_due(w->cm) != UINT64_MAX; i++) {
		fuzz_check(i < 100000);
		w->now = urn_cm_due(w->cm);
		urn_cm_tick(w->cm, w->now);
	}
	fuzz_check(test_cm_count(w->cm) == 0 && test_cm_sound(w->cm));
	urn_cm_destroy(w->cm);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	static struct cm_world w;
	struct urn_cm_config cfg = {.seed = 7, .send = send_mad, .event = take_event, .ctx = &w};
	uint8_t first = fuzz_u8(&in);

	memset(&w, 0, sizeof(w));
	w.now = 1000000000;
	cfg.max_ids = 1 + first % 24;
	w.cm = urn_cm_create(&cfg);
	fuzz_check(w.cm);
	urn_cm_owner_init(&w.o, first >> 5, &w);
	for (unsigned int i = 0; i < STEPS && fuzz_more(&in); i++) {
		switch (fuzz_u8(&in) & 15) {
		case 0: case 1: case 2: case 3: case 4: case 5: case 6: message(&w, &in); break;
		case 7: raw(&w, &in); break;
		case 8: case 9: ask(&w, &in); break;
		case 10: case 11: case 12: case 13: act(&w, &in); break;
		default: pass(&w, fuzz_u8(&in));
		}
		fuzz_check(test_cm_sound(w.cm));
		fuzz_check(test_cm_count(w.cm) <= cfg.max_ids);
	}
	finish(&w);
	return 0;
}
