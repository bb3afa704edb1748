/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The server of metrics with short times: a child process has it, and the test is its client.
 */

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "exporter/http.h"
#include "fake.h"

#define REQUEST_USEC 500000U
#define IDLE_USEC 1000000U
/* A text that no socket buffer has room for. */
#define LARGE_BYTES (32U << 20)
#define PIECE_BYTES 4096U

struct test {
	struct sockaddr_in address;
	pid_t child;
};

/* The answer depends on the header Accept: an error, a large text, or that header. */
static int on_scrape(const char *accept, struct writer *w,
		     const char **ret_type, void *userdata)
{
	*ret_type = "text/x-test";
	if (accept && streq(accept, "error"))
		return -EIO;
	if (accept && streq(accept, "large"))
		for (unsigned int i = 0; i < LARGE_BYTES / 16; i++)
			writer_text(w, "0123456789abcde\n");
	writer_text(w, accept ?: "no header\n");
	return 0;
}

static void setup(struct test *t)
{
	socklen_t length = sizeof(t->address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	t->address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	check(fd >= 0);
	check(bind(fd, (struct sockaddr *)&t->address, length) == 0);
	check(listen(fd, SOMAXCONN) == 0);
	check(getsockname(fd, (struct sockaddr *)&t->address, &length) == 0);
	t->child = fork();
	check(t->child >= 0);
	if (!t->child)
		_exit(http_serve(fd, REQUEST_USEC, IDLE_USEC, on_scrape, NULL)
			      ? 1
			      : 0);
	close(fd);
}

/* It ends by itself, when it has nothing to do. */
static void teardown(struct test *t)
{
	int status;

	check(waitpid(t->child, &status, 0) == t->child);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int connect_to(const struct test *t)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	check(fd >= 0);
	check(connect(fd, (const struct sockaddr *)&t->address,
		      sizeof(t->address)) == 0);
	return fd;
}

static void send_text(int fd, const char *text)
{
	check(send(fd, text, strlen(text), MSG_NOSIGNAL) ==
	      (ssize_t)strlen(text));
}

/* All that the server sends until it closes the connection; to be freed. */
static char *receive(int fd)
{
	_cleanup_(text_freep) struct text all = {};
	char piece[PIECE_BYTES + 1];
	ssize_t n;

	check(text_add(&all, "%s", "") == 0);
	while ((n = recv(fd, piece, PIECE_BYTES, 0)) > 0) {
		piece[n] = '\0';
		check(text_add(&all, "%s", piece) == 0);
	}
	close(fd);
	return TAKE_PTR(all.p);
}

static char *request(const struct test *t, const char *head)
{
	int fd = connect_to(t);

	send_text(fd, head);
	return receive(fd);
}

static bool answers(const struct test *t, const char *head, const char *status,
		    const char *end)
{
	_cleanup_free_ char *text = request(t, head);

	if (!startswith(text, status) || !endswith(text, end))
		fprintf(stderr, "%s", text);
	return startswith(text, status) && endswith(text, end);
}

static void test_requests(struct test *t)
{
	_cleanup_free_ char *text = NULL;

	check(answers(t, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		      "HTTP/1.1 200 ", "\r\n\r\nno header\n"));
	check(answers(t, "GET /metrics?a=b HTTP/1.0\r\nAccept: x/y\r\n\r\n",
		      "HTTP/1.", "\r\n\r\nx/y"));
	check(answers(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 ",
		      "\r\n\r\nthe metrics are at /metrics\n"));
	check(answers(t, "GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n",
		      "HTTP/1.1 404 ", "\n"));
	check(answers(t,
		      "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1"
		      "\r\n\r\nx",
		      "HTTP/1.1 405 ",
		      "\r\n\r\nthe methods are GET and HEAD\n"));
	check(answers(t,
		      "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: error\r\n"
		      "\r\n",
		      "HTTP/1.1 500 ", "see the log of sutro-exporter\n"));
	/* The connection ends, whatever the client requests. */
	text = request(t, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: "
			  "keep-alive\r\n\r\n");
	check(strcasestr(text, "\r\nConnection: close\r\n"));
	check(strcasestr(text, "\r\nContent-Type: text/x-test\r\n"));
}

/* Rules for each server, RFC 9110 and 9112. */
static void test_protocol(struct test *t)
{
	_cleanup_free_ char *head = NULL, *other = NULL;

	/* The head of GET, without the text. */
	head = request(t, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	check(startswith(head, "HTTP/1.1 200 ") && endswith(head, "\r\n\r\n"));
	check(strcasestr(head, "\r\nContent-Length: 10\r\n"));
	other = request(t, "PUT /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	check(strcasestr(other, "\r\nAllow: GET, HEAD\r\n"));
	/* As clients of a proxy send it. */
	check(answers(t, "GET http://a:1/metrics HTTP/1.1\r\nHost: a:1\r\n\r\n",
		      "HTTP/1.1 200 ", "\r\n\r\nno header\n"));
	check(answers(t, "GET http://a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
		      "HTTP/1.1 404 ", "\n"));
}

static void test_no_request(struct test *t)
{
	_cleanup_free_ char *text = request(t, "nonsense\r\n\r\n");

	check(strstr(text, " 400 ") || !*text);
}

/* Its bytes come one by one: others are served meanwhile, and its time ends. */
static void test_slow_client(struct test *t)
{
	int slow = connect_to(t), n = 0;
	struct pollfd closed = { .fd = slow, .events = POLLIN };

	send_text(slow, "GET /metrics HTTP/1.1\r\nX: ");
	check(answers(t, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		      "HTTP/1.1 200 ", "no header\n"));
	while (poll(&closed, 1, 20) == 0) {
		send(slow, "x", 1, MSG_NOSIGNAL);
		n++;
	}
	check(n > 1);
	close(slow);
}

/* A client that sends nothing, and one that takes nothing of its answer. */
static void test_silent_clients(struct test *t)
{
	int silent = connect_to(t), lazy = connect_to(t);
	_cleanup_free_ char *text = NULL;

	send_text(lazy, "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: large\r\n"
			"\r\n");
	check(answers(t, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		      "HTTP/1.1 200 ", "no header\n"));
	free(receive(silent));
	/* The time for a request is no time for its answer. */
	text = receive(lazy);
	check(strlen(text) > LARGE_BYTES && endswith(text, "large"));
}

/* A client that leaves in its request, or while it is answered. */
static void test_clients_that_leave(struct test *t)
{
	int fd = connect_to(t);

	send_text(fd, "GET /metrics HTTP/1.1\r\nHos");
	close(fd);
	fd = connect_to(t);
	send_text(fd, "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: large\r\n"
		      "\r\n");
	close(fd);
	check(answers(t, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		      "HTTP/1.1 200 ", "no header\n"));
}

/* Each waits for its turn, and all are served. */
static void test_many_clients(struct test *t)
{
	int clients[100];

	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		clients[i] = connect_to(t);
		send_text(clients[i],
			  "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	}
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		_cleanup_free_ char *text = receive(clients[i]);

		check(startswith(text, "HTTP/1.1 200 "));
	}
}

int main(void)
{
	run_tests(test_requests, test_protocol, test_no_request,
		  test_slow_client, test_silent_clients,
		  test_clients_that_leave, test_many_clients);
	return 0;
}
