// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Small pictures: a line of the last values, and a bar of a share with its entitlement.
 */

import { s } from "./dom.js";

const WIDTH = 120;
const HEIGHT = 24;
/** Above the highest point and below the lowest one, for the width of the line. */
const MARGIN = 2;

/**
 * Points of the line, the newest at the right edge; null where nothing was measured.
 * @param {(number | null)[]} values
 * @param {number} count of values that fill the width
 * @param {number} top the value at the upper edge
 * @returns {[number, number][][]} pieces of the line
 */
export function pieces(values, count, top) {
    const step = WIDTH / Math.max(count - 1, 1);
    const from = WIDTH - (values.length - 1) * step;
    /** @type {[number, number][][]} */
    const found = [[]];
    for (const [number, value] of values.entries()) {
        if (value === null) {
            found.push([]);
            continue;
        }
        const y = HEIGHT - MARGIN - (value / top) * (HEIGHT - 2 * MARGIN);
        found.at(-1).push([round(from + number * step), round(y)]);
    }
    return found.filter(piece => piece.length > 1);
}

function round(number) {
    return Math.round(number * 10) / 10;
}

/**
 * A line of the last values with the value that was promised.
 * @param {(number | null)[]} values oldest first
 * @param {{count: number, target?: number, upper?: boolean, label: string, kind?: string}} look
 *     count: values that fill the width; label: the text of it for screen readers;
 *     kind: a class that has its colour
 */
export function sparkline(values, look) {
    const target = look.target ?? 0;
    const top = Math.max(target * 1.15, ...values.map(value => value ?? 0), Number.MIN_VALUE);
    const lines = pieces(values, look.count, top);
    const y = round(HEIGHT - MARGIN - (target / top) * (HEIGHT - 2 * MARGIN));
    const points = line => line.map(point => point.join(",")).join(" ");
    const attributes = {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
        class: `sparkline ${look.kind ?? ""}`.trim(), "aria-label": look.label,
    };
    return s("svg", attributes,
             lines.map(line => s("polygon", {
                 class: "area",
                 points: `${line[0][0]},${HEIGHT} ${points(line)} ${line.at(-1)[0]},${HEIGHT}`,
             })),
             target > 0 && s("line", { class: "target", x1: 0, x2: WIDTH, y1: y, y2: y }),
             lines.map(line => s("polyline", { class: "line", points: points(line) })));
}

/**
 * The share that was received as a bar, with a mark at the share that the group is entitled to.
 * @param {number} got 0..1
 * @param {number} entitled 0..1
 */
export function bar(got, entitled) {
    const attributes = { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" };
    const mark = Math.min(Math.max(100 * entitled, 0.5), 99.5);
    return s("svg", attributes,
             s("rect", { class: "track", width: 100, height: 8 }),
             s("rect", { class: "fill", width: round(100 * Math.min(got, 1)), height: 8 }),
             entitled > 0 && s("line", { class: "mark", x1: mark, x2: mark, y1: 0, y2: 8 }));
}
