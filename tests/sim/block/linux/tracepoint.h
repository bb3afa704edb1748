/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints that are never enabled. */
#ifndef SIM_LINUX_TRACEPOINT_H
#define SIM_LINUX_TRACEPOINT_H

#define TP_PROTO(...) __VA_ARGS__
#define TRACE_EVENT(name, prototype, ...)               \
	static inline void trace_##name(prototype)      \
	{                                               \
	}                                               \
	static inline bool trace_##name##_enabled(void) \
	{                                               \
		return false;                           \
	}                                               \
	_Static_assert(1, "")

#endif /* SIM_LINUX_TRACEPOINT_H */
