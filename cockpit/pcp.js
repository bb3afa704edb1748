// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Bytes of a cgroup over hours, from the archives of Performance Co-Pilot where it logs them.
 */

/* global cockpit */

/**
 * Metrics of pmdaproc: bytes for each cgroup and device, "CGROUP::DEVICE". The bridge can make rates of them,
 * which are wrong when a cgroup comes or goes: it subtracts counters by their place in the list.
 */
const METRICS = ["cgroup.io.stat.rbytes", "cgroup.io.stat.wbytes"].map(name => ({ name }));
const HOURS = 6;
const INTERVAL_MS = 60000;
/** Samples of the picture. */
export const COUNT = (HOURS * 3600000) / INTERVAL_MS;
export const SPAN = `${HOURS} hours`;

const REASONS = {
    "not-supported": "PCP is not installed. Install pcp and python3-pcp for longer histories.",
    "not-found": "PCP has no archive. Start pmcd and pmlogger for longer histories.",
};
/** The bridge then closes the channel without a word, and before any sample. */
const INCOMPLETE = "PCP has an archive without cgroup.io.stat, and Cockpit then reads no other one. Restart " +
    "pmlogger, and move older archives out of its folder in /var/log/pcp/pmlogger.";

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
 * The sum of both metrics for a cgroup on some devices: bytes since its start.
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
    return found.length ? found.reduce((sum, value) => sum + value, 0) : null;
}

/**
 * Bytes per second from each sample to the next one; null where one of them has no value, and where the
 * counter began again.
 * @param {{time: number, bytes: number | null}[]} points time in ms
 * @returns {(number | null)[]} as many as points
 */
export function rates(points) {
    return points.map(({ time, bytes }, number) => {
        const before = points[number - 1];
        if (!before || bytes === null || before.bytes === null || bytes < before.bytes)
            return null;
        return 1000 * (bytes - before.bytes) / (time - before.time);
    });
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
        /** @type {{time: number, bytes: number | null}[]} */
        const points = [];
        let meta = { metrics: [] };
        let sample = [];
        let time = 0;
        channel.addEventListener("message", (_event, text) => {
            const message = JSON.parse(text);
            if (!Array.isArray(message)) {
                meta = message;
                sample = [];
                time = message.timestamp;
                return;
            }
            for (const next of message) {
                sample = complete(sample, next);
                points.push({ time, bytes: total(sample, meta.metrics, cgroup, devices) });
                time += INTERVAL_MS;
            }
        });
        channel.addEventListener("close", (_event, options) => {
            const values = rates(points);
            if (options.problem)
                reject(new Error(REASONS[options.problem] ?? `PCP: ${options.message ?? options.problem}`));
            else if (!meta.metrics.length)
                reject(new Error(INCOMPLETE));
            else if (values.every(value => value === null))
                reject(new Error("PCP recorded no I/O of this unit on these devices."));
            else
                resolve(values);
        });
    });
}
