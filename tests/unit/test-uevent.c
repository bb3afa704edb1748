/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Messages of udev: those about block devices, others, and every part of one. */

#include <arpa/inet.h>

#include "fake.h"
#include "host/uevent.h"

/* As sd-device writes it: 8 numbers after the prefix, the last 4 for filters in the kernel. */
static size_t message(char *text, const char *strings, size_t size)
{
	uint32_t numbers[8] = { htonl(0xfeedcafe), 40, 40, size };

	memcpy(text, "libudev", 8);
	memcpy(text + 8, numbers, sizeof(numbers));
	memcpy(text + 40, strings, size);
	return 40 + size;
}

#define BLOCK \
	"ACTION=change\0DEVPATH=/devices/sda\0SUBSYSTEM=block\0DEVNAME=sda"

static void test_subsystems(void)
{
	static const char other[] = "ACTION=add\0SUBSYSTEM=blocks";
	static const char similar[] = "XSUBSYSTEM=block\0SUBSYSTEM=net";
	char text[200];

	check(uevent_is_of_block(text, message(text, BLOCK, sizeof(BLOCK))));
	check(!uevent_is_of_block(text, message(text, other, sizeof(other))));
	check(!uevent_is_of_block(text,
				  message(text, similar, sizeof(similar))));
}

static void test_kernel_message(void)
{
	static const char text[] =
		"change@/devices/sda\0SUBSYSTEM=block\0SEQNUM=4000";

	check(!uevent_is_of_block(text, sizeof(text)));
}

/* Each part lies in memory of its own: the sanitizer detects reads behind it. */
static void test_parts(void)
{
	char text[200];
	size_t size = message(text, BLOCK, sizeof(BLOCK));

	for (size_t n = 0; n < size; n++) {
		char *part = malloc(n ?: 1);

		check(part);
		memcpy(part, text, n);
		check(!uevent_is_of_block(part, n));
		free(part);
	}
}

static void test_false_sizes(void)
{
	static const uint32_t wrong[] = { 0, 1, 39, 1000, UINT32_MAX };
	char text[200];
	size_t size = message(text, BLOCK, sizeof(BLOCK));

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		for (size_t j = 0; j < ARRAY_SIZE(wrong); j++) {
			char *copy = malloc(size);

			check(copy);
			memcpy(copy, text, size);
			memcpy(copy + 16, &wrong[i], 4);
			memcpy(copy + 20, &wrong[j], 4);
			uevent_is_of_block(copy, size);
			free(copy);
		}
	memcpy(text + 20, &wrong[0], 4);
	check(!uevent_is_of_block(text, size));
}

int main(void)
{
	test_subsystems();
	test_kernel_message();
	test_parts();
	test_false_sizes();
	return EXIT_SUCCESS;
}
