/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One reading of the machine: counters, beside the state of sutrod, whether that answers or not.
 */

#include <fcntl.h>

#include "exporter/scrape.h"

/* -1: there is none, as for cgroups in some containers; or an error is_shortage(). */
static int open_directory(const char *root, const char *path)
{
	_cleanup_free_ char *full = asprintf_or_null("%s%s", root, path);
	int fd;

	if (!full)
		return -ENOMEM;
	fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 && is_shortage(-errno) ? -errno : fd;
}

/* Lines such as "8:16 enable=1 ctrl=user model=linear ...". */
static int read_iocost(int hierarchy, struct leaves *leaves, char ***ret)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	int err = read_file_at(hierarchy, "io.cost.qos", &text);

	if (err < 0)
		return is_shortage(err) ? err : 0;
	err = 0;
	rest = text;
	while (!err && (line = strsep(&rest, "\n"))) {
		const char *word = line;
		const struct leaf *leaf;
		dev_t devno;

		if (!skip_devno(&word, &devno) || !strstr(word, " enable=1"))
			continue;
		leaf = leaves_get(leaves, devno);
		err = leaf ? strv_add(ret, leaf->node) : -ENOMEM;
	}
	return err;
}

int scrape_take(const char *root, const struct state *state,
		struct ranking *ranking, struct scrape *ret)
{
	_cleanup_close_ int sysfs = open_directory(root, "/sys");
	_cleanup_close_ int hierarchy = open_directory(root, "/sys/fs/cgroup");
	struct scrape s = { .state = *state, .leaves.sysfs = sysfs };
	int err = is_shortage(sysfs)	   ? sysfs
		  : is_shortage(hierarchy) ? hierarchy
					   : 0;

	err = err
		      ?: ranking_read(ranking, hierarchy, &s.leaves,
				      s.state.promises, s.state.n_promises,
				      monotonic_usec(), &s.uses);
	err = err ?: read_iocost(hierarchy, &s.leaves, &s.iocost);
	s.n_omitted = ranking->n_omitted;
	if (err)
		scrape_done(&s);
	else
		*ret = s;
	return err;
}

void scrape_done(struct scrape *s)
{
	state_done(&s->state);
	uses_done(&s->uses);
	leaves_done(&s->leaves);
	strv_free(s->iocost);
	*s = (struct scrape){};
}
