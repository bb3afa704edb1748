// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The last values of the small charts in the tables: one sample of the page each second. Those of
 * floors begin with rates that the daemon recorded.
 */

/** Values of each line: two minutes. */
export const LENGTH = 120;

export class History {
    /** @param {number} [length] values that are kept of each line */
    constructor(length = LENGTH) {
        this.length = length;
        /** @type {Map<string, (number | null)[]>} */
        this.lines = new Map();
        /** Lines that begin with values of the daemon. @type {Set<string>} */
        this.begun = new Set();
    }

    /**
     * Add a sample; lines that it does not have get null, and end after a whole length of them.
     * @param {Map<string, number>} sample
     */
    add(sample) {
        for (const key of sample.keys()) {
            if (!this.lines.has(key))
                this.lines.set(key, []);
        }
        for (const [key, values] of this.lines) {
            values.push(sample.get(key) ?? null);
            if (values.length > this.length)
                values.shift();
            if (values.every(value => value === null)) {
                this.lines.delete(key);
                this.begun.delete(key);
            }
        }
    }

    /**
     * Take the values that the daemon recorded until now, in place of the samples of that time.
     * @param {string} key
     * @param {number[]} recorded oldest first
     */
    begin(key, recorded) {
        const values = this.lines.get(key) ?? [];
        const older = values.slice(0, Math.max(0, values.length - recorded.length));
        this.lines.set(key, [...older, ...recorded].slice(-this.length));
        this.begun.add(key);
    }

    /** Oldest first. @param {string} key @returns {(number | null)[]} */
    of(key) {
        return this.lines.get(key) ?? [];
    }
}

/**
 * "Read and written in the last 2 minutes: 41 MB/s to 63 MB/s"
 * @param {string} what
 * @param {(number | null)[]} values
 * @param {(value: number) => string} text
 */
export function described(what, values, text) {
    const there = values.filter(value => value !== null);
    if (!there.length)
        return `${what}: no sample yet`;
    const [least, most] = [Math.min(...there), Math.max(...there)];
    return `${what} in the last ${there.length} s: ${text(least)} to ${text(most)}`;
}
