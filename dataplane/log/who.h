/* SPDX-License-Identifier: BSD-3-Clause */
/* A program, as the log of events names it. */
#ifndef URN_LOG_WHO_H
#define URN_LOG_WHO_H

#include <stdint.h>
#include <sys/types.h>

struct urn_log_who {
	uint32_t client;  /* number of the client; 0: it is none (yet) */
	pid_t pid;	  /* its process, by the kernel's word; 0: not known */
	uid_t uid;	  /* its user, by the kernel's word */
	char program[16]; /* name of its program, by its own word; "": not known */
};

/* Fill in the name of the program that the process runs now; "": it has gone. (line.c) */
void urn_log_who_program(struct urn_log_who *who);

#endif
