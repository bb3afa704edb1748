// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Icons of 16 by 16, and the states of guarantees as icon and word.
 */

import { h, s } from "./dom.js";
import { verdict } from "./promises.js";

const PATHS = {
    check: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3.7 5.2-4.3 4.9a.8.8 0 0 1-1.1 0L4.2 9a.8.8 0 0 1 1.1-1.1l1.5 1.5 3.7-4.3a.8.8 0 0 1 1.2 1Z",
    error: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 2.8c.5 0 .9.4.9.9l-.2 4a.7.7 0 0 1-1.4 0l-.2-4c0-.5.4-.9.9-.9Zm0 6.6a1 1 0 1 1 0 2 1 1 0 0 1 0-2Z",
    warning: "M7.1 1.8a1 1 0 0 1 1.8 0l6 11a1 1 0 0 1-.9 1.5H2a1 1 0 0 1-.9-1.5l6-11ZM8 5.2c-.5 0-.9.4-.8.9l.2 3.2a.6.6 0 0 0 1.2 0l.2-3.2c.1-.5-.3-.9-.8-.9Zm0 5.6a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8Z",
    waiting: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 2.6c.4 0 .7.3.7.7v3.4l2.2 1.6a.7.7 0 0 1-.8 1.2L7.6 8.6a.8.8 0 0 1-.3-.6V4.3c0-.4.3-.7.7-.7Z",
    neutral: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3 6.2a.8.8 0 0 1 0 1.6H5a.8.8 0 0 1 0-1.6h6Z",
    info: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 2.7a1 1 0 1 1 0 2 1 1 0 0 1 0-2Zm.8 7.8a.8.8 0 0 1-1.6 0V7.6a.8.8 0 0 1 1.6 0v3.9Z",
    edit: "M11.2 1.7a1.2 1.2 0 0 1 1.7 0l1.4 1.4a1.2 1.2 0 0 1 0 1.7l-8.4 8.4-3.4 1a.6.6 0 0 1-.7-.7l1-3.4 8.4-8.4ZM10 4.4l1.6 1.6 1.2-1.2L11.2 3.2 10 4.4Z",
    close: "M3.7 3.7a.9.9 0 0 1 1.2 0L8 6.8l3.1-3.1a.9.9 0 1 1 1.2 1.2L9.2 8l3.1 3.1a.9.9 0 1 1-1.2 1.2L8 9.2l-3.1 3.1a.9.9 0 1 1-1.2-1.2L6.8 8 3.7 4.9a.9.9 0 0 1 0-1.2Z",
    plus: "M8 2.5c.5 0 .8.3.8.8v3.9h3.9a.8.8 0 0 1 0 1.6H8.8v3.9a.8.8 0 0 1-1.6 0V8.8H3.3a.8.8 0 0 1 0-1.6h3.9V3.3c0-.5.3-.8.8-.8Z",
    lock: "M8 1a3.5 3.5 0 0 1 3.5 3.5V6.5h.5c.9 0 1.5.7 1.5 1.5v5.5c0 .8-.6 1.5-1.5 1.5H4c-.9 0-1.5-.7-1.5-1.5V8c0-.8.6-1.5 1.5-1.5h.5v-2A3.5 3.5 0 0 1 8 1Zm0 1.5a2 2 0 0 0-2 2v2h4v-2a2 2 0 0 0-2-2Z",
    disk: "M3 3.2A1.7 1.7 0 0 1 4.6 2h6.8c.8 0 1.4.5 1.6 1.2L14.6 9v3.3c0 .9-.7 1.7-1.6 1.7H3c-.9 0-1.6-.8-1.6-1.7V9L3 3.2Zm-.2 6.6v2.5c0 .2.1.3.3.3h9.8c.2 0 .3-.1.3-.3V9.8H2.8Zm8.2.7a.8.8 0 1 1 0 1.6.8.8 0 0 1 0-1.6Z",
    volume: "M8 1.3c3.3 0 5.8 1.1 5.8 2.6v8.2c0 1.5-2.5 2.6-5.8 2.6s-5.8-1.1-5.8-2.6V3.9C2.2 2.4 4.7 1.3 8 1.3Zm0 1.4c-2.7 0-4.4.8-4.4 1.2S5.3 5.1 8 5.1s4.4-.8 4.4-1.2S10.7 2.7 8 2.7Zm4.4 3.1c-1 .5-2.6.7-4.4.7s-3.4-.2-4.4-.7V8c0 .4 1.7 1.2 4.4 1.2s4.4-.8 4.4-1.2V5.8Z",
};

/**
 * @param {keyof PATHS} name
 * @param {string} [kind] a class that has its colour
 */
export function icon(name, kind = "") {
    const attributes = { viewBox: "0 0 16 16", class: `icon ${kind}`.trim(), "aria-hidden": "true" };
    return s("svg", attributes, s("path", { d: PATHS[name] }));
}

const OF_VERDICT = { kept: "check", neutral: "neutral", waiting: "waiting", failed: "error" };

/** The state of a guarantee: an icon, its word, and a colour. @param {string} state */
export function stateLabel(state) {
    const kind = verdict(state);
    return h("span", { class: `state ${kind}` }, icon(OF_VERDICT[kind], kind), state);
}
