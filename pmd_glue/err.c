/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/port.h"

#include <stdarg.h>
#include <stdio.h>

void
urn_err_set(struct urn_err *err, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}
