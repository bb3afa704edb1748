// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Numbers as text: sizes with base 1024, rates with base 1000 as in policies, shares, times.
 */

/** "No limit" and "not set" on the bus: 2^64 - 1, which a JSON number rounds up. */
export const INFINITY = 2 ** 64;

/** The text of a cell without a value. */
export const NONE = "–";

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const RATES = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
const COUNTS = ["IO/s", "kIO/s", "MIO/s", "GIO/s", "TIO/s"];
const TIMES = ["µs", "ms", "s"];

/**
 * A number in three digits with the largest unit that leaves one before the point.
 * @param {number} number
 * @param {number} base of the units
 * @param {string[]} units from the smallest one
 * @returns {string}
 */
function scaled(number, base, units) {
    let step = 0;
    while (number >= 999.5 && step < units.length - 1) {
        number /= base;
        step += 1;
    }
    const digits = step === 0 && Number.isInteger(number) ? 0 : number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
    return `${number.toFixed(digits)} ${units[step]}`;
}

/** @param {number} bytes @returns {string} */
export function size(bytes) {
    return scaled(bytes, 1024, SIZES);
}

/** @param {number} bytes per second @returns {string} */
export function rate(bytes) {
    return bytes ? scaled(bytes, 1000, RATES) : NONE;
}

/** @param {number} microseconds @returns {string} */
export function time(microseconds) {
    return microseconds ? scaled(microseconds, 1000, TIMES) : NONE;
}

/**
 * A share of 0..1. One that is too small for the digits is not shown as none.
 * @param {number} share
 * @returns {string}
 */
export function percent(share) {
    if (!share)
        return NONE;
    return share < 0.0005 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/**
 * A number of a guarantee in the unit of its key.
 * @param {string} key of a policy
 * @param {number} number
 * @returns {string}
 */
export function value(key, number) {
    if (number >= INFINITY)
        return "no limit";
    if (!number)
        return NONE;
    if (key.endsWith("LatencyTarget"))
        return time(number);
    return scaled(number, 1000, key.includes("IOPS") ? COUNTS : RATES);
}

/**
 * A number as it is typed into a policy, exactly.
 * @param {string} key
 * @param {number} number
 * @returns {string}
 */
export function typed(key, number) {
    if (number >= INFINITY)
        return "infinity";
    if (key.endsWith("LatencyTarget"))
        return number % 1000 ? `${number}us` : `${number / 1000}ms`;
    for (const [suffix, factor] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["K", 1e3]]) {
        // One decimal is easier to read than three more digits.
        if (number >= factor && (number * 10) % factor === 0)
            return `${number / factor}${suffix}`;
    }
    return String(number);
}

/**
 * A path as the first word of a value.
 * @param {string} path
 * @returns {string}
 */
export function quoted(path) {
    if (/^[^\s"'\\]+$/.test(path))
        return path;
    return `"${path.replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;
}
