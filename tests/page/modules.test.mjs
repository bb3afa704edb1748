// SPDX-License-Identifier: LGPL-2.1-or-later
import assert from "node:assert/strict";
import test from "node:test";

import { failure, plain } from "../../cockpit/bus.js";
import { pieces } from "../../cockpit/charts.js";
import {
    complete as completeUnit, guaranteeDialog, lifetimeOf, parsedWeight, pathOf, removal,
} from "../../cockpit/editor.js";
import { read } from "../../cockpit/explain.js";
import { INFINITY, percent, quoted, rate, size, time, typed, value } from "../../cockpit/format.js";
import { Dialog } from "../../cockpit/dialog.js";
import { edit, sample, withoutHistory } from "../../cockpit/guarantees.js";
import { described, History } from "../../cockpit/history.js";
import { complete, rates, total } from "../../cockpit/pcp.js";
import {
    about, grantedPart, identity, received, sentence, stated, typedValue, verdict, worstFirst,
} from "../../cockpit/promises.js";
import { capacityText } from "../../cockpit/stacks.js";
import { label, Topology } from "../../cockpit/topology.js";
import { rows, shown } from "../../cockpit/usage.js";

function device(name, slaves, more = {}) {
    return {
        node: `/dev/${name}`, name, kind: "disk", slaves, aliases: [], leaf: slaves.length === 0,
        managed: false, size_bytes: 1000, ...more,
    };
}

const DB = device("dm-0", ["sda", "sdb"], { aliases: ["/dev/mapper/vg-db", "/dev/vg/db"] });
const DEVICES = [device("sda", []), device("sdb", []), DB, device("dm-1", ["sdb"]),
    device("sdc", [], { size_bytes: 0 })];
const PROMISE = {
    unit: "db.service", cgroup: "/db", key: "ReadBandwidthMin", path: "/srv", device: "/dev/dm-0",
    value: 60e6, percent: 0, percentile: 0, state: "held", got: 5, granted: 1,
};

test("numbers have three digits and a unit", () => {
    assert.equal(size(512), "512 B");
    assert.equal(size(2097152), "2.00 MiB");
    assert.equal(rate(63_100_000), "63.1 MB/s");
    assert.equal(rate(999_600), "1.00 MB/s");
    assert.equal(rate(0), "–");
    assert.equal(time(6190), "6.19 ms");
    assert.equal(percent(0.5), "50.0 %");
    assert.equal(percent(0.0001), "<0.1 %");
    assert.equal(percent(0), "–");
});

test("values have the unit of their key, and are typed exactly", () => {
    assert.equal(value("ReadIOPSMin", 5000), "5.00 kIO/s");
    assert.equal(value("LatencyTarget", 10000), "10.0 ms");
    assert.equal(value("ReadBandwidthMax", INFINITY), "no limit");
    assert.equal(typed("ReadBandwidthMin", 1_500_000), "1.5M");
    assert.equal(typed("ReadBandwidthMin", 1_234_567), "1234567");
    assert.equal(typed("LatencyTarget", 10000), "10ms");
    assert.equal(typed("LatencyTarget", 1500), "1500us");
    assert.equal(typed("ReadBandwidthMax", INFINITY), "infinity");
});

test("a path with blanks is quoted, and read back", () => {
    for (const path of ["/srv", "/srv/a b", "/srv/\"x\"", "/srv/back\\slash"])
        assert.equal(pathOf(`${quoted(path)} 200M`), path);
});

test("stacks begin at the devices that nothing stands on", () => {
    const topology = new Topology(DEVICES);
    assert.deepEqual(topology.tops().map(top => top.name), ["dm-0", "dm-1"]);
    assert.deepEqual(topology.leaves(DB).map(leaf => leaf.name), ["sda", "sdb"]);
    assert.deepEqual(topology.stacksOn(topology.find("/dev/sdb")).map(top => top.name), ["dm-0", "dm-1"]);
    assert.equal(label(DB), "/dev/vg/db");
    assert.equal(topology.find("/dev/mapper/vg-db"), DB);
});

test("an unknown state counts as a failure", () => {
    assert.equal(verdict("held"), "kept");
    assert.equal(verdict("settling"), "waiting");
    assert.equal(verdict("stated"), "neutral");
    assert.equal(verdict("of a later version"), "failed");
});

test("guarantees that fail come first", () => {
    const found = worstFirst([PROMISE, { ...PROMISE, unit: "web.service", state: "infeasible" },
        { ...PROMISE, unit: "a.service", state: "settling" }]);
    assert.deepEqual(found.map(promise => promise.state), ["infeasible", "settling", "held"]);
});

test("words and values of guarantees", () => {
    const target = { ...PROMISE, key: "LatencyTarget", value: 5000, percentile: 99 };
    assert.equal(about(PROMISE), "Read floor");
    assert.equal(about(target), "Read latency P99");
    assert.equal(typedValue(target), "5ms P99");
    assert.equal(typedValue({ ...target, percentile: 95 }), "5ms");
    assert.equal(stated({ ...PROMISE, percent: 50 }), "50 % = 60.0 MB/s");
    assert.equal(typedValue({ ...PROMISE, percent: 50 }), "50%");
    assert.equal(about({ ...PROMISE, key: "LaterKey" }), "LaterKey");
    assert.equal(sentence("the path is nowhere"), "The path is nowhere.");
    assert.equal(sentence(""), "");
});

test("of a target the granted part is time of the device, and not of the target", () => {
    assert.equal(grantedPart({ ...PROMISE, granted: 0.5 }), "granted 30.0 MB/s, 50.0 % of it");
    const target = { ...PROMISE, key: "LatencyTarget", value: 10000, granted: 0.245 };
    assert.equal(grantedPart(target), "granted 24.5 % of the time that it needs");
    assert.equal(grantedPart({ ...target, granted: 1 }), "");
});

test("of a limit the use of the device counts", () => {
    const limit = { ...PROMISE, key: "ReadBandwidthMax", got: 0 };
    const usage = [{ cgroup: "/db", device: "/dev/dm-0", rbytes_per_s: 7 }];
    assert.equal(received(limit, usage), 7);
    assert.equal(received(limit, []), 0);
    assert.equal(received(PROMISE, usage), 5);
});

const UNITS = [
    { unit: "system.slice", cgroup: "/system.slice", weight: 100, weight_set: false, device_weights: [] },
    { unit: "db.service", cgroup: "/system.slice/db.service", weight: 300, weight_set: true,
        device_weights: [{ path: "/dev/vg/db", weight: 400 }] },
    { unit: "cron.service", cgroup: "/system.slice/cron.service", weight: 100, weight_set: false, device_weights: [] },
];
const USAGE = ["/system.slice", "/system.slice/db.service", "/"].map(cgroup => ({
    unit: cgroup.split("/").at(-1), cgroup, device: "/dev/dm-0", rbytes_per_s: 1, wbytes_per_s: 2, read_p99_us: 3,
    leaves: [{ leaf: "/dev/sda", share_got: 0.2, hweight: 0.5, weight: 77 },
        { leaf: "/dev/sdb", share_got: 0.4, hweight: 0.6, weight: 88 }],
}));
const VIEW = { text: "", all: false, sort: "cgroup" };

test("rows of units are a tree with the busiest leaf", () => {
    const found = rows(UNITS, USAGE, new Topology(DEVICES));
    assert.deepEqual(found.map(row => [row.name, row.depth]),
                     [["system.slice", 0], ["cron.service", 1], ["db.service", 1]]);
    const db = found[2];
    assert.deepEqual([db.got, db.entitled, db.asked, db.effective, db.place], [0.4, 0.6, 400, 88, "/dev/vg/db"]);
});

test("inactive units without a weight are shown on request", () => {
    const found = rows(UNITS, USAGE, new Topology(DEVICES));
    assert.equal(shown(found, VIEW).length, 2);
    assert.equal(shown(found, { ...VIEW, all: true }).length, 3);
    assert.deepEqual(shown(found, { ...VIEW, text: "DB.s" }).map(row => row.name), ["db.service"]);
});

test("variants are taken out at any depth", () => {
    const text = { t: "aa{sv}", v: [{ a: { t: "s", v: "x" }, b: { t: "a(st)", v: [["p", 1]] } }] };
    assert.deepEqual(plain([text]), [[{ a: "x", b: [["p", 1]] }]]);
});

test("failures of the bus are sentences", () => {
    const of = name => failure({ name, message: "why" }, "ListUnits");
    assert.equal(of("org.freedesktop.DBus.Error.ServiceUnknown").kind, "stopped");
    assert.equal(of("org.freedesktop.DBus.Error.AccessDenied").kind, "denied");
    assert.match(of("org.freedesktop.DBus.Error.UnknownMethod").message, /has no ListUnits/);
    assert.equal(of("org.sutro1.Error.BadPolicy").message, "why");
    assert.equal(failure({ problem: "disconnected" }, "x").kind, "stopped");
    const hung = failure({ name: "org.freedesktop.DBus.Error.NoReply", message: "Method call timed out" }, "x");
    assert.equal(hung.message, "sutrod does not answer");
    const path = { name: "org.freedesktop.DBus.Error.Timeout", message: "/srv: the path could not be looked up." };
    assert.equal(failure(path, "SetPolicy").message, path.message);
});

test("removal of a setting keeps those of other paths with the same lifetime", () => {
    const source = "/etc/sutro/policy.control/db.service.policy:2";
    const settings = [
        { key: "ReadBandwidthMin", value: "/srv 60M", source },
        { key: "ReadBandwidthMin", value: "/home 20M", source },
        { key: "ReadBandwidthMin", value: "/opt 5M", source: "/etc/sutro/policy.d/db.policy:4" },
        { key: "WriteBandwidthMin", value: "/srv 5M", source },
    ];
    assert.deepEqual(removal(settings, "ReadBandwidthMin", "/srv", "persistent"),
                     [["ReadBandwidthMin", ""], ["ReadBandwidthMin", "/home 20M"]]);
    assert.equal(lifetimeOf(source), "persistent");
    assert.equal(lifetimeOf("/etc/sutro/policy.d/db.policy:4"), "");
});

test("weights and unit names as they are typed", () => {
    assert.equal(parsedWeight("300"), 300);
    assert.equal(parsedWeight(""), null);
    for (const text of ["0", "10001", "-1", "1.5", "010", "x"])
        assert.throws(() => parsedWeight(text), /is no weight/);
    assert.equal(completeUnit("db"), "db.service");
    assert.equal(completeUnit("db.slice"), "db.slice");
    assert.equal(completeUnit("/lxc.payload.web"), "/lxc.payload.web");
    assert.equal(completeUnit("db.v2"), "db.v2.service");
    for (const name of ["db.timer", "multi-user.target", "a.path", "sda.device", "x.automount"])
        assert.throws(() => completeUnit(name),
                      { message: `unit "${name}" has no cgroup, so it has no guarantees`, hint: /service, scope, slice/ });
});

/** Elements without a document: a test needs no browser. */
class Node {
    constructor(tag) {
        this.tag = tag;
        this.attributes = {};
        this.children = [];
        this.listeners = {};
        this.textContent = "";
    }
    setAttribute(name, value) {
        this.attributes[name] = value;
    }
    append(...children) {
        this.children.push(...children);
    }
    replaceChildren(...children) {
        this.children = children;
    }
    addEventListener(name, listener) {
        this.listeners[name] = listener;
    }
    querySelector() {
        return this;
    }
    focus() {}
    get text() {
        const parts = this.children.map(child => child instanceof Node ? child.text : String(child));
        return (this.textContent || "") + parts.join(" ");
    }
}

/** A bus on which every path has a device and every unit exists. */
function quietBus(more) {
    return {
        resolve: async () => ({ device: "/dev/dm-0", leaves: [], steps: [] }), fileKind: async () => "directory",
        loadState: async () => "loaded", capacities: async () => [], ...more,
    };
}
const JOB = {
    ...PROMISE, unit: "", cgroup: "/jobs/7", source: "/run/sutro/policy.control/jobs-7.cgroup.policy:2",
};

test("guarantees of a cgroup by its path are changed, removed and explained by the path", async () => {
    globalThis.Node = Node;
    globalThis.document = { createElement: () => new Node(), createElementNS: () => new Node() };
    assert.equal(edit(JOB, "id").attributes["aria-label"], "Edit Read floor of /jobs/7 on /srv");
    const calls = [];
    const bus = quietBus({
        policy: async name => (calls.push(["policy", name]), []),
        setPolicy: async (...words) => void calls.push(words),
        explain: async name => (calls.push(["explain", name]), {}),
    });
    const state = { units: [], topology: new Topology(DEVICES) };
    const form = new Map([["value", "7M"], ["lifetime", "runtime"], ["unit", "/jobs/8"],
        ["key", "ReadBandwidthMin"], ["path", "/srv"]]);
    const dialog = guaranteeDialog(JOB, state, bus);
    await dialog.run(form);
    await dialog.other.run();
    await guaranteeDialog(null, state, bus).run(form);
    await read({ unit: "/jobs/7", path: "" }, bus);
    assert.deepEqual(calls, [
        ["/jobs/7", [["ReadBandwidthMin", "/srv 7M"]], "runtime"],
        ["policy", "/jobs/7"], ["/jobs/7", [["ReadBandwidthMin", ""]], "runtime"],
        ["/jobs/8", [["ReadBandwidthMin", "/srv 7M"]], "runtime"],
        ["explain", "/jobs/7"], ["policy", "/jobs/7"],
    ]);
});

test("a guarantee of a setting for any volume is changed and removed there, and the dialog has that", async () => {
    globalThis.Node = Node;
    globalThis.document = { createElement: () => new Node(), createElementNS: () => new Node() };
    const source = "/etc/sutro/policy.control/db.service.policy:2";
    const settings = [{ key: "ReadBandwidthMin", value: "any 60M", source },
        { key: "ReadBandwidthMin", value: "/home 20M", source: source.replace(":2", ":3") }];
    const calls = [];
    const bus = quietBus({ policy: async () => settings, setPolicy: async (...words) => void calls.push(words) });
    const state = { units: [], topology: new Topology(DEVICES) };
    const form = new Map([["value", "7M"], ["lifetime", "persistent"]]);
    const dialog = guaranteeDialog({ ...PROMISE, source }, state, bus, settings);
    await dialog.run(form);
    await dialog.other.run();
    assert.deepEqual(calls, [
        ["db.service", [["ReadBandwidthMin", "any 7M"]], "persistent"],
        ["db.service", [["ReadBandwidthMin", ""], ["ReadBandwidthMin", "/home 20M"]], "persistent"],
    ]);
    const notes = shown => shown.body.filter(one => one?.attributes?.class === "alert info").length;
    assert.equal(notes(dialog), 1);
    const home = { ...PROMISE, path: "/home", source: settings[1].source };
    assert.equal(notes(guaranteeDialog(home, state, bus, settings)), 0);
    // A setting of a file stays as it is; one for this volume takes precedence over it.
    const file = { ...settings[0], source: "/etc/sutro/policy.d/db.policy:4" };
    await guaranteeDialog({ ...PROMISE, source: file.source }, state, bus, [file]).run(form);
    assert.deepEqual(calls[2], ["db.service", [["ReadBandwidthMin", "/srv 7M"]], "persistent"]);
});

/** The dialog of a new guarantee, with the calls of SetPolicy, and a way to fill and submit it. */
function opened(more = {}) {
    globalThis.Node = Node;
    const element = Object.assign(new Node("dialog"), { open: true, showModal() { this.open = true; }, close() { this.open = false; } });
    globalThis.document = {
        createElement: tag => new Node(tag), createElementNS: (_space, tag) => new Node(tag),
        getElementById: () => element,
    };
    let fields = {};
    globalThis.FormData = class {
        get(name) {
            return fields[name];
        }
    };
    const calls = [];
    const bus = quietBus({ setPolicy: async (...words) => void calls.push(words), ...more });
    let done = 0;
    const dialog = new Dialog({ offered: () => false }, () => void done++);
    const content = guaranteeDialog(null, { units: [], topology: new Topology(DEVICES) }, bus);
    dialog.open(content);
    const submit = async words => {
        fields = { unit: "db", key: "ReadBandwidthMin", path: "/srv", value: "60M", lifetime: "runtime", ...words };
        await dialog.send(dialog.content.run);
    };
    return { calls, dialog, element, submit, count: () => done };
}
const SET = ["db.service", [["ReadBandwidthMin", "/srv 60M"]], "runtime"];

test("a unit without a cgroup is refused", async () => {
    const { calls, dialog, element, submit } = opened();
    await submit({ unit: "db.timer" });
    assert.match(dialog.failed.text, /unit "db.timer" has no cgroup/);
    assert.ok(element.open);
    assert.deepEqual(calls, []);
    await submit({});
    assert.deepEqual(calls, [SET]);
    assert.ok(!element.open);
});

test("a unit that does not exist is set with a second click", async () => {
    const states = { "db.service": "loaded", "postgres.service": "not-found", "other.service": "not-found" };
    const { calls, dialog, element, submit } = opened({ loadState: async name => states[name] });
    await submit({ unit: "postgres" });
    assert.match(dialog.failed.text, /There is no unit "postgres.service"/);
    assert.match(dialog.failed.text, /takes effect when there is one/);
    assert.equal(dialog.submit.textContent, "Add anyway");
    assert.deepEqual(calls, []);
    // Another name is another question.
    await submit({ unit: "other" });
    assert.match(dialog.failed.text, /"other.service"/);
    assert.deepEqual(calls, []);
    await submit({ unit: "other" });
    assert.equal(calls[0][0], "other.service");
    assert.ok(!element.open);
    // Of a cgroup by its path, and where systemd does not answer, nothing is known.
    for (const unit of ["/jobs/7", "unknown"]) {
        const again = opened({ loadState: async () => "" });
        await again.submit({ unit });
        assert.equal(again.calls.length, 1);
    }
});

test("a path out of reach is refused with its reason", async () => {
    const reason = "/run is not on a block device with a request queue (tmpfs).";
    const reached = opened({ resolve: async () => Promise.reject(failure({ name: "org.sutro1.Error.NoQueue", message: reason }, "")) });
    await reached.submit({ path: "/run" });
    assert.ok(reached.dialog.failed.text.includes(reason));
    assert.match(reached.dialog.failed.text, /sutroctl policy edit db.service/);
    assert.deepEqual(reached.calls, []);
    for (const [kind, text] of [["", /does not exist/], ["socket", /is a socket/], ["fifo", /is a fifo/],
        ["character special file", /is a character special file/]]) {
        const { calls, dialog, submit } = opened({ fileKind: async () => kind });
        await submit({ path: "/srv/dbb" });
        assert.match(dialog.failed.text, text);
        assert.deepEqual(calls, []);
    }
    // Nodes are looked up by sutrod; "any" is no path; a file that may not be looked up is left to sutrod.
    for (const [path, kind] of [["/dev/vg/db", ""], ["any", ""], ["/srv/closed", null]]) {
        const { calls, submit } = opened({ fileKind: async () => kind });
        await submit({ path });
        assert.equal(calls.length, 1);
    }
    const stopped = opened({ resolve: async () => Promise.reject(failure({ problem: "disconnected" }, "")) });
    await stopped.submit({});
    assert.match(stopped.dialog.failed.text, /sutrod is not running/);
    assert.doesNotMatch(stopped.dialog.failed.text, /out of reach/);
});

const CAPACITY = { path: "/dev/vg/db", device: "/dev/dm-0", key: "ReadBandwidthMin", capacity: 150e6, promised: 170e6, left: 0 };

test("floors beyond the capacity are set, and the dialog shows that", async () => {
    const { calls, dialog, element, submit, count } = opened({ capacities: async () => [
        CAPACITY, { ...CAPACITY, key: "WriteBandwidthMin" }, { ...CAPACITY, path: "/home", device: "/dev/dm-1" }, { ...CAPACITY, path: "/srv", promised: 150e6 }] });
    await submit({});
    assert.deepEqual(calls, [SET]);
    assert.equal(count(), 1);
    assert.ok(element.open);
    const text = dialog.form.text;
    assert.match(text, /\/dev\/vg\/db: read floors of 170 MB\/s are promised, more than the capacity of 150 MB\/s/);
    assert.equal(text.match(/are promised/g).length, 1);
    assert.match(text, /Close/);
});

/** A dialog is sent, cancelled while its action is under way, and another one is opened. */
async function cancelled(end, superuser) {
    const { dialog, element } = opened();
    Object.assign(dialog.superuser, superuser);
    const runs = [];
    const answer = {};
    const ended = new Promise((resolve, reject) => Object.assign(answer, { resolve, reject }));
    dialog.open({ title: "first", action: "Set", body: [], run: async () => (runs.push("first"), ended) });
    const sent = dialog.send(dialog.content.run);
    element.close();
    dialog.open({ title: "second", action: "Add", body: [], run: async () => void runs.push("second") });
    end(answer);
    await sent;
    return { dialog, element, runs };
}

test("an action that ends after its dialog leaves the next dialog alone", async () => {
    const kept = await cancelled(answer => answer.resolve());
    assert.ok(kept.element.open);
    const warned = await cancelled(answer => answer.resolve(["beyond the capacity"]));
    assert.match(warned.dialog.form.text, /second/);
    assert.doesNotMatch(warned.dialog.form.text, /beyond/);
    const failed = await cancelled(answer => answer.reject(new Error("refused")));
    assert.equal(failed.dialog.failed.text, "");
    // A cancelled action is not repeated with the fields of another one when the rights are there.
    const denied = failure({ name: "org.freedesktop.DBus.Error.AccessDenied", message: "no" }, "");
    const rights = { offered: () => !rights.are, start: async () => void (rights.are = true) };
    const { runs } = await cancelled(answer => answer.reject(denied), rights);
    assert.deepEqual(runs, ["first"]);
});

test("a prompt for a cancelled dialog is not shown in the next one", async () => {
    const { dialog, element } = opened();
    const prompts = [];
    const prompt = async ask => {
        element.close();
        dialog.open({ title: "second", action: "Add", body: [], run: async () => undefined });
        prompts.push(await ask({ text: "Password: ", error: "", echo: false }).catch(error => error.message));
    };
    Object.assign(dialog.superuser, { offered: () => true, start: prompt });
    const run = async () => Promise.reject(failure({ name: "org.freedesktop.DBus.Error.AccessDenied", message: "no" }, ""));
    dialog.open({ title: "first", action: "Set", body: [], run });
    await Promise.race([dialog.send(run), new Promise(resolve => setTimeout(resolve, 100))]);
    assert.deepEqual(prompts, ["cancelled"]);
    assert.equal(dialog.submit.textContent, "");
    assert.ok(element.open);
});

test("a guarantee that is set is no failure where the capacities cannot be read", async () => {
    const { calls, element, submit, count } = opened({ capacities: async () => Promise.reject(new Error("no answer")) });
    await submit({});
    assert.deepEqual(calls, [SET]);
    assert.ok(!element.open);
    assert.equal(count(), 1);
});

test("capacities of a device", () => {
    assert.equal(capacityText({ ...CAPACITY, promised: 60e6, left: 90e6 }),
                 "Read floors: 60.0 MB/s of 150 MB/s promised, 90.0 MB/s left");
    assert.equal(capacityText({ ...CAPACITY, promised: 0, left: 150e6 }),
                 "Read floors: none of 150 MB/s promised, 150 MB/s left");
    assert.equal(capacityText(CAPACITY), "Read floors: 170 MB/s of 150 MB/s promised, none left");
});

test("lines have gaps, a length and an end", () => {
    const history = new History(3);
    history.begin("a", [1, 2, 3, 4]);
    assert.deepEqual(history.of("a"), [2, 3, 4]);
    history.add(new Map([["a", 5], ["b", 1]]));
    assert.deepEqual(history.of("a"), [3, 4, 5]);
    history.add(new Map([["b", 2]]));
    assert.deepEqual(history.of("a"), [4, 5, null]);
    history.add(new Map());
    history.add(new Map());
    assert.deepEqual(history.of("a"), []);
    assert.equal(described("Rate", [1, null, 3], String), "Rate in the last 2 s: 1 to 3");
});

test("each floor gets its recorded rates, a few with each sample", () => {
    const promises = ["/a", "/b", "/c"].map(path => ({ ...PROMISE, path }));
    const state = { promises, usage: [], received: new History(8) };
    const left = [];
    for (let samples = 0; samples < 4; samples++) {
        const without = withoutHistory(state);
        left.push(without.length);
        for (const promise of without.slice(0, 1))
            state.received.begin(identity(promise), [7, 8, 5, 5].slice(0, samples + 2));
        state.received.add(sample(state));
    }
    assert.deepEqual(left, [3, 2, 1, 0]);
    // The record has the samples since the page was opened, too; nothing counts twice.
    assert.deepEqual(state.received.of(identity(promises[1])), [7, 8, 5, 5, 5, 5]);
});

test("a record of a new daemon keeps the older samples", () => {
    const history = new History(4);
    for (const value of [1, 2, 3])
        history.add(new Map([["a", value]]));
    history.begin("a", [3]);
    assert.deepEqual(history.of("a"), [1, 2, 3]);
});

test("points of a line end at the right edge", () => {
    const [line] = pieces([0, 10], 3, 10);
    assert.deepEqual(line, [[60, 22], [120, 2]]);
    assert.equal(pieces([1, null, 1], 3, 1).length, 0);
});

test("samples of PCP are completed and summed", () => {
    const metrics = [{ instances: ["/db::sda", "/db::dm-0"] }, { instances: ["/db::dm-0"] }];
    const first = [[1, 2], [3]];
    assert.equal(total(first, metrics, "/db", ["dm-0"]), 5);
    const second = complete(first, [[null, 4]]);
    assert.deepEqual(second, [[1, 4], [3]]);
    assert.equal(total(second, metrics, "/db", ["dm-0"]), 7);
    assert.equal(total([[false, false], [false]], metrics, "/db", ["dm-0"]), null);
});

test("rates of PCP are per second, with gaps where a counter is missing or began again", () => {
    const minute = 60000;
    const bytes = [600, 1200, null, 1800, 2400, 0, 60];
    const points = bytes.map((value, number) => ({ time: number * minute, bytes: value }));
    // The machine was off for an hour.
    points.push({ time: 66 * minute, bytes: 3660 });
    assert.deepEqual(rates(points), [null, 10, null, null, 10, null, 1, 1]);
    assert.deepEqual(rates([]), []);
});
