/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * <immintrin.h> for DPDK's headers, found in front of the compiler's. The compiler's has all
 * vectors there are and takes longer to read than all of DPDK; a build for processors without AVX
 * needs those of SSE 4.2 alone. A file that has code for others defines URN_ALL_VECTORS.
 */
#if defined(__AVX__) || defined(URN_ALL_VECTORS)
#include_next <immintrin.h>
#else
#include <nmmintrin.h>
#endif
