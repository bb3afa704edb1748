// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The stacks of block devices, from the named devices down to the leaves.
 *
 * The daemon sends a flat list in which each device names the devices that it stands on. A leaf
 * under two stacks is in both of them.
 */

/**
 * @typedef {object} Device
 * @property {string} node
 * @property {string} name
 * @property {string} kind
 * @property {string[]} slaves kernel names
 * @property {string[]} aliases
 * @property {boolean} leaf
 * @property {string} [scheduler]
 * @property {boolean} managed
 * @property {boolean} hung
 * @property {number} size_bytes
 */

export class Topology {
    /** @param {Device[]} devices */
    constructor(devices) {
        /** @type {Map<string, Device>} */
        this.byName = new Map(devices.map(device => [device.name, device]));
        this.below = new Set(devices.flatMap(device => device.slaves));
        this.byPath = new Map(devices.flatMap(
            device => [device.node, ...device.aliases].map(path => [path, device])));
    }

    /** The device of a node or an alias. @param {string} path @returns {Device | undefined} */
    find(path) {
        return this.byPath.get(path);
    }

    /** Devices on which no other one stands, without empty ones. @returns {Device[]} */
    tops() {
        return [...this.byName.values()].filter(
            device => !this.below.has(device.name) && device.size_bytes > 0);
    }

    /** The devices directly below one. @param {Device} device @returns {Device[]} */
    slaves(device) {
        if (device.leaf && device.kind !== "loop")
            return [];
        return device.slaves.map(name => this.byName.get(name)).filter(found => found !== undefined);
    }

    /** The leaves of a device, each once. @param {Device} device @returns {Device[]} */
    leaves(device) {
        const below = this.slaves(device).flatMap(slave => this.leaves(slave));
        return [...new Set(device.leaf ? [device, ...below] : below)];
    }

    /** The tops that stand on a leaf. @param {Device} leaf @returns {Device[]} */
    stacksOn(leaf) {
        return this.tops().filter(top => top !== leaf && this.leaves(top).includes(leaf));
    }
}

/**
 * The name that people use for a device: /dev/VG/LV, then /dev/mapper/NAME, then the node.
 * @param {Device} device
 * @returns {string}
 */
export function label(device) {
    const short = device.aliases.filter(alias => !alias.startsWith("/dev/mapper/"));
    return short[0] ?? device.aliases[0] ?? device.node;
}
