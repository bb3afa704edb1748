// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Rows of the table of units: one for each unit and device that it uses, and one for each
 * unit that states a weight and uses none.
 */

import { owner } from "./promises.js";
import { label } from "./topology.js";

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {string} unit
 * @property {string} cgroup
 * @property {string} name unit, or cgroup without one
 * @property {number} depth of the cgroup below others of the table
 * @property {boolean} first row of its unit
 * @property {string} device node, "" for a unit that uses none
 * @property {string} place name of the device
 * @property {number} asked weight that the unit states for the device; of a cgroup that systemd
 *     did not make the one in force
 * @property {number} effective weight on the leaf with the largest share, 0 without use
 * @property {boolean} weightSet by the unit itself
 * @property {number} entitled 0..1
 * @property {number} got 0..1
 * @property {number} read bytes per second
 * @property {number} written bytes per second
 * @property {number} latency P99 of reads in microseconds
 */

/**
 * @param {object[]} units rows of ListUnits
 * @param {object[]} usage rows of ListUsage
 * @param {import("./topology.js").Topology} topology
 * @returns {Row[]} sorted by cgroup
 */
export function rows(units, usage, topology) {
    const byCgroup = new Map(units.map(unit => [unit.cgroup, unit]));
    const used = usage.filter(row => row.cgroup !== "/").map(row => {
        const leaf = busiest(row.leaves);
        const device = topology.find(row.device);
        return {
            ...blank(row, byCgroup.get(row.cgroup)),
            key: `${row.cgroup}\n${row.device}`,
            device: row.device,
            place: device ? label(device) : row.device,
            asked: asked(byCgroup.get(row.cgroup), device) ?? leaf?.weight ?? 0,
            effective: leaf?.weight ?? 0,
            entitled: leaf?.hweight ?? 0,
            got: leaf?.share_got ?? 0,
            read: row.rbytes_per_s,
            written: row.wbytes_per_s,
            latency: row.read_p99_us,
        };
    });
    const active = new Set(used.map(row => row.cgroup));
    const others = units.filter(unit => unit.cgroup !== "/" && !active.has(unit.cgroup))
        .map(unit => ({ ...blank(unit, unit), asked: unit.weight }));
    return placed([...used, ...others]);
}

function blank(row, unit) {
    return {
        key: `${row.cgroup}\n`, unit: row.unit, cgroup: row.cgroup, name: owner(row), depth: 0,
        first: true, device: "", place: "", asked: 0, effective: 0, entitled: 0, got: 0, read: 0,
        written: 0, latency: 0,
        weightSet: Boolean(unit && (unit.weight_set || unit.device_weights.length)),
    };
}

/** IODeviceWeight= of a unit where it names the device, else IOWeight=. */
function asked(unit, device) {
    const names = device ? [device.node, ...device.aliases] : [];
    return unit?.device_weights.find(entry => names.includes(entry.path))?.weight ?? unit?.weight;
}

function busiest(leaves) {
    return [...leaves].sort((one, other) => other.share_got - one.share_got)[0];
}

/** Rows sorted by cgroup, with the depth of each below others of the list. */
function placed(found) {
    const path = row => row.cgroup.split("/");
    const sorted = found.sort((one, other) => compare(path(one), path(other)) ||
        other.got - one.got || (one.place < other.place ? -1 : 1));
    /** @type {string[]} */
    const above = [];
    for (const [number, row] of sorted.entries()) {
        row.first = sorted[number - 1]?.cgroup !== row.cgroup;
        while (above.length && !`${row.cgroup}/`.startsWith(`${above.at(-1)}/`))
            above.pop();
        if (above.at(-1) !== row.cgroup)
            above.push(row.cgroup);
        row.depth = above.length - 1;
    }
    return sorted;
}

function compare(one, other) {
    for (const [number, part] of one.entries()) {
        if (number >= other.length)
            return 1;
        if (part !== other[number])
            return part < other[number] ? -1 : 1;
    }
    return one.length - other.length;
}

/** The columns that the table can be sorted by, beside the order of cgroups. */
export const SORTS = ["entitled", "got", "read", "written", "latency"];

/**
 * The rows to show.
 * @param {Row[]} all
 * @param {{text: string, all: boolean, sort: string}} view
 * @returns {Row[]}
 */
export function shown(all, view) {
    const wanted = view.text.trim().toLowerCase();
    const found = all.filter(row =>
        (view.all || row.device || row.weightSet) &&
        `${row.name} ${row.place} ${row.device}`.toLowerCase().includes(wanted));
    if (!SORTS.includes(view.sort))
        return found;
    return found.sort((one, other) => other[view.sort] - one[view.sort])
        .map(row => ({ ...row, depth: 0, first: true }));
}
