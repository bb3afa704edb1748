// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Administrative access of the session: the state of it, and the password for it.
 *
 * The bridge of Cockpit gets the access from sudo or polkit, and relays their prompts (cockpit.Superuser).
 */

/* global cockpit */

export class Superuser {
    constructor() {
        this.proxy = cockpit.dbus(null, { bus: "internal" }).proxy("cockpit.Superuser", "/superuser");
        /** Called when the session gets or loses the access. */
        this.onChange = () => undefined;
        this.before = this.allowed();
        this.proxy.addEventListener("changed", () => {
            if (this.allowed() === this.before)
                return;
            this.before = this.allowed();
            this.onChange();
        });
    }

    /** null: not known yet. @returns {boolean | null} */
    allowed() {
        if (!this.proxy.valid || this.proxy.Current === "init")
            return null;
        return this.proxy.Current !== "none";
    }

    /** There is a way to get the access in this session. */
    offered() {
        return this.allowed() === false && (this.proxy.Bridges ?? []).length > 0;
    }

    /**
     * Get the access; the promise ends when it is there, or fails with the reason.
     * @param {(question: {text: string, error: string, echo: boolean}) => Promise<string>} ask
     */
    async start(ask) {
        const onPrompt = async (_event, message, prompt, _default, echo, error) => {
            try {
                this.proxy.Answer(await ask({ text: prompt || message, error, echo }));
            } catch {
                this.proxy.Stop();
            }
        };
        this.proxy.addEventListener("Prompt", onPrompt);
        try {
            await this.proxy.Start("any");
        } finally {
            this.proxy.removeEventListener("Prompt", onPrompt);
        }
    }
}
