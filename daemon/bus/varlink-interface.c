/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The description of io.sutro.Status: its types, methods and errors, as clients read them. */

#include "bus/varlink-interface.h"

#define STRING(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_STRING, 0)
#define STRINGS(name) \
	SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_STRING, SD_VARLINK_ARRAY)
#define BOOL(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_BOOL, 0)
#define INT(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_INT, 0)
#define FLOAT(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_FLOAT, 0)
#define ARRAY(field, type) ARRAY_OF(field, type, SD_VARLINK_REGULAR)
#define OUTPUT(field, type) ARRAY_OF(field, type, SD_VARLINK_OUTPUT)
#define ARRAY_OF(field, type, direction)       \
	{ .name = #field,                      \
	  .field_type = SD_VARLINK_NAMED_TYPE, \
	  .named_type = #type,                 \
	  .symbol = &vl_type_##type,           \
	  .field_flags = SD_VARLINK_ARRAY,     \
	  .field_direction = direction }

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Device, STRING(node), STRING(name), STRING(kind), STRING(devno),
	STRINGS(slaves), STRINGS(aliases), BOOL(leaf), BOOL(managed),
	BOOL(hung), INT(size_bytes), SD_VARLINK_FIELD_COMMENT("Of a leaf"),
	SD_VARLINK_DEFINE_FIELD(scheduler, SD_VARLINK_STRING,
				SD_VARLINK_NULLABLE));

static SD_VARLINK_DEFINE_STRUCT_TYPE(DeviceWeight, STRING(path), INT(weight));

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Unit, SD_VARLINK_FIELD_COMMENT("Empty for a cgroup that is no unit"),
	STRING(unit), STRING(cgroup), INT(weight), BOOL(weight_set),
	ARRAY(device_weights, DeviceWeight));

static SD_VARLINK_DEFINE_STRUCT_TYPE(GuaranteeLeaf, STRING(leaf),
				     STRING(scheduler), FLOAT(share_needed),
				     FLOAT(share_allotted), FLOAT(share_got),
				     FLOAT(backlog), INT(weight),
				     FLOAT(cost_ns), FLOAT(price));

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Guarantee, STRING(unit), STRING(cgroup), STRING(key), STRING(path),
	STRING(device),
	SD_VARLINK_FIELD_COMMENT(
		"Bytes or requests per second, or microseconds"),
	INT(value), FLOAT(percent), INT(importance), STRING(source),
	FLOAT(percentile), STRING(measured_at), STRING(state), STRING(cause),
	INT(got), FLOAT(granted), FLOAT(gain), FLOAT(amplification),
	FLOAT(reserve), ARRAY(leaves, GuaranteeLeaf));

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Capacity,
	SD_VARLINK_FIELD_COMMENT("As declared; the device is \"\" without one"),
	STRING(path), STRING(device),
	SD_VARLINK_FIELD_COMMENT("Of the floors that count"), STRING(key),
	SD_VARLINK_FIELD_COMMENT("Bytes or requests per second"), INT(capacity),
	INT(promised), INT(left));

static SD_VARLINK_DEFINE_METHOD_FULL(ListDevices, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(devices, Device));
static SD_VARLINK_DEFINE_METHOD_FULL(ListUnits, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(units, Unit));
static SD_VARLINK_DEFINE_METHOD_FULL(ListGuarantees, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(guarantees, Guarantee));
static SD_VARLINK_DEFINE_METHOD_FULL(ListCapacities, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(capacities, Capacity));
static SD_VARLINK_DEFINE_ERROR(TooManyCalls);

SD_VARLINK_DEFINE_INTERFACE(
	status, STATUS_INTERFACE,
	SD_VARLINK_INTERFACE_COMMENT(
		"Devices, units, guarantees and capacities of sutrod; see sutrod(8)"),
	SD_VARLINK_SYMBOL_COMMENT("A block device"), &vl_type_Device,
	&vl_type_DeviceWeight, &vl_type_Unit, &vl_type_GuaranteeLeaf,
	SD_VARLINK_SYMBOL_COMMENT("A floor, ceiling or latency target"),
	&vl_type_Guarantee,
	SD_VARLINK_SYMBOL_COMMENT(
		"A rate that all floors on a device together may promise"),
	&vl_type_Capacity,
	SD_VARLINK_SYMBOL_COMMENT(
		"All block devices; with \"more\" again when one changes"),
	&vl_method_ListDevices,
	SD_VARLINK_SYMBOL_COMMENT(
		"All units that sutrod follows; with \"more\" again"),
	&vl_method_ListUnits,
	SD_VARLINK_SYMBOL_COMMENT(
		"All guarantees and limits; with \"more\" again"),
	&vl_method_ListGuarantees,
	SD_VARLINK_SYMBOL_COMMENT(
		"All declared capacities; with \"more\" again"),
	&vl_method_ListCapacities,
	SD_VARLINK_SYMBOL_COMMENT("Calls of this user take too much time"),
	&vl_error_TooManyCalls);
