/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Counters of cgroups: io.sutro.stat of the elevator, and io.stat of the kernel for leaves with
 * another scheduler. Without the module these are all leaves.
 *
 * io.stat counts the cgroups below, too. A cgroup above others with the controller has no process of
 * its own, except the root cgroup, whose file counts the whole machine: so only cgroups without such
 * others below them are read. To read a thousand of these files takes long, so they are read only if
 * the root cgroup, which counts all devices, has such a leaf.
 */

#include "exporter/uses.h"
#include "host/cgformat.h"

/**
 * struct reader - a reading under way
 * @size: of the list of @uses
 */
struct reader {
	int hierarchy;
	struct file_buffer buffer;
	const struct folders *folders;
	struct leaves *leaves;
	struct uses uses;
	size_t size;
};

void uses_done(struct uses *u)
{
	free(u->items);
	*u = (struct uses){};
}

static struct use *add(struct reader *r)
{
	if (r->uses.n == r->size) {
		size_t size = r->size ? r->size * 2 : 64;
		struct use *items =
			reallocarray(r->uses.items, size, sizeof(*items));

		if (!items)
			return NULL;
		r->uses.items = items;
		r->size = size;
	}
	return &r->uses.items[r->uses.n++];
}

static uint64_t known(uint64_t count)
{
	return count == USE_UNKNOWN ? 0 : count;
}

/* The reads within each bound: the first has the half octaves 0 to 2, each other one two more. */
static void sum_reads(const struct latencies *l, uint64_t *ret)
{
	uint64_t sum = l->count[0];
	size_t half = 1;

	for (size_t i = 0; i < USE_BOUNDS; i++) {
		sum += l->count[half] + (uint64_t)l->count[half + 1];
		half += 2;
		ret[i] = sum;
	}
	ret[USE_BOUNDS] = sum + l->count[half];
}

static int add_line(struct reader *r, struct folder *f, bool by_elevator,
		    const struct leaf *leaf, const char *text)
{
	struct latencies latencies;
	struct folder *first = f->first;
	struct use *u = add(r);

	if (!u)
		return -ENOMEM;
	*u = (struct use){ .folder = f,
			   .leaf = leaf,
			   .by_elevator = by_elevator };
	for (size_t i = 0; i < COUNTERS; i++)
		u->counts[i] = USE_UNKNOWN;
	u->has_reads = counters_parse(text, u->counts, &latencies);
	if (u->has_reads)
		sum_reads(&latencies, u->reads);
	first->is_used = true;
	first->used += u->counts[COUNTER_TIME_NS] == USE_UNKNOWN
			       ? known(u->counts[COUNTER_RBYTES]) +
					 known(u->counts[COUNTER_WBYTES])
			       : u->counts[COUNTER_TIME_NS];
	return 0;
}

/**
 * next_line() - the next line about a device
 * @text: is modified, and moved behind the line
 * @ret_rest: the counters behind the device, without blanks before them
 *
 * Return: 1; 0: there are no more; -ENOMEM.
 */
static int next_line(struct leaves *l, char **text, struct leaf **ret_leaf,
		     const char **ret_rest)
{
	char *line;

	while ((line = strsep(text, "\n"))) {
		const char *rest = line;
		dev_t devno;

		if (!skip_devno(&rest, &devno) || (*rest && *rest != ' '))
			continue;
		*ret_leaf = leaves_get(l, devno);
		*ret_rest = rest + strspn(rest, " ");
		return *ret_leaf ? 1 : -ENOMEM;
	}
	return 0;
}

static int read_elevator(struct reader *r, struct folder *f)
{
	int err =
		folder_read(r->hierarchy, f->path, "io.sutro.stat", &r->buffer);
	char *rest = r->buffer.p;
	struct leaf *leaf;
	const char *line;

	while (!err && (err = next_line(r->leaves, &rest, &leaf, &line)) > 0) {
		leaf->is_counted = true;
		err = add_line(r, f, true, leaf, line);
	}
	return is_shortage(err) ? err : 0;
}

/* Does only the kernel count on this leaf? The elevator still has lines of a leaf that was switched to
 * another scheduler a moment ago.
 */
static bool is_other(const struct leaf *leaf, const char *line)
{
	return *line && leaf->is_leaf && !leaf->has_elevator;
}

/* Return: 1; 0: the elevator is on all leaves in use; an error is_shortage(). */
static int has_others(struct reader *r)
{
	int err = folder_read(r->hierarchy, "/", "io.stat", &r->buffer);
	char *rest = r->buffer.p;
	struct leaf *leaf;
	const char *line;
	bool found = false;

	/* Without this file there is nothing to compare with. */
	if (err < 0)
		return is_shortage(err) ? err : 1;
	while (!found && (err = next_line(r->leaves, &rest, &leaf, &line)) > 0)
		found = is_other(leaf, line);
	return err < 0 ? err : found;
}

static struct folder *find_parent(const struct folders *l,
				  const struct folder *f)
{
	_cleanup_free_ char *path = strdup(f->path);
	char *slash = path ? strrchr(path, '/') : NULL;

	if (!slash)
		return NULL;
	/* "/a" is below "/". */
	slash[slash == path] = '\0';
	return folders_find(l, path);
}

static int read_kernel(struct reader *r, struct folder *f)
{
	int err = folder_read(r->hierarchy, f->path, "io.stat", &r->buffer);
	char *rest = r->buffer.p;
	struct folder *parent;
	struct leaf *leaf;
	const char *line;

	if (err)
		return is_shortage(err) ? err : 0;
	parent = find_parent(r->folders, f);
	if (parent && parent != f)
		parent->has_file_below = true;
	if (f->has_file_below || !f->path[1])
		return 0;
	while (err >= 0 &&
	       (err = next_line(r->leaves, &rest, &leaf, &line)) > 0)
		if (is_other(leaf, line) && !leaf->is_counted)
			err = add_line(r, f, false, leaf, line);
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct use *u = a, *v = b;

	return strcmp(folder_shown(u->folder), folder_shown(v->folder)) ?:
	       strcmp(u->leaf->node, v->leaf->node) ?:
	       strcmp(u->folder->path, v->folder->path);
}

static void merge_into(struct use *u, const struct use *other)
{
	for (size_t i = 0; i < COUNTERS; i++)
		if (u->counts[i] == USE_UNKNOWN)
			u->counts[i] = other->counts[i];
		else
			u->counts[i] += known(other->counts[i]);
	for (size_t i = 0; i <= USE_BOUNDS; i++)
		u->reads[i] += other->reads[i];
	u->has_reads |= other->has_reads;
	u->weight = u->weight ?: other->weight;
}

void uses_merge(struct uses *u)
{
	size_t n = 0;

	qsort(u->items, u->n, sizeof(*u->items), by_place);
	for (size_t i = 0; i < u->n; i++) {
		const struct use *next = &u->items[i];
		struct use *last = n ? &u->items[n - 1] : NULL;

		if (last && last->folder->first == next->folder->first &&
		    last->leaf == next->leaf)
			merge_into(last, next);
		else
			u->items[n++] = *next;
	}
	u->n = n;
}

int uses_read(int hierarchy, const struct folders *folders, struct leaves *l,
	      struct uses *ret)
{
	struct reader r = { .hierarchy = hierarchy,
			    .folders = folders,
			    .leaves = l };
	int err = 0;

	for (size_t i = 0; i < folders->n; i++) {
		folders->items[i]->used = 0;
		folders->items[i]->is_used = false;
	}
	for (size_t i = 0; i < folders->n && err >= 0; i++)
		err = read_elevator(&r, folders->items[i]);
	err = err < 0 || !folders->n ? err : has_others(&r);
	r.uses.has_others = err > 0;
	/* A cgroup comes after those below it, which it may count. */
	if (r.uses.has_others)
		for (size_t i = folders->n; i > 0 && err >= 0; i--)
			err = read_kernel(&r, folders->items[i - 1]);
	file_buffer_done(&r.buffer);
	if (err < 0) {
		uses_done(&r.uses);
		return err;
	}
	*ret = r.uses;
	return 0;
}

void uses_filter(struct uses *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++)
		if (u->items[i].folder->first->is_kept)
			u->items[n++] = u->items[i];
	u->n = n;
}

int uses_read_weights(int hierarchy, struct uses *u)
{
	const char *file = cgformat(CGFILE_SUTRO_WEIGHT)->name;
	_cleanup_(file_buffer_done) struct file_buffer buffer = {};
	_cleanup_(cglines_done) struct cglines lines = {};
	const struct folder *read = NULL;
	int err = 0;

	for (size_t i = 0; i < u->n; i++) {
		struct use *use = &u->items[i];
		struct cgvalue own, all;

		if (!use->by_elevator)
			continue;
		if (use->folder != read) {
			read = use->folder;
			cglines_done(&lines);
			err = folder_read(hierarchy, read->path, file, &buffer);
			err = err
				      ?: cglines_parse(CGFILE_SUTRO_WEIGHT,
						       buffer.p, &lines);
			if (is_shortage(err))
				return err;
		}
		own = cglines_get(&lines, use->leaf->devno);
		all = cglines_get(&lines, CGFILE_DEFAULT);
		use->weight = own.number[0] ?: all.number[0];
	}
	return 0;
}
