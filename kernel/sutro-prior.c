// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: costs that were measured before.
 *
 * An elevator that is new to a device guesses the costs of requests until probes have measured
 * them (sutro-probe.c).  A read of queue/iosched/costs returns what was measured, and a write of
 * that text lets the next elevator begin with it:
 *
 *	version 1
 *	read 4096 29629
 *	write 262144 1896288
 *
 * Reads of up to 4 KiB cost 29629 ns of device time.  The text has classes that were measured, and
 * priors of others that were not dropped.
 *
 * A prior may be wrong: another device, another firmware, a drive that is full by now.  So
 * requests are charged by guesses until the first window of completions (sutro-cost.c) is over or
 * the first probe has a result.  All priors are dropped as soon as one of these is seen:
 *
 *  - Requests of a class took less time than the prior.
 *  - In a window in which the device was busy, and that priors account for most of, the charges are
 *    less than a third of its time, or more than twice its time and the mean time that a request
 *    took: the device had worked on some before the window.  Charges may add up to more than the
 *    time, for two parts of a device can work at once (bus, channels), and to less while a drive
 *    collects garbage.
 *  - A probe has a result that is more than 1.5 times the prior, or less than two thirds.
 *
 * Otherwise, a class with a prior is charged by it until a probe has measured the class.  Windows
 * do not change it.  When one class was measured, the priors of the others are no guesses any more:
 * probes of these come at the pace of those of known classes (sutro-due.c).
 *
 *	16 groups with weights of 1 to 16 read and write 4 to 256 KiB on an ssd that is four times
 *	slower than usual.  From 0.05 s to 1 s, the worst share error is 1.06 with guesses and 0.51
 *	with the right priors.  With priors that are ten times the costs it is 1.06, and with a
 *	tenth of them 1.10 (tests/sim/test_prior.py).
 *
 * A rotational device has no table of costs, and takes none.
 */
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "sutro-prior.h"
#include "sutro-setting.h"

/* The longest word of the text, "1000000000", and its end. */
#define SUTRO_PRIOR_WORD_BYTES 12

/* The charges of a busy window, as multiples of its time, or the time of the charges. */
#define SUTRO_PRIOR_MOST 2
#define SUTRO_PRIOR_LEAST 3

static const char *const sutro_prior_ops[] = {
	[SUTRO_READ] = "read",
	[SUTRO_WRITE] = "write",
};

/* ---- text ---- */

/* The next word of a text; "" at its end. */
static int sutro_prior_word(const char **text,
			    char word[SUTRO_PRIOR_WORD_BYTES])
{
	const char *c = *text;
	size_t length = 0;

	while (isspace(*c))
		c++;
	while (*c && !isspace(*c)) {
		if (length == SUTRO_PRIOR_WORD_BYTES - 1)
			return -EINVAL;
		word[length++] = *c++;
	}
	word[length] = '\0';
	*text = c;
	return 0;
}

/* The next word is a number without a sign. */
static int sutro_prior_number(const char **text, s64 min, s64 max, s64 *ret)
{
	char word[SUTRO_PRIOR_WORD_BYTES];

	if (sutro_prior_word(text, word) || !isdigit(word[0]) ||
	    sutro_number_parse(word, min, max, ret))
		return -EINVAL;
	return 0;
}

/* The rest of "read 4096 29629", of which @op is the first word. */
static int sutro_prior_line(const char **text, const char *op,
			    struct sutro_prior *prior)
{
	int found = match_string(sutro_prior_ops, SUTRO_OTHER, op);
	unsigned int class;
	s64 bytes, ns;

	if (found < 0 ||
	    sutro_prior_number(text, SUTRO_SIZE_MIN_BYTES, U32_MAX, &bytes) ||
	    sutro_prior_number(text, 1, SUTRO_COST_MAX_NS, &ns))
		return -EINVAL;
	class = sutro_cost_class(found, bytes);
	if (bytes != sutro_cost_class_bytes(class) || prior->ns[class])
		return -EINVAL;
	prior->ns[class] = ns;
	return 0;
}

/**
 * sutro_prior_parse - parse what sutro_prior_format() has made
 * @text:	words in any white space
 * @ret:	changed only without an error
 *
 * Return: 0, or -EINVAL for another version, an unknown or repeated class, or a cost that is 0 or
 * more than a second.
 */
int sutro_prior_parse(const char *text, struct sutro_prior *ret)
{
	char word[SUTRO_PRIOR_WORD_BYTES];
	struct sutro_prior prior = {};
	s64 version;

	if (sutro_prior_word(&text, word) || strcmp(word, "version") ||
	    sutro_prior_number(&text, SUTRO_PRIOR_VERSION, SUTRO_PRIOR_VERSION,
			       &version))
		return -EINVAL;
	for (;;) {
		if (sutro_prior_word(&text, word))
			return -EINVAL;
		if (!word[0])
			break;
		if (sutro_prior_line(&text, word, &prior))
			return -EINVAL;
	}
	*ret = prior;
	return 0;
}

/**
 * sutro_prior_format - the text of costs
 * @prior:	the costs, up to SUTRO_COST_MAX_NS
 * @text:	for the text, which ends with a newline
 */
void sutro_prior_format(const struct sutro_prior *prior,
			char text[SUTRO_PRIOR_TEXT_BYTES])
{
	unsigned int i;
	int length;

	length = scnprintf(text, SUTRO_PRIOR_TEXT_BYTES, "version %u\n",
			   SUTRO_PRIOR_VERSION);
	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++)
		if (prior->ns[i])
			length += scnprintf(text + length,
					    SUTRO_PRIOR_TEXT_BYTES - length,
					    "%s %u %llu\n",
					    sutro_prior_ops[sutro_cost_op(i)],
					    sutro_cost_class_bytes(i),
					    prior->ns[i]);
}

/* ---- the costs of a device ---- */

/**
 * sutro_prior_read - the costs that the next elevator may begin with
 * @device:	the leaf
 * @ret:	costs that were measured, and priors that were not dropped
 */
void sutro_prior_read(const struct sutro_device *device,
		      struct sutro_prior *ret)
{
	const struct sutro_costs *costs = &device->costs;
	unsigned int i;

	*ret = (struct sutro_prior){};
	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++) {
		u64 ns16 = 0;

		if ((costs->measured | costs->prior) & BIT(i))
			ns16 = costs->ns16[i];
		else if (device->prior.waits & BIT(i))
			ns16 = device->prior.ns16[i];
		if (ns16)
			ret->ns[i] = max(ns16 >> SUTRO_NS16_SHIFT, 1ULL);
	}
}

static void sutro_prior_drop(struct sutro_device *device)
{
	struct sutro_costs *costs = &device->costs;

	sutro_cost_clear(costs, costs->prior);
	costs->prior = 0;
	device->prior.waits = 0;
}

/* Charge requests by the priors from now on. */
static void sutro_prior_take(struct sutro_device *device)
{
	struct sutro_costs *costs = &device->costs;
	unsigned int i;

	costs->prior |= device->prior.waits & ~costs->measured;
	device->prior.waits = 0;
	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++)
		if (costs->prior & BIT(i))
			sutro_cost_set(costs, i, device->prior.ns16[i]);
}

/**
 * sutro_prior_write - give a device costs to begin with
 * @device:	the leaf
 * @prior:	replaces the priors that it has; measured costs stay as they are
 *
 * Return: 0, or -EINVAL for costs of a rotational device.
 */
int sutro_prior_write(struct sutro_device *device,
		      const struct sutro_prior *prior)
{
	u32 waits = 0;
	unsigned int i;

	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++)
		if (prior->ns[i])
			waits |= BIT(i);
	if (waits && device->rotational)
		return -EINVAL;
	sutro_prior_drop(device);
	device->prior.waits = waits & ~device->costs.measured;
	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++)
		device->prior.ns16[i] = prior->ns[i] << SUTRO_NS16_SHIFT;
	return 0;
}

/**
 * sutro_prior_judge - a probe has measured a class: was its prior right?
 * @device:	the leaf
 * @class:	the class
 * @ns16:	its cost in 1/16 ns
 * @most_ns16:	there were too few requests, and it costs this at most; 0: there were enough
 */
void sutro_prior_judge(struct sutro_device *device, unsigned int class,
		       u64 ns16, u64 most_ns16)
{
	struct sutro_costs *costs = &device->costs;
	u64 prior_ns16;

	if (!((costs->prior | device->prior.waits) & BIT(class)))
		return;
	prior_ns16 = device->prior.ns16[class];
	if (2 * prior_ns16 > 3 * max(ns16, most_ns16) ||
	    (!most_ns16 && 2 * ns16 > 3 * prior_ns16)) {
		sutro_prior_drop(device);
		return;
	}
	sutro_prior_take(device);
	costs->prior &= ~BIT(class);
}

/**
 * sutro_prior_check - a window of completions is over: do the priors fit it?
 * @device:	the leaf, not rotational; its window is complete
 * @elapsed_ns:	how long the window was
 * @busy:	the device was busy
 */
void sutro_prior_check(struct sutro_device *device, u64 elapsed_ns, bool busy)
{
	u32 priors = device->costs.prior | device->prior.waits;
	u64 elapsed_ns16 = elapsed_ns << SUTRO_NS16_SHIFT;
	u64 own_ns16 = 0, others_ns16 = 0, took_ns = 0, sum_ns16, most_ns16;
	unsigned int i;

	if (!priors)
		return;
	for (i = 0; i < SUTRO_CLASSES; i++) {
		u64 units = device->window.units_of[i], ns16;

		took_ns += device->window.latency_of_ns[i];
		if (!(priors & BIT(i))) {
			others_ns16 += units * sutro_cost_ns16(&device->costs,
							       false, i);
			continue;
		}
		ns16 = units * device->prior.ns16[i];
		own_ns16 += ns16;
		if (ns16 >> SUTRO_UNIT_SHIFT > device->window.latency_of_ns[i]
						       << SUTRO_NS16_SHIFT) {
			sutro_prior_drop(device);
			return;
		}
	}
	sum_ns16 = (own_ns16 + others_ns16) >> SUTRO_UNIT_SHIFT;
	/* The device may have worked on them since they were sent. */
	took_ns = div_u64(took_ns, device->window.nr);
	most_ns16 = elapsed_ns16 + (took_ns << SUTRO_NS16_SHIFT);
	if (busy && own_ns16 > others_ns16 &&
	    (sum_ns16 > SUTRO_PRIOR_MOST * most_ns16 ||
	     elapsed_ns16 > SUTRO_PRIOR_LEAST * sum_ns16))
		sutro_prior_drop(device);
	else
		sutro_prior_take(device);
}
