# SPDX-License-Identifier: LGPL-2.1-or-later
"""The additional cost of the patched drivers of md, dm and bcache."""
