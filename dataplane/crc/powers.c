/* SPDX-License-Identifier: BSD-3-Clause */
/* The powers of x that the kernels multiply by; test/unit/crc/test_powers.c derives each of them.
 */
#include "crc/kernels.h"

#define K(power) ((uint64_t)(power) << 32)

const uint64_t urn_crc_end[URN_CRC_END / 8] __attribute__((aligned(64))) = {
	K(0x0c30f51d), K(0x398e2ff2), K(0x145575d5), K(0xc2dcc467), K(0x9ee62949), K(0x9fb66bd3),
	K(0x6d40f445), K(0xad0d2bb2), K(0xcd669a40), K(0xeff5e99d), K(0xf9d9c7ee), K(0x4b700aa8),
	K(0xeea395c4), K(0x8b8d8645), K(0x4470ac44), K(0x2ce423f1), K(0xd31343ea), K(0x7eaed122),
	K(0x9b9bdbd0), K(0xc51b93e3), K(0xf183c71b), K(0x76278617), K(0x1c63267b), K(0x0e9bd5cc),
	K(0xcec97417), K(0x32b0733c), K(0xff6f2fc2), K(0x2c538639), K(0x71d54a59), K(0xa749e894),
	K(0xb918a347), K(0xce3371cb), K(0xe95c1271), K(0x0077f00d), K(0x1f0c2cdd), K(0x4a28bd43),
	K(0xfe807bbd), K(0x682bdd4f), K(0x3c656ced), K(0x596c8d81), K(0xf5e48c85), K(0x5a1bb05d),
	K(0xd1df2327), K(0xe3543be0), K(0x9026d5b1), K(0x26b70c3d), K(0x3f41287a), K(0x33fff533),
	K(0x910eeec1), K(0x31f8303f), K(0x0cbec0ed), K(0xdf068dc2), K(0x57c54819), K(0x1c279815),
	K(0xae0b5394), K(0x8f352d95), K(0x1d9513d7), K(0x3db1ecdc), K(0xaf449247), K(0xf1da05aa),
	K(0x81256527), K(0xae689191), K(0xccaa009e), K(0x00000001),
};

const uint64_t urn_crc_by256[8] __attribute__((aligned(64))) = {
	K(0x7cc8e1e7), K(0x03f9f863), K(0x7cc8e1e7), K(0x03f9f863),
	K(0x7cc8e1e7), K(0x03f9f863), K(0x7cc8e1e7), K(0x03f9f863),
};

const uint64_t urn_crc_by128[8] __attribute__((aligned(64))) = {
	K(0x7d657a10), K(0x7406fa95), K(0x7d657a10), K(0x7406fa95),
	K(0x7d657a10), K(0x7406fa95), K(0x7d657a10), K(0x7406fa95),
};
