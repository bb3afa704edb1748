// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The dialog: a form, its failures, and the password where an action needs more rights.
 */

import { h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @typedef {object} Content
 * @property {string} title
 * @property {string} action the word on the button
 * @property {import("./dom.js").Child[]} body
 * @property {(form: FormData) => Promise<string[] | void>} run its failure stays in the dialog, and so do its warnings
 * @property {string} [again] the word on the button after a failure that is to be confirmed
 * @property {{action: string, run: (form: FormData) => Promise<string[] | void>} | null} [other] a second action
 */

/** A note with an icon. @param {"failed" | "waiting" | "info"} kind @param {...import("./dom.js").Child} text */
export function note(kind, ...text) {
    const name = { failed: "error", waiting: "warning", info: "info" }[kind];
    return h("div", { class: `alert ${kind}` }, icon(name, kind), h("div", {}, ...text));
}

export class Dialog {
    /**
     * @param {import("./superuser.js").Superuser} superuser
     * @param {() => void} onDone called after an action
     */
    constructor(superuser, onDone) {
        this.superuser = superuser;
        this.onDone = onDone;
        this.element = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
        this.element.addEventListener("close", () => this.answer?.(null));
        /** Takes the password that the session waits for. */
        this.answer = null;
    }

    /** @param {Content} content */
    open(content) {
        this.content = content;
        this.failed = h("div", { role: "alert" });
        this.password = h("div", { class: "field" });
        this.submit = /** @type {HTMLButtonElement} */ (h("button", { type: "submit", class: "primary" }, content.action));
        const cancel = h("button", { type: "button", class: "link" }, "Cancel");
        cancel.addEventListener("click", () => this.element.close());
        this.form = /** @type {HTMLFormElement} */ (
            h("form", { novalidate: true },
              h("h2", { id: "dialog-title" }, content.title),
              h("div", { class: "dialog-body" }, content.body, this.failed, this.password),
              h("div", { class: "dialog-foot" }, this.submit, this.second(content.other), cancel)));
        this.form.addEventListener("submit", event => {
            event.preventDefault();
            this.send(this.content.run);
        });
        this.element.replaceChildren(this.form);
        this.element.showModal();
    }

    second(other) {
        if (!other)
            return null;
        const made = h("button", { type: "button", class: "secondary danger" }, other.action);
        made.addEventListener("click", () => this.send(other.run));
        return made;
    }

    async send(run) {
        if (this.answer) {
            this.answer(new FormData(this.form).get("password"));
            return;
        }
        const form = this.form;
        this.busy(true);
        try {
            const warnings = await run(new FormData(form));
            if (warnings?.length && this.shows(form))
                this.finish(warnings);
            else if (this.shows(form))
                this.element.close();
            this.onDone();
        } catch (error) {
            if (this.shows(form))
                await this.fail(error, run);
        } finally {
            if (this.shows(form))
                this.busy(false);
        }
    }

    /** False after a form was cancelled, while its action goes on. @param {HTMLFormElement} form */
    shows(form) {
        return this.form === form && this.element.open;
    }

    /** The action is done: show its warnings until the dialog is closed. @param {string[]} warnings */
    finish(warnings) {
        const close = h("button", { type: "button", class: "primary" }, "Close");
        close.addEventListener("click", () => this.element.close());
        this.form.replaceChildren(
            h("h2", { id: "dialog-title" }, this.content.title),
            h("div", { class: "dialog-body" }, h("div", { role: "alert" }, warnings.map(text => note("waiting", text)))),
            h("div", { class: "dialog-foot" }, close));
        close.focus();
    }

    busy(yes) {
        this.submit.disabled = yes;
        this.form.setAttribute("aria-busy", String(yes));
    }

    async fail(error, run) {
        const denied = error.kind === "denied";
        const isQuestion = error.kind === "confirm";
        this.failed.replaceChildren(note(isQuestion ? "waiting" : "failed", h("strong", {}, error.message),
                                         error.hint && h("p", {}, error.hint)));
        this.submit.textContent = isQuestion ? this.content.again : this.content.action;
        if (!denied || !this.superuser.offered())
            return;
        const form = this.form;
        try {
            await this.superuser.start(async question => {
                if (!this.shows(form))
                    throw new Error("cancelled");
                return await this.ask(question, error.message);
            });
        } catch (refused) {
            if (this.shows(form))
                this.failed.replaceChildren(note("failed", `No administrative access: ${refused.message}`));
            return;
        } finally {
            if (this.shows(form)) {
                this.answer = null;
                this.password.replaceChildren();
                this.submit.textContent = this.content.action;
            }
        }
        if (!this.shows(form))
            return;
        this.failed.replaceChildren();
        await this.send(run);
    }

    /**
     * @param {{text: string, error: string, echo: boolean}} question of sudo or polkit
     * @param {string} reason of the refusal without it
     * @returns {Promise<string>} the answer
     */
    ask({ text, error, echo }, reason) {
        this.failed.replaceChildren(error ? note("failed", error) : note(
            "info", h("strong", {}, reason), h("p", {}, "This needs administrative access.")));
        const type = echo ? "text" : "password";
        const input = h("input", { id: "password", name: "password", type, autocomplete: "current-password" });
        this.password.replaceChildren(h("label", { for: "password" }, text.replace(/:?\s*$/, "")), input);
        this.submit.textContent = "Authenticate";
        this.busy(false);
        input.focus();
        return new Promise((resolve, reject) => {
            this.answer = value => {
                this.answer = null;
                this.busy(true);
                if (value === null)
                    reject(new Error("cancelled"));
                else
                    resolve(value);
            };
        });
    }
}

/**
 * A field with its label and a line of help.
 * @param {string} name
 * @param {string} text
 * @param {HTMLElement} control
 * @param {string} [help]
 */
export function field(name, text, control, help = "") {
    control.id = `field-${name}`;
    control.setAttribute("name", name);
    if (help)
        control.setAttribute("aria-describedby", `help-${name}`);
    return h("div", { class: "field" }, h("label", { for: control.id }, text), control,
             help && h("div", { class: "help", id: `help-${name}` }, help));
}

/** The choice of how long a setting lasts. @param {string} chosen persistent or runtime */
export function lifetimeField(chosen = "persistent") {
    const radio = (value, text) => h("label", { class: "check" }, h("input", {
        type: "radio", name: "lifetime", value, checked: value === chosen,
    }), text);
    return h("fieldset", { class: "field" }, h("legend", {}, "Lifetime"),
             radio("persistent", "Kept over reboots"), radio("runtime", "Until the next boot"));
}
