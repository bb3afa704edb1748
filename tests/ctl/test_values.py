# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values of a policy as people type them."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sutro import values
from sutro.errors import UsageError

KEYS = st.sampled_from(sorted(values.KINDS))


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("ReadBandwidthMin", "200M", 200_000_000),
        ("WriteBandwidthMax", "1.5G", 1_500_000_000),
        ("ReadBandwidthMin", " 7 K ", 7000),
        ("ReadBandwidthMin", "1G 500M", 1_500_000_000),
        ("ReadBandwidthMin", "5K 7B", 5007),
        ("ReadBandwidthMin", "1P", 10**15),
        ("ReadBandwidthMax", "infinity", values.INFINITY),
        ("ReadBandwidthMin", "0.001K", 1),
        ("ReadIOPSMin", "500", 500),
        ("LatencyTarget", "5ms", 5000),
        ("LatencyTarget", "1s 500us", 1_000_500),
        ("LatencyTarget", "1s500us", 1_000_500),
        ("LatencyTarget", "2", 2_000_000),
        ("LatencyTarget", "0.5ms", 500),
        ("LatencyTarget", "1min", 60_000_000),
        ("Weight", "10000", 10000),
    ],
)
def test_parse(key, text, number):
    assert values.parse(key, text) == number


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (key, text)
        for key in values.KINDS
        for text in ("", "0", "-1", "many", "5 5", "1e3", "9" * 50)
    ]
    + [
        ("ReadBandwidthMin", text)
        for text in ("5k", "5KB", "5Ki", "0.0001", "5M 1G", "2P", "infinity")
    ]
    + [
        ("LatencyTarget", text)
        for text in ("5 ms 3", "ms", "5parsec", "0ms", "2min", "1s 1s", "1s  -5us", "1" * 39)
    ]
    + [("Weight", text) for text in ("10001", "0100", "1.5", "+5", "٣")],
)
def test_what_is_no_value(key, text):
    with pytest.raises(UsageError) as caught:
        values.parse(key, text)
    assert f"'{text[:40]}' is no value for {key}: allowed is " in caught.value.message


@given(KEYS, st.integers(1, 10000) | st.integers(1, 2**63))
def test_text_is_read_as_the_same_number(key, number):
    most = {values.WEIGHT: 10000, values.TIME: values.LATENCY_MOST_US}
    number = number % most.get(values.KINDS[key], values.RATE_MOST) + 1
    assert values.parse(key, values.text(key, number)) == number


@given(KEYS, st.text(max_size=60) | st.text(alphabet="0123456789.KMGTusme ", max_size=60))
def test_any_text_is_read_or_refused(key, text):
    try:
        assert 0 < values.parse(key, text) <= values.INFINITY
    except UsageError as error:
        assert key in error.message


@pytest.mark.parametrize("key", values.TARGETS)
def test_percentile_of_a_target(key):
    for text in ("5ms", "5ms P50", "1s 500us P99", "5ms\tP99.9", " 1min P99.5 "):
        values.check(key, text)
    for text in ("5ms P49.9", "5ms P99.91", "5ms P99.95", "5ms P100", "5ms P", "5ms P99."):
        with pytest.raises(UsageError, match=r"P50 to P99\.9"):
            values.check(key, text)
    for text in ("P99", "2min P99", "0ms P99", "5ms p99", "5ms P99 P99"):
        with pytest.raises(UsageError, match="a time from 1us to 1min"):
            values.check(key, text)
    with pytest.raises(UsageError):
        values.check("ReadBandwidthMin", "5M P99")


@given(st.sampled_from(["ReadBandwidthMin", "LatencyTarget"]), st.integers(1, 10**14))
def test_short_is_short_and_near(key, number):
    text = values.short(key, number)
    digits, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text).groups()
    factors = {"": 1, "us": 1, "ms": 1000, "s": 10**6} | values.SUFFIXES
    assert len(digits) <= 4 or unit in ("T", "s")
    assert float(Fraction(digits) * factors[unit]) == pytest.approx(number, rel=0.006)


@pytest.mark.parametrize(
    ("path", "word"),
    [("/srv", "/srv"), ("/a b", '"/a b"'), ('/a"b', '"/a\\"b"'), ("/a\\b", '"/a\\\\b"')],
)
def test_quoted(path, word):
    assert values.quoted(path) == word
