"""The control socket: what tests, as an ordinary user, ask of root.

One JSON object per connection, closed by the end of the line; one JSON object comes back:
``{"rc": 0, "stdout": "", "stderr": ""}``. Requests:

- ``{"op": "root", "argv": [...]}``: a command as root, with SLURM_CONF set
- ``{"op": "as_second", "argv": [...]}``: a command as the second user
  (both take ``cwd``, ``input``, ``env`` and ``timeout`` too; rc 124 is a time-out)
- ``{"op": "stop" | "start" | "kill" | "pause" | "resume", "daemon": "slurmctld"}``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.cluster.daemons import DaemonSet
from tests.cluster.processes import Children, Finished, clean_environment
from tests.cluster.settings import ClusterError

LONGEST_REQUEST = 16 * 1024 * 1024
BAD_REQUEST = 2


class ControlServer:
    """Answers the requests of one cluster's tests."""

    def __init__(self, daemons: DaemonSet, children: Children, second_user: pwd.struct_passwd | None) -> None:
        self._daemons = daemons
        self._children = children
        self._second_user = second_user

    async def listen(self, path: Path, owner: pwd.struct_passwd) -> asyncio.Server:
        """Open the socket, for its owner (and root) alone."""
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._serve, path, limit=LONGEST_REQUEST)
        finally:
            os.umask(before)
        os.chown(path, owner.pw_uid, owner.pw_gid)
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer_line(await reader.readline())
            writer.write(json.dumps(asdict(answer)).encode() + b"\n")
            await writer.drain()
        except ConnectionError:
            pass  # the client has gone; there is nobody to tell
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer_line(self, line: bytes) -> Finished:
        try:
            request = json.loads(line)
            return await self._answer(request)
        except (ClusterError, OSError) as error:
            return Finished(1, "", str(error))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return Finished(BAD_REQUEST, "", f"bad request: {error!r}")

    async def _answer(self, request: dict[str, Any]) -> Finished:
        operation = request["op"]
        if operation == "root":
            return await self._run(request, None)
        if operation == "as_second":
            if self._second_user is None:
                raise ClusterError("this cluster was started without --second-user")
            return await self._run(request, self._second_user)
        await self._daemon_operation(operation, request["daemon"])
        return Finished(0, "", "")

    async def _run(self, request: dict[str, Any], account: pwd.struct_passwd | None) -> Finished:
        env = self._environment(account) | request.get("env", {})
        return await self._children.run(
            request["argv"],
            env=env,
            text=request.get("input", ""),
            cwd=request.get("cwd") or env["HOME"],
            account=account,
            timeout_s=float(request.get("timeout", 30)),
        )

    def _environment(self, account: pwd.struct_passwd | None) -> dict[str, str]:
        if account is None:
            return self._daemons.env
        return clean_environment(account, SLURM_CONF=str(self._daemons.layout.slurm_conf))

    async def _daemon_operation(self, operation: str, name: str) -> None:
        if operation == "start":
            await self._daemons.start(name)
        elif operation == "stop":
            await self._daemons.stop(name)
        elif operation == "kill":
            await self._daemons.kill(name)
        elif operation == "pause":
            self._daemons.pause(name)
        elif operation == "resume":
            self._daemons.resume(name)
        else:
            raise ClusterError(f"no operation {operation!r}")
