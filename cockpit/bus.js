// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Calls of sutrod on the system bus, and their failures in words.
 *
 * No other module uses cockpit.dbus. Members are those of Documentation/org.sutro1.xml.
 */

/* global cockpit */

const NAME = "org.sutro1";
const PATH = "/org/sutro1";
const MANAGER = "org.sutro1.Manager";
const PROPERTIES = "org.freedesktop.DBus.Properties";
const SYSTEMD = "org.freedesktop.systemd1";
const SYSTEMD_PATH = "/org/freedesktop/systemd1";

const NOT_RUNNING = ["ServiceUnknown", "NameHasNoOwner", "Disconnected", "NoReply"];
const NOT_PERMITTED = ["AccessDenied", "AuthFailed", "InteractiveAuthorizationRequired"];
const CLOSED = ["not-found", "disconnected", "terminated"];
/** Texts of both bridges of Cockpit, in C and in Python. */
const NO_ANSWER = /^(Method call timed out|Timeout was reached)/;
/** Cockpit sets no limit itself. sutrod looks up a path in 5 s at most, and reads the rest in less. */
const ANSWER_MS = 10000;
/** Limit of calls that change something: sutrod waits for a disk, and polkit for a user. */
const NO_LIMIT = null;

/** A failure in words: the message describes it, and the hint, if any, names the remedy. */
export class Failure extends Error {
    /**
     * @param {string} message
     * @param {string} [hint]
     * @param {"stopped" | "denied" | "confirm" | ""} [kind] confirm: the action is done when it is repeated
     */
    constructor(message, hint = "", kind = "") {
        super(message);
        this.hint = hint;
        this.kind = kind;
    }
}

/**
 * The failure for an error of cockpit.dbus.
 * @param {{name?: string, message?: string, problem?: string}} error
 * @param {string} member
 */
export function failure(error, member) {
    const last = (error.name ?? "").split(".").at(-1);
    const text = error.message || error.problem || "no reason is known";
    // By the text: NoReply is also the name for a daemon that has ended, and Timeout one of its own.
    if (NO_ANSWER.test(text))
        return new Failure("sutrod does not answer", "See: systemctl status sutrod", "stopped");
    if (NOT_RUNNING.includes(last) || CLOSED.includes(error.problem))
        return new Failure("sutrod is not running", "Start it: systemctl start sutrod", "stopped");
    if (NOT_PERMITTED.includes(last) || error.problem === "access-denied")
        return new Failure(`sutrod does not permit this: ${text}`, "It needs administrative access.", "denied");
    if (last === "UnknownMethod")
        return new Failure(`the running sutrod has no ${member}: it is older than this page`,
                           "Start the new one: systemctl restart sutrod");
    return new Failure(text);
}

/**
 * A value of the bus without variants, at any depth.
 * @param {any} value
 * @returns {any}
 */
export function plain(value) {
    if (Array.isArray(value))
        return value.map(plain);
    if (value === null || typeof value !== "object")
        return value;
    const keys = Object.keys(value);
    if (keys.length === 2 && typeof value.t === "string" && "v" in value)
        return plain(value.v);
    return Object.fromEntries(keys.map(key => [key, plain(value[key])]));
}

/** Pairs of a(st) as objects. */
function unit(row) {
    const weights = row.device_weights ?? [];
    return { ...row, device_weights: weights.map(([path, weight]) => ({ path, weight })) };
}

export class Bus {
    constructor() {
        this.client = null;
        /** Called with the members of signals of the daemon. */
        this.onSignal = (/** @type {string} */ _member) => undefined;
    }

    /** A connection as administrator where the session has these rights. */
    connection() {
        if (!this.client) {
            const client = cockpit.dbus(NAME, { bus: "system", superuser: "try" });
            client.addEventListener("close", () => {
                if (this.client === client)
                    this.client = null;
            });
            client.subscribe({ path: PATH, interface: MANAGER },
                             (_path, _interface, member) => this.onSignal(member));
            this.client = client;
        }
        return this.client;
    }

    /** Connect anew with the next call, after a change of the rights of the session. */
    reconnect() {
        const client = this.client;
        this.client = null;
        client?.close();
    }

    /**
     * @param {string} member
     * @param {string} type signature of the arguments
     * @param {any[]} values
     * @param {string} [iface]
     * @param {number | null} [timeout] in milliseconds
     * @returns {Promise<any[]>}
     */
    async call(member, type = "", values = [], iface = MANAGER, timeout = ANSWER_MS) {
        const options = timeout === NO_LIMIT ? { type } : { type, timeout };
        try {
            return plain(await this.connection().call(PATH, iface, member, values, options));
        } catch (error) {
            throw failure(error, member);
        }
    }

    /** Version, DryRun, ManagedLeaves, PolicyErrors. */
    async properties() {
        return (await this.call("GetAll", "s", [MANAGER], PROPERTIES))[0];
    }

    async devices() {
        return (await this.call("ListDevices"))[0];
    }

    async units() {
        return (await this.call("ListUnits"))[0].map(unit);
    }

    async usage() {
        return (await this.call("ListUsage"))[0];
    }

    async promises() {
        return (await this.call("ListPromises"))[0];
    }

    async capacities() {
        return (await this.call("ListCapacities"))[0];
    }

    async resyncs() {
        return (await this.call("ListResyncs"))[0];
    }

    /** @param {string} name @param {string} path "" for all leaves */
    async explain(name, path) {
        return unit((await this.call("Explain", "ss", [name, path]))[0]);
    }

    /** @param {string} path @returns {Promise<{device: string, leaves: string[], steps: object[]}>} */
    async resolve(path) {
        const [device, leaves, steps] = await this.call("ResolvePath", "s", [path]);
        return { device, leaves, steps };
    }

    /** Settings of a unit, the weakest source first. @param {string} name */
    async policy(name) {
        return (await this.call("GetPolicy", "s", [name]))[0];
    }

    /** Rows of time, got, promised, granted of a floor. */
    async history(name, key, path) {
        return (await this.call("History", "sss", [name, key, path]))[0];
    }

    /** @param {string} name @param {[string, string][]} assignments @param {string} lifetime */
    async setPolicy(name, assignments, lifetime) {
        await this.call("SetPolicy", "sa(ss)s", [name, assignments, lifetime], MANAGER, NO_LIMIT);
    }

    /**
     * The state of a unit in systemd: loaded, not-found and others; "" where systemd does not answer.
     * @param {string} name
     * @returns {Promise<string>}
     */
    async loadState(name) {
        const client = cockpit.dbus(SYSTEMD, { bus: "system" });
        try {
            const [path] = await client.call(SYSTEMD_PATH, `${SYSTEMD}.Manager`, "LoadUnit", [name], { type: "s" });
            return plain(await client.call(path, PROPERTIES, "Get", [`${SYSTEMD}.Unit`, "LoadState"], { type: "ss" }))[0];
        } catch {
            return "";
        } finally {
            client.close();
        }
    }

    /**
     * The kind of a file as stat(1) prints it, "" without a file, null where it cannot be looked up.
     * @param {string} path
     * @returns {Promise<string | null>}
     */
    async fileKind(path) {
        const words = ["stat", "--dereference", "--format=%F", "--", path];
        try {
            const text = await cockpit.spawn(words, { superuser: "try", err: "message", environ: ["LC_ALL=C"] });
            return text.trim();
        } catch (error) {
            return /No such file|Not a directory/.test(error.message ?? "") ? "" : null;
        }
    }

    /** @param {string[]} paths */
    async use(paths) {
        return (await this.call("UseDevices", "as", [paths], MANAGER, NO_LIMIT))[0];
    }

    /** @param {string[]} paths */
    async release(paths) {
        return (await this.call("ReleaseDevices", "as", [paths], MANAGER, NO_LIMIT))[0];
    }
}

/**
 * Set IOWeight= of a unit, and wait until it is in force. sutroctl does that: "not set" is 2^64 - 1
 * on the bus of systemd, which JSON cannot carry.
 * @param {string} name
 * @param {number | null} weight null: not set
 * @param {boolean} runtime until reboot
 */
export async function setWeight(name, weight, runtime) {
    const words = ["sutroctl", "set", ...(runtime ? ["--runtime"] : []), "--", name, String(weight ?? "default")];
    try {
        await cockpit.spawn(words, { superuser: "try", err: "message" });
    } catch (error) {
        const text = error.message || error.problem;
        const [message, ...hint] = text.split("\n").map(line => line.replace("sutroctl: ", "").trim());
        const denied = error.problem === "access-denied" || message.includes("does not permit");
        throw new Failure(message, hint.join(" "), denied ? "denied" : "");
    }
}
