/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * sutro-exporter: serves metrics over HTTP, on a socket of systemd, or prints them once. Without a
 * scrape for 15 minutes the program ends; the socket starts it again. See sutro-exporter(1).
 */

#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "exporter/http.h"
#include "exporter/listen.h"
#include "exporter/metrics.h"

#define LISTEN "127.0.0.1:9788"
#define REQUEST_USEC (5 * 1000000ULL)
#define IDLE_USEC (15 * 60 * 1000000ULL)
/* After a scrape without an answer of sutrod, the time for the next client that has waited. */
#define HANGS_USEC (1 * 1000000ULL)
/* Of the command line; 1 for others. */
#define EXIT_USAGE 2
/* The text of a scrape, several MB, is freed to the heap, and its pages are those of the next one. */
#define KEPT_BYTES (16 << 20)

static const char help[] =
	"sutro-exporter [OPTION...]\n"
	"\n"
	"Serves metrics of Sutro to Prometheus.\n"
	"\n"
	"  --all                  all cgroups, not 200 at the most\n"
	"  --listen ADDRESS:PORT  without systemd (" LISTEN ")\n"
	"  --once                 print the metrics and exit\n"
	"  --root DIR             of the machine described below DIR (for tests)\n"
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"See sutro-exporter(1).\n";

/**
 * struct exporter - what remains from one scrape to the next
 * @logged: the last failure that was logged, "": none
 * @state: the replies of sutrod for the last scrape
 * @state_until_usec: and for further ones until then
 * @hangs_until_usec: sutrod did not answer, and clients that waited meanwhile come until then
 */
struct exporter {
	const char *root;
	struct ranking ranking;
	char *logged;
	struct state state;
	uint64_t state_until_usec;
	uint64_t hangs_until_usec;
};

/* Log the reason of "sutro_up 0" once, and its end. */
static void log_failure(struct exporter *e, const struct failure *f)
{
	_cleanup_free_ char *text = NULL;

	text = !f->reason ? strdup("")
			  : asprintf_or_null("%s%s%s", f->message,
					     *f->hint ? "; " : "", f->hint);
	if (!text || streq(text, e->logged ?: ""))
		return;
	log_warning("sutro-exporter: %s",
		    *text ? text : "sutrod answers again");
	free(e->logged);
	e->logged = TAKE_PTR(text);
}

/* The replies of the last scrape, or new ones, and until when they last; 0: for this scrape only. */
static int read_state(struct exporter *e, struct state *ret,
		      uint64_t *ret_until_usec)
{
	uint64_t now_usec = monotonic_usec();
	int err;

	*ret_until_usec = e->state_until_usec;
	e->state_until_usec = 0;
	if (now_usec < *ret_until_usec) {
		*ret = e->state;
		e->state = (struct state){};
		return 0;
	}
	state_done(&e->state);
	err = state_read(now_usec < e->hangs_until_usec
				 ? STATE_NEXT_TIMEOUT_USEC
				 : STATE_TIMEOUT_USEC,
			 ret);
	if (err)
		return err;
	now_usec = monotonic_usec();
	if (failure_is_timeout(&ret->failure))
		e->hangs_until_usec = now_usec + HANGS_USEC;
	/* A test changes what there is to read. */
	*ret_until_usec = *e->root || ret->failure.reason
				  ? 0
				  : now_usec + STATE_LASTS_USEC;
	return 0;
}

static int on_scrape(const char *accept, struct writer *w,
		     const char **ret_type, void *userdata)
{
	enum format format = format_accepted(accept);
	struct exporter *e = userdata;
	uint64_t until_usec;
	struct state state;
	struct scrape s;
	int err = read_state(e, &state, &until_usec);

	err = err ?: scrape_take(e->root, &state, &e->ranking, &s);
	if (err)
		return err;
	log_failure(e, &s.state.failure);
	metrics_write(&s, format, w);
	*ret_type = format_type(format);
	e->state = s.state;
	e->state_until_usec = until_usec;
	s.state = (struct state){};
	scrape_done(&s);
	return 0;
}

static int print(int err, const char *s, size_t length)
{
	err = err ?: write_all(STDOUT_FILENO, s, length);
	if (err)
		log_error_errno(err, "sutro-exporter: cannot print: %m");
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int print_text(const char *s)
{
	return print(0, s, strlen(s));
}

static int print_once(struct exporter *e)
{
	_cleanup_(writer_done) struct writer w = {};
	struct state state;
	struct scrape s;
	int err = state_read(STATE_TIMEOUT_USEC, &state);

	err = err ?: scrape_take(e->root, &state, &e->ranking, &s);
	if (!err) {
		metrics_write(&s, FORMAT_TEXT, &w);
		scrape_done(&s);
		err = w.error;
	}
	return print(err, w.p, w.length);
}

/* Ctrl-C. */
static void on_signal(int number)
{
	_exit(EXIT_SUCCESS);
}

static int serve(struct exporter *e, const char *address)
{
	int err, fd, n_passed = sd_listen_fds(0);
	const char *error;

	if (n_passed > 1 ||
	    (n_passed == 1 && sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC,
					   SOCK_STREAM, 1) <= 0)) {
		log_error("sutro-exporter: systemd passes other sockets than "
			  "one with ListenStream=");
		log_error("                correct it: systemctl edit "
			  "sutro-exporter.socket");
		return EXIT_FAILURE;
	}
	fd = n_passed == 1 ? SD_LISTEN_FDS_START : listen_on(address, &error);
	if (fd == -EINVAL) {
		log_error("sutro-exporter: --listen: '%s' is no ADDRESS:PORT",
			  address);
		return EXIT_USAGE;
	}
	if (fd < 0) {
		log_error("sutro-exporter: %s: %s", address, error);
		log_error("                name another address: "
			  "--listen 127.0.0.1:PORT");
		return EXIT_FAILURE;
	}
	signal(SIGINT, on_signal);
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	err = http_serve(fd, REQUEST_USEC, IDLE_USEC, on_scrape, e);
	if (err)
		log_error_errno(err, "sutro-exporter: cannot serve: %m");
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	enum { ALL = 256, LISTEN_ON, ONCE, ROOT, VERSION, HELP = 'h' };
	static const struct option options[] = {
		{ "all", no_argument, NULL, ALL },
		{ "listen", required_argument, NULL, LISTEN_ON },
		{ "once", no_argument, NULL, ONCE },
		{ "root", required_argument, NULL, ROOT },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{},
	};
	struct exporter e = { .root = "", .ranking.most = RANKING_MOST };
	const char *address = LISTEN;
	bool once = false;
	int c, status;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (c) {
		case ALL:
			e.ranking.most = SIZE_MAX;
			break;
		case LISTEN_ON:
			address = optarg;
			break;
		case ONCE:
			once = true;
			break;
		case ROOT:
			e.root = optarg;
			break;
		case VERSION:
			return print_text("sutro-exporter " SUTRO_VERSION "\n");
		case HELP:
			return print_text(help);
		default:
			log_error("See sutro-exporter --help.");
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		log_error("sutro-exporter takes no argument \"%s\"; see "
			  "--help.",
			  argv[optind]);
		return EXIT_USAGE;
	}
	status = once ? print_once(&e) : serve(&e, address);
	ranking_done(&e.ranking);
	state_done(&e.state);
	free(e.logged);
	return status;
}
