/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <netdb.h>
#include <sys/socket.h>

#include "exporter/listen.h"
#include "host/util.h"

/* Split "[::1]:80" into "::1" and "80". */
static int split(const char *address, char **ret_host, const char **ret_port)
{
	const char *colon = strrchr(address, ':'), *begin = address;
	uint64_t port;
	char *host;

	if (!colon || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	/* No name of a machine has other characters. */
	for (const char *c = address; *c; c++)
		if (*c <= ' ' || *c > '~')
			return -EINVAL;
	if (*begin == '[' && colon[-1] == ']')
		host = strndup(begin + 1, colon - begin - 2);
	else
		host = strndup(begin, colon - begin);
	if (!host)
		return -ENOMEM;
	*ret_host = host;
	*ret_port = colon + 1;
	return 0;
}

static int bound(const struct addrinfo *a)
{
	_cleanup_close_ int fd =
		socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;
	int ret;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (a->ai_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(fd, a->ai_addr, a->ai_addrlen) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return -errno;
	ret = fd;
	fd = -1;
	return ret;
}

int listen_on(const char *address, const char **ret_error)
{
	_cleanup_free_ char *host = NULL;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE },
			*found;
	const char *port;
	int r;

	*ret_error = "it is no ADDRESS:PORT";
	r = split(address, &host, &port);
	if (r < 0)
		return r;
	hints.ai_family = strchr(host, ':') ? AF_INET6 : AF_INET;
	r = getaddrinfo(*host ? host : NULL, port, &hints, &found);
	if (r) {
		*ret_error = gai_strerror(r);
		return -EADDRNOTAVAIL;
	}
	r = bound(found);
	freeaddrinfo(found);
	if (r < 0)
		*ret_error = strerror(-r);
	return r;
}
