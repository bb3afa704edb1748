# SPDX-License-Identifier: LGPL-2.1-or-later
"""A weight as people type it: exactly 1 to 10000 in plain decimal digits, or default."""

import pytest
from conftest import NOWHERE, sutroctl
from hypothesis import given
from hypothesis import strategies as st
from sutro.errors import UsageError
from sutro.weights import parse_weight

ALLOWED = {str(weight): weight for weight in range(1, 10001)} | {"default": None}


def check(text):
    if text in ALLOWED:
        assert parse_weight(text) == ALLOWED[text]
        return
    with pytest.raises(UsageError) as caught:
        parse_weight(text)
    assert f"'{text}'" in caught.value.message
    assert "from 1 to 10000, or 'default'" in caught.value.message


def test_all_weights():
    for text in ALLOWED:
        check(text)


@given(st.integers())
def test_any_integer(number):
    check(str(number))


@given(st.text())
def test_any_text(text):
    check(text)


@given(st.text(alphabet="0123456789+-_. ٣１eEx\n", max_size=7))
def test_almost_numbers(text):
    check(text)


@pytest.mark.parametrize("digits", [5000, 100000])
def test_very_long_number(digits):
    check("9" * digits)


@pytest.mark.parametrize("text", ["0", "10001", "-1"])
def test_out_of_range(text):
    run = sutroctl("set", "db", text, **NOWHERE)
    assert (run.status, run.out) == (2, "")
    assert run.err == (
        f"sutroctl: weight '{text}' is out of range: "
        "allowed is a whole number from 1 to 10000, or 'default'\n"
    )


@pytest.mark.parametrize("text", ["heavy", "", "1.5", "0100", "+5", "1e3", " 7", "٣"])
def test_not_a_number(text):
    run = sutroctl("set", "db", text, **NOWHERE)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f"sutroctl: weight '{text}' is not a number: allowed is ")
