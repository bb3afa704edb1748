// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file The light or dark style that the user chose in the shell of Cockpit.
 */

const KEY = "shell:style";
const preferred = window.matchMedia("(prefers-color-scheme: dark)");

/** @param {string} [style] auto, light, dark */
function apply(style = localStorage.getItem(KEY) || "auto") {
    const dark = style === "dark" || (style === "auto" && preferred.matches);
    document.documentElement.classList.toggle("pf-v6-theme-dark", dark);
}

/** Follow the shell and the browser. */
export function follow() {
    window.addEventListener("storage", event => event.key === KEY && apply());
    // The shell sends it to its frames, which get no event of storage for a change of their own window.
    window.addEventListener("cockpit-style", event => apply(/** @type {CustomEvent} */ (event).detail.style));
    preferred.addEventListener("change", () => apply());
    apply();
}
