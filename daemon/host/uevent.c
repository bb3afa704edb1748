/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Events of udev about block devices.
 *
 * udev sends them by netlink to the network namespace of the machine only. The service has a
 * namespace of its own and may make no netlink socket; systemd makes it (sutrod-uevents.socket).
 * libsystemd takes no socket that others made, so the messages are read here. The daemon needs
 * their subsystem only: after any event it reads all devices again.
 *
 * A message of udev (struct monitor_netlink_header in systemd) has a header, then NAME=VALUE
 * strings that end with a 0 byte each:
 *
 *	0	"libudev", 0
 *	8	0xfeedcafe, big endian
 *	12	size of the header
 *	16	offset of the strings
 *	20	their size
 */

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "host/uevent.h"
#include "host/util.h"

#define FD_NAME "uevents"

/* The group of udev; group 1 has the events of the kernel, which udev has not processed. */
#define GROUP_UDEV 2U

#define MAGIC 0xfeedcafeU

/* As the buffer of libudev. */
#define MESSAGE_BYTES_MAX 8192U

struct header {
	char prefix[8];
	uint32_t magic;
	uint32_t size;
	uint32_t strings_offset;
	uint32_t strings_size;
};

bool uevent_is_of_block(const char *text, size_t size)
{
	struct header h;
	const char *end;

	if (size < sizeof(h))
		return false;
	memcpy(&h, text, sizeof(h));
	if (memcmp(h.prefix, "libudev", sizeof(h.prefix)) != 0 ||
	    ntohl(h.magic) != MAGIC || h.strings_offset > size ||
	    h.strings_size > size - h.strings_offset)
		return false;
	text += h.strings_offset;
	end = text + h.strings_size;
	while (text < end) {
		size_t n = strnlen(text, end - text);

		if (n == strlen("SUBSYSTEM=block") &&
		    memcmp(text, "SUBSYSTEM=block", n) == 0)
			return true;
		text += n + 1;
	}
	return false;
}

/* Any process may send to the socket; root alone to the group. */
static bool is_sent_by_root(struct msghdr *m)
{
	const struct sockaddr_nl *from = m->msg_name;
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct ucred credentials;

	if (from->nl_groups != GROUP_UDEV || !c ||
	    c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
	return credentials.uid == 0;
}

static int on_message(sd_event_source *s, int fd, uint32_t revents,
		      void *userdata)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char text[MESSAGE_BYTES_MAX];
	struct iovec part = { text, sizeof(text) };
	struct sockaddr_nl from = {};
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct uevents *u = userdata;
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	/* After an overrun the kernel has dropped messages, perhaps about disks. The subsystem may be
	 * in the part of a long one that was cut off.
	 */
	if (n < 0 ? errno == ENOBUFS
		  : is_sent_by_root(&m) && (m.msg_flags & MSG_TRUNC ||
					    uevent_is_of_block(text, n)))
		u->changed(u->userdata);
	return 0;
}

static int take_passed(void)
{
	_cleanup_strv_ char **names = NULL;
	int n = sd_listen_fds_with_names(true, &names), found = -ENOENT;

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (found < 0 && streq(names[i], FD_NAME) &&
		    sd_is_socket(fd, AF_NETLINK, SOCK_RAW, -1) > 0)
			found = fd;
		else
			close(fd);
	}
	return n < 0 ? n : found;
}

static int make(void)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK,
					     .nl_groups = GROUP_UDEV };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			NETLINK_KOBJECT_UEVENT);
	int err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const void *)&address, sizeof(address)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int uevents_start(struct uevents *u, sd_event *event)
{
	const int yes = 1;
	_cleanup_close_ int fd = take_passed();
	int r;

	if (fd == -ENOENT)
		fd = make();
	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
		return -errno;
	r = sd_event_add_io(event, &u->source, fd, EPOLLIN, on_message, u);
	if (r >= 0)
		r = sd_event_source_set_io_fd_own(u->source, true);
	if (r < 0)
		return r;
	fd = -1;
	return 0;
}

void uevents_stop(struct uevents *u)
{
	u->source = sd_event_source_disable_unref(u->source);
}
