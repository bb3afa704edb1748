# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the patched drivers of md, dm and bcache cost more than those they stand for."""
