/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_REPORT_H
#define SUTRO_REPORT_H

#include <systemd/sd-varlink.h>

#define REPORT_INTERFACE "io.systemd.Metrics"

/** report_add() - offer io.systemd.Metrics on @server; its methods are bound by the caller */
int report_add(sd_varlink_server *server);

/**
 * report_metrics() - replies to io.systemd.Metrics.List about some guarantees
 * @guarantees: as in ListGuarantees
 * @held: the last metric, which is sent when another one follows
 */
int report_metrics(sd_varlink *link, sd_json_variant *guarantees,
		   sd_json_variant **held);

/** report_end() - the last reply, with the metric @held, NULL: there is none */
int report_end(sd_varlink *link, sd_json_variant *held);

/** report_families() - the replies to io.systemd.Metrics.Describe */
int report_families(sd_varlink *link);

#endif
