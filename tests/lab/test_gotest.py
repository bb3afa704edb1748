# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of go test -json."""

import json

from lab import gotest


def lines(*events: dict[str, str]) -> str:
    """The output for some events, between a build and the end of the package."""
    whole = [{"Action": "start"}, *events, {"Action": "pass"}]
    return "\n".join(json.dumps(event) for event in whole)


def test_results_have_a_name_for_each_test() -> None:
    found = gotest.read(lines(
        {"Action": "run", "Test": "TestA"},
        {"Action": "pass", "Test": "TestA"},
        {"Action": "pass", "Test": "TestA/part"},
    ))  # fmt: skip
    assert found.passed == ["go.TestA", "go.TestA/part"] and found.all_passed()


def test_failed_and_skipped_tests_have_failed() -> None:
    found = gotest.read(lines(
        {"Action": "output", "Test": "TestA", "Output": "got 1, "},
        {"Action": "output", "Test": "TestA", "Output": "want 2\n"},
        {"Action": "fail", "Test": "TestA"},
        {"Action": "skip", "Test": "TestB"},
    ))  # fmt: skip
    assert found.failed == {"go.TestA": "got 1, want 2\n", "go.TestB": ""}


def test_no_output_is_no_result() -> None:
    assert not gotest.read("").all_passed()
