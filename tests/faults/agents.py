"""Agents that sell all day, each a process of its own that can be killed at any moment and goes on where it was.

Everything an agent asks is in its journal before it asks, and every answer when it has one: a file that outlives the
process. Whoever goes on repeats the call that has no answer, under its key, as a client does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cpq.app import App, tokens
from cpq.app.access import Principal, Role
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from mcp_facade.toolsets import ALL_TOOLS
from tests.faults.invariants import Told
from tests.support.approvals import person
from tests.support.engine import Tools, open_app, patient
from tests.support.quotes import ACME

PROCESS = multiprocessing.get_context("forkserver")
PROCESS.set_forkserver_preload([__name__])
"""New processes come from one that has imported everything and opened nothing."""

AGAIN = {Code.UNAVAILABLE, Code.TIMEOUT}
"""What an agent may be told at any moment; it then repeats the call under its key."""

MANAGER = "ann"
SELLER = Principal("sam", "human", frozenset({Role.SALES_REP}))
WAIT_SECONDS = 180
PRODUCTS = ("prod_pro_v2", "prod_oil_screw")


class Journal:
    """One agent's file: a line for each question and one for each answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **entry: Any) -> None:
        os.write(self._descriptor, (json.dumps(entry) + "\n").encode())

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries, but for one that was cut off by a kill."""
        for line in self.path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def answers(self) -> list[Told]:
        """What the agent was told, errors left out."""
        asked: dict[str, dict[str, Any]] = {}
        found = []
        for entry in self.entries():
            if "tool" in entry:
                asked[entry["key"]] = entry
            elif entry["code"] == "OK":
                ask = asked[entry["key"]]
                found.append(Told(ask["caller"], ask["tool"], ask["key"], entry["answer"]))
        return found

    def codes(self) -> list[str]:
        return [entry["code"] for entry in self.entries() if "code" in entry]

    def unanswered(self) -> dict[str, Any] | None:
        last = None
        for entry in self.entries():
            last = entry if "tool" in entry else None
        return last


class Agent:
    """Makes quotes and moves them by chance through their whole life, as four callers."""

    def __init__(self, app: App, name: str, journal: Journal, seed: int) -> None:
        self._callers = {
            "agent": Principal(name, "agent", frozenset({Role.AGENT})),
            "seller": SELLER,
            "manager": app.read_unaudited(app.new_call(), lambda tx: tokens.find_principal(tx, MANAGER)),
        }
        self._tools = {who: Tools(app, ALL_TOOLS, principal) for who, principal in self._callers.items()}
        self._name, self._journal, self._random = name, journal, random.Random(seed)
        self._count = 0
        self._quotes: dict[str, dict[str, Any]] = {}
        self._requests: dict[str, dict[str, Any]] = {}
        self._agreements: list[str] = []
        for told in journal.answers():
            self._count += 1
            self._learn(told.tool, told.answer)
        self._run = f"{seed}-{os.getpid()}"

    def finish_last(self) -> None:
        """Repeat the call whose answer nobody heard."""
        last = self._journal.unanswered()
        if last is not None:
            self._send(last["who"], last["tool"], last["arguments"])

    def step(self) -> None:
        self._count += 1
        who, tool, arguments = self._choice()
        key = f"{self._name}-{self._run}-{self._count}"
        arguments = {**arguments, "idempotency_key": key}
        caller = self._callers[who].caller
        self._journal.write(who=who, caller=caller, tool=tool, key=key, arguments=arguments)
        self._send(who, tool, arguments)
        if self._random.random() < 0.1:
            self._send(who, tool, arguments)  # As a client whose answer was lost on its way.

    def _send(self, who: str, tool: str, arguments: Mapping[str, Any]) -> None:
        while True:
            reply = self._tools[who].reply(tool, arguments)
            if reply.code not in AGAIN:
                break
            self._journal.write(key=arguments["idempotency_key"], code=reply.code)
            time.sleep(0.05)
        answer = json.loads(reply.text)
        self._journal.write(key=arguments["idempotency_key"], code=reply.code, answer=answer)
        if not reply.is_error:
            self._learn(tool, answer)
        elif "quote_id" in arguments and reply.code == Code.CONFLICT:
            self._quotes.pop(arguments["quote_id"], None)  # Whatever its state is, there are others.

    def _learn(self, tool: str, answer: Mapping[str, Any]) -> None:
        if tool == "quote_pdf" or "quote_id" not in answer:
            return
        status = answer.get("quote_status") or answer.get("status") or "draft"
        known = self._quotes.setdefault(answer["quote_id"], {})
        known.update(status=status, version=answer.get("version", 1))
        if tool == "quote_price":
            known.update(priced=True, waits=bool(answer["approval_required"]))
        if tool in ("quote_update", "quote_revise"):
            known.update(priced=False)
        if tool == "approval_request":
            self._requests[answer["quote_id"]] = {"id": answer["approval_id"], "shown": answer["fingerprint"]}
        if answer.get("agreement_id"):
            self._agreements.append(answer["agreement_id"])

    def _choice(self) -> tuple[str, str, dict[str, Any]]:
        """The next thing to do: mostly what the state of a quote asks for, sometimes anything."""
        chance = self._random.random()
        if chance < 0.25 or not self._quotes:
            return "agent", "quote_create", self._new()
        if chance < 0.30 and self._agreements:
            return "agent", "agreement_amend", self._amendment()
        quote_id = self._random.choice(list(self._quotes)[-12:])
        known = self._quotes[quote_id]
        at = {"quote_id": quote_id, "expected_version": known["version"]}
        if chance < 0.33:
            return "agent", "quote_cancel", at
        return self._usual(known, quote_id, at)

    def _usual(self, known: Mapping[str, Any], quote_id: str, at: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        price = {"quote_id": quote_id, "requested_discount_pct": self._random.choice([0, 0, 10])}
        add = {"add_lines": [{"product_id": self._random.choice(PRODUCTS), "quantity": self._random.randint(1, 9)}]}
        ask = {"quote_id": quote_id, "justification": "A good deal.", "approver_role": "sales_manager"}
        match known["status"]:
            case "draft" if not known.get("priced"):
                return "agent", "quote_price", price
            case "draft" if self._random.random() < 0.2:
                return "agent", "quote_update", {**at, **add}
            case "draft" if known["waits"]:
                return "agent", "approval_request", ask
            case "draft" | "approved":
                return "agent", "quote_send", at
            case "pending_approval" if quote_id in self._requests:
                request = self._requests[quote_id]
                word = self._random.choice(["approve", "approve", "reject"])
                decided = {"approval_id": request["id"], "fingerprint": request["shown"], "decision": word}
                return "manager", "approval_decide", {**decided, "comment": "Read."}
            case "sent":
                tool = self._random.choice(["quote_accept", "quote_accept", "quote_decline", "quote_revise"])
                return ("agent" if tool == "quote_revise" else "seller"), tool, at
            case "declined" | "expired":
                return "agent", "quote_revise", at
            case _:
                return "agent", "quote_clone", {"quote_id": quote_id}

    def _new(self) -> dict[str, Any]:
        lines = [
            {"product_id": self._random.choice(PRODUCTS), "quantity": self._random.randint(1, 9)}
            for _ in range(self._random.randint(1, 4))
        ]
        return {"account_id": ACME, "term_months": 12, "line_items": lines}

    def _amendment(self) -> dict[str, Any]:
        add = {"action": "add_line", "product_id": "prod_pro_v2", "quantity": self._random.randint(1, 5)}
        return {"agreement_id": self._random.choice(self._agreements), "effective_date": "2026-12-16", "changes": [add]}


def work(settings: Settings, name: str, folder: Path, seed: int, steps: int) -> None:
    """One process: goes on where the journal ends, until it is killed, the folder says stop, or its steps are done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Only whoever started us ends us.
    app = opened(settings)
    with patient():
        agent = Agent(app, name, Journal(folder / f"{name}.journal"), seed)
        agent.finish_last()
        for _ in range(steps):
            if (folder / "stop").exists():
                break
            agent.step()
    app.close()


def opened(settings: Settings) -> App:
    """As a supervisor starts a server again until its database is there."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return open_app(settings)
        except CpqError as error:
            if error.code not in AGAIN or time.monotonic() > end:
                raise
            time.sleep(0.1)


class Crowd:
    """Some agents at once on one store, each replaced by the next process when it is killed."""

    def __init__(self, settings: Settings, folder: Path, *, agents: int, seed: int, steps: int = 1_000_000) -> None:
        self._settings = settings.model_copy(update={"rate_limit_per_minute": 0, "caller_mb_per_day": 100_000})
        self._folder, self._seed, self._steps = folder, seed, steps
        self._random = random.Random(seed)
        self.kills = 0
        self._begun: dict[str, int] = {}
        """How many lines each journal had when its present process began."""
        app = open_app(settings)
        person(app, MANAGER, "sales_manager")
        app.close()
        self._processes = {f"agent-{number}": self._started(f"agent-{number}") for number in range(agents)}

    def kill_one(self) -> None:
        """Kill an agent wherever it is in its work, and let another go on with its journal."""
        name = self._random.choice(list(self._processes))
        victim = self._processes[name]
        self._wait_for_work(name, self._random.randint(1, 25))
        time.sleep(self._random.uniform(0, 0.02))
        victim.kill()
        victim.join(WAIT_SECONDS)
        assert victim.exitcode == -signal.SIGKILL, f"{name} had ended by itself: {victim.exitcode}"
        self.kills += 1
        self._processes[name] = self._started(name)

    def stop(self) -> list[Told]:
        """Let everybody finish the call they are in; returns all answers."""
        (self._folder / "stop").touch()
        return self.finish()

    def finish(self) -> list[Told]:
        for name, process in self._processes.items():
            process.join(WAIT_SECONDS)
            assert process.exitcode == 0, f"{name} ended with {process.exitcode}"
        return [told for path in self._journals() for told in Journal(path).answers()]

    def codes(self) -> Counter[str]:
        return Counter(code for path in self._journals() for code in Journal(path).codes())

    def answered(self) -> int:
        return sum(self.codes().values())

    def _wait_for_work(self, name: str, entries: int) -> None:
        """Else most kills would hit a process that only begins."""
        path, end = self._folder / f"{name}.journal", time.monotonic() + WAIT_SECONDS
        while not path.exists() or path.read_bytes().count(b"\n") < self._begun[name] + entries:
            assert time.monotonic() < end, f"{name} does nothing"
            time.sleep(0.005)

    def _journals(self) -> list[Path]:
        return sorted(self._folder.glob("*.journal"))

    def _started(self, name: str) -> multiprocessing.context.ForkServerProcess:
        self._seed += 1
        path = self._folder / f"{name}.journal"
        self._begun[name] = path.read_bytes().count(b"\n") if path.exists() else 0
        arguments = (self._settings, name, self._folder, self._seed, self._steps)
        process = PROCESS.Process(target=work, args=arguments, name=name, daemon=True)
        process.start()
        return process
