/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a pcap of frames that the builder makes, of every opcode, over IPv4 and IPv6 and
 * in many sizes, for check_frames.py to check.
 */
#include "common/test_pcap.h"
#include "frames.h"

int
main(int argc, char **argv)
{
	static const uint32_t size[] = { 0, 1, 2, 3, 4, 61, 256, 1000, 1024, 4095, 4096 };
	static uint8_t frame[FRAME_ROOM];
	FILE *f = argc == 2 ? test_pcap_create(argv[1]) : NULL;
	uint8_t ops[256];
	unsigned int n = frame_opcodes(ops), made = 0;

	if (f == NULL) {
		fprintf(stderr, "usage: %s FILE.pcap (which can be written)\n", argv[0]);
		return 1;
	}
	for (unsigned int i = 0; i < n * 2; i++) {
		const struct urn_opcode *op = &urn_opcodes[ops[i / 2]];
		unsigned int sizes = op->flags & URN_OPF_PAYLOAD ? sizeof(size) / 4 : 1;

		for (unsigned int k = 0; k < sizes; k++, made++) {
			struct frame_spec s = {
				.opcode = ops[i / 2], .ipv6 = i & 1, .payload = size[k],
				.dqpn = 0x11 + made, .psn = 0xfffff0 + made, .tos = (uint8_t)made,
				.ttl = (uint8_t)(1 + made % 255), .ackreq = made & 1,
			};

			if (test_pcap_add(f, frame, frame_make(frame, &s)) != 0)
				return 1;
		}
	}
	printf("%u\n", made);
	return fclose(f) == 0 ? 0 : 1;
}
