/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-pingpong: exchanges messages with ibv_rc_pingpong of another RDMA stack. */
#include "pp.h"

#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

static int
fail(const struct urn_err *err)
{
	fprintf(stderr, "urnic-pingpong: %s\n", err->text);
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_FAILURE;
}

static int
run(const struct pp_opts *o, struct pp_result *res)
{
	struct urn_err err = {{0}};

	if (pp_run(o, res, &err))
		return fail(&err);
	pp_report(o, res);
	if (!ferror(stdout))
		return EXIT_SUCCESS;
	urn_err_set(&err, "the results could not be written");
	return fail(&err);
}

int
main(int argc, char **argv)
{
	struct urn_err err = {{0}};
	struct pp_result *res; /* too large for the stack */
	struct pp_opts o;
	int rc;

	switch (pp_options_parse(argc, argv, &o, &err)) {
	case PP_EXIT_OK:
		return EXIT_SUCCESS;
	case PP_EXIT_USAGE:
		fprintf(stderr, "urnic-pingpong: %s\n", err.text);
		return EXIT_USAGE;
	default:
		break;
	}
	urn_stop_install();
	res = malloc(sizeof(*res));
	if (res == NULL) {
		urn_err_set(&err, "no memory for results");
		return fail(&err);
	}
	rc = run(&o, res);
	free(res);
	return rc;
}
