"""A proxy before a site: delays what goes through it, and cuts it off for a while."""

from __future__ import annotations

import asyncio
import threading


class Proxy:
    """Listens at a port of its own, in a thread, and hands bytes on to another one."""

    def __init__(self, port: int, delay: float = 0.0) -> None:
        self._target = port
        self.delay = delay
        self._open = True
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Cut it off: connections end, and new ones do, too."""
        self._open = False
        self._loop.call_soon_threadsafe(self._abort)

    def heal(self) -> None:
        """Let all through again."""
        self._open = True

    def _abort(self) -> None:
        for each in list(self._writers):
            each.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        try:
            inside, out = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, out}
        await asyncio.gather(self._hand(reader, out), self._hand(inside, writer))
        self._writers -= {writer, out}

    async def _hand(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(1 << 16):
                await asyncio.sleep(self.delay)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def close(self) -> None:
        """End it."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._open = False
        self._server.close()
        self._abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)
