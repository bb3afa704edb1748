// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Guarantees and limits of the bus: their states, order and words.
 *
 * The list of states is open-ended: the page shows an unknown state unchanged, and counts it as a
 * guarantee that is not kept, so that no user overlooks it.
 */

import { NONE, percent, typed, value } from "./format.js";

/**
 * @typedef {object} Promised as in ListPromises of org.sutro1.xml
 * @property {string} unit
 * @property {string} cgroup
 * @property {string} key
 * @property {string} path
 * @property {string} device
 * @property {number} value
 * @property {number} percent
 * @property {number} percentile
 * @property {number} importance
 * @property {string} source
 * @property {string} state
 * @property {string} cause
 * @property {number} got
 * @property {number} granted
 * @property {number} reserve
 * @property {number} amplification
 * @property {string} measured_at
 * @property {object[]} leaves
 */

/** Each key, in the order of the dialog; `value` is an example. */
export const KEYS = {
    ReadBandwidthMin: { name: "Read floor", hint: "200M, 1.5G or 50%", unit: "bytes per second" },
    WriteBandwidthMin: { name: "Write floor", hint: "200M, 1.5G or 50%", unit: "bytes per second" },
    ReadIOPSMin: { name: "Read IOPS floor", hint: "500, 2K or 50%", unit: "operations per second" },
    WriteIOPSMin: { name: "Write IOPS floor", hint: "500, 2K or 50%", unit: "operations per second" },
    LatencyTarget: { name: "Read latency target", hint: "5ms, or 20ms P99", unit: "time" },
    WriteLatencyTarget: { name: "Write latency target", hint: "5ms, or 20ms P99", unit: "time" },
    FsyncLatencyTarget: { name: "Fsync latency target", hint: "5ms, or 20ms P99", unit: "time" },
    ReadBandwidthMax: { name: "Read limit", hint: "200M, or infinity", unit: "bytes per second" },
    WriteBandwidthMax: { name: "Write limit", hint: "200M, or infinity", unit: "bytes per second" },
    ReadIOPSMax: { name: "Read IOPS limit", hint: "500, or infinity", unit: "operations per second" },
    WriteIOPSMax: { name: "Write IOPS limit", hint: "500, or infinity", unit: "operations per second" },
};

/** Limits, which the kernel keeps by itself: the use of the device shows how they fare. */
const LIMITED = {
    ReadBandwidthMax: "rbytes_per_s",
    WriteBandwidthMax: "wbytes_per_s",
    ReadIOPSMax: "rios_per_s",
    WriteIOPSMax: "wios_per_s",
};

const KEPT = ["held"];
const NEUTRAL = ["idle", "stated"];
const NOT_YET = ["settling", "unknown", "unknown-capacity"];

/** Percentile of a target that states none. */
const PERCENTILE_USUAL = 95;

/**
 * kept, neutral (nothing to keep at present), waiting (no verdict yet), failed
 * @param {string} state
 * @returns {"kept" | "neutral" | "waiting" | "failed"}
 */
export function verdict(state) {
    if (KEPT.includes(state))
        return "kept";
    if (NEUTRAL.includes(state))
        return "neutral";
    return NOT_YET.includes(state) ? "waiting" : "failed";
}

/** Those that fail, then those without a verdict, then the others; each by unit. */
export function worstFirst(/** @type {Promised[]} */ promises) {
    const rank = { failed: 0, waiting: 1, kept: 2, neutral: 2 };
    const order = new Intl.Collator("en", { numeric: true });
    return [...promises].sort((one, other) =>
        rank[verdict(one.state)] - rank[verdict(other.state)] ||
        order.compare(owner(one), owner(other)) ||
        order.compare(one.path, other.path) || order.compare(one.key, other.key));
}

/** The unit, or the cgroup that systemd did not make. */
export function owner(/** @type {{unit: string, cgroup: string}} */ row) {
    return row.unit || row.cgroup;
}

/** The identity of a guarantee. */
export function identity(/** @type {Promised} */ promise) {
    return [promise.cgroup, promise.unit, promise.key, promise.path].join("\n");
}

/** "Read floor", "Read latency P99" */
export function about(/** @type {Promised} */ promise) {
    const name = KEYS[promise.key]?.name ?? promise.key;
    if (!isTarget(promise.key))
        return name;
    return name.replace("target", `P${promise.percentile || PERCENTILE_USUAL}`);
}

export function isTarget(/** @type {string} */ key) {
    return key.endsWith("LatencyTarget");
}

export function isFloor(/** @type {string} */ key) {
    return key.endsWith("Min");
}

/** The value; of a percentage also the rate that it stands for, where that is known. */
export function stated(/** @type {Promised} */ promise) {
    const number = promise.value ? value(promise.key, promise.value) : "";
    const part = promise.percent ? `${promise.percent} %` : "";
    return [part, number].filter(Boolean).join(" = ") || NONE;
}

/** The value as it is typed into the dialog. */
export function typedValue(/** @type {Promised} */ promise) {
    if (promise.percent)
        return `${promise.percent}%`;
    const number = promise.value ? typed(promise.key, promise.value) : "";
    const usual = !promise.percentile || promise.percentile === PERCENTILE_USUAL;
    return isTarget(promise.key) && !usual ? `${number} P${promise.percentile}` : number;
}

/**
 * The rate or latency that the unit receives, as the daemon measured it; of a limit, the use of its device.
 * @param {Promised} promise
 * @param {object[]} usage rows of ListUsage
 * @returns {number}
 */
export function received(promise, usage) {
    const field = LIMITED[promise.key];
    if (!field)
        return promise.got;
    const row = usage.find(used => used.cgroup === promise.cgroup && used.device === promise.device);
    return row?.[field] ?? 0;
}

/** A clause of the daemon as a sentence. @param {string} text */
export function sentence(text) {
    return text && `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** "granted 19.2 MB/s, 24.0 % of it", of a target "24.0 % of the time that it needs"; "" where all of it is granted. */
export function grantedPart(/** @type {Promised} */ promise) {
    if (promise.granted >= 1 || !promise.device)
        return "";
    if (isTarget(promise.key))
        return `granted ${percent(promise.granted)} of the time that it needs`;
    const granted = value(promise.key, promise.value * promise.granted);
    return `granted ${granted}, ${percent(promise.granted)} of it`;
}

/** "4 not kept, 1 without a verdict" */
export function summary(/** @type {Promised[]} */ promises) {
    const count = kind => promises.filter(promise => verdict(promise.state) === kind).length;
    const parts = [[count("failed"), "not kept"], [count("waiting"), "without a verdict"],
        [count("kept"), "kept"], [count("neutral"), "idle or stated"]];
    return parts.filter(([number]) => number).map(([number, word]) => `${number} ${word}`).join(", ");
}
