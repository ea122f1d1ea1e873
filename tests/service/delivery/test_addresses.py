"""Addresses that webhooks may go to: forms by which a request could be led into a network."""

from __future__ import annotations

import asyncio
import socket

import pytest

from headgate.service.delivery.webhook import CheckedResolver, Sender, make_socket
from headgate.service.security.webhooks import AddressError, check_address, check_url

REFUSED = [
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://017700000001/", "http://127.0.0.1./", "http://0/",
    "http://0.0.0.0/", "http://00000.0.0.0/", "http://localhost/", "http://LOCALHOST/", "http://localhost./",
    "http://foo.localhost/", "http://metadata.google.internal/", "http://printer.local/", "http://10.0.0.1/",
    "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/",
    "http://100.100.100.200/", "http://100.64.0.1/", "http://168.63.129.16/", "http://192.0.0.192/",
    "http://198.18.0.1/", "http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/", "http://[::1]/",
    "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:0:127.0.0.1]/",
    "http://[::127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::10.0.0.1]/", "http://[2002:7f00:1::]/", "http://[2002:a9fe:a9fe::1]/",
    "http://[2001:0:53aa:64c:0:0:80ff:fffe]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fc00::1]/",
    "http://[fd00:ec2::254]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/",
    "http://user@example.com/", "http://user:pass@example.com/", "http://example.com@127.0.0.1/", "http://@127.0.0.1/",
    "http://127.0.0.1\\@example.com/", "http://127.0.0.1%00.example.com/", "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/",
    "//example.com/",
    "http://", "http:///hook", "http://example.com:22/", "http://example.com:25/", "http://example.com:0/",
    "http://example.com:65536/", "http://exa mple.com/", "http://example.com/\r\nHost: a",
    "javascript:alert(1)",
    "http://-a.com/", "http://a..b.com/", "example.com/hook", "",
]  # fmt: skip
ALLOWED = [
    "https://example.com/hook", "http://example.com:8080/a?b=c", "https://93.184.216.34/", "http://example.com./",
    "https://[2606:4700::1111]/", "https://bücher.example/", "https://a_b.example.org:1024/", "http://[64:ff9b::808:808]/",
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_not_public_is_refused(url: str) -> None:
    with pytest.raises(AddressError) as error:
        check_url(url)
    assert "\n" not in str(error.value)


def test_what_is_public_is_allowed() -> None:
    assert len(REFUSED) >= 40
    assert [check_url(each).host is not None for each in ALLOWED] == [True] * len(ALLOWED)
    assert check_url("http://127.0.0.1:81/", private=True).port == 81


@pytest.mark.parametrize("url", ["http://2130706433/", "http://user@127.0.0.1/", "ftp://127.0.0.1/"])
def test_forms_are_refused_where_private_addresses_are_allowed(url: str) -> None:
    with pytest.raises(AddressError):
        check_url(url, private=True)


def test_a_name_that_leads_inside_is_refused_when_it_is_resolved() -> None:
    # The names of this machine lead to it, and are no names that `check_host` knows.
    name = socket.gethostname()
    addresses = {each[4][0] for each in socket.getaddrinfo(name, 80)}
    for each in addresses:
        with pytest.raises(AddressError):
            check_address(str(each))
    with pytest.raises(AddressError):
        asyncio.run(CheckedResolver().resolve(name, 80))


def test_an_address_is_checked_again_when_the_socket_is_made() -> None:
    for place in (("127.0.0.1", 80), ("::ffff:127.0.0.1", 80, 0, 0), ("fe80::1%eth0", 80, 0, 2)):
        family = socket.AF_INET if len(place) == 2 else socket.AF_INET6
        with pytest.raises(AddressError):
            make_socket((family, socket.SOCK_STREAM, 6, "", place))


def test_the_client_connects_to_nothing_inside() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    async def run() -> list[str | None]:
        sender = Sender(private=False)
        try:
            urls = (f"http://127.0.0.1:{port}/", f"http://{socket.gethostname()}:{port}/")
            found = [(await sender.post(each, {}, b"", 5)).reason for each in urls]
            # Past the check of the URL, the socket is refused all the same.
            with pytest.raises(AddressError):
                await sender._session.post(f"http://127.0.0.1:{port}/")  # noqa: SLF001
            return found
        finally:
            await sender.close()

    reasons = asyncio.run(run())
    assert all(each is not None and "webhooks do not go to" in each for each in reasons)
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()
