/* SPDX-License-Identifier: BSD-3-Clause */
/* The words for a loss, on the command line. */
#include "common/loss.h"
#include "common/options.h"

#include <limits.h>
#include <string.h>

enum urn_plot_kind
urn_plot_kind(const char *path)
{
	size_t n = strlen(path);

	if (n > 4 && strcmp(path + n - 4, ".svg") == 0)
		return URN_PLOT_SVG;
	return n > 4 && strcmp(path + n - 4, ".png") == 0 ? URN_PLOT_PNG : URN_PLOT_NONE;
}

int
urn_loss_parse(const char *option, const char *text, struct urn_loss_spec *spec,
	       struct urn_err *err)
{
	uint64_t pid;

	*spec = (struct urn_loss_spec){.kind = URN_LOSS_PORT};
	if (text == NULL || strcmp(text, "port") == 0)
		return 0;
	spec->kind = URN_LOSS_KILL;
	if (strcmp(text, "kill") == 0)
		return 0;
	if (strncmp(text, "kill=", 5) == 0) {
		/* Process 1 is nobody's dataplane. */
		if (urn_opt_number(option, text + 5, 2, INT_MAX, &pid, err) != 0)
			return -1;
		spec->pid = (int)pid;
		return 0;
	}
	spec->kind = URN_LOSS_RUN;
	spec->command = text + 4;
	if (strncmp(text, "run=", 4) == 0 && text[4] != '\0')
		return 0;
	urn_err_set(err,
		    "--%s: '%.80s' is no way to lose an adapter: port, kill, kill=PID or "
		    "run=COMMAND",
		    option, text);
	return -1;
}
