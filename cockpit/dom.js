// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * @file Elements, and updates in place.
 *
 * A section is built anew with each sample and compared with the document: elements that are
 * still there are kept, with the focus, the selection and the position of the pointer.
 */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. Attributes that are false, null or undefined are left out; true is "".
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
    return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes, children));
}

/** The same for SVG. @returns {SVGElement} */
export function s(tag, attributes = {}, ...children) {
    return /** @type {SVGElement} */ (filled(document.createElementNS(SVG, tag), attributes, children));
}

function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value !== false && value !== null && value !== undefined)
            element.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children.flat(2)) {
        if (child !== false && child !== null && child !== undefined && child !== "")
            element.append(child instanceof Node ? child : String(child));
    }
    return element;
}

/**
 * Make the children of a node equal to these, and keep those that are there.
 * @param {Element} node
 * @param {Iterable<Node>} children with the attribute data-key those that may move
 */
export function update(node, children) {
    const keyed = new Map();
    for (const child of node.children) {
        if (child.hasAttribute("data-key"))
            keyed.set(child.getAttribute("data-key"), child);
    }
    let at = node.firstChild;
    for (const child of [...children]) {
        const key = child instanceof Element ? child.getAttribute("data-key") : null;
        const match = key === null ? unkeyed(at, child) : keyed.get(key);
        if (!match) {
            node.insertBefore(child, at);
            continue;
        }
        keyed.delete(key);
        if (match === at)
            at = at.nextSibling;
        else
            node.insertBefore(match, at);
        sync(match, child);
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

function unkeyed(at, child) {
    const same = at && at.nodeName === child.nodeName && at.nodeType === child.nodeType;
    return same && !(at instanceof Element && at.hasAttribute("data-key")) ? at : null;
}

/** Make one node equal to another one of the same name. */
function sync(node, wanted) {
    if (!(node instanceof Element)) {
        if (node.nodeValue !== wanted.nodeValue)
            node.nodeValue = wanted.nodeValue;
        return;
    }
    for (const { name } of [...node.attributes]) {
        // The user opens and closes details.
        if (!wanted.hasAttribute(name) && !(name === "open" && node.nodeName === "DETAILS"))
            node.removeAttribute(name);
    }
    for (const { name, value } of wanted.attributes) {
        if (node.getAttribute(name) !== value)
            node.setAttribute(name, value);
    }
    update(node, wanted.childNodes);
}

/**
 * Make a section equal to these children.
 * @param {string} id
 * @param {...(Child | Child[])} children
 */
export function show(id, ...children) {
    const section = document.getElementById(id);
    update(section, h("div", {}, ...children).childNodes);
}

/**
 * A button that an action of app.js handles.
 * @param {string} action
 * @param {Record<string, any>} attributes
 * @param {...(Child | Child[])} children
 */
export function button(action, attributes, ...children) {
    return h("button", { type: "button", "data-action": action, ...attributes }, ...children);
}

/** Text for screen readers only. @param {string} text */
export function spoken(text) {
    return h("span", { class: "spoken" }, text);
}
