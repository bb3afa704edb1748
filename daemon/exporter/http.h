/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_HTTP_H
#define SUTRO_EXPORTER_HTTP_H

#include "exporter/writer.h"

/**
 * http_fn - write the answer to GET /metrics, also for HEAD
 * @accept: header Accept of the request, or NULL
 * @ret_type: the media type of the answer, a static string
 *
 * Return: 0 or -errno, which is answered with an error of the server.
 */
typedef int http_fn(const char *accept, struct writer *w, const char **ret_type,
		    void *userdata);

/**
 * http_serve() - serve until no client has connected for a time
 * @listening: the socket, which is closed at the end
 * @request_usec: the longest time for all of a request
 * @idle_usec: the time without a client
 * @on_scrape: is called for one request after the other
 *
 * Return: 0 or -errno.
 */
int http_serve(int listening, uint64_t request_usec, uint64_t idle_usec,
	       http_fn *on_scrape, void *userdata);

#endif
