"""Commands on pages: what may be secret in them is not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate import Subscription
from headgate.cli.shell import shown_command
from headgate.records.index.index import RecordIndex
from tests.spark.files import put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

SECRET = ("--conf", "spark.hadoop.fs.s3a.secret.key=TOPSECRET")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("run p.toml --fresh", "run p.toml --fresh"),
        ("run p.toml --conf spark.ui.enabled=true", "run p.toml --conf spark.ui.enabled=true"),
        ("run p.toml --conf spark.ssl.keyPassword=abc", "run p.toml --conf 'spark.ssl.keyPassword=…'"),
        ("run p.toml --conf=spark.a.TOKEN=abc", "run p.toml '--conf=spark.a.TOKEN=…'"),
        ("run p.toml --conf spark.x=-DtrustStorePassword=abc", "run p.toml --conf 'spark.x=…'"),
        ("run p.toml --set spark.conf.a.credential=abc", "run p.toml --set 'spark.conf.a.credential=…'"),
        ("run p.toml --set spark.conf={a='abc'}", "run p.toml --set 'spark.conf=…'"),
        ("run p.toml --set stream.options={a='abc'}", "run p.toml --set 'stream.options=…'"),
        ("run p.toml --set match.top=5", "run p.toml --set match.top=5"),
        ("run p.toml --set plan.carries=key", "run p.toml --set plan.carries=key"),
        ("run p.toml --set stream.events=nats://u:abc@h/E", "run p.toml --set stream.events=nats://h/E"),
        ("run p.toml --set stream.events='nats://u:abc@h'", """run p.toml --set 'stream.events='"'"'nats://h'"'"''"""),
        ("stream --events nats://h/E?token=abc --once", "stream --events nats://h/E --once"),
        ("stream --events=kafka://u:abc@h:1/t", "stream --events=kafka://h:1/t"),
        ("stream --option kafka.sasl.jaas.config=abc", "stream --option 'kafka.sasl.jaas.config=…'"),
        ("match --events s3a://id:abc@bucket/e", "match --events s3a://bucket/e"),
        ("backtest --filter url='http://a/?b'", """backtest --filter 'url='"'"'http://a/?b'"'"''"""),
    ],
)  # fmt: skip
def test_what_is_shown_of_a_command(arguments: str, shown: str) -> None:
    assert shown_command(arguments.split()) == f"headgate {shown}"


@pytest.mark.usefixtures("spark")
def test_pages_show_no_secrets_of_the_command_line(headgate: Command, tmp_path: Path) -> None:
    RecordIndex.build([Subscription("a", "x = 1"), Subscription("b", "x > 0")]).save(tmp_path / "snapshot")
    put_lines(tmp_path / "events.jsonl", [{"id": n, "x": n % 3} for n in range(9)])
    put_lines(tmp_path / "changes.jsonl", [{"op": "unsubscribe", "id": "a"}])
    both = ("--snapshot", tmp_path / "snapshot", "--output")
    for command in (
        ("plan", *both, tmp_path / "net", "--sample", tmp_path / "events.jsonl", "--carries", "key"),
        ("backtest", *both, tmp_path / "w.parquet", "--changes", tmp_path / "changes.jsonl", "--events",
         tmp_path / "events.jsonl"),
    ):  # fmt: skip
        page = tmp_path / f"{command[0]}.html"
        ran = headgate(*command, "--quiet", "--report", page, *SECRET)
        assert ran.code == 0, ran.err
        text = page.read_text("utf-8")
        assert "spark.hadoop.fs.s3a.secret.key" in text
        assert "TOPSECRET" not in text
