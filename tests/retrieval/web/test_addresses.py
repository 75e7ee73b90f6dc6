"""Which web addresses are one and the same, and which are never fetched, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.retrieval.web.rules.addresses import is_allowed, is_port_usual, is_public, joined, read_address, read_allowed

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "240.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2001:0:7f00:1::",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2001:db8::1",
    "192.0.0.9",
    "192.0.0.192",
    "192.88.99.1",
    "168.63.129.16",
    "::ffff:168.63.129.16",
    "64:ff9b::168.63.129.16",
    "fec0::1",
    "4000::1",
    "3fff::1",
    "not an address",
    "",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_machine_that_is_not_of_the_public_internet_is_known_in_any_dress(address: str):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]
)
def test_public_machines_are_public(address: str):
    assert is_public(address)


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_a_private_address_stays_private_inside_every_kind_of_ipv6_address(inner):
    number = int(inner)
    for outer in (f"::ffff:{inner}", f"64:ff9b::{inner}", f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1"):
        assert not is_public(outer)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("HTTP://Example.COM:80/a/../b/./c#part", "http://example.com/b/c"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com.", "https://example.com/"),
        ("http://example.com:8080/?q=1&utm_source=mail", "http://example.com:8080/?q=1"),
        ("http://example.com/?utm_source=mail", "http://example.com/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://example.com/%C3%A4", "https://example.com/%C3%A4"),
        ("https://example.com/a%2Fb%zz", "https://example.com/a%2Fb%25zz"),
        ("https://example.com/%2e%2e/x", "https://example.com/x"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("  https://example.com/x  ", "https://example.com/x"),
    ],
)
def test_an_address_has_one_spelling(written: str, meant: str):
    assert read_address(written).url == meant
    assert read_address(meant).url == meant


@pytest.mark.parametrize(
    "written",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://",
        "http:///path",
        "http://user@example.com/",
        "http://user:secret@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com\\@127.0.0.1/",
        "http://127.0.0.1\t.example.com/",
        "http://%31%32%37.0.0.1/",
        "http://exa mple.com/",
        "http://a..b/",
        "http://-a.example/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "http://" + "a" * 300 + ".example/",
        "http://example.com/" + "a" * 2000,
        "http://example.com/" + "空" * 700,
        "http://example.com/\r\nHost: other",
        "http://example.com/\0",
    ],
)
def test_what_is_no_web_address_is_refused_with_the_field(written: str):
    with pytest.raises(CpqError) as refused:
        read_address(written, "/url/1")
    assert (refused.value.code, refused.value.details["field"]) == ("VALIDATION_ERROR", "/url/1")


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str):
    for written in (text, f"http://{text}", f"https://example.com/{text}"):
        try:
            address = read_address(written)
        except CpqError:
            continue
        assert read_address(address.url) == address
        assert address.url.isascii()
        assert address.url.isprintable()
        assert " " not in address.url


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("../x.html", "https://example.com/x.html"),
        ("//other.example/y", "https://other.example/y"),
        ("?q=a b", "https://example.com/a/b?q=a%20b"),
        ("x\n y", "https://example.com/a/x%20y"),
        ("mailto:a@b.example", None),
        ("http://[bad", None),
        ("javascript:void(0)", None),
        ("空" * 700, None),
    ],
)
def test_a_link_leads_where_a_browser_would_go(reference: str, target: str | None):
    found = joined(read_address("https://example.com/a/b"), reference)
    assert (found.url if found else None) == target


def test_the_operator_allows_a_host_or_a_host_and_its_port():
    allowed = read_allowed("wiki.local, 10.0.0.5:8080,[::1]:80")
    assert is_allowed(read_address("http://WIKI.local:9999/x"), allowed)
    assert is_allowed(read_address("http://10.0.0.5:8080/"), allowed)
    assert is_allowed(read_address("http://[::1]/"), allowed)
    assert not is_allowed(read_address("http://10.0.0.5/"), allowed)
    assert not is_allowed(read_address("http://evil.wiki.local/"), allowed)


def test_a_port_that_is_allowed_is_not_the_end_of_another_ipv6_address():
    allowed = read_allowed("[fd00::1]:8080,[fd00::2]")
    assert is_allowed(read_address("http://[fd00::1]:8080/"), allowed)
    assert is_allowed(read_address("http://[fd00::2]:99/"), allowed)
    assert not is_allowed(read_address("http://[fd00::1:8080]/"), allowed)


def test_ports_of_other_services_are_not_asked():
    assert [
        port
        for port in (22, 25, 80, 443, 445, 1023, 1024, 8080)
        if is_port_usual(read_address(f"http://a.example:{port}/"))
    ] == [
        80,
        443,
        1024,
        8080,
    ]
