// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The table of guarantees and limits: value, rate, state and cause of each.
 */

import { sparkline } from "./charts.js";
import { button, h, show, spoken } from "./dom.js";
import { NONE, value } from "./format.js";
import { described } from "./history.js";
import { icon, stateLabel } from "./icons.js";
import {
    about, grantedPart, identity, isFloor, owner, received, sentence, stated, summary, verdict, worstFirst,
} from "./promises.js";

const HEADERS = ["Unit", "Guarantee", "Device or path", "Promised", "Received", "Last 2 min", "State", ""];
const NUMBERS = ["Promised", "Received"];

/** @param {import("./app.js").State} state */
export function showGuarantees(state) {
    show("guarantees",
         h("div", { class: "card-head" },
           h("h2", { id: "guarantees-title" }, "Guarantees and limits"),
           h("span", { class: "subtle" }, summary(state.promises)),
           button("add", { class: "secondary push" }, icon("plus"), "Add guarantee")),
         state.promises.length ? table(state) : empty(state));
}

function empty(state) {
    const text = state.loaded
        ? "No unit has a guarantee. A floor keeps a bandwidth for a unit, a latency target keeps its " +
          "requests short, a limit bounds it, each on the volume that the unit uses."
        : "Reading …";
    return h("p", { class: "empty" }, text);
}

function table(state) {
    const head = HEADERS.map(name => h("th", { scope: "col", class: NUMBERS.includes(name) && "number" },
                                       name || spoken("Actions")));
    const rows = worstFirst(state.promises).flatMap(promise => lines(promise, state));
    return h("table", { class: "guarantees" },
             h("caption", { class: "spoken" }, "Guarantees and limits of units"),
             h("thead", {}, h("tr", {}, head)),
             h("tbody", {}, rows));
}

function lines(promise, state) {
    const id = identity(promise);
    const note = sentence(promise.cause || grantedPart(promise));
    const kind = verdict(promise.state);
    const row = h("tr", { "data-key": id, class: note && "with-note" },
                  h("th", { scope: "row", "data-label": "Unit" },
                    button("explain", {
                        class: "link", "data-unit": owner(promise), "data-path": promise.device && promise.path,
                    }, owner(promise))),
                  h("td", { "data-label": "Guarantee", title: promise.key }, about(promise)),
                  h("td", { "data-label": "Path", class: "path" }, promise.path),
                  h("td", { "data-label": "Promised", class: "number" }, stated(promise)),
                  h("td", { "data-label": "Received", class: "number" },
                    value(promise.key, received(promise, state.usage))),
                  h("td", { "data-label": "Last 2 min", class: "chart" }, line(promise, state)),
                  h("td", { "data-label": "State" }, stateLabel(promise.state)),
                  h("td", { class: "actions" }, edit(promise, id)));
    if (!note)
        return [row];
    return [row, h("tr", { "data-key": `${id}\nnote`, class: `note ${kind}` }, h("td", { colspan: HEADERS.length }, note))];
}

function line(promise, state) {
    const values = state.received.of(identity(promise));
    if (!values.some(Boolean))
        return h("span", { class: "subtle" }, NONE);
    const text = number => value(promise.key, number);
    return sparkline(values, {
        count: state.received.length,
        target: promise.value,
        kind: verdict(promise.state),
        label: described(about(promise), values, text),
    });
}

/** The button that changes a guarantee of a unit, or of a cgroup by its path. */
export function edit(/** @type {import("./promises.js").Promised} */ promise, /** @type {string} */ id) {
    const name = `Edit ${about(promise)} of ${owner(promise)} on ${promise.path}`;
    return button("edit", { class: "plain", "data-id": id, "aria-label": name, title: "Edit" }, icon("edit"));
}

/**
 * The received rates of a sample by identity.
 * @param {import("./app.js").State} state
 */
export function sample(state) {
    return new Map(state.promises.map(
        promise => [identity(promise), received(promise, state.usage)]));
}

/** Floors whose rates before the page was opened are not known yet. */
export function withoutHistory(/** @type {import("./app.js").State} */ state) {
    return state.promises.filter(promise => isFloor(promise.key) && promise.device &&
        promise.value && !state.received.begun.has(identity(promise)));
}
