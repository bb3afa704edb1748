# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lab: everything that ./lab does on the host side.

A verb of ./lab is a chain of artefacts in a cache, then a guest:

    packages of the host (host)
    build root, image root                 a Debian 13 tree each        (roots)
    .deb files, modeldisk.ko               from this clone              (products)
    kernel + initramfs, root.ext4          image root + .deb files      (image)
    a guest that boots it                  QEMU, agent, 9p shares       (guest, agent)
    stages of tests, benches, a shell      what a verb does in there    (stages, benches, verbs)

Every artefact is named by a hash of its inputs (cache), so that a second run, another
clone or a concurrent run shares it, and a change rebuilds only what stands on it.
"""
