/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Families as text, in both formats:
 *
 *	# HELP sutro_cgroup_reads_total Read requests.
 *	# TYPE sutro_cgroup_reads_total counter
 *	sutro_cgroup_reads_total{cgroup="/a",leaf="/dev/sda",unit=""} 42
 *
 * The first two lines of OpenMetrics have the name without the suffix. The labels of a row are
 * written once, for all families.
 */

#include <math.h>
#include <stdio.h>

#include "exporter/families.h"

static const struct {
	const char *name;
	const char *suffix;
	const char *name_in_text; /* in version 0.0.4 */
} types[] = {
	[FAMILY_GAUGE] = { "gauge", "", "gauge" },
	[FAMILY_COUNTER] = { "counter", "_total", "counter" },
	[FAMILY_INFO] = { "info", "_info", "gauge" },
	[FAMILY_HISTOGRAM] = { "histogram", "_bucket", "histogram" },
};

/**
 * struct labels - the labels of all rows, one after the other
 * @ends: of each row
 */
struct labels {
	struct writer text;
	size_t *ends;
};

static void write_head(struct writer *w, const struct family *f,
		       enum format format)
{
	const bool is_text = format == FORMAT_TEXT;
	/* The suffix of a histogram is none of its name. */
	const char *suffix = is_text && f->type != FAMILY_HISTOGRAM
				     ? types[f->type].suffix
				     : "";

	writer_text(w, "# HELP ");
	writer_text(w, f->name);
	writer_text(w, suffix);
	writer_text(w, " ");
	writer_text(w, f->help);
	writer_text(w, "\n# TYPE ");
	writer_text(w, f->name);
	writer_text(w, suffix);
	writer_text(w, " ");
	writer_text(w, is_text ? types[f->type].name_in_text
			       : types[f->type].name);
	writer_text(w, "\n");
}

/**
 * bucket_end() - the last label of bucket @i, ,le="3.2768e-05" to ,le="+Inf", and the end of labels
 *
 * Return: valid until the next call with @i.
 */
static struct piece bucket_end(unsigned int i)
{
	static char texts[USE_BOUNDS + 1][32];

	if (!texts[i][0])
		snprintf(texts[i], sizeof(texts[i]),
			 i < USE_BOUNDS ? ",le=\"%.10g\"} " : ",le=\"+Inf\"} ",
			 ldexp(1, USE_MIN_SHIFT + i) / 1e9);
	return (struct piece){ texts[i], strlen(texts[i]) };
}

/**
 * write_row() - the line of a row, or those of its buckets
 * @begin: "sutro_cgroup_reads_total{"
 * @labels: of the row
 * @word: for the label of its own, if the family has one
 */
static void write_row(struct writer *w, const struct family *f,
		      const struct scrape *s, size_t row, struct piece begin,
		      struct piece labels, struct writer *word)
{
	const bool is_histogram = f->type == FAMILY_HISTOGRAM;
	const unsigned int n = is_histogram ? USE_BOUNDS + 1 : 1;
	const bool has_labels = labels.length || f->label;
	const struct piece end = { has_labels ? "} " : " ", 1 + has_labels };

	begin.length -= !has_labels;
	for (unsigned int i = 0; i < n; i++) {
		struct number number = f->get(s, row, is_histogram ? i : f->of);
		struct piece own = {};

		if (number.kind == NUMBER_NONE)
			return;
		if (f->label) {
			word->length = 0;
			/* A comma, if there are others before it. */
			if (labels.length)
				writer_bytes(word, ",", 1);
			writer_label(word, word->length, f->label,
				     f->get_label(s, row));
			own = (struct piece){ word->p, word->length };
		}
		writer_line(w,
			    (const struct piece[]){ begin, labels, own,
						    is_histogram ? bucket_end(i)
								 : end },
			    4, number);
	}
}

static void write_family(struct writer *w, const struct family *f,
			 const struct scrape *s, enum format format,
			 const struct labels *labels, size_t n)
{
	_cleanup_(writer_done) struct writer begin = {}, word = {};
	size_t head = w->length, rows;

	write_head(w, f, format);
	rows = w->length;
	writer_text(&begin, f->name);
	writer_text(&begin, types[f->type].suffix);
	writer_text(&begin, "{");
	for (size_t row = 0; row < n; row++) {
		size_t at = row ? labels->ends[row - 1] : 0;

		write_row(w, f, s, row, (struct piece){ begin.p, begin.length },
			  (struct piece){ labels->text.p + at,
					  labels->ends[row] - at },
			  &word);
	}
	w->error = w->error ?: begin.error ?: word.error;
	/* A family without samples has no head. */
	if (w->length == rows)
		w->length = head;
}

void subject_write(const struct subject *subject, const struct scrape *s,
		   enum format format, struct writer *w)
{
	size_t n = subject->count_rows(s);
	_cleanup_(writer_done) struct writer text = {};
	_cleanup_free_ size_t *ends = calloc(n ?: 1, sizeof(*ends));
	struct labels labels;

	for (size_t row = 0; row < n && ends; row++) {
		if (subject->write_labels)
			subject->write_labels(&text, text.length, s, row);
		ends[row] = text.length;
	}
	if (!ends || text.error) {
		w->error = -ENOMEM;
		return;
	}
	labels = (struct labels){ text, ends };
	for (size_t i = 0; i < subject->n_families; i++)
		write_family(w, &subject->families[i], s, format, &labels, n);
}
