/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_FAMILIES_H
#define SUTRO_EXPORTER_FAMILIES_H

#include "exporter/format.h"
#include "exporter/scrape.h"
#include "exporter/writer.h"

/** enum family_type - types of OpenMetrics */
enum family_type {
	FAMILY_GAUGE,
	FAMILY_COUNTER,
	FAMILY_INFO,
	FAMILY_HISTOGRAM, /* without a sum */
};

/**
 * struct family - metrics of one name
 * @name: without the suffix of its type
 * @help: a sentence without \ and line breaks
 * @get: the number of a row
 * @of: for @get; of a histogram, @get is called with the number of each bucket instead
 * @label, @get_label: one more label behind those of the row, and its value; or NULL
 */
struct family {
	const char *name;
	const char *help;
	enum family_type type;
	struct number (*get)(const struct scrape *s, size_t row,
			     unsigned int of);
	unsigned int of;
	const char *label;
	const char *(*get_label)(const struct scrape *s, size_t row);
};

/* A row of a table of families; @of and @label, if any, are named. */
#define FAMILY(name_, type_, help_, get_, ...) \
	{ .name = (name_),                     \
	  .type = FAMILY_##type_,              \
	  .help = (help_),                     \
	  .get = (get_),                       \
	  ##__VA_ARGS__ }

/**
 * struct subject - families about the same rows
 * @count_rows: the number of rows
 * @write_labels: add those of a row, see writer_label(); NULL: no row has one
 */
struct subject {
	const struct family *families;
	size_t n_families;
	size_t (*count_rows)(const struct scrape *s);
	void (*write_labels)(struct writer *w, size_t start,
			     const struct scrape *s, size_t row);
};

#define FAMILIES(table) .families = (table), .n_families = ARRAY_SIZE(table)

/** subject_write() - its families that have samples */
void subject_write(const struct subject *subject, const struct scrape *s,
		   enum format format, struct writer *w);

#endif
