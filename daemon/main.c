/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <getopt.h>
#include <stdio.h>

#include "bus/interface.h"
#include "manager.h"
#include "policy/check.h"
#include "restore.h"

static const char help[] =
	"sutrod [OPTION...]\n"
	"sutrod --check FILE...\n"
	"sutrod --restore [--release]\n"
	"\n"
	"Makes the weights of systemd units hold on the disks under any device.\n"
	"\n"
	"  --dry-run          compute and log, write nothing\n"
	"  --debug            log everything\n"
	"  --root=DIR         serve the machine described below DIR (for tests)\n"
	"  --check FILE...    print the mistakes in files of policies or sutrod.conf\n"
	"  --restore          take back weights and limits; no sutrod may run\n"
	"  --release          with --restore: give schedulers back, too\n"
	"  --bus-introspect   print the D-Bus interface and exit\n"
	"  --version          print the version and exit\n"
	"  --help             print this and exit\n"
	"\n"
	"See sutrod(8).\n";

/* Lost output is a failure. */
static int end_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	log_error_errno(errno, "Cannot write to standard output: %m");
	return EXIT_FAILURE;
}

static int introspect(void)
{
	_cleanup_free_ char *xml = NULL;
	int r = bus_introspect(&xml);

	if (r < 0)
		return log_error_errno(r, "Cannot introspect: %m");
	fputs(xml, stdout);
	return 0;
}

static int check(char *const *paths)
{
	if (!*paths) {
		log_error("--check needs the names of *.policy, unit or "
			  "drop-in files, or sutrod.conf.");
		return EXIT_FAILURE;
	}
	return check_files(paths) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The full path of --root=, to be freed; NULL: an error, which is logged. */
static char *find_root(const char *root)
{
	char *real = *root ? realpath(root, NULL) : strdup("");

	if (!real)
		log_error_errno(errno, "--root=%s: %m", root);
	return real;
}

static int run(const char *root, bool dry_run)
{
	_cleanup_(manager_freep) struct manager *m = NULL;
	_cleanup_free_ char *real = find_root(root);
	int r;

	if (!real)
		return -ENOENT;
	r = manager_new(real, dry_run, &m);
	r = r < 0 ? r : manager_run(m);
	return r ? -abs(r) : 0; /* a lost bus ends the loop with 1 */
}

static int take_back(const char *root, bool release)
{
	_cleanup_free_ char *real = find_root(root);

	return real ? restore(real, release) : -ENOENT;
}

int main(int argc, char *argv[])
{
	enum {
		ROOT = 256,
		DRY_RUN,
		DEBUG,
		CHECK,
		RESTORE,
		RELEASE,
		INTROSPECT,
		VERSION,
		HELP
	};
	static const struct option options[] = {
		{ "root", required_argument, NULL, ROOT },
		{ "dry-run", no_argument, NULL, DRY_RUN },
		{ "debug", no_argument, NULL, DEBUG },
		{ "check", no_argument, NULL, CHECK },
		{ "restore", no_argument, NULL, RESTORE },
		{ "release", no_argument, NULL, RELEASE },
		{ "bus-introspect", no_argument, NULL, INTROSPECT },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{},
	};
	const char *root = "";
	bool dry_run = false, check_only = false;
	bool restore_only = false, release = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case ROOT:
			root = optarg;
			break;
		case DRY_RUN:
			dry_run = true;
			break;
		case DEBUG:
			log_set_max_level(LOG_DEBUG);
			break;
		case CHECK:
			check_only = true;
			break;
		case RESTORE:
			restore_only = true;
			break;
		case RELEASE:
			release = true;
			break;
		case INTROSPECT:
			return end_output(introspect() < 0 ? EXIT_FAILURE
							   : EXIT_SUCCESS);
		case VERSION:
			puts("sutrod " SUTRO_VERSION);
			return end_output(EXIT_SUCCESS);
		case HELP:
			fputs(help, stdout);
			return end_output(EXIT_SUCCESS);
		default:
			log_error("See sutrod --help.");
			return EXIT_FAILURE;
		}
	}
	if (check_only)
		return end_output(check(argv + optind));
	if (optind < argc) {
		log_error("sutrod takes no argument \"%s\"; see --help.",
			  argv[optind]);
		return EXIT_FAILURE;
	}
	if (restore_only)
		return take_back(root, release) < 0 ? EXIT_FAILURE
						    : EXIT_SUCCESS;
	if (release) {
		log_error("--release is for --restore only; see --help.");
		return EXIT_FAILURE;
	}
	return run(root, dry_run) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
