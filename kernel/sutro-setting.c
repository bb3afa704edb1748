// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the text of settings.
 *
 *	io.sutro.weight		1 to 10000
 *	io.sutro.class		rt, be or idle
 *	io.sutro.reserve	0 to 1000, thousandths of the time
 *	io.sutro.latency	1 to 10000000 us; max: no target, as is 0
 *
 * A setting is a number above 0, for 0 means that none is set.  sutro-cgroup.c has the files.
 */
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/string.h>

#include "sutro-setting.h"

const char *const sutro_class_names[SUTRO_CLASS_NR] = {
	[SUTRO_CLASS_RT] = "rt",
	[SUTRO_CLASS_BE] = "be",
	[SUTRO_CLASS_IDLE] = "idle",
};

/**
 * sutro_setting_is_privileged - does the setting hold back others on the disk?
 * @setting:	which one
 *
 * Reserved time and a latency target need the privilege that the I/O class RT needs.
 *
 * Return: whether a writer needs CAP_SYS_NICE.
 */
bool sutro_setting_is_privileged(enum sutro_setting setting)
{
	return setting == SUTRO_SETTING_RESERVE ||
	       setting == SUTRO_SETTING_LATENCY;
}

/**
 * sutro_setting_of_default - the setting in "default 100" or "100"
 * @text:	without a device
 *
 * Return: the text behind the word and one character of white space.
 */
const char *sutro_setting_of_default(const char *text)
{
	size_t word = strlen("default");

	if (!strncmp(text, "default", word) && isspace(text[word]))
		return text + word + 1;
	return text;
}

/**
 * sutro_number_parse - parse a decimal number within limits
 * @text:	the number, with a newline at most
 * @min:	the least that is valid
 * @max:	the most
 * @ret_number:	the number
 *
 * Return: 0, -EINVAL if it is no number, or -ERANGE.
 */
int sutro_number_parse(const char *text, s64 min, s64 max, s64 *ret_number)
{
	s64 number;
	int err;

	err = kstrtos64(text, 10, &number);
	if (err)
		return err;
	if (number < min || number > max)
		return -ERANGE;
	*ret_number = number;
	return 0;
}

/**
 * sutro_setting_parse - parse a setting
 * @setting:	which one
 * @text:	without white space around it
 * @ret_value:	the setting, which is not 0
 *
 * Return: 0 or a negative errno.
 */
int sutro_setting_parse(enum sutro_setting setting, const char *text,
			u32 *ret_value)
{
	const s64 max_us = SUTRO_LATENCY_TARGET_MAX_US;
	s64 number = 0;
	int ret = 0;

	switch (setting) {
	case SUTRO_SETTING_WEIGHT:
		ret = sutro_number_parse(text, SUTRO_WEIGHT_MIN,
					 SUTRO_WEIGHT_MAX, &number);
		if (!ret)
			*ret_value = number;
		return ret;
	case SUTRO_SETTING_CLASS:
		ret = match_string(sutro_class_names, SUTRO_CLASS_NR, text);
		if (ret < 0)
			return -EINVAL;
		*ret_value = sutro_class_setting(ret);
		return 0;
	case SUTRO_SETTING_RESERVE:
		ret = sutro_number_parse(text, 0, SUTRO_RESERVE_WHOLE, &number);
		if (!ret)
			*ret_value = sutro_reserve_setting(number);
		return ret;
	case SUTRO_SETTING_LATENCY:
		if (strcmp(text, "max"))
			ret = sutro_number_parse(text, 0, max_us, &number);
		if (!ret)
			*ret_value = sutro_latency_setting(number);
		return ret;
	case SUTRO_SETTINGS:
		break;
	}
	return -EINVAL;
}

/**
 * sutro_setting_format - the text of a setting, which sutro_setting_parse() takes
 * @setting:	which one
 * @value:	the setting, not 0
 * @text:	of SUTRO_SETTING_TEXT_BYTES
 */
void sutro_setting_format(enum sutro_setting setting, u32 value,
			  char text[SUTRO_SETTING_TEXT_BYTES])
{
	const char *word = NULL;
	u32 number = value;

	if (setting == SUTRO_SETTING_CLASS)
		word = sutro_class_names[sutro_setting_class(value)];
	else if (setting == SUTRO_SETTING_RESERVE)
		number = sutro_setting_reserve(value);
	else if (setting == SUTRO_SETTING_LATENCY)
		number = sutro_setting_latency(value);
	if (setting == SUTRO_SETTING_LATENCY && !number)
		word = "max";
	if (word)
		strscpy(text, word, SUTRO_SETTING_TEXT_BYTES);
	else
		scnprintf(text, SUTRO_SETTING_TEXT_BYTES, "%u", number);
}
