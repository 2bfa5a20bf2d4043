/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the fuzz targets. A target is a file with LLVMFuzzerInitialize()
 * and LLVMFuzzerTestOneInput(); libFuzzer drives it (option `fuzz` of the build,
 * scripts/fuzz.sh), or replay.c, which needs no fuzzer and runs the kept inputs as a
 * test.
 */
#ifndef URN_TEST_FUZZ_H
#define URN_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libFuzzer's interface; libFuzzer gives these names. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
/* Run one input; the same input always has the same effect. returns 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's function, and those that a target may define to steer it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
				 uint8_t *out, size_t max_out, unsigned int seed);

/* A condition does not hold: print a message and abort, which is a finding. */
#define fuzz_fail(...) fuzz_failed(__FILE__, __LINE__, __VA_ARGS__)
#define fuzz_check(cond)                                                                       \
	do {                                                                                   \
		if (!(cond))                                                                   \
			fuzz_fail("%s does not hold", #cond);                                  \
	} while (0)
_Noreturn void fuzz_failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Start the EAL with the tests' packet pool (common/test_eal.h), and remove its runtime
 * folder at once: a fuzzer with a finding does not clean up.
 */
void fuzz_eal(void);

/* ---- the bytes of an input, taken from the front; zeroes after its end */

struct fuzz_in {
	const uint8_t *p, *end;
};

static inline bool
fuzz_more(const struct fuzz_in *in)
{
	return in->p < in->end;
}

static inline uint8_t
fuzz_u8(struct fuzz_in *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static inline uint16_t
fuzz_u16(struct fuzz_in *in)
{
	uint16_t low = fuzz_u8(in);

	return (uint16_t)(low | fuzz_u8(in) << 8);
}

#endif
