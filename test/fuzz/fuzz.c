/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz.h"

#include "common/test_eal.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
fuzz_failed(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
fuzz_eal(void)
{
	const char *folder;

	(void)test_eal_pool();
	folder = getenv("XDG_RUNTIME_DIR"); /* test_eal.c made the folder, for this process alone */
	if (folder)
		nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
