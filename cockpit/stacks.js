// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The stacks of devices from each volume down to the disks, with the scheduler of each disk.
 */

import { button, h, show, spoken } from "./dom.js";
import { NONE, size, value } from "./format.js";
import { icon } from "./icons.js";
import { KEYS, owner } from "./promises.js";
import { label } from "./topology.js";

const HEADERS = ["Device", "Kind", "Size", "Scheduler", "Used by", ""];
/** Units of a device by name; more are a number. */
const NAMED = 3;

/** @param {import("./app.js").State} state */
export function showStacks(state) {
    const tops = state.topology.tops();
    show("stacks",
         h("div", { class: "card-head" },
           h("h2", { id: "stacks-title" }, "Devices"),
           h("span", { class: "subtle" }, "volumes and the disks below them")),
         tops.length ? table(tops, state)
             : h("p", { class: "empty" }, state.loaded ? "There is no block device." : "Reading …"));
}

function table(tops, state) {
    const head = HEADERS.map(name => h("th", { scope: "col", class: name === "Size" && "number" },
                                       name || spoken("Actions")));
    return h("table", { class: "stacks" },
             h("caption", { class: "spoken" }, "Devices, from each volume down to the disks"),
             h("thead", {}, h("tr", {}, head)),
             tops.map(top => h("tbody", { "data-key": top.name }, lines(top, top, 0, state))));
}

function lines(device, top, depth, state) {
    const below = state.topology.slaves(device);
    return [...line(device, top, depth, state),
        ...below.flatMap(slave => lines(slave, top, depth + 1, state))];
}

/** The row of a device, and one for each of its declared capacities. */
function line(device, top, depth, state) {
    const name = label(device);
    const of = depth ? { "aria-label": `${name}, below ${label(top)}` } : {};
    const key = `${top.name}\n${device.name}\n${depth}`;
    const declared = state.capacities.filter(capacity => capacity.device === device.node);
    const row = h("tr", { "data-key": key, class: declared.length > 0 && "with-note" },
             h("th", { scope: "row", "data-label": "Device", class: `depth-${Math.min(depth, 6)}`, ...of },
               icon(device.leaf ? "disk" : "volume", "subtle"),
               h("span", { class: "path" }, name),
               name !== device.node && h("span", { class: "subtle" }, ` ${device.name}`)),
             h("td", { "data-label": "Kind" }, device.kind),
             h("td", { "data-label": "Size", class: "number" }, size(device.size_bytes)),
             h("td", { "data-label": "Scheduler" }, scheduler(device)),
             h("td", { "data-label": "Used by", class: "users" }, users(device, state)),
             h("td", { class: "actions" }, depth === 0 && actions(device, state)));
    return [row, ...declared.map(capacity => capacityLine(capacity, key, name))];
}

/** The line of a declared capacity; it has the path where that is another name of the device. */
function capacityLine(capacity, key, name) {
    const isOver = capacity.promised > capacity.capacity;
    const text = capacityText(capacity);
    return h("tr", {
        "data-key": [key, capacity.path, capacity.key].join("\n"), class: `note ${isOver ? "failed" : "neutral"}`,
    }, h("td", { colspan: HEADERS.length }, isOver && icon("warning", "waiting"),
         capacity.path === name ? text : `${capacity.path}: ${text}`));
}

/** "Read floors: 60.0 MB/s of 150 MB/s promised, 90.0 MB/s left" */
export function capacityText(/** @type {{key: string, capacity: number, promised: number, left: number}} */ capacity) {
    const number = amount => amount ? value(capacity.key, amount) : "none";
    return `${KEYS[capacity.key]?.name ?? capacity.key}s: ${number(capacity.promised)} of ` +
        `${number(capacity.capacity)} promised, ${number(capacity.left)} left`;
}

function scheduler(device) {
    if (!device.leaf)
        return null;
    const name = device.scheduler || NONE;
    if (name !== "sutro")
        return h("span", { class: "label" }, name);
    return h("span", { class: "label kept", title: device.managed && "switched by Sutro" }, icon("check", "kept"), name);
}

function users(device, state) {
    const names = [...new Set(state.usage.filter(row => row.device === device.node && row.cgroup !== "/").map(owner))];
    if (!names.length)
        return device.leaf ? null : h("span", { class: "subtle" }, NONE);
    const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
    return names.slice(0, NAMED).join(", ") + more;
}

function actions(top, state) {
    const leaves = state.topology.leaves(top);
    const name = label(top);
    const found = [];
    if (leaves.some(leaf => leaf.scheduler !== "sutro"))
        found.push(button("use", { class: "secondary small", "data-device": top.node, "aria-label": `Use sutro for ${name}` },
                          "Use sutro"));
    if (leaves.some(leaf => leaf.managed))
        found.push(button("release", { class: "secondary small", "data-device": top.node, "aria-label": `Release ${name}` },
                          "Release"));
    return found;
}

/**
 * The dialog before a switch of schedulers: the disks, and other volumes on them.
 * @param {"use" | "release"} verb
 * @param {import("./topology.js").Device} top
 * @param {import("./app.js").State} state
 * @param {import("./bus.js").Bus} bus
 */
export function switchDialog(verb, top, state, bus) {
    const leaves = state.topology.leaves(top)
        .filter(leaf => verb === "use" ? leaf.scheduler !== "sutro" : leaf.managed);
    const others = new Set(leaves.flatMap(leaf => state.topology.stacksOn(leaf)).filter(other => other !== top));
    const text = verb === "use"
        ? "These disks get the scheduler sutro, which divides their time by the weights of units:"
        : "These disks get back the scheduler that they had before; weights may then have no effect:";
    return {
        title: verb === "use" ? `Use sutro for ${label(top)}` : `Release ${label(top)}`,
        action: verb === "use" ? "Use sutro" : "Release",
        body: [
            h("p", {}, text),
            h("ul", {}, leaves.map(leaf => h("li", {}, `${leaf.node}, now ${leaf.scheduler || "none"}`))),
            others.size > 0 && h("p", {}, "The same disks carry " + [...others].map(label).join(", ") + "."),
            verb === "use" && h("p", { class: "subtle" },
                                "It lasts until the next boot. For longer, set Use= in /etc/sutro/sutrod.conf."),
        ],
        run: async () => {
            const results = verb === "use" ? await bus.use([top.node]) : await bus.release([top.node]);
            const failed = results.filter(result => result.error);
            if (failed.length)
                throw new Error(failed.map(result => `${result.leaf}: ${result.error}`).join("; "));
        },
    };
}
