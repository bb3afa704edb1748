/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PROPOSAL_H
#define SUTRO_PROPOSAL_H

#include "policy/dropin.h"
#include "policy/policyfile.h"

/** struct proposal - a file as it is to be */
struct proposal {
	const char *path;
	const char *text;
};

struct proposals {
	const struct proposal *items;
	size_t n;
};

/** proposals_text() - the proposed text of the file; NULL: none is proposed */
const char *proposals_text(const struct proposals *l, const char *path);

/**
 * proposals_put() - put proposed files of a kind in the places of those with their names
 * @folder: of drop-ins, "db.policy.d"; of control files that of the lifetime, "" for
 *	those in any other one; else ""
 */
int proposals_put(const struct proposals *l, enum policyfile_kind kind,
		  const char *folder, struct dropins *files);

/**
 * proposal_unit() - the unit of a file, by its name or that of its folder; to be freed
 *
 * "db.service" of /etc/systemd/system/db.service and db.service.d/io.conf; "" of others;
 * NULL: no memory.
 */
char *proposal_unit(const char *path);

#endif
