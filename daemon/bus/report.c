/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The varlink interface io.systemd.Metrics of systemd 260: the promised and the received rate of
 * each guarantee, and its state. systemd-report(1) calls it on the sockets in /run/systemd/report:
 *
 *	varlinkctl call --more /run/sutro/io.sutro.Status io.systemd.Metrics.List {}
 *
 * Each metric is one reply. Its object is the unit, or the path of a cgroup that is no unit. Names
 * of metrics begin with that of the socket.
 */

#include <systemd/sd-varlink-idl.h>

#include "bus/report.h"
#include "host/util.h"
#include "policy/promise.h"

#define METRIC(name) "io.sutro.Status." name

static SD_VARLINK_DEFINE_ENUM_TYPE(MetricFamilyType,
				   SD_VARLINK_DEFINE_ENUM_VALUE(counter),
				   SD_VARLINK_DEFINE_ENUM_VALUE(gauge),
				   SD_VARLINK_DEFINE_ENUM_VALUE(string));
static SD_VARLINK_DEFINE_ERROR(NoSuchMetric);

/* A value is of any type, which libsystemd 257 cannot state. */
static SD_VARLINK_DEFINE_METHOD_FULL(
	List, SD_VARLINK_REQUIRES_MORE,
	SD_VARLINK_DEFINE_OUTPUT(name, SD_VARLINK_STRING, 0),
	SD_VARLINK_DEFINE_OUTPUT(value, SD_VARLINK_OBJECT, 0),
	SD_VARLINK_DEFINE_OUTPUT(object, SD_VARLINK_STRING,
				 SD_VARLINK_NULLABLE),
	SD_VARLINK_DEFINE_OUTPUT(fields, SD_VARLINK_STRING,
				 SD_VARLINK_MAP | SD_VARLINK_NULLABLE));

static SD_VARLINK_DEFINE_METHOD_FULL(
	Describe, SD_VARLINK_REQUIRES_MORE,
	SD_VARLINK_DEFINE_OUTPUT(name, SD_VARLINK_STRING, 0),
	SD_VARLINK_DEFINE_OUTPUT(description, SD_VARLINK_STRING, 0),
	SD_VARLINK_DEFINE_OUTPUT_BY_TYPE(type, MetricFamilyType, 0));

static SD_VARLINK_DEFINE_INTERFACE(
	metrics, REPORT_INTERFACE,
	SD_VARLINK_INTERFACE_COMMENT("Metrics, for systemd-report(1)"),
	&vl_type_MetricFamilyType,
	SD_VARLINK_SYMBOL_COMMENT("A reply for each metric"), &vl_method_List,
	SD_VARLINK_SYMBOL_COMMENT("A reply for each name of metrics"),
	&vl_method_Describe, SD_VARLINK_SYMBOL_COMMENT("There is no metric"),
	&vl_error_NoSuchMetric);

/* Field of a guarantee: its metric. */
static const struct {
	const char *field;
	const char *name;
	const char *type;
	const char *description;
} families[] = {
	{ "value", METRIC("GuaranteePromised"), "gauge",
	  "Promised bytes or requests per second, or microseconds" },
	{ "got", METRIC("GuaranteeReceived"), "gauge",
	  "Received bytes or requests per second, or microseconds" },
	{ "granted", METRIC("GuaranteeGranted"), "gauge",
	  "Part of it for which there is room, 0 to 1" },
	{ "state", METRIC("GuaranteeState"), "string",
	  "Whether it holds, and if not, why; see sutrod(8)" },
};

static int append_metric(sd_json_variant **replies, sd_json_variant *guarantee,
			 size_t family)
{
	sd_json_variant *value =
		sd_json_variant_by_key(guarantee, families[family].field);
	const char *unit = sd_json_variant_string(
		sd_json_variant_by_key(guarantee, "unit"));
	sd_json_variant *cgroup = sd_json_variant_by_key(guarantee, "cgroup");
	sd_json_variant *key = sd_json_variant_by_key(guarantee, "key");
	sd_json_variant *path = sd_json_variant_by_key(guarantee, "path");
	const char *object = unit && *unit ? unit
					   : sd_json_variant_string(cgroup);

	/* A ceiling of infinity promises no rate. */
	if (sd_json_variant_is_unsigned(value) &&
	    sd_json_variant_unsigned(value) == PROMISE_INFINITY)
		return 0;
	return sd_json_variant_append_arraybo(
		replies,
		SD_JSON_BUILD_PAIR_STRING("name", families[family].name),
		SD_JSON_BUILD_PAIR_STRING("object", object),
		SD_JSON_BUILD_PAIR_VARIANT("value", value),
		SD_JSON_BUILD_PAIR_OBJECT(
			"fields", SD_JSON_BUILD_PAIR_VARIANT("key", key),
			SD_JSON_BUILD_PAIR_VARIANT("path", path),
			SD_JSON_BUILD_PAIR_VARIANT("cgroup", cgroup)));
}

int report_metrics(sd_varlink *link, sd_json_variant *guarantees,
		   sd_json_variant **held)
{
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *replies = NULL;
	int r = 0;

	for (size_t i = 0; i < sd_json_variant_elements(guarantees); i++)
		for (size_t f = 0; f < ARRAY_SIZE(families) && r >= 0; f++)
			r = append_metric(
				&replies,
				sd_json_variant_by_index(guarantees, i), f);
	for (size_t i = 0; i < sd_json_variant_elements(replies) && r >= 0;
	     i++) {
		if (*held)
			r = sd_varlink_notify(link, *held);
		sd_json_variant_unref(*held);
		*held = sd_json_variant_ref(
			sd_json_variant_by_index(replies, i));
	}
	return r;
}

int report_end(sd_varlink *link, sd_json_variant *held)
{
	return held ? sd_varlink_reply(link, held)
		    : sd_varlink_error(link, REPORT_INTERFACE ".NoSuchMetric",
				       NULL);
}

/* The last reply has no flag that more follow. */
int report_families(sd_varlink *link)
{
	size_t n = ARRAY_SIZE(families);
	int r = 0;

	for (size_t f = 0; f < n && r >= 0; f++) {
		_cleanup_(sd_json_variant_unrefp) sd_json_variant *reply = NULL;

		r = sd_json_buildo(
			&reply,
			SD_JSON_BUILD_PAIR_STRING("name", families[f].name),
			SD_JSON_BUILD_PAIR_STRING("description",
						  families[f].description),
			SD_JSON_BUILD_PAIR_STRING("type", families[f].type));
		if (r >= 0)
			r = f + 1 < n ? sd_varlink_notify(link, reply)
				      : sd_varlink_reply(link, reply);
	}
	return r;
}

int report_add(sd_varlink_server *server)
{
	return sd_varlink_server_add_interface(server, &vl_interface_metrics);
}
