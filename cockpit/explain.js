// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The drawer of one unit: the settings that its weights follow from, the weight on each
 * leaf, its guarantees, and its I/O of the last hours.
 */

import { bar, sparkline } from "./charts.js";
import { note } from "./dialog.js";
import { button, h, show } from "./dom.js";
import { NONE, percent, rate, time, value } from "./format.js";
import { described } from "./history.js";
import { icon, stateLabel } from "./icons.js";
import { COUNT, load, SPAN } from "./pcp.js";
import { about, owner, sentence, stated } from "./promises.js";

/**
 * All that the drawer shows. The unit may be the path of a cgroup that systemd did not make.
 * @param {{unit: string, path: string}} what
 * @param {import("./bus.js").Bus} bus
 */
export async function read(what, bus) {
    const [explanation, steps, policy] = await Promise.all([
        bus.explain(what.unit, what.path),
        what.path ? bus.resolve(what.path).then(found => found.steps) : [],
        bus.policy(what.unit),
    ]);
    return { ...what, explanation, steps, policy };
}

/** The I/O of the last hours, or the reason why there is none. */
export async function readHistory(drawer, state) {
    const { explanation } = drawer;
    const nodes = explanation.device ? [explanation.device] : explanation.leaves.map(leaf => leaf.leaf);
    const names = nodes.map(node => state.topology.find(node)?.name ?? node.replace("/dev/", ""));
    try {
        return { values: await load(explanation.cgroup, names), reason: "" };
    } catch (error) {
        return { values: [], reason: error.message };
    }
}

/** @param {import("./app.js").State} state */
export function showExplain(state) {
    const drawer = state.drawer;
    show("explain",
         h("div", { class: "drawer-head" },
           h("h2", { id: "explain-title" }, drawer.unit),
           button("close", { class: "plain", "aria-label": "Close", title: "Close" }, icon("close"))),
         h("div", { class: "drawer-body" },
           drawer.failure && note("failed", drawer.failure.message),
           drawer.explanation ? body(drawer, state) : !drawer.failure && h("p", { class: "subtle" }, "Reading …")));
}

function body(drawer, state) {
    const { explanation, steps } = drawer;
    const promises = state.promises.filter(promise => promise.cgroup === explanation.cgroup &&
        (!explanation.device || explanation.device === promise.device));
    return [
        h("p", { class: "subtle path" }, explanation.cgroup),
        part("Weight in systemd", weights(explanation, state)),
        steps.length > 0 && part(drawer.path, h("ol", { class: "steps" }, steps.map(
            step => h("li", { class: `depth-${Math.min(step.level, 6)}` }, step.text)))),
        part("Disks", explanation.leaves.map(leaf), advice(explanation)),
        promises.length > 0 && part("Guarantees and limits", promises.map(guarantee)),
        drawer.policy.length > 0 && part("Settings", settings(drawer.policy)),
        part(`Bytes per second in the last ${SPAN}`, recorded(drawer.history)),
    ];
}

function part(title, ...children) {
    return h("section", {}, h("h3", {}, title), ...children);
}

function pairs(...entries) {
    return h("dl", { class: "pairs" }, entries.filter(entry => entry && entry[1])
        .map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
}

function said(unit) {
    const all = [unit.weight_set && `IOWeight=${unit.weight}`,
        ...unit.device_weights.map(entry => `IODeviceWeight=${entry.path} ${entry.weight}`)];
    return all.filter(Boolean).join(", ") || "no weight is set: 100, the default";
}

function weights(explanation, state) {
    const above = state.units.filter(unit => unit.cgroup !== "/" && explanation.cgroup.startsWith(`${unit.cgroup}/`));
    return pairs([owner(explanation), said(explanation)],
                 ...above.map(slice => [`in ${owner(slice)}`, said(slice)]));
}

function leaf(row) {
    const settled = ["", row.read_back].includes(row.written);
    const without = row.backend === "none";
    return h("article", { class: "leaf", "data-key": row.leaf },
             h("h4", {}, icon("disk", "subtle"), row.leaf, h("span", { class: "label" }, row.scheduler)),
             h("div", { class: "shares" },
               h("span", {}, "received ", h("strong", {}, percent(row.got))),
               h("span", {}, "entitled ", h("strong", {}, without ? NONE : percent(row.hweight))),
               h("span", {}, "weight ", h("strong", {}, row.asked)),
               bar(row.got, without ? 0 : row.hweight)),
             h("p", { class: "reason" }, sentence(row.reason)),
             pairs(["Read", row.rbytes && rate(row.rbytes)], ["Written", row.wbytes && rate(row.wbytes)],
                   ["Device time", row.time_ns && `${time(row.time_ns / 1000)} in the last second`],
                   ["Line", row.written && h("code", { title: row.file }, `${row.file.split("/").at(-1)}: ${row.written}`)]),
             !settled && note("failed", row.error || `The file has the line "${row.read_back}", and not the one that sutrod wrote.`));
}

function advice(explanation) {
    const bare = explanation.leaves.filter(row => row.backend === "none").map(row => row.leaf);
    return bare.length > 0 && note("waiting", `Weights have no effect on ${bare.join(" ")}, because the scheduler there has no weights. ` +
        "Use sutro for the device to change this.");
}

function guarantee(promise) {
    const needs = promise.leaves.map(row =>
        `${percent(row.share_needed)} of ${row.leaf}, allotted ${percent(row.share_allotted)}`);
    const measured = { volume: "at the device itself", leaves: "at its leaves, because BPF is not available" }[promise.measured_at];
    return h("article", { class: "leaf", "data-key": `${promise.key}\n${promise.path}` },
             h("h4", {}, about(promise), h("span", { class: "push" }, stateLabel(promise.state))),
             h("p", { class: "path subtle" }, promise.path),
             promise.cause && h("p", { class: "reason" }, sentence(promise.cause)),
             pairs(["Promised", stated(promise)], ["Received", value(promise.key, promise.got)],
                   ["Granted", promise.granted < 1 && promise.device && percent(promise.granted)],
                   ["Needs", promise.leaves.some(row => row.share_needed) && needs.join("; ")],
                   ["Reserved", promise.reserve > 0 && `${percent(promise.reserve)} of the time of its leaves`],
                   ["Amplification", promise.amplification > 0 && `${promise.amplification.toFixed(2)} bytes at the leaves for each byte`],
                   ["Measured", measured],
                   ["Set in", `${promise.source}, importance ${promise.importance}`]));
}

function settings(policy) {
    return h("ul", { class: "settings" }, policy.map(entry => h(
        "li", { class: !entry.in_force && "hidden-setting" },
        h("code", {}, `${entry.key}=${entry.value}`),
        h("span", { class: "subtle" }, entry.in_force ? entry.source : `${entry.source}, overridden`))));
}

function recorded(history) {
    if (!history)
        return h("p", { class: "subtle" }, "Reading …");
    if (history.reason)
        return h("p", { class: "subtle" }, history.reason);
    const label = described("Bytes per second by minute", history.values, rate);
    return h("figure", { class: "recorded" },
             sparkline(history.values, { count: COUNT, label }),
             h("figcaption", { class: "subtle" }, label.replace(/ in the last \d+ s/, "")));
}
