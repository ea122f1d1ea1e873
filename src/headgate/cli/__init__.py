"""The command line: thin commands, each in a module that is loaded by its name, heavy imports inside them.

Exit codes: 0 done; 1 refused, with one line on stderr; 2 wrong usage; 3 done, but rows were refused and
`--strict` was given; 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys

import click

from headgate.cli.shell import ALONE, cli
from headgate.cli.standard import named
from headgate.core.machine import need_module
from headgate.errors import HeadgateError, MachineError

__all__ = ["cli", "main"]


def main() -> None:
    """Run the command line; every foreseen error is one line on stderr."""
    _show_compiling()
    try:
        cli.main(prog_name="headgate", standalone_mode=False, obj=ALONE)
    except click.exceptions.Abort:
        _fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx else "headgate"
        _fail(f"{error.format_message()} (see {help_of} --help)", 2)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except HeadgateError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except ModuleNotFoundError as error:
        try:
            need_module(error.name)
        except MachineError as lacking:
            _fail(str(lacking), lacking.exit_code)
        raise
    except OSError as error:
        # The disk is full, a place cannot be written: the machine's fault, and its words are clear.
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)


def _show_compiling() -> None:
    """Show as progress that kernels are compiled, where it takes long."""
    shown = logging.getLogger("headgate.kernels")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("headgate: %(message)s"))
    shown.addHandler(handler)
    shown.propagate = False
    shown.setLevel(logging.ERROR if "--quiet" in sys.argv else logging.INFO)


def _fail(message: str, code: int) -> None:
    line = " ".join(named(message).split())
    click.echo(f"headgate: {line}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        # What cannot be written now cannot be at exit either, where Python would report it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
