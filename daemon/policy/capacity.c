/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Declared capacities of devices: Device= in the section [Capacity] of sutrod.conf(5). */

#include "policy/capacity.h"

static const char *const words[CAPACITY_KEYS] = {
	[PROMISE_READ_BANDWIDTH_MIN] = "read=",
	[PROMISE_WRITE_BANDWIDTH_MIN] = "write=",
	[PROMISE_READ_IOPS_MIN] = "read-iops=",
	[PROMISE_WRITE_IOPS_MIN] = "write-iops=",
};

static int parse_rate(struct capacity *c, const char *word)
{
	for (size_t k = 0; k < CAPACITY_KEYS; k++) {
		const char *value = startswith(word, words[k]);

		if (value)
			return c->rate[k]
				       ? -EINVAL
				       : value_parse_size(value, &c->rate[k]);
	}
	return -EINVAL;
}

static int put(struct capacities *l, struct capacity *c)
{
	struct capacity *grown;

	for (size_t i = 0; i < l->n; i++)
		if (streq(l->items[i].path, c->path)) {
			free(l->items[i].path);
			l->items[i] = *c;
			return 0;
		}
	grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->items = grown;
	grown[l->n++] = *c;
	return 0;
}

int capacities_parse(struct capacities *l, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	struct capacity c = {};
	char *save = NULL, *word;
	int err = -EINVAL;

	if (!copy)
		return -ENOMEM;
	word = strtok_r(copy, " \t", &save);
	if (!word) {
		capacities_done(l);
		return 0;
	}
	/* The bus carries the path. */
	if (*word != '/' || !text_is_plain(word))
		return -EINVAL;
	c.path = strdup(word);
	if (!c.path)
		return -ENOMEM;
	while ((word = strtok_r(NULL, " \t", &save))) {
		err = parse_rate(&c, word);
		if (err)
			break;
	}
	if (!err)
		err = put(l, &c);
	if (err)
		free(c.path);
	return err;
}

void capacities_keep_state(struct capacities *l,
			   const struct capacities *before)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t b = 0; b < before->n; b++)
			if (streq(l->items[i].path, before->items[b].path))
				memcpy(l->items[i].exceeded,
				       before->items[b].exceeded,
				       sizeof(l->items[i].exceeded));
}

void capacities_done(struct capacities *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].path);
	free(l->items);
	*l = (struct capacities){};
}
