/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * GET and HEAD /metrics over HTTP, by libmicrohttpd in one thread.
 *
 * Each connection has one request. The timeout of the library is one between two bytes, so a client
 * could send a byte at a time for ever: here a connection is not read for longer than a request may
 * take. An answer can still be sent then.
 */

#include <fcntl.h>
#include <microhttpd.h>
#include <signal.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "exporter/http.h"

#define NOT_FOUND "the metrics are at /metrics\n"
#define NOT_ALLOWED "the methods are GET and HEAD\n"
#define NOT_MADE "the metrics cannot be made; see the log of sutro-exporter\n"

/* Clients at a time, from addresses that the socket unit allows; others wait. */
#define CLIENTS_MAX 16U
/* After this time a client that takes nothing of its answer is disconnected. A scrape can take 5 s,
 * in which no answer is sent.
 */
#define STALLED_S 15U

/**
 * struct client - a connection
 * @until_usec: when it is read no longer; UINT64_MAX: it is not read any more
 */
struct client {
	int socket;
	uint64_t until_usec;
	LIST_ENTRY(client) others;
};

struct http {
	uint64_t request_usec;
	uint64_t idle_until_usec;
	uint64_t idle_usec;
	http_fn *on_scrape;
	void *userdata;
	LIST_HEAD(, client) clients;
};

static void on_connection(void *userdata, struct MHD_Connection *connection,
			  void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;
	struct http *h = userdata;
	struct client *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (c)
			LIST_REMOVE(c, others);
		free(c);
		return;
	}
	h->idle_until_usec = monotonic_usec() + h->idle_usec;
	info = MHD_get_connection_info(connection,
				       MHD_CONNECTION_INFO_CONNECTION_FD);
	c = calloc(1, sizeof(*c));
	if (!c || !info) {
		free(c);
		return;
	}
	c->socket = info->connect_fd;
	c->until_usec = monotonic_usec() + h->request_usec;
	LIST_INSERT_HEAD(&h->clients, c, others);
	*context = c;
}

/* Let the others have the time that one request took. */
static void extend(struct http *h, uint64_t usec)
{
	struct client *c;

	LIST_FOREACH(c, &h->clients, others)
		if (c->until_usec != UINT64_MAX)
			c->until_usec += usec;
}

static enum MHD_Result answer(struct MHD_Connection *connection,
			      unsigned int status, const char *type,
			      struct MHD_Response *r)
{
	enum MHD_Result result = MHD_NO;

	if (r && MHD_add_response_header(r, "Content-Type", type) &&
	    MHD_add_response_header(r, "Connection", "close") &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(r, "Allow", "GET, HEAD")))
		result = MHD_queue_response(connection, status, r);
	if (r)
		MHD_destroy_response(r);
	return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection,
				   unsigned int status, const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8",
		      MHD_create_response_from_buffer(strlen(text),
						      (void *)text,
						      MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result scrape(struct http *h, struct MHD_Connection *connection)
{
	_cleanup_(writer_done) struct writer w = {};
	uint64_t begin_usec = monotonic_usec();
	struct MHD_Response *r;
	const char *type;
	int err;

	err = h->on_scrape(MHD_lookup_connection_value(
				   connection, MHD_HEADER_KIND, "Accept"),
			   &w, &type, h->userdata);
	extend(h, monotonic_usec() - begin_usec);
	err = err ?: w.error;
	if (err) {
		log_error_errno(err, "sutro-exporter: scrape failed: %m");
		return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
				   NOT_MADE);
	}
	r = MHD_create_response_from_buffer(w.length, w.p,
					    MHD_RESPMEM_MUST_FREE);
	if (r)
		w.p = NULL;
	return answer(connection, MHD_HTTP_OK, type, r);
}

/* Of "/metrics", and of "http://a/metrics", which is the form for a proxy. */
static const char *path_of(const char *url)
{
	const char *host = *url == '/' ? NULL : strstr(url, "://");

	return host ? strchr(host + 3, '/') ?: "/" : url;
}

static enum MHD_Result on_request(void *userdata,
				  struct MHD_Connection *connection,
				  const char *url, const char *method,
				  const char *version, const char *body,
				  size_t *body_bytes, void **context)
{
	struct http *h = userdata;

	/* The library sends no text for HEAD, but its length. */
	if (!streq(method, MHD_HTTP_METHOD_GET) &&
	    !streq(method, MHD_HTTP_METHOD_HEAD))
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				   NOT_ALLOWED);
	if (!streq(path_of(url), "/metrics"))
		return answer_text(connection, MHD_HTTP_NOT_FOUND, NOT_FOUND);
	return scrape(h, connection);
}

/* End the requests whose time is over. Return: when something is due again. */
static uint64_t expire(struct http *h, uint64_t now)
{
	uint64_t next = LIST_EMPTY(&h->clients) ? h->idle_until_usec
						: now + STALLED_S * 1000000ULL;
	struct client *c;

	LIST_FOREACH(c, &h->clients, others) {
		if (c->until_usec <= now) {
			shutdown(c->socket, SHUT_RD);
			c->until_usec = UINT64_MAX;
		}
		next = c->until_usec < next ? c->until_usec : next;
	}
	return next;
}

static int run(struct http *h, struct MHD_Daemon *d)
{
	h->idle_until_usec = monotonic_usec() + h->idle_usec;
	for (;;) {
		uint64_t now = monotonic_usec(), next = expire(h, now);

		/* Only the time without a client can be over. */
		if (next <= now)
			return 0;
		/* Rounded up, for otherwise it would return too early, again and again. */
		if (!MHD_run_wait(d, (next - now) / 1000 + 1))
			return -EIO;
	}
}

int http_serve(int listening, uint64_t request_usec, uint64_t idle_usec,
	       http_fn *on_scrape, void *userdata)
{
	struct http h = {
		.request_usec = request_usec,
		.idle_usec = idle_usec,
		.on_scrape = on_scrape,
		.userdata = userdata,
	};
	struct MHD_Daemon *d;
	int r;

	/* A client may be gone when it is accepted, and when it is answered. */
	signal(SIGPIPE, SIG_IGN);
	if (fcntl(listening, F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		close(listening);
		return r;
	}
	d = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, &h,
			     MHD_OPTION_LISTEN_SOCKET, listening,
			     MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX,
			     MHD_OPTION_CONNECTION_TIMEOUT, STALLED_S,
			     MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
			     MHD_OPTION_NOTIFY_CONNECTION, on_connection, &h,
			     MHD_OPTION_END);
	if (!d) {
		close(listening);
		return -EIO;
	}
	r = run(&h, d);
	MHD_stop_daemon(d);
	return r;
}
