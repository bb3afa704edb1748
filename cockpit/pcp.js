// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Bytes of a cgroup over hours, from the archives of Performance Co-Pilot where it logs them.
 */

/* global cockpit */

/** Metrics of pmdaproc: bytes per millisecond for each cgroup and device, "CGROUP::DEVICE". */
const METRICS = ["cgroup.io.stat.rbytes", "cgroup.io.stat.wbytes"].map(
    name => ({ name, derive: "rate" }));
const HOURS = 6;
const INTERVAL_MS = 60000;
/** Samples of the picture. */
export const COUNT = (HOURS * 3600000) / INTERVAL_MS;
export const SPAN = `${HOURS} hours`;

const REASONS = {
    "not-supported": "PCP is not installed. Install pcp and python3-pcp for longer histories.",
    "not-found": "PCP has no archive with cgroup.io.stat. Let pmlogger record it for longer histories.",
};

/**
 * A sample with the values that the bridge left out, because they are those of the one before.
 * @param {any} before
 * @param {any} sample
 * @returns {any}
 */
export function complete(before, sample) {
    if (sample === null || sample === undefined)
        return before;
    if (!Array.isArray(sample))
        return sample;
    const old = Array.isArray(before) ? before : [];
    const length = Math.max(old.length, sample.length);
    return Array.from({ length }, (_, number) => complete(old[number], sample[number]));
}

/**
 * The sum of both metrics for a cgroup on some devices, in bytes per second.
 * @param {any[]} sample complete
 * @param {{instances?: string[]}[]} metrics of the meta message
 * @param {string} cgroup
 * @param {string[]} devices kernel names
 * @returns {number | null}
 */
export function total(sample, metrics, cgroup, devices) {
    const wanted = new Set(devices.map(name => `${cgroup}::${name}`));
    const found = metrics.flatMap((metric, number) => (metric.instances ?? [])
        .map((name, instance) => wanted.has(name) ? sample[number]?.[instance] : false)
        .filter(value => typeof value === "number"));
    return found.length ? 1000 * found.reduce((sum, value) => sum + value, 0) : null;
}

/**
 * The rates of a cgroup on devices in the last hours.
 * @param {string} cgroup
 * @param {string[]} devices kernel names
 * @returns {Promise<(number | null)[]>} one for each minute, or an Error with the reason
 */
export function load(cgroup, devices) {
    return new Promise((resolve, reject) => {
        const channel = cockpit.channel({
            payload: "metrics1", source: "pcp-archive", metrics: METRICS, interval: INTERVAL_MS,
            timestamp: -COUNT * INTERVAL_MS, limit: COUNT,
        });
        /** @type {(number | null)[]} */
        const values = [];
        let meta = { metrics: [] };
        let sample = [];
        channel.addEventListener("message", (_event, text) => {
            const message = JSON.parse(text);
            if (!Array.isArray(message)) {
                meta = message;
                sample = [];
                return;
            }
            for (const next of message) {
                sample = complete(sample, next);
                values.push(total(sample, meta.metrics, cgroup, devices));
            }
        });
        channel.addEventListener("close", (_event, options) => {
            if (options.problem)
                reject(new Error(REASONS[options.problem] ?? `PCP: ${options.message ?? options.problem}`));
            else if (values.every(value => value === null))
                reject(new Error("PCP recorded no I/O of this unit on these devices."));
            else
                resolve(values);
        });
    });
}
