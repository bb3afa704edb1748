// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The table of units: the weight of each, the share of device time that it is entitled to,
 * and the share that it received.
 */

import { bar, sparkline } from "./charts.js";
import { button, h, show, spoken } from "./dom.js";
import { NONE, percent, rate, time } from "./format.js";
import { described } from "./history.js";
import { icon } from "./icons.js";
import { rows, shown } from "./usage.js";

/** A column: its name, the key that sorts by it, and a class. */
const COLUMNS = [
    { name: "Unit", sort: "cgroup" },
    { name: "Device" },
    { name: "Weight", kind: "number" },
    { name: "Entitled", sort: "entitled", kind: "number" },
    { name: "Received", sort: "got", kind: "number" },
    { name: "", kind: "share", text: "Share of device time" },
    { name: "Last 2 min" },
    { name: "Read", sort: "read", kind: "number" },
    { name: "Written", sort: "written", kind: "number" },
    { name: "Read P99", sort: "latency", kind: "number" },
];
/** Deeper cgroups are indented as much as this one. */
const DEEPEST = 6;

/** @param {import("./app.js").State} state */
export function showUnits(state) {
    const all = rows(state.units, state.usage, state.topology);
    const found = shown(all, state.view);
    show("units",
         h("div", { class: "card-head" },
           h("h2", { id: "units-title" }, "Units"),
           h("span", { class: "subtle" }, "shares of device time in the last second"),
           h("div", { class: "push toolbar" },
             h("input", {
                 type: "search", id: "filter", placeholder: "Filter units and devices",
                 "aria-label": "Filter units and devices", autocomplete: "off",
             }),
             h("label", { class: "check" },
               h("input", { type: "checkbox", id: "all-units" }), "Inactive units"))),
         found.length ? table(found, state) : h("p", { class: "empty" }, reason(state, all)));
}

function reason(state, all) {
    if (!state.loaded)
        return "Reading …";
    if (state.view.text)
        return "No unit or device matches the filter.";
    return all.length ? "No unit used a device in the last second, and none sets a weight."
        : "systemd runs no unit that sutrod follows.";
}

function table(found, state) {
    return h("table", { class: "units" },
             h("caption", { class: "spoken" }, "Weights and shares of units"),
             h("thead", {}, h("tr", {}, COLUMNS.map(column => header(column, state.view)))),
             h("tbody", {}, found.map(row => line(row, state))));
}

function header(column, view) {
    const sorted = column.sort && view.sort === column.sort;
    const order = column.sort === "cgroup" ? "ascending" : "descending";
    return h("th", { scope: "col", class: column.kind, "aria-sort": sorted && order },
             column.sort
                 ? button("sort", { class: "sort", "data-sort": column.sort }, column.name)
                 : column.name || spoken(column.text));
}

function line(row, state) {
    const share = text => row.device ? text : NONE;
    return h("tr", { "data-key": row.key, class: !row.first && "same" },
             h("th", { scope: "row", "data-label": "Unit", class: `depth-${Math.min(row.depth, DEEPEST)}` },
               button("explain", {
                   class: "link", "data-unit": row.name, "data-path": row.device, title: row.cgroup,
               }, row.name)),
             h("td", { "data-label": "Device", class: "path" }, row.place || NONE),
             h("td", { "data-label": "Weight", class: "number" }, weight(row)),
             h("td", { "data-label": "Entitled", class: "number" }, share(percent(row.entitled))),
             h("td", { "data-label": "Received", class: "number strong" }, share(percent(row.got))),
             h("td", { class: "share", "data-label": "Share" }, row.device && bar(row.got, row.entitled)),
             h("td", { "data-label": "Last 2 min", class: "chart" }, picture(row, state)),
             h("td", { "data-label": "Read", class: "number" }, rate(row.read)),
             h("td", { "data-label": "Written", class: "number" }, rate(row.written)),
             h("td", { "data-label": "Read P99", class: "number" }, time(row.latency)));
}

function weight(row) {
    const text = row.asked || NONE;
    if (!row.unit)
        return text;
    const name = `Weight of ${row.name}: ${text}. Change it`;
    const title = row.effective && row.effective !== row.asked ? `Set the weight; in force is ${row.effective}` : "Set the weight";
    return button("weight", { class: "value", "data-unit": row.unit, "aria-label": name, title },
                  icon("edit"), h("span", { class: row.weightSet ? "strong" : "subtle" }, text));
}

function picture(row, state) {
    const values = state.shares.of(row.key);
    if (!row.device || !values.some(Boolean))
        return h("span", { class: "subtle" }, NONE);
    return sparkline(values, {
        count: state.shares.length,
        target: row.entitled,
        label: described("Share of device time", values, percent),
    });
}

/** The shares of a sample by row. @param {import("./app.js").State} state */
export function sample(state) {
    return new Map(rows([], state.usage, state.topology).map(row => [row.key, row.got]));
}
