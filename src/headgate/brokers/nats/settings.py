"""Where a stream of NATS is and how it is read or written: an address, and the same as fields.

    nats://user:password@host:4222,other:4222/STREAM?subject=events.>&max_rows=50000

Everything fits into one address, so that one option of Spark carries it: Spark hides options called `url`
from its plans and logs. Nothing here ever shows a password: `place` is what messages may name.

A subject is tokens joined by dots; in a pattern `*` stands for one token and a last `>` for one or more.
Subjects of matches are made from their fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


FAIL, GO_ON = "fail", "go-on"
FIRST, NEW = "first", "new"
SCHEME = "nats://"
PORT = 4222

_STREAM = re.compile(r"[^\s.*>/\\]+\Z")
_BLANK = re.compile(r"\s")
_SECRET = {"password", "token"}
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")


@dataclass(frozen=True)
class NatsSettings:
    """One stream of a NATS server, and how it is used; all but the first two may stand in the query."""

    servers: tuple[str, ...]
    """The servers' `host:port`, tried in turn."""
    stream: str
    """The name of the JetStream stream."""
    subject: str | None = None
    """Source: which subjects are read, wildcards allowed; all by default. Sink: where matches go."""
    user: str | None = field(default=None, repr=False)
    """Who connects; before the @ of the address."""
    password: str | None = field(default=None, repr=False)
    """With which password; after the user. It is never shown."""
    token: str | None = field(default=None, repr=False)
    """A token instead of user and password."""
    password_file: str | None = None
    """A file with the password, so that it stands in no command line; the driver and all workers read it."""
    creds: str | None = None
    """A credentials file (JWT and seed), as `nsc` writes it."""
    tls: bool = False
    """Encrypt, and check the server's certificate."""
    ca: str | None = None
    """A file with the certificates that are trusted, instead of the system's; encrypts, too."""
    cert: str | None = None
    """A file with our own certificate, for servers that want one; encrypts, too."""
    key: str | None = None
    """A file with the key of `cert`."""
    start: str = FIRST
    """Source: where a new query begins: `first`, `new` or a sequence number."""
    max_rows: int = 50_000
    """Source: how many messages a batch has at most."""
    partitions: int = 0
    """Source and sink: how many tasks share a batch; 0 is one a core of the driver's machine."""
    on_loss: str = FAIL
    """If the server has removed messages that were still needed: `fail`, or `go-on` without them."""
    patience: float = 30.0
    """Seconds for which a server that does not answer is asked again."""
    create: bool = False
    """Sink: make the stream if there is none."""
    window: float = 120.0
    """Sink: seconds for which the server must know message ids; what `create` asks for."""

    @classmethod
    def of(
        cls, address: str, shared: Mapping[str, str] | None = None, **more: str | float | bool | None
    ) -> NatsSettings:
        """Read an address; fields given by name take the place of what it says, and that of what is `shared`.

        >>> NatsSettings.of("nats://ann:secret@localhost/EVENTS?subject=events.>")
        NatsSettings(servers=('localhost:4222',), stream='EVENTS', subject='events.>', ...
        """
        if not address.startswith(SCHEME):
            raise TableError(f"a NATS address begins with {SCHEME}, as nats://localhost:4222/EVENTS")
        head, _, query = address.removeprefix(SCHEME).partition("?")
        if "@" in query:
            # What stands before it may be half a password, so nothing of it is shown.
            raise TableError(
                "a NATS address has no @ behind the first ?: write %40 for an @ in a setting, and %3F for "
                "a ? in a user or password"
            )
        access, _, location = head.rpartition("@")
        hosts, _, stream = location.partition("/")
        known = {one.name: one.default for one in fields(cls)[2:]}
        texts = {**(shared or {}), **_access(access), **_query(query, set(known))}
        texts |= {name: str(value) for name, value in more.items() if value is not None}
        servers, stream = tuple(_server(host) for host in hosts.split(",")), unquote(stream)
        plain = cls(servers, stream)
        unknown = sorted(set(texts) - set(known))
        if unknown:
            raise TableError(
                f"{plain.place}: there is no setting {unknown[0]!r} for NATS: known are {', '.join(known)}"
            )
        if not _STREAM.match(stream):
            raise TableError(
                f"a NATS address names a stream after the servers, without blanks, dots, * and >, as "
                f"nats://{','.join(servers)}/EVENTS: {stream!r} is none"
            )
        typed = {name: _typed(plain.place, name, text, known[name]) for name, text in texts.items()}
        made = cls(servers, stream, **typed)
        made.check()
        return made

    def check(self) -> None:
        """Refuse values that make no sense."""
        if self.subject is not None and (not self.subject or _BLANK.search(self.subject)):
            raise TableError(f"{self.place}: a subject has no blanks and is not empty: {self.subject!r}")
        if self.on_loss not in {FAIL, GO_ON}:
            raise TableError(f"{self.place}: on_loss is fail or go-on, not {self.on_loss!r}")
        if self.start not in {FIRST, NEW} and not (self.start.isdecimal() and int(self.start) > 0):
            raise TableError(f"{self.place}: start is first, new or a sequence number, not {self.start!r}")
        for name, least in (("max_rows", 1), ("partitions", 0), ("patience", 0), ("window", 0.1)):
            if getattr(self, name) < least:
                raise TableError(f"{self.place}: {name} is at least {least}, not {getattr(self, name)}")
        if (self.cert is None) != (self.key is None):
            raise TableError(f"{self.place}: cert and key go together")

    @property
    def place(self) -> str:
        """Name the stream without anything secret, for messages."""
        return f"nats://{','.join(self.servers)}/{self.stream}"

    @property
    def encrypted(self) -> bool:
        """Whether encryption was asked for: certificates ask for it as well."""
        return self.tls or self.ca is not None or self.cert is not None

    @property
    def secret(self) -> str | None:
        """The password, from its file if it is in one."""
        if self.password_file is None:
            return self.password
        try:
            return Path(self.password_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise TableError(f"{self.place}: password_file {self.password_file}: {why}") from error


def shown(place: str) -> str:
    """Return a broker's address without users, passwords and settings, fit for being shown.

    >>> shown("nats://ann:secret@host:4222/EVENTS?token=secret"), shown("matches/")
    ('nats://host:4222/EVENTS', 'matches/')

    An @ behind the ? may end a password with a ? in it, so then nothing can be shown.

    >>> shown("nats://ann:sec?ret@host:4222/EVENTS")
    'nats://…'
    """
    scheme, sign, rest = place.partition("://")
    if not sign:
        return place
    head, _, query = rest.partition("?")
    return f"{scheme}://{'…' if '@' in query else head.rpartition('@')[2]}"


def _server(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, str(PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536 or _BLANK.search(host):
        raise TableError(f"a NATS server is host:port, as localhost:4222, not {text!r}")
    return f"{host}:{port}"


def _access(text: str) -> dict[str, str]:
    if not text:
        return {}
    user, colon, password = text.partition(":")
    return {"user": unquote(user), "password": unquote(password)} if colon else {"user": unquote(user)}


def _query(text: str, known: set[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for part in filter(None, text.split("&")):
        name, equals, value = part.partition("=")
        if texts.keys() & _SECRET and (name not in known or not equals):
            # Perhaps the rest of a password, so it is not shown.
            raise TableError(
                "a NATS address has no known name=value behind its password or token: write %26 for an & in "
                "them"
            )
        if not equals:
            raise TableError(f"settings of a NATS address are name=value, joined by &: {name!r} has no value")
        texts[name] = unquote(value)
    return texts


def _typed(address: str, name: str, text: str, like: object) -> Any:
    """Read a setting's text as the type that its default has."""
    if isinstance(like, bool):
        if text.lower() not in _YES + _NO:
            raise TableError(f"{address}: {name} is yes or no, not {text!r}")
        return text.lower() in _YES
    if not isinstance(like, int | float):
        return text
    try:
        return type(like)(text)
    except ValueError:
        kind = "a whole number" if isinstance(like, int) else "a number"
        raise TableError(f"{address}: {name} is {kind}, not {text!r}") from None


ONE, REST, DOT = "*", ">", "."

_FIELD = re.compile(r"\{([^{}]*)\}")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=@:+~")


def overlap(left: str, right: str) -> bool:
    """Tell whether some subject fits both patterns.

    >>> overlap("events.>", "events.*.new"), overlap("events.*", "events.a.b")
    (True, False)
    """
    ours, theirs = left.split(DOT), right.split(DOT)
    for at in range(max(len(ours), len(theirs))):
        # A last > needs at least one token.
        if at >= len(ours) or at >= len(theirs):
            return False
        if REST in {ours[at], theirs[at]}:
            return True
        if ONE not in {ours[at], theirs[at]} and ours[at] != theirs[at]:
            return False
    return True


def covers(pattern: str, inner: str) -> bool:
    """Tell whether every subject that fits `inner` fits `pattern`.

    >>> covers("matches.>", "matches.*"), covers("matches.*", "matches.>")
    (True, False)
    """
    wide, narrow = pattern.split(DOT), inner.split(DOT)
    for at, token in enumerate(wide):
        if at >= len(narrow):
            return False
        if token == REST:
            return True
        if narrow[at] == REST or (token != ONE and token != narrow[at]):
            return False
    return len(wide) == len(narrow)


@lru_cache(100_000)
def token(value: str | None) -> str:
    """Make any text one token: what NATS or people could misread is written as %XX, byte by byte.

    >>> token("a.b c"), token("ü"), token("")
    ('a%2Eb%20c', '%C3%BC', '%')
    """
    if not value:
        return "%"
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in value.encode())


class Template:
    """A subject with fields of a match in braces, such as `matches.{subscription_id}`."""

    def __init__(self, text: str, address: str) -> None:
        self.text = text
        self.fields = tuple(dict.fromkeys(_FIELD.findall(text)))
        left = _FIELD.sub("", text)
        tokens = _FIELD.sub("x", text).split(DOT)
        if "{" in left or "}" in left:
            raise TableError(
                f"{address}: braces in a subject hold the name of a field, as matches.{{subscription_id}}"
            )
        if ONE in left or REST in left or "" in tokens:
            raise TableError(
                f"{address}: matches go to one subject, without * and >, as matches.all: not {text!r}"
            )
        self._pieces = _FIELD.split(text)

    @property
    def pattern(self) -> str:
        """Return a pattern that all subjects of this template fit."""
        return DOT.join(ONE if "{" in part else part for part in self.text.split(DOT))

    def check(self, columns: Collection[str], where: str) -> None:
        """Refuse fields that matches do not have."""
        for name in self.fields:
            if name not in columns:
                raise TableError(
                    f"{where}: the subject {self.text} names {name!r}, and matches have {', '.join(columns)}"
                )

    def fill(self, values: Mapping[str, str | None]) -> str:
        """Make a subject of the fields of one match.

        >>> Template("to.{who}.new", "").fill({"who": "a.b"})
        'to.a%2Eb.new'
        """
        pieces = self._pieces
        return "".join(piece if at % 2 == 0 else token(values[piece]) for at, piece in enumerate(pieces))
