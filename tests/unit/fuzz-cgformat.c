/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Usage: fuzz-cgformat [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: the first byte selects one of the cgroup files that the daemon writes
 * (io.weight, io.bfq.weight, io.max, io.sutro.*), the others are its content. Values are within
 * the limits of the file, a file made of them is read back as the same values, and the text of a
 * change has the numbers that differ and no others.
 *
 * Example: "3 8:16 rbps=5000 wbps=max" is an io.max.
 */

#include "fake.h"
#include "host/cgformat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_word(const struct cgformat *f, uint64_t number)
{
	for (const struct cgword *w = f->words; w && w->text; w++)
		if (w->number == number)
			return true;
	return false;
}

static void check_value(enum cgfile file, const struct cgvalue *value)
{
	const struct cgformat *f = cgformat(file);

	for (size_t i = 0; i < (f->keys[0] ? CGFILE_NUMBERS : 1); i++) {
		uint64_t number = value->number[i];

		check(number == f->unset || is_word(f, number) ||
		      (number >= f->min && number <= f->max));
	}
}

static void check_text(enum cgfile file, const struct cglines *l)
{
	_cleanup_(text_freep) struct text all = {};
	struct cglines again;

	for (size_t i = 0; i < l->n_lines; i++) {
		_cleanup_free_ char *line =
			cgline_text(file, l->lines[i].devno, l->lines[i].value);

		check(line && text_add(&all, "%s\n", line) == 0);
	}
	check(all.p);
	check(cglines_parse(file, all.p, &again) == 0);
	check(again.n_lines == l->n_lines);
	for (size_t i = 0; i < l->n_lines; i++) {
		check(again.lines[i].devno == l->lines[i].devno);
		check(cgvalue_equal(&again.lines[i].value, &l->lines[i].value));
	}
	cglines_done(&again);
}

static void check_change(enum cgfile file, const struct cgvalue *before,
			 const struct cgvalue *value)
{
	_cleanup_free_ char *text =
		cgline_change_text(file, CGFILE_DEFAULT, *value, before);
	const char *numbers;
	struct cgvalue is;

	if (cgvalue_equal(before, value))
		return;
	numbers = text ? startswith(text, "default ") : NULL;
	check(numbers && cgvalue_parse(file, numbers, &is) == 0);
	for (size_t i = 0; i < CGFILE_NUMBERS; i++)
		check(is.number[i] == value->number[i] ||
		      (cgformat(file)->is_merged &&
		       before->number[i] == value->number[i] &&
		       is.number[i] == cgformat(file)->unset));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum cgfile file = size ? data[0] % CGFILES : 0;
	char *text = strndup(size ? (const char *)data + 1 : "",
			     size ? size - 1 : 0);
	struct cglines l;

	check(text);
	check(cglines_parse(file, text, &l) >= 0);
	free(text);
	for (size_t i = 0; i < l.n_lines; i++) {
		check_value(file, &l.lines[i].value);
		check_change(file, &l.lines[0].value, &l.lines[i].value);
	}
	if (l.n_lines)
		check_text(file, &l);
	cglines_done(&l);
	return 0;
}
