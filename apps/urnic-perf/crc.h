/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf crc: the speed of the CRC kernels (crc.c). */
#ifndef URN_PERF_CRC_H
#define URN_PERF_CRC_H

/* Run `urnic-perf crc`, argv[0]: "crc". Prints help and results itself. returns: the exit code */
int crc_main(int argc, char **argv);

#endif
