// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The page: it samples the daemon once a second while it is visible, and handles the actions.
 */

/* global cockpit */

import { Bus } from "./bus.js";
import { Dialog, note } from "./dialog.js";
import { h, show } from "./dom.js";
import { guaranteeDialog, weightDialog } from "./editor.js";
import { read, readHistory, showExplain } from "./explain.js";
import { sample as receivedSample, showGuarantees, withoutHistory } from "./guarantees.js";
import { History, LENGTH } from "./history.js";
import { icon } from "./icons.js";
import { identity, owner } from "./promises.js";
import { showStacks, switchDialog } from "./stacks.js";
import { Superuser } from "./superuser.js";
import { follow } from "./theme.js";
import { Topology } from "./topology.js";
import { sample as shareSample, showUnits } from "./units.js";

/**
 * @typedef {object} State
 * @property {object | null} daemon properties
 * @property {boolean} loaded
 * @property {import("./bus.js").Failure | null} failure of the last sample
 * @property {Topology} topology
 * @property {object[]} units
 * @property {object[]} usage
 * @property {import("./promises.js").Promised[]} promises
 * @property {object[]} resyncs
 * @property {object[]} capacities that are declared for devices
 * @property {History} shares of units
 * @property {History} received rates of guarantees
 * @property {{text: string, all: boolean, sort: string}} view
 * @property {object | null} drawer
 */

const PERIOD_MS = 1000;
/** The page reads devices, units, capacities and mistakes with one of this many samples: they change rarely. */
const RARELY = 5;
/** The page reads the drawer with one of this many samples. */
const DRAWER = 2;
/** Floors whose recorded rates are read with one sample. */
const HISTORIES = 8;

/** @type {State} */
const state = {
    daemon: null, loaded: false, failure: null, topology: new Topology([]), units: [], usage: [],
    promises: [], resyncs: [], capacities: [], shares: new History(), received: new History(),
    view: { text: "", all: false, sort: "cgroup" }, drawer: null,
};
const bus = new Bus();
const superuser = new Superuser();
const dialog = new Dialog(superuser, () => refresh(true));
let samples = 0;
/** @type {HTMLElement | null} The button that opened the drawer gets the focus back. */
let opener = null;

async function readRarely() {
    const [daemon, devices, units, resyncs, capacities] = await Promise.all(
        [bus.properties(), bus.devices(), bus.units(), bus.resyncs(), bus.capacities()]);
    Object.assign(state, { daemon, units, resyncs, capacities, topology: new Topology(devices) });
}

async function readOften() {
    const [usage, promises] = await Promise.all([bus.usage(), bus.promises()]);
    Object.assign(state, { usage, promises });
}

/** Read the rates of floors from before the page was opened, of some with each sample. */
async function readRecorded() {
    await Promise.all(withoutHistory(state).slice(0, HISTORIES).map(async promise => {
        const rows = await bus.history(promise.unit || promise.cgroup, promise.key, promise.path).catch(() => []);
        state.received.begin(identity(promise), rows.slice(-LENGTH).map(([, got]) => got));
    }));
}

/** Show what is known at once: the daemon answers the first question about use after a second. */
async function showFirst() {
    const [promises] = await Promise.all([bus.promises(), readRarely()]);
    state.promises = promises;
    state.loaded = true;
    render();
}

/** Read and show everything that is due. @param {boolean} all also what changes rarely */
async function refresh(all) {
    try {
        if (!state.loaded)
            await showFirst();
        await (all ? Promise.all([readRarely(), readOften()]) : readOften());
        await readRecorded();
        state.shares.add(shareSample(state));
        state.received.add(receivedSample(state));
        state.failure = null;
        state.loaded = true;
        await refreshDrawer();
    } catch (error) {
        state.failure = error;
    }
    render();
}

async function refreshDrawer() {
    const drawer = state.drawer;
    if (!drawer || samples % DRAWER)
        return;
    try {
        Object.assign(drawer, await read(drawer, bus), { failure: null });
        // Once, and beside the samples: PCP may read archives for a long time.
        drawer.reading ??= readHistory(drawer, state).then(history => {
            drawer.history = history;
            render();
        });
    } catch (error) {
        drawer.failure = error;
    }
}

function render() {
    showDaemon();
    showAlerts();
    showGuarantees(state);
    showUnits(state);
    showStacks(state);
    if (state.drawer)
        showExplain(state);
}

function showDaemon() {
    const { daemon, failure } = state;
    if (!daemon)
        return;
    show("daemon",
         failure ? icon("error", "failed") : icon("check", "kept"),
         h("span", {}, `sutrod ${daemon.Version}, ${failure ? "no answer" : "running"}`),
         superuser.allowed() === false && h("span", { class: "label", title: "Changes need administrative access." },
                                            icon("lock"), "limited access"),
         daemon.DryRun && h("span", { class: "label waiting" }, "dry run: nothing is written"));
}

function showAlerts() {
    const { daemon, failure, resyncs } = state;
    show("alerts",
         failure && note("failed", h("strong", {}, failure.message), failure.hint && h("p", {}, failure.hint)),
         (daemon?.PolicyErrors ?? []).map(text => note("waiting", h("strong", {}, "Mistake in a policy: "), text)),
         resyncs.map(resync => note("info", `${resync.action} of ${resync.device || "a volume of LVM"}`,
                                    resync.cgroup !== "/" && ` in ${resync.cgroup.slice(1)}`,
                                    resync.note && `: ${resync.note}`)));
}

async function openDrawer(data, element) {
    opener = element;
    state.drawer = { unit: data.unit, path: data.path ?? "", policy: [], steps: [] };
    const aside = document.getElementById("explain");
    aside.hidden = false;
    document.body.classList.add("with-drawer");
    samples = 0;
    showExplain(state);
    aside.focus();
    await refreshDrawer();
    render();
}

function closeDrawer() {
    state.drawer = null;
    document.getElementById("explain").hidden = true;
    document.body.classList.remove("with-drawer");
    if (opener?.isConnected)
        opener.focus();
}

function openSwitch(verb, data) {
    const top = state.topology.find(data.device);
    if (top)
        dialog.open(switchDialog(verb, top, state, bus));
}

async function openEditor(data) {
    const promise = state.promises.find(found => identity(found) === data.id);
    if (!promise)
        return;
    // Without sutrod the dialog shows the failure of its action.
    const settings = await bus.policy(owner(promise)).catch(() => []);
    dialog.open(guaranteeDialog(promise, state, bus, settings));
}

/** Each button has the name of one. */
const ACTIONS = {
    add: () => dialog.open(guaranteeDialog(null, state, bus)),
    edit: openEditor,
    weight: data => dialog.open(weightDialog(data.unit, state)),
    use: data => openSwitch("use", data),
    release: data => openSwitch("release", data),
    explain: openDrawer,
    close: closeDrawer,
    sort: data => {
        state.view.sort = data.sort;
        render();
    },
};

function listen() {
    document.addEventListener("click", event => {
        const element = /** @type {HTMLElement} */ (event.target).closest("[data-action]");
        if (element instanceof HTMLElement)
            ACTIONS[element.dataset.action]?.(element.dataset, element);
    });
    document.addEventListener("keydown", event => {
        if (event.key === "Escape" && state.drawer && !document.querySelector("dialog[open]"))
            closeDrawer();
    });
    document.addEventListener("input", event => {
        const { id, value, checked } = /** @type {HTMLInputElement} */ (event.target);
        if (id === "filter")
            state.view.text = value;
        else if (id === "all-units")
            state.view.all = checked;
        else
            return;
        render();
    });
}

async function poll() {
    if (!cockpit.hidden) {
        await refresh(samples % RARELY === 0 || state.failure !== null);
        samples += 1;
    }
    setTimeout(poll, PERIOD_MS);
}

follow();
listen();
superuser.onChange = () => {
    bus.reconnect();
    render();
};
render();
poll();
