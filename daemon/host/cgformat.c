/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Formats of cgroup files: one line for all devices, and one for each device that differs.
 *
 *	default 200
 *	8:16 300
 */

#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "host/cgformat.h"

static const struct cgword weight_words[] = { { "default", 0 }, {} };
static const struct cgword limit_words[] = { { "max", CGFILE_NO_LIMIT }, {} };
static const struct cgword latency_words[] = { { "max", 0 }, {} };
static const struct cgword class_words[] = {
	{ "rt", 1 },
	{ "be", 2 },
	{ "idle", 3 },
	{},
};

static const struct cgformat formats[] = {
	[CGFILE_WEIGHT] = { .name = "io.weight",
			    .record = "iocost",
			    .words = weight_words,
			    .min = WEIGHT_MIN,
			    .max = WEIGHT_MAX,
			    .has_echo = true },
	[CGFILE_BFQ_WEIGHT] = { .name = "io.bfq.weight",
				.record = "bfq",
				.words = weight_words,
				.min = WEIGHT_MIN,
				.max = WEIGHT_MAX },
	[CGFILE_SUTRO_WEIGHT] = { .name = "io.sutro.weight",
				  .words = weight_words,
				  .min = WEIGHT_MIN,
				  .max = WEIGHT_MAX,
				  .owns_default = true },
	[CGFILE_MAX] = { .name = "io.max",
			 .record = "ceilings",
			 .keys = { "rbps=", "wbps=", "riops=", "wiops=" },
			 .words = limit_words,
			 .max = UINT64_MAX,
			 .unset = CGFILE_NO_LIMIT,
			 .is_merged = true },
	/* The words are all values: no number is in 1..0. */
	[CGFILE_SUTRO_CLASS] = { .name = "io.sutro.class",
				 .record = "classes",
				 .words = class_words,
				 .min = 1,
				 .max = 0,
				 .unset = 2 },
	[CGFILE_SUTRO_RESERVE] = { .name = "io.sutro.reserve", .max = 1000 },
	/* No target is 0. */
	[CGFILE_SUTRO_LATENCY] = { .name = "io.sutro.latency",
				   .words = latency_words,
				   .max = 10000000 },
};

const struct cgformat *cgformat(enum cgfile file)
{
	return &formats[file];
}

/* ---- values ---- */

bool cgvalue_equal(const struct cgvalue *a, const struct cgvalue *b)
{
	return memcmp(a->number, b->number, sizeof(a->number)) == 0;
}

static size_t count_numbers(const struct cgformat *f)
{
	return f->keys[0] ? CGFILE_NUMBERS : 1;
}

struct cgvalue cgvalue_unset(enum cgfile file)
{
	struct cgvalue v = {};

	for (size_t i = 0; i < count_numbers(&formats[file]); i++)
		v.number[i] = formats[file].unset;
	return v;
}

static int parse_number(const struct cgformat *f, const char *text,
			uint64_t *ret)
{
	uint64_t number;

	for (const struct cgword *w = f->words; w && w->text; w++)
		if (streq(text, w->text)) {
			*ret = w->number;
			return 0;
		}
	if (parse_u64(text, &number) < 0 || number < f->min || number > f->max)
		return -EINVAL;
	*ret = number;
	return 0;
}

/* Keys that are not in the table are ignored, and so are their values. */
static int parse_keys(const struct cgformat *f, char *text, struct cgvalue *v)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		for (size_t i = 0; i < CGFILE_NUMBERS; i++) {
			const char *number = startswith(word, f->keys[i]);

			if (number &&
			    parse_number(f, number, &v->number[i]) < 0)
				return -EINVAL;
		}
	return 0;
}

int cgvalue_parse(enum cgfile file, const char *text, struct cgvalue *ret)
{
	const struct cgformat *f = &formats[file];
	_cleanup_free_ char *copy = NULL;
	struct cgvalue v = cgvalue_unset(file);
	int err;

	if (f->keys[0]) {
		copy = strdup(text);
		err = copy ? parse_keys(f, copy, &v) : -ENOMEM;
	} else {
		err = parse_number(f, text, &v.number[0]);
	}
	if (!err)
		*ret = v;
	return err;
}

static int add_number(struct text *t, const struct cgformat *f, uint64_t number)
{
	for (const struct cgword *w = f->words; w && w->text; w++)
		if (w->number == number)
			return text_add(t, "%s", w->text);
	return text_add(t, "%" PRIu64, number);
}

/* @before: numbers that are as in it are left out; NULL: none is */
static char *numbers_text(enum cgfile file, const struct cgvalue *value,
			  const struct cgvalue *before)
{
	const struct cgformat *f = &formats[file];
	_cleanup_(text_freep) struct text t = {};
	int err = 0;

	for (size_t i = 0; i < count_numbers(f) && !err; i++)
		if (!before || before->number[i] != value->number[i])
			err = text_add(&t, "%s%s", t.p ? " " : "",
				       f->keys[i] ?: "")
				      ?: add_number(&t, f, value->number[i]);
	return err ? NULL : TAKE_PTR(t.p);
}

char *cgvalue_text(enum cgfile file, const struct cgvalue *value)
{
	return numbers_text(file, value, NULL);
}

static char *line_text(dev_t devno, const char *text)
{
	if (!text)
		return NULL;
	if (devno == CGFILE_DEFAULT)
		return asprintf_or_null("default %s", text);
	return asprintf_or_null("%u:%u %s", major(devno), minor(devno), text);
}

char *cgline_text(enum cgfile file, dev_t devno, struct cgvalue value)
{
	_cleanup_free_ char *text = cgvalue_text(file, &value);

	return line_text(devno, text);
}

char *cgline_change_text(enum cgfile file, dev_t devno, struct cgvalue value,
			 const struct cgvalue *before)
{
	_cleanup_free_ char *text = numbers_text(
		file, &value, formats[file].is_merged ? before : NULL);

	return line_text(devno, text);
}

/* ---- lines ---- */

static int parse_line(struct cglines *l, char *text)
{
	char *value = strchr(text, ' ');
	struct cgline line = {}, *grown;
	int err;

	if (value)
		*value++ = '\0';
	if (value && !streq(text, "default") &&
	    parse_devno(text, &line.devno) < 0)
		return -EINVAL;
	/* One value alone is the default, as the files accept it. */
	err = cgvalue_parse(l->file, value ?: text, &line.value);
	if (err)
		return err;
	grown = reallocarray(l->lines, l->n_lines + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->lines = grown;
	grown[l->n_lines++] = line;
	return 0;
}

int cglines_parse(enum cgfile file, char *text, struct cglines *ret)
{
	struct cglines l = { .file = file };
	char *rest = NULL;
	int n_invalid = 0;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		int err = parse_line(&l, line);

		if (err == -ENOMEM) {
			cglines_done(&l);
			return err;
		}
		n_invalid += err != 0;
	}
	*ret = l;
	return n_invalid;
}

void cglines_done(struct cglines *l)
{
	free(l->lines);
	*l = (struct cglines){};
}

struct cgvalue cglines_get(const struct cglines *l, dev_t devno)
{
	for (size_t i = 0; i < l->n_lines; i++)
		if (l->lines[i].devno == devno)
			return l->lines[i].value;
	return cgvalue_unset(l->file);
}
