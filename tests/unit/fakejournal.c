/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The journal of the test: messages to the socket of systemd-journald go to the socket that
 * SUTRO_JOURNAL names. In sutrod by LD_PRELOAD, in the sanitized sutrod by being linked into it.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define JOURNAL "/run/systemd/journal/socket"

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	const struct sockaddr_un *to = message->msg_name;
	struct sockaddr_un ours = { .sun_family = AF_UNIX };
	const char *path = getenv("SUTRO_JOURNAL");
	struct msghdr moved = *message;

	if (path && to && to->sun_family == AF_UNIX &&
	    strncmp(to->sun_path, JOURNAL, sizeof(to->sun_path)) == 0 &&
	    strlen(path) < sizeof(ours.sun_path)) {
		strcpy(ours.sun_path, path);
		moved.msg_name = &ours;
		moved.msg_namelen = sizeof(ours);
	}
	return syscall(SYS_sendmsg, fd, &moved, flags);
}
