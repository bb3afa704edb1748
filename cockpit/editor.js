// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The dialogs that set a guarantee or limit, and the weight of a unit.
 */

import { Failure, setWeight } from "./bus.js";
import { field, lifetimeField, note } from "./dialog.js";
import { h } from "./dom.js";
import { quoted, value } from "./format.js";
import { KEYS, owner, typedValue } from "./promises.js";
import { label } from "./topology.js";

/** Where the daemon keeps what was set over the bus, by lifetime. */
export const CONTROL = {
    runtime: "/run/sutro/policy.control/",
    persistent: "/etc/sutro/policy.control/",
};
const WEIGHT_MOST = 10000;
/** Types of units that have a cgroup, and the others, as in sutroctl. */
const WITH_CGROUP = ["service", "scope", "slice", "socket", "mount", "swap"];
const WITHOUT_CGROUP = ["automount", "device", "path", "target", "timer"];
/** Kinds of files whose requests are not for the device of their file system. */
const NO_VOLUMES = ["socket", "fifo", "character special file"];

/** The lifetime of a setting that was made over the bus, "" of another one. @param {string} source */
export function lifetimeOf(source) {
    const found = Object.entries(CONTROL).find(([, folder]) => source.includes(folder));
    return found ? found[0] : "";
}

/**
 * The path at the beginning of a value of a policy.
 * @param {string} text
 * @returns {string}
 */
export function pathOf(text) {
    const found = /^\s*(?:"((?:[^"\\]|\\.)*)"|(\S+))/.exec(text);
    return found ? found[2] ?? found[1].replace(/\\(.)/g, "$1") : "";
}

/**
 * The path of the setting that a guarantee comes from: "any" where the guarantee has the path of a volume.
 * @param {import("./promises.js").Promised} promise
 * @param {{key: string, value: string, source: string}[]} settings of its unit
 * @returns {string}
 */
export function settingPath(promise, settings) {
    const found = settings.find(setting => setting.key === promise.key && setting.source === promise.source);
    return found ? pathOf(found.value) : promise.path;
}

/**
 * Assignments that remove the setting of a key for one path and keep those for other paths.
 * @param {{key: string, value: string, source: string}[]} settings of the unit
 * @param {string} key
 * @param {string} path
 * @param {string} lifetime
 * @returns {[string, string][]}
 */
export function removal(settings, key, path, lifetime) {
    const kept = settings.filter(setting => setting.key === key && setting.value &&
        lifetimeOf(setting.source) === lifetime && pathOf(setting.value) !== path);
    return [[key, ""], ...kept.map(setting => /** @type {[string, string]} */ ([key, setting.value]))];
}

/** Suggestions of a text field. */
function choices(id, values) {
    return h("datalist", { id }, [...new Set(values)].map(value => h("option", { value })));
}

/**
 * @param {import("./promises.js").Promised | null} promise null: a new one
 * @param {import("./app.js").State} state
 * @param {import("./bus.js").Bus} bus
 * @param {{key: string, value: string, source: string}[]} [settings] of the unit of the promise
 * @returns {import("./dialog.js").Content}
 */
export function guaranteeDialog(promise, state, bus, settings = []) {
    const fixed = promise !== null;
    const name = promise ? owner(promise) : undefined;
    const key = promise?.key ?? "ReadBandwidthMin";
    const lifetime = lifetimeOf(promise?.source ?? "");
    // A setting of a file stays: one for this path takes precedence over it.
    const fixedPath = lifetime ? settingPath(promise, settings) : promise?.path;
    const select = h("select", { disabled: fixed }, Object.entries(KEYS).map(
        ([name, { name: text }]) => h("option", { value: name, selected: name === key }, text)));
    const input = h("input", { type: "text", value: promise && typedValue(promise), autocomplete: "off" });
    const valueField = field("value", "Value", input, help(key));
    select.addEventListener("change", () => {
        valueField.querySelector(".help").textContent = help(select.value);
    });
    const made = form => ({
        unit: name ?? String(form.get("unit")).trim(),
        key: promise?.key ?? String(form.get("key")),
        path: fixedPath ?? String(form.get("path")).trim(),
        lifetime: String(form.get("lifetime")),
    });
    let confirmed = "";
    return {
        title: fixed ? "Edit guarantee" : "Add guarantee",
        action: fixed ? "Save" : "Add",
        again: "Add anyway",
        body: [
            field("unit", "Unit", h("input", {
                type: "text", value: name, list: "unit-names", disabled: fixed, autocomplete: "off",
                placeholder: "db.service",
            })),
            choices("unit-names", state.units.map(owner)),
            field("key", "Guarantee", select),
            field("path", "Device or path", h("input", {
                type: "text", value: fixedPath, list: "device-names", disabled: fixed, autocomplete: "off",
                placeholder: "/dev/vg/db",
            }), fixed ? "" : "A volume, or any path on it. \"any\" means each volume that the unit uses."),
            choices("device-names", state.topology.tops().map(label)),
            valueField,
            lifetimeField(lifetime || "persistent"),
            fixed && fixedPath !== promise.path && note("info", `Set for "${fixedPath}", each volume that the unit ` +
                `uses, ${promise.path} among them. A change or removal applies to all of them.`),
            fixed && !lifetime && note("info", `Set in ${promise.source}. A value that is set here takes precedence over it.`),
        ],
        run: async form => {
            const { unit, path, lifetime: lasts, ...rest } = made(form);
            const text = String(form.get("value")).trim();
            if (!unit || !path || !text)
                throw new Error("Unit, device and value are required.");
            const subject = complete(unit);
            let device = promise?.device ?? "";
            if (!fixed) {
                device = await deviceOf(path, subject, bus);
                if (confirmed !== subject && !await exists(subject, bus)) {
                    confirmed = subject;
                    throw new Failure(`There is no unit "${subject}".`,
                                      "The setting takes effect when there is one.", "confirm");
                }
            }
            await bus.setPolicy(subject, [[rest.key, `${quoted(path)} ${text}`]], lasts);
            // The guarantee is set: without the capacities there is no warning.
            return beyond(rest.key, device, await bus.capacities().catch(() => []));
        },
        other: lifetime ? {
            action: "Remove",
            run: async () => {
                const present = await bus.policy(name);
                await bus.setPolicy(name, removal(present, promise.key, fixedPath, lifetime), lifetime);
            },
        } : null,
    };
}

function help(key) {
    return `${KEYS[key]?.unit ?? ""}: ${KEYS[key]?.hint ?? ""}`;
}

/**
 * A unit name as people type it: .service where it has no type. A path of a cgroup stays.
 * @param {string} name
 * @returns {string}
 */
export function complete(name) {
    const type = /\.([a-z]+)$/.exec(name)?.[1] ?? "";
    if (name.startsWith("/") || WITH_CGROUP.includes(type))
        return name;
    if (WITHOUT_CGROUP.includes(type))
        throw new Failure(`unit "${name}" has no cgroup, so it has no guarantees`,
                          `Guarantees belong to units of the types ${WITH_CGROUP.join(", ")}.`);
    return `${name}.service`;
}

/** False for a unit that systemd has not found. Cgroups by path come and go. */
async function exists(subject, bus) {
    return subject.startsWith("/") || await bus.loadState(subject) !== "not-found";
}

/**
 * The device of a path, "" of any volume; a path that sutrod cannot follow to a block device is refused. sutrod
 * looks up no files outside of /dev: there, a path that does not exist has the device of the folder above.
 */
async function deviceOf(path, subject, bus) {
    if (path === "any")
        return "";
    const refuse = why => {
        throw new Failure(`"${path}" is out of reach of sutrod: ${why}`,
                          "Name a volume or a path on it, see Devices. For one that is mounted later: " +
                          `sutroctl policy edit ${subject}`);
    };
    const { device } = await bus.resolve(path).catch(error => {
        if (error.kind)
            throw error;
        refuse(error.message);
    });
    const kind = path.startsWith("/dev/") ? null : await bus.fileKind(path);
    if (kind === "")
        refuse("it does not exist.");
    if (NO_VOLUMES.includes(kind))
        refuse(`it is a ${kind}, behind which the kernel has no block device.`);
    return device;
}

/** Warnings about floors of a key beyond the capacity of a device: with Admission=warn they are set. */
function beyond(key, device, capacities) {
    const found = capacities.filter(capacity => capacity.key === key && (!device || capacity.device === device));
    return found.filter(capacity => capacity.promised > capacity.capacity).map(
        capacity => `${capacity.path}: ${floors(key)} of ${value(key, capacity.promised)} are promised, more than the ` +
            `capacity of ${value(key, capacity.capacity)}. Lower a floor, or they may not be kept.`);
}

/** "read IOPS floors" */
function floors(key) {
    const name = KEYS[key].name;
    return `${name[0].toLowerCase()}${name.slice(1)}s`;
}

/**
 * A weight as it is typed: a number, or "" for none.
 * @param {string} text
 * @returns {number | null}
 */
export function parsedWeight(text) {
    if (text === "")
        return null;
    const weight = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : 0;
    if (!weight || weight > WEIGHT_MOST)
        throw new Error(`"${text}" is no weight: allowed is a whole number from 1 to ${WEIGHT_MOST}`);
    return weight;
}

/**
 * @param {string} name of the unit
 * @param {import("./app.js").State} state
 * @returns {import("./dialog.js").Content}
 */
export function weightDialog(name, state) {
    const unit = state.units.find(row => row.unit === name);
    const devices = unit?.device_weights ?? [];
    const input = h("input", {
        type: "text", inputmode: "numeric", value: unit?.weight_set && unit.weight, autocomplete: "off", placeholder: "100",
    });
    return {
        title: `Weight of ${name}`,
        action: "Set weight",
        body: [
            field("weight", "IOWeight", input,
                  "1 to 10000. Units of one slice share its device time in the ratio of their weights. " +
                  "Without a weight a unit has 100."),
            lifetimeField(),
            devices.length > 0 && note("info", "Device weights take precedence: " +
                devices.map(entry => `${entry.path} ${entry.weight}`).join(", ")),
        ],
        run: async form => {
            const weight = parsedWeight(String(form.get("weight")).trim());
            await setWeight(name, weight, form.get("lifetime") === "runtime");
        },
    };
}
